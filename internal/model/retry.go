package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// RetryOptions bound the retries of one request. Zero values mean the default.
type RetryOptions struct {
	// Budget is the time from the first failure in which another attempt may
	// begin; default 5 minutes. An attempt that runs is not cut by it.
	Budget time.Duration
	// MaxAttempts counts all attempts of a request; default 10, 1 is no retry.
	MaxAttempts int
	// BaseDelay is the longest wait after the first failure, doubled after each
	// further one up to MaxDelay; defaults 500 ms and 32 s.
	BaseDelay, MaxDelay time.Duration
	// Rand gives numbers in [0, 1) for the jitter; default rand.Float64. It is
	// called from several goroutines.
	Rand func() float64
}

func (o RetryOptions) withDefaults() RetryOptions {
	if o.Budget <= 0 {
		o.Budget = 5 * time.Minute
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 10
	}
	if o.BaseDelay <= 0 {
		o.BaseDelay = 500 * time.Millisecond
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = 32 * time.Second
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// maxUseless is how many attempts in a row may end without an answer though the
// server took the request, before it is given up.
const maxUseless = 3

// Retry returns a Provider that sends a request again when p fails with a
// temporary [*Error], and passes every other end on as it is. Each wait is
// announced by a DeltaRetry and ends at once with ctx (then ctx's cause is
// returned). A server's Retry-After is a floor of the wait; one that exceeds the
// rest of the budget ends the request at once.
//
// What an attempt emitted before it failed is not emitted again: the next
// attempt's answer is swallowed as far as it is the same, then goes on. Where
// it differs, DeltaRestart voids what was emitted and the new answer follows
// from its start. An attempt that emitted DeltaFinish is never repeated.
//
// All requests through the returned value share the wait after a rate limit:
// one that is held back by another's announces it with Attempt 0 (as long as it
// has not failed itself).
func Retry(p Provider, o RetryOptions) Provider {
	return &retrier{inner: p, opts: o.withDefaults()}
}

type retrier struct {
	inner Provider
	opts  RetryOptions
	gate  gate
}

// Stream implements [Provider].
func (r *retrier) Stream(ctx context.Context, req *Request, emit func(Delta)) error {
	run := attempts{opts: r.opts, gate: &r.gate, out: replay{emit: emit}}
	for {
		if err := run.passGate(ctx); err != nil {
			return err
		}
		run.out.begin()
		err := r.inner.Stream(ctx, req, run.out.add)
		if err == nil || run.out.finished || ctx.Err() != nil {
			return err
		}
		var failure *Error
		if !errors.As(err, &failure) || !failure.Temporary() {
			return err
		}
		if err := run.backOff(ctx, failure); err != nil {
			return err
		}
	}
}

// gate is a time before which nobody may send, and why.
type gate struct {
	mu    sync.Mutex // guards the fields below
	until time.Time
	why   *Error
}

func (g *gate) shut(until time.Time, why *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) {
		g.until, g.why = until, why
	}
}

func (g *gate) wait() (time.Duration, *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.until), g.why
}

// attempts is the state of one request's attempts.
type attempts struct {
	opts    RetryOptions
	gate    *gate
	out     replay
	failed  int       // attempts so far
	useless int       // of them, the last ones in a row without an answer
	since   time.Time // first failure, or first wait; zero before
}

// left is the rest of the budget, which begins to run now if it has not yet.
func (a *attempts) left() time.Duration {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	return a.opts.Budget - time.Since(a.since)
}

// passGate waits until no rate limit met by another request holds this one.
func (a *attempts) passGate(ctx context.Context) error {
	for {
		wait, why := a.gate.wait()
		if wait <= 0 {
			return nil
		}
		if left := a.left(); wait > left {
			return tooLong(why, wait, left)
		}
		// Jitter, so that those who waited do not all come at once.
		wait += time.Duration(a.opts.Rand() * float64(a.opts.BaseDelay))
		if err := a.pause(ctx, wait, why); err != nil {
			return err
		}
	}
}

// backOff waits before the next attempt, or returns the error to end with.
func (a *attempts) backOff(ctx context.Context, failure *Error) error {
	a.failed++
	left := a.left()
	if a.isUseless(failure) || a.failed >= a.opts.MaxAttempts {
		return a.giveUp(failure)
	}
	floor := failure.RetryAfter
	if floor > 0 && floor > left {
		return tooLong(failure, floor, left)
	}
	wait := floor + a.jitter()
	switch {
	case left <= 0:
		return a.giveUp(failure)
	case wait > left:
		wait = left
	}
	if failure.Kind == ErrRateLimit {
		a.gate.shut(time.Now().Add(max(floor, wait)), failure)
	}
	return a.pause(ctx, wait, failure)
}

// isUseless counts the failures that a server that is up would repeat for ever.
func (a *attempts) isUseless(failure *Error) bool {
	switch failure.Kind {
	case ErrEmpty, ErrIncomplete, ErrMalformed, ErrMalformedUse, ErrStalled:
		a.useless++
	default:
		a.useless = 0
	}
	return a.useless >= maxUseless
}

// jitter is a random part of the exponential delay.
func (a *attempts) jitter() time.Duration {
	limit := a.opts.BaseDelay
	for i := 1; i < a.failed && limit < a.opts.MaxDelay; i++ {
		limit *= 2
	}
	return time.Duration(a.opts.Rand() * float64(min(limit, a.opts.MaxDelay)))
}

// pause announces a wait and waits.
func (a *attempts) pause(ctx context.Context, d time.Duration, why *Error) error {
	a.out.emit(Delta{Kind: DeltaRetry, Retry: &RetryInfo{
		Attempt: a.failed, MaxRetries: a.opts.MaxAttempts - 1, Delay: d, Err: why,
	}})
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *attempts) giveUp(failure *Error) error {
	if a.failed < 2 {
		return failure
	}
	e := *failure
	e.Message += fmt.Sprintf("; gave up after %d attempts in %s", a.failed, time.Since(a.since).Round(time.Second))
	return &e
}

func tooLong(failure *Error, wait, left time.Duration) error {
	e := *failure
	e.RetryAfter = wait
	e.Message += fmt.Sprintf("; the server asks to wait %s, which is more than the %s left for retries",
		wait.Round(time.Second), max(left, 0).Round(time.Second))
	return &e
}

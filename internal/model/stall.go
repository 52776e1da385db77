package model

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultIdle is how long a stream may be silent unless set otherwise.
const DefaultIdle = 60 * time.Second

// StallWatch returns a Provider that cuts p's stream when p emits nothing, not
// even a DeltaPing, for idle: from the request to the first delta as well as
// between deltas. The error is then an ErrStalled, which [Retry] (outside of
// this) repeats. Time that the receiver spends in emit is not counted. idle 0 is
// [DefaultIdle]; a negative one returns p itself.
func StallWatch(p Provider, idle time.Duration) Provider {
	switch {
	case idle < 0:
		return p
	case idle == 0:
		idle = DefaultIdle
	}
	return stallWatch{inner: p, idle: idle}
}

type stallWatch struct {
	inner Provider
	idle  time.Duration
}

// Stream implements [Provider].
func (w stallWatch) Stream(ctx context.Context, req *Request, emit func(Delta)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := &Error{
		Kind:    ErrStalled,
		Message: fmt.Sprintf("nothing came from model %s for %s", req.Model, w.idle),
	}
	c := idleClock{start: time.Now(), idle: w.idle}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { // ends when done is closed
		if c.expire(done) {
			cancel(stalled)
		}
	})
	err := func() error {
		defer watch.Wait()
		defer close(done)
		return w.inner.Stream(ctx, req, func(d Delta) {
			c.busy.Store(true)
			emit(d)
			c.last.Store(int64(time.Since(c.start)))
			c.busy.Store(false)
		})
	}()
	if err != nil && context.Cause(ctx) == error(stalled) {
		return stalled
	}
	return err
}

// idleClock measures silence without touching a timer at each delta.
type idleClock struct {
	start time.Time
	idle  time.Duration
	last  atomic.Int64 // end of the last delta, as nanoseconds since start
	busy  atomic.Bool  // a delta is being passed on
}

// expire returns true once there was silence for idle, false when done is
// closed before.
func (c *idleClock) expire(done <-chan struct{}) bool {
	t := time.NewTimer(c.idle)
	defer t.Stop()
	for {
		select {
		case <-done:
			return false
		case <-t.C:
		}
		left := c.idle
		if !c.busy.Load() {
			left = c.idle - (time.Since(c.start) - time.Duration(c.last.Load()))
		}
		if left <= 0 {
			return true
		}
		t.Reset(left)
	}
}

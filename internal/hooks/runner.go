package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// DefaultTimeout is how long a hook is waited for that has no timeout of its
// own, until SetTimeout says otherwise.
const DefaultTimeout = 60 * time.Second

// maxParallel bounds the hooks of one event that run at once.
const maxParallel = 64

// Errors of hooks.
var (
	// ErrTimeout is in the failure of a hook that didn't answer in time.
	ErrTimeout = errors.New("no answer in time")
	// ErrUnknownCallback says that no hook is registered under an id.
	ErrUnknownCallback = errors.New("no hook is registered under this id")

	errNoHost = errors.New("there is no host to call it in")
)

// Step is the start or the end of one hook's run.
type Step struct {
	ID     string // of the run, the same at both ends
	Name   string // the event and what it is about, such as PreToolUse:Bash
	Event  Event
	Ended  bool
	Output json.RawMessage // at the end; nil if there is none or the hook wants it hidden
	Err    error           // at the end: why it failed
	// Cancelled is true when it failed because nobody waits for it any more.
	Cancelled bool
}

// Runner holds the hooks and runs them. It is safe for concurrent use, and a nil
// Runner is one without hooks.
type Runner struct {
	caller Caller
	log    *slog.Logger

	mu      sync.RWMutex // guards the rest
	hooks   []*hook      // never changed in place
	timeout time.Duration
}

// hook is a registration in force.
type hook struct {
	Registration
	matcher matcher
	host    bool // registered by the host: Replace takes it away
}

// name is how failures call it.
func (h *hook) name() string {
	if h.CallbackID != "" {
		return h.CallbackID
	}
	return "of the program itself"
}

// New returns a Runner without hooks. caller may be nil when no host is there:
// its hooks fail then. A nil log drops everything.
func New(caller Caller, log *slog.Logger) *Runner {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Runner{caller: caller, log: log, timeout: DefaultTimeout}
}

// SetTimeout sets how long to wait for hooks without a timeout of their own; 0:
// without a limit.
func (r *Runner) SetTimeout(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timeout = d
}

// Register adds hooks behind those that are there, all or none. They stay when
// the host's are replaced.
func (r *Runner) Register(list ...Registration) error {
	added, err := compile(list, false)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = append(slices.Clip(r.hooks), added...)
	return nil
}

// Replace puts hooks of the host in the place of those that the last Replace
// put, all or none.
func (r *Runner) Replace(list []Registration) error {
	added, err := compile(list, true)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(r.hooks), func(h *hook) bool { return h.host })
	r.hooks = append(kept, added...)
	return nil
}

// Remove takes away the hooks with a callback id and reports whether there were
// any.
func (r *Runner) Remove(callbackID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(r.hooks), func(h *hook) bool { return h.CallbackID == callbackID })
	removed := len(kept) < len(r.hooks)
	r.hooks = kept
	return removed
}

func compile(list []Registration, host bool) ([]*hook, error) {
	hooks := make([]*hook, 0, len(list))
	for _, reg := range list {
		switch {
		case reg.Event == "":
			return nil, fmt.Errorf("hook %q names no event", reg.CallbackID)
		case reg.Func == nil && reg.CallbackID == "":
			return nil, fmt.Errorf("a hook for %s has no callback id", reg.Event)
		}
		m, err := newMatcher(reg.Matcher, reg.Event.onTools())
		if err != nil {
			return nil, fmt.Errorf("hook %q for %s: %w", reg.CallbackID, reg.Event, err)
		}
		hooks = append(hooks, &hook{Registration: reg, matcher: m, host: host})
	}
	return hooks, nil
}

// Has reports whether any hook is registered for an event, whatever it matches.
func (r *Runner) Has(e Event) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.hooks, func(h *hook) bool { return h.Event == e })
}

// List returns the hooks in force, in the order of their registration.
func (r *Runner) List() []Registration {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Registration, len(r.hooks))
	for i, h := range r.hooks {
		list[i] = h.Registration
	}
	return list
}

// matching returns the hooks to call, and the timeout for those without one.
func (r *Runner) matching(e Event, subject string) ([]*hook, time.Duration) {
	if r == nil {
		return nil, 0
	}
	r.mu.RLock()
	all, timeout := r.hooks, r.timeout
	r.mu.RUnlock()
	var list []*hook
	for _, h := range all {
		if h.Event == e && h.matcher.matches(subject) {
			list = append(list, h)
		}
	}
	return list, timeout
}

// Run calls the hooks of an event that match, side by side, and returns what
// they say together once all have answered, failed or run out of time. When ctx
// ends the open ones fail.
func (r *Runner) Run(ctx context.Context, e Event, in Input) Outcome {
	list, timeout := r.matching(e, in.subject(e))
	if len(list) == 0 {
		return Outcome{}
	}
	all := make([]spoken, len(list))
	input, err := in.encode(e)
	if err != nil {
		err = fmt.Errorf("the input for hooks of %s can't be encoded: %w", e, err)
		r.log.Error("hooks could not be called", "event", e, "error", err)
		for i := range all {
			all[i] = spoken{err: err, blocks: list[i].Blocks}
		}
		return merge(e, all)
	}
	run := func(i int) {
		all[i] = r.runOne(ctx, list[i], timeout, input, &in)
	}
	if len(list) == 1 {
		run(0)
		return merge(e, all)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range list {
		slots <- struct{}{}
		wg.Go(func() { // ends with its hook, which ends with ctx or by its timeout
			defer func() { <-slots }()
			run(i)
		})
	}
	wg.Wait()
	return merge(e, all)
}

// runOne calls one hook and reads what it says.
func (r *Runner) runOne(ctx context.Context, h *hook, timeout time.Duration, input json.RawMessage, in *Input) spoken {
	step := Step{ID: uuid.NewString(), Name: string(h.Event), Event: h.Event}
	if subject := in.subject(h.Event); subject != "" {
		step.Name += ":" + subject
	}
	if in.Watch != nil {
		in.Watch(step)
	}
	raw, err := r.call(ctx, h, timeout, input, in.ToolUseID)
	var out output
	if err == nil {
		out, err = decode(h.Event, raw)
	}
	if err != nil {
		err = fmt.Errorf("the %s hook %s failed: %w", h.Event, h.name(), err)
		r.log.Warn("a hook failed", "event", h.Event, "hook", h.name(), "error", err)
	}
	if in.Watch != nil {
		step.Ended, step.Err, step.Cancelled = true, err, err != nil && ctx.Err() != nil
		if !out.quiet {
			step.Output = raw
		}
		in.Watch(step)
	}
	return spoken{out: out, err: err, blocks: h.Blocks}
}

// call calls a hook within its time.
func (r *Runner) call(ctx context.Context, h *hook, timeout time.Duration, input json.RawMessage, toolUseID string) (raw json.RawMessage, err error) {
	if h.Timeout > 0 {
		timeout = h.Timeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w (%v)", ErrTimeout, timeout))
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("recovered a panic in a hook", "event", h.Event, "panic", p, "stack", string(debug.Stack()))
			raw, err = nil, fmt.Errorf("it panicked: %v", p)
		}
	}()
	switch {
	case h.Func != nil:
		raw, err = h.Func(ctx, input, toolUseID)
	case r.caller == nil:
		return nil, errNoHost
	default:
		raw, err = r.caller.CallHook(ctx, h.CallbackID, input, toolUseID)
	}
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		err = context.Cause(ctx)
	}
	return raw, err
}

// Call runs the hook that is registered under a callback id, as an event would,
// and returns its output as it came. The error is ErrUnknownCallback when there
// is none.
func (r *Runner) Call(ctx context.Context, callbackID string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownCallback, callbackID)
	}
	r.mu.RLock()
	all, timeout := r.hooks, r.timeout
	r.mu.RUnlock()
	for _, h := range all {
		if callbackID != "" && h.CallbackID == callbackID {
			return r.call(ctx, h, timeout, input, toolUseID)
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownCallback, callbackID)
}

package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/streamjson"
)

// Output is where lines go. Send keeps the order (responses may pass pieces of
// messages), doesn't block and doesn't call the Dispatcher. *streamjson.Writer is
// one.
type Output interface {
	Send(streamjson.Message) error
}

// Config is what a Dispatcher is made of. Fields without a note are needed.
type Config struct {
	Dialect streamjson.Dialect
	Out     Output
	Names   Names        // nil: outward names are ours
	Log     *slog.Logger // nil: none
	// SessionID returns the id for status lines; nil: the one that Session
	// describes, which may take longer.
	SessionID func() string
	// AskTimeout ends the wait for an answer to can_use_tool; 0: the dialect's,
	// which is none but for qwen.
	AskTimeout time.Duration
}

// Dispatcher correlates and routes control traffic. Its methods may be called
// from any goroutine, Receive, Malformed and CloseInput from the one that
// reads the input.
type Dispatcher struct {
	cfg     Config
	log     *slog.Logger
	effects Effects

	system     *SystemController
	permission *PermissionController
	mcp        *SDKMCPController
	hook       *HookController
	services   *Services

	ctx  context.Context // ends with Close
	end  context.CancelCauseFunc
	work sync.WaitGroup // handlers

	mu      sync.Mutex
	pending map[string]*request // incoming and not answered
	states  []*request          // that wait for their turn
	last    *request            // the last state change; nil: all are done
	opening *request            // the last initialize; nil: it is answered
	stating bool                // a goroutine runs states
	free    pool                // others
	outside pool                // others that wait for the host or a server
	held    int                 // what the requests that aren't over take, in bytes
	closed  bool

	calls calls
}

// New returns a Dispatcher that supports nothing yet: see Attach. It starts no
// goroutine. The caller must Close it.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{cfg: cfg, log: cfg.Log, pending: map[string]*request{}}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.ctx, d.end = context.WithCancelCause(context.Background())
	d.calls.init(cfg)
	d.services = newServices(d)
	d.system = &SystemController{d: d, begin: time.Now()}
	d.permission = &PermissionController{d: d}
	d.mcp = &SDKMCPController{d: d, servers: map[string]bool{}}
	d.hook = &HookController{d: d}
	return d
}

// SetLog sets the log. It must be called before the first Receive.
func (d *Dispatcher) SetLog(log *slog.Logger) { d.log = log }

// Attach says what requests act on. It must be called before the first
// Receive, once.
func (d *Dispatcher) Attach(e Effects) { d.effects = e }

// System returns the controller of initialize, interrupt, models and the like.
func (d *Dispatcher) System() *SystemController { return d.system }

// Permission returns the controller of can_use_tool and set_permission_mode.
func (d *Dispatcher) Permission() *PermissionController { return d.permission }

// SDKMCP returns the controller of MCP servers, those inside the host included.
func (d *Dispatcher) SDKMCP() *SDKMCPController { return d.mcp }

// Hook returns the controller of hook callbacks.
func (d *Dispatcher) Hook() *HookController { return d.hook }

// Services returns the domains through which the rest of the program meets the
// control plane.
func (d *Dispatcher) Services() *Services { return d.services }

// request is an incoming request until its handler is done.
type request struct {
	d       *Dispatcher
	id      string
	subtype string
	body    []byte
	route   route
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // of a state change: closed when it is over
	settled bool          // done is closed
	again   int           // guarded by d.mu: requests that came with the same id
	then    []streamjson.Message
}

// Receive takes a message off the input and reports whether it was control
// traffic. It never blocks.
func (d *Dispatcher) Receive(m streamjson.Message) bool {
	switch m := m.(type) {
	case *streamjson.ControlRequest:
		d.accept(m)
	case *streamjson.ControlResponse:
		d.calls.resolve(d, m)
	case *streamjson.ControlCancel:
		d.withdraw(m.RequestID)
	case *streamjson.KeepAlive:
	default:
		return false
	}
	return true
}

// Malformed takes a line that could not be read and reports whether it has
// dealt with it: it was a control line, and it was clear which.
func (d *Dispatcher) Malformed(bad *streamjson.LineError) bool {
	switch {
	case bad.Type == "control_request" && bad.RequestID != "":
		d.refuse(bad.RequestID, d.malformedText(bad))
	case bad.Type == "control_response" && bad.RequestID != "":
		d.calls.fail(d, bad.RequestID, fmt.Errorf("%w: %s", ErrMalformed, bad.Msg))
	case bad.Type == "control_cancel_request" && d.cfg.Dialect != streamjson.Native:
		d.log.Debug("ignored a cancel without an id")
	default:
		return false
	}
	return true
}

// accept files a request and starts, runs or queues it.
func (d *Dispatcher) accept(m *streamjson.ControlRequest) {
	route, ok := d.route(m.Subtype)
	if !ok {
		d.refuse(m.RequestID, d.unknownText(m.Subtype))
		return
	}
	r := &request{d: d, id: m.RequestID, subtype: m.Subtype, body: m.Request, route: route}
	r.ctx, r.cancel = context.WithCancel(d.ctx)
	d.mu.Lock()
	if old := d.pending[r.id]; old != nil {
		old.again++
		d.mu.Unlock()
		r.cancel()
		return
	}
	if err := d.admit(r); err != nil {
		d.send(streamjson.Failure(m.RequestID, err.Error()))
		d.mu.Unlock()
		r.cancel()
		return
	}
	d.pending[r.id] = r
	d.work.Add(1)
	switch {
	case route.lane == laneNow:
		d.mu.Unlock()
		r.serve()
		return
	case route.lane == laneState:
		r.done = make(chan struct{})
		d.last = r
		if r.subtype == "initialize" {
			d.opening = r
		}
		d.states = append(d.states, r)
		if !d.stating {
			d.stating = true
			go d.runStates() // ends when no state change waits; Close waits for each request
		}
	default:
		d.start(r)
	}
	d.mu.Unlock()
}

// announce adds a line to be sent right after the success response.
func (r *request) announce(m streamjson.Message) { r.then = append(r.then, m) }

// succeed answers the request unless it has been answered.
func (r *request) succeed(payload any) {
	resp, err := r.d.success(r.id, payload)
	if err != nil {
		r.d.log.Error("a control response can't be encoded", "subtype", r.subtype, "error", err)
		r.answer(streamjson.Failure(r.id, fmt.Sprintf("internal error in %s: the response can't be encoded", r.subtype)))
		return
	}
	r.answer(resp, r.then...)
}

// answer sends the one response of a request, and then the lines that follow
// it. Once there has been one it does nothing.
func (r *request) answer(resp *streamjson.ControlResponse, then ...streamjson.Message) {
	d := r.d
	d.mu.Lock() // held while sending: no later line with the same id gets ahead
	defer d.mu.Unlock()
	if d.pending[r.id] != r {
		return
	}
	delete(d.pending, r.id)
	d.send(resp)
	for range r.again {
		d.send(streamjson.Failure(r.id, duplicateText(r.id)))
	}
	for _, m := range then {
		d.send(m)
	}
}

func duplicateText(id string) string {
	return fmt.Sprintf("request id %q was in use already when this request came: use a fresh one for each", id)
}

// refuse answers a request that is not worth a handler.
func (d *Dispatcher) refuse(id, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.pending[id]; old != nil {
		old.again++
		return
	}
	d.send(streamjson.Failure(id, text))
}

func (d *Dispatcher) send(m streamjson.Message) {
	if err := d.cfg.Out.Send(m); err != nil {
		d.log.Debug("a control line can't be sent", "error", err)
	}
}

// withdraw cancels the request with this id; in qwen's dialect "" means all.
func (d *Dispatcher) withdraw(id string) {
	text := "Request cancelled"
	d.mu.Lock()
	var list []*request
	switch r := d.pending[id]; {
	case r != nil:
		list = []*request{r}
	case id == "" && d.cfg.Dialect == streamjson.Qwen:
		text = "All requests cancelled"
		for _, r := range d.pending {
			list = append(list, r)
		}
	}
	d.mu.Unlock()
	if len(list) == 0 {
		d.log.Debug("nothing to cancel", "request_id", id)
	}
	for _, r := range list {
		r.answer(streamjson.Failure(r.id, text)) // ahead of what the handler would say of it
		r.cancel()
	}
}

// Settled returns a channel that is closed when all state changes received so
// far are done; nil if none is pending.
func (d *Dispatcher) Settled() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return nil
	}
	return d.last.done
}

// opened waits until the initialize request that is being worked on, if there is
// one, is answered.
func (d *Dispatcher) opened(ctx context.Context) error {
	d.mu.Lock()
	r := d.opening
	d.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CloseInput says that no more lines come: calls to the host fail, those that
// wait and all later ones. Requests that were received are still answered.
func (d *Dispatcher) CloseInput() { d.calls.close(inputClosed(d.cfg.Dialect)) }

// closeGrace is how long Close waits for handlers that were told to return.
const closeGrace = time.Second

// Close ends the control plane: it takes no more requests and waits until those
// it has are answered, or until ctx ends; then it answers them by an error and
// tells their handlers to return. The error says that some still have not.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.CloseInput()
	done := make(chan struct{})
	go func() { // ends with the last handler
		d.work.Wait()
		close(done)
	}()
	defer d.end(ErrClosed)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	d.abandon()
	d.end(ErrClosed)
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
		return errors.New("control requests are still being worked on")
	}
}

// abandon answers what is pending by an error.
func (d *Dispatcher) abandon() {
	d.mu.Lock()
	list := make([]*request, 0, len(d.pending))
	for _, r := range d.pending {
		list = append(list, r)
	}
	d.mu.Unlock()
	for _, r := range list {
		r.answer(streamjson.Failure(r.id, ErrClosed.Error()))
	}
}

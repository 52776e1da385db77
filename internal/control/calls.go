package control

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/streamjson"
)

// Subtypes of the requests that we send.
const (
	callCanUseTool = "can_use_tool"
	callHook       = "hook_callback"
	callMCP        = "mcp_message"
)

// Defaults of the deadlines; see Timeouts.
const (
	hookTimeout    = 60 * time.Second
	mcpTimeout     = 60 * time.Second
	qwenMCPTimeout = 30 * time.Second
	qwenAskTimeout = 60 * time.Second
	qwenAskMost    = 600 * time.Second
)

// timeouts are the deadlines of calls by subtype; 0: none.
type timeouts struct{ ask, hook, mcp time.Duration }

func defaultTimeouts(cfg Config) timeouts {
	t := timeouts{ask: cfg.AskTimeout, hook: hookTimeout, mcp: mcpTimeout}
	if cfg.Dialect == streamjson.Qwen {
		t.mcp = qwenMCPTimeout
		if t.ask == 0 {
			t.ask = qwenAskTimeout
		}
	}
	return t
}

// call is one of our requests that waits for its answer.
type call struct {
	id      string
	subtype string
	reply   chan reply // one slot, filled at most once, by whoever takes the call out of the table
}

type reply struct {
	response json.RawMessage
	err      error
}

// calls are our requests to the host.
type calls struct {
	mu       sync.Mutex
	open     map[string]*call
	timeouts timeouts
	closed   error         // why no more calls can be made; nil: they can
	ended    chan struct{} // closed with closed
	asking   chan struct{} // one slot: in qwen's dialect, whose turn it is to ask
}

func (c *calls) init(cfg Config) {
	c.open = map[string]*call{}
	c.timeouts = defaultTimeouts(cfg)
	c.ended = make(chan struct{})
	c.asking = make(chan struct{}, 1)
}

// Call sends a request to the host and waits for its answer, which is returned
// as it came; nil for null. Payload is encoded as the request's object and has
// no subtype of its own. The wait ends with ctx, with the subtype's deadline,
// and when the input is closed: see the Err variables, [HostError] and
// [TooLargeError].
func (d *Dispatcher) Call(ctx context.Context, subtype string, payload any) (json.RawMessage, error) {
	return d.callWithin(ctx, subtype, payload, d.calls.deadline(subtype))
}

// callWithin is Call with a deadline of its own; 0: none.
func (d *Dispatcher) callWithin(ctx context.Context, subtype string, payload any, within time.Duration) (json.RawMessage, error) {
	m, err := d.newRequest(subtype, payload)
	if err != nil {
		return nil, err
	}
	if d.cfg.Dialect == streamjson.Qwen && subtype == callCanUseTool {
		if err := d.calls.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer func() { <-d.calls.asking }()
	}
	c := &call{id: m.RequestID, subtype: subtype, reply: make(chan reply, 1)}
	if err := d.calls.add(ctx, c); err != nil {
		return nil, err
	}
	if err := d.cfg.Out.Send(m); err != nil {
		d.calls.take(c.id)
		return nil, fmt.Errorf("asking the host: %w", err)
	}
	return d.await(ctx, c, within)
}

// newRequest encodes a request under a fresh id.
func (d *Dispatcher) newRequest(subtype string, payload any) (*streamjson.ControlRequest, error) {
	body, err := encodeRequest(subtype, payload)
	if err != nil {
		return nil, fmt.Errorf("encoding the request %s: %w", subtype, err)
	}
	m := &streamjson.ControlRequest{RequestID: streamjson.NewUUID(), Subtype: subtype, Request: body}
	if d.cfg.Dialect == streamjson.Claude && !streamjson.Fits(m, streamjson.MaxFrame) {
		return nil, &TooLargeError{Subtype: subtype, Size: streamjson.Size(m), Limit: streamjson.MaxFrame}
	}
	return m, nil
}

// await waits for the answer to a call that was sent.
func (d *Dispatcher) await(ctx context.Context, c *call, within time.Duration) (json.RawMessage, error) {
	var expired <-chan time.Time
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		expired = timer.C
	}
	var why error
	select {
	case r := <-c.reply:
		return r.response, r.err
	case <-ctx.Done():
		why = aborted(ctx)
	case <-expired:
		why = ErrTimeout
	}
	if d.calls.take(c.id) == nil { // the answer has just come
		r := <-c.reply
		return r.response, r.err
	}
	d.cancelAtHost(c)
	return nil, why
}

// cancelAtHost tells the host that nobody waits for its answer any more.
// qwen-code never does.
func (d *Dispatcher) cancelAtHost(c *call) {
	if d.cfg.Dialect != streamjson.Qwen {
		d.send(&streamjson.ControlCancel{RequestID: c.id})
	}
}

// cancelCalls ends the wait of all calls of a subtype.
func (d *Dispatcher) cancelCalls(subtype string, why error) {
	for _, c := range d.calls.takeAll(func(c *call) bool { return c.subtype == subtype }) {
		d.cancelAtHost(c)
		c.reply <- reply{err: why}
	}
}

func (c *calls) deadline(subtype string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch subtype {
	case callCanUseTool:
		return c.timeouts.ask
	case callHook:
		return c.timeouts.hook
	}
	return c.timeouts.mcp
}

func (c *calls) setTimeouts(t timeouts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeouts = t
}

// takeTurn waits until no other question is open.
func (c *calls) takeTurn(ctx context.Context) error {
	select {
	case c.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return aborted(ctx)
	case <-c.ended:
		return c.whyClosed()
	}
}

func (c *calls) whyClosed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// add enters a call; it fails once the input is closed.
func (c *calls) add(ctx context.Context, one *call) error {
	if ctx.Err() != nil {
		return aborted(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	c.open[one.id] = one
	return nil
}

// take takes a call out; nil if it is not there. Whoever takes it out answers
// it.
func (c *calls) take(id string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.open[id]
	delete(c.open, id)
	return one
}

func (c *calls) takeAll(which func(*call) bool) []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*call
	for id, one := range c.open {
		if which(one) {
			delete(c.open, id)
			list = append(list, one)
		}
	}
	return list
}

// resolve hands an answer to the call that waits for it. Late, double and
// unknown ones are ignored.
func (c *calls) resolve(d *Dispatcher, m *streamjson.ControlResponse) {
	one := c.take(m.RequestID)
	switch {
	case one == nil:
		d.log.Debug("ignored an answer to no open request", "request_id", m.RequestID)
	case m.Subtype == streamjson.ResponseError:
		one.reply <- reply{err: &HostError{Subtype: one.subtype, Text: m.Error}}
	default:
		one.reply <- reply{response: m.Response}
	}
}

// fail ends the wait for an answer that can't be read.
func (c *calls) fail(d *Dispatcher, id string, err error) {
	if one := c.take(id); one != nil {
		one.reply <- reply{err: err}
		return
	}
	d.log.Debug("ignored a malformed answer to no open request", "request_id", id, "error", err)
}

// close fails all calls, those that wait and all later ones.
func (c *calls) close(why error) {
	c.mu.Lock()
	if c.closed == nil {
		c.closed = why
		close(c.ended)
	}
	c.mu.Unlock()
	for _, one := range c.takeAll(func(*call) bool { return true }) {
		one.reply <- reply{err: why}
	}
}

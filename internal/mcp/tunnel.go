package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Tunnel carries JSON-RPC messages to servers inside the host.
type Tunnel interface {
	// Send carries one message to the server and returns the JSON-RPC reply to a
	// request, nil to a notification. It returns when ctx ends.
	Send(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
}

// tunnel is a connection to one server inside the host. Each request travels
// with its reply, so ids need only be unique while in flight; they are given
// out by the manager, for the same server never twice. It implements the SDK's
// Connection.
type tunnel struct {
	via    Tunnel
	server string
	ids    *atomic.Int64 // last id given out for this server
	log    *slog.Logger

	incoming chan jsonrpc.Message
	life     context.Context
	cut      context.CancelFunc

	mu       sync.Mutex // guards the rest
	closed   bool
	flying   map[jsonrpc.ID]*flight                // our requests by the SDK's id
	asked    map[jsonrpc.ID]chan *jsonrpc.Response // requests of the host that wait for our answer
	sendings sync.WaitGroup
}

// flight is a request on its way.
type flight struct {
	id     jsonrpc.ID // as the host knows it
	cancel context.CancelFunc
}

func (m *Manager) dialTunnel(c *Config, ids *atomic.Int64) (*wire, error) {
	if m.o.Tunnel == nil {
		return nil, errors.New("the host has no channel for servers inside of it: type \"sdk\" needs stream-json input")
	}
	t := &tunnel{
		via: m.o.Tunnel, server: c.Name, ids: ids, log: m.log.With("server", c.Name),
		incoming: make(chan jsonrpc.Message, 16),
		flying:   map[jsonrpc.ID]*flight{}, asked: map[jsonrpc.ID]chan *jsonrpc.Response{},
	}
	t.life, t.cut = context.WithCancel(context.Background())
	shut := func() {
		_ = t.Close()
		t.sendings.Wait()
	}
	return &wire{transport: ready{t}, shut: shut, tunnel: t}, nil
}

// Read implements the SDK's Connection.
func (t *tunnel) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.life.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection. It never waits for the host, except to
// keep notifications before the requests that follow them.
func (t *tunnel) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.answer(m)
		return nil
	case *jsonrpc.Request:
		if m.IsCall() {
			return t.request(m)
		}
		return t.notify(ctx, m)
	}
	return fmt.Errorf("a message of kind %T can't be sent", m)
}

// request sends a request and takes its reply when it comes.
func (t *tunnel) request(r *jsonrpc.Request) error {
	id, err := jsonrpc.MakeID(float64(t.ids.Add(1) - 1))
	if err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Request{ID: id, Method: r.Method, Params: r.Params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.life)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		cancel()
		return errClosed
	}
	t.flying[r.ID] = &flight{id: id, cancel: cancel}
	t.sendings.Go(func() {
		defer cancel()
		reply := t.reply(ctx, r.ID, data)
		t.mu.Lock()
		delete(t.flying, r.ID)
		t.mu.Unlock()
		select {
		case t.incoming <- reply:
		case <-t.life.Done():
		}
	})
	return nil
}

// reply sends a request and returns the reply under the SDK's id, an error
// reply if none came that can be read.
func (t *tunnel) reply(ctx context.Context, id jsonrpc.ID, data []byte) *jsonrpc.Response {
	failed := func(why string) *jsonrpc.Response {
		return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why}}
	}
	raw, err := t.via.Send(ctx, t.server, data)
	if err != nil {
		return failed(err.Error())
	}
	var reply struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return failed("the host's reply is no JSON-RPC message")
	}
	switch {
	case reply.Error != nil:
		return &jsonrpc.Response{ID: id, Error: reply.Error}
	case reply.Result == nil:
		return failed("the host's reply has neither a result nor an error")
	}
	return &jsonrpc.Response{ID: id, Result: reply.Result}
}

// notify sends a notification. That a request is cancelled ends the wait for
// its reply here too.
func (t *tunnel) notify(ctx context.Context, n *jsonrpc.Request) error {
	params := n.Params
	if n.Method == methodCancelled {
		var ok bool
		if params, ok = t.cancelled(params); !ok {
			return nil
		}
	}
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Request{Method: n.Method, Params: params})
	if err != nil {
		return err
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	if _, err := t.via.Send(both, t.server, data); err != nil {
		t.log.Debug("a notification did not reach the host", "method", n.Method, "error", err)
		if n.Method == methodInitialized {
			return err
		}
	}
	return nil
}

const (
	methodCancelled   = "notifications/cancelled"
	methodInitialized = "notifications/initialized"
)

// cancelled ends the wait for a reply, and returns the parameters of the
// notification with the id that the host knows; false if nothing is waited for.
func (t *tunnel) cancelled(params json.RawMessage) (json.RawMessage, bool) {
	var p map[string]any
	if json.Unmarshal(params, &p) != nil {
		return nil, false
	}
	id, err := jsonrpc.MakeID(p["requestId"])
	if err != nil {
		return nil, false
	}
	t.mu.Lock()
	f := t.flying[id]
	t.mu.Unlock()
	if f == nil {
		return nil, false
	}
	f.cancel()
	p["requestId"] = f.id.Raw()
	out, err := json.Marshal(p)
	return out, err == nil
}

// answer hands our answer to a request of the host to whoever waits for it.
func (t *tunnel) answer(r *jsonrpc.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.asked[r.ID]; c != nil {
		delete(t.asked, r.ID)
		c <- r // has room for one
	}
}

// fromHost lets a message of the host in, and returns our answer to a request.
func (t *tunnel) fromHost(ctx context.Context, m jsonrpc.Message) (json.RawMessage, error) {
	var answer chan *jsonrpc.Response
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		answer = make(chan *jsonrpc.Response, 1)
		t.mu.Lock()
		if t.asked[r.ID] != nil {
			t.mu.Unlock()
			return nil, fmt.Errorf("a request with the id %v is being answered", r.ID.Raw())
		}
		t.asked[r.ID] = answer
		t.mu.Unlock()
		defer func() {
			t.mu.Lock()
			delete(t.asked, r.ID)
			t.mu.Unlock()
		}()
	}
	select {
	case t.incoming <- m:
	case <-t.life.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if answer == nil {
		return nil, nil
	}
	select {
	case r := <-answer:
		return jsonrpc.EncodeMessage(r)
	case <-t.life.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close implements the SDK's Connection.
func (t *tunnel) Close() error {
	t.mu.Lock()
	t.closed = true
	flights := slices.Collect(maps.Values(t.flying))
	t.mu.Unlock()
	for _, f := range flights {
		f.cancel()
	}
	t.cut()
	return nil
}

// SessionID implements the SDK's Connection.
func (t *tunnel) SessionID() string { return "" }

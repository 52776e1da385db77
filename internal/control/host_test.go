package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// host is the other side: it keeps what is sent and can answer requests.
type host struct {
	t *testing.T
	d *Dispatcher

	mu     sync.Mutex
	more   *sync.Cond
	lines  []string // encoded
	msgs   []streamjson.Message
	answer func(h *host, m *streamjson.ControlRequest) // of requests; nil: none is answered
}

// Send implements Output.
func (h *host) Send(m streamjson.Message) error {
	line, err := streamjson.Append(nil, m)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.lines = append(h.lines, string(line))
	h.msgs = append(h.msgs, m)
	answer := h.answer
	h.more.Broadcast()
	h.mu.Unlock()
	if req, ok := m.(*streamjson.ControlRequest); ok && answer != nil {
		answer(h, req)
	}
	return nil
}

// wait waits for the first line from index on that f likes.
func (h *host) wait(from int, f func(streamjson.Message) bool) (int, streamjson.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := from; ; i++ {
		for i >= len(h.msgs) {
			h.more.Wait()
		}
		if f(h.msgs[i]) {
			return i, h.msgs[i]
		}
	}
}

func (h *host) waitRequest(subtype string) *streamjson.ControlRequest {
	_, m := h.wait(0, func(m streamjson.Message) bool {
		r, ok := m.(*streamjson.ControlRequest)
		return ok && r.Subtype == subtype
	})
	return m.(*streamjson.ControlRequest)
}

func (h *host) waitResponse(id string) string {
	i, _ := h.wait(0, func(m streamjson.Message) bool {
		r, ok := m.(*streamjson.ControlResponse)
		return ok && r.RequestID == id
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[i]
}

func (h *host) sent() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

func (h *host) reply(id, response string) {
	h.d.Receive(&streamjson.ControlResponse{Subtype: streamjson.ResponseSuccess, RequestID: id, Response: json.RawMessage(response)})
}

// replies answers each request with the same response.
func replies(response string) func(*host, *streamjson.ControlRequest) {
	return func(h *host, m *streamjson.ControlRequest) { h.reply(m.RequestID, response) }
}

var requests int

// ask sends a request and returns the whole inner response.
func (h *host) ask(body string) string {
	h.t.Helper()
	requests++
	id := fmt.Sprintf("r%d", requests)
	h.line(fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":%s}`, id, body))
	line := h.waitResponse(id)
	var resp struct {
		Response struct {
			Subtype  string          `json:"subtype"`
			Response json.RawMessage `json:"response"`
			Error    string          `json:"error"`
		} `json:"response"`
	}
	if err := json.Unmarshal([]byte(line), &resp); err != nil {
		h.t.Fatal(err)
	}
	if resp.Response.Subtype == "error" {
		return "error: " + resp.Response.Error
	}
	return string(resp.Response.Response)
}

// line feeds a line, as the reader would.
func (h *host) line(text string) {
	h.t.Helper()
	m, err := streamjson.Decode([]byte(text))
	var bad *streamjson.LineError
	switch {
	case err == nil:
		if !h.d.Receive(m) {
			h.t.Errorf("not taken: %s", text)
		}
	case errors.As(err, &bad):
		if !h.d.Malformed(bad) {
			h.t.Errorf("not taken: %s: %v", text, bad)
		}
	}
}

func newHost(t *testing.T, d streamjson.Dialect) (*host, *world) {
	t.Helper()
	h := &host{t: t}
	h.more = sync.NewCond(&h.mu)
	h.d = New(Config{Dialect: d, Out: h})
	w := &world{model: "m1", mode: policy.ModeDefault, decision: policy.Decision{Behavior: policy.Allow, Reason: "free"}}
	h.d.Attach(Effects{
		Session: w, Conversation: w, Thinking: w, Continuation: w, Judge: w, Hooks: w, Servers: w, ServerAdmin: w,
		Commands: w, Hints: w, Models: w, Usage: w, Tasks: w, Settings: w, Checkpoints: w, Health: w,
	})
	t.Cleanup(func() {
		if err := h.d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h, w
}

// world implements all effects.
type world struct {
	mu       sync.Mutex
	model    string
	mode     policy.Mode
	hooks    []HookRegistration
	init     *Initialize
	decision policy.Decision
	log      []string
	fail     error
	failAt   string        // fails what begins with it; "": fail counts for all
	block    chan struct{} // when not nil, SetModel waits for it or ctx
	connect  chan struct{} // when not nil, servers are connected once it is closed
	opening  func()        // when not nil, called by Initialize
}

func (w *world) note(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
	if w.failAt != "" && strings.HasPrefix(format, w.failAt) {
		return errors.New("it failed")
	}
	return w.fail
}

func (w *world) notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

func (w *world) Initialize(_ context.Context, in *Initialize) error {
	w.mu.Lock()
	w.init = in
	w.mu.Unlock()
	if w.opening != nil {
		w.opening()
	}
	return w.note("initialize")
}

func (w *world) Describe() Description {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Description{
		SessionID: "S", Version: "2.1.240", Model: w.model, Mode: w.mode, Tools: []string{"read_file"},
		Agents: []AgentInfo{{Name: "a", Description: "does a"}}, Account: Account{APIKeySource: "none"},
	}
}

func (w *world) Interrupt(cancelQueued bool, receipt func(Interrupted)) {
	receipt(Interrupted{StillQueued: []string{"u1"}, Cancelled: []string{"u2"}})
	_ = w.note("interrupt %v", cancelQueued)
}

func (w *world) SetModel(ctx context.Context, name string) (string, error) {
	if w.block != nil {
		select {
		case <-w.block:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if name == "panic" {
		panic("boom")
	}
	if err := w.note("model %q", name); err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "" {
		name = "the-default"
	}
	w.model = name
	return name, nil
}

func (w *world) SetMode(m policy.Mode) error {
	if err := w.note("mode %s", m); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = m
	return nil
}

func (w *world) SetThinking(tokens *int, display string) error {
	if tokens == nil {
		return w.note("thinking default %s", display)
	}
	return w.note("thinking %d %s", *tokens, display)
}

func (w *world) SetEffort(effort string) (bool, error) { return true, w.note("effort %s", effort) }

func (w *world) ContinueLast(receipt func(bool, string)) error {
	if w.fail != nil {
		return w.fail
	}
	receipt(true, "interrupted_turn")
	return w.note("continued")
}

func (w *world) Judge(_ context.Context, c ToolCall) policy.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.decision
}

func (w *world) Suggest(c ToolCall) []policy.Suggestion {
	return policy.Suggest(policy.Facts{Tool: c.Tool, Class: policy.ClassExec, Input: c.Input}, nil)
}

func (w *world) RegisterHooks(list []HookRegistration) error {
	err := w.note("hooks %d", len(list))
	if err == nil {
		w.mu.Lock()
		w.hooks = list
		w.mu.Unlock()
	}
	return err
}

func (w *world) ServerStatus() []ServerStatus {
	return []ServerStatus{
		{Name: "z", State: StateConnecting, Type: "stdio"},
		{Name: "calc", State: StateConnected, Type: "sdk", Source: "sdk", Tools: []ServerTool{{Name: "add", Annotations: &ToolHints{ReadOnly: new(true)}}}},
	}
}

func (w *world) Message(_ context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	if server != "calc" {
		return nil, fmt.Errorf("there is no MCP server %q", server)
	}
	if strings.Contains(string(message), `"id"`) {
		return json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`), nil
	}
	return nil, nil
}

func (w *world) Reconnect(name string) (wait func(context.Context) error, err error) {
	return w.connected, w.note("reconnect %s", name)
}

func (w *world) Toggle(name string, on bool) (wait func(context.Context) error, err error) {
	return w.connected, w.note("toggle %s %v", name, on)
}

// connected waits for w.connect, if it is there.
func (w *world) connected(ctx context.Context) error {
	if w.connect == nil {
		return nil
	}
	select {
	case <-w.connect:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *world) SetServers(_ context.Context, servers map[string]json.RawMessage) (added, removed []string, errs map[string]string) {
	_ = w.note("servers %d", len(servers))
	return []string{"x"}, nil, nil
}

func (w *world) Commands() []Command {
	return []Command{{Name: "model", Description: "sets it", ArgumentHint: "[name]", Builtin: true, Headless: true}, {Name: "clear", Aliases: []string{"new"}}}
}

func (w *world) Hints(_ context.Context, prefix string, limit int) []CommandHint {
	return []CommandHint{{Kind: "command", Value: prefix + "x"}, {Kind: "command", Value: prefix + "y"}}
}

func (w *world) Models() []ModelInfo {
	return []ModelInfo{{ID: "m1", Window: 100, Efforts: []string{"low"}}}
}

func (w *world) ContextUsage(context.Context) (ContextUsage, error) {
	return ContextUsage{Model: w.model, Window: 1000, SystemPrompt: 100, Tools: []UsageItem{{Name: "read_file", Tokens: 50}}, Messages: 50, AutoCompact: 100}, w.fail
}

func (w *world) UsageInfo(_ context.Context, within string) (UsageInfo, error) {
	return UsageInfo{Input: 100, Output: 10, Cached: 50, Requests: 2}, w.fail
}

func (w *world) StopTask(_ context.Context, id string, receipt func()) error {
	if id != "t1" {
		return fmt.Errorf("there is no task %q", id)
	}
	receipt()
	return w.note("stopped")
}

func (w *world) ApplyFlagSettings(_ context.Context, settings json.RawMessage) error {
	return w.note("settings %s", settings)
}

func (w *world) Rewind(context.Context, string, bool) (json.RawMessage, error) {
	return json.RawMessage(`{"canRewind":true}`), w.fail
}

func (w *world) Health() Pulse {
	return Pulse{Uptime: time.Second, Turn: "idle", LastEvent: -1, RSS: 5}
}

package mcp

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

	"github.com/agentcli/agent/internal/tools"
)

// host is the other end of a tunnel: servers inside a host, by hand.
type host struct {
	mu    sync.Mutex
	log   []string        // server and message, in the order of arrival
	busy  map[string]bool // server and id of requests in flight
	twice []string        // ids that were used while in flight
	done  map[string]int  // ids seen, by server
	tools []string        // nil: the server has no tools

	stuck   chan struct{} // closed when a call of "hang" has come
	aborted chan struct{} // closed when its wait was given up
}

func newHost(tools ...string) *host {
	return &host{
		busy: map[string]bool{}, done: map[string]int{}, tools: tools,
		stuck: make(chan struct{}), aborted: make(chan struct{}),
	}
}

// Send implements Tunnel, as the published SDKs answer.
func (h *host) Send(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			RequestID json.RawMessage
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	key := server + ":" + string(m.ID)
	h.mu.Lock()
	h.log = append(h.log, fmt.Sprintf("%s %s %s", m.Method, m.ID, m.Params.RequestID))
	if m.ID != nil {
		if h.busy[key] || h.done[key] > 0 {
			h.twice = append(h.twice, key)
		}
		h.busy[key] = true
		h.done[key]++
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.busy, key)
		h.mu.Unlock()
	}()
	reply := func(body string) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body)), nil
	}
	switch m.Method {
	case "initialize":
		return reply(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"in","version":"1"}}`)
	case "tools/list":
		if h.tools == nil {
			return reply(`"error":{"code":-32601,"message":"Method not found"}`)
		}
		var list []string
		for _, name := range h.tools {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		return reply(`"result":{"tools":[` + strings.Join(list, ",") + `]}`)
	case "tools/call":
		switch m.Params.Name {
		case "hang":
			close(h.stuck)
			<-ctx.Done()
			close(h.aborted)
			return nil, ctx.Err()
		case "throw":
			return reply(`"result":{"content":[{"type":"text","text":"thrown"}],"isError":true}`)
		case "closed":
			return nil, errors.New("input closed")
		case "odd":
			return reply(`"result":{"content":[{"type":"hologram"}]}`)
		case "shape":
			return reply(`"result":{"content":[],"structuredContent":{"n":1}}`)
		}
		return reply(`"result":{"content":[{"type":"text","text":"42"}]}`)
	}
	return nil, nil // a notification; some hosts answer with id 0, which control drops
}

func (h *host) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

func TestServerInsideTheHost(t *testing.T) {
	t.Parallel()
	h := newHost("ok", "throw", "closed", "odd", "shape")
	r := newRig(t, Options{Tunnel: h, TrustTunnelled: true})
	r.Add("sdk", SDKConfig("calc"))
	r.wait()
	if got, want := h.seen(), []string{"initialize 0 ", "notifications/initialized  ", "tools/list 1 "}; !slices.Equal(got, want) {
		t.Errorf("handshake %q, want %q", got, want)
	}
	for name, want := range map[string]struct {
		text  string
		isErr bool
	}{
		"ok": {"42", false}, "throw": {"thrown", true}, "closed": {"input closed", true}, "odd": {"hologram", true}, "shape": {`{"n":1}`, false},
	} {
		if got, isErr := r.call(context.Background(), "mcp__calc__"+name, `{}`); isErr != want.isErr || !strings.Contains(got, want.text) {
			t.Errorf("%s: %q %v", name, got, isErr)
		}
	}
	if s := r.Status(); !s[0].Trusted {
		t.Errorf("the host's own server is not trusted: %+v", s)
	}
	if err := complete(context.Background())(r.Reconnect("calc")); err != nil {
		t.Error(err)
	}
	if h.twice != nil {
		t.Errorf("ids used twice: %v", h.twice)
	}
}

func TestTunnelWithoutTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Tunnel: newHost()})
	r.Add("sdk", SDKConfig("calc"))
	r.wait()
	if st := r.status("calc"); st.State != Connected || len(st.Tools) != 0 {
		t.Errorf("%+v", st)
	}
	none := newRig(t, Options{})
	none.Add("sdk", SDKConfig("calc"))
	none.wait()
	if st := none.status("calc"); st.State != Failed || !strings.Contains(st.Error, "no channel") {
		t.Errorf("%+v", st)
	}
}

func TestCancelledCallInsideTheHost(t *testing.T) {
	t.Parallel()
	h := newHost("hang")
	r := newRig(t, Options{Tunnel: h})
	r.Add("sdk", SDKConfig("s"))
	r.wait()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-h.stuck
		cancel()
	}()
	if got, isErr := r.call(ctx, "mcp__s__hang", `{}`); !isErr || !strings.Contains(got, "cancelled") {
		t.Errorf("%q", got)
	}
	select {
	case <-h.aborted:
	case <-time.After(5 * time.Second):
		t.Fatal("the wait for the host's reply goes on")
	}
}

func TestCloseDuringACallInsideTheHost(t *testing.T) {
	t.Parallel()
	h := newHost("hang")
	r := newRig(t, Options{Tunnel: h})
	r.Add("sdk", SDKConfig("s"))
	r.wait()
	done := make(chan string)
	go func() {
		tool := r.tools["mcp__s__hang"]
		got, _ := text(tool.Run(context.Background(), &tools.Call{}))
		done <- got
	}()
	<-h.stuck
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !strings.Contains(got, "connection ended") {
		t.Errorf("%q", got)
	}
}

func TestMessagesFromAServerInsideTheHost(t *testing.T) {
	t.Parallel()
	h := newHost("ok")
	r := newRig(t, Options{Tunnel: h, Dir: "/w"})
	r.Add("sdk", SDKConfig("s"))
	r.wait()
	ctx := context.Background()
	got, err := r.FromHost(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`))
	if err != nil || !strings.Contains(string(got), `file:///w`) || !strings.Contains(string(got), `"id":7`) {
		t.Errorf("%s %v", got, err)
	}
	got, err = r.FromHost(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`))
	if err != nil || !strings.Contains(string(got), `"error"`) {
		t.Errorf("sampling: %s %v", got, err)
	}
	got, err = r.FromHost(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","id":"y","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`))
	if err != nil || !strings.Contains(string(got), `"error"`) {
		t.Errorf("elicitation: %s %v", got, err)
	}
	h.mu.Lock()
	h.tools = []string{"ok", "new"}
	h.mu.Unlock()
	if got, err := r.FromHost(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)); got != nil || err != nil {
		t.Errorf("%s %v", got, err)
	}
	r.until("the new tool is there", func() bool { return r.has("mcp__s__new") })
}

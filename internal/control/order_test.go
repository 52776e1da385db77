package control

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// indexOf is where the first line is that has part in it.
func indexOf(t *testing.T, lines []string, part string) int {
	t.Helper()
	for i, line := range lines {
		if strings.Contains(line, part) {
			return i
		}
	}
	t.Fatalf("no line has %s in %s", part, strings.Join(lines, "\n"))
	return -1
}

func TestStatusLinesFollowResponses(t *testing.T) {
	for d, want := range map[streamjson.Dialect][2]bool{native: {true, true}, claude: {false, true}, qwen: {false, false}} {
		h, _ := newHost(t, d)
		h.ask(`{"subtype":"set_model","model":"m2"}`)
		h.ask(`{"subtype":"set_permission_mode","mode":"plan"}`)
		<-settled(h.d)
		if err := h.d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(h.sent(), "\n")
		if strings.Contains(text, `"subtype":"status","status":null,"model":"m2"`) != want[0] || strings.Contains(text, `"permissionMode":"plan"`) != want[1] {
			t.Errorf("%s:\n%s", d, text)
		}
		if want[0] && indexOf(t, h.sent(), `"model":"m2","session_id"`) != 1 {
			t.Errorf("%s: the status is not behind the response:\n%s", d, text)
		}
	}
}

// settled is Settled that is never nil.
func settled(d *Dispatcher) <-chan struct{} {
	if c := d.Settled(); c != nil {
		return c
	}
	c := make(chan struct{})
	close(c)
	return c
}

func TestCancelOfARequest(t *testing.T) {
	for _, d := range dialects {
		h, w := newHost(t, d)
		w.block = make(chan struct{})
		h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":"one"}}`)
		h.line(`{"type":"control_request","request_id":"b","request":{"subtype":"set_model","model":"two"}}`)
		h.line(`{"type":"control_request","request_id":"c","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
		done := h.d.Settled()
		h.line(`{"type":"control_cancel_request","request_id":"nobody"}`)
		h.line(`{"type":"control_cancel_request","request_id":"b"}`)
		h.line(`{"type":"control_cancel_request","request_id":"a"}`)
		for _, id := range []string{"a", "b"} {
			if got := h.waitResponse(id); !strings.Contains(got, `"error":"Request cancelled"`) {
				t.Errorf("%s: %s", d, got)
			}
		}
		if got := h.waitResponse("c"); !strings.Contains(got, `"mode"`) {
			t.Errorf("%s: %s", d, got)
		}
		<-done
		if h.d.Settled() != nil {
			t.Error("something is pending")
		}
		if got := w.notes(); len(got) != 1 || got[0] != "mode plan" {
			t.Errorf("%s: %v", d, got)
		}
	}
}

func TestCancelOfAllRequestsInQwen(t *testing.T) {
	h, w := newHost(t, qwen)
	w.block = make(chan struct{})
	for i := range 3 {
		h.line(fmt.Sprintf(`{"type":"control_request","request_id":"%d","request":{"subtype":"set_model","model":"one"}}`, i))
	}
	h.line(`{"type":"control_cancel_request"}`)
	h.line(`{"type":"control_cancel_request","request_id":null}`)
	for i := range 3 {
		if got := h.waitResponse(fmt.Sprint(i)); !strings.Contains(got, `"error":"All requests cancelled"`) {
			t.Error(got)
		}
	}
}

func TestInterruptPassesWhatIsQueued(t *testing.T) {
	h, w := newHost(t, native)
	w.block = make(chan struct{})
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":"one"}}`)
	h.line(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`)
	if len(h.sent()) != 1 { // the reader has answered it itself
		t.Errorf("sent %v", h.sent())
	}
	close(w.block)
	h.waitResponse("a")
}

func TestAnIDThatIsInUse(t *testing.T) {
	h, w := newHost(t, native)
	w.block = make(chan struct{})
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":"one"}}`)
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"supported_commands"}}`)
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"nonsense"}}`)
	h.line(`{"type":"control_request","request_id":"a","request":{}}`)
	close(w.block)
	if err := h.d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := h.sent()
	if len(got) != 5 || !strings.Contains(got[0], `"model":"one"`) { // and the status line
		t.Fatalf("%s", strings.Join(got, "\n"))
	}
	for _, line := range got[1:4] {
		if !strings.Contains(line, `\"a\" was in use already`) {
			t.Error(line)
		}
	}
}

func TestRequestsAfterTheEndOfTheInput(t *testing.T) {
	h, w := newHost(t, native)
	w.block = make(chan struct{})
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":"one"}}`)
	h.d.CloseInput()
	close(w.block)
	if got := h.waitResponse("a"); !strings.Contains(got, "success") {
		t.Error(got)
	}
	_ = h.d.Close(context.Background())
	if got := h.ask(`{"subtype":"supported_commands"}`); got != "error: the session has ended" {
		t.Error(got)
	}
}

func TestCloseEndsWhatIsRunning(t *testing.T) {
	h, w := newHost(t, native)
	w.block = make(chan struct{})
	h.line(`{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":"one"}}`)
	h.line(`{"type":"control_request","request_id":"b","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.d.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := len(h.sent()); got != 2 {
		t.Errorf("%s", strings.Join(h.sent(), "\n"))
	}
}

// TestManyCallbacksAtOnce: requests that wait for the host don't hold each other
// up beyond the limit, and all are answered.
func TestManyCallbacksAtOnce(t *testing.T) {
	h, _ := newHost(t, native)
	h.ask(`{"subtype":"initialize","hooks":[{"event":"Stop","callback_id":"h1"}]}`)
	const n = 3 * maxRunning
	for i := range n {
		h.line(fmt.Sprintf(`{"type":"control_request","request_id":"x%d","request":{"subtype":"hook_callback","callback_id":"h1"}}`, i))
	}
	answered, from := 0, 0
	for range n {
		at, m := h.wait(from, func(m streamjson.Message) bool { _, ok := m.(*streamjson.ControlRequest); return ok })
		from = at + 1
		h.reply(m.(*streamjson.ControlRequest).RequestID, `{}`)
		answered++
	}
	for i := range n {
		h.waitResponse(fmt.Sprintf("x%d", i))
	}
}

// seen is a conversation that notes what state a user line found.
type seen struct {
	*world
	applied atomic.Int64
}

func (s *seen) SetMode(policy.Mode) error { s.applied.Add(1); return nil }

func (s *seen) SetModel(ctx context.Context, name string) (string, error) {
	s.applied.Add(1)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return name, nil
}

func (s *seen) Interrupt(_ bool, receipt func(Interrupted)) { receipt(Interrupted{}) }

// TestTenThousandRequests: with random cancels, interrupts, user lines and calls
// of ours, each request has one response, state changes are answered in order of
// arrival, and every user line finds the state changes before it done.
func TestTenThousandRequests(t *testing.T) {
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) { tenThousand(t, d) })
	}
}

func tenThousand(t *testing.T, d streamjson.Dialect) {
	h, w := newHost(t, d)
	s := &seen{world: w}
	h.d.effects.Conversation = s
	h.answer = func(h *host, m *streamjson.ControlRequest) {
		if rand.IntN(4) > 0 { // the others end with the input, or by a cancel
			go h.reply(m.RequestID, `{"behavior":"allow"}`)
		}
	}
	h.ask(`{"subtype":"initialize","hooks":[{"event":"Stop","callback_id":"h1"}]}`)
	bodies := []string{
		`{"subtype":"set_model","model":"x"}`, `{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"interrupt"}`,
		`{"subtype":"supported_commands"}`, `{"subtype":"mcp_server_status"}`, `{"subtype":"can_use_tool","tool_name":"x"}`,
		`{"subtype":"hook_callback","callback_id":"h1"}`, `{"subtype":"hook_callback","callback_id":"no"}`, `{"subtype":"nonsense"}`, `{}`,
		`{"subtype":"set_model","model":3}`, `{"subtype":"heartbeat"}`, `{"subtype":"set_permission_mode","mode":"x"}`,
	}
	const n = 10_000
	var users, asks sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	states := []string{}
	cancelled := map[string]bool{}
	minimum := int64(0) // state changes that surely happen, before now
	for i := range n {
		id := fmt.Sprintf("q%d", i)
		kind := rand.IntN(len(bodies))
		h.line(`{"type":"control_request","request_id":"` + id + `","request":` + bodies[kind] + `}`)
		if kind < 2 {
			states = append(states, id)
		}
		switch rand.IntN(20) {
		case 0:
			h.line(`{"type":"control_cancel_request","request_id":"` + id + `"}`)
			cancelled[id] = true
		case 1:
			asks.Go(func() { _, _ = h.d.Permission().Ask(ctx, question()) })
		}
		if kind < 2 && !cancelled[id] {
			minimum++
		}
		if rand.IntN(10) == 0 {
			ready, want := h.d.Settled(), minimum
			users.Go(func() {
				if ready != nil {
					<-ready
				}
				if got := s.applied.Load(); got < want {
					t.Errorf("a user line found %d state changes, want %d at least", got, want)
				}
			})
		}
	}
	h.d.CloseInput()
	users.Wait()
	if err := h.d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	cancel()
	asks.Wait()
	checkResponses(t, h, n, states, cancelled)
}

// checkResponses checks that each request has one response, and those that
// change the state in their order.
func checkResponses(t *testing.T, h *host, n int, states []string, cancelled map[string]bool) {
	t.Helper()
	count, next := map[string]int{}, 0
	for _, m := range h.msgs {
		r, ok := m.(*streamjson.ControlResponse)
		if !ok {
			continue
		}
		count[r.RequestID]++
		if cancelled[r.RequestID] {
			continue
		}
		for next < len(states) && cancelled[states[next]] {
			next++
		}
		if next < len(states) && states[next] == r.RequestID {
			next++
		}
	}
	for next < len(states) && cancelled[states[next]] {
		next++
	}
	if next != len(states) {
		t.Errorf("state changes were answered out of order: %s is late", states[next])
	}
	for i := range n {
		if id := fmt.Sprintf("q%d", i); count[id] != 1 {
			t.Errorf("%s has %d responses", id, count[id])
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, subtype := range []string{"supported_commands", "set_permission_mode", "mcp_server_status"} {
		b.Run(subtype, func(b *testing.B) {
			got := make(chan struct{}, 1)
			d := New(Config{Dialect: native, Out: outputFunc(func(m streamjson.Message) error {
				if _, ok := m.(*streamjson.ControlResponse); ok {
					got <- struct{}{}
				}
				return nil
			})})
			defer func() { _ = d.Close(context.Background()) }()
			w := &world{}
			d.Attach(Effects{Commands: w, Conversation: &seen{world: w}, Servers: w})
			m := &streamjson.ControlRequest{RequestID: "r", Subtype: subtype, Request: []byte(`{"subtype":"` + subtype + `","mode":"plan"}`)}
			b.ReportAllocs()
			for b.Loop() {
				d.Receive(m)
				<-got
			}
		})
	}
}

type outputFunc func(streamjson.Message) error

func (f outputFunc) Send(m streamjson.Message) error { return f(m) }

// TestAConsumerThatDoesNotRead: while nothing leaves the process requests are
// taken, run and answered, and an interrupt acts at once.
func TestAConsumerThatDoesNotRead(t *testing.T) {
	r, w := io.Pipe()
	out := streamjson.NewWriter(w, streamjson.WriterOptions{})
	d := New(Config{Dialect: native, Out: out})
	world := &world{mode: policy.ModeDefault}
	d.Attach(Effects{Conversation: world, Commands: world})
	const n = 2000
	for i := range n {
		for _, subtype := range []string{"set_permission_mode", "supported_commands"} {
			d.Receive(&streamjson.ControlRequest{RequestID: fmt.Sprint(subtype, i), Subtype: subtype, Request: []byte(`{"mode":"plan"}`)})
		}
	}
	d.Receive(&streamjson.ControlRequest{RequestID: "i", Subtype: "interrupt", Request: []byte(`{}`)})
	if !slices.Contains(world.notes(), "interrupt false") {
		t.Error("the interrupt waits")
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	responses := make(chan int)
	go func() {
		lines := streamjson.NewReader(r, 0)
		count := map[string]int{}
		for {
			m, err := lines.Next()
			if err != nil {
				break
			}
			if resp, ok := m.(*streamjson.ControlResponse); ok {
				count[resp.RequestID]++
			}
		}
		responses <- len(count)
	}()
	if err := out.Close(context.Background()); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	if got := <-responses; got != 2*n+1 {
		t.Errorf("%d requests were answered", got)
	}
}

func TestAStateChangeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newHost(t, native)
		w.block = make(chan struct{})
		begin := time.Now()
		if got := h.ask(`{"subtype":"set_model","model":"one"}`); got != "error: set_model was given up: it was not done within 30s" || time.Since(begin) != stateLimit {
			t.Errorf("%s after %s", got, time.Since(begin))
		}
		if got := h.ask(`{"subtype":"set_permission_mode","mode":"plan"}`); !strings.Contains(got, "updated") {
			t.Error(got)
		}
	})
}

// TestServersConnectBesideTheLane: turning a server on takes place in order, and
// what comes after doesn't wait until it is connected.
func TestServersConnectBesideTheLane(t *testing.T) {
	for _, body := range []string{`{"subtype":"mcp_toggle","serverName":"z","enabled":true}`, `{"subtype":"mcp_reconnect","serverName":"z"}`} {
		h, w := newHost(t, native)
		w.connect = make(chan struct{})
		h.line(`{"type":"control_request","request_id":"server","request":` + body + `}`)
		h.line(`{"type":"control_request","request_id":"gone","request":` + body + `}`)
		if got := h.ask(`{"subtype":"set_permission_mode","mode":"plan"}`); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		if done := h.d.Settled(); done != nil {
			<-done
		}
		h.line(`{"type":"control_cancel_request","request_id":"gone"}`)
		if got := h.waitResponse("gone"); !strings.Contains(got, "cancelled") {
			t.Error(got)
		}
		if got := strings.Join(h.sent(), "\n"); strings.Contains(got, `"request_id":"server"`) {
			t.Errorf("answered before it was connected: %s", got)
		}
		close(w.connect)
		if got := h.waitResponse("server"); !strings.Contains(got, "success") {
			t.Error(got)
		}
		if err := h.d.Close(t.Context()); err != nil || h.d.held != 0 {
			t.Errorf("%v, %d bytes are held", err, h.d.held)
		}
	}
}

// TestTooMuchWaits: beyond a bound requests are refused, but for those that the
// reader serves at once; when others are done there is room again.
func TestTooMuchWaits(t *testing.T) {
	h, w := newHost(t, native)
	w.block = make(chan struct{})
	h.line(`{"type":"control_request","request_id":"first","request":{"subtype":"set_model","model":"one"}}`)
	h.d.mu.Lock()
	h.d.held += maxHeld - requestCost - 100 // of others
	h.d.mu.Unlock()
	for _, body := range []string{`{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"supported_commands"}`, `{"subtype":"mcp_server_status"}`} {
		if got := h.ask(body); !strings.Contains(got, "256 MiB") {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := h.ask(`{"subtype":"interrupt"}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	h.d.mu.Lock()
	h.d.held -= maxHeld - requestCost - 100
	h.d.mu.Unlock()
	close(w.block)
	if got := h.ask(`{"subtype":"set_permission_mode","mode":"plan"}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if err := h.d.Close(t.Context()); err != nil || h.d.held != 0 {
		t.Errorf("%v, %d bytes are held", err, h.d.held)
	}
}

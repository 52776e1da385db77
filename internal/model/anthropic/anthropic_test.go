package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a fake API and a provider that speaks to it.
type served struct {
	model.Provider
	bodies  chan []byte
	headers chan http.Header
}

// serve starts a fake API whose answers handler writes.
func serve(t testing.TB, handler http.HandlerFunc) *served {
	t.Helper()
	s := &served{bodies: make(chan []byte, 100), headers: make(chan http.Header, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.bodies <- body
		s.headers <- r.Header
		handler(w, r)
	}))
	t.Cleanup(srv.Close)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	var err error
	s.Provider, err = New(Options{APIKey: "sk-test-key", BaseURL: srv.URL, HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// events answers with a stream of the given events.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("request-id", "req_1")
		for _, d := range data {
			var e struct {
				Type string `json:"type"`
			}
			_ = json.Unmarshal([]byte(d), &e)
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Type, d)
		}
	}
}

const (
	evStart     = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":100,"output_tokens":1}}}`
	evText      = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	evHello     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	evStop0     = `{"type":"content_block_stop","index":0}`
	evEndTurn   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	evToolStop  = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}`
	evStop      = `{"type":"message_stop"}`
	evPing      = `{"type": "ping"}`
	helloStream = "event: message_start\ndata: " + evStart + "\n\nevent: content_block_start\ndata: " + evText +
		"\n\nevent: content_block_delta\ndata: " + evHello + "\n\nevent: content_block_stop\ndata: " + evStop0 +
		"\n\nevent: message_delta\ndata: " + evEndTurn + "\n\nevent: message_stop\ndata: " + evStop + "\n\n"
)

func hello() *model.Request { return ask("hi") }

func ask(text string) *model.Request {
	return &model.Request{Model: "claude-sonnet-4-5", Messages: []*model.Message{{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: text}}}}}
}

// answer is what an answer came to.
type answer struct {
	blocks []model.Block
	usage  model.Usage
	stop   model.StopReason
	pings  int
	deltas []model.Delta
}

// run streams one answer and checks the rules of deltas.
func run(t testing.TB, p model.Provider, req *model.Request) (answer, error) {
	t.Helper()
	var a answer
	var asm model.Assembler
	err := p.Stream(context.Background(), req, func(d model.Delta) {
		if len(a.deltas) > 0 && a.deltas[len(a.deltas)-1].Kind == model.DeltaFinish {
			t.Errorf("delta after the finish: %+v", d)
		}
		if d.Kind == model.DeltaPing {
			a.pings++
		}
		a.deltas = append(a.deltas, d)
		asm.Add(d)
	})
	a.blocks, a.usage, a.stop = asm.Blocks(), asm.Usage(), asm.Stop()
	if finished := len(a.deltas) > 0 && a.deltas[len(a.deltas)-1].Kind == model.DeltaFinish; (err == nil) != finished {
		t.Errorf("finish emitted: %v, but error: %v", finished, err)
	}
	return a, err
}

func wantKind(t testing.TB, err error, kind model.ErrorKind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Provider != "anthropic" {
		t.Fatalf("got error %#v (%v), want kind %s", err, err, kind)
	}
	return e
}

func TestTextAnswerWithUsageAndPing(t *testing.T) {
	t.Parallel()
	a, err := run(t, serve(t, events(evStart, evText, evPing, evHello,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" wörld \u003c\n\ud83d\ude00"}}`,
		`{"type":"something_new","index":7}`, evStop0, evEndTurn, evStop)), hello())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]model.Block{model.Text{Text: "Hello wörld <\n😀"}}, a.blocks); diff != "" {
		t.Error(diff)
	}
	if want := (model.Usage{InputTokens: 12, OutputTokens: 15, CacheReadTokens: 100, CacheWriteTokens: 3}); a.usage != want {
		t.Errorf("usage %+v, want %+v", a.usage, want)
	}
	last := a.deltas[len(a.deltas)-1]
	if a.stop != model.StopEndTurn || a.pings != 1 || last.ID != "msg_1" || last.Name != "claude-sonnet-4-5" {
		t.Errorf("stop %q, pings %d, last %+v", a.stop, a.pings, last)
	}
}

func TestThinkingAndParallelToolCalls(t *testing.T) {
	t.Parallel()
	a, err := run(t, serve(t, events(evStart,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me see"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/=="}}`, evStop0,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"opaque"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":".go\"}"}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"list","input":{}}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_3","name":"bad","input":{}}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"[1,"}}`,
		`{"type":"content_block_stop","index":5}`,
		evToolStop, evStop)), hello())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.blocks) != 5 || a.stop != model.StopToolUse {
		t.Fatalf("stop %q, blocks %+v", a.stop, a.blocks)
	}
	want := []model.Block{
		model.Thinking{Text: "Let me see", Sig: model.Signature{Provider: "anthropic", Value: "EqQB+/=="}},
		model.Thinking{Redacted: "opaque", Sig: model.Signature{Provider: "anthropic"}},
		model.ToolUse{ID: "toolu_1", Name: "read", Input: json.RawMessage(`{"path": "a.go"}`)},
	}
	if diff := cmp.Diff(want, a.blocks[:3]); diff != "" {
		t.Error(diff)
	}
	second := a.blocks[3].(model.ToolUse)
	if second.ID == "toolu_1" || second.ID == "" || string(second.Input) != "{}" || second.Invalid != "" {
		t.Errorf("a call with a used id: %+v", second)
	}
	if third := a.blocks[4].(model.ToolUse); !strings.Contains(third.Invalid, "[1,") || string(third.Input) != "{}" {
		t.Errorf("a call with broken input: %+v", third)
	}
}

func TestThinkingWithWithheldTextKeepsItsSignature(t *testing.T) {
	t.Parallel()
	a, err := run(t, serve(t, events(evStart,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, evStop0,
		strings.ReplaceAll(evHello, `"index":0`, `"index":1`), // no start: some gateways drop it
		evEndTurn, evStop)), hello())
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Block{model.Thinking{Sig: model.Signature{Provider: "anthropic", Value: "s"}}, model.Text{Text: "Hello"}}
	if diff := cmp.Diff(want, a.blocks); diff != "" {
		t.Error(diff)
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]model.StopReason{
		"end_turn": model.StopEndTurn, "max_tokens": model.StopMaxTokens, "stop_sequence": model.StopSequence,
		"refusal": model.StopRefusal, "pause_turn": model.StopPause, "model_context_window_exceeded": model.StopMaxTokens,
		"from_the_future": model.StopEndTurn,
	} {
		a, err := run(t, serve(t, events(evStart, evText, evHello, evStop0, strings.Replace(evEndTurn, "end_turn", reason, 1), evStop)), hello())
		if err != nil || a.stop != want {
			t.Errorf("%s: stop %q, error %v", reason, a.stop, err)
		}
	}
}

func TestAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	_, err := run(t, serve(t, events(evStart, evText, evStop0, evEndTurn, evStop)), hello())
	wantKind(t, err, model.ErrEmpty)
	_, err = run(t, serve(t, events(evStart, strings.Replace(evEndTurn, "end_turn", "refusal", 1), evStop)), hello())
	wantKind(t, err, model.ErrBlocked)
	a, err := run(t, serve(t, events(evStart, strings.Replace(evEndTurn, "end_turn", "max_tokens", 1), evStop)), hello())
	if err != nil || a.stop != model.StopMaxTokens {
		t.Errorf("stop %q, error %v", a.stop, err)
	}
}

func TestErrorEventsAreTyped(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]model.ErrorKind{
		"overloaded_error": model.ErrOverloaded, "rate_limit_error": model.ErrRateLimit, "api_error": model.ErrServer,
		"authentication_error": model.ErrAuth, "permission_error": model.ErrAuth, "invalid_request_error": model.ErrBadRequest,
		"not_found_error": model.ErrNotFound, "timeout_error": model.ErrServer, "billing_error": model.ErrQuota,
	} {
		_, err := run(t, serve(t, events(evStart, evText, evHello, `{"type":"error","error":{"type":"`+kind+`","message":"so it is"}}`)), hello())
		if e := wantKind(t, err, want); !strings.Contains(e.Message, "so it is") || e.RequestID != "req_1" {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

func TestHTTPErrorsAreTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		typ    string
		msg    string
		want   model.ErrorKind
	}{
		{400, "invalid_request_error", "messages: nope", model.ErrBadRequest},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", model.ErrContext},
		{401, "authentication_error", "invalid x-api-key", model.ErrAuth},
		{403, "permission_error", "no", model.ErrAuth},
		{404, "not_found_error", "model: claude-9", model.ErrNotFound},
		{429, "rate_limit_error", "slow down", model.ErrRateLimit},
		{500, "api_error", "Internal server error", model.ErrServer},
		{529, "overloaded_error", "Overloaded", model.ErrOverloaded},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "7")
			w.Header().Set("request-id", "req_2")
			w.WriteHeader(c.status)
			_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_2"}`, c.typ, c.msg)
		})
		_, err := run(t, s, hello())
		e := wantKind(t, err, c.want)
		if e.Status != c.status || e.RetryAfter != 7*time.Second || e.RequestID != "req_2" || !strings.Contains(e.Message, c.msg) {
			t.Errorf("%d: %+v", c.status, e)
		}
		if n := len(s.bodies); n != 1 {
			t.Errorf("%d: %d requests were sent: the SDK retried", c.status, n)
		}
	}
}

func TestRedirectsDoNotCarryTheKeyElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/v1/messages", http.StatusTemporaryRedirect)
	})
	if _, err := run(t, s, hello()); err == nil || len(s.bodies) != 1 {
		t.Errorf("error %v, %d requests", err, len(s.bodies))
	}
}

// hijacked answers with raw bytes and then ends the connection.
func hijacked(t *testing.T, reset bool, raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + raw)
		_ = buf.Flush()
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	begun := "event: message_start\ndata: " + evStart + "\n\nevent: content_block_delta\ndata: " + evHello + "\n\n"
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    model.ErrorKind
	}{
		{"end without message_stop", events(evStart, evText, evHello, evStop0, evEndTurn), model.ErrIncomplete},
		{"nothing", events(), model.ErrIncomplete},
		{"end of connection", hijacked(t, false, begun), model.ErrIncomplete},
		{"end within an event", hijacked(t, false, begun+`data: {"type":"content_blo`), model.ErrIncomplete},
		{"garbage", events(evStart, "\x00\xff{{{"), model.ErrMalformed},
		{"another API", events(`{"id":"x","choices":[]}`), model.ErrMalformed},
		{"input without a call", events(evStart, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`), model.ErrMalformed},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><title>Sign in to the network</title></html>")
		}, model.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, serve(t, c.handler), hello())
			wantKind(t, err, c.want)
		})
	}
}

func TestResetInTheMiddleIsANetworkError(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: content_block_delta\ndata: " + evHello + "\n\n")
		_ = buf.Flush()
		<-seen // so that the reset does not overtake the data
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
	err := s.Stream(context.Background(), hello(), func(d model.Delta) {
		if d.Kind == model.DeltaText {
			close(seen)
		}
	})
	wantKind(t, err, model.ErrNetwork)
}

func TestNoServerIsANetworkError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	p, err := New(Options{APIKey: "k", BaseURL: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run(t, p, hello())
	wantKind(t, err, model.ErrNetwork)
}

func TestFramingDoesNotMatter(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"CR":       strings.ReplaceAll(helloStream, "\n", "\r"),
		"CRLF":     strings.ReplaceAll(helloStream, "\n", "\r\n"),
		"comments": strings.ReplaceAll(helloStream, "event:", ": keep-alive\n\nevent:"),
		"spaced":   strings.ReplaceAll(strings.ReplaceAll(helloStream, `":`, `": `), `,"`, `, "`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := run(t, serve(t, hijacked(t, false, stream)), hello())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]model.Block{model.Text{Text: "Hello"}}, a.blocks); diff != "" {
				t.Error(diff)
			}
			if name == "comments" && a.pings == 0 {
				t.Error("comments are no sign of life")
			}
		})
	}
}

func TestAnyBytesPerReadGiveTheSameText(t *testing.T) {
	t.Parallel()
	stream := strings.Replace(helloStream, "Hello", "Grüße, 世界 😀", 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range len(stream) {
			_, _ = io.WriteString(w, stream[i:i+1])
			w.(http.Flusher).Flush()
		}
	})
	a, err := run(t, s, hello())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]model.Block{model.Text{Text: "Grüße, 世界 😀"}}, a.blocks); diff != "" {
		t.Error(diff)
	}
}

func TestCancelEndsAStreamAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(evStart, evText, evHello)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	cause := errors.New("the user said stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	var at time.Time
	err := s.Stream(ctx, hello(), func(d model.Delta) {
		if d.Kind == model.DeltaText {
			at = time.Now()
			cancel(cause)
		}
	})
	if took := time.Since(at); !errors.Is(err, cause) || took > 100*time.Millisecond {
		t.Errorf("error %v after %v", err, took)
	}
}

func TestConnectionIsUsedAgainAfterAnAnswer(t *testing.T) {
	t.Parallel()
	remotes := make(chan string, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		events(evStart, evText, evHello, evStop0, evEndTurn, evStop)(w, r)
	})
	for range 3 {
		if _, err := run(t, s, hello()); err != nil {
			t.Fatal(err)
		}
	}
	if a, b, c := <-remotes, <-remotes, <-remotes; a != b || b != c {
		t.Errorf("three connections: %s %s %s", a, b, c)
	}
}

func TestServerThatDoesNotHangUpIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(evStart, evText, evHello, evStop0, evEndTurn, evStop)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	start := time.Now()
	if _, err := run(t, s, hello()); err != nil || time.Since(start) > 2*time.Second {
		t.Errorf("error %v after %v", err, time.Since(start))
	}
}

func TestOptionsRule(t *testing.T) {
	// Not parallel: it sets the environment, which must not matter.
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: 1")
	headers := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		events(evStart, evText, evHello, evStop0, evEndTurn, evStop)(w, r)
	}))
	defer srv.Close()
	p, err := New(Options{AuthToken: "tok", BaseURL: srv.URL + "/v1/", HTTPClient: srv.Client(),
		Headers: http.Header{"X-Own": {"a", "b"}, "User-Agent": {"agent/1"}}, Betas: []string{"one", "two"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, p, hello()); err != nil {
		t.Fatal(err)
	}
	h := <-headers
	got := map[string][]string{}
	for _, k := range []string{"Authorization", "X-Api-Key", "X-Env", "X-Own", "User-Agent", "Anthropic-Beta", "Anthropic-Version", "Content-Type"} {
		got[k] = h.Values(k)
	}
	want := map[string][]string{
		"Authorization": {"Bearer tok"}, "X-Api-Key": nil, "X-Env": nil, "X-Own": {"a", "b"}, "User-Agent": {"agent/1"},
		"Anthropic-Beta": {"one,two"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range []Options{{}, {APIKey: "k", BaseURL: "api.example.com"}, {APIKey: "k", BaseURL: "ftp://x"}} {
		_, err := New(o)
		wantKind(t, err, model.ErrConfigured)
	}
}

func TestConcurrentStreamsKeepTheirRequestsApart(t *testing.T) {
	t.Parallel()
	s := serve(t, events(evStart, evText, evHello, evStop0, evEndTurn, evStop))
	shared := history(5)
	var wg sync.WaitGroup
	for range 6 {
		own := history(3)
		wg.Go(func() {
			for n := range 3 {
				for _, messages := range [][]*model.Message{own[:2*n+1], shared[:4*n+1]} {
					req := hello()
					req.Messages = messages
					if err := s.Stream(context.Background(), req, func(model.Delta) {}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for range len(s.bodies) {
		if b := <-s.bodies; !json.Valid(b) {
			t.Errorf("not JSON: %s", b)
		}
	}
}

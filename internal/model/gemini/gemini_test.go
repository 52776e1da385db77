package gemini

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
	requests chan *http.Request
	bodies   chan []byte
}

// serve starts a fake Gemini API whose answers handler writes.
func serve(t testing.TB, handler http.HandlerFunc) *served {
	t.Helper()
	s := &served{requests: make(chan *http.Request, 100), bodies: make(chan []byte, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method != http.MethodPost || r.URL.RequestURI() != "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse" || r.Header.Get("X-Goog-Api-Key") != "test-key" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		s.requests <- r
		s.bodies <- body
		handler(w, r)
	}))
	t.Cleanup(srv.Close)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	var err error
	s.Provider, err = New(Options{APIKey: "test-key", BaseURL: srv.URL, HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sse is a stream of the given chunks, framed as the API frames it.
func sse(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\r\n\r\n")
	}
	return b.String()
}

func events(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, sse(chunks...))
	}
}

// parts is a chunk with the given parts.
func withParts(parts string) string {
	return `{"candidates": [{"content": {"parts": [` + parts + `],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 110,"candidatesTokenCount": 2,"totalTokenCount": 112,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 110}]},"modelVersion": "gemini-2.5-flash","responseId": "resp-1"}`
}

// last is a final chunk.
func last(parts, reason string) string {
	return `{"candidates": [{"content": {"parts": [` + parts + `],"role": "model"},"finishReason": "` + reason + `","index": 0}],"usageMetadata": {"promptTokenCount": 110,"cachedContentTokenCount": 100,"candidatesTokenCount": 5,"thoughtsTokenCount": 7,"totalTokenCount": 122},"modelVersion": "gemini-2.5-flash","responseId": "resp-1"}`
}

var (
	helloChunk = withParts(`{"text": "Hello"}`)
	helloEnd   = last(`{"text": " world"}`, "STOP")
)

func hello() *model.Request {
	return &model.Request{Model: "gemini-2.5-flash", Messages: []*model.Message{{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: "hi"}}}}}
}

// answer is what an answer came to.
type answer struct {
	blocks []model.Block
	usage  model.Usage
	stop   model.StopReason
	pings  int
	deltas []model.Delta
}

// run streams one answer.
func run(t testing.TB, p model.Provider, req *model.Request) (answer, error) {
	t.Helper()
	var a answer
	var asm model.Assembler
	err := p.Stream(context.Background(), req, func(d model.Delta) {
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
	if !errors.As(err, &e) || e.Kind != kind || e.Provider != "gemini" {
		t.Fatalf("got error %#v (%v), want kind %s", err, err, kind)
	}
	return e
}

func wantBlocks(t testing.TB, got []model.Block, want ...model.Block) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func sig(value string) model.Signature { return model.Signature{Provider: "gemini", Value: value} }

func TestTextAnswerWithUsage(t *testing.T) {
	t.Parallel()
	a, err := run(t, serve(t, events(helloChunk, withParts(`{"text": " \u003cwörld\u003e\n\ud83d\ude00"}`),
		`{"usageMetadata": {"promptTokenCount": 110}}`, `{"candidates": []}`, `{}`, last(``, "STOP"))), hello())
	if err != nil {
		t.Fatal(err)
	}
	wantBlocks(t, a.blocks, model.Text{Text: "Hello <wörld>\n😀"})
	if want := (model.Usage{InputTokens: 10, CacheReadTokens: 100, OutputTokens: 12, ThinkingTokens: 7}); a.usage != want {
		t.Errorf("usage %+v, want %+v", a.usage, want)
	}
	end := a.deltas[len(a.deltas)-1]
	if a.stop != model.StopEndTurn || end.ID != "resp-1" || end.Name != "gemini-2.5-flash" {
		t.Errorf("stop %q, last %+v", a.stop, end)
	}
}

func TestThoughtsCallsAndSignatures(t *testing.T) {
	t.Parallel()
	a, err := run(t, serve(t, events(
		withParts(`{"text": "**Plan**","thought": true}`), withParts(`{"text": " more","thought": true}`),
		withParts(`{"text": "I will "}`), withParts(`{"text": "look."}`),
		withParts(`{"functionCall": {"name": "read","args": {"path": "a<b.go"}},"thoughtSignature": "CiEB+/Aa=="},{"functionCall": {"name": "list","args": {}}}`),
		withParts(`{"functionCall": {"id": "fc-1","name": "nothing"}}, {"functionCall": {"id": "fc-1","name": "again", "args": null}}, {"functionCall": {"id": "fc-2","name": "wrong", "args": [1]}}`),
		last(``, "STOP"))), hello())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.blocks) != 7 || a.stop != model.StopToolUse {
		t.Fatalf("stop %q, blocks %+v", a.stop, a.blocks)
	}
	wantBlocks(t, a.blocks[:2], model.Thinking{Text: "**Plan** more"}, model.Text{Text: "I will look."})
	ids := map[string]bool{}
	var calls []model.ToolUse
	for _, b := range a.blocks[2:] {
		c := b.(model.ToolUse)
		if c.ID == "" || ids[c.ID] {
			t.Errorf("the id %q is not unique", c.ID)
		}
		ids[c.ID] = true
		c.ID = ""
		calls = append(calls, c)
	}
	want := []model.ToolUse{
		{Name: "read", Input: json.RawMessage(`{"path": "a<b.go"}`), Sig: sig("CiEB+/Aa==")},
		{Name: "list", Input: json.RawMessage(`{}`)}, {Name: "nothing", Input: json.RawMessage(`{}`)}, {Name: "again", Input: json.RawMessage(`{}`)},
		{Name: "wrong", Input: json.RawMessage(`{}`), Invalid: "the arguments are not a JSON object: [1]"},
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
	if !ids["fc-1"] || !ids["fc-2"] {
		t.Errorf("the API's own ids are not kept: %v", ids)
	}
}

func TestSignedTextIsKeptApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		chunks []string
		want   []model.Block
	}{
		{"an empty part at the end", []string{helloChunk, last(`{"text": "","thoughtSignature": "Ab=="}`, "STOP")},
			[]model.Block{model.Text{Text: "Hello", Sig: model.Signature{Provider: "gemini", Value: "Ab==", From: 5}}}},
		{"the last part", []string{helloChunk, last(`{"text": " world","thoughtSignature": "Ab=="}`, "STOP")},
			[]model.Block{model.Text{Text: "Hello world", Sig: model.Signature{Provider: "gemini", Value: "Ab==", From: 5}}}},
		{"the first part", []string{withParts(`{"text": "Hello","thoughtSignature": "Ab=="}`), helloEnd},
			[]model.Block{model.Text{Text: "Hello", Sig: sig("Ab==")}, model.Text{Text: " world"}}},
		{"after a call", []string{withParts(`{"text": "a"},{"functionCall": {"id": "x","name": "f"},"thoughtSignature": "1"}`), last(`{"text": "","thoughtSignature": "2"}`, "STOP")},
			[]model.Block{model.Text{Text: "a"}, model.ToolUse{ID: "x", Name: "f", Input: json.RawMessage(`{}`), Sig: sig("1")}, model.Text{Sig: sig("2")}}},
		{"a thought", []string{withParts(`{"text": "","thought": true,"thoughtSignature": "1"}`), helloEnd},
			[]model.Block{model.Thinking{Sig: sig("1")}, model.Text{Text: " world"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, events(c.chunks...))
			a, err := run(t, s, hello())
			if err != nil {
				t.Fatal(err)
			}
			wantBlocks(t, a.blocks, c.want...)
		})
	}
}

func TestPartsGoBackAsTheyCame(t *testing.T) {
	t.Parallel()
	answer := []string{
		`{"text":"**Plan**","thought":true,"thoughtSignature":"T1+/=="}`,
		`{"text":"Hello"}`, `{"text":" world","thoughtSignature":"T2=="}`, `{"text":"bye"}`, `{"text":"","thoughtSignature":"T3=="}`,
		`{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}},"thoughtSignature":"T4=="}`,
		`{"functionCall":{"name":"list","args":{"b":1,"a":"<"}}}`,
	}
	chunks := make([]string, 0, len(answer)+1)
	for _, p := range answer {
		chunks = append(chunks, withParts(p))
	}
	s := serve(t, events(append(chunks, last(``, "STOP"))...))
	a, err := run(t, s, hello())
	if err != nil {
		t.Fatal(err)
	}
	var results []model.Block
	for _, b := range a.blocks {
		if c, ok := b.(model.ToolUse); ok {
			results = append([]model.Block{model.ToolResult{ToolUseID: c.ID, Blocks: []model.Block{model.Text{Text: "did " + c.Name}}}}, results...)
		}
	}
	want := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},
		{"role":"model","parts":[` + strings.Join(answer, ",") + `]},
		{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"did read"}}},
			{"functionResponse":{"name":"list","response":{"output":"did list"}}}]}],
		"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`
	next := hello()
	next.Messages = append(next.Messages, &model.Message{Role: model.RoleAssistant, Blocks: a.blocks}, &model.Message{Role: model.RoleUser, Blocks: results})
	<-s.bodies
	if _, err := run(t, s, next); err != nil {
		t.Fatal(err)
	}
	first := <-s.bodies
	sameJSON(t, want, first)

	// The same after the history went through a file: identical bytes.
	resumed := hello()
	resumed.Messages = append(resumed.Messages, &model.Message{Role: model.RoleAssistant, Blocks: throughJSON(t, a.blocks)}, &model.Message{Role: model.RoleUser, Blocks: results})
	if _, err := run(t, s, resumed); err != nil {
		t.Fatal(err)
	}
	if again := <-s.bodies; string(again) != string(first) {
		t.Errorf("after a resume:\n%s\nbefore:\n%s", again, first)
	}
}

// throughJSON writes blocks as JSON and reads them back.
func throughJSON(t *testing.T, blocks []model.Block) []model.Block {
	t.Helper()
	var out []model.Block
	for _, b := range blocks {
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		switch b.(type) {
		case model.Text:
			out = append(out, read[model.Text](t, data))
		case model.Thinking:
			out = append(out, read[model.Thinking](t, data))
		case model.ToolUse:
			u := read[model.ToolUse](t, data)
			u.Input = json.RawMessage(strings.ReplaceAll(string(u.Input), `\u003c`, "<"))
			out = append(out, u)
		}
	}
	return out
}

func read[B any](t *testing.T, data []byte) B {
	t.Helper()
	var b B
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]model.StopReason{
		"STOP": model.StopEndTurn, "MAX_TOKENS": model.StopMaxTokens, "SAFETY": model.StopRefusal, "RECITATION": model.StopRefusal,
		"OTHER": model.StopEndTurn, "FROM_THE_FUTURE": model.StopEndTurn,
	} {
		a, err := run(t, serve(t, events(helloChunk, last(``, reason))), hello())
		if err != nil || a.stop != want {
			t.Errorf("%s: stop %q, error %v", reason, a.stop, err)
		}
	}
	for reason, want := range map[string]model.ErrorKind{
		"STOP": model.ErrEmpty, "OTHER": model.ErrEmpty, "SAFETY": model.ErrBlocked, "RECITATION": model.ErrBlocked, "BLOCKLIST": model.ErrBlocked,
		"PROHIBITED_CONTENT": model.ErrBlocked, "SPII": model.ErrBlocked, "MALFORMED_FUNCTION_CALL": model.ErrMalformedUse,
	} {
		_, err := run(t, serve(t, events(withParts(`{"text": "hm","thought": true}`), last(``, reason))), hello())
		wantKind(t, err, want)
	}
	_, err := run(t, serve(t, events(`{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},"usageMetadata": {"promptTokenCount": 9}}`)), hello())
	if e := wantKind(t, err, model.ErrBlocked); !strings.Contains(e.Message, "PROHIBITED_CONTENT") {
		t.Error(e)
	}
	if a, err := run(t, serve(t, events(last(``, "MAX_TOKENS"))), hello()); err != nil || a.stop != model.StopMaxTokens {
		t.Errorf("stop %q, error %v", a.stop, err)
	}
}

func TestHTTPErrorsAreTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		word    string
		details string
		want    model.ErrorKind
		wait    time.Duration
	}{
		{400, "INVALID_ARGUMENT", `[]`, model.ErrBadRequest, 0},
		{400, "INVALID_ARGUMENT", `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]`, model.ErrAuth, 0},
		{401, "UNAUTHENTICATED", `[]`, model.ErrAuth, 0},
		{403, "PERMISSION_DENIED", `[]`, model.ErrAuth, 0},
		{404, "NOT_FOUND", `[]`, model.ErrNotFound, 0},
		{429, "RESOURCE_EXHAUSTED", `[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]`, model.ErrRateLimit, 34500 * time.Millisecond},
		{500, "INTERNAL", `[]`, model.ErrServer, 0},
		{503, "UNAVAILABLE", `[]`, model.ErrOverloaded, 0},
		{529, "", `[]`, model.ErrOverloaded, 0},
	} {
		body := fmt.Sprintf(`{"error":{"code":%d,"message":"so it is","status":%q,"details":%s}}`, c.status, c.word, c.details)
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=UTF-8")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "["+body+"]") // the API wraps errors of streams in an array
		})
		_, err := run(t, s, hello())
		e := wantKind(t, err, c.want)
		if e.Status != c.status || e.RetryAfter != c.wait || !strings.Contains(e.Message, "so it is") || strings.Contains(e.Error(), "test-key") {
			t.Errorf("%d: %+v", c.status, e)
		}
		if n := len(s.bodies); n != 1 {
			t.Errorf("%d: %d requests were sent", c.status, n)
		}
		if c.status < 500 {
			continue
		}
		_, err = run(t, serve(t, events(helloChunk, body)), hello())
		wantKind(t, err, c.want)
	}
}

// hijacked answers with raw bytes and ends the connection.
func hijacked(t *testing.T, raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + raw)
		_ = buf.Flush()
		_ = conn.Close()
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    model.ErrorKind
	}{
		{"no finish reason", events(helloChunk), model.ErrIncomplete},
		{"nothing", events(), model.ErrIncomplete},
		{"end of connection", hijacked(t, sse(helloChunk)), model.ErrIncomplete},
		{"end within a chunk", hijacked(t, sse(helloChunk)+`data: {"candidates": [{"con`), model.ErrIncomplete},
		{"garbage", events(helloChunk, "\x00\xff{{{"), model.ErrMalformed},
		{"wrong types", events(`{"candidates": "none"}`), model.ErrMalformed},
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

func TestResetInTheMiddleIsANetworkErrorWithTheUsageSoFar(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sse(helloChunk, strings.Replace(helloChunk, `"candidatesTokenCount": 2`, `"candidatesTokenCount": 20`, 1)))
		_ = buf.Flush()
		<-seen // so that the reset does not overtake the data
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
	var used model.Usage
	texts := 0
	err := s.Stream(context.Background(), hello(), func(d model.Delta) {
		if d.Usage != nil {
			used = *d.Usage
		}
		if d.Kind == model.DeltaText {
			if texts++; texts == 2 {
				close(seen)
			}
		}
	})
	wantKind(t, err, model.ErrNetwork)
	if used.OutputTokens != 20 || used.InputTokens != 110 {
		t.Errorf("usage %+v", used)
	}
}

func TestFramingDoesNotMatter(t *testing.T) {
	t.Parallel()
	crlf := sse(helloChunk, helloEnd, "[DONE]")
	for name, stream := range map[string]string{
		"CRLF":     crlf,
		"CR":       strings.ReplaceAll(crlf, "\r\n", "\r"),
		"LF":       strings.ReplaceAll(crlf, "\r\n", "\n"),
		"comments": strings.ReplaceAll(crlf, "data:", ": keep-alive\n\ndata:"),
		"compact":  strings.ReplaceAll(strings.ReplaceAll(crlf, `": `, `":`), "}, {", "},{"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := run(t, serve(t, hijacked(t, stream)), hello())
			if err != nil {
				t.Fatal(err)
			}
			wantBlocks(t, a.blocks, model.Text{Text: "Hello world"})
			if name == "comments" && a.pings == 0 {
				t.Error("comments are no sign of life")
			}
		})
	}
}

func TestAnyBytesPerReadGiveTheSameText(t *testing.T) {
	t.Parallel()
	stream := sse(withParts(`{"text": "Grüße, 世界 😀"}`), last(``, "STOP"))
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
	wantBlocks(t, a.blocks, model.Text{Text: "Grüße, 世界 😀"})
}

func TestArrayInPlaceOfEvents(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"[" + helloChunk + ",\n" + helloEnd + "]", last(`{"text": "Hello world"}`, "STOP")} {
		a, err := run(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=UTF-8")
			_, _ = io.WriteString(w, body)
		}), hello())
		if err != nil {
			t.Fatal(err)
		}
		wantBlocks(t, a.blocks, model.Text{Text: "Hello world"})
	}
}

func TestCancelEndsAStreamAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(helloChunk)(w, r)
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
		events(helloChunk, helloEnd)(w, r)
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
		events(helloChunk, helloEnd)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	start := time.Now()
	if _, err := run(t, s, hello()); err != nil || time.Since(start) > 3*time.Second {
		t.Errorf("error %v after %v", err, time.Since(start))
	}
}

func TestRedirectsDoNotCarryTheKeyElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	if _, err := run(t, s, hello()); err == nil || len(s.bodies) != 1 {
		t.Errorf("error %v, %d requests", err, len(s.bodies))
	}
}

func TestConcurrentStreamsKeepTheirRequestsApart(t *testing.T) {
	t.Parallel()
	s := serve(t, events(helloChunk, helloEnd))
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

package openai

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

// The faults are named as in the fault list: F16 error statuses, F17 broken
// streams, F18-F20 silence.

func TestF16ErrorStatusesAreTypedAndNotRetriedHere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		h     http.HandlerFunc
		want  model.ErrorKind
		code  int
		after time.Duration
	}{
		{"400", status(400, `{"error":{"message":"Invalid 'messages'","type":"invalid_request_error","param":"messages","code":null}}`), model.ErrBadRequest, 400, 0},
		{"400 context", status(400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, you requested 200000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`), model.ErrContext, 400, 0},
		{"400 context of llama.cpp", status(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), model.ErrContext, 400, 0},
		{"401", status(401, `{"error":{"message":"Incorrect API key provided: sk-abcdefghijkl","type":"invalid_request_error","code":"invalid_api_key"}}`), model.ErrAuth, 401, 0},
		{"403", status(403, `{"error":{"message":"no access"}}`), model.ErrAuth, 403, 0},
		{"404", status(404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`), model.ErrNotFound, 404, 0},
		{"404 of Ollama", status(404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}`), model.ErrNotFound, 404, 0},
		{"413", status(413, ``), model.ErrContext, 413, 0},
		{"429 seconds", status(429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, "Retry-After", "7"), model.ErrRateLimit, 429, 7 * time.Second},
		{"429 without", status(429, `{"error":{"message":"Rate limit reached"}}`), model.ErrRateLimit, 429, 0},
		{"429 quota", status(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`), model.ErrQuota, 429, 0},
		{"429 of DashScope", status(429, `{"error":{"message":"Requests rate limit exceeded","type":"limit_requests","code":"limit_requests"}}`), model.ErrRateLimit, 429, 0},
		{"500", status(500, `{"error":{"message":"The server had an error","type":"server_error"}}`), model.ErrServer, 500, 0},
		{"500 of a server that asks for a retry", status(500, `{}`, "X-Should-Retry", "true"), model.ErrServer, 500, 0},
		{"502 HTML", status(502, `<html><title>Bad gateway</title></html>`, "Content-Type", "text/html"), model.ErrServer, 502, 0},
		{"503", status(503, `{"error":{"message":"overloaded"}}`), model.ErrOverloaded, 503, 0},
		{"529", status(529, ``), model.ErrOverloaded, 529, 0},
		{"redirect without a place", status(304, ``), model.ErrMalformed, 304, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.h)
			_, err := stream(t, t.Context(), s.provider(t, Options{Name: "vendor"}), corpusRequest())
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Kind != tt.want || e.Status != tt.code || e.RetryAfter != tt.after || e.Provider != "vendor" {
				t.Errorf("got %+v, want %s %d after %v", e, tt.want, tt.code, tt.after)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests, want 1: retrying is not this package's job", n)
			}
			if strings.Contains(err.Error(), "sk-abc") {
				t.Errorf("the error quotes a key: %v", err)
			}
		})
	}
}

func TestF16AnErrorBodyWithoutEndIsReadOnlyInPart(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		line := strings.Repeat("x", 1<<16)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	})
	_, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrServer {
		t.Errorf("error %v", err)
	}
}

func TestF17ConnectionResetInTheStream(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	s := serve(t, hijack(t, func(conn *net.TCPConn, w *bufio.Writer) {
		_, _ = w.WriteString(streamHead + httpChunk(sse(text("hi"))))
		_ = w.Flush()
		<-read
		_ = conn.SetLinger(0)
	}))
	p := s.provider(t, Options{})
	var got string
	err := p.Stream(t.Context(), corpusRequest(), func(d model.Delta) {
		if d.Kind == model.DeltaText {
			got += d.Text
			close(read)
		}
	})
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrNetwork || got != "hi" {
		t.Errorf("text %q, error %v", got, err)
	}
}

func TestF17ConnectionClosedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, hijack(t, func(conn *net.TCPConn, w *bufio.Writer) { _ = conn.SetLinger(0) }))
	_, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrNetwork {
		t.Errorf("error %v", err)
	}
}

func TestF17ConnectionRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, events())
	p := s.provider(t, Options{})
	s.Close()
	_, err := stream(t, t.Context(), p, corpusRequest())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrNetwork || !strings.Contains(e.Message, "refused") {
		t.Errorf("error %v", err)
	}
}

func TestF17ResetAfterTheFinishReasonIsNoLoss(t *testing.T) {
	t.Parallel()
	s := serve(t, hijack(t, func(conn *net.TCPConn, w *bufio.Writer) {
		_, _ = w.WriteString(streamHead + httpChunk(sse(text("hi"), finish("stop"))))
		_ = w.Flush()
	}))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil || got.Stop != model.StopEndTurn {
		t.Errorf("stop %q, error %v", got.Stop, err)
	}
}

func TestF17HTMLOfACaptivePortal(t *testing.T) {
	t.Parallel()
	s := serve(t, status(200, `<!DOCTYPE html><html><head><title>Sign in</title></head></html>`, "Content-Type", "text/html; charset=utf-8"))
	_, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrMalformed || !strings.Contains(e.Message, "Sign in") {
		t.Errorf("error %v", err)
	}
}

func TestF17Framing(t *testing.T) {
	t.Parallel()
	whole := sse(text("naïve "), text("漢字 🙂"), finish("stop")) + "data: [DONE]\n\n"
	want := []model.Block{model.Text{Text: "naïve 漢字 🙂"}}
	bytewise := func(conn *net.TCPConn, w *bufio.Writer) {
		_, _ = w.WriteString(streamHead)
		for i := range len(whole) {
			_, _ = w.WriteString(httpChunk(whole[i : i+1]))
			_ = w.Flush()
		}
		_, _ = w.WriteString("0\r\n\r\n")
		_ = w.Flush()
	}
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
	}{
		{"characters split between packets", hijack(t, bytewise)},
		{"carriage returns", raw(strings.ReplaceAll(whole, "\n", "\r"))},
		{"carriage return and newline", raw(strings.ReplaceAll(whole, "\n", "\r\n"))},
		{"no space after the colon", raw(strings.ReplaceAll(whole, "data: ", "data:"))},
		{"no blank line at the end", raw(strings.TrimRight(whole, "\n"))},
		{"no [DONE]", raw(strings.TrimSuffix(whole, "data: [DONE]\n\n"))},
		{"no [DONE] and no blank line", raw(strings.TrimRight(strings.TrimSuffix(whole, "data: [DONE]\n\n"), "\n"))},
		{"comments", raw(": keep-alive\n\n" + strings.ReplaceAll(whole, "data: {", ": x\n\ndata: {"))},
		{"byte order mark", raw("\ufeff" + whole)},
		{"event names and ids", raw(strings.ReplaceAll(whole, "data: {", "event: chunk\nid: 1\nretry: 5\ndata: {"))},
		{"empty data", raw(strings.ReplaceAll(whole, "data: {", "data:\n\ndata: {"))},
		{"plain text content type", status(200, whole, "Content-Type", "text/plain")},
		{"characters split between chunks", raw(sse("{\"choices\":[{\"delta\":{\"content\":\"na\xc3\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"\xafve 漢字 \xf0\x9f\"}}]}",
			"{\"choices\":[{\"delta\":{\"content\":\"\x99\x82\"}}]}", finish("stop")))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := stream(t, t.Context(), serve(t, tt.h).provider(t, Options{}), corpusRequest())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Blocks); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestF17KeepAliveCommentsBecomePings(t *testing.T) {
	t.Parallel()
	s := serve(t, raw(": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"+sse(text("hi"), finish("stop"))))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil || got.count(model.DeltaPing) < 2 {
		t.Errorf("%d pings, error %v", got.count(model.DeltaPing), err)
	}
}

func TestF17TextAfterInvalidUTF8IsRepaired(t *testing.T) {
	t.Parallel()
	s := serve(t, raw(sse("{\"choices\":[{\"delta\":{\"content\":\"a\xffb\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"c\xc3\"}}]}", finish("stop"))))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]model.Block{model.Text{Text: "a\ufffdbc\ufffd"}}, got.Blocks); diff != "" {
		t.Error(diff)
	}
}

func TestF18CancelReturnsAtOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("the user pressed a key")
	for _, tt := range []struct {
		name string
		h    func(reached func()) http.HandlerFunc
	}{
		{"before the headers", func(reached func()) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { reached(); <-r.Context().Done() }
		}},
		{"before the first byte", func(reached func()) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				reached()
				<-r.Context().Done()
			}
		}},
		{"within an event", func(reached func()) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				raw(sse(text("hi"))+`data: {"id":"c1","choi`)(w, r)
				w.(http.Flusher).Flush()
				reached()
				<-r.Context().Done()
			}
		}},
		{"in the error body", func(reached func()) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(500)
				w.(http.Flusher).Flush()
				reached()
				<-r.Context().Done()
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			var cancelled time.Time
			s := serve(t, tt.h(func() { cancelled = time.Now(); cancel(cause) }))
			_, err := stream(t, ctx, s.provider(t, Options{}), corpusRequest())
			if took := time.Since(cancelled); took > 100*time.Millisecond {
				t.Errorf("returned %v after the cancel", took)
			}
			if !errors.Is(err, cause) {
				t.Errorf("error %v, want ctx's cause", err)
			}
		})
	}
}

func TestF19AFinishedAnswerDoesNotWaitForTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw(sse(text("hi"), finish("stop")))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil || got.Stop != model.StopEndTurn {
		t.Errorf("stop %q, error %v", got.Stop, err)
	}
}

func TestF20ASlowDripArrivesPieceByPiece(t *testing.T) {
	t.Parallel()
	next := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"one ", "two ", "three"} {
			<-next // the piece before has been seen
			_, _ = io.WriteString(w, sse(text(word)))
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, sse(finish("stop"), "[DONE]"))
	})
	next <- struct{}{}
	var got []string
	err := s.provider(t, Options{}).Stream(t.Context(), corpusRequest(), func(d model.Delta) {
		if d.Kind == model.DeltaText {
			got = append(got, d.Text)
			next <- struct{}{}
		}
	})
	if diff := cmp.Diff([]string{"one ", "two ", "three"}, got); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
}

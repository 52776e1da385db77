package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/model"
)

// TestMain runs everything in an environment full of OPENAI_* variables: none
// of them may have an effect here.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "from-the-environment", "OPENAI_BASE_URL": "http://127.0.0.1:1/environment",
		"OPENAI_ORG_ID": "environment", "OPENAI_PROJECT_ID": "environment",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// server is an HTTP server on a real port. It answers each request with the
// next of its handlers, the last one again and again, and keeps the requests.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []*http.Request
}

func serve(tb testing.TB, handlers ...http.HandlerFunc) *server {
	tb.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.bodies)
		s.bodies = append(s.bodies, string(body))
		s.heads = append(s.heads, r)
		s.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	tb.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// provider returns a provider for the server with connections of its own.
func (s *server) provider(tb testing.TB, o Options) model.Provider {
	tb.Helper()
	tr := &http.Transport{}
	tb.Cleanup(tr.CloseIdleConnections)
	o.HTTPClient = &http.Client{Transport: tr}
	o.BaseURL = s.URL + "/v1"
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// raw answers with a stream of exactly these bytes.
func raw(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

// events answers with each of data as an event, and [DONE].
func events(data ...string) http.HandlerFunc {
	return raw(sse(data...) + "data: [DONE]\n\n")
}

func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// status answers with an error.
func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// hijack answers with what f writes to the bare connection.
func hijack(tb testing.TB, f func(conn *net.TCPConn, w *bufio.Writer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			tb.Error(err)
			return
		}
		defer conn.Close()
		f(conn.(*net.TCPConn), rw.Writer)
	}
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// httpChunk is s as one chunk of the HTTP body.
func httpChunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func text(s string) string {
	q, _ := json.Marshal(s)
	return `{"id":"c1","model":"m1","choices":[{"index":0,"delta":{"content":` + string(q) + `},"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"c1","model":"m1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// toolDelta is a chunk with these tool call fragments.
func toolDelta(fragments ...string) string {
	return `{"id":"c1","model":"m1","choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(fragments, ",") + `]},"finish_reason":null}]}`
}

// answered is what came of a stream.
type answered struct {
	Blocks []model.Block
	Stop   model.StopReason
	Usage  model.Usage
	ID     string
	Model  string
	deltas []model.Delta
}

func (a answered) count(kind model.DeltaKind) int {
	n := 0
	for _, d := range a.deltas {
		if d.Kind == kind {
			n++
		}
	}
	return n
}

// stream runs one request and checks the rules of deltas.
func stream(tb testing.TB, ctx context.Context, p model.Provider, req *model.Request) (answered, error) {
	tb.Helper()
	var a answered
	var asm model.Assembler
	err := p.Stream(ctx, req, func(d model.Delta) {
		a.deltas = append(a.deltas, d)
		asm.Add(d)
	})
	checkDeltas(tb, a.deltas, err)
	a.Blocks, a.Stop, a.Usage = asm.Blocks(), asm.Stop(), asm.Usage()
	a.ID, a.Model = asm.Response()
	return a, err
}

func checkDeltas(tb testing.TB, deltas []model.Delta, err error) {
	tb.Helper()
	next, open := 0, false
	for i, d := range deltas {
		switch d.Kind {
		case model.DeltaText, model.DeltaThinking, model.DeltaToolStart:
			if d.Index == next {
				next, open = next+1, true
			} else if d.Index != next-1 || !open || d.Kind == model.DeltaToolStart {
				tb.Errorf("delta %d: index %d where block %d is next: %+v", i, d.Index, next, d)
			}
		case model.DeltaToolInput:
			if d.Index != next-1 || !open {
				tb.Errorf("delta %d: input for block %d, which is not open", i, d.Index)
			}
		case model.DeltaBlockEnd:
			if d.Index != next-1 || !open {
				tb.Errorf("delta %d: end of block %d, which is not open", i, d.Index)
			}
			open = false
		case model.DeltaFinish:
			if i != len(deltas)-1 {
				tb.Errorf("delta %d is DeltaFinish but %d follow", i, len(deltas)-1-i)
			}
		}
	}
	if finished := len(deltas) > 0 && deltas[len(deltas)-1].Kind == model.DeltaFinish; finished != (err == nil) {
		tb.Errorf("finished %v with error %v", finished, err)
	}
}

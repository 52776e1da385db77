package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/agentcli/agent/internal/model"
)

// stubTransport answers every request with the same stream, from memory.
type stubTransport struct{ body []byte }

func (s stubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(s.body)),
	}, nil
}

func textStream(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" word %d\n"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n", i%100)
	}
	b.WriteString(`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	b.WriteString(`data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}` + "\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

func BenchmarkStreamTextDeltas(b *testing.B) {
	const n = 20000
	p, err := New(Options{APIKey: "k", HTTPClient: &http.Client{Transport: stubTransport{textStream(n)}}})
	if err != nil {
		b.Fatal(err)
	}
	req := corpusRequest()
	b.ReportAllocs()
	for b.Loop() {
		got := 0
		err := p.Stream(context.Background(), req, func(d model.Delta) { got++ })
		if err != nil || got < n {
			b.Fatalf("%d deltas, %v", got, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/delta")
}

// BenchmarkRequestBody encodes a conversation of 200 messages of which one is new.
func BenchmarkRequestBody(b *testing.B) {
	p, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	req := corpusRequest()
	for i := range 100 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			&model.Message{Role: model.RoleAssistant, Blocks: []model.Block{model.ToolUse{ID: id, Name: "read_file", Input: json.RawMessage(`{"path":"main.go"}`)}}},
			&model.Message{Role: model.RoleUser, Blocks: []model.Block{model.ToolResult{ToolUseID: id, Name: "read_file", Blocks: []model.Block{model.Text{Text: string(bytes.Repeat([]byte("line of a file\n"), 200))}}}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		last := *req.Messages[len(req.Messages)-1]
		req.Messages[len(req.Messages)-1] = &last
		p.(*provider).body(req, 0)
	}
}

// BenchmarkScanLongTextCall scans a call of 20,000 pieces, and text of as many
// that is full of characters by which a call could begin.
func BenchmarkScanLongTextCall(b *testing.B) {
	const n = 20000
	for name, f := range map[string]struct{ head, piece, tail string }{
		"call": {`<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "`, `if (a[0] < 1) { b(); }\n`, `"}}</tool_call>`},
		"text": {"", "<tool {\n[`\n", ""},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := &recorder{}
				s := textScanner{tools: newToolset(corpusRequest()), out: r}
				s.feed(f.head)
				for range n {
					s.feed(f.piece)
				}
				s.feed(f.tail)
				s.close(false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/piece")
		})
	}
}

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/model"
)

// slowDelta is what encoding/json makes of a delta.
func slowDelta(data []byte) (kind model.DeltaKind, index int, text string, ok bool) {
	var e event
	if json.Unmarshal(data, &e) != nil || e.Type != "content_block_delta" || e.Delta == nil {
		return 0, 0, "", false
	}
	switch e.Delta.Type {
	case "text_delta":
		return model.DeltaText, e.Index, e.Delta.Text, true
	case "thinking_delta":
		return model.DeltaThinking, e.Index, e.Delta.Thinking, true
	case "input_json_delta":
		return model.DeltaToolInput, e.Index, e.Delta.PartialJSON, true
	}
	return 0, 0, "", false
}

func FuzzFastDelta(f *testing.F) {
	for _, s := range []string{
		evHello, evHello + "   ", `{"type":"content_block_delta","index":12,"delta":{"type":"thinking_delta","thinking":"a\n\u00e9\u003c\"\\"}      }`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}`,
		`{"type":"content_block_delta","index":00,"delta":{"type":"text_delta","text":"x"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d\ude00"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\q"}}`,
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\"}}",
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"},"index":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, index, text, ok := fastDelta(data)
		if !ok {
			return
		}
		k, i, s, ok := slowDelta(data)
		if !ok || k != kind || i != index || s != text {
			t.Fatalf("%q: fast %d %d %q, encoding/json %v %d %d %q", data, kind, index, text, ok, k, i, s)
		}
	})
}

func TestFastDeltaTakesWhatTheAPISends(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		evHello, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\nb\u003cé"}         }`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"x"}  }`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"\"x"}}`,
	} {
		if _, _, _, ok := fastDelta([]byte(s)); !ok {
			t.Errorf("%s goes the slow way", s)
		}
	}
}

// canned is a transport that answers with one body.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(c))),
	}, nil
}

// FuzzStream holds every stream to the rules of Provider and Delta.
func FuzzStream(f *testing.F) {
	f.Add([]byte(helloStream))
	f.Add([]byte("data: " + evStart + "\n\ndata: " + `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"b","input":{"x":1}}}` +
		"\n\ndata: " + evToolStop + "\n\ndata: " + evStop + "\n\n"))
	f.Add([]byte(`data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}` + "\n\n"))
	f.Add([]byte(`data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}` + "\n\n"))
	f.Add([]byte("data: null\n\ndata: {\"type\":\"content_block_delta\",\"delta\":null}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		p, err := New(Options{APIKey: "k", HTTPClient: &http.Client{Transport: canned(stream)}})
		if err != nil {
			t.Fatal(err)
		}
		checkRules(t, p, hello())
	})
}

// checkRules streams one answer and checks the order of its deltas.
func checkRules(t *testing.T, p model.Provider, req *model.Request) {
	t.Helper()
	open, next, finished := -1, 0, false
	err := p.Stream(context.Background(), req, func(d model.Delta) {
		if finished {
			t.Fatalf("%+v after the finish", d)
		}
		switch d.Kind {
		case model.DeltaText, model.DeltaThinking, model.DeltaRedacted, model.DeltaToolStart, model.DeltaSignature:
			if d.Index == next {
				open, next = next, next+1
			}
			if d.Index != open {
				t.Fatalf("%+v while block %d is open and %d is next", d, open, next)
			}
		case model.DeltaToolInput:
			if d.Index != open {
				t.Fatalf("%+v while block %d is open", d, open)
			}
		case model.DeltaBlockEnd:
			if d.Index != open {
				t.Fatalf("%+v while block %d is open", d, open)
			}
			open = -1
		case model.DeltaFinish:
			finished = true
		}
	})
	if finished != (err == nil) {
		t.Fatalf("finished: %v, error: %v", finished, err)
	}
	var own *model.Error
	if err != nil && !errors.As(err, &own) {
		t.Fatalf("an untyped error: %v", err)
	}
}

func BenchmarkStream20000Deltas(b *testing.B) {
	const n = 20000
	var s strings.Builder
	s.WriteString("event: message_start\ndata: " + evStart + "\n\nevent: content_block_start\ndata: " + evText + "\n\n")
	for range n {
		s.WriteString("event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words\n"}       }` + "\n\n")
	}
	s.WriteString("event: content_block_stop\ndata: " + evStop0 + "\n\nevent: message_delta\ndata: " + evEndTurn + "\n\nevent: message_stop\ndata: " + evStop + "\n\n")
	p, err := New(Options{APIKey: "k", HTTPClient: &http.Client{Transport: canned(s.String())}})
	if err != nil {
		b.Fatal(err)
	}
	req := hello()
	b.ReportAllocs()
	for b.Loop() {
		got := 0
		if err := p.Stream(context.Background(), req, func(d model.Delta) {
			if d.Kind == model.DeltaText {
				got++
			}
		}); err != nil || got != n {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/delta")
}

package gemini

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

func FuzzFastChunk(f *testing.F) {
	for _, s := range []string{
		helloChunk, helloEnd, withParts(`{"text": "a\n\u00e9\u003c","thought": true}`), withParts(``), withParts(`{}`), withParts(`{"text":"\ud83d\ude00"}`),
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"x","Text":"y"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"x","text":"y"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"x"}]},"index":01}]}`,
		`{"candidates":[{"content":{"parts":[{}]},"index":}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":1e3}}`,
		`{"usageMetadata":{"trafficType":"ON_DEMAND","candidatesTokensDetails":[]},"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]}}],"createTime":"now"} `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fast fastChunk
		if !fast.parse(data) {
			return
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%q: encoding/json refuses it: %v", data, err)
		}
		if len(c.Candidates) != 1 || len(c.Candidates[0].Content.Parts) != 1 || (c.Usage != nil) != fast.counted {
			t.Fatalf("%q: %+v", data, c)
		}
		p := c.Candidates[0].Content.Parts[0]
		if p.Text != fast.text || p.Thought != fast.thought || p.Signature != "" || p.Call != nil || c.Candidates[0].FinishReason != "" || c.Candidates[0].Index != 0 {
			t.Fatalf("%q: fast %+v, encoding/json %+v", data, fast, p)
		}
		if c.ModelVersion != string(fast.model) || c.ResponseID != string(fast.id) || c.Usage != nil && *c.Usage != fast.usage {
			t.Fatalf("%q: fast %+v, encoding/json %+v", data, fast, c)
		}
	})
}

func TestFastPathTakesWhatTheAPISends(t *testing.T) {
	t.Parallel()
	for _, s := range []string{helloChunk, withParts(`{"text": "a\n\u003cé","thought": true}`), strings.ReplaceAll(helloChunk, `": `, `":`)} {
		var f fastChunk
		if !f.parse([]byte(s)) {
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
	f.Add([]byte(sse(helloChunk, helloEnd)))
	f.Add([]byte(sse(withParts(`{"text":"a","thought":true,"thoughtSignature":"x"},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"y"},{"text":"","thoughtSignature":"z"}`), last(``, "STOP"))))
	f.Add([]byte(sse(`{"error":{"code":429,"message":"x"}}`)))
	f.Add([]byte(sse(`null`, `{"candidates":[null],"promptFeedback":{"blockReason":"OTHER"}}`)))
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[null,{\"text\":\"x\"}]}}]}\n\n"))
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
		case model.DeltaText, model.DeltaThinking, model.DeltaToolStart, model.DeltaSignature:
			if d.Index == next {
				open, next = next, next+1
			}
			if d.Index != open {
				t.Fatalf("%+v while block %d is open and %d is next", d, open, next)
			}
		case model.DeltaToolInput, model.DeltaBlockEnd:
			if d.Index != open {
				t.Fatalf("%+v while block %d is open", d, open)
			}
			if d.Kind == model.DeltaBlockEnd {
				open = -1
			}
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
	stream := strings.Repeat(sse(withParts(`{"text": " some words\n"}`)), n) + sse(last(``, "STOP"))
	p, err := New(Options{APIKey: "k", HTTPClient: &http.Client{Transport: canned(stream)}})
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

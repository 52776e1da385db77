package openai

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func FuzzTolerant(f *testing.F) {
	for _, c := range corpusCases(f) {
		f.Add(c.in, uint64(len(c.in)), false)
	}
	f.Add(`[TOOL_REQUEST]{"name": "read_file", "argu`+strings.Repeat("x \xd6\" ", 300)+"[END_TOOL_REQUEST] and more", uint64(0), true)
	f.Fuzz(func(t *testing.T, in string, seed uint64, cut bool) {
		whole := scan(cut, in)
		rng := rand.New(rand.NewPCG(seed, 7))
		checkSame(t, "random pieces", whole, scan(cut, pieces(rng, in)...))
		if len(whole.calls) == 0 && !strings.HasPrefix(strings.TrimLeft(in, " \t\r\n"), "<think") && whole.text.String() != in {
			t.Errorf("text without calls came out as %q", whole.text.String())
		}
		checkCalls(t, whole.calls)
		objects, invalid := parseArgs(in, newToolset(corpusRequest()).schema("read_file"), cut)
		if (invalid == "") != (len(objects) > 0) {
			t.Errorf("parseArgs gave %d objects and %q", len(objects), invalid)
		}
		for _, o := range objects {
			checkObject(t, o)
		}
	})
}

func checkCalls(tb testing.TB, calls []call) {
	tb.Helper()
	tools := newToolset(corpusRequest())
	for _, c := range calls {
		if !tools.known(c.name) {
			tb.Errorf("call of unknown tool %q", c.name)
		}
		if c.invalid == "" {
			checkObject(tb, c.args)
		}
	}
}

func checkObject(tb testing.TB, s string) {
	tb.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &m); err != nil || m == nil {
		tb.Errorf("%q is not a JSON object: %v", s, err)
	}
}

func FuzzRepairKeepsValidJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, ` [1, 2.5e3, "x\u00e9\n"] `, `{"a":{"b":[true,false,null]}}`, `"x"`, `{'a': True,}`, `{a:"""x"""}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, n, fits := repairJSON(s, false)
		if fits == fitYes && (!json.Valid([]byte(out)) || n > len(s)) {
			t.Errorf("repairJSON(%q) gave %q", s, out)
		}
		trimmed := strings.Trim(s, " \t\r\n")
		if !json.Valid([]byte(s)) || trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || strings.Count(s, "[")+strings.Count(s, "{") > maxDepth {
			return
		}
		if fits != fitYes || out != trimmed {
			t.Errorf("repairJSON changed valid JSON %q to %q (%v)", s, out, fits)
		}
	})
}

func FuzzArgScanAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, ` {"a":[1,-2.5e3,"x\u00e9\n",{}],"b":{"c":null}} `, `{"a":tru}`, `{"a":"\ud83d\ude00"}`, `{"a" : "x" , "b":[ ]}`} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, step int) {
		step = 1 + max(step, -step)%7
		if step < 1 || !utf8.ValidString(s) {
			return
		}
		var scan argScan
		for n := 0; n < len(s); n = min(n+step, len(s)) {
			scan.feed([]byte(s[:n]))
			if scan.safe > n {
				t.Fatalf("safe %d of %d bytes", scan.safe, n)
			}
		}
		scan.feed([]byte(s))
		if scan.done != (scan.done && json.Valid([]byte(s[:scan.pos]))) {
			t.Errorf("argScan took %q", s[:scan.pos])
		}
		trimmed := strings.Trim(s, " \t\r\n")
		if json.Valid([]byte(s)) && strings.HasPrefix(trimmed, "{") && strings.Count(s, "[")+strings.Count(s, "{") <= maxDepth && !scan.done {
			t.Errorf("argScan refused %q at %d", s, scan.pos)
		}
		// What was passed on must be the beginning of what comes out at the end.
		if scan.safe > 0 {
			objects, invalid := parseArgs(s, toolSchema{}, false)
			if invalid == "" && len(objects) > 0 && !strings.HasPrefix(objects[0], s[scan.start:scan.safe]) && json.Valid([]byte(s)) {
				t.Errorf("passed on %q of %q, which became %q", s[scan.start:scan.safe], s, objects[0])
			}
		}
	})
}

func FuzzFastChunkAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"hello"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"a\n\u00e9\"b"},"finish_reason":null}]}`,
		`{"choices":[{"delta":{"content":null,"reasoning":"x","reasoning_details":[]},"native_finish_reason":null}],"obfuscation":"abc"}`,
		`{"choices":[{"delta":{"content":"a","content":"b"}}]}`,
		`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read_file","arguments":""}}]},"finish_reason":null}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"arguments":"{\"a\":\"\u00e9"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":null,"function":{"name":null,"arguments":null}}]}}]}`,
		`{"Choices":[{"delta":{"content":"a"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return
		}
		var scratch []byte
		fast, ok := fastChunk(data, &scratch)
		if !ok {
			return
		}
		var slow chunk
		if err := json.Unmarshal(data, &slow); err != nil {
			t.Fatalf("fastChunk took %q, encoding/json says %v", data, err)
		}
		type result struct {
			ID, Model, Text, Thinking string
			Call                      int // -1: none
			CallID, Name, Args        string
		}
		want := result{ID: string(slow.ID), Model: string(slow.Model), Call: -1}
		if len(slow.Choices) != 1 || slow.Choices[0].Index != 0 || slow.Choices[0].FinishReason != "" || slow.Usage != nil {
			t.Fatalf("fastChunk took %q", data)
		}
		if d := slow.Choices[0].Delta; d != nil {
			want.Text, _ = plain(d.Content)
			if want.Thinking, _ = plain(d.ReasoningContent); want.Thinking == "" {
				want.Thinking, _ = plain(d.Reasoning)
			}
			if len(d.ToolCalls) > 1 || d.FunctionCall != nil || d.Refusal != "" {
				t.Fatalf("fastChunk took %q", data)
			}
			for _, f := range d.ToolCalls {
				if f.Index == nil {
					t.Fatalf("fastChunk took %q", data)
				}
				want.Call, want.CallID = *f.Index, string(f.ID)
				want.Name, want.Args = string(f.Function.Name), argText(f.Function.Arguments)
			}
		}
		got := result{ID: string(fast.id), Model: string(fast.model), Text: string(fast.text), Thinking: string(fast.thinking), Call: -1}
		if c := fast.call; fast.hasCall {
			got.Call, got.CallID, got.Name, got.Args = c.index, string(c.id), string(c.name), string(c.args)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-encoding/json +fastChunk):\n%s", data, diff)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\x00\x7f", "é漢🙂\u2028", "\xff\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("appendString(%q) is not JSON: %v", s, err)
		}
		var want string
		data, _ := json.Marshal(s)
		if err := json.Unmarshal(data, &want); err != nil || got != want {
			t.Errorf("appendString(%q) reads as %q, want %q", s, got, want)
		}
	})
}

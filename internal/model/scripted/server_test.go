package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file below testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-golden +got):\n%s", name, d)
	}
}

const everything = `{"emit": [
  {"thinking": "Hm, <b>.", "signature": "c2lnMQ=="},
  {"text": ["I ", "do \"it\"."]},
  {"tool": "read_file", "input": {"path": "a.go"}, "by": 8, "signature": "c2lnMg=="},
  {"tool": "glob", "input": {}, "id": "own_id"},
  {"usage": {"input": 10, "output": 20, "thinking": 5, "cache_read": 3, "cache_write": 2}}
]}`

func TestFormatsOverTheWire(t *testing.T) {
	t.Parallel()
	for _, a := range apis {
		_, body, err := ask(t, serve(t, everything, ServerOptions{}), a, "hi")
		if err != nil {
			t.Error(err)
		}
		golden(t, string(a.format)+".sse", strings.ReplaceAll(body, "\r\n", "\n"))
		whole := a
		whole.path = strings.Replace(whole.path, ":streamGenerateContent?alt=sse", ":generateContent", 1)
		whole.body = strings.Replace(strings.Replace(whole.body, `"stream":true,`, "", 1), `"stream_options":{"include_usage":true},`, "", 1)
		resp, body, err := ask(t, serve(t, everything, ServerOptions{}), whole, "hi")
		var pretty bytes.Buffer
		if err != nil || json.Indent(&pretty, []byte(body), "", "  ") != nil || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v, %s\n%s", a.format, err, resp.Header, body)
		}
		golden(t, string(a.format)+".json", pretty.String())
	}
}

func TestLineEndsOfGeminiAreCRLF(t *testing.T) {
	t.Parallel()
	_, body, _ := ask(t, serve(t, everything, ServerOptions{}), apiOf(FormatGemini), "hi")
	if strings.Count(body, "\r\n\r\n") != strings.Count(body, "data: ") || strings.Contains(strings.ReplaceAll(body, "\r\n", ""), "\n") {
		t.Errorf("%q", body)
	}
}

func TestUsageOfOpenAIOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	a := apiOf(FormatOpenAI)
	a.body = strings.Replace(a.body, `"stream_options":{"include_usage":true},`, "", 1)
	if _, body, _ := ask(t, serve(t, everything, ServerOptions{}), a, "hi"); strings.Contains(body, "usage") {
		t.Error(body)
	}
}

func TestBrokenToolInputOverTheWire(t *testing.T) {
	t.Parallel()
	for f, want := range map[Format]string{
		FormatGemini:    `"finishReason":"MALFORMED_FUNCTION_CALL"`,
		FormatOpenAI:    `"arguments":"{\"path\": "`,
		FormatAnthropic: `"partial_json":"{\"path\": "`,
	} {
		if _, body, _ := ask(t, serve(t, `{"emit": [{"tool": "t", "input_text": "{\"path\": "}]}`, ServerOptions{}), apiOf(f), "hi"); !strings.Contains(body, want) {
			t.Errorf("%s: %s", f, body)
		}
	}
}

func TestBlockedPromptOfGemini(t *testing.T) {
	t.Parallel()
	resp, body, _ := ask(t, serve(t, `{"emit": [{"error": "blocked"}]}`, ServerOptions{}), apiOf(FormatGemini), "hi")
	if resp.StatusCode != 200 || !strings.Contains(body, `"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}`) {
		t.Error(resp.Status, body)
	}
}

// refused sends body and wants a 400 whose message has want; "" wants success.
func refused(t *testing.T, srv *httptest.Server, a api, body, want string) {
	t.Helper()
	resp := send(t, srv, a, body)
	b, _ := io.ReadAll(resp.Body)
	var doc struct {
		Error struct{ Message string }
	}
	switch err := json.Unmarshal(b, &doc); {
	case want == "" && resp.StatusCode != 200:
		t.Errorf("%s\nrefused: %s", body, b)
	case want != "" && (resp.StatusCode != 400 || err != nil || !strings.Contains(doc.Error.Message, want)):
		t.Errorf("%s\ngot  %s %s\nwant %s", body, resp.Status, b, want)
	}
}

const always = `{"use": "always", "emit": [{"text": "ok"}]}`

func TestBadRequestsToOpenAI(t *testing.T) {
	t.Parallel()
	srv := serve(t, always, ServerOptions{})
	const (
		u    = `{"role":"user","content":"x"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":"{}"}}]}`
		tool = `{"role":"tool","tool_call_id":"c1","content":"r"}`
	)
	for messages, want := range map[string]string{
		u:                                        "",
		`{"role":"system","content":"s"},` + u:   "",
		u + `,` + call + `,` + tool:              "",
		u + `,` + call:                           "must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: c1",
		u + `,` + call + `,` + u:                 "did not have response messages: c1",
		u + `,` + tool:                           "must be a response to a preceeding message with 'tool_calls'",
		u + `,` + call + `,` + tool + `,` + tool: "must be a response to a preceeding message",
		``:                                       "Invalid 'messages': empty array",
		`{"role":"robot","content":"x"}`:         "Invalid value: 'robot'",
		`{"role":"user","content":null}`:         "Invalid value for 'content'",
		`{"role":"user","content":[]}`:           "Invalid 'messages[0].content': empty array",
		`{"role":"user","content":[{"type":"text","text":""}]}`: "Invalid 'messages[0].content[0].text': empty string",
		`{"role":"user","content":[{"type":"video"}]}`:          "Invalid value: 'video'",
		`{"role":"user","content":7}`:                           "Invalid type for 'messages[0].content'",
		u + `,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":{}}}]},` + tool: "function.arguments': expected a string",
		u + `,{"role":"assistant","content":null}`: "Invalid value for 'content'",
	} {
		refused(t, srv, apiOf(FormatOpenAI), `{"model":"m","stream":true,"messages":[`+messages+`]}`, want)
	}
	for body, want := range map[string]string{
		`{`:                        "could not parse the JSON body",
		`{"messages":[` + u + `]}`: "you must provide a model parameter",
		`{"model":"m","tools":[],"messages":[` + u + `]}`:                                              "Invalid 'tools': empty array",
		`{"model":"m","tools":[{"type":"function","function":{"name":"a b"}}],"messages":[` + u + `]}`: "Invalid 'tools[0].function.name'",
	} {
		refused(t, srv, apiOf(FormatOpenAI), body, want)
	}
}

func TestBadRequestsToAnthropic(t *testing.T) {
	t.Parallel()
	srv := serve(t, always, ServerOptions{})
	a := apiOf(FormatAnthropic)
	const (
		u    = `{"role":"user","content":"x"}`
		call = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t","input":{}}]}`
		res  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}`
	)
	for messages, want := range map[string]string{
		u:                          "",
		u + `,` + call + `,` + res: "",
		u + `,` + call:             "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1",
		u + `,` + call + `,` + u:   "`tool_use` ids were found without `tool_result` blocks immediately after: c1",
		res:                        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c1",
		u + `,` + call + `,` + res + `,` + call + `,` + res: "`tool_use` ids must be unique",
		``:                                   "at least one message is required",
		`{"role":"assistant","content":"x"}`: `first message must use the "user" role`,
		`{"role":"user","content":"x"},{"role":"system","content":"x"}`:                                                                 `Unexpected role "system"`,
		`{"role":"user","content":""}`:                                                                                                  "text content blocks must be non-empty",
		`{"role":"user","content":[]}`:                                                                                                  "messages.0: all messages must have non-empty content",
		`{"role":"user","content":[{"type":"text","text":""}]}`:                                                                         "text content blocks must be non-empty",
		`{"role":"user","content":[{"type":"text"}]}`:                                                                                   "messages.0.content.0.text.text: Field required",
		`{"role":"user","content":[{"type":"movie"}]}`:                                                                                  "Input tag 'movie'",
		`{"role":"user","content":[{"type":"image"}]}`:                                                                                  "messages.0.content.0.image.source: Field required",
		`{"role":"user","content":7}`:                                                                                                   "messages.0.content: Input should be a valid list",
		u + `,{"role":"assistant","content":[{"type":"tool_use","id":"a b","name":"t","input":{}}]}`:                                    "tool_use.id: String should match pattern",
		u + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":"{}"}]}`:                                    "tool_use.input: Input should be a valid dictionary",
		u + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"y"}]}`:                           "messages.1.content.0.thinking.signature: Field required",
		u + `,` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":""}]}]}`: "text content blocks must be non-empty",
	} {
		refused(t, srv, a, `{"model":"m","max_tokens":9,"stream":true,"messages":[`+messages+`]}`, want)
	}
	mark := `"cache_control":{"type":"ephemeral"}`
	five := strings.Repeat(`{"type":"text","text":"x",`+mark+`},`, 5)
	for body, want := range map[string]string{
		`{"max_tokens":9,"messages":[` + u + `]}`:                                                                     "model: Field required",
		`{"model":"m","messages":[` + u + `]}`:                                                                        "max_tokens: Field required",
		`{"model":"m","max_tokens":0,"messages":[` + u + `]}`:                                                         "max_tokens: Input should be greater",
		`{"model":"m","max_tokens":9,"system":[{"type":"text"}],"messages":[` + u + `]}`:                              "system.0.text: text content blocks must be non-empty",
		`{"model":"m","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + u + `]}`:   "`max_tokens` must be greater than `thinking.budget_tokens`",
		`{"model":"m","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":20},"messages":[` + u + `]}`:     "greater than or equal to 1024",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + strings.TrimSuffix(five, ",") + `]}]}`: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
		`{"model":"m","max_tokens":9,"tools":[{"name":"a b"}],"messages":[` + u + `]}`:                                "tools.0.custom.name",
	} {
		refused(t, srv, a, body, want)
	}
	a.header = map[string]string{"X-Api-Key": "k"}
	refused(t, srv, a, prompted(a, "hi"), "anthropic-version: header is required")
}

func TestBadRequestsToGemini(t *testing.T) {
	t.Parallel()
	srv := serve(t, always, ServerOptions{})
	a := apiOf(FormatGemini)
	const (
		u    = `{"role":"user","parts":[{"text":"x"}]}`
		call = `{"role":"model","parts":[{"functionCall":{"name":"t","args":{}}},{"functionCall":{"name":"v","args":{}}}]}`
		res  = `{"role":"user","parts":[{"functionResponse":{"name":"t","response":{}}},{"functionResponse":{"name":"v","response":{}}}]}`
	)
	for contents, want := range map[string]string{
		u:                          "",
		u + `,` + call + `,` + res: "",
		u + `,` + call:             "number of function response parts is equal to the number of function call parts",
		u + `,` + call + `,` + u:   "number of function response parts is equal",
		u + `,` + call + `,` + `{"role":"user","parts":[{"functionResponse":{"name":"t","response":{}}}]}`: "number of function response parts is equal",
		u + `,` + call + `,` + strings.ReplaceAll(res, `"v"`, `"w"`):                                       `functionResponse \"w\"`,
		u + `,` + res: "function response turn comes immediately after a function call turn",
		call:          "function call turn comes immediately after a user turn",
		u + `,{"role":"model","parts":[{"text":"x"}]},` + call + `,` + res: "function call turn comes immediately after a user turn",
		``: "contents is not specified",
		`{"role":"assistant","parts":[{"text":"x"}]}`: "Please use a valid role: user, model.",
		`{"role":"user","parts":[]}`:                  "contents[0].parts: contents.parts must not be empty",
		`{"role":"user","parts":[{}]}`:                "required oneof field 'data'",
		`{"role":"user","parts":[{"text":""}]}`:       "must have a text parameter",
	} {
		refused(t, srv, a, `{"contents":[`+contents+`]}`, strings.ReplaceAll(want, `\"`, `"`))
	}
	refused(t, srv, a, `{`, "Invalid JSON payload received.")
	a.path = strings.TrimSuffix(a.path, "?alt=sse")
	refused(t, srv, a, prompted(a, "hi"), "add ?alt=sse")
}

// TestGeminiWantsThoughtSignaturesBack sends two parallel calls back in all the
// ways in which clients get it wrong.
func TestGeminiWantsThoughtSignaturesBack(t *testing.T) {
	t.Parallel()
	srv := serve(t, `{"emit": [{"tool": "a", "input": {"x": 1, "y": "<"}}, {"tool": "b", "input": {}}]}`+always, ServerOptions{})
	a := apiOf(FormatGemini)
	_, body, _ := ask(t, srv, a, "hi")
	_, rest, _ := strings.Cut(body, `"thoughtSignature":"`)
	sig, _, ok := strings.Cut(rest, `"`)
	if !ok || strings.Contains(rest, "thoughtSignature") {
		t.Fatalf("want one signature, on the first call:\n%s", body)
	}
	signed := func(s string) string { return `,"thoughtSignature":"` + s + `"` }
	history := func(first, second string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` +
			`{"functionCall":{"name":"a","args":{"y":"\u003c","x":1}}` + first + `},{"functionCall":{"name":"b"}` + second + `}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"a","response":{}}},{"functionResponse":{"name":"b","response":{}}}]}]}`
	}
	const missing = "Function call is missing a thought_signature in functionCall parts"
	refused(t, srv, a, history(signed(sig), ""), "")
	refused(t, srv, a, history("", ""), missing)
	refused(t, srv, a, history("", signed(sig)), missing)
	refused(t, srv, a, history(signed("AAAA"), ""), "Corrupted thought signature")
	refused(t, srv, a, history(signed(sig[:len(sig)-4]), ""), "Corrupted thought signature")
	refused(t, srv, a, history(signed(madeSignature(FormatAnthropic, 1, 0, "x")), ""), "Corrupted thought signature")
	split := strings.Replace(history(signed(sig), ""), `},{"functionCall":{"name":"b"}}]},`,
		`}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{}}}]},{"role":"model","parts":[{"functionCall":{"name":"b"}}]},`, 1)
	split = strings.Replace(split, `{"functionResponse":{"name":"a","response":{}}},`, "", 1)
	refused(t, srv, a, split, missing)
	other := strings.ReplaceAll(history("", ""), `"name":"a"`, `"name":"other"`)
	refused(t, srv, a, strings.ReplaceAll(other, `"name":"b"`, `"name":"else"`), "") // calls of another provider have none
}

// TestAnthropicWantsThinkingBack sends thinking back right and wrong.
func TestAnthropicWantsThinkingBack(t *testing.T) {
	t.Parallel()
	srv := serve(t, `{"emit": [{"thinking": "Hm.", "repeat": 2}, {"tool": "a"}]}`+always, ServerOptions{})
	a := apiOf(FormatAnthropic)
	_, body, _ := ask(t, srv, a, "hi")
	_, rest, _ := strings.Cut(body, `"signature_delta","signature":"`)
	sig, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatal(body)
	}
	history := func(thinking string) string {
		return `{"model":"m","max_tokens":9000,"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[` + thinking + `{"type":"tool_use","id":"toolu_1_1","name":"a","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_1"}]}]}`
	}
	think := func(text, sig string) string {
		return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":%q},`, text, sig)
	}
	const bad = "Invalid `signature` in `thinking` block"
	refused(t, srv, a, history(think("Hm.Hm.", sig)), "")
	refused(t, srv, a, history(think("Hm.Hm.", "AAAA")), bad)
	refused(t, srv, a, history(think("Hm.", sig)), bad)
	refused(t, srv, a, history(think("Hm.Hm.", "")), "thinking.signature: Field required")
	refused(t, srv, a, history(think("foreign", madeSignature(FormatGemini, 1, 0, "x"))), bad)
	refused(t, srv, a, history(""), "Expected `thinking` or `redacted_thinking`, but found `tool_use`")
	refused(t, srv, a, strings.Replace(history(""), `"thinking":{"type":"enabled","budget_tokens":2000},`, "", 1), "")
}

func TestLenientTakesWhatIsBroken(t *testing.T) {
	t.Parallel()
	srv := serve(t, always, ServerOptions{Lenient: true})
	refused(t, srv, apiOf(FormatOpenAI), `{"stream":true,"messages":[{"role":"tool","tool_call_id":"x","content":"r"}]}`, "")
	refused(t, srv, apiOf(FormatAnthropic), `{"stream":true,"messages":[{"role":"assistant","content":""}]}`, "")
	refused(t, srv, apiOf(FormatGemini), `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"t"}}]}]}`, "")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	vertex := apiOf(FormatGemini)
	vertex.path = "/v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent?alt=sse"
	for _, tc := range []struct {
		name   string
		a      api
		header map[string]string
		opts   ServerOptions
		status int
		want   string
	}{
		{"openai, none", apiOf(FormatOpenAI), nil, ServerOptions{}, 401, "You didn't provide an API key"},
		{"openai, wrong", apiOf(FormatOpenAI), map[string]string{"Authorization": "Bearer no"}, ServerOptions{Key: "k"}, 401, "invalid_api_key"},
		{"openai, right", apiOf(FormatOpenAI), map[string]string{"Authorization": "Bearer k"}, ServerOptions{Key: "k"}, 200, ""},
		{"openai, no auth", apiOf(FormatOpenAI), nil, ServerOptions{NoAuth: true}, 200, ""},
		{"anthropic, none", apiOf(FormatAnthropic), nil, ServerOptions{}, 401, "x-api-key header is required"},
		{"anthropic, wrong", apiOf(FormatAnthropic), map[string]string{"X-Api-Key": "no"}, ServerOptions{Key: "k"}, 401, "authentication_error"},
		{"anthropic, token", apiOf(FormatAnthropic), map[string]string{"Authorization": "Bearer k", "Anthropic-Version": "1"}, ServerOptions{Key: "k"}, 200, ""},
		{"gemini, none", apiOf(FormatGemini), nil, ServerOptions{}, 403, "PERMISSION_DENIED"},
		{"gemini, wrong", apiOf(FormatGemini), map[string]string{"X-Goog-Api-Key": "no"}, ServerOptions{Key: "k"}, 400, "API_KEY_INVALID"},
		{"gemini, right", apiOf(FormatGemini), map[string]string{"X-Goog-Api-Key": "k"}, ServerOptions{Key: "k"}, 200, ""},
		{"vertex, none", vertex, nil, ServerOptions{}, 401, "UNAUTHENTICATED"},
		{"vertex, token", vertex, map[string]string{"Authorization": "Bearer k"}, ServerOptions{Key: "k"}, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.a.header = tc.header
			resp, body, _ := ask(t, serve(t, always, tc.opts), tc.a, "hi")
			if resp.StatusCode != tc.status || !strings.Contains(body, tc.want) {
				t.Error(resp.Status, body)
			}
			if tc.status != 200 && model.HTTPError("x", resp, []byte(body)).Kind != model.ErrAuth {
				t.Error("not understood as an authentication error")
			}
		})
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	srv := serve(t, `{"script": 1, "models": ["a", "b"]}`+always, ServerOptions{})
	for path, want := range map[string]string{
		"/v1/models":      `{"data":[{"created":1735689600,"id":"a","object":"model","owned_by":"scripted"},{"created":1735689600,"id":"b","object":"model","owned_by":"scripted"}],"object":"list"}`,
		"/models":         `"object":"list"`,
		"/v1beta/models":  `"name":"models/a"`,
		"/nothing/at/all": `"code":"unknown_url"`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	for _, a := range apis {
		resp, body, _ := ask(t, srv, a, "hi")
		if resp.StatusCode != 404 || model.HTTPError("x", resp, []byte(body)).Kind != model.ErrNotFound {
			t.Errorf("%s: unknown model: %s %s", a.format, resp.Status, body)
		}
	}
}

// TestRequestsAreSeenAndLogged also checks that the three formats are
// understood as the same conversation.
func TestRequestsAreSeenAndLogged(t *testing.T) {
	t.Parallel()
	bodies := map[Format]string{
		FormatGemini: `{"systemInstruction":{"parts":[{"text":"sys"}]},"tools":[{"functionDeclarations":[{"name":"t","description":"d","parametersJsonSchema":{}}]}],"contents":[
			{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"AQID"}}]},{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"c","name":"t","args":{"a":1}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"t","response":{"output":"res"}}}]}]}`,
		FormatOpenAI: `{"model":"gpt-x","stream":true,"tools":[{"type":"function","function":{"name":"t","description":"d","parameters":{}}}],"messages":[{"role":"system","content":"sys"},
			{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]},
			{"role":"assistant","content":"ok","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"res"}]}`,
		FormatAnthropic: `{"model":"claude-x","max_tokens":5,"stream":true,"system":"sys","tools":[{"name":"t","description":"d","input_schema":{}}],"messages":[
			{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}]},
			{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c","name":"t","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"res"}]}]}`,
	}
	for _, a := range apis {
		var (
			mu   sync.Mutex
			seen []Request
			log  bytes.Buffer
		)
		srv := serve(t, `{"when": {"user": "look", "tool": "t", "result": "res", "turn": 2, "system": "sys"}, "emit": [{"text": "ok"}]}`, ServerOptions{
			Log: &log, OnRequest: func(r Request) { mu.Lock(); seen = append(seen, r); mu.Unlock() }})
		for range 2 {
			_, _ = io.ReadAll(send(t, srv, a, bodies[a.format]).Body)
		}
		srv.Close() // ends the handlers, which write the log
		if len(seen) != 2 || seen[0].Step != 1 || seen[0].Format != a.format || !seen[0].Stream || seen[1].Step != 0 || !strings.Contains(seen[1].Error, "used up") || seen[0].Header.Get("User-Agent") == "" {
			t.Errorf("%s: %+v", a.format, seen)
			continue
		}
		r := seen[0].Parsed
		name := ""
		if a.format == FormatGemini {
			name = "t" // the other formats do not say it again
		}
		want := &model.Request{Model: r.Model, MaxOutputTokens: r.MaxOutputTokens, System: "sys", Tools: []model.ToolSpec{{Name: "t", Description: "d", Schema: json.RawMessage("{}")}}, Messages: []*model.Message{
			user(say("look"), model.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}),
			assistant(say("ok"), model.ToolUse{ID: "c", Name: "t", Input: json.RawMessage(`{"a":1}`)}),
			user(model.ToolResult{ToolUseID: "c", Name: name, Blocks: []model.Block{say("res")}}),
		}}
		if d := cmp.Diff(want, r); d != "" {
			t.Errorf("%s: %s", a.format, d)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		var first, second map[string]any
		if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[1]), &second) != nil ||
			first["status"] != 200.0 || first["end"] != "finished" || second["status"] != 400.0 || second["end"] != "refused" {
			t.Errorf("log: %s", log.String())
		}
	}
}

func TestServeEndsStalledAnswersAndReturns(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, ln, Handler(parse(t, `{"emit": [{"text": "half"}, {"fault": "stall"}]}`), ServerOptions{NoAuth: true}))
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	a := apiOf(FormatOpenAI)
	resp, err := client.Post("http://"+ln.Addr().String()+a.path, "application/json", strings.NewReader(prompted(a, "hi")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "half") || finished(FormatOpenAI, string(body)) {
		t.Errorf("%s", body)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// lines hands on what is written, line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

func TestRunSaysWhereItServes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonc")
	if err := os.WriteFile(path, []byte(always), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := make(lines, 1)
	served := make(chan error, 1)
	go func() { served <- Run(ctx, ServeOptions{Script: path, Out: out}) }()
	text := <-out
	_, at, _ := strings.Cut(text, " at ")
	at, _, _ = strings.Cut(at, "\n")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(at + "/v1/models")
	if err != nil || resp.StatusCode != 401 {
		t.Errorf("%s: %v %v", text, resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := Run(t.Context(), ServeOptions{Script: path + ".no"}); err == nil {
		t.Error("a script that is not there is served")
	}
	if err := Run(t.Context(), ServeOptions{Script: path, Listen: "256.0.0.1:0"}); err == nil {
		t.Error("an address that cannot be is listened on")
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	srv := serve(t, `{"use": 50, "emit": [{"text": "a b c", "by": "word"}]}`, ServerOptions{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			a := apis[i%len(apis)]
			if _, body, err := ask(t, srv, a, "hi"); err != nil || !finished(a.format, body) {
				t.Error(err, body)
			}
		})
	}
	wg.Wait()
	if resp, _, _ := ask(t, srv, apis[0], "hi"); resp.StatusCode != 400 {
		t.Error("a step was used too often:", resp.Status)
	}
}

// BenchmarkDeltas serves 100,000 deltas per answer.
func BenchmarkDeltas(b *testing.B) {
	const n = 100_000
	for _, every := range []int{1, 100} {
		for _, a := range apis {
			b.Run(fmt.Sprintf("%s/flush=%d", a.format, every), func(b *testing.B) {
				srv := serve(b, fmt.Sprintf(`{"use": "always", "emit": [{"text": "word ", "repeat": %d}]}`, n), ServerOptions{FlushEvery: every})
				for b.Loop() {
					resp := send(b, srv, a, prompted(a, "hi"))
					got, err := io.Copy(io.Discard, resp.Body)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(got)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/delta")
			})
		}
	}
}

func FuzzRequests(f *testing.F) {
	for i, a := range apis {
		f.Add(uint8(i), []byte(prompted(a, "hi")))
	}
	f.Add(uint8(0), []byte(`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"t"}}]},{"role":"user","parts":[{"functionResponse":{"name":"t","response":{"error":1},"parts":[{"inlineData":{"mimeType":"x"}}]}}]}]}`))
	f.Add(uint8(1), []byte(`{"model":"m","messages":[{"role":"assistant","content":[{"type":"refusal"}],"tool_calls":[{"id":"a","type":"function","function":{"arguments":"{"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`))
	f.Add(uint8(2), []byte(`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"image","source":{"url":"x"}}]},{"role":"assistant","content":[]}]}`))
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		a := apis[int(which)%len(apis)]
		h := Handler(parse(t, `{"emit": [{"thinking": "t"}, {"text": "x"}, {"tool": "t"}]}`), ServerOptions{Log: io.Discard})
		r := httptest.NewRequest(http.MethodPost, a.path, bytes.NewReader(body))
		for k, v := range a.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %s", w.Code, w.Body.String())
		}
	})
}

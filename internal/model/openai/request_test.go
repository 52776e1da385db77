package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

// body encodes req for a server at base and reads it back.
func body(tb testing.TB, base string, req *model.Request) map[string]any {
	tb.Helper()
	p, err := New(Options{BaseURL: base})
	if err != nil {
		tb.Fatal(err)
	}
	raw := p.(*provider).body(req, 0)
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return m
}

func parse(tb testing.TB, s string) any {
	tb.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return v
}

func user(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleUser, Blocks: blocks}
}

func assistant(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleAssistant, Blocks: blocks}
}

func result(id, text string) model.ToolResult {
	return model.ToolResult{ToolUseID: id, Name: "read_file", Blocks: []model.Block{model.Text{Text: text}}}
}

func called(id string) model.ToolUse {
	return model.ToolUse{ID: id, Name: "read_file", Input: json.RawMessage(`{"path":"a"}`)}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const call = `{"id":"x","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}`
	png := model.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}
	for _, tt := range []struct {
		name string
		base string
		msgs []*model.Message
		want string
	}{
		{"text", "", []*model.Message{user(model.Text{Text: "a"}, model.Text{Text: "b"}), assistant(model.Text{Text: "c"}), user(model.Text{Text: "\u2028\"<\xff"})},
			`[{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"},{"role":"user","content":"\u2028\"<\ufffd"}]`},
		{"thinking and signatures stay here", "", []*model.Message{user(model.Text{Text: "a"}), assistant(model.Thinking{Text: "hm", Sig: model.Signature{Provider: "gemini", Value: "s"}}, model.Text{Text: "b", Sig: model.Signature{Provider: "gemini", Value: "s"}}), assistant(model.Thinking{Text: "only"})},
			`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`},
		{"call and result", "", []*model.Message{assistant(model.Text{Text: "t"}, called("x")), user(result("x", "r"), model.Text{Text: "go on"})},
			`[{"role":"assistant","content":"t","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"r"},{"role":"user","content":"go on"}]`},
		{"call without text", "", []*model.Message{assistant(called("x")), user(result("x", ""))},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"(no output)"}]`},
		{"error result", "", []*model.Message{assistant(called("x")), user(model.ToolResult{ToolUseID: "x", IsError: true, Blocks: []model.Block{model.Text{Text: "denied"}}})},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"Error: denied"}]`},
		{"missing result", "", []*model.Message{assistant(called("x")), user(model.Text{Text: "hello"})},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"[no result: the call was not completed]"},{"role":"user","content":"hello"}]`},
		{"missing result at the end", "", []*model.Message{assistant(called("x"))},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"[no result: the call was not completed]"}]`},
		{"stray result", "", []*model.Message{user(result("gone", "r"), model.Text{Text: "hello"})},
			`[{"role":"user","content":"[result of an earlier tool call]\nr"},{"role":"user","content":"hello"}]`},
		{"result given twice", "", []*model.Message{assistant(called("x")), user(result("x", "r"), result("x", "r2"))},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"r"},{"role":"user","content":"[result of an earlier tool call]\nr2"}]`},
		{"results in two messages", "", []*model.Message{assistant(called("x"), called("y")), user(result("y", "ry")), user(result("x", "rx"))},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `,` + strings.Replace(call, `"x"`, `"y"`, 1) + `]},{"role":"tool","tool_call_id":"y","content":"ry"},{"role":"tool","tool_call_id":"x","content":"rx"}]`},
		{"image", "", []*model.Message{user(model.Text{Text: "a"}, png)},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]}]`},
		{"image by address", "", []*model.Message{user(model.Image{URL: "https://x/y.png"})},
			`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]`},
		{"image in a result", "", []*model.Message{assistant(called("x")), user(model.ToolResult{ToolUseID: "x", Name: "read_file", Blocks: []model.Block{png}}, model.Text{Text: "b"})},
			`[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"x","content":"(the result is in the next message)"},` +
				`{"role":"user","content":[{"type":"text","text":"[from the result of tool read_file]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},{"type":"text","text":"b"}]}]`},
		{"PDF where files are taken", "", []*model.Message{user(model.Document{MediaType: "application/pdf", Name: "a.pdf", Data: []byte{1}})},
			`[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQ=="}}]}]`},
		{"PDF elsewhere", "http://localhost:11434/v1", []*model.Message{user(model.Document{MediaType: "application/pdf", Name: "a.pdf", Data: []byte{1}})},
			`[{"role":"user","content":"[a.pdf: application/pdf of 1 bytes, which cannot be shown to this model]"}]`},
		{"text document", "http://localhost:11434/v1", []*model.Message{user(model.Document{MediaType: "text/markdown", Data: []byte("# x")})},
			`[{"role":"user","content":"[document]\n# x"}]`},
		{"nothing to say", "", []*model.Message{user(), user(model.Text{}), user(model.Text{Text: "a"})}, `[{"role":"user","content":"a"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := body(t, tt.base, &model.Request{Model: "m", Messages: tt.msgs})
			if diff := cmp.Diff(parse(t, tt.want), got["messages"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForeignIDsAreMappedAlikeOnBothSides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, id string }{
		{"", "toolu_01ABC"}, {"", "call 1/ü"}, {"", strings.Repeat("x", 200)}, {"https://api.mistral.ai/v1", "toolu_01ABC"}, {"https://api.mistral.ai/v1", "abcDEF123"},
	} {
		m := body(t, tt.base, &model.Request{Model: "m", Messages: []*model.Message{assistant(called(tt.id)), user(result(tt.id, "r"))}})
		msgs := m["messages"].([]any)
		id := msgs[0].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["id"].(string)
		if answer := msgs[1].(map[string]any)["tool_call_id"]; answer != id || !fits(id) {
			t.Errorf("%q became %q in the call and %q in the result", tt.id, id, answer)
		}
		if strings.Contains(tt.base, "mistral") && (len(id) != 9 || hasPunct(id)) {
			t.Errorf("%q became %q, which Mistral does not take", tt.id, id)
		}
	}
	if wireName("a b") == wireName("a_b") || wireName(strings.Repeat("x", 65)) == wireName(strings.Repeat("x", 66)) {
		t.Error("different ids became the same")
	}
}

func TestToolNamesThatTheAPIRefusesAreMappedAndFoundAgain(t *testing.T) {
	t.Parallel()
	req := &model.Request{Model: "m", Tools: []model.ToolSpec{spec("mcp.server/do it", `{"type":"object"}`), {Name: "plain"}}}
	tools := body(t, "", req)["tools"].([]any)
	name := tools[0].(map[string]any)["function"].(map[string]any)["name"].(string)
	if !fits(name) {
		t.Errorf("name %q", name)
	}
	if got, ok := newToolset(req).resolve(name); !ok || got != "mcp.server/do it" {
		t.Errorf("%q resolves to %q", name, got)
	}
	if diff := cmp.Diff(parse(t, `{"type":"object","properties":{}}`), tools[1].(map[string]any)["function"].(map[string]any)["parameters"]); diff != "" {
		t.Error(diff)
	}
}

func TestParametersByServer(t *testing.T) {
	t.Parallel()
	warm := 0.5
	for _, tt := range []struct {
		name, base string
		req        model.Request
		want       string
	}{
		{"OpenAI", "", model.Request{Model: "gpt-5", MaxOutputTokens: 10, Temperature: &warm, TopP: &warm, ThinkingBudget: 8000, SessionID: "s"},
			`{"max_completion_tokens":10,"temperature":0.5,"top_p":0.5,"reasoning_effort":"medium","prompt_cache_key":"s"}`},
		{"OpenAI, an effort", "", model.Request{Model: "gpt-5", Effort: model.EffortMax}, `{"reasoning_effort":"high"}`},
		{"OpenAI, the highest effort", "", model.Request{Model: "gpt-5.2", Effort: model.EffortMax}, `{"reasoning_effort":"xhigh"}`},
		{"OpenAI, an effort without reasoning", "", model.Request{Model: "gpt-4o", Effort: model.EffortLow}, `{}`},
		{"OpenRouter, an effort", "https://openrouter.ai/api/v1", model.Request{Model: "a/b", Effort: model.EffortMax}, `{"reasoning":{"effort":"xhigh"}}`},
		{"DashScope, an effort", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", model.Request{Model: "qwen3", Effort: model.EffortMedium}, `{"enable_thinking":true,"thinking_budget":8192}`},
		{"OpenAI, thinking off", "", model.Request{Model: "gpt-5", ThinkingBudget: -1}, `{"reasoning_effort":"minimal"}`},
		{"OpenAI, thinking off in newer models", "", model.Request{Model: "gpt-5.1", ThinkingBudget: -1}, `{"reasoning_effort":"none"}`},
		{"OpenAI, a model without reasoning", "", model.Request{Model: "gpt-4o", ThinkingBudget: 8000}, `{}`},
		{"local", "http://localhost:8080/v1", model.Request{Model: "qwen3", MaxOutputTokens: 10, ThinkingBudget: 8000, SessionID: "s"}, `{"max_tokens":10}`},
		{"local gpt-oss", "http://localhost:8080/v1", model.Request{Model: "openai/gpt-oss-20b", ThinkingBudget: 20000}, `{"reasoning_effort":"high"}`},
		{"OpenRouter", "https://openrouter.ai/api/v1", model.Request{Model: "a/b", ThinkingBudget: 8000}, `{"reasoning":{"max_tokens":8000}}`},
		{"OpenRouter, thinking off", "https://openrouter.ai/api/v1", model.Request{Model: "a/b", ThinkingBudget: -1}, `{"reasoning":{"enabled":false}}`},
		{"DashScope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", model.Request{Model: "qwen3", ThinkingBudget: 8000}, `{"enable_thinking":true,"thinking_budget":8000}`},
		{"DashScope, thinking off", "https://dashscope.aliyuncs.com/compatible-mode/v1", model.Request{Model: "qwen3", ThinkingBudget: -1}, `{"enable_thinking":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := body(t, tt.base, &tt.req)
			for key, value := range map[string]any{"stream": true, "model": tt.req.Model} {
				if got[key] != value {
					t.Errorf("%s is %v", key, got[key])
				}
			}
			if diff := cmp.Diff(parse(t, `{"include_usage":true}`), got["stream_options"]); diff != "" {
				t.Error(diff)
			}
			for _, key := range []string{"model", "stream", "stream_options", "messages"} {
				delete(got, key)
			}
			if diff := cmp.Diff(parse(t, tt.want), any(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedOptionalParametersAreLeftOutAndRemembered(t *testing.T) {
	t.Parallel()
	warm := 0.5
	full := model.Request{Model: "m", MaxOutputTokens: 5, Temperature: &warm, TopP: &warm, ThinkingBudget: 100}
	ok := events(text("hi"), finish("stop"))
	for _, tt := range []struct {
		name, model string
		code        int
		refusal     string
		gone, there string
	}{
		{"stream_options", "m", 400, `{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options')}]","type":"BadRequestError","code":400}`, "stream_options", "temperature"},
		{"stream_options of FastAPI", "m", 422, `{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted","type":"value_error.extra"}]}`, "stream_options", "temperature"},
		{"max_tokens", "m", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, `"max_tokens"`, `"max_completion_tokens"`},
		{"temperature", "m", 400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`, "temperature", "stream_options"},
		{"top_p", "m", 400, `{"error":{"message":"Unsupported parameter: 'top_p' is not supported with this model.","type":"invalid_request_error","param":"top_p","code":"unsupported_parameter"}}`, "top_p", "temperature"},
		{"reasoning_effort", "gpt-oss", 400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error"}}`, "reasoning_effort", "temperature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, status(tt.code, tt.refusal), ok)
			p := s.provider(t, Options{})
			req := full
			req.Model = tt.model
			for range 2 {
				if _, err := stream(t, t.Context(), p, &req); err != nil {
					t.Fatal(err)
				}
			}
			sent := s.requests()
			if len(sent) != 3 {
				t.Fatalf("%d requests, want 3", len(sent))
			}
			if !strings.Contains(sent[0], tt.gone) {
				t.Errorf("%s was not in the first request", tt.gone)
			}
			for _, b := range sent[1:] {
				if strings.Contains(b, tt.gone) || !strings.Contains(b, tt.there) {
					t.Errorf("sent %s", b)
				}
			}
		})
	}
}

func TestARefusalOfSomethingElseIsFinal(t *testing.T) {
	t.Parallel()
	warm := 3.0
	for _, refusal := range []string{
		`{"error":{"message":"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.","type":"invalid_request_error","param":"temperature"}}`,
		`{"error":{"message":"max_tokens is too large: 5. This model's maximum context length is 4 tokens","type":"invalid_request_error"}}`,
		`{"error":{"message":"registry.ollama.ai/library/gemma does not support tools","type":"api_error"}}`,
	} {
		s := serve(t, status(400, refusal), events(text("hi"), finish("stop")))
		_, err := stream(t, t.Context(), s.provider(t, Options{}), &model.Request{Model: "m", Temperature: &warm, MaxOutputTokens: 5})
		var e *model.Error
		if !errors.As(err, &e) || e.Status != 400 || len(s.requests()) != 1 {
			t.Errorf("%d requests, error %v", len(s.requests()), err)
		}
	}
}

func TestAServerThatRefusesForeverIsAskedOnlyAFewTimes(t *testing.T) {
	t.Parallel()
	warm := 0.5
	s := serve(t, status(400, `{"error":{"message":"unsupported: stream_options max_tokens temperature reasoning prompt_cache_key"}}`))
	_, err := stream(t, t.Context(), s.provider(t, Options{}), &model.Request{Model: "o1", Temperature: &warm, MaxOutputTokens: 5, ThinkingBudget: 5, SessionID: "s"})
	if n := len(s.requests()); err == nil || n > 6 {
		t.Errorf("%d requests, error %v", n, err)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, events(text("hi"), finish("stop")))
	p := s.provider(t, Options{APIKey: "secret", Organization: "org", Project: "proj", Headers: http.Header{"X-Title": {"t"}, "User-Agent": {"agent/1"}}})
	if _, err := stream(t, t.Context(), p, corpusRequest()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Authorization": "Bearer secret", "Openai-Organization": "org", "Openai-Project": "proj", "X-Title": "t", "User-Agent": "agent/1",
		"Content-Type": "application/json", "Accept": "text/event-stream",
	}
	for name, value := range want {
		if got := s.heads[0].Header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if got := s.heads[0].URL.Path; got != "/v1/chat/completions" {
		t.Errorf("path %s", got)
	}
}

func TestNothingComesFromTheEnvironment(t *testing.T) {
	t.Parallel() // TestMain fills the environment
	s := serve(t, events(text("hi"), finish("stop")))
	if _, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest()); err != nil {
		t.Fatal(err)
	}
	for name, values := range s.heads[0].Header {
		if name == "Authorization" || strings.Contains(strings.Join(values, " "), "environment") {
			t.Errorf("%s: %v", name, values)
		}
	}
}

func TestBaseURLs(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": "https://api.openai.com/v1/", "http://localhost:11434/v1/": "http://localhost:11434/v1/", "http://localhost:8080": "http://localhost:8080/",
		"https://x/openai/v1/chat/completions": "https://x/openai/v1/",
	} {
		u, err := parseBase(base)
		if err != nil || u.String() != want {
			t.Errorf("parseBase(%q) = %v, %v; want %s", base, u, err, want)
		}
	}
	for _, base := range []string{"localhost:8080", "ftp://x", "http://", "::"} {
		_, err := New(Options{BaseURL: base})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.ErrConfigured {
			t.Errorf("New with base URL %q: %v", base, err)
		}
	}
}

func TestQueryOfTheBaseURLIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, events(text("hi"), finish("stop")))
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	p, err := New(Options{BaseURL: s.URL + "/openai/deployments/d?api-version=2024-10-21", HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream(t, t.Context(), p, corpusRequest()); err != nil {
		t.Fatal(err)
	}
	if got := s.heads[0].URL.String(); got != "/openai/deployments/d/chat/completions?api-version=2024-10-21" {
		t.Errorf("sent to %s", got)
	}
}

func TestToolsAndMessagesFromTheCacheAreTheFreshOnes(t *testing.T) {
	t.Parallel()
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := corpusRequest()
	changed := *first
	changed.Tools = append(slices.Clone(first.Tools), model.ToolSpec{Name: "one.more", Description: "<new>"})
	changed.Messages = append(slices.Clone(first.Messages), user(model.Text{Text: "go on"}))
	none := changed
	none.Tools = nil
	for i, req := range []*model.Request{first, &changed, first, &none, &changed} {
		fresh, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := p.(*provider).body(req, 0), fresh.(*provider).body(req, 0)
		if !bytes.Equal(got, want) {
			t.Errorf("request %d\nwant %s\ngot  %s", i, want, got)
		}
	}
}

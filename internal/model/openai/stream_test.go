package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentcli/agent/internal/model"
)

var ignoreIDs = cmpopts.IgnoreFields(model.ToolUse{}, "ID")

func use(name, input string) model.ToolUse {
	return model.ToolUse{Name: name, Input: json.RawMessage(input)}
}

func TestTextAnswerIsStreamedPieceByPieceWithUsage(t *testing.T) {
	t.Parallel()
	s := serve(t, events(
		`{"id":"c1","model":"m1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		text("Hel"), text("lo \"you\"\n"), finish("stop"),
		`{"id":"c1","model":"m1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}}`,
	))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil {
		t.Fatal(err)
	}
	want := answered{
		Blocks: []model.Block{model.Text{Text: "Hello \"you\"\n"}}, Stop: model.StopEndTurn, ID: "c1", Model: "m1",
		Usage: model.Usage{InputTokens: 40, OutputTokens: 20, CacheReadTokens: 60, ThinkingTokens: 5},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(answered{})); diff != "" {
		t.Error(diff)
	}
	if got.count(model.DeltaText) != 2 || got.count(model.DeltaUsage) != 1 {
		t.Errorf("deltas %+v", got.deltas)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		events []string
		want   []model.Block
		stop   model.StopReason
	}{
		{"reasoning_content becomes thinking", []string{
			`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"delta":{"reasoning_content":"m"}}]}`, text("hi"), finish("stop"),
		}, []model.Block{model.Thinking{Text: "hmm"}, model.Text{Text: "hi"}}, model.StopEndTurn},
		{"reasoning becomes thinking", []string{
			`{"choices":[{"delta":{"content":"","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}]}`, text("hi"), finish("stop"),
		}, []model.Block{model.Thinking{Text: "hm"}, model.Text{Text: "hi"}}, model.StopEndTurn},
		{"think tags become thinking", []string{text("<thi"), text("nk>hm</"), text("think>\n\nhi"), finish("stop")},
			[]model.Block{model.Thinking{Text: "hm"}, model.Text{Text: "\n\nhi"}}, model.StopEndTurn},
		{"content parts", []string{
			`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}}]}`, finish("stop"),
		}, []model.Block{model.Thinking{Text: "hm"}, model.Text{Text: "hi"}}, model.StopEndTurn},
		{"white space before a call is no text block", []string{
			text("\n\n"), toolDelta(`{"index":0,"id":"a","function":{"name":"list_todos","arguments":"{}"}}`), finish("tool_calls"),
		}, []model.Block{use("list_todos", "{}")}, model.StopToolUse},
		{"length", []string{text("hi"), finish("length")}, []model.Block{model.Text{Text: "hi"}}, model.StopMaxTokens},
		{"length without anything", []string{finish("length")}, nil, model.StopMaxTokens},
		{"content filter after text", []string{text("hi"), finish("content_filter")}, []model.Block{model.Text{Text: "hi"}}, model.StopRefusal},
		{"refusal", []string{`{"choices":[{"delta":{"refusal":"I can't"}}]}`, finish("stop")}, []model.Block{model.Text{Text: "I can't"}}, model.StopRefusal},
		{"finish reason null as a word", []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"null"}]}`, text("!"), finish("stop")}, []model.Block{model.Text{Text: "hi!"}}, model.StopEndTurn},
		{"unknown finish reason", []string{text("hi"), finish("eos_token")}, []model.Block{model.Text{Text: "hi"}}, model.StopEndTurn},
		{"finish reason tool_calls without calls", []string{text("hi"), finish("tool_calls")}, []model.Block{model.Text{Text: "hi"}}, model.StopEndTurn},
		{"no finish reason but [DONE]", []string{text("hi")}, []model.Block{model.Text{Text: "hi"}}, model.StopEndTurn},
		{"finish in the last text chunk", []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, []model.Block{model.Text{Text: "hi"}}, model.StopEndTurn},
		{"other choices are ignored", []string{text("hi"), `{"choices":[{"index":1,"delta":{"content":"other"}}]}`, finish("stop")}, []model.Block{model.Text{Text: "hi"}}, model.StopEndTurn},
		{"call in the text", []string{text("Reading.\n<tool"), text("_call>\n{\"name\": \"read_file\", \"argu"), text("ments\": {\"path\": \"a\"}}\n</tool_call>"), finish("stop")},
			[]model.Block{model.Text{Text: "Reading.\n"}, use("read_file", `{"path": "a"}`)}, model.StopToolUse},
		{"half-open call in the text", []string{text("<function=read_file>\n<parameter=path>\na\n"), finish("stop")},
			[]model.Block{use("read_file", `{"path":"a"}`)}, model.StopToolUse},
		{"call cut off by the length limit", []string{text(`<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "one`), finish("length")},
			[]model.Block{model.ToolUse{Name: "write_file", Input: json.RawMessage("{}"), Invalid: `the call was cut off at the output limit: {"name": "write_file", "arguments": {"path": "a", "content": "one`}}, model.StopMaxTokens},
		{"same call in the text and as such", []string{text(`<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>`),
			toolDelta(`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}`), finish("tool_calls")},
			[]model.Block{use("read_file", `{"path": "a"}`)}, model.StopToolUse},
		{"JSON in the text beside real calls is text", []string{text("{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n"),
			toolDelta(`{"index":0,"id":"x","function":{"name":"glob","arguments":"{\"pattern\":\"*\"}"}}`), finish("tool_calls")},
			[]model.Block{model.Text{Text: "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n"}, use("glob", `{"pattern":"*"}`)}, model.StopToolUse},
		{"text after a call comes after it", []string{toolDelta(`{"index":0,"id":"x","function":{"name":"glob","arguments":"{\"patt"}}`), text("wait"),
			toolDelta(`{"index":0,"function":{"arguments":"ern\":\"*\"}"}}`), finish("tool_calls")},
			[]model.Block{use("glob", `{"pattern":"*"}`), model.Text{Text: "wait"}}, model.StopToolUse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, events(tt.events...))
			got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Blocks, ignoreIDs); diff != "" {
				t.Error(diff)
			}
			if got.Stop != tt.stop {
				t.Errorf("stop %q, want %q", got.Stop, tt.stop)
			}
		})
	}
}

func TestNativeToolCalls(t *testing.T) {
	t.Parallel()
	a, b := use("read_file", `{"path":"a"}`), use("read_file", `{"path":"b"}`)
	for _, tt := range []struct {
		name      string
		fragments [][]string
		want      []model.Block
	}{
		{"in fragments", [][]string{
			{`{"index":0,"id":"x","type":"function","function":{"name":"read_file","arguments":""}}`},
			{`{"index":0,"function":{"arguments":"{\"pa"}}`}, {`{"index":0,"function":{"arguments":"th\":\"a\""}}`}, {`{"index":0,"function":{"arguments":"}"}}`},
		}, []model.Block{a}},
		{"parallel", [][]string{
			{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}`},
			{`{"index":1,"id":"y","function":{"name":"read_file","arguments":"{\"path\""}}`}, {`{"index":1,"function":{"arguments":":\"b\"}"}}`},
		}, []model.Block{a, b}},
		{"interleaved", [][]string{
			{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\""}}`, `{"index":1,"id":"y","function":{"name":"read_file","arguments":"{\"path\":"}}`},
			{`{"index":1,"function":{"arguments":"\"b\"}"}}`, `{"index":0,"function":{"arguments":":\"a\"}"}}`},
		}, []model.Block{a, b}},
		{"arguments as an object", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":{"path":"a"}}}`}}, []model.Block{a}},
		{"arguments encoded twice", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"\"{\\\"path\\\":\\\"a\\\"}\""}}`}}, []model.Block{a}},
		{"two objects in a row", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\"}{\"path\":\"b\"}"}}`}}, []model.Block{a, b}},
		{"the same index for all", [][]string{
			{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}`}, {`{"index":0,"id":"y","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}`},
		}, []model.Block{a, b}},
		{"no index", [][]string{
			{`{"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}`, `{"id":"y","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}`},
		}, []model.Block{a, b}},
		{"no index, no id, in fragments", [][]string{
			{`{"function":{"name":"read_file","arguments":""}}`}, {`{"function":{"arguments":"{\"path\":"}}`}, {`{"function":{"arguments":"\"a\"}"}}`},
		}, []model.Block{a}},
		{"name repeated in every fragment", [][]string{
			{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\""}}`}, {`{"index":0,"id":"x","function":{"name":"read_file","arguments":":\"a\"}"}}`},
		}, []model.Block{a}},
		{"name in pieces", [][]string{
			{`{"index":0,"id":"x","function":{"name":"read"}}`}, {`{"index":0,"function":{"name":"_file","arguments":"{\"path\":\"a\"}"}}`},
		}, []model.Block{a}},
		{"name with a prefix", [][]string{{`{"index":0,"id":"x","function":{"name":"functions.read_file","arguments":"{\"path\":\"a\"}"}}`}}, []model.Block{a}},
		{"name with a marker", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file<|channel|>commentary","arguments":"{\"path\":\"a\"}"}}`}}, []model.Block{a}},
		{"wrapped arguments", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"argum"}}`}, {`{"index":0,"function":{"arguments":"ents\":{\"path\":\"a\"}}"}}`}}, []model.Block{a}},
		{"no arguments", [][]string{{`{"index":0,"id":"x","function":{"name":"list_todos"}}`}}, []model.Block{use("list_todos", "{}")}},
		{"unknown tool", [][]string{{`{"index":0,"id":"x","function":{"name":"nope","arguments":"{}"}}`}}, []model.Block{use("nope", "{}")}},
		{"repaired after its beginning was passed on", [][]string{
			{`{"index":0,"id":"x","function":{"name":"edit","arguments":"{\"path\":\"a\",\"replace_all\":"}}`}, {`{"index":0,"function":{"arguments":"True,}"}}`},
		}, []model.Block{use("edit", `{"path":"a","replace_all":true}`)}},
		{"duplicate key: the last one counts for every reader", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"x\",\"path\":\"a\"}"}}`}}, []model.Block{use("read_file", `{"path":"x","path":"a"}`)}},
		{"not repairable", [][]string{{`{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"path\":\"a\" \"b\""}}`}},
			[]model.Block{model.ToolUse{Name: "read_file", Input: json.RawMessage("{}"), Invalid: `the arguments are not a JSON object: {"path":"a" "b"`}}},
		{"an unfinished string is not completed", [][]string{{`{"index":0,"id":"x","function":{"name":"write_file","arguments":"{\"path\":\"a\",\"content\":\"on"}}`}},
			[]model.Block{model.ToolUse{Name: "write_file", Input: json.RawMessage("{}"), Invalid: `the arguments are not a JSON object: {"path":"a","content":"on`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var chunks []string
			for _, f := range tt.fragments {
				chunks = append(chunks, toolDelta(f...))
			}
			s := serve(t, events(append(chunks, finish("tool_calls"))...))
			got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Blocks, ignoreIDs); diff != "" {
				t.Error(diff)
			}
			if got.Stop != model.StopToolUse {
				t.Errorf("stop %q", got.Stop)
			}
		})
	}
}

func TestLegacyFunctionCallIsACall(t *testing.T) {
	t.Parallel()
	s := serve(t, events(
		`{"choices":[{"delta":{"function_call":{"name":"read_file","arguments":""}}}]}`,
		`{"choices":[{"delta":{"function_call":{"arguments":"{\"path\":\"a\"}"}}}]}`, finish("function_call")))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]model.Block{use("read_file", `{"path":"a"}`)}, got.Blocks, ignoreIDs); diff != "" || got.Stop != model.StopToolUse {
		t.Errorf("stop %q\n%s", got.Stop, diff)
	}
}

func TestSoundArgumentsArePassedOnWhileTheyCome(t *testing.T) {
	t.Parallel()
	chunks := []string{toolDelta(`{"index":0,"id":"x","function":{"name":"write_file","arguments":"{\"path\":\"a\",\"content\":\""}}`)}
	for range 50 {
		chunks = append(chunks, toolDelta(`{"index":0,"function":{"arguments":"line\\n"}}`))
	}
	chunks = append(chunks, toolDelta(`{"index":0,"function":{"arguments":"\"}"}}`), finish("tool_calls"))
	got, err := stream(t, t.Context(), serve(t, events(chunks...)).provider(t, Options{}), corpusRequest())
	if err != nil {
		t.Fatal(err)
	}
	if n := got.count(model.DeltaToolInput); n < 50 {
		t.Errorf("%d input deltas, want one per fragment", n)
	}
	want := use("write_file", `{"path":"a","content":"`+strings.Repeat(`line\n`, 50)+`"}`)
	if diff := cmp.Diff([]model.Block{want}, got.Blocks, ignoreIDs); diff != "" {
		t.Error(diff)
	}
}

func TestCallIDsAreMadeUnique(t *testing.T) {
	t.Parallel()
	req := corpusRequest()
	req.Messages = []*model.Message{
		{Role: model.RoleAssistant, Blocks: []model.Block{model.ToolUse{ID: "old", Name: "list_todos", Input: json.RawMessage("{}")}}},
		{Role: model.RoleUser, Blocks: []model.Block{model.ToolResult{ToolUseID: "old", Name: "list_todos"}}},
	}
	s := serve(t, events(toolDelta(
		`{"index":0,"id":"old","function":{"name":"list_todos","arguments":"{}"}}`, `{"index":1,"id":"new","function":{"name":"list_todos","arguments":"{}"}}`,
		`{"index":2,"id":"new","function":{"name":"list_todos","arguments":"{}"}}`, `{"index":3,"function":{"name":"list_todos","arguments":"{}"}}`), finish("tool_calls")))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), req)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"old": true, "": true}
	for i, b := range got.Blocks {
		id := b.(model.ToolUse).ID
		if seen[id] {
			t.Errorf("call %d has the id %q, which is taken", i, id)
		}
		seen[id] = true
	}
	if len(got.Blocks) != 4 || !seen["new"] {
		t.Errorf("blocks %+v", got.Blocks)
	}
}

func TestBrokenAnswersAreTypedErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		body string
		want model.ErrorKind
	}{
		{"end without finish reason", sse(text("hi")), model.ErrIncomplete},
		{"nothing at all", "", model.ErrIncomplete},
		{"end within an event", sse(text("hi")) + `data: {"id":"c1","choices":[{"in`, model.ErrIncomplete},
		{"garbage event", sse(text("hi"), "not json"), model.ErrMalformed},
		{"a list instead of a chunk", sse(`[1,2]`), model.ErrMalformed},
		{"no content", sse(finish("stop")) + "data: [DONE]\n\n", model.ErrEmpty},
		{"only white space", sse(text(" \n"), finish("stop")) + "data: [DONE]\n\n", model.ErrEmpty},
		{"only thinking", sse(`{"choices":[{"delta":{"reasoning":"hm"}}]}`, finish("stop")) + "data: [DONE]\n\n", model.ErrEmpty},
		{"blocked", sse(finish("content_filter")) + "data: [DONE]\n\n", model.ErrBlocked},
		{"finish reason error", sse(text("hi"), finish("error")) + "data: [DONE]\n\n", model.ErrServer},
		{"error: rate limit", sse(text("hi"), `{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}`), model.ErrRateLimit},
		{"error: code as a number", sse(`{"id":"c1","choices":[],"error":{"code":502,"message":"upstream"}}`), model.ErrServer},
		{"error: a string", sse(`{"error":"model runner has unexpectedly stopped"}`), model.ErrServer},
		{"error: quota", sse(`{"error":{"message":"no money","code":"insufficient_quota"}}`), model.ErrQuota},
		{"error: context", sse(`{"error":{"message":"too long","code":"context_length_exceeded"}}`), model.ErrContext},
		{"error in an error event", "event: error\n" + sse(`{"error":{"message":"x","type":"server_error"}}`), model.ErrServer},
		{"error without a wrapper", sse(`{"object":"error","message":"bad","type":"BadRequestError","code":400}`), model.ErrBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := stream(t, t.Context(), serve(t, raw(tt.body)).provider(t, Options{Name: "vendor"}), corpusRequest())
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tt.want || e.Provider != "vendor" {
				t.Errorf("error %v, want kind %s of provider vendor", err, tt.want)
			}
		})
	}
}

func TestUsageIsToldAlsoWhenTheAnswerFails(t *testing.T) {
	t.Parallel()
	s := serve(t, raw(sse(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, `{"error":{"message":"x"}}`)))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err == nil || got.Usage != (model.Usage{InputTokens: 7, OutputTokens: 1}) {
		t.Errorf("usage %+v, error %v", got.Usage, err)
	}
}

func TestUsageForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, usage string
		want        model.Usage
	}{
		{"deepseek", `{"prompt_tokens":100,"completion_tokens":9,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`, model.Usage{InputTokens: 36, CacheReadTokens: 64, OutputTokens: 9}},
		{"openrouter", `{"prompt_tokens":100,"completion_tokens":9,"cost":0.01,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":20}}`, model.Usage{InputTokens: 30, CacheReadTokens: 50, CacheWriteTokens: 20, OutputTokens: 9}},
		{"reasoning counted apart", `{"prompt_tokens":1,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":30}}`, model.Usage{InputTokens: 1, OutputTokens: 32, ThinkingTokens: 30}},
		{"nulls", `{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null}`, model.Usage{InputTokens: 1, OutputTokens: 2}},
		{"nonsense", `{"prompt_tokens":-5,"completion_tokens":1e300}`, model.Usage{OutputTokens: 1e12}},
	} {
		var u usage
		if err := json.Unmarshal([]byte(tt.usage), &u); err != nil {
			t.Fatal(err)
		}
		if got := u.convert(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestAServerThatDoesNotStreamIsUnderstood(t *testing.T) {
	t.Parallel()
	s := serve(t, status(200, `{"id":"c9","model":"m","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"x","type":"function","function":{"name":"list_todos","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`))
	got, err := stream(t, t.Context(), s.provider(t, Options{}), corpusRequest())
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Block{model.Text{Text: "hi"}, model.ToolUse{ID: "x", Name: "list_todos", Input: json.RawMessage("{}")}}
	if diff := cmp.Diff(want, got.Blocks); diff != "" || got.Usage.InputTokens != 3 || got.Stop != model.StopToolUse {
		t.Errorf("usage %+v stop %q\n%s", got.Usage, got.Stop, diff)
	}
}

func TestConcurrentStreamsOfOneProvider(t *testing.T) {
	t.Parallel()
	p := serve(t, events(text("hi"), finish("stop"))).provider(t, Options{})
	shared := &model.Message{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: "x"}}}
	done := make(chan error)
	for range 8 {
		go func() {
			req := corpusRequest()
			req.Messages = []*model.Message{shared}
			done <- p.Stream(context.Background(), req, func(model.Delta) {})
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestConnectionIsUsedAgainAfterAnAnswer(t *testing.T) {
	t.Parallel()
	decoded := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, sse(`{"id":"1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`)+"data: [DONE]\n\n")
		w.(http.Flusher).Flush()
		<-decoded // so that the end of the body comes in a packet of its own
	})
	p := s.provider(t, Options{})
	for range 3 {
		err := p.Stream(t.Context(), corpusRequest(), func(d model.Delta) {
			if d.Kind == model.DeltaFinish {
				decoded <- struct{}{}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.heads[1:] {
		if first := s.heads[0].RemoteAddr; r.RemoteAddr != first {
			t.Errorf("connections from %s and %s", first, r.RemoteAddr)
		}
	}
}

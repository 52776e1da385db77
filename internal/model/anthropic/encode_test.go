package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func user(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleUser, Blocks: blocks}
}

func assistant(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleAssistant, Blocks: blocks}
}

func text(s string) model.Text { return model.Text{Text: s} }

func signed(provider, value string) model.Signature {
	return model.Signature{Provider: provider, Value: value}
}

func use(id, tool, input string) model.ToolUse {
	return model.ToolUse{ID: id, Name: tool, Input: json.RawMessage(input)}
}

func output(id string, blocks ...model.Block) model.ToolResult {
	return model.ToolResult{ToolUseID: id, Name: "tool", Blocks: blocks}
}

func body(t testing.TB, req *model.Request) []byte {
	t.Helper()
	b, err := (&provider{}).encode(req)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameJSON compares two JSON documents by value.
func sameJSON(t testing.TB, want string, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("the wanted JSON: %v\n%s", err, want)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s\nbody: %s", diff, got)
	}
}

const eph = `"cache_control":{"type":"ephemeral"}`

func TestRequestBodies(t *testing.T) {
	t.Parallel()
	temperature, topP := 0.5, 0.9
	readTool := model.ToolSpec{Name: "read", Description: "reads <files>", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
	listTool := model.ToolSpec{Name: "list"}
	for _, c := range []struct {
		name string
		req  model.Request
		want string
	}{
		{
			"system and user",
			model.Request{Model: "claude-sonnet-4-5", System: "Be <brief>.", Messages: []*model.Message{user(text("hi"))}, Temperature: &temperature, TopP: &topP},
			`{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"temperature":0.5,
			"system":[{"type":"text","text":"Be <brief>.",` + eph + `}],
			"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"image and document",
			model.Request{Model: "claude-sonnet-4-5", MaxOutputTokens: 100, Messages: []*model.Message{user(
				model.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}, model.Image{URL: "https://example.com/a.png"},
				model.Image{MediaType: "image/bmp", Data: []byte{1}},
				model.Document{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
				model.Document{MediaType: "text/markdown", Data: []byte("# x")})}},
			`{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}},
			{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},
			{"type":"text","text":"[an image was left out: the API does not take the type \"image/bmp\"]"},
			{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},
			{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# x"},` + eph + `}]}]}`,
		},
		{
			"tools, parallel calls and their results",
			model.Request{
				Model: "claude-sonnet-4-5", Tools: []model.ToolSpec{readTool, listTool},
				Messages: []*model.Message{
					user(text("look")),
					assistant(text("I will."), use("toolu_1", "read", `{"path": "a<b"}`), use("toolu_2", "list", ``)),
					user(text("and be quick")),
					user(output("toolu_1", text("package a")), output("toolu_2", text(" "), model.Image{MediaType: "image/gif", Data: []byte{9}})),
					assistant(use("toolu_3", "read", `{}`)),
					user(model.ToolResult{ToolUseID: "toolu_3", IsError: true, Blocks: []model.Block{text("no such file"), model.Image{MediaType: "image/png", Data: []byte{1}}}},
						model.ToolResult{ToolUseID: "toolu_4", IsError: true}, output("toolu_5")),
				},
			},
			`{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,
			"tools":[{"name":"read","description":"reads <files>","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},
			{"name":"list","input_schema":{"type":"object"},` + eph + `}],
			"messages":[
			{"role":"user","content":[{"type":"text","text":"look"}]},
			{"role":"assistant","content":[{"type":"text","text":"I will."},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a<b"}},{"type":"tool_use","id":"toolu_2","name":"list","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"package a"}]},
				{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"CQ=="}}]},
				{"type":"text","text":"and be quick",` + eph + `}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"toolu_3","name":"read","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"toolu_3","is_error":true,"content":[{"type":"text","text":"no such file"}]},
				{"type":"tool_result","tool_use_id":"toolu_4","is_error":true,"content":[{"type":"text","text":"(the tool failed without a message)"}]},
				{"type":"tool_result","tool_use_id":"toolu_5"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQ=="},` + eph + `}]}]}`,
		},
		{
			"thinking goes back with its signature, foreign and unsigned thinking does not",
			model.Request{
				Model: "claude-sonnet-4-5", ThinkingBudget: 4000, Temperature: &temperature,
				Messages: []*model.Message{
					user(text("go")),
					assistant(model.Thinking{Text: "hm", Sig: signed("anthropic", "EqQB+/==")}, model.Thinking{Redacted: "opaque", Sig: signed("anthropic", "")},
						model.Thinking{Text: "foreign", Sig: signed("gemini", "x")}, model.Thinking{Text: "unsigned"},
						text(""), use("toolu_1", "read", `{}`), model.Thinking{Text: "last", Sig: signed("anthropic", "y")}),
					user(output("toolu_1", text("ok"))),
				},
			},
			`{"model":"claude-sonnet-4-5","max_tokens":12192,"stream":true,"thinking":{"type":"enabled","budget_tokens":4000},"messages":[
			{"role":"user","content":[{"type":"text","text":"go",` + eph + `}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQB+/=="},{"type":"redacted_thinking","data":"opaque"},{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"ok"}],` + eph + `}]}]}`,
		},
		{
			"a turn begun by another provider goes on without thinking",
			model.Request{
				Model: "claude-sonnet-4-5", ThinkingBudget: 4000,
				Messages: []*model.Message{
					user(text("go")),
					assistant(model.Thinking{Text: "hm", Sig: signed("gemini", "g")}, model.ToolUse{ID: "call.1", Name: "mcp:read", Input: json.RawMessage(`{}`), Sig: signed("gemini", "g2")}),
					user(output("call.1", text("ok"))),
					assistant(model.Thinking{Text: "only thoughts", Sig: signed("gemini", "g")}),
				},
			},
			`{"model":"claude-sonnet-4-5","max_tokens":12192,"stream":true,"messages":[
			{"role":"user","content":[{"type":"text","text":"go",` + eph + `}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"` + wireID("call.1") + `","name":"mcp_read","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + wireID("call.1") + `","content":[{"type":"text","text":"ok"}],` + eph + `}]}]}`,
		},
		{
			"thinking off",
			model.Request{Model: "claude-sonnet-4-5", ThinkingBudget: -1, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"a budget fits below the caller's limit",
			model.Request{Model: "claude-sonnet-4-5", ThinkingBudget: 32000, MaxOutputTokens: 16000, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-sonnet-4-5","max_tokens":16000,"stream":true,"thinking":{"type":"enabled","budget_tokens":14976},"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"an effort is a budget",
			model.Request{Model: "claude-sonnet-4-5", Effort: model.EffortLow, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-sonnet-4-5","max_tokens":10240,"stream":true,"thinking":{"type":"enabled","budget_tokens":2048},"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"an effort goes to a model that knows it as it is",
			model.Request{Model: "claude-opus-4-7", Effort: model.EffortMax, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-opus-4-7","max_tokens":31192,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"},"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"top_p alone",
			model.Request{Model: "claude-sonnet-4-5", TopP: &topP, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"top_p":0.9,"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
		{
			"a model that has only adaptive thinking",
			model.Request{Model: "claude-opus-4-7", ThinkingBudget: 10000, TopP: &topP, Messages: []*model.Message{user(text("hi"))}},
			`{"model":"claude-opus-4-7","max_tokens":18192,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"},"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + eph + `}]}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sameJSON(t, c.want, body(t, &c.req))
		})
	}
}

func TestWhichModelsAdapt(t *testing.T) {
	t.Parallel()
	for m, want := range map[string]bool{
		"claude-3-7-sonnet-latest": false, "claude-3-haiku-20240307": false, "claude-sonnet-4-20250514": false, "claude-opus-4-1-20250805": false,
		"claude-haiku-4-5-20251001": false, "claude-opus-4-6": false, "claude-opus-4-7": true, "claude-opus-4.8": true, "claude-sonnet-5": true,
		"claude-fable-5": true, "claude-mythos-preview": true, "anthropic/claude-opus-4.7": true, "glm-5": false, "some-model": false,
	} {
		if got := adapts(m); got != want {
			t.Errorf("%s: %v", m, got)
		}
	}
}

func TestToolIDsStayPairsAndApart(t *testing.T) {
	t.Parallel()
	if a, b := wireID("a.b"), wireID("a:b"); a == b || a != wireID("a.b") {
		t.Errorf("%q, %q", a, b)
	}
	for _, id := range []string{"", "a.b", "äöü", "functions.read:0", "call_1|fc_2"} {
		if got := wireID(id); got == "" || replaceUnsafe(got) != got {
			t.Errorf("%q became %q", id, got)
		}
	}
	if got := wireID("toolu_01-AZ"); got != "toolu_01-AZ" {
		t.Errorf("a good id became %q", got)
	}
	if got := wireName(strings.Repeat("x", 300) + "."); len(got) != maxName {
		t.Errorf("a name of %d bytes", len(got))
	}
}

func TestRequestsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		req  model.Request
		want model.ErrorKind
	}{
		{model.Request{Messages: []*model.Message{user(text("hi"))}}, model.ErrConfigured},
		{model.Request{Model: "m"}, model.ErrBadRequest},
		{model.Request{Model: "m", Messages: []*model.Message{nil, user(text(" \n"))}}, model.ErrBadRequest},
		{model.Request{Model: "m", Messages: []*model.Message{user(text("hi"))}, Tools: []model.ToolSpec{{Name: "x", Schema: json.RawMessage(`{`)}}}, model.ErrConfigured},
	} {
		_, err := (&provider{}).encode(&c.req)
		wantKind(t, err, c.want)
	}
}

// history is a conversation of n tool calls.
func history(n int) []*model.Message {
	all := []*model.Message{user(text("Do the work, it is <large>."))}
	for i := range n {
		id := fmt.Sprintf("toolu_%d", i)
		all = append(all,
			assistant(model.Thinking{Text: "so", Sig: signed("anthropic", "c2ln")}, text("Next file."), use(id, "read", fmt.Sprintf(`{"path":"file%d.go"}`, i))),
			user(output(id, text(strings.Repeat("func main() { println(\"<hello>\") }\n", 30)))))
	}
	return all
}

func TestResumedHistoryGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	first := model.Request{Model: "claude-sonnet-4-5", System: "s", Messages: history(20)}
	again := model.Request{Model: "claude-sonnet-4-5", System: "s", Messages: history(20)} // other addresses
	if !bytes.Equal(body(t, &first), body(t, &again)) {
		t.Error("the bodies differ")
	}
}

func TestCachedEncodingIsTheFreshOne(t *testing.T) {
	t.Parallel()
	all := history(10)
	other := history(3)
	p := &provider{}
	for n := 1; n <= len(all); n++ {
		for _, messages := range [][]*model.Message{all[:n], other, append([]*model.Message{all[0], user(text("inserted"))}, all[1:n]...), all[n-1:]} {
			req := &model.Request{Model: "m", Messages: messages}
			got, err := p.encode(req)
			if err != nil {
				t.Fatal(err)
			}
			if want := body(t, req); !bytes.Equal(want, got) {
				t.Fatalf("%d messages\nwant %s\ngot  %s", n, want, got)
			}
		}
	}
}

func BenchmarkEncodeGrowingHistory(b *testing.B) {
	all := history(100)
	p := &provider{}
	b.ReportAllocs()
	for b.Loop() {
		req := &model.Request{Model: "m", System: "s", Messages: all}
		if _, err := p.encode(req); err != nil {
			b.Fatal(err)
		}
	}
}

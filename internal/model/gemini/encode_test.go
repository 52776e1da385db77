package gemini

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

func foreignHistory() []*model.Message {
	return []*model.Message{
		user(text("go")),
		assistant(model.Thinking{Text: "hm", Sig: model.Signature{Provider: "anthropic", Value: "x"}}, text("Yes."),
			model.ToolUse{ID: "toolu_1", Name: "read", Input: json.RawMessage(`{"path":"a"}`), Sig: model.Signature{Provider: "anthropic", Value: "y"}},
			model.ToolUse{ID: "toolu_2", Name: "list", Input: json.RawMessage(`{}`)}),
		user(model.ToolResult{ToolUseID: "toolu_2", Name: "list", Blocks: []model.Block{text("two")}},
			model.ToolResult{ToolUseID: "toolu_1", Name: "read", Blocks: []model.Block{text("one")}}),
	}
}

func TestRequestBodies(t *testing.T) {
	t.Parallel()
	temperature, topP := 0.0, 0.9
	for _, c := range []struct {
		name string
		req  model.Request
		want string
	}{
		{
			"system and user",
			model.Request{Model: "gemini-2.0-flash", System: "Be <brief>.", Messages: []*model.Message{user(text("hi"), text(""))}, Temperature: &temperature, TopP: &topP, MaxOutputTokens: 100},
			`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"Be <brief>."}]},"generationConfig":{"temperature":0,"topP":0.9,"maxOutputTokens":100}}`,
		},
		{
			"image and document",
			model.Request{Model: "gemini-2.0-flash", Messages: []*model.Message{user(model.Image{MediaType: "image/png", Data: []byte{1, 2, 3}},
				model.Image{MediaType: "image/png", URL: "https://example.com/a.png"}, model.Document{MediaType: "application/pdf", Data: []byte("%PDF")})}},
			`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AQID"}},{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a.png"}},{"inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}}]}]}`,
		},
		{
			"tools, parallel calls and their results",
			model.Request{
				Model: "gemini-2.5-flash",
				Tools: []model.ToolSpec{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":["string","null"]}}}`)}, {Name: "list"}},
				Messages: []*model.Message{
					user(text("look")),
					assistant(model.ToolUse{ID: "a", Name: "read", Input: json.RawMessage(`{"path":"x"}`), Sig: sig("S1==")}, model.ToolUse{ID: madeID + "1", Name: "list"}),
					user(text("and be quick")),
					user(model.ToolResult{ToolUseID: madeID + "1", Name: "list", IsError: true, Blocks: []model.Block{text("no"), text("way")}},
						model.ToolResult{ToolUseID: "a", Blocks: []model.Block{text("package a"), model.Image{MediaType: "image/png", Data: []byte{9}}}}),
				},
			},
			`{"contents":[{"role":"user","parts":[{"text":"look"}]},
			{"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{"path":"x"}},"thoughtSignature":"S1=="},{"functionCall":{"name":"list","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"output":"package a"}}},{"functionResponse":{"name":"list","response":{"error":"no\nway"}}},
				{"text":"and be quick"},{"inlineData":{"mimeType":"image/png","data":"CQ=="}}]}],
			"tools":[{"functionDeclarations":[{"name":"read","description":"reads","parametersJsonSchema":{"type":"object","properties":{"path":{"type":["string","null"]}}}},{"name":"list"}]}],
			"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`,
		},
		{
			"history of another provider, to a model that wants signatures",
			model.Request{Model: "gemini-3-pro-preview", Messages: foreignHistory()},
			`{"contents":[{"role":"user","parts":[{"text":"go"}]},
			{"role":"model","parts":[{"text":"Yes."},{"functionCall":{"id":"toolu_1","name":"read","args":{"path":"a"}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"toolu_2","name":"list","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"toolu_1","name":"read","response":{"output":"one"}}},{"functionResponse":{"id":"toolu_2","name":"list","response":{"output":"two"}}}]}],
			"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`,
		},
		{
			"history of another provider, to a model that does not",
			model.Request{Model: "gemini-2.0-flash", ThinkingBudget: 100, Messages: foreignHistory()[:2]},
			`{"contents":[{"role":"user","parts":[{"text":"go"}]},
			{"role":"model","parts":[{"text":"Yes."},{"functionCall":{"id":"toolu_1","name":"read","args":{"path":"a"}}},{"functionCall":{"id":"toolu_2","name":"list","args":{}}}]}]}`,
		},
		{
			"unsigned thinking and damaged offsets",
			model.Request{Model: "gemini-2.0-flash", Messages: []*model.Message{
				assistant(model.Thinking{Text: "unsigned"}, model.Thinking{Text: "ab", Sig: model.Signature{Provider: "gemini", Value: "1", From: 1}},
					model.Text{Text: "short", Sig: model.Signature{Provider: "gemini", Value: "2", From: 99}}, model.Text{Text: "neg", Sig: model.Signature{Provider: "gemini", Value: "3", From: -1}}),
				user(model.ToolResult{ToolUseID: "gone"})}},
			`{"contents":[{"role":"model","parts":[{"text":"a","thought":true},{"text":"b","thought":true,"thoughtSignature":"1"},{"text":"short"},{"text":"","thoughtSignature":"2"},{"text":"neg","thoughtSignature":"3"}]},
			{"role":"user","parts":[{"functionResponse":{"id":"gone","name":"unknown_tool","response":{"output":""}}}]}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sameJSON(t, c.want, body(t, &c.req))
		})
	}
}

func TestSwapToAnotherProviderAndBackKeepsSignatures(t *testing.T) {
	t.Parallel()
	own := []*model.Message{user(text("go")), assistant(model.ToolUse{ID: "g1", Name: "read", Input: json.RawMessage(`{}`), Sig: sig("Mine+/==")})}
	all := append(own, foreignHistory()...)
	got := string(body(t, &model.Request{Model: "gemini-3-flash-preview", Messages: all}))
	if strings.Count(got, `"thoughtSignature":"Mine+/=="`) != 1 || strings.Count(got, skipSignature) != 1 {
		t.Error(got)
	}
}

func TestThinkingConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model  string
		budget int
		want   string
	}{
		{"gemini-2.0-flash", 0, `null`}, {"gemini-2.0-flash", 1000, `null`}, {"gemma-3-27b-it", 0, `null`}, {"gemini-1.5-pro-002", -1, `null`},
		{"gemini-2.5-flash", 0, `{"includeThoughts":true}`}, {"gemini-2.5-flash", 1000, `{"includeThoughts":true,"thinkingBudget":1000}`},
		{"gemini-2.5-flash-lite", -1, `{"thinkingBudget":0}`}, {"models/gemini-2.5-pro", -1, `{"thinkingBudget":128}`},
		{"gemini-3-pro-preview", -1, `{"thinkingLevel":"low"}`}, {"gemini-3.5-flash", -1, `{"thinkingLevel":"minimal"}`},
		{"gemini-flash-latest", 0, `{"includeThoughts":true}`},
	} {
		got, err := json.Marshal(newThinking(&model.Request{Model: c.model, ThinkingBudget: c.budget}))
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %d: %s, want %s (%v)", c.model, c.budget, got, c.want, err)
		}
	}
}

func TestEffortIsABudget(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(newThinking(&model.Request{Model: "gemini-2.5-flash", Effort: model.EffortHigh}))
	if want := `{"includeThoughts":true,"thinkingBudget":16384}`; err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
}

func TestRequestsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for _, req := range []model.Request{{Model: "m"}, {Model: "m", Messages: []*model.Message{nil, user(text(""))}}} {
		_, err := (&provider{}).encode(&req)
		wantKind(t, err, model.ErrBadRequest)
	}
	_, err := (&provider{}).encode(&model.Request{Model: "m", Messages: []*model.Message{user(text("hi"))}, Tools: []model.ToolSpec{{Name: "x", Schema: json.RawMessage(`{`)}}})
	wantKind(t, err, model.ErrConfigured)
}

// history is a conversation of n tool calls.
func history(n int) []*model.Message {
	all := []*model.Message{user(text("Do the work, it is <large>."))}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		all = append(all,
			assistant(model.Thinking{Text: "so"}, text("Next file."), model.ToolUse{ID: id, Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"path":"file%d.go"}`, i)), Sig: sig("c2ln")}),
			user(model.ToolResult{ToolUseID: id, Name: "read", Blocks: []model.Block{text(strings.Repeat("func main() { println(\"<hello>\") }\n", 30))}}))
	}
	return all
}

func TestCachedEncodingIsTheFreshOne(t *testing.T) {
	t.Parallel()
	all := history(10)
	other := foreignHistory()
	p := &provider{}
	for n := 1; n <= len(all); n++ {
		for _, messages := range [][]*model.Message{all[:n], other, append([]*model.Message{all[0], user(text("inserted"))}, all[1:n]...), all[n-1:]} {
			for _, m := range []string{"gemini-2.5-pro", "gemini-3-pro"} {
				req := &model.Request{Model: m, Messages: messages}
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
}

func BenchmarkEncodeGrowingHistory(b *testing.B) {
	all := history(100)
	p := &provider{}
	b.ReportAllocs()
	for b.Loop() {
		req := &model.Request{Model: "gemini-3-pro", System: "s", Messages: all}
		if _, err := p.encode(req); err != nil {
			b.Fatal(err)
		}
	}
}

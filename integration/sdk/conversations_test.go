package sdk

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestConversations(t *testing.T) {
	t.Parallel()
	hello := `{"emit": [{"text": "Hello to you."}]}`
	remember := `{"when": {"turn": 1}, "emit": [{"text": "Noted."}]}
		{"when": {"turn": 2, "user": {"contains": "what is my number"}}, "emit": [{"text": "It is 7."}]}`
	play(t, []scenario{
		{name: "simple", kits: every, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Hello to you.")
			if got := r.kinds("init", "text", "result", "end"); got != "init text result end" {
				t.Errorf("the order is %s", got)
			}
		}},
		{name: "quick_start", kits: every, model: hello, env: []string{"OPENAI_MODEL=gpt-test"}, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Hello to you.")
		}},
		{name: "multi_turn", kits: every, model: remember, expect: twoTurns},
		{name: "streamed_prompts", kits: every, model: remember, expect: twoTurns},
		{name: "partial", kits: every, model: `{"emit": [{"thinking": "One and one is 2."}, {"text": "It is two, I think.", "by": "word"}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok It is two, I think.")
			var types, text []string
			for _, p := range r.all("partial") {
				types = append(types, p.String("type"))
				if p.String("delta") == "text_delta" {
					text = append(text, p.String("text"))
				}
			}
			for _, want := range []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_stop"} {
				if !contains(types, want) {
					t.Errorf("no %s among the partial messages: %v", want, types)
				}
			}
			if got := strings.Join(text, ""); got != "It is two, I think." || len(text) < 2 {
				t.Errorf("the deltas are %q", text)
			}
			if got := r.one("thinking").String("text"); got != "One and one is 2." {
				t.Errorf("the thinking is %q", got)
			}
			if r.events[0].String("ev") != "init" && r.kit.dialect.names["@bash"] == "Bash" {
				t.Errorf("the first message is %v", r.events[0])
			}
		}},
		{name: "no_partial", kits: every, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Hello to you.")
			r.count("partial", 0)
		}},
		{name: "stderr_silent", kits: every, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Hello to you.")
			if r.kit.dialect.names["@bash"] == "Bash" {
				r.count("stderr", 0)
			}
		}},
		{name: "clear", kits: "python", model: `{"use": "always", "emit": [{"text": "Hello to you."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("result", 3)
			if r.kinds("message") == "" || r.one("message").String("kind") != "ConversationResetMessage" {
				t.Errorf("no word of the reset")
			}
			if a, b := all[0].String("session_id"), all[2].String("session_id"); a == b {
				t.Errorf("the conversation after the reset has the same session %s", a)
			}
			if got := strings.Count(r.model.last(t), "hello"); got != 1 {
				t.Errorf("the model is reminded of what was cleared")
			}
		}},
		{name: "sources_default", kits: "python", files: project, model: hello, expect: style("local-test-style", true)},
		{name: "sources_project", kits: "python", files: project, model: hello, expect: style("local-test-style", true)},
		{name: "sources_user", kits: "python", files: project, model: hello, expect: style("default", false)},
		{name: "origin", kits: claudes, model: `{"use": "always", "emit": [{"text": "Hello to you."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.results("ok Hello to you.", "ok Hello to you.")
			if all[0].String("origin.kind") != "human" {
				t.Errorf("the first result's origin is %v", all[0]["origin"])
			}
			if all[1]["origin"] != nil {
				t.Errorf("the second result's origin is %v, want none", all[1]["origin"])
			}
		}},
	})
}

func twoTurns(t *testing.T, r *played) {
	r.quiet()
	all := r.results("ok Noted.", "ok It is 7.")
	if a, b := all[0].String("session_id"), all[1].String("session_id"); a == "" || a != b {
		t.Errorf("two turns of one conversation have the sessions %q and %q", a, b)
	}
	r.count("init", 2)
}

// project are settings and a command of the project.
var project = []string{
	".claude/settings.local.json", `{"outputStyle": "local-test-style"}`,
	".claude/commands/testcmd.md", "---\ndescription: A command.\n---\nDo something.\n",
}

// style demands an output style, and that the project's command is known or
// not.
func style(want string, command bool) func(t *testing.T, r *played) {
	return func(t *testing.T, r *played) {
		r.quiet()
		init := r.one("init")
		if got := init.String("data.output_style"); got != want {
			t.Errorf("the output style is %q, want %q", got, want)
		}
		list, _ := init.Get("data.slash_commands")
		if raw, _ := json.Marshal(list); strings.Contains(string(raw), `"testcmd"`) != command {
			t.Errorf("the commands are %s", raw)
		}
	}
}

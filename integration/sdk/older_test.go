package sdk

import (
	"strings"
	"testing"
)

// TestOlderSDK: claude-code-sdk, the SDK before claude-agent-sdk, calls the
// program in another manner (a prompt behind --print --) and answers questions in
// another form. Ports in other languages do as it did.
func TestOlderSDK(t *testing.T) {
	t.Parallel()
	const older = "python-older"
	hello := `{"emit": [{"text": "Hello to you."}]}`
	written := func(content string) func(*testing.T, *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.tool(false)
			if got := r.file("a.txt"); got != content {
				t.Errorf("the file holds %q, want %q", got, content)
			}
			r.results("ok Done.")
		}
	}
	play(t, []scenario{
		{name: "simple", kits: older, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Hello to you.")
			if got := r.kinds("init", "text", "result", "end"); got != "init text result end" {
				t.Errorf("the order is %s", got)
			}
		}},
		{name: "multi_turn", kits: older, expect: twoTurns, model: `{"when": {"turn": 1}, "emit": [{"text": "Noted."}]}
			{"when": {"turn": 2, "user": {"contains": "what is my number"}}, "emit": [{"text": "It is 7."}]}`},
		{name: "older_allowed_tools", kits: older, model: writes, expect: func(t *testing.T, r *played) {
			written("first")(t, r)
			r.count("ask", 0)
			mentions(t, "the request", r.model.asked()[0], "Write files.")
			if got := r.one("tool_use").String("name"); got != "Write" {
				t.Errorf("the tool is called %s", got)
			}
		}},
		{name: "ask_updated_input", kits: older, model: writes, expect: func(t *testing.T, r *played) {
			r.asked()
			written("changed")(t, r)
		}},
		{name: "ask_deny", kits: older, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			mentions(t, "the tool result", r.tool(true), "not this file")
			if r.made("a.txt") {
				t.Error("the file was written")
			}
			r.results("ok Done.")
		}},
		{name: "older_hook", kits: older, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			if got := r.one("hook").String("event"); got != "PreToolUse" {
				t.Errorf("the event is %s", got)
			}
			mentions(t, "the tool result", r.tool(true), "the hook says no")
			if r.made("a.txt") {
				t.Error("the file was written")
			}
		}},
		{name: "older_server", kits: older, model: `{"emit": [{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			if got := r.tool(false); got != "5" {
				t.Errorf("the tool says %q", got)
			}
			r.results("ok Done.")
		}},
		{name: "older_failure", kits: older, model: hello, expect: func(t *testing.T, r *played) {
			r.results("error_during_execution")
			if got := r.one("raised").String("message"); !strings.Contains(got, "exit code 1") {
				t.Errorf("it raised %q", got)
			}
		}},
	})
}

package sdk

import (
	"strings"
	"testing"
)

// runs calls the shell once, and then says Done.
const runs = `{"emit": [{"tool": "Bash", "input": {"command": "touch ran && echo it-ran"}}]}
	{"emit": [{"text": "Done."}]}`

// hooked demands that a hook was called for an event, once, with the fields
// that every hook gets.
func (r *played) hooked(event string) map[string]any {
	r.t.Helper()
	var found []map[string]any
	for _, h := range r.all("hook") {
		if h.String("event") != event {
			continue
		}
		found = append(found, h)
		for _, key := range []string{"input.session_id", "input.transcript_path", "input.cwd", "input.hook_event_name"} {
			if h.String(key) == "" && key != "input.transcript_path" {
				r.t.Errorf("the input of %s has no %s", event, key)
			}
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("%d calls of the %s hook, want one\n%s", len(found), event, r.story())
	}
	return found[0]
}

func TestHooks(t *testing.T) {
	t.Parallel()
	hello := `{"emit": [{"text": "Done."}]}`
	ran := func(asked int) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			h := r.hooked("PreToolUse")
			if h["use"] == nil || h["use"] == "" {
				t.Errorf("the hook got no tool_use_id: %v", h)
			}
			r.count("ask", asked)
			mentions(t, "the tool result", r.tool(false), "it-ran")
			r.results("ok Done.")
		}
	}
	// denied: the tool doesn't run, and its result says why.
	denied := func(event string, parts ...string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.hooked(event)
			mentions(t, "the tool result", r.tool(true), parts...)
			r.results("ok Done.")
			if r.made("ran") {
				t.Error("the tool ran")
			}
		}
	}
	// told: the model is told something.
	told := func(event, what string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.hooked(event)
			mentions(t, "what the model got", r.model.last(t), what)
			r.results("ok Done.")
		}
	}
	// stopped: the run ends after the tool call, without another word of the
	// model.
	stopped := func(event string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.hooked(event)
			if got := len(r.model.asked()); got != 1 {
				t.Errorf("the model was asked %d times, want once", got)
			}
			if got := r.one("result").String("terminal_reason"); got != "hook_stopped" {
				t.Errorf("the terminal reason is %q", got)
			}
		}
	}
	play(t, []scenario{
		{name: "hook_pre_deny", kits: claudes, model: runs, expect: denied("PreToolUse", "no such thing")},
		{name: "hook_pre_block", kits: claudes, model: runs, expect: denied("PreToolUse", "the old way")},
		{name: "hook_pre_raises", kits: claudes, model: runs, expect: denied("PreToolUse", "the hook broke")},
		{name: "hook_timeout", kits: claudes, model: runs, expect: denied("PreToolUse")},
		{name: "hook_pre_allow", kits: claudes, model: runs, expect: ran(0)},
		{name: "hook_pre_ask", kits: claudes, model: `{"emit": [{"tool": "Bash", "input": {"command": "echo it-ran"}}]} {"emit": [{"text": "Done."}]}`, expect: ran(1)},
		{name: "hook_async", kits: claudes, model: runs, expect: ran(1)},
		{name: "hook_pre_context", kits: claudes, model: runs, expect: told("PreToolUse", "the moon is full")},
		{name: "hook_post_context", kits: claudes, model: runs, expect: told("PostToolUse", "the sea is calm")},
		{name: "hook_post_failure", kits: claudes, model: `{"emit": [{"tool": "Bash", "input": {"command": "exit 3"}}]} {"emit": [{"text": "Done."}]}`, expect: told("PostToolUseFailure", "try the other door")},
		{name: "hook_prompt_context", kits: claudes, model: hello, expect: told("UserPromptSubmit", "today is a holiday")},
		{name: "hook_pre_updated_input", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			mentions(t, "the tool result", r.tool(false), "changed")
			if r.made("ran") {
				t.Error("the input that the model gave was used")
			}
			r.results("ok Done.")
		}},
		{name: "hook_pre_and_post", kits: "python", model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			pre, post := r.hooked("PreToolUse"), r.hooked("PostToolUse")
			if pre["use"] != post["use"] || pre["use"] == "" {
				t.Errorf("the hooks got the ids %v and %v", pre["use"], post["use"])
			}
			if post["input"].(map[string]any)["tool_response"] == nil {
				t.Errorf("the PostToolUse hook got no response: %v", post)
			}
			r.results("ok Done.")
		}},
		{name: "hook_pre_other_tool", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("hook", 0)
			r.results("ok Done.")
		}},
		{name: "hook_pre_stop", kits: claudes, model: runs, expect: stopped("PreToolUse")},
		{name: "hook_post_stop", kits: claudes, model: runs, expect: stopped("PostToolUse")},
		{name: "hook_pre_defer", kits: "typescript", model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			result := r.one("result")
			if result.String("deferred_tool_use.name") != "Bash" || result.String("terminal_reason") != "tool_deferred" {
				t.Errorf("the result is %v", result)
			}
			if r.made("ran") {
				t.Error("the tool ran")
			}
		}},
		{name: "hook_prompt_block", kits: claudes, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.hooked("UserPromptSubmit")
			r.count("result", 1)
			if got := len(r.model.asked()); got != 0 {
				t.Errorf("the model was asked %d times", got)
			}
		}},
		{name: "hook_stop_block", kits: claudes, model: `{"emit": [{"text": "I think so."}]} {"when": {"user": {"contains": "not done yet"}}, "emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			calls := r.count("hook", 2)
			if calls[0].String("event") != "Stop" || calls[1]["input"].(map[string]any)["stop_hook_active"] != true {
				t.Errorf("the hook's calls are %v", calls)
			}
			r.results("ok Done.")
		}},
		{name: "hook_permission_allow", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.hooked("PermissionRequest")
			r.count("ask", 0)
			r.tool(false)
			r.results("ok Done.")
		}},
		{name: "hook_permission_deny", kits: claudes, model: runs, expect: denied("PermissionRequest", "the hook says no")},
		{name: "hook_compact", kits: claudes, model: `{"use": "always", "emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			if got := r.hooked("PreCompact")["input"].(map[string]any)["trigger"]; got != "manual" {
				t.Errorf("the trigger is %v", got)
			}
			r.count("result", 2)
		}},
		{name: "hook_notification", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			for _, h := range r.all("hook") {
				if h.String("input.message") == "" || h.String("input.notification_type") == "" {
					t.Errorf("the notification is %v", h)
				}
			}
			r.results("ok Done.")
		}},
		{name: "hook_session", kits: claudes, model: hello, expect: func(t *testing.T, r *played) {
			r.quiet()
			if got := r.hooked("SessionStart")["input"].(map[string]any)["source"]; got != "startup" {
				t.Errorf("the source is %v", got)
			}
			r.results("ok Done.")
		}},
		{name: "hook_fifty", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.one("all_there")
			r.tool(false)
			r.results("ok Done.")
		}},
		{name: "hook_events", kits: claudes, model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			var seen []string
			for _, e := range r.all("system") {
				if s := e.String("subtype"); strings.HasPrefix(s, "hook_") {
					seen = append(seen, s)
				}
			}
			if !contains(seen, "hook_started") || !contains(seen, "hook_response") {
				t.Errorf("the hook events are %v", seen)
			}
			r.results("ok Done.")
		}},
	})
}

package sdk

import (
	"strings"
	"testing"
)

// writes calls the writing tool once, and then says Done.
const writes = `{"emit": [{"tool": "@write", "input": {"file_path": "@dir/a.txt", "content": "first"}}]}
	{"emit": [{"text": "Done."}]}`

// isClaude reports whether the SDK is of that family.
func (r *played) isClaude() bool { return r.kit.dialect.names["@bash"] == "Bash" }

// asked demands one question about the call that writes.
func (r *played) asked() {
	r.t.Helper()
	ask := r.one("ask")
	if ask.String("name") != r.kit.dialect.names["@write"] || ask.String("input.content") != "first" || !strings.HasSuffix(ask.String("input.file_path"), "/a.txt") {
		r.t.Errorf("the question is %v", ask)
	}
	if s, ok := ask["suggestions"].([]any); !ok || len(s) == 0 {
		r.t.Errorf("the question has no suggestions: %v", ask)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	written := func(content string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			r.tool(false)
			r.results("ok Done.")
			if got := r.file("a.txt"); got != content {
				t.Errorf("the file has %q, want %q", got, content)
			}
		}
	}
	denied := func(reason string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			mentions(t, "the tool result", r.tool(true), reason)
			r.results("ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written: %q", got)
			}
		}
	}
	play(t, []scenario{
		{name: "ask_allow", kits: every, model: writes, expect: written("first")},
		{name: "ask_one_shot", kits: every, model: writes, expect: written("first")},
		{name: "ask_streamed", kits: "python", model: writes, expect: written("first")},
		{name: "ask_shell", kits: "python", model: runs, expect: func(t *testing.T, r *played) {
			r.quiet()
			if ask := r.one("ask"); ask.String("name") != "Bash" {
				t.Errorf("the question is %v", ask)
			}
			r.tool(false)
			r.results("ok Done.")
		}},
		{name: "ask_allow_bare", kits: "typescript", model: writes, expect: written("first")},
		{name: "ask_empty_input", kits: every, model: writes, expect: written("first")},
		{name: "ask_updated_input", kits: every, model: writes, expect: written("changed")},
		{name: "ask_deny", kits: every, model: writes, expect: denied("not this file")},
		{name: "ask_raises", kits: every, model: writes, expect: denied("the callback broke")},
		{name: "ask_deny_interrupt", kits: every, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			mentions(t, "the tool result", r.tool(true), "stop at once")
			if got := len(r.model.asked()); got != 1 {
				t.Errorf("the model was asked %d times, want once: the turn was to end", got)
			}
			r.results("error_during_execution")
		}},
		{name: "ask_nobody", kits: every, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			if text := strings.ToLower(r.tool(true)); !strings.Contains(text, "denied") && !strings.Contains(text, "permission") {
				t.Errorf("the tool result doesn't say that it was denied: %s", text)
			}
			r.results("ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written: %q", got)
			}
		}},
		{name: "ask_late", kits: claudes, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 1)
			r.count("withdrawn", 1)
			r.results("error_during_execution", "ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("a late answer let the file be written: %q", got)
			}
		}},
		{name: "ask_late", kits: "qwen", alone: true, model: writes + `{"emit": [{"text": "Still here."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			r.tool(true)
			r.results("ok Done.", "ok Still here.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("a late answer let the file be written: %q", got)
			}
		}},
		{name: "ask_never", kits: claudes, model: writes, expect: func(t *testing.T, r *played) {
			r.count("ask", 1)
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written without an answer: %q", got)
			}
		}},
		{name: "ask_never", kits: qwens, model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			r.tool(true)
			r.results("ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written without an answer: %q", got)
			}
		}},
		{name: "ask_eof", kits: qwens, model: `{"emit": [{"text": "Hello."}]}` + writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.asked()
			r.tool(true)
			r.results("ok Hello.", "ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written though stdin had closed: %q", got)
			}
		}},
		{name: "ask_eof", kits: claudes, model: `{"emit": [{"text": "Hello."}]}` + writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.tool(true)
			r.results("ok Hello.", "ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written though stdin had closed: %q", got)
			}
		}},
		{name: "ask_oversize", kits: every, model: oversize, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.")
			if !r.isClaude() { // no limit there
				r.count("ask", 1)
				return
			}
			r.count("ask", 0)
			mentions(t, "the tool result", r.tool(true), "smaller")
		}},
		{name: "ask_updated_permissions", kits: claudes, model: `
			{"when": {"user": {"regex": "^(touch .)$"}}, "use": 2, "emit": [{"tool": "Bash", "input": {"command": "{{user.1}}"}}]}
			{"use": "always", "emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 1)
			r.results("ok Done.", "ok Done.")
		}},
	})
}

// oversize writes more than the Python SDK can read in one line.
var oversize = `{"emit": [{"tool": "@write", "input": {"file_path": "@dir/a.txt", "content": "` + strings.Repeat("x", 1<<20) + `"}}]}
	{"emit": [{"text": "Done."}]}`

// TestToolLists are the lists of tools and the modes of the qwen SDK.
func TestToolLists(t *testing.T) {
	t.Parallel()
	both := `{"emit": [{"tool": "write_file", "input": {"file_path": "@dir/a.txt", "content": "first"}}, {"tool": "run_shell_command", "input": {"command": "touch ran"}}]}
		{"emit": [{"text": "Done."}]}`
	silently := func(t *testing.T, r *played) {
		r.quiet()
		r.count("ask", 0)
		r.tool(false)
		r.results("ok Done.")
		if got := r.file("a.txt"); got != "first" {
			t.Errorf("the file has %q", got)
		}
	}
	refused := func(parts ...string) func(t *testing.T, r *played) {
		return func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 0)
			mentions(t, "the tool result", r.tool(true), parts...)
			r.results("ok Done.")
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file has %q", got)
			}
		}
	}
	play(t, []scenario{
		{name: "default_reads", kits: qwens, files: []string{"a.txt", "inside"}, model: `{"emit": [{"tool": "read_file", "input": {"file_path": "@dir/a.txt"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 0)
			mentions(t, "the tool result", r.tool(false), "inside")
			r.results("ok Done.")
		}},
		{name: "yolo", kits: qwens, model: both, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 0)
			r.results("ok Done.")
			if r.file("a.txt") != "first" || r.count("tool_result", 2)[1]["error"] != false {
				t.Error("a tool did not run")
			}
		}},
		{name: "plan", kits: qwens, model: both, expect: func(t *testing.T, r *played) {
			r.quiet()
			if got := r.one("init").String("data.permission_mode"); got != "plan" {
				t.Errorf("the mode is %q", got)
			}
			r.count("ask", 0)
			all := r.count("tool_result", 2)
			mentions(t, "the result of write_file", strings.ToLower(all[0].String("text")), "plan mode")
			if all[0]["error"] != true || all[1]["error"] != true || r.file("a.txt") != "" {
				t.Error("a tool ran in plan mode")
			}
			r.results("ok Done.")
		}},
		{name: "auto_edit", kits: qwens, model: writes, expect: silently},
		{name: "allow_tools", kits: qwens, model: writes, expect: silently},
		{name: "exclude_unknown", kits: qwens, model: writes, expect: silently},
		{name: "exclude_write", kits: qwens, model: writes, expect: refused("ermission", "denied", "write_file")},
		{name: "plan_beats_allow", kits: qwens, model: writes, expect: refused("plan mode")},
		{name: "core_tools", kits: qwens, model: `{"emit": [{"tool": "list_directory", "input": {"path": "@dir"}}]}` + writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("tool_result", 2)
			if all[0]["error"] != true || all[1]["error"] != false || r.file("a.txt") != "first" {
				t.Errorf("the tool results are %v", all)
			}
			first := r.model.asked()[0]
			mentions(t, "the request", first, `"write_file"`)
			if strings.Contains(first, `"name":"list_directory"`) || strings.Contains(first, `"name":"run_shell_command"`) {
				t.Error("a tool is offered that is not in the list")
			}
			r.results("ok Done.")
		}},
		{name: "core_tools_none", kits: qwens, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.")
		}},
		{name: "exclude_env", kits: qwens, files: []string{".env", "SECRET=1", "a.txt", "inside"}, model: `{"emit": [{"tool": "read_file", "input": {"file_path": "@dir/.env"}}, {"tool": "read_file", "input": {"file_path": "@dir/a.txt"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("tool_result", 2)
			if all[0]["error"] != true || all[1]["error"] != false {
				t.Errorf("the tool results are %v", all)
			}
			r.results("ok Done.")
		}},
		{name: "exclude_rm", kits: qwens, files: []string{"a.txt", "inside"}, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "rm a.txt"}}, {"tool": "run_shell_command", "input": {"command": "touch ran"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("tool_result", 2)
			if all[0]["error"] != true || all[1]["error"] != false || r.file("a.txt") != "inside" {
				t.Errorf("the tool results are %v", all)
			}
			r.results("ok Done.")
		}},
		{name: "exclude_prefix", kits: qwens, files: []string{"a.txt", "inside"}, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "rm a.txt"}}, {"tool": "run_shell_command", "input": {"command": "touch ran"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("tool_result", 2)
			if all[0]["error"] != true || all[1]["error"] != false || r.file("a.txt") != "inside" {
				t.Errorf("the tool results are %v", all)
			}
			if strings.Contains(r.model.asked()[0], `"name":"glob"`) {
				t.Error("a tool is offered that is excluded by its other name")
			}
			r.results("ok Done.")
		}},
		{name: "allow_prefix", kits: qwens, files: []string{"b.txt", "inside"}, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "touch a.txt"}}, {"tool": "run_shell_command", "input": {"command": "rm b.txt"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 1)
			if all := r.count("tool_result", 2); all[0]["error"] != false || r.file("b.txt") != "inside" {
				t.Errorf("the tool results are %v", all)
			}
			r.results("ok Done.")
		}},
		{name: "allow_patterns", kits: qwens, files: []string{"b.txt", "inside"}, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "touch a.txt"}}, {"tool": "run_shell_command", "input": {"command": "rm b.txt"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 1)
			all := r.count("tool_result", 2)
			if all[0]["error"] != false || r.file("b.txt") != "inside" {
				t.Errorf("the tool results are %v", all)
			}
			mentions(t, "the denied result", all[1].String("text"), "[Operation Cancelled] Reason: not that")
			r.results("ok Done.")
		}},
		{name: "allow_edit_pattern", kits: qwens, model: `{"emit": [{"tool": "write_file", "input": {"file_path": "@dir/config.json", "content": "{}"}}, {"tool": "write_file", "input": {"file_path": "@dir/.env", "content": "A=1"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			if ask := r.one("ask"); ask.String("name") != "write_file" {
				t.Errorf("the question is %v", ask)
			}
			mentions(t, "the denied result", r.count("tool_result", 2)[1].String("text"), "[Operation Cancelled] Reason: not that")
			if r.file("config.json") != "{}" || r.file(".env") != "" {
				t.Error("the wrong file was written")
			}
			r.results("ok Done.")
		}},
	})
}

package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

func TestControl(t *testing.T) {
	t.Parallel()
	always := `{"use": "always", "emit": [{"text": "Done."}]}`
	then := `{"when": {"user": {"contains": "and now?"}}, "emit": [{"text": "Still here."}]}`
	interrupted := func(t *testing.T, r *played) {
		r.quiet()
		all := r.results("error_during_execution", "ok Still here.")
		if reason := all[0].String("terminal_reason"); r.isClaude() && !strings.HasPrefix(reason, "aborted_") {
			t.Errorf("the terminal reason is %q", reason)
		}
		if r.isClaude() && all[0]["is_error"] != false {
			t.Error("an interrupt is reported as an error")
		}
	}
	play(t, []scenario{
		{name: "interrupt_stream", kits: every, model: `{"when": {"user": "begin"}, "emit": [{"text": ["It was a dark ", "and stormy "]}, {"fault": "stall"}]}` + then, expect: interrupted},
		{name: "interrupt_tool", kits: every, model: `{"when": {"user": "begin"}, "emit": [{"tool": "@bash", "input": {"command": "trap '' TERM; echo $$ > pid; touch started; while :; do sleep 1; done"}}]}` + then, expect: func(t *testing.T, r *played) {
			interrupted(t, r)
			r.tool(true)
			if dir := "/proc/" + strings.TrimSpace(r.file("pid")); r.file("pid") != "" {
				if _, err := os.Stat(dir); err == nil {
					t.Error("the interrupted tool still runs")
				}
			}
		}},
		{name: "interrupt_question", kits: every, model: then + writes, expect: func(t *testing.T, r *played) {
			interrupted(t, r)
			r.asked()
			r.tool(true)
			if got := r.file("a.txt"); got != "" {
				t.Errorf("the file was written though the question was interrupted: %q", got)
			}
		}},
		{name: "interrupt_retry", kits: every, model: then + `{"use": "always", "emit": [{"status": 529, "retry_after": 30}]}`, expect: interrupted},
		{name: "interrupt_idle", kits: every, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.one("interrupted")
			r.results("ok Done.")
		}},
		{name: "set_model", kits: claudes, model: always, expect: models("claude-sonnet-4-5", "claude-opus-4-5", "claude-sonnet-4-5")},
		{name: "set_model", kits: qwens, model: always, expect: models("gpt-test", "gpt-test-2", "gpt-test-3")},
		{name: "set_mode", kits: claudes, model: `
			{"use": 3, "when": {"user": "write it"}, "emit": [{"tool": "Write", "input": {"file_path": "@dir/a{{turn}}.txt", "content": "x"}}]}` + always, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("result", 3)
			if got := r.modes(); got != "default acceptEdits plan" {
				t.Errorf("the modes of the turns are %s", got)
			}
			results := r.count("tool_result", 3)
			if results[0]["error"] != true || results[1]["error"] != false || results[2]["error"] != true {
				t.Errorf("the tool results are %v", results)
			}
			mentions(t, "the refusal", r.one("refused").String("message"), "bogus")
		}},
		{name: "set_mode", kits: qwens, model: `
			{"use": 3, "when": {"user": "write it"}, "emit": [{"tool": "write_file", "input": {"file_path": "@dir/a{{turn}}.txt", "content": "x"}}]}
			{"when": {"user": "run it"}, "emit": [{"tool": "run_shell_command", "input": {"command": "touch ran"}}]}` + always, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("ask", 1)
			if got := r.modes(); got != "default auto-edit plan yolo" {
				t.Errorf("the modes of the turns are %s", got)
			}
			results := r.count("tool_result", 4)
			if results[0]["error"] != true || results[1]["error"] != false || results[2]["error"] != true || results[3]["error"] != false {
				t.Errorf("the tool results are %v", results)
			}
			r.results("ok Done.", "ok Done.", "ok Done.", "ok Done.")
		}},
		{name: "context_usage", kits: every, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			data := testkit.Frame(r.one("usage"))
			total, _ := data.Get("data.totalTokens")
			if n, ok := total.(float64); !ok || n < 0 {
				t.Errorf("the usage is %v", data)
			}
		}},
		{name: "usage_info", kits: "qwen", model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			raw, _ := json.Marshal(r.one("usage")["data"])
			var got struct {
				Range  string
				Models []struct{ Share, CacheReadRate *float64 }
				Daily  []struct {
					Date             string
					Tokens, Sessions int
				}
				Heatmap     map[string]struct{ Tokens int }
				HeatmapDays int
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if got.Range != "today" || len(got.Models) != 1 || got.Models[0].Share == nil || *got.Models[0].Share != 1 || got.Models[0].CacheReadRate == nil ||
				len(got.Daily) != 1 || got.Daily[0].Sessions != 1 || got.Daily[0].Tokens == 0 || got.Heatmap[got.Daily[0].Date].Tokens != got.Daily[0].Tokens || got.HeatmapDays != 1 {
				t.Errorf("the usage is %s", raw)
			}
		}},
		{name: "command_fails", kits: qwens, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			texts := r.count("text", 2)
			failed := testkit.Frame(r.count("result", 2)[0])
			mentions(t, "the failure", failed.String("error.message"), "no-such-mode")
			if failed["is_error"] != true || texts[0].String("text") != failed.String("error.message") {
				t.Errorf("the failed command says %q, its result is %v", texts[0].String("text"), failed)
			}
		}},
		{name: "commands", kits: qwens, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			list, _ := r.one("commands").Get("data.commands")
			raw, _ := json.Marshal(list)
			var names []string
			if err := json.Unmarshal(raw, &names); err != nil {
				t.Fatalf("the commands are %s", raw)
			}
			for _, want := range []string{"init", "summary", "compress"} {
				if !contains(names, want) {
					t.Errorf("no %s among the commands %v", want, names)
				}
			}
			if !sort.StringsAreSorted(names) {
				t.Errorf("the commands are not sorted: %v", names)
			}
		}},
		{name: "server_info", kits: claudes, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			info, _ := r.one("info")["data"].(map[string]any)
			for _, key := range []string{"commands", "agents", "output_style", "available_output_styles", "models", "account"} {
				if info[key] == nil {
					t.Errorf("what initialize answered has no %s", key)
				}
			}
		}},
		{name: "thinking_tokens", kits: "typescript", model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.", "ok Done.")
			asked := r.model.asked()
			mentions(t, "the first request", asked[0], `"thinking"`, "2048")
		}},
		{name: "flag_settings", kits: "typescript", model: writes, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.tool(false)
			r.results("ok Done.")
		}},
		{name: "rewind_refused", kits: claudes, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			if len(r.all("refused")) == 0 && r.one("rewound").String("data.error") == "" {
				t.Error("rewinding said nothing of what it can't do")
			}
		}},
		{name: "stop_task_unknown", kits: claudes, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			mentions(t, "the refusal", r.one("refused").String("message"), "no-such-task")
		}},
		{name: "closed", kits: qwens, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			for _, f := range r.count("refused", 3) {
				mentions(t, "the refusal", f.String("message"), "Query is closed")
			}
		}},
		{name: "input_ended", kits: qwens, model: always, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.")
			r.one("refused")
		}},
	})
}

// models demands a model per turn, in the first frame and in the request.
func models(want ...string) func(t *testing.T, r *played) {
	return func(t *testing.T, r *played) {
		r.quiet()
		inits, asked := r.count("init", len(want)), r.model.asked()
		for i, init := range inits {
			if got := init.String("data.model"); got != want[i] {
				t.Errorf("turn %d begins with the model %q, want %q", i, got, want[i])
			}
			mentions(t, "the request", asked[i], `"model":"`+want[i]+`"`)
		}
		if !r.isClaude() {
			r.count("system", 0)
		}
	}
}

// modes are the permission modes that the turns began with.
func (r *played) modes() string {
	var out []string
	for _, init := range r.all("init") {
		out = append(out, init.String("data.permissionMode")+init.String("data.permission_mode"))
	}
	return strings.Join(out, " ")
}

func TestEnds(t *testing.T) {
	t.Parallel()
	loop := `{"use": "always", "emit": [{"tool": "@bash", "input": {"command": "echo {{turn}}"}}]}`
	unauthorized := `{"use": "always", "emit": [{"status": 404, "message": "no such model here"}]}`
	aborted := func(t *testing.T, r *played) {
		r.quiet()
		if got := r.one("aborted"); got["abort"] != true {
			t.Errorf("what was thrown is %v", got)
		}
	}
	play(t, []scenario{
		{name: "structured", kits: claudes, model: `
			{"emit": [{"tool": "StructuredOutput", "input": {"answer": "many"}}]}
			{"emit": [{"tool": "StructuredOutput", "input": {"answer": 42}}]}
			{"use": "always", "emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			result := r.one("result")
			if v, _ := result.Get("structured_output.answer"); v != 42.0 || result["is_error"] != false {
				t.Errorf("the result is %v", result)
			}
		}},
		{name: "structured_after_tool", kits: "python", model: `
			{"emit": [{"tool": "Bash", "input": {"command": "echo 42"}}]}
			{"emit": [{"tool": "StructuredOutput", "input": {"answer": 42, "kind": "a", "list": [{"x": "y"}]}}]}
			{"use": "always", "emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			result := r.one("result")
			if v, _ := result.Get("structured_output.kind"); v != "a" || result["is_error"] != false {
				t.Errorf("the result is %v", result)
			}
		}},
		{name: "max_turns", kits: claudes, model: loop, expect: func(t *testing.T, r *played) {
			result := r.one("result")
			if result.String("subtype") != "error_max_turns" || result.String("terminal_reason") != "max_turns" {
				t.Errorf("the result is %v", result)
			}
			raised := r.one("raised")
			mentions(t, "what was raised", raised.String("message"), "2")
		}},
		{name: "max_turns", kits: qwens, model: loop, expect: func(t *testing.T, r *played) {
			mentions(t, "what was raised", r.one("raised").String("message"), "code 53")
			if got := len(r.model.asked()); got != 2 {
				t.Errorf("the model was asked %d times, want twice", got)
			}
		}},
		{name: "api_error", kits: claudes, model: unauthorized, expect: func(t *testing.T, r *played) {
			result := r.one("result")
			if result.String("subtype") != "success" || result["is_error"] != true || result.String("terminal_reason") != "api_error" || result["api_error_status"] != 404.0 {
				t.Errorf("the result is %v", result)
			}
			mentions(t, "what was raised", r.one("raised").String("message"), "no such model here")
		}},
		{name: "api_error", kits: qwens, model: unauthorized, expect: func(t *testing.T, r *played) {
			r.quiet()
			result := r.one("result")
			if result.String("subtype") != "error_during_execution" || result["is_error"] != true {
				t.Errorf("the result is %v", result)
			}
			mentions(t, "the error", result.String("error.message"), "no such model here")
		}},
		{name: "api_error_goes_on", kits: every, model: `{"emit": [{"status": 404, "message": "no such model here"}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("result", 2)
			if all[0]["is_error"] != true || all[1]["is_error"] != false {
				t.Errorf("the results are %v", all)
			}
		}},
		{name: "no_executable", kits: qwens, model: loop, expect: func(t *testing.T, r *played) {
			mentions(t, "the refusal", r.one("refused").String("message"), "Invalid pathToQwenExecutable")
		}},
		{name: "eof_tool", kits: every, model: `
			{"emit": [{"tool": "@bash", "input": {"command": "touch started; until [ -e go ]; do sleep 0.02; done; echo went"}}]}
			{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			mentions(t, "the tool result", r.tool(false), "went")
			r.results("ok Done.")
		}},
		{name: "big_answer", kits: every, model: `{"emit": [{"text": "` + strings.Repeat("0123456789abcdef", 1<<10) + `", "repeat": 64}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			whole := strings.Repeat("0123456789abcdef", 64<<10)
			text, result := r.one("text").String("text"), r.one("result").String("result")
			if r.isClaude() { // Python reads no such line
				text, result = keptFile(t, text), keptFile(t, result)
			}
			if text != whole || result != whole {
				t.Errorf("the answer came with %d characters, the result with %d, want %d", len(text), len(result), len(whole))
			}
		}},
		{name: "big_output", kits: every, model: `{"emit": [{"tool": "@bash", "input": {"command": "head -c 3000000 /dev/zero | tr '\\0' x"}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			if n := len(r.tool(false)); n == 0 || n > 1<<20 {
				t.Errorf("the tool result has %d characters", n)
			}
			r.results("ok Done.")
		}},
		{name: "big_prompt", kits: every, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.")
			if n := len(r.model.last(t)); n < 2<<20 {
				t.Errorf("the model got only %d bytes", n)
			}
		}},
		{name: "abort_stream", kits: qwens, model: `{"emit": [{"text": ["It was a dark ", "and stormy "]}, {"fault": "stall"}]}`, expect: aborted},
		{name: "abort_assistant", kits: qwens, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "sleep 60"}}]}`, expect: aborted},
		{name: "abort_at_once", kits: qwens, model: `{"emit": [{"fault": "stall"}]}`, expect: aborted},
	})
}

// keptFile is the content of the file that a shortened text names.
func keptFile(t *testing.T, text string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, "the whole is in ")
	content, err := os.ReadFile(strings.TrimRight(strings.Fields(rest + " ?")[0], "]).,"))
	if err != nil {
		t.Errorf("%v: %.200q ... %.300q", err, text, text[max(0, len(text)-300):])
	}
	return string(content)
}

// TestConsumerKilled kills the process that uses the SDK while a tool runs: the
// program and the tool end by themselves.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(every) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := need(t, name)
			r := newPlayed(t, k, scenario{name: "consumer_killed", model: `
				{"emit": [{"tool": "@bash", "input": {"command": "echo $PPID > parent; echo $$ > pid; touch started; exec sleep 600"}}]}
				{"use": "always", "emit": [{"text": "Done."}]}`})
			d, err := k.start()
			if err != nil {
				t.Fatal(err)
			}
			if err := d.ask(r.id, r.name, r.dir, variables(r.env)); err != nil {
				t.Fatal(err)
			}
			if r.events, err = d.await(r.id, "kill_me", scenarioLimit); err != nil {
				t.Fatalf("%v\n%s", err, r.story())
			}
			_ = d.cmd.Process.Signal(syscall.SIGKILL)
			_ = d.cmd.Wait()
			for _, file := range []string{"pid", "parent"} {
				pid := strings.TrimSpace(r.file(file))
				if pid == "" || pid == "1" {
					continue
				}
				if !gone(filepath.Join("/proc", pid), 15*time.Second) {
					t.Errorf("the process in %s outlives its user", file)
				}
			}
		})
	}
}

// gone waits until a path is not there.
func gone(path string, limit time.Duration) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if _, err := os.Stat(path); err != nil {
			return true
		}
	}
	return false
}

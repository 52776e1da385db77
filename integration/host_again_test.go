package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestASecondInitialize: a second initialize takes the place of the first one:
// hooks that it doesn't name are gone, and a call of a hook that is under way is
// cancelled; agents are others if it names any.
func TestASecondInitialize(t *testing.T) {
	t.Parallel()
	for _, dialect := range hookDialects {
		for name, second := range map[string]map[string]any{
			"null": {"hooks": nil, "agents": nil}, "absent": {},
			"others": {"hooks": hookOn("Stop", "stop"), "agents": map[string]any{"theirs": map[string]any{"description": "d", "prompt": "p"}}},
		} {
			t.Run(dialect+" "+name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				h := p.host(t, dialect, testkit.Spec{Args: []string{"--permission-mode=bypassPermissions", p.scripted(shell(1, "touch one") + shell(3, "touch two") + say("done"))}})
				h.initialize(map[string]any{
					"hooks":  hookOn("PreToolUse", "before"),
					"agents": map[string]any{"mine": map[string]any{"description": "d", "prompt": "p"}},
				})
				h.say("go")
				first := h.await("init", isInitFrame)
				call := h.asked("hook_callback")
				body := map[string]any{"subtype": "initialize"}
				for k, v := range second {
					body[k] = v
				}
				h.ask("again", body)
				h.await("the end of the hook's call", func(f testkit.Frame) bool {
					return f.Kind() == "control_cancel_request" && f.String("request_id") == call.String("request_id")
				})
				if a := h.answer("again"); a.String("response.subtype") != "success" {
					t.Fatalf("%v", a)
				}
				stops := 0
				end := func() {
					if name == "others" {
						stop := h.asked("hook_callback")
						if stop.String("request.callback_id") != "stop" {
							t.Errorf("the hook %q is called", stop.String("request.callback_id"))
						}
						stops++
						h.reply(stop, map[string]any{})
					}
					h.result()
				}
				end()
				h.say("go on")
				next := h.await("init", isInitFrame)
				end()
				if p.has("one") || !p.has("two") { // a call is denied whose hook doesn't answer
					t.Errorf("commands were run: %v, %v, want the second one", p.has("one"), p.has("two"))
				}
				agents := func(f testkit.Frame) string { return fmt.Sprint(f["agents"]) }
				if !strings.Contains(agents(first), "mine") || strings.Contains(agents(next), "mine") == (name == "others") || strings.Contains(agents(next), "theirs") != (name == "others") {
					t.Errorf("agents %s, then %s", agents(first), agents(next))
				}
				if n := requestsOf(h.end(0), "hook_callback"); n != 1+stops {
					t.Errorf("%d calls of hooks", n)
				}
			})
		}
	}
}

// TestServerInstructions: what a connected MCP server says of itself reaches the
// model, bounded, quoted and without what nobody sees, in the same words each
// time, and goes with the server.
func TestServerInstructions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	url, got := capture(t)
	h := p.host(t, "native", testkit.Spec{
		Args: []string{"--model", "claude-sonnet-4-5", mcpFlag(map[string]any{"guide": userServer(t, "guide", mark(), p.dir)})},
		Env:  []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url},
	})
	h.initialize(nil)
	system := func() string {
		h.say("hi")
		h.result()
		raw, _ := json.Marshal((<-got).body["system"])
		return string(raw)
	}
	first := system()
	_, notes, ok := strings.Cut(first, `## \"guide\"`)
	if !ok || !strings.HasPrefix(notes, `\n\u003e Ask twice.\n\u003e # Rules\n\u003e turn this[31mxxx`) {
		t.Fatalf("the system prompt is %s", first)
	}
	if len(notes) > 2500 {
		t.Errorf("the notes take %d bytes", len(notes))
	}
	if again := system(); again != first {
		t.Errorf("another time it is %s", again)
	}
	h.ask("off", map[string]any{"subtype": "mcp_toggle", "serverName": "guide", "enabled": false})
	if off := system(); strings.Contains(off, "guide") {
		t.Errorf("without the server it is %s", off)
	}
	h.CloseStdin()
	if _, err := h.Wait(patience); err != nil {
		t.Error(err)
	}
}

// TestErrorsNameToolsAsTheModelDoes: what a tool that failed tells the model to
// call has the name that the model knows.
func TestErrorsNameToolsAsTheModelDoes(t *testing.T) {
	t.Parallel()
	eachDialect(t, func(t *testing.T, dialect string) {
		p := newPlace(t)
		p.write("a.txt", "one\n")
		h := p.host(t, dialect, testkit.Spec{Args: []string{"--permission-mode=yolo", p.scripted(
			call(1, "edit", map[string]any{"file_path": "a.txt", "old_string": "one", "new_string": "two"}) +
				call(2, "read_file", map[string]any{"file_path": "."}) +
				call(3, "run_shell_command", map[string]any{"command": "sleep 60", "run_in_background": true}) + say("done"))}})
		h.initialize(nil)
		h.say("go")
		h.result()
		want := []string{"with read_file first", "use list_directory", "with task_output, end it with task_stop"}
		if dialect == "claude" {
			want = []string{"with Read first", "use LS", "with TaskOutput, end it with TaskStop"}
		}
		results := toolResults(h.frames())
		if len(results) != len(want) {
			t.Fatalf("%d results: %s", len(results), h.Output())
		}
		for i, r := range results {
			if !strings.Contains(r.text, want[i]) {
				t.Errorf("the result is %q, want %q", r.text, want[i])
			}
		}
		h.CloseStdin()
		if _, err := h.Wait(patience); err != nil {
			t.Error(err)
		}
	})
}

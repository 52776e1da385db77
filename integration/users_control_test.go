package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// TestUsersRow04_TheEndOfInputFailsWhatIsOpenAtOnce closes stdin while a
// question, a hook and a call of a tool inside the host are open: each ends by an
// answer that says why, and the run by its result.
func TestUsersRow04_TheEndOfInputFailsWhatIsOpenAtOnce(t *testing.T) {
	t.Parallel()
	eachDialect(t, func(t *testing.T, dialect string) {
		t.Run("question", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.host(t, dialect, testkit.Spec{Args: []string{p.scripted(write(1, "new.txt") + write(2, "other.txt") + say("done"))}})
			h.initialize(nil)
			h.say("go")
			h.asked("can_use_tool")
			h.closed(t, 2)
			if p.has("new.txt") || p.has("other.txt") {
				t.Error("a call ran that nobody allowed")
			}
		})
		t.Run("hook", func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(hookDialects, dialect) {
				t.Skip("its SDK has no hooks")
			}
			p := newPlace(t)
			h := p.host(t, dialect, testkit.Spec{Args: []string{"--permission-mode=yolo", p.scripted(write(1, "new.txt") + say("done"))}})
			h.initialize(map[string]any{"hooks": hookOn("PreToolUse", "h1")})
			h.say("go")
			h.asked("hook_callback")
			h.closed(t, 1)
			if p.has("new.txt") {
				t.Error("a call ran whose hook never answered")
			}
		})
		t.Run("tool", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.host(t, dialect, testkit.Spec{Args: []string{"--permission-mode=yolo", p.scripted(call(1, "mcp__inside__echo", map[string]any{"text": "x"}) + say("done"))}})
			h.withServer("inside")
			h.say("go")
			h.await("the call", func(f testkit.Frame) bool { return h.serve(f, "tools/call") })
			h.closed(t, 1)
		})
	})
}

// closed ends the input while something is open, and demands one answer to each
// of the calls, an error, a result, and an end soon.
func (h *userHost) closed(t *testing.T, calls int) {
	t.Helper()
	begin := time.Now()
	list := h.end(0)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
	answers := toolResults(list)
	if len(answers) != calls || len(results(list)) != 1 || results(list)[0].String("subtype") != "success" {
		t.Fatalf("%d answers, want %d; %d results\n%.4000s", len(answers), calls, len(results(list)), h.Output())
	}
	for _, a := range answers {
		if !a.isError || !strings.Contains(strings.ToLower(a.text), "closed") {
			t.Errorf("the answer does not say that the input was closed: %+v", a)
		}
	}
}

// withServer initializes a session with an MCP server inside the host, and
// serves it until its tools are known.
func (h *userHost) withServer(name string) {
	h.t.Helper()
	h.ask("init", map[string]any{"subtype": "initialize", "sdkMcpServers": []string{name}, "hooks": nil})
	h.await("the list of tools", func(f testkit.Frame) bool {
		if h.serve(f, "tools/call") {
			h.t.Error("a call before the tools were listed")
		}
		return f.String("request.message.method") == "tools/list"
	})
	if f := h.answer("init"); f.String("response.subtype") != "success" {
		h.t.Fatalf("initialize: %v", f)
	}
}

// serve answers a message to a server inside the host, unless it is of the
// method but; it reports that.
func (h *userHost) serve(f testkit.Frame, but string) bool {
	h.t.Helper()
	if f.String("request.subtype") != "mcp_message" {
		return false
	}
	id, _ := f.Get("request.message.id")
	var result any = map[string]any{}
	switch method := f.String("request.message.method"); method {
	case but:
		return true
	case "initialize":
		version, _ := f.Get("request.message.params.protocolVersion")
		result = map[string]any{"protocolVersion": version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "inside", "version": "1"}}
	case "tools/list":
		result = map[string]any{"tools": fakeTools("good")}
	case "tools/call":
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": "inside says " + f.String("request.message.params.name")}}}
	}
	h.reply(f, map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": id, "result": result}})
	return false
}

// TestUsersRow05_TheHostIsAskedOnceAndBeforeAnything: every tool that is not
// allowed, the host's own and a sub-agent's included, is asked about exactly
// once; while the host thinks nothing has happened, and a no means nothing does.
func TestUsersRow05_TheHostIsAskedOnceAndBeforeAnything(t *testing.T) {
	t.Parallel()
	inside := map[string]any{"description": "writes", "prompt": "You write.", "tools": []string{"write_file"}}
	cases := []struct{ name, steps, file string }{
		{"write", write(1, "made"), "made"},
		{"edit", call(1, "edit", map[string]any{"file_path": "made", "old_string": "", "new_string": "x"}), "made"},
		{"shell", shell(1, "touch made"), "made"},
		{"background", call(1, "run_shell_command", map[string]any{"command": "touch made", "run_in_background": true}), "made"},
		{"mcp", call(1, "mcp__fake__touch", map[string]any{}), "touched"},
		{"agent", `{"when": {"user": {"contains": "go"}, "turn": 1}, "emit": [{"tool": "agent", "input": {"description": "write it", "prompt": "please", "subagent_type": "writer"}}]}
{"when": {"user": {"contains": "please"}, "turn": 1}, "emit": [{"tool": "write_file", "input": {"file_path": "made", "content": "x"}}]}`, "made"},
	}
	for _, dialect := range sdkDialects {
		for _, c := range cases {
			for _, yes := range []bool{true, false} {
				t.Run(fmt.Sprint(dialect, "/", c.name, "/", yes), func(t *testing.T) {
					t.Parallel()
					p := newPlace(t)
					args := []string{p.scripted(c.steps + say("done")), "--agents", line(map[string]any{"writer": inside})}
					if c.name == "mcp" {
						args = append(args, mcpFlag(map[string]any{"fake": userServer(t, "good", mark(), p.dir)}))
					}
					h := p.host(t, dialect, testkit.Spec{Args: args})
					h.initialize(nil)
					h.say("go")
					asked := 0
					h.await("the result", func(f testkit.Frame) bool {
						if f.String("request.subtype") != "can_use_tool" {
							return f.Kind() == "result"
						}
						if asked++; asked == 1 && p.has(c.file) {
							t.Error("the call had its effect before the host answered")
						}
						if yes {
							h.reply(f, allow)
						} else {
							h.reply(f, deny)
						}
						return false
					})
					if yes {
						eventually(t, patience, "the call has its effect", func() bool { return p.has(c.file) })
					}
					h.end(0)
					if asked != 1 || p.has(c.file) != yes {
						t.Errorf("asked %d times, want once; the call had its effect: %v, want %v\n%.3000s", asked, p.has(c.file), yes, h.Output())
					}
				})
			}
		}
	}
}

// TestUsersRow06_PeopleAnswerWhenTheyDo: a question stays open for as long as
// nobody answers; one whose time was limited ends alone, its late answer changes
// nothing, and the next one is asked and answered.
func TestUsersRow06_PeopleAnswerWhenTheyDo(t *testing.T) {
	t.Parallel()
	steps := write(1, "one") + write(2, "two") + say("done")
	t.Run("no limit", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		h := p.host(t, "native", testkit.Spec{Args: []string{"--heartbeat=1", p.scripted(steps)}})
		h.initialize(nil)
		h.say("go")
		for i := range 2 {
			q := h.asked("can_use_tool")
			h.await("a heartbeat", func(f testkit.Frame) bool {
				return f.Kind() == "system/heartbeat" && f.String("turn") == "waiting"
			})
			h.reply(q, allow)
			if i == 1 {
				h.result()
			}
		}
		h.end(0)
		if !p.has("one") || !p.has("two") {
			t.Error("an allowed call did not run")
		}
	})
	eachDialect(t, func(t *testing.T, dialect string) {
		p := newPlace(t)
		h := p.host(t, dialect, testkit.Spec{Args: []string{p.scripted(steps)}})
		h.initialize(map[string]any{"timeout": map[string]any{"canUseTool": 300}})
		if dialect == "claude" {
			t.Skip("Claude's initialize has no limit for questions")
		}
		h.say("go")
		first := h.asked("can_use_tool")
		second := h.asked("can_use_tool") // the first one's time is up
		h.reply(first, allow)
		h.reply(second, allow)
		h.result()
		list := h.end(0)
		answers := toolResults(list)
		if p.has("one") || !p.has("two") || len(answers) != 2 || !answers[0].isError || answers[1].isError {
			t.Errorf("the first call ran: %v, the second: %v; %+v", p.has("one"), p.has("two"), answers)
		}
	})
}

// TestUsersRow11_TheHandshakeWaitsForNothing: without a network, without a key
// and with an MCP server that never answers initialize is answered at once, and
// SIGTERM and SIGKILL leave nothing.
func TestUsersRow11_TheHandshakeWaitsForNothing(t *testing.T) {
	t.Parallel()
	onLinux(t)
	eachDialect(t, func(t *testing.T, dialect string) {
		p, mark := newPlace(t), mark()
		rounds := 6
		if soak() {
			rounds = 100
		}
		best := time.Hour
		for i := range rounds {
			h := p.host(t, dialect, testkit.Spec{
				Args: []string{p.scripted(write(1, "new") + say("done")), mcpFlag(map[string]any{"deaf": userServer(t, "deaf", mark, p.dir), "away": map[string]any{"url": "http://" + unused(t) + "/sse"}})},
				Env:  []string{mark, "MCP_TIMEOUT=300"},
			})
			h.initialize(nil)
			for _, l := range h.Lines() {
				if strings.Contains(string(l.Text), `"control_response"`) {
					best = min(best, l.At)
				}
			}
			if i%2 == 0 {
				h.Signal(syscall.SIGKILL)
				if _, err := h.Wait(patience); err != nil {
					t.Fatal(err)
				}
				continue
			}
			h.say("go")
			h.asked("can_use_tool")
			told := time.Now()
			h.Signal(syscall.SIGTERM)
			if exit, err := h.Wait(patience); err != nil || exit.Code != 143 {
				t.Fatalf("%v, exit code %d: %s", err, exit.Code, h.Output())
			}
			if took := time.Since(told); took > 4*time.Second {
				t.Errorf("SIGTERM took %s", took)
			}
		}
		if best > 500*time.Millisecond {
			t.Errorf("initialize was answered after %s at best", best)
		}
		noneLeft(t, mark, 5*time.Second)
	})
}

// TestUsersRow14_QuestionsGoToTheUserAndBack: the host's answers are what the
// model gets; a host that refuses, or goes away, gives none.
func TestUsersRow14_QuestionsGoToTheUserAndBack(t *testing.T) {
	t.Parallel()
	question := call(1, "ask_user", map[string]any{"questions": []any{map[string]any{
		"question": "Which colour?", "header": "colour", "options": []any{map[string]any{"label": "red", "description": "r"}, map[string]any{"label": "blue", "description": "b"}},
	}}})
	steps := question + `{"emit": [{"text": "{{last_tool_result}}"}]}`
	eachDialect(t, func(t *testing.T, dialect string) {
		for _, how := range []string{"answered", "denied", "empty", "refused", "gone"} {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				h := p.host(t, dialect, testkit.Spec{Args: []string{p.scripted(steps)}})
				h.initialize(nil)
				h.say("go")
				q := h.asked("can_use_tool")
				input, _ := q.Get("request.input")
				mustContain(t, "the question", line(map[string]any{"input": input}), "Which colour?")
				updated := input.(map[string]any)
				updated["answers"] = map[string]any{"Which colour?": "blue"}
				if dialect == "qwen" {
					updated["answers"] = map[string]any{"0": "blue"}
				}
				switch how {
				case "answered":
					h.reply(q, map[string]any{"behavior": "allow", "updatedInput": updated})
				case "denied":
					h.reply(q, deny)
				case "empty":
					h.reply(q, allow)
				case "refused":
					h.refuse(q, "there is no user here")
				case "gone":
					h.CloseStdin()
				}
				h.result()
				list := h.end(0)
				answers := toolResults(list)
				if len(answers) != 1 || answers[0].isError == (how == "answered") {
					t.Fatalf("%+v\n%.3000s", answers, h.Output())
				}
				if strings.Contains(answers[0].text, "blue") != (how == "answered") {
					t.Errorf("the answer is %q", answers[0].text)
				}
			})
		}
	})
}

// TestUsersRow47_HooksRunBeforeTheToolInEveryMode: a PreToolUse callback is
// called before the tool has its effect whatever the mode and the rules are, and
// what it says, and that it fails, counts.
func TestUsersRow47_HooksRunBeforeTheToolInEveryMode(t *testing.T) {
	t.Parallel()
	say1 := func(decision string) any {
		return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "because"}}
	}
	outcomes := []struct {
		name   string
		output any
		stops  bool
	}{
		{"nothing", map[string]any{}, false},
		{"allow", say1("allow"), false},
		{"deny", say1("deny"), true},
		{"block", map[string]any{"decision": "block", "reason": "because"}, true},
		{"malformed", "what?", true},
		{"error", nil, true},
		{"timeout", nil, true},
	}
	for _, dialect := range hookDialects {
		for _, mode := range []string{"default", "yolo", "plan", "auto-edit"} {
			for _, o := range outcomes {
				t.Run(dialect+"/"+mode+"/"+o.name, func(t *testing.T) {
					t.Parallel()
					p := newPlace(t)
					h := p.host(t, dialect, testkit.Spec{Args: []string{"--permission-mode", mode, p.scripted(write(1, "made") + say("done")), "--allowed-tools=Write"}})
					on := hookOn("PreToolUse", "h1")
					if o.name == "timeout" {
						on["PreToolUse"].([]any)[0].(map[string]any)["timeout"] = 0.2
					}
					h.initialize(map[string]any{"hooks": on})
					h.say("go")
					f := h.asked("hook_callback")
					if p.has("made") {
						t.Error("the tool ran before its hook")
					}
					if f.String("request.callback_id") != "h1" {
						t.Errorf("the callback is %v", f)
					}
					switch o.name {
					case "error":
						h.refuse(f, "it crashed")
					case "timeout":
					default:
						h.reply(f, o.output)
					}
					h.await("the result", func(f testkit.Frame) bool {
						if f.String("request.subtype") == "can_use_tool" {
							h.reply(f, deny) // what asks is no business of this test
						}
						return f.Kind() == "result"
					})
					after := h.end(0)
					if want := !o.stops && mode != "plan"; p.has("made") != want {
						t.Errorf("the tool ran: %v, want %v\n%.3000s", p.has("made"), want, h.Output())
					}
					if n := len(toolResults(after)); n != 1 {
						t.Errorf("%d results of the call", n)
					}
				})
			}
		}
	}
}

// TestUsersRow47_EveryEventReachesItsHook registers all events and demands that
// those that happen are told, each in its place.
func TestUsersRow47_EveryEventReachesItsHook(t *testing.T) {
	t.Parallel()
	events := []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "Stop", "SessionEnd"}
	steps := write(1, "made") + call(2, "read_file", map[string]any{"file_path": "nowhere"}) +
		call(3, "agent", map[string]any{"description": "d", "prompt": "please", "subagent_type": "helper"}) + say("done")
	p := newPlace(t)
	h := p.host(t, "native", testkit.Spec{Args: []string{p.scripted(steps), "--agents", `{"helper":{"description":"helps","prompt":"You help."}}`}})
	hooks := map[string]any{}
	for _, e := range events {
		hooks[e] = []any{map[string]any{"matcher": nil, "hookCallbackIds": []string{"on-" + e}}}
	}
	h.initialize(map[string]any{"hooks": hooks})
	h.say("go")
	var order []string
	note := func(f testkit.Frame) bool {
		switch f.String("request.subtype") {
		case "hook_callback":
			e := f.String("request.input.hook_event_name")
			if f.String("request.callback_id") != "on-"+e {
				t.Errorf("%s came to %s", e, f.String("request.callback_id"))
			}
			order = append(order, e)
			if e == "PostToolUse" && len(order) < 7 && !p.has("made") {
				t.Error("PostToolUse before the tool")
			}
			h.reply(f, map[string]any{})
		case "can_use_tool":
			order = append(order, "question")
			h.reply(f, allow)
		}
		return f.Kind() == "result"
	}
	h.await("the result", note)
	told := strings.Join(order, " ")
	for _, part := range []string{
		"UserPromptSubmit PreToolUse PermissionRequest question PostToolUse PreToolUse PostToolUseFailure", "SubagentStart", "SubagentStop", "Stop",
	} {
		mustContain(t, "the order", told, part)
	}
	h.end(0)
	if !strings.HasPrefix(told, "SessionStart ") {
		t.Errorf("SessionStart is not the first: %s", told)
	}
}

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// The faults of the control plane, of hooks and of MCP servers. F15, a question
// that nobody answers, is in fault_net_stream_test.go.

// TestFaultF10_TheEndOfInputAnswersWhatIsOpen: a call that waits for the host
// fails at once, and the turn has its result.
func TestFaultF10_TheEndOfInputAnswersWhatIsOpen(t *testing.T) {
	t.Parallel()
	for subtype, init := range map[string]string{
		"can_use_tool":  `{"subtype":"initialize"}`,
		"hook_callback": `{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":null,"hookCallbackIds":["h"],"timeout":600}]}}`,
		"mcp_message":   `{"subtype":"initialize","sdkMcpServers":["s"]}`,
	} {
		t.Run(subtype, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			server := hostile([]map[string]any{remote("do", "does", nil)}, nil)
			h := p.puppet(func(kind string, request map[string]any) any {
				message, _ := request["message"].(map[string]any)
				if kind == "mcp_message" && message["method"] != "tools/call" {
					return server(kind, request)
				}
				return nil
			}, "--allowed-tools=mcp__s", p.scripted(calls(map[bool]attempt{true: {"mcp__s__do", map[string]any{}}, false: sh("touch made")}[subtype == "mcp_message"])))
			h.must(init)
			h.send(userLine("go"))
			h.until("the call", func(f testkit.Frame) bool {
				method := f.String("request.message.method")
				return f.String("request.subtype") == subtype && (method == "" || method == "tools/call")
			})
			h.proc.CloseStdin()
			begin := time.Now()
			h.result()
			exit := h.end()
			if took := time.Since(begin); took > 5*time.Second || exit.Code != 0 || p.has("made") {
				t.Errorf("%v to the end, exit code %d, made: %v", took, exit.Code, p.has("made"))
			}
		})
	}
}

// TestFaultF14_CallsOfTheHostsOwnHooksKeepNobodyWaiting: 10,000 of them that are
// never answered, ids used twice, answers to nothing, cancels of nothing.
func TestFaultF14_CallsOfTheHostsOwnHooksKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.puppet(nil, p.scripted(say("ok")))
	h.must(`{"subtype":"initialize","hooks":{"Stop":[{"matcher":null,"hookCallbackIds":["h"],"timeout":600}],"Notification":[{"hookCallbackIds":["n"]}]}}`)
	const n = 10_000
	for i := range n {
		h.send(fmt.Sprintf(`{"type":"control_request","request_id":"h%d","request":{"subtype":"hook_callback","callback_id":"n","input":{},"tool_use_id":null}}`, i))
	}
	begin := time.Now()
	for range 3 {
		h.must(`{"subtype":"heartbeat"}`)
		h.must(`{"subtype":"supported_commands"}`)
		h.must(`{"subtype":"set_permission_mode","mode":"plan"}`)
		h.must(`{"subtype":"interrupt"}`)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("others were answered after %v", took)
	}
	h.send(`{"type":"control_request","request_id":"h5","request":{"subtype":"heartbeat"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"nothing","response":{}}}`,
		`{"type":"control_cancel_request","request_id":"nothing"}`, `{"type":"control_cancel_request","request_id":"q1"}`,
		`{"type":"control_cancel_request","request_id":"h7"}`)
	h.until("the end of the one that was cancelled", func(f testkit.Frame) bool { return f.String("response.request_id") == "h7" })
	h.end()
	seen := map[string]int{}
	for _, l := range h.proc.Lines() {
		var f testkit.Frame
		if json.Unmarshal(l.Text, &f) == nil && f["type"] == "control_response" {
			seen[f.String("response.request_id")]++
		}
	}
	for i := range n {
		want := 1
		if i == 5 {
			want = 2
		}
		if got := seen[fmt.Sprintf("h%d", i)]; got != want {
			t.Fatalf("request h%d has %d responses, want %d", i, got, want)
		}
	}
}

// TestFaultF21_ServersThatMisbehave: none delays more than its turn, ends the
// session, or outlives it.
func TestFaultF21_ServersThatMisbehave(t *testing.T) {
	t.Parallel()
	onLinux(t)
	python := tool(t, "python3")
	for name, c := range map[string]struct{ code, state, ask string }{
		"crashes at start":          {"import sys; print('no', file=sys.stderr); sys.exit(3)", "failed", "no such"},
		"never answers":             {"import time; time.sleep(600)", "connecting failed", "no such"},
		"is deaf to the end":        {"import signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)", "connecting failed", ""},
		"floods stderr":             {strings.Replace(mcpServer, "for line", "import os\nfor _ in range(2000): os.write(2, b'x' * 10000)\nfor line", 1), "connected", "did"},
		"prints what is no message": {strings.Replace(mcpServer, "for line", "print('hello', flush=True); print('{\"a\":', flush=True); print('[]', flush=True); print('null', flush=True)\nfor line", 1), "connected", "did"},
		"answers 8 MB":              {strings.Replace(mcpServer, `"did"`, `"did" + "x" * 8000000`, 1), "connected", "did"},
		"answers 20 MB":             {strings.Replace(mcpServer, `"did"`, `"did" + "x" * 20000000`, 1), "", "over 16 MiB"},
		"crashes in a call":         {strings.Replace(mcpServer, `r = {"content"`, `sys.exit(7); r = {"content"`, 1), "", "ended during the call"},
		"floods notifications": {strings.Replace(mcpServer, `r = {"content"`,
			"\n        for _ in range(20000): print('{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}')\n        r = {\"content\"", 1), "connected", "did"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			mark := mark()
			key, value, _ := strings.Cut(mark, "=")
			p.env = append(p.env, "MCP_TIMEOUT=2000", mark)
			server := p.write("server.py", c.code)
			h := p.puppet(nil, p.scripted(`{"when": {"user": {"contains": "first"}}, "emit": [{"tool": "mcp__s__do", "input": {}}]}`+"\n"+say("done")), "--permission-mode=yolo")
			h.must(fmt.Sprintf(`{"subtype":"initialize","mcpServers":{"s":{"command":%q,"args":[%q],"env":{%q:%q}}}}`, python, server, key, value))
			h.prompt("first")
			begin := time.Now()
			if r := h.prompt("second"); r.String("result") != "done" {
				t.Errorf("the turn after it: %v", r)
			}
			if took := time.Since(begin); took > 1500*time.Millisecond && !strings.Contains(c.state, "connected") {
				t.Errorf("the second turn waited, too: %v", took)
			}
			status := h.must(`{"subtype":"mcp_server_status"}`)
			state, _ := status["status"].(map[string]any)["s"].(string)
			if c.state != "" && !slices.Contains(strings.Fields(c.state), state) {
				t.Errorf("it is %q", state)
			}
			if !strings.Contains(h.proc.Output(), c.ask) && c.ask != "no such" {
				t.Errorf("%q is not in what was told: %.300v", c.ask, toolResults(h.frames()))
			}
			if exit := h.end(); exit.Code != 0 {
				t.Errorf("exit code %d: %.2000s", exit.Code, h.proc.Stderr())
			}
			noneLeft(t, mark, 5*time.Second)
		})
	}
}

// TestFaultF21_ServersDieWithTheSession: also when a signal ends it in a call.
func TestFaultF21_ServersDieWithTheSession(t *testing.T) {
	t.Parallel()
	onLinux(t)
	python := tool(t, "python3")
	p := newPlace(t)
	mark := mark()
	key, value, _ := strings.Cut(mark, "=")
	server := p.write("server.py", strings.Replace(mcpServer, `r = {"content"`, "\n        import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600); r = {\"content\"", 1))
	h := p.puppet(nil, p.scripted(calls(attempt{"mcp__s__do", map[string]any{}})), "--permission-mode=yolo")
	h.must(fmt.Sprintf(`{"subtype":"initialize","mcpServers":{"s":{"command":%q,"args":[%q],"env":{%q:%q}}}}`, python, server, key, value))
	h.send(userLine("go"))
	h.until("the call", func(f testkit.Frame) bool { return f.Kind() == "assistant" })
	h.proc.Signal(syscall.SIGTERM)
	if exit, err := h.proc.Wait(10 * time.Second); err != nil || exit.Code != 143 {
		t.Errorf("exit code %d, %v", exit.Code, err)
	}
	noneLeft(t, mark, 5*time.Second)
}

// TestFaultF22_HooksThatFailGuardAllTheSame: a hook before a call that hangs,
// fails or says what can't be understood is a denial; one after it is no harm.
func TestFaultF22_HooksThatFailGuardAllTheSame(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]any{
		"hangs": nil, "fails": errors.New("it broke"), "is no object": json.RawMessage(`[1]`), "is a text": "deny", "decides nothing known": map[string]any{"decision": "maybe"},
		"has a wrong type": map[string]any{"hookSpecificOutput": map[string]any{"permissionDecision": 1}}, "says a key twice": json.RawMessage(`{"decision":"block","decision":"approve"}`),
		"is of another event": map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "Stop", "permissionDecision": "allow"}},
		"is huge":             map[string]any{"decision": "block", "reason": strings.Repeat("r", 5<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.puppet(func(string, map[string]any) any { return answer }, p.scripted(calls(sh("touch made"))), "--permission-mode=yolo")
			h.must(`{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["pre"],"timeout":0.3}],"PostToolUse":[{"matcher":null,"hookCallbackIds":["post"],"timeout":0.3}]}}`)
			if r := h.prompt("go"); r["is_error"] == true {
				t.Errorf("the turn failed: %.500v", r)
			}
			h.end()
			if len(h.requests("hook_callback")) != 1 || p.has("made") {
				t.Errorf("%d hooks were called, made: %v", len(h.requests("hook_callback")), p.has("made"))
			}
		})
		t.Run(name+" afterwards", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.puppet(func(string, map[string]any) any { return answer }, p.scripted(calls(sh("touch made"))), "--permission-mode=yolo")
			h.must(`{"subtype":"initialize","hooks":{"PostToolUse":[{"matcher":null,"hookCallbackIds":["post"],"timeout":0.3}],"SessionStart":[{"hookCallbackIds":["start"],"timeout":0.3}]}}`)
			if r := h.prompt("go"); r["is_error"] == true || r.String("result") != "done" && name != "is huge" {
				t.Errorf("the turn failed: %.500v", r)
			}
			h.end()
			if !p.has("made") {
				t.Error("the call did not run")
			}
		})
	}
}

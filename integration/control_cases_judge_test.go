package integration

import (
	"os"
	"testing"

	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/testkit"
)

// external is the configuration of an MCP server that the program starts.
func external() string {
	return `{"command":` + quote(os.Args[0]) + `,"env":{"` + mcpServerEnv + `":"1"}}`
}

// serverCases are requests about MCP servers.
func serverCases() map[string][]goldenCase {
	ready := func(h *scriptedHost) { // a turn waits for servers
		h.user("hi")
		h.result()
	}
	return map[string][]goldenCase{
		"from_host/mcp_server_status": {
			{name: "none", play: begun(asks(`{"subtype":"mcp_server_status"}`))},
			{name: "one in the host, one that runs, one that can't", play: func(h *scriptedHost) {
				h.serving(`"mcpServers":{"ours":` + external() + `,"broken":{"command":"/nowhere/to/be/found"}}`)
				ready(h)
				h.request(`{"subtype":"mcp_server_status"}`)
			}},
		},
		"from_host/mcp_status": {
			{name: "none", play: begun(asks(`{"subtype":"mcp_status"}`))},
			{name: "one in the host, one that runs, one that can't", play: func(h *scriptedHost) {
				h.serving(`"mcpServers":{"ours":` + external() + `,"broken":{"command":"/nowhere/to/be/found"}}`)
				ready(h)
				h.request(`{"subtype":"mcp_status"}`)
			}},
		},
		"from_host/mcp_message": {
			{name: "to a server that runs", play: func(h *scriptedHost) {
				h.initialize(`"mcpServers":{"ours":` + external() + `}`)
				ready(h)
				h.request(`{"subtype":"mcp_message","server_name":"ours","message":{"jsonrpc":"2.0","id":"my-id","method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}}`)
				h.request(`{"subtype":"mcp_message","server_name":"ours","message":{"jsonrpc":"2.0","id":5,"method":"no/such"}}`)
				h.request(`{"subtype":"mcp_message","server_name":"ours","message":{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}}`)
			}},
			{name: "from a server in the host", play: func(h *scriptedHost) {
				h.serving("")
				ready(h)
				id := h.post(`{"subtype":"mcp_message","server_name":"calc","message":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}`)
				if h.dialect != streamjson.Qwen {
					h.question("mcp_message") // its tools are listed anew
				} else {
					h.response(id)
				}
			}},
			{name: "what can't be", play: begun(asks(
				`{"subtype":"mcp_message","server_name":"nobody","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}`,
				`{"subtype":"mcp_message","server_name":"nobody"}`, `{"subtype":"mcp_message","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}`,
				`{"subtype":"mcp_message","server_name":"nobody","message":"ping"}`,
			))},
		},
		"from_host/mcp_reconnect": {
			{name: "one that runs", play: func(h *scriptedHost) {
				h.initialize(`"mcpServers":{"ours":` + external() + `}`)
				ready(h)
				asks(`{"subtype":"mcp_reconnect","serverName":"ours"}`, `{"subtype":"mcp_reconnect","server_name":"ours"}`)(h)
			}},
			{name: "one that can't", play: func(h *scriptedHost) {
				h.initialize(`"mcpServers":{"broken":{"command":"/nowhere/to/be/found"}}`)
				ready(h)
				asks(`{"subtype":"mcp_reconnect","serverName":"broken"}`, `{"subtype":"mcp_reconnect","serverName":"nobody"}`, `{"subtype":"mcp_reconnect"}`)(h)
			}},
		},
		"from_host/mcp_toggle": {
			{name: "off and on", play: func(h *scriptedHost) {
				h.initialize(`"mcpServers":{"ours":` + external() + `}`)
				ready(h)
				asks(`{"subtype":"mcp_toggle","serverName":"ours","enabled":false}`, `{"subtype":"mcp_server_status"}`,
					`{"subtype":"mcp_toggle","serverName":"ours","enabled":true}`)(h)
				ready(h)
				h.request(`{"subtype":"mcp_server_status"}`)
			}},
			{name: "what can't be", play: begun(asks(`{"subtype":"mcp_toggle","serverName":"nobody","enabled":true}`,
				`{"subtype":"mcp_toggle","serverName":"nobody"}`, `{"subtype":"mcp_toggle","enabled":false}`))},
		},
		"from_host/mcp_set_servers": {
			{name: "added and removed", play: func(h *scriptedHost) {
				h.initialize("")
				h.request(`{"subtype":"mcp_set_servers","servers":{"ours":` + external() + `}}`)
				ready(h)
				asks(`{"subtype":"mcp_set_servers","servers":{}}`, `{"subtype":"mcp_server_status"}`)(h)
			}},
			{name: "malformed", play: begun(asks(`{"subtype":"mcp_set_servers"}`, `{"subtype":"mcp_set_servers","servers":[]}`,
				`{"subtype":"mcp_set_servers","servers":{"x":{"nothing":1}}}`))},
		},
	}
}

// judgeCases are the requests whether a call may run, and to run a hook.
func judgeCases() map[string][]goldenCase {
	judge := func(tool, input string) string {
		return `{"subtype":"can_use_tool","tool_name":"` + tool + `","tool_use_id":"t1","input":` + input + `}`
	}
	return map[string][]goldenCase{
		"from_host/can_use_tool": {
			{name: "each verdict", flags: []string{"--disallowedTools=Bash(rm *)"}, files: map[string]string{"a.txt": "a\n"}, play: begun(asks(
				judge("read_file", `{"file_path":"a.txt"}`), judge("Bash", `{"command":"touch x"}`), judge("run_shell_command", `{"command":"ls"}`),
				judge("Bash", `{"command":"rm -rf x"}`), judge("Write", `{"file_path":"/etc/passwd","content":"x"}`), judge("ask_user", `{"questions":[]}`),
			))},
			{name: "in plan mode", flags: []string{"--permission-mode=plan"}, play: begun(asks(
				judge("write_file", `{"file_path":"x","content":"x"}`), judge("list_directory", `{"path":"."}`),
			))},
			{name: "a flipped rule", play: begun(asks(
				judge("Bash", `{"command":"touch x"}`),
				`{"subtype":"apply_flag_settings","settings":{"permissions":{"allow":["Bash(touch *)"]}}}`, judge("Bash", `{"command":"touch x"}`),
				`{"subtype":"apply_flag_settings","settings":{"permissions":{"allow":null,"deny":["Bash(touch *)"]}}}`, judge("Bash", `{"command":"touch x"}`),
			))},
			{name: "what can't be", play: begun(asks(
				judge("no_such_tool", `{}`), judge("Bash", `{}`), judge("Bash", `[]`), `{"subtype":"can_use_tool"}`, `{"subtype":"can_use_tool","tool_name":3}`,
				`{"subtype":"can_use_tool","tool_name":"Bash"}`,
			))},
		},
		"from_host/hook_callback": {
			{name: "one that the host registered", only: notQwen, play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["guard"]}]}`)
				id := h.post(`{"subtype":"hook_callback","callback_id":"guard","tool_use_id":"t1","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}}`)
				h.hook(`{"decision":"block","reason":"not today"}`)
				h.response(id)
				id = h.post(`{"subtype":"hook_callback","callback_id":"guard","input":{}}`)
				h.refuse(h.question("hook_callback"), "the callback failed")
				h.response(id)
			}},
			{name: "what can't be", play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["guard"]}]}`)
				asks(`{"subtype":"hook_callback","callback_id":"nobody","input":{}}`, `{"subtype":"hook_callback"}`, `{"subtype":"hook_callback","callback_id":"guard","input":"x"}`)(h)
			}},
		},
	}
}

// TestAFlippedRuleFlipsTheAnswer asks whether a call may run, before and after
// rules and mode change: the answer is that of a real call each time.
func TestAFlippedRuleFlipsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, d := range goldenDialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			h := newScriptedHost(t, d, goldenCase{})
			h.initialize("")
			for _, step := range []struct{ change, decision string }{
				{"", "ask"},
				{`{"subtype":"apply_flag_settings","settings":{"permissions":{"allow":["Bash(touch *)"]}}}`, "allow"},
				{`{"subtype":"apply_flag_settings","settings":{"permissions":{"allow":null,"deny":["Bash(touch *)"]}}}`, "deny"},
				{`{"subtype":"set_permission_mode","mode":"yolo"}`, "deny"},
				{`{"subtype":"apply_flag_settings","settings":{"permissions":null}}`, "allow"},
				{`{"subtype":"set_permission_mode","mode":"default"}`, "ask"},
			} {
				if step.change != "" {
					h.request(step.change)
				}
				f := h.request(`{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made"}}`)
				want, got := step.decision, f.String("response.response.decision")
				if d == streamjson.Qwen { // it says no more than whether the call may run
					want, got = behaviorOf(want), f.String("response.response.behavior")
				}
				if got != want {
					t.Errorf("after %s the answer is %q, want %q", step.change, got, want)
				}
				if h.realCall() != step.decision {
					t.Errorf("after %s a real call is not judged as asked: want %q", step.change, step.decision)
				}
			}
			h.end(0)
		})
	}
}

// behaviorOf is what a decision means for a call that nobody can be asked about.
func behaviorOf(decision string) string {
	if decision == "ask" {
		return "deny"
	}
	return decision
}

// realCall has the model make the call, and says what became of it.
func (h *scriptedHost) realCall() string {
	h.t.Helper()
	_ = os.Remove(h.p.dir + "/made")
	h.user("run touch made")
	f := h.await("a question or the result", func(f testkit.Frame) bool {
		return f.Kind() == "result" || f.String("request.subtype") == "can_use_tool"
	})
	if f.Kind() != "result" {
		h.answer(f, `{"behavior":"deny","message":"no"}`)
		h.result()
		return "ask"
	}
	if h.p.has("made") {
		return "allow"
	}
	return "deny"
}

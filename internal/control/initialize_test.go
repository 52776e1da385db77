package control

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/streamjson"
)

func TestInitializeResponses(t *testing.T) {
	for d, want := range map[streamjson.Dialect]string{
		native: `{"type":"control_response","response":{"subtype":"success","request_id":"i","response":{"subtype":"initialize","session_id":"S","protocol_version":"1.0","input_format":"stream-json","output_format":"stream-json","commands":["clear","model"],"output_style":"stream-json","capabilities":{"tools":["read_file"],"mcpServers":true,"hooks":true,"permissionControl":true,"can_handle_can_use_tool":true,"can_handle_hook_callback":true,"can_set_permission_mode":true,"can_set_model":true,"can_handle_mcp_message":true,"can_set_effort":true,"can_get_context_usage":true,"can_get_available_models":true,"can_get_usage_info":true,"can_interrupt":true,"can_give_command_hints":true,"heartbeat":true,"can_rewind_files":true},"model":"m1","permissionMode":"default","agents":["a"]}}}`,
		claude: `{"type":"control_response","response":{"subtype":"success","request_id":"i","response":{"commands":[{"name":"clear","description":"","argumentHint":"","aliases":["new"]},{"name":"model","description":"sets it","argumentHint":"[name]","builtin":true}],"agents":[{"name":"a","description":"does a"}],"output_style":"default","available_output_styles":["default"],"models":[{"value":"m1","displayName":"m1","description":"","supportsEffort":true,"supportedEffortLevels":["low"]}],"account":{"apiKeySource":"none"},"hooks_applied":true,"hook_on_failure_supported":true,"claude_code_version":"2.1.240"},"pending_permission_requests":[],"pending_user_dialog_requests":[]}}`,
		qwen:   `{"type":"control_response","response":{"subtype":"success","request_id":"i","response":{"subtype":"initialize","session_id":"S","capabilities":{"can_handle_can_use_tool":true,"can_handle_hook_callback":false,"can_set_permission_mode":true,"can_set_model":true,"can_set_effort":true,"can_get_context_usage":true,"can_get_available_models":true,"can_get_usage_info":true,"can_handle_mcp_message":true}}}}`,
	} {
		h, _ := newHost(t, d)
		h.line(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["x"]}]}}}`)
		if diff := cmp.Diff(want, h.waitResponse("i")); diff != "" {
			t.Errorf("%s: %s", d, diff)
		}
	}
}

func TestInitializeTakesEverything(t *testing.T) {
	h, w := newHost(t, native)
	got := h.ask(`{"subtype":"initialize",
		"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0","h1"],"timeout":30,"onFailure":"block"},{"matcher":null,"hookCallbackIds":["h2"]}],"Stop":null},
		"sdkMcpServers":{"one":{"type":"sdk","name":"one"}},
		"mcpServers":{"ext":{"command":"x"},"two":{"type":"sdk"}},
		"agents":[{"name":"b","description":"d"},{"name":"a"}],
		"systemPrompt":["A\n__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__\nB","","C"],"appendSystemPrompt":"more","jsonSchema":{"type":"object"},
		"skills":["s"],"timeout":{"canUseTool":5,"hook":7000,"mcp":0},"effort":"high","title":"T","forwardSubagentText":true,"later":1}`)
	if strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	if diff := cmp.Diff([]HookRegistration{
		{Event: "PreToolUse", Matcher: "Bash", CallbackIDs: []string{"h0", "h1"}, Timeout: 30 * time.Second, OnFailure: "block"},
		{Event: "PreToolUse", CallbackIDs: []string{"h2"}},
	}, w.hooks); diff != "" {
		t.Error(diff)
	}
	in := w.init
	if *in.SystemPrompt != "A\nB\n\nC" || in.AppendPrompt != "more" || string(in.JSONSchema) != `{"type":"object"}` || in.Effort != "high" ||
		in.Title != "T" || !in.ForwardSubagentText || in.HookTimeout != 7*time.Second || !cmp.Equal(in.Skills, []string{"s"}) {
		t.Errorf("%+v", in)
	}
	if !cmp.Equal(in.SDKServers, []string{"one", "two"}) || len(in.MCPServers) != 1 || string(in.MCPServers["ext"]) != `{"command":"x"}` {
		t.Errorf("%+v", in)
	}
	if string(in.Agents) != `[{"name":"b","description":"d"},{"name":"a"}]` {
		t.Errorf("agents %s", in.Agents)
	}
	if d := h.d.calls.deadline(callMCP); d != 0 {
		t.Error(d)
	}
	h.ask(`{"subtype":"initialize","systemPrompt":[""],"agents":{"z":{"prompt":"p"},"y":{}},"sdkMcpServers":["three"],"hooks":[{"event":"Stop","callbackId":"c"},{"event":"Stop","hookCallbackIds":["d"],"callback_id":"e"}],"skills":"one"}`)
	if in = w.init; in.SystemPrompt == nil || *in.SystemPrompt != "" || string(in.Agents) != `{"z":{"prompt":"p"},"y":{}}` || in.HookTimeout != time.Minute || !cmp.Equal(in.Skills, []string{"one"}) {
		t.Errorf("%+v", in)
	}
	if len(w.hooks) != 2 || !cmp.Equal(w.hooks[1].CallbackIDs, []string{"d", "e"}) {
		t.Errorf("%+v", w.hooks)
	}
	h.ask(`{"subtype":"initialize","hooks":null,"timeout":{"hook":0},"systemPrompt":null,"agents":null}`)
	if in = w.init; in.SystemPrompt != nil || in.HookTimeout != 0 || len(w.hooks) != 0 || in.Agents != nil {
		t.Errorf("%+v", in)
	}
}

func TestInitializeRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`"hooks":3`:                     `field "hooks": have a number`,
		`"hooks":{"Stop":3}`:            `field "hooks.Stop": want a list`,
		`"hooks":{"Stop":[3]}`:          `field "hooks.Stop.0": want an object`,
		`"hooks":{"Stop":[{}]}`:         `field "hooks.Stop.0.hookCallbackIds": is missing`,
		`"hooks":[{"callback_id":"x"}]`: `field "hooks.0.event": is missing`,
		`"hooks":[{"event":"Stop","callback_id":"x","timeout":"1"}]`:   `field "hooks.0.timeout": want seconds`,
		`"hooks":[{"event":"Stop","callback_id":"x","onFailure":"z"}]`: `use continue or block`,
		`"sdkMcpServers":3`:                      `field "sdkMcpServers": have a number, want a list of names`,
		`"sdkMcpServers":[3]`:                    `field "sdkMcpServers": want a list of names`,
		`"sdkMcpServers":{"a":3}`:                `field "sdkMcpServers.a": have a number, want an object`,
		`"sdkMcpServers":{"a":{"type":"stdio"}}`: `field "sdkMcpServers.a.type": is "stdio"`,
		`"sdkMcpServers":{"a":{"type":3}}`:       `field "sdkMcpServers.a": field "type": have a number`,
		`"effort":3`:                             `field "effort": have a number, want a text`,
		`"mcpServers":[]`:                        `field "mcpServers": have a list, want an object`,
		`"mcpServers":{"x":1}`:                   `field "mcpServers.x": have a number, want an object`,
		`"systemPrompt":3`:                       `field "systemPrompt": have a number`,
		`"appendSystemPrompt":3`:                 `field "appendSystemPrompt": have a number, want a string`,
		`"jsonSchema":"x"`:                       `field "jsonSchema": have a string, want an object`,
		`"effort":"huge"`:                        `Invalid effort value. Supported: low, medium, high, xhigh, max`,
		`"timeout":{"hook":-1}`:                  `field "timeout.hook": want milliseconds`,
		`"timeout":3`:                            `field "timeout": have a number, want an object`,
	} {
		h, w := newHost(t, native)
		got := h.ask(`{"subtype":"initialize",` + body + `}`)
		if !strings.HasPrefix(got, "error: initialize: ") || !strings.Contains(got, want) || w.init != nil {
			t.Errorf("%s: %s", body, got)
		}
	}
}

func TestQwenEffortStatus(t *testing.T) {
	h, _ := newHost(t, qwen)
	if got := h.ask(`{"subtype":"initialize","effort":"zzz"}`); got != "error: Invalid effort value. Supported: low, medium, high, xhigh, max" {
		t.Error(got)
	}
	if got := h.ask(`{"subtype":"initialize","effort":"high"}`); !strings.HasSuffix(got, `"effort_status":{"effort":"high","applied":true,"override":null}}`) {
		t.Error(got)
	}
}

// TestInitializeIsWholeOrNothing: when the session refuses, the hooks of before
// are in force; when the hooks are wrong, the session isn't told.
func TestInitializeIsWholeOrNothing(t *testing.T) {
	h, w := newHost(t, native)
	h.ask(`{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["first"]}]}}`)
	w.failAt = "initialize"
	if got := h.ask(`{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["second"]}]}}`); !strings.HasPrefix(got, "error: initialize") {
		t.Fatal(got)
	}
	if len(w.hooks) != 1 || w.hooks[0].CallbackIDs[0] != "first" {
		t.Errorf("hooks in force: %+v", w.hooks)
	}
	if _, ok := h.d.hook.timeoutOf("second"); ok {
		t.Error("a hook of the request that failed can be called")
	}
	w.failAt = "hooks"
	w.init = nil
	if got := h.ask(`{"subtype":"initialize","systemPrompt":"x","hooks":{"Stop":[{"hookCallbackIds":["third"]}]}}`); !strings.HasPrefix(got, "error: initialize") {
		t.Fatal(got)
	}
	if w.init != nil {
		t.Error("the session was changed though the hooks were refused")
	}
}

// TestHandshakesFollowTheResponse has an MCP server connected while initialize
// is being worked on: what opens the connection comes after the response.
func TestHandshakesFollowTheResponse(t *testing.T) {
	for _, d := range dialects {
		synctest.Test(t, func(t *testing.T) {
			h, w := newHost(t, d)
			w.opening = func() {
				go func() { // ends with the answer
					_, _ = h.d.SDKMCP().Send(t.Context(), "calc", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
				}()
				synctest.Wait() // it got as far as it could
			}
			h.answer = replies(`{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}`)
			h.ask(`{"subtype":"initialize","sdkMcpServers":["calc"]}`)
			h.waitRequest("mcp_message")
			if first := h.sent()[0]; !strings.Contains(first, "control_response") {
				t.Errorf("%s: %s comes first", d, first)
			}
			synctest.Wait()
		})
	}
}

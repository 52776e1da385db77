package integration

import (
	"github.com/agentcli/agent/internal/testkit"
)

// questionCases are the program's can_use_tool requests.
func questionCases() map[string][]goldenCase {
	answered := func(name, answer string) goldenCase {
		return goldenCase{name: name, play: begun(func(h *scriptedHost) {
			h.user("run touch asked")
			h.answer(h.question("can_use_tool"), answer)
			h.result()
		})}
	}
	return map[string][]goldenCase{
		"to_host/can_use_tool": {
			answered("allow", `{"behavior":"allow"}`),
			answered("allow with another input", `{"behavior":"allow","updatedInput":{"command":"touch instead","description":"another"}}`),
			answered("allow with {} for an input", `{"behavior":"allow","updatedInput":{}}`),
			answered("allow with an input that the tool refuses", `{"behavior":"allow","updatedInput":{"command":5}}`),
			answered("deny", `{"behavior":"deny","message":"Not now."}`),
			answered("deny without a word", `{"behavior":"deny"}`),
			answered("deny and interrupt", `{"behavior":"deny","message":"Stop it.","interrupt":true}`),
			answered("malformed: behavior", `{"behavior":"perhaps"}`),
			answered("malformed: null", `null`),
			answered("malformed: input", `{"behavior":"allow","updatedInput":"touch x"}`),
			{name: "allow with rules for later", play: begun(func(h *scriptedHost) {
				h.user("run touch asked")
				h.answer(h.question("can_use_tool"), `{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch *"}],"behavior":"allow","destination":"session"}]}`)
				h.result()
				h.user("run touch again")
				h.result()
			})},
			{name: "of a file", play: begun(func(h *scriptedHost) {
				h.user("write made.txt")
				h.answer(h.question("can_use_tool"), `{"behavior":"allow"}`)
				h.result()
			})},
			{name: "outside of the folder", play: begun(func(h *scriptedHost) {
				h.user("write ../outside.txt")
				h.answer(h.question("can_use_tool"), `{"behavior":"deny","message":"Stay inside."}`)
				h.result()
			})},
			{name: "the host fails", play: begun(func(h *scriptedHost) {
				h.user("run touch asked")
				h.refuse(h.question("can_use_tool"), "canUseTool callback is not provided")
				h.result()
			})},
			{name: "timed out, and the late answer", play: func(h *scriptedHost) {
				h.initialize(`"timeout":{"canUseTool":50}`)
				h.user("run touch asked")
				q := h.question("can_use_tool")
				h.result()
				h.answer(q, `{"behavior":"allow"}`)
				h.user("hi")
				h.result()
			}},
			{name: "answered twice", play: begun(func(h *scriptedHost) {
				h.user("run touch asked")
				q := h.question("can_use_tool")
				h.answer(q, `{"behavior":"deny","message":"No."}`)
				h.answer(q, `{"behavior":"allow"}`)
				h.result()
			})},
			{name: "stdin ends", play: begun(func(h *scriptedHost) {
				h.user("run touch asked")
				h.question("can_use_tool")
				h.eof()
				h.result()
			})},
			{name: "withdrawn", play: begun(func(h *scriptedHost) {
				h.user("run touch asked")
				q := h.question("can_use_tool")
				h.request(`{"subtype":"interrupt"}`)
				h.result()
				h.answer(q, `{"behavior":"allow"}`)
			})},
			{name: "the model asks the user", model: call(1, "ask_user", map[string]any{"questions": []any{map[string]any{
				"question": "Which one?", "header": "Choice", "multiSelect": false,
				"options": []any{map[string]any{"label": "A", "description": "the first"}, map[string]any{"label": "B", "description": "the second"}},
			}}}) + `{"use":"always","emit":[{"text":"{{last_tool_result}}"}]}`, play: begun(func(h *scriptedHost) {
				h.user("go")
				h.answer(h.question("can_use_tool"), `{"behavior":"allow","updatedInput":{"questions":[],"answers":{"Which one?":"B"}}}`)
				h.result()
			})},
		},
	}
}

// hooked is a case with one hook of an event; output answers each of its calls.
func hooked(event, output string, flags []string, says ...string) goldenCase {
	return goldenCase{name: event + " answers " + output, only: notQwen, flags: flags, play: func(h *scriptedHost) {
		h.initialize(`"hooks":{"` + event + `":[{"hookCallbackIds":["h1"]}]}`)
		for _, text := range says {
			h.user(text)
			for f := h.next(); f.Kind() != "result"; f = h.next() {
				switch f.String("request.subtype") {
				case "hook_callback":
					h.answer(f, output)
				case "can_use_tool":
					h.answer(f, `{"behavior":"allow"}`)
				}
			}
		}
	}}
}

// next waits for the end of the turn or for a request.
func (h *scriptedHost) next() testkit.Frame {
	h.t.Helper()
	return h.await("a request or the result", func(f testkit.Frame) bool { return f.Kind() == "result" || f.Kind() == "control_request" })
}

// hookCases are the program's hook_callback requests.
func hookCases() map[string][]goldenCase {
	pre := func(member string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse",` + member + `}}`
	}
	ended := func(name string, end func(h *scriptedHost, q testkit.Frame)) goldenCase {
		return goldenCase{name: name, only: notQwen, flags: yolo, play: func(h *scriptedHost) {
			h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"],"timeout":0.05}]}`)
			h.user("run touch x")
			end(h, h.question("hook_callback"))
			h.result()
		}}
	}
	patient := func(name string, end func(h *scriptedHost, q testkit.Frame)) goldenCase {
		c := ended(name, nil)
		c.play = func(h *scriptedHost) {
			h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"]}]}`)
			h.user("run touch x")
			end(h, h.question("hook_callback"))
			h.result()
		}
		return c
	}
	return map[string][]goldenCase{
		"to_host/hook_callback": {
			hooked("PreToolUse", `{}`, yolo, "run echo x"),
			hooked("PreToolUse", pre(`"permissionDecision":"allow"`), nil, "run touch x"),
			hooked("PreToolUse", pre(`"permissionDecision":"deny","permissionDecisionReason":"not that"`), yolo, "run touch x"),
			hooked("PreToolUse", pre(`"permissionDecision":"ask","permissionDecisionReason":"is that right?"`), yolo, "run touch x"),
			hooked("PreToolUse", pre(`"permissionDecision":"defer"`), yolo, "run touch x"),
			hooked("PreToolUse", pre(`"updatedInput":{"command":"echo changed"}`), yolo, "run echo x"),
			hooked("PreToolUse", pre(`"additionalContext":"It is late."`), yolo, "run echo x"),
			hooked("PreToolUse", `{"decision":"block","reason":"old style"}`, yolo, "run touch x"),
			hooked("PreToolUse", `{"continue":false,"stopReason":"That is enough."}`, yolo, "run touch x"),
			hooked("PreToolUse", `{"async":true}`, yolo, "run echo x"),
			hooked("PreToolUse", `{"systemMessage":"Watch out.","suppressOutput":true}`, yolo, "run echo x"),
			hooked("PostToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"It worked."}}`, yolo, "run echo x"),
			hooked("PostToolUse", `{"decision":"block","reason":"do it again"}`, yolo, "run echo x"),
			hooked("PostToolUseFailure", `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"As always."}}`, yolo, "run exit 3"),
			hooked("UserPromptSubmit", `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"They are tired."}}`, nil, "hi"),
			hooked("UserPromptSubmit", `{"decision":"block","reason":"say please"}`, nil, "hi"),
			hooked("SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Monday."}}`, nil, "hi"),
			hooked("SessionEnd", `{}`, nil, "hi"),
			hooked("PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`, nil, "run touch x"),
			hooked("PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"never"}}}`, nil, "run touch x"),
			hooked("PermissionRequest", `{}`, nil, "run touch x"),
			hooked("PreCompact", `{}`, nil, "hi", "/compact"),
			{name: "Stop goes on once", only: notQwen, play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"Stop":[{"hookCallbackIds":["h1"]}]}`)
				h.user("hi")
				h.hook(`{"decision":"block","reason":"say more"}`)
				h.hook(`{}`)
				h.result()
			}},
			{name: "lines tell of hooks", only: notQwen, flags: append([]string{"--include-hook-events"}, yolo...), play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"]}]}`)
				h.user("run echo x")
				h.hook(`{}`)
				h.result()
			}},
			{name: "a matcher that doesn't", only: notQwen, flags: yolo, play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Write|Edit","hookCallbackIds":["h1"]}]}`)
				h.user("run echo x")
				h.result()
			}},
			ended("timed out", func(*scriptedHost, testkit.Frame) {}),
			patient("the host fails", func(h *scriptedHost, q testkit.Frame) { h.refuse(q, "the callback raised an error") }),
			patient("malformed", func(h *scriptedHost, q testkit.Frame) { h.answer(q, `["yes"]`) }),
			patient("malformed inside", func(h *scriptedHost, q testkit.Frame) { h.answer(q, pre(`"permissionDecision":"perhaps"`)) }),
			patient("stdin ends", func(h *scriptedHost, _ testkit.Frame) { h.eof() }),
			patient("withdrawn", func(h *scriptedHost, _ testkit.Frame) { h.request(`{"subtype":"interrupt"}`) }),
			{name: "of a host that has no use for them", only: onlyQwen, flags: yolo, play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"]}]}`)
				h.user("run touch x")
				h.refuse(h.question("hook_callback"), "Unknown control request subtype: hook_callback")
				h.result()
			}},
		},
	}
}

// tunnelCases are the program's messages to MCP servers in the host.
func tunnelCases() map[string][]goldenCase {
	calling := func(name, tool, input string, play func(h *scriptedHost)) goldenCase {
		return goldenCase{name: name, flags: yolo, model: `{"emit": [{"tool": "mcp__calc__` + tool + `", "input": ` + input + `}]}` + say("Done."),
			play: func(h *scriptedHost) {
				h.serving(`"timeout":{"mcp":20000}`)
				h.user("go")
				if play != nil {
					play(h)
				}
				h.result()
			}}
	}
	ended := func(name string, end func(h *scriptedHost, q testkit.Frame)) goldenCase {
		return calling(name, "play", `{}`, func(h *scriptedHost) {
			end(h, h.await("the call", func(f testkit.Frame) bool { return f.String("request.message.method") == "tools/call" }))
		})
	}
	return map[string][]goldenCase{
		"to_host/mcp_message": {
			calling("ok", "add", `{"a": 2, "b": 3}`, nil),
			calling("the tool fails", "boom", `{}`, nil),
			calling("a JSON-RPC error", "break", `{}`, nil),
			calling("an unknown tool", "nothing", `{}`, nil),
			ended("the host fails", func(h *scriptedHost, q testkit.Frame) { h.refuse(q, "the server went away") }),
			ended("malformed", func(h *scriptedHost, q testkit.Frame) { h.answer(q, `{"nothing":1}`) }),
			ended("stdin ends", func(h *scriptedHost, _ testkit.Frame) { h.eof() }),
			{name: "timed out", flags: yolo, model: `{"emit": [{"tool": "mcp__calc__play", "input": {}}]}` + say("Done."), play: func(h *scriptedHost) {
				h.serving(`"timeout":{"mcp":1500}`)
				h.user("go")
				h.result()
			}},
			{name: "the host has no such server", play: func(h *scriptedHost) {
				h.initialize(`"sdkMcpServers":["calc"]`)
				h.user("hi")
				h.refuse(h.question("mcp_message"), "MCP server 'calc' not found in SDK-embedded servers")
				h.result()
				h.request(`{"subtype":"mcp_server_status"}`)
			}},
			{name: "a server without tools", play: func(h *scriptedHost) {
				h.initialize(`"sdkMcpServers":["calc"]`)
				h.user("hi")
				q := h.question("mcp_message")
				id, _ := q.Get("request.message.id")
				h.answer(q, `{"mcp_response":{"jsonrpc":"2.0","id":`+quoteAny(id)+`,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"calc","version":"1"}}}}`)
				h.answer(h.question("mcp_message"), `{"mcp_response":{"jsonrpc":"2.0","result":{},"id":0}}`)
				q = h.question("mcp_message")
				id, _ = q.Get("request.message.id")
				h.answer(q, `{"mcp_response":{"jsonrpc":"2.0","id":`+quoteAny(id)+`,"error":{"code":-32601,"message":"Method not found"}}}`)
				h.result()
			}},
		},
	}
}

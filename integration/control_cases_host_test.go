package integration

import (
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/testkit"
)

// chat answers by what the user says.
const chat = `
{"use": "always", "when": {"user": "hi"}, "emit": [{"text": "Hello."}]}
{"use": "always", "when": {"user": {"regex": "^run (?P<c>.+)$"}}, "emit": [{"tool": "run_shell_command", "input": {"command": "{{user.c}}", "description": "run it"}}]}
{"use": "always", "when": {"user": {"regex": "^write (?P<f>.+)$"}}, "emit": [{"tool": "write_file", "input": {"file_path": "{{user.f}}", "content": "x\n"}}]}
{"use": "always", "when": {"user": "think"}, "emit": [{"text": "Let me see", "by": "whole"}, {"fault": "stall"}]}
{"use": "always", "when": {"user": "overload"}, "emit": [{"status": 503, "retry_after": 60}]}
{"use": "always", "when": {"user": "who"}, "emit": [{"text": "I am {{model}}."}]}
{"use": "always", "emit": [{"text": "Done."}]}`

// gate is a command that says that it runs and waits for a file.
const gate = "touch started; until test -e go; do sleep 0.02; done"

// yolo lets calls run without questions.
var yolo = []string{"--permission-mode=yolo"}

// asks makes a play of requests that are sent one by one.
func asks(requests ...string) func(*scriptedHost) {
	return func(h *scriptedHost) {
		for _, r := range requests {
			h.request(r)
		}
	}
}

// begun is a play after initialize.
func begun(play func(*scriptedHost)) func(*scriptedHost) {
	return func(h *scriptedHost) {
		h.initialize("")
		play(h)
	}
}

// sessionCases are initialize and interrupt.
func sessionCases() map[string][]goldenCase {
	return map[string][]goldenCase{
		"from_host/initialize": {
			{name: "nothing in it", whole: true, play: func(h *scriptedHost) { h.initialize("") }},
			{name: "everything in it", whole: true, play: func(h *scriptedHost) {
				h.initialize(`"hooks":{"UserPromptSubmit":[{"matcher":null,"hookCallbackIds":["h1"],"timeout":30}]},"systemPrompt":["Be brief.","Be kind."],
					"appendSystemPrompt":"Really.","agents":{"looker":{"description":"looks","prompt":"Look.","tools":["Read"]}},
					"timeout":{"canUseTool":1000,"hook":1000,"mcp":1000},"effort":"high","forwardSubagentText":true,"unheardOf":{"x":1}`)
				h.user("hi")
				h.hook(`{}`)
				h.result()
			}},
			{name: "lists where maps may be", whole: true, play: func(h *scriptedHost) {
				h.initialize(`"hooks":[{"event":"UserPromptSubmit","hookCallbackIds":["h1"]}],"agents":[{"name":"looker","description":"looks","systemPrompt":"Look.","level":"session"}],"sdkMcpServers":[]`)
				h.user("hi")
				h.hook(`{}`)
				h.result()
			}},
			{name: "a second one", whole: true, play: func(h *scriptedHost) {
				h.initialize(`"agents":{"one":{"description":"first","prompt":"x"}}`)
				h.initialize(`"agents":{"two":{"description":"second","prompt":"x"}}`)
				h.user("hi")
				h.result()
			}},
			{name: "after a turn", play: func(h *scriptedHost) {
				h.user("hi")
				h.result()
				h.initialize("")
				h.user("hi")
				h.result()
			}},
			{name: "malformed", play: asks(
				`{"subtype":"initialize","hooks":3}`, `{"subtype":"initialize","hooks":{"PreToolUse":[{"hookCallbackIds":"h1"}]}}`,
				`{"subtype":"initialize","agents":7}`, `{"subtype":"initialize","agents":{"x":{"tools":3}}}`, `{"subtype":"initialize","jsonSchema":"no"}`,
				`{"subtype":"initialize","sdkMcpServers":5}`, `{"subtype":"initialize","mcpServers":{"x":3}}`,
				`{"subtype":"initialize","systemPrompt":5}`, `{"subtype":"initialize","timeout":{"mcp":"soon"}}`, `{"subtype":"initialize","effort":"heroic"}`,
			)},
		},
		"from_host/interrupt": {
			{name: "idle", play: asks(`{"subtype":"interrupt"}`)},
			{name: "while the model is silent", flags: []string{"--include-partial-messages"}, play: begun(func(h *scriptedHost) {
				h.user("think")
				h.delta()
				h.request(`{"subtype":"interrupt"}`)
				h.result()
				h.user("hi")
				h.result()
			})},
			{name: "while a tool runs", flags: yolo, play: begun(func(h *scriptedHost) {
				h.user("run trap '' TERM; touch started; sleep 1000")
				h.file("started")
				h.frame("assistant")
				h.request(`{"subtype":"interrupt"}`)
				h.result()
			})},
			{name: "while a question is open", play: begun(func(h *scriptedHost) {
				h.user("run touch x")
				h.question("can_use_tool")
				h.request(`{"subtype":"interrupt"}`)
				h.result()
			})},
			{name: "while a retry is waited for", play: begun(func(h *scriptedHost) {
				h.user("overload")
				h.await("the retry", func(f testkit.Frame) bool { return f.Kind() == "system/api_retry" || f.Kind() == "system/retry" })
				h.request(`{"subtype":"interrupt"}`)
				h.result()
			})},
			{name: "lines wait", flags: yolo, play: begun(func(h *scriptedHost) {
				h.user("run " + gate)
				h.frame("assistant")
				h.file("started")
				h.send(`{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","message":{"role":"user","content":"hi"}}`)
				h.request(`{"subtype":"interrupt"}`)
				h.result()
				h.result()
			})},
			{name: "and what waits too", flags: yolo, play: begun(func(h *scriptedHost) {
				h.user("run " + gate)
				h.frame("assistant")
				h.file("started")
				h.send(`{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","message":{"role":"user","content":"hi"}}`)
				h.request(`{"subtype":"interrupt","cancel_queued":true}`)
				h.result()
			})},
			{name: "malformed", play: asks(`{"subtype":"interrupt","cancel_queued":"yes"}`)},
		},
	}
}

// changeCases are requests that change something.
func changeCases() map[string][]goldenCase {
	return map[string][]goldenCase{
		"from_host/set_model": {
			{name: "another one", files: map[string]string{"other.jsonc": say("The other.")}, play: begun(func(h *scriptedHost) {
				h.request(`{"subtype":"set_model","model":"scripted/` + h.p.dir + `/other.jsonc"}`)
				h.user("hi")
				h.result()
				if h.dialect != streamjson.Qwen {
					h.request(`{"subtype":"set_model","model":null}`)
					h.user("hi")
					h.result()
				}
			})},
			{name: "within a turn", flags: yolo, files: map[string]string{"other.jsonc": say("The other.")}, play: begun(func(h *scriptedHost) {
				h.user("run " + gate)
				h.frame("assistant")
				h.file("started")
				h.request(`{"subtype":"set_model","model":"scripted/` + h.p.dir + `/other.jsonc"}`)
				h.p.write("go", "")
				h.result()
			})},
			{name: "what can't be", play: begun(func(h *scriptedHost) {
				asks(`{"subtype":"set_model","model":"nobody/nothing"}`, `{"subtype":"set_model","model":"scripted/missing.jsonc"}`,
					`{"subtype":"set_model","model":""}`, `{"subtype":"set_model","model":7}`, `{"subtype":"set_model","model":{"name":"x"}}`)(h)
				h.user("hi")
				h.result()
			})},
			{name: "the default", play: begun(asks(`{"subtype":"set_model"}`, `{"subtype":"set_model","model":null}`, `{"subtype":"set_model","model":"default"}`))},
		},
		"from_host/set_permission_mode": {
			{name: "each", play: begun(asks(
				`{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"set_permission_mode","mode":"auto-edit"}`,
				`{"subtype":"set_permission_mode","mode":"acceptEdits"}`, `{"subtype":"set_permission_mode","mode":"yolo"}`,
				`{"subtype":"set_permission_mode","mode":"bypassPermissions"}`, `{"subtype":"set_permission_mode","mode":"default"}`,
			))},
			{name: "malformed", play: begun(asks(
				`{"subtype":"set_permission_mode","mode":"bogus"}`, `{"subtype":"set_permission_mode"}`, `{"subtype":"set_permission_mode","mode":3}`,
			))},
			{name: "it acts", play: begun(func(h *scriptedHost) {
				h.request(`{"subtype":"set_permission_mode","mode":"yolo"}`)
				h.user("run touch made")
				h.result()
				h.request(`{"subtype":"set_permission_mode","mode":"plan"}`)
				h.user("write other.txt")
				h.result()
			})},
			{name: "on calls that wait", model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "touch one"}},
				{"tool": "run_shell_command", "input": {"command": "touch two"}}]}` + say("Done."), play: begun(func(h *scriptedHost) {
				h.user("go")
				q := h.question("can_use_tool")
				h.request(`{"subtype":"set_permission_mode","mode":"yolo"}`)
				h.answer(q, `{"behavior":"allow"}`)
				h.result()
			})},
		},
		"from_host/set_effort": {
			{name: "set", play: begun(asks(`{"subtype":"set_effort","effort":"high"}`))},
			{name: "malformed", play: begun(asks(`{"subtype":"set_effort","effort":"heroic"}`, `{"subtype":"set_effort"}`, `{"subtype":"set_effort","effort":3}`))},
		},
		"from_host/set_max_thinking_tokens": {
			{name: "set", play: begun(asks(`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":2000}`,
				`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":null}`, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":0,"thinking_display":"omitted"}`))},
			{name: "malformed", play: begun(asks(`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":-1}`,
				`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":"many"}`))},
		},
		"from_host/apply_flag_settings": {
			{name: "set and cleared", play: begun(func(h *scriptedHost) {
				h.request(`{"subtype":"apply_flag_settings","settings":{"permissions":{"deny":["Bash(touch *)"]}}}`)
				h.user("run touch x")
				h.result()
				h.request(`{"subtype":"apply_flag_settings","settings":{"permissions":null}}`)
				h.user("run touch x")
				h.answer(h.question("can_use_tool"), `{"behavior":"allow"}`)
				h.result()
			})},
			{name: "malformed", play: begun(asks(`{"subtype":"apply_flag_settings"}`, `{"subtype":"apply_flag_settings","settings":[]}`,
				`{"subtype":"apply_flag_settings","settings":{"permissions":{"deny":"all"}}}`))},
		},
		"from_host/continue_last_turn": {
			{name: "nothing to go on with", play: begun(func(h *scriptedHost) {
				h.request(`{"subtype":"continue_last_turn"}`)
				h.user("hi")
				h.result()
				h.request(`{"subtype":"continue_last_turn"}`)
			})},
			{name: "an interrupted turn", model: `{"emit": [{"text": "Half of ", "by": "whole"}, {"fault": "stall"}]}` + say("it."),
				flags: []string{"--include-partial-messages"}, play: begun(func(h *scriptedHost) {
					h.user("tell me")
					h.delta()
					h.request(`{"subtype":"interrupt"}`)
					h.result()
					h.request(`{"subtype":"continue_last_turn"}`)
					h.result()
				})},
		},
		"from_host/stop_task": {
			{name: "one that runs", flags: yolo, model: `{"emit": [{"tool": "run_shell_command", "input": {"command": "sleep 1000", "run_in_background": true}}]}` + say("Done."),
				play: begun(func(h *scriptedHost) {
					h.user("go")
					h.result()
					h.request(`{"subtype":"stop_task","task_id":"shell_1"}`)
					h.eof()
				})},
			{name: "none", play: begun(asks(`{"subtype":"stop_task","task_id":"nothing"}`, `{"subtype":"stop_task"}`, `{"subtype":"stop_task","task_id":5}`))},
		},
		"from_host/rewind_files": {
			{name: "there are no checkpoints", play: begun(asks(`{"subtype":"rewind_files","user_message_id":"00000000-0000-4000-8000-000000000001"}`,
				`{"subtype":"rewind_files","user_message_id":"x","dry_run":true}`, `{"subtype":"rewind_files"}`))},
		},
	}
}

// tellCases are requests that only ask.
func tellCases() map[string][]goldenCase {
	return map[string][]goldenCase{
		"from_host/supported_commands":   {{name: "before and after initialize", whole: true, play: asks(`{"subtype":"supported_commands"}`, `{"subtype":"initialize"}`, `{"subtype":"supported_commands"}`)}},
		"from_host/get_available_models": {{name: "asked", play: begun(asks(`{"subtype":"get_available_models"}`))}},
		"from_host/get_context_usage": {
			{name: "asked", play: begun(asks(`{"subtype":"get_context_usage"}`, `{"subtype":"get_context_usage","show_details":true}`, `{"subtype":"get_context_usage","show_details":"yes"}`))},
		},
		"from_host/get_usage_info": {{name: "asked", play: begun(asks(`{"subtype":"get_usage_info"}`, `{"subtype":"get_usage_info","range":"week"}`, `{"subtype":"get_usage_info","range":"eon"}`))}},
		"from_host/command_hints": {
			{name: "asked", files: map[string]string{"notes.txt": "", "notes/more.txt": ""}, play: begun(asks(`{"subtype":"command_hints","prefix":"/comp"}`,
				`{"subtype":"command_hints","prefix":"@not"}`, `{"subtype":"command_hints","prefix":"?","limit":2}`, `{"subtype":"command_hints","prefix":"/","limit":1}`))},
			{name: "malformed", play: begun(asks(`{"subtype":"command_hints"}`, `{"subtype":"command_hints","prefix":"x"}`, `{"subtype":"command_hints","prefix":"/","limit":"all"}`))},
		},
		"from_host/heartbeat": {
			{name: "idle, running and waiting", play: begun(func(h *scriptedHost) {
				h.request(`{"subtype":"heartbeat"}`)
				h.user("run " + gate)
				q := h.question("can_use_tool")
				h.request(`{"subtype":"heartbeat"}`)
				h.answer(q, `{"behavior":"allow"}`)
				h.file("started")
				h.request(`{"subtype":"heartbeat"}`)
				h.p.write("go", "")
				h.result()
			})},
		},
		"from_host/keep_alive": {{name: "as a request and as a line", play: func(h *scriptedHost) {
			h.send(`{"type":"keep_alive"}`)
			h.request(`{"subtype":"keep_alive"}`)
		}}},
	}
}

// oddCases are requests that are none, and ends that any request may have.
func oddCases() map[string][]goldenCase {
	lenient := []streamjson.Dialect{streamjson.Claude, streamjson.Qwen}
	badInput := func(name string, d []streamjson.Dialect, exit int) goldenCase {
		return goldenCase{name: name, only: d, exit: exit, play: begun(func(h *scriptedHost) {
			h.send(`{"type":"control_request","request_id":"x"`)
			h.send(`[]`)
			h.send(`{"type":"control_request","request":{"subtype":"interrupt"}}`)
			h.send(`{"type":"news"}`)
			h.send(`{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{}}}`)
			h.send(`{"type":"control_cancel_request","request_id":"nobody"}`)
			h.user("hi")
			h.result()
		})}
	}
	return map[string][]goldenCase{
		"from_host/odd": {
			// A request that can't be read is a line that can't be read.
			{name: "an unknown subtype", only: onlyNative, exit: 42, play: asks(`{"subtype":"no_such_thing"}`, `{"subtype":""}`)},
			{name: "no subtype", only: onlyNative, exit: 42, play: asks(`{}`, `{"subtype":7}`)},
			{name: "no request", only: onlyNative, exit: 42, play: asks(`7`, `null`)},
			{name: "an unknown subtype", only: lenient, play: asks(`{"subtype":"no_such_thing"}`, `{"subtype":""}`)},
			{name: "no subtype", only: lenient, play: asks(`{}`, `{"subtype":7}`)},
			{name: "no request", only: lenient, play: asks(`7`, `null`)},
			{name: "before anything else", play: asks(`{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"mcp_server_status"}`, `{"subtype":"initialize"}`)},
			{name: "cancelled", play: begun(func(h *scriptedHost) {
				h.serving("")
				h.user("hi")
				h.result()
				h.tools = nil // it is silent from now on
				id := h.post(`{"subtype":"mcp_reconnect","serverName":"calc"}`)
				h.question("mcp_message")
				h.send(`{"type":"control_cancel_request","request_id":"` + id + `"}`)
				h.response(id)
			})},
			{name: "stdin ends before the answers", play: func(h *scriptedHost) {
				h.post(`{"subtype":"initialize"}`)
				h.post(`{"subtype":"set_permission_mode","mode":"plan"}`)
				h.eof()
			}},
			badInput("lines that are none", onlyNative, 42),
			badInput("lines that are none", lenient, 0),
		},
	}
}

var onlyNative = goldenDialects[:1]

package integration

import (
	"encoding/json"

	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/testkit"
)

func quoteAny(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// conversationCases are whole turns.
func conversationCases() map[string][]goldenCase {
	partial := []string{"--include-partial-messages"}
	says := func(texts ...string) func(*scriptedHost) {
		return begun(func(h *scriptedHost) {
			for _, text := range texts {
				h.user(text)
				h.result()
			}
		})
	}
	failing := func(d []streamjson.Dialect, exit int) goldenCase {
		return goldenCase{name: "the API refuses", only: d, exit: exit, model: `{"use": "always", "emit": [{"status": 401, "message": "no such key"}]}`, play: says("hi")}
	}
	limited := func(d []streamjson.Dialect, exit int) goldenCase {
		return goldenCase{
			name: "too many turns", only: d, exit: exit, flags: append([]string{"--max-turns=2"}, yolo...),
			model: `{"use": "always", "emit": [{"tool": "run_shell_command", "input": {"command": "echo {{turn}}"}}]}`, play: says("go"),
		}
	}
	unstructured := func(d []streamjson.Dialect, exit int) goldenCase {
		return goldenCase{
			name: "no answer fits", only: d, exit: exit, model: `{"use": "always", "emit": [{"tool": "structured_output", "input": {"answer": "many"}}]}`,
			play: func(h *scriptedHost) {
				h.initialize(`"jsonSchema":` + answerSchema)
				h.user("go")
				h.result()
			},
		}
	}
	empty := func(d []streamjson.Dialect, exit int) goldenCase {
		return goldenCase{name: "an empty answer", only: d, exit: exit, model: `{"use": "always", "emit": [{"fault": "empty"}]}`, play: says("go")}
	}
	claudeOnly, others := goldenDialects[1:2], []streamjson.Dialect{streamjson.Native, streamjson.Qwen}
	return map[string][]goldenCase{
		"conversation/text": {
			{name: "two turns", whole: true, play: says("hi", "who")},
			{name: "what the user can say", play: begun(func(h *scriptedHost) {
				h.send(`{"type":"user","uuid":"00000000-0000-4000-8000-000000000002","session_id":"default","message":{"role":"user","content":[{"type":"text","text":"hi"}]},"parent_tool_use_id":null}`)
				h.result()
				h.send(`{"type":"user","message":{"role":"user","content":""},"parent_tool_use_id":null}`)
				h.result()
				h.user("/nothing-like-it")
				h.result()
				h.user("hi")
				h.result()
			})},
			{name: "sent back", flags: []string{"--replay-user-messages"}, only: goldenDialects[:2], play: begun(func(h *scriptedHost) {
				h.send(`{"type":"user","uuid":"00000000-0000-4000-8000-000000000002","message":{"role":"user","content":"hi"}}`)
				h.result()
			})},
		},
		"conversation/partial": {
			{name: "thinking, text and a call", whole: true, flags: append(partial, yolo...), model: `
				{"emit": [{"thinking": ["I should ", "look."]}, {"text": ["Let me ", "look."]}, {"tool": "run_shell_command", "input": {"command": "echo x"}}]}
				{"emit": [{"text": ["It says ", "x."]}]}`, play: says("go")},
		},
		"conversation/tools": {
			{name: "several at once", whole: true, files: map[string]string{"a.txt": "one\n", "b.txt": "two\n"}, flags: yolo, model: `
				{"emit": [{"text": "Both."}, {"tool": "read_file", "input": {"file_path": "a.txt"}}, {"tool": "read_file", "input": {"file_path": "missing.txt"}}]}
				{"emit": [{"tool": "edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "1"}}, {"tool": "run_shell_command", "input": {"command": "cat a.txt; exit 3"}}]}
				{"emit": [{"tool": "write_file", "input": {"file_path": "c.txt", "content": "three\n"}}, {"tool": "glob", "input": {"pattern": "*.txt"}}, {"tool": "no_such_tool", "input": {}}]}
				{"emit": [{"text": "Done."}]}`, play: says("go")},
			{name: "denied", flags: []string{"--disallowedTools=Bash(touch *)"}, play: says("run touch x")},
		},
		"conversation/failures": {
			failing(onlyNative, 41), failing(claudeOnly, 1), failing(onlyQwen, 0),
			limited(others[:1], 53), limited(claudeOnly, 1), limited(onlyQwen, 53),
			{name: "asked again", model: `{"emit": [{"status": 503, "retry_after": 0, "first": 1}, {"text": "Now."}]}`, play: says("go")},
			{name: "broken off and asked again", flags: partial, model: `{"emit": [{"text": "Half", "by": "whole"}, {"fault": "cut"}]}` + say("Whole."), play: says("go")},
			empty(notQwen, 1), empty(onlyQwen, 0),
		},
		"conversation/structured": {
			{name: "at the second try", model: `
				{"emit": [{"tool": "structured_output", "input": {"answer": "many"}}]}
				{"emit": [{"tool": "structured_output", "input": {"answer": 42}}]}`, play: func(h *scriptedHost) {
				h.initialize(`"jsonSchema":` + answerSchema)
				h.user("go")
				h.result()
			}},
			unstructured(others[:1], 58), unstructured(claudeOnly, 1), unstructured(onlyQwen, 0),
		},
		"conversation/plan": {
			{name: "approved", flags: []string{"--permission-mode=plan"}, model: `
				{"emit": [{"tool": "write_file", "input": {"file_path": "x.txt", "content": "x"}}]}
				{"emit": [{"tool": "exit_plan_mode", "input": {"plan": "1. write x.txt"}}]}
				{"emit": [{"text": "Off I go."}]}`, play: begun(func(h *scriptedHost) {
				h.user("go")
				for f := h.next(); f.Kind() != "result"; f = h.next() {
					h.answer(f, `{"behavior":"allow"}`)
				}
			})},
			{name: "rejected", flags: []string{"--permission-mode=plan"}, model: `
				{"emit": [{"tool": "exit_plan_mode", "input": {"plan": "1. write x.txt"}}]}
				{"emit": [{"text": "I'll think again."}]}`, play: begun(func(h *scriptedHost) {
				h.user("go")
				for f := h.next(); f.Kind() != "result"; f = h.next() {
					h.answer(f, `{"behavior":"deny","message":"Think again."}`)
				}
			})},
		},
		"conversation/commands": {
			{name: "those that answer at once", play: says("hi", "/model", "/clear", "hi")},
			{name: "a file's", files: map[string]string{".agent/commands/greet.md": "---\ndescription: greets\n---\nhi", ".claude/commands/greet.md": "hi", ".qwen/commands/greet.md": "hi"}, play: says("/greet")},
		},
	}
}

// answerSchema wants a number.
const answerSchema = `{"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}`

// agentsOf are what the host defines.
const agentsOf = `"agents":[{"name":"looker","description":"looks at things","systemPrompt":"You look.","level":"session"}]`

// delegating has the main model start a sub-agent, which is told by its prompt.
func delegating(input string) string {
	return `
		{"when": {"user": "go"}, "emit": [{"text": "I'll have it looked at."}, {"tool": "agent", "input": {"description": "look at it", "prompt": "look", "subagent_type": "looker"` + input + `}}]}
		{"when": {"user": "look"}, "emit": [{"text": "Looking."}, {"tool": "run_shell_command", "input": {"command": "echo seen"}}]}
		{"when": {"tool": "run_shell_command"}, "emit": [{"text": "It was seen."}]}
		{"use": "always", "emit": [{"text": "Done."}]}`
}

// subagentCases are turns with sub-agents.
func subagentCases() map[string][]goldenCase {
	opened := func(play func(h *scriptedHost)) func(h *scriptedHost) {
		return func(h *scriptedHost) {
			h.initialize(agentsOf)
			h.user("go")
			play(h)
		}
	}
	return map[string][]goldenCase{
		"conversation/subagent": {
			{name: "in the foreground", only: notQwen, flags: yolo, model: delegating(""), play: opened(func(h *scriptedHost) { h.result() })},
			{name: "in the foreground, with partial messages", only: notQwen, flags: append([]string{"--include-partial-messages", "--forward-subagent-text"}, yolo...),
				model: delegating(""), play: opened(func(h *scriptedHost) { h.result() })},
			{name: "it asks", model: delegating(""), play: opened(func(h *scriptedHost) {
				for f := h.next(); f.Kind() != "result"; f = h.next() {
					h.answer(f, `{"behavior":"allow"}`)
				}
			})},
			{name: "it fails", exit: 0, flags: yolo, model: `
				{"when": {"user": "go"}, "emit": [{"tool": "agent", "input": {"description": "look at it", "prompt": "look", "subagent_type": "looker"}}]}
				{"when": {"user": "look"}, "emit": [{"status": 400, "message": "no"}]}` + say("Done."), play: opened(func(h *scriptedHost) { h.result() })},
			{name: "interrupted", flags: yolo, model: `
				{"when": {"user": "go"}, "emit": [{"tool": "agent", "input": {"description": "look at it", "prompt": "look", "subagent_type": "looker"}}]}
				{"when": {"user": "look"}, "emit": [{"tool": "run_shell_command", "input": {"command": "touch started; sleep 1000"}}]}` + say("Done."), play: opened(func(h *scriptedHost) {
				h.file("started")
				h.await("the call", func(f testkit.Frame) bool { return f.Kind() == "assistant" && f["parent_tool_use_id"] != nil })
				h.request(`{"subtype":"interrupt"}`)
				h.result()
			})},
			{name: "hooks of it", only: notQwen, flags: yolo, model: delegating(""), play: func(h *scriptedHost) {
				h.initialize(agentsOf + `,"hooks":{"SubagentStart":[{"hookCallbackIds":["start"]}],"SubagentStop":[{"hookCallbackIds":["stop"]}],"PreToolUse":[{"hookCallbackIds":["pre"]}]}`)
				h.user("go")
				for f := h.next(); f.Kind() != "result"; f = h.next() {
					h.answer(f, `{}`)
				}
			}},
			{name: "one that there isn't", flags: yolo, model: `
				{"when": {"user": "go"}, "emit": [{"tool": "agent", "input": {"description": "x", "prompt": "look", "subagent_type": "nobody"}}]}` + say("Done."),
				play: opened(func(h *scriptedHost) { h.result() })},
		},
	}
}

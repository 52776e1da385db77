package sdk

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// statusOf is the state of a server in a list of states, or in qwen's map.
func statusOf(v any, name string) string {
	if m, ok := v.(map[string]any); ok {
		if status, ok := m["status"].(map[string]any); ok {
			m = status
		}
		s, _ := m[name].(string)
		return s
	}
	list, _ := v.([]any)
	for _, s := range list {
		if m, ok := s.(map[string]any); ok && m["name"] == name {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}

func TestServers(t *testing.T) {
	t.Parallel()
	multiply := func(turns int) string {
		var sb strings.Builder
		for range turns {
			sb.WriteString(`{"emit": [{"tool": "mcp__ext__multiply", "input": {"a": 6, "b": 7}}]}
				{"when": {"result": {"contains": "42"}}, "emit": [{"text": "It is 42."}]}` + "\n")
		}
		return sb.String()
	}
	play(t, []scenario{
		{name: "mcp_sdk", kits: every, model: `
			{"emit": [{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}, {"tool": "mcp__calc__fail", "input": {}}]}
			{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("call", 2)
			all := r.count("tool_result", 2)
			if all[0]["error"] != false || !strings.Contains(all[0].String("text"), "5") {
				t.Errorf("the sum is %v", all[0])
			}
			if all[1]["error"] != true {
				t.Errorf("what threw has the result %v", all[1])
			}
			mentions(t, "the failure", all[1].String("text"), "failed on purpose")
			init := r.all("init")[0]
			servers, _ := init.Get("data.mcp_servers")
			if got := statusOf(servers, "calc"); got != "connected" {
				t.Errorf("the server is %q at the start of the turn", got)
			}
			tools, _ := json.Marshal(init["data"].(map[string]any)["tools"])
			mentions(t, "the list of tools", string(tools), "mcp__calc__add", "mcp__calc__slow")
			r.results("ok Done.")
		}},
		{name: "mcp_sdk_denied", kits: claudes, model: `{"emit": [{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("call", 0)
			r.tool(true)
			result := r.results("ok Done.")[0]
			denials, _ := json.Marshal(result["permission_denials"])
			mentions(t, "the denials", string(denials), "mcp__calc__add")
		}},
		{name: "mcp_sdk_slow", kits: every, model: `{"emit": [{"tool": "mcp__calc__slow", "input": {}}]} {"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			mentions(t, "the tool result", r.tool(false), "waited")
			if r.isClaude() {
				if got := statusOf(r.one("status")["servers"], "calc"); got != "connected" {
					t.Errorf("the server is %q while its tool runs", got)
				}
			}
			r.results("ok Done.")
		}},
		{name: "fifty_calls", kits: every, model: fiftyCalls(), expect: func(t *testing.T, r *played) {
			r.quiet()
			r.count("call", 50)
			if r.isClaude() { // qwen-code trusts the tools of its host
				r.count("ask", 50)
			}
			for i, result := range r.count("tool_result", 50) {
				if result["error"] != false || !strings.Contains(result.String("text"), strconv.Itoa(1000+i)) {
					t.Errorf("result %d is %v", i, result)
				}
			}
			r.results("ok Done.")
		}},
		{name: "mcp_external", kits: claudes, model: multiply(2), expect: func(t *testing.T, r *played) {
			r.quiet()
			all := r.count("status", 2)
			if on, off := statusOf(all[0]["servers"], "ext"), statusOf(all[1]["servers"], "ext"); on != "connected" || off != "disabled" {
				t.Errorf("the server is %q, and after it was switched off %q", on, off)
			}
			r.results("ok It is 42.", "ok It is 42.")
		}},
		{name: "mcp_external", kits: qwens, model: multiply(2), expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok It is 42.", "ok It is 42.")
			servers, _ := r.all("init")[0].Get("data.mcp_servers")
			if got := statusOf(servers, "ext"); got != "connected" {
				t.Errorf("the server is %q", got)
			}
		}},
		{name: "mcp_external_asks", kits: qwens, model: multiply(2), expect: func(t *testing.T, r *played) {
			r.quiet()
			for _, ask := range r.count("ask", 2) {
				if ask.String("name") != "mcp__ext__multiply" {
					t.Errorf("the question is %v", ask)
				}
			}
			r.results("ok It is 42.", "ok It is 42.")
		}},
		{name: "settings_files", kits: qwens, files: []string{".qwen/settings.json", `{"telemetry": {"enabled": false}, "general": {"chatRecording": false}, "security": {"auth": {"selectedType": "openai"}},
				"tools": {"core": ["read_file"]}, "mcpServers": {"project": {"command": "false"}}}`}, model: multiply(1), expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok It is 42.")
			init := r.all("init")[0]
			servers, _ := init.Get("data.mcp_servers")
			if model := init.String("data.model"); model != "own-model" || statusOf(servers, "ext") != "connected" || statusOf(servers, "project") != "" {
				t.Errorf("the model is %q, the servers are %v", model, servers)
			}
			if first := r.model.asked()[0]; strings.Contains(first, `"name":"write_file"`) || !strings.Contains(first, `"name":"read_file"`) {
				t.Error("other tools are offered than the settings name")
			}
		}},
		{name: "mcp_external_broken", kits: every, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			r.results("ok Done.")
			if got := statusOf(r.one("status")["servers"], "ext"); got == "connected" || r.isClaude() && got != "failed" {
				t.Errorf("the broken server is %q", got)
			}
		}},
		{name: "mcp_set_servers", kits: "typescript", model: `{"emit": [{"text": "Hello."}]}` + multiply(1), expect: func(t *testing.T, r *played) {
			r.quiet()
			added, _ := json.Marshal(r.one("set")["added"])
			mentions(t, "what was added", string(added), "ext")
			r.results("ok Hello.", "ok It is 42.")
		}},
	})
}

// fiftyCalls calls a tool of the host's fifty times in one answer.
func fiftyCalls() string {
	var list []string
	for i := range 50 {
		list = append(list, fmt.Sprintf(`{"tool": "mcp__calc__add", "input": {"a": 1000, "b": %d}}`, i))
	}
	return `{"emit": [` + strings.Join(list, ", ") + `]} {"emit": [{"text": "Done."}]}`
}

// delegates calls an agent that reads a file.
const delegates = `
	{"when": {"user": "delegate"}, "emit": [{"tool": "@agent", "id": "call_agent", "input": {"description": "read", "prompt": "read the file please", "subagent_type": "reader", "run_in_background": false}}]}
	{"when": {"user": {"contains": "read the file please"}, "turn": 1}, "emit": [{"tool": "@read", "input": {"file_path": "@dir/a.txt"}}]}
	{"when": {"tool": "@read"}, "emit": [{"text": "It says inside."}]}
	{"when": {"tool": "@agent"}, "emit": [{"text": "Done."}]}`

func TestAgents(t *testing.T) {
	t.Parallel()
	files := []string{"a.txt", "inside"}
	// nested: the agent's call and its result carry the id of the call that
	// made the agent.
	nested := func(t *testing.T, r *played) {
		r.quiet()
		var uses, results int
		for _, e := range r.events {
			if e["parent"] == "call_agent" {
				switch e.String("ev") {
				case "tool_use":
					uses++
				case "tool_result":
					results++
				}
			}
		}
		if uses != 1 || results != 1 {
			t.Errorf("the agent's calls and results are %d and %d", uses, results)
		}
		r.results("ok Done.")
	}
	play(t, []scenario{
		{name: "agents", kits: every, files: files, model: delegates, expect: func(t *testing.T, r *played) {
			nested(t, r)
			listed, _ := r.one("init").Get("data.agents")
			names, _ := json.Marshal(listed)
			mentions(t, "the list of agents", string(names), `"reader"`)
			for _, e := range r.all("text") {
				if e["parent"] != nil {
					t.Errorf("the agent's words are among the messages: %v", e)
				}
			}
			asked := r.model.asked()
			mentions(t, "the offered tools", asked[0], "reader")
			if strings.Contains(asked[1], `"`+r.kit.dialect.names["@write"]+`"`) {
				t.Error("the agent is offered a tool that it may not use")
			}
		}},
		{name: "agents_text", kits: claudes, files: files, model: delegates, expect: func(t *testing.T, r *played) {
			nested(t, r)
			found := false
			for _, e := range r.all("text") {
				found = found || e["parent"] == "call_agent" && e.String("text") == "It says inside."
			}
			if !found {
				t.Error("the agent's words are not among the messages")
			}
		}},
		{name: "agents_hooks", kits: claudes, files: files, model: delegates, expect: func(t *testing.T, r *played) {
			nested(t, r)
			var order []string
			for _, h := range r.all("hook") {
				order = append(order, h.String("event")+":"+h.String("input.tool_name"))
				if inside := h.String("input.tool_name") == "Read"; inside != (h.String("input.agent_id") != "") && strings.HasPrefix(h.String("event"), "Pre") {
					t.Errorf("agent_id is there and should not be, or the other way around: %v", h)
				}
			}
			if got := strings.Join(order, " "); got != "PreToolUse:Agent SubagentStart: PreToolUse:Read SubagentStop:" {
				t.Errorf("the hooks are %s", got)
			}
		}},
		{name: "agents_large", kits: claudes, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			names, _ := json.Marshal(r.one("init")["data"].(map[string]any)["agents"])
			mentions(t, "the list of agents", string(names), `"big-0"`, `"big-19"`)
			r.results("ok Done.")
		}},
		{name: "agents_client", kits: "python", model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			names, _ := json.Marshal(r.one("init")["data"].(map[string]any)["agents"])
			mentions(t, "the list of agents", string(names), `"reader"`, `"big-0"`, `"big-19"`)
			r.results("ok Done.")
		}},
		{name: "agents_files", kits: "python", files: []string{".claude/agents/tester.md", "---\nname: tester\ndescription: Tests things.\ntools: Read\n---\nYou test.\n"}, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			names, _ := json.Marshal(r.one("init")["data"].(map[string]any)["agents"])
			mentions(t, "the list of agents", string(names), `"tester"`)
			r.results("ok Done.")
		}},
		{name: "agents_none", kits: qwens, model: `{"emit": [{"text": "Done."}]}`, expect: func(t *testing.T, r *played) {
			r.quiet()
			list, ok := r.one("init")["data"].(map[string]any)["agents"].([]any)
			if !ok || len(list) != 0 {
				t.Errorf("the list of agents is %v, want an empty one", list)
			}
		}},
	})
}

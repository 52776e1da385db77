package session

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

func TestFramesAboutHooks(t *testing.T) {
	t.Parallel()
	out := &sink{}
	n := &Native{Facts: claudeFacts(), Out: out}
	sub := agent.Origin{AgentID: "a1", AgentType: "reviewer", ParentToolUseID: "t0"}
	got := project(t, n, out, sub,
		&agent.HookStarted{ID: "h", Name: "PreToolUse:Bash", Event: "PreToolUse"},
		&agent.HookEnded{ID: "h", Name: "PreToolUse:Bash", Event: "PreToolUse", Output: json.RawMessage(`{"a":1}`), Outcome: "success"},
		&agent.HookEnded{ID: "h", Name: "Stop", Event: "Stop", Outcome: "error", Err: errors.New("it broke")},
		&agent.HookMessage{Event: "Stop", Text: "careful"})
	frame := func(subtype string, rest map[string]any) map[string]any {
		m := map[string]any{"type": "system", "subtype": subtype, "session_id": "s", "agent_id": "a1", "subagent_type": "reviewer"}
		for k, v := range rest {
			m[k] = v
		}
		return m
	}
	for _, m := range got {
		if m["uuid"] == "" {
			t.Errorf("no uuid: %v", m)
		}
		delete(m, "uuid")
	}
	want := []map[string]any{
		frame("hook_started", map[string]any{"hook_id": "h", "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse"}),
		frame("hook_response", map[string]any{"hook_id": "h", "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse",
			"output": `{"a":1}`, "stdout": `{"a":1}`, "stderr": "", "outcome": "success", "exit_code": 0.0}),
		frame("hook_response", map[string]any{"hook_id": "h", "hook_name": "Stop", "hook_event": "Stop",
			"output": "", "stdout": "", "stderr": "it broke", "outcome": "error"}),
		frame("informational", map[string]any{"content": "careful", "level": "info", "hook_event": "Stop"}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResultsOfTheHostsOwnTools(t *testing.T) {
	t.Parallel()
	tests := []struct {
		content string
		want    []model.Block
		err     string
	}{
		{`{"type":"tool_result","tool_use_id":"t","content":"x"}`, []model.Block{model.Text{Text: "x"}}, ""},
		{`{"type":"tool_result","tool_use_id":"t"}`, []model.Block{model.Text{}}, ""},
		{`{"type":"tool_result","tool_use_id":"t","content":[]}`, []model.Block{model.Text{}}, ""},
		{`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"u"}}]}`,
			[]model.Block{model.Text{Text: "a"}, model.Image{URL: "u"}}, ""},
		{`{"type":"tool_result","tool_use_id":"","content":"x"}`, nil, "tool_use_id"},
		{`{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}`, nil, "only text, image and document"},
	}
	for _, tt := range tests {
		msg, err := streamjson.Decode([]byte(`{"type":"user","message":{"role":"user","content":[` + tt.content + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		in := toInput(msg.(*streamjson.UserLine), false)
		if tt.err != "" {
			if in.Err == nil || !strings.Contains(in.Err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q in it", tt.content, in.Err, tt.err)
			}
			continue
		}
		if in.Err != nil {
			t.Errorf("%s: %v", tt.content, in.Err)
			continue
		}
		if diff := cmp.Diff([]model.Block{model.ToolResult{ToolUseID: "t", Blocks: tt.want}}, in.Blocks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.content, diff)
		}
	}
}

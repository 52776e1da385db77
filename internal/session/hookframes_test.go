package session

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/agent"
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

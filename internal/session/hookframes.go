package session

import (
	"maps"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// hook makes the frame of an event about hooks; nil for other events.
func (f *Facts) hook(from agent.Origin, e agent.Event) streamjson.Message {
	frame := func(subtype string, fields map[string]any) streamjson.Message {
		maps.Copy(fields, agentFields(from))
		return &streamjson.System{
			Subtype: subtype, SessionID: f.SessionID, UUID: streamjson.NewUUID(), Extra: members(fields),
		}
	}
	switch e := e.(type) {
	case *agent.HookStarted:
		return frame("hook_started", map[string]any{"hook_id": e.ID, "hook_name": e.Name, "hook_event": e.Event})
	case *agent.HookEnded:
		shown, why := cut(string(e.Output), 100_000), ""
		if e.Err != nil {
			why = e.Err.Error()
		}
		fields := map[string]any{
			"hook_id": e.ID, "hook_name": e.Name, "hook_event": e.Event, "outcome": e.Outcome,
			"output": shown, "stdout": shown, "stderr": why,
		}
		if e.Err == nil && e.Outcome == "success" {
			fields["exit_code"] = 0
		}
		return frame("hook_response", fields)
	case *agent.HookMessage:
		return frame("informational", map[string]any{"content": e.Text, "level": "info", "hook_event": e.Event})
	}
	return nil
}

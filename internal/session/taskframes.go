package session

import (
	"fmt"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// taskUsage is what a task used, in the form of the wire.
type taskUsage struct {
	Tokens     int   `json:"total_tokens"`
	ToolUses   int   `json:"tool_uses"`
	DurationMS int64 `json:"duration_ms"`
}

func toTaskUsage(u tools.TaskUsage) taskUsage {
	return taskUsage{u.Tokens, u.ToolUses, u.Took.Milliseconds()}
}

// task makes the frame of an event about a task; nil for other events.
func (f *Facts) task(e agent.Event) streamjson.Message {
	frame := func(subtype string, t *agent.Task, fields map[string]any) streamjson.Message {
		fields["task_id"] = t.ID
		if t.ToolUseID != "" {
			fields["tool_use_id"] = t.ToolUseID
		}
		return &streamjson.System{Subtype: subtype, SessionID: f.SessionID, UUID: streamjson.NewUUID(), Extra: members(fields)}
	}
	switch e := e.(type) {
	case *agent.TaskStarted:
		fields := map[string]any{"description": e.Task.Description, "task_type": string(e.Task.Kind)}
		if e.Task.Kind == tools.TaskAgent {
			fields["subagent_type"], fields["prompt"] = e.Task.AgentType, cut(e.Prompt, keepBytes)
		}
		m := frame("task_started", &e.Task, fields).(*streamjson.System)
		m.Extra = append(m.Extra[:len(m.Extra)-1], fmt.Sprintf(`,"is_backgrounded":%t}`, e.Task.Background)...) // members leaves out false
		return m
	case *agent.TaskProgressed:
		return frame("task_progress", &e.Task, map[string]any{
			"description": e.Task.Description, "usage": toTaskUsage(e.Usage), "last_tool_name": e.LastTool,
		})
	case *agent.TaskEnded:
		return frame("task_notification", &e.Task, map[string]any{
			"status": string(e.Status), "summary": cut(e.Summary, keepBytes), "output_file": e.OutputFile, "usage": toTaskUsage(e.Usage),
		})
	}
	return nil
}

// The data of qwen's system messages about tasks. It has them of agents in the
// background alone.
type (
	qwenTaskStarted struct {
		ID          string `json:"task_id"`
		ToolUseID   string `json:"tool_use_id,omitempty"`
		Description string `json:"description"`
		AgentType   string `json:"subagent_type,omitempty"`
	}
	qwenTaskEnded struct {
		ID        string    `json:"task_id"`
		ToolUseID string    `json:"tool_use_id,omitempty"`
		Status    string    `json:"status"`
		Usage     taskUsage `json:"usage"`
	}
)

func (q *Qwen) taskStarted(t *agent.Task) {
	if t.Background && t.Kind == tools.TaskAgent {
		q.system("task_started", qwenTaskStarted{t.ID, t.ToolUseID, t.Description, t.AgentType})
	}
}

func (q *Qwen) taskEnded(e *agent.TaskEnded) {
	t := &e.Task
	delete(q.answers, t.ID)
	if !t.Background || t.Kind != tools.TaskAgent {
		return
	}
	q.tells(agent.Origin{}, fmt.Sprintf("Background agent %q %s.", t.AgentType+": "+t.Description, e.Status))
	q.system("task_notification", qwenTaskEnded{t.ID, t.ToolUseID, string(e.Status), toTaskUsage(e.Usage)})
}

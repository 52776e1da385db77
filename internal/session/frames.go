package session

import (
	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// agentFields are the members that say which sub-agent a frame is of; none for
// the main conversation.
func agentFields(from agent.Origin) map[string]any {
	m := map[string]any{}
	if from.AgentID != "" {
		m["agent_id"] = from.AgentID
	}
	if from.AgentType != "" {
		m["subagent_type"] = from.AgentType
	}
	return m
}

func agentMembers(from agent.Origin) []byte {
	if isMain(from) {
		return nil
	}
	return members(agentFields(from))
}

// wireError is the wire's name of an API failure (wire/claude-agent-sdk.md §2.3).
func wireError(e *model.Error) string {
	switch e.Kind {
	case model.ErrAuth:
		return "authentication_failed"
	case model.ErrQuota:
		return "billing_error"
	case model.ErrRateLimit:
		return "rate_limit"
	case model.ErrOverloaded:
		return "overloaded"
	case model.ErrBadRequest, model.ErrContext:
		return "invalid_request"
	case model.ErrNotFound:
		return "model_not_found"
	case model.ErrServer, model.ErrStalled, model.ErrIncomplete, model.ErrMalformed, model.ErrEmpty, model.ErrNetwork,
		model.ErrMalformedUse:
		return "server_error"
	}
	return "unknown"
}

// prompt is the frame with what a sub-agent was told.
func (f *Facts) prompt(from agent.Origin, in *agent.Input) *streamjson.UserLine {
	return &streamjson.UserLine{
		Message:         streamjson.UserMessage{Content: streamjson.BlockContent(toWireBlocks(in.Blocks)...)},
		ParentToolUseID: from.ParentToolUseID, SessionID: f.SessionID, UUID: in.UUID, Extra: agentMembers(from),
	}
}

// modeStatus is the frame that tells of a new permission mode, in the native
// dialect and in claude's; the others have none.
func (f *Facts) modeStatus(m policy.Mode) streamjson.Message {
	return &streamjson.SystemStatus{
		PermissionMode: policy.ModeName(string(f.Dialect), m), SessionID: f.SessionID, UUID: streamjson.NewUUID(),
	}
}

// modelStatus is the frame that tells of a new model, in the same dialects.
func (f *Facts) modelStatus(name string) streamjson.Message {
	return &streamjson.SystemStatus{Model: name, SessionID: f.SessionID, UUID: streamjson.NewUUID()}
}

// fallback is the frame that tells that another model stands in.
func (f *Facts) fallback(e *agent.ModelFallback) streamjson.Message {
	why := ""
	if e.Err != nil {
		why = ": " + e.Err.Error()
	}
	return f.informational("Switched from "+e.From+" to "+e.To+why, "warning",
		map[string]any{"from_model": e.From, "to_model": e.To})
}

// informational is the frame with something to tell the user.
func (f *Facts) informational(text, level string, more map[string]any) streamjson.Message {
	more["content"], more["level"] = text, level
	return &streamjson.System{Subtype: "informational", SessionID: f.SessionID, UUID: streamjson.NewUUID(), Extra: members(more)}
}

// reset is the frame between two conversations; it is the last of the old one.
func (f *Facts) reset(e *agent.ConversationReset) streamjson.Message {
	f.SessionID = e.New
	return &streamjson.Unknown{Type: "conversation_reset", Raw: members(map[string]any{
		"type": "conversation_reset", "new_conversation_id": e.New, "session_id": e.Old,
		"uuid": streamjson.NewUUID(), "trigger": "clear",
	})}
}

// compacted is the frame about a summary that took the place of the history.
func (f *Facts) compacted(e *agent.Compacted) streamjson.Message {
	return &streamjson.System{Subtype: "compact_boundary", SessionID: f.SessionID, UUID: streamjson.NewUUID(), Extra: members(map[string]any{
		"compact_metadata": map[string]any{"trigger": e.Trigger, "pre_tokens": e.Before, "post_tokens": e.After},
	})}
}

// progress is the tool_progress frame, which has no type of its own.
func (f *Facts) progress(from agent.Origin, e *agent.ToolProgressed) streamjson.Message {
	var parent any = (*string)(nil)
	if from.ParentToolUseID != "" {
		parent = from.ParentToolUseID
	}
	return &streamjson.Unknown{Type: "tool_progress", Raw: members(map[string]any{
		"type": "tool_progress", "tool_use_id": e.ToolUseID, "tool_name": e.Name,
		"parent_tool_use_id": parent, "elapsed_time_seconds": e.Elapsed.Seconds(),
		"output_bytes": e.Progress.Bytes, "output_lines": e.Progress.Lines, "text": cut(e.Progress.Text, 2000),
		"session_id": f.SessionID, "uuid": streamjson.NewUUID(),
	})}
}

func (f *Facts) toolResult(from agent.Origin, e *agent.ToolEnded) *streamjson.UserLine {
	res := e.Result
	return &streamjson.UserLine{
		Message: streamjson.UserMessage{Content: streamjson.BlockContent(streamjson.ToolResultBlock{
			ToolUseID: res.ToolUseID, Content: resultContent(res.Blocks), IsError: res.IsError,
		})},
		ParentToolUseID: from.ParentToolUseID, ToolUseResult: e.Display, SessionID: f.SessionID, UUID: e.UUID,
		Extra: agentMembers(from),
	}
}

func toWireBlocks(blocks []model.Block) []streamjson.Block {
	list := make([]streamjson.Block, len(blocks))
	for i, b := range blocks {
		list[i] = toWire(b)
	}
	return list
}

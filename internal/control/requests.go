package control

import "github.com/go-json-experiment/json/jsontext"

// InterruptRequest asks for an interrupt; nothing in it is needed.
type InterruptRequest struct {
	CancelQueued bool `json:"cancel_queued"`
}

// SetModelRequest names the model, or null for the default one.
type SetModelRequest struct {
	Model jsontext.Value `json:"model"`
}

// SetEffortRequest names one of Efforts.
type SetEffortRequest struct {
	Effort jsontext.Value `json:"effort"`
}

// SetThinkingRequest limits thinking; null tokens are the default.
type SetThinkingRequest struct {
	Tokens  *int   `json:"max_thinking_tokens"`
	Display string `json:"thinking_display"`
}

// ApplySettingsRequest carries settings of the flag layer.
type ApplySettingsRequest struct {
	Settings jsontext.Value `json:"settings"`
}

// StopTaskRequest names a task.
type StopTaskRequest struct {
	TaskID string `json:"task_id"`
}

// RewindRequest names the message to go back to.
type RewindRequest struct {
	UserMessageID string `json:"user_message_id"`
	DryRun        bool   `json:"dry_run"`
}

// HintsRequest is what a person has typed; without a limit it is 20.
type HintsRequest struct {
	Prefix string `json:"prefix"`
	Limit  *int   `json:"limit"`
}

// ContextRequest asks for the use of the context.
type ContextRequest struct {
	ShowDetails bool `json:"show_details"`
}

// UsageRequest names a range: today, week, month or all, the default.
type UsageRequest struct {
	Range string `json:"range"`
}

// SetModeRequest names a permission mode.
type SetModeRequest struct {
	Mode jsontext.Value `json:"mode"`
}

// JudgeRequest is can_use_tool of the host.
type JudgeRequest struct {
	ToolName  string         `json:"tool_name"`
	ToolUseID string         `json:"tool_use_id"`
	Input     jsontext.Value `json:"input"`
}

// ServerRequest names an MCP server in one of two ways.
type ServerRequest struct {
	Name  string `json:"serverName"`
	Other string `json:"server_name"`
}

// ToggleRequest says besides ServerRequest whether the server is to run.
type ToggleRequest struct {
	ServerRequest
	Enabled *bool `json:"enabled"`
}

// SetServersRequest carries the configurations by name.
type SetServersRequest struct {
	Servers jsontext.Value `json:"servers"`
}

// MCPMessageReply is the host's answer to mcp_message.
type MCPMessageReply struct {
	Response jsontext.Value `json:"mcp_response"`
}

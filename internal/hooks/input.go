package hooks

import (
	"encoding/json"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Input is what hooks are told. Each event uses the fields that its note names;
// the others are left out of what is sent.
type Input struct {
	// Of every event.
	SessionID      string
	TranscriptPath string // of the session's file; empty: none is kept
	Cwd            string
	PermissionMode string // by its outward name; may be empty
	PromptID       string // of the user line; may be empty
	AgentID        string // of the sub-agent it happens in; empty: the conversation itself
	AgentType      string

	// PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest.
	ToolName  string          // by its outward name
	ToolInput json.RawMessage // with the outward keys; nil: {}
	ToolUseID string

	ToolResponse json.RawMessage // PostToolUse
	Took         time.Duration   // PostToolUse, PostToolUseFailure
	Error        string          // PostToolUseFailure
	IsInterrupt  bool            // PostToolUseFailure

	PermissionSuggestions json.RawMessage // PermissionRequest; may be nil

	Prompt string // UserPromptSubmit

	Source string // SessionStart: startup, resume, clear, compact, fork
	Model  string // SessionStart; may be empty
	Reason string // SessionEnd: clear, resume, logout, prompt_input_exit, other

	StopHookActive       bool   // Stop, SubagentStop
	LastAssistantMessage string // Stop, SubagentStop; may be empty
	AgentTranscriptPath  string // SubagentStop; may be empty

	Trigger            string // PreCompact: manual, auto
	CustomInstructions string // PreCompact; may be empty

	Message          string // Notification
	NotificationType string // Notification: permission_prompt, idle_prompt, ...
	Title            string // Notification; may be empty

	// Watch is told of each hook that starts and ends, if not nil. It is called
	// from several goroutines. It is no part of what is sent.
	Watch func(Step)
}

// subject is what the matchers of an event are held against.
func (in *Input) subject(e Event) string {
	switch e {
	case SessionStart:
		return in.Source
	case SessionEnd:
		return in.Reason
	case SubagentStart, SubagentStop:
		return in.AgentType
	case PreCompact:
		return in.Trigger
	case Notification:
		return in.NotificationType
	}
	if e.onTools() {
		return in.ToolName
	}
	return ""
}

// common is what the inputs of all events begin with.
type common struct {
	SessionID      string `json:"session_id"`
	TranscriptPath string `json:"transcript_path"`
	Cwd            string `json:"cwd"`
	PermissionMode string `json:"permission_mode,omitempty"`
	PromptID       string `json:"prompt_id,omitempty"`
	AgentID        string `json:"agent_id,omitempty"`
	AgentType      string `json:"agent_type,omitempty"`
	Event          Event  `json:"hook_event_name"`
}

// toolCall is what the events about tools have.
type toolCall struct {
	Name  string         `json:"tool_name"`
	Input jsontext.Value `json:"tool_input"`
}

// encode returns the object that the hooks of an event are given.
func (in *Input) encode(e Event) (json.RawMessage, error) {
	return jsonv2.Marshal(in.object(e), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

func (in *Input) object(e Event) any {
	base := common{
		in.SessionID, in.TranscriptPath, in.Cwd, in.PermissionMode, in.PromptID, in.AgentID, in.AgentType, e,
	}
	tool := toolCall{in.ToolName, orEmptyObject(in.ToolInput)}
	switch e {
	case PreToolUse:
		return struct {
			common
			toolCall
			ID string `json:"tool_use_id"`
		}{base, tool, in.ToolUseID}
	case PostToolUse:
		return struct {
			common
			toolCall
			Response jsontext.Value `json:"tool_response"`
			ID       string         `json:"tool_use_id"`
			Took     int64          `json:"duration_ms"`
		}{base, tool, orNull(in.ToolResponse), in.ToolUseID, in.Took.Milliseconds()}
	case PostToolUseFailure:
		return struct {
			common
			toolCall
			ID        string `json:"tool_use_id"`
			Error     string `json:"error"`
			Interrupt bool   `json:"is_interrupt"`
			Took      int64  `json:"duration_ms"`
		}{base, tool, in.ToolUseID, in.Error, in.IsInterrupt, in.Took.Milliseconds()}
	case PermissionRequest:
		return struct {
			common
			toolCall
			Suggestions jsontext.Value `json:"permission_suggestions,omitzero"`
		}{base, tool, jsontext.Value(in.PermissionSuggestions)}
	}
	return in.plainObject(e, base)
}

// plainObject is object for the events that are not about tools.
func (in *Input) plainObject(e Event, base common) any {
	switch e {
	case UserPromptSubmit:
		return struct {
			common
			Prompt string `json:"prompt"`
		}{base, in.Prompt}
	case SessionStart:
		return struct {
			common
			Source string `json:"source"`
			Model  string `json:"model,omitempty"`
		}{base, in.Source, in.Model}
	case SessionEnd:
		return struct {
			common
			Reason string `json:"reason"`
		}{base, in.Reason}
	case Stop:
		return struct {
			common
			Active bool   `json:"stop_hook_active"`
			Last   string `json:"last_assistant_message,omitempty"`
		}{base, in.StopHookActive, in.LastAssistantMessage}
	case SubagentStop:
		return struct {
			common
			Active     bool   `json:"stop_hook_active"`
			Transcript string `json:"agent_transcript_path"`
			Last       string `json:"last_assistant_message,omitempty"`
		}{base, in.StopHookActive, in.AgentTranscriptPath, in.LastAssistantMessage}
	case PreCompact:
		return struct {
			common
			Trigger      string  `json:"trigger"`
			Instructions *string `json:"custom_instructions"`
		}{base, in.Trigger, orNil(in.CustomInstructions)}
	case Notification:
		return struct {
			common
			Message string `json:"message"`
			Type    string `json:"notification_type"`
			Title   string `json:"title,omitempty"`
		}{base, in.Message, in.NotificationType, in.Title}
	}
	return base
}

func orEmptyObject(v json.RawMessage) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("{}")
	}
	return jsontext.Value(v)
}

func orNull(v json.RawMessage) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("null")
	}
	return jsontext.Value(v)
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

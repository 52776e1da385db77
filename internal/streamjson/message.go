package streamjson

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxFrame is the size in bytes that no encoded line should exceed: the
// published hosts stop at 1 MiB. Whoever makes a frame keeps to it (see
// [Fits]); neither Append nor the Writer enforces it.
const MaxFrame = 900_000

// MaxDepth is how deeply arrays and objects may nest in a line that is read.
const MaxDepth = 512

// Message is one line of the protocol, in either direction: [*UserLine],
// [*ControlRequest], [*ControlResponse], [*ControlCancel], [*KeepAlive],
// [*SystemInit], [*SystemStatus], [*SystemAPIRetry], [*SystemPermissionDenied],
// [*System], [*Assistant], [*StreamEvent], [*StreamDelta], [*Result] or
// [*Unknown]. Messages are plain values without locks: they must not be changed
// while another goroutine encodes them.
//
// In all of them an empty ParentToolUseID, StopReason or Status is null on the
// wire. Extra, where there is one, is a JSON object with the members that have
// no field of their own, nil when there are none; its members are written after
// the others and must not repeat them.
type Message interface{ isMessage() }

// UserLine is a line of type "user": a prompt on its way in, or tool results,
// replays and injected turns on their way out.
type UserLine struct {
	Message         UserMessage `json:"message"`
	ParentToolUseID string      `json:"parent_tool_use_id"`
	// ToolUseResult is the structured form of a tool result, for display.
	ToolUseResult json.RawMessage `json:"tool_use_result"`
	// Options is the raw per-turn options object; see [UserLine.TurnOptions].
	Options  json.RawMessage `json:"options"`
	Origin   json.RawMessage `json:"origin"`
	Priority string          `json:"priority"` // now, next or later; empty is next
	// ShouldQuery false means: append to the history only, start no turn. Nil
	// is the same as true.
	ShouldQuery *bool `json:"shouldQuery"`
	// ClientComposed says that the host put the text together: none of it is a
	// command.
	ClientComposed bool           `json:"client_composed"`
	IsSynthetic    bool           `json:"isSynthetic"`
	IsReplay       bool           `json:"isReplay"`
	SessionID      string         `json:"session_id"` // left out when empty
	UUID           string         `json:"uuid"`       // left out when empty
	Extra          jsontext.Value `json:",embed"`
}

// UserMessage is the message of a UserLine. Its role is always "user".
type UserMessage struct {
	Content Content `json:"content"`
}

// TurnOptions are the options of a user line that hold for its turn only. Zero
// fields are not set.
type TurnOptions struct {
	Model          string `json:"model"`
	PermissionMode string `json:"permissionMode"`
	MaxTurns       int    `json:"maxTurns"` // 1 or more when set
}

// KeepAlive is a line of type "keep_alive"; it means nothing.
type KeepAlive struct{}

// Unknown is a line whose type has no Go type here. Raw is the whole object,
// compact; Append writes it as it is, so that Unknown also carries frames that
// were encoded elsewhere.
type Unknown struct {
	Type string
	Raw  json.RawMessage
}

// Usage counts tokens. All its members are always present on the wire.
type Usage struct {
	InputTokens              int           `json:"input_tokens"`
	OutputTokens             int           `json:"output_tokens"`
	CacheCreationInputTokens int           `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int           `json:"cache_read_input_tokens"`
	CacheCreation            CacheCreation `json:"cache_creation"`
	ServerToolUse            ServerToolUse `json:"server_tool_use"`
	ServiceTier              string        `json:"service_tier"` // empty is written as "standard"
}

// CacheCreation splits the tokens written to the prompt cache by lifetime.
type CacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

// ServerToolUse counts tools run by the provider.
type ServerToolUse struct {
	WebSearchRequests int `json:"web_search_requests"`
	WebFetchRequests  int `json:"web_fetch_requests"`
}

// Assistant is a line of type "assistant": one completed content block (or,
// in some dialects, several) of a model answer.
type Assistant struct {
	Message         AssistantMessage `json:"message"`
	ParentToolUseID string           `json:"parent_tool_use_id"`
	Error           string           `json:"error"` // kind of an API failure; may be empty
	SessionID       string           `json:"session_id"`
	UUID            string           `json:"uuid"`
	Extra           jsontext.Value   `json:",embed"`
}

// AssistantMessage is the model's message as the Messages API has it. Its type
// is always "message" and its role "assistant".
type AssistantMessage struct {
	ID           string `json:"id"`
	Model        string `json:"model"`
	Content      Blocks `json:"content"`
	StopReason   string `json:"stop_reason"`
	StopSequence string `json:"stop_sequence"`
	Usage        Usage  `json:"usage"`
}

// SystemInit is the line "system/init", the first of every turn. Nil lists are
// written as [], except Agents and Capabilities, which are left out.
type SystemInit struct {
	CWD            string         `json:"cwd"`
	Tools          []string       `json:"tools"`
	MCPServers     []MCPServer    `json:"mcp_servers"`
	Model          string         `json:"model"`
	PermissionMode string         `json:"permissionMode"`
	SlashCommands  []string       `json:"slash_commands"`
	APIKeySource   string         `json:"apiKeySource"`
	Version        string         `json:"claude_code_version"`
	OutputStyle    string         `json:"output_style"`
	Agents         []string       `json:"agents"`
	Skills         []string       `json:"skills"`
	Plugins        []Plugin       `json:"plugins"`
	Capabilities   []string       `json:"capabilities"`
	SessionID      string         `json:"session_id"`
	UUID           string         `json:"uuid"`
	Extra          jsontext.Value `json:",embed"`
}

// MCPServer is the state of one MCP server in SystemInit.
type MCPServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Source string `json:"source"` // left out when empty
}

// Plugin is one loaded plugin in SystemInit.
type Plugin struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// SystemStatus is the line "system/status": what the session is busy with, or
// that its mode or model changed. Empty fields other than Status are left out.
type SystemStatus struct {
	Status         string         `json:"status"` // compacting, requesting or "" (null)
	PermissionMode string         `json:"permissionMode"`
	Model          string         `json:"model"`
	SessionID      string         `json:"session_id"`
	UUID           string         `json:"uuid"`
	Extra          jsontext.Value `json:",embed"`
}

// SystemAPIRetry is the line "system/api_retry": a model request failed and is
// sent again after RetryDelayMS.
type SystemAPIRetry struct {
	Attempt      int            `json:"attempt"` // of the request that failed, from 1
	MaxRetries   int            `json:"max_retries"`
	RetryDelayMS int64          `json:"retry_delay_ms"`
	ErrorStatus  int            `json:"error_status"` // HTTP status; 0 (null) when there was none
	Error        string         `json:"error"`
	SessionID    string         `json:"session_id"`
	UUID         string         `json:"uuid"`
	Extra        jsontext.Value `json:",embed"`
}

// SystemPermissionDenied is the line "system/permission_denied".
type SystemPermissionDenied struct {
	ToolName       string         `json:"tool_name"`
	ToolUseID      string         `json:"tool_use_id"`
	Message        string         `json:"message"`
	DecisionReason string         `json:"decision_reason"` // left out when empty
	SessionID      string         `json:"session_id"`
	UUID           string         `json:"uuid"`
	Extra          jsontext.Value `json:",embed"`
}

// System is any other line of type "system": its own members are in Extra.
type System struct {
	Subtype   string         `json:"subtype"`
	SessionID string         `json:"session_id"`
	UUID      string         `json:"uuid"`
	Extra     jsontext.Value `json:",embed"`
}

// Subtypes of a Result.
const (
	ResultSuccess         = "success"
	ResultErrorExecution  = "error_during_execution"
	ResultErrorMaxTurns   = "error_max_turns"
	ResultErrorMaxBudget  = "error_max_budget_usd"
	ResultErrorStructured = "error_max_structured_output_retries"
)

// Result is the line of type "result", one per turn and its last. With the
// subtype ResultSuccess Result is always written and Errors when it is not
// nil; with any other, Errors is always written and Result when not empty.
// The fields down to PermissionDenials are always present.
type Result struct {
	Subtype           string                `json:"subtype"`
	IsError           bool                  `json:"is_error"`
	DurationMS        int64                 `json:"duration_ms"`
	DurationAPIMS     int64                 `json:"duration_api_ms"`
	NumTurns          int                   `json:"num_turns"`
	Result            string                `json:"result"`
	Errors            []string              `json:"errors"`
	StopReason        string                `json:"stop_reason"`
	TotalCostUSD      float64               `json:"total_cost_usd"`
	Usage             Usage                 `json:"usage"`
	ModelUsage        map[string]ModelUsage `json:"modelUsage"`
	PermissionDenials []PermissionDenial    `json:"permission_denials"`

	// The rest is left out when zero.
	StructuredOutput json.RawMessage `json:"structured_output"`
	APIErrorStatus   int             `json:"api_error_status"`
	TerminalReason   string          `json:"terminal_reason"`
	ResultIndex      *int            `json:"result_index"`
	Origin           json.RawMessage `json:"origin"`
	UserMessageUUID  string          `json:"user_message_uuid"`

	SessionID string         `json:"session_id"`
	UUID      string         `json:"uuid"`
	Extra     jsontext.Value `json:",embed"`
}

// ModelUsage is what one model used, over the whole process.
type ModelUsage struct {
	InputTokens              int     `json:"inputTokens"`
	OutputTokens             int     `json:"outputTokens"`
	CacheReadInputTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int     `json:"cacheCreationInputTokens"`
	WebSearchRequests        int     `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
	ContextWindow            int     `json:"contextWindow"`
	MaxOutputTokens          int     `json:"maxOutputTokens"`
	ThinkingTokens           int     `json:"thinkingTokens"` // left out when 0
	Provider                 string  `json:"provider"`       // left out when empty
}

// PermissionDenial is one tool call that was not allowed to run.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"` // nil is written as {}
}

func (*UserLine) isMessage()               {}
func (*KeepAlive) isMessage()              {}
func (*Unknown) isMessage()                {}
func (*Assistant) isMessage()              {}
func (*SystemInit) isMessage()             {}
func (*SystemStatus) isMessage()           {}
func (*SystemAPIRetry) isMessage()         {}
func (*SystemPermissionDenied) isMessage() {}
func (*System) isMessage()                 {}
func (*Result) isMessage()                 {}
func (*StreamEvent) isMessage()            {}
func (*StreamDelta) isMessage()            {}
func (*ControlRequest) isMessage()         {}
func (*ControlResponse) isMessage()        {}
func (*ControlCancel) isMessage()          {}

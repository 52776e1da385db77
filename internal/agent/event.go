package agent

import (
	"encoding/json"
	"time"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// Event is something that happened in a conversation. Events are delivered
// one at a time, in order; an event and what it points to is valid during the
// call only, except where a field says otherwise.
type Event interface{ isEvent() }

// Origin says whose conversation an event belongs to. The zero value is the
// main one; a sub-agent's has all three.
type Origin struct {
	AgentID         string // unique in the process
	AgentType       string // the name of its definition
	ParentToolUseID string // the call that started it
}

// TurnStarted opens a turn. Everything up to its TurnEnded belongs to it. That
// of a sub-agent shows its prompt; there is no TurnEnded of sub-agents.
type TurnStarted struct {
	Input Input
	Model string
	Mode  policy.Mode
}

// MessageStarted opens an answer of the model. A second one before
// MessageEnded voids the first: the provider had to be asked again and
// answered differently.
type MessageStarted struct {
	MessageID  string
	Model      string
	Supersedes []string // uuids of blocks reported before that are void
}

// BlockStarted opens block Index of the answer.
type BlockStarted struct {
	Index int
	Block model.Block // Text, Thinking or ToolUse, empty but for ID and Name
}

// BlockDelta is a piece of the open block. The value is reused: keep nothing.
type BlockDelta struct {
	Index int
	Kind  model.DeltaKind // DeltaText, DeltaThinking, DeltaToolInput, DeltaSignature
	Text  string          // DeltaSignature: the signature
}

// BlockEnded closes a block; it is whole now and in the history.
type BlockEnded struct {
	Index     int
	Block     model.Block
	UUID      string // also in the transcript
	MessageID string
	Model     string
	Usage     model.Usage // not final
}

// BlockClosed follows BlockEnded, after the whole block was reported.
type BlockClosed struct{ Index int }

// MessageEnded closes an answer.
type MessageEnded struct {
	MessageID string
	Stop      model.StopReason
	Usage     model.Usage
}

// RequestFailed tells that the model could not be asked: Text is what goes to
// the user in place of an answer. The turn ends with it.
type RequestFailed struct {
	UUID      string
	MessageID string
	Err       *model.Error
	Text      string
}

// RequestRetried tells that an attempt failed and another one follows.
type RequestRetried struct{ Info model.RetryInfo }

// ToolStarted tells that a call begins to run: it was allowed.
type ToolStarted struct {
	ToolUseID string
	Name      string
	Input     json.RawMessage
}

// ToolProgressed is a running tool's sign of life.
type ToolProgressed struct {
	ToolUseID string
	Name      string
	Elapsed   time.Duration
	Progress  tools.Progress
}

// ToolEnded carries the answer to a call, whatever became of it.
type ToolEnded struct {
	UUID    string
	Result  model.ToolResult
	Display json.RawMessage // nil: none
	Took    time.Duration
}

// Source says who denied a call.
type Source string

// Sources of denials.
const (
	ByPolicy    Source = "policy"    // rules and mode, or nobody there to ask
	ByHost      Source = "host"      // whoever was asked: their no, or that no valid answer came
	ByHook      Source = "hook"      // a hook
	ByInterrupt Source = "interrupt" // the turn ended while somebody was asked
)

// Denial is a call that was not allowed to run.
type Denial struct {
	ToolName  string
	ToolUseID string
	Input     json.RawMessage
	Reason    string
	Source    Source
}

// ToolDenied tells of a Denial; the ToolEnded that answers the call follows.
type ToolDenied struct{ Denial Denial }

// Noted is a message put into the history by the program itself, in the user's
// role, such as the note of an interruption.
type Noted struct {
	UUID string
	Text string
	Kind NoteKind
}

// Appended acknowledges an Input that only adds to the history.
type Appended struct{ Input Input }

// ModelFallback tells that another model answers for the rest of the turn,
// because the one that was asked can't. What came of the answer so far is void.
type ModelFallback struct {
	From, To string // as displayed
	Index    int    // of To in Config.Fallback
	Err      *model.Error
}

// ModeChanged tells that the permission mode changed within a turn: by a plan's
// approval, or by an answer that carried a mode. Who calls SetMode tells
// themselves.
type ModeChanged struct{ Old, New policy.Mode }

// ModelChanged tells that the model changed within a turn, by a command. Who
// calls SetModel tells themselves.
type ModelChanged struct{ Old, New string }

// ConversationReset tells that the history was emptied: what follows has the
// new session id.
type ConversationReset struct{ Old, New string }

// TurnEnded closes the turn, or answers an Input that could not become one.
type TurnEnded struct{ Result Result }

func (*TurnStarted) isEvent()    {}
func (*MessageStarted) isEvent() {}
func (*BlockStarted) isEvent()   {}
func (*BlockDelta) isEvent()     {}
func (*BlockEnded) isEvent()     {}
func (*BlockClosed) isEvent()    {}
func (*MessageEnded) isEvent()   {}
func (*RequestFailed) isEvent()  {}
func (*RequestRetried) isEvent() {}
func (*ToolStarted) isEvent()    {}
func (*ToolProgressed) isEvent() {}
func (*ToolEnded) isEvent()      {}
func (*ToolDenied) isEvent()     {}
func (*Noted) isEvent()          {}
func (*Appended) isEvent()       {}
func (*TurnEnded) isEvent()      {}

func (*ModelFallback) isEvent()     {}
func (*ModeChanged) isEvent()       {}
func (*ModelChanged) isEvent()      {}
func (*ConversationReset) isEvent() {}

// Subtype says how a turn ended, in the wire's words.
type Subtype string

// Subtypes of results.
const (
	Success              Subtype = "success"
	ErrorDuringExecution Subtype = "error_during_execution"
	ErrorMaxTurns        Subtype = "error_max_turns"
	ErrorMaxBudget       Subtype = "error_max_budget_usd"
	ErrorMaxStructured   Subtype = "error_max_structured_output_retries"
)

// Terminal says why a turn ended, in the wire's words.
type Terminal string

// Terminal reasons.
const (
	Completed         Terminal = "completed"
	APIFailed         Terminal = "api_error"
	PromptTooLong     Terminal = "prompt_too_long"
	MaxTurnsReached   Terminal = "max_turns"
	BudgetExhausted   Terminal = "budget_exhausted"
	NoStructured      Terminal = "structured_output_retry_exhausted"
	ToolDeferred      Terminal = "tool_deferred"       // by a hook
	HookStopped       Terminal = "hook_stopped"        // by a hook, before the model was done
	StopHookPrevented Terminal = "stop_hook_prevented" // by a hook, when the model was done
	AbortedStreaming  Terminal = "aborted_streaming"
	AbortedTools      Terminal = "aborted_tools"
	LoopGuard         Terminal = "loop_guard"
	MalformedToolUse  Terminal = "malformed_tool_use_exhausted"
	BadInput          Terminal = "turn_setup_failed"
	PermissionDenied  Terminal = "permission_denied" // with FailOnDenial
	InternalFault     Terminal = "internal_error"
	TranscriptUnsaved Terminal = "transcript_unwritable"
)

// Result is how a turn ended. Every accepted Input gives exactly one, unless it
// was append-only.
type Result struct {
	Subtype  Subtype
	IsError  bool
	Terminal Terminal
	Text     string   // the model's last text; for a failed request what went wrong
	Errors   []string // what went wrong, otherwise

	Err      error        // why, for the exit code; nil on success
	APIError *model.Error // the request that failed, if one did

	// Structured is the value that fits the schema of SetSchema; nil: none.
	Structured json.RawMessage
	// Deferred is the call that a hook put off until later; nil: none was.
	Deferred *model.ToolUse
	// Local says that a command answered, and no model was asked.
	Local bool

	InputUUID  string
	Origin     json.RawMessage // the input's
	Duration   time.Duration
	APITime    time.Duration // of it, waiting for models
	FirstToken time.Duration // from the start to the first piece of an answer; 0: none came
	ModelCalls int           // round trips in this turn
	Stop       model.StopReason
	Usage      model.Usage // this turn
	Denials    []Denial
	Queued     int // inputs that wait behind this turn
	Index      int // 0 for the first result of the conversation
	// Unsaved is true when the transcript could not be written.
	Unsaved bool
}

package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentcli/agent/internal/policy"
)

// Effects is what control requests act on. Nil members are not supported. All
// methods may be called from several goroutines at once, and before
// initialize. An error's text goes to the host as it is.
type Effects struct {
	Session      Session
	Conversation Conversation
	Thinking     Thinking
	Continuation Continuation
	Judge        Judge
	Hooks        Hooks
	Servers      Servers
	ServerAdmin  ServerAdmin
	Commands     Commands
	Hints        Hints
	Models       Models
	Usage        Usage
	Tasks        Tasks
	Settings     Settings
	Checkpoints  Checkpoints
	Health       Health
}

// Session takes what initialize carries and describes the session.
type Session interface {
	// Initialize puts what the host sent in force: all but hooks (see Hooks) and
	// timeouts. It starts servers and doesn't wait for them. A second one replaces
	// what it names, and adds servers. On an error nothing has changed.
	Initialize(ctx context.Context, in *Initialize) error
	// Describe returns the session as it is now.
	Describe() Description
}

// Description is what the answer to initialize says of the session.
type Description struct {
	SessionID    string
	Version      string // of the program, as the dialect's init frame has it
	Model        string // as shown
	Mode         policy.Mode
	Tools        []string // outward names
	Agents       []AgentInfo
	OutputStyle  string   // "": the dialect's default
	OutputStyles []string // nil: OutputStyle alone
	Account      Account
	InputFormat  string // "": stream-json
	OutputFormat string // "": stream-json
}

// AgentInfo is one agent that can be called.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitzero"`
}

// Account says whose credentials are used.
type Account struct {
	APIKeySource string `json:"apiKeySource,omitzero"`
	APIProvider  string `json:"apiProvider,omitzero"`
}

// Conversation is the main conversation.
type Conversation interface {
	// Interrupt ends the running turn, whatever it is doing, and with cancelQueued
	// drops the inputs that wait. It calls receipt once, before anything that
	// this causes is emitted, and doesn't block: the input's reader calls it.
	Interrupt(cancelQueued bool, receipt func(Interrupted))
	// SetModel makes name the model from the next request on and returns its
	// name as shown; "" is the default one. On an error the old one stays.
	SetModel(ctx context.Context, name string) (model string, err error)
	// SetMode sets the permission mode, also for calls not judged yet.
	SetMode(policy.Mode) error
}

// Interrupted is what an interrupt did.
type Interrupted struct {
	StillQueued []string // uuids of the inputs that wait and will run
	Cancelled   []string // uuids of the inputs that were dropped
}

// Thinking sets how much a model thinks.
type Thinking interface {
	// SetThinking limits thinking to so many tokens; 0: none, nil: the default.
	// Display is summarized, omitted or "" for unchanged.
	SetThinking(tokens *int, display string) error
	// SetEffort sets the effort: one of Efforts. It reports whether the current
	// model knows efforts.
	SetEffort(effort string) (applied bool, err error)
}

// Efforts are the levels that set_effort takes.
var Efforts = [...]string{"low", "medium", "high", "xhigh", "max"}

// Continuation resumes a turn that was interrupted.
type Continuation interface {
	// ContinueLast queues a turn that goes on where the history breaks off. It
	// calls receipt once, before anything of that turn is emitted, with whether
	// there is such a turn and how it broke off: none, interrupted_prompt or
	// interrupted_turn.
	ContinueLast(receipt func(accepted bool, interruption string)) error
}

// Judge decides calls as the conversation would, without running them.
type Judge interface {
	// Judge returns the decision for a call. An unknown tool is a denial.
	Judge(ctx context.Context, c ToolCall) policy.Decision
	// Suggest returns what could be done about a call that is asked about.
	Suggest(c ToolCall) []policy.Suggestion
}

// ToolCall is a call of a tool as a host names it: any alias of the name and
// of the input's keys.
type ToolCall struct {
	Tool      string
	ToolUseID string
	Input     json.RawMessage
}

// Hooks takes the hooks that the host registers.
type Hooks interface {
	// RegisterHooks replaces all hooks that the host registered before. On an
	// error nothing has changed.
	RegisterHooks([]HookRegistration) error
}

// Servers are the MCP servers, those in the host included.
type Servers interface {
	// ServerStatus returns the state of each, by name.
	ServerStatus() []ServerStatus
	// Message takes a JSON-RPC message of the host: one from a server inside it
	// enters that server's tunnel, one to a server of ours is forwarded. It
	// returns the reply; nil for a notification.
	Message(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
}

// States of an MCP server.
const (
	StateConnected    = "connected"
	StateConnecting   = "connecting"
	StateFailed       = "failed"
	StateNeedsAuth    = "needs-auth"
	StateDisabled     = "disabled"
	StateDisconnected = "disconnected"
)

// ServerStatus is the state of one MCP server.
type ServerStatus struct {
	Name   string
	State  string // one of the States
	Type   string // stdio, sse, http, tcp or sdk
	Error  string
	Source string          // sdk, user, project, local, dynamic, agent, ...; may be empty
	Info   json.RawMessage // the server's own name and version; nil: not known
	Config json.RawMessage // without secrets; nil: not shown
	Tools  []ServerTool
}

// ServerTool is one tool of an MCP server.
type ServerTool struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitzero"`
	Annotations *ToolHints `json:"annotations,omitzero"`
}

// ToolHints is what a server says that a tool does; nil: it doesn't say.
type ToolHints struct {
	ReadOnly    *bool `json:"readOnly,omitzero"`
	Destructive *bool `json:"destructive,omitzero"`
	OpenWorld   *bool `json:"openWorld,omitzero"`
}

// ServerAdmin changes the set of MCP servers.
type ServerAdmin interface {
	// Reconnect and Toggle change the state of a server and return at once. wait
	// returns when the server is connected, or why it is not; nil: there is
	// nothing to wait for.
	Reconnect(name string) (wait func(context.Context) error, err error)
	Toggle(name string, enabled bool) (wait func(context.Context) error, err error)
	// SetServers replaces the servers that came from hosts, by name. Errors are
	// by the server's name.
	SetServers(ctx context.Context, servers map[string]json.RawMessage) (added, removed []string, errs map[string]string)
}

// Commands lists the slash commands.
type Commands interface {
	Commands() []Command
}

// Command is one slash command.
type Command struct {
	Name         string
	Description  string
	ArgumentHint string
	Aliases      []string
	Builtin      bool
	Headless     bool // does its work without a person
}

// Hints completes what a person types.
type Hints interface {
	// Hints returns up to limit completions of prefix, which begins with /, @
	// or ?. It takes a few milliseconds at most.
	Hints(ctx context.Context, prefix string, limit int) []CommandHint
}

// CommandHint is one completion.
type CommandHint struct {
	Kind        string `json:"kind"` // command, file, server or help
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Models lists the models that can be set.
type Models interface {
	Models() []ModelInfo
}

// ModelInfo is one model.
type ModelInfo struct {
	ID          string
	Label       string
	Description string
	Window      int // tokens; 0: not known
	Efforts     []string
	Thinking    bool
}

// Usage reports what was used.
type Usage interface {
	ContextUsage(ctx context.Context) (ContextUsage, error)
	// UsageInfo reports on a range: today, week, month or all.
	UsageInfo(ctx context.Context, within string) (UsageInfo, error)
}

// ContextUsage is what fills the context window, in tokens.
type ContextUsage struct {
	Model        string
	Window       int // 0: not known
	SystemPrompt int
	Tools        []UsageItem // built in
	MCPTools     []UsageItem
	Memory       []UsageItem // files
	Skills       []UsageItem
	Agents       []UsageItem
	Messages     int
	Cached       int
	AutoCompact  int             // kept free for compaction; 0: there is none
	LastUsage    json.RawMessage // of the last request, in the dialect's form; nil: none yet
}

// UsageItem is a part of the context.
type UsageItem struct {
	Name   string // of a memory file: its path
	Tokens int
	Server string // of an MCP tool
	Source string // of memory and agents
	Absent bool   // of a tool or skill: it is not in the context yet
}

// UsageInfo is what was used within a range of time.
type UsageInfo struct {
	Input, Output, Cached, Thoughts int
	Requests, Sessions, ToolCalls   int
	LinesAdded, LinesRemoved        int
	Models                          []ModelUsed
	Day                             string // to which all of it belongs, as 2006-01-02; empty: not told by day
}

// ModelUsed is what one model used.
type ModelUsed struct {
	Model       string `json:"model"`
	TotalTokens int    `json:"totalTokens"`
	Requests    int    `json:"requests"`

	CacheReadRate float64 `json:"cacheReadRate"` // of its input
	Share         float64 `json:"share"`         // of all tokens; the answer to a host fills it in
}

// Tasks are what runs in the background.
type Tasks interface {
	// StopTask stops a task. It calls receipt once it is sure that there is such a
	// task and before anything that this causes is emitted.
	StopTask(ctx context.Context, id string, receipt func()) error
}

// Settings takes the host's layer of settings.
type Settings interface {
	// ApplyFlagSettings merges an object into that layer; null clears a key.
	ApplyFlagSettings(ctx context.Context, settings json.RawMessage) error
}

// Checkpoints brings files back.
type Checkpoints interface {
	// Rewind brings the files back to what they were before the message.
	Rewind(ctx context.Context, userMessageID string, dryRun bool) (json.RawMessage, error)
}

// Health says how the session is.
type Health interface {
	Health() Pulse
}

// Pulse is the state of the session at one moment.
type Pulse struct {
	Uptime    time.Duration
	Turn      string        // idle, running or waiting (for the host)
	LastEvent time.Duration // since the last event; less than 0: none yet
	RSS       int64         // bytes of memory; 0: not known
}

// Names gives tools and inputs their outward names.
type Names interface {
	Tool(name string) string
	Input(tool string, input json.RawMessage) json.RawMessage
}

package session

import (
	"cmp"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/usage"
)

// Facts are what frames tell about the session. The functions are called at
// the beginning of each turn; a nil one has nothing to tell.
type Facts struct {
	Dialect   streamjson.Dialect // empty: native
	SessionID string             // of the conversation; the projector changes it when a new one begins
	Cwd       string
	KeySource string // where the credentials come from
	Version   string // ours
	Ledger    *usage.Ledger
	PID       int

	Tools         func() []string // under the names of the dialect
	MCPServers    func() []streamjson.MCPServer
	SlashCommands func() []string
	Agents        func() []string
	Skills        func() []string
	OutputStyle   func() string
	Capabilities  []string

	// ForwardText says whether the texts of sub-agents are shown, and not only
	// their tool calls; nil: they are not.
	ForwardText func() bool

	// MaxFrame is the most bytes of a frame; 0 is streamjson.MaxFrame.
	MaxFrame int
	// Spill keeps what is too long for a frame and returns the file's path.
	Spill func(id, text string) (string, error)
}

// wireVersion is the version of the protocol's reference program that our
// frames follow.
const wireVersion = "2.1.240"

// call returns what f returns, nil without an f.
func call[T any](f func() []T) []T {
	if f == nil {
		return nil
	}
	return f()
}

// list is call that never returns nil: JSON has [] for it.
func list[T any](f func() []T) []T {
	if l := call(f); l != nil {
		return l
	}
	return []T{}
}

func (f *Facts) outputStyle() string {
	if f.OutputStyle == nil {
		return "default"
	}
	return cmp.Or(f.OutputStyle(), "default")
}

func (f *Facts) forwards() bool { return f.ForwardText != nil && f.ForwardText() }

// init is the frame that opens a turn in the native dialect and in claude's.
func (f *Facts) init(e *agent.TurnStarted) *streamjson.SystemInit {
	out := &streamjson.SystemInit{
		CWD: f.Cwd, Tools: call(f.Tools), MCPServers: call(f.MCPServers), Model: e.Model,
		PermissionMode: policy.ModeName(string(f.Dialect), e.Mode), SlashCommands: call(f.SlashCommands),
		APIKeySource: f.KeySource, Version: wireVersion, OutputStyle: f.outputStyle(), Agents: list(f.Agents),
		Skills: call(f.Skills), Capabilities: f.Capabilities, SessionID: f.SessionID, UUID: streamjson.NewUUID(),
	}
	if f.Dialect == streamjson.Claude {
		out.APIKeySource = cmp.Or(f.KeySource, "none")
	} else {
		out.Extra = members(map[string]any{"agent_version": f.Version, "protocol_version": "1.0", "pid": nonZero(f.PID)})
	}
	return out
}

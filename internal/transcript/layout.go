package transcript

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// Layout is whose sessions' files are written: where they lie and what their
// lines are. Read understands all of them.
type Layout string

// Layouts.
const (
	// Native is ours: the claude layout in our own folder.
	Native Layout = "native"
	// Claude is the layout that the session helpers of the Claude Agent SDKs read.
	Claude Layout = "claude"
	// Qwen is qwen-code's.
	Qwen Layout = "qwen"
)

// Dir returns the folder of a layout that has one of its own: that of
// CLAUDE_CONFIG_DIR or ~/.claude, of QWEN_RUNTIME_DIR, QWEN_HOME or ~/.qwen. It
// is "" for the native layout, and without a home. Relative paths don't count.
func (l Layout) Dir(getenv func(string) string, home string) string {
	variables, folder := []string{"CLAUDE_CONFIG_DIR"}, ".claude"
	switch l {
	case Claude:
	case Qwen:
		variables, folder = []string{"QWEN_RUNTIME_DIR", "QWEN_HOME"}, ".qwen"
	default:
		return ""
	}
	for _, name := range variables {
		if dir := getenv(name); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, folder)
}

// Path returns the file of a session beneath dir. cwd must be absolute.
func (l Layout) Path(dir, cwd, sessionID string) string {
	if l == Qwen {
		return filepath.Join(dir, "projects", qwenKey(cwd), "chats", sessionID+".jsonl")
	}
	return Path(dir, cwd, sessionID)
}

// AgentPath returns the file of a sub-agent of a session.
func (l Layout) AgentPath(dir, cwd, sessionID, agentID string) string {
	file := "agent-" + agentID + ".jsonl"
	if l == Qwen {
		return filepath.Join(dir, "projects", qwenKey(cwd), "subagents", sessionID, file)
	}
	return filepath.Join(dir, "projects", ProjectKey(cwd), sessionID, "subagents", file)
}

// qwenKey names the folder of a working directory's sessions in the qwen
// layout.
func qwenKey(cwd string) string {
	var sb strings.Builder
	for _, r := range cwd {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			sb.WriteRune(r)
		case r > 0xFFFF: // two UTF-16 units
			sb.WriteString("--")
		default:
			sb.WriteByte('-')
		}
	}
	return sb.String()
}

// Agent says of which sub-agent a transcript is. It is kept in a file beside
// it, which readers go by.
type Agent struct {
	ID          string
	Type        string // the name of its definition
	Description string
	ToolUseID   string // the call that started it
	ParentID    string // the agent that made the call; empty: the main conversation
}

// agentMeta is what the file beside a sub-agent's transcript says.
type agentMeta struct {
	Type        string `json:"agentType,omitempty"`
	Description string `json:"description,omitempty"`
	ToolUseID   string `json:"toolUseId"`
	ParentID    string `json:"parentAgentId,omitempty"`
}

func (a *Agent) meta() []byte {
	raw, err := json.Marshal(agentMeta{a.Type, a.Description, a.ToolUseID, a.ParentID})
	if err != nil { // strings only
		panic("transcript: " + err.Error())
	}
	return raw
}

// metaPath returns the file that says of which sub-agent a transcript is.
func metaPath(path string) string { return strings.TrimSuffix(path, ".jsonl") + ".meta.json" }

// mirrored is meta as an entry of its own, for a mirror of the transcript.
func (a *Agent) mirrored() json.RawMessage {
	return append([]byte(`{"type":"agent_metadata",`), a.meta()[1:]...)
}

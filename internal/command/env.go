package command

import (
	"context"
	"time"
)

// Env is what the commands work on. A nil part means that the commands that
// need it don't exist; what a command does is done by the part, which must be
// safe for concurrent use.
type Env struct {
	// Dialect chooses between names that hosts expect: with "claude" it is
	// compact, else compress; the other one is an alias.
	Dialect string
	// Disabled are names of commands that there are not, whatever their source
	// and the case of letters.
	Disabled []string

	Models       Models
	Modes        Modes
	Rules        Rules
	Conversation Conversation
	Compactor    Compactor
	Context      Context
	Usage        Usage
	Servers      Servers
	Agents       Agents
	Tools        Tools
	Hooks        Hooks
	Status       Status
	Transcript   Transcript

	Files Files // nil: commands from files include no other files, and no file names are hinted
	Shell Shell // nil: commands from files that run shell commands fail
}

// Models is the session's model.
type Models interface {
	// Model returns the name of the current model.
	Model() string
	// SetModel changes it; on an error the old one stays.
	SetModel(ctx context.Context, name string) error
	// Models returns the names that are known; there may be others.
	Models() []string
}

// Modes is the session's permission mode, by its name in the dialect.
type Modes interface {
	Mode() string
	SetMode(mode string) error
	Modes() []string
}

// Rules lists the permission rules that hold.
type Rules interface{ Rules() []Rule }

// Rule is one permission rule as shown.
type Rule struct{ Behavior, Rule, Origin string }

// Conversation can begin anew.
type Conversation interface {
	// Clear forgets the history.
	Clear(ctx context.Context) error
}

// Compactor shortens the conversation.
type Compactor interface {
	// Compact puts a summary by the model in the place of the history.
	// instructions, maybe empty, say what must stay. On an error the history
	// stays as it is.
	Compact(ctx context.Context, instructions string) (Compacted, error)
}

// Compacted says what came of it, in tokens of the context.
type Compacted struct{ Before, After int }

// Context is what fills the model's window.
type Context interface {
	ContextUse(ctx context.Context) (ContextUse, error)
}

// ContextUse is the use of the window in tokens.
type ContextUse struct {
	Window int // 0: not known
	Parts  []Part
}

// Part is one category, such as the system prompt.
type Part struct {
	Name   string
	Tokens int
}

// Usage is what the session has used so far.
type Usage interface{ Usage() Used }

// Used sums up a session.
type Used struct {
	Turns    int
	Duration time.Duration
	Models   []ModelUse
}

// ModelUse is the use of one model.
type ModelUse struct {
	Model                                string
	Requests                             int
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 float64 // in US dollars
	Priced                               bool    // whether the price is known
}

// Servers lists the MCP servers.
type Servers interface{ Servers() []Server }

// Server is one MCP server as shown.
type Server struct {
	Name, Status, Type string
	Error              string // of one that failed
	Tools              int
}

// Agents lists the sub-agents.
type Agents interface{ Agents() []Item }

// Tools lists the tools that the model is offered.
type Tools interface{ Tools() []Item }

// Item is something with a name.
type Item struct{ Name, Description string }

// Hooks lists the hooks.
type Hooks interface{ Hooks() []Hook }

// Hook is one registered hook as shown.
type Hook struct {
	Event   string
	Matcher string // empty: every call
	Does    string // the command, or that it is the host's
}

// Status lists what the session is, in the order shown: its id, the version,
// the working directory.
type Status interface{ Status() []Item }

// Transcript is where the session is kept.
type Transcript interface {
	// TranscriptPath is empty when nothing is kept.
	TranscriptPath() string
}

// Shell runs the shell commands in command files.
type Shell interface {
	// RunShell puts command to the policy as any call of the shell tool is, and
	// runs it if that allows it or the user does. output is bounded and tells of
	// an exit code that isn't 0. The error means that it was denied or could not
	// be run.
	RunShell(ctx context.Context, command string) (output string, err error)
}

// Files are the files that the tools may read.
type Files interface {
	// ReadFile returns the text of a file, or the list of a directory, bounded,
	// if policy allows a call of the read tool for it: a command's file may name
	// secrets. The error is fs.ErrNotExist when nothing is there, and another one
	// when it was denied or lies outside of the allowed directories.
	ReadFile(ctx context.Context, path string) (string, error)
	// FindFiles returns paths that fit what was typed of one, the best first, at
	// most limit; those that ignore files name are left out. It returns what it
	// has when ctx ends.
	FindFiles(ctx context.Context, typed string, limit int) []string
}

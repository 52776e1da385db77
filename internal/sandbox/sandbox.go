// Package sandbox starts child processes and takes them down again, whole
// trees at a time. Each child gets a process group and pipes of its own, never
// our stdin; nothing that it started survives it being stopped. It imports
// nothing of ours.
package sandbox

import (
	"context"
	"io"
	"os"
	"time"
)

// Profile names how a child is confined.
type Profile string

// ProfileNone runs the child with our own rights.
const ProfileNone Profile = "none"

// Command says what to start. Argv[0] is an absolute path, or a plain name that
// is looked up in PATH of Env (relative PATH entries are skipped).
type Command struct {
	Argv []string
	Dir  string
	// Env is the whole environment; nil means none, not ours. On Linux the
	// variable AGENT_TREE is added to it, by which strays are found again.
	Env []string
	// Stdin is what the child can read, and then the end; nil: nothing at all. It
	// need not read it.
	Stdin []byte
	// StdinFile is the child's stdin itself, in place of Stdin: the end of a pipe
	// whose other end is the caller's. Start doesn't close it; the caller closes
	// its copy once Start has returned.
	StdinFile *os.File
	// Stdout takes the output, from one goroutine; nil throws it away. An error
	// of it stops the copying, not the command. It should not block for long.
	Stdout  io.Writer
	Stderr  io.Writer // may be the same value as Stdout: they then share one pipe
	Profile Profile
	// Grace is the time between SIGTERM and SIGKILL when the child is stopped;
	// 0 means 500 ms.
	Grace time.Duration
}

// Exit says how a child ended.
type Exit struct {
	Code     int    // exit code; -1 when it died of a signal
	Signal   string // "SIGKILL" ...; empty when it exited
	Duration time.Duration
	// Leftovers counts the processes that outlived the leader and were stopped.
	Leftovers int
	// Survivors counts the processes that could not be stopped (another user's,
	// or stuck in the kernel); 0 as a rule.
	Survivors int
}

// Runner starts commands. It is safe for concurrent use.
type Runner interface {
	// Start starts c. The child is stopped, with its whole tree, when ctx
	// ends. The error says why it could not be started.
	Start(ctx context.Context, c Command) (Process, error)
}

// Process is a started child.
type Process interface {
	PID() int
	// Wait returns once the leader has exited, its output has been copied and
	// its whole tree is gone: descendants that outlive the leader are stopped.
	// It may be called more than once.
	Wait() Exit
	// Stop takes the whole tree down: SIGTERM, Grace, SIGKILL. It returns when
	// all are gone, at most Grace plus a second later.
	Stop()
	// WaitingForInput reports whether the tree seems blocked reading a
	// terminal or stdin. A best guess; false when it can't be known.
	WaitingForInput() bool
}

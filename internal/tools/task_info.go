package tools

import (
	"context"
	"time"

	"github.com/agentcli/agent/internal/sandbox"
)

// TaskStatus says what has become of a task.
type TaskStatus string

// Statuses of tasks.
const (
	TaskRunning   TaskStatus = "running"
	TaskExited    TaskStatus = "exited"    // a command ended, however it did
	TaskCompleted TaskStatus = "completed" // a job did what it was to do
	TaskFailed    TaskStatus = "failed"    // a job did not
	TaskStopped   TaskStatus = "stopped"
	TaskTimedOut  TaskStatus = "timed out"
)

// TaskKind says what a task is, in the wire's words.
type TaskKind string

// Kinds of tasks.
const (
	TaskCommand TaskKind = "local_bash"
	TaskAgent   TaskKind = "local_agent"
)

// TaskUsage is what a task has used; a command only takes time.
type TaskUsage struct {
	Tokens   int
	ToolUses int
	Took     time.Duration
}

// TaskInfo describes a task.
type TaskInfo struct {
	ID          string
	Kind        TaskKind
	ToolUseID   string // of the call that started it
	Description string
	Command     string // of a TaskCommand
	AgentType   string // of a TaskAgent, as is Prompt
	Prompt      string
	Foreground  bool // the call that started it waits for it

	Status  TaskStatus
	Started time.Time
	// StopReported tells that task_stop ended it, whose result says so.
	StopReported bool
	Exit         sandbox.Exit // of a TaskCommand that ended
	OutputBytes  int64        // of a TaskCommand
	OutputFile   string       // with the whole output; may be empty
	Text         string       // what a job that ended came to
	Usage        TaskUsage    // so far
}

// TaskWatch is told of tasks. Either may be nil.
type TaskWatch struct {
	// Started is called before the task can end, within the call that started it,
	// whose ctx it gets.
	Started func(ctx context.Context, i TaskInfo)
	// Ended is called once for each task that started, from a goroutine of its
	// own that StopAll and Close wait for: it must not call them.
	Ended func(TaskInfo)
}

// TaskEnd is how a task's work ended by itself, or after it was stopped.
type TaskEnd struct {
	Status     TaskStatus // of one that was not stopped
	Text       string
	OutputFile string
	Exit       sandbox.Exit
}

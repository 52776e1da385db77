package agent

import (
	"github.com/agentcli/agent/internal/tools"
)

// The events of tasks: commands in the background, and sub-agents, in the
// background or not. Their Origin is the main conversation, whoever's call
// started the task. A task that started has exactly one TaskEnded: for a
// sub-agent in the foreground it comes before the ToolEnded of its call,
// for one in the background before the TurnStarted (its Input is Injected),
// or the Noted (of kind NoteTask), that tells the model.

// Task says which task an event is about.
type Task struct {
	ID          string // of a sub-agent also its AgentID
	ToolUseID   string // of the call that started it
	Kind        tools.TaskKind
	Description string // in a few words; may be empty
	AgentType   string // of a sub-agent: the name of its definition
	Background  bool   // no call waits for it
}

// TaskStarted tells that a task began.
type TaskStarted struct {
	Task   Task
	Prompt string // of a sub-agent
}

// TaskProgressed tells that a sub-agent got on: after each of its tool calls.
type TaskProgressed struct {
	Task     Task
	Usage    tools.TaskUsage // so far
	LastTool string          // name of the tool it called last
}

// TaskOutcome says how a task ended, in the wire's words.
type TaskOutcome string

// Outcomes of tasks.
const (
	TaskCompleted TaskOutcome = "completed"
	TaskFailed    TaskOutcome = "failed"
	TaskStopped   TaskOutcome = "stopped"
)

// TaskEnded tells that a task is over.
type TaskEnded struct {
	Task       Task
	Status     TaskOutcome
	Summary    string // one line
	Text       string // of a sub-agent: its answer, or why there is none
	OutputFile string // with the whole output, or the transcript; empty: there is none
	Usage      tools.TaskUsage
}

func (*TaskStarted) isEvent()    {}
func (*TaskProgressed) isEvent() {}
func (*TaskEnded) isEvent()      {}

// NoteKind says why the program put a message into the history.
type NoteKind int

// Kinds of notes.
const (
	NotePlain NoteKind = iota // such as that the turn was interrupted
	NoteTask                  // a background task ended, within a turn that waits for it
)

func taskOf(i tools.TaskInfo) Task {
	return Task{
		ID: i.ID, ToolUseID: i.ToolUseID, Kind: i.Kind, Description: orElse(i.Description, i.Command),
		AgentType: i.AgentType, Background: !i.Foreground,
	}
}

// outcomeOf is how a task ended.
func outcomeOf(i tools.TaskInfo) TaskOutcome {
	switch {
	case i.Status == tools.TaskStopped:
		return TaskStopped
	case i.Status == tools.TaskCompleted, i.Status == tools.TaskExited && i.Exit.Code == 0:
		return TaskCompleted
	}
	return TaskFailed
}

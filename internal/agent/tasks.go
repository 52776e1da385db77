package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
)

// stopGrace is how long tasks get to end when the conversation does.
const stopGrace = 3 * time.Second

// StopTask asks a task to end, a command or a sub-agent, and does not wait; its
// TaskEnded follows. The error names the tasks that there are.
func (c *Conversation) StopTask(id string) error { return c.cfg.Tasks.Stop(id) }

// openTasks has the tasks' events sent while the conversation runs. The
// function it returns stops the tasks that still run, and returns once nothing
// more is sent. After an error result that they end is told to nobody: it must
// be the last of all, or hosts lose its text.
func (c *Conversation) openTasks(ctx context.Context) (shut func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.cfg.Tasks.Watch(tools.TaskWatch{
		Started: func(call context.Context, i tools.TaskInfo) { c.taskStarted(call, i) },
		Ended:   func(i tools.TaskInfo) { c.taskEnded(ctx, i) },
	})
	return func() {
		if c.failed {
			c.cfg.Tasks.Watch(tools.TaskWatch{})
		}
		c.stopTasks(ctx)
		cancel() // nobody who sends may block any more
		c.cfg.Tasks.Watch(tools.TaskWatch{})
		c.emitMu.Lock()
		defer c.emitMu.Unlock()
		c.emit = func(context.Context, Origin, Event) {}
	}
}

// stopTasks stops the tasks that still run, and waits for them, bounded.
func (c *Conversation) stopTasks(ctx context.Context) {
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer done()
	if err := c.cfg.Tasks.StopAll(grace); err != nil {
		c.log.Warn("a background task does not end", "error", err)
	}
}

func (c *Conversation) taskStarted(ctx context.Context, i tools.TaskInfo) {
	c.forward(ctx, Origin{}, &TaskStarted{Task: taskOf(i), Prompt: i.Prompt})
}

// taskEnded reports the end of a task, and has the model told of a sub-agent in
// the background.
func (c *Conversation) taskEnded(ctx context.Context, i tools.TaskInfo) {
	e := &TaskEnded{
		Task: taskOf(i), Status: outcomeOf(i), Summary: taskSummary(i), Text: i.Text, OutputFile: i.OutputFile, Usage: i.Usage,
	}
	c.forward(ctx, Origin{}, e)
	if i.Kind != tools.TaskAgent || i.Foreground {
		return
	}
	// A running turn gives a result after this, and the call that stopped the
	// task tells the model.
	told := i.StopReported && c.Busy()
	if c.cfg.WaitForTasks {
		c.backlog.end(taskNote(i), told)
		return
	}
	c.inbox.release(Input{
		UUID: uuid.NewString(), Injected: true, Origin: taskOrigin,
		Blocks: []model.Block{model.Text{Text: taskNote(i)}},
	}, !told)
}

// taskOrigin is what the wire says of a turn that a task's end caused.
var taskOrigin = json.RawMessage(`{"kind":"task-notification"}`)

func taskSummary(i tools.TaskInfo) string {
	what := "Command"
	if i.Kind == tools.TaskAgent {
		what = "Agent"
	}
	if name := orElse(i.Description, i.Command); name != "" {
		what += fmt.Sprintf(" %q", name)
	}
	switch outcomeOf(i) {
	case TaskCompleted:
		return what + " completed"
	case TaskStopped:
		return what + " was stopped"
	}
	if i.Kind == tools.TaskCommand && i.Status == tools.TaskExited {
		return fmt.Sprintf("%s failed with exit code %d", what, i.Exit.Code)
	}
	return what + " failed"
}

// taskNote tells the model of a sub-agent's end.
func taskNote(i tools.TaskInfo) string {
	return fmt.Sprintf("<task-notification>\nThis comes from the program, not from the user. %s.\ntask_id: %s\nagent: %s\nstatus: %s\n\n%s\n</task-notification>",
		taskSummary(i), i.ID, i.AgentType, outcomeOf(i), orElse(i.Text, "(it gave no answer)"))
}

// backlog counts the sub-agents in the background, for turns that wait for
// them. It is safe for concurrent use.
type backlog struct {
	mu      sync.Mutex
	running int
	notes   []string
	changed chan struct{} // one slot
}

func newBacklog() *backlog { return &backlog{changed: make(chan struct{}, 1)} }

func (b *backlog) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running++
}

// end takes one away and keeps its note, unless the model is told already.
func (b *backlog) end(note string, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if note != "" && !told {
		b.notes = append(b.notes, note)
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// take returns the notes that came, and whether there will be more.
func (b *backlog) take() (notes []string, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes, b.notes = b.notes, nil
	return notes, b.running > 0
}

// beginTask holds the end of the conversation, or of the turn, until the task
// that begins now has ended.
func (c *Conversation) beginTask() {
	if c.cfg.WaitForTasks {
		c.backlog.begin()
		return
	}
	c.inbox.hold()
}

// cancelTask takes back beginTask for a task that did not start.
func (c *Conversation) cancelTask() {
	if c.cfg.WaitForTasks {
		c.backlog.end("", true)
		return
	}
	c.inbox.release(Input{}, false)
}

// awaitTasks waits, where a turn's result is to wait, for a background task to
// end. It reports whether the model is to be asked again: something was added
// to the history, or ctx ended.
func (t *turn) awaitTasks(ctx context.Context) bool {
	if !t.c.cfg.WaitForTasks {
		return false
	}
	for {
		added, more := t.addNotes(ctx)
		if added || !more {
			return added
		}
		select {
		case <-t.c.backlog.changed:
		case <-ctx.Done():
			return true
		}
	}
}

// addNotes adds to the history what became of background tasks.
func (t *turn) addNotes(ctx context.Context) (added, more bool) {
	notes, more := t.c.backlog.take()
	for _, note := range notes {
		msg := &model.Message{ID: uuid.NewString(), Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: note}}}
		t.c.remember(msg, transcript.Entry{})
		t.c.send(ctx, &Noted{UUID: msg.ID, Text: note, Kind: NoteTask})
	}
	return len(notes) > 0, more
}

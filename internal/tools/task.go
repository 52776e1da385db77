package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
)

const (
	// maxRunningTasks bounds background tasks at a time.
	maxRunningTasks = 32
	// maxEndedTasks is how many ended tasks are remembered.
	maxEndedTasks = 64
	// defaultTaskWait and maxTaskWait bound how long task_output waits.
	defaultTaskWait = 30 * time.Second
	maxTaskWait     = 10 * time.Minute
)

// TaskStatus says what has become of a task.
type TaskStatus string

// Statuses of tasks.
const (
	TaskRunning  TaskStatus = "running"
	TaskExited   TaskStatus = "exited"
	TaskStopped  TaskStatus = "stopped"
	TaskTimedOut TaskStatus = "timed out"
)

// TaskInfo describes a background task.
type TaskInfo struct {
	ID          string
	Command     string
	Description string
	Status      TaskStatus
	Started     time.Time
	Exit        sandbox.Exit // zero while it runs
	OutputBytes int64
}

// Tasks owns the commands that run in the background. A task ends by itself, at
// the timeout it was given, by task_stop, or by Close. Tasks is safe for
// concurrent use.
type Tasks struct {
	ended func(TaskInfo)

	mu     sync.Mutex // guards all below
	list   []*task    // oldest first
	count  int
	closed bool
	wg     sync.WaitGroup // the tasks' goroutines
}

// NewTasks returns an owner without tasks. ended, if not nil, is called once for
// each task when it is over, from a goroutine of its own that Close waits for.
func NewTasks(ended func(TaskInfo)) *Tasks { return &Tasks{ended: ended} }

// List returns the tasks that are known, oldest first: those running and the
// last 64 that ended.
func (ts *Tasks) List() []TaskInfo {
	ts.mu.Lock()
	list := slices.Clone(ts.list)
	ts.mu.Unlock()
	infos := make([]TaskInfo, len(list))
	for i, t := range list {
		infos[i] = t.info()
	}
	return infos
}

// Close stops all tasks and waits for them, at most until ctx ends; the error
// then says so. No task can be started afterwards. It may be called again.
func (ts *Tasks) Close(ctx context.Context) error {
	ts.mu.Lock()
	ts.closed = true
	list := slices.Clone(ts.list)
	ts.mu.Unlock()
	for _, t := range list {
		t.askToStop(TaskStopped)
	}
	for _, t := range list {
		select {
		case <-t.over:
		case <-ctx.Done():
			return fmt.Errorf("stopping background tasks: %w", context.Cause(ctx))
		}
	}
	ts.wg.Wait() // all but over: each is past its last wait
	return nil
}

// start starts a task whose process is made by run.
func (ts *Tasks) start(in shellInput, timeout time.Duration, out *capture, run func() (sandbox.Process, error)) (*task, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return nil, errors.New("the session is ending: no background task can be started")
	}
	running := 0
	for _, t := range ts.list {
		if !t.ended() {
			running++
		}
	}
	if running >= maxRunningTasks {
		return nil, fmt.Errorf("%d background tasks are running, which is the most there can be: stop one with task_stop first", running)
	}
	p, err := run()
	if err != nil {
		return nil, err
	}
	ts.count++
	t := &task{
		id:       fmt.Sprintf("task_%d", ts.count),
		in:       in,
		started:  time.Now(),
		process:  p,
		out:      out,
		stopping: make(chan TaskStatus, 1),
		over:     make(chan struct{}),
	}
	ts.forgetOldest()
	ts.list = append(ts.list, t)
	ts.wg.Go(func() {
		t.run(timeout)
		if ts.ended != nil {
			ts.ended(t.info())
		}
	})
	return t, nil
}

// forgetOldest drops ended tasks over the limit. mu is held.
func (ts *Tasks) forgetOldest() {
	over := -maxEndedTasks
	for _, t := range ts.list {
		if t.ended() {
			over++
		}
	}
	ts.list = slices.DeleteFunc(ts.list, func(t *task) bool {
		if over > 0 && t.ended() {
			over--
			return true
		}
		return false
	})
}

// find returns the task of that id.
func (ts *Tasks) find(id string) (*task, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var known []string
	for _, t := range ts.list {
		if t.id == id {
			return t, nil
		}
		known = append(known, t.id)
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("there is no background task %q, nor any other", id)
	}
	return nil, fmt.Errorf("there is no background task %q; there are: %s", id, strings.Join(known, ", "))
}

// task is one command in the background.
type task struct {
	id      string
	in      shellInput
	started time.Time
	process sandbox.Process
	out     *capture

	stopping chan TaskStatus // asks run to end it, and for what reason
	over     chan struct{}   // closed when it has ended; status and exit are set before
	status   TaskStatus
	exit     sandbox.Exit
}

// run waits for the end of the task or brings it about.
func (t *task) run(timeout time.Duration) {
	done := make(chan sandbox.Exit, 1)
	go func() { done <- t.process.Wait() }() // received below in every case
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	status := TaskExited
	select {
	case t.exit = <-done:
	case status = <-t.stopping:
		t.process.Stop()
		t.exit = <-done
	case <-expired:
		status = TaskTimedOut
		t.process.Stop()
		t.exit = <-done
	}
	t.out.close()
	t.status = status
	close(t.over)
}

// askToStop makes run end the task. It does not wait.
func (t *task) askToStop(reason TaskStatus) {
	select {
	case t.stopping <- reason:
	default: // asked before
	}
}

func (t *task) ended() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// wait waits until the task has ended, at most d, or until ctx ends.
func (t *task) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (t *task) info() TaskInfo {
	info := TaskInfo{
		ID: t.id, Command: t.in.Command, Description: t.in.Description,
		Status: TaskRunning, Started: t.started, OutputBytes: t.out.size(),
	}
	if t.ended() {
		info.Status, info.Exit = t.status, t.exit
	}
	return info
}

// report returns what is new, and how the task stands.
func (t *task) report() Result {
	info := t.info() // before the output: what a running task writes now is for next time
	running := info.Status == TaskRunning
	text := t.out.drain(running)
	_, path := t.out.text()
	d := &ShellResult{
		Stdout:           text,
		Interrupted:      info.Status == TaskStopped || info.Status == TaskTimedOut,
		TimedOut:         info.Status == TaskTimedOut,
		BackgroundTaskID: t.id,
		Signal:           info.Exit.Signal,
		DurationMS:       info.Exit.Duration.Milliseconds(),
		OutputFile:       path,
		Status:           string(info.Status),
	}
	var note string
	if running {
		note = fmt.Sprintf("%s: running for %s", t.id, time.Since(t.started).Round(time.Second))
		if t.process.WaitingForInput() {
			note += "; it is waiting for somebody to type at a terminal, and nobody can: stop it. " + noninteractive
		}
	} else {
		note = fmt.Sprintf("%s: %s after %s", t.id, info.Status, info.Exit.Duration.Round(10*time.Millisecond))
		if info.Exit.Code >= 0 {
			d.ExitCode = &info.Exit.Code
			note += fmt.Sprintf(", exit code %d", info.Exit.Code)
		} else if info.Exit.Signal != "" {
			note += ", killed by " + info.Exit.Signal
		}
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		text = "(no new output)"
	}
	res := Text(text + "\n[" + note + "]")
	res.Display = d
	return res
}

//go:embed task_output.md
var taskOutputDescription string

//go:embed task_stop.md
var taskStopDescription string

// NewTaskOutput returns task_output.
func NewTaskOutput(ts *Tasks) Tool {
	return &taskOutputTool{tasks: ts, spec: Spec{
		Name:        "task_output",
		Description: strings.TrimSpace(taskOutputDescription),
		Schema: schema(`{"type":"object","properties":{
"task_id":{"type":"string","description":"The id that run_shell_command gave"},
"block":{"type":"boolean","description":"Wait until the task has ended"},
"timeout":{"type":"integer","minimum":0,"description":"Milliseconds to wait at most, with block"}
},"required":["task_id"]}`),
		input:    reflect.TypeFor[taskOutputInput](),
		Class:    policy.ClassInternal,
		ReadOnly: true,
	}}
}

type taskOutputInput struct {
	TaskID  string `json:"task_id" alias:"bash_id,shell_id,id" required:"true"`
	Block   bool   `json:"block" alias:"wait"`
	Timeout int64  `json:"timeout" alias:"timeout_ms"`
}

type taskOutputTool struct {
	tasks *Tasks
	spec  Spec
}

// Spec implements Tool.
func (t *taskOutputTool) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *taskOutputTool) Run(ctx context.Context, call *Call) Result {
	var in taskOutputInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	task, err := t.tasks.find(in.TaskID)
	if err != nil {
		return failed(err)
	}
	if in.Block {
		wait := defaultTaskWait
		if in.Timeout > 0 {
			wait = time.Duration(min(in.Timeout, maxTaskWait.Milliseconds())) * time.Millisecond
		}
		task.wait(ctx, wait)
		if err := checkContext(ctx); err != nil {
			return failed(err) // nothing was read: the output is still there
		}
	}
	return task.report()
}

// NewTaskStop returns task_stop.
func NewTaskStop(ts *Tasks) Tool {
	return &taskStopTool{tasks: ts, spec: Spec{
		Name:        "task_stop",
		Description: strings.TrimSpace(taskStopDescription),
		Schema: schema(`{"type":"object","properties":{
"task_id":{"type":"string","description":"The id that run_shell_command gave"}
},"required":["task_id"]}`),
		input: reflect.TypeFor[taskStopInput](),
		Class: policy.ClassInternal,
	}}
}

type taskStopInput struct {
	TaskID string `json:"task_id" alias:"shell_id,bash_id,id" required:"true"`
}

type taskStopTool struct {
	tasks *Tasks
	spec  Spec
}

// Spec implements Tool.
func (t *taskStopTool) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *taskStopTool) Run(ctx context.Context, call *Call) Result {
	var in taskStopInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	task, err := t.tasks.find(in.TaskID)
	if err != nil {
		return failed(err)
	}
	if task.ended() {
		return Text(fmt.Sprintf("[%s had already ended]", task.id))
	}
	task.askToStop(TaskStopped)
	select {
	case <-task.over:
	case <-ctx.Done():
		return failed(fmt.Errorf("%s is being stopped: %w", task.id, context.Cause(ctx)))
	}
	return task.report()
}

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

// Tasks owns what runs in the background: commands and jobs such as sub-agents,
// under ids of one kind. A task ends by itself, at the timeout it was given, by
// task_stop, Stop, StopAll or Close. Tasks is safe for concurrent use.
type Tasks struct {
	mu     sync.Mutex // guards all below
	watch  TaskWatch
	list   []*task // oldest first
	count  int
	closed bool
	wg     sync.WaitGroup // the tasks' goroutines
}

// NewTasks returns an owner without tasks.
func NewTasks() *Tasks { return &Tasks{} }

// Watch has w told of the tasks that start and end from now on. It replaces
// whoever was told before.
func (ts *Tasks) Watch(w TaskWatch) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.watch = w
}

func (ts *Tasks) watcher() TaskWatch {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.watch
}

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

// Stop asks a task to end, and does not wait for it. One that has ended already
// stays as it is. The error says that there is no such task, and which there
// are.
func (ts *Tasks) Stop(id string) error {
	t, err := ts.find(id)
	if err != nil {
		return err
	}
	t.askToStop(stop{status: TaskStopped})
	return nil
}

// StopAll stops all tasks and waits for them, at most until ctx ends; the error
// then says so.
func (ts *Tasks) StopAll(ctx context.Context) error {
	ts.mu.Lock()
	list := slices.Clone(ts.list)
	ts.mu.Unlock()
	for _, t := range list {
		t.askToStop(stop{status: TaskStopped})
	}
	for _, t := range list {
		select {
		case <-t.told:
		case <-ctx.Done():
			return fmt.Errorf("stopping background tasks: %w", context.Cause(ctx))
		}
	}
	return nil
}

// Close is StopAll, and no task can be started afterwards. It may be called
// again.
func (ts *Tasks) Close(ctx context.Context) error {
	ts.mu.Lock()
	ts.closed = true
	ts.mu.Unlock()
	if err := ts.StopAll(ctx); err != nil {
		return err
	}
	ts.wg.Wait() // all but over: each is past its last wait
	return nil
}

// start starts a task of which begin starts what it does. ctx is that of the
// call that wants it. Whoever watches is told of the task before its end.
func (ts *Tasks) start(ctx context.Context, t *task, begin func() (taskWork, error)) (*task, error) {
	if err := ts.admit(t, begin); err != nil {
		return nil, err
	}
	if w := ts.watcher(); w.Started != nil {
		w.Started(ctx, t.info())
	}
	go func() { // Close waits for it
		defer ts.wg.Done()
		defer close(t.told)
		t.run()
		if w := ts.watcher(); w.Ended != nil {
			w.Ended(t.info())
		}
	}()
	return t, nil
}

// admit begins a task and lists it, if there may be another one.
func (ts *Tasks) admit(t *task, begin func() (taskWork, error)) (err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return errors.New("the session is ending: no background task can be started")
	}
	running := 0
	for _, o := range ts.list {
		if !o.ended() {
			running++
		}
	}
	if running >= maxRunningTasks {
		return fmt.Errorf("%d background tasks are running, which is the most there can be: stop one first", running)
	}
	if t.work, err = begin(); err != nil {
		return err
	}
	ts.count++
	if t.id == "" {
		t.id = fmt.Sprintf("task_%d", ts.count)
	}
	t.started = time.Now()
	t.stopping, t.over, t.told = make(chan stop, 1), make(chan struct{}), make(chan struct{})
	ts.forgetOldest()
	ts.list = append(ts.list, t)
	ts.wg.Add(1)
	return nil
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

// task is one task. What it does is its work.
type task struct {
	id      string
	head    TaskInfo // what is known of it from the start
	started time.Time
	timeout time.Duration // 0: none
	work    taskWork

	stopping chan stop     // asks run to end it, and for what reason
	over     chan struct{} // closed when it has ended; how and end are set before
	told     chan struct{} // closed when whoever watches knows, too
	how      stop
	end      TaskEnd
}

// taskWork is what a task does.
type taskWork interface {
	// wait waits for the end and returns it.
	wait() TaskEnd
	// stop ends it; wait returns soon after.
	stop()
	// info adds what is known by now.
	info(*TaskInfo)
	// report says what is new since the last report.
	report(TaskInfo) Result
}

// stop is how a task is brought to its end.
type stop struct {
	status TaskStatus
	byCall bool // by task_stop, whose result tells
}

// run waits for the end of the task or brings it about.
func (t *task) run() {
	done := make(chan TaskEnd, 1)
	go func() { done <- t.work.wait() }() // received below in every case
	var expired <-chan time.Time
	if t.timeout > 0 {
		timer := time.NewTimer(t.timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case t.end = <-done:
		t.how.status = t.end.Status
	case t.how = <-t.stopping:
		t.work.stop()
		t.end = <-done
	case <-expired:
		t.how.status = TaskTimedOut
		t.work.stop()
		t.end = <-done
	}
	close(t.over)
}

// askToStop makes run end the task. It does not wait.
func (t *task) askToStop(s stop) {
	select {
	case t.stopping <- s:
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
	info := t.head
	info.ID, info.Started, info.Status = t.id, t.started, TaskRunning
	if t.ended() {
		info.Status, info.StopReported = t.how.status, t.how.byCall
		info.Exit, info.Text, info.OutputFile = t.end.Exit, t.end.Text, t.end.OutputFile
	}
	t.work.info(&info)
	return info
}

// report returns what is new, and how the task stands.
func (t *task) report() Result { return t.work.report(t.info()) }

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
"task_id":{"type":"string","description":"The id that the task was given"},
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
"task_id":{"type":"string","description":"The id that the task was given"}
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
	task.askToStop(stop{status: TaskStopped, byCall: true})
	select {
	case <-task.told:
	case <-ctx.Done():
		return failed(fmt.Errorf("%s is being stopped: %w", task.id, context.Cause(ctx)))
	}
	return task.report()
}

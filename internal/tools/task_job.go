package tools

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Job is a task that is no command, such as a sub-agent.
type Job struct {
	// Info is what is known of it: ID (unique among tasks; made up if empty),
	// Kind, ToolUseID, Description, AgentType, Prompt and Foreground count.
	Info TaskInfo
	// Run does the work. It returns when that is done, or soon after ctx ended,
	// with ErrTaskStopped as the cause if the task was stopped.
	Run func(ctx context.Context) TaskEnd
	// Usage says what it has used so far. It may be called at any time; nil: not
	// known.
	Usage func() TaskUsage
}

// ErrTaskStopped is the cause that ends the context of a job that was stopped.
var ErrTaskStopped = errors.New("the task was stopped")

// Go starts a job, which ends when ctx does. told is closed once it has ended
// and whoever watches knows.
func (ts *Tasks) Go(ctx context.Context, j Job) (told <-chan struct{}, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	t, err := ts.start(ctx, &task{id: j.Info.ID, head: j.Info}, func() (taskWork, error) {
		return &jobWork{job: j, ctx: ctx, cancel: cancel}, nil
	})
	if err != nil {
		cancel(err)
		return nil, err
	}
	return t.told, nil
}

// jobWork is the work of a task that is a job.
type jobWork struct {
	job    Job
	ctx    context.Context // of the work itself: it outlives the call that started it
	cancel context.CancelCauseFunc
}

func (w *jobWork) wait() TaskEnd {
	defer w.cancel(nil)
	return w.job.Run(w.ctx)
}

func (w *jobWork) stop() { w.cancel(ErrTaskStopped) }

func (w *jobWork) info(i *TaskInfo) {
	if w.job.Usage != nil {
		i.Usage = w.job.Usage()
	}
}

// JobResult is the Display of task_output and task_stop for a job.
type JobResult struct {
	TaskID     string `json:"task_id"`
	TaskType   string `json:"task_type"`
	Status     string `json:"status"`
	Output     string `json:"output"`
	OutputFile string `json:"output_file,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	ToolUses   int    `json:"tool_uses"`
	Tokens     int    `json:"total_tokens"`
}

func (w *jobWork) report(info TaskInfo) Result {
	took := info.Usage.Took.Round(10 * time.Millisecond)
	note := fmt.Sprintf("%s: %s after %s, %d tool call(s)", info.ID, info.Status, took, info.Usage.ToolUses)
	text := info.Text
	if info.Status == TaskRunning {
		text = "(no result yet)"
		note = fmt.Sprintf("%s: running for %s, %d tool call(s)", info.ID, took.Round(time.Second), info.Usage.ToolUses)
	} else if text == "" {
		text = "(no result)"
	}
	res := Text(text + "\n[" + note + "]")
	res.Display = &JobResult{
		TaskID: info.ID, TaskType: string(info.Kind), Status: string(info.Status), Output: info.Text, OutputFile: info.OutputFile,
		DurationMS: info.Usage.Took.Milliseconds(), ToolUses: info.Usage.ToolUses, Tokens: info.Usage.Tokens,
	}
	return res
}

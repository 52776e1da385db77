//go:build unix

package tools

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/policy"
)

// startTask starts command in the background and returns its id.
func (b *shellBench) startTask(command string, pairs ...any) string {
	b.t.Helper()
	got := b.run(command, append([]any{"run_in_background", true}, pairs...)...)
	d, ok := got.Display.(*ShellResult)
	if got.IsError || !ok || d.BackgroundTaskID == "" {
		b.t.Fatalf("no task: %q", shellText(got))
	}
	return d.BackgroundTaskID
}

func TestTaskServesWhileOtherCommandsRunAndStopsWhenTold(t *testing.T) {
	t.Parallel()
	needProgram(t, "python3")
	b := newShellBench(t, nil)
	begun := time.Now()
	id := b.startTask(`exec python3 -u -c '
import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print("port", s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"hello"); c.close()'`)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("starting took %v", took)
	}
	output := NewTaskOutput(b.tasks)
	seen, port := "", ""
	for tick := time.NewTicker(20 * time.Millisecond); !strings.HasSuffix(seen, "\n"); <-tick.C {
		seen += b.call(output, "task_id", id).Display.(*ShellResult).Stdout
	}
	if _, err := fmt.Sscanf(seen, "port %s\n", &port); err != nil {
		t.Fatalf("%q: %v", seen, err)
	}
	b.run("true")
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if got := b.call(NewTaskStop(b.tasks), "task_id", id); got.IsError || !strings.Contains(shellText(got), id+": stopped") {
		t.Errorf("got %q", shellText(got))
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
	if got := b.call(NewTaskStop(b.tasks), "task_id", id); got.IsError || !strings.Contains(shellText(got), "already ended") {
		t.Errorf("got %q", shellText(got))
	}
}

func TestTaskOutputGivesWhatIsNewAndWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	id := b.startTask(`echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 4`)
	output := NewTaskOutput(b.tasks)
	if s := output.Spec(); s.Class != policy.ClassInternal || !s.ReadOnly {
		t.Errorf("%+v", s)
	}
	seen := ""
	for tick := time.NewTicker(10 * time.Millisecond); !strings.Contains(seen, "one"); <-tick.C {
		seen += shellText(b.call(output, "task_id", id))
	}
	if got := shellText(b.call(output, "task_id", id)); !strings.HasPrefix(got, "(no new output)\n["+id+": running for") {
		t.Errorf("got %q", got)
	}
	if got := shellText(b.call(output, "task_id", id, "block", true, "timeout", 30)); !strings.Contains(got, "running") {
		t.Errorf("got %q", got)
	}
	b.run("touch go")
	got := b.call(output, "bash_id", id, "block", true)
	if text := shellText(got); got.IsError || !strings.HasPrefix(text, "two\n["+id+": exited after") || !strings.Contains(text, "exit code 4") {
		t.Errorf("got %q", text)
	}
	if d := got.Display.(*ShellResult); d.ExitCode == nil || *d.ExitCode != 4 || d.Status != "exited" || d.Stdout != "two\n" {
		t.Errorf("display %+v", d)
	}
}

func TestTaskThatFailsAtOnceSaysSo(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	id := ""
	got := b.run("nonesuch-server", "run_in_background", true)
	if d := got.Display.(*ShellResult); d.Status == "running" {
		id = d.BackgroundTaskID // a slow machine: the exit is in the next answer
		got = b.call(NewTaskOutput(b.tasks), "task_id", id, "block", true)
	}
	if text := shellText(got); !strings.Contains(text, "not found") || !strings.Contains(text, "exit code 127") {
		t.Errorf("got %q", text)
	}
}

func TestTaskEndsAtTheTimeoutItWasGiven(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	id := b.startTask("sleep 82001", "timeout", 400)
	got := b.call(NewTaskOutput(b.tasks), "task_id", id, "block", true)
	if d := got.Display.(*ShellResult); !d.TimedOut || d.Status != "timed out" {
		t.Errorf("got %q, %+v", shellText(got), d)
	}
	expectGone(t, "82001")
}

func TestTaskOutlivesTheCallThatStartedIt(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	b.callContext(ctx, b.shell, nil, "command", "sleep 82002", "run_in_background", true)
	cancel()
	b.run("sleep 0.2")
	if list := b.tasks.List(); len(list) != 1 || list[0].Status != TaskRunning || list[0].Command != "sleep 82002" {
		t.Errorf("got %+v", list)
	}
}

func TestClosingTasksStopsThemAllAndTells(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	var mu sync.Mutex
	var ended []TaskInfo
	b.tasks.Watch(TaskWatch{Ended: func(i TaskInfo) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, i)
	}})
	for range 3 {
		b.startTask(`(setsid bash -c 'trap "" TERM; while :; do sleep 82003; done' &); sleep 82003`)
	}
	begun := time.Now()
	if err := b.tasks.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	expectGone(t, "82003")
	if len(ended) != 3 || ended[0].Status != TaskStopped || ended[0].Usage.Took <= 0 {
		t.Errorf("told %+v", ended)
	}
	if got := b.run("sleep 1", "run_in_background", true); !got.IsError || !strings.Contains(shellText(got), "session is ending") {
		t.Errorf("got %q", shellText(got))
	}
}

func TestThereIsALimitToRunningTasks(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	for range maxRunningTasks {
		b.startTask("sleep 82004")
	}
	if got := b.run("sleep 82004", "run_in_background", true); !got.IsError || !strings.Contains(shellText(got), "stop one first") {
		t.Errorf("got %q", shellText(got))
	}
}

func TestUnknownTasksAreExplained(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	if got := b.call(NewTaskStop(b.tasks), "task_id", "x"); !got.IsError || !strings.Contains(shellText(got), "nor any other") {
		t.Errorf("got %q", shellText(got))
	}
	id := b.startTask("sleep 82005")
	if got := b.call(NewTaskOutput(b.tasks), "task_id", "x"); !got.IsError || !strings.Contains(shellText(got), "there are: "+id) {
		t.Errorf("got %q", shellText(got))
	}
}

// TestBackgroundOutputNeverFillsTheDisk is users.md row 25 in small: an endless
// writer, and a task that reads the directory it writes to.
func TestBackgroundOutputNeverFillsTheDisk(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	flood := b.startTask("yes 0123456789abcdef0123456789abcdef")
	glob := b.startTask("while :; do cat " + b.out + "/* 2>/dev/null; done")
	output := NewTaskOutput(b.tasks)
	for tick := time.NewTicker(100 * time.Millisecond); sizeOfDirIfAny(t, b.out) < maxOutputFile; <-tick.C {
		if got := shellText(b.call(output, "task_id", flood)); len(got) > 31_500 {
			t.Fatalf("%d bytes in one answer", len(got))
		}
	}
	b.run("sleep 0.5")
	for _, id := range []string{flood, glob} {
		if got := shellText(b.call(NewTaskStop(b.tasks), "task_id", id)); id == flood && !strings.Contains(got, "left out here; the ") {
			t.Errorf("the cut isn't told: %q", got[max(0, len(got)-300):])
		}
	}
	if used := sizeOfDir(t, b.out); used > 2*maxOutputFile {
		t.Errorf("%d bytes on disk", used)
	}
}

func TestJobsAreTasksLikeCommands(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	var story []string
	b.tasks.Watch(TaskWatch{
		Started: func(_ context.Context, i TaskInfo) { story = append(story, "started "+i.ID) },
		Ended:   func(i TaskInfo) { story = append(story, fmt.Sprintf("%s %s %q", i.ID, i.Status, i.Text)) },
	})
	usage := func() TaskUsage { return TaskUsage{Tokens: 7, ToolUses: 2, Took: time.Second} }
	done, err := b.tasks.Go(t.Context(), Job{Info: TaskInfo{ID: "a1", Kind: TaskAgent}, Usage: usage, Run: func(context.Context) TaskEnd {
		return TaskEnd{Status: TaskCompleted, Text: "found it"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	stopped, err := b.tasks.Go(t.Context(), Job{Info: TaskInfo{ID: "a2", Kind: TaskAgent}, Run: func(ctx context.Context) TaskEnd {
		<-ctx.Done()
		return TaskEnd{Status: TaskFailed, Text: context.Cause(ctx).Error()}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := shellText(b.call(NewTaskOutput(b.tasks), "task_id", "a2")); !strings.Contains(got, "no result yet") {
		t.Errorf("of a running job: %q", got)
	}
	if got := shellText(b.call(NewTaskStop(b.tasks), "task_id", "a2")); !strings.Contains(got, "a2: stopped") {
		t.Errorf("of a stopped job: %q", got)
	}
	<-stopped
	got := b.call(NewTaskOutput(b.tasks), "task_id", "a1", "block", true)
	if text := shellText(got); text != "found it\n[a1: completed after 1s, 2 tool call(s)]" {
		t.Errorf("of a completed job: %q", text)
	}
	if d := got.Display.(*JobResult); d.Status != "completed" || d.Output != "found it" || d.Tokens != 7 {
		t.Errorf("display %+v", d)
	}
	want := []string{"started a1", `a1 completed "found it"`, "started a2", `a2 stopped "the task was stopped"`}
	if !slices.Equal(story, want) {
		t.Errorf("told %q, want %q", story, want)
	}
	if err := b.tasks.Stop("a3"); err == nil || !strings.Contains(err.Error(), "there are: a1, a2") {
		t.Errorf("error %v", err)
	}
}

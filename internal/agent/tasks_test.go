package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/tools"
)

// gate is a reply that waits to be let through.
type gate chan struct{}

func (g gate) before(next reply) reply {
	return func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
		select {
		case <-g:
			return next(ctx, r, emit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// onResult calls f once the main conversation gave its n-th result.
func (s *stage) onResult(n int, f func()) {
	s.on = func(from Origin, e Event) {
		if e, ok := e.(*TurnEnded); ok && e.Result.Index == n {
			f()
		}
	}
}

func background(id, agentType string) call { return start(id, agentType, `,"run_in_background":true`) }

func TestABackgroundAgentGetsATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	free := make(gate)
	s := newStage(parts{
		"main": {calls(background("t1", "a")), says("it works on it"), says("it is done")},
		"a":    {free.before(says("found"))},
	}, nil, Definition{Name: "a"})
	s.onResult(0, func() { close(free) })
	got := s.play(t.Context())
	want := []string{
		"main: turn", "main: calls agent", "main: task started t1 background=true", "main: answer t1 error=false", "main: says it works on it", "main: result completed",
		"a: says found", "main: task ended t1 completed", "main: turn", "main: says it is done", "main: result completed",
	}
	story := slices.DeleteFunc(slices.Clone(s.story), func(l string) bool { return l == "a: turn" }) // whenever
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if len(got) != 2 || got[1].Text != "it is done" || string(got[1].Origin) != string(taskOrigin) {
		t.Errorf("results %+v", got)
	}
	if text, _ := s.toolAnswer(t, "t1"); !strings.Contains(text, "in the background") {
		t.Errorf("answer %q", text)
	}
	last := s.cast.requests("main")[2].Messages
	if text := textOf(last[len(last)-1].Blocks); !strings.Contains(text, "found") || !strings.Contains(text, "status: completed") {
		t.Errorf("the model was told %q", text)
	}
	checkHistory(t, s.history)
}

// TestDenialsInTheBackgroundAreInTheNextResult: in that of the turn that tells
// the model of the sub-agent's end, or in that which waited for it.
func TestDenialsInTheBackgroundAreInTheNextResult(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("waits %v, fails %v", waits, fails), func(t *testing.T) {
				t.Parallel()
				free := make(gate)
				lets := func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
					if waits {
						close(free)
					}
					return says("it works on it")(ctx, r, emit)
				}
				s := newStage(parts{
					"main": {calls(background("t1", "a")), lets, says("it is done")},
					"a":    {free.before(calls(call{"change", "c1", "{}"})), says("it was denied")},
				}, func(c *Config) { c.WaitForTasks, c.FailOnDenial = waits, fails }, Definition{Name: "a"})
				s.onResult(0, func() {
					if !waits {
						close(free)
					}
				})
				got := s.play(t.Context())
				last := got[len(got)-1]
				if len(last.Denials) != 1 || last.Denials[0].ToolUseID != "c1" || fails != errors.Is(last.Err, ErrDenied) {
					t.Errorf("results %+v", got)
				}
				if !waits && (len(got) != 2 || len(got[0].Denials) != 0) {
					t.Errorf("results %+v: want the denial in the second of two", got)
				}
			})
		}
	}
}

func TestADefinitionMayAlwaysRunInTheBackground(t *testing.T) {
	t.Parallel()
	s := newStage(parts{
		"main": {calls(start("t1", "a", "")), says("first"), says("second")}, "a": {says("found")},
	}, nil, Definition{Name: "a", Background: true})
	if got := s.play(t.Context()); len(got) != 2 {
		t.Errorf("results %+v", got)
	}
}

func TestAnInterruptLeavesTheBackgroundAlone(t *testing.T) {
	t.Parallel()
	free := make(gate)
	var s *stage
	hangs := func(ctx context.Context, _ *model.Request, _ func(model.Delta)) error {
		s.Interrupt(ErrInterrupted, false)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	s = newStage(parts{
		"main": {calls(background("t1", "a")), hangs, says("told")}, "a": {free.before(says("found"))},
	}, nil, Definition{Name: "a"})
	s.onResult(0, func() { close(free) })
	got := s.play(t.Context())
	if len(got) != 2 || got[0].Terminal != AbortedStreaming || got[1].Text != "told" || !slices.Contains(s.story, "main: task ended t1 completed") {
		t.Errorf("results %+v, story %q", got, s.story)
	}
}

func TestAHostMayStopATask(t *testing.T) {
	t.Parallel()
	s := newStage(parts{
		"main": {calls(background("t1", "a")), says("first"), says("so it was stopped")}, "a": {make(gate).before(says("never"))},
	}, nil, Definition{Name: "a"})
	var unknown error
	s.onResult(0, func() {
		for _, e := range s.events {
			if e, ok := e.(*TaskStarted); ok {
				unknown = s.StopTask("nothing")
				if err := s.StopTask(e.Task.ID); err != nil {
					t.Error(err)
				}
				if !strings.Contains(fmt.Sprint(unknown), "there are: "+e.Task.ID) {
					t.Errorf("error %v", unknown)
				}
			}
		}
	})
	got := s.play(t.Context())
	if len(got) != 2 || got[1].Text != "so it was stopped" || !slices.Contains(s.story, "main: task ended t1 stopped") {
		t.Errorf("results %+v, story %q", got, s.story)
	}
}

func TestTheModelMayStopATask(t *testing.T) {
	t.Parallel()
	owner := tools.NewTasks()
	stops := func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
		return calls(call{"task_stop", "t2", fmt.Sprintf(`{"task_id":%q}`, owner.List()[0].ID)})(ctx, r, emit)
	}
	s := newStage(parts{
		"main": {calls(background("t1", "a")), stops, says("stopped it")}, "a": {make(gate).before(says("never"))},
	}, func(c *Config) { c.Tasks = owner; c.Tools.Add(tools.NewTaskStop(owner)) }, Definition{Name: "a"})
	got := s.play(t.Context())
	if len(got) != 1 || !slices.Contains(s.story, "main: task ended t1 stopped") {
		t.Errorf("results %+v, story %q: want one result", got, s.story)
	}
	if text, isError := s.toolAnswer(t, "t2"); isError || !strings.Contains(text, "stopped") {
		t.Errorf("answer %q", text)
	}
}

func TestAResultMayWaitForTheBackground(t *testing.T) {
	t.Parallel()
	free := make(gate)
	second := func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
		close(free)
		return says("working on it")(ctx, r, emit)
	}
	s := newStage(parts{
		"main": {calls(background("t1", "a"), background("t2", "b")), second, says("one is there"), says("all is there")},
		"a":    {free.before(says("found a"))}, "b": {free.before(says("found b"))},
	}, func(c *Config) { c.WaitForTasks = true }, Definition{Name: "a"}, Definition{Name: "b"})
	// Both may have ended by the time it is asked again.
	got := s.play(t.Context())
	if len(got) != 1 || got[0].Text != "one is there" && got[0].Text != "all is there" {
		t.Fatalf("results %+v, want one", got)
	}
	requests := s.cast.requests("main")
	told := ""
	for _, m := range requests[len(requests)-1].Messages {
		told += textOf(m.Blocks)
	}
	if !strings.Contains(told, "found a") || !strings.Contains(told, "found b") {
		t.Errorf("the model was told %q", told)
	}
	if last := s.story[len(s.story)-1]; last != "main: result completed" {
		t.Errorf("the last word is %q", last)
	}
}

func TestAWaitForTheBackgroundCanBeInterrupted(t *testing.T) {
	t.Parallel()
	var s *stage
	never := make(gate)
	s = newStage(parts{
		"main": {calls(background("t1", "a")), says("waiting")}, "a": {never.before(says("never"))},
	}, func(c *Config) { c.WaitForTasks = true }, Definition{Name: "a"})
	s.on = func(_ Origin, e Event) {
		if e, ok := e.(*BlockEnded); ok && e.Block == (model.Block)(model.Text{Text: "waiting"}) {
			s.Interrupt(ErrInterrupted, false)
		}
	}
	got := s.play(t.Context())
	if len(got) != 1 || got[0].Terminal != AbortedStreaming {
		t.Errorf("results %+v", got)
	}
	if !slices.Contains(s.story, "main: task ended t1 stopped") {
		t.Errorf("story %q: want the agent stopped at the end", s.story)
	}
}

func TestCancellingWhatIsQueuedLeavesNews(t *testing.T) {
	t.Parallel()
	var cancelled []string
	free, told := make(gate), make(gate)
	s := newStage(parts{
		"main": {calls(background("t1", "a")), told.before(says("first")), says("second")}, "a": {free.before(says("found"))},
	}, nil, Definition{Name: "a"})
	first := true
	s.on = func(_ Origin, e Event) {
		switch e := e.(type) {
		case *MessageEnded:
			if first {
				first = false
				close(free)
			}
		case *TaskEnded:
			close(told)
		case *BlockEnded:
			if e.Block != model.Block(model.Text{Text: "first"}) {
				return
			}
			s.Submit(Input{UUID: "later", Blocks: []model.Block{model.Text{Text: "later"}}})
			for s.inbox.len() < 2 { // the news is queued after TaskEnded
				<-s.inbox.ready
			}
			_, cancelled = s.Interrupt(ErrInterrupted, true)
			s.CloseInput()
		}
	}
	s.Submit(Input{UUID: "u", Blocks: []model.Block{model.Text{Text: "go"}}})
	s.Run(t.Context(), s.take)
	if !slices.Equal(cancelled, []string{"later"}) || len(s.ended) != 2 || s.ended[1].Text != "second" {
		t.Errorf("cancelled %q, results %+v", cancelled, s.ended)
	}
}

func TestASignalEndsTheBackground(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newStage(parts{
		"main": {calls(background("t1", "a")), says("first")}, "a": {make(gate).before(says("never"))},
	}, nil, Definition{Name: "a"})
	s.onResult(0, func() { cancel(ErrStopped) })
	got := s.play(ctx)
	if len(got) != 1 || s.story[len(s.story)-1] != "main: task ended t1 stopped" {
		t.Errorf("results %+v, story %q", got, s.story)
	}
}

func TestCommandsInTheBackgroundAreToldAndStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots, err := tools.OpenRoots(tools.RootsConfig{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	owner := tools.NewTasks()
	shell := tools.NewShell(tools.ShellConfig{Runner: sandbox.New(), Roots: roots, Tasks: owner, Env: []string{"PATH=/usr/bin:/bin"}})
	s := newStage(parts{
		"main": {calls(call{"run_shell_command", "t1", `{"command":"sleep 83001","run_in_background":true}`}), says("it runs")},
	}, func(c *Config) { c.Tasks = owner; c.Mode = policy.ModeYolo; c.Tools.Add(shell) })
	got := s.play(t.Context())
	want := []string{"main: task started t1 background=true", "main: task ended t1 stopped", "main: result completed"}
	story := slices.DeleteFunc(slices.Clone(s.story), func(l string) bool { return !slices.Contains(want, l) })
	if diff := cmp.Diff(want, story); len(got) != 1 || diff != "" {
		t.Errorf("results %+v, story (-want +got):\n%s", got, diff)
	}
	for _, e := range s.events {
		if e, ok := e.(*TaskEnded); ok && (e.Task.Kind != tools.TaskCommand || e.Summary != `Command "sleep 83001" was stopped`) {
			t.Errorf("ended %+v", e)
		}
	}
}

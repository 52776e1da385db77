package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/tools"
)

// interruptAt runs a turn, interrupts it once at is closed, and returns its
// result and that of the turn behind it.
func interruptAt(t *testing.T, r *rig, at <-chan struct{}) []Result {
	t.Helper()
	go func() {
		<-at
		r.c.Interrupt(ErrInterrupted, false)
	}()
	got := r.run(t.Context(), "a", "b")
	if len(got) != 2 || !errors.Is(got[0].Err, ErrInterrupted) || got[0].IsError || got[1].Text != "next" {
		t.Errorf("results = %+v", got)
	}
	checkHistory(t, r.c.history)
	return got
}

func TestInterruptEndsAnOpenQuestion(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	r := newRig(t, func(c *Config) {
		c.Asker = askFunc(func(ctx context.Context, _ policy.Question) (policy.Answer, error) {
			close(asked)
			<-ctx.Done()
			return policy.Answer{Allow: true}, context.Cause(ctx)
		})
		c.Words.Unanswered = func(tool string, err error) string { return "unanswered " + tool + ": " + err.Error() }
	}, calls(call{"change", "t1", `{}`}), says("next"))
	got := interruptAt(t, r, asked)
	if got[0].Terminal != AbortedTools || len(got[0].Denials) != 1 || got[0].Denials[0].Source != ByInterrupt {
		t.Errorf("result = %+v", got[0])
	}
	if text := textOf(r.c.history[2].Blocks); text != "unanswered change: interrupted by the user" {
		t.Errorf("the model was told %q", text)
	}
}

func TestInterruptEndsAWaitBetweenRetries(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{})
	fails := func(context.Context, *model.Request, func(model.Delta)) error {
		return &model.Error{Kind: model.ErrOverloaded, Provider: "fake", Message: "busy", RetryAfter: time.Hour}
	}
	r := newRig(t, nil, fails, says("next"))
	r.c.cfg.Resolve = func(name string) (Model, error) {
		return Model{Provider: model.Retry(r.model, model.RetryOptions{Budget: 2 * time.Hour}), ProviderName: "fake", Name: name}, nil
	}
	go func() {
		<-waiting
		r.c.Interrupt(ErrInterrupted, false)
	}()
	r.c.Submit(Input{UUID: "a", Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.CloseInput()
	r.c.Run(t.Context(), func(ctx context.Context, from Origin, e Event) {
		if _, ok := e.(*RequestRetried); ok {
			close(waiting)
		}
		r.take(ctx, from, e)
	})
	if got := r.ended; len(got) != 1 || got[0].Terminal != AbortedStreaming || !errors.Is(got[0].Err, ErrInterrupted) {
		t.Errorf("results = %+v", got)
	}
}

func TestInterruptEndsAWaitForStateChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("next"))
	r.c.Submit(Input{UUID: "never", Ready: make(chan struct{}), Blocks: []model.Block{model.Text{Text: "x"}}})
	queued, _ := r.c.Interrupt(ErrInterrupted, false)
	got := r.run(t.Context(), "b")
	if len(queued) != 0 || got[0].Terminal != AbortedStreaming || got[1].Text != "next" {
		t.Errorf("queued %v, results = %+v", queued, got)
	}
}

func TestInterruptEndsThePreparation(t *testing.T) {
	t.Parallel()
	preparing, once := make(chan struct{}), false
	r := newRig(t, func(c *Config) {
		c.Prepare = func(ctx context.Context) {
			if once {
				return
			}
			once = true
			close(preparing)
			<-ctx.Done()
		}
	}, says("next"))
	if got := interruptAt(t, r, preparing); got[0].Terminal != AbortedStreaming || got[0].ModelCalls != 0 {
		t.Errorf("result = %+v", got[0])
	}
}

func TestInterruptTakesDownAToolThatIgnoresTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots, err := tools.OpenRoots(tools.RootsConfig{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	shell := tools.NewShell(tools.ShellConfig{
		Runner: sandbox.New(), Roots: roots, Env: []string{"PATH=" + os.Getenv("PATH")}, OutputDir: t.TempDir(),
	})
	// The grandchild is the one to look for: the fifo tells its id, and that it runs.
	fifo := filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no fifos: ", err)
	}
	script := `trap '' TERM INT HUP; sh -c 'trap \"\" TERM INT HUP; echo $$ > pid; while :; do sleep 1000; done' & wait`
	r := newRig(t, func(c *Config) {
		c.Tools, c.Mode = tools.NewRegistry(shell), policy.ModeYolo
	}, calls(call{"run_shell_command", "t1", `{"command":"` + script + `"}`}), says("next"))
	running, pid := make(chan struct{}), 0
	go func() {
		defer close(running)
		text, err := os.ReadFile(fifo)
		if err != nil {
			t.Error(err)
			return
		}
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}()
	got := interruptAt(t, r, running)
	if got[0].Terminal != AbortedTools || pid == 0 {
		t.Errorf("pid %d, result = %+v", pid, got[0])
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

func TestInterruptCanCancelWhatIsQueued(t *testing.T) {
	t.Parallel()
	streaming := make(chan struct{})
	r := newRig(t, nil, func(ctx context.Context, _ *model.Request, _ func(model.Delta)) error {
		close(streaming)
		<-ctx.Done()
		return context.Cause(ctx)
	}, says("never"))
	var cancelled []string
	var wg sync.WaitGroup
	wg.Go(func() {
		<-streaming
		_, cancelled = r.c.Interrupt(ErrInterrupted, true)
	})
	got := r.run(t.Context(), "a", "b", "c")
	wg.Wait()
	if len(got) != 1 || !cmp.Equal(cancelled, []string{"u-b", "u-c"}) {
		t.Errorf("cancelled %v, results = %+v", cancelled, got)
	}
}

func TestInterruptOfTheFirstTurnIsNotSpentOnAnAppendedLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("c"))
	r.c.Submit(Input{UUID: "a", AppendOnly: true, Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Submit(Input{UUID: "b", Blocks: []model.Block{model.Text{Text: "b"}}})
	queued, _ := r.c.Interrupt(ErrInterrupted, false)
	got := r.run(t.Context(), "c")
	if !cmp.Equal(queued, []string{"a"}) || len(got) != 2 || got[0].InputUUID != "b" || got[0].Terminal != AbortedStreaming || got[1].Text != "c" {
		t.Errorf("queued %v, results = %+v", queued, got)
	}
}

package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
)

//go:embed shell.md
var shellDescription string

// Defaults and bounds of run_shell_command.
const (
	DefaultShellTimeout = 2 * time.Minute
	MaxShellTimeout     = 10 * time.Minute
	DefaultShellOutput  = 30_000 // bytes

	// waitCheck is how often a silent command is asked whether it waits for
	// input; twice in a row is believed.
	waitCheck = 750 * time.Millisecond
	// earlyExit is how long a background command is watched for failing at once.
	earlyExit = 100 * time.Millisecond
)

// ShellConfig is what run_shell_command works with.
type ShellConfig struct {
	Runner sandbox.Runner // required
	Roots  *Roots         // where the directory of a command may lie; required
	Tasks  *Tasks         // owner of background commands; nil: there are none
	// Dir is the directory of commands that name none; empty: Roots.Dir().
	Dir string
	// Env is the agent's own environment. Commands get it without credentials
	// and without what makes shells run code; see shell_env.go. KeepEnv are the
	// names of variables that they get all the same.
	Env     []string
	KeepEnv []string
	// OutputDir takes the whole of outputs that are cut for the model, each
	// file at most 64 MB and all together at most 512 MB, oldest removed first.
	// It is made when first needed. Empty: what is cut is lost.
	OutputDir string
	// Names are those of tools in results; nil: ours.
	Names *Names
	// Zero values mean the defaults above. A timeout over MaxTimeout is cut
	// down to it.
	DefaultTimeout time.Duration
	MaxTimeout     time.Duration
	MaxOutput      int // bytes of output that go to the model
}

// NewShell returns run_shell_command.
func NewShell(c ShellConfig) Tool {
	if c.Dir == "" {
		c.Dir = c.Roots.Dir()
	}
	if c.MaxTimeout <= 0 {
		c.MaxTimeout = MaxShellTimeout
	}
	if c.DefaultTimeout <= 0 {
		c.DefaultTimeout = DefaultShellTimeout
	}
	c.DefaultTimeout = min(c.DefaultTimeout, c.MaxTimeout)
	if c.MaxOutput <= 0 {
		c.MaxOutput = DefaultShellOutput
	}
	t := &shellTool{
		cfg:   c,
		env:   shellEnv(c.Env, c.KeepEnv, findProgram(c.Env, "false")),
		store: newOutputStore(c.OutputDir),
	}
	t.argv = shellArgv(c.Env)
	background, params := backgroundHelp, shellBackground
	if c.Tasks == nil {
		background, params = "", ""
	}
	t.spec = Spec{
		Name: "run_shell_command",
		Description: strings.TrimSpace(strings.NewReplacer(
			"{{default_timeout}}", strconv.FormatInt(c.DefaultTimeout.Milliseconds(), 10),
			"{{max_timeout}}", strconv.FormatInt(c.MaxTimeout.Milliseconds(), 10),
			"{{max_output}}", strconv.Itoa(c.MaxOutput),
			"{{background}}", background,
		).Replace(shellDescription)),
		Schema:  schema(shellSchema + params + `},"required":["command"]}`),
		Class:   policy.ClassExec,
		Targets: []Target{{"directory", TargetWorkDir}}, input: reflect.TypeFor[shellInput](),
	}
	return t
}

const shellSchema = `{"type":"object","properties":{
"command":{"type":"string","description":"The bash command to run"},
"description":{"type":"string","description":"What it does, in 5 to 10 words, for the user"},
"directory":{"type":"string","description":"Directory to run it in, beneath the allowed directories; default: the working directory"},
"timeout":{"type":"integer","minimum":0,"description":"Milliseconds after which it is stopped"}`

// shellBackground and backgroundHelp are there where something can run in the
// background.
const (
	shellBackground = `,
"run_in_background":{"type":"boolean","description":"Return at once with a task id and let it run"}`
	backgroundHelp = "- Servers, watchers and other things that are to go on running: `run_in_background`. You get a task id at once; read the output with task_output, end it with task_stop.\n"
)

type shellInput struct {
	Command     string `json:"command" required:"true"`
	Description string `json:"description"`
	Directory   string `json:"directory" alias:"dir_path,cwd,workdir"`
	Timeout     int64  `json:"timeout" alias:"timeout_ms"`
	Background  bool   `json:"run_in_background" alias:"is_background,background"`
}

// ShellResult is the Display of run_shell_command, task_output and task_stop:
// the Messages dialects' shape of a Bash result and what is known besides.
// Stdout holds both streams in the order they were written, as the model sees
// them.
type ShellResult struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"`
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	BackgroundTaskID string `json:"backgroundTaskId,omitempty"`
	ExitCode         *int   `json:"exitCode,omitempty"` // nil: still running, or died of Signal
	Signal           string `json:"signal,omitempty"`
	TimedOut         bool   `json:"timedOut,omitempty"`
	DurationMS       int64  `json:"durationMs,omitempty"`
	OutputFile       string `json:"outputFile,omitempty"`
	Status           string `json:"status,omitempty"` // of a task: running, exited, stopped, timed out
}

type shellTool struct {
	cfg   ShellConfig
	spec  Spec
	argv  []string // the shell, up to the command
	env   []string
	store *outputStore
}

// Spec implements Tool.
func (t *shellTool) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *shellTool) Run(ctx context.Context, call *Call) Result {
	in, err := t.decode(call.Input)
	if err != nil {
		return failed(err)
	}
	dir, err := t.directory(in.Directory)
	if err != nil {
		return failed(err)
	}
	if in.Background {
		return t.background(ctx, in, dir, call.ID)
	}
	return t.foreground(ctx, in, dir, call)
}

func (t *shellTool) decode(raw json.RawMessage) (shellInput, error) {
	var in shellInput
	if err := t.spec.decode(raw, &in); err != nil {
		return in, err
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return in, errors.New("command is empty")
	case strings.ContainsRune(in.Command, 0):
		return in, errors.New("command contains a NUL byte")
	case in.Timeout < 0:
		return in, fmt.Errorf("timeout must be a positive number of milliseconds, got %d", in.Timeout)
	case in.Background && t.cfg.Tasks == nil:
		return in, errors.New("run_in_background is not available here: run the command in the foreground")
	}
	return in, nil
}

// directory returns where the command is to run.
func (t *shellTool) directory(named string) (string, error) {
	if named == "" {
		return t.cfg.Dir, nil
	}
	place, err := t.cfg.Roots.Resolve(named)
	if err != nil {
		return "", fmt.Errorf("directory: %w", err)
	}
	return place.Path, nil
}

// timeout returns the time the command has; 0 when none was asked for and it
// runs in the background.
func (t *shellTool) timeout(in shellInput) time.Duration {
	switch {
	case in.Timeout > t.cfg.MaxTimeout.Milliseconds():
		return t.cfg.MaxTimeout
	case in.Timeout > 0:
		return time.Duration(in.Timeout) * time.Millisecond
	case in.Background:
		return 0
	}
	return t.cfg.DefaultTimeout
}

// start starts the command with its output going to out.
func (t *shellTool) start(ctx context.Context, in shellInput, dir string, out *capture) (sandbox.Process, error) {
	argv := append(append([]string{}, t.argv...), in.Command)
	p, err := t.cfg.Runner.Start(ctx, sandbox.Command{
		Argv:    argv,
		Dir:     dir,
		Env:     setEnv(t.env, "PWD", dir),
		Stdout:  out,
		Stderr:  out,
		Profile: sandbox.ProfileNone,
	})
	if err != nil {
		return nil, fmt.Errorf("the command was not run: %w", err)
	}
	return p, nil
}

// foreground runs the command to its end.
func (t *shellTool) foreground(ctx context.Context, in shellInput, dir string, call *Call) Result {
	out := newCapture(t.store, t.cfg.MaxOutput, call.Progress)
	defer out.close()
	p, err := t.start(ctx, in, dir, out)
	if err != nil {
		return failed(err)
	}
	end := watch(p, out, t.timeout(in))
	end.interrupted = ctx.Err() != nil && !end.timedOut && !end.waiting
	end.maxTimeout, end.background = t.cfg.MaxTimeout, t.cfg.Tasks != nil
	return end.result(out)
}

// ending says how a command came to its end.
type ending struct {
	exit        sandbox.Exit
	timeout     time.Duration
	maxTimeout  time.Duration
	background  bool // the model could have run it there
	timedOut    bool
	waiting     bool
	interrupted bool
}

// watch waits for the end of p, and brings it about when time is up or p waits
// for somebody to type.
func watch(p sandbox.Process, out *capture, timeout time.Duration) ending {
	end := ending{timeout: timeout}
	done := make(chan sandbox.Exit, 1)
	go func() { done <- p.Wait() }() // received below in every case
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	tick := time.NewTicker(waitCheck)
	defer tick.Stop()
	suspicion, size := 0, int64(-1)
	for {
		select {
		case end.exit = <-done:
			return end
		case <-timer.C:
			end.timedOut = true
		case <-tick.C:
			before := size
			if size = out.size(); size != before || !p.WaitingForInput() {
				suspicion = 0
				continue
			}
			if suspicion++; suspicion < 2 {
				continue
			}
			end.waiting = true
		}
		p.Stop()
		end.exit = <-done
		return end
	}
}

// result puts the end of a command in words for the model.
func (e ending) result(out *capture) Result {
	out.close()
	text, path := out.text()
	d := &ShellResult{
		Stdout:      text,
		Interrupted: e.interrupted || e.timedOut || e.waiting,
		TimedOut:    e.timedOut,
		Signal:      e.exit.Signal,
		DurationMS:  e.exit.Duration.Milliseconds(),
		OutputFile:  path,
	}
	if e.exit.Code >= 0 {
		d.ExitCode = &e.exit.Code
	}
	res := Text(withNotes(text, e.notes(text)))
	res.IsError = e.exit.Code != 0 || d.Interrupted
	res.Display = d
	return res
}

// withNotes joins output and what we have to say about it.
func withNotes(text string, notes []string) string {
	text = strings.TrimRight(text, "\n")
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	if len(notes) == 0 {
		return text
	}
	return text + "\n[" + strings.Join(notes, "]\n[") + "]"
}

// notes says everything about the end that is not plain success.
func (e ending) notes(output string) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case e.timedOut:
		add("timed out after %s: the command was stopped, with everything it started. If it needs longer, give a larger timeout (at most %d ms)%s", e.timeout, e.maxTimeout.Milliseconds(), e.hint("; if it is meant to go on running (a server, a watcher), use run_in_background"))
	case e.waiting:
		add("stopped after %s: it was waiting for somebody to type at a terminal, and nobody can. %s", e.exit.Duration.Round(100*time.Millisecond), noninteractive)
	case e.interrupted:
		add("interrupted: the command was stopped before it ended, with everything it started; the output is what it wrote until then")
	case e.exit.Signal != "":
		add("killed by %s", e.exit.Signal)
	case e.exit.Code > 0:
		add("exit code %d", e.exit.Code)
		if wantedInput(output) {
			add("it seems to have wanted input or a terminal; there is none. %s", noninteractive)
		}
	case e.exit.Code < 0:
		add("it ended, but not known how")
	}
	if n := e.exit.Leftovers; n > 0 {
		add("%d process(es) that it left running were stopped%s", n, e.hint("; use run_in_background for what is to go on running"))
	}
	if n := e.exit.Survivors; n > 0 {
		add("%d of its processes could not be stopped and may still be running", n)
	}
	return notes
}

// hint is a text about running in the background, where that can be done.
func (e ending) hint(text string) string {
	if !e.background {
		return ""
	}
	return text
}

const noninteractive = "Run it in a form that asks nothing (flags such as -y, --yes, --no-edit, -m, --batch), or give the answers with a here-document, a file or a variable"

// inputSigns are what programs say when they wanted a person and had none.
var inputSigns = []string{
	"eoferror", "eof when reading", "not a terminal", "not a tty", "no tty", "is not from a terminal", "terminal is required", "terminal prompts disabled",
	"/dev/tty", "host key verification failed", "error opening terminal", "failed tty", "no editor: nobody can type",
	"passphrase", "password", "cannot read from stdin", "end of file on stdin", "inappropriate ioctl",
}

// wantedInput guesses from its last words whether a failed command wanted input.
func wantedInput(output string) bool {
	output = strings.ToLower(output[max(0, len(output)-2000):])
	for _, sign := range inputSigns {
		if strings.Contains(output, sign) {
			return true
		}
	}
	return false
}

// background starts the command as a task.
func (t *shellTool) background(ctx context.Context, in shellInput, dir, callID string) Result {
	out := newCapture(t.store, t.cfg.MaxOutput, nil)
	out.fresh = &headTail{max: out.view.max}
	timeout := t.timeout(in)
	head := TaskInfo{Kind: TaskCommand, ToolUseID: callID, Command: in.Command, Description: in.Description}
	task, err := t.cfg.Tasks.start(ctx, &task{head: head, timeout: timeout}, func() (taskWork, error) {
		// The task outlives the call: it ends by itself, by task_stop, or with
		// its owner.
		p, err := t.start(context.WithoutCancel(ctx), in, dir, out)
		return &command{process: p, out: out}, err
	})
	if err != nil {
		out.close()
		return failed(err)
	}
	task.wait(ctx, earlyExit)
	if task.info().Status != TaskRunning {
		return task.report()
	}
	note := fmt.Sprintf("%s: running in the background. Read its output with %s, end it with %s", task.id, t.cfg.Names.Tool("task_output"), t.cfg.Names.Tool("task_stop"))
	if timeout > 0 {
		note += fmt.Sprintf("; it is stopped after %s", timeout)
	}
	res := Text("[" + note + "]")
	res.Display = &ShellResult{BackgroundTaskID: task.id, Status: string(TaskRunning)}
	return res
}

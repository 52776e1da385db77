package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
)

const (
	checkerTime   = 5 * time.Second        // all that a checker has, its start included
	checkerGrace  = 100 * time.Millisecond // between SIGTERM and SIGKILL
	checkerOutput = 64 << 10               // bytes of an answer
	checkerNotes  = 8 << 10                // bytes of its stderr that are logged
)

var errOversized = errors.New("the output is too large")

// checkers run the safety checkers of policy files that are programs of their
// own. They get the call on stdin and say on stdout what they think of it, in
// gemini-cli's protocol 1.0.0, with our names of the tools. Whatever goes wrong
// with one is a denial.
type checkers struct {
	runner sandbox.Runner
	env    []string // of the programs: the user's own, like theirs
	// history is what was said so far where the call is made, by ctx; nil: it
	// isn't known
	history func(ctx context.Context) []*model.Message
	log     *slog.Logger
	limit   time.Duration // 0 means checkerTime
}

// judge asks one checker about a call. When it returns, the whole process tree
// of a program is gone. It may be called from several goroutines.
func (k *checkers) judge(ctx context.Context, c *policy.Checker, f policy.Facts) (policy.Behavior, string) {
	if !c.Program {
		return c.Judge(f)
	}
	answer, err := k.ask(ctx, c, f)
	if err != nil {
		return policy.Deny, policy.Visible(fmt.Sprintf("the safety checker %s gave no answer: %v", c.Name, err))
	}
	return answer.behavior, policy.Visible(answer.reason)
}

func (k *checkers) ask(ctx context.Context, c *policy.Checker, f policy.Facts) (checkerAnswer, error) {
	question, err := k.question(ctx, c, f)
	if err != nil {
		return checkerAnswer{}, err
	}
	out, err := k.run(ctx, c.Name, f.Cwd, question)
	if err != nil {
		return checkerAnswer{}, err
	}
	return readAnswer(out)
}

// run runs a program to its end and returns its output.
func (k *checkers) run(ctx context.Context, program, dir string, stdin []byte) ([]byte, error) {
	limit := k.limit
	if limit == 0 {
		limit = checkerTime
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(limit, func() { cancel(fmt.Errorf("it took longer than %s", limit)) })
	defer late.Stop()
	out := &boundedOutput{max: checkerOutput, full: func() { cancel(errOversized) }}
	notes := &boundedOutput{max: checkerNotes}
	p, err := k.runner.Start(ctx, sandbox.Command{
		Argv: []string{program}, Dir: dir, Env: k.env, Stdin: stdin, Stdout: out, Stderr: notes, Grace: checkerGrace,
	})
	if err != nil {
		return nil, err
	}
	exit := p.Wait()
	k.log.Debug("safety checker", "program", program, "exit", exit.Code, "signal", exit.Signal,
		"duration", exit.Duration, "leftovers", exit.Leftovers, "survivors", exit.Survivors, "stderr", notes.String())
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case exit.Signal != "":
		return nil, fmt.Errorf("it died of %s", exit.Signal)
	case exit.Code != 0:
		return nil, fmt.Errorf("it exited with code %d", exit.Code)
	}
	return out.Bytes(), nil
}

// boundedOutput keeps the first max bytes, throws the rest away, and says once
// that there is more.
type boundedOutput struct {
	bytes.Buffer
	max  int
	full func() // nil: nobody wants to know
}

func (b *boundedOutput) Write(p []byte) (int, error) {
	keep := min(len(p), b.max-b.Len())
	_, _ = b.Buffer.Write(p[:keep]) // never fails
	if keep < len(p) && b.full != nil {
		b.full()
		b.full = nil
	}
	return len(p), nil
}

// checkerQuestion is what a checker reads.
type checkerQuestion struct {
	ProtocolVersion string         `json:"protocolVersion"`
	ToolCall        checkerCall    `json:"toolCall"`
	Context         checkerContext `json:"context"`
	Config          map[string]any `json:"config,omitempty"`
}

type checkerCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type checkerContext struct {
	Environment *checkerEnvironment `json:"environment,omitempty"`
	History     *checkerHistory     `json:"history,omitempty"`
}

type checkerEnvironment struct {
	Cwd        string   `json:"cwd"`
	Workspaces []string `json:"workspaces"`
}

type checkerHistory struct {
	Turns []checkerTurn `json:"turns"`
}

type checkerTurn struct {
	User  checkerWords `json:"user"`
	Model checkerWords `json:"model"`
}

type checkerWords struct {
	Text  string        `json:"text"`
	Calls []checkerCall `json:"toolCalls,omitempty"`
}

// question writes what a checker is told. One that doesn't say what it needs is
// told all there is.
func (k *checkers) question(ctx context.Context, c *policy.Checker, f policy.Facts) ([]byte, error) {
	q := checkerQuestion{ProtocolVersion: "1.0.0", ToolCall: checkerCall{f.Tool, f.Input}, Config: c.Config}
	wants := func(what string) bool { return len(c.Context) == 0 || slices.Contains(c.Context, what) }
	if wants("environment") {
		q.Context.Environment = &checkerEnvironment{Cwd: f.Cwd, Workspaces: f.Roots}
		if len(f.Roots) == 0 {
			q.Context.Environment.Workspaces = []string{f.Cwd}
		}
	}
	switch {
	case wants("history") && k.history != nil:
		q.Context.History = &checkerHistory{Turns: checkerTurns(k.history(ctx))}
	case slices.Contains(c.Context, "history"):
		return nil, errors.New("it needs the history, which isn't known here")
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("the call can't be written as JSON: %w", err)
	}
	return raw, nil
}

// checkerTurns pairs what the user said with what the model answered. Results
// of tools are left out: they are not words of either.
func checkerTurns(history []*model.Message) []checkerTurn {
	turns := []checkerTurn{}
	answered := true
	for _, m := range history {
		words := checkerWordsOf(m)
		switch {
		case m.Role == model.RoleUser:
			turns, answered = append(turns, checkerTurn{User: words}), false
		case answered:
			turns = append(turns, checkerTurn{Model: words})
		default:
			turns[len(turns)-1].Model, answered = words, true
		}
	}
	return turns
}

func checkerWordsOf(m *model.Message) checkerWords {
	var w checkerWords
	var texts []string
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case model.Text:
			texts = append(texts, b.Text)
		case model.ToolUse:
			w.Calls = append(w.Calls, checkerCall{b.Name, b.Input})
		}
	}
	w.Text = strings.Join(texts, "\n")
	return w
}

type checkerAnswer struct {
	behavior policy.Behavior
	reason   string
}

// readAnswer reads what a checker printed: one JSON object and nothing else. A
// key that comes twice is refused, for nobody can tell which one was meant.
func readAnswer(out []byte) (checkerAnswer, error) {
	var a struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if err := jsonv2.Unmarshal(bytes.TrimSpace(out), &a); err != nil {
		return checkerAnswer{}, fmt.Errorf("its output is no answer: %w", err)
	}
	b, known := map[string]policy.Behavior{"allow": policy.Allow, "deny": policy.Deny, "ask_user": policy.Ask}[a.Decision]
	switch {
	case !known:
		return checkerAnswer{}, fmt.Errorf("its decision is %q: it must be allow, deny or ask_user", a.Decision)
	case b != policy.Allow && a.Reason == "":
		return checkerAnswer{}, fmt.Errorf("it says %s and gives no reason", a.Decision)
	}
	return checkerAnswer{b, a.Reason}, nil
}

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// runChat talks with a person line by line: answers are printed as they come,
// tool calls are shown, and what needs permission is asked.
func runChat(ctx context.Context, cio IO, o *options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &chat{out: cio.Out, lines: newLines(cio.In), signals: cio.Signals}
	w, err := newWiring(ctx, cio, o, c)
	if err != nil {
		return err
	}
	defer w.close()
	conv, err := w.conversation()
	if err != nil {
		return err
	}
	var worker sync.WaitGroup
	turns := make(chan agent.Result)
	worker.Go(func() { // ends once the input is closed below
		defer close(turns)
		conv.Run(ctx, func(_ context.Context, _ agent.Origin, e agent.Event) { c.show(e, turns) })
	})
	fmt.Fprintf(cio.Out, "agent %s, model %s, mode %s. Ctrl-D or /quit ends, Ctrl-C stops a turn.\n", version.Own, w.modelName(), conv.Mode())
	c.talk(conv, turns, strings.Join(o.args, " "))
	conv.CloseInput()
	cancel(agent.ErrStopped)
	for range turns { // let the last turn say its end
	}
	worker.Wait()
	return nil
}

// chat is a line-by-line conversation on a terminal.
type chat struct {
	out     io.Writer
	lines   *lines
	signals <-chan os.Signal

	asking sync.Mutex // one question at a time
	column bool       // text was printed since the last newline
}

// talk sends the person's lines one after the other until they have enough.
func (c *chat) talk(conv *agent.Conversation, turns <-chan agent.Result, first string) {
	for line := first; ; line = "" {
		if line == "" {
			var ok bool
			if line, ok = c.read("\n> "); !ok {
				return
			}
		}
		switch line = strings.TrimSpace(line); line {
		case "":
			continue
		case "/quit", "/exit":
			return
		}
		conv.Submit(agent.Input{Blocks: []model.Block{model.Text{Text: line}}})
		if !c.wait(conv, turns) {
			return
		}
	}
}

// wait waits for the turn; Ctrl-C ends it, twice ends the chat.
func (c *chat) wait(conv *agent.Conversation, turns <-chan agent.Result) bool {
	interrupted := false
	for {
		select {
		case _, ok := <-turns:
			return ok
		case s := <-c.signals:
			if s != os.Interrupt || interrupted {
				return false
			}
			interrupted = true
			conv.Interrupt(agent.ErrInterrupted, false)
		}
	}
}

// read prompts for a line. It reports false at the end of the input, on Ctrl-C
// and on SIGTERM.
func (c *chat) read(prompt string) (string, bool) {
	fmt.Fprint(c.out, prompt)
	select {
	case line, ok := <-c.lines.next():
		if !ok {
			fmt.Fprintln(c.out)
		}
		return line, ok
	case <-c.signals:
		fmt.Fprintln(c.out)
		return "", false
	}
}

// show prints what e means to a person.
func (c *chat) show(e agent.Event, turns chan<- agent.Result) {
	switch e := e.(type) {
	case *agent.BlockDelta:
		if e.Kind == model.DeltaText {
			c.print(e.Text)
		}
	case *agent.BlockEnded:
		c.newline()
		if use, ok := e.Block.(model.ToolUse); ok {
			c.print(fmt.Sprintf("* %s %s\n", use.Name, visible(summary(use.Input), 200)))
		}
	case *agent.MessageStarted:
		if len(e.Supersedes) > 0 {
			c.print("[the answer broke off; asking again]\n")
		}
	case *agent.RequestRetried:
		c.print(fmt.Sprintf("[%v; trying again in %s]\n", e.Info.Err, e.Info.Delay.Round(100e6)))
	case *agent.ToolEnded:
		c.print(resultLine(e))
	case *agent.TurnEnded:
		c.newline()
		if r := e.Result; r.IsError {
			c.print("error: " + visible(resultProblem(r), 2000) + "\n")
		} else if errors.Is(r.Err, agent.ErrInterrupted) {
			c.print("[stopped]\n")
		}
		turns <- e.Result
	}
}

func resultProblem(r agent.Result) string {
	if r.APIError != nil {
		return r.APIError.Error()
	}
	return strings.Join(r.Errors, "; ")
}

// resultLine is the first line of a tool's result.
func resultLine(e *agent.ToolEnded) string {
	mark := "  "
	if e.Result.IsError {
		mark = "! "
	}
	text := ""
	for _, b := range e.Result.Blocks {
		if t, ok := b.(model.Text); ok {
			text = t.Text
			break
		}
	}
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	line := mark + visible(first, 160)
	if more {
		line += fmt.Sprintf(" (+%d lines)", strings.Count(rest, "\n")+1)
	}
	return line + "\n"
}

// summary is an input as a person reads it: the one string that matters, else
// the JSON.
func summary(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) == nil {
		for _, key := range []string{"command", "file_path", "pattern", "path", "url"} {
			if s, ok := fields[key].(string); ok {
				return s
			}
		}
	}
	return string(input)
}

// print writes text whose control characters are made harmless; newlines and
// tabs stay.
func (c *chat) print(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(c.out, harmless(text))
	c.column = !strings.HasSuffix(text, "\n")
}

func (c *chat) newline() {
	if c.column {
		c.print("\n")
	}
}

// Ask implements policy.Asker: the person says y or n.
func (c *chat) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	switch q := q.(type) {
	case policy.ToolPermission:
		return c.askPermission(ctx, q)
	case policy.AskUser:
		return c.askUser(ctx, q)
	}
	return policy.Answer{}, fmt.Errorf("question %T: %w", q, policy.ErrNoUser)
}

func (c *chat) askPermission(ctx context.Context, q policy.ToolPermission) (policy.Answer, error) {
	c.newline()
	c.print(fmt.Sprintf("%s wants to run:\n%s\n  (it asks because: %s)\n", policy.Visible(q.ToolName), policy.Visible(indented(q.Input)), q.Reason))
	prompt := "Allow it? [y/n] "
	if q.Always != nil {
		c.print(fmt.Sprintf("  s: also for the rest of this session; a: always in this project, by the rule %s\n", policy.Visible(q.Always.Text)))
		prompt = "Allow it? [y/n/s/a] "
	}
	for {
		line, err := c.answer(ctx, prompt)
		if err != nil {
			return policy.Answer{}, err
		}
		allow := q.Allow()
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return allow, nil
		case "n", "no":
			return policy.Answer{}, nil
		case "s", "session":
			allow.Remember = policy.ScopeSession
		case "a", "always":
			allow.Remember = policy.ScopeLocal
		}
		if q.Always != nil && allow.Remember != policy.ScopeOnce {
			return allow, nil
		}
	}
}

func (c *chat) askUser(ctx context.Context, q policy.AskUser) (policy.Answer, error) {
	ans := policy.Answer{Allow: true, Answers: map[string]string{}}
	for _, one := range q.Questions {
		c.newline()
		c.print(visible(one.Question, 4000) + "\n")
		for i, opt := range one.Options {
			c.print(fmt.Sprintf("  %d) %s  %s\n", i+1, visible(opt.Label, 200), visible(opt.Description, 400)))
		}
		line, err := c.answer(ctx, "Your answer: ")
		if err != nil {
			return policy.Answer{}, err
		}
		ans.Answers[one.Question] = choice(strings.TrimSpace(line), one.Options)
	}
	return ans, nil
}

// choice turns a number into the label that it stands for.
func choice(line string, options []policy.UserOption) string {
	for i, opt := range options {
		if line == fmt.Sprint(i+1) {
			return opt.Label
		}
	}
	return line
}

// answer reads one line while ctx lives.
func (c *chat) answer(ctx context.Context, prompt string) (string, error) {
	c.print(prompt)
	select {
	case line, ok := <-c.lines.next():
		c.column = false
		if !ok {
			return "", policy.ErrNoUser
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func indented(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return string(input)
	}
	var sb strings.Builder
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		v := fields[k]
		s, ok := v.(string)
		if !ok {
			raw, _ := json.Marshal(v) // came from JSON
			s = string(raw)
		}
		fmt.Fprintf(&sb, "  %s: %s\n", k, strings.ReplaceAll(s, "\n", "\n    "))
	}
	return strings.TrimSuffix(sb.String(), "\n")
}

// lines hands out lines of a terminal as they are asked for.
type lines struct {
	src   io.Reader
	out   chan string
	start sync.Once
}

func newLines(src io.Reader) *lines { return &lines{src: src, out: make(chan string)} }

// next returns the channel of lines; it is closed at the end of the input. The
// reading goroutine ends with the input: for a terminal with the process.
func (l *lines) next() <-chan string {
	l.start.Do(func() {
		go func() {
			defer close(l.out)
			sc := bufio.NewScanner(l.src)
			sc.Buffer(nil, 16<<20)
			for sc.Scan() {
				l.out <- sc.Text()
			}
		}()
	})
	return l.out
}

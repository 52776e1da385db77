package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// hookLog notes what hooks were told.
type hookLog struct {
	mu     sync.Mutex
	inputs []map[string]any
}

func (l *hookLog) add(t *testing.T, input json.RawMessage) {
	var m map[string]any
	if err := json.Unmarshal(input, &m); err != nil {
		t.Errorf("input %s: %v", input, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inputs = append(l.inputs, m)
}

// names returns the events in the order they came.
func (l *hookLog) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, in := range l.inputs {
		out = append(out, in["hook_event_name"].(string))
	}
	return out
}

// of returns what the hooks of an event were told, one after the other.
func (l *hookLog) of(event hooks.Event) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for _, in := range l.inputs {
		if in["hook_event_name"] == string(event) {
			out = append(out, in)
		}
	}
	return out
}

// answers is a hook's output by event; each may be several, used up in order.
type answers map[hooks.Event][]string

// withHooks makes a Config with a hook for each event that fires, which answers
// as said and otherwise has no opinion.
func withHooks(t *testing.T, say answers, change func(*Config)) (*hookLog, func(*Config)) {
	t.Helper()
	log := &hookLog{}
	var mu sync.Mutex
	r := hooks.New(nil, nil)
	for _, e := range []hooks.Event{
		hooks.PreToolUse, hooks.PostToolUse, hooks.PostToolUseFailure, hooks.UserPromptSubmit, hooks.SessionStart, hooks.SessionEnd,
		hooks.Stop, hooks.SubagentStart, hooks.SubagentStop, hooks.Notification, hooks.PermissionRequest,
	} {
		err := r.Register(hooks.Registration{Event: e, Func: func(_ context.Context, in json.RawMessage, _ string) (json.RawMessage, error) {
			log.add(t, in)
			mu.Lock()
			defer mu.Unlock()
			if len(say[e]) == 0 {
				return nil, nil
			}
			out := say[e][0]
			if len(say[e]) > 1 {
				say[e] = say[e][1:]
			}
			if out == "fail" {
				return nil, errors.New("it broke")
			}
			return json.RawMessage(out), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return log, func(c *Config) {
		c.Hooks = r
		if change != nil {
			change(c)
		}
	}
}

func specific(fields string) string { return `{"hookSpecificOutput":{` + fields + `}}` }

// historyText is all that the model sees of message i.
func (r *rig) historyText(i int) string {
	if i >= len(r.c.history) {
		return ""
	}
	return textOf(r.c.history[i].Blocks)
}

func yes(_ context.Context, q policy.Question) (policy.Answer, error) {
	return q.(policy.ToolPermission).Allow(), nil
}

func TestHooksFireInOrder(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{}, func(c *Config) { c.TranscriptPath, c.Facts.Cwd = "/t.jsonl", "/w" })
	r := newRig(t, cfg, calls(call{"look", "t1", `{"a":1}`}), says("done"), says("again"))
	r.run(t.Context(), "hi", "more")
	want := []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "Stop", "SessionEnd"}
	if diff := cmp.Diff(want, log.names()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	post := log.of(hooks.PostToolUse)[0]
	for key, want := range map[string]any{
		"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/w", "permission_mode": "default", "prompt_id": "u-hi",
		"tool_name": "look", "tool_use_id": "t1", "tool_response": `look{"a":1}`,
	} {
		if post[key] != want {
			t.Errorf("%s = %v, want %v", key, post[key], want)
		}
	}
	if got := log.of(hooks.SessionStart)[0]["source"]; got != "startup" {
		t.Errorf("source = %v", got)
	}
	if stop := log.of(hooks.Stop)[0]; stop["last_assistant_message"] != "done" || stop["stop_hook_active"] != false {
		t.Errorf("stop = %v", stop)
	}
	if got := log.of(hooks.UserPromptSubmit)[1]["prompt"]; got != "more" {
		t.Errorf("prompt = %v", got)
	}
}

func TestHooksUseTheNamesOfTheDialect(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{}, func(c *Config) {
		c.Tools = tools.NewRegistry(echo("read_file", policy.ClassRead))
		c.Names, c.Mode = tools.NewNames("claude"), policy.ModeAutoEdit
	})
	r := newRig(t, cfg, calls(call{"read_file", "t1", `{"file_path":"a"}`}), says("done"))
	r.run(t.Context(), "hi")
	if pre := log.of(hooks.PreToolUse)[0]; pre["tool_name"] != "Read" || pre["permission_mode"] != "acceptEdits" {
		t.Errorf("input = %v", pre)
	}
}

func TestSubagentsHaveHooksOfTheirOwn(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{
		hooks.SubagentStart: {specific(`"additionalContext":"mind the gap"`)},
		hooks.SubagentStop:  {`{"decision":"block","reason":"look again"}`, ""},
	}, func(c *Config) {
		c.Origin = Origin{AgentID: "a1", AgentType: "reviewer", ParentToolUseID: "t0"}
		c.AgentTranscriptPath = "/sub.jsonl"
	})
	r := newRig(t, cfg, says("done"), says("really"))
	res := r.run(t.Context(), "hi")[0]
	if diff := cmp.Diff([]string{"SubagentStart", "SubagentStop", "SubagentStop"}, log.names()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	stop := log.of(hooks.SubagentStop)
	if stop[0]["agent_id"] != "a1" || stop[0]["agent_type"] != "reviewer" || stop[0]["agent_transcript_path"] != "/sub.jsonl" ||
		stop[0]["stop_hook_active"] != false || stop[1]["stop_hook_active"] != true {
		t.Errorf("stop = %v", stop)
	}
	if !strings.Contains(r.historyText(0), "mind the gap") || res.Text != "really" {
		t.Errorf("prompt %q, result %+v", r.historyText(0), res)
	}
}

func TestContextOfHooksReachesTheModel(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{
		hooks.SessionStart:     {specific(`"additionalContext":"from the start"`)},
		hooks.UserPromptSubmit: {specific(`"additionalContext":"about the prompt"`)},
		hooks.PreToolUse:       {specific(`"additionalContext":"before the call"`)},
		hooks.PostToolUse:      {specific(`"additionalContext":"after the call"`)},
	}, nil)
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
	r.run(t.Context(), "hi")
	prompt, results := r.historyText(0), r.historyText(2)
	if !strings.HasPrefix(prompt, "hi<hook-context>") || !inOrder(prompt, "from the start", "about the prompt") {
		t.Errorf("prompt = %q", prompt)
	}
	if !inOrder(results, "look{}", "before the call", "after the call") {
		t.Errorf("results = %q", results)
	}
	if last := r.trans.entries[len(r.trans.entries)-2]; !strings.Contains(textOf(last.Message.Blocks), "after the call") {
		t.Errorf("the transcript lacks the context: %q", textOf(last.Message.Blocks))
	}
	checkHistory(t, r.c.history)
}

func inOrder(s string, parts ...string) bool {
	for _, p := range parts {
		_, rest, ok := strings.Cut(s, p)
		if !ok {
			return false
		}
		s = rest
	}
	return true
}

func TestADroppedPromptLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for _, say := range []string{`{"decision":"block","reason":"no secrets"}`, "fail"} {
		_, cfg := withHooks(t, answers{hooks.UserPromptSubmit: {say, ""}}, nil)
		r := newRig(t, cfg, says("fine"))
		got := r.run(t.Context(), "hi", "again")
		if got[0].IsError || got[0].Subtype != Success || got[0].Terminal != HookStopped || got[0].ModelCalls != 0 {
			t.Errorf("%s: result = %+v", say, got[0])
		}
		if !strings.Contains(got[0].Text, "no secrets") && !strings.Contains(got[0].Text, "it broke") {
			t.Errorf("%s: the result doesn't say why: %q", say, got[0].Text)
		}
		if got[1].Text != "fine" || r.historyText(0) != "again" {
			t.Errorf("%s: history begins with %q", say, r.historyText(0))
		}
	}
}

func TestAHookEndsTheTurn(t *testing.T) {
	t.Parallel()
	stop := `{"continue":false,"stopReason":"enough"}`
	tests := []struct {
		event    hooks.Event
		terminal Terminal
		text     string
		asked    int // of the model
		ran      int
	}{
		{hooks.SessionStart, HookStopped, "enough", 0, 0},
		{hooks.UserPromptSubmit, HookStopped, "enough", 0, 0},
		{hooks.PreToolUse, HookStopped, "enough", 1, 0},
		{hooks.PostToolUse, HookStopped, "enough", 1, 1},
		{hooks.Stop, StopHookPrevented, "done", 2, 2},
	}
	for _, tt := range tests {
		t.Run(string(tt.event), func(t *testing.T) {
			t.Parallel()
			ran := 0
			write := fakeTool{"change", policy.ClassEdit, func(context.Context, *tools.Call) tools.Result {
				ran++
				return tools.Text("ok")
			}}
			_, cfg := withHooks(t, answers{tt.event: {stop}}, func(c *Config) {
				c.Mode, c.Tools = policy.ModeYolo, tools.NewRegistry(write)
			})
			r := newRig(t, cfg, calls(call{"change", "t1", `{}`}, call{"change", "t2", `{}`}), says("done"))
			res := r.run(t.Context(), "hi")[0]
			if res.Terminal != tt.terminal || res.Text != tt.text || res.IsError || res.Subtype != Success {
				t.Errorf("result = %+v", res)
			}
			if len(r.model.requests) != tt.asked || ran != tt.ran {
				t.Errorf("asked %d times, ran %d calls; want %d, %d", len(r.model.requests), ran, tt.asked, tt.ran)
			}
			checkHistory(t, r.c.history)
		})
	}
}

func TestStopHooksMakeTheTurnGoOn(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{hooks.Stop: {`{"decision":"block","reason":"run the tests"}`, "{}"}}, nil)
	r := newRig(t, cfg, says("done"), says("tested"))
	res := r.run(t.Context(), "hi")[0]
	if res.Text != "tested" || res.Terminal != Completed || r.historyText(2) != "run the tests" {
		t.Errorf("result = %+v; the model was told %q", res, r.historyText(2))
	}
	stops := log.of(hooks.Stop)
	if len(stops) != 2 || stops[0]["stop_hook_active"] != false || stops[1]["stop_hook_active"] != true {
		t.Errorf("stop hooks were told %v", stops)
	}
	if !slices.Contains(r.story(), "Noted") {
		t.Errorf("story = %q", r.story())
	}
}

func TestStopHooksDoNotHoldATurnForEver(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{hooks.Stop: {`{"decision":"block","reason":"more"}`}}, nil)
	var replies []reply
	for range maxPushes + 1 {
		replies = append(replies, says("done"))
	}
	r := newRig(t, cfg, replies...)
	res := r.run(t.Context(), "hi")[0]
	if res.Terminal != Completed || res.ModelCalls != maxPushes+1 {
		t.Errorf("result = %+v", res)
	}
	if text := r.messages(); !strings.Contains(text, "10 times") {
		t.Errorf("the user was told %q", text)
	}
}

// messages is what hooks told the user.
func (r *rig) messages() string {
	var out []string
	for _, e := range r.events {
		if m, ok := e.(*HookMessage); ok {
			out = append(out, m.Event+": "+m.Text)
		}
	}
	return strings.Join(out, "\n")
}

func TestSystemMessagesAndHookEvents(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		_, cfg := withHooks(t, answers{hooks.PreToolUse: {`{"systemMessage":"careful"}`}, hooks.Stop: {"fail"}}, func(c *Config) { c.HookEvents = shown })
		r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
		r.run(t.Context(), "hi")
		if got := r.messages(); got != "PreToolUse: careful" {
			t.Errorf("messages = %q", got)
		}
		var got []string
		for _, e := range r.events {
			if h, ok := e.(*HookEnded); ok {
				got = append(got, h.Name+" "+h.Outcome+" "+string(h.Output))
			}
		}
		var want []string
		if shown {
			want = []string{"SessionStart:startup success ", "UserPromptSubmit success ", `PreToolUse:look success {"systemMessage":"careful"}`,
				"PostToolUse:look success ", "Stop error ", "SessionEnd:other success "}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hook events (-want +got):\n%s", diff)
		}
	}
}

func TestAQuestionToTheUserIsNotified(t *testing.T) {
	t.Parallel()
	told := make(chan struct{})
	runner := hooks.New(nil, nil)
	var got map[string]any
	_ = runner.Register(hooks.Registration{Event: hooks.Notification, Func: func(_ context.Context, in json.RawMessage, _ string) (json.RawMessage, error) {
		defer close(told)
		return nil, json.Unmarshal(in, &got)
	}})
	r := newRig(t, func(c *Config) {
		c.Hooks, c.Facts.Interactive = runner, true
		c.Asker = askFunc(func(ctx context.Context, q policy.Question) (policy.Answer, error) {
			<-told // the hooks run beside the question
			return yes(ctx, q)
		})
	}, calls(call{"change", "t1", `{}`}), says("done"))
	r.run(t.Context(), "hi")
	if got["notification_type"] != "permission_prompt" || !strings.Contains(got["message"].(string), "change") {
		t.Errorf("hooks were told %v", got)
	}
}

func TestIdlenessIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	runner := hooks.New(nil, nil)
	_ = runner.Register(hooks.Registration{Event: hooks.Notification, Func: func(_ context.Context, in json.RawMessage, _ string) (json.RawMessage, error) {
		told <- string(in)
		return nil, nil
	}})
	r := newRig(t, func(c *Config) { c.Hooks = runner }, says("done"))
	r.c.hooking.idle = time.Millisecond
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "hi"}}})
	go func() {
		if in := <-told; !strings.Contains(in, "idle_prompt") {
			t.Errorf("input = %s", in)
		}
		r.c.CloseInput()
	}()
	r.c.Run(t.Context(), r.take)
	if len(told) > 0 {
		t.Error("told more than once")
	}
}

func TestInterruptEndsAHookThatHangs(t *testing.T) {
	t.Parallel()
	for _, e := range []hooks.Event{hooks.SessionStart, hooks.UserPromptSubmit, hooks.PreToolUse, hooks.PostToolUse, hooks.Stop} {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			hanging := make(chan struct{})
			runner := hooks.New(nil, nil)
			_ = runner.Register(hooks.Registration{Event: e, Func: func(ctx context.Context, _ json.RawMessage, _ string) (json.RawMessage, error) {
				close(hanging)
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			r := newRig(t, func(c *Config) { c.Hooks = runner }, calls(call{"look", "t1", `{}`}), says("done"))
			go func() {
				<-hanging
				r.c.Interrupt(ErrInterrupted, false)
			}()
			res := r.run(t.Context(), "hi")[0]
			if !errors.Is(res.Err, ErrInterrupted) || res.IsError {
				t.Errorf("result = %+v", res)
			}
			checkHistory(t, r.c.history)
		})
	}
}

func TestAnEmptiedConversationStartsAnew(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{}, nil)
	r := newRig(t, cfg, says("one"), says("two"))
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "hi"}}})
	r.c.Clear()
	r.run(t.Context(), "again")
	want := []string{"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
	if diff := cmp.Diff(want, log.names()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	start, end := log.of(hooks.SessionStart), log.of(hooks.SessionEnd)
	if end[0]["reason"] != "clear" || end[0]["session_id"] != "s" || start[1]["source"] != "clear" || start[1]["session_id"] == "s" || end[1]["reason"] != "other" {
		t.Errorf("ends %v, starts %v", end, start)
	}
}

func TestWhatIsNoPromptOfTheUserHasNoPromptHooks(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{}, nil)
	r := newRig(t, cfg, says("one"), says("two"))
	r.c.Submit(Input{Injected: true, Blocks: []model.Block{model.Text{Text: "a task ended"}}})
	r.c.Submit(Input{Blocks: []model.Block{model.Image{URL: "https://example.com/a.png"}}})
	r.run(t.Context())
	if got := log.of(hooks.UserPromptSubmit); len(got) != 1 || got[0]["prompt"] != "" {
		t.Errorf("hooks were told %v", got)
	}
}

func TestAPromptThatHooksDidNotSeeStaysOutOfTheHistory(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{}, nil)
	r := newRig(t, cfg)
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "secret"}}})
	r.c.Interrupt(ErrInterrupted, false)
	r.run(t.Context())
	for i := range r.c.history {
		if strings.Contains(r.historyText(i), "secret") {
			t.Errorf("the history has %q", r.historyText(i))
		}
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is one scripted answer of the fake model.
type reply func(ctx context.Context, req *model.Request, emit func(model.Delta)) error

// fakeModel answers with its replies in order.
type fakeModel struct {
	mu       sync.Mutex
	replies  []reply
	requests []*model.Request
}

func (f *fakeModel) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	if len(f.replies) == 0 {
		f.mu.Unlock()
		return &model.Error{Kind: model.ErrBadRequest, Provider: "fake", Message: "no reply left"}
	}
	r := f.replies[0]
	f.replies = f.replies[1:]
	f.mu.Unlock()
	return r(ctx, req, emit)
}

func says(text string) reply {
	return func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		for _, word := range strings.SplitAfter(text, " ") {
			emit(model.Delta{Kind: model.DeltaText, Text: word})
		}
		emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopEndTurn, Usage: &model.Usage{InputTokens: 10, OutputTokens: 2}})
		return nil
	}
}

// call is a tool call "name id input".
type call struct{ name, id, input string }

func calls(list ...call) reply {
	return func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		for i, c := range list {
			emit(model.Delta{Kind: model.DeltaToolStart, Index: i, ID: c.id, Name: c.name})
			emit(model.Delta{Kind: model.DeltaToolInput, Index: i, Text: c.input})
			emit(model.Delta{Kind: model.DeltaBlockEnd, Index: i})
		}
		emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopToolUse, Usage: &model.Usage{InputTokens: 5, OutputTokens: 1}})
		return nil
	}
}

// fakeTool is a tool whose run is a function.
type fakeTool struct {
	name  string
	class policy.Class
	run   func(ctx context.Context, c *tools.Call) tools.Result
}

func (f fakeTool) Spec() tools.Spec {
	return tools.Spec{Name: f.name, Class: f.class, ReadOnly: f.class == policy.ClassRead, Schema: json.RawMessage(`{"type":"object"}`)}
}
func (f fakeTool) Run(ctx context.Context, c *tools.Call) tools.Result { return f.run(ctx, c) }

func echo(name string, class policy.Class) fakeTool {
	return fakeTool{name, class, func(_ context.Context, c *tools.Call) tools.Result {
		return tools.Text(name + string(c.Input))
	}}
}

// memory is a transcript in memory.
type memory struct {
	entries []transcript.Entry
	fail    error
}

func (m *memory) Append(e transcript.Entry) error {
	m.entries = append(m.entries, e)
	return m.fail
}
func (m *memory) Sync() error { return m.fail }

// bench is a conversation under test with what it did.
type rig struct {
	c      *Conversation
	model  *fakeModel
	trans  *memory
	events []Event
	ended  []Result
	onEnd  func(Result)
}

func newRig(t *testing.T, change func(*Config), replies ...reply) *rig {
	t.Helper()
	r := &rig{model: &fakeModel{replies: replies}, trans: &memory{}}
	cfg := Config{
		SessionID: "s", Tools: tools.NewRegistry(echo("look", policy.ClassRead), echo("change", policy.ClassEdit)),
		Policy: policy.NewEngine(nil), Mode: policy.ModeDefault, Transcript: r.trans,
		Resolve: func(name string) (Model, error) {
			if name == "missing" {
				return Model{}, errors.New("no model named missing")
			}
			return Model{Provider: r.model, ProviderName: "fake", Name: name, Display: "fake-" + name}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	r.c = New(cfg)
	return r
}

// run works off the prompts and returns the results.
func (r *rig) run(ctx context.Context, prompts ...string) []Result {
	for _, p := range prompts {
		r.c.Submit(Input{UUID: "u-" + p, Blocks: []model.Block{model.Text{Text: p}}})
	}
	r.c.CloseInput()
	r.c.Run(ctx, r.take)
	return r.ended
}

func (r *rig) take(_ context.Context, _ Origin, e Event) {
	switch e := e.(type) {
	case *BlockDelta:
		cp := *e
		r.events = append(r.events, &cp)
		return
	case *TurnEnded:
		r.ended = append(r.ended, e.Result)
		if r.onEnd != nil {
			r.onEnd(e.Result)
		}
	}
	r.events = append(r.events, e)
}

// story is the events in short.
func (r *rig) story() []string {
	var out []string
	for _, e := range r.events {
		s := strings.TrimPrefix(fmt.Sprintf("%T", e), "*agent.")
		switch e := e.(type) {
		case *BlockDelta:
			s += fmt.Sprintf(" %d %q", e.Index, e.Text)
		case *BlockEnded:
			s += fmt.Sprintf(" %d %T", e.Index, e.Block)
		case *ToolEnded:
			s += fmt.Sprintf(" %s %v", e.Result.ToolUseID, e.Result.IsError)
		case *TurnEnded:
			s += " " + string(e.Result.Terminal)
		}
		out = append(out, s)
	}
	return out
}

func textOf(blocks []model.Block) string {
	var sb strings.Builder
	for _, b := range blocks {
		switch b := b.(type) {
		case model.Text:
			sb.WriteString(b.Text)
		case model.ToolResult:
			sb.WriteString(textOf(b.Blocks))
		}
	}
	return sb.String()
}

// checkHistory demands that every tool call is answered right after it.
func checkHistory(t *testing.T, history []*model.Message) {
	t.Helper()
	for i, m := range history {
		uses := toolUses(m)
		if len(uses) == 0 {
			continue
		}
		if i+1 == len(history) {
			t.Fatalf("the calls of message %d are not answered", i)
		}
		var want, got []string
		for _, u := range uses {
			want = append(want, u.ID)
		}
		for _, b := range history[i+1].Blocks {
			if res, ok := b.(model.ToolResult); ok {
				got = append(got, res.ToolUseID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("answers of message %d (-called +answered):\n%s", i, diff)
		}
	}
}

func TestTurnTellsItsStoryInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, calls(call{"look", "t1", `{"a":1}`}), says("all done"))
	got := r.run(t.Context(), "hi")
	want := []string{
		"TurnStarted",
		"MessageStarted", "BlockStarted", `BlockDelta 0 "{\"a\":1}"`, "BlockEnded 0 model.ToolUse", "BlockClosed", "MessageEnded",
		"ToolStarted", "ToolEnded t1 false",
		"MessageStarted", "BlockStarted", `BlockDelta 0 "all "`, `BlockDelta 0 "done"`, "BlockEnded 0 model.Text", "BlockClosed", "MessageEnded",
		"TurnEnded completed",
	}
	if diff := cmp.Diff(want, r.story()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	res := got[0]
	if res.Text != "all done" || res.ModelCalls != 2 || res.IsError || res.Subtype != Success || res.InputUUID != "u-hi" {
		t.Errorf("result = %+v", res)
	}
	if want := (model.Usage{InputTokens: 15, OutputTokens: 3}); res.Usage != want {
		t.Errorf("usage = %+v, want %+v", res.Usage, want)
	}
	checkHistory(t, r.c.history)
}

func TestEventsAndTranscriptShareTheirIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, calls(call{"look", "t1", `{}`}, call{"look", "t2", `{}`}), says("ok"))
	r.run(t.Context(), "hi")
	want := []string{"u-hi"}
	for _, e := range r.events {
		switch e := e.(type) {
		case *BlockEnded:
			want = append(want, e.UUID)
		case *ToolEnded:
			want = append(want, e.UUID)
		}
	}
	var got []string
	for _, e := range r.trans.entries {
		got = append(got, e.UUID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-events +transcript):\n%s", diff)
	}
}

func TestEachInputGetsOneResultInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("one"), says("two"), says("three"))
	r.c.Submit(Input{UUID: "bad", Err: errors.New("line 1: malformed")})
	got := r.run(t.Context(), "a", "b", "c")
	var ids []string
	for i, res := range got {
		ids = append(ids, res.InputUUID)
		if res.Index != i {
			t.Errorf("result %d has index %d", i, res.Index)
		}
	}
	if diff := cmp.Diff([]string{"bad", "u-a", "u-b", "u-c"}, ids); diff != "" {
		t.Error(diff)
	}
	if !got[0].IsError || got[0].Errors[0] != "line 1: malformed" || got[3].Text != "three" || got[0].Queued != 3 {
		t.Errorf("results = %+v", got)
	}
}

func TestLooksRunSideBySideAndAnswerInOrder(t *testing.T) {
	t.Parallel()
	var arrived sync.WaitGroup
	arrived.Add(3)
	together := fakeTool{"look", policy.ClassRead, func(ctx context.Context, c *tools.Call) tools.Result {
		arrived.Done()
		arrived.Wait() // returns only if all three run at once
		return tools.Text(c.ID)
	}}
	r := newRig(t, func(c *Config) { c.Tools = tools.NewRegistry(together) },
		calls(call{"look", "t1", `{}`}, call{"look", "t2", `{}`}, call{"look", "t3", `{}`}), says("ok"))
	r.run(t.Context(), "hi")
	checkHistory(t, r.c.history)
	if got := textOf(r.c.history[2].Blocks); got != "t1t2t3" {
		t.Errorf("results = %q, want them in the order of the calls", got)
	}
}

func TestWithoutAUserACallThatAsksIsDeniedAndListed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, calls(call{"change", "t1", `{"x":1}`}), says("could not"))
	res := r.run(t.Context(), "hi")[0]
	if res.IsError || len(res.Denials) != 1 || res.Denials[0].ToolUseID != "t1" || string(res.Denials[0].Input) != `{"x":1}` {
		t.Errorf("result = %+v", res)
	}
	if got := textOf(r.c.history[2].Blocks); !strings.Contains(got, "nobody is there") {
		t.Errorf("the model was told %q", got)
	}
	checkHistory(t, r.c.history)
}

func TestFailOnDenialEndsTheTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.FailOnDenial = true }, calls(call{"change", "t1", `{}`}, call{"look", "t2", `{}`}), says("never"))
	res := r.run(t.Context(), "hi")[0]
	if !errors.Is(res.Err, ErrDenied) || !res.IsError || res.Terminal != PermissionDenied {
		t.Errorf("result = %+v", res)
	}
	checkHistory(t, r.c.history)
}

// askFunc is an Asker.
type askFunc func(ctx context.Context, q policy.Question) (policy.Answer, error)

func (f askFunc) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) { return f(ctx, q) }

func TestAnswersToPermissionQuestions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		answer  policy.Answer
		err     error
		told    string
		ran     bool
		stopped bool
	}{
		{"allow", policy.Answer{Allow: true}, nil, `change{"a":1}`, true, false},
		{"allow with other input", policy.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"b":2}`)}, nil, `change{"b":2}`, true, false},
		{"an empty other input changes nothing", policy.Answer{Allow: true, UpdatedInput: json.RawMessage(`{}`)}, nil, `change{"a":1}`, true, false},
		{"an approval of another call denies", policy.Answer{Allow: true, ToolUseID: "t9", Hash: policy.Bind("change", json.RawMessage(`{"a":1}`))}, nil, "another call", false, false},
		{"an approval of another input denies", policy.Answer{Allow: true, ToolUseID: "t1", Hash: policy.Bind("change", json.RawMessage(`{"a":2}`))}, nil, "another call", false, false},
		{"an approval of nothing denies", policy.Answer{Allow: true, ToolUseID: "t1"}, nil, "another call", false, false},
		{"zero answer denies", policy.Answer{}, nil, "does not want", false, false},
		{"deny with a message", policy.Answer{Message: "not there"}, nil, "not there", false, false},
		{"deny and stop", policy.Answer{Message: "stop it", Interrupt: true}, nil, "stop it", false, true},
		{"an error denies", policy.Answer{Allow: true}, errors.New("timed out"), "timed out", false, false},
		{"nobody denies", policy.Answer{Allow: true}, policy.ErrNoUser, "nobody is there", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *Config) {
				c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
					if p := q.(policy.ToolPermission); p.ToolUseID != "t1" || p.ToolName != "change" || string(p.Input) != `{"a":1}` {
						t.Errorf("question = %+v", p)
					}
					ans := tt.answer
					if ans.ToolUseID == "" {
						ans.ToolUseID, ans.Hash = "t1", policy.Bind("change", json.RawMessage(`{"a":1}`))
					}
					return ans, tt.err
				})
			}, calls(call{"change", "t1", `{"a":1}`}, call{"change2", "t2", `{}`}), says("ok"))
			res := r.run(t.Context(), "hi")[0]
			if got := textOf(r.c.history[2].Blocks); !strings.Contains(got, tt.told) {
				t.Errorf("the model was told %q, want %q", got, tt.told)
			}
			if ran := len(res.Denials) == 0; ran != tt.ran {
				t.Errorf("ran = %v, want %v", ran, tt.ran)
			}
			if stopped := res.Terminal == AbortedTools; stopped != tt.stopped || res.IsError {
				t.Errorf("terminal reason = %s, an error: %v", res.Terminal, res.IsError)
			}
			checkHistory(t, r.c.history)
		})
	}
}

func TestAnApprovalIsRemembered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scope policy.Scope
		asked int
		saved int
	}{{policy.ScopeOnce, 2, 0}, {policy.ScopeSession, 1, 0}, {policy.ScopeLocal, 1, 1}} {
		t.Run(string(tt.scope), func(t *testing.T) {
			t.Parallel()
			asked, saved := 0, 0
			r := newRig(t, func(c *Config) {
				c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
					asked++
					ans := q.(policy.ToolPermission).Allow()
					ans.Remember = tt.scope
					return ans, nil
				})
				c.Save = func(scope policy.Scope, rule policy.Rule) error {
					saved++
					if scope != tt.scope || rule.Text != "change" {
						t.Errorf("saved %s %s", scope, rule.Text)
					}
					return errors.New("disk full")
				}
			}, calls(call{"change", "t1", `{"a":1}`}), calls(call{"change", "t2", `{"a":1}`}), says("ok"))
			if res := r.run(t.Context(), "hi")[0]; len(res.Denials) > 0 || asked != tt.asked || saved != tt.saved {
				t.Errorf("asked %d times and saved %d, want %d and %d; denials %v", asked, saved, tt.asked, tt.saved, res.Denials)
			}
		})
	}
}

func TestPlanModeDeniesWithoutAsking(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Asker = askFunc(func(context.Context, policy.Question) (policy.Answer, error) {
			t.Error("somebody was asked")
			return policy.Answer{Allow: true}, nil
		})
		c.Mode = policy.ModePlan
	}, calls(call{"change", "t1", `{}`}), says("ok"))
	if res := r.run(t.Context(), "hi")[0]; len(res.Denials) != 1 {
		t.Errorf("denials = %v", res.Denials)
	}
}

func TestInterruptEndsASilentStream(t *testing.T) {
	t.Parallel()
	streaming := make(chan struct{})
	r := newRig(t, nil, func(ctx context.Context, _ *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaText, Text: "half an ans"})
		close(streaming)
		<-ctx.Done()
		return context.Cause(ctx)
	}, says("next"))
	go func() {
		<-streaming
		r.c.Interrupt(ErrInterrupted, false)
	}()
	got := r.run(t.Context(), "a", "b")
	if got[0].Terminal != AbortedStreaming || got[0].IsError || got[0].Text != "half an ans" || !errors.Is(got[0].Err, ErrInterrupted) {
		t.Errorf("interrupted turn = %+v", got[0])
	}
	if got[1].Text != "next" {
		t.Errorf("the next turn = %+v", got[1])
	}
	if last := textOf(r.c.history[2].Blocks); last != "[Request interrupted by user]" {
		t.Errorf("the note in the history is %q", last)
	}
}

func TestInterruptAnswersEveryCall(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	stuck := fakeTool{"look", policy.ClassRead, func(ctx context.Context, c *tools.Call) tools.Result {
		if c.ID == "t1" {
			close(running)
		}
		<-ctx.Done()
		return tools.Fail("stopped")
	}}
	r := newRig(t, func(c *Config) { c.Tools = tools.NewRegistry(stuck) },
		calls(call{"look", "t1", `{}`}, call{"nope", "t2", `{}`}, call{"look", "t3", `{}`}), says("next"))
	go func() {
		<-running
		r.c.Interrupt(ErrInterrupted, false)
	}()
	got := r.run(t.Context(), "a", "b")
	if got[0].Terminal != AbortedTools || got[1].Text != "next" {
		t.Errorf("results = %+v", got)
	}
	checkHistory(t, r.c.history)
}

func TestInterruptBeforeTheLineIsBegunEndsItsTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("b"))
	r.c.Submit(Input{UUID: "a", Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Submit(Input{UUID: "b", Blocks: []model.Block{model.Text{Text: "b"}}})
	if queued, _ := r.c.Interrupt(ErrInterrupted, false); !cmp.Equal(queued, []string{"b"}) {
		t.Errorf("still queued = %v, want b", queued)
	}
	got := r.run(t.Context())
	if got[0].Terminal != AbortedStreaming || got[1].Text != "b" {
		t.Errorf("results = %+v", got)
	}
}

func TestInterruptWithNothingToEndHasNoEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("a"))
	r.c.Interrupt(ErrInterrupted, false)
	if got := r.run(t.Context(), "a"); got[0].Text != "a" {
		t.Errorf("result = %+v", got[0])
	}
}

func TestTheEndOfTheRunGivesQueuedInputsTheirResults(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := newRig(t, nil, func(ctx context.Context, _ *model.Request, _ func(model.Delta)) error {
		cancel(ErrStopped)
		<-ctx.Done()
		return ctx.Err()
	})
	got := r.run(ctx, "a", "b")
	if len(got) != 2 || got[0].IsError || !errors.Is(got[1].Err, ErrStopped) {
		t.Errorf("results = %+v", got)
	}
}

func TestAPanicInAToolIsAnErrorResult(t *testing.T) {
	t.Parallel()
	bad := fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result { panic("boom") }}
	r := newRig(t, func(c *Config) { c.Tools = tools.NewRegistry(bad) }, calls(call{"look", "t1", `{}`}, call{"look", "t2", `{}`}), says("ok"))
	if got := r.run(t.Context(), "a"); got[0].Text != "ok" {
		t.Errorf("result = %+v", got[0])
	}
	checkHistory(t, r.c.history)
}

func TestAPanicInAProviderIsAnErrorResultAndTheNextTurnWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(context.Context, *model.Request, func(model.Delta)) error { panic("boom") }, says("ok"))
	got := r.run(t.Context(), "a", "b")
	if !errors.Is(got[0].Err, ErrInternal) || got[1].Text != "ok" {
		t.Errorf("results = %+v", got)
	}
}

func TestAFailedRequestIsTheResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(context.Context, *model.Request, func(model.Delta)) error {
		return &model.Error{Kind: model.ErrNotFound, Provider: "fake", Status: 404, Message: "no such model"}
	}, says("ok"))
	got := r.run(t.Context(), "a", "b")
	if got[0].Subtype != Success || !got[0].IsError || got[0].Terminal != APIFailed || got[0].APIError.Status != 404 || !strings.HasPrefix(got[0].Text, "API Error: ") {
		t.Errorf("result = %+v", got[0])
	}
	if got[1].Text != "ok" {
		t.Errorf("the next turn = %+v", got[1])
	}
	if e := r.trans.entries[1]; !e.APIError {
		t.Errorf("the failure in the transcript is %+v", e)
	}
	for _, m := range r.model.requests[1].Messages {
		if m.Role == model.RoleAssistant {
			t.Errorf("the failure went into the history: %+v", m)
		}
	}
}

func TestAnAnswerThatBreaksOffIsKeptValid(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaText, Text: "so "})
		emit(model.Delta{Kind: model.DeltaToolStart, Index: 1, ID: "t1", Name: "look"})
		emit(model.Delta{Kind: model.DeltaToolInput, Index: 1, Text: `{}`})
		emit(model.Delta{Kind: model.DeltaBlockEnd, Index: 1})
		emit(model.Delta{Kind: model.DeltaToolStart, Index: 2, ID: "t2", Name: "look"})
		emit(model.Delta{Kind: model.DeltaToolInput, Index: 2, Text: `{"ha`})
		return &model.Error{Kind: model.ErrNetwork, Provider: "fake", Message: "reset"}
	}, says("ok"))
	r.run(t.Context(), "a", "b")
	checkHistory(t, r.c.history)
	if uses := toolUses(r.c.history[1]); len(uses) != 1 || uses[0].ID != "t1" {
		t.Errorf("calls kept = %v, want t1 only", uses)
	}
}

func TestTurnLimits(t *testing.T) {
	t.Parallel()
	loop := func() reply { return calls(call{"look", "t", `{}`}) }
	r := newRig(t, func(c *Config) { c.MaxTurns = 2 }, loop(), loop(), says("a"), loop())
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "b"}}})
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "c"}}, MaxTurns: 1})
	got := r.run(t.Context())
	if got[0].Subtype != ErrorMaxTurns || got[0].ModelCalls != 2 || got[0].Errors[0] != "Reached maximum number of turns (2)" {
		t.Errorf("first = %+v", got[0])
	}
	if got[1].Text != "a" || got[2].Subtype != ErrorMaxTurns || got[2].ModelCalls != 1 {
		t.Errorf("others = %+v", got[1:])
	}
	checkHistory(t, r.c.history)
}

func TestOptionsHoldForTheirTurnOnly(t *testing.T) {
	t.Parallel()
	yolo := policy.ModeYolo
	r := newRig(t, nil, calls(call{"change", "t1", `{}`}), says("a"), calls(call{"change", "t2", `{}`}), says("b"))
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "a"}}, Mode: &yolo, Model: "big"})
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "b"}}})
	got := r.run(t.Context())
	if len(got[0].Denials) != 0 || len(got[1].Denials) != 1 {
		t.Errorf("denials = %v, %v", got[0].Denials, got[1].Denials)
	}
	if r.model.requests[0].Model != "big" || r.model.requests[2].Model != "" {
		t.Errorf("models = %q, %q", r.model.requests[0].Model, r.model.requests[2].Model)
	}
}

func TestAModelThatDoesNotExistIsAnErrorResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("ok"))
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "a"}}, Model: "missing"})
	got := r.run(t.Context(), "b")
	if !got[0].IsError || !strings.Contains(got[0].Errors[0], "missing") || got[1].Text != "ok" {
		t.Errorf("results = %+v", got)
	}
}

func TestTheLoopGuardWarnsAndStops(t *testing.T) {
	t.Parallel()
	var replies []reply
	for range 20 {
		replies = append(replies, calls(call{"look", "t", `{}`}))
	}
	r := newRig(t, nil, replies...)
	res := r.run(t.Context(), "a")[0]
	if !errors.Is(res.Err, ErrLoop) || res.Terminal != LoopGuard || res.ModelCalls != stopRepeats {
		t.Errorf("result = %+v", res)
	}
	warned := false
	for _, m := range r.c.history {
		warned = warned || strings.Contains(textOf(m.Blocks), "several times in a row")
	}
	if !warned {
		t.Error("the model was not warned")
	}
	checkHistory(t, r.c.history)
}

func TestWaitingForSomethingThatChangesIsNoLoop(t *testing.T) {
	t.Parallel()
	n := 0
	counter := fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result {
		n++
		return tools.Text(fmt.Sprint(n))
	}}
	var replies []reply
	for range 20 {
		replies = append(replies, calls(call{"look", "t", `{}`}))
	}
	r := newRig(t, func(c *Config) { c.Tools = tools.NewRegistry(counter) }, append(replies, says("done"))...)
	if res := r.run(t.Context(), "a")[0]; res.Text != "done" {
		t.Errorf("result = %+v", res)
	}
}

func TestUnreadableArgumentsAreQuotedBackAndBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, calls(call{"look", "t1", `{"a":`}), says("sorry"),
		calls(call{"look", "x", `1`}), calls(call{"look", "x", `2`}), calls(call{"look", "x", `3`}), says("never"))
	got := r.run(t.Context(), "a", "b")
	if told := textOf(r.c.history[2].Blocks); !strings.Contains(told, `{"a":`) {
		t.Errorf("the model was told %q", told)
	}
	if got[0].Text != "sorry" || got[1].Terminal != MalformedToolUse || !got[1].IsError {
		t.Errorf("results = %+v", got)
	}
	checkHistory(t, r.c.history)
}

func TestAVoidedAnswerIsSuperseded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaThinking, Index: 0, Text: "hm"})
		emit(model.Delta{Kind: model.DeltaText, Index: 1, Text: "first"})
		emit(model.Delta{Kind: model.DeltaRetry, Retry: &model.RetryInfo{Attempt: 1, Err: &model.Error{Kind: model.ErrNetwork}}})
		emit(model.Delta{Kind: model.DeltaRestart})
		emit(model.Delta{Kind: model.DeltaText, Index: 0, Text: "second"})
		emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopEndTurn})
		return nil
	})
	res := r.run(t.Context(), "a")[0]
	if res.Text != "second" {
		t.Errorf("result = %+v", res)
	}
	var ended, voided []string
	for _, e := range r.events {
		switch e := e.(type) {
		case *BlockEnded:
			ended = append(ended, e.UUID)
		case *MessageStarted:
			voided = append(voided, e.Supersedes...)
		}
	}
	if len(ended) != 2 || !cmp.Equal(voided, ended[:1]) {
		t.Errorf("blocks %v, superseded %v", ended, voided)
	}
	if len(r.trans.entries) != 2 {
		t.Errorf("%d transcript entries, want the prompt and the second answer", len(r.trans.entries))
	}
	if r.c.cfg.Ledger.Requests() != 2 {
		t.Errorf("%d requests in the ledger, want both attempts", r.c.cfg.Ledger.Requests())
	}
}

func TestSignaturesAreKeptAndOnlyThoseOfThinkingAreShown(t *testing.T) {
	t.Parallel()
	sign := func(v string) model.Signature { return model.Signature{Provider: "fake", Value: v} }
	r := newRig(t, nil, func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaThinking, Index: 0, Text: "hm"})
		emit(model.Delta{Kind: model.DeltaSignature, Index: 0, Sig: sign("one")})
		emit(model.Delta{Kind: model.DeltaText, Index: 1, Text: "hi"})
		emit(model.Delta{Kind: model.DeltaSignature, Index: 1, Sig: sign("two")})
		emit(model.Delta{Kind: model.DeltaBlockEnd, Index: 1})
		emit(model.Delta{Kind: model.DeltaSignature, Index: 2, Sig: sign("three")})
		emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopEndTurn})
		return nil
	})
	r.run(t.Context(), "a")
	want := []model.Block{
		model.Thinking{Text: "hm", Sig: sign("one")}, model.Text{Text: "hi", Sig: sign("two")}, model.Text{Sig: sign("three")},
	}
	if diff := cmp.Diff(want, r.c.history[1].Blocks); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if n := len(r.trans.entries); n != 4 {
		t.Errorf("%d transcript entries, want the prompt and three blocks", n)
	}
	story := []string{
		"TurnStarted", "MessageStarted",
		"BlockStarted", `BlockDelta 0 "hm"`, `BlockDelta 0 "one"`, "BlockEnded 0 model.Thinking", "BlockClosed",
		"BlockStarted", `BlockDelta 1 "hi"`, "BlockEnded 1 model.Text", "BlockClosed",
		"MessageEnded", "TurnEnded completed",
	}
	if diff := cmp.Diff(story, r.story()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func TestALongResultIsSpilled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxResultText)
	big := fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result { return tools.Text(long) }}
	var kept string
	r := newRig(t, func(c *Config) {
		c.Tools = tools.NewRegistry(big)
		c.Spill = func(_, text string) (string, error) { kept = text; return "/spill/1", nil }
	}, calls(call{"look", "t1", `{}`}), says("ok"))
	r.run(t.Context(), "a")
	got := textOf(r.c.history[2].Blocks)
	if kept != long || len(got) > 3*previewText || !strings.Contains(got, "/spill/1") || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes kept, result of %d bytes: %.80q", len(kept), len(got), got)
	}
}

func TestAnUnwritableTranscriptDoesNotStopTheConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("ok"))
	r.trans.fail = errors.New("no space left")
	res := r.run(t.Context(), "a")[0]
	if res.Text != "ok" || !res.Unsaved || r.c.Unsaved() == nil {
		t.Errorf("result = %+v, unsaved = %v", res, r.c.Unsaved())
	}
}

func TestAppendOnlyInputStartsNoTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("ok"))
	r.c.Submit(Input{UUID: "note", AppendOnly: true, Blocks: []model.Block{model.Text{Text: "fyi"}}})
	got := r.run(t.Context(), "a")
	if len(got) != 1 || len(r.model.requests[0].Messages) != 2 {
		t.Errorf("%d results, request of %d messages", len(got), len(r.model.requests[0].Messages))
	}
}

func TestAFullQueueRefusesInputs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("a"))
	r.c.Submit(Input{UUID: "a", Size: maxQueued, Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Submit(Input{UUID: "b", Size: 1, Blocks: []model.Block{model.Text{Text: "b"}}})
	got := r.run(t.Context())
	if got[0].Text != "a" || !errors.Is(got[1].Err, ErrQueueFull) {
		t.Errorf("results = %+v", got)
	}
}

func TestInputsAreTakenByPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("1"), says("2"), says("3"), says("4"), says("5"))
	for _, in := range []Input{
		{UUID: "later", Priority: Later}, {UUID: "a"}, {UUID: "now a", Priority: Now}, {UUID: "b"}, {UUID: "now b", Priority: Now},
	} {
		in.Blocks = []model.Block{model.Text{Text: in.UUID}}
		r.c.Submit(in)
	}
	r.run(t.Context())
	var order []string
	for _, m := range r.c.History() {
		if m.Role == model.RoleUser {
			order = append(order, m.ID)
		}
	}
	if diff := cmp.Diff([]string{"now a", "now b", "a", "b", "later"}, order); diff != "" {
		t.Error(diff)
	}
}

// An interrupt means what waited when it came, not what overtakes it.
func TestInterruptBeforeTheFirstTurnEndsTheInputThatWaited(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("of the second"), says("of the third"))
	text := func(s string) []model.Block { return []model.Block{model.Text{Text: s}} }
	r.c.Submit(Input{UUID: "first", Blocks: text("first")})
	r.c.Submit(Input{UUID: "third", Blocks: text("third")})
	queued, _ := r.c.Interrupt(ErrInterrupted, false)
	r.c.Submit(Input{UUID: "second", Blocks: text("second"), Priority: Now})
	got := r.run(t.Context())
	if diff := cmp.Diff([]string{"third"}, queued); diff != "" {
		t.Error(diff)
	}
	if len(got) != 3 || got[0].IsError || !errors.Is(got[1].Err, ErrInterrupted) || got[2].IsError {
		t.Errorf("results = %+v", got)
	}
}

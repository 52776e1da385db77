package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

func expansion(x Expansion, err error) func(*Config) {
	return func(c *Config) {
		c.Expand = func(context.Context, Input) (Expansion, error) { return x, err }
	}
}

func TestACommandAnswersWithoutTheModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, expansion(Expansion{Handled: true, Reply: "two servers"}, nil))
	res := r.run(t.Context(), "/mcp")[0]
	if res.Text != "two servers" || res.ModelCalls != 0 || res.IsError || !res.Local || res.Subtype != Success {
		t.Errorf("result = %+v", res)
	}
	want := []string{"TurnStarted", "MessageStarted", "BlockStarted", `BlockDelta 0 "two servers"`, "BlockEnded 0 model.Text", "BlockClosed", "MessageEnded", "TurnEnded completed"}
	if diff := cmp.Diff(want, r.story()); diff != "" {
		t.Error(diff)
	}
	if len(r.c.history) != 0 || r.events[4].(*BlockEnded).Model != "<synthetic>" {
		t.Errorf("history %v", r.c.history)
	}
}

func TestACommandMakesAPromptWithItsOwnModelAndPermissions(t *testing.T) {
	t.Parallel()
	rule, err := policy.ParseRule("change", policy.Allow, "command")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, expansion(Expansion{Handled: true, Blocks: []model.Block{model.Text{Text: "the prompt"}}, Model: "big", AllowedTools: []policy.Rule{rule}}, nil),
		calls(call{"change", "t1", `{}`}), says("ok"), calls(call{"change", "t2", `{}`}), says("ok"))
	got := r.run(t.Context(), "/fix", "plain")
	if len(got[0].Denials) != 0 || len(got[1].Denials) != 1 || r.model.requests[0].Model != "big" || r.model.requests[2].Model != "" {
		t.Errorf("results = %+v", got)
	}
	if text := textOf(r.c.history[0].Blocks); text != "the prompt" {
		t.Errorf("the model was told %q", text)
	}
}

func TestWhatACommandChangesIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.c.cfg.Expand = func(context.Context, Input) (Expansion, error) {
		_, err := r.c.SetModel("big")
		r.c.SetMode(policy.ModePlan)
		return Expansion{Handled: true, Reply: "set"}, err
	}
	r.run(t.Context(), "/model big")
	if model, ok := r.events[1].(*ModelChanged); !ok || model.New != "big" {
		t.Errorf("story: %v", r.story())
	}
	if mode, ok := r.events[2].(*ModeChanged); !ok || mode.Old != policy.ModeDefault || mode.New != policy.ModePlan {
		t.Errorf("story: %v", r.story())
	}
}

func TestCommandsThatFailOrAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, expansion(Expansion{Handled: true, Err: errors.New("no such server")}, nil))
	if res := r.run(t.Context(), "/mcp x")[0]; !res.IsError || res.Errors[0] != "no such server" {
		t.Errorf("result = %+v", res)
	}
	r = newRig(t, expansion(Expansion{}, errors.New("broken")))
	if res := r.run(t.Context(), "/x")[0]; !res.IsError || res.Terminal != InternalFault {
		t.Errorf("result = %+v", res)
	}
	r = newRig(t, expansion(Expansion{}, nil), says("ok"))
	if res := r.run(t.Context(), "/etc/passwd has what?")[0]; res.Text != "ok" || textOf(r.c.history[0].Blocks) != "/etc/passwd has what?" {
		t.Errorf("result = %+v", res)
	}
}

func TestComposedTextIsNoCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, expansion(Expansion{Handled: true, Reply: "never"}, nil), says("ok"))
	r.c.Submit(Input{Composed: true, Origin: json.RawMessage(`{"kind":"human"}`), Blocks: []model.Block{model.Text{Text: "/x"}}})
	if res := r.run(t.Context())[0]; res.Text != "ok" || string(res.Origin) != `{"kind":"human"}` || res.FirstToken <= 0 {
		t.Errorf("result = %+v", res)
	}
}

func TestClearBeginsAnew(t *testing.T) {
	t.Parallel()
	var reopened []string
	next := &memory{}
	reopen := func(c *Config) {
		c.Reopen = func(id string) (Transcript, error) {
			reopened = append(reopened, id)
			return next, nil
		}
	}
	r := newRig(t, func(c *Config) {
		reopen(c)
		c.Expand = func(_ context.Context, in Input) (Expansion, error) {
			return Expansion{Handled: true, Reset: true}, nil
		}
	}, says("one"), says("two"))
	got := r.run(t.Context(), "a", "/clear", "b")
	reset := ConversationReset{}
	for _, e := range r.events {
		if e, ok := e.(*ConversationReset); ok {
			reset = *e
		}
	}
	if reset.Old != "s" || len(reopened) != 1 || reset.New != reopened[0] || r.c.SessionID() != reset.New || !got[1].Local {
		t.Errorf("reset %+v, reopened %v, result %+v", reset, reopened, got[1])
	}
	if len(r.c.history) != 2 || r.model.requests[1].SessionID != reset.New || len(r.model.requests[1].Messages) != 1 {
		t.Errorf("history %v", r.c.history)
	}
	if len(r.trans.entries) != 2 || len(next.entries) != 2 {
		t.Errorf("%d entries before, %d after", len(r.trans.entries), len(next.entries))
	}
	if n := r.c.cfg.Ledger.Requests(); n != 1 {
		t.Errorf("%d requests in the ledger", n)
	}
}

func TestClearThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Reopen = func(string) (Transcript, error) { return nil, errors.New("disk full") }
	}, says("one"), says("two"))
	r.c.Submit(Input{UUID: "a", Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Clear()
	r.run(t.Context(), "b")
	if len(r.c.history) != 4 || r.c.SessionID() != "s" {
		t.Errorf("session %s, history %v", r.c.SessionID(), r.c.history)
	}
}

func continueLast(c *Conversation) (accepted bool, how Interruption) {
	c.ContinueLast(func(a bool, h Interruption) { accepted, how = a, h })
	return accepted, how
}

func TestTheLastTurnIsContinued(t *testing.T) {
	t.Parallel()
	user := func(text string) *model.Message {
		return &model.Message{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: text}}}
	}
	said := func(text string) *model.Message {
		return &model.Message{Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: text}}}
	}
	for _, tt := range []struct {
		name    string
		history []*model.Message
		want    Interruption
		last    string // what the model sees last
	}{
		{"nothing yet", nil, None, ""},
		{"done", []*model.Message{user("hi"), said("ho")}, None, ""},
		{"unanswered", []*model.Message{user("hi")}, InterruptedPrompt, "hi"},
		{"interrupted before the answer", []*model.Message{user("hi"), user(noteStreaming)}, InterruptedPrompt, "hi"},
		{"interrupted in the answer", []*model.Message{user("hi"), said("ha"), user(noteStreaming)}, InterruptedTurn, "Continue from where you left off."},
		{"interrupted in a tool", []*model.Message{user("hi"),
			{Role: model.RoleAssistant, Blocks: []model.Block{model.ToolUse{ID: "t", Name: "look", Input: json.RawMessage(`{}`)}}},
			{Role: model.RoleUser, Blocks: []model.Block{model.ToolResult{ToolUseID: "t", Blocks: []model.Block{model.Text{Text: "stopped"}}}}},
			user(noteTools)}, InterruptedTurn, "stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *Config) { c.History = tt.history }, says("done"))
			accepted, how := continueLast(r.c)
			if accepted != (tt.want != None) || how != tt.want {
				t.Fatalf("accepted %v, %s", accepted, how)
			}
			if again, how := continueLast(r.c); again || how != None {
				t.Error("a second one was accepted")
			}
			got := r.run(t.Context())
			if !accepted {
				return
			}
			if len(got) != 1 || got[0].Text != "done" || !strings.Contains(string(got[0].Origin), "auto-continuation") {
				t.Fatalf("results = %+v", got)
			}
			messages := r.model.requests[0].Messages
			if last := textOf(messages[len(messages)-1].Blocks); last != tt.last {
				t.Errorf("the model saw %q last, want %q", last, tt.last)
			}
			if accepted, _ := continueLast(r.c); accepted {
				t.Error("a turn that is done was continued")
			}
		})
	}
}

func TestAFailedRequestCanBeContinued(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, fails(model.ErrBadRequest), says("done"))
	r.onEnd = func(res Result) {
		if res.IsError {
			if accepted, how := continueLast(r.c); !accepted || how != InterruptedTurn {
				t.Errorf("accepted %v, %s", accepted, how)
			}
			r.c.CloseInput()
		}
	}
	r.c.Submit(Input{UUID: "a", Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Run(t.Context(), r.take)
	if len(r.ended) != 2 || r.ended[1].Text != "done" {
		t.Errorf("results = %+v", r.ended)
	}
}

func TestInjectedInputIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, says("seen"))
	r.c.Submit(Input{Injected: true, Blocks: []model.Block{model.Text{Text: "the task ended"}}})
	r.run(t.Context())
	if story := strings.Join(r.story(), " "); !strings.HasPrefix(story, "TurnStarted MessageStarted") {
		t.Errorf("story: %s", story)
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/usage"
)

func TestSettingsHoldFromTheNextRequestOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.System, c.Model = "old", "one" })
	r.c.cfg.Resolve = func(name string) (Model, error) {
		return Model{Provider: r.model, Name: name, Display: name, Info: model.Info{Thinking: name == "two", Known: name != "new here"}}, nil
	}
	if r.c.SetEffort(model.EffortHigh) {
		t.Error("an effort is applied to a model that doesn't think")
	}
	r.model.replies = []reply{
		func(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
			old, err := r.c.SetModel("two") // in the middle of the turn
			if old != "one" || err != nil {
				t.Errorf("old model %q, %v", old, err)
			}
			r.c.SetSystem("new")
			r.c.SetThinking(7)
			if !r.c.SetEffort(model.EffortLow) {
				t.Error("the effort is not applied")
			}
			return calls(call{"look", "t1", `{}`})(ctx, req, emit)
		},
		says("ok"),
	}
	r.run(t.Context(), "hi")
	if _, err := r.c.SetModel("new here"); err != nil || !r.c.SetEffort(model.EffortLow) {
		t.Errorf("a model that nothing is known of is taken not to think: %v", err)
	}
	first, second := r.model.requests[0], r.model.requests[1]
	if first.System != "old" || first.Model != "one" || first.Effort != "" || first.ThinkingBudget != 0 {
		t.Errorf("first request = %+v", first)
	}
	if second.System != "new" || second.Model != "two" || second.Effort != model.EffortLow || second.ThinkingBudget != 7 {
		t.Errorf("second request = %+v", second)
	}
}

func TestAModelOfAnotherProviderGetsTheHistoryWithItsSignatures(t *testing.T) {
	t.Parallel()
	sig := model.Signature{Provider: "gemini", Value: "s"}
	other := &fakeModel{replies: []reply{says("ok")}}
	r := newRig(t, nil, func(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaThinking, Text: "hm"})
		emit(model.Delta{Kind: model.DeltaSignature, Sig: sig})
		emit(model.Delta{Kind: model.DeltaToolStart, Index: 1, ID: "t1", Name: "look", Sig: sig})
		emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopToolUse})
		return nil
	})
	r.c.cfg.Resolve = func(name string) (Model, error) {
		if name == "other" {
			return Model{Provider: other, ProviderName: "other", Name: name}, nil
		}
		return Model{Provider: r.model, ProviderName: "gemini", Name: name}, nil
	}
	look := fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result {
		if _, err := r.c.SetModel("other"); err != nil {
			t.Error(err)
		}
		return tools.Text("seen")
	}}
	r.c.cfg.Tools.Add(look)
	if res := r.run(t.Context(), "hi")[0]; res.Text != "ok" || len(other.requests) != 1 {
		t.Fatalf("result = %+v", res)
	}
	blocks := other.requests[0].Messages[1].Blocks
	if blocks[0].(model.Thinking).Sig != sig || blocks[1].(model.ToolUse).Sig != sig {
		t.Errorf("blocks = %+v", blocks)
	}
}

func TestFactsChangeForTheNextCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Facts.Roots = []string{"/a"} })
	before := r.c.Facts().Roots
	r.c.SetFacts(func(f *policy.Facts) { f.Roots = append(f.Roots, "/b") })
	if got := r.c.Facts().Roots; !cmp.Equal(got, []string{"/a", "/b"}) || !cmp.Equal(before, []string{"/a"}) {
		t.Errorf("roots %v, before %v", got, before)
	}
}

func TestANewModeHoldsForCallsThatWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		mode    policy.Mode
		denials int
		asked   int
	}{
		{"to yolo: the second call is not asked", policy.ModeYolo, 0, 1},
		{"to plan: the second call is denied, the open question stands", policy.ModePlan, 1, 1},
		{"to default: both are asked", policy.ModeDefault, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			r := newRig(t, nil, calls(call{"change", "t1", `{}`}, call{"change", "t2", `{}`}), says("ok"))
			r.c.cfg.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
				if asked++; asked == 1 {
					if old := r.c.SetMode(tt.mode); old != policy.ModeDefault {
						t.Errorf("old mode = %s", old)
					}
				}
				return q.(policy.ToolPermission).Allow(), nil
			})
			if res := r.run(t.Context(), "hi")[0]; len(res.Denials) != tt.denials || asked != tt.asked {
				t.Errorf("asked %d times, denials %v", asked, res.Denials)
			}
		})
	}
}

func TestUpdatesOfAnAnswerAreApplied(t *testing.T) {
	t.Parallel()
	updates, err := policy.ParseUpdates(json.RawMessage(`[{"type":"setMode","mode":"acceptEdits"},{"type":"addDirectories","directories":["/x"]}]`), "approved")
	if err != nil {
		t.Fatal(err)
	}
	var applied []policy.UpdateType
	asked := 0
	r := newRig(t, func(c *Config) {
		c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
			asked++
			ans := q.(policy.ToolPermission).Allow()
			ans.Updates = updates
			return ans, nil
		})
		c.Apply = func(u policy.Update) error {
			applied = append(applied, u.Type)
			return nil
		}
	}, calls(call{"change", "t1", `{}`}, call{"change", "t2", `{}`}), says("ok"))
	r.run(t.Context(), "hi")
	if asked != 1 || r.c.Mode() != policy.ModeAutoEdit || !cmp.Equal(applied, []policy.UpdateType{"setMode", "addDirectories"}) {
		t.Errorf("asked %d, mode %s, applied %v", asked, r.c.Mode(), applied)
	}
	if !strings.Contains(strings.Join(r.story(), " "), "ModeChanged") {
		t.Error("nobody was told of the mode")
	}
}

func TestAnUpdateThatCannotBeAppliedKeepsTheCallFromRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
			ans := q.(policy.ToolPermission).Allow()
			ans.Updates = []policy.Update{{Type: policy.UpdateAddDirectories, Directories: []string{"/x"}}}
			return ans, nil
		})
		c.Apply = func(policy.Update) error { return errors.New("no such directory") }
	}, calls(call{"change", "t1", `{}`}), says("ok"))
	res := r.run(t.Context(), "hi")[0]
	if len(res.Denials) != 1 || !strings.Contains(textOf(r.c.history[2].Blocks), "no such directory") {
		t.Errorf("denials %v, told %q", res.Denials, textOf(r.c.history[2].Blocks))
	}
}

func TestWordsOfDenialsAndTheirSources(t *testing.T) {
	t.Parallel()
	words := Words{
		HostDenied: func(tool, message string) string { return "[Operation Cancelled] Reason: " + message },
		Unanswered: func(_ string, err error) string { return "[Operation Cancelled] Reason: Error: " + err.Error() },
	}
	for _, tt := range []struct {
		name   string
		answer policy.Answer
		err    error
		source Source
		told   string
	}{
		{"no", policy.Answer{Message: "not now"}, nil, ByHost, "[Operation Cancelled] Reason: not now"},
		{"timeout", policy.Answer{}, errors.New("Control request timeout"), ByHost, "[Operation Cancelled] Reason: Error: Control request timeout"},
		{"nobody", policy.Answer{}, policy.ErrNoUser, ByPolicy, "nobody is there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *Config) {
				c.Words = words
				c.Asker = askFunc(func(context.Context, policy.Question) (policy.Answer, error) { return tt.answer, tt.err })
			}, calls(call{"change", "t1", `{}`}), says("ok"))
			res := r.run(t.Context(), "hi")[0]
			if len(res.Denials) != 1 || res.Denials[0].Source != tt.source || !strings.Contains(textOf(r.c.history[2].Blocks), tt.told) {
				t.Errorf("denials %+v, told %q", res.Denials, textOf(r.c.history[2].Blocks))
			}
		})
	}
}

// fails is a reply that fails.
func fails(kind model.ErrorKind) reply {
	return func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		emit(model.Delta{Kind: model.DeltaText, Text: "half"})
		emit(model.Delta{Kind: model.DeltaUsage, Usage: &model.Usage{InputTokens: 3}})
		return &model.Error{Kind: kind, Provider: "fake", Message: "no"}
	}
}

func TestAnotherModelStandsInForTheRestOfTheTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Model, c.Fallback = "main", []string{"main", "missing", "second"} },
		fails(model.ErrOverloaded), calls(call{"look", "t1", `{}`}), says("ok"), says("again"))
	got := r.run(t.Context(), "a", "b")
	var asked []string
	for _, req := range r.model.requests {
		asked = append(asked, req.Model)
	}
	if diff := cmp.Diff([]string{"main", "second", "second", "main"}, asked); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if got[0].Text != "ok" || got[0].IsError || got[0].Usage.InputTokens != 3+5+10 || r.c.cfg.Ledger.Requests() != 4 {
		t.Errorf("result = %+v, %d requests", got[0], r.c.cfg.Ledger.Requests())
	}
	story := strings.Join(r.story(), "\n")
	if !strings.Contains(story, "ModelFallback\nMessageStarted") || strings.Contains(textOf(r.c.history[1].Blocks), "half") {
		t.Errorf("story:\n%s", story)
	}
}

func TestNoModelStandsInWhereNoneCouldDoBetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Model, c.Fallback = "main", []string{"second"} }, fails(model.ErrBadRequest))
	if res := r.run(t.Context(), "a")[0]; !res.IsError || len(r.model.requests) != 1 {
		t.Errorf("result = %+v", res)
	}
	r = newRig(t, func(c *Config) { c.Model, c.Fallback = "main", []string{"second"} }, fails(model.ErrServer), fails(model.ErrServer))
	if res := r.run(t.Context(), "a")[0]; !res.IsError || res.Terminal != APIFailed || len(r.model.requests) != 2 {
		t.Errorf("result = %+v", res)
	}
}

func TestTheBudgetEndsTurns(t *testing.T) {
	t.Parallel()
	ledger := new(usage.Ledger)
	r := newRig(t, func(c *Config) { c.MaxBudgetUSD, c.Ledger = 1, ledger },
		calls(call{"look", "t1", `{}`}), says("never"))
	look := fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result {
		ledger.Add(usage.Entry{Model: "sub-agent's", CostUSD: 1.5})
		return tools.Text("seen")
	}}
	r.c.cfg.Tools.Add(look)
	r.c.Submit(Input{UUID: "a", Blocks: []model.Block{model.Text{Text: "a"}}})
	r.c.Clear() // which doesn't make it free
	got := r.run(t.Context(), "b")
	for _, res := range got {
		if res.Subtype != ErrorMaxBudget || res.Terminal != BudgetExhausted || !res.IsError || !errors.Is(res.Err, ErrBudget) || res.Errors[0] != "Reached maximum budget ($1)" {
			t.Errorf("result = %+v", res)
		}
	}
	if ledger.CostUSD() != 0 {
		t.Error("the totals were not reset")
	}
}

func TestSettersAndTurnsRunSideBySide(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, calls(call{"look", "t1", `{}`}, call{"look", "t2", `{}`}), says("ok"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 50 {
				r.c.SetSystem("s")
				r.c.SetMode(policy.ModeYolo)
				r.c.SetEffort(model.EffortLow)
				r.c.SetThinking(i)
				_, _ = r.c.SetModel("x")
				_ = r.c.SetSchema(nil)
				r.c.SetFacts(func(f *policy.Facts) { f.Cwd = "/" })
				continueLast(r.c)
			}
		})
	}
	if res := r.run(t.Context(), "hi")[0]; res.Text != "ok" {
		t.Errorf("result = %+v", res)
	}
	wg.Wait()
}

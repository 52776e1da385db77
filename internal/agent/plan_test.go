package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

func modeChanges(r *rig) (out []policy.Mode) {
	for _, e := range r.events {
		if e, ok := e.(*ModeChanged); ok {
			out = append(out, e.Old, e.New)
		}
	}
	return out
}

func TestAPlanIsEnteredApprovedAndLeft(t *testing.T) {
	t.Parallel()
	for _, start := range []policy.Mode{policy.ModeAutoEdit, policy.ModePlan} {
		back := start
		if start == policy.ModePlan {
			back = policy.ModeDefault
		}
		t.Run(string(start), func(t *testing.T) {
			t.Parallel()
			var asked []string
			replies := []reply{calls(call{"exit_plan_mode", "t2", `{"plan":"# Do it"}`}), says("ok")}
			want := []policy.Mode{policy.ModePlan, back}
			if start != policy.ModePlan {
				replies = append([]reply{calls(call{"EnterPlanMode", "t1", `{}`})}, replies...)
				want = append([]policy.Mode{start, policy.ModePlan}, want...)
			}
			r := newRig(t, func(c *Config) {
				c.Mode = start
				c.Tools.Add(NewPlanTools()...)
				c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
					asked = append(asked, q.(policy.ToolPermission).ToolName)
					return q.(policy.ToolPermission).Allow(), nil
				})
			}, replies...)
			r.run(t.Context(), "a")
			if r.c.Mode() != back || !cmp.Equal(asked, []string{"exit_plan_mode"}) || !cmp.Equal(modeChanges(r), want) {
				t.Errorf("mode %s, asked %v, changes %v", r.c.Mode(), asked, modeChanges(r))
			}
			n := len(r.model.requests)
			if got := r.declared(n - 2); got != "look change exit_plan_mode" {
				t.Errorf("in plan mode: %s", got)
			}
			if got := r.declared(n - 1); got != "look change enter_plan_mode" {
				t.Errorf("after it: %s", got)
			}
		})
	}
}

func TestARefusedPlanKeepsPlanning(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Mode = policy.ModePlan
		c.Tools.Add(NewPlanTools()...)
		c.Asker = askFunc(func(context.Context, policy.Question) (policy.Answer, error) {
			return policy.Answer{Message: "smaller steps"}, nil
		})
	}, calls(call{"exit_plan_mode", "t1", `{"plan":"x"}`}), calls(call{"change", "t2", `{}`}), says("ok"))
	res := r.run(t.Context(), "a")[0]
	if r.c.Mode() != policy.ModePlan || len(modeChanges(r)) != 0 || len(res.Denials) != 2 {
		t.Errorf("mode %s, denials %+v", r.c.Mode(), res.Denials)
	}
	if text := textOf(r.c.history[2].Blocks); !strings.Contains(text, "smaller steps") {
		t.Errorf("told %q", text)
	}
}

func TestAnApprovalMayChooseTheModeAfterThePlan(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Mode = policy.ModePlan
		c.Tools.Add(NewPlanTools()...)
		c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
			ans := q.(policy.ToolPermission).Allow()
			ans.Updates = []policy.Update{{Type: policy.UpdateSetMode, Mode: policy.ModeAutoEdit, Destination: policy.ToSession}}
			return ans, nil
		})
	}, calls(call{"exit_plan_mode", "t1", `{"plan":"x"}`}), says("ok"))
	r.run(t.Context(), "a")
	if r.c.Mode() != policy.ModeAutoEdit || !cmp.Equal(modeChanges(r), []policy.Mode{policy.ModePlan, policy.ModeAutoEdit}) {
		t.Errorf("mode %s, changes %v", r.c.Mode(), modeChanges(r))
	}
}

func TestAPlanForOneTurnGoesBackToTheConversationsMode(t *testing.T) {
	t.Parallel()
	plan := policy.ModePlan
	r := newRig(t, func(c *Config) {
		c.Mode = policy.ModeYolo
		c.Tools.Add(NewPlanTools()...)
		c.Asker = askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
			return q.(policy.ToolPermission).Allow(), nil
		})
	}, calls(call{"exit_plan_mode", "t1", `{"plan":"x"}`}), calls(call{"exit_plan_mode", "t2", `{"plan":"x"}`}), says("ok"))
	r.c.Submit(Input{UUID: "a", Mode: &plan, Blocks: []model.Block{model.Text{Text: "a"}}})
	r.run(t.Context())
	if r.c.Mode() != policy.ModeYolo || !cmp.Equal(modeChanges(r), []policy.Mode{policy.ModePlan, policy.ModeYolo}) {
		t.Errorf("mode %s, changes %v", r.c.Mode(), modeChanges(r))
	}
	if text := textOf(r.c.history[4].Blocks); !strings.Contains(text, "not in plan mode") {
		t.Errorf("told %q", text)
	}
}

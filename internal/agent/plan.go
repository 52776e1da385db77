package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

//go:embed exitplan.md
var exitPlanDescription string

//go:embed enterplan.md
var enterPlanDescription string

// NewPlanTools returns the tools enter_plan_mode and exit_plan_mode, which
// change the permission mode of the conversation that calls them. Each is
// declared only while it has something to do.
func NewPlanTools() []tools.Tool { return []tools.Tool{enterPlan{}, exitPlan{}} }

// exitPlan implements exit_plan_mode. That it runs means that the plan was
// approved: policy has it asked.
type exitPlan struct{}

// Spec implements tools.Tool.
func (exitPlan) Spec() tools.Spec {
	return tools.Spec{
		Name: "exit_plan_mode", Description: exitPlanDescription, Class: policy.ClassPlan,
		Schema: json.RawMessage(`{"type":"object","properties":{"plan":{"type":"string","description":"The whole plan, in Markdown."}},"required":["plan"]}`),
	}
}

func (exitPlan) unfit(_ *Conversation, planning bool) string {
	if planning {
		return ""
	}
	return "You are not in plan mode: there is no plan to approve. Go on with the task."
}

// planDisplay is the machine-readable form of an approved plan.
type planDisplay struct {
	Plan    string `json:"plan"`
	IsAgent bool   `json:"isAgent"`
}

// Run implements tools.Tool.
func (exitPlan) Run(ctx context.Context, call *tools.Call) tools.Result {
	var in struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.Plan) == "" {
		return tools.Fail("plan must be a text: the whole plan, in Markdown")
	}
	t := turnOf(ctx)
	if t == nil {
		return tools.Fail("exit_plan_mode works in a conversation only")
	}
	t.leavePlan(ctx)
	r := tools.Text("The user approved the plan. Begin with it now. The permission mode is " + string(t.mode()) + ".\n\nThe approved plan:\n" + in.Plan)
	r.Display = planDisplay{Plan: in.Plan, IsAgent: t.c.cfg.Origin != Origin{}}
	return r
}

// enterPlan implements enter_plan_mode. It needs no permission: it takes some.
type enterPlan struct{}

// Spec implements tools.Tool.
func (enterPlan) Spec() tools.Spec {
	return tools.Spec{
		Name: "enter_plan_mode", Description: enterPlanDescription, Class: policy.ClassInternal,
		Schema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

func (enterPlan) unfit(_ *Conversation, planning bool) string {
	if planning {
		return "You are in plan mode already."
	}
	return ""
}

// Run implements tools.Tool.
func (enterPlan) Run(ctx context.Context, _ *tools.Call) tools.Result {
	t := turnOf(ctx)
	if t == nil {
		return tools.Fail("enter_plan_mode works in a conversation only")
	}
	t.setMode(ctx, policy.ModePlan)
	return tools.Text("Plan mode is on: look around and make a plan; change nothing. When the plan is whole, give it with " +
		t.c.cfg.Names.Tool("exit_plan_mode") + ".")
}

// setMode changes the conversation's mode in the middle of the turn, whose own
// mode, if it had one, ends with that.
func (t *turn) setMode(ctx context.Context, m policy.Mode) {
	if t.c.parent != nil { // a sub-agent has no mode but its caller's
		t.c.parent.setMode(ctx, m)
		return
	}
	old := t.mode()
	t.in.Mode = nil
	if was := t.c.SetMode(m); m == policy.ModePlan && was == policy.ModePlan {
		t.c.change(func(s *tuning) { s.unplanned = old })
	}
	if old != m {
		t.c.send(ctx, &ModeChanged{Old: old, New: m})
	}
}

// leavePlan goes back to the mode before plan mode, unless whoever approved the
// plan set another one.
func (t *turn) leavePlan(ctx context.Context) {
	if t.mode() != policy.ModePlan {
		return
	}
	m := t.c.tuned()
	next := m.unplanned
	if t.in.Mode != nil && m.mode != policy.ModePlan {
		next = m.mode // plan mode was this turn's alone
	}
	if next == policy.ModePlan || next == "" {
		next = policy.ModeDefault
	}
	t.setMode(ctx, next)
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// permitted is a call as it may run.
type permitted struct {
	use     model.ToolUse
	granted []string // paths outside of the roots that it may act on
}

// CallFacts are what policy judges a call of a tool by, in a place that is the
// same for all calls, mode included. Input is brought to the form that both
// policy and the tool read. The error says that the tool would refuse the call.
func CallFacts(place policy.Facts, spec tools.Spec, input json.RawMessage) (policy.Facts, error) {
	input, err := tools.Canonical(spec, input)
	if err != nil {
		return policy.Facts{}, err
	}
	touched, err := tools.Touched(spec, input)
	if err != nil {
		return policy.Facts{}, err
	}
	f := place
	f.Tool, f.Class, f.Input, f.Touches = spec.Name, spec.Class, input, nil
	f.Server, f.Annotations = spec.Server, spec.Annotations
	for _, x := range touched {
		switch x.Kind {
		case tools.TargetRead, tools.TargetWrite, tools.TargetSearch:
			f.Touches = append(f.Touches, policy.Touch{Path: x.Name, Write: x.Kind == tools.TargetWrite})
		}
	}
	return f, nil
}

// facts are those of a call, which comes back with its input as they have it.
func (t *turn) facts(tool tools.Tool, u model.ToolUse) (model.ToolUse, policy.Facts, error) {
	place := t.c.Facts()
	place.Mode = t.mode()
	f, err := CallFacts(place, tool.Spec(), u.Input)
	if err != nil {
		return u, f, err
	}
	u.Input = f.Input
	return u, f, nil
}

// permit asks policy, which knows what hooks said, and whoever answers its
// questions. It returns the call as it may run, or what to answer instead.
func (t *turn) permit(ctx context.Context, tool tools.Tool, u model.ToolUse, hook *policy.HookDecision) (permitted, *outcome) {
	u, f, err := t.facts(tool, u)
	if err != nil {
		o := failed(u, err.Error())
		return permitted{}, &o
	}
	f.Hook = hook
	switch d := t.decide(ctx, f); d.Behavior {
	case policy.Allow:
	case policy.Deny:
		return permitted{}, denied(u, ByPolicy, d.Reason, refusal(u, d))
	default:
		// Nobody is asked about a call that can't run as it is.
		if err := tool.Spec().Fits(u.Input); err != nil {
			o := failed(u, err.Error())
			return permitted{}, &o
		}
		var no *outcome
		if u, f, no = t.question(ctx, tool, u, f, d); no != nil {
			return permitted{}, no
		}
	}
	return permitted{use: u, granted: policy.Outside(f)}, nil
}

// decide is the engine's decision, made stricter by the safety checkers that
// want to see the call.
func (t *turn) decide(ctx context.Context, f policy.Facts) policy.Decision {
	d := t.c.cfg.Policy.Decide(f)
	if d.Behavior == policy.Ask && len(t.allowed) > 0 {
		d = t.c.cfg.Policy.With(t.allowed...).Decide(f)
	}
	for _, c := range d.Checkers {
		b, reason := t.check(ctx, c, f)
		if d = d.Stricter(b, c, reason); d.Behavior == policy.Deny {
			break
		}
	}
	return d
}

func (t *turn) check(ctx context.Context, c *policy.Checker, f policy.Facts) (policy.Behavior, string) {
	switch {
	case !c.Program:
		return c.Judge(f)
	case t.c.cfg.Check == nil:
		return policy.Deny, "the safety checker " + c.Name + " can't be run here"
	}
	return t.c.cfg.Check(ctx, c, f)
}

func refusal(u model.ToolUse, d policy.Decision) string {
	return "Permission to use " + u.Name + " was denied: " + d.Reason + "."
}

// question asks whether a call may run. It returns the call as it was allowed,
// or what to answer instead.
func (t *turn) question(ctx context.Context, tool tools.Tool, u model.ToolUse, f policy.Facts, d policy.Decision) (model.ToolUse, policy.Facts, *outcome) {
	always := t.c.cfg.Policy.Always(f)
	q := policy.ToolPermission{
		ToolName: u.Name, ToolUseID: u.ID, Input: u.Input, Class: f.Class, Reason: d.Reason, Why: d.Why, Path: d.Path,
		Agent:       t.c.cfg.Origin.AgentID,
		Suggestions: policy.Suggest(f, always), Always: always, Hash: policy.Bind(u.Name, u.Input),
	}
	ans, by, err := t.answerTo(ctx, q)
	if no := t.unanswered(ctx, u, d, q, ans, err); no != nil {
		if no.denial.Source == ByHost {
			no.denial.Source = by
		}
		return u, f, no
	}
	if changed(ans.UpdatedInput) {
		was := u
		u.Input = ans.UpdatedInput
		if u, f, err = t.facts(tool, u); err != nil {
			return u, f, denied(was, ByHost, "the changed input can't be read", "The call was not run: the input that the user changed can't be read: "+err.Error())
		}
		if again := t.decide(ctx, f); again.Behavior == policy.Deny {
			return u, f, denied(u, ByPolicy, again.Reason, refusal(u, again))
		}
	}
	if err := t.apply(ctx, ans.Updates); err != nil {
		return u, f, denied(u, ByHost, err.Error(), "The call was not run: "+err.Error()+".")
	}
	t.remember(q, ans)
	return u, f, nil
}

// changed reports whether an updated input says anything: {} doesn't wipe an
// input.
func changed(input json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return len(input) > 0 && (json.Unmarshal(input, &fields) != nil || len(fields) > 0)
}

// unanswered returns what to answer to a call that was not allowed; nil if it
// was.
func (t *turn) unanswered(ctx context.Context, u model.ToolUse, d policy.Decision, q policy.ToolPermission, ans policy.Answer, err error) *outcome {
	words := t.c.cfg.Words
	switch {
	case context.Cause(ctx) != nil:
		return denied(u, ByInterrupt, "interrupted", words.unanswered(ctx, u.Name, context.Cause(ctx)))
	case errors.Is(err, policy.ErrNoUser):
		return denied(u, ByPolicy, d.Reason+", and nobody is there to ask", "Permission to use "+u.Name+
			" was denied: it needs an approval ("+d.Reason+") and nobody is there to give it. Go on without it, or say in your answer what you would have done.")
	case err != nil:
		return denied(u, ByHost, err.Error(), words.unanswered(ctx, u.Name, err))
	case !ans.Allow:
		o := denied(u, ByHost, orElse(ans.Message, "denied by the user"), words.hostDenied(u.Name, ans.Message))
		o.halt = ans.Interrupt
		return o
	case ans.ToolUseID != q.ToolUseID || ans.Hash != q.Hash:
		t.log.Error("an approval is bound to another call", "tool", u.Name, "tool_use_id", u.ID, "answered", ans.ToolUseID)
		return denied(u, ByHost, "the approval is bound to another call", "Permission to use "+u.Name+" was denied: the approval that came belongs to another call.")
	}
	return nil
}

// apply brings the changes of permissions that came with an answer into force,
// in order. The error says which can't be.
func (t *turn) apply(ctx context.Context, list []policy.Update) error {
	for _, u := range list {
		if u.Type == policy.UpdateSetMode {
			t.setMode(ctx, u.Mode)
		}
		if err := t.c.applyUpdate(u); err != nil {
			return fmt.Errorf("the permission update %s that came with the approval can't be applied: %w", u.Type, err)
		}
	}
	return nil
}

func (c *Conversation) applyUpdate(u policy.Update) error {
	switch {
	case c.cfg.Apply != nil:
		return c.cfg.Apply(u)
	case u.Type == policy.UpdateAddRules:
		c.cfg.Policy.Add(u.Rules...)
	case u.Type == policy.UpdateRemoveRules:
		c.cfg.Policy.Remove(u.Rules...)
	case u.Type != policy.UpdateSetMode:
		return errors.New("it is not supported here")
	}
	return nil
}

// remember puts the rule of an answer in force that shall hold from now on. A
// rule that can't be kept holds for this session.
func (t *turn) remember(q policy.ToolPermission, ans policy.Answer) {
	if ans.Remember == policy.ScopeOnce || q.Always == nil {
		return
	}
	t.c.cfg.Policy.Add(*q.Always)
	if ans.Remember == policy.ScopeSession || t.c.cfg.Save == nil {
		return
	}
	if err := t.c.cfg.Save(ans.Remember, *q.Always); err != nil {
		t.log.Error("the rule can't be saved: it holds for this session", "rule", q.Always.Text, "error", err)
	}
}

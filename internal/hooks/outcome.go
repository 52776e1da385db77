package hooks

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// Permission is what PreToolUse hooks say of a call.
type Permission string

// Permissions, from the laxest on. Of several the strictest counts.
const (
	NoOpinion Permission = ""
	Allow     Permission = "allow"
	Ask       Permission = "ask"   // somebody is to be asked
	Defer     Permission = "defer" // the turn ends; the host answers the call later
	Deny      Permission = "deny"
)

func rank(p Permission) int {
	switch p {
	case NoOpinion:
		return 0
	case Allow:
		return 1
	case Ask:
		return 2
	case Defer:
		return 3
	}
	return 4
}

// PermissionAnswer is what a PermissionRequest hook answers in place of the
// user.
type PermissionAnswer struct {
	Allow        bool
	UpdatedInput json.RawMessage // nil: unchanged
	Updates      []policy.Update // of the permissions, with an allow; nil: none
	Message      string          // of a denial
	Interrupt    bool            // of a denial: the turn ends, too
}

// Outcome is what all hooks of an event said together. The zero value is that
// nobody has an opinion.
type Outcome struct {
	Ran int // hooks that were called

	Stop       bool // a hook wants no more to happen in this turn
	StopReason string

	// Block is the general objection: the prompt is dropped, the tool's result is
	// disputed, the conversation does not stop. Reason belongs to it, or to the
	// Permission. A failed guard blocks.
	Block  bool
	Reason string

	Permission   Permission        // PreToolUse
	UpdatedInput json.RawMessage   // PreToolUse; nil: unchanged
	Result       *string           // PostToolUse, PostToolUseFailure: the result's text from now on; nil: as it is
	Answer       *PermissionAnswer // PermissionRequest; nil: ask the user

	Context  []string // for the model, in the order of the registrations
	Messages []string // for the user, in that order
	Failures []error  // of hooks, in that order; reported, and heeded where they guard
}

// Decision is what policy is to know of the hooks' word on a call; nil:
// nothing. A deferred call is one that must not run now: it counts as asked
// about.
func (o *Outcome) Decision() *policy.HookDecision {
	d := policy.HookDecision{Reason: o.Reason}
	switch o.Permission {
	case NoOpinion:
		return nil
	case Allow:
		d.Behavior = policy.Allow
	case Ask, Defer:
		d.Behavior = policy.Ask
	default:
		d.Behavior = policy.Deny
	}
	return &d
}

// spoken is one hook's part in an outcome.
type spoken struct {
	out    output
	err    error
	blocks bool // a failure of it is an objection
}

// merge makes one outcome of what the hooks of an event said, in the order of
// their registrations.
func merge(e Event, all []spoken) Outcome {
	o := Outcome{Ran: len(all)}
	rewriter := -1       // the hook whose input counts
	var reasons []string // of objections
	for i := range all {
		s := &all[i]
		if s.err != nil {
			o.Failures = append(o.Failures, s.err)
			s.out = objection(e, s)
		}
		out := &s.out
		if out.stop && !o.Stop {
			o.Stop, o.StopReason = true, out.stopReason
		}
		if out.context != "" {
			o.Context = append(o.Context, out.context)
		}
		if out.message != "" {
			o.Messages = append(o.Messages, out.message)
		}
		if out.updated != nil {
			o.UpdatedInput, rewriter = out.updated, i
		}
		if out.result != nil {
			o.Result = out.result
		}
		if rank(out.permission) > rank(o.Permission) {
			o.Permission = out.permission
		}
		o.Answer = stricter(o.Answer, out.answer)
		if out.decision == "deny" {
			o.Block = true
			reasons = add(reasons, out.reason)
		}
	}
	// An allow is for the input that its hook saw or wrote.
	if o.Permission == Allow && rewriter >= 0 && all[rewriter].out.permission != Allow {
		o.Permission = NoOpinion
	}
	if e == PreToolUse {
		reasons = reasonsFor(o.Permission, all)
	}
	o.Reason = strings.Join(reasons, "\n")
	return o
}

// reasonsFor collects the reasons of the hooks whose word counts.
func reasonsFor(p Permission, all []spoken) []string {
	var reasons []string
	for i := range all {
		if out := &all[i].out; p != NoOpinion && out.permission == p {
			reasons = add(reasons, out.reason)
		}
	}
	return reasons
}

// stricter returns the answer that counts of two: a denial, or else the earlier
// one. Of two denials either may end the turn.
func stricter(a, b *PermissionAnswer) *PermissionAnswer {
	switch {
	case b == nil:
		return a
	case a == nil || a.Allow && !b.Allow:
		return b
	case !a.Allow && b.Interrupt:
		both := *a
		both.Interrupt = true
		return &both
	}
	return a
}

// objection is what a hook that failed stands for.
func objection(e Event, s *spoken) output {
	reason := s.err.Error()
	switch {
	case e == PreToolUse:
		return output{decision: "deny", permission: Deny, reason: reason}
	case e == PermissionRequest:
		return output{decision: "deny", reason: reason, answer: &PermissionAnswer{Message: reason}}
	case e.guards(), s.blocks && (e == PostToolUse || e == PostToolUseFailure):
		return output{decision: "deny", reason: reason}
	}
	return output{}
}

// add appends s unless it is empty or there already.
func add(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
)

// carryOut judges and runs a call, between its hooks.
func (t *turn) carryOut(ctx context.Context, tool tools.Tool, u model.ToolUse) outcome {
	u, before, over := t.before(ctx, tool, u)
	if over != nil {
		return *over
	}
	p, no := t.permit(ctx, tool, u, before.Decision())
	var o outcome
	if no != nil {
		o = *no
	} else {
		begin := t.c.cfg.Now()
		o = t.call(ctx, tool, p)
		t.after(ctx, p.use, t.c.cfg.Now().Sub(begin), &o)
	}
	o.notes = append(before.Context[:len(before.Context):len(before.Context)], o.notes...)
	return o
}

// before runs the PreToolUse hooks of a call. It returns the call as they want
// it, with what they said of it, or what became of the call already.
func (t *turn) before(ctx context.Context, tool tools.Tool, u model.ToolUse) (model.ToolUse, hooks.Outcome, *outcome) {
	if !t.c.cfg.Hooks.Has(hooks.PreToolUse) {
		return u, hooks.Outcome{}, nil
	}
	u, _, err := t.facts(tool, u) // hooks see what the tool would
	if err != nil {
		o := failed(u, err.Error())
		return u, hooks.Outcome{}, &o
	}
	o := t.c.runHooks(ctx, hooks.PreToolUse, t.callInput(u))
	if o.UpdatedInput != nil {
		u.Input = o.UpdatedInput
	}
	if context.Cause(ctx) != nil {
		gone := failed(u, t.c.cfg.Words.interrupted(u.Name))
		return u, o, &gone
	}
	if over := t.verdict(u, &o); over != nil {
		over.notes = o.Context
		if o.Stop {
			over.stop = &o.StopReason
		}
		return u, o, over
	}
	return u, o, nil
}

// verdict is what becomes of a call that hooks keep from running; nil if they
// don't.
func (t *turn) verdict(u model.ToolUse, o *hooks.Outcome) *outcome {
	switch {
	case o.Permission == hooks.Deny:
		reason := orElse(o.Reason, "it gave no reason")
		return denied(u, ByHook, reason, "A hook denied this call of "+u.Name+": "+reason+".")
	case o.Stop:
		out := failed(u, "The call was not run: a hook stopped the turn.")
		return &out
	case o.Permission == hooks.Defer && t.alone && !t.c.isSub():
		return &outcome{deferred: true}
	}
	return nil
}

// callInput is what the hooks of a call are told.
func (t *turn) callInput(u model.ToolUse) hooks.Input {
	in := t.hookInput()
	in.ToolName, in.ToolUseID = u.Name, u.ID
	in.ToolInput = t.c.cfg.Names.Input(u.Name, u.Input)
	return in
}

// after runs the hooks that look at a call's result, and changes it as they
// want.
func (t *turn) after(ctx context.Context, u model.ToolUse, took time.Duration, o *outcome) {
	event := hooks.PostToolUse
	if o.result.IsError {
		event = hooks.PostToolUseFailure
	}
	if !t.c.cfg.Hooks.Has(event) {
		return
	}
	in := t.callInput(u)
	in.Took = took
	if o.result.IsError {
		in.Error, in.IsInterrupt = model.JoinText(o.result.Blocks), context.Cause(ctx) != nil
	} else {
		in.ToolResponse = response(o)
	}
	if context.Cause(ctx) != nil {
		if !errors.Is(context.Cause(ctx), ErrInterrupted) {
			return
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endWait)
		defer cancel()
	}
	said := t.c.runHooks(ctx, event, in)
	if said.Result != nil {
		o.result.Blocks = t.bounded(u, []model.Block{model.Text{Text: *said.Result}})
		o.display = nil // it shows what was replaced
	}
	if said.Block {
		o.notes = append(o.notes, "A hook objects to the result of this call of "+u.Name+": "+orElse(said.Reason, "it gave no reason")+".")
	}
	o.notes = append(o.notes, said.Context...)
	if said.Stop {
		o.stop = &said.StopReason
	}
}

// response is a call's result as hooks are told: its form for machines, or else
// its text.
func response(o *outcome) json.RawMessage {
	if o.display != nil {
		return o.display
	}
	text, err := json.Marshal(model.JoinText(o.result.Blocks))
	if err != nil { // a string only
		return nil
	}
	return text
}

// addNotes adds what hooks have for the model to the results of an answer's
// calls.
func (c *Conversation) addNotes(results *model.Message, notes []string) {
	if len(notes) == 0 {
		return
	}
	note := model.Text{Text: fromHooks(notes)}
	results.Blocks = append(results.Blocks, note)
	id := uuid.NewString()
	c.record(transcript.Entry{UUID: id, Message: &model.Message{ID: id, Role: model.RoleUser, Blocks: []model.Block{note}}})
}

// putOff ends the turn with a call that a hook put off. The call stays open in
// the history: the next input may answer it.
func (t *turn) putOff(u model.ToolUse) Result {
	t.c.postponed = true
	return Result{Subtype: Success, Terminal: ToolDeferred, Text: t.text, Deferred: &u}
}

// checkResults reports tool results in an input that answer no open call, or one
// twice.
func (c *Conversation) checkResults(blocks []model.Block) error {
	open := map[string]bool{}
	for _, u := range c.openCalls() {
		open[u.ID] = true
	}
	for _, b := range blocks {
		res, ok := b.(model.ToolResult)
		if !ok {
			continue
		}
		if !open[res.ToolUseID] {
			return fmt.Errorf("user line: tool_result for %q answers no open tool_use", res.ToolUseID)
		}
		open[res.ToolUseID] = false
	}
	return nil
}

// settleOpen answers the calls that are open, with the results among blocks or
// else by an error, and returns the blocks of the message: all results first.
// Results that answer nothing are dropped.
func (c *Conversation) settleOpen(ctx context.Context, blocks []model.Block) []model.Block {
	c.postponed = false
	given := map[string]model.ToolResult{}
	var rest []model.Block
	for _, b := range blocks {
		if res, ok := b.(model.ToolResult); ok {
			given[res.ToolUseID] = res
		} else {
			rest = append(rest, b)
		}
	}
	var results []model.Block
	for _, u := range c.openCalls() {
		res, ok := given[u.ID]
		if !ok {
			res = failed(u, "The call was not run: it was put off, and no result for it came.").result
			c.send(ctx, &ToolEnded{UUID: uuid.NewString(), Result: res})
		}
		res.Name = u.Name
		results = append(results, res)
	}
	return append(results, rest...)
}

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/telemetry"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
)

// maxParallel bounds the read-only calls that run at once.
const maxParallel = 8

// progressEvery is the least time between two progress events of one call.
const progressEvery = 100 * time.Millisecond

// outcome is what became of one call.
type outcome struct {
	result  model.ToolResult
	display json.RawMessage
	denial  *Denial
	halt    bool // the one who denied it wants the turn to end
	took    time.Duration

	deferred bool     // a hook put it off: there is no result yet
	stop     *string  // why a hook wants the turn to end; nil: none does
	notes    []string // for the model, beside the result
}

// runTools runs the calls of one answer and adds their results to the history,
// in the order of the calls. It reports a result if the turn ends here.
func (t *turn) runTools(ctx context.Context, uses []model.ToolUse) (Result, bool) {
	msg := &model.Message{ID: uuid.NewString(), Role: model.RoleUser}
	halted := false
	t.alone = len(uses) == 1
	var notes []string
	for len(uses) > 0 {
		n := t.parallelPrefix(uses)
		for _, o := range t.runGroup(ctx, uses[:n], halted) {
			if o.deferred {
				return t.putOff(uses[0]), true
			}
			t.stopped = firstOf(t.stopped, o.stop)
			notes = append(notes, o.notes...)
			msg.Blocks = append(msg.Blocks, o.result)
			halted = halted || o.halt
			t.c.endTool(ctx, uuid.NewString(), o.result, o.display, o.took)
		}
		uses = uses[n:]
		halted = t.settleInherited() || halted
	}
	warning, loop := t.guard.see(t.c.history[len(t.c.history)-1], msg)
	if warning != "" {
		msg.Blocks = append(msg.Blocks, model.Text{Text: warning})
	}
	t.c.addNotes(msg, notes)
	t.c.history = append(t.c.history, msg)
	if r, ended := t.settled(); ended {
		return r, true
	}
	switch {
	case context.Cause(ctx) != nil || halted:
		return t.aborted(ctx, AbortedTools), true
	case t.stopped != nil:
		return t.hookStopped(), true
	case loop != nil:
		return t.failure(loop, loopTerminal(loop)), true
	}
	return Result{}, false
}

// endTool reports the answer to a call.
func (c *Conversation) endTool(ctx context.Context, id string, res model.ToolResult, display json.RawMessage, took time.Duration) {
	c.record(transcript.Entry{
		UUID: id, ToolUseResult: display,
		Message: &model.Message{ID: id, Role: model.RoleUser, Blocks: []model.Block{res}},
	})
	c.send(ctx, &ToolEnded{UUID: id, Result: res, Display: display, Took: took})
}

// parallelPrefix returns how many of the first calls may run together.
func (t *turn) parallelPrefix(uses []model.ToolUse) int {
	n := 0
	for n < len(uses) && t.isFree(uses[n]) {
		n++
	}
	return max(n, 1)
}

// isFree reports whether a call only looks, and may do so without asking.
func (t *turn) isFree(u model.ToolUse) bool {
	tool, ok := t.c.cfg.Tools.Lookup(u.Name)
	if !ok || u.Invalid != "" || !tool.Spec().ReadOnly {
		return false
	}
	u, f, err := t.facts(tool, u)
	if err != nil {
		return false
	}
	d := t.c.cfg.Policy.Decide(f)
	return d.Behavior == policy.Allow && len(d.Checkers) == 0
}

// runGroup runs calls side by side and returns their outcomes in order.
func (t *turn) runGroup(ctx context.Context, uses []model.ToolUse, halted bool) []outcome {
	out := make([]outcome, len(uses))
	if len(uses) == 1 {
		out[0] = t.runOne(ctx, uses[0], halted)
		t.settleDenial(ctx, out)
		return out
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, u := range uses {
		slots <- struct{}{}
		wg.Go(func() { // ends with its call, which ends with ctx
			defer func() { <-slots }()
			out[i] = t.runOne(ctx, u, halted)
		})
	}
	wg.Wait()
	t.settleDenial(ctx, out)
	return out
}

// settleDenial lists and reports the denials among outcomes.
func (t *turn) settleDenial(ctx context.Context, out []outcome) {
	for _, o := range out {
		if o.denial != nil {
			t.denials = append(t.denials, *o.denial)
			t.c.send(ctx, &ToolDenied{Denial: *o.denial})
		}
	}
}

// runOne judges and runs one call. It always returns an answer for it.
func (t *turn) runOne(ctx context.Context, u model.ToolUse, halted bool) (o outcome) {
	begin := t.c.cfg.Now()
	ctx, span := telemetry.Start(ctx, telemetry.SpanTool,
		telemetry.AttrTool.String(u.Name), telemetry.AttrToolCall.String(u.ID))
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("recovered a panic in a tool", "tool", u.Name, "panic", p, "stack", string(debug.Stack()))
			o = failed(u, fmt.Sprintf("The tool %s failed: internal error: %v. It is a defect of this program; try another way.", u.Name, p))
		}
		o.took = t.c.cfg.Now().Sub(begin)
		telemetry.End(span, nil)
		t.log.Debug("tool call ended", "tool", u.Name, "tool_use_id", u.ID, "duration", o.took, "is_error", o.result.IsError)
	}()
	switch {
	case halted:
		return failed(u, "The call was not run: the user stopped the turn.")
	case context.Cause(ctx) != nil:
		return failed(u, t.c.cfg.Words.interrupted(u.Name))
	case t.stopped != nil:
		return failed(u, "The call was not run: a hook stopped the turn.")
	}
	if s := t.c.tuned().schema; isStructured(u, s) {
		return t.takeStructured(u, s)
	}
	switch {
	case u.Invalid != "":
		return failed(u, invalidArguments(u))
	}
	tool, ok := t.c.cfg.Tools.Lookup(u.Name)
	if !ok {
		return t.unknownTool(u)
	}
	if x, ok := tool.(sometimes); ok && tool.Spec().Name != toolSearchName { // a search also finds what is declared
		if why := x.unfit(t.c, t.mode() == policy.ModePlan); why != "" {
			return failed(u, why)
		}
	}
	if tool.Spec().Deferred {
		t.c.find(tool.Spec().Name)
	}
	return t.carryOut(ctx, tool, u)
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// call runs an allowed call.
func (t *turn) call(ctx context.Context, tool tools.Tool, p permitted) outcome {
	u := p.use
	t.c.send(ctx, &ToolStarted{ToolUseID: u.ID, Name: u.Name, Input: u.Input})
	res := tool.Run(ctx, &tools.Call{ID: u.ID, Agent: t.c.cfg.Origin.AgentID, Input: u.Input, Granted: p.granted, Progress: t.progress(ctx, u)})
	o := outcome{result: model.ToolResult{
		ToolUseID: u.ID, Name: u.Name, IsError: res.IsError, Blocks: t.bounded(u, res.Blocks),
	}}
	if res.Display != nil {
		display, err := json.Marshal(res.Display)
		if err != nil {
			t.log.Error("the display form of a tool result cannot be encoded", "tool", u.Name, "error", err)
		} else {
			o.display = display
		}
	}
	return o
}

// progress returns a rate-limited reporter for one call.
func (t *turn) progress(ctx context.Context, u model.ToolUse) func(tools.Progress) {
	var mu sync.Mutex
	begin := t.c.cfg.Now()
	last := begin
	return func(p tools.Progress) {
		mu.Lock()
		now := t.c.cfg.Now()
		due := now.Sub(last) >= progressEvery
		if due {
			last = now
		}
		mu.Unlock()
		if due {
			t.c.send(ctx, &ToolProgressed{ToolUseID: u.ID, Name: u.Name, Elapsed: now.Sub(begin), Progress: p})
		}
	}
}

func failed(u model.ToolUse, text string) outcome {
	return outcome{result: model.ToolResult{
		ToolUseID: u.ID, Name: u.Name, IsError: true, Blocks: []model.Block{model.Text{Text: text}},
	}}
}

func denied(u model.ToolUse, by Source, reason, text string) *outcome {
	o := failed(u, text)
	o.denial = &Denial{ToolName: u.Name, ToolUseID: u.ID, Input: u.Input, Reason: reason, Source: by}
	return &o
}

func invalidArguments(u model.ToolUse) string {
	quoted := u.Invalid
	if len(quoted) > 500 {
		quoted = quoted[:500] + "..."
	}
	return fmt.Sprintf("The arguments of this call to %s are not a JSON object, so it was not run. Call it again with valid JSON. What came: %s", u.Name, quoted)
}

// unknownTool answers a call of a tool that isn't there. One that a rule took
// away is denied, so that the model doesn't look for it under another name.
func (t *turn) unknownTool(u model.ToolUse) outcome {
	f := t.c.Facts()
	f.Tool, f.Input = policy.CanonicalTool(u.Name), u.Input
	if d := t.c.cfg.Policy.Decide(f); d.Behavior == policy.Deny && d.Rule != "" {
		return *denied(u, ByPolicy, d.Reason, refusal(u, d))
	}
	if away := t.c.cfg.Away; away != nil {
		if why := away(u.Name); why != "" {
			return failed(u, fmt.Sprintf("%s can't be called now: %s.", u.Name, why))
		}
	}
	known := ""
	for _, tool := range t.c.cfg.Tools.All() {
		if known != "" {
			known += ", "
		}
		known += t.c.cfg.Names.Tool(tool.Spec().Name)
	}
	return failed(u, fmt.Sprintf("There is no tool named %q. The tools are: %s.", u.Name, known))
}

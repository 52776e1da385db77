package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Bounds of what hooks may cause.
const (
	// maxPushes bounds how often Stop hooks make one turn go on.
	maxPushes = 10
	// endWait bounds the SessionEnd hooks, and those after an interruption.
	endWait = time.Second
	// idleAfter is how long the conversation waits for input before hooks are
	// told.
	idleAfter = 60 * time.Second
)

// hooking is what a conversation keeps about its hooks.
type hooking struct {
	started bool   // the SessionStart or SubagentStart hooks ran
	source  string // of the next start; empty: the Config's

	idle  time.Duration    // before an idle notification; 0: idleAfter
	timer <-chan time.Time // to the next one; nil before the first result
	timed int              // results when the timer was set

	aside  context.Context // of what runs beside the turns
	cancel context.CancelFunc
	wg     sync.WaitGroup // of the same

	mu   sync.Mutex
	held []string // what hooks have for the model, until its next message
}

func (h *hooking) open(ctx context.Context) { h.aside, h.cancel = context.WithCancel(ctx) }

// hold keeps texts for the next message to the model.
func (h *hooking) hold(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, texts...)
}

func (h *hooking) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	texts := h.held
	h.held = nil
	return texts
}

// hookInput is what all hooks are told.
func (c *Conversation) hookInput() hooks.Input {
	return hooks.Input{
		SessionID: c.SessionID(), TranscriptPath: c.cfg.TranscriptPath, Cwd: c.Facts().Cwd,
		PermissionMode: c.cfg.Names.Mode(c.Mode()),
		AgentID:        c.cfg.Origin.AgentID, AgentType: c.cfg.Origin.AgentType,
		AgentTranscriptPath: c.cfg.AgentTranscriptPath,
	}
}

// hookInput is what the hooks of a turn are told.
func (t *turn) hookInput() hooks.Input {
	in := t.c.hookInput()
	in.PermissionMode, in.PromptID = t.c.cfg.Names.Mode(t.mode()), t.in.UUID
	return in
}

// runHooks runs the hooks of an event and shows what they have for the user.
func (c *Conversation) runHooks(ctx context.Context, e hooks.Event, in hooks.Input) hooks.Outcome {
	if c.cfg.HookEvents {
		in.Watch = func(s hooks.Step) { c.watchHook(ctx, s) }
	}
	o := c.cfg.Hooks.Run(ctx, e, in)
	for _, text := range o.Messages {
		c.send(ctx, &HookMessage{Event: string(e), Text: text})
	}
	return o
}

// isSub reports whether this is a sub-agent's conversation.
func (c *Conversation) isSub() bool { return c.cfg.Origin.AgentID != "" }

// open puts the input into the history, once the hooks that stand before it had
// their say. It reports a result if the turn ends here.
func (t *turn) open(ctx context.Context) (Result, bool) {
	if err := t.c.checkResults(t.in.Blocks); err != nil {
		return t.failure(err, BadInput), true
	}
	if t.startHooks(ctx); t.stopped != nil {
		return t.hookStopped(), true
	}
	if r, over := t.promptHooks(ctx); over {
		return r, true
	}
	if context.Cause(ctx) != nil {
		return t.aborted(ctx, AbortedStreaming), true
	}
	if !t.in.Injected {
		if texts := t.c.hooking.take(); len(texts) > 0 {
			t.in.Blocks = append(t.in.Blocks[:len(t.in.Blocks):len(t.in.Blocks)], model.Text{Text: fromHooks(texts)})
		}
	}
	t.begin(ctx)
	return Result{}, false
}

// fromHooks marks what hooks have for the model, so that it isn't taken for the
// user's words.
func fromHooks(texts []string) string {
	return "<hook-context>\nAdded by hooks of this session; it is not the user's message.\n\n" +
		strings.Join(texts, "\n\n") + "\n</hook-context>"
}

// startHooks runs the hooks of the start of the session, or of the sub-agent,
// before its first turn.
func (t *turn) startHooks(ctx context.Context) {
	h := &t.c.hooking
	if h.started {
		return
	}
	h.started = true
	event := hooks.SubagentStart
	if !t.c.isSub() {
		event = hooks.SessionStart
	}
	if !t.c.cfg.Hooks.Has(event) {
		return
	}
	in := t.hookInput()
	in.Source, in.Model = t.c.source(), t.modelName()
	o := t.c.runHooks(ctx, event, in)
	h.hold(o.Context...)
	t.heed(&o)
}

func (c *Conversation) source() string {
	switch {
	case c.hooking.source != "":
		return c.hooking.source
	case c.cfg.Source != "":
		return c.cfg.Source
	case len(c.cfg.History) > 0:
		return "resume"
	}
	return "startup"
}

// heed takes a wish for the turn to end.
func (t *turn) heed(o *hooks.Outcome) {
	if o.Stop {
		t.stopped = firstOf(t.stopped, &o.StopReason)
	}
}

func firstOf(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

// hookStopped is the result of a turn that a hook ended. It is no error.
func (t *turn) hookStopped() Result {
	return Result{Subtype: Success, Terminal: HookStopped, Text: orElse(*t.stopped, t.text)}
}

// promptHooks runs the hooks that stand before the user's prompt. A prompt that
// they drop leaves no trace in the history.
func (t *turn) promptHooks(ctx context.Context) (Result, bool) {
	if t.c.isSub() || t.in.Injected || onlyResults(t.in.Blocks) || !t.c.cfg.Hooks.Has(hooks.UserPromptSubmit) {
		return Result{}, false // a sub-agent's prompt is a model's
	}
	in := t.hookInput()
	in.Prompt = t.prompt
	o := t.c.runHooks(ctx, hooks.UserPromptSubmit, in)
	if context.Cause(ctx) != nil {
		return t.aborted(ctx, AbortedStreaming), true
	}
	if t.heed(&o); t.stopped != nil {
		return t.hookStopped(), true
	}
	if o.Block {
		text := "A hook dropped the prompt: " + orElse(o.Reason, "it gave no reason") + "."
		t.c.send(ctx, &HookMessage{Event: string(hooks.UserPromptSubmit), Text: text})
		return Result{Subtype: Success, Terminal: HookStopped, Text: text}, true
	}
	t.c.hooking.hold(o.Context...)
	return Result{}, false
}

// onlyResults reports whether an input is made of results of calls alone.
func onlyResults(blocks []model.Block) bool {
	return !slices.ContainsFunc(blocks, func(b model.Block) bool {
		_, ok := b.(model.ToolResult)
		return !ok
	})
}

// goesOn asks the Stop hooks, now that the model is done, and reports whether
// they want it to go on: their reason is its next message then.
func (t *turn) goesOn(ctx context.Context) bool {
	event := hooks.Stop
	if t.c.isSub() {
		event = hooks.SubagentStop
	}
	if !t.c.cfg.Hooks.Has(event) || context.Cause(ctx) != nil {
		return false
	}
	in := t.hookInput()
	in.StopHookActive, in.LastAssistantMessage = t.pushed > 0, t.text
	o := t.c.runHooks(ctx, event, in)
	t.heed(&o)
	switch {
	case context.Cause(ctx) != nil:
		return false
	case !o.Block || t.stopped != nil:
		t.c.hooking.hold(o.Context...)
		return false
	case t.pushed >= maxPushes:
		text := fmt.Sprintf("%s hooks made the turn go on %d times; it ends now, although one wants more: %s", event, t.pushed, o.Reason)
		t.c.send(ctx, &HookMessage{Event: string(event), Text: text})
		t.log.Warn("a turn ends against the wish of a hook", "event", event, "times", t.pushed)
		return false
	}
	t.pushed++
	why := append([]string{orElse(o.Reason, "Go on: a hook says that the work isn't done.")}, o.Context...)
	t.note(ctx, strings.Join(why, "\n\n"))
	return true
}

// done is the result of a turn whose model is done.
func (t *turn) done(ctx context.Context) Result {
	r := Result{Subtype: Success, Terminal: Completed, Text: t.text}
	switch {
	case context.Cause(ctx) != nil:
		return t.aborted(ctx, AbortedStreaming)
	case t.stopped != nil:
		r.Terminal = StopHookPrevented
		if *t.stopped != "" {
			t.c.send(ctx, &HookMessage{Event: string(hooks.Stop), Text: *t.stopped})
		}
	}
	return r
}

// answerTo asks the PermissionRequest hooks, and then the user. It says who
// answered.
func (t *turn) answerTo(ctx context.Context, q policy.ToolPermission) (policy.Answer, Source, error) {
	if t.c.cfg.Hooks.Has(hooks.PermissionRequest) {
		in := t.hookInput()
		in.ToolName, in.ToolUseID = q.ToolName, q.ToolUseID
		in.ToolInput = t.c.cfg.Names.Input(q.ToolName, q.Input)
		in.PermissionSuggestions = suggested(q)
		o := t.c.runHooks(ctx, hooks.PermissionRequest, in)
		switch {
		case context.Cause(ctx) != nil:
			return policy.Answer{}, ByInterrupt, context.Cause(ctx)
		case o.Stop:
			return policy.Answer{Message: orElse(o.StopReason, "A hook stopped the turn."), Interrupt: true}, ByHook, nil
		case o.Answer != nil && !o.Answer.Allow:
			return policy.Answer{Message: "A hook denied this call of " + q.ToolName + ": " +
				orElse(o.Answer.Message, "it gave no reason") + ".", Interrupt: o.Answer.Interrupt}, ByHook, nil
		case o.Answer != nil:
			a := q.Allow()
			a.UpdatedInput, a.Updates = o.Answer.UpdatedInput, o.Answer.Updates
			return a, ByHook, nil
		}
	}
	if t.c.Facts().Interactive {
		t.c.notify(t.hookInput(), "permission_prompt", "Permission is needed to use "+q.ToolName)
	}
	ans, err := t.c.cfg.Asker.Ask(ctx, q)
	return ans, ByHost, err
}

// suggested is the update that would allow a call from now on; nil if none can.
func suggested(q policy.ToolPermission) []byte {
	if q.Always == nil {
		return nil
	}
	one, err := policy.Update{
		Type: policy.UpdateAddRules, Behavior: policy.Allow, Rules: []policy.Rule{*q.Always}, Destination: policy.ToLocal,
	}.MarshalJSON()
	if err != nil {
		return nil
	}
	return append(append([]byte("["), one...), ']')
}

// notify tells the Notification hooks, beside the turn: nothing waits for them
// but the end of Run.
func (c *Conversation) notify(in hooks.Input, kind, message string) {
	if !c.cfg.Hooks.Has(hooks.Notification) {
		return
	}
	in.NotificationType, in.Message = kind, message
	c.hooking.wg.Go(func() { // ends with its hooks, or with Run
		o := c.runHooks(c.hooking.aside, hooks.Notification, in)
		c.hooking.hold(o.Context...)
	})
}

// idleTimer fires once after each turn, when hooks are to be told that the
// conversation waits; nil when they aren't.
func (c *Conversation) idleTimer() <-chan time.Time {
	h := &c.hooking
	if c.isSub() || !c.cfg.Hooks.Has(hooks.Notification) {
		return nil
	}
	if h.timed != c.results {
		h.timed = c.results
		after := idleAfter
		if h.idle > 0 {
			after = h.idle
		}
		h.timer = time.After(after)
	}
	return h.timer
}

// endSession waits for what runs beside the turns, and tells hooks of the end.
func (c *Conversation) endSession(ctx context.Context) {
	c.hooking.cancel()
	c.hooking.wg.Wait()
	c.endHooks(ctx, "other")
}

// endHooks runs the SessionEnd hooks, bounded. The next turn starts the session
// anew.
func (c *Conversation) endHooks(ctx context.Context, reason string) {
	if c.isSub() || !c.hooking.started {
		return
	}
	c.hooking.started, c.hooking.source = false, reason
	c.hooking.take()
	if !c.cfg.Hooks.Has(hooks.SessionEnd) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	in := c.hookInput()
	in.Reason = reason
	c.runHooks(ctx, hooks.SessionEnd, in)
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/telemetry"
	"github.com/agentcli/agent/internal/transcript"
)

// turn is one turn in the making. It lives on the worker goroutine.
type turn struct {
	c        *Conversation
	in       Input
	log      *slog.Logger
	start    time.Time
	maxTurns int

	calls   int // model round trips
	apiTime time.Duration
	usage   model.Usage
	stop    model.StopReason
	text    string // last text of the model
	denials []Denial
	guard   loopGuard

	first      time.Duration // until the first piece of an answer; 0: none came
	standIn    standIn
	allowed    []policy.Rule   // allow further calls in this turn
	structured json.RawMessage // the value that fits the schema
	misses     int             // of answers that had to fit it

	prompt  string  // as the user wrote it
	stopped *string // why a hook wants the turn to end; nil: none does
	pushed  int     // times that Stop hooks made the turn go on
	alone   bool    // the call that runs is the only one of its answer
}

// run is the turn's only exit: whatever happens inside, panics included, it
// returns one result and leaves no tool call in the history unanswered.
func (t *turn) run(ctx context.Context) (r Result) {
	t.log = t.c.log.With("prompt_id", t.in.UUID)
	ctx, span := telemetry.Start(ctx, telemetry.SpanTurn,
		telemetry.AttrSession.String(t.c.SessionID()), telemetry.AttrPrompt.String(t.in.UUID))
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("recovered a panic in a turn", "panic", p, "stack", string(debug.Stack()))
			r = t.failure(fmt.Errorf("%w: %v", ErrInternal, p), InternalFault)
		}
		if !t.c.postponed {
			t.c.answerOpenCalls(ctx)
		}
		t.finish(&r)
		span.SetAttributes(telemetry.AttrStop.String(string(r.Terminal)))
		telemetry.End(span, r.Err)
		t.log.Info("turn ended", "terminal_reason", r.Terminal, "duration", r.Duration,
			"api_duration", r.APITime, "model_calls", r.ModelCalls)
	}()
	ctx = context.WithValue(ctx, turnKey{}, t)
	if t.in.Err != nil {
		return t.failure(t.in.Err, BadInput)
	}
	if t.in.Ready != nil {
		select {
		case <-t.in.Ready:
		case <-ctx.Done():
		}
	}
	if t.c.cfg.Prepare != nil { // before the turn says what tools there are
		t.c.cfg.Prepare(ctx)
	}
	if t.maxTurns = t.in.MaxTurns; t.maxTurns <= 0 {
		t.maxTurns = t.c.tuned().maxTurns
	}
	m, err := t.c.cfg.Resolve(t.modelName())
	t.c.send(ctx, &TurnStarted{Input: t.in, Model: m.Display, Mode: t.mode()})
	switch {
	case err != nil:
		return t.failure(err, BadInput)
	case context.Cause(ctx) != nil:
		if !t.c.cfg.Hooks.Has(hooks.UserPromptSubmit) { // which may drop it
			t.begin(ctx)
		}
		return t.aborted(ctx, AbortedStreaming)
	}
	t.prompt = model.JoinText(t.in.Blocks)
	if r, ended := t.expand(ctx); ended {
		return r
	}
	if r, ended := t.open(ctx); ended {
		return r
	}
	if context.Cause(ctx) != nil {
		return t.aborted(ctx, AbortedStreaming)
	}
	return t.loop(ctx)
}

// loop asks the model and runs its tools until there is a result.
func (t *turn) loop(ctx context.Context) Result {
	for {
		t.settleInherited()
		if r, ended := t.deniedEnds(); ended {
			return r
		}
		if t.maxTurns > 0 && t.calls >= t.maxTurns {
			return t.tooManyTurns()
		}
		if r, ended := t.overBudget(); ended {
			return r
		}
		msg, err := t.ask(ctx)
		if err != nil {
			return t.requestFailed(ctx, msg, err)
		}
		uses := toolUses(msg)
		if len(uses) == 0 && t.awaitTasks(ctx) {
			continue
		}
		if len(uses) == 0 {
			if t.c.tuned().schema == nil {
				if t.goesOn(ctx) {
					continue
				}
				return t.done(ctx)
			}
			if r, ended := t.demandStructured(ctx); ended {
				return r
			}
			continue
		}
		if r, ended := t.runTools(ctx, uses); ended {
			if r.Structured != nil && t.goesOn(ctx) {
				t.structured = nil
				continue
			}
			return r
		}
	}
}

// modelName is the model of the next request: it may change during the turn.
func (t *turn) modelName() string {
	name := t.wanted()
	if t.standIn.name != "" && t.standIn.of == name {
		return t.standIn.name
	}
	return name
}

// wanted is the model that was asked for.
func (t *turn) wanted() string {
	if t.in.Model != "" {
		return t.in.Model
	}
	return t.c.Model()
}

func (t *turn) mode() policy.Mode {
	if t.c.parent != nil {
		return t.c.parent.mode()
	}
	if t.in.Mode != nil {
		return *t.in.Mode
	}
	return t.c.Mode()
}

// finish fills in what every result has.
func (t *turn) finish(r *Result) {
	r.InputUUID, r.Origin = t.in.UUID, t.in.Origin
	r.FirstToken = t.first
	r.Duration = t.c.cfg.Now().Sub(t.start)
	r.APITime = t.apiTime
	r.ModelCalls = t.calls
	r.Usage = t.usage
	r.Denials = t.denials
	if r.Stop == "" {
		r.Stop = t.stop
	}
}

func (t *turn) failure(err error, why Terminal) Result {
	return Result{
		Subtype: ErrorDuringExecution, IsError: true, Terminal: why,
		Errors: []string{err.Error()}, Err: err,
	}
}

// deniedEnds returns the turn's result when a call was denied, within a
// sub-agent too, and that is to end the turn.
func (t *turn) deniedEnds() (Result, bool) {
	if !t.c.cfg.FailOnDenial || len(t.denials) == 0 {
		return Result{}, false
	}
	d := t.denials[0]
	return t.failure(fmt.Errorf("%w: %s: %s", ErrDenied, d.ToolName, d.Reason), PermissionDenied), true
}

func (t *turn) tooManyTurns() Result {
	err := fmt.Errorf("%w: reached maximum number of turns (%d)", ErrMaxTurns, t.maxTurns)
	return Result{
		Subtype: ErrorMaxTurns, IsError: true, Terminal: MaxTurnsReached, Err: err,
		Errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", t.maxTurns)},
	}
}

// aborted is the result of a turn that ctx ended, or that whoever denied a call
// wanted to end: then there is no cause. Neither that nor an interruption is an
// error.
func (t *turn) aborted(ctx context.Context, why Terminal) Result {
	cause := context.Cause(ctx)
	note := noteStreaming
	if why == AbortedTools {
		note = noteTools
	}
	t.c.answerOpenCalls(ctx)
	t.note(ctx, note)
	return Result{
		Subtype: ErrorDuringExecution, Terminal: why, Err: cause, Text: t.text,
		IsError: cause != nil && !errors.Is(cause, ErrInterrupted) && !errors.Is(cause, ErrStopped),
	}
}

// requestFailed turns a failed model request into the turn's result. msg is
// what had come of the answer, nil if nothing.
func (t *turn) requestFailed(ctx context.Context, msg *model.Message, err error) Result {
	if context.Cause(ctx) != nil {
		return t.aborted(ctx, AbortedStreaming)
	}
	var apiErr *model.Error
	if !errors.As(err, &apiErr) {
		return t.failure(err, InternalFault)
	}
	why := APIFailed
	switch apiErr.Kind {
	case model.ErrContext:
		why = PromptTooLong
	case model.ErrMalformedUse:
		why = MalformedToolUse
	}
	text := "API Error: " + apiErr.Error()
	t.reportFailure(ctx, apiErr, text)
	t.log.Warn("model request failed", "error", apiErr)
	return Result{
		Subtype: Success, IsError: true, Terminal: why, Text: text, Err: apiErr, APIError: apiErr,
	}
}

// reportFailure shows the failure in place of an answer. It is kept in the
// transcript, marked, and not in the history.
func (t *turn) reportFailure(ctx context.Context, apiErr *model.Error, text string) {
	e := &RequestFailed{UUID: uuid.NewString(), MessageID: newMessageID(), Err: apiErr, Text: text}
	t.c.record(transcript.Entry{
		UUID: e.UUID, MessageID: e.MessageID, Model: synthetic, APIError: true,
		Message: &model.Message{ID: e.UUID, Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: text}}},
	})
	t.c.send(ctx, e)
}

func newMessageID() string {
	return "msg_" + strings.ReplaceAll(uuid.NewString(), "-", "")
}

func toolUses(m *model.Message) []model.ToolUse {
	var uses []model.ToolUse
	for _, b := range m.Blocks {
		if u, ok := b.(model.ToolUse); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// openCalls returns the tool calls of the last answer if they have no results.
func (c *Conversation) openCalls() []model.ToolUse {
	if len(c.history) == 0 {
		return nil
	}
	last := c.history[len(c.history)-1]
	if last.Role != model.RoleAssistant {
		return nil
	}
	return toolUses(last)
}

// answerOpenCalls makes the history valid: a tool call of the last answer that
// has no result gets an error result. It does nothing when all is answered.
func (c *Conversation) answerOpenCalls(ctx context.Context) {
	c.postponed = false
	uses := c.openCalls()
	if len(uses) == 0 {
		return
	}
	msg := &model.Message{ID: uuid.NewString(), Role: model.RoleUser}
	for _, u := range uses {
		res := model.ToolResult{ToolUseID: u.ID, Name: u.Name, IsError: true,
			Blocks: []model.Block{model.Text{Text: "The call was not run: the turn ended before."}}}
		msg.Blocks = append(msg.Blocks, res)
		c.endTool(ctx, uuid.NewString(), res, nil, 0)
	}
	c.history = append(c.history, msg)
}

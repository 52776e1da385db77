package agent

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/telemetry"
	"github.com/agentcli/agent/internal/transcript"
	"github.com/agentcli/agent/internal/usage"
)

// answer is one answer of the model in the making.
type answer struct {
	t       *turn
	m       Model
	asm     model.Assembler
	started bool
	open    int             // index of the open block, -1 if none
	kind    model.DeltaKind // that opened it
	msgID   string
	entries []transcript.Entry // completed blocks, recorded once the answer ends
	delta   BlockDelta         // reused
	since   time.Time          // start of the running attempt
	failed  int                // attempts that failed and are in the ledger
	// superseded are the uuids of blocks that were reported and then voided.
	superseded []string
}

// ask sends the history and streams one answer, which it adds to the history.
// On an error the message is what had come, already in the history, or nil.
func (t *turn) ask(ctx context.Context) (*model.Message, error) {
	m, err := t.c.cfg.Resolve(t.modelName())
	if err != nil {
		return nil, err
	}
	ctx, span := telemetry.Start(ctx, telemetry.SpanRequest,
		telemetry.AttrProvider.String(m.ProviderName), telemetry.AttrModel.String(m.Name))
	a := &answer{t: t, m: m, open: -1, msgID: newMessageID(), since: t.c.cfg.Now()}
	begin := a.since
	err = a.stream(ctx)
	m = a.m
	t.calls++
	t.apiTime += t.c.cfg.Now().Sub(begin)
	a.settle(ctx, err)
	u := a.asm.Usage()
	span.SetAttributes(telemetry.AttrInputTokens.Int(u.InputTokens), telemetry.AttrOutputTokens.Int(u.OutputTokens))
	telemetry.End(span, err)
	t.log.Debug("model request", "model", m.Display, "duration", t.c.cfg.Now().Sub(begin),
		"input_tokens", u.InputTokens, "output_tokens", u.OutputTokens, "error", err)
	return a.keep(err), err
}

// stream asks the model, and those that may stand in for it when it can't
// answer, each anew.
func (a *answer) stream(ctx context.Context) error {
	for {
		err := a.m.Provider.Stream(ctx, a.t.request(a.m), func(d model.Delta) { a.add(ctx, d) })
		if err == nil {
			return nil
		}
		next, ok := a.t.fallback(ctx, a.m, err)
		if !ok {
			return err
		}
		a.book(true)
		a.restart()
		a.m, a.failed = next, 0
	}
}

func (t *turn) request(m Model) *model.Request {
	now := t.c.tuned()
	r := &model.Request{
		Model: m.Name, System: t.c.withNotes(now.system), Messages: t.c.history[:len(t.c.history):len(t.c.history)],
		SessionID: now.sessionID, ThinkingBudget: now.thinking, MaxOutputTokens: t.c.cfg.MaxOutput,
		Temperature: t.c.cfg.Temperature, TopP: t.c.cfg.TopP,
	}
	if m.Info.Thinking {
		r.Effort = now.effort
	}
	r.Tools = t.c.toolSpecs(t.mode() == policy.ModePlan)
	return r
}

// add takes one delta of the stream.
func (a *answer) add(ctx context.Context, d model.Delta) {
	switch d.Kind {
	case model.DeltaPing:
		return
	case model.DeltaRetry:
		a.retried(d.Retry.Attempt)
		a.t.c.send(ctx, &RequestRetried{Info: *d.Retry})
		a.t.log.Warn("model request is retried", "attempt", d.Retry.Attempt, "delay", d.Retry.Delay, "error", d.Retry.Err)
		return
	case model.DeltaRestart:
		a.restart()
		return
	}
	if a.t.first == 0 {
		a.t.first = max(a.t.c.cfg.Now().Sub(a.t.start), 1)
	}
	if d.Kind == model.DeltaToolStart {
		d.Name = a.t.c.cfg.Names.Tool(d.Name)
	}
	i, b := a.asm.Add(d)
	a.complete(ctx, i, b)
	switch d.Kind {
	case model.DeltaText, model.DeltaThinking, model.DeltaToolInput:
		a.ensureOpen(ctx, d)
		if d.Text != "" {
			a.piece(ctx, d.Index, d.Kind, d.Text)
		}
	case model.DeltaSignature:
		if a.open == d.Index && a.kind == model.DeltaThinking {
			a.piece(ctx, d.Index, d.Kind, d.Sig.Value)
		}
	case model.DeltaToolStart, model.DeltaRedacted:
		a.ensureOpen(ctx, d)
	}
}

// retried books the attempt that failed, unless it is booked (a wait before the
// first attempt, or a longer wait after the same one). What it had counted is
// not the next one's.
func (a *answer) retried(attempt int) {
	if attempt <= a.failed {
		return
	}
	a.failed = attempt
	a.book(true)
	a.asm.Add(model.Delta{Kind: model.DeltaUsage, Usage: new(model.Usage)})
}

// restart voids what came so far.
func (a *answer) restart() {
	a.asm = model.Assembler{}
	a.started, a.open = false, -1
	a.msgID = newMessageID()
	for i := range a.entries {
		a.superseded = append(a.superseded, a.entries[i].UUID)
	}
	a.entries = nil
}

func (a *answer) piece(ctx context.Context, index int, kind model.DeltaKind, text string) {
	a.delta = BlockDelta{Index: index, Kind: kind, Text: text}
	a.t.c.send(ctx, &a.delta)
}

// ensureOpen opens d's block if it is a new one, and the message with it.
func (a *answer) ensureOpen(ctx context.Context, d model.Delta) {
	if a.open == d.Index {
		return
	}
	a.ensureStarted(ctx)
	a.open, a.kind = d.Index, d.Kind
	var b model.Block
	switch d.Kind {
	case model.DeltaText:
		b = model.Text{}
	case model.DeltaThinking:
		b = model.Thinking{}
	case model.DeltaRedacted:
		b = model.Thinking{Redacted: d.Text}
	case model.DeltaToolStart:
		b = model.ToolUse{ID: d.ID, Name: d.Name}
	}
	a.t.c.send(ctx, &BlockStarted{Index: d.Index, Block: b})
}

func (a *answer) ensureStarted(ctx context.Context) {
	if a.started {
		return
	}
	a.started = true
	a.t.c.send(ctx, &MessageStarted{MessageID: a.msgID, Model: a.m.Display, Supersedes: a.superseded})
	a.superseded = nil
}

// complete reports a finished block.
func (a *answer) complete(ctx context.Context, index int, b model.Block) {
	if b == nil {
		return
	}
	e := transcript.Entry{
		UUID: uuid.NewString(), MessageID: a.msgID, Model: a.m.Display,
		Message: &model.Message{Role: model.RoleAssistant, Blocks: []model.Block{b}},
	}
	e.Message.ID = e.UUID
	a.entries = append(a.entries, e)
	if a.open != index {
		return // only a signature: it is kept, and there is nothing to show
	}
	a.open = -1
	a.t.c.send(ctx, &BlockEnded{Index: index, Block: b, UUID: e.UUID, MessageID: a.msgID, Model: a.m.Display, Usage: a.asm.Usage()})
	a.t.c.send(ctx, &BlockClosed{Index: index})
}

// settle closes the answer after the stream: what is open of an answer that
// broke off is kept if it is text, dropped if it is half a tool call.
func (a *answer) settle(ctx context.Context, err error) {
	if err != nil {
		i, b := a.asm.Abandon()
		a.complete(ctx, i, b)
	}
	a.book(err != nil)
	a.t.stop = a.asm.Stop()
	if a.started && a.open < 0 { // one that broke off within a call has no end
		a.t.c.send(ctx, &MessageEnded{MessageID: a.msgID, Stop: a.asm.Stop(), Usage: a.asm.Usage()})
	}
}

// book enters the attempt that just ended into the ledger and the turn's usage,
// so that their sums are the same.
func (a *answer) book(failed bool) {
	now := a.t.c.cfg.Now()
	u := a.asm.Usage()
	a.t.usage = a.t.usage.Add(u)
	a.t.c.cfg.Ledger.Add(usage.Entry{
		RequestID: uuid.NewString(), Provider: a.m.ProviderName, Model: a.m.Display,
		Usage: u, CostUSD: model.Cost(a.m.Info, u), Duration: now.Sub(a.since), Failed: failed,
		Context: a.m.Info.ContextWindow, MaxOutput: a.m.Info.MaxOutput,
	})
	a.since = now
}

// keep adds the answer to the history and its blocks to the transcript.
func (a *answer) keep(err error) *model.Message {
	blocks := a.asm.Blocks()
	if len(blocks) == 0 {
		return nil
	}
	msg := &model.Message{ID: a.msgID, Role: model.RoleAssistant, Blocks: blocks}
	u := a.asm.Usage()
	for i := range a.entries {
		a.entries[i].Usage, a.entries[i].Stop = &u, a.asm.Stop()
		a.t.c.record(a.entries[i])
	}
	a.t.c.history = append(a.t.c.history, msg)
	if text := model.JoinText(blocks); text != "" || err == nil {
		a.t.text = text
	}
	return msg
}

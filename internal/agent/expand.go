package agent

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/transcript"
)

// synthetic is the model that frames name for texts that no model wrote.
const synthetic = "<synthetic>"

// Expansion is what became of a text that begins with "/". The zero value
// leaves it to the model as it is.
type Expansion struct {
	// Handled says that it was a command. Then Err fails the turn, else Blocks
	// go to the model in the text's place, and else Reply is the whole answer:
	// no model is asked.
	Handled bool
	Err     error
	Blocks  []model.Block
	Reply   string

	Model        string        // asks this model in this turn; empty: no wish
	AllowedTools []policy.Rule // allow further calls in this turn
	Reset        bool          // empties the history first, under a new session id
}

// command returns the text if it may be a command.
func (in *Input) command() (string, bool) {
	if in.Composed || in.Injected || len(in.Blocks) == 0 {
		return "", false
	}
	first, ok := in.Blocks[0].(model.Text)
	return first.Text, ok && strings.HasPrefix(first.Text, "/")
}

// expand offers the input as a command. It reports the turn's result if the
// turn ends with that.
func (t *turn) expand(ctx context.Context) (Result, bool) {
	if t.c.cfg.Expand == nil {
		return Result{}, false
	}
	if _, ok := t.in.command(); !ok {
		return Result{}, false
	}
	before := t.c.tuned()
	x, err := t.c.cfg.Expand(ctx, t.in)
	t.announce(ctx, &before)
	switch {
	case context.Cause(ctx) != nil:
		return t.aborted(ctx, AbortedStreaming), true
	case err != nil:
		return t.failure(err, InternalFault), true
	case !x.Handled:
		return Result{}, false
	}
	if x.Reset {
		if err := t.c.reset(ctx); err != nil {
			return t.failure(err, InternalFault), true
		}
	}
	if x.Err != nil {
		return t.failure(x.Err, BadInput), true
	}
	if x.Blocks == nil {
		return t.reply(ctx, x.Reply), true
	}
	t.in.Blocks, t.allowed = x.Blocks, x.AllowedTools
	if x.Model != "" {
		t.in.Model = x.Model
	}
	return Result{}, false
}

// announce tells what a command changed.
func (t *turn) announce(ctx context.Context, before *tuning) {
	now := t.c.tuned()
	if now.model != before.model {
		t.c.send(ctx, &ModelChanged{Old: before.model, New: now.model})
	}
	if now.mode != before.mode {
		t.c.send(ctx, &ModeChanged{Old: before.mode, New: now.mode})
	}
}

// reply shows a text in place of a model's answer. It is not in the history.
func (t *turn) reply(ctx context.Context, text string) Result {
	if text != "" {
		id, msg := uuid.NewString(), newMessageID()
		block := model.Text{Text: text}
		t.c.send(ctx, &MessageStarted{MessageID: msg, Model: synthetic})
		t.c.send(ctx, &BlockStarted{Block: model.Text{}})
		t.c.send(ctx, &BlockDelta{Kind: model.DeltaText, Text: text})
		t.c.send(ctx, &BlockEnded{Block: block, UUID: id, MessageID: msg, Model: synthetic})
		t.c.send(ctx, &BlockClosed{})
		t.c.send(ctx, &MessageEnded{MessageID: msg, Stop: model.StopEndTurn})
	}
	return Result{Subtype: Success, Terminal: Completed, Text: text, Local: true}
}

// Clear empties the history once the inputs before it are done: what follows
// has a new session id. It reports false when the conversation takes no more.
func (c *Conversation) Clear() bool { return c.inbox.put(Input{clear: true}) }

// reset empties the history. On an error nothing is changed.
func (c *Conversation) reset(ctx context.Context) error {
	old, id := c.SessionID(), uuid.NewString()
	if c.cfg.Reopen != nil {
		next, err := c.cfg.Reopen(id)
		if err != nil {
			return err
		}
		c.cfg.Transcript, c.unsaved = next, nil
	}
	c.endHooks(ctx, "clear")
	c.history, c.postponed = nil, false
	c.mu.Lock()
	c.tune.sessionID, c.found, c.resumable = id, nil, None
	c.spentUSD += c.cfg.Ledger.Reset()
	c.mu.Unlock()
	c.send(ctx, &ConversationReset{Old: old, New: id})
	return nil
}

// Interruption says how the last turn ended, in the wire's words.
type Interruption string

// Interruptions.
const (
	None              Interruption = "none"
	InterruptedPrompt Interruption = "interrupted_prompt" // before the model answered
	InterruptedTurn   Interruption = "interrupted_turn"   // in the middle of its work
)

// Texts of the notes that an interruption leaves.
const (
	noteStreaming = "[Request interrupted by user]"
	noteTools     = "[Request interrupted by user for tool use]"
)

// ContinueLast starts a turn that goes on where an interrupted one stopped,
// without a new message of the user. It is refused while a turn runs or waits,
// and when the last one came to its end. receipt is told before the turn
// begins; it must not block or call the conversation.
func (c *Conversation) ContinueLast(receipt func(accepted bool, how Interruption)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.working || c.inbox.len() > 0 || c.resumable == None || c.inbox.isClosed() {
		receipt(false, None)
		return
	}
	receipt(true, c.resumable)
	c.inbox.put(Input{UUID: uuid.NewString(), Injected: true, Origin: []byte(`{"kind":"auto-continuation"}`)})
}

// interruption tells from a history how its last turn ended.
func interruption(history []*model.Message) Interruption {
	n := len(history)
	noted := n > 0 && isNote(history[n-1])
	if noted {
		n--
	}
	switch {
	case n == 0:
		return None
	case history[n-1].Role == model.RoleUser && !answersCalls(history[n-1]):
		return InterruptedPrompt
	case history[n-1].Role == model.RoleUser || noted || len(toolUses(history[n-1])) > 0:
		return InterruptedTurn
	}
	return None
}

// isNote reports whether a message is the note of an interruption.
func isNote(m *model.Message) bool {
	if m.Role != model.RoleUser || len(m.Blocks) != 1 {
		return false
	}
	text, ok := m.Blocks[0].(model.Text)
	return ok && (text.Text == noteStreaming || text.Text == noteTools)
}

func answersCalls(m *model.Message) bool {
	for _, b := range m.Blocks {
		if _, ok := b.(model.ToolResult); ok {
			return true
		}
	}
	return false
}

// begin puts the input into the history. One without blocks goes on where the
// history ends; the note of the interruption goes, so that the model doesn't
// take it for the last word.
func (t *turn) begin(ctx context.Context) {
	c := t.c
	answers := len(c.openCalls()) > 0
	t.in.Blocks = c.settleOpen(ctx, t.in.Blocks)
	if !answers {
		t.addNotes(ctx)
	}
	switch {
	case !t.in.Injected || len(t.in.Blocks) > 0: // shown with TurnStarted
		c.remember(&model.Message{ID: t.in.UUID, Role: model.RoleUser, Blocks: t.in.Blocks}, transcript.Entry{})
		if answers { // results come right after their calls
			t.addNotes(ctx)
		}
	default:
		if n := len(c.history); n > 0 && isNote(c.history[n-1]) {
			c.history = c.history[: n-1 : n-1]
		}
		if n := len(c.history); n == 0 || c.history[n-1].Role == model.RoleAssistant {
			t.note(ctx, "Continue from where you left off.")
		}
	}
}

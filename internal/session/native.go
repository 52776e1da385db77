package session

import (
	"context"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

// maxDelta is the most text of one delta frame, in bytes.
const maxDelta = 256 << 10

// synthetic is the model that frames name for texts that no model wrote.
const synthetic = "<synthetic>"

// Native writes the native dialect and, with Facts that say so, claude's: the
// frames and their order of wire/claude-agent-sdk.md §2. The claude dialect
// has no frames of types that its older hosts don't know.
//
// Of a sub-agent it shows the tool calls and their results, and what it says
// only if Facts.ForwardText wants that.
type Native struct {
	Facts   *Facts
	Out     Output
	Partial bool // write stream_event frames
	Replay  bool // repeat the user's lines as their turns begin

	supersedes map[string][]string // by agent: for its next assistant frame
	delta      streamjson.StreamDelta
}

// Event implements Projector.
func (n *Native) Event(ctx context.Context, from agent.Origin, e agent.Event) {
	switch e := e.(type) {
	case *agent.BlockDelta:
		n.blockDelta(ctx, from, e)
	case *agent.TurnStarted:
		n.turnStarted(from, e)
	case *agent.MessageStarted:
		n.messageStarted(from, e)
	case *agent.BlockStarted:
		n.event(from, streamjson.BlockStart{Index: e.Index, Block: toWire(e.Block)})
	case *agent.BlockEnded:
		n.assistant(from, e)
	case *agent.BlockClosed:
		n.event(from, streamjson.BlockStop{Index: e.Index})
	case *agent.MessageEnded:
		n.messageEnded(from, e)
	case *agent.RequestFailed:
		n.requestFailed(from, e)
	case *agent.RequestRetried:
		n.send(n.retry(from, e))
	case *agent.ToolProgressed:
		if n.Facts.Dialect != streamjson.Claude {
			n.send(n.Facts.progress(from, e))
		}
	case *agent.ToolDenied:
		n.send(&streamjson.SystemPermissionDenied{
			ToolName: e.Denial.ToolName, ToolUseID: e.Denial.ToolUseID, Message: e.Denial.Reason,
			SessionID: n.Facts.SessionID, UUID: streamjson.NewUUID(), Extra: agentMembers(from),
		})
	case *agent.ToolEnded:
		n.send(n.Facts.toolResult(from, e))
	case *agent.Noted:
		n.noted(from, e)
	case *agent.Appended:
		n.appended(e)
	case *agent.ModelFallback, *agent.ModeChanged, *agent.ModelChanged, *agent.ConversationReset, *agent.Compacted:
		n.changed(from, e)
	case *agent.TaskStarted, *agent.TaskProgressed:
		n.send(n.Facts.task(e))
	case *agent.TaskEnded:
		delete(n.supersedes, e.Task.ID)
		n.send(n.Facts.task(e))
	case *agent.HookStarted, *agent.HookEnded, *agent.HookMessage:
		n.send(n.Facts.hook(from, e))
	case *agent.TurnEnded:
		n.turnEnded(from, e)
	case *agent.ToolStarted: // the assistant frame told already
	}
}

// isMain reports whether an event is of the main conversation.
func isMain(from agent.Origin) bool { return from == agent.Origin{} }

// speaks reports whether what from says is shown.
func (n *Native) speaks(from agent.Origin) bool { return isMain(from) || n.Facts.forwards() }

// send writes one frame, made to fit.
func (n *Native) send(m streamjson.Message) {
	n.Facts.fit(m)
	_ = n.Out.Send(m) // the Output reports a consumer that went away
}

// event writes a stream_event if they are wanted.
func (n *Native) event(from agent.Origin, e streamjson.Event) {
	if n.Partial && n.speaks(from) {
		_ = n.Out.Send(&streamjson.StreamEvent{Event: e, ParentToolUseID: from.ParentToolUseID, SessionID: n.Facts.SessionID})
	}
}

func (n *Native) turnStarted(from agent.Origin, e *agent.TurnStarted) {
	switch {
	case isMain(from):
		n.send(n.Facts.init(e))
		n.opening(&e.Input)
	case n.speaks(from):
		n.send(n.Facts.prompt(from, &e.Input))
	}
}

// opening writes what a turn begins with, if it is to be shown: what the
// program put in itself, or the user's line once more.
func (n *Native) opening(in *agent.Input) {
	if len(in.Blocks) == 0 || !in.Injected && !n.Replay {
		return
	}
	line := n.Facts.prompt(agent.Origin{}, in)
	line.IsSynthetic, line.IsReplay, line.Origin = in.Injected, !in.Injected, in.Origin
	n.send(line)
}

// turnEnded writes the result of a turn; that of a sub-agent is the result of
// the call that started it.
func (n *Native) turnEnded(from agent.Origin, e *agent.TurnEnded) {
	if !isMain(from) {
		delete(n.supersedes, from.AgentID)
		return
	}
	n.send(n.Facts.Result(e.Result))
}

func (n *Native) messageStarted(from agent.Origin, e *agent.MessageStarted) {
	if len(e.Supersedes) > 0 {
		if n.supersedes == nil {
			n.supersedes = map[string][]string{}
		}
		n.supersedes[from.AgentID] = append(n.supersedes[from.AgentID], e.Supersedes...)
	}
	n.event(from, streamjson.MessageStart{Message: streamjson.AssistantMessage{ID: e.MessageID, Model: e.Model}})
}

func (n *Native) blockDelta(ctx context.Context, from agent.Origin, e *agent.BlockDelta) {
	if n.Partial && n.speaks(from) {
		sendDelta(ctx, n.Out, &n.delta, streamjson.StreamDelta{
			SessionID: n.Facts.SessionID, ParentToolUseID: from.ParentToolUseID, Index: e.Index, Kind: deltaKind(e.Kind), Text: e.Text,
		})
	}
}

func deltaKind(k model.DeltaKind) streamjson.DeltaKind {
	switch k {
	case model.DeltaThinking:
		return streamjson.DeltaThinking
	case model.DeltaToolInput:
		return streamjson.DeltaInputJSON
	case model.DeltaSignature:
		return streamjson.DeltaSignature
	}
	return streamjson.DeltaText
}

// sendDelta writes d in pieces that fit a frame, each in buf.
func sendDelta(ctx context.Context, out Output, buf *streamjson.StreamDelta, d streamjson.StreamDelta) {
	for text := d.Text; text != ""; {
		head := cut(text, maxDelta)
		text = text[len(head):]
		*buf = d
		buf.Text = head
		if out.SendDelta(ctx, buf) != nil && ctx.Err() != nil {
			_ = out.Send(buf) // the turn ended while the queue was full: nothing is lost
		}
	}
}

// cut returns at most max bytes of the start of s, in whole characters.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	i := max
	for i > max-utf8.UTFMax && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i]
}

func (n *Native) assistant(from agent.Origin, e *agent.BlockEnded) {
	if _, calls := e.Block.(model.ToolUse); !calls && !n.speaks(from) {
		return
	}
	a := &streamjson.Assistant{
		Message: streamjson.AssistantMessage{
			ID: e.MessageID, Model: e.Model, Content: streamjson.Blocks{toWire(e.Block)}, Usage: toUsage(e.Usage),
		},
		ParentToolUseID: from.ParentToolUseID, SessionID: n.Facts.SessionID, UUID: e.UUID,
	}
	n.supersede(from, a)
	n.send(a)
}

// supersede tells with a which frames are void, if any are, and whose a is.
func (n *Native) supersede(from agent.Origin, a *streamjson.Assistant) {
	extra := agentFields(from)
	if void := n.supersedes[from.AgentID]; len(void) > 0 {
		extra["supersedes"] = void
		delete(n.supersedes, from.AgentID)
	}
	a.Extra = members(extra)
}

func (n *Native) messageEnded(from agent.Origin, e *agent.MessageEnded) {
	n.event(from, streamjson.MessageDelta{StopReason: string(e.Stop), Usage: streamjson.DeltaUsage{
		InputTokens: e.Usage.InputTokens, OutputTokens: e.Usage.OutputTokens,
		CacheCreationInputTokens: e.Usage.CacheWriteTokens, CacheReadInputTokens: e.Usage.CacheReadTokens,
	}})
	n.event(from, streamjson.MessageStop{})
}

func (n *Native) requestFailed(from agent.Origin, e *agent.RequestFailed) {
	if !n.speaks(from) {
		return
	}
	a := &streamjson.Assistant{
		Message: streamjson.AssistantMessage{
			ID: e.MessageID, Model: synthetic, Content: streamjson.Blocks{streamjson.TextBlock{Text: e.Text}},
		},
		ParentToolUseID: from.ParentToolUseID, Error: wireError(e.Err), SessionID: n.Facts.SessionID, UUID: e.UUID,
	}
	n.supersede(from, a)
	n.send(a)
}

func (n *Native) noted(from agent.Origin, e *agent.Noted) {
	if !n.speaks(from) {
		return
	}
	line := &streamjson.UserLine{
		Message:         streamjson.UserMessage{Content: streamjson.BlockContent(streamjson.TextBlock{Text: e.Text})},
		ParentToolUseID: from.ParentToolUseID, SessionID: n.Facts.SessionID, UUID: e.UUID, IsSynthetic: true,
		Extra: agentMembers(from),
	}
	if e.Kind == agent.NoteTask {
		line.Origin = []byte(`{"kind":"task-notification"}`)
	}
	n.send(line)
}

// appended acknowledges a line that started no turn.
func (n *Native) appended(e *agent.Appended) {
	n.opening(&e.Input)
	if n.Facts.Dialect == streamjson.Claude {
		return
	}
	n.send(&streamjson.System{Subtype: "user_appended", SessionID: n.Facts.SessionID, UUID: streamjson.NewUUID(),
		Extra: members(map[string]any{"user_message_uuid": e.Input.UUID})})
}

func (n *Native) retry(from agent.Origin, e *agent.RequestRetried) *streamjson.SystemAPIRetry {
	out := &streamjson.SystemAPIRetry{
		Attempt: e.Info.Attempt, MaxRetries: e.Info.MaxRetries, RetryDelayMS: e.Info.Delay.Milliseconds(),
		SessionID: n.Facts.SessionID, UUID: streamjson.NewUUID(),
	}
	extra := agentFields(from)
	if err := e.Info.Err; err != nil {
		out.ErrorStatus, out.Error = err.Status, wireError(err)
		extra["message"], extra["kind"] = err.Error(), string(err.Kind)
	}
	out.Extra = members(extra)
	return out
}

// changed tells of another model, mode or conversation. What happens to a
// sub-agent is no change of the session.
func (n *Native) changed(from agent.Origin, e agent.Event) {
	if !isMain(from) {
		return
	}
	switch e := e.(type) {
	case *agent.ModeChanged:
		n.send(n.Facts.modeStatus(e.New))
	case *agent.ModelChanged:
		n.send(n.Facts.modelStatus(e.New))
	case *agent.ModelFallback:
		n.send(n.Facts.fallback(e))
	case *agent.ConversationReset:
		n.send(n.Facts.reset(e))
	case *agent.Compacted:
		n.send(n.Facts.compacted(e))
	}
}

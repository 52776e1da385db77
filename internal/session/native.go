package session

import (
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/usage"
)

// Projector turns events into what the consumer reads.
type Projector interface {
	// Event writes what e means. It may block while ctx lives, to slow the
	// conversation down. Failed writes are the Output's to report.
	Event(ctx context.Context, from agent.Origin, e agent.Event)
}

// Output is where frames go: *streamjson.Writer.
type Output interface {
	// Send queues a line; it never blocks.
	Send(streamjson.Message) error
	// SendDelta queues a delta line; it blocks while the queue is full.
	SendDelta(ctx context.Context, d *streamjson.StreamDelta) error
	// SendText queues a text and a newline; it never blocks.
	SendText(text string) error
}

// Facts are what frames tell about the session.
type Facts struct {
	SessionID string
	Cwd       string
	Tools     []string
	KeySource string // where the credentials come from
	Version   string // ours
	Ledger    *usage.Ledger
	PID       int
	// MaxFrame is the most bytes of a frame; 0 is streamjson.MaxFrame.
	MaxFrame int
	// Spill keeps what is too long for a frame and returns the file's path.
	Spill func(id, text string) (string, error)
}

// wireVersion is the version of the protocol's reference program that our
// frames follow.
const wireVersion = "2.1.240"

// maxDelta is the most text of one delta frame, in bytes.
const maxDelta = 256 << 10

// Native writes the native dialect: the frames and their order of
// wire/claude-agent-sdk.md §2.
type Native struct {
	Facts   *Facts
	Out     Output
	Partial bool // write stream_event frames

	supersedes []string // for the next assistant frame
	delta      streamjson.StreamDelta
}

// Event implements Projector.
func (n *Native) Event(ctx context.Context, _ agent.Origin, e agent.Event) {
	switch e := e.(type) {
	case *agent.BlockDelta:
		n.blockDelta(ctx, e)
	case *agent.TurnStarted:
		n.send(n.Facts.init(e))
	case *agent.MessageStarted:
		n.supersedes = append(n.supersedes, e.Supersedes...)
		n.event(streamjson.MessageStart{Message: streamjson.AssistantMessage{ID: e.MessageID, Model: e.Model}})
	case *agent.BlockStarted:
		n.event(streamjson.BlockStart{Index: e.Index, Block: toWire(e.Block)})
	case *agent.BlockEnded:
		n.assistant(e)
	case *agent.BlockClosed:
		n.event(streamjson.BlockStop{Index: e.Index})
	case *agent.MessageEnded:
		n.messageEnded(e)
	case *agent.RequestFailed:
		n.requestFailed(e)
	case *agent.RequestRetried:
		n.send(n.Facts.retry(e))
	case *agent.ToolProgressed:
		n.send(n.Facts.progress(e))
	case *agent.ToolDenied:
		n.send(&streamjson.SystemPermissionDenied{
			ToolName: e.Denial.ToolName, ToolUseID: e.Denial.ToolUseID, Message: e.Denial.Reason,
			SessionID: n.Facts.SessionID, UUID: streamjson.NewUUID(),
		})
	case *agent.ToolEnded:
		n.send(n.Facts.toolResult(e))
	case *agent.Noted:
		n.send(&streamjson.UserLine{
			Message:   streamjson.UserMessage{Content: streamjson.BlockContent(streamjson.TextBlock{Text: e.Text})},
			SessionID: n.Facts.SessionID, UUID: e.UUID, IsSynthetic: true,
		})
	case *agent.Appended:
		n.send(&streamjson.System{Subtype: "user_appended", SessionID: n.Facts.SessionID, UUID: streamjson.NewUUID(),
			Extra: members(map[string]any{"user_message_uuid": e.Input.UUID})})
	case *agent.TurnEnded:
		n.send(n.Facts.Result(e.Result))
	case *agent.ToolStarted: // the assistant frame told already
	}
}

// send writes one frame, made to fit.
func (n *Native) send(m streamjson.Message) {
	n.Facts.fit(m)
	_ = n.Out.Send(m) // the Output reports a consumer that went away
}

// event writes a stream_event if they are wanted.
func (n *Native) event(e streamjson.Event) {
	if n.Partial {
		_ = n.Out.Send(&streamjson.StreamEvent{Event: e, SessionID: n.Facts.SessionID})
	}
}

func (n *Native) blockDelta(ctx context.Context, e *agent.BlockDelta) {
	if !n.Partial {
		return
	}
	kind := streamjson.DeltaText
	switch e.Kind {
	case model.DeltaThinking:
		kind = streamjson.DeltaThinking
	case model.DeltaToolInput:
		kind = streamjson.DeltaInputJSON
	case model.DeltaSignature:
		kind = streamjson.DeltaSignature
	}
	for text := e.Text; text != ""; {
		head := cut(text, maxDelta)
		text = text[len(head):]
		n.delta = streamjson.StreamDelta{SessionID: n.Facts.SessionID, Index: e.Index, Kind: kind, Text: head}
		if n.Out.SendDelta(ctx, &n.delta) != nil && ctx.Err() != nil {
			_ = n.Out.Send(&n.delta) // the turn ended while the queue was full: nothing is lost
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

func (n *Native) assistant(e *agent.BlockEnded) {
	a := &streamjson.Assistant{
		Message: streamjson.AssistantMessage{
			ID: e.MessageID, Model: e.Model, Content: streamjson.Blocks{toWire(e.Block)}, Usage: toUsage(e.Usage),
		},
		SessionID: n.Facts.SessionID, UUID: e.UUID,
	}
	n.supersede(a)
	n.send(a)
}

// supersede tells with a which frames are void, if any are.
func (n *Native) supersede(a *streamjson.Assistant) {
	if len(n.supersedes) > 0 {
		a.Extra = members(map[string]any{"supersedes": n.supersedes})
		n.supersedes = nil
	}
}

func (n *Native) messageEnded(e *agent.MessageEnded) {
	n.event(streamjson.MessageDelta{StopReason: string(e.Stop), Usage: streamjson.DeltaUsage{
		InputTokens: e.Usage.InputTokens, OutputTokens: e.Usage.OutputTokens,
		CacheCreationInputTokens: e.Usage.CacheWriteTokens, CacheReadInputTokens: e.Usage.CacheReadTokens,
	}})
	n.event(streamjson.MessageStop{})
}

func (n *Native) requestFailed(e *agent.RequestFailed) {
	a := &streamjson.Assistant{
		Message: streamjson.AssistantMessage{
			ID: e.MessageID, Model: "<synthetic>", Content: streamjson.Blocks{streamjson.TextBlock{Text: e.Text}},
		},
		Error: wireError(e.Err), SessionID: n.Facts.SessionID, UUID: e.UUID,
	}
	n.supersede(a)
	n.send(a)
}

// wireError is the wire's name of an API failure (wire/claude-agent-sdk.md §2.3).
func wireError(e *model.Error) string {
	switch e.Kind {
	case model.ErrAuth:
		return "authentication_failed"
	case model.ErrQuota:
		return "billing_error"
	case model.ErrRateLimit:
		return "rate_limit"
	case model.ErrOverloaded:
		return "overloaded"
	case model.ErrBadRequest, model.ErrContext:
		return "invalid_request"
	case model.ErrNotFound:
		return "model_not_found"
	case model.ErrServer, model.ErrStalled, model.ErrIncomplete, model.ErrMalformed, model.ErrEmpty, model.ErrNetwork,
		model.ErrMalformedUse:
		return "server_error"
	}
	return "unknown"
}

func (f *Facts) init(e *agent.TurnStarted) *streamjson.SystemInit {
	return &streamjson.SystemInit{
		CWD: f.Cwd, Tools: f.Tools, Model: e.Model, PermissionMode: string(e.Mode), APIKeySource: f.KeySource,
		Version: wireVersion, OutputStyle: "default", SessionID: f.SessionID, UUID: streamjson.NewUUID(),
		Extra: members(map[string]any{"agent_version": f.Version, "protocol_version": "1.0", "pid": nonZero(f.PID)}),
	}
}

func (f *Facts) retry(e *agent.RequestRetried) *streamjson.SystemAPIRetry {
	out := &streamjson.SystemAPIRetry{
		Attempt: e.Info.Attempt, MaxRetries: e.Info.MaxRetries, RetryDelayMS: e.Info.Delay.Milliseconds(),
		SessionID: f.SessionID, UUID: streamjson.NewUUID(),
	}
	if err := e.Info.Err; err != nil {
		out.ErrorStatus, out.Error = err.Status, wireError(err)
		out.Extra = members(map[string]any{"message": err.Error(), "kind": string(err.Kind)})
	}
	return out
}

// progress is the tool_progress frame, which has no type of its own.
func (f *Facts) progress(e *agent.ToolProgressed) streamjson.Message {
	return &streamjson.Unknown{Type: "tool_progress", Raw: members(map[string]any{
		"type": "tool_progress", "tool_use_id": e.ToolUseID, "tool_name": e.Name,
		"parent_tool_use_id": (*string)(nil), "elapsed_time_seconds": e.Elapsed.Seconds(),
		"output_bytes": e.Progress.Bytes, "output_lines": e.Progress.Lines, "text": cut(e.Progress.Text, 2000),
		"session_id": f.SessionID, "uuid": streamjson.NewUUID(),
	})}
}

func (f *Facts) toolResult(e *agent.ToolEnded) *streamjson.UserLine {
	res := e.Result
	return &streamjson.UserLine{
		Message: streamjson.UserMessage{Content: streamjson.BlockContent(streamjson.ToolResultBlock{
			ToolUseID: res.ToolUseID, Content: resultContent(res.Blocks), IsError: res.IsError,
		})},
		ToolUseResult: e.Display, SessionID: f.SessionID, UUID: e.UUID,
	}
}

// resultContent is a plain string when there is only one text.
func resultContent(blocks []model.Block) streamjson.Content {
	if len(blocks) == 1 {
		if t, ok := blocks[0].(model.Text); ok {
			return streamjson.TextContent(t.Text)
		}
	}
	list := make([]streamjson.Block, len(blocks))
	for i, b := range blocks {
		list[i] = toWire(b)
	}
	return streamjson.BlockContent(list...)
}

func toWire(b model.Block) streamjson.Block {
	switch b := b.(type) {
	case model.Text:
		return streamjson.TextBlock{Text: b.Text}
	case model.Thinking:
		if b.Redacted != "" {
			return streamjson.RedactedThinkingBlock{Data: b.Redacted}
		}
		return streamjson.ThinkingBlock{Thinking: b.Text, Signature: b.Sig.Value}
	case model.ToolUse:
		return streamjson.ToolUseBlock{ID: b.ID, Name: b.Name, Input: b.Input}
	case model.ToolResult:
		return streamjson.ToolResultBlock{ToolUseID: b.ToolUseID, Content: resultContent(b.Blocks), IsError: b.IsError}
	case model.Image:
		if b.URL != "" {
			return streamjson.ImageBlock{Source: streamjson.Source{Type: "url", URL: b.URL}}
		}
		return streamjson.ImageBlock{Source: streamjson.Source{
			Type: "base64", MediaType: b.MediaType, Data: base64.StdEncoding.EncodeToString(b.Data),
		}}
	case model.Document:
		return streamjson.DocumentBlock{Title: b.Name, Source: streamjson.Source{
			Type: "base64", MediaType: b.MediaType, Data: base64.StdEncoding.EncodeToString(b.Data),
		}}
	}
	panic("session: unknown block")
}

package session

import (
	"context"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// Qwen writes the frames of @qwen-code/sdk (wire/qwen-sdk.md §1). They differ
// from the native ones in structure: an answer of the model is split into one
// assistant frame for each run of blocks of one type, all its tool calls
// together, and has usage on the last frame only.
//
// Of a sub-agent only what it was told, its tool calls and their results are
// shown.
type Qwen struct {
	Facts   *Facts
	Out     Output
	Partial bool // write stream_event frames

	model   string                 // of the turn
	answers map[string]*qwenAnswer // by agent, while it answers
	denials []qwenDenial           // of the whole session
	delta   streamjson.StreamDelta
	begun   bool // the turn has its init
	unkept  bool // that the transcript can't be written is told
}

// qwenAnswer is one answer of a model in the making.
type qwenAnswer struct {
	model   string
	started bool       // message_start is out
	kind    string     // of the blocks in content
	id      string     // of the frame that they will be
	content []any      // qwenText, qwenThinking or qwenToolUse
	open    bool       // a text or thinking block of it is streamed now
	calls   []string   // ids of the tool calls so far
	retry   *qwenRetry // not told yet: what becomes of the answer is not known
}

// Event implements Projector.
func (q *Qwen) Event(ctx context.Context, from agent.Origin, e agent.Event) {
	if _, retried := e.(*agent.RequestRetried); !retried {
		if _, started := e.(*agent.MessageStarted); !started {
			q.goesOn(from)
		}
	}
	switch e := e.(type) {
	case *agent.BlockDelta:
		q.blockDelta(ctx, from, e)
	case *agent.TurnStarted:
		q.turnStarted(from, e)
	case *agent.MessageStarted:
		q.messageStarted(from, e)
	case *agent.BlockStarted:
		q.blockStarted(from, e.Block)
	case *agent.BlockEnded:
		q.blockEnded(from, e)
	case *agent.MessageEnded:
		q.messageEnded(from, e.Usage)
	case *agent.RequestFailed:
		q.requestFailed(from, e)
	case *agent.RequestRetried:
		q.retried(from, e)
	case *agent.ToolProgressed:
		q.progress(from, e)
	case *agent.ToolDenied:
		q.denied(e)
	case *agent.TaskStarted:
		q.taskStarted(&e.Task)
	case *agent.TaskEnded:
		q.taskEnded(e)
	case *agent.ModelFallback:
		q.fallback(from, e)
	case *agent.ConversationReset:
		q.Facts.SessionID = e.New
	case *agent.ToolEnded:
		q.breakOff(from)
		q.toolResult(from, e.UUID, e.Result.ToolUseID, e.Result.IsError, qwenText64(e))
	case *agent.TurnEnded:
		q.turnEnded(from, e)
	}
}

// frame sends one frame. Hosts of this dialect have no limit on lines.
func (q *Qwen) frame(kind string, v any) {
	_ = q.Out.Send(&streamjson.Unknown{Type: kind, Raw: encode(v)}) // the Output reports a consumer that went away
}

func (q *Qwen) event(from agent.Origin, e streamjson.Event) {
	if q.Partial {
		_ = q.Out.Send(&streamjson.StreamEvent{Event: e, ParentToolUseID: from.ParentToolUseID, SessionID: q.Facts.SessionID})
	}
}

func (q *Qwen) turnStarted(from agent.Origin, e *agent.TurnStarted) {
	if !isMain(from) {
		q.tells(from, joinTexts(e.Input.Blocks))
		return
	}
	q.model, q.begun = e.Model, true
	servers := []qwenServer{}
	for _, s := range call(q.Facts.MCPServers) {
		servers = append(servers, qwenServer{s.Name, s.Status})
	}
	q.frame("system", qwenInit{
		Type: "system", Subtype: "init", UUID: q.Facts.SessionID, SessionID: q.Facts.SessionID, Cwd: q.Facts.Cwd,
		Tools: list(q.Facts.Tools), Servers: servers, Model: e.Model,
		Mode: policy.ModeName(string(streamjson.Qwen), e.Mode), Commands: list(q.Facts.SlashCommands),
		Version: qwenVersion, Agents: list(q.Facts.Agents),
	})
}

// tells shows what the program, and not the user, said.
func (q *Qwen) tells(from agent.Origin, text string) {
	q.frame("user", qwenUser{
		Type: "user", UUID: streamjson.NewUUID(), SessionID: q.Facts.SessionID, Parent: parent(from),
		Message: qwenUserMessage{"user", []any{qwenText{"text", text}}},
	})
}

func (q *Qwen) answer(from agent.Origin) *qwenAnswer {
	a := q.answers[from.AgentID]
	if a == nil {
		a = &qwenAnswer{}
		if q.answers == nil {
			q.answers = map[string]*qwenAnswer{}
		}
		q.answers[from.AgentID] = a
	}
	return a
}

// messageStarted begins an answer. One that was begun already is void.
func (q *Qwen) messageStarted(from agent.Origin, e *agent.MessageStarted) {
	a := q.answer(from)
	retry := a.retry
	a.retry = nil
	if a.started {
		q.void(from, a, retry)
	} else if retry != nil {
		q.tell(retry)
	}
	name := e.Model
	if name == synthetic { // its own form names the model of the session
		name = q.model
	}
	q.answers[from.AgentID] = &qwenAnswer{model: name}
}

// void ends an answer that came by half: its calls are answered, for they will
// not run.
func (q *Qwen) void(from agent.Origin, a *qwenAnswer, retry *qwenRetry) {
	q.finish(from, a, nil)
	for _, id := range a.calls {
		q.toolResult(from, streamjson.NewUUID(), id, true, "Skipped because the provider attempt was retried before execution.")
	}
	if retry != nil {
		retry.Discarded, retry.Preserve = len(a.calls), false
		q.tell(retry)
	}
}

// goesOn tells of a retry after which the answer went on as it had begun.
func (q *Qwen) goesOn(from agent.Origin) {
	if a := q.answers[from.AgentID]; a != nil && a.retry != nil {
		q.tell(a.retry)
		a.retry = nil
	}
}

func (q *Qwen) retried(from agent.Origin, e *agent.RequestRetried) {
	q.goesOn(from)
	r := &qwenRetry{
		Reason: "retry", Attempt: e.Info.Attempt, MaxRetries: e.Info.MaxRetries,
		DelayMS: e.Info.Delay.Milliseconds(), Preserve: true,
	}
	if a := q.answers[from.AgentID]; a != nil && a.started {
		a.retry = r
		return
	}
	q.tell(r)
}

func (q *Qwen) tell(r *qwenRetry) { q.system("retry", r) }

// system sends a system message other than init.
func (q *Qwen) system(subtype string, data any) {
	q.frame("system", qwenSystem{
		Type: "system", Subtype: subtype, UUID: streamjson.NewUUID(), SessionID: q.Facts.SessionID, Data: data,
	})
}

// blockStarted opens a block; it ends the frame of blocks of another type. The
// text of sub-agents is not shown, and of a tool call nothing until it is
// whole.
func (q *Qwen) blockStarted(from agent.Origin, b model.Block) {
	a := q.answer(from)
	var empty streamjson.Block
	switch b := b.(type) {
	case model.Text:
		empty = streamjson.TextBlock{}
	case model.Thinking:
		if b.Redacted == "" {
			empty = streamjson.ThinkingBlock{}
		}
	}
	if empty == nil || !isMain(from) {
		return
	}
	q.begin(from, a, kindOf(b))
	q.event(from, streamjson.BlockStart{Index: len(a.content), Block: empty})
	a.open = true
}

// begin makes sure that the frame in the making is one of blocks of kind.
func (q *Qwen) begin(from agent.Origin, a *qwenAnswer, kind string) {
	if a.kind != kind && len(a.content) > 0 {
		q.flush(from, a, nil)
	}
	if a.kind != kind {
		a.kind, a.id = kind, streamjson.NewUUID()
	}
	if !a.started && isMain(from) {
		q.event(from, streamjson.OtherEvent{Type: "message_start", Raw: encode(qwenMessageStart{
			"message_start", qwenStartMessage{a.id, "assistant", a.model, []any{}},
		})})
	}
	a.started = true
}

func (q *Qwen) blockDelta(ctx context.Context, from agent.Origin, e *agent.BlockDelta) {
	a := q.answers[from.AgentID]
	if a == nil || !a.open || !q.Partial || e.Kind == model.DeltaSignature || e.Kind == model.DeltaToolInput {
		return
	}
	sendDelta(ctx, q.Out, &q.delta, streamjson.StreamDelta{
		SessionID: q.Facts.SessionID, ParentToolUseID: from.ParentToolUseID, Index: len(a.content), Kind: deltaKind(e.Kind), Text: e.Text,
	})
}

func (q *Qwen) blockEnded(from agent.Origin, e *agent.BlockEnded) {
	a := q.answer(from)
	if a.model == "" {
		a.model = e.Model
	}
	switch b := e.Block.(type) {
	case model.Text:
		q.said(from, a, qwenText{"text", b.Text})
	case model.Thinking:
		q.said(from, a, qwenThinking{"thinking", b.Text, b.Sig.Value})
	case model.ToolUse:
		q.called(from, a, b)
	}
}

// said adds a text or thinking block.
func (q *Qwen) said(from agent.Origin, a *qwenAnswer, block any) {
	if !a.open {
		return
	}
	a.open = false
	q.event(from, streamjson.BlockStop{Index: len(a.content)})
	a.content = append(a.content, block)
}

// called adds a tool call, with its three events at once.
func (q *Qwen) called(from agent.Origin, a *qwenAnswer, u model.ToolUse) {
	q.begin(from, a, "tool_use")
	at := len(a.content)
	q.event(from, streamjson.BlockStart{Index: at, Block: streamjson.ToolUseBlock{ID: u.ID, Name: u.Name}})
	if q.Partial {
		_ = q.Out.Send(&streamjson.StreamDelta{
			SessionID: q.Facts.SessionID, ParentToolUseID: from.ParentToolUseID, Index: at,
			Kind: streamjson.DeltaInputJSON, Text: string(object(u.Input)),
		})
	}
	q.event(from, streamjson.BlockStop{Index: at})
	a.content = append(a.content, qwenToolUse{"tool_use", u.ID, u.Name, object(u.Input)})
	a.calls = append(a.calls, u.ID)
}

func (q *Qwen) messageEnded(from agent.Origin, u model.Usage) {
	a := q.answers[from.AgentID]
	if a == nil {
		return
	}
	var usage *model.Usage
	if isMain(from) {
		usage = &u
	}
	q.finish(from, a, usage)
	delete(q.answers, from.AgentID)
}

// breakOff ends an answer that has no end of its own.
func (q *Qwen) breakOff(from agent.Origin) {
	if a := q.answers[from.AgentID]; a != nil {
		q.finish(from, a, nil)
		delete(q.answers, from.AgentID)
	}
}

// finish sends what is left of an answer.
func (q *Qwen) finish(from agent.Origin, a *qwenAnswer, usage *model.Usage) {
	if a.open { // broken off inside of a block: there is no more of it
		a.open = false
		q.event(from, streamjson.BlockStop{Index: len(a.content)})
	}
	q.flush(from, a, usage)
	if a.started && isMain(from) {
		q.event(from, streamjson.MessageStop{})
	}
}

// flush sends the frame in the making.
func (q *Qwen) flush(from agent.Origin, a *qwenAnswer, usage *model.Usage) {
	if len(a.content) == 0 {
		return
	}
	q.assistant(from, a.id, a.model, a.content, usage)
	a.content, a.kind = nil, ""
}

func (q *Qwen) assistant(from agent.Origin, id, name string, content []any, usage *model.Usage) {
	m := qwenMessage{ID: id, Type: "message", Role: "assistant", Model: name, Content: content, Usage: qwenCount(usage)}
	if _, calls := content[0].(qwenToolUse); calls {
		stop := "tool_use"
		m.Stop = &stop
	}
	q.frame("assistant", qwenAssistant{Type: "assistant", UUID: id, SessionID: q.Facts.SessionID, Parent: parent(from), Message: m})
}

func (q *Qwen) requestFailed(from agent.Origin, e *agent.RequestFailed) {
	q.breakOff(from)
	if isMain(from) {
		q.assistant(from, e.UUID, q.model, []any{qwenText{"text", apiProblem(e.Err)}}, nil)
	}
}

// apiProblem is how this dialect puts a failed request.
func apiProblem(err *model.Error) string { return "[API Error: " + err.Error() + "]" }

func (q *Qwen) progress(from agent.Origin, e *agent.ToolProgressed) {
	if e.Progress.Bytes == 0 && e.Progress.Lines == 0 {
		return
	}
	q.event(from, streamjson.OtherEvent{Type: "tool_progress", Raw: encode(map[string]any{
		"type": "tool_progress", "tool_use_id": e.ToolUseID, "content": map[string]any{
			"type": "shell_progress", "elapsedMs": e.Elapsed.Milliseconds(),
			"totalLines": e.Progress.Lines, "totalBytes": e.Progress.Bytes,
		},
	})})
}

func (q *Qwen) fallback(from agent.Origin, e *agent.ModelFallback) {
	if !isMain(from) {
		return
	}
	f := qwenFallback{From: e.From, To: e.To, Index: e.Index}
	if e.Err != nil {
		f.Status = e.Err.Status
	}
	q.system("model_fallback", f)
}

// denied books a denial; what the host denied itself is not listed.
func (q *Qwen) denied(e *agent.ToolDenied) {
	if s := e.Denial.Source; s != agent.ByHost && s != agent.ByInterrupt {
		q.denials = append(q.denials, qwenDenial{e.Denial.ToolName, e.Denial.ToolUseID, object(e.Denial.Input)})
	}
}

func (q *Qwen) toolResult(from agent.Origin, id, toolUseID string, isError bool, text string) {
	q.frame("user", qwenUser{
		Type: "user", UUID: id, SessionID: q.Facts.SessionID, Parent: parent(from),
		Message: qwenUserMessage{"user", []any{qwenToolResult{"tool_result", toolUseID, isError, text}}},
	})
}

func (q *Qwen) turnEnded(from agent.Origin, e *agent.TurnEnded) {
	q.breakOff(from)
	if !isMain(from) {
		return
	}
	out := q.result(e.Result)
	if q.begun && e.Result.Terminal == agent.BadInput { // a command that failed says so as one that answers
		q.assistant(from, streamjson.NewUUID(), q.model, []any{qwenText{"text", out.Error.Message}}, nil)
	}
	q.begun = false
	if e.Result.Unsaved && !q.unkept {
		q.unkept = true
		q.system("session_recording_degraded", qwenUnkept{q.Facts.SessionID, "write_failed", "The transcript of this session can't be written; it goes on without."})
	}
	q.frame("result", out)
}

// result makes the result frame. Usage and denials are those of the session.
func (q *Qwen) result(r agent.Result) qwenResult {
	var sum model.Usage
	_, totals := q.Facts.Ledger.Models()
	for _, t := range totals {
		sum = sum.Add(t.Usage)
	}
	usage := qwenCount(&sum)
	if usage.CacheRead == nil {
		usage.CacheRead = new(int)
	}
	out := qwenResult{
		Type: "result", Subtype: "success", UUID: streamjson.NewUUID(), SessionID: q.Facts.SessionID,
		DurationMS: r.Duration.Milliseconds(), APIMS: r.APITime.Milliseconds(), Turns: r.ModelCalls,
		Usage: usage, Denials: append([]qwenDenial{}, q.denials...),
	}
	if r.Subtype == agent.Success && !r.IsError {
		out.Result, out.Structured = &r.Text, r.Structured
		return out
	}
	out.IsError, out.Subtype = true, string(agent.ErrorDuringExecution)
	if r.Subtype == agent.ErrorMaxTurns {
		out.Subtype = string(r.Subtype)
	}
	switch {
	case r.APIError != nil:
		out.Error = &qwenProblem{apiProblem(r.APIError)}
	case r.Terminal == agent.AbortedStreaming, r.Terminal == agent.AbortedTools:
		out.Error = &qwenProblem{"Operation cancelled."}
	default:
		out.Error = &qwenProblem{problem(r)}
	}
	return out
}

package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/streamjson"
)

// SystemController answers what concerns the session as a whole: initialize,
// interrupt, models and thinking, commands, usage, settings, tasks.
type SystemController struct {
	d     *Dispatcher
	begin time.Time
}

// interrupt runs on the reader's goroutine.
func (s *SystemController) interrupt(r *request) (any, error) {
	var in InterruptRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	s.d.effects.Conversation.Interrupt(in.CancelQueued, func(what Interrupted) {
		r.succeed(interruptPayload(s.d.cfg.Dialect, in.CancelQueued, what))
	})
	return interruptPayload(s.d.cfg.Dialect, in.CancelQueued, Interrupted{}), nil // if there was no receipt
}

func (s *SystemController) setModel(r *request) (any, error) {
	var in SetModelRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	name, err := s.modelName(in.Model)
	if err != nil {
		return nil, err
	}
	model, err := s.d.effects.Conversation.SetModel(r.ctx, name)
	if err != nil {
		return nil, err
	}
	switch s.d.cfg.Dialect {
	case streamjson.Claude:
		return nil, nil
	case streamjson.Qwen:
		return &SetModelResponse{Subtype: "set_model", Model: name}, nil
	}
	r.announce(&streamjson.SystemStatus{Model: model, SessionID: s.sessionID(), UUID: streamjson.NewUUID()})
	return &SetModelResponse{Subtype: "set_model", Model: model}, nil
}

// modelName reads set_model's argument; "" is the default model.
func (s *SystemController) modelName(raw jsontext.Value) (string, error) {
	var name string
	switch {
	case isNull(raw):
	case raw.Kind() != '"':
		if s.d.cfg.Dialect != streamjson.Qwen {
			return "", fmt.Errorf("set_model: %w", badField("model", "have %s, want a string, or null for the default model", kindName(raw.Kind())))
		}
	default:
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", fmt.Errorf("set_model: %w", badField("model", "%v", err))
		}
		name = strings.TrimSpace(string(text))
		if name == "" && s.d.cfg.Dialect != streamjson.Qwen {
			return "", fmt.Errorf("set_model: %w", badField("model", "is empty: name a model, or null for the default one"))
		}
	}
	if name == "" && s.d.cfg.Dialect == streamjson.Qwen {
		return "", protocolError("Invalid model specified for set_model request")
	}
	if name == "default" {
		name = ""
	}
	return name, nil
}

// sessionID is the session's id; "" without a Session.
func (s *SystemController) sessionID() string {
	switch {
	case s.d.cfg.SessionID != nil:
		return s.d.cfg.SessionID()
	case s.d.effects.Session == nil:
		return ""
	}
	return s.d.effects.Session.Describe().SessionID
}

func (s *SystemController) setEffort(r *request) (any, error) {
	var in SetEffortRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	effort, err := effortOf(in.Effort)
	if err != nil {
		return nil, err
	}
	if effort == "" {
		return nil, protocolError("Invalid effort specified for set_effort request")
	}
	applied, err := s.d.effects.Thinking.SetEffort(effort)
	if err != nil {
		return nil, err
	}
	return &SetEffortResponse{Subtype: "set_effort", Effort: effort, Applied: applied}, nil
}

// effortOf reads an effort; "" if it is absent or no text.
func effortOf(raw jsontext.Value) (string, error) {
	if isNull(raw) || raw.Kind() != '"' {
		return "", nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil || !slices.Contains(Efforts[:], string(text)) {
		return "", protocolError(fmt.Sprintf("Invalid effort value. Supported: %s", strings.Join(Efforts[:], ", ")))
	}
	return string(text), nil
}

func (s *SystemController) setThinking(r *request) (any, error) {
	var in SetThinkingRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.Tokens != nil && *in.Tokens < 0 {
		return nil, badField("max_thinking_tokens", "is %d: want 0 or more, or null for the default", *in.Tokens)
	}
	if in.Display != "" && in.Display != "summarized" && in.Display != "omitted" {
		return nil, badField("thinking_display", "is %q: use summarized or omitted", in.Display)
	}
	if err := s.d.effects.Thinking.SetThinking(in.Tokens, in.Display); err != nil {
		return nil, err
	}
	return s.plain(r), nil
}

// plain is the payload of a request that was just done.
func (s *SystemController) plain(r *request) any {
	if s.d.cfg.Dialect == streamjson.Claude {
		return nil
	}
	return &Done{Subtype: r.subtype}
}

func (s *SystemController) applySettings(r *request) (any, error) {
	var in ApplySettingsRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if !isObject(in.Settings) {
		return nil, badField("settings", "want an object")
	}
	if err := s.d.effects.Settings.ApplyFlagSettings(r.ctx, []byte(in.Settings)); err != nil {
		return nil, err
	}
	return s.plain(r), nil
}

func (s *SystemController) continueLast(r *request) (any, error) {
	err := s.d.effects.Continuation.ContinueLast(func(accepted bool, interruption string) {
		r.succeed(&ContinueResponse{Subtype: r.subtype, Accepted: accepted, Interruption: interruption})
	})
	return &ContinueResponse{Subtype: r.subtype, Interruption: "none"}, err
}

func (s *SystemController) stopTask(r *request) (any, error) {
	var in StopTaskRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.TaskID == "" {
		return nil, badField("task_id", "is missing")
	}
	err := s.d.effects.Tasks.StopTask(r.ctx, in.TaskID, func() { r.succeed(s.plain(r)) })
	return s.plain(r), err
}

func (s *SystemController) rewind(r *request) (any, error) {
	var in RewindRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.UserMessageID == "" {
		return nil, badField("user_message_id", "is missing")
	}
	out, err := s.d.effects.Checkpoints.Rewind(r.ctx, in.UserMessageID, in.DryRun)
	if err != nil {
		return nil, err
	}
	return jsontext.Value(out), nil
}

func (s *SystemController) supportedCommands(*request) (any, error) {
	list := s.commands()
	if s.d.cfg.Dialect == streamjson.Qwen {
		return &CommandsResponse{Subtype: "supported_commands", Commands: commandNames(list)}, nil
	}
	details := make([]CommandDetail, len(list))
	for i, c := range list {
		details[i] = CommandDetail{Name: c.Name, Description: c.Description, ArgumentHint: c.ArgumentHint, Headless: c.Headless}
	}
	return &CommandsResponse{Subtype: "supported_commands", Commands: commandNames(list), Details: details}, nil
}

// commands lists the slash commands by name.
func (s *SystemController) commands() []Command {
	if s.d.effects.Commands == nil {
		return nil
	}
	list := slices.Clone(s.d.effects.Commands.Commands())
	slices.SortFunc(list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func commandNames(list []Command) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return names
}

// Limits of command_hints.
const (
	hintsDefault = 20
	hintsMost    = 200
)

func (s *SystemController) commandHints(r *request) (any, error) {
	var in HintsRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.Prefix == "" || !strings.Contains("/@?", in.Prefix[:1]) {
		return nil, badField("prefix", "is %q: it begins with /, @ or ?", in.Prefix)
	}
	limit := hintsDefault
	if in.Limit != nil {
		if limit = min(*in.Limit, hintsMost); limit < 1 {
			return nil, badField("limit", "is %d: want 1 or more", *in.Limit)
		}
	}
	hints := s.d.effects.Hints.Hints(r.ctx, in.Prefix, limit)
	return &HintsResponse{Subtype: r.subtype, Hints: hints[:min(limit, len(hints))]}, nil
}

// Pulse returns the state of the session as a heartbeat tells it. There must be
// a Health.
func (s *SystemController) Pulse() *HeartbeatResponse {
	p := s.d.effects.Health.Health()
	if p.Uptime == 0 {
		p.Uptime = time.Since(s.begin)
	}
	out := &HeartbeatResponse{Subtype: "heartbeat", UptimeMS: p.Uptime.Milliseconds(), Turn: p.Turn, RSSBytes: p.RSS}
	if p.LastEvent >= 0 {
		ms := p.LastEvent.Milliseconds()
		out.LastEventMS = &ms
	}
	return out
}

func (s *SystemController) heartbeat(*request) (any, error) { return s.Pulse(), nil }

func (s *SystemController) contextUsage(r *request) (any, error) {
	var in ContextRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	u, err := s.d.effects.Usage.ContextUsage(r.ctx)
	if err != nil {
		return nil, err
	}
	if s.d.cfg.Dialect == streamjson.Claude {
		return claudeContext(&u), nil
	}
	return qwenContext(&u, in.ShowDetails), nil
}

func (s *SystemController) usageInfo(r *request) (any, error) {
	var in UsageRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	switch in.Range {
	case "":
		if in.Range = "all"; s.d.cfg.Dialect == streamjson.Qwen {
			in.Range = "today"
		}
	case "today", "week", "month", "all":
	default:
		return nil, badField("range", "is %q: use one of today, week, month, all", in.Range)
	}
	u, err := s.d.effects.Usage.UsageInfo(r.ctx, in.Range)
	if err != nil {
		return nil, err
	}
	return usagePayload(in.Range, &u, time.Now()), nil
}

func (s *SystemController) availableModels(r *request) (any, error) {
	out := &ModelsResponse{Subtype: r.subtype}
	for _, m := range s.d.effects.Models.Models() {
		out.Models = append(out.Models, AvailableModel{ID: m.ID, Label: orElse(m.Label, m.ID), Window: m.Window})
	}
	return out, nil
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

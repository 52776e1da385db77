package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// PermissionController puts questions to the host, judges calls for it and sets
// the permission mode. It is the policy.Asker of a session with a host.
type PermissionController struct{ d *Dispatcher }

var _ policy.Asker = (*PermissionController)(nil)

// Ask implements policy.Asker: it puts a question to the host. Whatever goes
// wrong is an error with the reason as its text, and so is an answer without
// answers to policy.AskUser. An answer that can't be read denies and says so.
func (p *PermissionController) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	switch q := q.(type) {
	case policy.ToolPermission:
		return p.d.services.Permission.ask(ctx, q)
	case policy.AskUser:
		return p.askUser(ctx, q)
	}
	return policy.Answer{}, fmt.Errorf("a question of type %T can't be put to the host", q)
}

// CanUseToolRequest is the native and qwen can_use_tool, as it is sent and as it
// comes.
type CanUseToolRequest struct {
	ToolName    string              `json:"tool_name"`
	ToolUseID   string              `json:"tool_use_id"`
	Input       jsontext.Value      `json:"input"`
	Suggestions []policy.Suggestion `json:"permission_suggestions"`
	BlockedPath *string             `json:"blocked_path"`
	Reason      string              `json:"decision_reason,omitzero"` // native
	AgentID     string              `json:"agent_id,omitzero"`
}

// ClaudeCanUseToolRequest is Claude's can_use_tool.
type ClaudeCanUseToolRequest struct {
	ToolName    string          `json:"tool_name"`
	DisplayName string          `json:"display_name"`
	Input       jsontext.Value  `json:"input"`
	ToolUseID   string          `json:"tool_use_id"`
	Suggestions []policy.Update `json:"permission_suggestions"`
	BlockedPath string          `json:"blocked_path,omitzero"`
	Reason      string          `json:"decision_reason,omitzero"`
	ReasonType  string          `json:"decision_reason_type,omitzero"`
	Title       string          `json:"title,omitzero"`
	Description string          `json:"description,omitzero"`
	AgentID     string          `json:"agent_id,omitzero"`
	Interactive bool            `json:"requires_user_interaction,omitzero"`
}

// askHost asks the host about a call.
func (p *PermissionController) askHost(ctx context.Context, q policy.ToolPermission) (policy.Answer, error) {
	tool, input := p.outward(q.ToolName, q.Input)
	var payload any
	if p.d.cfg.Dialect == streamjson.Claude {
		payload = p.claudeRequest(q, tool, input)
	} else {
		payload = p.request(q, tool, input)
	}
	raw, err := p.d.Call(ctx, callCanUseTool, payload)
	if err != nil {
		return policy.Answer{}, err
	}
	return p.readAnswer(raw, q, input), nil
}

// outward gives a call its outward names.
func (p *PermissionController) outward(tool string, input json.RawMessage) (string, jsontext.Value) {
	if n := p.d.cfg.Names; n != nil {
		tool, input = n.Tool(tool), n.Input(tool, input)
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return tool, jsontext.Value(input)
}

func (p *PermissionController) request(q policy.ToolPermission, tool string, input jsontext.Value) *CanUseToolRequest {
	out := &CanUseToolRequest{ToolName: tool, ToolUseID: q.ToolUseID, Input: input, Suggestions: q.Suggestions, AgentID: q.Agent}
	if out.Suggestions == nil {
		out.Suggestions = p.d.services.Permission.BuildSuggestions(ToolCall{Tool: q.ToolName, ToolUseID: q.ToolUseID, Input: q.Input})
	}
	if q.Path != "" {
		out.BlockedPath = &q.Path
	}
	if p.d.cfg.Dialect == streamjson.Native {
		out.Reason = q.Reason
	}
	return out
}

func (p *PermissionController) claudeRequest(q policy.ToolPermission, tool string, input jsontext.Value) *ClaudeCanUseToolRequest {
	out := &ClaudeCanUseToolRequest{
		ToolName: tool, DisplayName: tool, Input: input, ToolUseID: q.ToolUseID, Suggestions: p.updates(q), BlockedPath: q.Path,
		Reason: q.Reason, ReasonType: reasonType(q.Why), Title: q.Title, AgentID: q.Agent,
	}
	if out.Title == "" && len(q.Suggestions) > 0 {
		out.Title = q.Suggestions[0].Description
	}
	var known struct {
		Description jsontext.Value `json:"description"`
	}
	if decode(input, &known) == nil && known.Description.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, known.Description)
		out.Description = string(text)
	}
	return out
}

// updates are a question's suggestions in Claude's form.
func (p *PermissionController) updates(q policy.ToolPermission) []policy.Update {
	var out []policy.Update
	if q.Always != nil {
		rule := *q.Always
		if !strings.Contains(rule.Text, "(") {
			rule.Text, _ = p.outward(rule.Text, nil)
		}
		out = append(out, policy.Update{Type: policy.UpdateAddRules, Rules: []policy.Rule{rule}, Behavior: policy.Allow, Destination: policy.ToLocal})
	}
	if q.Class == policy.ClassEdit || q.Class == policy.ClassPlan {
		out = append(out, policy.Update{Type: policy.UpdateSetMode, Mode: policy.Mode(modeName(streamjson.Claude, policy.ModeAutoEdit)), Destination: policy.ToSession})
	}
	return out
}

// reasonType is a kind of reason in Claude's words.
func reasonType(w policy.Why) string {
	switch w {
	case policy.WhyRule:
		return "rule"
	case policy.WhyHook:
		return "hook"
	case policy.WhyMode, policy.WhyDefault:
		return "mode"
	case policy.WhyOutside:
		return "workingDir"
	case policy.WhyProtected, policy.WhySecret, policy.WhyDestructive, policy.WhyUnclear:
		return "safetyCheck"
	}
	return "other"
}

// AskUserInput is the input of the question tool, as the host sees it.
type AskUserInput struct {
	Questions []AskUserQuestion `json:"questions"`
}

// AskUserQuestion is one question of it.
type AskUserQuestion struct {
	Question    string          `json:"question"`
	Header      string          `json:"header"`
	Options     []AskUserOption `json:"options"`
	MultiSelect bool            `json:"multiSelect"`
}

// AskUserOption is one choice.
type AskUserOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Preview     string `json:"preview,omitempty"`
}

// askUser puts the model's questions to the host, as a call of the tool that
// asks.
func (p *PermissionController) askUser(ctx context.Context, q policy.AskUser) (policy.Answer, error) {
	in := AskUserInput{}
	for _, one := range q.Questions {
		out := AskUserQuestion{Question: one.Question, Header: one.Header, MultiSelect: one.MultiSelect}
		for _, o := range one.Options {
			out.Options = append(out.Options, AskUserOption(o))
		}
		in.Questions = append(in.Questions, out)
	}
	raw, err := p.d.Call(ctx, callCanUseTool, p.askRequest(q.ToolUseID, in))
	if err != nil {
		return policy.Answer{}, err
	}
	return p.readAnswers(raw, q)
}

func (p *PermissionController) askRequest(toolUseID string, in AskUserInput) any {
	claude := p.d.cfg.Dialect == streamjson.Claude
	tool := policy.ToolName(string(p.d.cfg.Dialect), "ask_user")
	if p.d.cfg.Names != nil {
		tool = p.d.cfg.Names.Tool("ask_user")
	}
	input := mustEncode(in)
	if claude {
		return &ClaudeCanUseToolRequest{ToolName: tool, DisplayName: tool, Input: input, ToolUseID: toolUseID, ReasonType: "other", Interactive: true}
	}
	return &CanUseToolRequest{ToolName: tool, Input: input, ToolUseID: toolUseID,
		Suggestions: policy.Suggest(policy.Facts{Tool: tool, Class: policy.ClassInteract}, nil)}
}

// setMode is set_permission_mode.
func (p *PermissionController) setMode(r *request) (any, error) {
	var in SetModeRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	given := ""
	if in.Mode.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, in.Mode)
		given = string(text)
	}
	d := p.d.cfg.Dialect
	mode, err := policy.ParseMode(given)
	switch {
	case err == nil:
	case d == streamjson.Qwen:
		return nil, protocolError(fmt.Sprintf("Invalid permission mode: %s. Valid values are: plan, default, auto-edit, auto, yolo", orElse(given, "undefined")))
	case d == streamjson.Claude:
		return nil, fmt.Errorf("unknown permission mode %q: use one of default, acceptEdits, plan, bypassPermissions, dontAsk", given)
	default:
		return nil, err
	}
	if err := p.d.effects.Conversation.SetMode(mode); err != nil {
		return nil, err
	}
	out := &SetModeResponse{Mode: modeName(d, mode)}
	if d != streamjson.Claude {
		out.Status = "updated"
	}
	if d != streamjson.Qwen {
		r.announce(&streamjson.SystemStatus{PermissionMode: out.Mode, SessionID: p.d.system.sessionID(), UUID: streamjson.NewUUID()})
	}
	return out, nil
}

// needsApproval is what qwen-code says of a call that would ask.
const needsApproval = "Tool execution requires manual approval. Update permission mode or approve via host."

// judge is can_use_tool from the host: nothing runs.
func (p *PermissionController) judge(r *request) (any, error) {
	var in JudgeRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.ToolName == "" {
		return nil, badField("tool_name", "is missing")
	}
	input, err := object("input", in.Input)
	if err != nil {
		return nil, err
	}
	decision := p.d.effects.Judge.Judge(r.ctx, ToolCall{Tool: in.ToolName, ToolUseID: in.ToolUseID, Input: json.RawMessage(input)})
	out := &CanUseToolResponse{Subtype: r.subtype, Behavior: "deny", Decision: string(decision.Behavior), Reason: decision.Reason}
	switch decision.Behavior {
	case policy.Allow:
		out.Behavior = "allow"
	case policy.Ask:
		out.Message = needsApproval
	default:
		out.Message = orElse(decision.Message, decision.Reason)
	}
	if p.d.cfg.Dialect == streamjson.Claude {
		out.Subtype = ""
	}
	if p.d.cfg.Dialect == streamjson.Qwen {
		out.Decision, out.Reason = "", ""
	}
	return out, nil
}

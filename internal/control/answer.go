package control

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// PermissionAnswer is the host's answer to can_use_tool on the wire.
type PermissionAnswer struct {
	Behavior     string         `json:"behavior"`
	UpdatedInput jsontext.Value `json:"updatedInput"`
	Updates      jsontext.Value `json:"updatedPermissions"`
	Message      *string        `json:"message"`
	Interrupt    *bool          `json:"interrupt"`
	ToolUseID    *string        `json:"toolUseID"`
}

// allows reports whether the behaviour is an approval.
func (a *PermissionAnswer) allows(d streamjson.Dialect) (bool, error) {
	behavior := a.Behavior
	if d == streamjson.Qwen {
		behavior = strings.ToLower(behavior)
	}
	switch behavior {
	case "allow":
		return true, nil
	case "deny":
		return false, nil
	}
	return false, badField("behavior", "is %q: want allow or deny", a.Behavior)
}

// unreadable is the denial that a malformed answer is.
func unreadable(err error) policy.Answer {
	return policy.Answer{Message: "The call was not run: the host's answer to the permission request could not be understood (" + err.Error() + ")."}
}

// Read reads an answer to q that came another way than over can_use_tool, in
// the same form. What can't be read as a whole denies.
func (p *PermissionController) Read(raw json.RawMessage, q policy.ToolPermission) policy.Answer {
	_, sent := p.outward(q.ToolName, q.Input)
	return p.readAnswer(raw, q, sent)
}

// readAnswer reads the host's answer to a question whose input was sent as
// given. What can't be read as a whole denies.
func (p *PermissionController) readAnswer(raw json.RawMessage, q policy.ToolPermission, sent jsontext.Value) policy.Answer {
	a, allowed, err := p.decodeAnswer(raw, q.ToolUseID)
	if err != nil {
		return unreadable(err)
	}
	if !allowed {
		return a.denial()
	}
	out := q.Allow()
	if err := a.input(&out, sent); err != nil {
		return unreadable(err)
	}
	if err := a.permissions(&out, q); err != nil {
		return unreadable(err)
	}
	return out
}

func (p *PermissionController) decodeAnswer(raw json.RawMessage, toolUseID string) (a PermissionAnswer, allowed bool, err error) {
	if isNull(raw) {
		return a, false, fmt.Errorf("it is empty")
	}
	if err = decode(raw, &a); err != nil {
		return a, false, err
	}
	if a.ToolUseID != nil && *a.ToolUseID != "" && *a.ToolUseID != toolUseID {
		return a, false, badField("toolUseID", "is %q, which is another call's", *a.ToolUseID)
	}
	if a.Behavior == "" && p.d.cfg.Dialect == streamjson.Claude {
		if err = a.older(raw); err != nil {
			return a, false, err
		}
	}
	allowed, err = a.allows(p.d.cfg.Dialect)
	return a, allowed, err
}

// older takes over an answer in the form {"allow":true,"input":{}} or
// {"allow":false,"reason":""} of claude-code-sdk 0.0.25, which came before
// claude-agent-sdk, and of ports of it. Anything else is left alone.
func (a *PermissionAnswer) older(raw json.RawMessage) error {
	var old struct {
		Allow  *bool          `json:"allow"`
		Input  jsontext.Value `json:"input"`
		Reason *string        `json:"reason"`
	}
	if err := decode(raw, &old); err != nil || old.Allow == nil {
		return err
	}
	a.Behavior, a.UpdatedInput, a.Message = "deny", old.Input, old.Reason
	if *old.Allow {
		a.Behavior = "allow"
	}
	return nil
}

func (a *PermissionAnswer) denial() policy.Answer {
	out := policy.Answer{Interrupt: a.Interrupt != nil && *a.Interrupt}
	if a.Message != nil {
		out.Message = *a.Message
	}
	return out
}

// input takes over a changed input; {} and the input as it was sent change
// nothing.
func (a *PermissionAnswer) input(out *policy.Answer, sent jsontext.Value) error {
	input, err := object("updatedInput", a.UpdatedInput)
	if err != nil {
		return err
	}
	if !sameJSON(input, []byte("{}")) && !sameJSON(input, sent) {
		out.UpdatedInput = json.RawMessage(input)
	}
	return nil
}

// permissions takes over lasting changes: permission updates, and suggestions of
// the question that the host chose.
func (a *PermissionAnswer) permissions(out *policy.Answer, q policy.ToolPermission) error {
	if isNull(a.Updates) {
		return nil
	}
	var list []jsontext.Value
	if err := decode(a.Updates, &list); err != nil {
		return badField("updatedPermissions", "want a list")
	}
	for i, one := range list {
		if err := takeUpdate(out, q, one); err != nil {
			return fmt.Errorf("field %q: %w", "updatedPermissions."+strconv.Itoa(i), err)
		}
	}
	return nil
}

// hostOrigin says in rules where they came from.
const hostOrigin = "approved by the host"

func takeUpdate(out *policy.Answer, q policy.ToolPermission, raw jsontext.Value) error {
	var s struct {
		Type          string             `json:"type"`
		Rule          string             `json:"rule"`
		ModifiedInput jsontext.Value     `json:"modifiedInput"`
		Destination   policy.Destination `json:"destination"`
	}
	if err := decode(raw, &s); err != nil {
		return err
	}
	switch s.Type {
	case "allow", "deny":
		return takeSuggestion(out, q, policy.Behavior(s.Type), s.Rule, s.Destination)
	case "modify":
		input, err := object("modifiedInput", s.ModifiedInput)
		if err == nil && out.UpdatedInput == nil && !sameJSON(input, []byte("{}")) {
			out.UpdatedInput = json.RawMessage(input)
		}
		return err
	}
	updates, err := policy.ParseUpdates(json.RawMessage("["+string(raw)+"]"), hostOrigin)
	out.Updates = append(out.Updates, updates...)
	return err
}

// takeSuggestion takes a suggestion's rule: the question's own is remembered.
func takeSuggestion(out *policy.Answer, q policy.ToolPermission, b policy.Behavior, text string, to policy.Destination) error {
	if text == "" {
		return nil // the suggestion of this call alone
	}
	if to == "" {
		to = policy.ToSession
	}
	scopes := map[policy.Destination]policy.Scope{policy.ToSession: policy.ScopeSession, policy.ToLocal: policy.ScopeLocal, policy.ToUser: policy.ScopeUser}
	if scope, ok := scopes[to]; ok && b == policy.Allow && q.Always != nil && q.Always.Text == text {
		out.Remember = scope
		return nil
	}
	tool, content, _ := strings.Cut(text, "(")
	raw := mustEncode(map[string]any{
		"type": policy.UpdateAddRules, "behavior": b, "destination": to,
		"rules": []map[string]string{{"toolName": tool, "ruleContent": strings.TrimSuffix(content, ")")}},
	})
	updates, err := policy.ParseUpdates(json.RawMessage("["+string(raw)+"]"), hostOrigin)
	out.Updates = append(out.Updates, updates...)
	return err
}

// readAnswers reads the host's answer to questions of the model. An approval
// without an answer to any of them is an error.
func (p *PermissionController) readAnswers(raw json.RawMessage, q policy.AskUser) (policy.Answer, error) {
	a, allowed, err := p.decodeAnswer(raw, q.ToolUseID)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("the host's answer could not be understood: %w", err)
	}
	if !allowed {
		return a.denial(), nil
	}
	var in struct {
		Answers jsontext.Value `json:"answers"`
	}
	if !isNull(a.UpdatedInput) {
		if err := decode(a.UpdatedInput, &in); err != nil {
			return policy.Answer{}, fmt.Errorf("the host's answer could not be understood: updatedInput: %w", err)
		}
	}
	answers, err := readUserAnswers(in.Answers, q.Questions)
	if err != nil {
		return policy.Answer{}, fmt.Errorf("the host's answer could not be understood: %w", err)
	}
	if len(answers) == 0 {
		return policy.Answer{}, fmt.Errorf("the host gave no answers to the questions")
	}
	return policy.Answer{Allow: true, ToolUseID: q.ToolUseID, Answers: answers}, nil
}

// readUserAnswers reads answers by the question's text or its index from 0. An
// answer to several choices may be a list. What answers no question is left
// out.
func readUserAnswers(raw jsontext.Value, questions []policy.UserQuestion) (map[string]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	list, err := members("answers", raw)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range list {
		question, ok := questionOf(m.name, questions)
		if !ok || isNull(m.value) {
			continue
		}
		chosen, err := names("answers."+m.name, m.value)
		if err != nil || m.value.Kind() == '{' {
			return nil, badField("answers."+m.name, "want a text or a list of texts")
		}
		if text := strings.Join(chosen, ", "); strings.TrimSpace(text) != "" {
			out[question] = text
		}
	}
	return out, nil
}

func questionOf(key string, questions []policy.UserQuestion) (string, bool) {
	for _, q := range questions {
		if q.Question == key {
			return key, true
		}
	}
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(questions) {
		return questions[i].Question, true
	}
	return "", false
}

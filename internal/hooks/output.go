package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/policy"
)

// output is what one hook said. The zero value is no opinion.
type output struct {
	stop       bool // continue:false
	stopReason string
	quiet      bool   // suppressOutput
	decision   string // "", allow or deny
	reason     string
	message    string // systemMessage

	permission Permission
	updated    json.RawMessage // updatedInput; nil: unchanged
	context    string
	result     *string // updatedToolOutput as text
	answer     *PermissionAnswer
}

// wireOutput is the form of it. Keys that aren't here mean nothing to us.
type wireOutput struct {
	Continue       *bool         `json:"continue"`
	ContinueSnake  *bool         `json:"continue_"` // as Python code spells it
	Async          *bool         `json:"async"`
	AsyncSnake     *bool         `json:"async_"`
	AsyncTimeout   *float64      `json:"asyncTimeout"`
	StopReason     *string       `json:"stopReason"`
	SuppressOutput *bool         `json:"suppressOutput"`
	Decision       *string       `json:"decision"`
	Reason         *string       `json:"reason"`
	SystemMessage  *string       `json:"systemMessage"`
	Specific       *wireSpecific `json:"hookSpecificOutput"`
}

type wireSpecific struct {
	Event      *string        `json:"hookEventName"`
	Permission *string        `json:"permissionDecision"`
	Reason     *string        `json:"permissionDecisionReason"`
	Updated    jsontext.Value `json:"updatedInput"`
	Context    *string        `json:"additionalContext"`
	Result     jsontext.Value `json:"updatedToolOutput"`
	MCPResult  jsontext.Value `json:"updatedMCPToolOutput"`
	Decision   *wireAnswer    `json:"decision"`
}

type wireAnswer struct {
	Behavior    *string        `json:"behavior"`
	Updated     jsontext.Value `json:"updatedInput"`
	Permissions jsontext.Value `json:"updatedPermissions"`
	Message     *string        `json:"message"`
	Interrupt   *bool          `json:"interrupt"`
}

// decode reads what a hook of an event returned. Nothing, null and {} are no
// opinion; what has a wrong type, an unknown decision or a key twice is an
// error, for it may have been meant as a denial.
func decode(e Event, raw json.RawMessage) (output, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return output{}, nil
	}
	if raw[0] != '{' {
		return output{}, errors.New("its output is not a JSON object")
	}
	var w wireOutput
	if err := jsonv2.Unmarshal(raw, &w); err != nil {
		return output{}, fmt.Errorf("its output can't be read: %w", err)
	}
	if is(w.Async) || is(w.AsyncSnake) {
		return output{}, nil // it goes on by itself and has no say
	}
	out := output{
		stop:       w.Continue != nil && !*w.Continue || w.ContinueSnake != nil && !*w.ContinueSnake,
		stopReason: text(w.StopReason),
		quiet:      is(w.SuppressOutput),
		reason:     text(w.Reason),
		message:    text(w.SystemMessage),
	}
	switch d := text(w.Decision); d {
	case "":
	case "approve", "allow":
		out.decision = "allow"
	case "block", "deny":
		out.decision = "deny"
	default:
		return output{}, fmt.Errorf("its decision %q is not one of approve, block", d)
	}
	if w.Specific != nil {
		if err := out.addSpecific(e, w.Specific); err != nil {
			return output{}, err
		}
	}
	out.unify(e)
	return out, nil
}

func (out *output) addSpecific(e Event, w *wireSpecific) error {
	if name := text(w.Event); name != "" && name != string(e) {
		return fmt.Errorf("its hookSpecificOutput is for %s, not for %s", name, e)
	}
	out.context = text(w.Context)
	switch e {
	case PreToolUse:
		return out.addPermission(w)
	case PostToolUse, PostToolUseFailure:
		result := w.Result
		if isNull(result) {
			result = w.MCPResult
		}
		if !isNull(result) {
			s := resultText(result)
			out.result = &s
		}
	case PermissionRequest:
		return out.addAnswer(w.Decision)
	}
	return nil
}

func (out *output) addPermission(w *wireSpecific) error {
	switch p := Permission(text(w.Permission)); p {
	case NoOpinion, Allow, Ask, Defer, Deny:
		out.permission = p
	default:
		return fmt.Errorf("its permissionDecision %q is not one of allow, deny, ask, defer", p)
	}
	if r := text(w.Reason); r != "" {
		out.reason = r
	}
	var err error
	out.updated, err = inputObject(w.Updated)
	return err
}

func (out *output) addAnswer(w *wireAnswer) error {
	if w == nil {
		return nil
	}
	a := PermissionAnswer{Message: text(w.Message), Interrupt: is(w.Interrupt)}
	switch b := text(w.Behavior); b {
	case "allow":
		a.Allow = true
	case "deny":
	default:
		return fmt.Errorf("its behavior %q is not one of allow, deny", b)
	}
	var err error
	if a.UpdatedInput, err = inputObject(w.Updated); err != nil {
		return err
	}
	if a.Updates, err = policy.ParseUpdates(json.RawMessage(w.Permissions), "hook"); err != nil {
		return fmt.Errorf("its updatedPermissions can't be read: %w", err)
	}
	out.answer = &a
	return nil
}

// unify gives the older, general decision its place in events that have one of
// their own; of two the stricter one counts.
func (out *output) unify(e Event) {
	switch e {
	case PreToolUse:
		if p := Permission(out.decision); rank(p) > rank(out.permission) {
			out.permission = p
		}
	case PermissionRequest:
		if out.decision == "deny" && (out.answer == nil || out.answer.Allow) {
			out.answer = &PermissionAnswer{Message: out.reason}
		}
		if out.decision == "allow" && out.answer == nil {
			out.answer = &PermissionAnswer{Allow: true}
		}
	}
}

// inputObject returns a changed input; nil when it says nothing.
func inputObject(v jsontext.Value) (json.RawMessage, error) {
	if isNull(v) {
		return nil, nil
	}
	if v.Kind() != '{' {
		return nil, errors.New("its updatedInput is not an object")
	}
	var fields map[string]jsontext.Value
	if err := jsonv2.Unmarshal(v, &fields); err != nil {
		return nil, fmt.Errorf("its updatedInput can't be read: %w", err)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.RawMessage(v), nil
}

// resultText is a tool's output as text: a string as it is, content blocks by
// their texts, anything else as JSON.
func resultText(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' && jsonv2.Unmarshal(v, &s) == nil {
		return s
	}
	type block struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	var blocks []block
	if v.Kind() != '[' || jsonv2.Unmarshal(v, &blocks) != nil || len(blocks) == 0 {
		return string(v)
	}
	var texts []string
	for _, b := range blocks {
		if b.Type != "text" || b.Text == nil {
			return string(v)
		}
		texts = append(texts, *b.Text)
	}
	return strings.Join(texts, "\n")
}

func is(b *bool) bool { return b != nil && *b }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func isNull(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

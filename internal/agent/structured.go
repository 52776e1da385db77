package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/transcript"
)

// ErrNoStructured: the model gave no answer that fits the schema.
var ErrNoStructured = errors.New("no answer fits the schema")

// structuredTool is the tool by which the model gives the answer that must fit
// a schema. It is in no registry: it belongs to the conversation.
const structuredTool = "structured_output"

// maxStructuredTries is how many answers of one turn may miss the schema.
const maxStructuredTries = 5

// outputSchema is what answers must fit. It is never changed.
type outputSchema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// SetSchema demands that each turn from now on ends with a value that fits a
// JSON Schema, which is then in Result.Structured; empty or null lifts it.
// Unknown keywords and formats are ignored. What is no schema of an object is
// an error, and nothing is changed.
func (c *Conversation) SetSchema(raw json.RawMessage) error {
	s, err := newOutputSchema(raw)
	if err != nil {
		return err
	}
	c.change(func(t *tuning) { t.schema = s })
	return nil
}

func newOutputSchema(raw json.RawMessage) (*outputSchema, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, errors.New("the JSON schema of the answer must be a JSON object")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the JSON schema of the answer is invalid: %w", err)
	}
	if s.Type != "" && s.Type != "object" || len(s.Types) > 0 {
		return nil, errors.New(`the JSON schema of the answer must have "type": "object" at its top: put other values into a property`)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the JSON schema of the answer is invalid: %w", err)
	}
	if s.Type == "" {
		if raw, err = withObjectType(raw); err != nil {
			return nil, err
		}
	}
	return &outputSchema{raw: raw, resolved: resolved}, nil
}

// withObjectType adds the type that model APIs demand of a tool's schema.
func withObjectType(raw json.RawMessage) (json.RawMessage, error) {
	rest := bytes.TrimSpace(raw[1:])
	if rest[0] != '}' {
		rest = append([]byte{','}, rest...)
	}
	raw = append([]byte(`{"type":"object"`), rest...)
	if !json.Valid(raw) {
		return nil, errors.New("the JSON schema of the answer is invalid")
	}
	return raw, nil
}

// spec declares the tool. The schema goes to the model as its owner wrote it.
func (s *outputSchema) spec(name string) model.ToolSpec {
	return model.ToolSpec{Name: name, Schema: s.raw, Description: "Give the final answer with this tool, once, when the work is done. " +
		"The input is the answer and must fit the schema. The answer counts only if it is given with this tool."}
}

// check says why a value doesn't fit; nil if it does.
func (s *outputSchema) check(value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return s.resolved.Validate(v)
}

// isStructured reports whether a call gives the answer that must fit a schema.
func isStructured(u model.ToolUse, s *outputSchema) bool {
	return s != nil && policy.CanonicalTool(u.Name) == structuredTool
}

// takeStructured is a call of the tool. The first value that fits counts.
func (t *turn) takeStructured(u model.ToolUse, s *outputSchema) outcome {
	err := errors.New(u.Invalid)
	if u.Invalid == "" {
		err = s.check(u.Input)
	}
	if err != nil {
		t.misses++
		return failed(u, fmt.Sprintf("The answer doesn't fit the schema: %v. Call %s again with an answer that does.", err, u.Name))
	}
	if t.structured == nil {
		t.structured = u.Input
	}
	return outcome{result: model.ToolResult{
		ToolUseID: u.ID, Name: u.Name, Blocks: []model.Block{model.Text{Text: "The answer was taken."}},
	}}
}

// settled returns the turn's result if the answer that must fit a schema was
// given, or too many missed it.
func (t *turn) settled() (Result, bool) {
	switch {
	case t.structured != nil:
		return Result{Subtype: Success, Terminal: Completed, Text: orElse(t.text, string(t.structured)), Structured: t.structured}, true
	case t.misses >= maxStructuredTries:
		text := fmt.Sprintf("Failed to provide valid structured output after %d attempts", t.misses)
		return Result{
			Subtype: ErrorMaxStructured, IsError: true, Terminal: NoStructured,
			Errors: []string{text}, Err: fmt.Errorf("%w after %d attempts", ErrNoStructured, t.misses),
		}, true
	}
	return Result{}, false
}

// demandStructured reminds a model that ended without the answer it must give.
// It reports the turn's result if that was once too often.
func (t *turn) demandStructured(ctx context.Context) (Result, bool) {
	t.misses++
	if r, ended := t.settled(); ended {
		return r, true
	}
	t.note(ctx, "The answer must be given with the tool "+t.c.cfg.Names.Tool(structuredTool)+". Call it now.")
	return Result{}, false
}

// note puts a text of the program into the history, in the user's role.
func (t *turn) note(ctx context.Context, text string) {
	msg := &model.Message{ID: uuid.NewString(), Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: text}}}
	t.c.remember(msg, transcript.Entry{})
	t.c.send(ctx, &Noted{UUID: msg.ID, Text: text})
}

package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/tools"
)

const personSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"name":{"type":"string","format":"x-unknown"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}`

func structuredRig(t *testing.T, replies ...reply) *rig {
	t.Helper()
	r := newRig(t, nil, replies...)
	if err := r.c.SetSchema(json.RawMessage(personSchema)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnAnswerThatFitsTheSchemaEndsTheTurn(t *testing.T) {
	t.Parallel()
	r := structuredRig(t,
		calls(call{"look", "t1", `{}`}), calls(call{"structured_output", "t2", `{"name":"Ada"}`}),
		calls(call{"StructuredOutput", "t3", `{"name":"Bob","age":3}`}))
	got := r.run(t.Context(), "a", "b")
	for i, want := range []string{`{"name":"Ada"}`, `{"name":"Bob","age":3}`} {
		if got[i].Subtype != Success || got[i].IsError || string(got[i].Structured) != want || got[i].Text != want {
			t.Errorf("result %d = %+v", i, got[i])
		}
	}
	specs := r.model.requests[0].Tools
	if last := specs[len(specs)-1]; last.Name != "structured_output" || string(last.Schema) != personSchema {
		t.Errorf("the tool is declared as %+v", last)
	}
	checkHistory(t, r.c.history)
}

func TestAnAnswerThatMissesTheSchemaIsSentBack(t *testing.T) {
	t.Parallel()
	r := structuredRig(t,
		says("Ada"), // without the tool
		calls(call{"structured_output", "t1", `{"age":"old"}`}),
		calls(call{"structured_output", "t2", `not json`}),
		calls(call{"structured_output", "t3", `{"name":"Ada"}`}))
	res := r.run(t.Context(), "a")[0]
	if string(res.Structured) != `{"name":"Ada"}` || res.ModelCalls != 4 {
		t.Errorf("result = %+v", res)
	}
	if text := textOf(r.c.history[2].Blocks); !strings.Contains(text, "structured_output") {
		t.Errorf("the reminder is %q", text)
	}
	if text := textOf(r.c.history[4].Blocks); !strings.Contains(text, "doesn't fit the schema") || !strings.Contains(text, "age") {
		t.Errorf("the model was told %q", text)
	}
	checkHistory(t, r.c.history)
}

func TestTooManyAnswersThatMissTheSchemaEndTheTurn(t *testing.T) {
	t.Parallel()
	bad := func(id string) reply { return calls(call{"structured_output", id, `{"age":` + id[1:] + `}`}) }
	r := structuredRig(t, bad("t1"), bad("t2"), says("there"), bad("t4"), bad("t5"), says("never"))
	res := r.run(t.Context(), "a")[0]
	if res.Subtype != ErrorMaxStructured || res.Terminal != NoStructured || !res.IsError || res.ModelCalls != 5 || !errors.Is(res.Err, ErrNoStructured) {
		t.Errorf("result = %+v", res)
	}
	checkHistory(t, r.c.history)
}

func TestTheSchemaCanBeLifted(t *testing.T) {
	t.Parallel()
	r := structuredRig(t, says("free"))
	if err := r.c.SetSchema(nil); err != nil {
		t.Fatal(err)
	}
	if res := r.run(t.Context(), "a")[0]; res.Text != "free" || res.Structured != nil {
		t.Errorf("result = %+v", res)
	}
}

func TestSchemasThatAreNoneAreErrors(t *testing.T) {
	t.Parallel()
	r := structuredRig(t)
	for _, bad := range []string{`[]`, `{"type":5}`, `{"type":"array"}`, `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`, `{"type":`, `{"type":"object","properties":{"a":{"pattern":"("}}}`} {
		if err := r.c.SetSchema(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if r.c.tuned().schema == nil {
		t.Error("the schema before is gone")
	}
	if err := r.c.SetSchema(json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`)); err != nil {
		t.Error(err)
	}
	if raw := r.c.tuned().schema.raw; !strings.HasPrefix(string(raw), `{"type":"object",`) || !json.Valid(raw) {
		t.Errorf("declared as %s", raw)
	}
}

func deferredTool(name string) tools.Tool {
	return specTool{fakeTool: echo(name, "mcp"), spec: tools.Spec{
		Name: name, Description: "does " + name, Class: "read", Server: "srv", Deferred: true, Schema: json.RawMessage(`{"type":"object"}`),
	}}
}

// specTool is a fakeTool with a description of its own.
type specTool struct {
	fakeTool
	spec tools.Spec
}

func (s specTool) Spec() tools.Spec { return s.spec }

// declared are the tools of a request.
func (r *rig) declared(i int) string {
	var names []string
	for _, s := range r.model.requests[i].Tools {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestDeferredToolsAreFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Tools.Add(NewToolSearch(), deferredTool("mcp__srv__alpha"), deferredTool("mcp__srv__beta"), deferredTool("mcp__srv__gamma"))
	},
		calls(call{"tool_search", "t1", `{"query":"select:mcp__srv__beta, nope"}`}),
		calls(call{"ToolSearch", "t2", `{"query":"+alpha does","max_results":1}`}),
		calls(call{"mcp__srv__gamma", "t3", `{}`}), // without a search
		says("ok"))
	r.run(t.Context(), "a")
	for i, want := range []string{
		"look change tool_search", "look change tool_search mcp__srv__beta", "look change tool_search mcp__srv__beta mcp__srv__alpha",
		"look change tool_search mcp__srv__beta mcp__srv__alpha mcp__srv__gamma",
	} {
		if got := r.declared(i); got != want {
			t.Errorf("request %d declares %q, want %q", i, got, want)
		}
	}
	first := textOf(r.c.history[2].Blocks)
	if !strings.Contains(first, `"name":"mcp__srv__beta"`) || !strings.Contains(first, "no tool named nope") {
		t.Errorf("the search gave %q", first)
	}
	if desc := r.model.requests[0].Tools[2].Description; !strings.Contains(desc, "\nmcp__srv__gamma") {
		t.Errorf("the description is %q", desc)
	}
	if text := textOf(r.c.history[6].Blocks); text != "mcp__srv__gamma{}" {
		t.Errorf("the tool that was not found gave %q", text)
	}
}

func TestToolSearchIsDeclaredOnlyWhereItFindsSomething(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Tools.Add(NewToolSearch()) }, calls(call{"tool_search", "t1", `{"query":"x"}`}), says("ok"))
	r.run(t.Context(), "a")
	if got := r.declared(0); got != "look change" {
		t.Errorf("declared: %s", got)
	}
	if text := textOf(r.c.history[2].Blocks); !strings.Contains(text, "no tools to find") {
		t.Errorf("told %q", text)
	}
}

func TestToolSearchSelectsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Tools.Add(NewToolSearch()) }, calls(call{"tool_search", "t1", `{"query":"select:look"}`}), says("ok"))
	r.run(t.Context(), "a")
	result, _ := r.c.history[2].Blocks[0].(model.ToolResult)
	if text := textOf(r.c.history[2].Blocks); result.IsError || !strings.Contains(text, `"name":"look"`) {
		t.Errorf("told %q", text)
	}
}

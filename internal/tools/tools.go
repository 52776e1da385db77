// Package tools holds the built-in tools: each with a JSON schema, a
// description (an embedded .md file), a class and stated limits. A tool does
// what its input says, beneath the allowed roots, and reports; whether it may
// is decided before, by policy. Tools never touch our own stdin or stdout.
package tools

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Tool is one thing the model can call.
type Tool interface {
	// Spec describes the tool. It is constant.
	Spec() Spec
	// Run carries out one call. It returns when ctx ends, with everything it
	// started gone. It must be safe for concurrent use. Failures are Results
	// with IsError, written for the model: what was wrong and what to do.
	Run(ctx context.Context, call *Call) Result
}

// Spec is a tool's constant description.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema object of the input
	Class       policy.Class
	// ReadOnly tools may run in parallel with each other.
	ReadOnly bool
	// Targets are the keys of the input that name what a call acts on; see
	// Touched.
	Targets []Target

	input reflect.Type // the struct that the input is decoded into; nil: not known
}

// Call is one invocation.
type Call struct {
	ID    string
	Input json.RawMessage // a JSON object; the tool checks it against its Schema as it decodes it
	// Granted are paths outside of the allowed roots, absolute and free of
	// symlinks, that this one call may act on all the same, directories with
	// what is beneath them: its approver has seen them. The file tools heed it.
	Granted []string
	// Progress reports what the tool is doing. It may be nil, never blocks,
	// and may drop reports.
	Progress func(Progress)
}

// Report calls Progress if there is one.
func (c *Call) Report(p Progress) {
	if c.Progress != nil {
		c.Progress(p)
	}
}

// Progress is a lossy sign of life of a running tool; never in the transcript.
type Progress struct {
	Text  string // a line or tail of output, for display
	Bytes int64  // output so far
	Lines int64
}

// Result is what a call gave.
type Result struct {
	// Blocks go to the model: Text, Image, Document.
	Blocks  []model.Block
	IsError bool
	// Display is the machine-readable form for hosts (tool_use_result on the
	// wire); it is marshalled as JSON. May be nil.
	Display any
}

// Text returns a result of one text block.
func Text(s string) Result { return Result{Blocks: []model.Block{model.Text{Text: s}}} }

// Errorf-like results are made with Fail: a failed call with its reason.
func Fail(s string) Result {
	return Result{Blocks: []model.Block{model.Text{Text: s}}, IsError: true}
}

// Registry is an ordered set of tools by name. It is immutable after New.
type Registry struct {
	tools  []Tool
	byName map[string]Tool
}

// NewRegistry returns a registry of the tools given; a later tool replaces an
// earlier one of the same name.
func NewRegistry(list ...Tool) *Registry {
	r := &Registry{byName: make(map[string]Tool, len(list))}
	for _, t := range list {
		name := t.Spec().Name
		if _, dup := r.byName[name]; dup {
			r.tools = slices.DeleteFunc(r.tools, func(o Tool) bool { return o.Spec().Name == name })
		}
		r.byName[name] = t
		r.tools = append(r.tools, t)
	}
	return r
}

// Lookup returns the tool of that exact name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	t, ok := r.byName[name]
	return t, ok
}

// All returns the tools in order. The slice must not be changed.
func (r *Registry) All() []Tool { return r.tools }

// Filter returns a registry of the tools for which keep is true.
func (r *Registry) Filter(keep func(Spec) bool) *Registry {
	var kept []Tool
	for _, t := range r.tools {
		if keep(t.Spec()) {
			kept = append(kept, t)
		}
	}
	return NewRegistry(kept...)
}

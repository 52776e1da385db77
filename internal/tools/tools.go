// Package tools holds the built-in tools: each with a JSON schema, a
// description (an embedded .md file), a class and stated limits. A tool does
// what its input says, beneath the allowed roots, and reports; whether it may
// is decided before, by policy. Tools never touch our own stdin or stdout.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

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
	// Server is the MCP server that has the tool, and Annotations what that
	// server says of it; empty for built-in tools.
	Server      string
	Annotations map[string]any
	// Deferred tools are not declared to the model until tool_search finds
	// them; they can be called all the same.
	Deferred bool

	input reflect.Type // the struct that the input is decoded into; nil: not known
}

// Call is one invocation.
type Call struct {
	ID    string
	Agent string          // id of the sub-agent that calls; empty: the conversation itself
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

// Registry is an ordered set of tools by name. It is safe for concurrent use:
// tools of MCP servers come and go while a conversation runs.
type Registry struct {
	mu      sync.RWMutex // guards the rest
	tools   []Tool       // never changed in place
	byName  map[string]Tool
	version uint64
}

// NewRegistry returns a registry of the tools given; a later tool replaces an
// earlier one of the same name.
func NewRegistry(list ...Tool) *Registry {
	r := &Registry{byName: make(map[string]Tool, len(list))}
	r.Add(list...)
	return r
}

// Add adds tools: each in place of the one of its name, or else behind those
// that are there. Tools of MCP servers come last, in the order of their names,
// for they come when they come: the model is told the same in each run.
func (r *Registry) Add(list ...Tool) {
	if len(list) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools = slices.Clone(r.tools)
	for _, t := range list {
		name := t.Spec().Name
		if _, dup := r.byName[name]; dup {
			i := slices.IndexFunc(r.tools, func(o Tool) bool { return o.Spec().Name == name })
			r.tools[i] = t
		} else {
			r.tools = append(r.tools, t)
		}
		r.byName[name] = t
	}
	slices.SortStableFunc(r.tools, func(a, b Tool) int { return cmp.Compare(late(a), late(b)) })
	r.version++
}

// late is the place of a tool among those of MCP servers; "" for others, which
// stand before them.
func late(t Tool) string {
	if s := t.Spec(); s.Class == policy.ClassMCP || s.Server != "" {
		return s.Name
	}
	return ""
}

// Remove takes away the tools for which gone is true. Calls that run go on.
func (r *Registry) Remove(gone func(Spec) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools = slices.DeleteFunc(slices.Clone(r.tools), func(t Tool) bool {
		if s := t.Spec(); gone(s) {
			delete(r.byName, s.Name)
			return true
		}
		return false
	})
	r.version++
}

// Version changes whenever the tools do.
func (r *Registry) Version() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.version
}

// Lookup returns the tool of that name, or else the one that the name is an
// alias of.
func (r *Registry) Lookup(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.byName[name]
	if !ok {
		t, ok = r.byName[policy.CanonicalTool(name)]
	}
	return t, ok
}

// All returns the tools in order. The slice must not be changed.
func (r *Registry) All() []Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tools
}

// Filter returns a registry of the tools for which keep is true.
func (r *Registry) Filter(keep func(Spec) bool) *Registry {
	var kept []Tool
	for _, t := range r.All() {
		if keep(t.Spec()) {
			kept = append(kept, t)
		}
	}
	return NewRegistry(kept...)
}

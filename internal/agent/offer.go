package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// sometimes is a tool that makes sense at times only: it is declared to the
// model, and runs, while unfit returns "". Else it says why not, for the model.
type sometimes interface {
	unfit(c *Conversation, planning bool) string
}

// offer is the list of tools declared to the model, with what it depends on.
type offer struct {
	registry uint64
	found    int
	planning bool
	schema   *outputSchema
	specs    []model.ToolSpec // nil: not made yet
}

// toolSpecs lists the tools that the model gets declared: those that are not
// deferred, in the registry's order, then the deferred ones that were found.
func (c *Conversation) toolSpecs(planning bool) []model.ToolSpec {
	c.mu.Lock()
	found, schema := c.found, c.tune.schema
	c.mu.Unlock()
	now := offer{registry: c.cfg.Tools.Version(), found: len(found), planning: planning, schema: schema}
	old := &c.offer
	if old.specs != nil && old.registry == now.registry && old.found == now.found && old.planning == planning && old.schema == schema {
		return old.specs
	}
	now.specs = []model.ToolSpec{}
	var waiting []string
	for _, tool := range c.cfg.Tools.All() {
		if s := tool.Spec(); s.Deferred && !slices.Contains(found, s.Name) {
			waiting = append(waiting, c.cfg.Names.Tool(s.Name))
		}
	}
	for _, tool := range c.cfg.Tools.All() {
		s := tool.Spec()
		if x, ok := tool.(sometimes); s.Deferred || ok && x.unfit(c, planning) != "" {
			continue
		}
		spec := c.cfg.Names.Spec(s)
		if s.Name == toolSearchName {
			spec.Description += listDeferred(waiting)
		}
		now.specs = append(now.specs, spec)
	}
	for _, name := range found {
		if tool, ok := c.cfg.Tools.Lookup(name); ok && tool.Spec().Deferred {
			now.specs = append(now.specs, c.cfg.Names.Spec(tool.Spec()))
		}
	}
	if schema != nil {
		now.specs = append(now.specs, schema.spec(c.cfg.Names.Tool(structuredTool)))
	}
	c.offer = now
	return now.specs
}

// Offered lists the tools that make sense in the mode of now, in the registry's
// order, those included that must be searched for first: Deferred says which
// they are. It may be called from any goroutine.
func (c *Conversation) Offered() []tools.Spec {
	planning := c.Mode() == policy.ModePlan
	c.mu.Lock()
	found := c.found
	c.mu.Unlock()
	var out []tools.Spec
	for _, tool := range c.cfg.Tools.All() {
		if x, ok := tool.(sometimes); ok && x.unfit(c, planning) != "" {
			continue
		}
		s := tool.Spec()
		s.Deferred = s.Deferred && !slices.Contains(found, s.Name)
		out = append(out, s)
	}
	return out
}

// maxListed bounds the names of deferred tools in a description, in bytes.
const maxListed = 8000

// listDeferred names the tools that can be searched for.
func listDeferred(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nThe tools that can be found:")
	for i, name := range names {
		if b.Len()+len(name) > maxListed {
			fmt.Fprintf(&b, "\n(and %d more)", len(names)-i)
			break
		}
		b.WriteString("\n" + name)
	}
	return b.String()
}

// find declares deferred tools from the next request on.
func (c *Conversation) find(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if !slices.Contains(c.found, name) {
			c.found = append(c.found[:len(c.found):len(c.found)], name)
		}
	}
}

// Deferred returns the tools that are not declared to the model before it has
// searched for them. It may be called from any goroutine.
func (c *Conversation) Deferred() []tools.Spec {
	c.mu.Lock()
	found := c.found
	c.mu.Unlock()
	var out []tools.Spec
	for _, tool := range c.cfg.Tools.All() {
		if s := tool.Spec(); s.Deferred && !slices.Contains(found, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// hasDeferred reports whether any tool is deferred, found or not.
func (c *Conversation) hasDeferred() bool {
	return slices.ContainsFunc(c.cfg.Tools.All(), func(t tools.Tool) bool { return t.Spec().Deferred })
}

type turnKey struct{}

// turnOf returns the turn that a tool runs in; nil outside of any.
func turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

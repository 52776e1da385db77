package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Ineffective says why no call can ever be decided by the rule, or by a part of
// it, when the tools are those of known with their classes; nothing of a rule
// that is well. Tools of MCP servers come and go, and are not missed.
func (r *Rule) Ineffective(known map[string]Class) []string {
	var out []string
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	missing := 0
	for _, name := range r.tools.names {
		class, there := known[name]
		switch {
		case strings.HasPrefix(name, "mcp_") || r.tools.server != "":
		case !there:
			missing++
			out = append(out, fmt.Sprintf("there is no tool %q%s", name, NearestTool(name, names)))
		case len(r.tools.classes) > 0 && !slices.Contains(r.tools.classes, class):
			out = append(out, fmt.Sprintf("%s is of class %s, which toolClass leaves out", name, class))
		}
	}
	if r.Tier == TierList && missing < len(r.tools.names) {
		return nil // the name of a family
	}
	for _, g := range r.tools.globs {
		if strings.HasPrefix(g, "mcp_") || r.tools.server != "" {
			continue
		}
		if !slices.ContainsFunc(names, func(name string) bool { return glob(g, name) }) {
			out = append(out, fmt.Sprintf("there is no tool like %q", g))
		}
	}
	return out
}

// NearestTool returns words that point at the tool, or the other name of one,
// that is most like an unknown name; "" if none is.
func NearestTool(name string, known []string) string {
	names := slices.Clone(known)
	for alias, tool := range toolAliases {
		if slices.Contains(known, tool) {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return nearest(name, names)
}

// Shadow returns the first of the rules, which are in the order in which they
// count, that leaves nothing to decide for rules[i]; nil if there is none. Only
// rules of policy files shadow each other, and only ones that restrict whole
// tools do: what an allowing rule covers depends on the call.
func Shadow(rules []Rule, i int) *Rule {
	r := &rules[i]
	if r.Tier == TierList || r.Tier == TierDefault {
		return nil
	}
	for k := range rules[:i] {
		if over := &rules[k]; over.Tier > TierDefault && over.Behavior != Allow && over.whole() && over.covers(r) {
			return over
		}
	}
	return nil
}

// covers reports whether the rule's conditions hold wherever the other's do.
func (r *Rule) covers(o *Rule) bool {
	switch {
	case r.Annotations != nil, r.Agent != "" && r.Agent != o.Agent:
		return false
	case r.Interactive != nil && (o.Interactive == nil || *o.Interactive != *r.Interactive):
		return false
	case r.Modes != nil && (o.Modes == nil || slices.ContainsFunc(o.Modes, func(m Mode) bool { return !slices.Contains(r.Modes, m) })):
		return false
	}
	return r.tools.covers(&o.tools)
}

func (m *toolMatch) covers(o *toolMatch) bool {
	switch {
	case m.server != "" && m.server != o.server:
		return false
	case m.classes != nil && (o.classes == nil || slices.ContainsFunc(o.classes, func(c Class) bool { return !slices.Contains(m.classes, c) })):
		return false
	case len(m.names) == 0 && len(m.globs) == 0 || slices.Contains(m.globs, "*"):
		return true
	case len(o.names) == 0 && len(o.globs) == 0:
		return false
	}
	return !slices.ContainsFunc(o.names, func(name string) bool { return !m.coversName(name) }) &&
		!slices.ContainsFunc(o.globs, func(g string) bool { return !slices.Contains(m.globs, g) })
}

func (m *toolMatch) coversName(name string) bool {
	return slices.Contains(m.names, name) || slices.ContainsFunc(m.globs, func(g string) bool { return glob(g, name) })
}

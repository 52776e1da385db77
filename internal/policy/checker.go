package policy

import (
	"slices"
	"strings"
)

// Checker is a further judge of calls that the rules let through or ask about,
// from a [[safety_checker]] of a policy file. It can make a decision stricter,
// never laxer, and one that fails denies.
type Checker struct {
	Rule    Rule   // of which calls it speaks; its Behavior means nothing
	Name    string // what it is: a path of a program for an external one
	Program bool   // an external program, which gets the call as JSON
	Config  map[string]any
	Context []string // of what it wants to know besides the call: environment, history
}

// checkers that are part of the program.
const checkerAllowedPath = "allowed-path"

// checker reads one [[safety_checker]].
func (p *Policy) checker(t table, tier Tier) {
	c := &Checker{Rule: Rule{Origin: t.origin, Tier: tier, Behavior: Ask}}
	c.Rule.Priority = t.priority()
	c.Rule.readConditions(t)
	c.Rule.readCommand(t)
	v, _ := t.get("checker")
	fields, ok := v.(map[string]any)
	if !ok {
		t.bad("checker is missing: write [safety_checker.checker] with type and name")
		fields = map[string]any{}
	}
	inner := table{fields: fields}.at(t.origin)
	c.read(inner)
	if wrong := inner.close(); wrong != "" {
		t.bad("checker: %s", wrong)
	}
	c.Rule.Text = "safety checker " + c.Name
	if wrong := t.close(); wrong != "" {
		p.fail(t.origin, wrong)
		return
	}
	if tier == TierExtension && slices.Contains(c.Rule.Modes, ModeYolo) {
		p.warn(t.origin, "left out: an extension has no say about mode yolo")
		return
	}
	if tier == TierWorkspace && c.Program {
		p.warn(t.origin, "left out: a project's files can't name programs to run, for they may come from a stranger")
		return
	}
	p.misspelt(&c.Rule)
	p.Checkers = append(p.Checkers, c)
}

func (c *Checker) read(t table) {
	c.Name = t.text("name")
	switch kind := t.text("type"); {
	case kind == "external":
		c.Program = true
		if c.Name == "" || strings.HasPrefix(c.Name, ".") || strings.HasPrefix(c.Name, "~") {
			t.bad("name must be the absolute path of a program, or its plain name in PATH")
		}
	case kind != "in-process":
		t.bad("type must be external or in-process")
	case c.Name != checkerAllowedPath:
		t.bad("there is no checker %q: the one in-process checker is %q", c.Name, checkerAllowedPath)
	}
	if v, ok := t.get("config"); ok {
		c.Config, _ = v.(map[string]any)
		if c.Config == nil {
			t.bad("config must be a table")
		}
	}
	if !c.Program {
		inner := table{fields: c.Config}.at(t.origin)
		for _, key := range [...]string{includedArgs, excludedArgs} {
			if _, ok := c.Config[key]; ok {
				inner.list(key)
			}
			*inner.seen = append(*inner.seen, key)
		}
		if wrong := inner.close(); wrong != "" {
			t.bad("config: %s", wrong)
		}
	}
	if _, ok := t.fields["required_context"]; ok {
		c.Context = t.list("required_context")
	}
	for _, x := range c.Context {
		if x != "environment" && x != "history" {
			t.bad("required_context: there are environment and history, not %q", x)
		}
	}
}

// checkersFor returns the checkers that want to see the call, by priority.
func (r *rules) checkersFor(f *Facts, in *input) []*Checker {
	var out []*Checker
	for _, c := range r.checkers {
		if c.sees(f, in) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *Checker) int { return byRank(&a.Rule, &b.Rule) })
	return out
}

func (c *Checker) sees(f *Facts, in *input) bool {
	s := &subject{f: f, input: in}
	r := c.Rule
	if !r.holds(f) || !r.tools.matches(f) {
		return false
	}
	switch {
	case r.args != nil:
		return r.args.MatchString(in.stable())
	case r.command == nil:
		return true
	}
	src, _ := in.str("command")
	v := JudgeShell(src, f)
	for i := range v.Parts {
		l := newLine(&v.Parts[i])
		s.line = &l
		if r.command.denies(&l) != matchNo {
			return true
		}
	}
	return v.Error != "" || v.OverBudget // it may be one
}

// Judge runs an in-process checker on a call. It must not be called for an
// external one.
func (c *Checker) Judge(f Facts) (Behavior, string) {
	switch c.Name {
	case checkerAllowedPath:
		return c.allowedPath(&f)
	}
	return Deny, "the checker " + c.Name + " isn't known"
}

package policy

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// Policy is what one policy file holds.
type Policy struct {
	Rules    []Rule
	Checkers []*Checker
	Examples []Example
	Problems []Problem // whatever of it has no effect, or not the one that it seems to have
}

// Problem is something wrong with a policy file or rule. Only a fatal one means
// that calls might run which its author wanted stopped.
type Problem struct {
	Origin string // the file, and the rule in it
	Text   string
	Fatal  bool
}

func (p Problem) String() string { return p.Origin + ": " + p.Text }

// Example is a call with the decision that a policy file says must come out of
// it: what `agent policy test` runs.
type Example struct {
	Origin string
	Mode   Mode
	Tool   string
	Input  map[string]any
	Want   Behavior
}

//go:embed data/shipped.toml
var shippedTOML []byte

// shippedSet holds the policies that the program comes with, the one that wins
// first; read when the first call is decided.
var shippedSet = sync.OnceValue(func() *ruleSet {
	p := ParsePolicy(shippedTOML, "shipped", TierDefault)
	if len(p.Problems) > 0 {
		panic("policy: shipped.toml: " + p.Problems[0].String())
	}
	rules := make([]*Rule, len(p.Rules))
	for i := range p.Rules {
		rules[i] = &p.Rules[i]
		rules[i].prepare()
	}
	slices.SortStableFunc(rules, byRank)
	return newRuleSet(rules)
})

// ParsePolicy reads a policy file (gemini-cli's form). A file that is no TOML
// gives one fatal problem and nothing else; so does each rule that can't be
// understood whole, for half of a rule might allow more than it, or deny less.
func ParsePolicy(data []byte, origin string, tier Tier) Policy {
	var p Policy
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		p.fail(origin, tomlError(err))
		return p
	}
	for key, v := range doc {
		p.outermost(origin, key, v)
	}
	eachTable(doc["rule"], func(i int, t table) { p.rule(t.at(fmt.Sprintf("%s, rule %d", origin, i)), tier) })
	eachTable(doc["safety_checker"], func(i int, t table) { p.checker(t.at(fmt.Sprintf("%s, safety_checker %d", origin, i)), tier) })
	eachTable(doc["example"], func(i int, t table) { p.example(t.at(fmt.Sprintf("%s, example %d", origin, i))) })
	slices.SortStableFunc(p.Problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Origin, b.Origin), strings.Compare(a.Text, b.Text))
	})
	return p
}

// outermost notes what is wrong with an outermost key.
func (p *Policy) outermost(origin, key string, v any) {
	known := []string{"rule", "safety_checker", "example"}
	if !slices.Contains(known, key) {
		p.fail(origin, fmt.Sprintf("unknown key %q%s: there are [[rule]], [[safety_checker]] and [[example]]", key, nearest(key, known)))
		return
	}
	items, ok := v.([]any)
	if !ok {
		p.fail(origin, fmt.Sprintf("%q must be written [[%s]]", key, key))
	}
	for i, item := range items {
		if _, ok := item.(map[string]any); !ok {
			p.fail(fmt.Sprintf("%s, %s %d", origin, key, i+1), "it is no table")
		}
	}
}

func (p *Policy) fail(origin, text string) {
	p.Problems = append(p.Problems, Problem{Origin: origin, Text: text, Fatal: true})
}

func (p *Policy) warn(origin, text string) {
	p.Problems = append(p.Problems, Problem{Origin: origin, Text: text})
}

func tomlError(err error) string {
	var d *toml.DecodeError
	if errors.As(err, &d) {
		row, col := d.Position()
		return fmt.Sprintf("line %d, column %d: not understood as TOML: %s", row, col, d.Error())
	}
	return "not understood as TOML: " + err.Error()
}

func eachTable(list any, do func(int, table)) {
	items, _ := list.([]any)
	for i, item := range items {
		if m, ok := item.(map[string]any); ok {
			do(i+1, table{fields: m})
		}
	}
}

// table reads the keys of one TOML table and notes what is wrong.
type table struct {
	fields map[string]any
	origin string
	seen   *[]string
	errs   *[]string
}

func (t table) at(origin string) table {
	t.origin, t.seen, t.errs = origin, new([]string), new([]string)
	return t
}

func (t table) bad(format string, args ...any) {
	*t.errs = append(*t.errs, fmt.Sprintf(format, args...))
}

// get returns a key's value, under any of its spellings.
func (t table) get(keys ...string) (any, bool) {
	*t.seen = append(*t.seen, keys...)
	for _, k := range keys {
		if v, ok := t.fields[k]; ok {
			return v, true
		}
	}
	return nil, false
}

func (t table) text(keys ...string) string {
	v, ok := t.get(keys...)
	s, isText := v.(string)
	if ok && !isText {
		t.bad("%s must be a text", keys[0])
	}
	return s
}

// word reads a text that says nothing when it is empty, and would then make a
// rule wider than it looks.
func (t table) word(keys ...string) string {
	s := t.text(keys...)
	if _, ok := t.get(keys...); ok && s == "" {
		t.bad("%s is empty", keys[0])
	}
	return s
}

// list reads a text or a list of texts; nil if the key isn't there.
func (t table) list(keys ...string) []string {
	v, ok := t.get(keys...)
	if !ok {
		return nil
	}
	if s, ok := v.(string); ok {
		v = []any{s}
	}
	items, isList := v.([]any)
	if !isList {
		t.bad("%s must be a text or a list of texts", keys[0])
		return nil
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok || s == "" {
			t.bad("%s must be a text or a list of texts, none of them empty", keys[0])
			return nil
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		t.bad("%s is empty", keys[0])
	}
	return out
}

func (t table) flag(keys ...string) *bool {
	v, ok := t.get(keys...)
	if !ok {
		return nil
	}
	b, isBool := v.(bool)
	if !isBool {
		t.bad("%s must be true or false", keys[0])
	}
	return &b
}

func (t table) expression(keys ...string) *regexp.Regexp {
	s := t.word(keys...)
	if s == "" {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		t.bad("%s: %v", keys[0], err)
	}
	return re
}

func (t table) priority() int {
	v, ok := t.get("priority")
	n, isInt := v.(int64)
	if !ok || !isInt || n < 0 || n > 999 {
		t.bad("priority must be given, from 0 to 999")
		return 0
	}
	return int(n)
}

// modes reads the modes that a rule holds in; none are all.
func (t table) modes() []Mode {
	v, _ := t.get("modes")
	if all, ok := v.([]any); ok && len(all) == 0 {
		return nil
	}
	var out []Mode
	for _, name := range t.list("modes") {
		m, err := ParseMode(name)
		if err != nil {
			t.bad("modes: %v", err)
			continue
		}
		out = append(out, m)
	}
	return out
}

// close returns what is wrong, unknown keys among it; "" if nothing is.
func (t table) close() string {
	for k := range t.fields {
		if !slices.Contains(*t.seen, k) {
			t.bad("unknown key %q%s", k, nearest(k, *t.seen))
		}
	}
	slices.Sort(*t.errs)
	return strings.Join(*t.errs, "; ")
}

// rule reads one [[rule]].
func (p *Policy) rule(t table, tier Tier) {
	r := Rule{Origin: t.origin, Tier: tier}
	r.Behavior = t.decision("decision")
	r.Priority = t.priority()
	r.readConditions(t)
	r.Message = t.text("denyMessage", "deny_message", "message")
	if redirect := t.flag("allowRedirection", "allow_redirection"); redirect != nil {
		r.Redirects = *redirect
	}
	r.readCommand(t)
	r.Text = r.describe(t.text("name"))
	if wrong := t.close(); wrong != "" {
		p.fail(t.origin, wrong)
		return
	}
	switch {
	case tier == TierExtension && r.Behavior == Allow:
		p.warn(t.origin, "left out: an extension can't allow anything")
	case tier == TierExtension && slices.Contains(r.Modes, ModeYolo):
		p.warn(t.origin, "left out: an extension has no say about mode yolo")
	case tier == TierWorkspace && r.Behavior == Allow:
		p.warn(t.origin, "left out: a project's files can't allow anything, for they may come from a stranger")
	default:
		p.misspelt(&r)
		p.Rules = append(p.Rules, r)
	}
}

func (t table) decision(key string) Behavior {
	switch s := t.text(key); s {
	case "allow":
		return Allow
	case "deny":
		return Deny
	case "ask_user", "ask":
		return Ask
	default:
		t.bad("%s must be allow, deny or ask_user, not %q", key, s)
	}
	return Deny
}

// readConditions reads the keys that say of which calls a rule or checker
// speaks.
func (r *Rule) readConditions(t table) {
	names := t.list("toolName", "tool_name")
	for _, c := range t.list("toolClass") {
		if !slices.Contains(classes[:], Class(c)) {
			t.bad("toolClass: unknown class %q", c)
		}
		r.tools.classes = append(r.tools.classes, Class(c))
	}
	r.tools.server = t.word("mcpName", "mcp_name")
	if r.tools.server != "*" && strings.Contains(r.tools.server, "*") {
		t.bad("mcpName must be the name of a server, or \"*\" for any")
	}
	for _, n := range names {
		switch {
		case strings.Contains(n, "*"):
			r.tools.globs = append(r.tools.globs, globName(n))
		case r.tools.server != "": // servers don't know of our names
			r.tools.names = append(r.tools.names, n)
		default:
			r.tools.names = append(r.tools.names, CanonicalTool(n))
		}
	}
	if names == nil && r.tools.classes == nil && r.tools.server == "" {
		t.bad("toolName is missing: name a tool, several in a list, or \"*\"")
	}
	for _, n := range r.tools.names {
		if strings.HasPrefix(n, "mcp_") && !strings.HasPrefix(n, "mcp__") { // gemini-cli's name of an MCP tool
			r.tools.globs = append(r.tools.globs, n)
		}
	}
	r.Modes = t.modes()
	r.Interactive = t.flag("interactive")
	r.Agent = t.word("subagent")
	if v, ok := t.get("toolAnnotations", "tool_annotations"); ok {
		m, isTable := v.(map[string]any)
		if !isTable || len(m) == 0 {
			t.bad("toolAnnotations must be a table of what the tool must say of itself")
		}
		for k, want := range m {
			if scalar(want) == nil {
				t.bad("toolAnnotations: %s must be a text, a number, true or false", k)
			}
		}
		r.Annotations = m
	}
}

// misspelt warns of tools that are none, but like one. Others may come from
// what isn't known here.
func (p *Policy) misspelt(r *Rule) {
	if r.tools.server != "" {
		return
	}
	for _, n := range r.tools.names {
		var like []string
		for alias, tool := range toolAliases {
			for _, known := range []string{alias, tool} {
				if n == tool {
					return
				}
				if 2*EditDistance(n, known) <= len(n) {
					like = append(like, known)
				}
			}
		}
		slices.Sort(like)
		if near := nearest(n, like); near != "" && !strings.HasPrefix(n, "mcp_") {
			p.warn(r.Origin, fmt.Sprintf("there is no tool %q%s", n, near))
		}
	}
}

// globName brings a pattern's aliases to ours where that can be told.
func globName(n string) string {
	if n == "mcp_*" || n == "mcp__*" {
		return "mcp_*"
	}
	return n
}

// readCommand reads the keys about what a call is made with.
func (r *Rule) readCommand(t table) {
	prefixes := t.list("commandPrefix", "command_prefix")
	re := t.expression("commandRegex", "command_regex")
	r.args = t.expression("argsPattern", "args_pattern")
	shell := len(r.tools.names) == 1 && r.tools.names[0] == shellTool && r.tools.globs == nil && r.tools.classes == nil && r.tools.server == ""
	switch {
	case prefixes == nil && re == nil:
		return
	case !shell:
		t.bad("commandPrefix and commandRegex need toolName = %q and nothing else", shellTool)
	case r.args != nil || prefixes != nil && re != nil:
		t.bad("only one of commandPrefix, commandRegex and argsPattern can be given")
	}
	c := &commandSpec{}
	if re != nil {
		c.re = regexp.MustCompile(`^(?:` + re.String() + `)`) // it compiled by itself
	}
	for _, s := range prefixes {
		one, err := prefixSpec(s)
		if err != nil {
			t.bad("commandPrefix %q: %v", s, err)
			continue
		}
		c.or = append(c.or, one)
	}
	r.command = c
}

// describe is the text of a rule of a file, in the spelling of lists as far as
// that goes.
func (r *Rule) describe(name string) string {
	var b strings.Builder
	if name != "" {
		b.WriteString(name + ": ")
	}
	b.WriteString(string(r.Behavior) + " ")
	var tools []string
	for _, c := range r.tools.classes {
		tools = append(tools, "class "+string(c))
	}
	tools = append(tools, r.tools.names...)
	for _, g := range r.tools.globs {
		if !slices.Contains(tools, g) {
			tools = append(tools, g)
		}
	}
	b.WriteString(strings.Join(tools, ", "))
	if r.tools.server != "" {
		b.WriteString(" of " + r.tools.server)
	}
	if c := r.command; c != nil {
		for i, one := range c.or {
			if i > 0 {
				b.WriteString(" or")
			}
			b.WriteString(" " + quoted(one.words))
		}
		if c.re != nil {
			b.WriteString(" like " + c.re.String())
		}
	}
	if r.args != nil {
		b.WriteString(" with input like " + r.args.String())
	}
	return b.String()
}

// example reads one [[example]].
func (p *Policy) example(t table) {
	e := Example{Origin: t.origin, Mode: ModeDefault, Tool: CanonicalTool(t.text("tool", "toolName")), Want: t.decision("expect")}
	command := t.text("command")
	if v, ok := t.get("input", "args"); ok {
		m, isTable := v.(map[string]any)
		if !isTable {
			t.bad("input must be a table")
		}
		e.Input = m
	}
	if name := t.text("mode"); name != "" {
		m, err := ParseMode(name)
		if err != nil {
			t.bad("%v", err)
		}
		e.Mode = m
	}
	switch {
	case command != "" && (e.Input != nil || e.Tool != "" && e.Tool != shellTool):
		t.bad("give a command, or a tool with its input")
	case command != "":
		e.Tool, e.Input = shellTool, map[string]any{"command": command}
	case e.Tool == "":
		t.bad("give a command, or a tool with its input")
	}
	if wrong := t.close(); wrong != "" {
		p.fail(t.origin, wrong)
		return
	}
	p.Examples = append(p.Examples, e)
}

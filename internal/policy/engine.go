package policy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Behavior is the outcome of a decision.
type Behavior string

// Behaviors.
const (
	Allow Behavior = "allow"
	Ask   Behavior = "ask"
	Deny  Behavior = "deny"
)

// Facts are what a decision is made from.
type Facts struct {
	Tool  string // our name of the tool
	Class Class
	Input json.RawMessage
	Mode  Mode

	Cwd     string   // absolute directory that relative paths are meant from; empty: not known
	Roots   []string // absolute directories that may be worked in; empty: Cwd alone
	Home    string   // absolute; empty: not known, and then no ~ is certain
	Guarded []string // absolute paths protected besides the shipped ones, such as the agent's own home
	Paths   Paths    // looks at the file system; nil: paths are judged by their text alone
}

// Decision is the outcome for one call, with the reason in words.
type Decision struct {
	Behavior Behavior
	Reason   string
	Rule     string // the rule that decided, as its user wrote it; empty if none did
}

// Rule names a tool. Rules with a specifier, such as Bash(git:*), need the
// shell-aware engine and are refused by ParseRule.
type Rule struct {
	Text string // as written
	Tool string // our name
}

// UnsupportedRuleError says that a rule is well formed but more than this
// engine can judge. Guessing would widen or narrow what its user meant.
type UnsupportedRuleError struct{ Rule string }

func (e *UnsupportedRuleError) Error() string {
	return fmt.Sprintf("rule %q has a specifier, which is not supported yet: name the whole tool, such as %q",
		e.Rule, e.Rule[:strings.IndexByte(e.Rule, '(')])
}

// ParseRule reads one rule: the bare name of a tool, or Tool() or Tool(*) for
// the same.
func ParseRule(s string) (Rule, error) {
	text := strings.Trim(s, " \t\r\n")
	name, spec, found := strings.Cut(text, "(")
	switch {
	case text == "":
		return Rule{}, fmt.Errorf("empty rule: name a tool")
	case name != "" && !isToolName(name):
		return Rule{}, fmt.Errorf("rule %q does not begin with the name of a tool: letters, digits, _, - and dots", text)
	case !found:
	case name == "" || !strings.HasSuffix(spec, ")"):
		return Rule{}, fmt.Errorf("rule %q is malformed: write Tool or Tool(specifier)", text)
	case spec != ")" && spec != "*)":
		return Rule{}, &UnsupportedRuleError{Rule: text}
	}
	return Rule{Text: text, Tool: CanonicalTool(name)}, nil
}

func isToolName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' {
			continue
		}
		return false
	}
	return true
}

// SplitRules splits a list as the flags of agent CLIs take it: on commas and
// blanks outside of parentheses.
func SplitRules(list string) []string {
	var out []string
	depth, start := 0, -1
	for i, r := range list {
		sep := depth == 0 && (r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n')
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		}
		if sep && start >= 0 {
			out, start = append(out, list[start:i]), -1
		} else if !sep && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, list[start:])
	}
	return out
}

// Engine decides calls from rules, mode and class. It is immutable and safe
// for concurrent use; the zero value has no rules.
type Engine struct {
	allow, deny map[string]string // tool to the rule's text
}

// NewEngine returns an engine with these rules.
func NewEngine(allow, deny []Rule) *Engine {
	return &Engine{allow: index(allow), deny: index(deny)}
}

func index(rules []Rule) map[string]string {
	m := make(map[string]string, len(rules))
	for _, r := range rules {
		m[r.Tool] = r.Text
	}
	return m
}

// Denied reports whether a rule denies the tool whatever its input, so that
// the model need not see it.
func (e *Engine) Denied(tool string) bool {
	_, ok := e.deny[tool]
	return ok
}

// Decide judges one call. Order: deny rules, mode, allow rules, ask.
func (e *Engine) Decide(f Facts) Decision {
	if text, ok := e.deny[f.Tool]; ok {
		return Decision{Deny, "denied by rule " + text, text}
	}
	if harmless(f.Class) {
		return Decision{Behavior: Allow, Reason: "changes nothing"}
	}
	switch f.Mode {
	case ModePlan:
		return Decision{Behavior: Deny, Reason: "plan mode: nothing is changed, run or fetched; present the plan instead"}
	case ModeYolo:
		return Decision{Behavior: Allow, Reason: "mode yolo"}
	case ModeAutoEdit:
		if f.Class == ClassEdit {
			return Decision{Behavior: Allow, Reason: "mode auto-edit"}
		}
	}
	if text, ok := e.allow[f.Tool]; ok {
		return Decision{Allow, "allowed by rule " + text, text}
	}
	return Decision{Behavior: Ask, Reason: fmt.Sprintf("%s needs permission in mode %s", f.Tool, f.Mode)}
}

func harmless(c Class) bool {
	return c == ClassRead || c == ClassInternal || c == ClassInteract
}

package policy

import (
	"encoding/json"
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
	Input json.RawMessage // with our names of the keys
	Mode  Mode
	// Dialect is whose names of tools and modes texts use; empty: ours.
	Dialect string

	Touches []Touch // the files that the call acts on, as its tool says; nil: by the input's usual keys

	Interactive bool           // somebody is there to be asked
	Agent       string         // the sub-agent that calls; empty: the conversation itself
	Server      string         // the MCP server that has the tool; empty: read off the tool's name
	Annotations map[string]any // what an MCP server says of the tool, such as readOnlyHint
	Hook        *HookDecision  // what hooks said of this call; nil: nothing

	Cwd     string   // absolute directory that relative paths are meant from, without links; empty: not known
	Roots   []string // absolute directories that may be worked in; empty: Cwd alone
	Reads   []string // absolute directories, without links, whose files tools may read besides, such as kept output
	Project string   // absolute directory that "/" at the start of a rule's pattern means, unless the rule has its own; empty: the first root
	Home    string   // absolute; empty: not known, and then no ~ is certain
	Guarded []string // absolute paths protected besides the shipped ones, such as the agent's own home
	Tree    Tree     // looks for secrets in whole directories; nil: nobody does
	Paths   Paths    // looks at the file system; nil: paths are judged by their text alone
	Repo    Repo     // looks at the settings of repositories; nil: those aren't looked at
}

// Repo looks at repositories for the engine, which does no I/O of its own. It
// may be called from several goroutines at once.
type Repo interface {
	// Runs says why git, started in a directory, may run programs that the
	// repository's own configuration names; "" if it doesn't.
	Runs(dir string) string
}

// Touch is a file or directory that a call acts on.
type Touch struct {
	Path  string // as the tool will resolve it
	Write bool
}

// HookDecision is what hooks said of one call. An allow replaces the question
// that mode and rules would ask; it lifts no denial, no ask rule, and not what
// is asked in every mode. A Behavior that is none denies.
type HookDecision struct {
	Behavior Behavior
	Reason   string
}

// Why says what kind of thing decided.
type Why string

// Reasons of decisions.
const (
	WhyHard        Why = "hard"        // can't be judged at all: never runs
	WhyRule        Why = "rule"        // a rule
	WhyHook        Why = "hook"        // a hook
	WhyMode        Why = "mode"        // the mode, or that looking is free in all of them
	WhyProtected   Why = "protected"   // a path that is protected in every mode
	WhySecret      Why = "secret"      // a file of secrets
	WhyOutside     Why = "outside"     // a path outside of the roots
	WhyDestructive Why = "destructive" // may destroy what can't be had back
	WhyUnclear     Why = "unclear"     // not understood
	WhyDefault     Why = "default"     // nothing allowed it
)

// Decision is the outcome for one call, with the reason in words.
type Decision struct {
	Behavior Behavior
	Why      Why
	Reason   string // in words, with what can't be seen made visible
	Rule     string // the rule that decided, as its user wrote it; empty if none did
	Origin   string // where that rule is
	Message  string // what the rule's author tells the model of a denial
	Path     string // the path that made it ask or deny; empty: none did
	Parts    []PartDecision
	Checkers []*Checker // to be run before the call, since it isn't denied; any may make the decision stricter
}

// PartDecision is the outcome for one part of a command line.
type PartDecision struct {
	Part
	Behavior Behavior
	Why      Why
	Reason   string
	Rule     string
	Origin   string
}

// Stricter returns the decision after a checker had its say: a stricter word
// counts, a laxer one doesn't. What isn't a behaviour denies.
func (d Decision) Stricter(b Behavior, c *Checker, reason string) Decision {
	if severity(b) <= severity(d.Behavior) {
		return d
	}
	d.Behavior, d.Why, d.Rule, d.Origin = b, WhyRule, c.Rule.Text, c.Rule.Origin
	if b != Ask {
		d.Behavior = Deny
	}
	d.Reason = Visible("the " + c.Rule.Text + " says: " + reason)
	return d
}

// ruling is what was decided of one subject.
type ruling struct {
	behavior Behavior
	why      Why
	reason   string
	rule     *Rule
	path     string
}

func (r ruling) stricterThan(o ruling) bool { return severity(r.behavior) > severity(o.behavior) }

func severity(b Behavior) int {
	switch b {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2 // also of what isn't a behaviour
}

func (r *ruling) decision() Decision {
	d := Decision{Behavior: r.behavior, Why: r.why, Reason: Visible(r.reason), Path: r.path}
	if r.rule != nil {
		d.Rule, d.Origin, d.Message = r.rule.Text, r.rule.Origin, r.rule.Message
	}
	return d
}

func (r *ruling) part(p *Part) PartDecision {
	d := PartDecision{Part: *p, Behavior: r.behavior, Why: r.why, Reason: Visible(r.reason)}
	if r.rule != nil {
		d.Rule, d.Origin = r.rule.Text, r.rule.Origin
	}
	return d
}

// ruled is the ruling of a rule.
func ruled(b Behavior, r *Rule, words string) ruling {
	text := words + " " + r.Text
	if r.Origin != "" {
		text += " (" + r.Origin + ")"
	}
	return ruling{behavior: b, why: WhyRule, rule: r, reason: text}
}

// withMessage adds a rule's own words to a reason.
func (r ruling) withMessage() ruling {
	if r.rule != nil && r.rule.Message != "" {
		r.reason += ": " + strings.TrimSpace(r.rule.Message)
	}
	return r
}

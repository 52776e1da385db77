package policy

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// addedRules are rules of all kinds, as they may be added to any others.
var addedRules = [...]string{
	"Bash", "Bash(*)", "Bash(git:*)", "Bash(git status)", "Bash(rm *)", "Bash(* x)", "Bash(ls)", "Bash(ls && pwd)", "Bash(rm -rf build)", "Bash(npm test:*)",
	"Read", "Read(.env)", "Read(src/**)", "Read(//etc/**)", "Read(~/**)", "Edit", "Edit(/src/**)", "Edit(*.md)", "Edit(//tmp/**)", "Write",
	"WebFetch", "WebFetch(domain:example.com)", "WebFetch(domain:*.github.com)", "mcp__s", "mcp__s__*", "Agent(scout)", "Skill(pdf *)", "Grep", "TodoWrite",
}

// parsed returns a rule that is one for the behaviour.
func parsed(text string, b Behavior) (Rule, bool) {
	r, err := ParseRule(text, b, "added")
	return r, err == nil
}

// TestRulesAreMonotone judges the corpus with one more rule: a rule that
// restricts makes no answer laxer, and one that allows none stricter.
func TestRulesAreMonotone(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t)
	for i := range cases {
		c := &cases[i]
		e, f := c.engine(), c.facts()
		before := e.Decide(f)
		for k, text := range addedRules {
			b := [...]Behavior{Allow, Ask, Deny}[(i+k)%3]
			r, ok := parsed(text, b)
			if !ok {
				continue
			}
			checkMonotone(t, c, before, append(e.Rules(), r), f, fmt.Sprintf("%s %s", b, text), b)
		}
	}
}

// checkMonotone compares the answer with one more rule to the one before.
func checkMonotone(t interface{ Errorf(string, ...any) }, c *corpusCase, before Decision, rules []Rule, f Facts, added string, b Behavior) {
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.Tier == TierDefault }) // the engine has them by itself
	after := NewEngine(rules).Decide(f)
	laxer, stricter := severity(after.Behavior) < severity(before.Behavior), severity(after.Behavior) > severity(before.Behavior)
	if b != Allow && laxer || b == Allow && stricter {
		t.Errorf("%s: %s %s in %s %v: %s before, and with %s %s (%s; before: %s)",
			c.ID, c.Command, c.Input, c.Mode, c.Rules, before.Behavior, added, after.Behavior, after.Reason, before.Reason)
	}
}

// TestRulesOfFilesAreMonotone does the same with rules of a project's policy
// file, which can restrict alone.
func TestRulesOfFilesAreMonotone(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t)
	files := []string{
		"toolName = '*'", "toolName = 'run_shell_command'", "toolName = 'run_shell_command'\ncommandPrefix = ['git', 'rm -rf']", "toolName = 'run_shell_command'\ncommandRegex = '[a-m]'",
		"toolName = 'run_shell_command'\nargsPattern = ' -'", "toolName = ['write_file', 'replace']", "toolClass = ['read', 'fetch']", "toolName = '*'\nargsPattern = 'src'", "toolName = 'web_*'",
	}
	for i := range cases {
		c := &cases[i]
		e, f := c.engine(), c.facts()
		before := e.Decide(f)
		for k, keys := range files {
			decision := [...]string{"ask_user", "deny"}[(i+k)%2]
			p := ParsePolicy([]byte("[[rule]]\npriority = 500\ndecision = '"+decision+"'\n"+keys), "project", TierWorkspace)
			if len(p.Rules) != 1 {
				t.Fatalf("%s: %v", keys, p.Problems)
			}
			checkMonotone(t, c, before, append(e.Rules(), p.Rules...), f, decision+" "+keys, p.Rules[0].Behavior)
		}
	}
}

// TestNothingLiftsADenial tries sequences of what may happen to a call between
// its making and its judgement: hooks speak, inputs are replaced, rules that
// restrict are added. A call that is denied as it is then stays denied, and one
// that asks is allowed only by a hook's word, unless a rule or what asks in
// every mode is why.
func TestNothingLiftsADenial(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t)
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			tryToLift(t, cases)
		}
	})
}

func tryToLift(t *rapid.T, cases []corpusCase) {
	always := []Why{WhyRule, WhyProtected, WhyDestructive, WhySecret} // what a hook's allow doesn't lift
	c := &cases[rapid.IntRange(0, len(cases)-1).Draw(t, "case")]
	plain := c.engine()
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		b := rapid.SampledFrom([]Behavior{Allow, Ask, Deny}).Draw(t, "of")
		if r, ok := parsed(rapid.SampledFrom(addedRules[:]).Draw(t, "first"), b); ok {
			plain.Add(r)
		}
	}
	e := NewEngine(slices.DeleteFunc(plain.Rules(), func(r Rule) bool { return r.Tier == TierDefault }))
	f := c.facts()
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"hook", "input", "rule", "mode"}).Draw(t, "step") {
		case "hook":
			f.Hook = &HookDecision{Behavior: rapid.SampledFrom([]Behavior{Allow, Ask, Deny, "", "ALLOW"}).Draw(t, "says"), Reason: "x"}
		case "input":
			other := &cases[rapid.IntRange(0, len(cases)-1).Draw(t, "other")]
			if of := other.facts(); of.Tool == f.Tool {
				f.Input = of.Input
			}
		case "rule":
			b := rapid.SampledFrom([]Behavior{Ask, Deny}).Draw(t, "behavior")
			if r, ok := parsed(rapid.SampledFrom(addedRules[:]).Draw(t, "rule"), b); ok {
				e.Add(r)
			}
		case "mode":
			f.Mode = rapid.SampledFrom(Modes[:]).Draw(t, "mode")
		}
		bare := f
		bare.Hook = nil
		if f.Mode == ModeDontAsk { // where a denial may be a question
			bare.Mode = ModeDefault
		}
		before, after := plain.Decide(bare), e.Decide(f)
		switch {
		case before.Behavior == Deny && after.Behavior != Deny:
			t.Fatalf("%s: %s is denied (%s), and %s with hook %+v and rules %v (%s)", c.ID, f.Input, before.Reason, after.Behavior, f.Hook, e.Rules(), after.Reason)
		case before.Behavior == Ask && after.Behavior == Allow && (f.Hook == nil || f.Hook.Behavior != Allow || slices.Contains(always, before.Why)):
			t.Fatalf("%s: %s asks (%s), and is allowed with hook %+v (%s)", c.ID, f.Input, before.Reason, f.Hook, after.Reason)
		}
	}
}

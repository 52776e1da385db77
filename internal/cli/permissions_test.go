package cli

import (
	"slices"
	"testing"

	"github.com/agentcli/agent/internal/policy"
)

func mustRule(t *testing.T, text string, b policy.Behavior, origin string) policy.Rule {
	t.Helper()
	r, err := policy.ParseRule(text, b, origin)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func texts(rules []policy.Rule) []string {
	var out []string
	for _, r := range rules {
		if r.Tier == policy.TierList {
			out = append(out, string(r.Behavior)+" "+r.Text+" of "+r.Origin)
		}
	}
	return out
}

// TestAnAnswerLiftsNoDenialOfOthers: what an answer takes away is its own, or
// what the file holds that it names.
func TestAnAnswerLiftsNoDenialOfOthers(t *testing.T) {
	flag := mustRule(t, "Bash(rm *)", policy.Deny, "--disallowed-tools")
	managed := mustRule(t, "Bash(rm *)", policy.Deny, "permissions.deny in managed /etc/agent/settings.json:3")
	asks := mustRule(t, "WebFetch", policy.Ask, "permissions.ask in user /home/u/.config/agent/settings.json:2")
	allows := mustRule(t, "Bash(ls *)", policy.Allow, "--allowed-tools")
	w := &wiring{engine: policy.NewEngine([]policy.Rule{flag, managed, asks, allows})}
	p := &permissions{w: w}
	own := mustRule(t, "Bash(rm *)", policy.Deny, "approved by the host")
	for _, u := range []policy.Update{
		{Type: policy.UpdateAddRules, Behavior: policy.Deny, Rules: []policy.Rule{own}, Destination: policy.ToSession},
		{Type: policy.UpdateRemoveRules, Behavior: policy.Deny, Rules: []policy.Rule{own}, Destination: policy.ToCLIArg},
	} {
		if err := p.apply(u); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(texts(w.engine.Rules())); n != 5 {
		t.Fatalf("the host's own denial is gone, or another: %v", texts(w.engine.Rules()))
	}
	for _, u := range []policy.Update{
		{Type: policy.UpdateRemoveRules, Behavior: policy.Deny, Rules: []policy.Rule{own}, Destination: policy.ToSession},
		{Type: policy.UpdateReplaceRules, Behavior: policy.Deny, Destination: policy.ToSession},
		{Type: policy.UpdateRemoveRules, Behavior: policy.Ask, Rules: []policy.Rule{asks}, Destination: policy.ToSession},
		{Type: policy.UpdateRemoveRules, Behavior: policy.Allow, Rules: []policy.Rule{allows}, Destination: policy.ToSession},
	} {
		if err := p.apply(u); err != nil {
			t.Fatal(err)
		}
	}
	want := texts([]policy.Rule{flag, managed, asks})
	if got := texts(w.engine.Rules()); !slices.Equal(got, want) {
		t.Errorf("in force: %v\nwant: %v", got, want)
	}
	if got := p.removable(policy.Update{Type: policy.UpdateRemoveRules, Rules: []policy.Rule{asks}, Destination: policy.ToUser}); len(got) != 1 {
		t.Errorf("a rule of the user's file can't be removed from there: %v", got)
	}
}

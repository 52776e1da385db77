package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// policyProbe is a call that asks when there are no rules.
type policyProbe struct {
	facts  Facts
	words  []string // of a command
	stable string   // its input as patterns see it
	server string
	own    string
}

func policyProbes() []policyProbe {
	shell := tomlCall("run_shell_command xyzzy --plugh")
	edit := tomlCall(`edit {"file_path":"a","new_string":"n","old_string":"o"}`)
	mcp := tomlCall(`mcp__srv__tool {"x":1}`)
	other := tomlCall(`other {"x":{"command":"ls"}}`)
	mcp.Annotations = map[string]any{"readOnlyHint": []any{true}}
	return []policyProbe{
		{facts: shell, words: []string{"xyzzy", "--plugh"}, stable: "{\x00\"command\":\"xyzzy --plugh\"\x00}"},
		{facts: edit, stable: "{\x00\"file_path\":\"a\"\x00,\x00\"new_string\":\"n\"\x00,\x00\"old_string\":\"o\"\x00}"},
		{facts: mcp, stable: "{\x00\"x\":1\x00}", server: "srv", own: "tool"},
		{facts: other, stable: "{\x00\"x\":{\"command\":\"ls\"}\x00}"},
	}
}

// oneOf returns the texts of the first key that is there.
func oneOf(rule map[string]any, keys ...string) ([]string, bool) {
	for _, k := range keys {
		if v, ok := rule[k]; ok {
			return texts(v), true
		}
	}
	return nil, false
}

// matchedByText reports whether a [[rule]] allows the probe, read as plainly as
// possible and without the code under test. It may say yes too often.
func (p *policyProbe) matchedByText(rule map[string]any) bool {
	if rule["decision"] != "allow" || rule["subagent"] != nil || rule["toolAnnotations"] != nil || rule["tool_annotations"] != nil {
		return false
	}
	if with, ok := rule["interactive"]; ok && with != true {
		return false
	}
	if modes, _ := oneOf(rule, "modes"); len(modes) > 0 && !slices.Contains(modes, "default") && !slices.Contains(modes, "manual") {
		return false
	}
	return p.matchedTool(rule) && p.matchedArgs(rule)
}

func (p *policyProbe) matchedTool(rule map[string]any) bool {
	server, ofServer := oneOf(rule, "mcpName", "mcp_name")
	if ofServer && (p.server == "" || !slices.Contains(server, "*") && !slices.Contains(server, p.server)) {
		return false
	}
	if classes, ok := oneOf(rule, "toolClass"); ok && !slices.Contains(classes, string(p.facts.Class)) {
		return false
	}
	names, ok := oneOf(rule, "toolName", "tool_name")
	if !ok {
		return ofServer || rule["toolClass"] != nil
	}
	called := []string{p.facts.Tool, p.own, "mcp_" + p.server + "_" + p.own}
	return slices.ContainsFunc(names, func(n string) bool {
		like := "^" + strings.ReplaceAll(regexp.QuoteMeta(n), `\*`, "(?s:.*)") + "$"
		re, err := regexp.Compile(strings.ReplaceAll(like, `\\`, ``)) // a backslash takes the meaning from the next character
		return CanonicalTool(n) == p.facts.Tool || slices.Contains(called, n) || strings.Contains(n, "*") && (err != nil || slices.ContainsFunc(called, re.MatchString))
	})
}

func (p *policyProbe) matchedArgs(rule map[string]any) bool {
	if prefixes, ok := oneOf(rule, "commandPrefix", "command_prefix"); ok {
		return slices.ContainsFunc(prefixes, func(s string) bool {
			words, _ := ruleWords(s)
			return len(words) > 0 && len(words) <= len(p.words) && slices.Equal(words, p.words[:len(words)])
		})
	}
	if re, ok := oneOf(rule, "commandRegex", "command_regex"); ok {
		at := regexp.MustCompile(re[0]).FindStringIndex(strings.Join(p.words, " "))
		return at != nil
	}
	if re, ok := oneOf(rule, "argsPattern", "args_pattern"); ok {
		return regexp.MustCompile(re[0]).MatchString(p.stable)
	}
	return true
}

// FuzzPolicyFile checks that no file makes a call that would ask be allowed,
// unless it is the user's and has an allow rule whose conditions hold, and that
// nothing of a file is dropped without a word.
func FuzzPolicyFile(f *testing.F) {
	for _, s := range []string{
		allowGit, string(shippedTOML), "[[rule]]\ntoolName='*'\ndecision='allow'\npriority=1", "rule = [1]", "[rule]", "[[rules]]",
		"[[rule]]\ntoolName='run_shell_command'\ncommandRegex='x|y'\ndecision='allow'\npriority=1\nmodes=['default']",
		"[[rule]]\ntoolName='edit'\nargsPattern='\\x00\"file_path\":\"a\"\\x00'\ndecision='allow'\npriority=1\ninteractive=true",
		"[[rule]]\nmcpName='srv'\ntoolName='t*'\ndecision='allow'\npriority=999",
		"[[rule]]\ntoolName=['mcp_*_tool','mcp_srv_*']\ndecision='allow'\npriority=0\nsubagent='x'\nallowRedirection=true",
		"[[rule]]\ntoolName='mcp_*'\ntoolAnnotations={readOnlyHint=true}\ndecision='allow'\npriority=0\ndenyMessage='x'",
		"[[rule]]\ntoolName='*'\ndecision='deny'\npriority=2\n[[rule]]\ntoolClass=['exec','edit']\ndecision='ask_user'\npriority=1",
		"[[safety_checker]]\ntoolName='*'\npriority=1\n[safety_checker.checker]\ntype='in-process'\nname='allowed-path'\nconfig={included_args=['x']}",
		"[[example]]\ncommand='ls'\nexpect='allow'",
	} {
		f.Add(s)
	}
	probes := policyProbes()
	f.Fuzz(func(t *testing.T, file string) {
		var doc struct {
			Rule []map[string]any `toml:"rule"`
		}
		readable := toml.Unmarshal([]byte(file), &doc) == nil
		for _, tier := range []Tier{TierUser, TierWorkspace, TierExtension} {
			p := ParsePolicy([]byte(file), "f", tier)
			if readable && len(p.Rules) < len(doc.Rule) && len(p.Problems) == 0 {
				t.Fatalf("%d of %d rules, and no problem", len(p.Rules), len(doc.Rule))
			}
			e := NewEngine(p.Rules, p.Checkers...)
			for i := range probes {
				probe := &probes[i]
				d := e.Decide(probe.facts)
				for _, c := range d.Checkers {
					if !c.Program {
						c.Judge(probe.facts)
					}
				}
				if d.Behavior != Allow {
					continue
				}
				if tier != TierUser || !slices.ContainsFunc(doc.Rule, probe.matchedByText) {
					t.Fatalf("a file of tier %s allows %s %s: %+v", tier, probe.facts.Tool, probe.facts.Input, d)
				}
			}
		}
	})
}

func TestPolicyProbesAskWithoutRules(t *testing.T) {
	t.Parallel()
	for _, p := range policyProbes() {
		if d := new(Engine).Decide(p.facts); d.Behavior != Ask {
			t.Errorf("%s: %s, want ask", p.facts.Tool, d.Behavior)
		}
	}
}

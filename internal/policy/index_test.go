package policy

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// withoutIndex is an engine of the same rules that asks each of them of
// everything.
func withoutIndex(e *Engine) *Engine {
	plain := func(s *ruleSet) *ruleSet {
		out := &ruleSet{rules: s.rules}
		for i, r := range s.rules {
			out.rest = append(out.rest, int32(i))
			if r.path != nil {
				out.files, out.leads = append(out.files, int32(i)), append(out.leads, newKey(""))
			}
		}
		return out
	}
	r := *e.current()
	r.deny, r.ask, r.allow, r.files = plain(r.deny), plain(r.ask), plain(r.allow), plain(r.files)
	out := &Engine{}
	out.rules.Store(&r)
	return out
}

// rulesOfCorpus are rules for some of the commands, files and hosts of the
// corpus, and for what no index knows the first word of.
func rulesOfCorpus(t testing.TB, calls []Facts, rng *rand.Rand) []Rule {
	behaviors := [...]Behavior{Allow, Ask, Deny}
	var list []Rule
	add := func(text string) {
		if r, err := ParseRule(text, behaviors[rng.IntN(3)], "test"); err == nil {
			list = append(list, r)
		}
	}
	for range 40 {
		f := calls[rng.IntN(len(calls))]
		in := &input{raw: f.Input}
		if f.Tool != shellTool {
			add(ToolName("claude", f.Tool))
			continue
		}
		src, _ := in.str("command")
		for _, p := range JudgeShell(src, &f).Parts {
			if len(p.Argv) > 0 {
				add("Bash(" + quoted(p.Argv[:rng.IntN(len(p.Argv))+1]) + []string{"", ":*", " *"}[rng.IntN(3)] + ")")
			}
			for _, file := range p.Files {
				add([]string{"Read", "Edit", "Write"}[rng.IntN(3)] + "(/" + escapePath(file.Abs) + ")")
			}
			for _, h := range p.Hosts {
				add("WebFetch(domain:" + h + ")")
			}
		}
	}
	for _, text := range []string{"Bash(*push*)", "Bash", "Read(**/*.pem)", "Edit", "WebFetch(domain:*.test)", "Read(.env)", "mcp__x", "*"} {
		if rng.IntN(4) == 0 {
			add(text)
		}
	}
	for i := range 5 {
		if f := calls[rng.IntN(len(calls))]; f.Tool == shellTool {
			text := fmt.Sprintf("[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = %q\ndecision = %q\npriority = %d\n", firstWord(&f), []string{"allow", "deny", "ask_user"}[rng.IntN(3)], i)
			list = append(list, ParsePolicy([]byte(text), "test", TierUser).Rules...)
		}
	}
	return list
}

func firstWord(f *Facts) string {
	src, _ := (&input{raw: f.Input}).str("command")
	for _, p := range JudgeShell(src, f).Parts {
		if len(p.Argv) > 0 {
			return p.Argv[0]
		}
	}
	return "ls"
}

// TestTheIndexChangesNoDecision compares decisions with those of an engine that
// asks every rule of every part.
func TestTheIndexChangesNoDecision(t *testing.T) {
	t.Parallel()
	calls := corpusCalls(t)
	const sets = 12
	for n := range sets {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		list := rulesOfCorpus(t, calls, rng)
		if n == 0 {
			list = append(thousandRules(t), list...)
		}
		e := NewEngine(list)
		plain := withoutIndex(e)
		for i, f := range calls {
			if i%sets != n && n > 0 && rng.IntN(3) > 0 {
				continue
			}
			got, want := e.Decide(f), plain.Decide(f)
			got.Checkers, want.Checkers = nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("set %d: %s %s\n got %+v\nwant %+v", n, f.Tool, f.Input, got, want)
			}
		}
	}
}

// FuzzWithin compares within with a search for each key.
func FuzzWithin(f *testing.F) {
	f.Add("/src/main.go\n/etc/passwd", "main.go,/etc,,x,\xff")
	f.Add("", ",a")
	f.Fuzz(func(t *testing.T, text, list string) {
		var keys []key
		var all, want []int32
		for i, k := range strings.Split(list, ",") {
			keys, all = append(keys, newKey(k)), append(all, int32(i))
			if strings.Contains(text, k) {
				want = append(want, int32(i))
			}
		}
		if got := within(all, keys, text); !slices.Equal(got, want) {
			t.Error(fmt.Sprint(got, want))
		}
	})
}

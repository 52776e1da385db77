package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// thousandRules are rules of every form, none of which speaks of the corpus's
// everyday commands alone.
func thousandRules(t testing.TB) []Rule {
	var list []Rule
	for i := range 150 {
		list = append(list, parse(t, Allow, fmt.Sprintf("Bash(tool%d run:*)", i), fmt.Sprintf("Edit(/gen%d/**)", i), fmt.Sprintf("Read(//srv/data%d/**)", i))...)
		list = append(list, parse(t, Deny, fmt.Sprintf("Bash(bad%d:*)", i), fmt.Sprintf("Edit(/locked%d/**/*.lock)", i))...)
	}
	for i := range 30 {
		list = append(list, parse(t, Allow, fmt.Sprintf("Bash(npm run x%d *)", i), fmt.Sprintf("WebFetch(domain:h%d.example.com)", i))...)
		list = append(list, parse(t, Deny, fmt.Sprintf("Read(secret%d.txt)", i), fmt.Sprintf("WebFetch(domain:*.e%d.test)", i))...)
		list = append(list, parse(t, Ask, fmt.Sprintf("Bash(git push r%d:*)", i))...)
	}
	var file strings.Builder
	for i := range 100 {
		fmt.Fprintf(&file, "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"prog%d go\"\ndecision = \"allow\"\npriority = %d\n", i, i)
	}
	p := ParsePolicy([]byte(file.String()), "bench", TierUser)
	if len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
	return append(list, p.Rules...)
}

// corpusCalls are the calls of the corpus.
func corpusCalls(t testing.TB) []Facts {
	var calls []Facts
	for _, c := range readCorpus(t) {
		f := c.facts()
		f.Paths = nil
		calls = append(calls, f)
	}
	return calls
}

func longCall(command string) Facts {
	in := plainJSON(map[string]any{"command": command}) // & as it is, as models write it
	return Facts{Tool: shellTool, Class: ClassExec, Mode: ModeYolo, Input: in, Cwd: corpusRoot, Home: corpusHome}
}

func BenchmarkDecide(b *testing.B) {
	e := NewEngine(thousandRules(b))
	calls := corpusCalls(b)
	long := longCall(strings.Repeat("true && ", 10_000) + "curl https://evil.test")
	b.Run("corpus", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e.Decide(calls[i%len(calls)])
		}
	})
	b.Run("10000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Decide(long)
		}
	})
	b.Run("new", func(b *testing.B) {
		list := thousandRules(b)
		b.ReportAllocs()
		for b.Loop() {
			NewEngine(list)
		}
	})
}

// floor is the least that a call costs whoever judges it: its input is decoded and
// its command parsed.
func floor(f *Facts) {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(f.Input, &in) == nil && in.Command != "" {
		_, _ = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(in.Command), "")
	}
}

// TestDecisionFigures prints how long decisions take beside their floor in the
// same run, for `make bench`. The limits are those that were set in time, 50 us and
// 1 ms, as ratios: the commit that took 42 us and 0.47 ms where they were set takes
// 9.5 and 0.155 times the floor (medians of four runs on another machine).
func TestDecisionFigures(t *testing.T) {
	if os.Getenv("POLICY_FIGURES") == "" {
		t.Skip("POLICY_FIGURES=1 measures")
	}
	list := thousandRules(t)
	e := NewEngine(list)
	calls := corpusCalls(t)
	// The median of many decisions of each call, since the machine does other
	// things too; then the 99th percentile of the calls.
	var each, least, all []time.Duration
	for i := range calls {
		var one, bare []time.Duration
		for range 41 {
			begin := time.Now()
			e.Decide(calls[i])
			decided := time.Now()
			floor(&calls[i])
			one, bare = append(one, decided.Sub(begin)), append(bare, time.Since(decided))
		}
		all = append(all, one...)
		each, least = append(each, middle(one)), append(least, middle(bare))
	}
	slices.Sort(each)
	slices.Sort(least)
	slices.Sort(all)
	p50, p99, floorP99 := each[len(each)/2], each[len(each)*99/100], least[len(least)*99/100]
	judged := func(command string) (best, bare time.Duration) {
		best, bare = time.Hour, time.Hour
		call := longCall(command)
		for range 9 {
			begin := time.Now()
			e.Decide(call)
			decided := time.Now()
			floor(&call)
			best, bare = min(best, decided.Sub(begin)), min(bare, time.Since(decided))
		}
		return best, bare
	}
	repeated, floorRepeated := judged(strings.Repeat("true && ", 10_000) + "curl https://evil.test")
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "ls f%d; ", i)
	}
	different, floorDifferent := judged(b.String())
	row := func(name string, got, floor time.Duration, limit float64) {
		ratio, verdict := float64(got)/float64(floor), "ok"
		if ratio > limit {
			verdict = "MISS"
			t.Errorf("%s: %v, %.2f times the floor, more than %g", name, got, ratio, limit)
		}
		fmt.Printf("%-52s %10.1f us %10.1f us %8.2f   <= %gx %s\n", name, float64(got)/1e3, float64(floor)/1e3, ratio, limit, verdict)
	}
	fmt.Printf("one decision with %d rules, over %d judged calls: p50 %.1f us; p99 of all samples %.1f us\n", len(list), len(calls), float64(p50)/1e3, float64(all[len(all)*99/100])/1e3)
	row("one decision, p99", p99, floorP99, 11)
	row("a command line of 10,000 parts", repeated, floorRepeated, 0.3)
	fmt.Printf("%-52s %10.1f us %10.1f us %8.2f\n", "  of 10,000 different ones", float64(different)/1e3, float64(floorDifferent)/1e3, float64(different)/float64(floorDifferent))
}

// middle sorts list and returns its median.
func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

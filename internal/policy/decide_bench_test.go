package policy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestDecisionFigures prints how long decisions take, for `make bench`.
func TestDecisionFigures(t *testing.T) {
	if os.Getenv("POLICY_FIGURES") == "" {
		t.Skip("POLICY_FIGURES=1 measures")
	}
	list := thousandRules(t)
	e := NewEngine(list)
	calls := corpusCalls(t)
	// The median of many decisions of each call, since the machine does other
	// things too; then the 99th percentile of the calls.
	var each, all []time.Duration
	for i := range calls {
		var one []time.Duration
		for range 41 {
			begin := time.Now()
			e.Decide(calls[i])
			one = append(one, time.Since(begin))
		}
		all = append(all, one...)
		slices.Sort(one)
		each = append(each, one[len(one)/2])
	}
	slices.Sort(each)
	slices.Sort(all)
	p50, p99 := each[len(each)/2], each[len(each)*99/100]
	judged := func(command string) time.Duration {
		best := time.Hour
		for range 9 {
			begin := time.Now()
			e.Decide(longCall(command))
			best = min(best, time.Since(begin))
		}
		return best
	}
	repeated := judged(strings.Repeat("true && ", 10_000) + "curl https://evil.test")
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "ls f%d; ", i)
	}
	different := judged(b.String())
	row := func(name string, got, limit time.Duration) {
		verdict := "ok"
		if got > limit {
			verdict = "MISS"
			t.Errorf("%s: %v, more than %v", name, got, limit)
		}
		fmt.Printf("%-60s %10.1f us   <= %v %s\n", name, float64(got)/1e3, limit, verdict)
	}
	fmt.Printf("one decision with %d rules, over %d judged calls: p50 %.1f us; p99 of all samples %.1f us\n", len(list), len(calls), float64(p50)/1e3, float64(all[len(all)*99/100])/1e3)
	row("one decision, p99", p99, 50*time.Microsecond)
	row("a command line of 10,000 parts", repeated, time.Millisecond)
	fmt.Printf("%-60s %10.1f us\n", "  of 10,000 different ones", float64(different)/1e3)
}

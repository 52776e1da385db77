package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func benchFacts() *Facts {
	return &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u"}
}

func BenchmarkJudge(b *testing.B) {
	for name, src := range map[string]string{
		"simple":          "git status",
		"ordinary":        "cd src && git log --oneline -5 | head -20 > /dev/null",
		"wrapped":         `timeout 5 env LC_ALL=C bash -c 'grep -rn "foo bar" src | sort | uniq -c'`,
		"loop":            `for f in a.go b.go c.go; do head -1 "$f"; done`,
		"10000":           strings.Repeat("true && ", 9999) + "true",
		"10000-denied":    strings.Repeat("true && ", 10_000) + "curl https://evil.example",
		"10000-quoted":    strings.Repeat("true 'a' && ", 10_000) + "curl https://evil.example",
		"10000-echo":      distinct("echo %d && "),
		"10000-ls":        distinct("ls f%d; "),
		"10000-lines":     distinct("cat src/f%d\n"),
		"10000-quotes":    distinct("echo 'a b' \"%d\" && "),
		"10000-variables": distinct("echo \"$x\" %d; "),
		"1000-mix":        mixed(1000),
	} {
		b.Run(name, func(b *testing.B) {
			f := benchFacts()
			b.ReportAllocs()
			for b.Loop() {
				JudgeShell(src, f)
			}
		})
	}
}

// BenchmarkLong holds what once took time that grew with the square of the
// length.
func BenchmarkLong(b *testing.B) {
	for name, src := range map[string]string{
		"variables":   distinct("x%[1]d=%[1]d; ls|cat; "),
		"background":  distinct("x%[1]d=%[1]d; ls & "),
		"alternating": distinct("x%[1]d=%[1]d || "),
		"directories": distinct("cd a%d && "),
		"pipe":        distinct("cat f%d | "),
		"find":        "find " + distinct("f%[1]d -exec cat f%[1]d {} \\; "),
		"deep":        strings.Repeat("$(", 5000) + "ls" + strings.Repeat(")", 5000),
	} {
		b.Run(name, func(b *testing.B) {
			f := benchFacts()
			b.ReportAllocs()
			for b.Loop() {
				JudgeShell(src, f)
			}
		})
	}
}

// distinct makes a line of 10,000 parts of which no two are the same.
func distinct(format string) string {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, format, i)
	}
	return b.String() + "curl https://evil.example"
}

func mixed(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(" && ")
		}
		b.WriteString([]string{"echo 'a b'", "cat a.go", "git status -s", "ls -la src", `grep -n "x" y`}[i%5])
		b.WriteString(strings.Repeat("x", i%7))
	}
	return b.String()
}

// BenchmarkCorpus tells how long single decisions take over all commands that
// were collected, the slowest of them too.
func BenchmarkCorpus(b *testing.B) {
	var list []string
	for _, c := range readCorpus(b) {
		if c.Command != "" {
			list = append(list, c.Command)
		}
	}
	f := benchFacts()
	best := make([]time.Duration, len(list))
	var all []time.Duration
	for i := range best {
		best[i] = time.Hour
	}
	for b.Loop() {
		for i, src := range list {
			start := time.Now()
			JudgeShell(src, f)
			d := time.Since(start)
			best[i] = min(best[i], d)
			all = append(all, d)
		}
	}
	for name, ds := range map[string][]time.Duration{"best": best, "any": all} {
		slices.Sort(ds)
		b.ReportMetric(float64(ds[len(ds)/2])/1e3, "us-p50-"+name)
		b.ReportMetric(float64(ds[len(ds)*99/100])/1e3, "us-p99-"+name)
	}
	b.ReportMetric(float64(best[len(best)-1])/1e3, "us-max-best")
}

// BenchmarkTables is what the first decision costs more than the others.
func BenchmarkTables(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		loadTables()
	}
}

func BenchmarkPath(b *testing.B) {
	f := benchFacts()
	b.ReportAllocs()
	for b.Loop() {
		f.Path("src/internal/policy/engine.go")
	}
}

func BenchmarkHost(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		MatchDomain("example.com", "www.example.com")
	}
}

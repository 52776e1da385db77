package policy

import (
	"strings"
	"testing"
)

func benchFacts() *Facts {
	return &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u"}
}

func BenchmarkJudge(b *testing.B) {
	for name, src := range map[string]string{
		"simple":   "git status",
		"ordinary": "cd src && git log --oneline -5 | head -20 > /dev/null",
		"wrapped":  `timeout 5 env LC_ALL=C bash -c 'grep -rn "foo bar" src | sort | uniq -c'`,
		"loop":     `for f in a.go b.go c.go; do head -1 "$f"; done`,
		"10000":    strings.Repeat("true && ", 9999) + "true",
		"1000-mix": mixed(1000),
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

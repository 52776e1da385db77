package policy

import (
	"slices"
	"testing"
	"time"
)

// TestDecisionsAreQuick guards against a decision that costs a multiple of
// what it should; the figures themselves come from the benchmarks.
func TestDecisionsAreQuick(t *testing.T) {
	f := benchFacts()
	ordinary := []string{
		"git status", "ls -la src", "grep -rn 'foo bar' src | head -20", "cd src && git diff --stat HEAD~1", "npm test", "rm -rf build",
		"find . -name '*.go' -not -path './vendor/*' | xargs wc -l", "git commit -m 'fix: a thing' && git push", "timeout 60 go test ./... 2>&1 | tail -50",
		"for f in *.go; do head -1 \"$f\"; done", "bash -c 'echo hi'", "cat <<'EOF' > a.txt\nhello\nEOF",
	}
	var took []time.Duration
	for i := range 6000 {
		start := time.Now()
		JudgeShell(ordinary[i%len(ordinary)], f)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("one decision: p50 %v, p99 %v", p50, p99)
	if p99 > 5*time.Millisecond {
		t.Errorf("one decision takes %v at p99", p99)
	}
}

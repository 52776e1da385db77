package integration

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// vitals are what a process holds.
type vitals struct {
	rss     int // KiB
	fds     int
	threads int
}

// vitalsOf reads /proc.
func vitalsOf(t testing.TB, pid int) vitals {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var v vitals
	for s := bufio.NewScanner(f); s.Scan(); {
		key, rest, _ := strings.Cut(s.Text(), ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")) // other lines are no numbers
		switch key {
		case "VmRSS":
			v.rss = n
		case "Threads":
			v.threads = n
		}
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	v.fds = len(fds)
	return v
}

// theLongDay is a model for any number of turns: by the turn's number it
// answers, calls tools, and breaks in many ways.
const theLongDay = `
{"when": {"tool": "read_file"}, "use": "always", "emit": [{"text": "Read."}]}
{"when": {"user": {"regex": "^\\d*0$"}}, "use": "always", "emit": [{"thinking": "hm"}, {"tool": "read_file", "input": {"file_path": "a.txt"}}, {"tool": "read_file", "input": {"file_path": "a.txt"}}]}
{"when": {"user": {"regex": "^\\d*3$"}}, "use": "always", "emit": [{"text": "half"}, {"fault": "reset"}]}
{"when": {"user": {"regex": "^\\d*5$"}}, "use": "always", "emit": [{"status": 503}]}
{"when": {"user": {"regex": "^\\d*7$"}}, "use": "always", "emit": [{"text": "half"}, {"fault": "stall"}]}
{"when": {"user": {"regex": "^\\d*8$"}}, "use": "always", "emit": [{"fault": "garbage"}]}
{"when": {"user": {"regex": "^\\d*9$"}}, "use": "always", "emit": [{"status": 400}]}
{"use": "always", "emit": [{"text": "word ", "repeat": 50}]}
`

// TestSoakOneSessionStaysFlat keeps one session busy with turns, faults
// included, through every provider in turn, and looks at what the process
// holds: nothing may grow but the conversation itself.
func TestSoakOneSessionStaysFlat(t *testing.T) {
	if !soak() {
		t.Skip("set AGENT_SOAK=1 (make soak) to run this for minutes")
	}
	t.Parallel()
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("AGENT_SOAK_TIME"), "10m"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	p.write("a.txt", "one\n")
	p.settings(`{"network": {"idleTimeoutMs": 100, "retryBudgetMs": 100}}`)
	base, _ := p.serve(theLongDay)
	args := append([]string{"--input-format", "stream-json", "--model", providers[0].model}, streamJSON...)
	proc := p.start(testkit.Spec{Args: args, Env: allProviders(base), HoldStdin: true})
	begin, next, turns := time.Now(), 0, 0
	var warm, last vitals
	for ; time.Since(begin) < limit; turns++ {
		if err := proc.Send(modelLine(strconv.Itoa(turns), providers[turns/10%len(providers)].model)); err != nil {
			t.Fatal(err)
		}
		if _, next, err = proc.Await(next, 30*time.Second, isResult); err != nil {
			t.Fatalf("turn %d: %v", turns, err)
		}
		if turns == 200 {
			warm = vitalsOf(t, proc.PID())
		}
		if turns%500 == 0 {
			t.Logf("%s: %d turns, %+v", time.Since(begin).Round(time.Second), turns, vitalsOf(t, proc.PID()))
		}
	}
	last = vitalsOf(t, proc.PID())
	proc.CloseStdin()
	exit, err := proc.Wait(30 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns: %+v after 200 turns, %+v at the end; exit %d", turns, warm, last, exit.Code)
	if turns < 300 {
		t.Skipf("only %d turns: too few to judge", turns)
	}
	if last.fds > warm.fds+8 || last.threads > warm.threads+8 {
		t.Errorf("files or threads grew: %+v after 200 turns, %+v after %d", warm, last, turns)
	}
	// The history is kept, a few KiB a turn at most.
	if grown, allowed := last.rss-warm.rss, 16<<10+8*(turns-200); grown > allowed {
		t.Errorf("memory grew by %d KiB over %d turns, at most %d is the conversation's", grown, turns-200, allowed)
	}
	if n := len(results(frames(t, proc))); n != turns {
		t.Errorf("%d results for %d turns", n, turns)
	}
}

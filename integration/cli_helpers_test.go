package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// scripted is the flag that plays steps in process.
func (p *place) scripted(steps string) string { return "--model=scripted/" + p.script(steps) }

// served are the flag and the environment that ask a provider's API, which
// plays steps.
func (p *place) served(api provider, steps string) (flag string, env []string) {
	p.t.Helper()
	url, _ := p.serve(steps)
	return "--model=" + api.model, api.env(url)
}

// has reports whether there is a file in the working folder.
func (p *place) has(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

// content returns a file of the working folder.
func (p *place) content(name string) string {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}

// stateFiles returns the files below the state folder that match a pattern.
func (p *place) stateFiles(pattern string) []string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.home, "agent", "state", pattern))
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// eventually waits until ok is true, which it asks every few milliseconds.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// say is a step that answers anything with text.
func say(text string) string {
	return fmt.Sprintf(`{"use": "always", "emit": [{"text": %s}]}`, quote(text))
}

// call is a step that answers the n-th request of a conversation with a call
// of a tool.
func call(turn int, tool string, input map[string]any) string {
	raw, _ := json.Marshal(input)
	return fmt.Sprintf("{\"when\": {\"turn\": %d}, \"emit\": [{\"tool\": %q, \"input\": %s, \"literal\": true}]}\n", turn, tool, raw)
}

// shell is a step that runs a command.
func shell(turn int, command string) string {
	return call(turn, "run_shell_command", map[string]any{"command": command})
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// toolResults are the answers to the tool calls, in order.
func toolResults(list []testkit.Frame) []toolResult {
	var out []toolResult
	for _, f := range list {
		content, _ := f.Get("message.content")
		blocks, _ := content.([]any)
		for _, b := range blocks {
			m, _ := b.(map[string]any)
			if m["type"] == "tool_result" {
				text, isText := m["content"].(string)
				if !isText {
					raw, _ := json.Marshal(m["content"])
					text = string(raw)
				}
				out = append(out, toolResult{text, m["is_error"] == true})
			}
		}
	}
	return out
}

type toolResult struct {
	text    string
	isError bool
}

// joinedText is the text of all text deltas.
func joinedText(list []testkit.Frame) string {
	var sb strings.Builder
	for _, f := range list {
		if f.String("event.delta.type") == "text_delta" {
			sb.WriteString(f.String("event.delta.text"))
		}
	}
	return sb.String()
}

var marks atomic.Int64

// mark returns an environment entry that marks a process and its children, for
// testkit.Marked.
func mark() string {
	return fmt.Sprintf("INTEGRATION_MARK=%d-%d-%d", os.Getpid(), time.Now().UnixNano(), marks.Add(1))
}

// noneLeft demands that soon no process has the mark.
func noneLeft(t testing.TB, mark string, limit time.Duration) {
	t.Helper()
	end := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for left := testkit.Marked(mark); len(left) > 0; left = testkit.Marked(mark) {
		if time.Now().After(end) {
			for _, pid := range left {
				cmd, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
				t.Errorf("process %d is left: %s", pid, bytes.ReplaceAll(cmd, []byte{0}, []byte{' '}))
			}
			return
		}
		<-tick.C
	}
}

// onLinux skips tests that look into /proc.
func onLinux(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
}

// tool returns the path of a program. Where it is missing the test is skipped,
// or fails if AGENT_TEST_REQUIRE names it.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if slices.Contains(strings.Fields(os.Getenv("AGENT_TEST_REQUIRE")), name) {
		t.Fatalf("%s is missing, and AGENT_TEST_REQUIRE demands it", name)
	}
	t.Skipf("needs %s", name)
	return ""
}

// soak reports whether long tests are wanted.
func soak() bool { return os.Getenv("AGENT_SOAK") != "" }

// isInit accepts the first line of a turn.
func isInit(l testkit.Line) bool { return bytes.Contains(l.Text, []byte(`"subtype":"init"`)) }

// isResult accepts the last line of a turn.
func isResult(l testkit.Line) bool { return bytes.HasPrefix(l.Text, []byte(`{"type":"result"`)) }

// bothWays are the flags of a session over JSON lines.
var bothWays = []string{"--input-format", "stream-json", "--output-format", "stream-json"}

// peakMemory samples the memory of a process and its children; the returned
// function stops it and returns the highest value. What the kernel keeps as the
// peak (Exit.MaxRSS) counts the memory of the process that forked it as well.
func peakMemory(proc *testkit.Proc) (stop func() int64) {
	done, peak := make(chan struct{}), make(chan int64)
	go func() { // ends with stop
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for {
			select {
			case <-tick.C:
				most = max(most, testkit.TreeRSS(proc.PID()))
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-peak
	}
}

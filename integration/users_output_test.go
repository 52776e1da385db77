package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// bigText is a model script whose answer is mb MiB of text in deltas of 1 KiB,
// and that text.
func bigText(mb int) (steps, text string) {
	piece := strings.Repeat("0123456789abcde ", 64)
	return fmt.Sprintf(`{"use": "always", "emit": [{"text": %q, "repeat": %d}]}`, piece, mb<<10), strings.Repeat(piece, mb<<10)
}

func hash(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// TestUsersRow07_TheWholeOutputArrives reads a 5 MB answer slowly from a pipe
// and from a file: it is whole, and the same.
func TestUsersRow07_TheWholeOutputArrives(t *testing.T) {
	t.Parallel()
	steps, text := bigText(5)
	for _, format := range []string{"text", "json", "stream-json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args := []string{"-pgo", "-o", format, p.scripted(steps)}
			if format == "stream-json" {
				args = append(args, "--include-partial-messages")
			}
			slow := p.start(testkit.Spec{Args: args, NoRead: true})
			slow.Read(3 << 20)
			if exit, err := slow.Wait(time.Minute); err != nil || exit.Code != 0 {
				t.Fatalf("%v, exit code %d: %s", err, exit.Code, slow.Stderr())
			}
			file := p.toFile(args)
			want := hash(strings.TrimRight(text, " "))
			for name, out := range map[string]string{"pipe": slow.Output(), "file": file} {
				if got := hash(strings.TrimRight(answerIn(t, format, out), " \n")); got != want {
					t.Errorf("the answer through a %s differs: %d bytes of output", name, len(out))
				}
			}
		})
	}
}

// toFile runs the program with stdout going to a file and returns what is in it.
func (p *place) toFile(args []string) string {
	p.t.Helper()
	f, err := os.Create(filepath.Join(filepath.Dir(p.dir), "stdout"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if proc, exit := p.run(testkit.Spec{Args: args, Stdout: f}); exit.Code != 0 {
		p.t.Fatalf("exit code %d: %s", exit.Code, proc.Stderr())
	}
	raw, err := os.ReadFile(f.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}

// answerIn is the answer that an output holds.
func answerIn(t *testing.T, format, out string) string {
	t.Helper()
	if format == "text" {
		return out
	}
	var list []testkit.Frame
	for l := range strings.Lines(out) {
		f, err := testkit.Parse([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	if format == "json" {
		return list[0].String("result")
	}
	if err := testkit.CheckTurns(list); err != nil {
		t.Fatal(err)
	}
	return joinedText(list)
}

// keptIn finds the file that a shortened text names.
var keptIn = regexp.MustCompile(`the whole(?: output \([^)]*\))? is in (/[^\s:\]]+)`)

// TestUsersRow08_LongLinesAreSpilled makes frames that would be megabytes: an
// answer, a call's input and a command's output. Each line stays below 1 MiB,
// and the file that it names has the whole.
func TestUsersRow08_LongLinesAreSpilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	steps, text := bigText(5)
	content := strings.Repeat("a line of the file\n", 200_000)
	model := p.scripted(`{"when": {"turn": 1}, "emit": [{"tool": "write_file", "input": {"file_path": "big.txt", "content": ` + quote(content) + `}}]}
{"when": {"turn": 2}, "emit": [{"tool": "run_shell_command", "input": {"command": "seq 1 7000000"}}]}` + "\n" + steps)
	proc, exit := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", model}})
	list := frames(t, proc)
	if exit.Code != 0 {
		t.Fatalf("exit code %d: %s", exit.Code, proc.Stderr())
	}
	for i, l := range proc.Lines() {
		if len(l.Text) >= 1<<20 {
			t.Errorf("line %d has %d bytes", i+1, len(l.Text))
		}
	}
	if p.content("big.txt") != content {
		t.Error("the file that was written is not what the call said")
	}
	sameFile(t, "the answer", results(list)[0].String("result"), hash(text))
	input, _ := list[1].Get("message.content")
	raw := fmt.Sprint(input)
	sameFile(t, "the input of the call", raw, hash(content))
	var seq strings.Builder
	for i := 1; i <= 7_000_000; i++ {
		fmt.Fprintln(&seq, i)
	}
	sameFile(t, "the output of the command", toolResults(list)[1].text, hash(seq.String()))
}

// sameFile demands that the file that text names has this hash.
func sameFile(t *testing.T, what, text, want string) {
	t.Helper()
	found := keptIn.FindStringSubmatch(text)
	if found == nil {
		t.Errorf("%s names no file: %.100q ... %.300q", what, text, text[max(0, len(text)-300):])
		return
	}
	raw, err := os.ReadFile(found[1])
	if err != nil {
		t.Error(err)
		return
	}
	if hash(string(raw)) != want {
		t.Errorf("%s: the file %s (%d bytes) is not the whole", what, found[1], len(raw))
	}
}

// TestUsersRow09_StdoutIsJSONLinesOnly lets everything make noise at once.
func TestUsersRow09_StdoutIsJSONLinesOnly(t *testing.T) {
	t.Parallel()
	noise := `echo garbage; echo garbage >&2; printf 'no line end'; printf '\033[31m\000\377'; for i in 3 4 5 6 7 8 9; do echo garbage >&$i; done 2>/dev/null; echo garbage >/dev/tty; exit 3`
	steps := shell(1, noise) +
		`{"when": {"turn": 2}, "emit": [{"tool": "no_such_tool", "input": {}}, {"tool": "read_file", "input_text": "{broken"}, {"tool": "read_file", "input": {"file_path": "/dev/zero"}}]}` +
		call(3, "run_shell_command", map[string]any{"command": noise, "run_in_background": true}) +
		`{"when": {"turn": 4}, "emit": [{"status": 503, "first": 1}, {"text": "half"}, {"fault": "cut"}]}` +
		`{"use": "always", "emit": [{"text": "{\"type\":\"result\"}\u2028\u0000 done"}]}`
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		p.settings("{\"no such key\": 1}")
		model, env := p.served(pr, steps)
		lines := []string{userLine("go"), "not json", userLine("again")}
		proc, exit := p.run(testkit.Spec{
			Args: append([]string{model, "--debug", "--permission-mode=yolo", "--include-partial-messages"}, bothWays...),
			Env:  append(env, "DEBUG=1", "NODE_DEBUG=all", "GODEBUG=http2debug=1"), Stdin: strings.Join(lines, "\n"),
		})
		list := frames(t, proc)
		if n := len(results(list)); n != 3 {
			t.Errorf("%d results, want 3", n)
		}
		if strings.Count(proc.Output(), "\n") != len(proc.Lines()) || strings.Contains(proc.Output(), "\u2028") {
			t.Error("stdout is not whole lines, or has a raw U+2028")
		}
		if exit.Code != 42 || !strings.Contains(proc.Stderr(), "level=DEBUG") || strings.Contains(proc.Stderr(), "goroutine ") {
			t.Errorf("exit code %d, stderr: %.2000s", exit.Code, proc.Stderr())
		}
	})
}

// TestUsersRow10_AReaderThatGoesAwayEndsTheRun closes stdout at several places:
// the run is gone within 2 s, with all its children, and did not spin.
func TestUsersRow10_AReaderThatGoesAwayEndsTheRun(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tree := `setsid sh -c 'trap "" TERM HUP; touch started; while :; do sleep 1; done' & sh -c 'trap "" TERM; sleep 600' & wait`
	for _, c := range []struct {
		name, steps string
		flags       []string
		await       func(*place, *testkit.Proc) bool
	}{
		{"in the middle of a tool", shell(1, tree), nil,
			func(p *place, _ *testkit.Proc) bool { return p.has("started") }},
		{"in the middle of an answer", `{"emit": [{"text": "word ", "repeat": 100000, "every_ms": 1}]}`, []string{"--include-partial-messages"},
			func(_ *place, proc *testkit.Proc) bool { return len(proc.Lines()) > 20 }},
		{"while the model is silent", `{"emit": [{"text": "word"}, {"fault": "stall"}]}`, nil,
			func(_ *place, proc *testkit.Proc) bool { return len(proc.Lines()) > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, mark := newPlace(t), mark()
			proc := p.start(testkit.Spec{
				Args: append(c.flags, "-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(c.steps)), Env: []string{mark}, HoldStdin: true,
			})
			eventually(t, 20*time.Second, "it is at work", func() bool { return c.await(p, proc) })
			gone := time.Now()
			proc.CloseStdout()
			exit, err := proc.Wait(10 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			proc.CloseStdin()
			if took := time.Since(gone); took > 2*time.Second {
				t.Errorf("gone after %s", took)
			}
			if exit.Code != 74 {
				t.Errorf("exit code %d, want 74", exit.Code)
			}
			noneLeft(t, mark, 0)
		})
	}
}

// TestFaultF07_BrokenPipeIsNoCrash: what had come is in the transcript, and
// there is a message in place of a stack trace.
func TestFaultF07_BrokenPipeIsNoCrash(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(shell(1, "touch started; sleep 600"))
	proc := p.start(testkit.Spec{Args: []string{"-p", "remember this", "-ostream-json", "--permission-mode=yolo", model}})
	eventually(t, 20*time.Second, "the tool runs", func() bool { return p.has("started") })
	proc.CloseStdout()
	exit, err := proc.Wait(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if exit.Code != 74 || strings.Contains(proc.Stderr(), "goroutine ") || strings.Count(proc.Stderr(), "\n") != 1 {
		t.Errorf("exit code %d, stderr: %s", exit.Code, proc.Stderr())
	}
	kept := p.stateFiles("sessions/projects/*/*.jsonl")
	if len(kept) != 1 {
		t.Fatalf("transcripts: %v", kept)
	}
	raw, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	mentions(t, "the transcript", string(raw), "remember this", `"tool_use"`, `"tool_result"`, "interrupted")
}

// TestFaultF07_AClosedStderrIsNoMatter logs to a stderr that nobody reads.
func TestFaultF07_AClosedStderrIsNoMatter(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(shell(1, "echo hi") + say("done"))
	for _, redirect := range []string{"2>&-", "2> >(exec 0<&-; exit)", "2>/dev/full"} {
		proc, err := testkit.Start(testkit.Spec{
			Path: tool(t, "bash"), Dir: p.dir, Env: p.env,
			Args: []string{"-c", `exec "$0" -p go --debug -ostream-json --permission-mode=yolo "$1" ` + redirect, agentPath(t), model},
		})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Wait(20 * time.Second)
		if err != nil || exit.Code != 0 {
			t.Fatalf("%s: %v, exit code %d", redirect, err, exit.Code)
		}
		expect(t, texts(frames(t, proc)), "done")
	}
}

// resident is the memory of a process now, in MB.
func resident(proc *testkit.Proc) int64 { return testkit.TreeRSS(proc.PID()) >> 20 }

// pausedLimit is the most memory of a run whose output nobody reads, in MB.
const pausedLimit = 128

// TestFaultF08_APausedReaderPausesTheModel leaves 24 MB of deltas unread: the
// run waits with little memory, and all of it arrives once it is read.
func TestFaultF08_APausedReaderPausesTheModel(t *testing.T) {
	t.Parallel()
	onLinux(t)
	steps, text := bigText(24)
	for _, api := range []bool{false, true} {
		p := newPlace(t)
		model, env := "", []string(nil)
		if api {
			model, env = p.served(providers[1], steps)
		} else {
			model = p.scripted(steps)
		}
		proc := p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--include-partial-messages", model}, Env: env, NoRead: true})
		untilStill(t, proc)
		held := resident(proc)
		t.Logf("%d MB while nobody reads", held)
		if held > pausedLimit {
			t.Errorf("%d MB while nobody reads, want at most %d", held, pausedLimit)
		}
		proc.Read(0)
		exit, err := proc.Wait(time.Minute)
		if err != nil || exit.Code != 0 {
			t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
		}
		if got := joinedText(frames(t, proc)); hash(got) != hash(text) {
			t.Errorf("%d bytes of text arrived, want %d", len(got), len(text))
		}
	}
}

// untilStill waits until a process has used no CPU for half a second; for
// ten, if long tests are wanted.
func untilStill(t *testing.T, proc *testkit.Proc) {
	t.Helper()
	still := 500 * time.Millisecond
	if soak() {
		still = 10 * time.Second
	}
	last, since := "", time.Now()
	eventually(t, still+30*time.Second, "it waits for its reader", func() bool {
		now := cpuTicks(t, proc.PID())
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > still
	})
}

// cpuTicks are the user and system time of a process, as the kernel has them.
func cpuTicks(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	return fields[11] + " " + fields[12]
}

// TestFaultF09_ASlowReaderCostsNoMemory reads many deltas slowly.
func TestFaultF09_ASlowReaderCostsNoMemory(t *testing.T) {
	t.Parallel()
	onLinux(t)
	deltas, rate := 1_000_000, 1<<20
	if soak() {
		rate = 64 << 10
	}
	p := newPlace(t)
	model := p.scripted(fmt.Sprintf(`{"emit": [{"text": "ab", "repeat": %d}]}`, deltas))
	proc := p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--include-partial-messages", model}, NoRead: true})
	peak := peakMemory(proc)
	proc.Read(rate)
	exit, err := proc.Wait(5 * time.Minute)
	mb := peak() >> 20
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	if got, want := joinedText(frames(t, proc)), strings.Repeat("ab", deltas); got != want {
		t.Errorf("%d bytes of text arrived, want %d", len(got), len(want))
	}
	t.Logf("peak of %d MB", mb)
	if mb > pausedLimit {
		t.Errorf("peak of %d MB, want at most %d", mb, pausedLimit)
	}
}

// TestFaultF08_ASignalEndsARunThatNobodyReads: after SIGTERM it does not wait
// for ever for its reader.
func TestFaultF08_ASignalEndsARunThatNobodyReads(t *testing.T) {
	t.Parallel()
	onLinux(t)
	p := newPlace(t)
	steps, _ := bigText(24)
	proc := p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--include-partial-messages", p.scripted(steps)}, NoRead: true})
	untilStill(t, proc)
	told := time.Now()
	proc.Signal(syscall.SIGTERM)
	eventually(t, 20*time.Second, "it ends", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", proc.PID()))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
	if took := time.Since(told); took > 6*time.Second {
		t.Errorf("ended %s after SIGTERM", took)
	}
	if exit, err := proc.Wait(10 * time.Second); err != nil || exit.Code != 143 {
		t.Errorf("%v, exit code %d", err, exit.Code)
	}
}

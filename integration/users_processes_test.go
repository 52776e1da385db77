package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// onDisk sums the sizes of the files below dir, in MB.
func onDisk(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // it may be gone already
				sum += info.Size()
			}
		}
		return nil
	})
	return sum >> 20
}

// TestUsersRow25_BackgroundOutputIsBounded runs a command that writes for ever,
// in the background and in the foreground: the disk gets at most 64 MB of each,
// memory stays small, and the model is told what is missing.
func TestUsersRow25_BackgroundOutputIsBounded(t *testing.T) {
	t.Parallel()
	onLinux(t)
	p, mark := newPlace(t), mark()
	steps := call(1, "run_shell_command", map[string]any{"command": "yes a line of output that never ends", "run_in_background": true}) +
		call(2, "run_shell_command", map[string]any{"command": "yes another line that never ends", "timeout": 2500}) +
		`{"when": {"turn": 3, "request": 3}, "emit": [{"tool": "task_output", "input": {"task_id": "ID"}}]}` + say("done")
	steps = strings.Replace(steps, "ID", "task_1", 1)
	proc := p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps)}, Env: []string{mark}})
	peak := peakMemory(proc)
	exit, err := proc.Wait(time.Minute)
	memory := peak() >> 20
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	answers := toolResults(frames(t, proc))
	if len(answers) != 3 || !strings.Contains(answers[1].text, "was dropped") || !strings.Contains(answers[2].text, "was dropped") {
		t.Errorf("the model is not told what was dropped: %.3000s", fmt.Sprint(answers))
	}
	used := onDisk(filepath.Join(p.home, "agent")) + onDisk(p.dir)
	t.Logf("%d MB on disk, %d MB of memory", used, memory)
	if used > 130 || memory > 100 {
		t.Errorf("%d MB on disk, want at most 130; %d MB of memory, want at most 100", used, memory)
	}
	noneLeft(t, mark, 2*time.Second)
}

// wildTree starts processes that hold on to life: in a session of their own,
// deaf to TERM, holding the pipe, without our environment. They touch files
// when they are there.
const wildTree = `
setsid bash -c 'trap "" TERM HUP INT; touch deaf; while :; do sleep 0.2; done' &
(setsid setsid sleep 98761 & )
nohup sleep 98762 >/dev/null 2>&1 &
env -i setsid sleep 98763 &
bash -c 'trap "" TERM; exec -a harmless sleep 98764' &
touch started
wait`

// wildLeft demands that soon nothing of a wild tree lives; the processes without
// our mark are told by their working folder.
func wildLeft(t *testing.T, p *place, mark string, limit time.Duration) {
	t.Helper()
	end := time.Now().Add(limit)
	noneLeft(t, mark, limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for left := inFolder(p.dir); len(left) > 0; left = inFolder(p.dir) {
		if time.Now().After(end) {
			t.Errorf("left in %s: %v", p.dir, left)
			return
		}
		<-tick.C
	}
}

// inFolder lists the processes whose working folder is dir, the agent's own
// left out.
func inFolder(dir string) []string {
	var out []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != dir {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		if err == nil && filepath.Base(exe) != "agent" {
			out = append(out, filepath.Base(filepath.Dir(link))+" "+exe)
		}
	}
	return out
}

// TestUsersRow26_AnInterruptTakesTheWholeTree: by SIGINT and SIGTERM.
func TestUsersRow26_AnInterruptTakesTheWholeTree(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "setsid")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p, mark := newPlace(t), mark()
			proc := p.start(testkit.Spec{
				Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(shell(1, wildTree))}, Env: []string{mark},
			})
			eventually(t, 20*time.Second, "the tree is there", func() bool { return p.has("started") && p.has("deaf") })
			told := time.Now()
			proc.Signal(sig)
			exit, err := proc.Wait(10 * time.Second)
			if err != nil || exit.Code != 128+int(sig) {
				t.Fatalf("%v, exit code %d", err, exit.Code)
			}
			wildLeft(t, p, mark, 3*time.Second-time.Since(told))
			list := frames(t, proc)
			if answers := toolResults(list); len(answers) != 1 || !answers[0].isError {
				t.Errorf("the call is not answered as failed: %+v", answers)
			}
		})
	}
}

// TestUsersRow26_ATimeoutTakesTheWholeTree: and the session goes on, with its
// next prompt.
func TestUsersRow26_ATimeoutTakesTheWholeTree(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "setsid")
	p, mark := newPlace(t), mark()
	model := p.scripted(call(1, "run_shell_command", map[string]any{"command": wildTree, "timeout": 1000}) +
		`{"when": {"turn": 2}, "emit": [{"text": "{{last_tool_result}}"}]}` + shell(3, "echo alive") + `{"emit": [{"text": "{{last_tool_result}}"}]}`)
	proc := p.start(testkit.Spec{Args: append([]string{"--permission-mode=yolo", model}, bothWays...), Env: []string{mark}, HoldStdin: true})
	if err := proc.Send(userLine("go")); err != nil {
		t.Fatal(err)
	}
	_, next, err := proc.Await(0, 10*time.Second, isResult)
	if err != nil {
		t.Fatal(err)
	}
	if left := inFolder(p.dir); len(left) > 0 {
		t.Errorf("left after the timeout: %v", left)
	}
	if err := proc.Send(userLine("and now?")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := proc.Await(next, 10*time.Second, isResult); err != nil {
		t.Fatal(err)
	}
	proc.CloseStdin()
	if exit, err := proc.Wait(10 * time.Second); err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d", err, exit.Code)
	}
	got := texts(frames(t, proc))
	if len(got) != 2 || !strings.Contains(got[0], "timed out after 1s") || !strings.HasPrefix(got[1], "alive") {
		t.Errorf("results: %q", got)
	}
	wildLeft(t, p, mark, time.Second)
}

// TestUsersRow26_TheEndTakesBackgroundTasks: what runs in the background ends
// with the session.
func TestUsersRow26_TheEndTakesBackgroundTasks(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "setsid")
	p, mark := newPlace(t), mark()
	steps := call(1, "run_shell_command", map[string]any{"command": wildTree, "run_in_background": true}) +
		shell(2, "until test -e deaf; do sleep 0.05; done") + say("done")
	_, exit := p.run(testkit.Spec{Args: []string{"-pgo", "--permission-mode=yolo", p.scripted(steps)}, Env: []string{mark}})
	if exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
	wildLeft(t, p, mark, time.Second)
}

// waiters are commands that wait for somebody: for input, for a terminal, for an
// editor, for a password. Those whose program is missing fail at once, which is
// as good.
var waiters = []string{
	"cat", "read -p 'Name? ' x; echo \"got: $x\"", "read x </dev/tty", "head -1", "sort", "tee out", "sh", "bash -i", "bash",
	"python3", "python3 -c 'input(\"> \")'", "node", "vi file.txt", "vim file.txt", "nano file.txt", "less README", "more README", "man ls",
	"git commit", "git commit --amend", "git rebase -i HEAD~1", "git add -p", "git log", "sudo -k true", "sudo true", "su nobody -c true",
	"passwd", "ssh -o ConnectTimeout=1 nobody@127.0.0.1 true", "select x in a b; do echo $x; done", "bc", "ed", "top", "dd of=out count=1", "xargs echo",
	"script -qc 'read x' /dev/null", "gpg --gen-key", "crontab -e", "mail", "crontab", "openssl passwd", "git clone https://user@127.0.0.1:9/x.git",
}

// TestUsersRow27_CommandsThatWaitForSomebodyEnd runs them all: each ends long
// before its timeout, and the run goes on.
func TestUsersRow27_CommandsThatWaitForSomebodyEnd(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "git")
	const shares = 4
	for share := range shares {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			p, mark := newPlace(t), mark()
			p.repository()
			var steps strings.Builder
			var mine []string
			for i, c := range waiters {
				if i%shares == share {
					mine = append(mine, c)
					steps.WriteString(call(len(mine), "run_shell_command", map[string]any{"command": c, "timeout": 30_000}))
				}
			}
			proc, exit := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps.String() + say("done"))},
				Env: []string{mark, "TERM=xterm", "EDITOR=vi"}, HoldStdin: true})
			proc.CloseStdin()
			answers := toolResults(frames(t, proc))
			if exit.Code != 0 || len(answers) != len(mine) {
				t.Fatalf("exit code %d, %d answers to %d commands", exit.Code, len(answers), len(mine))
			}
			checkWaits(t, proc, mine, answers)
			if got := p.git("log", "--format=%s"); got != "second\nfirst" {
				t.Errorf("the history was rewritten: %q", got)
			}
			noneLeft(t, mark, 2*time.Second)
		})
	}
}

// checkWaits looks at how long each answer took.
func checkWaits(t *testing.T, proc *testkit.Proc, commands []string, answers []toolResult) {
	t.Helper()
	last, n := time.Duration(0), 0
	for _, l := range proc.Lines() {
		f, err := testkit.Parse(l.Text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind() == "user" {
			if took := l.At - last; took > 12*time.Second {
				t.Errorf("%q took %s: %.300s", commands[n], took, answers[n].text)
			}
			n++
		}
		last = l.At
	}
}

// repository makes the working folder a git repository with two commits and a
// change.
func (p *place) repository() {
	p.t.Helper()
	p.git("init", "-q", "-b", "main")
	for _, name := range []string{"first", "second"} {
		p.write("README", name)
		p.git("add", ".")
		p.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", name)
	}
	p.write("README", "third")
}

func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestUsersRow27_TheModelIsToldToUseTheBackground: a server that never ends is
// stopped at its timeout, with a hint.
func TestUsersRow27_TheModelIsToldToUseTheBackground(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	steps := call(1, "run_shell_command", map[string]any{"command": "echo serving; exec sleep 600", "timeout": 700}) + say("done")
	proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps)}})
	answers := toolResults(frames(t, proc))
	if len(answers) != 1 || !answers[0].isError || !strings.Contains(answers[0].text, "serving") || !strings.Contains(answers[0].text, "run_in_background") {
		t.Errorf("the answer is %+v", answers)
	}
}

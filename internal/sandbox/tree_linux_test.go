package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// survivors returns the processes, other than this one, that carry mark in
// their command line or environment.
func survivors(mark string) []string {
	var found []string
	for _, p := range allProcs() {
		if p.pid == os.Getpid() || p.dead() {
			continue
		}
		cmd := readFile(procPath(p.pid, "cmdline"), 1<<16)
		if bytes.Contains(cmd, []byte(mark)) || hasEnv(p.pid, mark) {
			found = append(found, fmt.Sprintf("%d %q", p.pid, cmd))
		}
	}
	return found
}

// markOf returns what every process of p carries.
func markOf(p Process) string { return p.(*process).tree.cookie }

// trees that try to outlive their leader. $N is a sleep that no other test uses.
var trees = map[string]string{
	"plain child":                 `sleep $N & echo ready; wait`,
	"own session":                 `setsid sleep $N & echo ready; wait`,
	"double fork":                 `(sleep $N & ) ; echo ready; sleep $N`,
	"daemon":                      `(setsid sh -c 'sleep '$N' & ' & ) ; echo ready; sleep $N`,
	"ignores SIGTERM":             `trap "" TERM; sleep $N & echo ready; while :; do wait; sleep $N; done`,
	"daemon that ignores SIGTERM": `(setsid bash -c 'trap "" TERM HUP INT; sleep '$N' & (setsid sleep '$N' &); echo ready; while :; do sleep '$N'; done' & ) ; sleep $N`,
	"no environment":              `(env -i setsid sleep $N & ) ; echo ready; sleep $N`,
	"stopped":                     `sleep $N & kill -STOP $!; echo ready; wait`,
	"stops itself":                `echo ready; kill -STOP $BASHPID; sleep $N`,
	"pipe closed, no environment": `(env -i setsid bash -c 'exec >/dev/null 2>&1; exec sleep '$N & ) ; echo ready; sleep $N`,
	"many":                        `for i in $(seq 40); do (setsid sleep $N &) ; done; echo ready; sleep $N`,
	"respawns":                    `(setsid bash -c 'trap "" TERM; while :; do sleep '$N'; done' &); echo ready; sleep $N`,
}

func TestStopTakesTheWholeTree(t *testing.T) {
	n := 70000
	for name, script := range trees {
		n++
		mark := strconv.Itoa(n)
		t.Run(name, func(t *testing.T) {
			// Not parallel: a stray without any trace is only told from
			// another command's when no other is running.
			out := newSignalWriter("ready")
			c := bash(strings.ReplaceAll(script, "$N", mark))
			c.Stdout = out
			p := start(t, c)
			out.wait(t)
			timed(t, 3*time.Second, func() bool { p.Stop(); return true })
			if got := p.Wait(); got.Survivors != 0 || got.Code != -1 {
				t.Errorf("exit = %+v", got)
			}
			if left := append(survivors(markOf(p)), survivors(mark)...); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestWhatACommandLeavesBehindIsStopped(t *testing.T) {
	n := 71000
	for name, script := range trees {
		n++
		mark := strconv.Itoa(n)
		t.Run(name, func(t *testing.T) {
			// The tree is started by a leader that then exits at once.
			script := strings.ReplaceAll(script, "$N", mark)
			var out bytes.Buffer
			c := bash("exec 3>&1; coproc { " + script + " ; }; head -n1 <&${COPROC[0]} >&3; exit 7")
			c.Stdout, c.Stderr = &out, &out
			p := start(t, c)
			got := timed(t, 5*time.Second, p.Wait)
			if got.Code != 7 || got.Signal != "" || got.Survivors != 0 || got.Leftovers == 0 {
				t.Errorf("exit = %+v, output %q", got, &out)
			}
			if left := append(survivors(markOf(p)), survivors(mark)...); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestOneCommandNeverTouchesAnothersChildren(t *testing.T) {
	t.Parallel()
	victim := newSignalWriter("ready")
	c := bash(`sleep 72001 & setsid sleep 72001 & (setsid sleep 72001 &); (setsid sleep 72001 >/dev/null &); echo ready; wait`)
	c.Stdout = victim
	p := start(t, c)
	defer p.Stop()
	victim.wait(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				q := start(t, bash(`(setsid sleep 72002 >/dev/null 2>&1 &); sleep 72002 & true`))
				q.Wait()
				if left := survivors(markOf(q)); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			}
		})
	}
	wg.Wait()
	if left := survivors("\x0072001"); len(left) != 4 {
		t.Errorf("the other command has %d of 4 children: %q", len(left), left)
	}
}

func TestExitStatusOfOtherChildrenIsNotStolen(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 10 {
				if err := exec.Command("sh", "-c", "exit "+strconv.Itoa(i+1)).Run(); err == nil || err.Error() != "exit status "+strconv.Itoa(i+1) {
					t.Errorf("os/exec: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				if got := start(t, bash("(setsid true &); sleep 0.01 & exit "+strconv.Itoa(i+10))).Wait(); got.Code != i+10 {
					t.Errorf("exit = %+v", got)
				}
			}
		})
	}
	wg.Wait()
}

func TestNoZombiesAreLeft(t *testing.T) {
	for range 5 {
		start(t, bash("for i in 1 2 3; do (setsid true &); (sleep 0.01 &); done; sleep 0.05")).Wait()
	}
	children, _ := childrenOf(os.Getpid())
	for _, p := range children {
		if p.dead() {
			t.Errorf("zombie %+v", p)
		}
	}
}

func TestOutputOfAStrayThatEndsSoonIsKept(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := bash(`exec > >(cat); echo hello`)
	c.Stdout = &out
	if got := start(t, c).Wait(); got.Code != 0 || out.String() != "hello\n" {
		t.Errorf("exit = %+v, output %q", got, &out)
	}
}

func TestNestedMarksAdd(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := Command{Argv: []string{"/usr/bin/env"}, Env: []string{"AGENT_TREE=outer.1."}, Stdout: &out}
	start(t, c).Wait()
	if got := out.String(); strings.Count(got, "AGENT_TREE=") != 1 || !strings.Contains(got, "AGENT_TREE=outer.1.:"+family.id) {
		t.Errorf("got %q", got)
	}
}

func TestOutputHeldOpenOutsideTheTreeDoesNotHoldWait(t *testing.T) {
	t.Parallel()
	out := newSignalWriter("ready")
	c := bash("echo ready; sleep 300")
	c.Stdout = out
	p := start(t, c)
	out.wait(t)
	held, err := os.OpenFile(procPath(p.PID(), "fd/1"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	timed(t, 3*time.Second, func() bool { p.Stop(); return true })
}

func TestWaitingForInput(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	const spawn = `exec python3 -c 'import pty,sys; pty.spawn(sys.argv[1:])' `
	for name, tc := range map[string]struct {
		script string
		want   bool
	}{
		"read on a terminal":          {spawn + `bash -c 'echo ready; read x'`, true},
		"line editor on a terminal":   {spawn + `bash -c 'echo ready; read -e x'`, true},
		"input() on a terminal":       {spawn + `python3 -c 'print("ready"); input()'`, true},
		"password on a terminal":      {spawn + `python3 -c 'import getpass; print("ready", flush=True); getpass.getpass()'`, true},
		"cat on a terminal":           {spawn + `bash -c 'echo ready; cat'`, true},
		"sleep on a terminal":         {spawn + `bash -c 'echo ready; exec sleep 300'`, false},
		"a pipe whose writer is slow": {`echo ready; sleep 300 | cat`, false},
		"busy":                        {`echo ready; while :; do :; done`, false},
		"asleep":                      {`echo ready; sleep 300`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := newSignalWriter("ready")
			c := bash(tc.script)
			c.Stdout, c.Stderr = out, out
			p := start(t, c)
			defer p.Stop()
			out.wait(t)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			polls := 25
			if tc.want {
				polls = 500
			}
			got := false
			for range polls {
				<-tick.C
				if got = p.WaitingForInput(); got {
					break
				}
			}
			if got != tc.want {
				t.Errorf("waiting = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestKilledUsIsAlsoTheEndOfOurTrees runs this test binary as an agent of its
// own that starts trees, and kills it without warning.
func TestKilledUsIsAlsoTheEndOfOurTrees(t *testing.T) {
	agent := exec.Command(os.Args[0], "-test.run=^TestHelperAgent$")
	agent.Env = append(testEnv, "SANDBOX_HELPER_AGENT=1")
	agent.SysProcAttr = nil
	stdout, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	mark := ""
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), "mark "); ok {
			mark = after
			break
		}
	}
	if mark == "" || len(survivors(mark)) < 6 {
		t.Fatalf("the helper did not start its trees: mark %q, %q", mark, survivors(mark))
	}
	begun := time.Now()
	_ = agent.Process.Signal(unix.SIGKILL)
	_ = agent.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for left := survivors(mark); len(left) > 0; left = survivors(mark) {
		if <-tick.C; time.Since(begun) > 5*time.Second {
			t.Fatalf("left after 5 s: %q", left)
		}
	}
	t.Logf("all gone after %v", time.Since(begun))
}

// TestHelperAgent is not a test: see above.
func TestHelperAgent(t *testing.T) {
	if os.Getenv("SANDBOX_HELPER_AGENT") == "" {
		t.Skip("run by TestKilledUsIsAlsoTheEndOfOurTrees")
	}
	out := newSignalWriter("ready")
	c := bash(`trap "" TERM; sleep 300 & setsid sleep 300 & (setsid sleep 300 &); (setsid bash -c 'trap "" TERM; while :; do sleep 300; done' & ); echo ready; wait`)
	c.Stdout = out
	p, err := New().Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	out.wait(t)
	_, _ = io.WriteString(os.Stdout, "mark "+family.id+".\n")
	p.Wait()
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) b) (c) S 2 3 4 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 1 1"))
	f.Add([]byte("1 () S"))
	f.Add([]byte(") 1 ("))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parseStat(b); ok && p.pid <= 0 {
			t.Errorf("%q gave %+v", b, p)
		}
	})
}

func FuzzParseSyscall(f *testing.F) {
	f.Add("0 0x0 0x7ffd 0x1000 0x0 0x0 0x0 0x7ffd 0x7f")
	f.Add("running")
	f.Add("-1 0x7ffd 0x7f")
	f.Fuzz(func(t *testing.T, s string) {
		if nr, _, ok := parseSyscall(s); ok && nr < 0 {
			t.Errorf("%q gave %d", s, nr)
		}
	})
}

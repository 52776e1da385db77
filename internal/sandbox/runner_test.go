//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var testEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent"}

func bash(script string) Command {
	return Command{Argv: []string{"bash", "--noprofile", "--norc", "-c", script}, Env: testEnv}
}

func start(t testing.TB, c Command) Process {
	t.Helper()
	p, err := New().Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOutputAndExitCode(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	c := bash("echo out; echo err >&2; exit 3")
	c.Stdout, c.Stderr = &out, &errOut
	got := start(t, c).Wait()
	if got.Code != 3 || got.Signal != "" || got.Leftovers != 0 || got.Duration <= 0 {
		t.Errorf("exit = %+v", got)
	}
	if out.String() != "out\n" || errOut.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q", &out, &errOut)
	}
}

func TestOneWriterForBothKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := bash("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done")
	c.Stdout, c.Stderr = &out, &out
	start(t, c).Wait()
	if want := "o1 e1 o2 e2 o3 e3 o4 e4 o5 e5 o6 e6 o7 e7 o8 e8 o9 e9"; strings.Join(strings.Fields(out.String()), " ") != want {
		t.Errorf("got %q", &out)
	}
}

func TestSignalIsNamed(t *testing.T) {
	t.Parallel()
	got := start(t, bash("kill -SEGV $$")).Wait()
	if got.Code != -1 || got.Signal != "SIGSEGV" {
		t.Errorf("exit = %+v", got)
	}
}

func TestStdinIsEmptyAndThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := bash("read x; echo $?; (exec 3</dev/tty) 2>/dev/null || echo no tty; ps -o sid= -p $$ 2>/dev/null | grep -q . && [ $(ps -o sid= -p $$) = $$ ] && echo own session")
	c.Stdout = &out
	start(t, c).Wait()
	if !strings.HasPrefix(out.String(), "1\nno tty\n") {
		t.Errorf("got %q", &out)
	}
}

func TestEnvironmentIsTheOneGiven(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	start(t, Command{Argv: []string{"/usr/bin/env"}, Env: []string{"A=b"}, Stdout: &out}).Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if lines[0] != "A=b" || len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "AGENT_TREE=") {
		t.Errorf("got %q", lines)
	}
}

func TestProgramsAreNeverTakenFromTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/tool", []byte("#!/bin/sh\necho owned\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Command{
		"dot in PATH":          {Argv: []string{"tool"}, Env: []string{"PATH=.:/usr/bin"}},
		"empty entry in PATH":  {Argv: []string{"tool"}, Env: []string{"PATH=:/usr/bin:"}},
		"no PATH":              {Argv: []string{"tool"}},
		"relative path":        {Argv: []string{"./tool"}, Env: testEnv},
		"parent path":          {Argv: []string{"../" + dir[strings.LastIndex(dir, "/")+1:] + "/tool"}, Env: testEnv},
		"the last PATH counts": {Argv: []string{"tool"}, Env: []string{"PATH=" + dir, "PATH=/usr/bin"}},
	} {
		c.Dir = dir
		if p, err := New().Start(context.Background(), c); err == nil {
			p.Stop()
			t.Errorf("%s: started", name)
		}
	}
	p := start(t, Command{Argv: []string{"tool"}, Env: []string{"PATH=rel:" + dir}, Dir: "/"})
	if got := p.Wait(); got.Code != 0 {
		t.Errorf("absolute PATH entry: %+v", got)
	}
}

func TestWhatCannotBeStartedIsExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c    Command
		want string
	}{
		"nothing":             {Command{}, "empty"},
		"no such program":     {Command{Argv: []string{"nonesuch-program"}, Env: testEnv}, "not found in PATH"},
		"not executable":      {Command{Argv: []string{"/etc/passwd"}}, "not executable"},
		"directory is gone":   {Command{Argv: []string{"/bin/sh"}, Dir: filepath.Join(t.TempDir(), "gone")}, "working directory"},
		"directory is a file": {Command{Argv: []string{"/bin/sh"}, Dir: "/etc/passwd"}, "not a directory"},
		"unknown profile":     {Command{Argv: []string{"/bin/sh"}, Profile: "jail"}, "not supported"},
	} {
		_, err := New().Start(context.Background(), tc.c)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New().Start(ctx, bash("true")); err == nil {
		t.Error("started with a ctx that has ended")
	}
}

func TestEndOfContextStopsTheTree(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	out := newSignalWriter("ready")
	c := bash("sleep 300 & echo ready; wait")
	c.Stdout = out
	p, err := New().Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	out.wait(t)
	cancel()
	if got := timed(t, 2*time.Second, p.Wait); got.Signal != "SIGTERM" {
		t.Errorf("exit = %+v", got)
	}
}

func TestAWriterThatFailsDoesNotHoldTheCommandUp(t *testing.T) {
	t.Parallel()
	c := bash("head -c 1000000 /dev/zero; echo done >&2")
	var errOut bytes.Buffer
	c.Stdout, c.Stderr = failingWriter{}, &errOut
	if got := start(t, c).Wait(); got.Code != 0 || errOut.String() != "done\n" {
		t.Errorf("exit = %+v, stderr %q", got, &errOut)
	}
}

func TestStopAndWaitMayBeCalledAgainAndTogether(t *testing.T) {
	t.Parallel()
	p := start(t, bash("sleep 300"))
	done := make(chan Exit, 4)
	for range 2 {
		go func() { p.Stop(); done <- p.Wait() }()
		go func() { done <- p.Wait() }()
	}
	for range 4 {
		if got := <-done; got.Signal != "SIGTERM" {
			t.Errorf("exit = %+v", got)
		}
	}
	p.Stop()
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// timed calls f, which must return within d.
func timed[T any](t testing.TB, d time.Duration, f func() T) T {
	t.Helper()
	begun := time.Now()
	got := f()
	if took := time.Since(begun); took > d {
		t.Errorf("took %v, want at most %v", took, d)
	}
	return got
}

// signalWriter keeps what it is given and tells when a word has come.
type signalWriter struct {
	word string
	buf  bytes.Buffer
	seen chan struct{}
	told bool
}

func newSignalWriter(word string) *signalWriter {
	return &signalWriter{word: word, seen: make(chan struct{})}
}

func (w *signalWriter) Write(b []byte) (int, error) {
	w.buf.Write(b)
	if !w.told && strings.Contains(w.buf.String(), w.word) {
		w.told = true
		close(w.seen)
	}
	return len(b), nil
}

func (w *signalWriter) wait(t testing.TB) {
	t.Helper()
	select {
	case <-w.seen:
	case <-time.After(20 * time.Second):
		t.Fatalf("%q never came", w.word)
	}
}

func BenchmarkTrue(b *testing.B) {
	r := New()
	for b.Loop() {
		p, err := r.Start(context.Background(), bash("true"))
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	}
}

// BenchmarkBareTrue is the floor of BenchmarkTrue.
func BenchmarkBareTrue(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for b.Loop() {
		p, err := os.StartProcess("/usr/bin/bash", []string{"bash", "--noprofile", "--norc", "-c", "true"},
			&os.ProcAttr{Env: testEnv, Files: []*os.File{null, null, null}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestStdinIsWhatIsGiven(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := bash("cat; echo end")
	c.Stdin, c.Stdout = bytes.Repeat([]byte("0123456789abcdef"), 1<<14), &out // more than a pipe holds
	if got := start(t, c).Wait(); got.Code != 0 {
		t.Errorf("exit = %+v", got)
	}
	if want := string(c.Stdin) + "end\n"; out.String() != want {
		t.Errorf("%d bytes came back, want %d", out.Len(), len(want))
	}
}

func TestStdinFileIsWrittenWhileTheChildRuns(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var out bytes.Buffer
	c := bash("read a; read b; echo $b $a; cat")
	c.StdinFile, c.Stdout = r, &out
	p := start(t, c)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if _, err := w.WriteString(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil { // the child sees the end: no copy is left open
		t.Fatal(err)
	}
	if got := p.Wait(); got.Code != 0 || out.String() != "two one\nthree\n" {
		t.Errorf("exit %+v, output %q", got, &out)
	}
}

func TestStdinThatIsEmptyEnds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := bash("[ -p /dev/stdin ] && wc -c")
	c.Stdin, c.Stdout = []byte{}, &out
	start(t, c).Wait()
	if strings.TrimSpace(out.String()) != "0" {
		t.Errorf("got %q", &out)
	}
}

func TestStdinThatNobodyReadsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"exits at once":      "exit 4",
		"closes it":          "exec <&-; exit 4",
		"a stray has it":     "(trap '' TERM; exec >&- 2>&-; sleep 300) <&0 & exit 4",
		"one line is enough": "read -r x; exit 4",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := bash(script)
			c.Stdin = bytes.Repeat([]byte("line\n"), 1<<18)
			if got := timed(t, 5*time.Second, start(t, c).Wait); got.Code != 4 {
				t.Errorf("exit = %+v", got)
			}
		})
	}
}

//go:build unix

package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
)

// shellBench is a run_shell_command with all that belongs to it.
type shellBench struct {
	t     testing.TB
	dir   string // working directory
	out   string // OutputDir
	tasks *Tasks
	shell Tool
}

func newShellBench(t testing.TB, change func(*ShellConfig)) *shellBench {
	t.Helper()
	b := &shellBench{t: t, dir: t.TempDir(), out: filepath.Join(t.TempDir(), "out"), tasks: NewTasks()}
	roots, err := OpenRoots(RootsConfig{Dirs: []string{b.dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.tasks.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = roots.Close()
	})
	c := ShellConfig{
		Runner:    sandbox.New(),
		Roots:     roots,
		Tasks:     b.tasks,
		Env:       append(os.Environ(), "HOME="+t.TempDir()),
		OutputDir: b.out,
	}
	if change != nil {
		change(&c)
	}
	b.shell = NewShell(c)
	return b
}

// call runs a tool with the input given as key, value, key, value.
func (b *shellBench) call(tool Tool, pairs ...any) Result {
	b.t.Helper()
	return b.callContext(context.Background(), tool, nil, pairs...)
}

func (b *shellBench) callContext(ctx context.Context, tool Tool, progress func(Progress), pairs ...any) Result {
	b.t.Helper()
	in := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		in[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	return tool.Run(ctx, &Call{ID: "c1", Input: raw, Progress: progress})
}

func (b *shellBench) run(command string, pairs ...any) Result {
	b.t.Helper()
	return b.call(b.shell, append([]any{"command", command}, pairs...)...)
}

func shellText(r Result) string { return r.Blocks[0].(model.Text).Text }

func TestShellGivesOutputInOrderAndExitCode(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	for command, want := range map[string]struct {
		text string
		err  bool
	}{
		"echo a; echo b >&2; echo c":       {"a\nb\nc", false},
		"true":                             {"(no output)", false},
		"echo bad; exit 3":                 {"bad\n[exit code 3]", true},
		"kill -KILL $$":                    {"(no output)\n[killed by SIGKILL]", true},
		"nonesuch-command-x":               {"bash: line 1: nonesuch-command-x: command not found\n[exit code 127]", true},
		"pwd":                              {b.dir, false},
		`printf '\033[31mred\033[0m\r\n'`:  {"red", false},
		`printf '\377\376x'`:               {"\uFFFDx", false},
		`printf '10%%\r50%%\r100%%\ndone'`: {"100%\ndone", false},
		`printf 'N\bNA\bA'`:                {"NA", false},
	} {
		got := b.run(command)
		if text := strings.ReplaceAll(shellText(got), "/usr/bin/bash", "bash"); strings.ReplaceAll(text, "/bin/bash", "bash") != want.text || got.IsError != want.err {
			t.Errorf("%s gave %q (error %v), want %q (%v)", command, shellText(got), got.IsError, want.text, want.err)
		}
	}
}

func TestShellDisplayHasTheShapeHostsKnow(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	raw, err := json.Marshal(b.run("echo hi; exit 2").Display)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "durationMs")
	if fmt.Sprint(got) != "map[exitCode:2 interrupted:false isImage:false stderr: stdout:hi\n]" {
		t.Errorf("got %v", got)
	}
}

func TestShellSpecIsConstantAndFilledIn(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	for _, tool := range []Tool{b.shell, NewTaskOutput(b.tasks), NewTaskStop(b.tasks)} {
		s := tool.Spec()
		if !json.Valid(s.Schema) || strings.Contains(s.Description, "{{") || len(s.Description) < 50 || len(s.Description) > 2500 {
			t.Errorf("%s: schema %s, description of %d: %s", s.Name, s.Schema, len(s.Description), s.Description)
		}
	}
	if s := b.shell.Spec(); s.Name != "run_shell_command" || s.Class != policy.ClassExec || s.ReadOnly {
		t.Errorf("got %+v", s)
	}
}

func TestShellRefusesInputThatMakesNoSense(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for want, pairs := range map[string][]any{
		"command is missing": {},
		"command is empty":   {"command", " \n"},
		"NUL":                {"command", "echo \x00"},
		"timeout must be":    {"command", "true", "timeout", -1},
		"whole number":       {"command", "true", "timeout", "soon"},
		"outside of":         {"command", "true", "directory", outside},
		"which is outside":   {"command", "true", "directory", "link"},
		"working directory":  {"command", "true", "directory", "nonesuch"},
	} {
		if got := b.call(b.shell, pairs...); !got.IsError || !strings.Contains(shellText(got), want) {
			t.Errorf("%v gave %q, want %q", pairs, shellText(got), want)
		}
	}
}

func TestShellUnderstandsOtherNamesOfItsFields(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := b.run("pwd", "dir_path", "sub", "timeout", "5000", "dangerouslyDisableSandbox", true); shellText(got) != b.dir+"/sub" {
		t.Errorf("got %q", shellText(got))
	}
	got := b.run("sleep 300", "is_background", true)
	if d := got.Display.(*ShellResult); d.BackgroundTaskID == "" {
		t.Errorf("got %q", shellText(got))
	}
}

// TestShellKeepsCredentialsAndStartUpCodeFromCommands also proves T-08: no
// program comes from the working directory.
func TestShellKeepsCredentialsAndStartUpCodeFromCommands(t *testing.T) {
	t.Parallel()
	evil := filepath.Join(t.TempDir(), "evil.sh")
	if err := os.WriteFile(evil, []byte("echo EVIL\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newShellBench(t, func(c *ShellConfig) {
		c.Env = []string{
			"PATH=.:" + os.Getenv("PATH") + "::bin", "HOME=/h", "LANG=C.UTF-8", "HTTPS_PROXY=http://p", "SSH_AUTH_SOCK=/s",
			"GEMINI_API_KEY=leak", "GOOGLE_API_KEY=leak", "OPENAI_API_KEY=leak", "OPENAI_BASE_URL=leak", "ANTHROPIC_AUTH_TOKEN=leak",
			"ANTHROPIC_BASE_URL=leak", "DASHSCOPE_API_KEY=leak", "GITHUB_TOKEN=leak", "AWS_SECRET_ACCESS_KEY=leak", "aws_session_token=leak",
			"DB_PASSWORD=leak", "GOOGLE_APPLICATION_CREDENTIALS=leak", "NPM_TOKEN=kept",
			"BASH_ENV=" + evil, "ENV=" + evil, "PROMPT_COMMAND=echo EVIL", "SHELLOPTS=xtrace", "BASH_FUNC_ls%%=() { echo EVIL; }",
			"EDITOR=vim", "PAGER=less", "GIT_SEQUENCE_EDITOR=vim",
		}
		c.KeepEnv = []string{"NPM_TOKEN"}
	})
	if err := os.WriteFile(filepath.Join(b.dir, "mytool"), []byte("#!/bin/sh\necho EVIL\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := shellText(b.run("env; ls; mytool"))
	for _, bad := range []string{"leak", "EVIL", "vim", "less", "=.:", "::"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in\n%s", bad, got)
		}
	}
	for _, good := range []string{"NPM_TOKEN=kept", "HOME=/h", "HTTPS_PROXY=http://p", "SSH_AUTH_SOCK=/s", "PAGER=cat", "TERM=dumb", "AGENT=1", "PWD=" + b.dir} {
		if !strings.Contains(got, good+"\n") {
			t.Errorf("%q is not in\n%s", good, got)
		}
	}
}

func TestShellTimeoutTakesTheTreeAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	begun := time.Now()
	got := b.run(`echo before; (setsid bash -c 'trap "" TERM; while :; do sleep 81001; done' &); sleep 81001`, "timeout", 300)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	text := shellText(got)
	if !got.IsError || !strings.HasPrefix(text, "before\n[timed out after 300ms") || !strings.Contains(text, "run_in_background") {
		t.Errorf("got %q", text)
	}
	if d := got.Display.(*ShellResult); !d.TimedOut || !d.Interrupted || d.Stdout != "before\n" {
		t.Errorf("display %+v", d)
	}
	expectGone(t, "81001")
}

func TestShellInterruptKeepsTheOutputAndTakesTheTree(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	got := b.callContext(ctx, b.shell, func(p Progress) {
		if strings.Contains(p.Text, "ready") {
			cancel()
		}
	}, "command", `(setsid bash -c 'trap "" TERM; while :; do sleep 81002; done' &); sleep 81002 & echo ready; wait`)
	if text := shellText(got); !got.IsError || !strings.HasPrefix(text, "ready\n[interrupted") {
		t.Errorf("got %q", text)
	}
	expectGone(t, "81002")
	if got := b.run("echo next"); shellText(got) != "next" {
		t.Errorf("the next command gave %q", shellText(got))
	}
}

func TestShellSaysThatLeftoversWereStopped(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	got := b.run("sleep 81003 >/dev/null 2>&1 & echo started")
	if text := shellText(got); got.IsError || !strings.HasPrefix(text, "started\n[1 process(es)") {
		t.Errorf("got %q", text)
	}
	expectGone(t, "81003")
}

func TestShellEndlessOutputIsCapped(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	got := b.run("yes 0123456789abcdef0123456789abcdef", "timeout", 1000)
	text := shellText(got)
	if len(text) > 31_500 || !strings.Contains(text, "left out here") || !strings.Contains(text, "timed out") {
		t.Errorf("%d bytes: %.100q ... %q", len(text), text, text[max(0, len(text)-400):])
	}
	if used := sizeOfDir(t, b.out); used > maxOutputFile {
		t.Errorf("%d bytes on disk", used)
	}
}

func TestShellKeepsTheWholeOfCutOutputInAPrivateFile(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	got := b.run("seq 20000")
	d := got.Display.(*ShellResult)
	want := &bytes.Buffer{}
	for i := range 20000 {
		fmt.Fprintln(want, i+1)
	}
	whole, err := os.ReadFile(d.OutputFile)
	if err != nil || !bytes.Equal(whole, want.Bytes()) {
		t.Errorf("the file has %d bytes, want %d: %v", len(whole), want.Len(), err)
	}
	if info, err := os.Stat(d.OutputFile); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(d.OutputFile) != b.out {
		t.Errorf("%v %v", info, err)
	}
	text := shellText(got)
	if !strings.HasPrefix(text, "1\n2\n") || !strings.HasSuffix(text, "\n20000") || !strings.Contains(text, d.OutputFile) || !strings.Contains(text, "20000 lines") || len(text) > 30_500 {
		t.Errorf("%d bytes: %.50q ... %q", len(text), text, text[len(text)-50:])
	}
	b.run("seq 10")
	if files, _ := os.ReadDir(b.out); len(files) != 1 {
		t.Errorf("short output made a file: %v", files)
	}
}

func TestShellWithoutAPlaceForFilesStillCuts(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"none": "", "impossible": "/proc/nonesuch"} {
		b := newShellBench(t, func(c *ShellConfig) { c.OutputDir = dir })
		got := b.run("seq 20000")
		if text := shellText(got); got.IsError || !strings.Contains(text, "could not be kept") {
			t.Errorf("%s: %.80q", name, text)
		}
	}
}

func TestShellDescribesBinaryOutput(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	got := shellText(b.run(`printf '\211PNG\r\n\032\n\000\000\000'; head -c 5000 /dev/zero`))
	if !strings.HasPrefix(got, "[binary output, 5011 bytes, image/png") {
		t.Errorf("got %q", got)
	}
}

func TestShellReportsProgressAtMostFourTimesASecond(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	var reports []Progress
	begun := time.Now()
	b.callContext(context.Background(), b.shell, func(p Progress) { reports = append(reports, p) }, "command", "yes line", "timeout", 900)
	if most := int(time.Since(begun)/reportEvery) + 1; len(reports) == 0 || len(reports) > most {
		t.Errorf("%d reports", len(reports))
	}
	if last := reports[len(reports)-1]; last.Bytes == 0 || last.Lines == 0 || !strings.HasPrefix("line", last.Text) {
		t.Errorf("last %+v", last)
	}
}

func TestShellCommandsRunSideBySide(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			want := fmt.Sprintf("%d %d", i, i)
			if got := b.run(fmt.Sprintf("(sleep 0.1; echo -n '%d ') & wait; sh -c 'echo %d'", i, i)); shellText(got) != want {
				t.Errorf("got %q, want %q", shellText(got), want)
			}
		})
	}
	wg.Wait()
}

func TestShellInADirectoryThatIsGone(t *testing.T) {
	t.Parallel()
	b := newShellBench(t, nil)
	b.run(`rm -rf "$PWD"`)
	if got := b.run("echo hi"); !got.IsError || !strings.Contains(shellText(got), "working directory") {
		t.Errorf("got %q", shellText(got))
	}
}

func TestOutputStoreRemovesTheOldestAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newOutputStore(dir)
	s.max = maxOutputFile + 250
	base := time.Now().Add(-time.Hour)
	for i, name := range []string{"output-a.log", "output-b.log", "output-c.log", "notes.txt"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, base, base.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	f, path, err := s.create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	if fmt.Sprint(names) != "[notes.txt output-b.log output-c.log]" {
		t.Errorf("left %v", names)
	}
	if _, _, err := s.create(); err == nil {
		t.Error("a second open file would break the cap")
	}
	s.release(path)
	g, _, err := s.create()
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}

func TestCaptureFileIsCapped(t *testing.T) {
	t.Parallel()
	c := newCapture(newOutputStore(t.TempDir()), 1000, nil)
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for range 70 {
		_, _ = c.Write(chunk)
	}
	c.close()
	text, path := c.text()
	info, err := os.Stat(path)
	if err != nil || info.Size() != maxOutputFile {
		t.Errorf("%v %v", info, err)
	}
	if !strings.Contains(text, "the first 64 MB of 70 MB") || len(text) > 1300 {
		t.Errorf("%d: %q", len(text), text)
	}
}

func FuzzCapture(f *testing.F) {
	f.Add([]byte("hello\nworld\n"), uint8(8), uint8(3))
	f.Add([]byte("\xf0\x9f\x98\x80 \x1b[31m \x1b]0;t\x07 \r\b\x00"), uint8(10), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, max, step uint8) {
		c := newCapture(newOutputStore(""), int(max)+2, nil)
		c.fresh = &headTail{max: 1 << 20}
		var drained strings.Builder
		for rest := b; len(rest) > 0; {
			n := min(int(step)+1, len(rest))
			_, _ = c.Write(rest[:n])
			rest = rest[n:]
			drained.WriteString(c.drain(true))
		}
		drained.WriteString(c.drain(false))
		text, _ := c.text()
		if strings.ToValidUTF8(text, "") != text || strings.ContainsAny(text, "\x1b\x00\r\b") {
			t.Errorf("%q gave %q", b, text)
		}
		if len(b) <= int(max)+1 && bytes.IndexByte(b, 0) < 0 && text != cleanOutput(b) {
			t.Errorf("%q gave %q, though it fits", b, text)
		}
		if plain(b) && drained.String() != string(b) {
			t.Errorf("drained %q of %q", drained.String(), b)
		}
	})
}

// plain reports whether b is text that cleaning leaves alone.
func plain(b []byte) bool {
	return bytes.Equal([]byte(cleanOutput(b)), b)
}

func FuzzCleanOutput(f *testing.F) {
	for _, s := range []string{"a\x1b[1;31mb\x1b[0m", "\x1b]8;;http://x\x1b\\link", "\x1b(B\x1b[?25l", "x\bx", "50%\r100%\n", "\x1b[", "\xff\x1b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		once := cleanOutput(b)
		if again := cleanOutput([]byte(once)); again != once {
			t.Errorf("%q gave %q, then %q", b, once, again)
		}
	})
}

func BenchmarkShellTrue(b *testing.B) {
	s := newShellBench(b, nil)
	call := &Call{Input: json.RawMessage(`{"command":"true"}`)}
	for b.Loop() {
		if got := s.shell.Run(context.Background(), call); got.IsError {
			b.Fatal(shellText(got))
		}
	}
}

// expectGone fails the test if a process with that word in its command line or
// environment lives.
func expectGone(t testing.TB, word string) {
	t.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		cmd, _ := os.ReadFile(proc + "/cmdline")
		env, _ := os.ReadFile(proc + "/environ")
		if bytes.Contains(cmd, []byte(word)) || bytes.Contains(env, []byte(word)) {
			t.Errorf("left: %s %q", proc, cmd)
		}
	}
}

func sizeOfDir(t testing.TB, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// TestShellLeavesNoGoroutine is not parallel, so that none but its own are there.
func TestShellLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := newShellBench(t, nil)
	b.run("echo hi; (setsid sleep 81009 &)")
	b.run("sleep 81009", "timeout", 50)
	b.run("sleep 81009", "run_in_background", true)
	if err := b.tasks.Close(context.Background()); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
	expectGone(t, "81009")
}

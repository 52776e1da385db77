package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// limit is how long one run may take.
const limit = 2 * time.Minute

// bench is what the measures share: the programs, a throw-away home and the
// model server.
type bench struct {
	agent  string
	quick  bool
	root   string // everything below is removed at the end
	dir    string // working folder
	env    []string
	server *testkit.Proc
	url    string
	log    requestLog
	closed sync.Once
}

// provider is an API format that the model server speaks.
type provider struct {
	name, model string
	env         func(url string) []string
}

var providers = []provider{
	{"openai", "openai/gpt-test", func(url string) []string {
		return []string{"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + url + "/v1"}
	}},
	{"anthropic", "anthropic/claude-test", func(url string) []string {
		return []string{"ANTHROPIC_API_KEY=test-key", "ANTHROPIC_BASE_URL=" + url}
	}},
	{"gemini", "gemini/gemini-test", func(url string) []string {
		return []string{"GEMINI_API_KEY=test-key", "GOOGLE_GEMINI_BASE_URL=" + url}
	}},
}

const (
	readCalls  = 100
	shellCalls = 20
)

// script is what the model server plays. The prompt says what is wanted.
func script() string {
	steps := []string{
		`{"use": "always", "when": {"user": "hi"}, "emit": [{"text": "Hello, what can I do for you?", "by": "word"}]}`,
		callStep(`"user": "read"`, "read_file", `{"path": "f{{turn}}.txt"}`),
		fmt.Sprintf(`{"use": "always", "when": {"tool": "read_file", "turn": %d}, "emit": [{"text": "Done."}]}`, readCalls+1),
		callStep(`"tool": "read_file"`, "read_file", `{"path": "f{{turn}}.txt"}`),
		callStep(`"user": "shell"`, "run_shell_command", `{"command": "true {{turn}}"}`),
		fmt.Sprintf(`{"use": "always", "when": {"tool": "run_shell_command", "turn": %d}, "emit": [{"text": "Done."}]}`, shellCalls+1),
		callStep(`"tool": "run_shell_command"`, "run_shell_command", `{"command": "true {{turn}}"}`),
	}
	for _, n := range deltaCounts {
		steps = append(steps, fmt.Sprintf(`{"use": "always", "when": {"user": "stream %d"}, "emit": [{"text": "word ", "repeat": %d}]}`, n, n))
	}
	return strings.Join(steps, "\n")
}

func callStep(when, tool, input string) string {
	return fmt.Sprintf(`{"use": "always", "when": {%s}, "emit": [{"tool": %q, "input": %s}]}`, when, tool, input)
}

func newBench(agent string, quick bool) (_ *bench, err error) {
	root, err := os.MkdirTemp("", "agent-bench")
	if err != nil {
		return nil, err
	}
	b := &bench{agent: agent, quick: quick, root: root, dir: filepath.Join(root, "work"), log: requestLog{path: filepath.Join(root, "requests.jsonl")}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	home := filepath.Join(root, "home")
	b.env = []string{"HOME=" + home, "AGENT_HOME=" + filepath.Join(home, "agent"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + root, "LANG=C.UTF-8"}
	for _, d := range []string{home, b.dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{b.fill, b.build, b.serve} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// fill makes the files that are read.
func (b *bench) fill() error {
	for i := range readCalls + 1 {
		text := fmt.Sprintf("This is file %d.\nIt has three lines.\nThis is the last one.\n", i)
		if err := os.WriteFile(filepath.Join(b.dir, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build makes the floor programs, with the flags of a release.
func (b *bench) build() error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.root+string(filepath.Separator), "./bench/floor/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the floor programs (run this in the folder of the module): %w\n%s", err, out)
	}
	return nil
}

func (b *bench) floor(name string) string { return filepath.Join(b.root, name) }

// serve starts the model server. Deltas leave in batches, so that the server
// is not what a stream waits for.
func (b *bench) serve() error {
	file := filepath.Join(b.root, "script.jsonc")
	if err := os.WriteFile(file, []byte(script()), 0o644); err != nil {
		return err
	}
	var err error
	b.server, err = testkit.Start(testkit.Spec{
		Path: b.agent, Dir: b.root, Env: b.env, HoldStdin: true,
		Args: []string{"model", "serve", "--script", file, "--log", b.log.path, "--flush-every", "64"},
	})
	if err != nil {
		return err
	}
	line, _, err := b.server.Await(0, 20*time.Second, func(l testkit.Line) bool { return strings.Contains(string(l.Text), "http://") })
	if err != nil {
		return fmt.Errorf("the model server: %w", err)
	}
	_, b.url, _ = strings.Cut(string(line.Text), " at ")
	return nil
}

// close ends the server and removes the files.
func (b *bench) close() {
	b.closed.Do(func() {
		if b.server != nil {
			b.server.Signal(syscall.SIGTERM)
			if _, err := b.server.Wait(10 * time.Second); err != nil {
				fmt.Fprintf(os.Stderr, "bench: the model server: %v\n", err)
			}
		}
		if err := os.RemoveAll(b.root); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		}
	})
}

// runs is n, or fewer for a quick look.
func (b *bench) runs(n int) int {
	if b.quick {
		return max(n/5, 2)
	}
	return n
}

// prompt is one headless run of the program.
func (b *bench) prompt(p provider, text string, flags ...string) testkit.Spec {
	args := append([]string{"-p", text, "--model", p.model, "--output-format", "stream-json", "--approval-mode", "yolo"}, flags...)
	return b.spec(b.agent, slices.Concat(b.env, p.env(b.url)), args...)
}

func (b *bench) spec(path string, env []string, args ...string) testkit.Spec {
	return testkit.Spec{Path: path, Args: args, Dir: b.dir, Env: env}
}

// sample is one finished run.
type sample struct {
	began time.Time
	proc  *testkit.Proc
	testkit.Exit
}

// finish runs s to its end, which must be a good one.
func finish(s testkit.Spec) (sample, error) {
	out := sample{began: time.Now()}
	var err error
	if out.proc, err = testkit.Start(s); err != nil {
		return out, err
	}
	if out.Exit, err = out.proc.Wait(limit); err != nil {
		return out, err
	}
	return out, out.check(s)
}

func (s sample) check(spec testkit.Spec) error {
	if s.Code == 0 {
		return nil
	}
	return fmt.Errorf("%s %s ended with %d: %s%.500s", filepath.Base(spec.Path), strings.Join(spec.Args, " "), s.Code, s.proc.Stderr(), s.proc.Output())
}

// pair runs the program and its floor n times in turns, after a run of each
// that does not count. see gets each pair.
func pair(n int, ours, floor testkit.Spec, see func(ours, floor sample) error) error {
	for i := range n + 1 {
		a, errA := finish(ours)
		f, errF := finish(floor)
		if err := errors.Join(errA, errF); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if err := see(a, f); err != nil {
			return err
		}
	}
	return nil
}

// Package integration tests the program from outside: it is spawned as its
// users spawn it, against a scripted model that is served by the program
// itself (`agent model serve`) over real TCP in each vendor's format.
package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/testkit"
)

// The test binary is an MCP server too: INTEGRATION_MCP says of which kind.
func TestMain(m *testing.M) {
	if kind := os.Getenv("INTEGRATION_MCP"); kind != "" {
		serveMCP(kind)
		return
	}
	if os.Getenv(mcpServerEnv) != "" {
		serveStdio(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		program.Remove()
		os.Exit(code)
	}))
}

// program is the program under test.
var program = testkit.NewProgram(os.Getenv("AGENT_BINARY"))

func agentPath(t testing.TB) string {
	t.Helper()
	path, err := program.Path()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// providers are the API formats that the model server speaks, with what makes
// the program use them.
var providers = []provider{
	{"gemini", "gemini/gemini-test", func(url string) []string {
		return []string{"GEMINI_API_KEY=test-key", "GOOGLE_GEMINI_BASE_URL=" + url}
	}},
	{"openai", "openai/gpt-test", func(url string) []string {
		return []string{"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + url + "/v1"}
	}},
	{"anthropic", "anthropic/claude-test", func(url string) []string {
		return []string{"ANTHROPIC_API_KEY=test-key", "ANTHROPIC_BASE_URL=" + url}
	}},
}

type provider struct {
	name  string
	model string
	env   func(url string) []string
}

// place is a throw-away home and working folder.
type place struct {
	t    testing.TB
	home string
	dir  string
	env  []string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	root := t.TempDir()
	p := &place{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "work")}
	for _, d := range []string{p.home, p.dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{
		"HOME=" + p.home, "AGENT_HOME=" + filepath.Join(p.home, "agent"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + root,
		"GOCACHE=" + os.Getenv("GOCACHE"), "LANG=C.UTF-8",
	}
	return p
}

// write makes a file in the working folder and returns its path.
func (p *place) write(name, content string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// script makes a model script beside the working folder.
func (p *place) script(steps string) string {
	p.t.Helper()
	path := filepath.Join(filepath.Dir(p.dir), "script.jsonc")
	if err := os.WriteFile(path, []byte(steps), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// serve plays a script over HTTP until the test ends and returns the address
// and the file with a line per request.
func (p *place) serve(steps string, flags ...string) (url, log string) {
	p.t.Helper()
	log = filepath.Join(filepath.Dir(p.dir), "requests.jsonl")
	args := append([]string{"model", "serve", "--script", p.script(steps), "--log", log}, flags...)
	proc, err := testkit.Start(testkit.Spec{Path: agentPath(p.t), Args: args, Dir: p.dir, Env: p.env, HoldStdin: true})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		proc.Signal(syscall.SIGTERM)
		if _, err := proc.Wait(10 * time.Second); err != nil {
			p.t.Errorf("model server: %v", err)
		}
	})
	url, err = servedAt(proc)
	if err != nil {
		p.t.Fatal(err)
	}
	return url, log
}

// servedAt waits for the address that a model server prints.
func servedAt(proc *testkit.Proc) (string, error) {
	line, _, err := proc.Await(0, 20*time.Second, func(l testkit.Line) bool { return strings.Contains(string(l.Text), "http://") })
	if err != nil {
		return "", fmt.Errorf("model server: %w\n%s", err, proc.Output())
	}
	_, rest, _ := strings.Cut(string(line.Text), "http://")
	return "http://" + strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '/' || r == '"' })[0], nil
}

// start spawns the program in the place.
func (p *place) start(s testkit.Spec) *testkit.Proc {
	p.t.Helper()
	s.Path = agentPath(p.t)
	if s.Dir == "" {
		s.Dir = p.dir
	}
	s.Env = append(append([]string(nil), p.env...), s.Env...)
	proc, err := testkit.Start(s)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { proc.Signal(syscall.SIGKILL) }) // for a test that failed before its end
	return proc
}

// run spawns the program and waits for its end, at most a minute.
func (p *place) run(s testkit.Spec) (*testkit.Proc, testkit.Exit) {
	p.t.Helper()
	proc := p.start(s)
	exit, err := proc.Wait(time.Minute)
	if err != nil {
		p.t.Fatalf("%v: %v\nstdout: %.2000s", s.Args, err, proc.Output())
	}
	return proc, exit
}

// frames are the frames of a stream-json run, each checked, in a checked order.
func frames(t testing.TB, proc *testkit.Proc) []testkit.Frame {
	t.Helper()
	list, err := proc.Frames()
	if err != nil {
		t.Fatalf("%v\nstderr: %s", err, proc.Stderr())
	}
	if err := testkit.CheckTurns(list); err != nil {
		t.Fatalf("%v\nstdout: %.3000s", err, proc.Output())
	}
	return list
}

// results are the result frames among list.
func results(list []testkit.Frame) []testkit.Frame {
	var out []testkit.Frame
	for _, f := range list {
		if f.Kind() == "result" {
			out = append(out, f)
		}
	}
	return out
}

// userLine is a stream-json line with a prompt.
func userLine(text string) string {
	raw, _ := json.Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
	return string(raw)
}

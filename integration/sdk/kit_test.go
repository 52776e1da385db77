package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// kit is an installed SDK with its driver.
type kit struct {
	name    string
	folder  string // below packages/
	script  string // below drivers/
	dialect dialect
	install func(ctx context.Context, dir string) error
	runtime func(dir string) string // the interpreter

	ready   sync.Once
	dir     string
	err     error // of the installation
	copying sync.Once
	scripts string // the folder with the copied drivers
	copyErr error
	sharing sync.Once
	driver  *driver
	runErr  error
}

// dialect is what differs between the families of SDKs: how the model is
// reached, and the names of tools in model scripts.
type dialect struct {
	names map[string]string // by what stands for them in model scripts
	env   func(url string) []string
}

var (
	claude = dialect{
		map[string]string{"@bash": "Bash", "@write": "Write", "@read": "Read", "@agent": "Agent"},
		func(url string) []string { return []string{"ANTHROPIC_API_KEY=test-key", "ANTHROPIC_BASE_URL=" + url} },
	}
	qwen = dialect{
		map[string]string{"@bash": "run_shell_command", "@write": "write_file", "@read": "read_file", "@agent": "agent"},
		func(url string) []string {
			return []string{"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + url + "/v1"}
		},
	}
)

// driver is a process that plays scenarios side by side.
type driver struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr tail
	done   chan struct{} // closed at the end of stdout

	mu    sync.Mutex // guards the rest
	grown sync.Cond
	seen  map[string][]testkit.Frame // by id of the run
	ended bool
}

// shared is the driver that most tests share.
func (k *kit) shared() (*driver, error) {
	k.sharing.Do(func() { k.driver, k.runErr = k.start() })
	return k.driver, k.runErr
}

// start spawns a driver.
func (k *kit) start() (*driver, error) {
	agent, err := program.Path()
	if err != nil {
		return nil, err
	}
	k.copying.Do(func() { k.copyErr = k.copyDrivers() })
	if k.copyErr != nil {
		return nil, k.copyErr
	}
	server, err := filepath.Abs(filepath.Join("drivers", "mcp_server.py"))
	if err != nil {
		return nil, err
	}
	d := &driver{cmd: exec.Command(k.runtime(k.dir), filepath.Join(k.scripts, k.script)), done: make(chan struct{}), seen: map[string][]testkit.Frame{}}
	d.grown.L = &d.mu
	d.cmd.Stderr = &d.stderr
	d.cmd.Env = append(clean(os.Environ()), "AGENT="+agent, "MCP_SERVER="+server)
	d.cmd.WaitDelay = 5 * time.Second
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.read(stdout) // ends with the process
	return d, nil
}

// copyDrivers copies the scripts to where the packages are, since Node resolves
// what they import beside them. The folder is this run's own: others may use
// the packages at the same time.
func (k *kit) copyDrivers() (err error) {
	if k.scripts, err = os.MkdirTemp(k.dir, "drivers-"); err != nil {
		return err
	}
	files, err := filepath.Glob("drivers/*")
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(k.scripts, filepath.Base(f)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// clean is the environment without what would reach a real model, or tell the
// program under test that it runs inside of another one.
func clean(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool {
		for _, prefix := range []string{"ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "CLAUDE", "QWEN_", "AGENT_"} {
			if strings.HasPrefix(e, prefix) {
				return true
			}
		}
		return false
	})
}

func (d *driver) read(stdout io.Reader) {
	defer close(d.done)
	lines := bufio.NewReaderSize(stdout, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		var f testkit.Frame
		known := json.Unmarshal(line, &f) == nil
		d.mu.Lock()
		if known {
			id := f.String("id")
			d.seen[id] = append(d.seen[id], f)
		}
		d.ended = err != nil
		d.grown.Broadcast()
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends stdin and waits for the driver's end, which must be soon.
func (d *driver) close() {
	_ = d.stdin.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	<-d.done
	_ = d.cmd.Wait()
}

// close ends the driver that all tests share, and removes what was copied.
func (k *kit) close() {
	if k.driver != nil {
		k.driver.close()
	}
	if k.scripts != "" {
		_ = os.RemoveAll(k.scripts)
	}
}

// tail keeps what was written last.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(b), nil
}

// said is the end of the driver's stderr, and of the programs' that it started.
func (d *driver) said() []byte {
	d.stderr.mu.Lock()
	defer d.stderr.mu.Unlock()
	return bytes.Clone(d.stderr.text)
}

var errDriverEnded = errors.New("the driver ended")

// await waits until the run with this id says ev, and returns what it said so
// far.
func (d *driver) await(id, ev string, limit time.Duration) ([]testkit.Frame, error) {
	late := false
	timer := time.AfterFunc(limit, func() {
		d.mu.Lock()
		late = true
		d.grown.Broadcast()
		d.mu.Unlock()
	})
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		seen := d.seen[id]
		switch {
		case slices.ContainsFunc(seen, func(f testkit.Frame) bool { return f.String("ev") == ev }):
			return slices.Clone(seen), nil
		case d.ended:
			return slices.Clone(seen), errDriverEnded
		case late:
			return slices.Clone(seen), fmt.Errorf("no %q within %s", ev, limit)
		}
		d.grown.Wait()
	}
}

// ask makes the driver play a scenario.
func (d *driver) ask(id, scenario, cwd string, env map[string]string) error {
	line, err := json.Marshal(map[string]any{"id": id, "scenario": scenario, "cwd": cwd, "env": env})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err = d.stdin.Write(append(line, '\n'))
	return err
}

// variables makes a map of an environment.
func variables(env []string) map[string]string {
	return maps.Collect(func(yield func(string, string) bool) {
		for _, e := range env {
			if name, value, _ := strings.Cut(e, "="); !yield(name, value) {
				return
			}
		}
	})
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/tools"
)

const (
	// quitTime is granted to a server to end by itself once its stdin is closed.
	quitTime = 500 * time.Millisecond
	// termTime is granted to it after SIGTERM.
	termTime = 500 * time.Millisecond
)

// ready is an SDK transport of a connection that is there already.
type ready struct{ sdk.Connection }

// Connect implements the SDK's Transport.
func (r ready) Connect(context.Context) (sdk.Connection, error) { return r.Connection, nil }

// dialStdio starts the program of c. Its end, however it comes, ends the
// connection with the exit code and the last of its stderr.
func (m *Manager) dialStdio(c *Config) (*wire, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	log := m.log.With("server", c.Name)
	s, stderr := newStream(w, log), &tail{log: log}
	s.patience = time.Second
	stdout := &lines{s: s}
	p, err := m.o.Sandbox.Start(context.Background(), sandbox.Command{
		Argv: append([]string{m.program(c)}, c.Args...), Dir: m.dir(c), Env: childEnv(m.o.Env, c.Env),
		StdinFile: r, Stdout: stdout, Stderr: stderr, Grace: termTime,
	})
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	gone := make(chan struct{})
	go func() { // ends when the program has; shut waits for it
		defer close(gone)
		exit := p.Wait()
		stdout.flush()
		s.end(exitError(exit, stderr.text()))
	}()
	shut := func() {
		s.end(nil)
		timer := time.NewTimer(quitTime)
		defer timer.Stop()
		select {
		case <-gone:
		case <-timer.C:
			p.Stop()
			<-gone
		}
	}
	return &wire{transport: ready{s}, shut: shut, cause: func() error { return s.causeIfEnded() }}, nil
}

// causeIfEnded returns why the connection ended; nil while it lasts, or when we
// ended it.
func (s *stream) causeIfEnded() error {
	select {
	case <-s.ended:
		return s.cause
	default:
		return nil
	}
}

// exitError says how a server's program ended.
func exitError(e sandbox.Exit, stderr string) error {
	how := fmt.Sprintf("its program ended with code %d", e.Code)
	if e.Signal != "" {
		how = "its program was ended by " + e.Signal
	}
	if stderr != "" {
		how += ": " + stderr
	}
	return errors.New(how)
}

// program returns what to start: a relative path is meant from the server's
// directory, a plain name is looked up in PATH.
func (m *Manager) program(c *Config) string {
	if filepath.IsAbs(c.Command) || !strings.ContainsRune(c.Command, filepath.Separator) {
		return c.Command
	}
	return filepath.Join(m.dir(c), c.Command)
}

// dir returns the directory of a server's program.
func (m *Manager) dir(c *Config) string {
	if c.Dir == "" || filepath.IsAbs(c.Dir) {
		if c.Dir != "" {
			return c.Dir
		}
		return m.o.Dir
	}
	return filepath.Join(m.o.Dir, c.Dir)
}

// childEnv returns the environment of a server's program: a clean one, and on
// top of it what its configuration says.
func childEnv(base []string, own map[string]string) []string {
	env := slices.DeleteFunc(tools.CleanEnv(base, nil), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, replaced := own[k]
		return replaced
	})
	for k, v := range own {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

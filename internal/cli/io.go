// Package cli is the command line: flags, wiring, and the one place where
// errors become exit codes and text for people. It is the only package that
// knows all the others, and with cmd/agent the only one that touches the
// process: its streams, environment and signals.
package cli

import (
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/agentcli/agent/internal/cli/version"
)

// IO is what a run meets of the outside.
type IO struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
	Env    []string // the whole environment, for children
	Dir    string   // working directory
	DirErr error    // why there is none
	Admin  AdminDir // the administrator's policy files
	Claude bool     // the program was called by the name claude, in whose place it then is
	// Signals are those that end a run: SIGINT and SIGTERM.
	Signals <-chan os.Signal
	// TTY facts; false for what is not a terminal.
	InTTY, OutTTY, ErrTTY bool
}

// System returns the IO of this process. From then on SIGINT and SIGTERM come
// by Signals, and SIGPIPE becomes a failed write.
func System() IO {
	dir, dirErr := os.Getwd()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not Ignore, which children would inherit
	log.SetOutput(io.Discard)                               // a vendor's SDK warns through it; our log is slog
	var admin AdminDir
	if runtime.GOOS == "linux" {
		admin.Path = adminPolicies
	}
	return IO{
		Signals: signals,
		In:      os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Env: os.Environ(), Dir: dir, DirErr: dirErr, Admin: admin,
		Claude: version.AsClaude(os.Args[0]),
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
}

// with returns the IO with further variables in its environment, each
// NAME=value; they win.
func (io IO) with(env []string) IO {
	if len(env) == 0 {
		return io
	}
	added := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		added[name] = value
	}
	outer := io.Getenv
	io.Getenv = func(name string) string {
		if value, ok := added[name]; ok {
			return value
		}
		return outer(name)
	}
	io.Env = slices.DeleteFunc(slices.Clone(io.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, ok := added[name]
		return ok
	})
	io.Env = append(io.Env, env...)
	return io
}

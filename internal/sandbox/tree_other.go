//go:build !unix

package sandbox

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tree is only the leader on these systems.
type tree struct {
	mu     sync.Mutex // guards leader and reaped
	leader *os.Process
	reaped bool
}

// newTree prepares a tree for a leader with that environment.
func newTree(env []string, _ []*os.File) (*tree, []string) {
	return &tree{}, append([]string{}, env...)
}

func sysProcAttr() *syscall.SysProcAttr { return nil }

func (t *tree) startLeader(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if err == nil {
		t.mu.Lock()
		t.leader = p
		t.mu.Unlock()
	}
	return p, err
}

// started has nothing more to do here.
func (t *tree) started([]string) {}

func (t *tree) leaderReaped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
}

func (t *tree) forget() {}

// takeDown kills the leader.
func (t *tree) takeDown(time.Duration) (stopped, survivors int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		_ = t.leader.Kill()
	}
	return 0, 0
}

// waitingForInput can't be known here.
func (t *tree) waitingForInput() bool { return false }

// programSuffixes returns PATHEXT, or what it is by default.
func programSuffixes(env []string) []string {
	ext, ok := lookupEnv(env, "PATHEXT")
	if !ok {
		ext = ".COM;.EXE;.BAT;.CMD"
	}
	return strings.Split(ext, ";")
}

func mayExecute(fs.FileMode) bool { return true }

func sameKey(a, b string) bool { return strings.EqualFold(a, b) }

func exitOf(state *os.ProcessState) (int, string) { return state.ExitCode(), "" }

//go:build unix && !linux

package sandbox

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// tree is the process group of a leader. What leaves the group (setsid) is not
// found again on these systems.
type tree struct {
	mu     sync.Mutex // guards pid and reaped
	pid    int
	reaped bool
}

// newTree prepares a tree for a leader with that environment.
func newTree(env []string, _ []*os.File) (*tree, []string) {
	return &tree{}, append([]string{}, env...)
}

func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (t *tree) startLeader(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if err == nil {
		t.mu.Lock()
		t.pid = p.Pid
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

// signal reaches the whole group and reports whether there is one. While a
// member lives the kernel does not give the group's number to anybody else.
func (t *tree) signal(sig syscall.Signal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return syscall.Kill(-t.pid, sig) == nil
}

// takeDown stops the group: SIGTERM, grace, SIGKILL until none is left. Groups
// cannot be waited for, hence the looks at short intervals.
func (t *tree) takeDown(grace time.Duration) (stopped, survivors int) {
	if !t.signal(syscall.SIGTERM) {
		return 0, 0
	}
	t.signal(syscall.SIGCONT)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	termEnd := time.Now().Add(grace)
	killEnd := termEnd.Add(killTime)
	for now := range tick.C {
		sig := syscall.Signal(0)
		if now.After(termEnd) {
			sig = syscall.SIGKILL
		}
		if !t.signal(sig) {
			return 1, 0
		}
		if now.After(killEnd) {
			break
		}
	}
	return 1, 1
}

// waitingForInput can't be known here.
func (t *tree) waitingForInput() bool { return false }

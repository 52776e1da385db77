package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Program is the program under test. Its methods may be called from any
// goroutine.
type Program struct {
	path func() (string, error)

	mu  sync.Mutex
	dir string // of one that was built; empty: none was
}

// NewProgram returns the program at a path; without a path one that is built by
// the first call of Path.
func NewProgram(path string) *Program {
	p := &Program{}
	p.path = sync.OnceValues(func() (string, error) {
		if path != "" {
			return path, nil
		}
		return p.build()
	})
	return p
}

// Path returns where the program lies.
func (p *Program) Path() (string, error) { return p.path() }

// Remove removes a program that was built. It must not be used any more.
func (p *Program) Remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // what stays is in the folder for temporary files
	}
}

func (p *Program) build() (string, error) {
	dir, err := os.MkdirTemp("", "agent-test")
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.dir = dir
	p.mu.Unlock()
	path := filepath.Join(dir, "agent")
	out, err := exec.Command("go", "build", "-o", path, "github.com/agentcli/agent/cmd/agent").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
}

package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/policy"
)

const (
	secretsEntries = 100_000                // entries of a tree that are looked at
	secretsTime    = 300 * time.Millisecond // and for how long
	secretsKeep    = 5 * time.Second        // an answer is used again
	secretsAnswers = 64
)

// SecretTrees finds files of secrets beneath directories, for policy. The zero
// value is ready to use; it is safe for concurrent use.
type SecretTrees struct {
	entries int // looked at in one tree; 0: secretsEntries
	mu      sync.Mutex
	answers map[treeKey]treeAnswer
}

type treeKey struct {
	dir    string
	hidden bool
}

type treeAnswer struct {
	path  string
	known bool
	at    time.Time
}

// SecretBeneath implements policy.Tree. Dependencies and git's own files
// (node_modules, vendor, .git and the like) are not looked into, nor are links
// followed. An answer may be five seconds old.
func (s *SecretTrees) SecretBeneath(dir string, hidden bool) (path string, known bool) {
	key := treeKey{dir, hidden}
	s.mu.Lock()
	a, ok := s.answers[key]
	s.mu.Unlock()
	if ok && time.Since(a.at) < secretsKeep {
		return a.path, a.known
	}
	a = treeAnswer{at: time.Now()}
	a.path, a.known = s.find(dir, hidden)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil || len(s.answers) >= secretsAnswers {
		s.answers = map[treeKey]treeAnswer{}
	}
	s.answers[key] = a
	return a.path, a.known
}

// SecretAmong implements policy.Tree.
func (s *SecretTrees) SecretAmong(pattern string) (path string, known bool) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", false
	}
	for _, at := range found {
		if policy.SecretName(at) == "" || filepath.Base(at)[0] == '.' && filepath.Base(pattern)[0] != '.' {
			continue // the shell's * leaves out what begins with a dot
		}
		if info, err := os.Stat(at); err == nil && !info.IsDir() {
			return at, true
		}
	}
	return "", true
}

// find walks breadth first, since secrets mostly lie near the top.
func (s *SecretTrees) find(dir string, hidden bool) (path string, known bool) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", true
	}
	until := time.Now().Add(secretsTime)
	seen, most := 0, s.entries
	if most == 0 {
		most = secretsEntries
	}
	for queue := []string{dir}; len(queue) > 0; queue = queue[1:] {
		entries, _ := os.ReadDir(queue[0]) // what can't be read by us isn't read by a command either
		for _, e := range entries {
			if seen++; seen > most || seen%1000 == 0 && time.Now().After(until) {
				return "", false
			}
			name := e.Name()
			if !hidden && name[0] == '.' || e.Type()&fs.ModeSymlink != 0 {
				continue
			}
			at := filepath.Join(queue[0], name)
			switch {
			case e.IsDir() && !othersFiles(name):
				queue = append(queue, at)
			case !e.IsDir() && policy.SecretName(at) != "":
				return at, true
			}
		}
	}
	return "", true
}

// othersFiles reports whether a directory holds what others made: examples of
// keys lie there, and no secrets of the user.
func othersFiles(name string) bool {
	switch name {
	case ".git", "node_modules", "vendor", "testdata", "target", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".cache":
		return true
	}
	return false
}

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// spill keeps texts that are too long to pass on in files of a session's
// folder. It is safe for concurrent use.
type spill struct {
	dir string
	n   atomic.Int64
}

// keep writes text to a new private file and returns its path.
func (s *spill) keep(id, text string) (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", fmt.Errorf("keeping a long text: %w", err)
	}
	name := fmt.Sprintf("%s-%d.txt", safeName(id), s.n.Add(1))
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("keeping a long text: %w", err)
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path) // half a text is worse than none
		return "", fmt.Errorf("keeping a long text: %w", err)
	}
	return path, nil
}

// safeName makes an id, which a model may have made up, a file name.
func safeName(id string) string {
	id = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, id)
	if len(id) > 60 {
		id = id[:60]
	}
	return "text-" + id
}

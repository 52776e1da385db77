package tools

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	outputPrefix = "output-"
	outputSuffix = ".log"
	// maxOutputDir caps all output files of a user together.
	maxOutputDir = 512 << 20
)

var errNoOutputDir = errors.New("no directory for output files is set up")

// outputStore is a directory of output files that never holds more than max
// bytes: before a file is made, the oldest are removed until there is room for
// it to reach its own cap. Files that are being written here stay.
type outputStore struct {
	dir string
	max int64

	mu   sync.Mutex      // guards open
	open map[string]bool // paths
}

func newOutputStore(dir string) *outputStore {
	return &outputStore{dir: dir, max: maxOutputDir, open: map[string]bool{}}
}

// create makes a new file that only the user can read. release it when closed.
func (s *outputStore) create() (*os.File, string, error) {
	if s.dir == "" {
		return nil, "", errNoOutputDir
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the directory for output: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(); err != nil {
		return nil, "", err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	path := filepath.Join(s.dir, outputPrefix+hex.EncodeToString(id[:])+outputSuffix)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("making a file for output: %w", err)
	}
	s.open[path] = true
	return f, path, nil
}

// release says that path is not written any more.
func (s *outputStore) release(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, path)
}

// makeRoom removes the oldest files until one more of full size has room. mu is
// held. A file that is being written counts as full.
func (s *outputStore) makeRoom() error {
	type file struct {
		path string
		info fs.FileInfo
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("looking at earlier output: %w", err)
	}
	var files []file
	need := int64(maxOutputFile)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), outputPrefix) || !strings.HasSuffix(e.Name(), outputSuffix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		if s.open[path] {
			need += maxOutputFile
			continue
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{path, info})
			need += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		if need <= s.max {
			return nil
		}
		if os.Remove(f.path) == nil {
			need -= f.info.Size()
		}
	}
	if need > s.max {
		return fmt.Errorf("output files in %s would be more than %s", s.dir, sizeText(s.max))
	}
	return nil
}

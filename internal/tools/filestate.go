package tools

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
)

// Limits of what FileState keeps and shows.
const (
	keepFileBytes = 64 << 10 // contents up to this size are kept, to show what changed
	keepAllBytes  = 4 << 20  // all kept contents together
	showDiffBytes = 6 << 10  // a longer account of a change is not shown
)

// FileState remembers which files one conversation has read or written, and
// what was in them, so that an edit never builds on something the model hasn't
// seen. Each conversation has its own. It is safe for concurrent use.
type FileState struct {
	mu   sync.Mutex
	seen map[string]seenFile // by resolved path
	kept int                 // bytes of contents kept
	age  []string            // paths with kept content, oldest first
}

type seenFile struct {
	print   fingerprint
	content []byte // nil when too large to keep
}

// fingerprint identifies a file's content.
type fingerprint struct {
	hash [sha256.Size]byte
	size int64
}

func fingerprintOf(content []byte) fingerprint {
	return fingerprint{hash: sha256.Sum256(content), size: int64(len(content))}
}

// NewFileState returns a FileState of a conversation that has read nothing.
func NewFileState() *FileState { return &FileState{seen: make(map[string]seenFile)} }

// Fork returns an independent copy, for a conversation that continues from
// this one's history.
func (s *FileState) Fork() *FileState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &FileState{seen: maps.Clone(s.seen), kept: s.kept, age: slices.Clone(s.age)}
}

// note records that the conversation knows content to be at path.
func (s *FileState) note(path string, content []byte) {
	s.notePrint(path, fingerprintOf(content), content)
}

// notePrint is note for a content of which only the fingerprint is at hand;
// content may be nil.
func (s *FileState) notePrint(path string, print fingerprint, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(path)
	f := seenFile{print: print}
	if content != nil && len(content) <= keepFileBytes {
		f.content = bytes.Clone(content)
		s.kept += len(content)
		s.age = append(s.age, path)
	}
	s.seen[path] = f
	for s.kept > keepAllBytes {
		oldest := s.age[0]
		o := s.seen[oldest]
		s.drop(oldest)
		s.seen[oldest] = seenFile{print: o.print}
	}
}

// drop forgets the content kept for path. s.mu is held.
func (s *FileState) drop(path string) {
	if old, ok := s.seen[path]; ok && old.content != nil {
		s.kept -= len(old.content)
		s.age = slices.DeleteFunc(s.age, func(p string) bool { return p == path })
	}
	delete(s.seen, path)
}

func (s *FileState) lookup(path string) (seenFile, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.seen[path]
	return f, ok
}

// check returns an error for the model unless the conversation knows that now
// is what is at path. A small change is shown in the error and from then on
// counts as known.
func (s *FileState) check(names *Names, path, named string, now []byte) error {
	seen, ok := s.lookup(path)
	if !ok {
		return fmt.Errorf("%s has not been read in this conversation: read it with %s first, then try again", quotePath(named), names.Tool("read_file"))
	}
	print := fingerprintOf(now)
	if seen.print == print {
		return nil
	}
	change, ok := describeChange(named, seen.content, now)
	if !ok {
		return fmt.Errorf("%s has changed since it was read (by the user, a command or another agent): nothing was written. Read it again with %s, then try again", quotePath(named), names.Tool("read_file"))
	}
	s.notePrint(path, print, now)
	return fmt.Errorf("%s has changed since it was read (by the user, a command or another agent): nothing was written. %s\nKeep that change. To go on, base the call on what is there now (read it again if in doubt)", quotePath(named), change)
}

// describeChange shows what is now there, as a diff to what was there (nil when
// unknown) or whole when it is short. It reports false if that would be long.
func describeChange(named string, was, now []byte) (string, bool) {
	if !utf8.Valid(now) || bytes.IndexByte(now, 0) >= 0 {
		return "", false
	}
	if was != nil && utf8.Valid(was) {
		if d := udiff.Unified("as read", "now", string(was), string(now)); len(d) <= showDiffBytes {
			return "What changed:\n" + strings.TrimSuffix(d, "\n"), true
		}
	}
	if len(now) == 0 {
		return "It is now empty.", true
	}
	if len(now) <= showDiffBytes {
		return "It now contains:\n" + strings.TrimSuffix(string(now), "\n"), true
	}
	return "", false
}

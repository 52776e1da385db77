package tools

import (
	"os"
	"path/filepath"
	"strings"
)

// maxIgnoreBytes bounds an ignore file; what is beyond is not read.
const maxIgnoreBytes = 4 << 20

// verdict is what rules say of a path.
type verdict uint8

const (
	noVerdict verdict = iota
	ignored
	whitelisted
)

// ignoreRules are the rules of one ignore file, or of globs that a caller
// gave. The zero value has none.
type ignoreRules struct {
	rules    []ignoreRule
	positive int // rules that are not negated
}

type ignoreRule struct {
	glob    pathGlob
	negated bool
	dirOnly bool
}

// parseIgnore reads an ignore file. Lines that make no sense are left out.
func parseIgnore(text string) ignoreRules {
	var set ignoreRules
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		_ = set.add(line)
	}
	return set
}

// add appends the rule of one line.
func (s *ignoreRules) add(line string) error {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
	}
	if line == "" {
		return nil
	}
	var r ignoreRule
	anchored := false
	if strings.HasPrefix(line, `\!`) || strings.HasPrefix(line, `\#`) {
		line = line[1:]
	} else {
		line, r.negated = cutPrefix(line, "!")
		line, anchored = cutPrefix(line, "/")
	}
	if strings.HasSuffix(line, "/") {
		line, r.dirOnly = line[:len(line)-1], true
		line = strings.TrimSuffix(line, `\`)
	}
	if !anchored && !strings.Contains(line, "/") && line != "**" {
		line = "**/" + line
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is in the directory, not the directory itself
	}
	var err error
	if r.glob, err = compileGlob(line); err != nil {
		return err
	}
	if !r.negated {
		s.positive++
	}
	s.rules = append(s.rules, r)
	return nil
}

func cutPrefix(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	return rest, ok
}

// match says what the last rule that matches says. rel is relative to where the
// rules are.
func (s *ignoreRules) match(rel string, isDir bool) verdict {
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dirOnly && !isDir || !r.glob.match(rel) {
			continue
		}
		if r.negated {
			return whitelisted
		}
		return ignored
	}
	return noVerdict
}

// ignoreFiles are the names of ignore files, those that win first. The last one
// holds only within a git repository.
var ignoreFiles = [...]string{".rgignore", ".ignore", ".gitignore"}

const gitignoreIndex = 2

// ignoreLevel holds the rules of one directory, linked to those above it.
type ignoreLevel struct {
	up      *ignoreLevel
	dir     string // slash-separated, absolute
	files   [len(ignoreFiles)]ignoreRules
	exclude ignoreRules // .git/info/exclude
	hasGit  bool
	anyGit  bool // here or above
}

// newLevel returns the level of dir: up itself when the directory adds nothing.
// read returns the content of a file of the directory, false if there is none.
func newLevel(up *ignoreLevel, dir string, hasGit bool, read func(name string) (string, bool)) *ignoreLevel {
	l := &ignoreLevel{up: up, dir: dir, hasGit: hasGit, anyGit: hasGit || up != nil && up.anyGit}
	found := hasGit
	for i, name := range ignoreFiles {
		if text, ok := read(name); ok {
			l.files[i], found = parseIgnore(text), true
		}
	}
	if hasGit {
		if text, ok := read(".git/info/exclude"); ok {
			l.exclude = parseIgnore(text)
		}
	}
	if !found {
		return up
	}
	return l
}

// levelsAbove returns the rules of all directories above dir.
func levelsAbove(dir string) *ignoreLevel {
	parent := filepath.Dir(dir)
	if parent == dir {
		return nil
	}
	up := levelsAbove(parent)
	_, err := os.Lstat(filepath.Join(parent, ".git"))
	return newLevel(up, filepath.ToSlash(parent), err == nil, func(name string) (string, bool) {
		return readIgnoreFile(os.OpenFile(filepath.Join(parent, name), os.O_RDONLY|openNonblock, 0))
	})
}

// readIgnoreFile reads and closes f, if it was opened and is a regular file.
func readIgnoreFile(f *os.File, err error) (string, bool) {
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	b := make([]byte, min(info.Size(), maxIgnoreBytes))
	n, err := readFull(f, b)
	return string(b[:n]), err == nil
}

// match says what the rules here and above say of an entry: its absolute,
// slash-separated path. The kinds of files are asked in order of precedence,
// each kind from the nearest directory up; git's rules end at the repository.
func (l *ignoreLevel) match(path string, isDir bool) verdict {
	if l == nil {
		return noVerdict
	}
	var kinds [len(ignoreFiles)]verdict
	var exclude verdict
	outside := !l.anyGit
	for lv := l; lv != nil; lv = lv.up {
		rel := strings.TrimPrefix(path[len(lv.dir):], "/")
		for i := range kinds {
			if kinds[i] == noVerdict && (i != gitignoreIndex || !outside) {
				kinds[i] = lv.files[i].match(rel, isDir)
			}
		}
		if !outside && exclude == noVerdict {
			exclude = lv.exclude.match(rel, isDir)
		}
		outside = outside || lv.hasGit
	}
	for _, v := range kinds {
		if v != noVerdict {
			return v
		}
	}
	return exclude
}

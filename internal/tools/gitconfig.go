package tools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// GitConfigs says which repositories make git run programs that only reading
// asks for: their own settings can name some, and whoever made the repository
// wrote those. The settings of the user and of the system are trusted and
// aren't read. It implements policy.Repo, and is safe for concurrent use.
type GitConfigs struct {
	mu    sync.Mutex
	known map[string]gitVerdict // by the repository's directory
}

// gitVerdict is what was found in a repository.
type gitVerdict struct {
	files []gitStamp
	why   string
	inner []string // working trees of submodules
}

// gitStamp tells a file's content from its next.
type gitStamp struct {
	path string
	info fs.FileInfo // nil: there is none
}

const (
	maxGitConfigs   = 64       // repositories that are remembered
	maxGitConfig    = 1 << 20  // bytes of settings
	maxGitIndex     = 64 << 20 // bytes of an index
	maxGitInner     = 500      // submodules that are looked at
	maxGitNested    = 8        // repositories inside of each other
	gitRacy         = 2 * time.Second
	gitConfigName   = "config"
	gitWorktreeName = "config.worktree"
)

// NewGitConfigs makes a GitConfigs that knows nothing yet.
func NewGitConfigs() *GitConfigs { return &GitConfigs{known: map[string]gitVerdict{}} }

// Runs says why git, started in a directory, may run programs that the settings
// of the repository there name; "" if it doesn't. What can't be read counts as
// a reason.
func (g *GitConfigs) Runs(dir string) string {
	real, err := existing(dir)
	if err != nil {
		return "the repository of " + dir + " can't be looked for: " + err.Error()
	}
	looked := 0
	for at := real; ; at = filepath.Dir(at) {
		why, certain := g.at(at, maxGitNested, &looked)
		if why != "" || certain || at == filepath.Dir(at) {
			return why
		}
	}
}

// at judges the repository whose place a directory is, if it is one, and those
// inside of it. It reports whether git looks no further up.
func (g *GitConfigs) at(dir string, depth int, looked *int) (why string, certain bool) {
	r, found, err := gitAt(dir)
	if err != nil {
		return "the repository of " + dir + " can't be read: " + err.Error(), true
	}
	if !found {
		return "", false
	}
	if *looked++; *looked > maxGitInner || depth == 0 {
		return "git looks into more submodules than can be judged", true
	}
	v := g.verdict(r)
	if v.why != "" {
		return v.why, true
	}
	for _, sub := range v.inner {
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil {
			continue // not there: git doesn't look into it
		}
		if why, _ := g.at(sub, depth-1, looked); why != "" {
			return "of a submodule: " + why, true
		}
	}
	return "", r.certain
}

// existing returns a directory without links, or the nearest one above it if
// it isn't there.
func existing(dir string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return real, err
		}
		dir = filepath.Dir(dir)
	}
}

// gitPlace is a repository that git may use.
type gitPlace struct {
	dir     string // HEAD and index are in it
	common  string // config is in it
	tree    string // the working tree; empty: none
	certain bool   // git looks no further up
}

// gitAt looks for a repository in a directory, as git does: .git as a directory
// or as a file that says where it is, or the directory itself.
func gitAt(at string) (gitPlace, bool, error) {
	dot := filepath.Join(at, ".git")
	info, err := os.Stat(dot)
	switch {
	case err == nil && info.IsDir():
		r, err := gitDir(dot, at)
		return r, true, err
	case err == nil && info.Mode().IsRegular():
		b, err := readGitFile(dot, maxGitConfig)
		if err != nil {
			return gitPlace{}, true, err
		}
		to, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), "gitdir: ")
		if !ok {
			return gitPlace{}, true, errors.New(dot + " names no directory")
		}
		r, err := gitDir(under(at, to), at)
		return r, true, err
	case err == nil:
		return gitPlace{}, true, errors.New(dot + " is neither a directory nor a file")
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return gitPlace{}, true, err
	}
	if _, err := os.Lstat(filepath.Join(at, "HEAD")); err != nil {
		return gitPlace{}, false, nil
	}
	r, err := gitDir(at, "")
	return r, err != nil || isDir(filepath.Join(r.common, "objects")), err
}

// gitDir reads where a repository keeps its settings.
func gitDir(dir, tree string) (gitPlace, error) {
	r := gitPlace{dir: dir, common: dir, tree: tree}
	b, err := readGitFile(filepath.Join(dir, "commondir"), maxGitConfig)
	switch {
	case err == nil:
		r.common = under(dir, strings.TrimRight(string(b), "\r\n"))
	case !errors.Is(err, fs.ErrNotExist):
		return r, err
	}
	head, err := readGitFile(filepath.Join(dir, "HEAD"), maxGitConfig)
	r.certain = err == nil && validHead(string(head)) && isDir(filepath.Join(r.common, "objects")) && isDir(filepath.Join(r.common, "refs"))
	return r, nil
}

func validHead(head string) bool {
	if ref, ok := strings.CutPrefix(head, "ref:"); ok {
		return strings.HasPrefix(strings.TrimLeft(ref, " \t\n\r"), "refs/")
	}
	return len(head) >= 40 && strings.Trim(head[:40], "0123456789abcdef") == ""
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// verdict reads a repository, unless it is known and hasn't changed.
func (g *GitConfigs) verdict(r gitPlace) gitVerdict {
	key := r.dir + "\x00" + r.tree
	g.mu.Lock()
	v, ok := g.known[key]
	g.mu.Unlock()
	if ok && v.fresh() {
		return v
	}
	v = r.read()
	if v.settled() {
		g.mu.Lock()
		if len(g.known) >= maxGitConfigs {
			clear(g.known)
		}
		g.known[key] = v
		g.mu.Unlock()
	}
	return v
}

func (v gitVerdict) fresh() bool {
	for _, s := range v.files {
		info, err := os.Stat(s.path)
		switch {
		case err != nil && s.info == nil && errors.Is(err, fs.ErrNotExist):
		case err != nil || s.info == nil:
			return false
		case !os.SameFile(info, s.info) || info.Size() != s.info.Size() || !info.ModTime().Equal(s.info.ModTime()):
			return false
		}
	}
	return true
}

// settled reports whether a next change would show in the files' times.
func (v gitVerdict) settled() bool {
	for _, s := range v.files {
		if s.info != nil && time.Since(s.info.ModTime()).Abs() < gitRacy {
			return false
		}
	}
	return v.files != nil
}

// read reads the settings of a repository and the submodules that it has.
func (r gitPlace) read() gitVerdict {
	v := gitVerdict{files: []gitStamp{}}
	var settings []gitSetting
	for _, path := range [...]string{filepath.Join(r.common, gitConfigName), filepath.Join(r.dir, gitWorktreeName), filepath.Join(r.common, gitWorktreeName)} {
		b, err := v.open(path, maxGitConfig)
		if err != nil {
			return gitVerdict{why: "git's settings can't be read: " + err.Error()}
		}
		list, err := parseGitConfig(string(b))
		if err != nil {
			return gitVerdict{why: path + " isn't understood: " + err.Error()}
		}
		settings = append(settings, list...)
	}
	if v.why = r.runs(settings); v.why != "" || r.tree == "" {
		return v
	}
	if split, err := splitIndex(r.dir); err != nil || split {
		return gitVerdict{why: "git's index is in parts, which aren't read"}
	}
	index, err := v.open(filepath.Join(r.dir, "index"), maxGitIndex)
	if err == nil {
		v.inner, err = gitLinks(index, r.tree, hashSize(settings))
	}
	if err != nil {
		return gitVerdict{why: "git's index can't be read: " + err.Error()}
	}
	return v
}

// open reads a file and notes what it was like; one that isn't there is empty.
func (v *gitVerdict) open(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		v.files = append(v.files, gitStamp{path: path})
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.files = append(v.files, gitStamp{path, info}) // before it is read: what changes then is seen later
	return readGitFile(path, limit)
}

// readGitFile reads a regular file without ever waiting for one that is none.
func readGitFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

// splitIndex reports whether a part of the index is in another file.
func splitIndex(dir string) (bool, error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			return true, nil
		}
	}
	return false, err
}

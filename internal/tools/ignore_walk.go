package tools

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// walkFilter says which entries a walk visits.
type walkFilter struct {
	hidden    bool        // names that begin with a dot too (.git never)
	overrides ignoreRules // globs of the caller; they win over everything else
	typeGlobs []pathGlob  // when not empty, only files whose name matches one
}

// keep decides on one entry, as ripgrep does: the caller's globs, then the
// ignore files, then the type, then whether it is hidden; an explicit yes
// spares a hidden entry.
func (w *walkFilter) keep(l *ignoreLevel, abs, rel, name string, isDir bool) bool {
	if w.hidden && name == ".git" {
		return false
	}
	if len(w.overrides.rules) > 0 {
		switch v := w.overrides.match(rel, isDir); {
		case v == ignored:
			return true
		case v == whitelisted:
			return false
		case w.overrides.positive > 0 && !isDir:
			return false
		}
	}
	v := l.match(abs, isDir)
	if v == ignored {
		return false
	}
	if len(w.typeGlobs) > 0 && !isDir {
		if !matchAny(w.typeGlobs, name) {
			return false
		}
		v = whitelisted
	}
	return v == whitelisted || w.hidden || !strings.HasPrefix(name, ".")
}

func matchAny(globs []pathGlob, name string) bool {
	for _, g := range globs {
		if g.match(name) {
			return true
		}
	}
	return false
}

// visited is a regular file that a walk came to.
type visited struct {
	dir    *os.Root // its directory, open while visit runs
	name   string
	rel    string // slash-separated, relative to where the walk began
	worker int    // which of the workers is visiting
}

// walkStats counts what a walk met.
type walkStats struct {
	unreadable atomic.Int64 // directories that could not be listed
	filtered   atomic.Int64 // entries left out by the filter
}

// walk visits the regular files beneath a directory, with several workers at
// once and in no order. Symlinks are not followed. It returns when all workers
// have ended, early when ctx ends.
func walk(ctx context.Context, from Place, filter *walkFilter, workers int, visit func(visited)) (*walkStats, error) {
	root, err := from.openDir(from.rel, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := &walker{root: root, abs: filepath.ToSlash(from.Path), filter: filter, visit: visit, stats: &walkStats{}}
	w.more.L = &w.mu
	w.push(walkTask{rel: "", level: levelsAbove(from.Path)})
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stopped = true
		w.more.Broadcast()
	})
	defer stop()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { // ends when there are no more tasks, or ctx has ended
			w.work(i)
		})
	}
	wg.Wait()
	return w.stats, checkContext(ctx)
}

// walkTask is a directory to list, or (names set) some of its files to visit.
type walkTask struct {
	rel   string
	info  fs.FileInfo // which directory it is; nil: that where the walk began
	level *ignoreLevel
	dir   *sharedDir
	names []string
}

// sharedDir is an open directory that several tasks use; the last one closes it.
type sharedDir struct {
	root  *os.Root
	users atomic.Int32
}

func (d *sharedDir) release() {
	if d.users.Add(-1) == 0 {
		d.root.Close()
	}
}

// filesPerTask bounds how many files one worker takes at once.
const filesPerTask = 32

type walker struct {
	root   *os.Root // the directory where the walk begins
	abs    string   // its absolute path
	filter *walkFilter
	visit  func(visited)
	stats  *walkStats

	mu      sync.Mutex
	more    sync.Cond
	tasks   []walkTask // last in, first out: few directories are open at once
	busy    int        // workers that may still add tasks
	stopped bool
}

func (w *walker) push(t walkTask) {
	w.mu.Lock()
	w.tasks = append(w.tasks, t)
	w.mu.Unlock()
	w.more.Signal()
}

// next waits for a task; false when there will be none.
func (w *walker) next() (walkTask, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.tasks) == 0 && w.busy > 0 && !w.stopped {
		w.more.Wait()
	}
	if len(w.tasks) == 0 {
		w.more.Broadcast()
		return walkTask{}, false
	}
	t := w.tasks[len(w.tasks)-1]
	w.tasks = w.tasks[:len(w.tasks)-1]
	w.busy++
	return t, true
}

func (w *walker) finish() {
	w.mu.Lock()
	w.busy--
	idle := w.busy == 0
	w.mu.Unlock()
	if idle {
		w.more.Broadcast()
	}
}

func (w *walker) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *walker) work(worker int) {
	for {
		t, ok := w.next()
		if !ok {
			return
		}
		switch {
		case t.dir != nil:
			w.files(t, worker)
		case !w.ended():
			w.list(t, worker)
		}
		w.finish()
	}
}

func (w *walker) files(t walkTask, worker int) {
	defer t.dir.release()
	for _, name := range t.names {
		if w.ended() {
			return
		}
		w.visit(visited{dir: t.dir.root, name: name, rel: path.Join(t.rel, name), worker: worker})
	}
}

// list reads a directory and makes tasks of what is to be visited in it.
func (w *walker) list(t walkTask, worker int) {
	root, entries, err := w.open(t)
	if err != nil {
		w.stats.unreadable.Add(1)
		return
	}
	dir := &sharedDir{root: root}
	dir.users.Store(1)
	defer dir.release()
	abs := path.Join(w.abs, t.rel)
	level := levelOf(t.level, root, abs, entries)
	var names []string
	for _, e := range entries {
		isDir := e.IsDir()
		if !isDir && !e.Type().IsRegular() {
			continue
		}
		rel := path.Join(t.rel, e.Name())
		if !w.filter.keep(level, joinAbs(abs, e.Name()), rel, e.Name(), isDir) {
			w.stats.filtered.Add(1)
			continue
		}
		if !isDir {
			names = append(names, e.Name())
			continue
		}
		info, err := root.Lstat(e.Name())
		if err != nil {
			continue // gone meanwhile
		}
		w.push(walkTask{rel: rel, info: info, level: level})
	}
	w.share(t.rel, dir, names, worker)
}

// share gives away the files beyond the first few and visits those.
func (w *walker) share(rel string, dir *sharedDir, names []string, worker int) {
	for len(names) > filesPerTask {
		cut := len(names) - filesPerTask
		dir.users.Add(1)
		w.push(walkTask{rel: rel, dir: dir, names: names[cut:]})
		names = names[:cut]
	}
	dir.users.Add(1)
	w.files(walkTask{rel: rel, dir: dir, names: names}, worker)
}

// joinAbs is path.Join for clean parts, cheaper.
func joinAbs(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// joinPath is filepath.Join for clean parts, cheaper.
func joinPath(dir, rel string) string {
	const sep = string(filepath.Separator)
	if strings.HasSuffix(dir, sep) {
		return dir + rel
	}
	return dir + sep + rel
}

// open opens and lists the directory of a task. It is the one that was found,
// not another one that a symlink put in its place leads to: that would be known
// by a wrong path.
func (w *walker) open(t walkTask) (*os.Root, []fs.DirEntry, error) {
	rel := filepath.FromSlash(t.rel)
	if rel == "" {
		rel = "."
	}
	dir, err := w.root.OpenRoot(rel)
	if err != nil {
		return nil, nil, err
	}
	if now, err := dir.Stat("."); t.info != nil && (err != nil || !os.SameFile(now, t.info)) {
		dir.Close()
		if dir, err = openExactly(w.root, rel, false); err != nil { // a new one, or one that was mounted
			return nil, nil, err
		}
	}
	entries, err := readEntries(dir)
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return dir, entries, nil
}

// readEntries lists a directory as far as it can be read.
func readEntries(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if len(entries) > 0 {
		err = nil
	}
	return entries, err
}

// levelOf adds the rules of a directory that was listed.
func levelOf(up *ignoreLevel, root *os.Root, abs string, entries []fs.DirEntry) *ignoreLevel {
	var has [len(ignoreFiles)]bool
	git, any := false, false
	for _, e := range entries {
		name := e.Name()
		if name == "" || name[0] != '.' {
			continue
		}
		if name == ".git" {
			git, any = true, true
		}
		for i, f := range ignoreFiles {
			if name == f {
				has[i], any = true, true
			}
		}
	}
	if !any {
		return up
	}
	return newLevel(up, abs, git, func(name string) (string, bool) {
		for i, f := range ignoreFiles {
			if name == f && !has[i] {
				return "", false
			}
		}
		return readIgnoreFile(root.OpenFile(name, os.O_RDONLY|openNonblock, 0))
	})
}

// readFull fills b as far as r goes; the end of r is no error.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

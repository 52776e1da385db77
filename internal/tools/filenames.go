package tools

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a FileNames.
const (
	maxNames      = 50_000
	maxNear       = 5_000 // entries of one directory
	namesWalkTime = 2 * time.Second
	namesFresh    = 5 * time.Second // for so long a list of names is not made anew
)

// FileNames proposes the names of files beneath the working directory for what
// somebody types. Files that ignore files name are left out. It is safe for
// concurrent use.
type FileNames struct {
	roots *Roots

	mu     sync.Mutex
	names  []fileName // in the order of shallowFirst
	whole  bool       // names are all that there are
	made   time.Time
	making chan struct{}      // closed when the walk that runs has ended; nil: none runs
	stop   context.CancelFunc // of that walk
	closed bool
}

// NewFileNames returns a FileNames for the working directory of roots, which
// stay open until Close. Nothing is read before the first Find.
func NewFileNames(roots *Roots) *FileNames { return &FileNames{roots: roots} }

// Find returns at most limit paths that fit typed: those that begin with it,
// then those with a name that does, then those that hold it; shorter ones
// first. When ctx ends before all names are known, it chooses among those that
// the last walk found, and the one that runs goes on for the next call. In a tree
// too large to be known whole, what is in the directory that typed has come to
// is proposed first, directories there with a "/" behind them.
func (f *FileNames) Find(ctx context.Context, typed string, limit int) []string {
	typed = strings.TrimPrefix(filepath.ToSlash(typed), "./")
	if limit <= 0 || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "~") || slices.Contains(strings.Split(typed, "/"), "..") {
		return nil
	}
	select {
	case <-f.refresh():
	case <-ctx.Done():
	}
	f.mu.Lock()
	names, whole := f.names, f.whole
	f.mu.Unlock()
	if whole {
		return bestNames(names, typed, limit)
	}
	best := bestNames(f.near(typed), typed, limit)
	for _, name := range bestNames(names, typed, limit) {
		if len(best) < limit && !slices.Contains(best, name) {
			best = append(best, name)
		}
	}
	return best
}

// near lists the directory that typed has come to. It takes a moment, however
// large the tree is.
func (f *FileNames) near(typed string) []fileName {
	dir, _ := path.Split(typed)
	at, err := f.roots.Resolve(cmp.Or(dir, "."))
	if err != nil || !at.Exists {
		return nil
	}
	root, err := at.openDir(at.rel, false)
	if err != nil {
		return nil
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxNear) // as far as it can be read
	abs := filepath.ToSlash(at.Path)
	level, filter := levelOf(levelsAbove(at.Path), root, abs, entries), &walkFilter{}
	var names []fileName
	for _, e := range entries {
		name, isDir := e.Name(), e.IsDir()
		switch {
		case !isDir && !e.Type().IsRegular(), !filter.keep(level, joinAbs(abs, name), dir+name, name, isDir):
		case isDir:
			names = append(names, newFileName(dir+name+"/"))
		default:
			names = append(names, newFileName(dir+name))
		}
	}
	slices.SortFunc(names, shallowFirst)
	return names
}

// refresh returns a channel that is closed when the names are as new as they
// are going to be.
func (f *FileNames) refresh() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.making != nil {
		return f.making
	}
	done := make(chan struct{})
	if f.closed || time.Since(f.made) < namesFresh {
		close(done)
		return done
	}
	ctx, stop := context.WithTimeout(context.Background(), namesWalkTime)
	f.making, f.stop = done, stop
	go func() { // ends with the walk, which Close stops and waits for
		defer close(done)
		defer stop()
		names := f.walk(ctx, stop)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.names, f.whole, f.made, f.making = names, ctx.Err() == nil, time.Now(), nil
	}()
	return done
}

// walk lists the files, as far as it comes.
func (f *FileNames) walk(ctx context.Context, stop context.CancelFunc) []fileName {
	at, err := f.roots.Resolve(".")
	if err != nil {
		return nil
	}
	var names []fileName
	_, _ = walk(ctx, at, &walkFilter{}, 1, func(v visited) { // one worker: whoever waits for names has a processor
		if len(names) >= maxNames {
			stop()
			return
		}
		names = append(names, newFileName(v.rel))
	})
	slices.SortFunc(names, shallowFirst)
	return names
}

// Close stops a walk that runs, and waits for it. Find returns nothing new
// after it.
func (f *FileNames) Close() {
	f.mu.Lock()
	f.closed = true
	making := f.making
	if making != nil {
		f.stop()
	}
	f.mu.Unlock()
	if making != nil {
		<-making
	}
}

// fileName is a path, and what it is compared by.
type fileName struct {
	path string
	low  string // in lower case
	base int    // where its last part begins in low
}

func newFileName(path string) fileName {
	low := strings.ToLower(path)
	return fileName{path: path, low: low, base: strings.LastIndexByte(strings.TrimSuffix(low, "/"), '/') + 1}
}

// shallowFirst orders names as they are proposed.
func shallowFirst(a, b fileName) int {
	return cmp.Or(
		strings.Count(a.path, "/")-strings.Count(b.path, "/"),
		len(a.path)-len(b.path),
		strings.Compare(a.path, b.path),
	)
}

// bestNames chooses the names that fit; they are in the order of shallowFirst.
func bestNames(names []fileName, typed string, limit int) []string {
	var ranked [3][]string
	low := strings.ToLower(typed)
	for _, n := range names {
		r, ok := n.rank(typed, low)
		if !ok || len(ranked[r]) == limit {
			continue
		}
		if ranked[r] = append(ranked[r], n.path); r == 0 && len(ranked[0]) == limit {
			break
		}
	}
	best := slices.Concat(ranked[:]...)
	return best[:min(limit, len(best))]
}

func (n fileName) rank(typed, low string) (int, bool) {
	switch {
	case strings.HasPrefix(n.path, typed):
		return 0, true
	case strings.HasPrefix(n.low[n.base:], low):
		return 1, true
	case strings.Contains(n.low, low):
		return 2, true
	}
	return 0, false
}

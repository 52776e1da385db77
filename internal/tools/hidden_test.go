package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newHiddenBench is a bench whose file tools hide what hidden says.
func newHiddenBench(t testing.TB, hidden func(string) string) *toolBench {
	t.Helper()
	b := newToolBench(t)
	for _, tool := range NewFileTools(FileConfig{Roots: b.roots, State: b.state, Hidden: hidden, Workers: 4}) {
		b.tools[tool.Spec().Name] = tool
	}
	return b
}

// hideKeys hides *.key and what is in a directory called private.
func hideKeys(abs string) string {
	switch {
	case strings.HasSuffix(abs, ".key"):
		return "it may hold secrets"
	case strings.Contains(filepath.ToSlash(abs), "/private/"):
		return "the rule Read(private/**)\ndenies it"
	}
	return ""
}

func TestHiddenFilesAreNotSearched(t *testing.T) {
	t.Parallel()
	b := newHiddenBench(t, hideKeys)
	b.put(t, "a.txt", "needle in the open\n")
	b.put(t, "a.key", "needle in a key\n")
	b.put(t, "sub/b.key", "nothing here\n")
	b.put(t, "private/c.txt", "needle in private\n")
	const note = "[3 files were not searched (2: it may hold secrets; 1: the rule Read(private/**) denies it); to search one of them all the same, ask for it by name: path must be that very file]"
	for mode, want := range map[string]string{
		"content": "a.txt:1:needle in the open", "files_with_matches": "a.txt", "count": "a.txt:1",
	} {
		for _, more := range []args{{}, {"multiline": true}, {"-C": 2}, {"glob": "**"}} {
			in := args{"pattern": "needle", "output_mode": mode}
			for k, v := range more {
				in[k] = v
			}
			wantSame(t, fmt.Sprint(in), b.ok(t, "grep_search", in), want+"\n"+note)
		}
	}
	r := b.run(t, "grep_search", args{"pattern": "needle"})
	display, err := json.Marshal(r.Display)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "display", string(display), `{"mode":"content","numFiles":1,"filenames":[],"content":"a.txt:1:needle in the open\n","numLines":1,"numHidden":3}`)

	wantSame(t, "whether a hidden file matches is not told", b.ok(t, "grep_search", args{"pattern": "in a key"}), "No matches found.\n"+note)
	wantSame(t, "one file", b.ok(t, "grep_search", args{"pattern": "x", "path": "sub"}),
		"No matches found.\n[1 file was not searched (it may hold secrets); to search it all the same, ask for it by name: path must be that very file]")
	wantSame(t, "files that the search leaves out anyway don't count", b.ok(t, "grep_search", args{"pattern": "needle", "glob": "*.txt", "path": "."}),
		"a.txt:1:needle in the open\n[1 file was not searched (the rule Read(private/**) denies it); to search it all the same, ask for it by name: path must be that very file]")
	wantSame(t, "a file that is named", b.ok(t, "grep_search", args{"pattern": "needle", "path": "a.key"}), "a.key:1:needle in a key")

	wantText(t, b.ok(t, "glob", args{"pattern": "**/*.key"}), "a.key", "sub/b.key")
	wantText(t, b.ok(t, "list_directory", args{"path": "private"}), "c.txt")
}

func TestManyReasonsAreCutShort(t *testing.T) {
	t.Parallel()
	b := newHiddenBench(t, filepath.Base)
	for i := range 5 {
		b.put(t, fmt.Sprintf("f%d", i), "x\n")
	}
	wantText(t, b.ok(t, "grep_search", args{"pattern": "x"}), "5 files were not searched (1: f0; 1: f1; 1: f2; and other reasons)")
}

// TestHiddenIsAskedByBothPaths searches through a symlink: what is hidden by
// its real path or by the one through the link is left out.
func TestHiddenIsAskedByBothPaths(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"real", "link"} {
		b := newHiddenBench(t, func(abs string) string {
			if strings.Contains(filepath.ToSlash(abs), "/"+which+"/sub/") {
				return "hidden"
			}
			return ""
		})
		b.put(t, "real/sub/a.txt", "needle\n")
		mustSymlink(t, "real", filepath.Join(b.dir, "link"))
		wantText(t, b.ok(t, "grep_search", args{"pattern": "needle", "path": "link"}), "No matches found.", "1 file was not searched")
	}
}

func TestHiddenIsAskedOncePerCandidate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	b := newHiddenBench(t, func(abs string) string {
		mu.Lock()
		defer mu.Unlock()
		asked[abs]++
		return hideKeys(abs)
	})
	want := map[string]int{}
	for i := range 200 {
		for _, ext := range []string{"go", "key"} {
			want[b.put(t, fmt.Sprintf("d%d/f%d.%s", i%7, i, ext), "needle\n")] = 1
		}
		b.put(t, fmt.Sprintf("d%d/f%d.txt", i%7, i), "needle\n") // no candidate
	}
	b.ok(t, "grep_search", args{"pattern": "needle", "glob": "*.{go,key}", "-C": 1})
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
	clear(asked)
	b.ok(t, "grep_search", args{"pattern": "needle", "path": "d0/f0.key"})
	if len(asked) > 0 {
		t.Errorf("asked about the file that was named: %v", asked)
	}
}

// TestASearchDoesNotFollowWhatBecameASymlink searches a name that a walk found
// as a regular file and that is a symlink by now.
func TestASearchDoesNotFollowWhatBecameASymlink(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "z.key", "secret\n")
	mustSymlink(t, "z.key", filepath.Join(b.dir, "f.txt"))
	for _, in := range []grepInput{{}, {Multiline: true}, {Mode: "count"}, {NamesOnly: true}} {
		pattern := "secret"
		in.Pattern = &pattern
		q, err := newGrepQuery(in)
		if err != nil {
			t.Fatal(err)
		}
		m, err := searchVisited(visited{dir: b.roots.dirs()[0].root, name: "f.txt"}, q.searcher())
		if !errors.Is(err, errSwapped) || m.count > 0 {
			t.Errorf("%+v: found %+v, %v", in, m, err)
		}
	}
}

// TestSwappedSymlinksShowNothingHidden swaps a file and a directory with
// symlinks to hidden ones as fast as possible during searches.
func TestSwappedSymlinksShowNothingHidden(t *testing.T) {
	t.Parallel()
	b := newHiddenBench(t, hideKeys)
	b.put(t, "dir/f.txt", "open\n")
	b.put(t, "dir/z.key", "secret\n")
	b.put(t, "sub/deep/c.txt", "open\n")
	b.put(t, "sub/private/c.txt", "secret\n")
	mustSymlink(t, "z.key", filepath.Join(b.dir, "dir/link"))
	mustSymlink(t, "private", filepath.Join(b.dir, "sub/link"))
	stop := swapLoop(t, [2]string{b.dir + "/dir/f.txt", b.dir + "/dir/link"}, [2]string{b.dir + "/sub/deep", b.dir + "/sub/link"})
	defer stop()
	for range 300 {
		r := b.run(t, "grep_search", args{"pattern": "secret|open", "-C": 1})
		if strings.Contains(resultText(r), "secret") && !strings.Contains(resultText(r), "it may hold secrets") || strings.Contains(resultText(r), ":secret") {
			t.Fatalf("showed what is hidden:\n%s", resultText(r))
		}
	}
}

// swapLoop exchanges the names of each pair as fast as it can until the
// function that it returns is called.
func swapLoop(t testing.TB, pairs ...[2]string) (stop func()) {
	t.Helper()
	var ended atomic.Bool
	var wg sync.WaitGroup
	for _, p := range pairs {
		wg.Go(func() { // ends when stop is called
			aside := p[0] + ".aside"
			for !ended.Load() {
				_ = os.Rename(p[0], aside)
				_ = os.Rename(p[1], p[0])
				_ = os.Rename(p[0], p[1])
				_ = os.Rename(aside, p[0])
			}
		})
	}
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

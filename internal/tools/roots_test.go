package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func mustSymlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("symlinks can't be made here: %v", err)
	}
}

func TestResolveFollowsWhatStaysBeneathARoot(t *testing.T) {
	t.Parallel()
	second, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := newToolBench(t, second)
	b.put(t, "src/a.go", "package a\n")
	mustSymlink(t, "src", filepath.Join(b.dir, "relative"))
	mustSymlink(t, filepath.Join(b.dir, "src"), filepath.Join(b.dir, "absolute"))
	mustSymlink(t, second, filepath.Join(b.dir, "across"))
	mustSymlink(t, "src/new.go", filepath.Join(b.dir, "dangling"))
	for path, want := range map[string]string{
		".":                             b.dir,
		"src/a.go":                      b.dir + "/src/a.go",
		"./src//a.go":                   b.dir + "/src/a.go",
		"src/../src/a.go":               b.dir + "/src/a.go",
		"missing/../src/a.go":           b.dir + "/src/a.go",
		b.dir + "/src/a.go":             b.dir + "/src/a.go",
		"~/src/a.go":                    b.dir + "/src/a.go",
		"~":                             b.dir,
		"relative/a.go":                 b.dir + "/src/a.go",
		"absolute/a.go":                 b.dir + "/src/a.go",
		"relative/../src/a.go":          b.dir + "/src/a.go",
		"across/x/y":                    second + "/x/y",
		"new/deep/file":                 b.dir + "/new/deep/file",
		"dangling":                      b.dir + "/src/new.go",
		"absolute/sub/../../src/./a.go": b.dir + "/src/a.go",
	} {
		got, err := b.roots.Resolve(path)
		if err != nil {
			t.Errorf("Resolve(%q): %v", path, err)
			continue
		}
		wantSame(t, "Resolve("+path+")", got.Path, want)
	}
}

func TestResolveRefusesWhatLeavesTheRoots(t *testing.T) {
	t.Parallel()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"app", "app-evil"} {
		if err := os.Mkdir(filepath.Join(parent, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := openToolBench(t, filepath.Join(parent, "app"))
	mustSymlink(t, "/etc", filepath.Join(b.dir, "etc"))
	mustSymlink(t, "../app-evil", filepath.Join(b.dir, "evil"))
	mustSymlink(t, "/", filepath.Join(b.dir, "rootlink"))
	mustSymlink(t, "etc", filepath.Join(b.dir, "twice"))
	for _, path := range []string{
		"..", "../app-evil/x", parent + "/app-evil", "/etc/passwd", "etc/passwd", "evil/x", "rootlink/etc/passwd", "twice/passwd",
		"missing/../../app-evil", "evil/../app-evil/x", "/proc/self/root/etc/passwd", "/proc/self/environ", "/",
	} {
		_, err := b.roots.Resolve(path)
		if !errors.Is(err, ErrOutside) {
			t.Errorf("Resolve(%q) = %v, want a refusal", path, err)
			continue
		}
		if !strings.Contains(err.Error(), b.dir) {
			t.Errorf("Resolve(%q): %v does not name the root", path, err)
		}
	}
	mustSymlink(t, "loop", filepath.Join(b.dir, "loop"))
	for _, path := range []string{"", "a\x00b", "loop/x"} {
		if got, err := b.roots.Resolve(path); err == nil {
			t.Errorf("Resolve(%q) = %v, want an error", path, got.Path)
		}
	}
}

func TestProcIsRefusedEvenWhenEverythingIsAllowed(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	b := openToolBench(t, "/")
	b.fails(t, "read_file", args{"file_path": "/proc/self/environ"}, "kernel")
	b.fails(t, "read_file", args{"file_path": "/proc/self/mem"}, "kernel")
	b.fails(t, "read_file", args{"file_path": "/dev/zero"}, "device")
}

// TestAFIFOAboveTheRootIsNotWaitedFor puts one where ignore files are read.
func TestAFIFOAboveTheRootIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	makeFIFO(t, filepath.Join(above, ".gitignore"))
	sub := filepath.Join(above, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	b := openToolBench(t, sub)
	b.put(t, "a.txt", "needle\n")
	wantText(t, b.ok(t, "grep_search", args{"pattern": "needle"}), "a.txt:1:needle")
	wantText(t, b.ok(t, "list_directory", args{"path": "."}), "a.txt")
}

// TestSwappedSymlinksNeverLeadOutside swaps a directory and a symlink to the
// outside as fast as possible while tools read and write beneath it.
func TestSwappedSymlinksNeverLeadOutside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "f.txt")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newToolBench(t)
	b.put(t, "dir/f.txt", "inside\n")
	mustSymlink(t, outside, filepath.Join(b.dir, "link"))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // ends when stop is set
		dir, link, aside := filepath.Join(b.dir, "dir"), filepath.Join(b.dir, "link"), filepath.Join(b.dir, "aside")
		for !stop.Load() {
			_ = os.Rename(dir, aside)
			_ = os.Rename(link, dir)
			_ = os.Rename(dir, link)
			_ = os.Rename(aside, dir)
		}
	})
	for range rounds(1000) {
		r := b.run(t, "read_file", args{"file_path": "dir/f.txt"})
		if strings.Contains(resultText(r), "secret") {
			t.Fatal("read outside of the root")
		}
		b.run(t, "write_file", args{"file_path": "dir/f.txt", "content": "inside\n"})
		b.run(t, "write_file", args{"file_path": "dir/new/g.txt", "content": "inside\n"})
		b.run(t, "edit", args{"file_path": "dir/f.txt", "old_string": "inside", "new_string": "changed"})
	}
	for _, tool := range []string{"glob", "grep_search", "list_directory"} {
		for range 100 {
			r := b.run(t, tool, args{"pattern": "secret|f.txt", "path": "dir"})
			if strings.Contains(resultText(r), "secret") {
				t.Fatalf("%s looked outside of the root", tool)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	content, err := os.ReadFile(secret)
	if err != nil || string(content) != "secret\n" {
		t.Fatalf("outside file is now %q, %v", content, err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Fatalf("outside directory has %v, %v", entries, err)
	}
}

func FuzzResolveStaysBeneath(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"root/a/b", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for link, target := range map[string]string{"up": "..", "abs": dir, "in": "a/b", "self": "self", "deep": "a/../../other"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			f.Skip(err)
		}
	}
	for _, seed := range []string{"a/b/../c", "up/other", "in/../../x", "abs/root/a", "~/../x", "deep/x", "a//b/./..", "/etc", "self/x", "up/root/up"} {
		f.Add(seed)
	}
	roots, err := OpenRoots(RootsConfig{Dirs: []string{root}, Home: root})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { roots.Close() })
	f.Fuzz(func(t *testing.T, path string) {
		p, err := roots.Resolve(path)
		if err != nil {
			return
		}
		if _, ok := cutRoot(root, p.Path); !ok {
			t.Fatalf("Resolve(%q) = %q", path, p.Path)
		}
		if real, err := filepath.EvalSymlinks(p.Path); err == nil && real != p.Path {
			t.Fatalf("Resolve(%q) = %q, which is a link to %q", path, p.Path, real)
		}
		if _, err := roots.dirs()[0].root.Stat(p.rel); p.Exists && err != nil {
			t.Fatalf("Resolve(%q): %v", path, err)
		}
	})
}

func TestDirectoriesComeAndGo(t *testing.T) {
	t.Parallel()
	base, other := t.TempDir(), t.TempDir()
	roots, err := OpenRoots(RootsConfig{Dirs: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	file := filepath.Join(other, "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	granted := roots.With([]string{"/nowhere"})
	if _, err := roots.Resolve(file); !errors.Is(err, ErrOutside) {
		t.Errorf("before: %v", err)
	}
	for range 2 {
		if err := roots.Add(other); err != nil {
			t.Fatal(err)
		}
	}
	place, err := granted.Resolve(file)
	if err != nil || len(roots.All()) != 2 {
		t.Errorf("added: %v, %v", err, roots.All())
	}
	if !roots.Remove(other) || roots.Remove(other) || roots.Remove(base) {
		t.Error("other is not the one directory that can be removed, once")
	}
	if _, err := roots.Resolve(file); !errors.Is(err, ErrOutside) {
		t.Errorf("removed: %v", err)
	}
	if _, err := place.dir.root.Stat(place.rel); err != nil {
		t.Errorf("a call that runs lost its directory: %v", err)
	}
	if err := roots.Add(filepath.Join(other, "nothing")); err == nil {
		t.Error("a directory that isn't there was added")
	}
}

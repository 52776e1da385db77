package tools

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runGranted calls a tool with paths granted for this call.
func (b *toolBench) runGranted(t testing.TB, tool string, in args, granted ...string) Result {
	t.Helper()
	input, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return b.tools[tool].Run(t.Context(), &Call{ID: "1", Input: input, Granted: granted})
}

// outsideDir is a directory outside of every bench, symlinks resolved.
func outsideDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func putAt(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func getAt(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestGrantedPathsOutsideCanBeActedOn(t *testing.T) {
	t.Parallel()
	out := outsideDir(t)
	b := newToolBench(t)
	file, made, deep := out+"/a.txt", out+"/new.txt", out+"/x/y/deep.txt"
	putAt(t, file, "outside\n")
	putAt(t, out+"/dir/sub/b.txt", "needle\n")
	mustSymlink(t, file, filepath.Join(b.dir, "link"))
	up, err := filepath.Rel(b.dir, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool    string
		in      args
		granted string
		want    string
	}{
		{"read_file", args{"file_path": file}, file, "outside"},
		{"read_file", args{"file_path": "link"}, file, "outside"},
		{"read_file", args{"file_path": up}, file, "outside"},
		{"grep_search", args{"pattern": "out", "path": file, "-C": 1}, file, ":1:outside"},
		{"edit", args{"file_path": file, "old_string": "outside", "new_string": "changed"}, file, "Edited"},
		{"write_file", args{"file_path": file, "content": "whole\n"}, file, "Updated"},
		{"write_file", args{"file_path": made, "content": "new\n"}, made, "Created"},
		{"edit", args{"file_path": deep, "old_string": "", "new_string": "deep\n"}, deep, "Created"},
		{"list_directory", args{"path": out + "/dir"}, out + "/dir", "sub/"},
		{"list_directory", args{"path": out + "/dir/sub"}, out + "/dir", "b.txt"},
		{"glob", args{"pattern": "**/*.txt", "path": out + "/dir"}, out + "/dir", "sub/b.txt"},
		{"glob", args{"pattern": out + "/dir/**/*.txt"}, out + "/dir", "sub/b.txt"},
		{"grep_search", args{"pattern": "needle", "path": out + "/dir", "-C": 1}, out + "/dir", "sub/b.txt:1:needle"},
		{"read_file", args{"file_path": out + "/dir/sub/b.txt"}, out + "/dir", "needle"},
		{"read_file", args{"file_path": out + "/dir/../dir/sub/b.txt"}, out + "/dir", "needle"},
	} {
		r := b.runGranted(t, c.tool, c.in, c.granted)
		if r.IsError || !strings.Contains(resultText(r), c.want) {
			t.Errorf("%s %v: %s", c.tool, c.in, resultText(r))
		}
		b.fails(t, c.tool, c.in, "is outside of the allowed directories: "+b.dir) // the grant was for that call only
	}
	wantSame(t, "edited and overwritten", getAt(t, file), "whole\n")
	wantSame(t, "created", getAt(t, made), "new\n")
	wantSame(t, "created with its directories", getAt(t, deep), "deep\n")
}

func TestAGrantCoversNothingElse(t *testing.T) {
	t.Parallel()
	out := outsideDir(t)
	b := newToolBench(t)
	putAt(t, out+"/a.txt", "granted\n")
	putAt(t, out+"/a.txt.bak", "sibling\n")
	putAt(t, out+"/dir/in.txt", "granted\n")
	putAt(t, out+"/dir-evil/x.txt", "sibling\n")
	mustSymlink(t, "../dir-evil", out+"/dir/up")
	mustSymlink(t, "a.txt.bak", out+"/alias")
	granted := []string{out + "/a.txt", out + "/dir", out + "/new", out + "/alias"}
	for _, path := range []string{
		out, out + "/", out + "/a.txt.bak", out + "/a.txt/../a.txt.bak", out + "/dir/../a.txt.bak", out + "/dir/..",
		out + "/dir-evil/x.txt", out + "/dir/up/x.txt", out + "/dir/up", out + "/alias", out + "/new/x", "/etc/passwd",
	} {
		if got, err := b.roots.With(granted).Resolve(path); !errors.Is(err, ErrOutside) {
			t.Errorf("Resolve(%s) = %v, %v", path, got.Path, err)
		}
		for tool, in := range map[string]args{
			"read_file": {"file_path": path}, "write_file": {"file_path": path, "content": "x"},
			"edit":           {"file_path": path, "old_string": "sibling", "new_string": "x"},
			"list_directory": {"path": path}, "glob": {"path": path, "pattern": "*"}, "grep_search": {"path": path, "pattern": "sibling"},
		} {
			r := b.runGranted(t, tool, in, granted...)
			if !r.IsError || !strings.Contains(resultText(r), "outside of the allowed directories: "+b.dir) {
				t.Errorf("%s %v: %s", tool, in, resultText(r))
			}
		}
	}
	wantSame(t, "sibling", getAt(t, out+"/a.txt.bak"), "sibling\n")

	for _, odd := range []string{"", "a.txt", "../a.txt", out + "/dir/../a.txt", out + "/./a.txt", out + "//a.txt", out + "/a.txt/"} {
		if _, err := b.roots.With([]string{odd}).Resolve(out + "/a.txt"); !errors.Is(err, ErrOutside) {
			t.Errorf("a grant of %q counted: %v", odd, err)
		}
	}
	if _, err := b.roots.With([]string{out + "/dir/"}).Resolve(out + "/dir/in.txt"); !errors.Is(err, ErrOutside) {
		t.Errorf("a grant with a slash at its end counted: %v", err)
	}
}

func TestAGrantDoesNotShowNeighbours(t *testing.T) {
	t.Parallel()
	out := outsideDir(t)
	b := newToolBench(t)
	putAt(t, out+"/secrets.txt", "x")
	r := b.runGranted(t, "read_file", args{"file_path": out + "/secret.txt"}, out+"/secret.txt")
	if !r.IsError || strings.Contains(resultText(r), "secrets.txt") {
		t.Error(resultText(r))
	}
}

func TestProcIsRefusedEvenWhenGranted(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/version"); err != nil {
		t.Skip("there is no /proc here")
	}
	r := newToolBench(t).runGranted(t, "read_file", args{"file_path": "/proc/version"}, "/proc/version")
	if !r.IsError || !strings.Contains(resultText(r), "kernel") {
		t.Error(resultText(r))
	}
}

// TestWhatChangesAfterResolvingIsRefused swaps symlinks in between resolving a
// granted path and acting on it, the moment that no check before can cover.
func TestWhatChangesAfterResolvingIsRefused(t *testing.T) {
	t.Parallel()
	for name, swapped := range map[string]string{"the file": "dir/f.txt", "its directory": "dir", "one further up": ""} {
		for _, granted := range []bool{true, false} {
			base := outsideDir(t)
			top := base + "/top"
			putAt(t, top+"/dir/f.txt", "granted\n")
			putAt(t, base+"/evil/f.txt", "evil\n") // in the place of dir
			putAt(t, base+"/evil/dir/f.txt", "evil\n")
			b := openToolBench(t, outsideDir(t))
			if granted {
				b.roots = b.roots.With([]string{top + "/dir/f.txt"})
			} else {
				b = openToolBench(t, base)
			}
			at, err := b.roots.Resolve(top + "/dir/f.txt")
			if err != nil {
				t.Fatal(err)
			}
			victim := filepath.Join(top, swapped)
			target := base + "/evil"
			if swapped == "dir/f.txt" {
				target = base + "/evil/f.txt"
			}
			if err := os.Rename(victim, base+"/aside"); err != nil {
				t.Fatal(err)
			}
			mustSymlink(t, target, victim)
			if f, _, err := at.open(); !errors.Is(err, errSwapped) {
				t.Errorf("%s: opened %v, %v", name, f, err)
			}
			_, err = b.roots.rewrite(t.Context(), at, func([]byte, bool) ([]byte, error) { return []byte("overwritten\n"), nil })
			if err == nil {
				t.Errorf("%s: written", name)
			}
			wantSame(t, name, getAt(t, base+"/evil/f.txt")+getAt(t, base+"/evil/dir/f.txt"), "evil\nevil\n")
		}
	}
}

// TestOpeningNeverFollowsASwappedSymlink opens a place in a tight loop, so that
// swaps fall between the look at a name, the opening of it and the look after.
func TestOpeningNeverFollowsASwappedSymlink(t *testing.T) {
	t.Parallel()
	out := outsideDir(t)
	putAt(t, out+"/file/f.txt", "granted\n")
	putAt(t, out+"/file/evil.txt", "secret\n")
	putAt(t, out+"/dir/d/f.txt", "granted\n")
	putAt(t, out+"/dir/evil/f.txt", "secret\n")
	mustSymlink(t, "evil.txt", out+"/file/link")
	mustSymlink(t, "evil", out+"/dir/link")
	for _, pair := range [][2]string{{"/file/f.txt", "/file/link"}, {"/dir/d", "/dir/link"}} {
		path := out + pair[0]
		if filepath.Ext(path) == "" {
			path += "/f.txt"
		}
		at, err := newToolBench(t).roots.With([]string{path}).Resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		stop := swapLoop(t, [2]string{out + pair[0], out + pair[1]})
		opened := 0
		for i := 0; i < rounds(20_000) && !t.Failed(); i++ {
			f, _, err := at.open()
			if err != nil {
				continue
			}
			opened++
			content, err := io.ReadAll(f)
			f.Close()
			if err != nil || string(content) != "granted\n" {
				t.Errorf("%s: %q, %v", path, content, err)
			}
		}
		stop()
		if opened == 0 {
			t.Errorf("%s could never be opened", path)
		}
	}
}

// TestSwappedSymlinksNeverLeadBesideAGrant swaps the granted file, its
// directory and a granted directory with symlinks while tools act on them.
func TestSwappedSymlinksNeverLeadBesideAGrant(t *testing.T) {
	t.Parallel()
	out := outsideDir(t)
	b := newToolBench(t)
	for _, dir := range []string{"file", "above", "tree"} {
		putAt(t, out+"/"+dir+"/d/f.txt", "granted\n")
		putAt(t, out+"/"+dir+"/evil/f.txt", "secret\n")
	}
	mustSymlink(t, out+"/file/evil/f.txt", out+"/file/d/link")
	mustSymlink(t, "evil", out+"/above/link")
	mustSymlink(t, out+"/tree/evil", out+"/tree/link")
	stop := swapLoop(t,
		[2]string{out + "/file/d/f.txt", out + "/file/d/link"},
		[2]string{out + "/above/d", out + "/above/link"},
		[2]string{out + "/tree/d", out + "/tree/link"})
	defer stop()
	for range rounds(250) {
		for _, path := range []string{out + "/file/d/f.txt", out + "/above/d/f.txt"} {
			for tool, in := range map[string]args{
				"read_file": {"file_path": path}, "write_file": {"file_path": path, "content": "granted\n"},
				"edit":        {"file_path": path, "old_string": "granted", "new_string": "granted!"},
				"grep_search": {"path": path, "pattern": "secret|granted", "-C": 1},
			} {
				if r := b.runGranted(t, tool, in, path); strings.Contains(resultText(r), "secret") {
					t.Fatalf("%s %s: %s", tool, path, resultText(r))
				}
			}
		}
		tree := out + "/tree/d"
		b.runGranted(t, "write_file", args{"file_path": tree + "/new/g.txt", "content": "new\n"}, tree)
		for _, tool := range []string{"grep_search", "list_directory", "glob"} {
			r := b.runGranted(t, tool, args{"path": tree, "pattern": "secret"}, tree)
			if strings.Contains(resultText(r), ":secret") {
				t.Fatalf("%s: %s", tool, resultText(r))
			}
		}
	}
	stop()
	for _, dir := range []string{"file", "above", "tree"} {
		wantSame(t, dir, getAt(t, out+"/"+dir+"/evil/f.txt"), "secret\n")
		entries, err := os.ReadDir(out + "/" + dir + "/evil")
		if err != nil || len(entries) != 1 {
			t.Errorf("beside %s there is %v, %v", dir, entries, err)
		}
	}
}

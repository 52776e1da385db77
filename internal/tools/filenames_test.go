package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newNames(t testing.TB, files ...string) *FileNames {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("ignored.go\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := OpenRoots(RootsConfig{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	names := NewFileNames(roots)
	t.Cleanup(func() {
		names.Close()
		roots.Close()
	})
	return names
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	names := newNames(t, "main.go", "cmd/main/run.go", "cmd/Main_test.go", "docs/domain.md", "ignored.go", ".ignore", ".hidden")
	for _, test := range []struct {
		typed string
		limit int
		want  []string
	}{
		{"main", 10, []string{"main.go", "cmd/Main_test.go", "docs/domain.md", "cmd/main/run.go"}},
		{"main", 2, []string{"main.go", "cmd/Main_test.go"}},
		{"./cmd/", 10, []string{"cmd/Main_test.go", "cmd/main/run.go"}},
		{"", 1, []string{"main.go"}},
		{"ignored", 10, nil},
		{".hid", 10, nil},
		{"../", 10, nil},
		{"/etc", 10, nil},
		{"~/", 10, nil},
		{"main", 0, nil},
	} {
		if diff := cmp.Diff(test.want, names.Find(context.Background(), test.typed, test.limit)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.typed, diff)
		}
	}
}

// TestFileNamesDoesNotWait: a caller without time gets what is there, and
// Close leaves no walk behind.
func TestFileNamesDoesNotWait(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 300 {
		files = append(files, fmt.Sprintf("d%d/f.go", i))
	}
	names := newNames(t, files...)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	names.Find(ended, "f", 5)
	if got := names.Find(context.Background(), "f", 5); len(got) != 5 {
		t.Errorf("found %v", got)
	}
	names.mu.Lock()
	names.made = time.Time{}
	names.mu.Unlock()
	names.Find(ended, "f", 5)
	names.Close()
	names.Find(context.Background(), "f", 5)
}

// TestFileNamesOfALargeTree: where the names are not all known, what is in the
// directory that was typed is proposed all the same.
func TestFileNamesOfALargeTree(t *testing.T) {
	t.Parallel()
	names := newNames(t, "main.go", "cmd/main/run.go", "cmd/Main_test.go", "cmd/ignored.go", "cmd/.hidden", "cmd/.ignore", "docs/a.md")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	names.mu.Lock()
	names.made = time.Now() // as if a walk had ended early, with nothing
	names.mu.Unlock()
	for typed, want := range map[string][]string{
		"":          {"main.go", "cmd/", "docs/"},
		"c":         {"cmd/", "docs/"},
		"./cmd/":    {"cmd/Main_test.go", "cmd/main/"},
		"cmd/main":  {"cmd/main/", "cmd/Main_test.go"},
		"cmd/main/": {"cmd/main/run.go"},
		"cmd/.hid":  nil,
		"gone/x":    nil,
		"../":       nil,
	} {
		if diff := cmp.Diff(want, names.Find(ended, typed, 10)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
	names.mu.Lock()
	names.names = []fileName{newFileName("cmd/main/run.go"), newFileName("far/cmd.go")}
	names.mu.Unlock()
	if diff := cmp.Diff([]string{"cmd/", "cmd/main/run.go", "far/cmd.go"}, names.Find(ended, "cmd", 10)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkBestNames(b *testing.B) {
	names := make([]fileName, maxNames)
	for i := range names {
		names[i] = newFileName(fmt.Sprintf("some/folder/of/the/project%d/file%d.go", i%100, i))
	}
	for b.Loop() {
		bestNames(names, "file12", 20)
	}
}

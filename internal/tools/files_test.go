package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// toolBench is a conversation's file tools in a directory of its own.
type toolBench struct {
	dir   string
	roots *Roots
	state *FileState
	tools map[string]Tool
}

// newToolBench opens file tools on a fresh directory, with more allowed
// directories if given.
func newToolBench(t testing.TB, more ...string) *toolBench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return openToolBench(t, append([]string{dir}, more...)...)
}

// openToolBench opens file tools on the directories given.
func openToolBench(t testing.TB, dirs ...string) *toolBench {
	t.Helper()
	roots, err := OpenRoots(RootsConfig{Dirs: dirs, Home: dirs[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roots.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &toolBench{dir: roots.Dir(), roots: roots, state: NewFileState(), tools: map[string]Tool{}}
	for _, tool := range NewFileTools(FileConfig{Roots: roots, State: b.state}) {
		b.tools[tool.Spec().Name] = tool
	}
	return b
}

// put writes a file, making its directories.
func (b *toolBench) put(t testing.TB, name, content string) string {
	t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// get reads a file.
func (b *toolBench) get(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

type args map[string]any

// run calls a tool.
func (b *toolBench) run(t testing.TB, tool string, in args) Result {
	t.Helper()
	input, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return b.tools[tool].Run(t.Context(), &Call{ID: "1", Input: input})
}

// ok calls a tool that must succeed and returns its text.
func (b *toolBench) ok(t testing.TB, tool string, in args) string {
	t.Helper()
	r := b.run(t, tool, in)
	if r.IsError {
		t.Fatalf("%s %v failed: %s", tool, in, resultText(r))
	}
	if _, err := json.Marshal(r.Display); err != nil {
		t.Fatalf("%s: display form: %v", tool, err)
	}
	return resultText(r)
}

// fails calls a tool that must fail with a message that contains all of want.
func (b *toolBench) fails(t testing.TB, tool string, in args, want ...string) {
	t.Helper()
	r := b.run(t, tool, in)
	if !r.IsError {
		t.Fatalf("%s %v succeeded: %s", tool, in, resultText(r))
	}
	for _, w := range want {
		if !strings.Contains(resultText(r), w) {
			t.Errorf("%s %v: message lacks %q: %s", tool, in, w, resultText(r))
		}
	}
}

func resultText(r Result) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		if text, ok := block.(model.Text); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func wantText(t testing.TB, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("result lacks %q:\n%s", w, got)
		}
	}
}

func wantSame(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func testContext(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// touch sets when a file was modified: the higher the later.
func touch(t testing.TB, path string, when int) {
	t.Helper()
	at := time.Unix(1_700_000_000+int64(when), 0)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

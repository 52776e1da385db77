package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQwenSettings(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), t.TempDir()
	write := func(dir, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, ".qwen"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".qwen", "settings.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := RuleOptions{Dirs: Dirs{Home: home}, Root: root}
	read := func() []any {
		q := Qwen(o)
		servers := []string{}
		for _, name := range []string{"a", "b", "mine"} {
			if q.Servers[name] != nil {
				servers = append(servers, name+" "+string(q.Servers[name]))
			}
		}
		return []any{q.Model, q.CoreTools, servers}
	}
	none := []any{"", []string(nil), []string{}}
	if diff := cmp.Diff(none, read()); diff != "" {
		t.Errorf("without files (-want +got):\n%s", diff)
	}
	write(root, `{"model": {"name": "theirs"}, "tools": {"core": ["glob"]}, "mcpServers": {"a": {"command": "evil"}}}`)
	if diff := cmp.Diff([]any{"theirs", []string{"glob"}, []string{}}, read()); diff != "" {
		t.Errorf("of the project (-want +got):\n%s", diff)
	}
	write(home, `{ // the user's
		"model": {"name": "own"}, "tools": {"core": ["read_file"]}, "mcp": {"allowed": ["mine", "b"], "excluded": ["b"]},
		"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "mine": {"command":"z"},}}`)
	if diff := cmp.Diff([]any{"theirs", []string{"read_file"}, []string{`mine {"command":"z"}`}}, read()); diff != "" {
		t.Errorf("of both (-want +got):\n%s", diff)
	}
	write(root, `{"model": "of another kind", "tools": 5, "mcpServers": []}`)
	if diff := cmp.Diff([]any{"own", []string{"read_file"}, []string{`mine {"command":"z"}`}}, read()); diff != "" {
		t.Errorf("of other kinds (-want +got):\n%s", diff)
	}
	o.Skip = []Layer{User, Project}
	write(root, "not JSON")
	if diff := cmp.Diff(none, read()); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/settings"
)

func TestServersOfTheUserCountAndThoseOfAProjectDoNot(t *testing.T) {
	t.Parallel()
	config, root := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(config, "settings.json"), "{\"mcpServers\": {\n // mine\n \"a\": {\"command\": \"x\", \"args\": [1, ], },\n \"b\": {}}}")
	put(settings.ProjectFile(root), `{"mcpServers": {"evil": {"command": "y"}}}`)
	s, warnings, err := settings.Load(settings.LoadOptions{
		Dirs: settings.Dirs{Config: config}, Root: root,
		Given: []settings.Document{{Name: "--settings", Data: []byte(`{"mcpServers": {"b": {"url": "u"}}}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Objects(settings.MCPServers)
	if len(got) != 2 || string(got["a"]) != `{"command":"x","args":[1]}` || string(got["b"]) != `{"url":"u"}` {
		t.Errorf("got %s", got)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "mcpServers is ignored here") {
		t.Errorf("warnings: %v", warnings)
	}
	for text, want := range map[string]string{`{"mcpServers": []}`: "must be an object with objects", `{"mcpServers": {"a": 1}}`: "a is", `{"mcpServers": {" ": {}}}`: "needs a name"} {
		put(filepath.Join(config, "settings.json"), text)
		if _, _, err := settings.Load(settings.LoadOptions{Dirs: settings.Dirs{Config: config}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

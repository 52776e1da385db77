package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

func TestRemoveRulesLeavesTheRestAsItWas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, before, after string }{
		{"the last of a list", `{"permissions": {"allow": ["Edit", "Bash(npm test)"]}}`, `{"permissions": {"allow": ["Edit"]}}`},
		{"the first, with comments", "{\n  \"permissions\": {\n    \"allow\": [\n      // tests\n      \"Bash(npm test)\",\n      // edits\n      \"Edit\",\n    ]\n  }\n}\n",
			"{\n  \"permissions\": {\n    \"allow\": [\n      // tests\n      // edits\n      \"Edit\",\n    ]\n  }\n}\n"},
		{"all of them", `{"model": "x", "permissions": {"allow": ["Bash(npm test)"], "deny": ["Bash(npm test)"]}}`,
			`{"model": "x", "permissions": {"allow": [], "deny": ["Bash(npm test)"]}}`},
		{"none there", `{"permissions": {"allow": ["Edit"]}}`, `{"permissions": {"allow": ["Edit"]}}`},
		{"no list", `{}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := settings.LocalFile(root)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(test.before), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := policy.ParseRule("Bash(npm test)", policy.Allow, "")
			if err != nil {
				t.Fatal(err)
			}
			o := settings.SaveOptions{Root: root, Scope: settings.Local}
			if err := settings.RemoveRules(o, []policy.Rule{r}); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(file)
			if err != nil || string(after) != test.after {
				t.Errorf("%v, got:\n%s\nwant:\n%s", err, after, test.after)
			}
		})
	}
}

func TestRemoveRulesWithoutAFile(t *testing.T) {
	t.Parallel()
	r, err := policy.ParseRule("Edit", policy.Allow, "")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := settings.RemoveRules(settings.SaveOptions{Root: root, Scope: settings.Project}, []policy.Rule{r}); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(root); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

package settings_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/settings"
)

var update = flag.Bool("update", false, "rewrite generated parts of the manual")

func TestSettingAKeyKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, before, key string
		value             any
		want              string
	}{
		{"new file", "", "model", "m", "{\n  \"model\": \"m\"\n}\n"},
		{"empty object", "{}", "model", "m", "{\n  \"model\": \"m\"\n}"},
		{"nested in a new file", "", "permissions.deny", []string{"a", ",", "\",\"", "<b>"}, "{\n  \"permissions\": {\n    \"deny\": [\"a\", \",\", \"\\\",\\\"\", \"<b>\"]\n  }\n}\n"},
		{"replace", "{\n\t// mine\n\t\"model\" : \"a\" , // why\n\t\"maxTurns\": 3 // x\n}\n", "model", "b", "{\n\t// mine\n\t\"model\" : \"b\" , // why\n\t\"maxTurns\": 3 // x\n}\n"},
		{"append keeps the comment of the last", "{\n  \"model\": \"a\" // why\n  // end\n}\n", "maxTurns", 3, "{\n  \"model\": \"a\", // why\n  // end\n  \"maxTurns\": 3\n}\n"},
		{"append with a trailing comma", "{\n\t\"model\": \"a\", // why\n}\n", "maxTurns", 3, "{\n\t\"model\": \"a\", // why\n\t\"maxTurns\": 3,\n}\n"},
		{"append on one line", `{"model": "a"}`, "maxTurns", 3, `{"model": "a", "maxTurns": 3}`},
		{"append on one line with a comment", `{ "model": "a" /* c */ }`, "maxTurns", 3, `{ "model": "a", /* c */  "maxTurns": 3}`},
		{"nested append keeps the file's indentation", "{\n    \"permissions\": {\n        \"allow\": []\n    }\n}\n", "permissions.defaultMode", "plan", "{\n    \"permissions\": {\n        \"allow\": [],\n        \"defaultMode\": \"plan\"\n    }\n}\n"},
		{"windows lines and byte order mark", "\xef\xbb\xbf{\r\n  \"model\": \"a\"\r\n}\r\n", "maxTurns", 3, "\xef\xbb\xbf{\r\n  \"model\": \"a\",\r\n  \"maxTurns\": 3\r\n}\r\n"},
		{"comments around it all", "// head\n{ // in\n}\n// tail\n", "model", "m", "// head\n{ // in\n  \"model\": \"m\"\n}\n// tail\n"},
		{"a comment of two lines before the brace", "{/*\n*/}", "model", "m", "{/*\n*/\n  \"model\": \"m\"\n}"},
		{"a comment of two lines after the last", "{\n  \"model\": \"a\" /*\n*/}", "maxTurns", 3, "{\n  \"model\": \"a\", /*\n*/\n  \"maxTurns\": 3\n}"},
		{"a comment of two lines is no indentation", "{/*\n*/\"model\": \"a\"}", "permissions.deny", []string{"x"}, "{/*\n*/\"model\": \"a\", \"permissions\": {\n    \"deny\": [\"x\"]\n  }}"},
		{"entry of a map", "{}\n", "providers.x.headers.X-Team", "t", "{\n  \"providers\": {\n    \"x\": {\n      \"headers\": {\n        \"X-Team\": \"t\"\n      }\n    }\n  }\n}\n"},
		{"unknown keys stay", "{\"other\": [1, 2 /*x*/]}", "model", "m", "{\"other\": [1, 2 /*x*/], \"model\": \"m\"}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "settings.json")
			writeFile(t, file, c.before)
			if err := settings.SetKey(file, c.key, c.value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, mustRead(t, file)); diff != "" {
				t.Error(diff)
			}
			if err := settings.SetKey(file, c.key, c.value); err != nil || mustRead(t, file) != c.want {
				t.Errorf("setting it again changed the file: %v", err)
			}
		})
	}
}

func TestUnsettingAKeyKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, before, key, want string }{
		{"first", "{\n  \"model\": \"a\",\n  \"maxTurns\": 3\n}\n", "model", "{\n  \"maxTurns\": 3\n}\n"},
		{"last", "{\n  \"model\": \"a\",\n  \"maxTurns\": 3\n}\n", "maxTurns", "{\n  \"model\": \"a\"\n}\n"},
		{"last with a trailing comma", "{\n  \"model\": \"a\",\n  \"maxTurns\": 3,\n}\n", "maxTurns", "{\n  \"model\": \"a\",\n}\n"},
		{"only", "{\n  \"model\": \"a\"\n}\n", "model", "{\n}\n"},
		{"parents that get empty", "{\n  \"permissions\": {\n    \"deny\": []\n  },\n  \"model\": \"a\"\n}\n", "permissions.deny", "{\n  \"model\": \"a\"\n}\n"},
		{"comments stay", "{\n  \"model\": \"a\", // why\n  // about turns\n  \"maxTurns\": 3 // three\n}\n", "maxTurns", "{\n  \"model\": \"a\" // why\n  // about turns\n // three\n}\n"},
		{"absent", "{ }", "model", "{ }"},
		{"absent inside", "{\"permissions\": {}}", "permissions.deny", "{\"permissions\": {}}"},
		{"unknown key", "{\"modle\": 1}", "modle", "{}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "settings.json")
			writeFile(t, file, c.before)
			if err := settings.UnsetKey(file, c.key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, mustRead(t, file)); diff != "" {
				t.Error(diff)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "no", "settings.json")
	if err := settings.UnsetKey(missing, "model"); err != nil {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(missing)); err == nil {
		t.Error("unsetting made the directory")
	}
}

func TestBrokenFilesAndValuesAreNotWritten(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, before, key string
		value             any
	}{
		{"broken file", "{ broken", "model", "m"},
		{"unknown key", "{}", "modle", "m"},
		{"wrong type", "{}", "model", 3},
		{"wrong value", "{}", "permissions.defaultMode", "all"},
		{"no object on the way", `{"permissions": 1}`, "permissions.deny", []string{"x"}},
		{"set twice", `{"model": "a", "model": "b"}`, "model", "c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "settings.json")
			writeFile(t, file, c.before)
			if err := settings.SetKey(file, c.key, c.value); err == nil {
				t.Error("no error")
			}
			if got := mustRead(t, file); got != c.before {
				t.Errorf("the file is now %q", got)
			}
		})
	}
}

func TestFilesAreMadePrivateAndKeepTheirMode(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	file := filepath.Join(t.TempDir(), "config", "agent", "settings.json")
	if err := settings.SetKey(file, "model", "m"); err != nil {
		t.Fatal(err)
	}
	perm := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if perm(file) != 0o600 || perm(filepath.Dir(file)) != 0o700 {
		t.Errorf("made with %v in %v", perm(file), perm(filepath.Dir(file)))
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := settings.SetKey(file, "model", "n"); err != nil || perm(file) != 0o640 {
		t.Errorf("mode after a change: %v, %v", perm(file), err)
	}
	left, _ := os.ReadDir(filepath.Dir(file))
	if len(left) != 1 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestALinkedFileIsReplacedAtItsTarget(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	for _, before := range []string{"{}", ""} { // there, or dangling
		dir := t.TempDir()
		target, link := filepath.Join(dir, "dotfiles", "agent.json"), filepath.Join(dir, "settings.json")
		if before != "" {
			writeFile(t, target, before)
		}
		if err := os.Symlink(filepath.Join("dotfiles", "agent.json"), link); err != nil {
			t.Fatal(err)
		}
		if err := settings.SetKey(link, "model", "m"); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
			t.Error("the link is gone")
		}
		if got := mustRead(t, target); !strings.Contains(got, `"model": "m"`) {
			t.Errorf("target holds %q", got)
		}
	}
}

func TestProjectFileThatLinksOutOfTheProjectIsNotWritten(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	dir := t.TempDir()
	victim := filepath.Join(dir, "config", "settings.json")
	writeFile(t, victim, "{}")
	root := filepath.Join(dir, "repo")
	if err := os.MkdirAll(filepath.Join(root, ".agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, settings.ProjectFile(root)); err != nil {
		t.Fatal(err)
	}
	if err := settings.RunSet(settings.Target{Layer: settings.Project, Root: root}, "model", "x"); err == nil {
		t.Error("it was followed")
	}
	if got := mustRead(t, victim); got != "{}" {
		t.Errorf("the file outside is now %q", got)
	}
	other := filepath.Join(dir, "repo2") // the directory is the link
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(victim), filepath.Join(other, ".agent")); err != nil {
		t.Fatal(err)
	}
	if err := settings.RunSet(settings.Target{Layer: settings.Project, Root: other}, "model", "x"); err == nil {
		t.Error("a linked directory was followed")
	}
}

func TestRunSetAndUnset(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.MkdirAll(h.options.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	user := settings.Target{Layer: settings.User, Dirs: h.options.Dirs}
	project := settings.Target{Layer: settings.Project, Root: h.options.Root}
	for _, c := range []struct {
		target     settings.Target
		name, text string
	}{
		{user, "model", "a"}, {user, "maxTurns", " 7 "}, {user, "permissions.deny", `["a", "b"]`}, {project, "permissions.deny", "Bash(x, y)"},
		{user, "providers.x.headers", `{"A": "b"}`}, {user, "providers.x.headers.B", "c"}, {project, "model", "b"},
	} {
		if err := settings.RunSet(c.target, c.name, c.text); err != nil {
			t.Error(err)
		}
	}
	s := h.mustLoad()
	if s.String(settings.Model) != "b" || s.Int(settings.MaxTurns) != 7 {
		t.Errorf("model %q, turns %d", s.String(settings.Model), s.Int(settings.MaxTurns))
	}
	if diff := cmp.Diff([]string{"a", "b", "Bash(x, y)"}, s.List(settings.Deny)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "b", "B": "c"}, s.Provider("x").Headers); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{"permissions.defaultMode": "yolo", "network.proxy": "x", "model": "scripted/x"} {
		if err := settings.RunSet(project, name, text); err == nil {
			t.Errorf("%s was set for the project", name)
		}
	}
	for name, text := range map[string]string{"maxTurns": "many", "permissions.deny": "[", "providers.x.headers": "x", "nope": "x", "permissions": "{}"} {
		if err := settings.RunSet(user, name, text); err == nil {
			t.Errorf("%s=%s was accepted", name, text)
		}
	}
	if err := settings.RunUnset(project, "model"); err != nil || h.mustLoad().String(settings.Model) != "a" {
		t.Errorf("unset: %v", err)
	}
}

const (
	writerEnv = "SETTINGS_TEST_WRITER" // file and writer's number
	writers   = 8
	updates   = 100
)

// runWriter is the child process of the test below: it sets keys of its own
// and one that all share.
func runWriter(arg string) int {
	file, id, _ := strings.Cut(arg, "|")
	if err := writeMany(file, id); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func writeMany(file, id string) error {
	for i := range updates {
		if err := settings.SetKey(file, fmt.Sprintf("providers.w%s-%d.apiKeyEnv", id, i), "KEY"); err != nil {
			return err
		}
		if i%10 == 0 {
			if err := settings.SetKey(file, "model", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// users.md row 44.
func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	file := filepath.Join(config, "settings.json")
	writeFile(t, file, "{\n  // my comment\n  \"maxTurns\": 5, // and another\n}\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for id := range writers {
		wg.Go(func() {
			if id%2 == 0 { // half of them in this process
				if err := writeMany(file, fmt.Sprint(id)); err != nil {
					t.Error(err)
				}
				return
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", writerEnv, file, id))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer %d: %v\n%s", id, err, out)
			}
		})
	}
	var readers sync.WaitGroup
	readers.Go(func() { // a reader sees a whole file at any moment
		for range 300 {
			if _, _, err := settings.Load(settings.LoadOptions{Dirs: settings.Dirs{Config: config}}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Wait()
	readers.Wait()
	s, _, err := settings.Load(settings.LoadOptions{Dirs: settings.Dirs{Config: config}})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(s.Providers()); got != writers*updates {
		t.Errorf("%d updates are there, want %d", got, writers*updates)
	}
	content := mustRead(t, file)
	for _, comment := range []string{"// my comment", "// and another"} {
		if strings.Count(content, comment) != 1 {
			t.Errorf("%q is gone", comment)
		}
	}
}

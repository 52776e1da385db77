package settings_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

// project is a house with a state directory and a project that is there.
func project(t testing.TB) *house {
	t.Helper()
	h := newHouse(t)
	h.options.Dirs.State = filepath.Join(h.dir, "state")
	if err := os.MkdirAll(h.options.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func parsed(t testing.TB, b policy.Behavior, texts ...string) []policy.Rule {
	t.Helper()
	var out []policy.Rule
	for _, text := range texts {
		r, err := policy.ParseRule(text, b, "test")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func (h *house) save(scope settings.Layer, rules ...policy.Rule) (string, error) {
	return settings.SaveRules(settings.SaveOptions{Dirs: h.options.Dirs, Root: h.options.Root, Scope: scope}, rules)
}

func (h *house) mustSave(scope settings.Layer, rules ...policy.Rule) string {
	h.t.Helper()
	file, err := h.save(scope, rules...)
	if err != nil {
		h.t.Fatal(err)
	}
	return file
}

// ledger returns the only file of approvals.
func (h *house) ledger() string {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.options.Dirs.State, "approvals", "*.json"))
	if err != nil || len(found) != 1 {
		h.t.Fatalf("files of approvals: %v, %v", found, err)
	}
	return found[0]
}

func TestAStrangersRepositoryAllowsNothing(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".agent/settings.json", ".agent/settings.local.json", ".claude/settings.json", ".claude/settings.local.json"} {
		h := project(t).at("project/"+file, "{\"permissions\":\n{\"allow\": [\"Bash\", \"Bash(make)\"]}}")
		if got := h.shell("make"); got != policy.Ask {
			t.Errorf("%s allows: %s", file, got)
		}
		_, warnings := h.mustRules()
		oneWarning(t, warnings, filepath.Join(h.options.Root, file), 2, "permissions.allow is ignored here")
	}
}

func TestWhatIsSavedForTheProjectIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, dir, want string }{
		{"bare", "", ".agent/settings.local.json"},
		{"claude", ".claude", ".claude/settings.local.json"},
		{"agent", ".agent", ".agent/settings.local.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := project(t)
			if c.dir != "" {
				h.at("project/"+c.dir+"/keep", "")
			}
			if h.shell("make test") != policy.Ask {
				t.Fatal("it isn't asked to begin with")
			}
			file := h.mustSave(settings.Local, append(parsed(t, policy.Allow, "Bash(make test)"), parsed(t, policy.Deny, "Bash(curl:*)")...)...)
			if want := filepath.Join(h.options.Root, c.want); file != want {
				t.Errorf("saved to %s, want %s", file, want)
			}
			rules, warnings := h.mustRules()
			noWarnings(t, warnings)
			if diff := cmp.Diff([]string{"allow Bash(make test)", "deny Bash(curl:*)"}, sorted(rules)); diff != "" {
				t.Error(diff)
			}
			if h.shell("make test") != policy.Allow || h.shell("make") != policy.Ask || h.shell("curl x") != policy.Deny {
				t.Error("the saved rules are not in force")
			}
			before := mustRead(t, file) + mustRead(t, h.ledger())
			h.mustSave(settings.Local, parsed(t, policy.Allow, " Bash(make test) ")...)
			if got := mustRead(t, file) + mustRead(t, h.ledger()); got != before {
				t.Errorf("saved twice: %s", got)
			}
		})
	}
}

func sorted(list []string) []string {
	out := append([]string(nil), list...)
	for i := range out {
		for k := i + 1; k < len(out); k++ {
			if out[k] < out[i] {
				out[i], out[k] = out[k], out[i]
			}
		}
	}
	return out
}

// Only what the user allowed counts, rule by rule and file by file.
func TestApprovalsAreForExactlyThatRuleInThatFile(t *testing.T) {
	t.Parallel()
	h := project(t)
	file := h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...)
	writeFile(t, file, `{"permissions": {"allow": ["Bash(make)", "Bash", "bash(make)"]}}`)
	rules, warnings := h.mustRules()
	if diff := cmp.Diff([]string{"allow Bash(make)"}, rules); diff != "" {
		t.Error(diff)
	}
	oneWarning(t, warnings, file, 1, "permissions.allow is ignored here", "what you allowed here yourself counts")

	// nothing is ignored, so nothing is said
	writeFile(t, file, `{"permissions": {"allow": []}}`)
	_, warnings = h.mustRules()
	noWarnings(t, warnings)

	// taken out of the file by the user, and in the next pull's other file
	writeFile(t, file, `{}`)
	h.at("project/.agent/settings.json", `{"permissions": {"allow": ["Bash(make)"]}}`).at("project/.claude/settings.local.json", `{"permissions": {"allow": ["Bash(make)"]}}`)
	if rules, _ := h.mustRules(); len(rules) != 0 {
		t.Errorf("rules %v", rules)
	}
	// without the state directory nobody knows
	writeFile(t, file, `{"permissions": {"allow": ["Bash(make)"]}}`)
	h.options.Dirs.State = ""
	if rules, _ := h.mustRules(); len(rules) != 0 {
		t.Errorf("without state: rules %v", rules)
	}
}

func TestACopiedRepositoryIsNotTrusted(t *testing.T) {
	t.Parallel()
	h := project(t)
	content := mustRead(t, h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...))
	record := mustRead(t, h.ledger())
	h.options.Root = filepath.Join(h.dir, "copy")
	h.at("copy/.agent/settings.local.json", content)
	if got := h.shell("make"); got != policy.Ask {
		t.Errorf("in a copy: %s", got)
	}
	// nor with a record of the other project in the copy's place
	h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(ninja)")...)
	found, err := filepath.Glob(filepath.Join(h.options.Dirs.State, "approvals", "*.json"))
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, file := range found {
		writeFile(t, file, record)
	}
	if got := h.shell("make"); got != policy.Ask {
		t.Errorf("with the other's record: %s", got)
	}
}

func TestARootGivenThroughALink(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	h := project(t)
	link := filepath.Join(h.dir, "link")
	if err := os.Symlink(h.options.Root, link); err != nil {
		t.Fatal(err)
	}
	real := h.options.Root
	h.options.Root = link
	if file := h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)", "Edit(/src/**)")...); file != settings.LocalFile(link) {
		t.Errorf("saved to %s", file)
	}
	for _, root := range []string{link, real} {
		h.options.Root = root
		rules, warnings, err := h.rules()
		noWarnings(t, warnings)
		if err != nil || len(rules) != 2 || rules[1].Base != mustReal(t, real) {
			t.Errorf("through %s: rules %+v, %v", root, rules, err)
		}
	}
	if err := settings.RunSet(settings.Target{Layer: settings.Project, Root: link}, "model", "m"); err != nil {
		t.Errorf("setting a key: %v", err)
	}
}

func mustReal(t testing.TB, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestSavedRulesForTheUser(t *testing.T) {
	t.Parallel()
	h := project(t)
	rules := append(parsed(t, policy.Allow, "Bash(make)"), parsed(t, policy.Ask, "Bash(git push:*)")...)
	if file := h.mustSave(settings.User, append(rules, parsed(t, policy.Deny, "WebFetch")...)...); file != h.file(settings.User) {
		t.Errorf("saved to %s", file)
	}
	got, warnings := h.mustRules()
	noWarnings(t, warnings)
	if diff := cmp.Diff([]string{"allow Bash(make)", "ask Bash(git push:*)", "deny WebFetch"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(h.options.Dirs.State); err == nil {
		t.Error("something was recorded for a project")
	}
}

func TestSavingKeepsCommentsAndFormatting(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, before, want string }{
		{"no file", "", "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(make)\",\n      \"Edit(/<src>/**)\"\n    ]\n  }\n}\n"},
		{"empty list", "{\"permissions\": {\"allow\": []}}", "{\"permissions\": {\"allow\": [\n      \"Bash(make)\",\n      \"Edit(/<src>/**)\"\n    ]}}"},
		{"one line", `{"permissions": {"allow": ["A"], "deny": []}}`, `{"permissions": {"allow": ["A", "Bash(make)", "Edit(/<src>/**)"], "deny": []}}`},
		{"one is there", "{\"permissions\": {\"allow\": [\n\t\"Bash(make)\" // why\n]}}\n", "{\"permissions\": {\"allow\": [\n\t\"Bash(make)\", // why\n\t\"Edit(/<src>/**)\"\n]}}\n"},
		{"comments and trailing comma", "// head\n{\n    \"permissions\": { // p\n        \"allow\": [ // a\n            \"A\", /* b */ // c\n            // d\n        ],\n        \"x\" : 1 ,\n    },\n}\n", "// head\n{\n    \"permissions\": { // p\n        \"allow\": [ // a\n            \"A\", /* b */ // c\n            // d\n            \"Bash(make)\",\n            \"Edit(/<src>/**)\",\n        ],\n        \"x\" : 1 ,\n    },\n}\n"},
		{"windows lines", "\xef\xbb\xbf{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"A\"\r\n    ]\r\n  }\r\n}\r\n", "\xef\xbb\xbf{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"A\",\r\n      \"Bash(make)\",\r\n      \"Edit(/<src>/**)\"\r\n    ]\r\n  }\r\n}\r\n"},
		{"theirs", "{\n  \"permissions\": {\n    \"allow\": [\n      \"A\"\n    ],\n    \"deny\": []\n  },\n  \"hooks\": {}\n}", "{\n  \"permissions\": {\n    \"allow\": [\n      \"A\",\n      \"Bash(make)\",\n      \"Edit(/<src>/**)\"\n    ],\n    \"deny\": []\n  },\n  \"hooks\": {}\n}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := project(t)
			if c.before != "" {
				h.write(settings.Local, c.before)
			}
			file := h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)", "Edit(/<src>/**)")...)
			if diff := cmp.Diff(c.want, mustRead(t, file)); diff != "" {
				t.Error(diff)
			}
			if rules, _ := h.mustRules(); len(rules) != 2 {
				t.Errorf("rules %v", rules)
			}
		})
	}
}

func TestWhatCannotBeSavedChangesNothing(t *testing.T) {
	t.Parallel()
	long := parsed(t, policy.Allow, "Bash(echo "+strings.Repeat("x", 1<<20)+")")
	good := parsed(t, policy.Allow, "Bash(make)")
	tiered := parsed(t, policy.Allow, "Bash(make)")
	tiered[0].Tier = policy.TierUser
	cases := map[string]struct {
		before string
		scope  settings.Layer
		rules  []policy.Rule
		want   string
	}{
		"broken file":      {"{ broken", settings.Local, good, "settings.local.json:1:"},
		"no list":          {"{\n\"permissions\": {\"allow\": \"Bash\"}}", settings.Local, good, "settings.local.json:2: permissions.allow must be a list of strings, not a string"},
		"no object":        {`{"permissions": []}`, settings.Local, good, "permissions must be an object"},
		"set twice":        {`{"permissions": {"allow": [], "allow": []}}`, settings.Local, good, "set twice"},
		"malformed rule":   {`{}`, settings.Local, []policy.Rule{good[0], {Text: "Bash(rm", Behavior: policy.Allow}}, "malformed"},
		"no rule":          {`{}`, settings.Local, []policy.Rule{{Behavior: policy.Allow}}, "empty rule"},
		"no behaviour":     {`{}`, settings.Local, []policy.Rule{{Text: "Bash"}}, "no rule of a list"},
		"policy file":      {`{}`, settings.Local, tiered, "no rule of a list"},
		"not UTF-8":        {`{}`, settings.Local, parsed(t, policy.Allow, "Bash(echo \xff)"), "not UTF-8"},
		"too large":        {`{}`, settings.Local, long, "larger than"},
		"managed settings": {`{}`, settings.Managed, good, "rules can be saved for user, project and local, not managed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := project(t).write(settings.Local, c.before)
			if _, err := h.save(c.scope, c.rules...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if got := mustRead(t, h.file(settings.Local)); got != c.before {
				t.Errorf("the file is now %q", got)
			}
			if _, err := os.Stat(h.options.Dirs.State); err == nil {
				t.Error("something was recorded")
			}
		})
	}
}

func TestSavingNeedsAHome(t *testing.T) {
	t.Parallel()
	h := project(t)
	h.options.Dirs = settings.Dirs{}
	for _, scope := range []settings.Layer{settings.User, settings.Local} {
		if _, err := h.save(scope, parsed(t, policy.Allow, "Bash(make)")...); !errors.Is(err, settings.ErrNoHome) {
			t.Errorf("%v: error %v", scope, err)
		}
	}
	if _, err := os.Stat(h.file(settings.Local)); err == nil {
		t.Error("the project's file was written")
	}
	h.mustSave(settings.Local, parsed(t, policy.Deny, "Bash(curl:*)")...) // needs no record
	if rules, _ := h.mustRules(); len(rules) != 1 {
		t.Errorf("rules %v", rules)
	}
}

// A stranger's link must not turn an approval for one project into one for all.
func TestSavingDoesNotFollowLinksOutOfTheProject(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	h := project(t).write(settings.User, "{}").at("project/.agent/keep", "")
	if err := os.Symlink(h.file(settings.User), h.file(settings.Local)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.save(settings.Local, parsed(t, policy.Allow, "Bash(make)")...); err == nil || !strings.Contains(err.Error(), "leads out of the project") {
		t.Errorf("error %v", err)
	}
	if got := mustRead(t, h.file(settings.User)); got != "{}" {
		t.Errorf("the user's file is now %s", got)
	}
	linked := project(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(linked.options.Root, ".claude")); err != nil {
		t.Fatal(err)
	}
	if file := linked.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...); file != linked.file(settings.Local) {
		t.Errorf("saved to %s", file)
	}
}

func TestABrokenRecordAllowsNothingAndIsMovedAside(t *testing.T) {
	t.Parallel()
	whole := project(t)
	whole.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...)
	good := mustRead(t, whole.ledger())
	cases := map[string]string{
		"empty": "", "cut off": good[:len(good)-4], "text behind": good + "{}", "other keys": strings.Replace(good, `"rules"`, `"all"`, 1),
		"no object": "[]", "other project": strings.Replace(good, "project", "projecu", 1), "too large": good + strings.Repeat(" ", 1<<20),
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := project(t)
			file := h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...)
			content := strings.ReplaceAll(content, whole.dir, h.dir)
			writeFile(t, h.ledger(), content)
			if got := h.shell("make"); got != policy.Ask {
				t.Errorf("the rule gives %s", got)
			}
			_, warnings := h.mustRules()
			if len(warnings) != 2 || warnings[0].File != file {
				t.Fatalf("warnings %v", warnings)
			}
			oneWarning(t, warnings[1:], h.ledger(), 0, "what you allowed in this project is not in force")
			h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(ninja)")...)
			if h.shell("make") != policy.Ask || h.shell("ninja") != policy.Allow {
				t.Errorf("after a save: make %s, ninja %s", h.shell("make"), h.shell("ninja"))
			}
			if got := mustRead(t, h.ledger()+".broken"); got != content {
				t.Errorf("moved aside: %q", got)
			}
		})
	}
}

func TestRecordsAreMadePrivate(t *testing.T) {
	t.Parallel()
	skipOn(t, "windows")
	h := project(t)
	h.mustSave(settings.Local, parsed(t, policy.Allow, "Bash(make)")...)
	for path, want := range map[string]os.FileMode{h.ledger(): 0o600, filepath.Dir(h.ledger()): 0o700, h.file(settings.Local): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has %v", path, info.Mode())
		}
	}
}

func TestWhereNothingCanBeWrittenTheErrorSaysWhere(t *testing.T) {
	t.Parallel()
	h := project(t).at("project/.agent", "a file")
	if _, err := h.save(settings.Local, parsed(t, policy.Allow, "Bash(make)")...); err == nil || !strings.Contains(err.Error(), filepath.Join(h.options.Root, ".agent")) {
		t.Errorf("error %v", err)
	}
	h = project(t).at("state", "a file")
	file, err := h.save(settings.Local, parsed(t, policy.Allow, "Bash(make)")...)
	if err == nil || !strings.Contains(err.Error(), "does not count") || !strings.Contains(err.Error(), h.options.Dirs.State) || file == "" {
		t.Errorf("saved to %q, error %v", file, err)
	}
	if got := h.shell("make"); got != policy.Ask {
		t.Errorf("half saved: %s", got)
	}
}

const (
	saverEnv = "SETTINGS_TEST_SAVER" // the house's directory and the saver's number
	savers   = 20
	saves    = 50
)

// runSaver is the child process of the test below.
func runSaver(arg string) int {
	dir, id, _ := strings.Cut(arg, "|")
	dirs := settings.Dirs{Home: dir, Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}
	for i := range saves {
		r, err := policy.ParseRule(fmt.Sprintf("Bash(make %s-%d)", id, i), policy.Allow, "")
		if err == nil {
			_, err = settings.SaveRules(settings.SaveOptions{Dirs: dirs, Root: filepath.Join(dir, "project"), Scope: settings.Local}, []policy.Rule{r})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestManyProcessesSaveAndLoseNothing(t *testing.T) {
	t.Parallel()
	h := project(t).write(settings.Local, "{\n  // mine\n  \"permissions\": {\"allow\": []}\n}\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for id := range savers {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", saverEnv, h.dir, id))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("saver %d: %v\n%s", id, err, out)
			}
		})
	}
	wg.Wait()
	rules, warnings := h.mustRules()
	noWarnings(t, warnings)
	have := map[string]bool{}
	for _, r := range rules {
		have[r] = true
	}
	if len(rules) != savers*saves || len(have) != savers*saves {
		t.Errorf("%d rules, %d of them different, want %d", len(rules), len(have), savers*saves)
	}
	if !strings.Contains(mustRead(t, h.file(settings.Local)), "// mine") {
		t.Error("the comment is gone")
	}
}

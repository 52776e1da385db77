package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

// rules loads the house and returns its rules, and the warnings of both.
func (h *house) rules() ([]policy.Rule, []settings.Warning, error) {
	h.t.Helper()
	s, loading, err := h.load()
	if err != nil {
		h.t.Fatal(err)
	}
	rules, warnings, err := settings.Rules(s, settings.RuleOptions{Dirs: h.options.Dirs, Root: h.options.Root})
	return rules, append(loading, warnings...), err
}

// mustRules returns the rules as "behaviour text", and the warnings.
func (h *house) mustRules() ([]string, []settings.Warning) {
	h.t.Helper()
	rules, warnings, err := h.rules()
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, r := range rules {
		out = append(out, string(r.Behavior)+" "+r.Text)
	}
	return out, warnings
}

// decide is what the engine says of a call in default mode.
func (h *house) decide(tool, input string) policy.Behavior {
	h.t.Helper()
	rules, _, err := h.rules()
	if err != nil {
		h.t.Fatal(err)
	}
	return policy.NewEngine(rules).Decide(policy.Facts{
		Tool: tool, Class: policy.ClassExec, Mode: policy.ModeDefault, Input: []byte(input),
		Cwd: h.options.Root, Home: h.dir,
	}).Behavior
}

func (h *house) shell(command string) policy.Behavior {
	h.t.Helper()
	return h.decide("run_shell_command", fmt.Sprintf(`{"command": %q}`, command))
}

// at writes a file from the house's directory on.
func (h *house) at(path, content string) *house {
	h.t.Helper()
	writeFile(h.t, filepath.Join(h.dir, path), content)
	return h
}

func noWarnings(t *testing.T, warnings []settings.Warning) {
	t.Helper()
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
}

// oneWarning checks for the only warning.
func oneWarning(t *testing.T, warnings []settings.Warning, file string, line int, parts ...string) {
	t.Helper()
	if len(warnings) != 1 {
		t.Fatalf("%d warnings, want one: %v", len(warnings), warnings)
	}
	w := warnings[0]
	if w.File != file || w.Line != line {
		t.Errorf("warning at %s:%d, want %s:%d", w.File, w.Line, file, line)
	}
	for _, part := range parts {
		if !strings.Contains(w.Message, part) {
			t.Errorf("warning %q doesn't say %q", w.Message, part)
		}
	}
}

func TestRulesOfAllLayersWithOriginAndBase(t *testing.T) {
	t.Parallel()
	h := newHouse(t).
		write(settings.User, "{\"permissions\": {\n \"allow\": [\"Bash(make:*)\"],\n \"ask\": [\"Bash(git push:*)\"],\n \"deny\": [\n  \"Read(/secrets/**)\"]}, \"tools\": {\"allowed\": [\"Glob\"], \"disallowed\": [\"WebFetch\"]}}").
		write(settings.Project, `{"permissions": {"ask": ["Edit(/src/**)"], "deny": ["Read(/secrets/**)"]}}`).
		write(settings.Local, `{"tools": {"disallowed": ["Write"]}}`).
		write(settings.Managed, `{"permissions": {"deny": ["Bash(curl:*)"]}}`)
	rules, warnings, err := h.rules()
	if err != nil {
		t.Fatal(err)
	}
	noWarnings(t, warnings)
	root, err := filepath.EvalSymlinks(h.options.Root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, strings.Join([]string{string(r.Behavior), r.Text, r.Origin, r.Base}, "|"))
	}
	user, project, local, managed := h.file(settings.User), h.file(settings.Project), h.file(settings.Local), h.file(settings.Managed)
	want := []string{
		"allow|Bash(make:*)|permissions.allow in user " + user + ":2|",
		"ask|Bash(git push:*)|permissions.ask in user " + user + ":3|",
		"deny|Read(/secrets/**)|permissions.deny in user " + user + ":5|",
		"allow|Glob|tools.allowed in user " + user + ":5|",
		"deny|WebFetch|tools.disallowed in user " + user + ":5|",
		"ask|Edit(/src/**)|permissions.ask in project " + project + ":1|" + root,
		"deny|Read(/secrets/**)|permissions.deny in project " + project + ":1|" + root, // another directory than the user's
		"deny|Write|tools.disallowed in local " + local + ":1|" + root,
		"deny|Bash(curl:*)|permissions.deny in managed " + managed + ":1|",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedRulesOfOursAreErrors(t *testing.T) {
	t.Parallel()
	h := newHouse(t).write(settings.User, "{\"permissions\": {\n\"deny\": [\"Bash(rm\", \"Read\"], \"ask\": [\"(x)\"]}}")
	rules, _, err := h.rules()
	if err == nil || len(rules) != 1 {
		t.Fatalf("rules %v, error %v", rules, err)
	}
	for _, want := range []string{"permissions.deny (user " + h.file(settings.User) + ":2)", `"Bash(rm" is malformed`, "permissions.ask"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q doesn't say %q", err, want)
		}
	}
}

func TestRulesThatCanNeverMatchAreWarnedOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"allow": "it allows nothing", "ask": "it asks for nothing", "deny": "NOTHING IS DENIED"} {
		h := newHouse(t).write(settings.User, "{\"permissions\": {\n\""+key+"\": [\"WebFetch(example.com)\"]}}")
		rules, warnings := h.mustRules()
		if len(rules) != 0 {
			t.Errorf("rules %v", rules)
		}
		oneWarning(t, warnings, h.file(settings.User), 2, "permissions."+key, `"WebFetch(example.com)" can never match`, want)
	}
}

func TestOtherToolsDenialsAndQuestionsAlwaysCount(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		".claude/settings.json", "project/.claude/settings.json", "project/.claude/settings.local.json",
		".qwen/settings.json", "project/.qwen/settings.json",
	} {
		h := newHouse(t).at(file, "{ // mine\n\"theme\": 1, \"permissions\": {\"mode\": [], \"deny\": [\"Bash(curl:*)\", \"Read(/secrets/**)\"],\n\"ask\": [\"Bash(ls)\"],},}")
		rules, warnings, err := h.rules()
		if err != nil || len(rules) != 3 {
			t.Fatalf("%s: rules %v, %v", file, rules, err)
		}
		noWarnings(t, warnings)
		tool := strings.TrimPrefix(filepath.Base(filepath.Dir(file)), ".")
		if want := "permissions.ask in " + tool + " " + filepath.Join(h.dir, file) + ":3"; rules[2].Origin != want {
			t.Errorf("origin %q, want %q", rules[2].Origin, want)
		}
		if h.shell("curl x") != policy.Deny || h.shell("ls") != policy.Ask || h.shell("pwd") != policy.Allow {
			t.Errorf("%s: curl %s, ls %s, pwd %s", file, h.shell("curl x"), h.shell("ls"), h.shell("pwd"))
		}
		if atHome := !strings.HasPrefix(file, "project/"); atHome != (rules[1].Base == "") {
			t.Errorf("%s: base %q", file, rules[1].Base)
		}
	}
	for _, file := range []string{".gemini/settings.json", "project/.gemini/settings.json", ".qwen/settings.json"} {
		for _, content := range []string{`{"tools": {"exclude": ["run_shell_command(curl)", "WebFetchTool"]}}`, `{"excludeTools": ["ShellTool(curl)", "web_fetch"]}`} {
			h := newHouse(t).at(file, content)
			_, warnings := h.mustRules()
			noWarnings(t, warnings)
			if h.shell("curl -s x") != policy.Deny || h.shell("curly") == policy.Deny || h.decide("web_fetch", `{"url": "https://x.test"}`) != policy.Deny {
				t.Errorf("%s %s is not in force", file, content)
			}
		}
	}
	h := newHouse(t).at(".gemini/settings.json", `{"tools": {"confirmationRequired": ["run_shell_command(ls)"]}}`)
	if got := h.shell("ls -l"); got != policy.Ask {
		t.Errorf("confirmationRequired: %s", got)
	}
}

func TestOtherToolsAllowRulesCountWhenImported(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"claude": `{"permissions": {"allow": ["Bash(make)"]}}`,
		"qwen":   `{"permissions": {"allow": ["Bash(make)"]}, "tools": {"allowed": ["ShellTool(go test)"]}}`,
		"gemini": `{"tools": {"allowed": ["run_shell_command(make)"]}, "allowedTools": ["ShellTool(go test)"]}`,
	}
	for tool, content := range files {
		home := newHouse(t).at("."+tool+"/settings.json", content)
		if rules, warnings := home.mustRules(); len(rules) != 0 || len(warnings) != 0 {
			t.Errorf("%s, not imported: rules %v, warnings %v", tool, rules, warnings)
		}
		for other := range files {
			home.write(settings.User, `{"permissions": {"import": ["`+other+`"]}}`)
			if got := home.shell("make"); (got == policy.Allow) != (other == tool) {
				t.Errorf("with %s imported, %s's rule gives %s", other, tool, got)
			}
		}
		home.write(settings.User, `{"permissions": {"import": ["claude", "qwen", "gemini"]}}`)
		prefix := home.shell("make all") == policy.Allow && home.shell("go test ./...") == policy.Allow
		if prefix != (tool != "claude") {
			t.Errorf("%s: a command without a star is taken for a prefix: %v", tool, prefix)
		}
		project := newHouse(t).write(settings.User, `{"permissions": {"import": ["claude", "qwen", "gemini"]}}`).at("project/."+tool+"/settings.json", "\n"+content)
		rules, warnings := project.mustRules()
		if len(rules) != 0 || len(warnings) == 0 {
			t.Errorf("%s in a project: rules %v, warnings %v", tool, rules, warnings)
		}
		for _, w := range warnings {
			if !strings.Contains(w.Message, "ignored here") || w.Line != 2 {
				t.Errorf("warning %v", w)
			}
		}
	}
}

func TestImportTakesKnownToolsOnly(t *testing.T) {
	t.Parallel()
	_, _, err := newHouse(t).write(settings.User, `{"permissions": {"import": ["codex"]}}`).load()
	if err == nil || !strings.Contains(err.Error(), `permissions.import must be a list of any of "claude", "qwen", "gemini"`) {
		t.Errorf("error %v", err)
	}
	_, warnings := newHouse(t).at(".claude/settings.json", `{"permissions": {"allow": ["Bash"]}}`).
		write(settings.Project, `{"permissions": {"import": ["claude"]}}`).mustRules()
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "permissions.import is ignored here") {
		t.Errorf("warnings %v", warnings)
	}
}

// What is broken in another tool's file ends nothing, but nobody is to believe
// that its denials hold.
func TestBrokenFilesOfOtherToolsAreWarnedOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		content string
		line    int
		want    string
	}{
		"syntax":         {"{\n\"permissions\": {\"deny\": [\"Bash\"]", 2, "NOT in force"},
		"no object":      {`["Bash"]`, 1, "NOT in force"},
		"no list":        {"{\n\"permissions\": {\n\"deny\": \"Bash\"}}", 3, "NOT in force"},
		"no permissions": {"{\n\"permissions\": [\"Bash\"]}", 2, "NOT in force"},
		"no string":      {"{\"permissions\": {\"deny\": [\n{\"tool\": \"Bash\"}]}}", 2, "NOTHING IS DENIED"},
		"malformed":      {"{\"permissions\": {\"deny\": [\n\"Bash(rm\"]}}", 2, "malformed"},
		"matchless":      {"{\"permissions\": {\"ask\": [\n\"WebFetch(x)\"]}}", 2, "can never match"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t).at("project/.claude/settings.json", c.content).write(settings.Project, `{"permissions": {"deny": ["Write"]}}`)
			rules, warnings := h.mustRules()
			if diff := cmp.Diff([]string{"deny Write"}, rules); diff != "" {
				t.Error(diff)
			}
			// "no permissions" is wrong for both lists that restrict
			if name == "no permissions" && len(warnings) == 2 {
				warnings = warnings[:1]
			}
			oneWarning(t, warnings, filepath.Join(h.options.Root, ".claude", "settings.json"), c.line, c.want)
		})
	}
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.dir, ".gemini", "settings.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, warnings := h.mustRules()
	oneWarning(t, warnings, filepath.Join(h.dir, ".gemini", "settings.json"), 0, "not a regular file", "NOT in force")
	_, warnings = newHouse(t).at(".claude/settings.json", `{"hooks": 1, "permissions": {"deny": null, "defaultMode": 3}}`).mustRules()
	noWarnings(t, warnings)
}

func TestAListThatIsThereTwiceRestrictsTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t).at("project/.claude/settings.json", `{"permissions": {"deny": ["Bash(curl:*)"], "deny": []}, "permissions": {"deny": ["Bash(wget:*)"]}}`)
	if h.shell("curl x") != policy.Deny || h.shell("wget x") != policy.Deny {
		t.Error("a denial got lost")
	}
}

func TestGeminiNamesOfMCPTools(t *testing.T) {
	t.Parallel()
	h := newHouse(t).write(settings.User, `{"permissions": {"import": ["gemini"]}}`).
		at(".gemini/settings.json", `{"tools": {"exclude": ["mcp_my_hub_drop", "mcp_evil_*"], "allowed": ["mcp_hub_look", "mcp_my_hub_look"]}, "mcp": {"excluded": ["foe", "a__b"]}}`)
	rules, warnings, err := h.rules()
	if err != nil {
		t.Fatal(err)
	}
	oneWarning(t, warnings, filepath.Join(h.dir, ".gemini", "settings.json"), 1, `"mcp_my_hub_look" doesn't tell`)
	e := policy.NewEngine(rules)
	for tool, want := range map[string]policy.Behavior{
		"mcp__my_hub__drop": policy.Deny, "mcp__my__hub_drop": policy.Deny, "mcp__evil__x": policy.Deny,
		"mcp__foe__x": policy.Deny, "mcp__a__b__x": policy.Deny, "mcp__a__c": policy.Ask,
		"mcp__hub__look": policy.Allow, "mcp__my_hub__look": policy.Ask, "mcp__my_hub__other": policy.Ask,
	} {
		if got := e.Decide(policy.Facts{Tool: tool, Class: policy.ClassMCP, Mode: policy.ModeDefault, Input: []byte("{}"), Cwd: h.dir}).Behavior; got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
}

// In a project that is the home, the other tools' files are the user's own.
func TestAProjectThatIsTheHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t).write(settings.User, `{"permissions": {"import": ["claude"]}}`).
		at(".claude/settings.json", `{"permissions": {"allow": ["Bash(make)"]}}`).
		at(".claude/settings.local.json", `{"permissions": {"allow": ["Bash(evil)"]}}`)
	h.options.Root = h.dir
	rules, warnings := h.mustRules()
	if diff := cmp.Diff([]string{"allow Bash(make)"}, rules); diff != "" {
		t.Error(diff)
	}
	oneWarning(t, warnings, filepath.Join(h.dir, ".claude", "settings.local.json"), 1, "ignored here")
}

// Seven files that aren't there must cost next to nothing.
func BenchmarkRulesWithoutFiles(b *testing.B) {
	h := newHouse(b)
	s := h.mustLoad()
	for b.Loop() {
		if _, _, err := settings.Rules(s, settings.RuleOptions{Dirs: h.options.Dirs, Root: h.options.Root}); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzRules checks that no content of the files makes gathering panic, that
// each warning has its place, and that a project's file allows nothing.
func FuzzRules(f *testing.F) {
	for _, s := range []string{
		`{"permissions":{"allow":["Bash"],"deny":["Bash(rm"],"ask":[1]}}`, `{"permissions":[]}`, `{"permissions":{"deny":"x"}}`,
		`{"excludeTools":["mcp_a_b_c","ShellTool(x)"]}`, `{"tools":{"allowed":["*"],"exclude":["*"]}}`, "\xef\xbb\xbf{}", "[", "",
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	files := []string{".claude/settings.json", ".claude/settings.local.json", ".qwen/settings.json", ".gemini/settings.json", ".agent/settings.local.json"}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, file := range files {
			writeFile(t, filepath.Join(dir, "project", file), string(content))
		}
		o := settings.LoadOptions{Dirs: settings.Dirs{Home: dir, State: filepath.Join(dir, "state")}, Root: filepath.Join(dir, "project")}
		s, _, _ := settings.Load(o)
		rules, warnings, _ := settings.Rules(s, settings.RuleOptions{Dirs: o.Dirs, Root: o.Root})
		for _, r := range rules {
			if r.Behavior == policy.Allow || r.Base == "" || r.Origin == "" {
				t.Errorf("rule %+v", r)
			}
		}
		for _, w := range warnings {
			if w.File == "" || w.Line < 1 && !strings.Contains(w.Message, "NOT in force") {
				t.Errorf("warning %v", w)
			}
		}
	})
}

package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// tomlCall returns the facts of a call as tests write it: the tool, then a
// command, a file, an address or the input itself.
func tomlCall(text string) Facts {
	tool, rest, _ := strings.Cut(text, " ")
	f := Facts{Tool: tool, Class: ClassOther, Mode: ModeDefault, Interactive: true, Cwd: "/w", Roots: []string{"/w"}, Home: "/home/u"}
	input := map[string]string{}
	switch {
	case tool == shellTool:
		f.Class = ClassExec
		input["command"] = rest
	case tool == "web_fetch":
		f.Class = ClassFetch
		input["url"], input["prompt"] = rest, "p"
	case fileTools[tool] != (fileTool{}):
		f.Class = ClassRead
		if fileTools[tool].write {
			f.Class = ClassEdit
		}
		input[fileTools[tool].key] = rest
	case strings.HasPrefix(tool, "mcp__"):
		f.Class = ClassMCP
	}
	f.Input, _ = json.Marshal(input)
	if strings.HasPrefix(rest, "{") && tool != shellTool {
		f.Input = json.RawMessage(rest)
	}
	return f
}

// policyOf parses a policy file in which nothing is wrong.
func policyOf(t testing.TB, tier Tier, file string) Policy {
	t.Helper()
	p := ParsePolicy([]byte(file), "test.toml", tier)
	if len(p.Problems) > 0 {
		t.Fatalf("the file has problems: %v\n%s", p.Problems, file)
	}
	return p
}

// tomlCase is a policy file of the user with the decision that comes of it.
type tomlCase struct {
	name string
	file string
	call string
	with func(*Facts) // nil: nothing is changed
	want Behavior
}

func (tt *tomlCase) run(t *testing.T) {
	t.Parallel()
	p := policyOf(t, TierUser, tt.file)
	f := tomlCall(tt.call)
	if tt.with != nil {
		tt.with(&f)
	}
	if d := NewEngine(p.Rules, p.Checkers...).Decide(f); d.Behavior != tt.want || d.Reason == "" {
		t.Errorf("%s: %s because %q (%s), want %s", tt.call, d.Behavior, d.Reason, d.Why, tt.want)
	}
}

func inMode(m Mode) func(*Facts) { return func(f *Facts) { f.Mode = m } }

func headless(f *Facts) { f.Interactive = false }

func ofServer(name string) func(*Facts) { return func(f *Facts) { f.Server = name } }

func says(key string, v any) func(*Facts) {
	return func(f *Facts) { f.Annotations = map[string]any{key: v} }
}

const allowGit = `rule = [{ toolName = "run_shell_command", commandPrefix = "git", decision = "allow", priority = 100 }]`

func TestPolicyFileKeys(t *testing.T) {
	t.Parallel()
	one := func(keys string) string { return "[[rule]]\npriority = 100\n" + keys }
	for _, tt := range []tomlCase{
		{"toolName: exact", one("toolName = 'other'\ndecision = 'allow'"), "other", nil, Allow},
		{"toolName: exact is not a prefix", one("toolName = 'other'\ndecision = 'allow'"), "other2", nil, Ask},
		{"toolName: gemini-cli's names are ours", one("toolName = 'replace'\ndecision = 'allow'"), "edit a", nil, Allow},
		{"toolName: a legacy alias", one("toolName = 'search_file_content'\ndecision = 'deny'"), "grep_search .", nil, Deny},
		{"toolName: a list", one("toolName = ['web_fetch', 'write_file']\ndecision = 'deny'"), "write_file a", nil, Deny},
		{"toolName: what isn't in a list", one("toolName = ['web_fetch', 'write_file']\ndecision = 'deny'"), "edit a", nil, Ask},
		{"toolName: * is any tool", one("toolName = '*'\ndecision = 'deny'"), "read_file a", nil, Deny},
		{"toolName: mcp_* is any MCP tool", one("toolName = 'mcp_*'\ndecision = 'allow'"), "mcp__s__t", nil, Allow},
		{"toolName: mcp_* is no other tool", one("toolName = 'mcp_*'\ndecision = 'allow'"), "other", nil, Ask},
		{"toolName: mcp_server_*", one("toolName = 'mcp_s_*'\ndecision = 'allow'"), "mcp__s__t", nil, Allow},
		{"toolName: mcp_server_* is no other server", one("toolName = 'mcp_s_*'\ndecision = 'allow'"), "mcp__ss__t", nil, Ask},
		{"toolName: mcp_server_* allows no server whose name goes on", one("toolName = 'mcp_s_*'\ndecision = 'allow'"), "mcp__s_evil__t", ofServer("s_evil"), Ask},
		{"toolName: mcp_server_* denies a server whose name goes on", one("toolName = 'mcp_s_*'\ndecision = 'deny'"), "mcp__s_evil__t", ofServer("s_evil"), Deny},
		{"toolName: mcp__server__* allows no server whose name goes on", one("toolName = 'mcp__s__*'\ndecision = 'allow'"), "mcp__s__evil__t", ofServer("s__evil"), Ask},
		{"toolName: a server with underscores", one("toolName = 'mcp_my_server_*'\ndecision = 'allow'"), "mcp__my_server__t", ofServer("my_server"), Allow},
		{"toolName: tools of a server that begin alike", one("toolName = 'mcp_s_read_*'\ndecision = 'allow'"), "mcp__s__read_all", nil, Allow},
		{"toolName: tools of a server that begin otherwise", one("toolName = 'mcp_s_read_*'\ndecision = 'allow'"), "mcp__s__write_all", nil, Ask},
		{"toolName: mcp_*_tool", one("toolName = 'mcp_*_drop'\ndecision = 'deny'"), "mcp__db__drop", inMode(ModeYolo), Deny},
		{"toolName: mcp_*_tool allows that tool alone", one("toolName = 'mcp_*_drop'\ndecision = 'allow'"), "mcp__db__no_drop", nil, Ask},
		{"toolName: mcp_*_tool of a server with underscores", one("toolName = 'mcp_*_drop'\ndecision = 'deny'"), "mcp__my_db__drop", inMode(ModeYolo), Deny},
		{"toolName: an MCP tool by gemini-cli's name", one("toolName = 'mcp_my_db_drop_all'\ndecision = 'deny'"), "mcp__my_db__drop_all", inMode(ModeYolo), Deny},
		{"toolName: an MCP tool by our name", one("toolName = 'mcp__db__drop'\ndecision = 'deny'"), "mcp__db__drop", inMode(ModeYolo), Deny},
		{"toolName: discovered_tool_*", one("toolName = 'discovered_tool_*'\ndecision = 'deny'"), "discovered_tool_x", inMode(ModeYolo), Deny},
		{"toolName: a wildcard for tools that write binds the shell", one("toolName = 'write_*'\ndecision = 'deny'"), "run_shell_command echo x > a", inMode(ModeYolo), Deny},

		{"mcpName: the tools of a server", one("mcpName = 's'\ndecision = 'allow'"), "mcp__s__t", nil, Allow},
		{"mcpName: not those of others", one("mcpName = 's'\ndecision = 'allow'"), "mcp__s2__t", nil, Ask},
		{"mcpName: not those of none", one("mcpName = 's'\ndecision = 'allow'\ntoolName = '*'"), "other", nil, Ask},
		{"mcpName: with underscores", one("mcpName = 'my_server'\ndecision = 'allow'"), "mcp__my_server__t", nil, Allow},
		{"mcpName: * is every server", one("mcpName = '*'\ndecision = 'deny'"), "mcp__s__t", inMode(ModeYolo), Deny},
		{"mcpName: * is no other tool", one("mcpName = '*'\ndecision = 'deny'"), "other", inMode(ModeYolo), Allow},
		{"mcpName: with a tool", one("mcpName = 's'\ntoolName = 't'\ndecision = 'allow'"), "mcp__s__t", nil, Allow},
		{"mcpName: with another tool", one("mcpName = 's'\ntoolName = 't'\ndecision = 'allow'"), "mcp__s__u", nil, Ask},
		{"mcpName: with a wildcard", one("mcpName = 's'\ntoolName = 'read_*'\ndecision = 'allow'"), "mcp__s__read_x", nil, Allow},
		{"mcpName: * with a tool", one("mcpName = '*'\ntoolName = 'drop'\ndecision = 'deny'"), "mcp__db__drop", inMode(ModeYolo), Deny},
		{"mcpName: * with a tool leaves ours alone", one("mcpName = '*'\ntoolName = 'edit'\ndecision = 'deny'"), "edit a", inMode(ModeYolo), Allow},
		{"mcpName: a tool of a server keeps its name", one("mcpName = 's'\ntoolName = 'replace'\ndecision = 'deny'"), "mcp__s__replace", inMode(ModeYolo), Deny},
		{"mcpName: our name for another's is not that of a server's tool", one("mcpName = 's'\ntoolName = 'replace'\ndecision = 'allow'"), "mcp__s__edit", nil, Ask},
		{"mcpName: a server's write_file does not allow redirections", one("mcpName = 's'\ntoolName = 'write_file'\ndecision = 'allow'"), "run_shell_command echo x > a", nil, Ask},
		{"mcpName: a server's write_file does not deny redirections", one("mcpName = 's'\ntoolName = 'write_file'\ndecision = 'deny'"), "run_shell_command echo x > a", inMode(ModeYolo), Allow},

		{"subagent: its calls", one("toolName = 'other'\nsubagent = 'scout'\ndecision = 'deny'"), "other", func(f *Facts) { f.Agent, f.Mode = "scout", ModeYolo }, Deny},
		{"subagent: not another's", one("toolName = 'other'\nsubagent = 'scout'\ndecision = 'allow'"), "other", func(f *Facts) { f.Agent = "other" }, Ask},
		{"subagent: not the conversation's own", one("toolName = 'other'\nsubagent = 'scout'\ndecision = 'allow'"), "other", nil, Ask},

		{"toolAnnotations: equal", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { readOnlyHint = true }"), "mcp__s__t", says("readOnlyHint", true), Allow},
		{"toolAnnotations: other", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { readOnlyHint = true }"), "mcp__s__t", says("readOnlyHint", false), Ask},
		{"toolAnnotations: missing", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { readOnlyHint = true }"), "mcp__s__t", nil, Ask},
		{"toolAnnotations: of another kind", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { readOnlyHint = true }"), "mcp__s__t", says("readOnlyHint", "true"), Ask},
		{"toolAnnotations: a list is not equal to it", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { readOnlyHint = true }"), "mcp__s__t", says("readOnlyHint", []any{true}), Ask},
		{"toolAnnotations: a number", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { level = 2 }"), "mcp__s__t", says("level", 2.0), Allow},
		{"toolAnnotations: another number", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { level = 2 }"), "mcp__s__t", says("level", 2.5), Ask},
		{"toolAnnotations: every pair", one("toolName = 'mcp_*'\ndecision = 'allow'\ntoolAnnotations = { a = true, b = 'x' }"), "mcp__s__t", says("a", true), Ask},

		{"argsPattern: on the stable JSON", one(`toolName = 'other'` + "\n" + `argsPattern = '"a":1.*"b":2'` + "\ndecision = 'allow'"), `other { "b" : 2, "a" : 1 }`, nil, Allow},
		{"argsPattern: what isn't there", one(`toolName = 'other'` + "\n" + `argsPattern = '"a":1'` + "\ndecision = 'allow'"), `other {"a":2}`, nil, Ask},
		{"argsPattern: NUL pins an outer key", one(`toolName = 'other'` + "\n" + `argsPattern = '\x00"path":"ok"\x00'` + "\ndecision = 'allow'"), `other {"path":"ok"}`, nil, Allow},
		{"argsPattern: a nested key is not an outer one", one(`toolName = 'other'` + "\n" + `argsPattern = '\x00"path":"ok"\x00'` + "\ndecision = 'allow'"), `other {"path":"bad","x":{"path":"ok"}}`, nil, Ask},
		{"argsPattern: text that looks like a key is none", one(`toolName = 'other'` + "\n" + `argsPattern = '\x00"path":"ok"\x00'` + "\ndecision = 'allow'"), `other {"path":"bad","x":"\u0000\"path\":\"ok\"\u0000"}`, nil, Ask},
		{"argsPattern: < and & are themselves", one(`toolName = 'other'` + "\n" + `argsPattern = '"a":"<&>"'` + "\ndecision = 'allow'"), `other {"a":"<&>"}`, nil, Allow},
		{"argsPattern: of a command", one(`toolName = 'run_shell_command'` + "\n" + `argsPattern = '"command":"make test"'` + "\ndecision = 'allow'"), `run_shell_command make test`, nil, Allow},
		{"argsPattern: each part of a line", one(`toolName = 'run_shell_command'` + "\n" + `argsPattern = '"command":"make'` + "\ndecision = 'allow'"), `run_shell_command make test && curl example.com`, nil, Ask},
		{"argsPattern: a denial is met in any part", one(`toolName = 'run_shell_command'` + "\n" + `argsPattern = '"command":"curl'` + "\ndecision = 'deny'"), `run_shell_command make test && curl example.com`, inMode(ModeYolo), Deny},
		{"argsPattern: a denial sees through quotes", one(`toolName = 'run_shell_command'` + "\n" + `argsPattern = '"command":"curl'` + "\ndecision = 'deny'"), `run_shell_command c''url example.com`, inMode(ModeYolo), Deny},

		{"commandPrefix: a word", allowGit, "run_shell_command git push", nil, Allow},
		{"commandPrefix: the word alone", allowGit, "run_shell_command git", nil, Allow},
		{"commandPrefix: not the beginning of a word", allowGit, "run_shell_command github push", nil, Ask},
		{"commandPrefix: not a path", allowGit, "run_shell_command git/x push", nil, Ask},
		{"commandPrefix: not an argument", allowGit, "run_shell_command make git", nil, Ask},
		{"commandPrefix: several words", one("toolName = 'run_shell_command'\ncommandPrefix = 'npm test'\ndecision = 'allow'"), "run_shell_command npm test -- x", nil, Allow},
		{"commandPrefix: other words", one("toolName = 'run_shell_command'\ncommandPrefix = 'npm test'\ndecision = 'allow'"), "run_shell_command npm run test", nil, Ask},
		{"commandPrefix: a list", one("toolName = 'run_shell_command'\ncommandPrefix = ['npm test', 'make']\ndecision = 'allow'"), "run_shell_command make all", nil, Allow},
		{"commandPrefix: every part of a line", one("toolName = 'run_shell_command'\ncommandPrefix = ['npm test', 'make']\ndecision = 'allow'"), "run_shell_command make all && npm test | tee x", nil, Ask},
		{"commandPrefix: a denial is met in any part", one("toolName = 'run_shell_command'\ncommandPrefix = 'curl'\ndecision = 'deny'"), "run_shell_command make; (sudo /usr/bin/curl x)", inMode(ModeYolo), Deny},
		{"commandPrefix: an alias of the shell", one("toolName = 'Bash'\ncommandPrefix = 'make'\ndecision = 'allow'"), "run_shell_command make", nil, Allow},
		{"commandPrefix: in a list of one tool", one("toolName = ['run_shell_command']\ncommandPrefix = 'make'\ndecision = 'allow'"), "run_shell_command make", nil, Allow},

		{"commandRegex: from the beginning", one(`toolName = 'run_shell_command'` + "\n" + `commandRegex = 'npm (run )?(test|lint)$'` + "\ndecision = 'allow'"), "run_shell_command npm run lint", nil, Allow},
		{"commandRegex: not in the middle", one(`toolName = 'run_shell_command'` + "\n" + `commandRegex = 'npm test'` + "\ndecision = 'allow'"), "run_shell_command make npm test", nil, Ask},
		{"commandRegex: both branches are anchored", one(`toolName = 'run_shell_command'` + "\n" + `commandRegex = 'aaa|npm test'` + "\ndecision = 'allow'"), "run_shell_command make npm test", nil, Ask},
		{"commandRegex: a denial is met in any part", one(`toolName = 'run_shell_command'` + "\n" + `commandRegex = 'npm (publish|login)'` + "\ndecision = 'deny'"), "run_shell_command make && npm  publish", inMode(ModeYolo), Deny},

		{"allowRedirection: without it redirections ask", allowGit, "run_shell_command git push > log", nil, Ask},
		{"allowRedirection: with it they don't", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = true\ndecision = 'allow'"), "run_shell_command make > log", nil, Allow},
		{"allowRedirection: in the other spelling", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallow_redirection = true\ndecision = 'allow'"), "run_shell_command make >> log", nil, Allow},
		{"allowRedirection: false is as without", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = false\ndecision = 'allow'"), "run_shell_command make > log", nil, Ask},
		{"allowRedirection: not out of the working directories", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = true\ndecision = 'allow'"), "run_shell_command make > /etc/x", nil, Ask},
		{"allowRedirection: not to what is protected", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = true\ndecision = 'allow'"), "run_shell_command make > .git/config", nil, Ask},
		{"allowRedirection: a rule for the whole shell needs it too", one("toolName = 'run_shell_command'\ndecision = 'allow'"), "run_shell_command make > log", nil, Ask},
		{"allowRedirection: a rule for the whole shell that has it", one("toolName = 'run_shell_command'\nallowRedirection = true\ndecision = 'allow'"), "run_shell_command make > log", nil, Allow},
		{"allowRedirection: a rule for all tools needs it too", one("toolName = '*'\ndecision = 'allow'"), "run_shell_command make > log", nil, Ask},
		{"allowRedirection: every rule of a line must have it", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = true\ndecision = 'allow'") + "\n" + one("toolName = 'run_shell_command'\ncommandPrefix = 'npm'\ndecision = 'allow'"), "run_shell_command make; npm test > log", nil, Ask},
		{"allowRedirection: is needed of commands that are free too", one("toolName = 'run_shell_command'\ncommandPrefix = 'make'\nallowRedirection = true\ndecision = 'allow'"), "run_shell_command make; echo x > log", nil, Ask},

		{"modes: in it", one("toolName = 'other'\nmodes = ['autoEdit']\ndecision = 'allow'"), "other", inMode(ModeAutoEdit), Allow},
		{"modes: in another", one("toolName = 'other'\nmodes = ['autoEdit']\ndecision = 'allow'"), "other", nil, Ask},
		{"modes: one of several", one("toolName = 'other'\nmodes = ['default', 'yolo']\ndecision = 'deny'"), "other", inMode(ModeYolo), Deny},
		{"modes: none is all", one("toolName = 'other'\nmodes = []\ndecision = 'deny'"), "other", inMode(ModeYolo), Deny},
		{"modes: a rule that doesn't name plan allows nothing in it", one("toolName = 'other'\ndecision = 'allow'"), "other", inMode(ModePlan), Deny},
		{"modes: a rule that names plan allows in it", one("toolName = 'other'\nmodes = ['plan']\ndecision = 'allow'"), "other", inMode(ModePlan), Allow},
		{"modes: dont-ask is default with questions denied", one("toolName = 'other'\ndecision = 'ask_user'"), "other", inMode(ModeDontAsk), Deny},
		{"modes: a rule for default holds in dont-ask", one("toolName = 'other'\nmodes = ['default']\ndecision = 'allow'"), "other", inMode(ModeDontAsk), Allow},

		{"interactive: true with a user", one("toolName = 'other'\ninteractive = true\ndecision = 'allow'"), "other", nil, Allow},
		{"interactive: true without one", one("toolName = 'other'\ninteractive = true\ndecision = 'allow'"), "other", headless, Ask},
		{"interactive: false without one", one("toolName = 'other'\ninteractive = false\ndecision = 'deny'"), "other", headless, Deny},
		{"interactive: false with one", one("toolName = 'other'\ninteractive = false\ndecision = 'deny'"), "other", inMode(ModeYolo), Allow},

		{"decision: ask_user beats yolo", one("toolName = 'other'\ndecision = 'ask_user'"), "other", inMode(ModeYolo), Ask},
		{"name: is only a name", one("toolName = 'other'\nname = 'mine'\ndecision = 'deny'"), "other", inMode(ModeYolo), Deny},
		{"toolClass: all tools that do so", one("toolClass = 'fetch'\ndecision = 'deny'"), "web_fetch https://example.com", inMode(ModeYolo), Deny},
		{"toolClass: edit binds the shell", one("toolClass = 'edit'\ndecision = 'deny'"), "run_shell_command echo x > a", inMode(ModeYolo), Deny},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDenyMessageIsHandedOn(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"denyMessage", "deny_message"} {
		p := policyOf(t, TierUser, "[[rule]]\ntoolName = 'other'\npriority = 1\ndecision = 'deny'\nname = 'mine'\n"+key+" = 'use the other one'")
		d := NewEngine(p.Rules).Decide(tomlCall("other"))
		if d.Behavior != Deny || d.Message != "use the other one" || !strings.Contains(d.Reason, "use the other one") || d.Origin != "test.toml, rule 1" || !strings.Contains(d.Rule, "mine") {
			t.Errorf("%s: Decide = %+v, want a denial with the message, the rule's name and where it is", key, d)
		}
	}
}

// TestPolicyFileMistakes checks that nothing of a mistaken file is dropped in
// silence, and that half of a rule is none.
func TestPolicyFileMistakes(t *testing.T) {
	t.Parallel()
	shell := "toolName = 'run_shell_command'\n"
	for _, tt := range []struct{ name, rule, want string }{
		{"an unknown key", "toolName = 'a'\ndecison = 'allow'", `unknown key "decison" (did you mean "decision"?)`},
		{"an unknown key like none", "toolName = 'a'\ndecision = 'allow'\nzzzzzzzz = 1", `unknown key "zzzzzzzz"`},
		{"a checker in a rule", "toolName = 'a'\ndecision = 'allow'\n[rule.safety_checker]\ntype = 'external'", `unknown key "safety_checker"`},
		{"no tool", "decision = 'deny'", "toolName is missing"},
		{"an empty tool", "toolName = ''\ndecision = 'deny'", "toolName"},
		{"an empty list of tools", "toolName = []\ndecision = 'deny'", "toolName is empty"},
		{"an empty tool in a list", "toolName = ['a', '']\ndecision = 'deny'", "toolName"},
		{"a tool that is a number", "toolName = 3\ndecision = 'deny'", "toolName"},
		{"no decision", "toolName = 'a'", "decision must be"},
		{"an unknown decision", "toolName = 'a'\ndecision = 'Allow'", `not "Allow"`},
		{"a decision that is a flag", "toolName = 'a'\ndecision = true", "decision must be a text"},
		{"an unknown mode", "toolName = 'a'\ndecision = 'allow'\nmodes = ['turbo']", `"turbo"`},
		{"a mode that is a number", "toolName = 'a'\ndecision = 'allow'\nmodes = [1]", "modes must be"},
		{"interactive as a text", "toolName = 'a'\ndecision = 'allow'\ninteractive = 'true'", "interactive must be true or false"},
		{"allowRedirection as a number", shell + "decision = 'allow'\nallowRedirection = 1", "allowRedirection must be true or false"},
		{"an empty server", "toolName = '*'\ndecision = 'allow'\nmcpName = ''", "mcpName"},
		{"a wildcard within a server", "toolName = '*'\ndecision = 'deny'\nmcpName = 'git*'", "mcpName"},
		{"a server that is a list", "toolName = '*'\ndecision = 'allow'\nmcpName = ['a']", "mcpName must be a text"},
		{"an empty sub-agent", "toolName = 'a'\ndecision = 'allow'\nsubagent = ''", "subagent"},
		{"a sub-agent that is a list", "toolName = 'a'\ndecision = 'allow'\nsubagent = ['x']", "subagent must be a text"},
		{"annotations that are a text", "toolName = 'a'\ndecision = 'allow'\ntoolAnnotations = 'readOnlyHint'", "toolAnnotations must be a table"},
		{"no annotations", "toolName = 'a'\ndecision = 'allow'\ntoolAnnotations = {}", "toolAnnotations must be a table"},
		{"an annotation that is a list", "toolName = 'a'\ndecision = 'allow'\ntoolAnnotations = { x = [1] }", "toolAnnotations"},
		{"a broken argsPattern", "toolName = 'a'\ndecision = 'deny'\nargsPattern = '('", "argsPattern"},
		{"an empty argsPattern", "toolName = 'a'\ndecision = 'allow'\nargsPattern = ''", "argsPattern"},
		{"an argsPattern that is a list", "toolName = 'a'\ndecision = 'allow'\nargsPattern = ['a']", "argsPattern must be a text"},
		{"a lookahead, which isn't known here", "toolName = 'a'\ndecision = 'deny'\nargsPattern = '(?!x)'", "argsPattern"},
		{"a broken commandRegex", shell + "decision = 'deny'\ncommandRegex = '['", "commandRegex"},
		{"an empty commandRegex", shell + "decision = 'allow'\ncommandRegex = ''", "commandRegex"},
		{"a commandRegex that closes what it did not open", shell + "decision = 'allow'\ncommandRegex = 'a)|(b'", "commandRegex"},
		{"an empty commandPrefix", shell + "decision = 'allow'\ncommandPrefix = ''", "commandPrefix"},
		{"a commandPrefix of blanks", shell + "decision = 'allow'\ncommandPrefix = '  '", "commandPrefix"},
		{"no commandPrefix in a list", shell + "decision = 'allow'\ncommandPrefix = []", "commandPrefix is empty"},
		{"an unfinished quote in a commandPrefix", shell + `decision = "allow"` + "\n" + `commandPrefix = "git commit -m '"`, "commandPrefix"},
		{"a commandPrefix of another tool", "toolName = 'edit'\ndecision = 'allow'\ncommandPrefix = 'git'", `need toolName = "run_shell_command"`},
		{"a commandPrefix of several tools", "toolName = ['run_shell_command', 'edit']\ndecision = 'allow'\ncommandPrefix = 'git'", `need toolName = "run_shell_command"`},
		{"a commandPrefix of all tools", "toolName = '*'\ndecision = 'allow'\ncommandPrefix = 'git'", `need toolName = "run_shell_command"`},
		{"a commandPrefix of a server's tool", shell + "mcpName = 's'\ndecision = 'allow'\ncommandPrefix = 'git'", `need toolName = "run_shell_command"`},
		{"a commandPrefix of a class", shell + "toolClass = 'read'\ndecision = 'allow'\ncommandPrefix = 'git'", `need toolName = "run_shell_command"`},
		{"a commandPrefix beside a commandRegex", shell + "decision = 'allow'\ncommandPrefix = 'git'\ncommandRegex = 'git'", "only one of"},
		{"a commandPrefix beside an argsPattern", shell + "decision = 'allow'\ncommandPrefix = 'git'\nargsPattern = 'git'", "only one of"},
		{"an unknown class", "toolClass = 'reading'\ndecision = 'allow'", "unknown class"},
		{"a message that is a number", "toolName = 'a'\ndecision = 'deny'\ndenyMessage = 3", "denyMessage must be a text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := ParsePolicy([]byte("[[rule]]\npriority = 5\n"+tt.rule), "test.toml", TierUser)
			if len(p.Rules) != 0 || len(p.Problems) != 1 || !p.Problems[0].Fatal || p.Problems[0].Origin != "test.toml, rule 1" || !strings.Contains(p.Problems[0].Text, tt.want) {
				t.Errorf("ParsePolicy = %d rules, problems %v; want none and one fatal problem with %q", len(p.Rules), p.Problems, tt.want)
			}
		})
	}
	for name, text := range map[string]string{"missing": "", "negative": "priority = -1", "above 999": "priority = 1000", "a fraction": "priority = 1.5", "a text": "priority = '5'", "huge": "priority = 99999999999"} {
		p := ParsePolicy([]byte("[[rule]]\ntoolName = 'a'\ndecision = 'deny'\n"+text), "test.toml", TierUser)
		if len(p.Rules) != 0 || len(p.Problems) != 1 || !p.Problems[0].Fatal || !strings.Contains(p.Problems[0].Text, "priority must be given, from 0 to 999") {
			t.Errorf("priority %s: ParsePolicy = %d rules, problems %v; want none and one fatal problem", name, len(p.Rules), p.Problems)
		}
	}
}

func TestPolicyFilesThatAreNoneAtAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{"no TOML", "[[rule]\n", "line 1, column"},
		{"a key twice", "[[rule]]\ntoolName = 'a'\ntoolName = 'b'", "line 3, column"},
		{"an unknown table", "[[rules]]\ntoolName = 'a'", `unknown key "rules"`},
		{"an unknown table, with what was meant", "[[rules]]\ntoolName = 'a'", `did you mean "rule"?`},
		{"one rule without its second brackets", "[rule]\ntoolName = 'a'", `must be written [[rule]]`},
		{"rules that are no tables", "rule = ['edit']", "rule 1"},
		{"a loose key", "toolName = 'a'", `unknown key "toolName"`},
	} {
		p := ParsePolicy([]byte(tt.file), "test.toml", TierUser)
		if len(p.Rules) != 0 || len(p.Problems) != 1 || !p.Problems[0].Fatal || !strings.Contains(p.Problems[0].String(), tt.want) {
			t.Errorf("%s: ParsePolicy = %d rules, problems %v; want none and one fatal problem with %q", tt.name, len(p.Rules), p.Problems, tt.want)
		}
	}
	if p := ParsePolicy(nil, "test.toml", TierUser); len(p.Problems) != 0 || len(p.Rules) != 0 {
		t.Errorf("an empty file gives %+v, want nothing", p)
	}
	good := ParsePolicy([]byte("[[rule]]\ntoolName = 'a'\ndecision = 'deny'\npriority = 1\n[[rule]]\ntoolNam = 'b'\ndecision = 'deny'\npriority = 1"), "test.toml", TierUser)
	if len(good.Rules) != 1 || len(good.Problems) != 1 || good.Problems[0].Origin != "test.toml, rule 2" {
		t.Errorf("one good rule and one mistaken one give %+v, want both told", good)
	}
}

// TestToolsThatAreMisspeltAreReported checks that a rule which looks as if it
// had an effect is not left without a word.
func TestToolsThatAreMisspeltAreReported(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{"run_shel_command": "run_shell_command", "writefile": "write_file", "web_fetsch": "web_fetch", "Edti": "Edit"} {
		p := ParsePolicy([]byte("[[rule]]\ndecision = 'deny'\npriority = 1\ntoolName = '"+tool+"'"), "test.toml", TierUser)
		if len(p.Rules) != 1 || len(p.Problems) != 1 || p.Problems[0].Fatal || !strings.Contains(p.Problems[0].Text, want) {
			t.Errorf("%s: %d rules, problems %v; want the rule, and a warning that names %s", tool, len(p.Rules), p.Problems, want)
		}
	}
	policyOf(t, TierUser, "[[rule]]\ndecision = 'deny'\npriority = 1\ntoolName = ['google_web_search', 'mcp_edits', 'Edit', 'discovered_tool_x']")
	policyOf(t, TierUser, "[[rule]]\ndecision = 'deny'\npriority = 1\nmcpName = 's'\ntoolName = 'edits'")
}

func TestWhatTiersMayNotDoIsLeftOutWithAWarning(t *testing.T) {
	t.Parallel()
	external := "[[safety_checker]]\ntoolName = '*'\npriority = 1\n[safety_checker.checker]\ntype = 'external'\nname = '/bin/true'\n"
	inside := "[[safety_checker]]\ntoolName = '*'\npriority = 1\n[safety_checker.checker]\ntype = 'in-process'\nname = 'allowed-path'\n"
	yolo := "modes = ['yolo']\n"
	rule := func(decision string) string {
		return "[[rule]]\ntoolName = 'a'\npriority = 1\ndecision = '" + decision + "'\n"
	}
	for _, tt := range []struct {
		name string
		tier Tier
		file string
		kept bool
	}{
		{"an extension allows", TierExtension, rule("allow"), false},
		{"an extension denies", TierExtension, rule("deny"), true},
		{"an extension asks", TierExtension, rule("ask_user"), true},
		{"an extension speaks of yolo", TierExtension, rule("deny") + yolo, false},
		{"an extension's checker", TierExtension, external, true},
		{"an extension's checker for yolo", TierExtension, strings.Replace(external, "priority", yolo+"priority", 1), false},
		{"a project allows", TierWorkspace, rule("allow"), false},
		{"a project denies", TierWorkspace, rule("deny"), true},
		{"a project asks", TierWorkspace, rule("ask_user"), true},
		{"a project denies in yolo", TierWorkspace, rule("deny") + yolo, true},
		{"a project's program", TierWorkspace, external, false},
		{"a project's checker of ours", TierWorkspace, inside, true},
		{"a user allows", TierUser, rule("allow"), true},
		{"a user's program", TierUser, external, true},
		{"an admin allows in yolo", TierAdmin, rule("allow") + yolo, true},
	} {
		p := ParsePolicy([]byte(tt.file), "test.toml", tt.tier)
		if kept := len(p.Rules)+len(p.Checkers) == 1; kept != tt.kept || kept == (len(p.Problems) == 1) || len(p.Problems) > 0 && p.Problems[0].Fatal {
			t.Errorf("%s: kept %t, problems %v; want kept %t, or a warning", tt.name, kept, p.Problems, tt.kept)
		}
	}
}

func TestTiersAndPriorities(t *testing.T) {
	t.Parallel()
	type file struct {
		tier Tier
		text string
	}
	rule := func(priority, decision string) string {
		return "[[rule]]\ntoolName = 'other'\npriority = " + priority + "\ndecision = '" + decision + "'\n"
	}
	for _, tt := range []struct {
		name  string
		files []file
		list  []Rule
		want  Behavior
	}{
		{"the higher priority wins", []file{{TierUser, rule("10", "deny") + rule("11", "allow")}}, nil, Allow},
		{"whatever the order in the file", []file{{TierUser, rule("11", "allow") + rule("10", "deny")}}, nil, Allow},
		{"of equal ones the first wins", []file{{TierUser, rule("10", "allow") + rule("10", "deny")}}, nil, Allow},
		{"of equal ones the first wins, also if it denies", []file{{TierUser, rule("10", "deny") + rule("10", "allow")}}, nil, Deny},
		{"of equal ones in two files the first file's wins", []file{{TierUser, rule("10", "ask_user")}, {TierUser, rule("10", "allow")}}, nil, Ask},
		{"an admin's wins over a user's of any priority", []file{{TierUser, rule("999", "allow")}, {TierAdmin, rule("0", "deny")}}, nil, Deny},
		{"an admin's allow wins over a user's deny", []file{{TierUser, rule("999", "deny")}, {TierAdmin, rule("0", "allow")}}, nil, Allow},
		{"a user's wins over a project's", []file{{TierWorkspace, rule("999", "deny")}, {TierUser, rule("0", "allow")}}, nil, Allow},
		{"a project's wins over an extension's", []file{{TierExtension, rule("999", "ask_user")}, {TierWorkspace, rule("0", "deny")}}, nil, Deny},
		{"a project's question lifts no denial of an extension", []file{{TierExtension, rule("0", "deny")}, {TierWorkspace, rule("999", "ask_user")}}, nil, Deny},
		{"a list's denial is not lifted by an admin", []file{{TierAdmin, rule("999", "allow")}}, parse(t, Deny, "other"), Deny},
		{"a list's question is not lifted by an admin", []file{{TierAdmin, rule("999", "allow")}}, parse(t, Ask, "other"), Ask},
		{"a list's allow lifts no denial of a file", []file{{TierExtension, rule("0", "deny")}}, parse(t, Allow, "other"), Deny},
		{"a list's allow lifts no question of a file", []file{{TierExtension, rule("0", "ask_user")}}, parse(t, Allow, "other"), Ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list := slices.Clone(tt.list)
			for _, f := range tt.files {
				list = append(list, policyOf(t, f.tier, f.text).Rules...)
			}
			if d := NewEngine(list).Decide(tomlCall("other")); d.Behavior != tt.want {
				t.Errorf("Decide = %s (%s), want %s", d.Behavior, d.Reason, tt.want)
			}
		})
	}
}

// TestUncertainMatchesOfFiles checks that a word nobody can be sure of neither
// makes a file's rule lose nor another one win.
func TestUncertainMatchesOfFiles(t *testing.T) {
	t.Parallel()
	rule := func(keys string) string { return "[[rule]]\ntoolName = 'run_shell_command'\n" + keys + "\n" }
	denyRm, askGit := rule("commandPrefix = 'rm'\npriority = 50\ndecision = 'deny'"), rule("commandPrefix = 'git'\npriority = 60\ndecision = 'ask_user'")
	for _, tt := range []tomlCase{
		{"what may be denied is asked", denyRm, "run_shell_command $x a", inMode(ModeYolo), Ask},
		{"and not allowed by a weaker rule", denyRm + rule("priority = 1\ndecision = 'allow'"), "run_shell_command $x a", nil, Ask},
		{"a stronger rule that is certain goes first", denyRm + rule("priority = 99\ndecision = 'allow'"), "run_shell_command $x a", nil, Allow},
		{"what may be asked lifts no denial", askGit + rule("priority = 1\ndecision = 'deny'"), "run_shell_command $x a", inMode(ModeYolo), Deny},
		{"what is certainly asked lifts one of less priority", askGit + rule("priority = 1\ndecision = 'deny'"), "run_shell_command git push", inMode(ModeYolo), Ask},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestSafetyCheckersOfFiles(t *testing.T) {
	t.Parallel()
	file := `
[[safety_checker]]
toolName = ["write_file", "replace"]
priority = 10
[safety_checker.checker]
type = "in-process"
name = "allowed-path"
required_context = ["environment"]
config = { included_args = ["target"], excluded_args = ["note_file"] }

[[safety_checker]]
toolName = "run_shell_command"
commandPrefix = ["git", "npm publish"]
modes = ["default", "yolo"]
priority = 20
[safety_checker.checker]
type = "external"
name = "/usr/local/bin/judge"
config = { level = 3 }

[[safety_checker]]
mcpName = "db"
toolAnnotations = { readOnlyHint = false }
priority = 5
[safety_checker.checker]
type = "external"
name = "dbcheck"
required_context = ["history"]

[[safety_checker]]
toolName = "*"
argsPattern = "secret"
interactive = false
priority = 999
[safety_checker.checker]
type = "external"
name = "last"

[[rule]]
toolName = "todo_write"
decision = "deny"
priority = 1
`
	p := policyOf(t, TierUser, file)
	e := NewEngine(p.Rules, p.Checkers...)
	for _, tt := range []struct {
		call string
		with func(*Facts)
		want []string
	}{
		{"edit a", nil, []string{"allowed-path"}},
		{"read_file a", nil, nil},
		{"run_shell_command make && git push", nil, []string{"/usr/local/bin/judge"}},
		{"run_shell_command make && npm install", nil, nil},
		{"run_shell_command $x publish", nil, []string{"/usr/local/bin/judge"}},
		{"run_shell_command git 'push", nil, []string{"/usr/local/bin/judge"}},
		{"run_shell_command git push", inMode(ModeAutoEdit), nil},
		{"mcp__db__drop", says("readOnlyHint", false), []string{"dbcheck"}},
		{"mcp__db__drop", nil, nil},
		{"mcp__other__drop", says("readOnlyHint", false), nil},
		{"edit secret", headless, []string{"last", "allowed-path"}},
		{"todo_write secret", headless, nil}, // denied already
	} {
		f := tomlCall(tt.call)
		if tt.with != nil {
			tt.with(&f)
		}
		var got []string
		for _, c := range e.Decide(f).Checkers {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: checkers %q, want %q", tt.call, got, tt.want)
		}
	}
	if c := p.Checkers[2]; !c.Program || !slices.Equal(c.Context, []string{"history"}) || p.Checkers[1].Config["level"] != int64(3) {
		t.Errorf("checkers = %+v, want what the file says", p.Checkers)
	}
}

func TestSafetyCheckerMistakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ keys, checker, want string }{
		"no checker":                              {"", "", "checker is missing"},
		"an unknown key":                          {"priorty = 3\n", "type = 'external'\nname = 'a'", `"priority"`},
		"a decision":                              {"decision = 'deny'\n", "type = 'external'\nname = 'a'", "unknown key"},
		"an unknown key of it":                    {"", "type = 'external'\nname = 'a'\nnme = 'b'", `"name"`},
		"no type":                                 {"", "name = 'a'", "type must be"},
		"an unknown type":                         {"", "type = 'magic'\nname = 'a'", "type must be"},
		"no name":                                 {"", "type = 'external'", "name must be"},
		"a relative program":                      {"", "type = 'external'\nname = './a'", "name must be"},
		"an unknown one of ours":                  {"", "type = 'in-process'\nname = 'conseca'", `"allowed-path"`},
		"an unknown context":                      {"", "type = 'external'\nname = 'a'\nrequired_context = ['weather']", `not "weather"`},
		"a configuration as text":                 {"", "type = 'external'\nname = 'a'\nconfig = 'x'", "config must be a table"},
		"a configuration not ours":                {"", "type = 'in-process'\nname = 'allowed-path'\nconfig = { included_arg = ['a'] }", `"included_args"`},
		"a configuration of ours that is no list": {"", "type = 'in-process'\nname = 'allowed-path'\nconfig = { included_args = 3 }", "included_args must be"},
	} {
		file := "[[safety_checker]]\ntoolName = 'a'\npriority = 1\n" + tt.keys
		if tt.checker != "" {
			file += "[safety_checker.checker]\n" + tt.checker
		}
		p := ParsePolicy([]byte(file), "test.toml", TierUser)
		if len(p.Checkers) != 0 || len(p.Problems) != 1 || !p.Problems[0].Fatal || !strings.Contains(p.Problems[0].Text, tt.want) {
			t.Errorf("%s: %d checkers, problems %v; want none and one fatal problem with %s", name, len(p.Checkers), p.Problems, tt.want)
		}
	}
}

func TestAllowedPathLooksAtWhatNamesPaths(t *testing.T) {
	t.Parallel()
	configured := &Checker{Name: checkerAllowedPath, Config: map[string]any{"included_args": []any{"target", "deep.where"}, "excluded_args": []any{"note_file"}}}
	for _, tt := range []struct {
		input string
		c     *Checker
		want  Behavior
	}{
		{`{"file_path":"a/b"}`, nil, Allow},
		{`{"file_path":"/etc/passwd"}`, nil, Deny},
		{`{"FilePath":"../x"}`, nil, Deny},
		{`{"source":"/etc/passwd","destination":"a"}`, nil, Deny},
		{`{"dir_path":"a/.git/hooks"}`, nil, Deny},
		{`{"path":".env"}`, nil, Deny},
		{`{"path":"node_modules/x"}`, nil, Deny},
		{`{"path":".vscode/settings.json"}`, nil, Ask},
		{`{"content":"/etc/passwd"}`, nil, Allow},
		{`{"paths":["a","/etc/passwd"]}`, nil, Deny},
		{`{"edit":{"file":"/etc/passwd"}}`, nil, Deny},
		{`{"edits":[{"file":"/etc/passwd"}]}`, nil, Deny},
		{`[]`, nil, Deny},
		{`{"target":"/etc/passwd"}`, configured, Deny},
		{`{"target":"a"}`, configured, Allow},
		{`{"deep":{"where":"/etc/passwd"}}`, configured, Deny},
		{`{"where":"/etc/passwd"}`, configured, Allow},
		{`{"note_file":"/etc/passwd"}`, configured, Allow},
		{`{"note_file":"/etc/passwd","file":"/etc/passwd"}`, configured, Deny},
	} {
		c := tt.c
		if c == nil {
			c = &Checker{Name: checkerAllowedPath}
		}
		f := tomlCall("other " + tt.input)
		f.Input = json.RawMessage(tt.input)
		if b, reason := c.Judge(f); b != tt.want || b != Allow && reason == "" {
			t.Errorf("%s: Judge = %s (%s), want %s", tt.input, b, reason, tt.want)
		}
	}
}

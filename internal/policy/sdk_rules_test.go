package policy

import (
	"encoding/json"
	"slices"
	"testing"
)

// sdkCase is a behaviour that the SDKs of other agents document or test: lists
// of rules, a call in a mode, and what comes out.
type sdkCase struct {
	name             string
	allow, ask, deny []string
	call             string
	with             func(*Facts)
	want             Behavior
}

func (tt *sdkCase) run(t *testing.T) {
	t.Parallel()
	f := tomlCall(tt.call)
	if tt.with != nil {
		tt.with(&f)
	}
	e := NewEngine(slices.Concat(parse(t, Allow, tt.allow...), parse(t, Ask, tt.ask...), parse(t, Deny, tt.deny...)))
	if d := e.Decide(f); d.Behavior != tt.want || d.Reason == "" {
		t.Errorf("%s in %s: %s because %q (%s), want %s", tt.call, f.Mode, d.Behavior, d.Reason, d.Why, tt.want)
	}
}

func list(texts ...string) []string { return texts }

func hook(b Behavior, m Mode) func(*Facts) {
	return func(f *Facts) { f.Hook, f.Mode = &HookDecision{Behavior: b, Reason: "said so"}, m }
}

func plans(f *Facts) { f.Mode = ModePlan }
func yolo(f *Facts)  { f.Mode = ModeYolo }
func edits(f *Facts) { f.Mode = ModeAutoEdit }
func quiet(f *Facts) { f.Mode = ModeDontAsk }

// TestFromQwen: rules as qwen-code's lists have them.
func TestFromQwen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ShellTool(rm)": "ShellTool(rm:*)", "Bash(git commit)": "Bash(git commit:*)", " run_shell_command( touch ) ": "run_shell_command(touch:*)",
		"Bash(rm *)": "Bash(rm *)", "Bash(rm:*)": "Bash(rm:*)", "Bash(a && b)": "Bash(a && b)", "Bash": "Bash", "Bash(": "Bash(", "Bash()": "Bash()",
		"WebFetch(example.com)": "WebFetch(domain:example.com)", "WebFetch(domain:example.com)": "WebFetch(domain:example.com)",
		"Read(.env)": "Read(.env)", "mcp__a__b": "mcp__a__b", "no_such_tool": "no_such_tool", "": "",
	} {
		if got := FromQwen(text); got != want {
			t.Errorf("FromQwen(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestQwenToolControl follows qwen-code's tests of its SDK about tools and
// modes, as far as they are about rules.
func TestQwenToolControl(t *testing.T) {
	t.Parallel()
	sh := "run_shell_command "
	for _, tt := range []sdkCase{
		{"excluded: a tool", nil, nil, list("write_file"), "write_file a", nil, Deny},
		{"excluded: in yolo", nil, nil, list("write_file"), "write_file a", yolo, Deny},
		{"excluded: in auto-edit", nil, nil, list("write_file"), "write_file a", edits, Deny},
		{"excluded: several", nil, nil, list("write_file", "edit", "web_fetch"), "edit a", yolo, Deny},
		{"excluded: others stay", nil, nil, list("write_file", "edit"), "read_file a", nil, Allow},
		{"excluded: all of the shell", nil, nil, list("run_shell_command"), sh + "echo a", nil, Deny},
		{"excluded: all of the shell by an alias", nil, nil, list("ShellTool"), sh + "echo a", yolo, Deny},
		{"excluded: beats allowed", list("write_file"), nil, list("write_file"), "write_file a", nil, Deny},
		{"excluded: a file alone", nil, nil, list("Read(.env)"), "read_file .env", yolo, Deny},
		{"excluded: other files stay", nil, nil, list("Read(.env)"), "read_file a", nil, Allow},
		{"excluded: a file, by the shell", nil, nil, list("Read(.env)"), sh + "cat .env", yolo, Deny},
		{"excluded: a folder", nil, nil, list("Edit(/src/**)"), "edit src/a/b", yolo, Deny},
		{"excluded: a folder, by the other tool", nil, nil, list("Edit(/src/**)"), "write_file src/a", yolo, Deny},
		{"excluded: other folders stay", nil, nil, list("Edit(/src/**)"), "edit lib/a", yolo, Allow},
		{"excluded: a command", nil, nil, list("Bash(rm *)"), sh + "rm a", yolo, Deny},
		{"excluded: other commands stay", nil, nil, list("Bash(rm *)"), sh + "touch a", yolo, Allow},
		{"excluded: a tool that writes, by the shell", nil, nil, list("write_file"), sh + "touch q", yolo, Deny},
		{"excluded: unknown names mean nothing", nil, nil, list("no_such_tool"), "write_file a", yolo, Allow},
		{"excluded: beats yolo", nil, nil, list("run_shell_command"), sh + "make", yolo, Deny},

		{"allowed: reading and writing", list("read_file", "write_file"), nil, nil, "write_file a", nil, Allow},
		{"allowed: touch", list("ShellTool(touch *)", "ShellTool(mkdir *)"), nil, nil, sh + "touch a", nil, Allow},
		{"allowed: mkdir", list("ShellTool(touch *)", "ShellTool(mkdir *)"), nil, nil, sh + "mkdir a", nil, Allow},
		{"allowed: not rm beside touch", list("ShellTool(touch *)"), nil, nil, sh + "rm a", nil, Ask},
		{"allowed: nothing else", list("read_file"), nil, nil, "write_file a", nil, Ask},
		{"allowed: a pattern of files", list("Edit(*.json)"), nil, nil, "write_file config.json", nil, Allow},
		{"allowed: a pattern of files is not another", list("Edit(*.json)"), nil, nil, "write_file .env", nil, Ask},
		{"allowed: unknown names mean nothing", list("no_such_tool"), nil, nil, "write_file a", nil, Ask},
		{"allowed: plan is above it", list("write_file"), nil, nil, "write_file a", plans, Deny},
		{"allowed: reading in plan", list("write_file"), nil, nil, "read_file a", plans, Allow},
		{"allowed: a list in auto-edit", list("list_directory"), nil, nil, "list_directory .", edits, Allow},

		{"default: reading runs", nil, nil, nil, "read_file a", nil, Allow},
		{"default: a command that reads runs", nil, nil, nil, sh + "ls", nil, Allow},
		{"default: git status runs", nil, nil, nil, sh + "git status", nil, Allow},
		{"default: writing asks", nil, nil, nil, "write_file a", nil, Ask},
		{"default: commands ask", nil, nil, nil, sh + "npm install", nil, Ask},
		{"default: fetching asks", nil, nil, nil, "web_fetch https://example.com", nil, Ask},
		{"default: sub-agents ask", nil, nil, nil, `agent {"subagent_type":"x"}`, nil, Ask},
		{"default: skills ask", nil, nil, nil, `skill {"skill":"x"}`, nil, Ask},
		{"auto-edit: writing runs", nil, nil, nil, "write_file a", edits, Allow},
		{"auto-edit: editing runs", nil, nil, nil, "edit a", edits, Allow},
		{"auto-edit: reading runs", nil, nil, nil, "read_file a", edits, Allow},
		{"auto-edit: commands ask", nil, nil, nil, sh + "npm install", edits, Ask},
		{"auto-edit: writing outside asks", nil, nil, nil, "write_file /srv/a", edits, Ask},
		{"plan: writing is blocked", nil, nil, nil, "write_file a", plans, Deny},
		{"plan: editing is blocked", nil, nil, nil, "edit a", plans, Deny},
		{"plan: a command that changes is blocked", nil, nil, nil, sh + "touch a", plans, Deny},
		{"plan: a command that reads runs", nil, nil, nil, sh + "git status", plans, Allow},
		{"plan: reading runs", nil, nil, nil, "read_file a", plans, Allow},
		{"yolo: writing runs", nil, nil, nil, "write_file a", yolo, Allow},
		{"yolo: commands run", nil, nil, nil, sh + "npm install", yolo, Allow},

		{"order: deny is above ask", nil, list("edit"), list("edit"), "edit a", nil, Deny},
		{"order: ask is above plan's ceiling no longer", nil, list("edit"), nil, "edit a", plans, Deny},
		{"order: ask is above yolo", nil, list("edit"), nil, "edit a", yolo, Ask},
		{"order: ask is above allow", list("edit"), list("edit"), nil, "edit a", nil, Ask},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestClaudePermissionOrder follows the order of evaluation that the Claude
// Agent SDK documents.
func TestClaudePermissionOrder(t *testing.T) {
	t.Parallel()
	sh := "run_shell_command "
	for _, tt := range []sdkCase{
		{"hooks: deny stops", list("Edit"), nil, nil, "edit a", hook(Deny, ModeYolo), Deny},
		{"hooks: allow skips no deny rule", nil, nil, list("Edit"), "edit a", hook(Allow, ModeYolo), Deny},
		{"hooks: allow skips no deny rule of the shell", nil, nil, list("Bash(rm:*)"), sh + "make; rm a", hook(Allow, ModeYolo), Deny},
		{"hooks: allow skips no ask rule", nil, list("Edit"), nil, "edit a", hook(Allow, ModeDefault), Ask},
		{"hooks: allow spares what nothing speaks of", nil, nil, nil, "edit a", hook(Allow, ModeDefault), Allow},
		{"hooks: ask forces a question in yolo", nil, nil, nil, "edit a", hook(Ask, ModeYolo), Ask},
		{"hooks: ask forces a question over an allow rule", list("Edit"), nil, nil, "edit a", hook(Ask, ModeDefault), Ask},
		{"hooks: ask forces a question before reading", nil, nil, nil, "read_file a", hook(Ask, ModeDefault), Ask},
		{"hooks: ask in dontAsk", nil, nil, nil, "read_file a", hook(Ask, ModeDontAsk), Deny},
		{"hooks: what isn't known denies", list("Edit"), nil, nil, "edit a", hook("approve", ModeYolo), Deny},
		{"hooks: what says nothing denies", list("Edit"), nil, nil, "edit a", hook("", ModeYolo), Deny},
		{"hooks: ask lifts no denial", nil, nil, list("Edit"), "edit a", hook(Ask, ModeDefault), Deny},
		{"hooks: allow lifts no plan", nil, nil, nil, "edit a", hook(Allow, ModePlan), Deny},
		{"hooks: allow lets no destructive command through", nil, nil, nil, sh + "rm -rf x", hook(Allow, ModeYolo), Ask},
		{"hooks: allow writes no protected path", nil, nil, nil, "write_file .git/hooks/pre-commit", hook(Allow, ModeYolo), Ask},

		{"deny rules: beat bypassPermissions", nil, nil, list("Bash"), sh + "ls", yolo, Deny},
		{"deny rules: beat acceptEdits", nil, nil, list("Edit"), "edit a", edits, Deny},
		{"deny rules: beat what is free to read", nil, nil, list("Read"), "read_file a", nil, Deny},
		{"deny rules: come first, however special the other is", list("Bash(git log:*)"), nil, list("Bash"), sh + "git log", nil, Deny},
		{"deny rules: come before ask rules", nil, list("Bash(git log:*)"), list("Bash"), sh + "git log", nil, Deny},

		{"ask rules: hold in bypassPermissions", nil, list("Bash(git push:*)"), nil, sh + "git push", yolo, Ask},
		{"ask rules: are denied in dontAsk", nil, list("Bash(git push:*)"), nil, sh + "git push", quiet, Deny},
		{"ask rules: come before allow rules", list("Bash(git push:*)"), list("Bash"), nil, sh + "git push", nil, Ask},

		{"mode: bypassPermissions approves", nil, nil, nil, sh + "npm install", yolo, Allow},
		{"mode: acceptEdits approves edits", nil, nil, nil, "edit a", edits, Allow},
		{"mode: acceptEdits approves mkdir", nil, nil, nil, sh + "mkdir -p a/b", edits, Allow},
		{"mode: acceptEdits approves touch", nil, nil, nil, sh + "touch a", edits, Allow},
		{"mode: acceptEdits approves mv", nil, nil, nil, sh + "mv a b", edits, Allow},
		{"mode: acceptEdits approves cp", nil, nil, nil, sh + "cp a b", edits, Allow},
		{"mode: acceptEdits and rm (ours: asks, it can't be had back)", nil, nil, nil, sh + "rm a", edits, Ask},
		{"mode: acceptEdits approves nothing outside", nil, nil, nil, sh + "touch /srv/a", edits, Ask},
		{"mode: plan writes nothing (ours: denied, not asked)", nil, nil, nil, "edit a", plans, Deny},
		{"mode: plan runs nothing that writes", nil, nil, nil, sh + "touch a", plans, Deny},
		{"mode: dontAsk denies what would ask", nil, nil, nil, sh + "touch a", quiet, Deny},
		{"mode: dontAsk runs what is free", nil, nil, nil, "read_file a", quiet, Allow},
		{"mode: dontAsk runs what a rule allows", list("Bash(touch:*)"), nil, nil, sh + "touch a", quiet, Allow},

		{"free: Read within the roots", nil, nil, nil, "read_file a", nil, Allow},
		{"free: Grep within the roots", nil, nil, nil, "grep_search src", nil, Allow},
		{"free: Glob within the roots", nil, nil, nil, "glob src", nil, Allow},
		{"free: not outside of them", nil, nil, nil, "read_file /srv/a", nil, Ask},
		{"free: echo", nil, nil, nil, sh + "echo hello", nil, Allow},
		{"free: ls", nil, nil, nil, sh + "ls", nil, Allow},
		{"free: not touch", nil, nil, nil, sh + "touch a", nil, Ask},
		{"allow rules: a whole tool is not asked about", list("Bash"), nil, nil, sh + "npm install", nil, Allow},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestClaudeRuleSyntax has the rows of the rule syntax, each with what it
// matches and what it doesn't.
func TestClaudeRuleSyntax(t *testing.T) {
	t.Parallel()
	sh := "run_shell_command "
	elsewhere := func(f *Facts) { f.Cwd = "/w/sub" }
	for _, tt := range []sdkCase{
		{"Tool", list("WebFetch"), nil, nil, "web_fetch https://example.com", nil, Allow},
		{"Tool()", list("WebFetch()"), nil, nil, "web_fetch https://example.com", nil, Allow},
		{"Tool(*)", list("WebFetch(*)"), nil, nil, "web_fetch https://example.com", nil, Allow},
		{"Bash()", list("Bash()"), nil, nil, sh + "npm install", nil, Allow},
		{"Bash(*)", nil, nil, list("Bash(*)"), sh + "ls", yolo, Deny},
		{"Read() covers what reads", nil, nil, list("Read()"), "grep_search .", yolo, Deny},

		{"Bash(npm test)", list("Bash(npm test)"), nil, nil, sh + "npm test", nil, Allow},
		{"Bash(npm test) is exact", list("Bash(npm test)"), nil, nil, sh + "npm test x", nil, Ask},
		{"Bash(npm test) is not shorter", list("Bash(npm test)"), nil, nil, sh + "npm", nil, Ask},

		{"Bash(git push:*) alone", list("Bash(git push:*)"), nil, nil, sh + "git push", nil, Allow},
		{"Bash(git push:*) with more", list("Bash(git push:*)"), nil, nil, sh + "git push -u origin", nil, Allow},
		{"Bash(git push:*) ends at a word", list("Bash(git push:*)"), nil, nil, sh + "git pushx", nil, Ask},
		{"Bash(git log:*) reads on", list("Bash(git log:*)"), nil, nil, sh + "git log -5", nil, Allow},
		{"Bash(git log:*) ends at a word", nil, nil, list("Bash(git log:*)"), sh + "git logx", yolo, Allow},

		{"Bash(npm run *)", list("Bash(npm run *)"), nil, nil, sh + "npm run build", nil, Allow},
		{"Bash(npm run *) matches the bare command", list("Bash(npm run *)"), nil, nil, sh + "npm run", nil, Allow},
		{"Bash(npm run *) ends at a word", list("Bash(npm run *)"), nil, nil, sh + "npm runx", nil, Ask},
		{"Bash(* install)", list("Bash(* install)"), nil, nil, sh + "npm install", nil, Allow},
		{"Bash(* install) ends there", list("Bash(* install)"), nil, nil, sh + "npm install x", nil, Ask},
		{"Bash(git * main)", list("Bash(git * main)"), nil, nil, sh + "git push origin main", nil, Allow},

		{"lists: && needs both", list("Bash(npm test)"), nil, nil, sh + "npm test && npm install", nil, Ask},
		{"lists: || needs both", list("Bash(npm test)"), nil, nil, sh + "npm test || npm install", nil, Ask},
		{"lists: ; needs both", list("Bash(npm test)"), nil, nil, sh + "npm test; npm install", nil, Ask},
		{"lists: | needs both", list("Bash(npm test)"), nil, nil, sh + "npm test | npm install", nil, Ask},
		{"lists: a new line needs both", list("Bash(npm test)"), nil, nil, sh + "npm test\nnpm install", nil, Ask},
		{"lists: both allowed", list("Bash(npm test)", "Bash(npm install)"), nil, nil, sh + "npm test && npm install", nil, Allow},
		{"lists: one and what is free", list("Bash(npm test)"), nil, nil, sh + "cd sub && npm test | head", nil, Allow},
		{"lists: a denied part denies", list("Bash"), nil, list("Bash(curl:*)"), sh + "npm test && curl x", nil, Deny},
		{"lists: a redirection is checked", list("Bash(npm test)"), nil, nil, sh + "npm test > log", nil, Ask},
		{"lists: a redirection to an allowed file", list("Bash(npm test)", "Edit(log)"), nil, nil, sh + "npm test > log", nil, Allow},
		{"lists: a redirection to a denied file", nil, nil, list("Edit(log)"), sh + "npm test > log", yolo, Deny},
		{"lists: a subshell is checked", list("Bash(npm test)"), nil, nil, sh + "(npm test; npm install)", nil, Ask},
		{"lists: a substitution is checked", list("Bash(npm test:*)"), nil, nil, sh + "npm test $(npm install)", nil, Ask},

		{"Read(./src/**)", nil, nil, list("Read(./src/**)"), "read_file src/a/b", nil, Deny},
		{"Read(./src/**) is from the working directory", nil, nil, list("Read(./src/**)"), "read_file src/a", elsewhere, Deny},
		{"Read(./src/**) is not from elsewhere", nil, nil, list("Read(./src/**)"), "read_file /w/src/a", elsewhere, Allow},
		{"Read(src/**), bare", nil, nil, list("Read(src/**)"), "read_file src/a", nil, Deny},
		{"Read(./src/**) beside it", nil, nil, list("Read(./src/**)"), "read_file lib/a", nil, Allow},
		{"Edit(/docs/**) is from the root", list("Edit(/docs/**)"), nil, nil, "edit /w/docs/a", elsewhere, Allow},
		{"Edit(/docs/**) is not from the disk's", list("Edit(/docs/**)"), nil, nil, "edit /docs/a", nil, Ask},
		{"Edit(//srv/docs/**) is from the disk's", list("Edit(//srv/docs/**)"), nil, nil, "edit /srv/docs/a", nil, Allow},
		{"Edit(~/notes/**) is from the home folder", list("Edit(~/notes/**)"), nil, nil, "edit /home/u/notes/a", nil, Allow},
		{"Edit(~/notes/**) is not another's", list("Edit(~/notes/**)"), nil, nil, "edit /home/v/notes/a", nil, Ask},
		{"Edit covers Write", list("Edit(docs/**)"), nil, nil, "write_file docs/a", nil, Allow},
		{"Edit covers NotebookEdit", list("Edit(docs/**)"), nil, nil, "notebook_edit docs/a.ipynb", nil, Allow},
		{"Edit covers no reading", nil, nil, list("Edit(docs/**)"), "read_file docs/a", nil, Allow},
		{"Read covers Grep", nil, nil, list("Read(docs/**)"), "grep_search docs", nil, Deny},
		{"Read covers Glob", nil, nil, list("Read(docs/**)"), "glob docs", nil, Deny},
		{"Read covers the shell", nil, nil, list("Read(docs/**)"), sh + "cat docs/a", nil, Deny},

		{"WebFetch(domain:example.com)", list("WebFetch(domain:example.com)"), nil, nil, "web_fetch https://example.com/x", nil, Allow},
		{"WebFetch(domain:example.com) is no other host", list("WebFetch(domain:example.com)"), nil, nil, "web_fetch https://example.com.evil.org/", nil, Ask},
		{"WebFetch(domain:*.example.com)", list("WebFetch(domain:*.example.com)"), nil, nil, "web_fetch https://a.example.com/", nil, Allow},
		{"WebFetch(domain:example.com) denies", nil, nil, list("WebFetch(domain:example.com)"), "web_fetch https://example.com/", yolo, Deny},
		{"WebFetch(domain:example.com) denies the shell", nil, nil, list("WebFetch(domain:example.com)"), sh + "curl https://example.com/", yolo, Deny},

		{"mcp__server", list("mcp__s"), nil, nil, "mcp__s__t", nil, Allow},
		{"mcp__server__*", list("mcp__s__*"), nil, nil, "mcp__s__t", nil, Allow},
		{"mcp__server__tool", list("mcp__s__t"), nil, nil, "mcp__s__t", nil, Allow},
		{"mcp__server__tool is no other tool", list("mcp__s__t"), nil, nil, "mcp__s__u", nil, Ask},
		{"mcp__server is no other server", list("mcp__s"), nil, nil, "mcp__s2__t", nil, Ask},
		{"mcp__server__read*", list("mcp__s__read*"), nil, nil, "mcp__s__read_x", nil, Allow},

		{"mcp_server_tool", list("mcp_s_t"), nil, nil, "mcp__s__t", nil, Allow},
		{"mcp_server_tool denies", nil, nil, list("mcp_my_s_t_x"), "mcp__my_s__t_x", yolo, Deny},
		{"mcp_server_tool is no other tool", list("mcp_s_t"), nil, nil, "mcp__s__tt", nil, Ask},
		{"mcp_server_*", list("mcp_s_*"), nil, nil, "mcp__s__t", nil, Allow},
		{"mcp_server_* is no server whose name goes on", list("mcp_s_*"), nil, nil, "mcp__s_evil__t", nil, Ask},
		{"mcp__server__* is no server whose name goes on", list("mcp__s__*"), nil, nil, "mcp__s__evil__t", ofServer("s__evil"), Ask},
		{"mcp_* denies all of them", nil, nil, list("mcp_*"), "mcp__s__t", yolo, Deny},
		{"mcp_* leaves others alone", nil, nil, list("mcp_*"), "write_file a", yolo, Allow},

		{"Agent(type)", list("Agent(scout)"), nil, nil, `agent {"subagent_type":"scout"}`, nil, Allow},
		{"Task(type)", list("Task(scout)"), nil, nil, `agent {"subagent_type":"scout"}`, nil, Allow},
		{"Agent(type) is no other type", list("Agent(scout)"), nil, nil, `agent {"subagent_type":"scouts"}`, nil, Ask},
		{"Agent(type) is not about the name of a run", list("Agent(scout)"), nil, nil, `agent {"name":"scout"}`, nil, Ask},
		{"Agent(type) denies", nil, nil, list("Agent(scout)"), `agent {"subagent_type":"scout"}`, yolo, Deny},
		{"Skill(name)", list("Skill(pdf)"), nil, nil, `skill {"skill":"pdf"}`, nil, Allow},
		{"Skill(name) is exact", list("Skill(pdf)"), nil, nil, `skill {"skill":"pdf x"}`, nil, Ask},
		{"Skill(name *)", list("Skill(pdf *)"), nil, nil, `skill {"skill":"pdf x"}`, nil, Allow},
		{"Skill(name *) matches the bare name", list("Skill(pdf *)"), nil, nil, `skill {"skill":"pdf"}`, nil, Allow},
		{"Skill(name *) ends at a word", list("Skill(pdf *)"), nil, nil, `skill {"skill":"pdfs"}`, nil, Ask},
	} {
		t.Run(tt.name, tt.run)
	}
	for _, text := range []string{"(x)", "Bash(npm test", "Bash(npm test) ", "Bash)"} {
		r, err := ParseRule(text, Allow, "")
		if err != nil {
			continue
		}
		if text != "Bash(npm test) " { // blanks around a rule mean nothing
			t.Errorf("ParseRule(%q) = %v, want an error", text, r)
		}
	}
}

// TestRulesAreMeantFromTheirSettingsFile: / is the folder that the settings
// belong to, not the one that the program runs in.
func TestRulesAreMeantFromTheirSettingsFile(t *testing.T) {
	t.Parallel()
	r := parse(t, Allow, "Edit(/docs/**)")
	r[0].Base = "/w/part"
	for path, want := range map[string]Behavior{"/w/part/docs/a": Allow, "/w/docs/a": Ask, "docs/a": Ask, "part/docs/a": Allow} {
		f := tomlCall("edit " + path)
		if d := NewEngine(r).Decide(f); d.Behavior != want {
			t.Errorf("%s: %s (%s), want %s", path, d.Behavior, d.Reason, want)
		}
	}
}

// TestUpdatedInputIsJudgedByItself: what a hook or host makes of the input is
// what is judged, whatever the input was before.
func TestUpdatedInputIsJudgedByItself(t *testing.T) {
	t.Parallel()
	e := NewEngine(slices.Concat(parse(t, Allow, "Bash(npm test)"), parse(t, Deny, "Bash(rm:*)")))
	f := tomlCall("run_shell_command npm test")
	f.Hook = &HookDecision{Behavior: Allow, Reason: "changed"}
	for _, tt := range []struct {
		command string
		want    Behavior
	}{{"npm test", Allow}, {"rm a", Deny}, {"npm test; rm a", Deny}, {"npm test; npm install", Allow}, {"npm test; rm -rf a", Deny}} {
		f.Input, _ = json.Marshal(map[string]string{"command": tt.command})
		if d := e.Decide(f); d.Behavior != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.command, d.Behavior, d.Reason, tt.want)
		}
	}
}

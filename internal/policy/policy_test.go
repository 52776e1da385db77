package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func parse(t testing.TB, b Behavior, texts ...string) []Rule {
	t.Helper()
	var out []Rule
	for _, s := range texts {
		r, err := ParseRule(s, b, "test")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestDecisionOrder(t *testing.T) {
	t.Parallel()
	engine := NewEngine(slices.Concat(parse(t, Allow, "edit", "Bash(npm test)", "other_exec2"), parse(t, Ask, "other_edit2"), parse(t, Deny, "web_fetch", "Write", "Bash(rm:*)")))
	edit, command, none := `{"file_path":"/w/a"}`, `{"command":"npm test"}`, `{}`
	tests := []struct {
		name  string
		mode  Mode
		tool  string
		class Class
		input string
		hook  Behavior
		want  Behavior
		why   Why
	}{
		{"looking is free", ModeDefault, "read_file", ClassRead, edit, "", Allow, WhyMode},
		{"looking is free in plan mode", ModePlan, "read_file", ClassRead, edit, "", Allow, WhyMode},
		{"own state is free", ModePlan, "todo_write", ClassInternal, none, "", Allow, WhyMode},
		{"asking the user is free", ModeDefault, "ask_user", ClassInteract, none, "", Allow, WhyMode},
		{"an allow rule allows", ModeDefault, "edit", ClassEdit, edit, "", Allow, WhyRule},
		{"an allow rule by its alias allows", ModeDefault, shellTool, ClassExec, command, "", Allow, WhyRule},
		{"plan mode is a ceiling over allow rules", ModePlan, "edit", ClassEdit, edit, "", Deny, WhyMode},
		{"plan mode runs nothing", ModePlan, shellTool, ClassExec, command, "", Deny, WhyMode},
		{"plan mode is a ceiling over ask rules", ModePlan, "other_edit2", ClassEdit, none, "", Deny, WhyMode},
		{"plan mode is a ceiling over hooks", ModePlan, "edit", ClassEdit, edit, Allow, Deny, WhyMode},
		{"deny beats yolo", ModeYolo, "web_fetch", ClassFetch, `{"url":"https://example.com"}`, "", Deny, WhyRule},
		{"deny beats auto-edit", ModeAutoEdit, "write_file", ClassEdit, edit, "", Deny, WhyRule},
		{"deny beats a hook's allow", ModeDefault, "write_file", ClassEdit, edit, Allow, Deny, WhyRule},
		{"a denied file tool denies the shell's writing", ModeYolo, shellTool, ClassExec, `{"command":"echo x > /w/b"}`, "", Deny, WhyRule},
		{"ask beats yolo", ModeYolo, "other_edit2", ClassEdit, none, "", Ask, WhyRule},
		{"ask beats a hook's allow", ModeDefault, "other_edit2", ClassEdit, none, Allow, Ask, WhyRule},
		{"a hook's deny beats an allow rule", ModeDefault, "edit", ClassEdit, edit, Deny, Deny, WhyHook},
		{"a hook's ask beats an allow rule", ModeYolo, "edit", ClassEdit, edit, Ask, Ask, WhyHook},
		{"a hook's allow spares the question", ModeDefault, "other_exec", ClassExec, none, Allow, Allow, WhyHook},
		{"a hook's allow lifts no protection", ModeDefault, "edit", ClassEdit, `{"file_path":"/w/.git/config"}`, Allow, Ask, WhyProtected},
		{"auto-edit edits", ModeAutoEdit, "edit", ClassEdit, edit, "", Allow, WhyMode},
		{"auto-edit asks before it runs", ModeAutoEdit, "other_exec", ClassExec, none, "", Ask, WhyDefault},
		{"yolo runs", ModeYolo, "other_exec", ClassExec, none, "", Allow, WhyMode},
		{"yolo asks for protected paths", ModeYolo, "edit", ClassEdit, `{"file_path":"/w/.git/config"}`, "", Ask, WhyProtected},
		{"yolo asks before it destroys", ModeYolo, shellTool, ClassExec, `{"command":"git reset --hard"}`, "", Ask, WhyDestructive},
		{"what nothing speaks of asks", ModeDefault, "other_exec", ClassExec, none, "", Ask, WhyDefault},
		{"nobody is asked in dont-ask", ModeDontAsk, "other_exec", ClassExec, none, "", Deny, WhyDefault},
		{"rules allow in dont-ask", ModeDontAsk, "edit", ClassEdit, edit, "", Allow, WhyRule},
		{"an unknown class asks", ModeDefault, "x", ClassOther, none, "", Ask, WhyDefault},
		{"input that is no object is denied", ModeYolo, "edit", ClassEdit, `[]`, "", Deny, WhyHard},
		{"a missing path is denied", ModeYolo, "edit", ClassEdit, `{}`, "", Deny, WhyHard},
		{"a missing command is denied", ModeYolo, shellTool, ClassExec, `{"Command":"ls"}`, "", Deny, WhyHard},
		{"an address that is none is denied", ModeYolo, "web_fetch", ClassFetch, `{"url":"http://"}`, "", Deny, WhyHard},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Tool: tt.tool, Class: tt.class, Input: json.RawMessage(tt.input), Mode: tt.mode, Cwd: "/w", Home: "/home/u"}
			if tt.hook != "" {
				f.Hook = &HookDecision{Behavior: tt.hook, Reason: "said so"}
			}
			if tt.name == "deny beats yolo" || tt.why == WhyHard && tt.tool == "web_fetch" {
				f.Home = ""
			}
			e := engine
			if tt.why == WhyHard {
				e = NewEngine(nil)
			}
			got := e.Decide(f)
			if got.Behavior != tt.want || got.Why != tt.why || got.Reason == "" {
				t.Errorf("Decide = %+v, want %s because of %s with a reason", got, tt.want, tt.why)
			}
		})
	}
}

func TestARuleForAWholeToolStaysInTheRoots(t *testing.T) {
	t.Parallel()
	p := ParsePolicy([]byte("[[rule]]\ntoolName=\"*\"\ndecision=\"allow\"\npriority=1\n"), "file", TierUser)
	if len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
	for _, list := range [][]Rule{p.Rules, parse(t, Allow, "Read", "Edit", "Bash")} {
		e := NewEngine(list)
		for _, in := range []Facts{
			callOf("read_file", ClassRead, `{"file_path":"/etc/hosts"}`), callOf("edit", ClassEdit, `{"file_path":"../x"}`), shellCall("cat /etc/hosts"), shellCall("touch /tmp/x"),
		} {
			if d := e.Decide(in); d.Behavior != Ask || d.Why != WhyOutside {
				t.Errorf("%s: %+v, want a question because it is outside", in.Input, d)
			}
		}
		for _, in := range []Facts{callOf("edit", ClassEdit, `{"file_path":"x"}`), shellCall("npm test")} {
			if d := e.Decide(in); d.Behavior != Allow {
				t.Errorf("%s: %+v, want allow", in.Input, d)
			}
		}
	}
}

// What was opened to be read can be written by a device that leads to it.
func TestARuleForFilesDoesNotSpeakOfDevices(t *testing.T) {
	t.Parallel()
	e := NewEngine(parse(t, Allow, "Read", "Edit(/**)", "Read(~/**)"))
	for _, command := range []string{"cat <a.txt >/dev/stdin", "ls 2<a.txt 2>/dev/stderr", "echo x 0<~/.bashrc >/dev/fd/0"} {
		if d := e.Decide(shellCall(command)); d.Behavior != Ask {
			t.Errorf("%s: %+v, want a question", command, d)
		}
	}
	if d := e.Decide(shellCall("ls >/dev/null 2>&1")); d.Behavior != Allow {
		t.Errorf("%+v, want allow", d)
	}
}

func TestKeptOutputIsFreeToRead(t *testing.T) {
	t.Parallel()
	var e Engine
	for input, want := range map[string]Behavior{
		`{"file_path":"/home/u/state/output/1.txt"}`: Allow, `{"file_path":"/home/u/state/output/../x"}`: Ask,
		`{"file_path":"/home/u/state/outputs"}`: Ask, `{"file_path":"/home/u/state/output/.env"}`: Ask,
	} {
		f := callOf("read_file", ClassRead, input)
		f.Reads, f.Guarded = []string{"/home/u/state/output"}, []string{"/home/u/state"}
		if d := e.Decide(f); d.Behavior != want {
			t.Errorf("%s: %+v, want %s", input, d, want)
		}
		if out := Outside(f); want == Allow && len(out) != 1 {
			t.Errorf("%s: granted %q", input, out)
		}
		f.Tool, f.Class = "edit", ClassEdit
		if d := e.Decide(f); d.Behavior != Ask {
			t.Errorf("edit %s: %+v, want a question", input, d)
		}
	}
}

type hostileRepo string

func (h hostileRepo) Runs(string) string { return string(h) }

func TestAnAllowedLookAtAHostileRepositoryAsks(t *testing.T) {
	t.Parallel()
	e := NewEngine(parse(t, Allow, "Bash(git status:*)", "Bash(git log *)"))
	for _, command := range []string{"git status -s", "git log -3"} {
		call := shellCall(command)
		if d := e.Decide(call); d.Behavior != Allow {
			t.Errorf("%s: %+v, want allow", command, d)
		}
		call.Repo = hostileRepo("core.fsmonitor runs ./evil")
		if d := e.Decide(call); d.Behavior != Ask || !strings.Contains(d.Reason, "fsmonitor") {
			t.Errorf("%s in a hostile repository: %+v, want a question that says why", command, d)
		}
	}
}

func TestZeroEngineAsksForWhatChanges(t *testing.T) {
	t.Parallel()
	var e Engine
	if d := e.Decide(Facts{Tool: "edit", Class: ClassEdit, Mode: ModeDefault, Cwd: "/w", Input: json.RawMessage(`{"file_path":"a"}`)}); d.Behavior != Ask {
		t.Errorf("Decide = %+v, want ask", d)
	}
	e.Add(parse(t, Allow, "Edit(/a)")...)
	if d := e.Decide(Facts{Tool: "edit", Class: ClassEdit, Mode: ModeDefault, Cwd: "/w", Input: json.RawMessage(`{"file_path":"a"}`)}); d.Behavior != Allow {
		t.Errorf("Decide = %+v after Add, want allow", d)
	}
	e.Remove(parse(t, Allow, "Edit(/a)")...)
	if d := e.Decide(Facts{Tool: "edit", Class: ClassEdit, Mode: ModeDefault, Cwd: "/w", Input: json.RawMessage(`{"file_path":"a"}`)}); d.Behavior != Ask {
		t.Errorf("Decide = %+v after Remove, want ask", d)
	}
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, tool := range map[string]string{
		"Bash": shellTool, "Read()": "read_file", "Edit(*)": "edit", " glob ": "glob", "mcp__a__b": "mcp__a__b", "ShellTool(touch *)": shellTool,
		"Bash(git log:*)": shellTool, "Edit(/src/**)": "write_file", "WebFetch(domain:*.example.com)": "web_fetch", "mcp__a": "mcp__a__x", "mcp__a__*": "mcp__a__x", "Task(x)": "agent",
	} {
		r, err := ParseRule(text, Allow, "")
		if err != nil || !r.tools.matches(&Facts{Tool: tool}) || r.tools.matches(&Facts{Tool: "todo_write"}) {
			t.Errorf("ParseRule(%q) = %+v, %v; want one of tool %s alone", text, r, err, tool)
		}
	}
	for _, text := range []string{"", "  ", "(x)", "Bash(git", "Bash)", "a b", "Ba*", "Bash(npm test)x", "*(x)", "mcp__*__x", "mcp__"} {
		if r, err := ParseRule(text, Allow, ""); err == nil {
			t.Errorf("ParseRule(%q) = %+v, want an error", text, r)
		}
	}
	for _, text := range []string{"WebFetch(example.org)", "WebFetch(domain:)", "TodoWrite(x)", "Read(./)", "Read(../x)", "*", "mcp__*", "mcp_*", "mcp_s_t(x)"} {
		_, err := ParseRule(text, Allow, "")
		var matchless *MatchlessError
		if !errors.As(err, &matchless) {
			t.Errorf("ParseRule(%q) gave %v, want a MatchlessError", text, err)
		}
	}
}

func TestSplitRules(t *testing.T) {
	t.Parallel()
	got := SplitRules("Bash(git log:*, x),Read Edit,,\tGlob")
	want := []string{"Bash(git log:*, x)", "Read", "Edit", "Glob"}
	if !slices.Equal(got, want) {
		t.Errorf("SplitRules = %q, want %q", got, want)
	}
}

// FuzzRules checks that no text of a rule allows what it doesn't name: whatever
// is in it, a command that no word of it begins is asked about.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"Bash", "Bash(git:*)", "Bash(", ")(", "a,b (c d) e", "Edit(*)", "\x00(", "Bash())", "Bash(git log:*)", "Edit(//**)", "Bash(\\*)", "mcp__a__*"} {
		f.Add(s)
	}
	call := Facts{Tool: shellTool, Class: ClassExec, Mode: ModeDefault, Cwd: "/w", Home: "/home/u", Input: json.RawMessage(`{"command":"xyzzy --plugh"}`)}
	f.Fuzz(func(t *testing.T, s string) {
		for _, part := range SplitRules(s) {
			r, err := ParseRule(part, Allow, "")
			if err != nil {
				continue
			}
			for _, n := range r.tools.names {
				if n == "" || strings.ContainsAny(n, "*()") {
					t.Fatalf("rule %q names tool %q", part, n)
				}
			}
			_, spec, _ := strings.Cut(part, "(")
			named := strings.Contains(spec, "x") || strings.HasPrefix(strings.TrimSpace(spec), "*") || r.whole()
			if d := NewEngine([]Rule{r}).Decide(call); d.Behavior == Allow && !named {
				t.Fatalf("rule %q allows %s", part, call.Input)
			}
		}
	})
}

func TestParseMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Mode{
		"default": ModeDefault, "plan": ModePlan, "auto_edit": ModeAutoEdit, "acceptEdits": ModeAutoEdit, "bypassPermissions": ModeYolo,
	} {
		if got, err := ParseMode(text); err != nil || got != want {
			t.Errorf("ParseMode(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseMode("Yolo"); err == nil || !strings.Contains(err.Error(), "auto-edit") {
		t.Errorf("an unknown mode gave %v, want an error that lists the valid ones", err)
	}
}

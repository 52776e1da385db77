package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDecisionOrder(t *testing.T) {
	t.Parallel()
	engine := NewEngine(rules(t, "edit", "Bash"), rules(t, "web_fetch", "write_file"))
	tests := []struct {
		name  string
		mode  Mode
		tool  string
		class Class
		want  Behavior
	}{
		{"looking is free", ModeDefault, "read_file", ClassRead, Allow},
		{"looking is free in plan mode", ModePlan, "read_file", ClassRead, Allow},
		{"own state is free", ModePlan, "todo_write", ClassInternal, Allow},
		{"asking the user is free", ModeDefault, "ask_user", ClassInteract, Allow},
		{"an allow rule allows", ModeDefault, "edit", ClassEdit, Allow},
		{"an allow rule by its alias allows", ModeDefault, "run_shell_command", ClassExec, Allow},
		{"plan mode is a ceiling over allow rules", ModePlan, "edit", ClassEdit, Deny},
		{"plan mode runs nothing", ModePlan, "run_shell_command", ClassExec, Deny},
		{"deny beats yolo", ModeYolo, "web_fetch", ClassFetch, Deny},
		{"deny beats auto-edit", ModeAutoEdit, "write_file", ClassEdit, Deny},
		{"auto-edit edits", ModeAutoEdit, "other_edit", ClassEdit, Allow},
		{"auto-edit asks before it runs", ModeAutoEdit, "other_exec", ClassExec, Ask},
		{"yolo runs", ModeYolo, "other_exec", ClassExec, Allow},
		{"what nothing speaks of asks", ModeDefault, "other_exec", ClassExec, Ask},
		{"an unknown class asks", ModeDefault, "x", ClassOther, Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := engine.Decide(Facts{Tool: tt.tool, Class: tt.class, Input: json.RawMessage("{}"), Mode: tt.mode})
			if got.Behavior != tt.want || got.Reason == "" {
				t.Errorf("Decide = %+v, want %s with a reason", got, tt.want)
			}
		})
	}
}

func rules(t *testing.T, texts ...string) []Rule {
	t.Helper()
	var out []Rule
	for _, s := range texts {
		r, err := ParseRule(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestZeroEngineAsksForWhatChanges(t *testing.T) {
	t.Parallel()
	var e Engine
	if d := e.Decide(Facts{Tool: "edit", Class: ClassEdit, Mode: ModeDefault}); d.Behavior != Ask {
		t.Errorf("Decide = %+v, want ask", d)
	}
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, tool := range map[string]string{
		"Bash": "run_shell_command", "Read()": "read_file", "Edit(*)": "edit", " glob ": "glob", "mcp__a__b": "mcp__a__b",
	} {
		r, err := ParseRule(text)
		if err != nil || r.Tool != tool {
			t.Errorf("ParseRule(%q) = %+v, %v; want tool %s", text, r, err, tool)
		}
	}
	for _, text := range []string{"", "  ", "(x)", "Bash(git", "Bash)", "a b", "Ba*"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("ParseRule(%q) = %+v, want an error", text, r)
		}
	}
	_, err := ParseRule("Bash(git log:*)")
	var unsupported *UnsupportedRuleError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), `"Bash"`) {
		t.Errorf("a rule with a specifier gave %v, want an UnsupportedRuleError that names the bare tool", err)
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

// FuzzRules checks that no text makes a rule wider than the tool it names.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"Bash", "Bash(git:*)", "Bash(", ")(", "a,b (c d) e", "Edit(*)", "\x00(", "Bash())"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, part := range SplitRules(s) {
			r, err := ParseRule(part)
			if err != nil {
				continue
			}
			name, _, _ := strings.Cut(part, "(")
			if r.Tool == "" || r.Tool != CanonicalTool(name) {
				t.Fatalf("rule %q names tool %q", part, r.Tool)
			}
			if strings.ContainsAny(r.Tool, "*()") {
				t.Fatalf("rule %q has a pattern for a name: %q", part, r.Tool)
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

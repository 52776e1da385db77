package policy

import (
	"slices"
	"strings"
	"testing"
)

func builtIn() map[string]Class {
	return map[string]Class{"run_shell_command": ClassExec, "read_file": ClassRead, "edit": ClassEdit, "write_file": ClassEdit, "web_fetch": ClassFetch}
}

func TestIneffectiveRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Bash(git status)": "", "Edit": "", "Write": "", "mcp__github__*": "", "mcp__github__create": "",
		"wite_file": `there is no tool "wite_file" (did you mean "write_file"?)`,
		"Bsh":       `there is no tool "Bsh" (did you mean "Bash"?)`,
		"frobnicat": `there is no tool "frobnicat"`,
	} {
		r := parse(t, Deny, text)[0]
		if got := strings.Join(r.Ineffective(builtIn()), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for keys, want := range map[string]string{
		`toolName = ["edit", "rd_file"]`:                  `there is no tool "rd_file" (did you mean "read_file"?)`,
		`toolName = "edit"` + "\n" + `toolClass = "read"`: "edit is of class edit, which toolClass leaves out",
		`toolName = "re*"`:                                "",
		`toolName = "frob*"`:                              `there is no tool like "frob*"`,
		`toolName = ["*", "mcp_x_y", "mcp_*"]`:            "",
		`toolName = "frob"` + "\n" + `mcpName = "x"`:      "",
		`toolClass = "read"`:                              "",
	} {
		p := ParsePolicy([]byte("[[rule]]\n"+keys+"\ndecision = \"deny\"\npriority = 1\n"), "f", TierUser)
		if len(p.Rules) != 1 {
			t.Fatalf("%s: %v", keys, p.Problems)
		}
		if got := strings.Join(p.Rules[0].Ineffective(builtIn()), "; "); got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
}

// TestShadow holds what is said of shadowed rules against the engine: taking
// them away changes no decision.
func TestShadow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, over, under string
		want              bool
	}{
		{"a whole tool", `toolName = "edit"`, `toolName = "edit"`, true},
		{"by a list", `toolName = ["edit", "write_file"]`, `toolName = "edit"`, true},
		{"by half of a list", `toolName = "edit"`, `toolName = ["edit", "write_file"]`, false},
		{"by all tools", `toolName = "*"`, `toolName = "read_file"` + "\n" + `modes = ["plan"]`, true},
		{"in one mode", `toolName = "*"` + "\n" + `modes = ["plan"]`, `toolName = "read_file"`, false},
		{"in the same mode", `toolName = "*"` + "\n" + `modes = ["plan", "yolo"]`, `toolName = "read_file"` + "\n" + `modes = ["yolo"]`, true},
		{"a command", `toolName = "run_shell_command"`, `toolName = "run_shell_command"` + "\n" + `commandPrefix = "git"`, true},
		{"by a command", `toolName = "run_shell_command"` + "\n" + `commandPrefix = "git"`, `toolName = "run_shell_command"`, false},
		{"by input", `toolName = "edit"` + "\n" + `argsPattern = "x"`, `toolName = "edit"`, false},
		{"by a class", `toolClass = "edit"`, `toolName = "edit"`, false},
		{"a class", `toolClass = ["edit", "read"]`, `toolClass = "read"`, true},
		{"by a sub-agent's", `toolName = "edit"` + "\n" + `subagent = "x"`, `toolName = "edit"`, false},
		{"with nobody there", `toolName = "edit"` + "\n" + `interactive = false`, `toolName = "edit"`, false},
		{"of a server", `toolName = "*"` + "\n" + `mcpName = "x"`, `toolName = "*"`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, decision := range []string{"deny", "ask_user", "allow"} {
				p := ParsePolicy([]byte("[[rule]]\n"+tt.over+"\ndecision = \""+decision+"\"\npriority = 2\n"+
					"[[rule]]\n"+tt.under+"\ndecision = \"allow\"\npriority = 1\n"), "f", TierUser)
				if len(p.Rules) != 2 {
					t.Fatal(p.Problems)
				}
				rules := NewEngine(p.Rules).Rules()
				i := slices.IndexFunc(rules, func(r Rule) bool { return r.Priority == 1 })
				got := Shadow(rules, i) != nil
				if want := tt.want && decision != "allow"; got != want {
					t.Errorf("%s: %v, want %v", decision, got, want)
				}
				if got {
					sameDecisions(t, p.Rules, p.Rules[:1])
				}
			}
		})
	}
}

func sameDecisions(t *testing.T, a, b []Rule) {
	t.Helper()
	one, other := NewEngine(a), NewEngine(b)
	inputs := map[string]string{
		"edit": `{"file_path":"/w/a"}`, "write_file": `{"file_path":"/w/a"}`, "read_file": `{"file_path":"/w/a"}`,
		shellTool: `{"command":"git status && git push && rm -rf /"}`,
	}
	for _, mode := range Modes {
		for tool, input := range inputs {
			f := Facts{Tool: tool, Class: builtIn()[tool], Input: []byte(input), Mode: mode, Cwd: "/w", Home: "/h"}
			if x, y := one.Decide(f), other.Decide(f); x.Behavior != y.Behavior {
				t.Errorf("%s in mode %s: %s with the shadowed rule, %s without it", tool, mode, x.Behavior, y.Behavior)
			}
		}
	}
}

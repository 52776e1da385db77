package policy

import "testing"

func TestEveryOutwardToolNameIsUnderstood(t *testing.T) {
	t.Parallel()
	for dialect, names := range toolNames {
		seen := map[string]string{}
		for ours, theirs := range names {
			if got := CanonicalTool(theirs); got != ours {
				t.Errorf("%s: %s is called %s there, which is read as %s", dialect, ours, theirs, got)
			}
			if other, dup := seen[theirs]; dup {
				t.Errorf("%s: %s and %s are both called %s", dialect, ours, other, theirs)
			}
			seen[theirs] = ours
		}
	}
	for alias, ours := range toolAliases {
		if CanonicalTool(ours) != ours {
			t.Errorf("%s stands for %s, which is an alias itself", alias, ours)
		}
	}
}

func TestNamesInDialects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialect, tool, want string }{
		{"claude", "run_shell_command", "Bash"},
		{"claude", "mcp__s__t", "mcp__s__t"},
		{"qwen", "ask_user", "ask_user_question"},
		{"qwen", "read_file", "read_file"},
		{"gemini", "edit", "replace"},
		{"native", "edit", "edit"},
		{"", "edit", "edit"},
	} {
		if got := ToolName(c.dialect, c.tool); got != c.want {
			t.Errorf("ToolName(%q, %q) = %q, want %q", c.dialect, c.tool, got, c.want)
		}
	}
	for _, d := range []string{"native", "claude", "qwen", "gemini"} {
		for _, m := range Modes {
			back, err := ParseMode(ModeName(d, m))
			if err != nil || back != m && m != ModeDontAsk {
				t.Errorf("%s: mode %s is named %q, read as %q, %v", d, m, ModeName(d, m), back, err)
			}
		}
	}
}

// TestQwenToolNames: each name that qwen-code's rules may give a tool of ours.
func TestQwenToolNames(t *testing.T) {
	t.Parallel()
	for ours, names := range map[string][]string{
		"run_shell_command": {"Shell", "ShellTool", "Bash"},
		"edit":              {"Edit", "EditTool", "replace"},
		"write_file":        {"Write", "WriteFile", "WriteFileTool"},
		"read_file":         {"Read", "ReadFile", "ReadFileTool"},
		"grep_search":       {"Grep", "GrepTool", "search_file_content", "SearchFiles"},
		"glob":              {"Glob", "GlobTool", "FindFiles"},
		"list_directory":    {"ListFiles", "ListFilesTool", "ReadFolder"},
		"task_stop":         {"TaskStop", "TaskStopTool"},
		"task_output":       {"TaskOutput", "TaskOutputTool"},
		"todo_write":        {"TodoWrite", "TodoWriteTool"},
		"web_fetch":         {"WebFetch", "WebFetchTool"},
		"agent":             {"Agent", "AgentTool", "task", "Task", "TaskTool"},
		"exit_plan_mode":    {"ExitPlanMode", "ExitPlanModeTool"},
	} {
		for _, name := range append(names, ours) {
			if got := CanonicalTool(name); got != ours || !IsTool(name) || !IsTool(name+"(x)") {
				t.Errorf("%s is read as %s, want %s", name, got, ours)
			}
		}
	}
	if IsTool("no_such_tool") || IsTool("Lsp(x)") {
		t.Error("a tool is known that there isn't")
	}
}

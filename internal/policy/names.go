package policy

// toolAliases maps the names that rules and flags of other agent CLIs use to
// ours.
var toolAliases = map[string]string{
	"Bash":                "run_shell_command",
	"Shell":               "run_shell_command",
	"ShellTool":           "run_shell_command",
	"shell":               "run_shell_command",
	"BashOutput":          "task_output",
	"TaskOutput":          "task_output",
	"KillShell":           "task_stop",
	"TaskStop":            "task_stop",
	"Read":                "read_file",
	"ReadFile":            "read_file",
	"ReadFileTool":        "read_file",
	"Write":               "write_file",
	"WriteFile":           "write_file",
	"WriteFileTool":       "write_file",
	"Edit":                "edit",
	"EditTool":            "edit",
	"replace":             "edit",
	"Glob":                "glob",
	"FindFiles":           "glob",
	"Grep":                "grep_search",
	"GrepTool":            "grep_search",
	"SearchText":          "grep_search",
	"search_file_content": "grep_search",
	"LS":                  "list_directory",
	"ListFiles":           "list_directory",
	"ReadFolder":          "list_directory",
	"WebFetch":            "web_fetch",
	"WebFetchTool":        "web_fetch",
	"TodoWrite":           "todo_write",
	"TodoWriteTool":       "todo_write",
	"write_todos":         "todo_write",
	"AskUserQuestion":     "ask_user",
	"ask_user_question":   "ask_user",
	"MultiEdit":           "edit",
	"NotebookEdit":        "notebook_edit",
	"Agent":               "agent",
	"Task":                "agent",
	"AgentTool":           "agent",
	"invoke_agent":        "agent",
	"Skill":               "skill",
	"SkillTool":           "skill",
	"activate_skill":      "skill",
}

// isTool reports whether a name is that of a tool, ours or an alias.
func isTool(name string) bool {
	for alias, tool := range toolAliases {
		if name == alias || name == tool {
			return true
		}
	}
	return false
}

// CanonicalTool returns our name of a tool that may be given by an alias.
// Names that are no alias come back as they are.
func CanonicalTool(name string) string {
	if c, ok := toolAliases[name]; ok {
		return c
	}
	return name
}

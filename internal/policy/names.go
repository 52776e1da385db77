package policy

import "strings"

// toolAliases maps the names that rules and flags of other agent CLIs use to
// ours.
var toolAliases = map[string]string{
	"Bash":                 "run_shell_command",
	"Shell":                "run_shell_command",
	"ShellTool":            "run_shell_command",
	"shell":                "run_shell_command",
	"BashOutput":           "task_output",
	"TaskOutput":           "task_output",
	"TaskOutputTool":       "task_output",
	"KillShell":            "task_stop",
	"TaskStop":             "task_stop",
	"TaskStopTool":         "task_stop",
	"Read":                 "read_file",
	"ReadFile":             "read_file",
	"ReadFileTool":         "read_file",
	"Write":                "write_file",
	"WriteFile":            "write_file",
	"WriteFileTool":        "write_file",
	"Edit":                 "edit",
	"EditTool":             "edit",
	"replace":              "edit",
	"Glob":                 "glob",
	"GlobTool":             "glob",
	"FindFiles":            "glob",
	"Grep":                 "grep_search",
	"GrepTool":             "grep_search",
	"SearchText":           "grep_search",
	"SearchFiles":          "grep_search",
	"search_file_content":  "grep_search",
	"LS":                   "list_directory",
	"ListFiles":            "list_directory",
	"ListFilesTool":        "list_directory",
	"ReadFolder":           "list_directory",
	"WebFetch":             "web_fetch",
	"WebFetchTool":         "web_fetch",
	"TodoWrite":            "todo_write",
	"TodoWriteTool":        "todo_write",
	"write_todos":          "todo_write",
	"AskUserQuestion":      "ask_user",
	"ask_user_question":    "ask_user",
	"MultiEdit":            "edit",
	"NotebookEdit":         "notebook_edit",
	"Agent":                "agent",
	"Task":                 "agent",
	"task":                 "agent",
	"TaskTool":             "agent",
	"AgentTool":            "agent",
	"invoke_agent":         "agent",
	"Skill":                "skill",
	"SkillTool":            "skill",
	"activate_skill":       "skill",
	"WebSearch":            "web_search",
	"WebSearchTool":        "web_search",
	"google_web_search":    "web_search",
	"EnterPlanMode":        "enter_plan_mode",
	"ExitPlanMode":         "exit_plan_mode",
	"ExitPlanModeTool":     "exit_plan_mode",
	"ToolSearch":           "tool_search",
	"ListMcpResourcesTool": "list_mcp_resources",
	"ReadMcpResourceTool":  "read_mcp_resource",
	"StructuredOutput":     "structured_output",
}

// IsTool reports whether a rule, or a name, is about a tool of ours, which may
// be called by an alias.
func IsTool(rule string) bool {
	name, _, _ := strings.Cut(rule, "(")
	name = strings.TrimSpace(name)
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

// toolNames are the names that the tools have in other dialects, by ours. A
// tool that is not here has our name there.
var toolNames = map[string]map[string]string{
	"claude": {
		"run_shell_command":  "Bash",
		"read_file":          "Read",
		"write_file":         "Write",
		"edit":               "Edit",
		"glob":               "Glob",
		"grep_search":        "Grep",
		"list_directory":     "LS",
		"web_fetch":          "WebFetch",
		"web_search":         "WebSearch",
		"todo_write":         "TodoWrite",
		"ask_user":           "AskUserQuestion",
		"notebook_edit":      "NotebookEdit",
		"agent":              "Agent",
		"skill":              "Skill",
		"task_output":        "TaskOutput",
		"task_stop":          "TaskStop",
		"enter_plan_mode":    "EnterPlanMode",
		"exit_plan_mode":     "ExitPlanMode",
		"tool_search":        "ToolSearch",
		"list_mcp_resources": "ListMcpResourcesTool",
		"read_mcp_resource":  "ReadMcpResourceTool",
		"structured_output":  "StructuredOutput",
	},
	"qwen": {
		"ask_user": "ask_user_question",
	},
	"gemini": {
		"edit":       "replace",
		"todo_write": "write_todos",
		"web_search": "google_web_search",
		"agent":      "invoke_agent",
		"skill":      "activate_skill",
	},
}

// ToolName returns the name that one of our tools has in a dialect (native,
// claude, qwen, gemini). Names of other tools, and all names in a dialect that
// is not known, come back as they are; to bring a name of any origin into a
// dialect give it to CanonicalTool first.
func ToolName(dialect, canonical string) string {
	if n, ok := toolNames[dialect][canonical]; ok {
		return n
	}
	return canonical
}

// ToolNames returns the tools whose names differ in a dialect: theirs by ours.
// The map must not be changed; nil: none does.
func ToolNames(dialect string) map[string]string { return toolNames[dialect] }

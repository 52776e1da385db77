package control

import "github.com/go-json-experiment/json/jsontext"

// sum is what items take of the context.
func sum(items []UsageItem) int {
	n := 0
	for _, i := range items {
		if !i.Absent {
			n += i.Tokens
		}
	}
	return n
}

// used is what fills the context.
func (u *ContextUsage) used() int {
	return u.SystemPrompt + sum(u.Tools) + sum(u.MCPTools) + sum(u.Memory) + sum(u.Skills) + sum(u.Agents) + u.Messages
}

// free is what is left; 0 when the window isn't known.
func (u *ContextUsage) free() int { return max(u.Window-u.used()-u.AutoCompact, 0) }

// ContextCategory is a share of the context in Claude's form.
type ContextCategory struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Color  string `json:"color"`
	Kind   string `json:"kind"`
}

// ContextItem is a part of the context in Claude's form.
type ContextItem struct {
	Name       string `json:"name,omitzero"`
	Path       string `json:"path,omitzero"`
	Type       string `json:"type,omitzero"`
	AgentType  string `json:"agentType,omitzero"`
	Source     string `json:"source,omitzero"`
	ServerName string `json:"serverName,omitzero"`
	Tokens     int    `json:"tokens"`
	IsLoaded   *bool  `json:"isLoaded,omitzero"`
}

// ClaudeContextResponse is Claude's response to get_context_usage.
type ClaudeContextResponse struct {
	Categories   []ContextCategory `json:"categories"`
	TotalTokens  int               `json:"totalTokens"`
	MaxTokens    int               `json:"maxTokens"`
	RawMaxTokens int               `json:"rawMaxTokens"`
	Percentage   float64           `json:"percentage"`
	GridRows     [][]struct{}      `json:"gridRows"`
	Model        string            `json:"model"`
	MemoryFiles  []ContextItem     `json:"memoryFiles"`
	MCPTools     []ContextItem     `json:"mcpTools"`
	Agents       []ContextItem     `json:"agents"`
	AutoCompact  bool              `json:"isAutoCompactEnabled"`
	APIUsage     jsontext.Value    `json:"apiUsage"`
}

func claudeContext(u *ContextUsage) *ClaudeContextResponse {
	out := &ClaudeContextResponse{
		TotalTokens: u.used(), MaxTokens: max(u.Window-u.AutoCompact, 0), RawMaxTokens: u.Window, Model: u.Model,
		AutoCompact: u.AutoCompact > 0, APIUsage: jsontext.Value("null"),
	}
	if u.LastUsage != nil {
		out.APIUsage = jsontext.Value(u.LastUsage)
	}
	if u.Window > 0 {
		out.Percentage = float64(out.TotalTokens) * 100 / float64(u.Window)
	}
	for _, c := range []ContextCategory{
		{"System prompt", u.SystemPrompt, "promptBorder", "used"},
		{"System tools", sum(u.Tools), "inactive", "used"},
		{"MCP tools", sum(u.MCPTools), "cyan", "used"},
		{"Custom agents", sum(u.Agents), "permission", "used"},
		{"Memory files", sum(u.Memory), "claude", "used"},
		{"Skills", sum(u.Skills), "warning", "used"},
		{"Messages", u.Messages, "purple", "used"},
		{"Autocompact buffer", u.AutoCompact, "inactive", "reserved"},
		{"Free space", u.free(), "promptBorder", "free"},
	} {
		if c.Tokens > 0 {
			out.Categories = append(out.Categories, c)
		}
	}
	for _, i := range u.Memory {
		out.MemoryFiles = append(out.MemoryFiles, ContextItem{Path: i.Name, Type: i.Source, Tokens: i.Tokens})
	}
	for _, i := range u.MCPTools {
		out.MCPTools = append(out.MCPTools, ContextItem{Name: i.Name, ServerName: i.Server, Tokens: i.Tokens, IsLoaded: new(!i.Absent)})
	}
	for _, i := range u.Agents {
		out.Agents = append(out.Agents, ContextItem{AgentType: i.Name, Source: i.Source, Tokens: i.Tokens})
	}
	return out
}

// ContextResponse is the native and qwen response to get_context_usage.
type ContextResponse struct {
	Subtype      string           `json:"subtype"`
	ModelName    string           `json:"modelName"`
	TotalTokens  int              `json:"totalTokens"`
	Window       int              `json:"contextWindowSize"`
	Breakdown    ContextBreakdown `json:"breakdown"`
	BuiltinTools []ContextPart    `json:"builtinTools"`
	MCPTools     []ContextPart    `json:"mcpTools"`
	MemoryFiles  []ContextFile    `json:"memoryFiles"`
	Skills       []ContextSkill   `json:"skills"`
	ShowDetails  bool             `json:"showDetails"`
}

// ContextBreakdown adds up the parts of the context.
type ContextBreakdown struct {
	SystemPrompt      int `json:"systemPrompt"`
	BuiltinTools      int `json:"builtinTools"`
	MCPTools          int `json:"mcpTools"`
	MemoryFiles       int `json:"memoryFiles"`
	Skills            int `json:"skills"`
	Messages          int `json:"messages"`
	CachedTokens      int `json:"cachedTokens"`
	FreeSpace         int `json:"freeSpace"`
	AutocompactBuffer int `json:"autocompactBuffer"`
}

// ContextPart is a tool.
type ContextPart struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// ContextFile is a memory file.
type ContextFile struct {
	Path   string `json:"path"`
	Tokens int    `json:"tokens"`
}

// ContextSkill is a skill.
type ContextSkill struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Loaded bool   `json:"loaded"`
}

func qwenContext(u *ContextUsage, details bool) *ContextResponse {
	out := &ContextResponse{
		Subtype: "get_context_usage", ModelName: u.Model, TotalTokens: u.used(), Window: u.Window, ShowDetails: details,
		Breakdown: ContextBreakdown{
			SystemPrompt: u.SystemPrompt + sum(u.Agents), BuiltinTools: sum(u.Tools), MCPTools: sum(u.MCPTools), MemoryFiles: sum(u.Memory),
			Skills: sum(u.Skills), Messages: u.Messages, CachedTokens: u.Cached, FreeSpace: u.free(), AutocompactBuffer: u.AutoCompact,
		},
	}
	for _, i := range u.Tools {
		out.BuiltinTools = append(out.BuiltinTools, ContextPart{i.Name, i.Tokens})
	}
	for _, i := range u.MCPTools {
		out.MCPTools = append(out.MCPTools, ContextPart{i.Name, i.Tokens})
	}
	for _, i := range u.Memory {
		out.MemoryFiles = append(out.MemoryFiles, ContextFile{i.Name, i.Tokens})
	}
	for _, i := range u.Skills {
		out.Skills = append(out.Skills, ContextSkill{i.Name, i.Tokens, !i.Absent})
	}
	return out
}

package command

import (
	"context"
	"strings"
	"time"
	"unicode"
)

// Hint is one proposal for what the user may be typing.
type Hint struct {
	Kind        string `json:"kind"`  // command, file, server or help
	Value       string `json:"value"` // with its "/", "@" or "?"
	Description string `json:"description"`
}

// hintTime bounds the wait for file names; choosing among them takes as long
// again at most.
const hintTime = 8 * time.Millisecond

// maxHints bounds the hints of one answer.
const maxHints = 200

// Hints returns at most limit proposals for a prefix that begins with "/", "@"
// or "?"; a limit of 0 or less means 20. Any other prefix has none. It returns
// within 20 ms.
func (r *Registry) Hints(ctx context.Context, prefix string, limit int) []Hint {
	if limit <= 0 {
		limit = 20
	}
	limit = min(limit, maxHints)
	if prefix == "" {
		return nil
	}
	var hints []Hint
	switch typed := prefix[1:]; prefix[0] {
	case '/':
		hints = r.commandHints(typed)
	case '@':
		hints = r.atHints(ctx, typed, limit)
	case '?':
		hints = helpHints(typed)
	}
	return hints[:min(limit, len(hints))]
}

// commandHints puts the commands whose name begins as typed before those that
// have an alias or a part that does.
func (r *Registry) commandHints(typed string) []Hint {
	typed = strings.ToLower(typed)
	var first, then []Hint
	for _, c := range r.List() {
		hint := Hint{Kind: "command", Value: "/" + c.Name, Description: c.Description}
		switch {
		case strings.HasPrefix(strings.ToLower(c.Name), typed):
			first = append(first, hint)
		case anyPrefix(append(strings.FieldsFunc(c.Name, isSeparator), c.Aliases...), typed):
			then = append(then, hint)
		}
	}
	return append(first, then...)
}

func isSeparator(c rune) bool { return c == ':' || c == '-' || c == '_' }

func anyPrefix(words []string, typed string) bool {
	for _, w := range words {
		if strings.HasPrefix(strings.ToLower(w), typed) {
			return true
		}
	}
	return false
}

// atHints are the MCP servers and files that fit.
func (r *Registry) atHints(ctx context.Context, typed string, limit int) []Hint {
	var hints []Hint
	if r.env.Servers != nil {
		for _, s := range r.env.Servers.Servers() {
			if strings.HasPrefix(strings.ToLower(s.Name), strings.ToLower(typed)) {
				hints = append(hints, Hint{Kind: "server", Value: "@" + s.Name, Description: "MCP server, " + s.Status})
			}
		}
	}
	if r.env.Files == nil || len(hints) >= limit {
		return hints
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	for _, path := range r.env.Files.FindFiles(ctx, typed, limit-len(hints)) {
		hints = append(hints, Hint{Kind: "file", Value: "@" + path})
	}
	return hints
}

func helpHints(typed string) []Hint {
	var hints []Hint
	for _, t := range topics {
		if strings.HasPrefix(t.name, strings.ToLower(typed)) {
			hints = append(hints, Hint{Kind: "help", Value: "?" + t.name, Description: t.line})
		}
	}
	return hints
}

// topic is something that /help explains.
type topic struct{ name, line, text string }

var topics = []topic{
	{"commands", "slash commands, and how to make your own",
		"A line that begins with / and a name is a command. Your own are markdown files: .agent/commands/NAME.md in a project or in your home directory is /NAME. See docs/commands.md."},
	{"files", "files in a prompt",
		"@path in a command file stands for the contents of that file, if it lies in the directories that the session may read."},
	{"mcp", "tools of MCP servers",
		"MCP servers come from --mcp-config, the settings, or the host; their tools are named mcp__SERVER__TOOL. /mcp shows the state of each."},
	{"models", "which model answers",
		"--model and the setting model choose it, /model NAME changes it from the next request on. agent models lists those that are known."},
	{"permissions", "what runs without asking",
		"The mode and the rules decide on each call: /mode and /permissions show them. See docs/permissions.md."},
	{"protocol", "JSON lines in and out",
		"--input-format stream-json and --output-format stream-json make the program speak JSON lines with its host. See docs/protocol.md."},
}

func topicNames() []string {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.name
	}
	return names
}

// oneLine makes a text of a stranger fit for a list: one line without control
// characters.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch {
		case c == '\n', c == '\t', c == '\r', c == 0x2028, c == 0x2029:
			return ' '
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c), c == unicode.ReplacementChar:
			return -1
		}
		return c
	}, s))
}

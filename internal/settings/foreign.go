package settings

import (
	"strings"

	"github.com/tailscale/hujson"
)

// ClaudeString returns the string under a key of Claude Code's settings files,
// the last of home, project and project's local file that has it; "" if none
// has. What can't be read says nothing here: [Rules] warns of it.
func ClaudeString(o RuleOptions, key string) string {
	if lit := otherLiteral(o, claude, key); lit.Kind() == '"' {
		return lit.String()
	}
	return ""
}

// QwenRecords reports whether qwen-code's settings files let transcripts be
// kept: the last that says anything under general.chatRecording doesn't say
// false.
func QwenRecords(o RuleOptions) bool {
	return otherLiteral(o, qwen, "general.chatRecording").Kind() != 'f'
}

// otherLiteral returns the last value under a key of another tool's settings
// files that is no object or list; the number 0 if there is none.
func otherLiteral(o RuleOptions, tool, key string) hujson.Literal {
	found := hujson.Int(0)
	for _, f := range otherFiles(o) {
		if f.tool != tool {
			continue
		}
		data, err := readFile(f.path)
		if err != nil {
			continue
		}
		if doc, err := parseDocument(f.path, data); err == nil {
			if lit, ok := literalAt(doc.root, strings.Split(key, ".")); ok {
				found = lit
			}
		}
	}
	return found
}

// literalAt returns the value that lies at path beneath obj.
func literalAt(obj *object, path []string) (hujson.Literal, bool) {
	for _, m := range members(obj) {
		if m.name != path[0] {
			continue
		}
		if inner, ok := m.value.Value.(*object); ok && len(path) > 1 {
			return literalAt(inner, path[1:])
		}
		if lit, ok := m.value.Value.(hujson.Literal); ok && len(path) == 1 {
			return lit, true
		}
	}
	return nil, false
}

package settings

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ClaudeDocument is what a document says in the words of Claude Code's settings
// that ours have no key for. Keys with values of another kind say nothing.
type ClaudeDocument struct {
	OutputStyle string
	Env         []string // NAME=value, sorted
	Directories []string // permissions.additionalDirectories
	Sandbox     bool     // wants one
	Guards      []string // events with hooks that can keep something from running, sorted
}

// guardEvents are the events whose hooks decide whether something runs.
var guardEvents = []string{"PermissionRequest", "PreToolUse", "UserPromptSubmit"}

// ReadClaude reads a document. One that can't be read says nothing: [Load]
// tells why.
func ReadClaude(d Document) ClaudeDocument {
	var out ClaudeDocument
	doc, err := parseDocument(d.Name, slices.Clone(d.Data))
	if err != nil {
		return out
	}
	text := func(path ...string) string {
		if lit, ok := literalAt(doc.root, path); ok {
			return lit.String()
		}
		return ""
	}
	out.OutputStyle = text("outputStyle")
	out.Sandbox = text("sandbox", "enabled") == "true"
	for _, m := range within(doc.root, "env") {
		if lit, ok := m.value.Value.(hujson.Literal); ok && lit.Kind() != 'n' && m.name != "" && !strings.ContainsAny(m.name, "=\x00") {
			out.Env = append(out.Env, m.name+"="+lit.String())
		}
	}
	slices.Sort(out.Env)
	for _, m := range within(doc.root, "permissions") {
		if m.name == "additionalDirectories" {
			out.Directories = nil
			_ = json.Unmarshal(standard(m.value), &out.Directories) // another kind says nothing
		}
	}
	if text("disableAllHooks") == "true" {
		return out
	}
	for _, m := range within(doc.root, "hooks") {
		if list, ok := m.value.Value.(*hujson.Array); ok && len(list.Elements) > 0 && slices.Contains(guardEvents, m.name) {
			out.Guards = append(out.Guards, m.name)
		}
	}
	slices.Sort(out.Guards)
	return out
}

// within returns the members of the object under a name of obj.
func within(obj *object, name string) []member {
	var out []member
	for _, m := range members(obj) {
		if inner, ok := m.value.Value.(*object); ok && m.name == name {
			out = append(out, members(inner)...)
		}
	}
	return out
}

// standard returns a value as JSON.
func standard(v *hujson.Value) []byte {
	c := v.Clone()
	c.Standardize()
	return c.Pack()
}

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

// QwenSettings is what sessions of qwen-code's SDK take from that program's
// settings files. Zero values: they don't say.
type QwenSettings struct {
	Model     string
	CoreTools []string                   // the only built-in tools to offer
	Servers   map[string]json.RawMessage // MCP servers, by the user's own file alone
}

// Qwen reads qwen-code's settings files. For the model the project's file wins
// over the user's, for the tools the user's over the project's. What can't be
// read says nothing here: [Rules] warns of it.
func Qwen(o RuleOptions) QwenSettings {
	var out QwenSettings
	for _, f := range otherFiles(o) {
		if f.tool != qwen {
			continue
		}
		data, err := readFile(f.path)
		if err != nil {
			continue
		}
		if doc, err := parseDocument(f.path, data); err == nil {
			out.take(doc, f.rel == "")
		}
	}
	return out
}

// take adds what one file says, the user's own or the project's.
func (q *QwenSettings) take(doc *document, own bool) {
	var in struct {
		Model struct{ Name string }
		Tools struct{ Core []string }
		MCP   struct{ Allowed, Excluded []string }

		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	plain := doc.tree.Clone()
	plain.Standardize()
	_ = json.Unmarshal(plain.Pack(), &in) // what is of another kind stays empty
	if in.Model.Name != "" {
		q.Model = in.Model.Name
	}
	if len(q.CoreTools) == 0 {
		q.CoreTools = in.Tools.Core
	}
	for name, server := range in.Servers {
		if !own || len(in.MCP.Allowed) > 0 && !slices.Contains(in.MCP.Allowed, name) || slices.Contains(in.MCP.Excluded, name) {
			continue
		}
		if q.Servers == nil {
			q.Servers = map[string]json.RawMessage{}
		}
		q.Servers[name] = server
	}
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

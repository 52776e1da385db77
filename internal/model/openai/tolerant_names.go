package openai

import (
	"encoding/json"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// call is a tool call that was understood: args is a JSON object, or invalid
// says why there is none.
type call struct {
	name    string
	args    string
	invalid string
}

// toolSchema is what the tolerant layer reads of a tool's JSON Schema.
type toolSchema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type json.RawMessage `json:"type"`
}

func (s toolSchema) has(key string) bool {
	_, ok := s.Properties[key]
	return ok
}

// isText reports whether the property is, or may be, a string.
func (p property) isText() bool { return strings.Contains(string(p.Type), `"string"`) }

// toolset resolves the names that models give to the request's tools. It reads
// the tools when the first name is asked for, which most answers never do.
type toolset struct {
	req     *model.Request
	ready   bool
	byName  map[string]string // exact and wire names
	folded  map[string]string // without case and punctuation; "" if ambiguous
	schemas map[string]toolSchema
	used    map[string]bool // call ids of the history and of this answer
}

func newToolset(req *model.Request) *toolset { return &toolset{req: req} }

func (t *toolset) any() bool { return len(t.req.Tools) > 0 }

func (t *toolset) prepare() {
	if t.ready {
		return
	}
	t.ready = true
	t.byName = make(map[string]string, 2*len(t.req.Tools))
	t.folded = make(map[string]string, len(t.req.Tools))
	t.schemas = make(map[string]toolSchema)
	for _, tool := range t.req.Tools {
		t.byName[wireName(tool.Name)] = tool.Name
		key := fold(tool.Name)
		if other, ok := t.folded[key]; ok && other != tool.Name {
			t.folded[key] = ""
			continue
		}
		t.folded[key] = tool.Name
	}
	for _, tool := range t.req.Tools {
		t.byName[tool.Name] = tool.Name
	}
}

// known reports whether name is, letter for letter, a tool of the request.
func (t *toolset) known(name string) bool {
	t.prepare()
	_, ok := t.byName[name]
	return ok
}

// anyStarts reports whether s begins with the name of a tool, or may yet.
func (t *toolset) anyStarts(s string) bool {
	for _, tool := range t.req.Tools {
		if n := min(len(s), len(tool.Name)); strings.HasPrefix(tool.Name, s[:n]) {
			return true
		}
	}
	return false
}

// resolve returns the request's tool that name means: itself, or without the
// prefixes and suffixes that models add (functions.NAME, NAME:0,
// NAME<|channel|>...), or but for case and punctuation, if only one fits.
func (t *toolset) resolve(name string) (string, bool) {
	t.prepare()
	name = strings.TrimSpace(name)
	if known, ok := t.byName[name]; ok {
		return known, true
	}
	name = bareName(name)
	if known, ok := t.byName[name]; ok {
		return known, true
	}
	known := t.folded[fold(name)]
	return known, known != ""
}

// resolveOr is resolve, or the name itself.
func (t *toolset) resolveOr(name string) string {
	if known, ok := t.resolve(name); ok {
		return known
	}
	return name
}

// bareName strips what models put around a tool's name.
func bareName(name string) string {
	if i := strings.Index(name, "<|"); i > 0 {
		name = name[:i]
	}
	name = strings.Trim(name, " \t\r\n\"'`")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "()"), ".call")
	if i := strings.LastIndexByte(name, ':'); i > 0 && isDigits(name[i+1:]) {
		name = name[:i]
	}
	for _, prefix := range []string{"functions", "function", "tools", "tool", "default_api", "api", "namespace"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest == "" {
			continue
		}
		if trimmed := strings.TrimLeft(rest, ".:/"); trimmed != rest && trimmed != "" {
			return trimmed
		}
	}
	return name
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// fold drops case and punctuation.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// schema returns the schema of the tool that name means; the zero value for an
// unknown tool or one without properties.
func (t *toolset) schema(name string) toolSchema {
	name, ok := t.resolve(name)
	if !ok {
		return toolSchema{}
	}
	if s, ok := t.schemas[name]; ok {
		return s
	}
	var s toolSchema
	for _, tool := range t.req.Tools {
		if tool.Name == name {
			s = schemaOf(tool.Schema)
		}
	}
	t.schemas[name] = s
	return s
}

// uniqueID returns id, or a new one if it is empty or was used before in the
// conversation.
func (t *toolset) uniqueID(id string) string {
	if t.used == nil {
		t.used = usedIDs(t.req.Messages)
	}
	if id == "" || t.used[id] {
		id = newID()
	}
	t.used[id] = true
	return id
}

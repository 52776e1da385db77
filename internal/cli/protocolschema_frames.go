package cli

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// plainFrames defines the lines of the program that have no Go type of their
// own, and returns the names. All their members are always there.
func (m *schemaMaker) plainFrames() []string {
	of := func(kind string) *jsonschema.Schema { return &jsonschema.Schema{Type: kind} }
	var names []string
	add := func(kind string, properties map[string]*jsonschema.Schema) {
		properties["type"] = text(kind)
		required := make([]string, 0, len(properties))
		for name := range properties {
			required = append(required, name)
		}
		slices.Sort(required)
		m.defs[kind] = object(required, properties)
		names = append(names, kind)
	}
	add("conversation_reset", map[string]*jsonschema.Schema{"new_conversation_id": of("string"), "session_id": of("string"), "trigger": of("string"), "uuid": of("string")})
	add("tool_progress", map[string]*jsonschema.Schema{
		"tool_use_id": of("string"), "tool_name": of("string"), "parent_tool_use_id": {Types: []string{"null", "string"}}, "elapsed_time_seconds": of("number"),
		"output_bytes": of("number"), "output_lines": of("number"), "text": of("string"), "session_id": of("string"), "uuid": of("string"),
	})
	add("transcript_mirror", map[string]*jsonschema.Schema{
		"filePath": of("string"), "entries": {Type: "array", Items: &jsonschema.Schema{Type: "object"}},
	})
	return names
}

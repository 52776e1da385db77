package settings

import (
	"bytes"
	"fmt"
	"strings"
)

// schemaNode is a JSON Schema, as far as settings need it.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        string                 `json:"type"`
	Default     any                    `json:"default,omitempty"`
	Enum        []string               `json:"enum,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Maximum     *int                   `json:"maximum,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Names       *namePattern           `json:"propertyNames,omitempty"`
	// Additional is false, or the schema of all other properties.
	Additional any `json:"additionalProperties,omitempty"`
}

type namePattern struct {
	Pattern string `json:"pattern"`
}

// Schema returns the JSON Schema of a settings file, for editors.
func Schema() ([]byte, error) {
	root := objectNode()
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "agent settings"
	root.Properties["$schema"] = &schemaNode{Type: "string", Description: "The schema of this file, for editors."}
	for _, k := range Keys() {
		at := root
		path := strings.Split(k.Name, ".")
		for _, step := range path[:len(path)-1] {
			at = at.child(step)
		}
		at.Properties[path[len(path)-1]] = keyNode(&k)
	}
	var b bytes.Buffer
	err := writeJSON(&b, root)
	return b.Bytes(), err
}

func objectNode() *schemaNode {
	return &schemaNode{Type: "object", Properties: map[string]*schemaNode{}, Additional: false}
}

// child returns the schema of a property that is an object, made if new.
func (n *schemaNode) child(step string) *schemaNode {
	if step == "<name>" {
		if inner, ok := n.Additional.(*schemaNode); ok {
			return inner
		}
		inner := objectNode()
		n.Additional = inner
		n.Names = &namePattern{Pattern: "^[A-Za-z0-9_-]+$"}
		return inner
	}
	if n.Properties[step] == nil {
		n.Properties[step] = objectNode()
	}
	return n.Properties[step]
}

func keyNode(k *Key) *schemaNode {
	n := &schemaNode{Description: k.Description, Default: k.Default}
	if k.Restricted {
		n.Description += " Read from the user's file and managed settings only."
	}
	switch k.Type {
	case String:
		n.Type, n.Enum = "string", k.Enum
	case Int:
		n.Type, n.Minimum, n.Maximum = "integer", &k.Min, &k.Max
	case StringList:
		n.Type, n.Items = "array", &schemaNode{Type: "string", Enum: k.Enum}
	case StringMap:
		n.Type, n.Additional = "object", &schemaNode{Type: "string"}
	case ObjectMap:
		n.Type, n.Additional = "object", &schemaNode{Type: "object"}
	}
	return n
}

// Reference returns the manual's table of all keys, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString("| key | value | default | read from | meaning |\n|---|---|---|---|---|\n")
	for _, k := range Keys() {
		from := "all"
		if k.Restricted {
			from = strings.Join(k.Scopes(), ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, strings.ReplaceAll(expected(&k), "|", `\|`), defaultText(&k), from, k.Description)
	}
	return b.String()
}

func defaultText(k *Key) string {
	if k.Default == nil {
		return ""
	}
	return fmt.Sprint(k.Default)
}

package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// paramNames are the names that parameters have in other dialects, by dialect,
// our tool and our parameter. Each is an alias of the parameter, so that it is
// understood in every dialect. One that is not here keeps its name.
var paramNames = map[string]map[string]map[string]string{
	"qwen": {
		"run_shell_command": {"run_in_background": "is_background"},
		"grep_search":       {"head_limit": "limit"},
		"read_mcp_resource": {"server": "server_name"},
	},
	"gemini": {
		"run_shell_command": {"run_in_background": "is_background", "directory": "dir_path"},
		"grep_search":       {"path": "dir_path", "-A": "after", "-B": "before", "-C": "context", "head_limit": "total_max_matches"},
		"glob":              {"path": "dir_path"},
		"list_directory":    {"path": "dir_path"},
		"edit":              {"replace_all": "allow_multiple"},
		"agent":             {"subagent_type": "agent_name"},
	},
}

// Names gives tools and their parameters the names that they have in one
// dialect. What comes in needs none: Registry.Lookup and Canonical understand
// every name. A nil *Names leaves everything as it is. It is safe for
// concurrent use.
type Names struct {
	dialect string
	params  map[string]map[string]string // by our tool and our parameter
	words   *regexp.Regexp               // our names of tools in a text; nil: none differs
}

// NewNames returns the names of a dialect; nil for one whose names are ours.
func NewNames(dialect string) *Names {
	n := &Names{dialect: dialect, params: paramNames[dialect]}
	if names := policy.ToolNames(dialect); len(names) > 0 {
		n.words = mentions(slices.Sorted(maps.Keys(names)))
	}
	if n.params == nil && n.words == nil {
		return nil
	}
	return n
}

// mentions matches names of tools in texts for the model: names of several
// words wherever they stand, names that are plain words only in "the X tool".
func mentions(names []string) *regexp.Regexp {
	var long, short []string
	for _, name := range names {
		if strings.Contains(name, "_") {
			long = append(long, regexp.QuoteMeta(name))
		} else {
			short = append(short, regexp.QuoteMeta(name))
		}
	}
	var forms []string
	if len(long) > 0 {
		forms = append(forms, `\b(?:`+strings.Join(long, "|")+`)\b`)
	}
	if len(short) > 0 {
		forms = append(forms, `\bthe (?:`+strings.Join(short, "|")+`) tool\b`)
	}
	return regexp.MustCompile(strings.Join(forms, "|"))
}

// Tool returns the name of a tool that may be given by any alias.
func (n *Names) Tool(name string) string {
	if n == nil {
		return name
	}
	return policy.ToolName(n.dialect, policy.CanonicalTool(name))
}

// Mode returns the name of a permission mode.
func (n *Names) Mode(m policy.Mode) string {
	if n == nil {
		return string(m)
	}
	return policy.ModeName(n.dialect, m)
}

// Spec returns a tool as the model is offered it. Tools of MCP servers keep
// their description and schema.
func (n *Names) Spec(s Spec) model.ToolSpec {
	out := model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema}
	if n == nil || s.Server != "" {
		return out
	}
	out.Name, out.Description = n.Tool(s.Name), n.Text(s.Description)
	params := n.params[s.Name]
	for ours, theirs := range params {
		out.Description = strings.ReplaceAll(out.Description, "`"+ours+"`", "`"+theirs+"`")
	}
	schema, err := renameSchema(s.Schema, params, n.Text)
	if err != nil { // the schemas are constants, and a test renames all
		panic(fmt.Sprintf("tools: the schema of %s: %v", s.Name, err))
	}
	out.Schema = schema
	return out
}

// Text returns a text for the model with our names of tools replaced. In it
// the names that are plain words must stand as "the X tool".
func (n *Names) Text(s string) string {
	if n == nil || n.words == nil {
		return s
	}
	return n.words.ReplaceAllStringFunc(s, func(m string) string {
		if short, ok := strings.CutPrefix(m, "the "); ok {
			short, _ = strings.CutSuffix(short, " tool")
			return "the " + policy.ToolName(n.dialect, short) + " tool"
		}
		return policy.ToolName(n.dialect, m)
	})
}

// Input returns the input of a call of a tool, which may be given by any
// alias, with the parameters' names; input has our names, see Canonical. What
// is not a JSON object comes back as it is.
func (n *Names) Input(tool string, input json.RawMessage) json.RawMessage {
	if n == nil {
		return input
	}
	out, err := renameKeys(input, n.params[policy.CanonicalTool(tool)])
	if err != nil {
		return input
	}
	return out
}

// renameKeys returns an object with keys renamed, in the same order. A key
// whose new name is taken keeps its own.
func renameKeys(object json.RawMessage, names map[string]string) (json.RawMessage, error) {
	if len(names) == 0 {
		return object, nil
	}
	keys, err := decodeObject(object)
	if err != nil {
		return nil, err
	}
	order := keyOrder(object)
	for i, key := range order {
		theirs, ok := names[key]
		if !ok {
			continue
		}
		if _, taken := keys[theirs]; taken || keys[key] == nil {
			continue
		}
		keys[theirs] = keys[key]
		delete(keys, key)
		order[i] = theirs
	}
	return encodeObject(order, keys)
}

// renameSchema renames the properties of an object's schema, and what their
// descriptions mention.
func renameSchema(schema json.RawMessage, names map[string]string, text func(string) string) (json.RawMessage, error) {
	schema = json.RawMessage(text(string(schema)))
	if len(names) == 0 {
		return schema, nil
	}
	keys, err := decodeObject(schema)
	if err != nil {
		return nil, err
	}
	if keys["properties"], err = renameKeys(keys["properties"], names); err != nil {
		return nil, err
	}
	if raw, ok := keys["required"]; ok {
		var required []string
		if err := json.Unmarshal(raw, &required); err != nil {
			return nil, err
		}
		for i, name := range required {
			if theirs, ok := names[name]; ok {
				required[i] = theirs
			}
		}
		if keys["required"], err = json.Marshal(required); err != nil {
			return nil, err
		}
	}
	return encodeObject(keyOrder(schema), keys)
}

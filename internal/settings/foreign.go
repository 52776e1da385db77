package settings

import "strings"

// ClaudeString returns the string under a key of Claude Code's settings files,
// the last of home, project and project's local file that has it; "" if none
// has. What can't be read says nothing here: [Rules] warns of it.
func ClaudeString(o RuleOptions, key string) string {
	found := ""
	for _, f := range otherFiles(o) {
		if f.tool != claude {
			continue
		}
		data, err := readFile(f.path)
		if err != nil {
			continue
		}
		if doc, err := parseDocument(f.path, data); err == nil {
			if s, ok := stringAt(doc.root, strings.Split(key, ".")); ok {
				found = s
			}
		}
	}
	return found
}

// stringAt returns the string that lies at path beneath obj.
func stringAt(obj *object, path []string) (string, bool) {
	for _, m := range members(obj) {
		if m.name != path[0] {
			continue
		}
		if inner, ok := m.value.Value.(*object); ok && len(path) > 1 {
			return stringAt(inner, path[1:])
		}
		if s, ok := scalarOf(String, m.value.Value); ok && len(path) == 1 {
			return s.(string), true
		}
	}
	return "", false
}

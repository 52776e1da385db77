package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseArgs reads the arguments of a native tool call. It returns one JSON
// object, or several when several stand in a row (servers merge parallel
// calls), or says why it cannot. Besides what repairJSON repairs, it takes an
// object encoded as a string (also twice), one in a code fence or in a list of
// its own, one wrapped in {"arguments": ...}, and nothing at all for {}. A key
// that comes twice stays; every reader takes the last value. cut says that the
// text was cut off: then nothing is completed.
func parseArgs(raw string, schema toolSchema, cut bool) (objects []string, invalid string) {
	objects, ok := argObjects(raw, cut, 3)
	if !ok {
		why := "the arguments are not a JSON object: "
		if cut {
			why = "the arguments were cut off at the output limit: "
		}
		return nil, why + clip(raw)
	}
	objects = distinct(objects)
	for i, o := range objects {
		objects[i] = unwrapArgs(o, schema)
	}
	return objects, ""
}

// clip shortens text that is quoted to the model.
func clip(s string) string {
	const most = 2000
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// argObjects reads the objects in raw; depth bounds string-in-string encoding.
func argObjects(raw string, cut bool, depth int) ([]string, bool) {
	s := strings.TrimSpace(raw)
	switch s {
	case "", "null", "None", `""`, "''", "[]":
		return []string{"{}"}, true
	}
	if s[0] == '{' && json.Valid([]byte(s)) {
		return []string{s}, true
	}
	s = unfence(s)
	switch {
	case s == "" || depth == 0:
		return nil, false
	case s[0] == '"' || s[0] == '\'':
		return encodedArgs(s, cut, depth)
	case s[0] == '[':
		return listedArgs(s, cut)
	case strings.HasPrefix(s, "{{") && strings.HasSuffix(s, "}}"):
		return argObjects(s[1:len(s)-1], cut, depth-1)
	}
	return objectsInRow(s, cut)
}

// unfence removes a code fence around s.
func unfence(s string) string {
	if !strings.HasPrefix(s, "```") {
		return s
	}
	_, body, ok := strings.Cut(s, "\n")
	if !ok {
		return s
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
}

func encodedArgs(s string, cut bool, depth int) ([]string, bool) {
	out, n, f := repairJSON(s, !cut)
	var inner string
	if f != fitYes || !junk(s[n:]) || json.Unmarshal([]byte(out), &inner) != nil {
		return nil, false
	}
	return argObjects(inner, cut, depth-1)
}

func listedArgs(s string, cut bool) ([]string, bool) {
	out, n, f := repairJSON(s, !cut)
	var list []json.RawMessage
	if f != fitYes || !junk(s[n:]) || json.Unmarshal([]byte(out), &list) != nil || len(list) == 0 {
		return nil, false
	}
	var objects []string
	for _, o := range list {
		if len(o) == 0 || o[0] != '{' {
			return nil, false
		}
		objects = append(objects, string(o))
	}
	return objects, true
}

func objectsInRow(s string, cut bool) ([]string, bool) {
	var objects []string
	for strings.HasPrefix(s, "{") {
		out, n, f := repairJSON(s, !cut)
		if f != fitYes {
			return nil, false
		}
		objects = append(objects, out)
		s = strings.TrimLeft(s[n:], " \t\r\n,;")
	}
	return objects, len(objects) > 0 && junk(s)
}

// junk reports whether s, after complete arguments, means nothing: left-over
// brackets, fences and markers of chat templates.
func junk(s string) bool {
	s = strings.Trim(s, " \t\r\n}]`,;")
	for s != "" {
		n := noiseAt(s)
		if n == 0 {
			return false
		}
		s = strings.Trim(s[n:], " \t\r\n}]`,;")
	}
	return true
}

// distinct drops {} beside real objects, and repetitions of the same object.
func distinct(objects []string) []string {
	if len(objects) < 2 {
		return objects
	}
	var kept []string
	for _, o := range objects {
		if sameJSON(o, "{}") || len(kept) > 0 && sameJSON(o, kept[len(kept)-1]) {
			continue
		}
		kept = append(kept, o)
	}
	if len(kept) == 0 {
		return objects[:1]
	}
	return kept
}

// unwrapArgs removes a wrapper of the call's own making: {"arguments": {...}},
// perhaps with a name beside it, where the tool has no such property.
func unwrapArgs(object string, schema toolSchema) string {
	if len(schema.Properties) == 0 {
		return object
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &m) != nil || len(m) == 0 || len(m) > 2 {
		return object
	}
	inner := ""
	for key, v := range m {
		switch {
		case schema.has(key):
			return object
		case isArgsKey(key):
			inner = string(v)
		case !isNameKey(key):
			return object
		}
	}
	if objects, ok := argObjects(inner, true, 2); ok && inner != "" && len(objects) == 1 {
		return objects[0]
	}
	return object
}

// nameKeys and argsKeys are what models call the parts of a call, the usual
// first.
var (
	nameKeys = [...]string{"name", "tool_name", "tool", "function", "function_name", "action", "recipient_name"}
	argsKeys = [...]string{"arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs"}
)

func isArgsKey(key string) bool { return slices.Contains(argsKeys[:], key) }

func isNameKey(key string) bool { return slices.Contains(nameKeys[:], key) }

// isSideKey names what may stand beside name and arguments in a call.
func isSideKey(key string) bool {
	switch key {
	case "id", "type", "call_id", "tool_call_id", "thought", "thoughts", "reasoning":
		return true
	}
	return false
}

package policy

import (
	"slices"
	"strings"
)

// allowedPath judges the arguments that name paths: they must lead into the
// roots and not into git's own files; editor settings ask. (gemini-cli's
// allowed-path.)
func (c *Checker) allowedPath(f *Facts) (Behavior, string) {
	in := &input{raw: f.Input}
	if in.object() == nil {
		return Deny, "the input is no JSON object"
	}
	a := pathArgs{f: f, included: texts(c.Config[includedArgs]), excluded: texts(c.Config[excludedArgs]), worst: Allow}
	a.fields("", in.object())
	return a.worst, a.why
}

// Keys of the configuration of allowed-path: arguments, nested ones as a.b,
// that name paths although they aren't called so, or don't although they are.
const includedArgs, excludedArgs = "included_args", "excluded_args"

// pathArgs looks for arguments that name paths.
type pathArgs struct {
	f                  *Facts
	included, excluded []string
	worst              Behavior
	why                string
}

func (a *pathArgs) fields(prefix string, fields map[string]any) {
	for key, v := range fields {
		name := prefix + key
		if !slices.Contains(a.excluded, name) {
			a.value(name, namesPath(key) || slices.Contains(a.included, name), v)
		}
	}
}

func (a *pathArgs) value(name string, isPath bool, v any) {
	switch v := v.(type) {
	case map[string]any:
		a.fields(name+".", v)
	case []any:
		for _, item := range v {
			a.value(name, isPath, item)
		}
	case string:
		if !isPath {
			return
		}
		if b, reason := pathVerdict(a.f, v); severity(b) > severity(a.worst) {
			a.worst, a.why = b, reason
		}
	}
}

// texts returns the texts of a text or list of texts.
func texts(v any) []string {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	var out []string
	items, _ := v.([]any)
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func namesPath(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "path") || strings.Contains(key, "directory") || strings.Contains(key, "file") || key == "source" || key == "destination"
}

func pathVerdict(f *Facts, raw string) (Behavior, string) {
	p := f.Path(raw)
	if !p.Inside {
		return Deny, raw + " is outside of the working directories"
	}
	for seg := range strings.SplitSeq(foldName(p.Real), "/") {
		switch {
		case seg == ".git" || seg == "node_modules" || seg == ".env":
			return Deny, raw + " leads into " + seg
		case seg == ".vscode":
			return Ask, raw + " leads into " + seg
		}
	}
	return Allow, ""
}

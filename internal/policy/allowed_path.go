package policy

import "strings"

// allowedPath judges the arguments that name paths: they must lead into the
// roots and not into git's own files; editor settings ask. (gemini-cli's
// allowed-path.)
func (c *Checker) allowedPath(f *Facts) (Behavior, string) {
	in := &input{raw: f.Input}
	worst, why := Allow, ""
	for key, v := range in.object() {
		s, ok := v.(string)
		if !ok || !namesPath(key) {
			continue
		}
		if b, reason := pathVerdict(f, s); severity(b) > severity(worst) {
			worst, why = b, reason
		}
	}
	if in.object() == nil {
		return Deny, "the input is no JSON object"
	}
	return worst, why
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

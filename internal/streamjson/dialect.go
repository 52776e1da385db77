package streamjson

import "fmt"

// Dialect is which host's form of the protocol is spoken: frames and control
// payloads differ in structure, not only in names.
type Dialect string

// Dialects.
const (
	Native Dialect = "native" // our own: docs/protocol.md
	Claude Dialect = "claude" // the Claude Agent SDKs'
	Qwen   Dialect = "qwen"   // @qwen-code/sdk's
	Gemini Dialect = "gemini" // gemini-cli's; output only
)

// Dialects lists them in the order shown to users.
var Dialects = [...]Dialect{Native, Claude, Qwen, Gemini}

// ParseDialect reads a dialect by its name. The error lists the valid ones.
func ParseDialect(s string) (Dialect, error) {
	for _, d := range Dialects {
		if s == string(d) {
			return d, nil
		}
	}
	return "", fmt.Errorf("unknown dialect %q: use one of native, claude, qwen, gemini", s)
}

package cli

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/agentcli/agent/internal/policy"
)

// visible makes every byte of s harmless to a terminal and visible to a person:
// control, bidirectional, zero-width and other format characters are written
// as escapes. Longer than max bytes it is cut, which it says.
func visible(s string, max int) string {
	cutBytes := 0
	if len(s) > max {
		cutBytes = len(s) - max
		s = s[:max]
	}
	s = policy.Visible(s)
	if cutBytes > 0 {
		s += fmt.Sprintf("... (+%d bytes)", cutBytes)
	}
	return s
}

// harmless keeps model text as it is but for what a terminal would obey.
func harmless(s string) string {
	bad := func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }
	if strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var sb strings.Builder
	for _, r := range s {
		if bad(r) {
			fmt.Fprintf(&sb, "\\u{%x}", r)
		} else {
			sb.WriteRune(r)
		}
	}
	return sb.String()
}

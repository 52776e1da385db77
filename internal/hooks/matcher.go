package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/agentcli/agent/internal/policy"
)

// matcher decides what a hook is called for.
type matcher struct {
	all   bool
	names []string // exact; nil: pattern decides
	re    *regexp.Regexp
	tools bool // the names are those of tools
}

func newMatcher(text string, tools bool) (matcher, error) {
	m := matcher{tools: tools}
	text = strings.TrimSpace(text)
	if text == "" || text == "*" {
		m.all = true
		return m, nil
	}
	if isNames(text) {
		for name := range strings.SplitSeq(text, "|") {
			name = strings.TrimSpace(name)
			if tools {
				name = policy.CanonicalTool(name)
			}
			if name != "" {
				m.names = append(m.names, name)
			}
		}
		return m, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return m, fmt.Errorf("matcher %q is neither names separated by | nor a regular expression (RE2): %w", text, err)
	}
	m.re = re
	return m, nil
}

// isNames reports whether a matcher is made of names alone.
func isNames(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_- |", r)
	})
}

// matches reports whether the hook is called for subject. A pattern is held
// against all spellings of a tool's name: a guard on one must not be passed by
// another.
func (m matcher) matches(subject string) bool {
	switch {
	case m.all:
		return true
	case m.re == nil && m.tools:
		return slices.Contains(m.names, policy.CanonicalTool(subject))
	case m.re == nil:
		return slices.Contains(m.names, subject)
	case m.tools:
		return slices.ContainsFunc(policy.ToolSpellings(subject), m.re.MatchString)
	}
	return m.re.MatchString(subject)
}

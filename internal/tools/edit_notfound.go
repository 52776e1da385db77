package tools

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// notFound explains why old isn't in text, as far as that can be seen.
func notFound(text, old, new string) error {
	var b strings.Builder
	b.WriteString("old_string was not found in the file")
	switch o := splitWanted(old); {
	case strings.ContainsRune(old, '\uFFFD'):
		b.WriteString(": it contains U+FFFD, which stands for bytes that are not UTF-8. Choose a text without it")
	case hasLineNumbers(o.lines):
		b.WriteString(": its lines begin with the line numbers that are shown when a file is read. Leave out each number and the tab after it")
	case strings.Contains(old, `\n`) && !strings.Contains(old, "\n"):
		b.WriteString(`: it contains \n as two characters. Write real line ends`)
	default:
		b.WriteString(nearestLines(text, o.lines))
	}
	if len(new) > 8 && strings.Contains(text, new) {
		fmt.Fprintf(&b, ". new_string is already there, at line %d: perhaps the change has been made before", 1+strings.Count(text[:strings.Index(text, new)], "\n"))
	}
	return errors.New(b.String())
}

// hasLineNumbers reports whether every line starts like read_file's output.
func hasLineNumbers(lines []string) bool {
	numbered := regexp.MustCompile(`^ *[0-9]+\t`)
	for _, l := range lines {
		if l != "" && !numbered.MatchString(l) {
			return false
		}
	}
	return true
}

// nearestLines finds where most of old's first lines are, and says which line
// differs.
func nearestLines(text string, old []string) string {
	lines := splitText(text)
	for len(old) > 0 && strings.Trim(old[0], blanks) == "" {
		old = old[1:]
	}
	if len(old) == 0 {
		return ""
	}
	best, at := 0, 0
	for i := range lines {
		n := 0
		for n < len(old) && i+n < len(lines) && lines[i+n].trimmed == strings.Trim(old[n], blanks) {
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	switch {
	case best == 0:
		return ": not even its first line is there. Read the file again"
	case best == len(old):
		return fmt.Sprintf(": its lines are at line %d, but indented differently in a way that can't be matched safely. Copy them exactly", at+1)
	case at+best >= len(lines):
		return fmt.Sprintf(": its first %s at line %d, but then the file ends", linesMatch(best), at+1)
	}
	l := lines[at+best]
	return fmt.Sprintf(": its first %s at line %d, but line %d is %q where old_string has %q", linesMatch(best), at+1, at+best+1, clip(text[l.start:l.end]), clip(old[best]))
}

func linesMatch(n int) string {
	if n == 1 {
		return "line matches"
	}
	return fmt.Sprintf("%d lines match", n)
}

// clip shortens a line for a message.
func clip(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

package policy

import "strings"

// printed returns what echo or printf certainly prints: the text that a shell
// after a pipe runs. False: that isn't certain, for there are escapes, formats
// or options that make something else of the words.
func printed(argv []string) (string, bool) {
	switch argv[0] {
	case "echo":
		return echoed(argv[1:])
	case "printf":
		return formatted(argv[1:])
	}
	return "", false
}

// echoed takes no backslash for certain: -e and xpg_echo make escapes of them.
func echoed(args []string) (string, bool) {
	for len(args) > 0 && args[0] == "-n" {
		args = args[1:]
	}
	text := strings.Join(args, " ")
	return text, !strings.HasPrefix(text, "-") && strings.IndexByte(text, '\\') < 0
}

// formatted knows formats without conversions, and those of one %s.
func formatted(args []string) (string, bool) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", false
	}
	format, end := args[0], ""
	if rest, ok := strings.CutSuffix(format, `\n`); ok {
		format, end = rest, "\n"
	}
	if format == "%s" && len(args) > 1 {
		return strings.Join(args[1:], end) + end, true
	}
	return format + end, strings.IndexAny(format, `%\`) < 0 && len(args) == 1
}

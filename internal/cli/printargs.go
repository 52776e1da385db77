package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// switchPrint turns each -p that has no prompt behind it into --print. With us,
// as with gemini-cli and qwen-code, -p takes the prompt; with Claude Code it is a
// switch, and the prompt is an argument or on stdin: that is how ports of its
// SDKs and scripts call it (`-p --output-format json "prompt"`).
//
// What stands behind -p may be text that somebody else wrote (`-p "$ISSUE"`), so it
// is the prompt, whatever it looks like, unless the prompt is found elsewhere,
// which was never a use of our -p.
func switchPrint(args []string, known *pflag.FlagSet) []string {
	for {
		at := findPrint(args, known)
		if at < 0 {
			return args
		}
		args = append(append(args[:at:at], "--print"), args[at+1:]...)
	}
}

// findPrint returns where a -p is that stands at the end, or before a flag while
// the prompt is elsewhere; -1 if there is none.
func findPrint(args []string, known *pflag.FlagSet) int {
	words := readWords(args, known)
	at := 0
	for i := range words {
		w := &words[i]
		switch {
		case w.raw[0] == "--":
			return -1
		case w.raw[0] != "-p":
		case len(w.raw) == 1, isFlag(w.raw[1], known) && elsewhere(words), w.raw[1] == "--" && i+1 < len(words) && words[i+1].raw[0] != "-": // all behind -- is text
			return at
		}
		at += len(w.raw)
	}
	return -1
}

// elsewhere reports whether the prompt is an argument, or in the lines on stdin.
func elsewhere(words []word) bool {
	if flagValue(words, "input-format") == formatStreamJSON {
		return true
	}
	for i := range words {
		if words[i].raw[0] != "-" && (words[i].plain() || words[i].raw[0] == "--" && i+1 < len(words)) {
			return true
		}
	}
	return false
}

// isFlag reports whether an argument is a flag that the main command has, or the
// end of the flags.
func isFlag(arg string, known *pflag.FlagSet) bool {
	if name, _, _ := flagName(arg); name != "" {
		return known.Lookup(name) != nil
	}
	letters, ok := strings.CutPrefix(arg, "-")
	if !ok || letters == "" {
		return false
	}
	if arg == "--" {
		return true
	}
	for i := range len(letters) {
		if known.ShorthandLookup(letters[i:i+1]) == nil {
			return false
		}
	}
	return true
}

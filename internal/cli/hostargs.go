package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agentcli/agent/internal/streamjson"
)

// hostArgs is a command line as a host's SDK may give it, made readable.
type hostArgs struct {
	args    []string
	dialect streamjson.Dialect
	lines   bool          // JSON lines come on stdin
	answers bool          // JSON lines are wanted on stdout
	printed bool          // it is called as Claude Code is for one prompt whose answer a program reads
	dropped []droppedFlag // flags that nobody here knows, left out of args
}

// readHostArgs settles the dialect and, when a published SDK started us, takes
// out the flags that are not ours: SDKs add some every week and count on older
// programs to pass over them. known are the main command's flags; args of
// another command than that come back as they are.
func readHostArgs(args []string, io IO, known *pflag.FlagSet) hostArgs {
	args = switchPrint(args, known)
	words := readWords(args, known)
	printed := printsForPrograms(words, io)
	h := hostArgs{
		args: args, dialect: settleDialect(words, printed, io),
		lines:   flagValue(words, "input-format") == formatStreamJSON,
		answers: flagValue(words, "output-format") == formatStreamJSON,
		printed: printed,
	}
	if h.dialect != streamjson.Claude && h.dialect != streamjson.Qwen {
		return h
	}
	h.args = nil
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.name != "" && w.flag == nil {
			h.drop(w.name, w.value)
			continue
		}
		h.args = append(h.args, w.raw...)
		if w.flag != nil && w.flag.Name == "mcp-config" { // takes several values
			for i+1 < len(words) && words[i+1].plain() {
				i++
				h.args = append(h.args, "--mcp-config", words[i].raw[0])
			}
		}
	}
	return h
}

// drop leaves out a flag, but for one that says what another flag says here.
func (h *hostArgs) drop(name, value string) {
	if name == "chat-recording" && value == "false" {
		h.args = append(h.args, "--no-session-persistence")
		return
	}
	h.dropped = append(h.dropped, droppedFlag{name, value})
}

// word is a flag with its value, or an argument.
type word struct {
	raw   []string
	name  string // of a long flag, without dashes; empty for all else
	value string
	flag  *pflag.Flag // nil: nobody knows it
}

// plain reports whether the word is no flag.
func (w *word) plain() bool { return !strings.HasPrefix(w.raw[0], "-") }

// readWords takes a command line apart as its parser will: what looks like a
// flag and is another flag's value is no flag. An unknown flag has the next
// argument for its value if that doesn't begin with "-".
func readWords(args []string, known *pflag.FlagSet) []word {
	var out []word
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			for _, rest := range args[i:] {
				out = append(out, word{raw: []string{rest}})
			}
			break
		}
		w := word{raw: args[i : i+1]}
		name, value, joined := flagName(arg)
		var more bool // the value is the next argument
		switch {
		case name != "":
			w.name, w.value, w.flag = name, value, known.Lookup(name)
			if !joined && w.flag != nil {
				w.value = w.flag.NoOptDefVal
			}
			more = !joined && w.flag != nil && w.flag.NoOptDefVal == "" && i+1 < len(args) ||
				!joined && w.flag == nil && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		case len(arg) > 1 && arg[0] == '-':
			more = shortTakesNext(arg[1:], known) && i+1 < len(args)
		}
		if more {
			i++
			w.raw = args[i-1 : i+1]
			w.value = args[i]
		}
		out = append(out, w)
	}
	return out
}

// shortTakesNext reports whether the last of joined short flags has its value in
// the next argument.
func shortTakesNext(letters string, known *pflag.FlagSet) bool {
	for i := range len(letters) {
		f := known.ShorthandLookup(letters[i : i+1])
		switch {
		case f == nil:
			return false
		case f.NoOptDefVal == "":
			return i == len(letters)-1
		}
	}
	return false
}

// flagName is the name of a long flag, and its value if it is joined to it;
// name is empty for what isn't one.
func flagName(arg string) (name, value string, joined bool) {
	rest, ok := strings.CutPrefix(arg, "--")
	if !ok || rest == "" {
		return "", "", false
	}
	name, value, joined = strings.Cut(rest, "=")
	return name, value, joined
}

// printsForPrograms reports whether the program is called as ports of Claude's
// SDKs call Claude Code for one prompt: by its name, with its --print, or by
// somebody who says that he is such a port and gives the --verbose without which
// Claude Code has no stream-json output.
func printsForPrograms(words []word, io IO) bool {
	switch flagValue(words, "output-format") {
	case formatJSON:
		return io.Claude || flagValue(words, "print") == "true"
	case formatStreamJSON:
		return io.Claude || flagValue(words, "print") == "true" || flagValue(words, "verbose") == "true" && io.Getenv("CLAUDE_CODE_ENTRYPOINT") != ""
	}
	return false
}

// settleDialect finds out, once and before anything else, whose protocol is
// spoken: --dialect says so; else, with JSON lines on stdin, the flag or the
// variables that the SDKs set; else the name and manner of Claude Code. A run in
// somebody's shell that merely inherited such a variable stays native.
func settleDialect(words []word, printed bool, io IO) streamjson.Dialect {
	if d, err := streamjson.ParseDialect(flagValue(words, "dialect")); err == nil {
		return d // a wrong one is told when flags are checked
	}
	if flagValue(words, "input-format") != formatStreamJSON && !printed {
		return streamjson.Native
	}
	switch {
	case flagValue(words, "channel") == sdkChannel:
		return streamjson.Qwen
	case io.Getenv("GEMINI_CHANNEL") == sdkChannel:
		return streamjson.Native
	case printed || io.Claude || io.Getenv("CLAUDE_CODE_ENTRYPOINT") != "" || io.Getenv("CLAUDE_AGENT_SDK_VERSION") != "":
		return streamjson.Claude
	}
	return streamjson.Native
}

// sdkChannel is the value by which qwen's SDK says who it is.
const sdkChannel = "SDK"

// flagValue is the last value given to a flag; "" if there is none.
func flagValue(words []word, flag string) string {
	for _, w := range slices.Backward(words) {
		if w.name == flag {
			return w.value
		}
	}
	return ""
}

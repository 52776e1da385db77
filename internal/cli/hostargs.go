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
	dropped []droppedFlag // flags that nobody here knows, left out of args
}

// readHostArgs settles the dialect and, when a published SDK started us, takes
// out the flags that are not ours: SDKs add some every week and count on older
// programs to pass over them. known finds a flag by its name; args of another
// command than the main one come back as they are.
func readHostArgs(args []string, getenv func(string) string, known func(name string) *pflag.Flag) hostArgs {
	h := hostArgs{args: args, dialect: settleDialect(args, getenv), lines: flagValue(args, "input-format") == formatStreamJSON}
	if h.dialect != streamjson.Claude && h.dialect != streamjson.Qwen {
		return h
	}
	h.args = nil
	for i := 0; i < len(args); i++ {
		name, value, joined := flagName(args[i])
		if name == "" {
			h.args = append(h.args, args[i])
			continue
		}
		n := 1 // tokens of this flag
		f := known(name)
		switch {
		case f == nil:
			if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				n, value = 2, args[i+1]
			}
			h.drop(name, value)
			i += n - 1
			continue
		case !joined && f.NoOptDefVal == "" && i+1 < len(args):
			n = 2
		}
		h.args = append(h.args, args[i:i+n]...)
		i += n - 1
		if f.Name == "mcp-config" { // takes several values
			for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				h.args = append(h.args, "--mcp-config", args[i])
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

// settleDialect finds out, once and before anything else, whose protocol is
// spoken: --dialect says so; else, and only with JSON lines on stdin, the flag
// or the variables that the SDKs set. A run in somebody's shell that merely
// inherited such a variable stays native.
func settleDialect(args []string, getenv func(string) string) streamjson.Dialect {
	if d, err := streamjson.ParseDialect(flagValue(args, "dialect")); err == nil {
		return d // a wrong one is told when flags are checked
	}
	if flagValue(args, "input-format") != formatStreamJSON {
		return streamjson.Native
	}
	switch {
	case flagValue(args, "channel") == sdkChannel:
		return streamjson.Qwen
	case getenv("GEMINI_CHANNEL") == sdkChannel:
		return streamjson.Native
	case getenv("CLAUDE_CODE_ENTRYPOINT") != "" || getenv("CLAUDE_AGENT_SDK_VERSION") != "":
		return streamjson.Claude
	}
	return streamjson.Native
}

// sdkChannel is the value by which qwen's SDK says who it is.
const sdkChannel = "SDK"

// flagValue is the last value given to a flag; "" if there is none.
func flagValue(args []string, flag string) string {
	for i, arg := range slices.Backward(args) {
		name, value, joined := flagName(arg)
		switch {
		case name != flag:
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

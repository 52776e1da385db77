package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// Formats of input and output.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatStreamJSON = "stream-json"
)

// options are the flags of the main command, as given.
type options struct {
	prompt       string
	print        bool
	promptFile   string
	outputFormat string
	inputFormat  string
	partial      bool

	model              string
	systemPrompt       string
	systemPromptFile   string
	appendSystemPrompt string
	maxTurns           int

	permissionMode  string
	approvalMode    string
	allowedTools    []string
	disallowedTools []string
	policies        []string
	adminPolicies   []string
	tools           string
	onDeny          string
	addDirs         []string
	includeDirs     []string

	hostOptions

	sessionID      string
	verbose        bool
	debug          bool
	debugFile      string
	record         string
	recordProtocol string

	protocolVersion bool
	version         bool

	args    []string
	changed func(flag string) bool
}

func (o *options) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.prompt, "prompt", "p", "", "the prompt; run without a terminal and end with the answer")
	f.BoolVar(&o.print, "print", false, "run without a terminal and end with the answer to the prompt that is an argument or on stdin (Claude Code's manner; so is -p before a flag if the prompt is an argument)")
	f.StringVar(&o.promptFile, "prompt-file", "", "read the prompt from a file")
	f.StringVarP(&o.outputFormat, "output-format", "o", formatText, "text, json or stream-json")
	f.StringVar(&o.inputFormat, "input-format", formatText, "text or stream-json (a JSON line per turn on stdin)")
	f.BoolVar(&o.partial, "include-partial-messages", false, "with stream-json output: also the pieces of messages as they come")
	f.StringVarP(&o.model, "model", "m", "", "model: a name, or provider/name")
	f.StringVar(&o.systemPrompt, "system-prompt", "", "replace the system prompt")
	f.StringVar(&o.systemPromptFile, "system-prompt-file", "", "replace the system prompt by a file's text")
	f.StringVar(&o.appendSystemPrompt, "append-system-prompt", "", "add to the system prompt")
	f.IntVar(&o.maxTurns, "max-turns", 0, "end a turn after this many requests to the model (0: no limit)")
	f.StringVar(&o.permissionMode, "permission-mode", "", "default, plan, auto-edit, yolo or dont-ask")
	f.StringVar(&o.approvalMode, "approval-mode", "", "the same as --permission-mode")
	o.bindRules(f)
	o.bindHost(f)
	f.StringVar(&o.tools, "tools", "default", `the built-in tools to offer: names, "default" for all, "" for none`)
	f.StringVar(&o.onDeny, "on-deny", "continue", "what a denied tool call does to the run: continue or fail")
	f.StringVar(&o.sessionID, "session-id", "", "the session's id, a UUID that is not in use")
	f.BoolVar(&o.verbose, "verbose", false, "log what happens to stderr (no effect with stream-json output)")
	f.BoolVar(&o.debug, "debug", false, "log in detail to stderr")
	f.StringVar(&o.debugFile, "debug-file", "", "log in detail to a file")
	f.StringVar(&o.record, "record", "", "write the model's traffic to a model script, without secrets")
	f.StringVar(&o.recordProtocol, "record-protocol", "", "write the JSON lines of both directions to a file")
	f.BoolVarP(&o.protocolVersion, "protocol-version", "v", false, "print the version of the protocol and of this program")
	f.BoolVar(&o.version, "version", false, "print the version of this program")
	f.SetNormalizeFunc(normalizeFlag)
	o.changed = f.Changed
}

// bindRules binds the flags that decide, besides the mode, what may run: the
// main command and "agent policy" have them.
func (o *options) bindRules(f *pflag.FlagSet) {
	f.StringArrayVar(&o.allowedTools, "allowed-tools", nil, "calls that run without asking: rules such as Edit or \"Bash(npm test)\" (a comma-separated list)")
	f.StringArrayVar(&o.disallowedTools, "disallowed-tools", nil, "calls that never run: rules such as web_fetch or \"Bash(rm:*)\" (a comma-separated list); the model does not get tools that are denied whole")
	f.StringArrayVar(&o.policies, "policy", nil, "a policy file, or a folder of them, instead of your own policies folder; comma-separated")
	f.StringArrayVar(&o.adminPolicies, "admin-policy", nil, "a policy file or folder whose rules win over all others; comma-separated")
	f.StringArrayVar(&o.addDirs, "add-dir", nil, "a further folder that tools may work in")
	f.StringArrayVar(&o.includeDirs, "include-directories", nil, "the same as --add-dir; comma-separated")
}

// check finds what makes no sense before anything is done.
func (o *options) check() error {
	if err := oneOf("output-format", o.outputFormat, formatText, formatJSON, formatStreamJSON); err != nil {
		return err
	}
	if err := oneOf("input-format", o.inputFormat, formatText, formatStreamJSON); err != nil {
		return err
	}
	if err := oneOf("on-deny", o.onDeny, "continue", "fail"); err != nil {
		return err
	}
	switch {
	case o.partial && o.outputFormat != formatStreamJSON:
		return fail(ExitUsage, "--include-partial-messages needs --output-format stream-json: other formats have no place for pieces of messages")
	case o.maxTurns < 0 && o.host.dialect != streamjson.Qwen: // whose SDK says -1 for no limit
		return fail(ExitUsage, "--max-turns is %d: give a positive number, or 0 for no limit", o.maxTurns)
	case o.systemPrompt != "" && o.systemPromptFile != "":
		return fail(ExitUsage, "give --system-prompt or --system-prompt-file, not both")
	case o.changed("prompt") && o.promptFile != "":
		return fail(ExitUsage, "give the prompt with --prompt or --prompt-file, not both")
	case o.skipPermissions && o.contradictsYolo():
		return fail(ExitUsage, "--yolo is a permission mode: leave out --permission-mode and --approval-mode")
	case o.permissionMode != "" && o.approvalMode != "" && o.permissionMode != o.approvalMode:
		return fail(ExitUsage, "--permission-mode %s and --approval-mode %s contradict each other", o.permissionMode, o.approvalMode)
	case o.inputFormat == formatStreamJSON && o.hasPrompt():
		return fail(ExitUsage, "with --input-format stream-json the prompts come on stdin: leave out %s", o.promptSource())
	}
	if err := o.checkHost(); err != nil {
		return err
	}
	if o.sessionID != "" {
		if id, err := uuid.Parse(o.sessionID); err != nil || id.String() != strings.ToLower(o.sessionID) {
			return fail(ExitUsage, "--session-id %q is not a UUID such as %s", o.sessionID, uuid.NewString())
		}
	}
	return nil
}

// contradictsYolo reports whether another flag asks for another mode. Old
// Claude SDKs always name the default one.
func (o *options) contradictsYolo() bool {
	name := cmp.Or(o.permissionMode, o.approvalMode)
	if name == "" || name == string(policy.ModeDefault) && o.host.dialect == streamjson.Claude {
		return false
	}
	m, err := policy.ParseMode(name)
	return err != nil || m != policy.ModeYolo
}

func oneOf(flag, value string, valid ...string) error {
	for _, v := range valid {
		if v == value {
			return nil
		}
	}
	return fail(ExitUsage, "--%s is %q: use one of %s", flag, value, strings.Join(valid, ", "))
}

// hasPrompt reports whether a prompt was given otherwise than on stdin alone.
func (o *options) hasPrompt() bool { return o.promptSource() != "" }

func (o *options) promptSource() string {
	switch {
	case o.changed("prompt"):
		return "--prompt"
	case o.promptFile != "":
		return "--prompt-file"
	case len(o.args) > 0:
		return "the prompt argument"
	}
	return ""
}

// mode returns the permission mode that the flags ask for, "" for none.
func (o *options) mode() (policy.Mode, error) {
	if o.skipPermissions {
		return policy.ModeYolo, nil
	}
	name := o.permissionMode
	if name == "" {
		name = o.approvalMode
	}
	if name == "" {
		return "", nil
	}
	m, err := policy.ParseMode(name)
	if err != nil {
		return "", fail(ExitUsage, "%w", err)
	}
	return m, nil
}

// dirs returns the further folders.
func (o *options) dirs() []string {
	out := append([]string(nil), o.addDirs...)
	for _, list := range o.includeDirs {
		for d := range strings.SplitSeq(list, ",") {
			if d = strings.TrimSpace(d); d != "" {
				out = append(out, d)
			}
		}
	}
	return out
}

// parseRules reads the lists of a rule flag, which qwen's SDK writes as that
// program has them. To its users a rule that can match no call is none, unless
// it is to keep one of our tools from something; to those of Claude's SDKs one
// that can't be read allows nothing, and is told to warn.
func (o *options) parseRules(flag string, b policy.Behavior, lists []string, warn func(string)) ([]policy.Rule, error) {
	var out []policy.Rule
	qwen, claude := o.hostedBy(streamjson.Qwen), o.hostedBy(streamjson.Claude)
	for _, list := range lists {
		for _, text := range policy.SplitRules(list) {
			rule := text
			if qwen {
				rule = policy.FromQwen(text)
			}
			r, err := policy.ParseRule(rule, b, flag)
			var matchless *policy.MatchlessError
			switch {
			case qwen && errors.As(err, &matchless) && (b == policy.Allow || !policy.IsTool(text) && !strings.Contains(text, "*")):
				continue
			case claude && err != nil && b == policy.Allow:
				warn(fmt.Sprintf("%s: %v; it allows nothing", flag, err))
				continue
			case err != nil:
				return nil, fail(ExitUsage, "%s: %w", flag, err)
			}
			r.Text = strings.TrimSpace(text)
			out = append(out, r)
		}
	}
	return out, nil
}

// readTextFile reads a file that a flag names.
func readTextFile(flag, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fail(ExitInput, "%s: %w", flag, err)
	}
	return string(data), nil
}

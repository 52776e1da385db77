package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// foreignFlag is a flag of the programs that SDKs take us for, which we haven't
// got. Others that nobody knows are passed over.
type foreignFlag struct {
	name string
	// harmless are the values with which going on without it does no harm; "*"
	// is any, and none.
	harmless []string
	// why it is refused otherwise, and what to do.
	why string
}

const noSessions = "this version can't go on with an earlier session: start a new one"

// foreignFlags are known by name. docs/protocol.md has a table of them.
var foreignFlags = []foreignFlag{
	{name: "resume", why: noSessions},
	{name: "continue", why: noSessions},
	{name: "fork-session", why: noSessions},
	{name: "resume-session-at", why: noSessions},
	{name: "resume-drops-turn", why: "Resume rejected by --resume-drops-turn: " + noSessions},
	{name: "plugin-dir", why: "this version loads no plugins, whose hooks may guard what runs: give their commands, agents and servers by themselves"},
	{name: "plugin-dir-no-mcp", why: "this version loads no plugins, whose hooks may guard what runs: give their commands and agents by themselves"},
	{name: "worktree", why: "this version makes no worktrees, and would change the files of the folder itself: make one with git and start there"},
	{name: "sdk-url", why: "this version speaks over stdin and stdout only"},
	{name: "await-claim", why: "this version can't be started ahead of its use"},
	{name: "managed-settings-in-initialize", why: "this version takes such settings with --managed-settings only"},
	{name: "initialize-fields", why: "this version takes the fields of initialize from the request only"},
	{name: "safe-mode", why: "this version has no such mode: use --setting-sources \"\" and --strict-mcp-config"},
	{name: "bare", why: "this version has no such mode: use --setting-sources \"\", --strict-mcp-config and --tools"},
	{name: "sandbox", harmless: []string{"false"}, why: "this version has no sandbox: leave it out to run without one"},
	{name: "extensions", harmless: []string{"", "none"}, why: "this version loads no extensions, whose hooks may guard what runs"},

	{name: "task-budget", harmless: []string{"*"}},                        // a hint to the model's API
	{name: "thinking-display", harmless: []string{"*"}},                   // thoughts come as the API gives them
	{name: "allow-dangerously-skip-permissions", harmless: []string{"*"}}, // a host can always set the mode
	{name: "experimental-hooks", harmless: []string{"*"}},                 // hooks are always there
	{name: "experimental-lsp", harmless: []string{"*"}},                   // more tools, here none
	{name: "web-search-default", harmless: []string{"*"}},
	{name: "tavily-api-key", harmless: []string{"*"}},
	{name: "google-api-key", harmless: []string{"*"}},
	{name: "google-search-engine-id", harmless: []string{"*"}},
}

// droppedFlag is a flag that was left out of a host's command line. Its value
// is kept out of logs, as it may be a key.
type droppedFlag struct {
	name  string // without dashes
	value string
}

func (d droppedFlag) String() string { return "--" + d.name }

// checkForeign refuses what a host asks for and this version hasn't got, where
// going on without would do harm.
func (o *options) checkForeign() error {
	for _, d := range o.host.dropped {
		i := foreign(d.name)
		if i < 0 || slices.Contains(foreignFlags[i].harmless, "*") || slices.Contains(foreignFlags[i].harmless, d.value) {
			continue
		}
		return fail(ExitUsage, "%s: %s", d, foreignFlags[i].why)
	}
	return nil
}

// foreign returns the index of a name in foreignFlags, -1 if it isn't there.
func foreign(name string) int {
	return slices.IndexFunc(foreignFlags, func(f foreignFlag) bool { return f.name == name })
}

// refused tells a host that its command line makes no sense, before anything
// was started, and returns the error with the code that it expects then. Who
// isn't spoken to in lines of JSON learns it from the returned error alone.
func (o *options) refused(cio IO, err error) error {
	sdk := o.host.dialect == streamjson.Claude || o.host.dialect == streamjson.Qwen
	if !o.host.lines && !(o.host.printed && o.host.answers) || !sdk && o.outputFormat != formatStreamJSON && !o.host.answers {
		return err
	}
	o.inputFormat, o.outputFormat = formatStreamJSON, formatStreamJSON // flags may not have been read so far
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer cio.onSignal(cancel)()
	out := streamjson.NewWriter(cio.Out, streamjson.WriterOptions{})
	startFailed(o, out, err)
	if derr := drain(ctx, out); derr != nil {
		return fail(ExitUnwritable, "%w", errors.Join(err, derr))
	}
	return o.hostError(err)
}

// nearFlags adds to the error of an unknown flag why there is none, or those
// that it may have been meant for.
func nearFlags(f *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	given := unknown.GetSpecifiedName()
	if i := foreign(given); i >= 0 && foreignFlags[i].why != "" {
		return fmt.Errorf("%w: %s", err, foreignFlags[i].why)
	}
	var near []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && isNear(given, flag.Name) {
			near = append(near, flag.Name)
		}
	})
	if len(near) == 0 {
		return err
	}
	slices.SortStableFunc(near, func(a, b string) int {
		return cmp.Compare(policy.EditDistance(given, a), policy.EditDistance(given, b))
	})
	return fmt.Errorf("%w: did you mean --%s?", err, strings.Join(near[:min(len(near), 3)], " or --"))
}

// isNear reports whether a flag may have been meant: few edits away, or with
// the given name at its beginning or end.
func isNear(given, name string) bool {
	if len(given) >= 4 && (strings.HasPrefix(name, given) || strings.HasSuffix(name, "-"+given)) {
		return true
	}
	return policy.EditDistance(given, name) <= min(3, len(given)/4)
}

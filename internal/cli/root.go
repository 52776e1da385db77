package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Main runs the program with args (without its name) and returns its exit
// code. It returns when everything that it started has ended. Signals come by
// io.Signals.
func Main(ctx context.Context, io IO, args []string) ExitCode {
	root, o := newRootOf(io)
	o.host = readHostArgs(args, io, mainFlags(root))
	root.SetArgs(o.host.args)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetIn(io.In)
	err := root.ExecuteContext(ctx)
	return report(io, err)
}

// report prints what went wrong, unless that was done where it happened, and
// returns the code.
func report(io IO, err error) ExitCode {
	if err == nil {
		return ExitOK
	}
	var coded *exitError
	var ended *endedError
	var unwritten *fs.PathError
	switch {
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &coded):
		fmt.Fprintf(io.Err, "error: %v\n", err)
		if coded.code == ExitUsage {
			fmt.Fprintln(io.Err, "See 'agent --help'.")
		}
		return coded.code
	case errors.As(err, &unwritten) && unwritten.Op == "write":
		if !errors.Is(err, syscall.EPIPE) { // a reader that has enough is not told
			fmt.Fprintf(io.Err, "error: %v\n", err)
		}
		return ExitUnwritable
	}
	fmt.Fprintf(io.Err, "error: %v\nSee 'agent --help'.\n", err)
	return ExitUsage // cobra's own errors
}

// endedError carries an exit code of a run that has told its story already.
type endedError struct{ code ExitCode }

func (e *endedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// mainFlags are the main command's flags.
func mainFlags(root *cobra.Command) *pflag.FlagSet {
	root.InitDefaultHelpFlag()
	return root.Flags()
}

func newRoot(io IO) *cobra.Command {
	root, _ := newRootOf(io)
	return root
}

// newRootOf returns the main command and the options that its flags fill.
func newRootOf(io IO) (*cobra.Command, *options) {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "agent [flags] [prompt]",
		Short: "An AI coding agent for terminals, pipes, SDKs and CI",
		Long: `agent works on the project in the current folder: it reads, searches, edits and
runs what your prompt asks for, with the model of your choice.

  agent                              talk to it in a terminal
  agent -p "fix the failing test"    one prompt, one answer
  git diff | agent -p "review" -     one prompt, with what is on stdin
  agent --input-format stream-json --output-format stream-json
                                     JSON lines both ways`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if io.DirErr == nil || o.version || o.protocolVersion {
				return nil
			}
			return o.refused(io, fail(ExitFailed, "finding the working directory: %w", io.DirErr))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return runMain(cmd.Context(), io, o)
		},
	}
	o.bind(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return o.refused(io, fail(ExitUsage, "%w", nearFlags(cmd.Flags(), err)))
	})
	cmd.CompletionOptions.HiddenDefaultCmd = false
	cmd.AddCommand(group(newConfigCmd(io)), group(newModelCmd(io)), group(newPolicyCmd(io)))
	cmd.AddCommand(group(newProtocolCmd(io)))
	return cmd, o
}

// group makes a command that only has others beneath it: alone it shows its
// help, and a name that it does not know is an error, which cobra lets pass.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// flagAliases are the spellings of other agent CLIs.
var flagAliases = map[string]string{
	"allowedTools":    "allowed-tools",
	"disallowedTools": "disallowed-tools",

	// the Claude Agent SDKs'
	"debug-to-stderr":              "debug",
	"dangerously-skip-permissions": "yolo",

	// qwen's SDK's
	"max-session-turns": "max-turns",
	"exclude-tools":     "disallowed-tools",
}

func normalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if alias, ok := flagAliases[name]; ok {
		name = alias
	}
	return pflag.NormalizedName(name)
}

// stopError is the cause of a run that a signal ended.
type stopError struct {
	signal string
	code   ExitCode
}

func (e *stopError) Error() string { return "stopped by " + strings.ToUpper(e.signal) }

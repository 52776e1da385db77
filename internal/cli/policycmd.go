package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/tools"
)

// newPolicyCmd is "agent policy": what may run, and why. None of its commands
// needs a model, a key or the network, and none runs what it judges.
func newPolicyCmd(cio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Explain, list and test the rules about what may run",
		Long: `Rules come from flags, settings and policy files, which are TOML files with
[[rule]], [[safety_checker]] and [[example]] entries:

  ` + adminPolicies + `/*.toml        an administrator's (tier admin)
  ~/.config/agent/policies/*.toml   your own (tier user); --policy replaces them
  .agent/policies/*.toml            a project's (tier workspace), which only
                                    make things stricter

Among the rules of policy files the highest tier counts, then the highest
priority, then the first one by the names of the files.`,
		Example: `  agent policy explain -- 'git push --force'
  agent policy list
  agent policy test .agent/policies/*.toml`,
	}
	cmd.AddCommand(newPolicyExplainCmd(cio), newPolicyListCmd(cio), newPolicyTestCmd(cio))
	return cmd
}

// policyFlags are the flags of a run that decide what may run.
type policyFlags struct {
	options
	json bool
}

func (p *policyFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&p.permissionMode, "mode", "", "the permission mode; --permission-mode and --approval-mode are the same")
	f.BoolVar(&p.json, "json", false, "print JSON")
	p.bindRules(f)
	f.SetNormalizeFunc(func(set *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "permission-mode" || name == "approval-mode" {
			name = "mode"
		}
		return normalizeFlag(set, name)
	})
	p.tools = "default"
}

// newPolicyWiring puts together as much of a run as decides what may run.
func newPolicyWiring(ctx context.Context, cio IO, o *options, lenient bool) (*wiring, error) {
	w := &wiring{cio: cio, o: o, asker: policy.Nobody{}, lenient: lenient}
	for _, step := range []func(context.Context) error{w.loadSettings, w.buildPolicy, w.buildTools} {
		if err := step(ctx); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// newBareWiring has the tools and no rules but the shipped ones.
func newBareWiring(ctx context.Context, cio IO) (*wiring, error) {
	w := &wiring{cio: cio, o: &options{tools: "default"}, asker: policy.Nobody{}, engine: new(policy.Engine)}
	var err error
	if w.set, _, err = settings.Load(settings.LoadOptions{}); err != nil {
		return nil, fail(ExitInternal, "settings: %w", err)
	}
	if err = w.buildTools(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// spec returns a tool that the program has, by any of its names.
func (t *toolset) spec(name string) (tools.Spec, error) {
	tool, ok := t.all.Lookup(policy.CanonicalTool(name))
	if !ok {
		names := specNames(t.all)
		return tools.Spec{}, fmt.Errorf("there is no tool %q%s: the tools are %s", policy.Visible(name), policy.NearestTool(name, names), strings.Join(names, ", "))
	}
	return tool.Spec(), nil
}

// classes are the classes of all tools by their names.
func (t *toolset) classes() map[string]policy.Class {
	out := map[string]policy.Class{}
	for _, tool := range t.all.All() {
		out[tool.Spec().Name] = tool.Spec().Class
	}
	return out
}

// newPolicyExplainCmd is "agent policy explain".
func newPolicyExplainCmd(cio IO) *cobra.Command {
	var p policyFlags
	var headless bool
	cmd := &cobra.Command{
		Use:   "explain [flags] TOOL JSON-INPUT\n  agent policy explain [flags] -- 'SHELL COMMAND'",
		Short: "Say whether a call may run, why, and what would allow it",
		Long: `The call is judged as in a run with the same flags, settings and policy files in
this folder; it is not run, and neither are hooks and safety checkers that are
programs. The exit code is 0 whatever the decision.`,
		Example: `  agent policy explain -- 'git fetch && git push --force'
  agent policy explain --mode auto-edit Write '{"file_path": "go.mod", "content": ""}'
  agent policy explain --json --allowed-tools 'Bash(npm test:*)' -- 'npm test > log'`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := readCall(args, cmd.ArgsLenAtDash())
			if err != nil {
				return usageError(err)
			}
			w, err := newPolicyWiring(cmd.Context(), cio, &p.options, false)
			if err != nil {
				return err
			}
			defer w.close()
			w.place.Interactive = !headless
			e, err := w.explain(call)
			if err != nil {
				return usageError(err)
			}
			if p.json {
				return printJSON(cio.Out, e)
			}
			return written(e.print(cio.Out))
		},
	}
	p.bind(cmd)
	cmd.Flags().BoolVar(&headless, "headless", false, "judge as where nobody is there to be asked, for rules that make a difference")
	return cmd
}

// askedCall is the call that "explain" is asked about.
type askedCall struct {
	tool  string
	input json.RawMessage
}

// readCall reads the arguments, of which dash stand before a "--".
func readCall(args []string, dash int) (askedCall, error) {
	switch {
	case len(args) == 1 && dash == 0:
		return shellCall(args[0])
	case dash == 0 && len(args) > 1:
		return askedCall{}, fmt.Errorf("give the shell command as one argument: policy explain -- '%s'", policy.Visible(strings.Join(args, " ")))
	case len(args) == 2:
		return askedCall{args[0], json.RawMessage(args[1])}, nil
	}
	return askedCall{}, errors.New(`give a tool and its input as JSON, or "--" and a shell command`)
}

func shellCall(command string) (askedCall, error) {
	if !utf8.ValidString(command) {
		return askedCall{}, errors.New("the command is not UTF-8, which a model's command always is")
	}
	var b bytes.Buffer
	err := encodeJSON(&b, map[string]string{"command": command})
	return askedCall{"run_shell_command", b.Bytes()}, err
}

// judged returns what a run would judge the call by.
func (w *wiring) judged(call askedCall) (policy.Facts, error) {
	spec, err := w.toolset.spec(call.tool)
	if err != nil {
		return policy.Facts{}, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(call.input, &fields); err != nil {
		return policy.Facts{}, fmt.Errorf("the input of %s is no JSON object: %s", spec.Name, policy.Visible(err.Error()))
	}
	return agent.CallFacts(w.callFacts(spec), spec, call.input)
}

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error { return written(encodeJSON(w, v)) }

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// written gives the error of writing the output its exit code.
func written(err error) error {
	if err == nil {
		return nil
	}
	return fail(ExitUnwritable, "%w", err)
}

// oneLine is a text as a person must see it, on one line.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(policy.Visible(s))
}

// visibleList is a list with what can't be seen made visible.
func visibleList(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = policy.Visible(out[i])
	}
	return out
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agentcli/agent/internal/policy"
)

// newPolicyListCmd is "agent policy list".
func newPolicyListCmd(cio IO) *cobra.Command {
	var p policyFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List all rules in force, and what is wrong with them", Args: cobra.NoArgs,
		Long: `The rules are listed in the order in which they count: those of flags and settings
that deny, ask and allow, then those of policy files with the one that wins
first, then the shipped ones. What the rule of a policy file decides counts like
a rule of a list: what denies before what asks before what allows.

Rules that no call can meet are marked. Where policy files cannot be used, what
is wrong is listed and the exit code is 52, which a run would end with.`,
		Example: `  agent policy list
  agent policy list --json --policy ci/policies`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := listPolicies(cmd.Context(), cio, &p.options)
			if err != nil {
				return err
			}
			if p.json {
				err = printJSON(cio.Out, l)
			} else {
				err = written(l.print(cio.Out))
			}
			if err == nil && l.unusable() {
				err = &endedError{ExitSettings}
			}
			return err
		},
	}
	p.bind(cmd)
	return cmd
}

// policyList is what "agent policy list" shows.
type policyList struct {
	Rules    []listedRule    `json:"rules"`
	Checkers []listedRule    `json:"checkers"`
	Problems []listedProblem `json:"problems"`
}

// listedRule is a rule in force, or the calls that a safety checker sees.
type listedRule struct {
	Text        string        `json:"rule"`
	Decision    string        `json:"decision,omitempty"`
	Tier        policy.Tier   `json:"tier"`
	Priority    int           `json:"priority"`
	Origin      string        `json:"origin"`
	Modes       []policy.Mode `json:"modes"` // empty: all
	Interactive *bool         `json:"interactive,omitempty"`
	Agent       string        `json:"subagent,omitempty"`
	Message     string        `json:"message,omitempty"`
	Problems    []string      `json:"problems"` // why it has no effect, or not all that it seems to have
}

type listedProblem struct {
	Origin string `json:"origin"`
	Text   string `json:"text"`
	Fatal  bool   `json:"fatal"`
}

func listPolicies(ctx context.Context, cio IO, o *options) (*policyList, error) {
	w, err := newPolicyWiring(ctx, cio, o, true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	l := &policyList{Rules: []listedRule{}, Checkers: []listedRule{}, Problems: []listedProblem{}}
	rules, known := w.engine.Rules(), w.toolset.classes()
	for i := range rules {
		r := newListedRule(&rules[i], known)
		if over := policy.Shadow(rules, i); over != nil {
			r.Problems = append(r.Problems, policy.Visible("it never counts, for this comes before it: "+over.Text+" ("+over.Origin+")"))
		}
		l.Rules = append(l.Rules, r)
	}
	for _, c := range w.policies.Checkers {
		r := newListedRule(&c.Rule, known)
		r.Decision = ""
		l.Checkers = append(l.Checkers, r)
	}
	for _, p := range w.policies.Problems {
		if shown := (listedProblem{policy.Visible(p.Origin), policy.Visible(p.Text), p.Fatal}); !l.told(shown) {
			l.Problems = append(l.Problems, shown)
		}
	}
	return l, nil
}

// told reports whether a problem stands beside its rule already.
func (l *policyList) told(p listedProblem) bool {
	return slices.ContainsFunc(l.Rules, func(r listedRule) bool { return r.Origin == p.Origin && slices.Contains(r.Problems, p.Text) })
}

func newListedRule(r *policy.Rule, known map[string]policy.Class) listedRule {
	out := listedRule{
		Text: policy.Visible(r.Text), Decision: string(r.Behavior), Tier: r.Tier, Priority: r.Priority, Origin: policy.Visible(r.Origin),
		Modes: append([]policy.Mode{}, r.Modes...), Interactive: r.Interactive, Agent: policy.Visible(r.Agent),
		Message: policy.Visible(r.Message), Problems: []string{},
	}
	for _, text := range r.Ineffective(known) {
		out.Problems = append(out.Problems, policy.Visible(text))
	}
	return out
}

func (l *policyList) unusable() bool {
	return slices.ContainsFunc(l.Problems, func(p listedProblem) bool { return p.Fatal })
}

// print writes the list for people.
func (l *policyList) print(w io.Writer) error {
	rules := slices.Concat(l.Rules, l.Checkers)
	var table, b bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "TIER\tPRIORITY\tDECISION\tRULE\tWHEN\tFROM")
	for i := range rules {
		rules[i].print(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	head, rest, _ := strings.Cut(table.String(), "\n")
	b.WriteString(head + "\n")
	i := 0
	for row := range strings.Lines(rest) {
		b.WriteString(row)
		for _, problem := range rules[i].Problems {
			fmt.Fprintf(&b, "  warning: %s\n", oneLine(problem))
		}
		i++
	}
	for _, p := range l.Problems {
		kind := "warning"
		if p.Fatal {
			kind = "error"
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", kind, oneLine(p.Origin), oneLine(p.Text))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// print writes a row of the table.
func (r *listedRule) print(tw *tabwriter.Writer) {
	priority := ""
	if r.Tier != policy.TierList {
		priority = fmt.Sprint(r.Priority)
	}
	decision := r.Decision
	if decision == "" {
		decision = "check"
	}
	fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Tier, priority, decision, oneLine(r.Text), oneLine(r.when()), oneLine(r.Origin))
}

// when says in which runs the rule holds.
func (r *listedRule) when() string {
	var out []string
	for _, m := range r.Modes {
		out = append(out, string(m))
	}
	if r.Interactive != nil {
		out = append(out, map[bool]string{true: "interactive", false: "headless"}[*r.Interactive])
	}
	if r.Agent != "" {
		out = append(out, "sub-agent "+r.Agent)
	}
	if len(out) == 0 {
		return "always"
	}
	return strings.Join(out, ", ")
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// The place that examples are judged in, whatever this machine is like. Paths
// are judged by their text alone.
const (
	exampleHome    = "/home/user"
	exampleProject = exampleHome + "/project"
)

// newPolicyTestCmd is "agent policy test".
func newPolicyTestCmd(cio IO) *cobra.Command {
	return &cobra.Command{
		Use: "test FILE...", Short: "Run the examples of policy files",
		Long: `Each [[example]] of a file says a call and what must be decided of it:

  [[example]]
  command = "git push"                # or tool = "edit", input = { file_path = "go.mod", ... }
  mode = "auto-edit"                  # default if left out
  expect = "deny"                     # allow, deny or ask_user

A file is judged alone, as your own (tier user), with the shipped rules and
without flags, settings and other files; somebody is there to be asked. The
calls are judged as if made in ` + exampleProject + `, by a user with the home
` + exampleHome + `, and nothing is looked up on this machine's disk. Safety
checkers that are programs are not run.

The exit code is 1 if an example fails, a file cannot be used or has no example.`,
		Example: `  agent policy test ~/.config/agent/policies/*.toml
  agent policy test .agent/policies/team.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(ExitUsage, "name the policy files to test")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := newBareWiring(cmd.Context(), cio)
			if err != nil {
				return err
			}
			defer w.close()
			return w.testPolicies(cmd.Context(), args)
		},
	}
}

// testPolicies tests files one by one and fails if one does.
func (w *wiring) testPolicies(ctx context.Context, files []string) error {
	good := true
	for _, file := range files {
		if ctx.Err() != nil {
			return fail(ExitInterrupted, "%w", context.Cause(ctx))
		}
		t := &policyTest{w: w, file: file}
		t.run()
		good = good && t.failed == 0
		if _, err := w.cio.Out.Write(t.out.Bytes()); err != nil {
			return written(err)
		}
	}
	if !good {
		return &endedError{ExitFailed}
	}
	return nil
}

// policyTest is the test of one file.
type policyTest struct {
	w      *wiring
	file   string
	engine *policy.Engine
	failed int
	out    bytes.Buffer
}

func (t *policyTest) run() {
	path := t.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.w.cio.Dir, path)
	}
	data, err := readPolicy(path)
	if err != nil {
		t.fail("%s: it can't be read: %s", t.file, bare(err))
		return
	}
	p := policy.ParsePolicy(data, t.file, policy.TierUser)
	for _, problem := range p.Problems {
		if problem.Fatal {
			t.fail("%s", problem)
		} else {
			t.say("warning: %s", problem)
		}
	}
	if t.failed > 0 {
		return // half of a file says nothing
	}
	if len(p.Examples) == 0 {
		t.fail("%s: there is no [[example]] in it", t.file)
		return
	}
	t.engine = policy.NewEngine(p.Rules, p.Checkers...)
	for i := range p.Examples {
		t.example(&p.Examples[i])
	}
	t.say("%s: %d of %d examples are as expected", t.file, len(p.Examples)-t.failed, len(p.Examples))
}

func (t *policyTest) say(format string, args ...any) {
	t.out.WriteString(oneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (t *policyTest) fail(format string, args ...any) {
	t.failed++
	t.say("FAIL: "+format, args...)
}

// example judges one example.
func (t *policyTest) example(e *policy.Example) {
	f, err := t.facts(e)
	if err != nil {
		t.fail("%s: %s", e.Origin, err)
		return
	}
	d := t.engine.Decide(f)
	check(&d, f)
	if d.Behavior == e.Want {
		return
	}
	t.fail("%s: %s %s in mode %s", e.Origin, e.Tool, callText(&f), e.Mode)
	t.say("      expected %s, but it is %s: %s", e.Want, d.Behavior, d.Reason)
	if d.Rule != "" && !strings.Contains(d.Reason, d.Origin) {
		t.say("      by the rule %s (%s)", d.Rule, d.Origin)
	}
}

// facts are those of an example's call.
func (t *policyTest) facts(e *policy.Example) (policy.Facts, error) {
	place := policy.Facts{Mode: e.Mode, Interactive: true, Cwd: exampleProject, Home: exampleHome}
	spec := tools.Spec{Name: e.Tool, Class: policy.ClassMCP}
	if !strings.HasPrefix(e.Tool, "mcp__") { // what servers have isn't known here
		var err error
		if spec, err = t.w.toolset.spec(e.Tool); err != nil {
			return place, err
		}
	}
	input := e.Input
	if input == nil {
		input = map[string]any{}
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return place, fmt.Errorf("the input can't be written as JSON: %w", err)
	}
	return agent.CallFacts(place, spec, raw)
}

package agent

import (
	"errors"
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

func TestAdoptingADefinition(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		mode     policy.Mode
		maxTurns int
		keep     bool
		def      Definition

		model string
		turns int
		want  policy.Mode
	}{
		{name: "all of it", mode: policy.ModeYolo, def: Definition{Model: "two", Effort: "high", MaxTurns: 3, PermissionMode: policy.ModePlan},
			model: "two", turns: 3, want: policy.ModePlan},
		{name: "nothing", mode: policy.ModeAutoEdit, model: "one", want: policy.ModeAutoEdit},
		{name: "the model is kept", mode: policy.ModeDefault, keep: true, def: Definition{Model: "two"}, model: "one", want: policy.ModeDefault},
		{name: "a model that isn't there", mode: policy.ModeDefault, def: Definition{Model: "lost"}, model: "one", want: policy.ModeDefault},
		{name: "a laxer mode", mode: policy.ModeDefault, def: Definition{PermissionMode: policy.ModeYolo}, model: "one", want: policy.ModeDefault},
		{name: "a limit is there", mode: policy.ModeDefault, maxTurns: 9, def: Definition{MaxTurns: 3}, model: "one", turns: 9, want: policy.ModeDefault},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *Config) { c.Model, c.Mode, c.MaxTurns = "one", test.mode, test.maxTurns })
			r.c.cfg.Resolve = func(name string) (Model, error) {
				if name == "lost" {
					return Model{}, errors.New("no such model")
				}
				return Model{Provider: r.model, Name: name, Display: name}, nil
			}
			r.c.Adopt(&test.def, test.keep)
			now := r.c.tuned()
			if now.model != test.model || now.maxTurns != test.turns || now.mode != test.want || now.effort != model.Effort(test.def.Effort) {
				t.Errorf("model %q, %d turns, mode %q, effort %q", now.model, now.maxTurns, now.mode, now.effort)
			}
		})
	}
}

func TestToolsThatADefinitionOffers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		def  Definition
		tool string
		want bool
	}{
		{Definition{}, "read_file", true},
		{Definition{Tools: []string{"Read"}}, "read_file", true},
		{Definition{Tools: []string{"Read"}}, "write_file", false},
		{Definition{Tools: []string{}}, "read_file", false},
		{Definition{DisallowedTools: []string{"Read"}}, "read_file", false},
		{Definition{Tools: []string{"*"}, DisallowedTools: []string{"Bash"}}, "run_shell_command", false},
		{Definition{Tools: []string{"mcp__db"}}, "mcp__db__query", true},
		{Definition{Tools: []string{"mcp__db"}}, "mcp__dbx__query", false},
	} {
		if got := test.def.Offers(tools.Spec{Name: test.tool}); got != test.want {
			t.Errorf("%v without %v offers %s: %t", test.def.Tools, test.def.DisallowedTools, test.tool, got)
		}
	}
}

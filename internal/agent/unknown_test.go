package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// A tool that a rule took away is denied; one that never was is unknown, and of
// one that is away the model is told why.
func TestCallsOfToolsThatAreNotThere(t *testing.T) {
	t.Parallel()
	rule, err := policy.ParseRule("gone", policy.Deny, "the test")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) {
		c.Policy = policy.NewEngine([]policy.Rule{rule})
		c.Away = func(tool string) string {
			if tool == "late" {
				return "its server is disconnected"
			}
			return ""
		}
	}, calls(call{"gone", "t1", `{}`}, call{"never", "t2", `{}`}, call{"late", "t3", `{}`}), says("ok"))
	res := r.run(t.Context(), "hi")[0]
	if len(res.Denials) != 1 || res.Denials[0].ToolUseID != "t1" || res.Denials[0].Source != ByPolicy {
		t.Errorf("denials = %+v", res.Denials)
	}
	told := textOf(r.c.history[2].Blocks)
	if !strings.Contains(told, "Permission to use gone was denied") || !strings.Contains(told, `no tool named "never"`) ||
		!strings.Contains(told, "late can't be called now: its server is disconnected.") {
		t.Errorf("the model was told %q", told)
	}
}

// What a turn waits for is there when it says that it starts.
func TestATurnIsPreparedBeforeItStarts(t *testing.T) {
	t.Parallel()
	started := false
	var r *rig
	r = newRig(t, func(c *Config) {
		c.Prepare = func(context.Context) {
			for _, e := range r.events {
				_, ok := e.(*TurnStarted)
				started = started || ok
			}
		}
	}, says("ok"))
	r.run(t.Context(), "hi")
	if started {
		t.Error("the turn had started before it was prepared")
	}
}

// Nobody is asked about a call that its tool would refuse.
func TestAMisshapenCallIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Tools = tools.NewRegistry(tools.NewFileTools(tools.FileConfig{})...)
		c.Asker = askFunc(func(context.Context, policy.Question) (policy.Answer, error) {
			t.Error("somebody was asked")
			return policy.Answer{}, nil
		})
	}, calls(call{"read_file", "t1", `{"bad":1}`}), says("ok"))
	r.run(t.Context(), "hi")
	if told := textOf(r.c.history[2].Blocks); !strings.Contains(told, "file_path is missing") {
		t.Errorf("the model was told %q", told)
	}
}

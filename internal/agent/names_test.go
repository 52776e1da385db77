package agent

import (
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

func TestToolsHaveTheNamesOfTheDialect(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Tools = tools.NewRegistry(echo("read_file", policy.ClassRead))
		c.Names = tools.NewNames("claude")
	}, calls(call{"read_file", "1", `{"file_path":"a"}`}, call{"Read", "2", `{"file_path":"b"}`}), says("done"))
	r.run(t.Context(), "go")
	if got := r.model.requests[0].Tools[0].Name; got != "Read" {
		t.Errorf("the model is offered %q", got)
	}
	for _, b := range r.c.History()[1].Blocks {
		if u := b.(model.ToolUse); u.Name != "Read" {
			t.Errorf("the history has %q", u.Name)
		}
	}
	for _, e := range r.events {
		switch e := e.(type) {
		case *ToolEnded:
			if e.Result.Name != "Read" {
				t.Errorf("result %+v", e.Result)
			}
		case *BlockStarted:
			if u, ok := e.Block.(model.ToolUse); ok && u.Name != "Read" {
				t.Errorf("block of %q", u.Name)
			}
		}
	}
}

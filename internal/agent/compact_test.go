package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
)

// compacting has "/compact" run Compact, and keeps what it gave.
func compacting(r **rig, done *Compacted, failed *error) func(*Config) {
	return func(c *Config) {
		c.System = "be brief"
		c.Expand = func(ctx context.Context, in Input) (Expansion, error) {
			*done, *failed = (*r).c.Compact(ctx, "the names")
			return Expansion{Handled: true, Reply: "ok"}, nil
		}
	}
}

func TestCompactPutsASummaryInThePlaceOfTheHistory(t *testing.T) {
	t.Parallel()
	var r *rig
	var done Compacted
	var failed error
	r = newRig(t, compacting(&r, &done, &failed), says("first answer"), says("THE SUMMARY"), says("second answer"))
	r.run(t.Context(), "hello", "/compact", "go on")
	if failed != nil || done.Trigger != "manual" {
		t.Fatalf("%+v, %v", done, failed)
	}
	asked := r.model.requests
	if len(asked) != 3 || asked[1].System != "be brief" || !strings.Contains(model.JoinText(asked[1].Messages[2].Blocks), "the names") {
		t.Fatalf("%d requests, the second %+v", len(asked), asked[1])
	}
	last := asked[2].Messages
	if len(last) != 2 || !strings.Contains(model.JoinText(last[0].Blocks), "THE SUMMARY") || model.JoinText(last[1].Blocks) != "go on" {
		t.Errorf("after it the model was sent %d messages, first %q", len(last), model.JoinText(last[0].Blocks))
	}
	told := 0
	for _, e := range r.events {
		if _, ok := e.(*Compacted); ok {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestCompactLeavesTheHistoryWhenItFails(t *testing.T) {
	t.Parallel()
	boom := func(context.Context, *model.Request, func(model.Delta)) error { return errors.New("boom") }
	for name, c := range map[string]struct {
		answer reply
		hook   string
		want   string
	}{
		"the model fails":      {answer: boom, want: "boom"},
		"it says nothing":      {answer: says(" "), want: "no summary"},
		"a hook won't have it": {answer: says("THE SUMMARY"), hook: `{"decision":"block","reason":"not now"}`, want: "not now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			var done Compacted
			var failed error
			replies := []reply{says("first answer"), c.answer, says("second answer")}
			if c.hook != "" {
				replies = []reply{says("first answer"), says("second answer")}
			}
			r = newRig(t, func(cfg *Config) {
				compacting(&r, &done, &failed)(cfg)
				if c.hook != "" {
					cfg.Hooks = hooks.New(nil, nil)
					err := cfg.Hooks.Register(hooks.Registration{Event: hooks.PreCompact, Func: func(context.Context, json.RawMessage, string) (json.RawMessage, error) {
						return json.RawMessage(c.hook), nil
					}})
					if err != nil {
						t.Error(err)
					}
				}
			}, replies...)
			r.run(t.Context(), "hello", "/compact", "go on")
			if failed == nil || !strings.Contains(failed.Error(), c.want) {
				t.Fatalf("%v, want %q", failed, c.want)
			}
			last := r.model.requests[len(r.model.requests)-1].Messages
			if len(last) != 3 || model.JoinText(last[0].Blocks) != "hello" {
				t.Errorf("the model was sent %d messages", len(last))
			}
		})
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Judge decides a call as a turn would, without running it or asking anybody.
// A safety checker that is a program is not started: its word is missing, so
// what it would see is asked about. It may be called from any goroutine.
func (c *Conversation) Judge(f policy.Facts) policy.Decision {
	d := c.cfg.Policy.Decide(f)
	for _, k := range d.Checkers {
		if k.Program {
			d = d.Stricter(policy.Ask, k, "it must see the call first")
			continue
		}
		b, reason := k.Judge(f)
		d = d.Stricter(b, k, reason)
	}
	return d
}

// RunTool runs a call that the program itself makes, judged and asked about like
// any call of the model. It returns the result's text; the error is that of a
// call that failed or was denied. Only what the worker calls may call it, such
// as Config.Expand.
func (c *Conversation) RunTool(ctx context.Context, name string, input any) (string, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	t := &turn{c: c, log: c.log, start: c.cfg.Now()}
	o := t.runOne(ctx, model.ToolUse{ID: "call_" + uuid.NewString(), Name: name, Input: raw}, false)
	text := model.JoinText(o.result.Blocks)
	if o.result.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

package agent

import (
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/tools"
)

// Offers reports whether the definition lets its agent use a tool.
func (d *Definition) Offers(spec tools.Spec) bool {
	return (d.Tools == nil || namesTool(d.Tools, spec)) && !namesTool(d.DisallowedTools, spec)
}

// Adopt makes the conversation itself work as a definition says, from the next
// model request on: with its model, unless that is kept or can't be had, its
// effort, its limit of turns if there is none yet, and its permission mode if
// that is more careful. The caller sees to the system prompt and the tools.
func (c *Conversation) Adopt(d *Definition, keepModel bool) {
	name := d.Model
	if keepModel {
		name = ""
	}
	if name != "" {
		if _, err := c.cfg.Resolve(name); err != nil {
			c.cfg.Log.Warn("the model of an agent is not to be had: the old one stays", "agent", d.Name, "model", name, "error", err)
			name = ""
		}
	}
	effort, err := model.ParseEffort(d.Effort)
	if err != nil {
		c.cfg.Log.Warn("the effort of an agent is not known", "agent", d.Name, "error", err)
	}
	c.change(func(t *tuning) {
		t.model = orElse(name, t.model)
		if effort != "" {
			t.effort = effort
		}
		if t.maxTurns == 0 {
			t.maxTurns = d.MaxTurns
		}
		t.setMode(stricter(d.PermissionMode, t.mode))
	})
}

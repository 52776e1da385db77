package agent

import (
	"slices"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// tuning is what can be changed at any time. A change holds from the next model
// request, or the next judged call, on. Guarded by Conversation.mu.
type tuning struct {
	sessionID string
	model     string
	mode      policy.Mode
	unplanned policy.Mode // the mode before plan mode
	system    string
	thinking  int
	effort    model.Effort
	maxTurns  int
	facts     policy.Facts
	schema    *outputSchema // nil: answers are free
}

func newTuning(cfg *Config) tuning {
	return tuning{
		sessionID: cfg.SessionID, model: cfg.Model, mode: cfg.Mode, unplanned: policy.ModeDefault, system: cfg.System,
		thinking: cfg.ThinkingBudget, effort: cfg.Effort, maxTurns: cfg.MaxTurns, facts: cfg.Facts,
	}
}

// tuned returns the settings of now.
func (c *Conversation) tuned() tuning {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tune
}

// change changes the settings. f must not block.
func (c *Conversation) change(f func(*tuning)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.tune)
}

// SessionID returns the id of the session, which a reset changes.
func (c *Conversation) SessionID() string { return c.tuned().sessionID }

// SetModel makes name the model from the next model request on, within a turn
// too, and returns the one it was. The model is built first; on an error the
// old one stays. A model that stands in for one that can't answer steps back.
func (c *Conversation) SetModel(name string) (old string, err error) {
	if _, err := c.cfg.Resolve(name); err != nil {
		return c.Model(), err
	}
	c.change(func(t *tuning) { old, t.model = t.model, name })
	return old, nil
}

// Model returns the name of the model, "" for the default.
func (c *Conversation) Model() string { return c.tuned().model }

// SetMode sets the permission mode and returns the one it was. The mode is read
// when a call is judged: calls of the same answer that wait are judged by the
// new one. A question that is open stays open, whatever the new mode would
// have said: who is asked has the last word.
func (c *Conversation) SetMode(m policy.Mode) (old policy.Mode) {
	c.change(func(t *tuning) { old = t.setMode(m) })
	return old
}

func (t *tuning) setMode(m policy.Mode) (old policy.Mode) {
	old, t.mode = t.mode, m
	if m == policy.ModePlan && old != policy.ModePlan {
		t.unplanned = old
	}
	return old
}

// Mode returns the permission mode.
func (c *Conversation) Mode() policy.Mode { return c.tuned().mode }

// SetSystem replaces the system prompt.
func (c *Conversation) SetSystem(text string) { c.change(func(t *tuning) { t.system = text }) }

// System returns the system prompt of the next request.
func (c *Conversation) System() string { return c.withNotes(c.tuned().system) }

// withNotes returns a system prompt with what follows it now.
func (c *Conversation) withNotes(system string) string {
	notes := ""
	if c.cfg.SystemNotes != nil {
		notes = c.cfg.SystemNotes(c.cfg.Tools)
	}
	if system != "" && notes != "" {
		system += "\n\n"
	}
	return system + notes
}

// SetThinking sets the thinking budget in tokens: 0 is the model's default, or
// the effort's if one is set, and -1 is off.
func (c *Conversation) SetThinking(budget int) { c.change(func(t *tuning) { t.thinking = budget }) }

// SetEffort sets how hard the model shall think; "" is its default. It reports
// whether the model of now thinks at all, which one that nothing is known of is
// taken to do: for one that doesn't the effort is kept for the models to come.
func (c *Conversation) SetEffort(e model.Effort) (applied bool) {
	c.change(func(t *tuning) { t.effort = e })
	m, err := c.cfg.Resolve(c.Model())
	return err == nil && (m.Info.Thinking || !m.Info.Known)
}

// Effort returns how hard the model shall think, "" for its default.
func (c *Conversation) Effort() model.Effort { return c.tuned().effort }

// SetFacts changes what is the same for every call, such as the directories
// that may be worked in. f gets a copy whose lists it may append to; it must
// not block.
func (c *Conversation) SetFacts(f func(*policy.Facts)) {
	c.change(func(t *tuning) {
		t.facts.Roots, t.facts.Reads, t.facts.Guarded = slices.Clone(t.facts.Roots), slices.Clone(t.facts.Reads), slices.Clone(t.facts.Guarded)
		f(&t.facts)
	})
}

// Facts returns what is the same for every call, with the mode of now. Its
// lists must not be changed.
func (c *Conversation) Facts() policy.Facts {
	t := c.tuned()
	t.facts.Mode = t.mode
	if c.cfg.Interactive != nil {
		t.facts.Interactive = c.cfg.Interactive()
	}
	return t.facts
}

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentcli/agent/internal/model"
)

// ErrBudget: the conversation has cost what it may.
var ErrBudget = errors.New("the budget is spent")

// standIn is the model that answers in the place of one that can't, for the
// rest of a turn. The zero value is none.
type standIn struct {
	of    string // the name it stands in for
	name  string
	tried int // of Config.Fallback
}

// unavailable reports whether another model may do what this one can't.
func unavailable(e *model.Error) bool {
	switch e.Kind {
	case model.ErrOverloaded, model.ErrServer, model.ErrRateLimit, model.ErrQuota, model.ErrNotFound, model.ErrNetwork, model.ErrStalled:
		return true
	}
	return false
}

// fallback returns the model to ask instead of one that failed, retries
// included; false if there is none.
func (t *turn) fallback(ctx context.Context, failed Model, err error) (Model, bool) {
	var apiErr *model.Error
	if context.Cause(ctx) != nil || !errors.As(err, &apiErr) || !unavailable(apiErr) {
		return Model{}, false
	}
	wanted := t.wanted()
	if t.standIn.of != wanted {
		t.standIn = standIn{of: wanted}
	}
	for t.standIn.tried < len(t.c.cfg.Fallback) {
		i := t.standIn.tried
		name := t.c.cfg.Fallback[i]
		t.standIn.tried++
		next, err := t.c.cfg.Resolve(name)
		if err != nil {
			t.log.Warn("a fallback model can't be used", "model", name, "error", err)
			continue
		}
		if next.Name == failed.Name && next.ProviderName == failed.ProviderName {
			continue
		}
		t.standIn.name = name
		t.c.send(ctx, &ModelFallback{From: failed.Display, To: next.Display, Index: i, Err: apiErr})
		t.log.Warn("another model stands in", "from", failed.Display, "to", next.Display, "error", apiErr)
		return next, true
	}
	return Model{}, false
}

// overBudget returns the turn's result when the conversation has cost what it
// may.
func (t *turn) overBudget() (Result, bool) {
	limit, spent := t.c.cfg.MaxBudgetUSD, t.c.spent()
	if limit <= 0 || spent < limit {
		return Result{}, false
	}
	text := fmt.Sprintf("Reached maximum budget ($%g)", limit)
	return Result{
		Subtype: ErrorMaxBudget, IsError: true, Terminal: BudgetExhausted,
		Errors: []string{text}, Err: fmt.Errorf("%w: $%.4f of $%g", ErrBudget, spent, limit),
	}, true
}

// spent is what the conversation has cost in all, which a reset of its ledger
// does not change.
func (c *Conversation) spent() float64 {
	if c.parent != nil { // it shares its caller's ledger
		return c.parent.parent.c.spent()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spentUSD + c.cfg.Ledger.CostUSD()
}

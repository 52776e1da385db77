package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/transcript"
	"github.com/agentcli/agent/internal/usage"
)

//go:embed compact.md
var compactPrompt string

// Compacted tells that a summary took the place of the history.
type Compacted struct {
	Trigger       string // manual or auto
	Before, After int    // tokens of the context; After is an estimate
}

func (*Compacted) isEvent() {}

// errNothing says that there is no conversation to shorten yet.
var errNothing = errors.New("there is nothing to compact yet")

// Compact has the model sum the conversation up and puts that in the place of
// the history; instructions, maybe empty, say what must stay. On an error the
// history stays as it is. Only what the worker calls may call it, such as
// Config.Expand.
func (c *Conversation) Compact(ctx context.Context, instructions string) (Compacted, error) {
	if len(c.history) < 2 {
		return Compacted{}, errNothing
	}
	in := c.hookInput()
	in.Trigger, in.CustomInstructions = "manual", instructions
	if o := c.runHooks(ctx, hooks.PreCompact, in); o.Stop || o.Block {
		return Compacted{}, fmt.Errorf("a hook kept the conversation as it is: %s", orElse(orElse(o.StopReason, o.Reason), "it gave no reason"))
	}
	text, used, err := c.summary(ctx, instructions)
	if err != nil {
		return Compacted{}, err
	}
	done := Compacted{Trigger: "manual", Before: used.Total() - used.OutputTokens, After: used.OutputTokens}
	c.history = nil
	c.remember(&model.Message{ID: uuid.NewString(), Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: "<summary-of-the-conversation-so-far>\n" + text + "\n</summary-of-the-conversation-so-far>"}}}, transcript.Entry{})
	c.send(ctx, &done)
	return done, nil
}

// summary asks the model for the summary. The request is in the ledger like any
// other.
func (c *Conversation) summary(ctx context.Context, instructions string) (string, model.Usage, error) {
	m, err := c.cfg.Resolve(c.Model())
	if err != nil {
		return "", model.Usage{}, err
	}
	prompt := strings.TrimSpace(compactPrompt)
	if instructions != "" {
		prompt += "\n\nThe user asks besides: " + instructions
	}
	req := &model.Request{
		Model: m.Name, System: c.System(), SessionID: c.SessionID(), MaxOutputTokens: c.cfg.MaxOutput,
		Messages: append(c.history[:len(c.history):len(c.history)], &model.Message{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: prompt}}}),
		Tools:    c.toolSpecs(c.Mode() == policy.ModePlan), // as before, so that what is cached still serves
	}
	var asm model.Assembler
	begin := c.cfg.Now()
	err = m.Provider.Stream(ctx, req, func(d model.Delta) {
		switch d.Kind {
		case model.DeltaPing, model.DeltaRetry:
		case model.DeltaRestart:
			asm = model.Assembler{}
		default:
			asm.Add(d)
		}
	})
	u := asm.Usage()
	c.cfg.Ledger.Add(usage.Entry{
		RequestID: uuid.NewString(), Provider: m.ProviderName, Model: m.Display, Usage: u, CostUSD: model.Cost(m.Info, u),
		Duration: c.cfg.Now().Sub(begin), Failed: err != nil, Context: m.Info.ContextWindow, MaxOutput: m.Info.MaxOutput,
	})
	if err != nil {
		return "", u, err
	}
	text := strings.TrimSpace(model.JoinText(asm.Blocks()))
	if text == "" {
		return "", u, errors.New("the model gave no summary: the conversation stays as it is")
	}
	return text, u, nil
}

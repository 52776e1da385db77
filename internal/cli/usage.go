package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/tools"
)

// bytesPerToken is what a token of prompts and schemas is taken for where
// nobody counted: providers tell only the sum.
const bytesPerToken = 4

func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// ContextUsage implements control.Usage. The whole is what the provider counted
// at the last request; the parts of it are estimates, and messages the rest.
func (h *host) ContextUsage(context.Context) (control.ContextUsage, error) {
	return h.w.contextUsage(), nil
}

func (w *wiring) contextUsage() control.ContextUsage {
	m, err := w.models.resolve(w.conv.Model())
	if err != nil {
		return control.ContextUsage{}
	}
	seen := w.watch.counted()
	u := control.ContextUsage{
		Model: m.Display, Window: m.Info.ContextWindow, SystemPrompt: tokens(len(w.conv.System())), Cached: seen.usage.CacheReadTokens,
	}
	known := u.SystemPrompt
	absent := map[string]bool{} // tools that the model has yet to search for
	for _, s := range w.conv.Deferred() {
		absent[s.Name] = true
	}
	for _, s := range w.conv.Offered() {
		item := control.UsageItem{Name: w.names.Tool(s.Name), Tokens: specTokens(s), Server: s.Server, Absent: absent[s.Name]}
		if s.Name == "agent" { // it describes the sub-agents
			u.Agents = w.agentsUsage()
			for _, a := range u.Agents {
				item.Tokens = max(0, item.Tokens-a.Tokens)
				known += a.Tokens
			}
		}
		if !item.Absent {
			known += item.Tokens
		}
		if s.Server != "" {
			u.MCPTools = append(u.MCPTools, item)
		} else {
			u.Tools = append(u.Tools, item)
		}
	}
	if seen.answered {
		u.Messages = max(0, seen.usage.Total()-known)
		u.LastUsage = lastUsage(seen)
	}
	return u
}

// agentsUsage is what the descriptions of the sub-agents take.
func (w *wiring) agentsUsage() []control.UsageItem {
	var out []control.UsageItem
	for _, a := range w.agents.list() {
		out = append(out, control.UsageItem{Name: a.Name, Tokens: tokens(len(a.Description)), Source: a.Level.String()})
	}
	return out
}

func specTokens(s tools.Spec) int { return tokens(len(s.Name) + len(s.Description) + len(s.Schema)) }

// lastUsage is the usage of the last request as frames have it.
func lastUsage(seen seen) json.RawMessage {
	raw, err := json.Marshal(session.WireUsage(seen.usage))
	if err != nil { // numbers only
		return nil
	}
	return raw
}

// UsageInfo implements control.Usage. Only this run is known, whatever the
// range.
func (h *host) UsageInfo(context.Context, string) (control.UsageInfo, error) {
	seen := h.w.watch.counted()
	u := control.UsageInfo{
		Requests: h.w.ledger.Requests(), Sessions: 1, ToolCalls: seen.calls, LinesAdded: seen.added, LinesRemoved: seen.removed,
	}
	names, totals := h.w.ledger.Models()
	for i, t := range totals {
		u.Input += t.Usage.InputTokens + t.Usage.CacheReadTokens + t.Usage.CacheWriteTokens
		u.Output += t.Usage.OutputTokens
		u.Cached += t.Usage.CacheReadTokens
		u.Thoughts += t.Usage.ThinkingTokens
		m := control.ModelUsed{Model: names[i], TotalTokens: t.Usage.Total(), Requests: t.Requests}
		if in := t.Usage.InputTokens + t.Usage.CacheReadTokens + t.Usage.CacheWriteTokens; in > 0 {
			m.CacheReadRate = float64(t.Usage.CacheReadTokens) / float64(in)
		}
		u.Models = append(u.Models, m)
	}
	if u.Requests > 0 {
		u.Day = time.Now().Format(time.DateOnly)
	}
	return u, nil
}

// Models implements control.Models: those of the providers that are set up, the
// current one first.
func (h *host) Models() []control.ModelInfo {
	var out []control.ModelInfo
	for _, m := range h.w.models.known(h.conv.Model()) {
		info := control.ModelInfo{ID: m.ID, Label: m.ID, Window: m.ContextWindow, Thinking: m.Thinking}
		if m.Thinking {
			info.Efforts = control.Efforts[:]
		}
		out = append(out, info)
	}
	return out
}

// Commands implements control.Commands.
func (h *host) Commands() []control.Command {
	var out []control.Command
	for _, c := range h.w.commands.List() {
		out = append(out, control.Command{
			Name: c.Name, Description: c.Description, ArgumentHint: c.ArgumentHint, Aliases: c.Aliases,
			Builtin: c.Source == "builtin", Headless: true,
		})
	}
	return out
}

// Hints implements control.Hints.
func (h *host) Hints(ctx context.Context, prefix string, limit int) []control.CommandHint {
	var out []control.CommandHint
	for _, one := range h.w.commands.Hints(ctx, prefix, limit) {
		out = append(out, control.CommandHint{Kind: one.Kind, Value: one.Value, Description: one.Description})
	}
	return out
}

package session

import (
	"encoding/json"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/usage"
)

// Result makes the result frame of a turn. Totals come from the ledger.
func (f *Facts) Result(r agent.Result) *streamjson.Result {
	index := r.Index
	out := &streamjson.Result{
		Subtype: string(r.Subtype), IsError: r.IsError,
		DurationMS: r.Duration.Milliseconds(), DurationAPIMS: r.APITime.Milliseconds(), NumTurns: r.ModelCalls,
		Result: r.Text, Errors: r.Errors, StopReason: string(r.Stop),
		TotalCostUSD: f.Ledger.CostUSD(), Usage: toUsage(r.Usage), ModelUsage: modelUsage(f.Ledger),
		PermissionDenials: toDenials(r.Denials), TerminalReason: string(r.Terminal), ResultIndex: &index,
		StructuredOutput: r.Structured, Origin: r.Origin, UserMessageUUID: r.InputUUID, SessionID: f.SessionID, UUID: streamjson.NewUUID(),
	}
	if r.APIError != nil {
		out.APIErrorStatus = r.APIError.Status
		out.Errors = []string{}
	}
	if r.Subtype != agent.Success && out.Errors == nil {
		out.Errors = []string{}
	}
	if r.Subtype != agent.Success && f.Dialect == streamjson.Claude {
		out.Result = "" // its hosts take a result that is there for the answer
	}
	extra := map[string]any{
		"queued_turn_count":     nonZero(r.Queued),
		"ttft_ms":               nonZero(int(r.FirstToken.Milliseconds())),
		"local_command":         r.Local,
		"transcript_unwritable": r.Unsaved,
	}
	if u := r.Deferred; u != nil {
		extra["deferred_tool_use"] = deferred{u.ID, u.Name, object(u.Input)}
	}
	out.Extra = members(extra)
	return out
}

// nonZero returns n, nil for 0.
func nonZero(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// members encodes the members that are neither nil nor false; nil if none is.
func members(m map[string]any) []byte {
	for k, v := range m {
		if v == nil || v == false {
			delete(m, k)
		}
	}
	if len(m) == 0 {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil { // strings and numbers only
		panic("session: " + err.Error())
	}
	return raw
}

// WireUsage is a usage as frames have it.
func WireUsage(u model.Usage) streamjson.Usage { return toUsage(u) }

func toUsage(u model.Usage) streamjson.Usage {
	return streamjson.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheCreationInputTokens: u.CacheWriteTokens, CacheReadInputTokens: u.CacheReadTokens,
		CacheCreation: streamjson.CacheCreation{Ephemeral5m: u.CacheWriteTokens},
	}
}

func modelUsage(l *usage.Ledger) map[string]streamjson.ModelUsage {
	names, totals := l.Models()
	out := make(map[string]streamjson.ModelUsage, len(names))
	for i, n := range names {
		t := totals[i]
		out[n] = streamjson.ModelUsage{
			InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
			CacheReadInputTokens: t.Usage.CacheReadTokens, CacheCreationInputTokens: t.Usage.CacheWriteTokens,
			CostUSD: t.CostUSD, ContextWindow: t.Context, MaxOutputTokens: t.MaxOutput, ThinkingTokens: t.Usage.ThinkingTokens,
		}
	}
	return out
}

func toDenials(list []agent.Denial) []streamjson.PermissionDenial {
	out := make([]streamjson.PermissionDenial, len(list))
	for i, d := range list {
		out[i] = streamjson.PermissionDenial{ToolName: d.ToolName, ToolUseID: d.ToolUseID, ToolInput: d.Input}
	}
	return out
}

// deferred is a call that a hook put off.
type deferred struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

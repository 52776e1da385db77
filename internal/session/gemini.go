package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

// Gemini writes the events of gemini-cli's stream-json output: init, message,
// tool_use, tool_result, error and result. There are none for thoughts and
// none of sub-agents.
type Gemini struct {
	Facts *Facts
	Out   Output
	Now   func() time.Time // nil: time.Now

	begun bool // init is out
	calls int
}

// The events of the gemini dialect, with their fields in its order.
type (
	geminiInit struct {
		Type      string `json:"type"`
		Time      string `json:"timestamp"`
		SessionID string `json:"session_id"`
		Model     string `json:"model"`
	}
	geminiMessage struct {
		Type    string `json:"type"`
		Time    string `json:"timestamp"`
		Role    string `json:"role"`
		Content string `json:"content"`
		Delta   bool   `json:"delta,omitempty"`
	}
	geminiToolUse struct {
		Type  string          `json:"type"`
		Time  string          `json:"timestamp"`
		Name  string          `json:"tool_name"`
		ID    string          `json:"tool_id"`
		Input json.RawMessage `json:"parameters"`
	}
	geminiToolResult struct {
		Type   string         `json:"type"`
		Time   string         `json:"timestamp"`
		ID     string         `json:"tool_id"`
		Status string         `json:"status"`
		Output string         `json:"output,omitempty"`
		Error  *geminiProblem `json:"error,omitempty"`
	}
	geminiError struct {
		Type     string `json:"type"`
		Time     string `json:"timestamp"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	}
	geminiResult struct {
		Type   string         `json:"type"`
		Time   string         `json:"timestamp"`
		Status string         `json:"status"`
		Error  *geminiProblem `json:"error,omitempty"`
		Stats  geminiStats    `json:"stats"`
	}
	geminiProblem struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	geminiStats struct {
		geminiTokens
		DurationMS int64                   `json:"duration_ms"`
		ToolCalls  int                     `json:"tool_calls"`
		Models     map[string]geminiTokens `json:"models"`
	}
	geminiTokens struct {
		Total  int `json:"total_tokens"`
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Cached int `json:"cached"`
		Fresh  int `json:"input"` // not from a cache
	}
)

// Event implements Projector.
func (g *Gemini) Event(_ context.Context, from agent.Origin, e agent.Event) {
	if !isMain(from) {
		return
	}
	switch e := e.(type) {
	case *agent.TurnStarted:
		g.turnStarted(e)
	case *agent.BlockDelta:
		if e.Kind == model.DeltaText {
			g.send("message", geminiMessage{"message", g.now(), "assistant", e.Text, true})
		}
	case *agent.BlockEnded:
		if u, ok := e.Block.(model.ToolUse); ok {
			g.calls++
			g.send("tool_use", geminiToolUse{"tool_use", g.now(), u.Name, u.ID, object(u.Input)})
		}
	case *agent.RequestRetried:
		if e.Info.Err != nil {
			g.problem("warning", e.Info.Err.Error())
		}
	case *agent.ModelFallback:
		g.problem("warning", e.From+" can't be used: "+e.To+" answers instead")
	case *agent.ConversationReset:
		g.Facts.SessionID = e.New
	case *agent.ToolEnded:
		g.toolResult(e)
	case *agent.TurnEnded:
		g.turnEnded(e.Result)
	}
}

func (g *Gemini) send(kind string, v any) {
	_ = g.Out.Send(&streamjson.Unknown{Type: kind, Raw: encode(v)}) // the Output reports a consumer that went away
}

func (g *Gemini) now() string {
	now := time.Now
	if g.Now != nil {
		now = g.Now
	}
	return now().UTC().Format("2006-01-02T15:04:05.000Z")
}

func (g *Gemini) turnStarted(e *agent.TurnStarted) {
	if !g.begun {
		g.begun = true
		g.send("init", geminiInit{"init", g.now(), g.Facts.SessionID, e.Model})
	}
	g.send("message", geminiMessage{"message", g.now(), "user", joinTexts(e.Input.Blocks), false})
}

func (g *Gemini) problem(severity, text string) {
	g.send("error", geminiError{"error", g.now(), severity, text})
}

func (g *Gemini) toolResult(e *agent.ToolEnded) {
	text := joinTexts(e.Result.Blocks)
	out := geminiToolResult{Type: "tool_result", Time: g.now(), ID: e.Result.ToolUseID, Status: "success"}
	if e.Result.IsError {
		out.Status, out.Error = "error", &geminiProblem{"tool_error", projected(text)}
	} else {
		out.Output = projected(text)
	}
	g.send("tool_result", out)
}

func (g *Gemini) turnEnded(r agent.Result) {
	out := geminiResult{Type: "result", Time: g.now(), Status: "success", Stats: g.stats(r)}
	if r.IsError || r.Subtype != agent.Success {
		out.Status, out.Error = "error", &geminiProblem{string(r.Terminal), problem(r)}
		g.problem("error", problem(r))
	}
	g.send("result", out)
}

// stats are of the whole session.
func (g *Gemini) stats(r agent.Result) geminiStats {
	out := geminiStats{DurationMS: r.Duration.Milliseconds(), ToolCalls: g.calls, Models: map[string]geminiTokens{}}
	names, totals := g.Facts.Ledger.Models()
	var sum model.Usage
	for i, name := range names {
		out.Models[name] = geminiCount(totals[i].Usage)
		sum = sum.Add(totals[i].Usage)
	}
	out.geminiTokens = geminiCount(sum)
	return out
}

func geminiCount(u model.Usage) geminiTokens {
	in := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	return geminiTokens{
		Total: in + u.OutputTokens, Input: in, Output: u.OutputTokens, Cached: u.CacheReadTokens, Fresh: in - u.CacheReadTokens,
	}
}

// GeminiJSON writes one JSON object with the last answer when the session is
// over: what --output-format json is in the gemini dialect.
type GeminiJSON struct {
	Gemini
	out  Output
	last agent.Result
}

// Event implements Projector.
func (g *GeminiJSON) Event(_ context.Context, from agent.Origin, e agent.Event) {
	if !isMain(from) {
		return
	}
	switch e := e.(type) {
	case *agent.BlockEnded:
		if _, ok := e.Block.(model.ToolUse); ok {
			g.calls++
		}
	case *agent.TurnEnded:
		g.last = e.Result
	}
}

// Close implements Closer: it writes the object.
func (g *GeminiJSON) Close() {
	out := struct {
		SessionID string         `json:"session_id"`
		Response  string         `json:"response"`
		Stats     geminiStats    `json:"stats"`
		Error     *geminiProblem `json:"error,omitempty"`
	}{SessionID: g.Facts.SessionID, Response: g.last.Text, Stats: g.stats(g.last)}
	if g.last.IsError || g.last.Subtype != agent.Success {
		out.Response, out.Error = "", &geminiProblem{string(g.last.Terminal), problem(g.last)}
	}
	_ = g.out.SendText(string(encode(out))) // the Output reports a consumer that went away
}

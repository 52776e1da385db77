package control

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/streamjson"
)

// Done is the response to a request that has nothing to tell but that it was
// done; {} in the claude dialect.
type Done struct {
	Subtype string `json:"subtype,omitzero"`
}

// InterruptResponse is the native response to interrupt.
type InterruptResponse struct {
	Subtype     string   `json:"subtype,omitzero"`
	StillQueued []string `json:"still_queued"`
	Cancelled   []string `json:"cancelled,omitempty"`
}

func interruptPayload(d streamjson.Dialect, cancelQueued bool, what Interrupted) any {
	if d == streamjson.Qwen {
		return &Done{Subtype: "interrupt"}
	}
	out := &InterruptResponse{StillQueued: what.StillQueued}
	if d == streamjson.Native {
		out.Subtype = "interrupt"
	}
	if cancelQueued {
		out.Cancelled = what.Cancelled
	}
	return out
}

// SetModelResponse is the response to set_model.
type SetModelResponse struct {
	Subtype string `json:"subtype"`
	Model   string `json:"model"`
}

// SetEffortResponse is the response to set_effort.
type SetEffortResponse struct {
	Subtype  string  `json:"subtype,omitzero"`
	Effort   string  `json:"effort"`
	Applied  bool    `json:"applied"`
	Override *string `json:"override"`
}

// SetModeResponse is the response to set_permission_mode.
type SetModeResponse struct {
	Status string `json:"status,omitzero"`
	Mode   string `json:"mode"`
}

// ContinueResponse is the response to continue_last_turn.
type ContinueResponse struct {
	Subtype      string `json:"subtype"`
	Accepted     bool   `json:"accepted"`
	Interruption string `json:"interruption"`
}

// CommandsResponse is the response to supported_commands.
type CommandsResponse struct {
	Subtype  string          `json:"subtype"`
	Commands []string        `json:"commands"`
	Details  []CommandDetail `json:"details,omitzero"`
}

// CommandDetail is one slash command in detail.
type CommandDetail struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	ArgumentHint string `json:"argumentHint"`
	Headless     bool   `json:"headless"`
}

// HintsResponse is the response to command_hints.
type HintsResponse struct {
	Subtype string        `json:"subtype"`
	Hints   []CommandHint `json:"hints"`
}

// HeartbeatResponse is the response to heartbeat.
type HeartbeatResponse struct {
	Subtype     string `json:"subtype"`
	UptimeMS    int64  `json:"uptime_ms"`
	Turn        string `json:"turn"`
	LastEventMS *int64 `json:"last_event_ms"` // null: there was none
	RSSBytes    int64  `json:"rss_bytes"`
}

// ModelsResponse is the response to get_available_models.
type ModelsResponse struct {
	Subtype string           `json:"subtype"`
	Models  []AvailableModel `json:"models"`
}

// AvailableModel is a model that can be set.
type AvailableModel struct {
	ID           string   `json:"id"`
	Label        string   `json:"label"`
	Capabilities struct{} `json:"capabilities"`
	Window       int      `json:"contextWindowSize"`
}

// CanUseToolResponse is the native and qwen response to can_use_tool.
type CanUseToolResponse struct {
	Subtype      string         `json:"subtype,omitzero"`
	Behavior     string         `json:"behavior"`
	Message      string         `json:"message,omitzero"`
	UpdatedInput jsontext.Value `json:"updatedInput,omitzero"`
	Decision     string         `json:"decision,omitzero"`
	Reason       string         `json:"reason,omitzero"`
}

// UsageResponse is the response to get_usage_info.
type UsageResponse struct {
	Subtype     string               `json:"subtype"`
	GeneratedAt string               `json:"generatedAt"`
	Range       string               `json:"range"`
	Summary     UsageSummary         `json:"summary"`
	Models      []ModelUsed          `json:"models"`
	Skills      []struct{}           `json:"skills"`
	Daily       []UsageDay           `json:"daily"`
	Heatmap     map[string]UsageCell `json:"heatmap"`
	HeatmapDays int                  `json:"heatmapDays"`
}

// UsageDay adds up a day.
type UsageDay struct {
	Date     string `json:"date"`
	Tokens   int    `json:"tokens"`
	Sessions int    `json:"sessions"`
}

// UsageCell is a day of the heatmap.
type UsageCell struct {
	Tokens        int     `json:"tokens"`
	CacheReadRate float64 `json:"cacheReadRate"`
}

// UsageSummary adds up a range.
type UsageSummary struct {
	TotalTokens    int     `json:"totalTokens"`
	InputTokens    int     `json:"inputTokens"`
	OutputTokens   int     `json:"outputTokens"`
	CachedTokens   int     `json:"cachedTokens"`
	ThoughtsTokens int     `json:"thoughtsTokens"`
	Requests       int     `json:"requests"`
	Sessions       int     `json:"sessions"`
	ToolCalls      int     `json:"toolCalls"`
	LinesAdded     int     `json:"linesAdded"`
	LinesRemoved   int     `json:"linesRemoved"`
	CacheReadRate  float64 `json:"cacheReadRate"`
}

func usagePayload(within string, u *UsageInfo, now time.Time) *UsageResponse {
	out := &UsageResponse{
		Subtype: "get_usage_info", GeneratedAt: now.UTC().Format("2006-01-02T15:04:05.000Z"), Range: within, Models: slices.Clone(u.Models),
		Summary: UsageSummary{
			TotalTokens: u.Input + u.Output, InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached, ThoughtsTokens: u.Thoughts,
			Requests: u.Requests, Sessions: u.Sessions, ToolCalls: u.ToolCalls, LinesAdded: u.LinesAdded, LinesRemoved: u.LinesRemoved,
		},
	}
	if u.Input > 0 {
		out.Summary.CacheReadRate = float64(u.Cached) / float64(u.Input)
	}
	if all := out.Summary.TotalTokens; all > 0 {
		for i := range out.Models {
			out.Models[i].Share = float64(out.Models[i].TotalTokens) / float64(all)
		}
	}
	if u.Day != "" {
		out.Daily = []UsageDay{{u.Day, out.Summary.TotalTokens, u.Sessions}}
		out.Heatmap = map[string]UsageCell{u.Day: {out.Summary.TotalTokens, out.Summary.CacheReadRate}}
		out.HeatmapDays = 1
	}
	return out
}

package anthropic

import (
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

const (
	defaultMaxTokens = 8192 // max_tokens is required
	minBudget        = 1024 // the API's least thinking budget
)

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

// think sets max_tokens and thinking. A budget counts against max_tokens: it is
// added to the default, but fitted below a limit that the caller set. Models
// from 4.7 on have replaced the budget by an effort, and take no temperature.
func (h *head) think(req *model.Request, unthought bool) {
	want := req.Budget()
	h.MaxTokens = req.MaxOutputTokens
	if h.MaxTokens <= 0 {
		h.MaxTokens = defaultMaxTokens + max(want, 0)
	}
	switch adaptive := adapts(req.Model); {
	case adaptive:
		h.Temperature, h.TopP = nil, nil
		if want > 0 {
			h.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
		}
		switch {
		case req.Effort != "":
			h.OutputConfig = &outputConfig{Effort: string(req.Effort)}
		case want > 0:
			h.OutputConfig = &outputConfig{Effort: effort(want)}
		}
	case want < 0:
		h.Thinking = &thinking{Type: "disabled"}
	case want > 0 && !unthought:
		budget := min(max(want, minBudget), h.MaxTokens-minBudget)
		if budget >= minBudget {
			h.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
			h.Temperature, h.TopP = nil, nil // may not be set with thinking
		}
	}
}

func effort(budget int) string {
	switch {
	case budget <= 4<<10:
		return "low"
	case budget <= 16<<10:
		return "medium"
	}
	return "high"
}

// adapts reports whether the model has adaptive thinking only: Claude from 4.7
// on. Names without a version that are not known are taken for older ones.
func adapts(model string) bool {
	if !strings.Contains(model, "claude") {
		return false
	}
	major, minor := version(model)
	return major > 4 || major == 4 && minor >= 7 || strings.Contains(model, "mythos")
}

// version finds the version in claude-opus-4-1-20250805, claude-opus-4.7 or
// claude-3-7-sonnet-latest; 0, 0 if there is none.
func version(model string) (major, minor int) {
	fields := strings.FieldsFunc(model, func(r rune) bool { return r == '-' || r == '.' || r == '/' || r == '@' || r == ':' })
	for i, f := range fields {
		n, ok := small(f)
		if !ok {
			continue
		}
		if i+1 < len(fields) {
			if m, ok := small(fields[i+1]); ok {
				minor = m
			}
		}
		return n, minor
	}
	return 0, 0
}

// small reads a number of one or two digits: longer ones are dates.
func small(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && len(s) <= 2
}

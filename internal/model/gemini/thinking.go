package gemini

import (
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
}

// proMinimum is the least budget of 2.5 Pro, which cannot be kept from thinking.
const proMinimum = 128

// newThinking returns the thinking configuration that req's model understands,
// nil for none: older models refuse the field itself.
func newThinking(req *model.Request) *thinkingConfig {
	g := generation(req.Model)
	pro := strings.Contains(req.Model, "pro")
	off := 0
	budget := req.Budget()
	switch {
	case g < 2.5:
		return nil
	case budget > 0:
		return &thinkingConfig{IncludeThoughts: true, ThinkingBudget: &budget}
	case budget == 0:
		return &thinkingConfig{IncludeThoughts: true}
	case g >= 3 && pro:
		return &thinkingConfig{ThinkingLevel: "low"} // the least that it knows
	case g >= 3:
		return &thinkingConfig{ThinkingLevel: "minimal"}
	case pro:
		off = proMinimum
	}
	return &thinkingConfig{ThinkingBudget: &off}
}

// signs reports whether the model refuses function calls without a thought
// signature: Gemini 3 and later do.
func signs(modelName string) bool { return generation(modelName) >= 3 }

// generation is the number in a Gemini model's name. Names without one
// (gemini-flash-latest) mean the newest; 0 is for other families.
func generation(modelName string) float64 {
	m := modelName[strings.LastIndexByte(modelName, '/')+1:]
	rest, ok := strings.CutPrefix(m, "gemini-")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "-")
	g, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 3
	}
	return g
}

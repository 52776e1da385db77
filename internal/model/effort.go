package model

import (
	"fmt"
	"slices"
	"strings"
)

// Effort says how hard a model shall think. Adapters map it onto what their
// API has; what has nothing of the kind ignores it. The zero value is the
// model's default.
type Effort string

// Efforts. Where an API has fewer, the nearest one below is taken.
const (
	EffortLow    Effort = "low"
	EffortMedium Effort = "medium"
	EffortHigh   Effort = "high"
	EffortXHigh  Effort = "xhigh"
	EffortMax    Effort = "max"
)

// Efforts lists them from the least on.
var Efforts = []Effort{EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax}

// ParseEffort reads an effort by its name; "" is the zero value. The error
// lists the valid ones.
func ParseEffort(s string) (Effort, error) {
	e := Effort(strings.ToLower(s))
	if e == "" || slices.Contains(Efforts, e) {
		return e, nil
	}
	return "", fmt.Errorf("unknown effort %q: use one of low, medium, high, xhigh, max", s)
}

// effortBudgets are thinking budgets for APIs that count tokens. The highest
// one leaves room for an answer within the smallest output limit that thinking
// models have.
var effortBudgets = map[Effort]int{
	EffortLow: 2048, EffortMedium: 8192, EffortHigh: 16384, EffortXHigh: 20000, EffortMax: 23000,
}

// Budget is the thinking budget in tokens, for APIs that count them: the
// request's own, else the effort's. As with ThinkingBudget 0 is the model's
// default and -1 is off.
func (r *Request) Budget() int {
	if r.ThinkingBudget != 0 {
		return r.ThinkingBudget
	}
	return effortBudgets[r.Effort]
}

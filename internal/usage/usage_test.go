package usage

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func TestTotalsAreSumsOfTheEntries(t *testing.T) {
	t.Parallel()
	var l Ledger
	var seen []string
	l.Observe(func(e Entry) { seen = append(seen, e.RequestID) })
	l.Add(Entry{RequestID: "1", Model: "a", Usage: model.Usage{InputTokens: 1, OutputTokens: 2}, CostUSD: 0.5, Context: 10, MaxOutput: 5})
	l.Add(Entry{RequestID: "2", Model: "b", Usage: model.Usage{CacheReadTokens: 7}, Failed: true})
	l.Add(Entry{RequestID: "3", Model: "a", Usage: model.Usage{InputTokens: 4, ThinkingTokens: 1}, CostUSD: 0.25, Context: 10, MaxOutput: 5})
	names, totals := l.Models()
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Error(diff)
	}
	want := []ModelTotal{
		{Usage: model.Usage{InputTokens: 5, OutputTokens: 2, ThinkingTokens: 1}, CostUSD: 0.75, Requests: 2, Context: 10, MaxOutput: 5},
		{Usage: model.Usage{CacheReadTokens: 7}, Requests: 1},
	}
	if diff := cmp.Diff(want, totals); diff != "" {
		t.Error(diff)
	}
	if l.CostUSD() != 0.75 || l.Requests() != 3 {
		t.Errorf("cost %v, requests %d", l.CostUSD(), l.Requests())
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrentBookingLosesNothing(t *testing.T) {
	t.Parallel()
	var l Ledger
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				l.Add(Entry{Model: "m", Usage: model.Usage{InputTokens: 1}, CostUSD: 1})
			}
		})
	}
	wg.Wait()
	if _, totals := l.Models(); totals[0].Usage.InputTokens != 4000 || l.Requests() != 4000 {
		t.Errorf("totals = %+v", totals)
	}
}

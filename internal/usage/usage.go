// Package usage is the one ledger of model requests: an entry each, retries
// included, from which every total that we report is summed.
package usage

import (
	"sync"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// Entry is one provider request.
type Entry struct {
	RequestID string // our id of it
	Provider  string
	Model     string
	Usage     model.Usage
	CostUSD   float64
	Duration  time.Duration
	Failed    bool // it ended in an error; Usage holds what was reported before
	Context   int  // the model's context window in tokens; 0 unknown
	MaxOutput int  // the model's output limit in tokens; 0 unknown
}

// ModelTotal sums the entries of one model.
type ModelTotal struct {
	Usage     model.Usage
	CostUSD   float64
	Requests  int
	Context   int
	MaxOutput int
}

// Ledger collects entries. The zero value is ready; it is safe for concurrent
// use. It keeps sums, not entries, so that it does not grow with the history.
type Ledger struct {
	mu       sync.Mutex
	models   map[string]*ModelTotal
	order    []string
	cost     float64
	requests int
	observe  func(Entry)
}

// Observe has f called for each later entry, in order; f must not block.
func (l *Ledger) Observe(f func(Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observe = f
}

// Add books one request.
func (l *Ledger) Add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.models == nil {
		l.models = make(map[string]*ModelTotal)
	}
	t := l.models[e.Model]
	if t == nil {
		t = new(ModelTotal)
		l.models[e.Model] = t
		l.order = append(l.order, e.Model)
	}
	t.Usage = t.Usage.Add(e.Usage)
	t.CostUSD += e.CostUSD
	t.Requests++
	t.Context, t.MaxOutput = e.Context, e.MaxOutput
	l.cost += e.CostUSD
	l.requests++
	if l.observe != nil {
		l.observe(e)
	}
}

// Reset sets all totals to zero and returns the cost until then.
func (l *Ledger) Reset() (costUSD float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	costUSD = l.cost
	l.models, l.order, l.cost, l.requests = nil, nil, 0, 0
	return costUSD
}

// Models returns the totals by model, in the order of first use.
func (l *Ledger) Models() (names []string, totals []ModelTotal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.order {
		names = append(names, n)
		totals = append(totals, *l.models[n])
	}
	return names, totals
}

// CostUSD returns the estimated cost of all requests.
func (l *Ledger) CostUSD() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cost
}

// Requests returns the number of requests booked.
func (l *Ledger) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

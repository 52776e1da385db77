package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
)

// watch keeps account of a run's events, for those who ask how it goes.
type watch struct {
	begin time.Time

	mu   sync.Mutex // guards the rest
	last time.Time  // of the last event
	seen seen
}

// seen is what was counted.
type seen struct {
	turns          int
	calls          int
	added, removed int         // lines of files
	usage          model.Usage // of the main conversation's last answer
	answered       bool        // usage is one
}

func newWatch() *watch { return &watch{begin: time.Now()} }

// see takes an event. It must not block: the conversation waits for it.
func (w *watch) see(from agent.Origin, e agent.Event) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = now
	switch e := e.(type) {
	case *agent.MessageEnded:
		if from == (agent.Origin{}) && e.Usage.Total() > 0 {
			w.seen.usage, w.seen.answered = e.Usage, true
		}
	case *agent.ToolEnded:
		w.seen.calls++
		w.lines(e.Display)
	case *agent.TurnEnded:
		w.seen.turns++
	case *agent.ConversationReset:
		w.seen.usage, w.seen.answered = model.Usage{}, false
	}
}

// lines counts the lines that an edit added and removed.
func (w *watch) lines(display json.RawMessage) {
	if !bytes.Contains(display, []byte(`"structuredPatch":[{`)) {
		return
	}
	var d struct {
		Patch []struct {
			Lines []string `json:"lines"`
		} `json:"structuredPatch"`
	}
	if json.Unmarshal(display, &d) != nil {
		return
	}
	for _, h := range d.Patch {
		for _, line := range h.Lines {
			switch {
			case line == "":
			case line[0] == '+':
				w.seen.added++
			case line[0] == '-':
				w.seen.removed++
			}
		}
	}
}

// sinceLast is the time since the last event; less than 0 if there was none.
func (w *watch) sinceLast() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.IsZero() {
		return -1
	}
	return time.Since(w.last)
}

// counted returns the counts of now.
func (w *watch) counted() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// residentBytes is the memory that the process takes; 0 where it can't be told.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

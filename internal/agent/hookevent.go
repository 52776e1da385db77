package agent

import (
	"context"
	"encoding/json"

	"github.com/agentcli/agent/internal/hooks"
)

// HookStarted tells that a hook begins to run. Several may run at once.
type HookStarted struct {
	ID    string // of the run
	Name  string // the event and what it is about, such as PreToolUse:Bash
	Event string
}

// HookEnded closes the HookStarted of the same ID.
type HookEnded struct {
	ID      string
	Name    string
	Event   string
	Output  json.RawMessage // what the hook returned; nil: nothing, or it wants it hidden
	Outcome string          // success, error, cancelled
	Err     error           // nil on success
}

// HookMessage is what a hook, or what becomes of one, has to tell the user. It
// may come outside of turns.
type HookMessage struct {
	Event string
	Text  string
}

func (*HookStarted) isEvent() {}
func (*HookEnded) isEvent()   {}
func (*HookMessage) isEvent() {}

// watchHook reports a hook that starts or ends.
func (c *Conversation) watchHook(ctx context.Context, s hooks.Step) {
	if !s.Ended {
		c.send(ctx, &HookStarted{ID: s.ID, Name: s.Name, Event: string(s.Event)})
		return
	}
	e := &HookEnded{ID: s.ID, Name: s.Name, Event: string(s.Event), Output: s.Output, Outcome: "success", Err: s.Err}
	switch {
	case s.Cancelled:
		e.Outcome = "cancelled"
	case s.Err != nil:
		e.Outcome = "error"
	}
	c.send(ctx, e)
}

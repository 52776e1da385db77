// Package hooks matches what happens in a conversation to the hooks that were
// registered for it, runs them side by side, and merges what they say into one
// outcome. A hook is a callback in the host, reached through a Caller, or a
// function of this program. It knows nothing of how a conversation heeds an
// outcome.
package hooks

import (
	"context"
	"encoding/json"
	"time"
)

// Event is something that hooks can be registered for, in the wire's words.
type Event string

// Events that fire. Any other name may be registered; its hooks never run.
const (
	PreToolUse         Event = "PreToolUse"
	PostToolUse        Event = "PostToolUse"
	PostToolUseFailure Event = "PostToolUseFailure"
	UserPromptSubmit   Event = "UserPromptSubmit"
	SessionStart       Event = "SessionStart"
	SessionEnd         Event = "SessionEnd"
	Stop               Event = "Stop"
	SubagentStart      Event = "SubagentStart"
	SubagentStop       Event = "SubagentStop"
	PreCompact         Event = "PreCompact"
	Notification       Event = "Notification"
	PermissionRequest  Event = "PermissionRequest"
)

// Events lists the events that fire.
func Events() []Event {
	return []Event{
		PreToolUse, PostToolUse, PostToolUseFailure, UserPromptSubmit, SessionStart, SessionEnd, Stop, SubagentStart,
		SubagentStop, PreCompact, Notification, PermissionRequest,
	}
}

// guards reports whether the hooks of an event stand before something that must
// not happen unseen: one that fails there denies.
func (e Event) guards() bool {
	return e == PreToolUse || e == PermissionRequest || e == UserPromptSubmit
}

// onTools reports whether the matchers of an event are about names of tools.
func (e Event) onTools() bool {
	switch e {
	case PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest:
		return true
	}
	return false
}

// Caller calls a hook in the host. It returns the hook's output object as it
// came, and an error once ctx ends. It may be called from several goroutines at
// once.
type Caller interface {
	CallHook(ctx context.Context, callbackID string, input json.RawMessage, toolUseID string) (json.RawMessage, error)
}

// Func is a hook in this program. It takes an event's input object and returns
// an output object, or nil for no opinion. It must return once ctx ends, and
// may be called from several goroutines at once.
type Func func(ctx context.Context, input json.RawMessage, toolUseID string) (json.RawMessage, error)

// Registration is one hook.
type Registration struct {
	Event Event
	// Matcher says what the hook is called for: tools by their names, sessions by
	// their source, and so on. Empty and "*" mean everything; names separated by |
	// match exactly, those of tools in all their spellings; anything else is a
	// regular expression that must be found in the name.
	Matcher string
	// CallbackID names the hook. It is needed unless Func is set.
	CallbackID string
	// Func is the hook itself; nil: the Caller is asked for CallbackID.
	Func Func
	// Timeout is how long to wait for the hook; 0: the Runner's default.
	Timeout time.Duration
	// Blocks makes a failure count as an objection also after the fact, in
	// PostToolUse and PostToolUseFailure. Where a hook guards it always does.
	Blocks bool
}

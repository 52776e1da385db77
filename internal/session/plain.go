package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/agent"
)

// Text writes the answer of each turn as plain text, and what went wrong, waits
// for another attempt included, to Err.
type Text struct {
	Out Output
	Err io.Writer
}

// Event implements Projector.
func (p *Text) Event(_ context.Context, from agent.Origin, e agent.Event) {
	if !isMain(from) {
		return
	}
	switch e := e.(type) {
	case *agent.RequestRetried:
		fmt.Fprintf(p.Err, "%v; trying again in %s\n", e.Info.Err, e.Info.Delay.Round(100*time.Millisecond))
	case *agent.HookMessage:
		fmt.Fprintln(p.Err, e.Text)
	case *agent.TurnEnded:
		p.result(e.Result)
	}
}

func (p *Text) result(r agent.Result) {
	if r.IsError {
		fmt.Fprintf(p.Err, "error: %s\n", problem(r))
		if r.APIError != nil {
			return // the text is the problem
		}
	}
	if r.Text != "" {
		_ = p.Out.SendText(strings.TrimSuffix(r.Text, "\n"))
	}
}

// problem says what went wrong in one line.
func problem(r agent.Result) string {
	switch {
	case r.APIError != nil:
		return r.APIError.Error()
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Err != nil:
		return r.Err.Error()
	}
	return string(r.Terminal)
}

// JSON writes the result of each turn as one JSON object on one line.
type JSON struct {
	Facts *Facts
	Out   Output
}

// Event implements Projector. The object is whole, whatever its size: the
// limit on frames is for hosts that read line by line.
func (p *JSON) Event(_ context.Context, from agent.Origin, e agent.Event) {
	if !isMain(from) {
		return
	}
	switch e := e.(type) {
	case *agent.ConversationReset:
		p.Facts.SessionID = e.New
	case *agent.TurnEnded:
		_ = p.Out.Send(p.Facts.Result(e.Result))
	}
}

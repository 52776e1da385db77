// Package session presents a conversation to a consumer: it reads lines and
// makes them inputs, and has a Projector turn events into lines. One Session
// serves one conversation; it knows no flags, files or signals.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// Config is what a Session is made of.
type Config struct {
	Conversation *agent.Conversation
	Projector    Projector
	Out          Output
	// Lines is where JSON lines come from; nil when all input is submitted
	// already and the conversation's input is closed.
	Lines *streamjson.Reader
	// Unblock ends a pending read of Lines; needed with Lines.
	Unblock func()
	Log     *slog.Logger
}

// Outcome is how a session ended.
type Outcome struct {
	Last     agent.Result // of the last turn
	Turns    int
	BadLines int // lines that could not be read
}

// Run runs the conversation until its input ends or ctx does, and returns when
// everything it started has. Closing the Output is the caller's.
func Run(ctx context.Context, cfg Config) Outcome {
	s := &session{cfg: cfg}
	var wg sync.WaitGroup
	if cfg.Lines != nil {
		wg.Go(func() { s.read(ctx) }) // ends at EOF, or by Unblock below
	}
	cfg.Conversation.Run(ctx, s.event)
	if c, ok := cfg.Projector.(Closer); ok {
		c.Close()
	}
	if cfg.Lines != nil {
		cfg.Unblock()
		wg.Wait()
	}
	return s.out
}

type session struct {
	cfg Config
	out Outcome
	mu  sync.Mutex // held for an event: sub-agents that run side by side take turns
}

func (s *session) event(ctx context.Context, from agent.Origin, e agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended, ok := e.(*agent.TurnEnded); ok && isMain(from) {
		s.out.Last = ended.Result
		s.out.Turns++
	}
	s.cfg.Projector.Event(ctx, from, e)
}

// read routes lines until there are no more. It never waits for what it
// routes.
func (s *session) read(ctx context.Context) {
	defer s.cfg.Conversation.CloseInput()
	for ctx.Err() == nil {
		msg, err := s.cfg.Lines.Next()
		var bad *streamjson.LineError
		switch {
		case err == nil:
			s.route(msg)
		case errors.As(err, &bad) && bad.Type == "control_request" && bad.RequestID != "":
			_ = s.cfg.Out.Send(streamjson.Failure(bad.RequestID, bad.Error()))
		case errors.As(err, &bad):
			s.reject(fmt.Errorf("input: %w", bad))
		default:
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.reject(fmt.Errorf("reading input: %w", err))
			}
			return
		}
	}
}

func (s *session) route(msg streamjson.Message) {
	switch m := msg.(type) {
	case *streamjson.UserLine:
		s.cfg.Conversation.Submit(toInput(m))
	case *streamjson.ControlRequest:
		_ = s.cfg.Out.Send(streamjson.Failure(m.RequestID,
			fmt.Sprintf("control request %q is not supported by this version", m.Subtype)))
	case *streamjson.ControlResponse, *streamjson.ControlCancel, *streamjson.KeepAlive:
		s.cfg.Log.Debug("ignored a line", "type", fmt.Sprintf("%T", m))
	default:
		s.reject(fmt.Errorf("input: a line of type %q is not understood here: send lines of type \"user\"", typeName(m)))
	}
}

func typeName(m streamjson.Message) string {
	if u, ok := m.(*streamjson.Unknown); ok {
		return u.Type
	}
	return fmt.Sprintf("%T", m)
}

// reject answers a line that is no input by an error result, in its place.
func (s *session) reject(err error) {
	s.out.BadLines++
	s.cfg.Log.Warn("bad input line", "error", err)
	s.cfg.Conversation.Submit(agent.Input{Err: err})
}

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
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// Config is what a Session is made of. Fields without a note are needed.
type Config struct {
	Conversation *agent.Conversation
	Projector    Projector
	Out          Output
	// Lines is where JSON lines come from; nil when all input is submitted
	// already and the conversation's input is closed.
	Lines *streamjson.Reader
	// Unblock ends a pending read of Lines; needed with Lines.
	Unblock func()
	// Control takes the control lines; nil: they are refused. Run closes it.
	Control Control
	// Lenient passes over lines that can't be read, as published SDKs expect it;
	// without it they get an error result.
	Lenient bool
	// EmbedUnknown gives blocks of unknown types in user lines to the model as
	// their JSON, as qwen does; else such a line is an error.
	EmbedUnknown bool
	// Accept, if not nil, sees each input of a user line before it is queued. It
	// must not block.
	Accept func(*agent.Input)
	// Watch, if not nil, sees each event before the Projector. It must not block.
	Watch func(from agent.Origin, e agent.Event)
	Log   *slog.Logger
}

// Control is the control plane: *control.Dispatcher.
type Control interface {
	// Receive takes a control line and reports whether it was one. It never
	// blocks.
	Receive(streamjson.Message) bool
	// Malformed takes a line that can't be read and reports whether it was a
	// control line that it has dealt with.
	Malformed(*streamjson.LineError) bool
	// Settled is closed when the state changes received so far are done; nil:
	// they are.
	Settled() <-chan struct{}
	// CloseInput says that no more lines come.
	CloseInput()
	// Close returns when all requests are answered; once ctx ends, by errors. The
	// error tells of handlers that did not end.
	Close(ctx context.Context) error
}

// closeGrace bounds the wait for control requests that are still being handled
// when the session is over.
const closeGrace = 2 * time.Second

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
	if cfg.Control != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		if err := cfg.Control.Close(closing); err != nil {
			cfg.Log.Error("the control plane does not end", "error", err)
		}
	}
	return s.out
}

type session struct {
	cfg Config
	out Outcome
	mu  sync.Mutex // held for an event: sub-agents that run side by side take turns

	uuids map[string]bool // of the user lines so far; only the reader's
}

func (s *session) event(ctx context.Context, from agent.Origin, e agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended, ok := e.(*agent.TurnEnded); ok && isMain(from) {
		s.out.Last = ended.Result
		s.out.Turns++
	}
	if s.cfg.Watch != nil {
		s.cfg.Watch(from, e)
	}
	s.cfg.Projector.Event(ctx, from, e)
}

// read routes lines until there are no more. It never waits for what it
// routes.
func (s *session) read(ctx context.Context) {
	defer s.closeInput()
	for ctx.Err() == nil {
		msg, err := s.cfg.Lines.Next()
		var bad *streamjson.LineError
		switch {
		case err == nil:
			s.route(msg)
		case errors.As(err, &bad):
			s.malformed(bad)
		default:
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.reject(fmt.Errorf("reading input: %w", err))
			}
			return
		}
	}
}

func (s *session) closeInput() {
	if s.cfg.Control != nil {
		s.cfg.Control.CloseInput()
	}
	s.cfg.Conversation.CloseInput()
}

func (s *session) malformed(bad *streamjson.LineError) {
	switch {
	case s.cfg.Control != nil && s.cfg.Control.Malformed(bad):
		s.countBad()
	case s.cfg.Control == nil && bad.Type == "control_request" && bad.RequestID != "":
		_ = s.cfg.Out.Send(streamjson.Failure(bad.RequestID, bad.Error()))
		s.countBad()
	default:
		s.reject(fmt.Errorf("input: %w", bad))
	}
}

// countBad counts a line that could not be read.
func (s *session) countBad() {
	if !s.cfg.Lenient {
		s.out.BadLines++
	}
}

func (s *session) route(msg streamjson.Message) {
	switch m := msg.(type) {
	case *streamjson.UserLine:
		in := toInput(m, s.cfg.EmbedUnknown)
		s.identify(&in)
		if s.cfg.Control != nil {
			in.Ready = s.cfg.Control.Settled()
		}
		if s.cfg.Accept != nil {
			s.cfg.Accept(&in)
		}
		s.cfg.Conversation.Submit(in)
	case *streamjson.ControlRequest, *streamjson.ControlResponse, *streamjson.ControlCancel, *streamjson.KeepAlive:
		s.control(msg)
	default:
		s.reject(fmt.Errorf("input: a line of type %q is not understood here: send lines of type \"user\"", typeOf(m)))
	}
}

// identify takes an id away that another line had already: entries of a
// transcript hang together by their ids, and one that is there twice makes a
// circle of them.
func (s *session) identify(in *agent.Input) {
	switch {
	case in.UUID == "":
		return
	case s.uuids[in.UUID]:
		s.cfg.Log.Warn("a user line has the uuid of an earlier one: it gets a new one", "uuid", in.UUID)
		in.UUID = ""
	case s.uuids == nil:
		s.uuids = map[string]bool{}
		fallthrough
	default:
		s.uuids[in.UUID] = true
	}
}

func (s *session) control(msg streamjson.Message) {
	if s.cfg.Control != nil {
		s.cfg.Control.Receive(msg)
		return
	}
	if r, ok := msg.(*streamjson.ControlRequest); ok {
		_ = s.cfg.Out.Send(streamjson.Failure(r.RequestID, fmt.Sprintf("control request %q: there is no control plane here", r.Subtype)))
	}
}

// typeOf is the type of a line that no host sends, as it is written.
func typeOf(m streamjson.Message) string {
	switch m := m.(type) {
	case *streamjson.Unknown:
		return m.Type
	case *streamjson.Assistant:
		return "assistant"
	case *streamjson.StreamEvent, *streamjson.StreamDelta:
		return "stream_event"
	case *streamjson.Result:
		return "result"
	}
	return "system"
}

// reject answers a line that is no input by an error result, in its place.
func (s *session) reject(err error) {
	s.cfg.Log.Warn("bad input line", "error", err)
	s.countBad()
	if !s.cfg.Lenient {
		s.cfg.Conversation.Submit(agent.Input{Err: err})
	}
}

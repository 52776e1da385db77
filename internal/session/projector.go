package session

import (
	"context"
	"io"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// Projector turns events into what the consumer reads. It takes one event at a
// time: Run sees to that.
type Projector interface {
	// Event writes what e means. It may block while ctx lives, to slow the
	// conversation down. Failed writes are the Output's to report.
	Event(ctx context.Context, from agent.Origin, e agent.Event)
}

// Closer is a Projector that has something to write when the session is over.
type Closer interface {
	// Close is called once, after the last Event.
	Close()
}

// Output is where frames go: *streamjson.Writer.
type Output interface {
	// Send queues a line; it never blocks.
	Send(streamjson.Message) error
	// SendDelta queues a delta line; it blocks while the queue is full.
	SendDelta(ctx context.Context, d *streamjson.StreamDelta) error
	// SendText queues a text and a newline; it never blocks.
	SendText(text string) error
}

// Format is in which form a session is presented.
type Format int

// Formats.
const (
	FormatText   Format = iota // the answers as plain text
	FormatJSON                 // JSON, once it is known
	FormatStream               // a frame for each thing that happens
)

// ProjectorOptions say who reads, and what.
type ProjectorOptions struct {
	Format  Format
	Facts   *Facts // the dialect is there
	Out     Output
	Err     io.Writer // FormatText: what went wrong
	Partial bool      // FormatStream: frames for pieces of messages too
	Replay  bool      // FormatStream: repeat the user's lines, where the dialect has that
}

// NewProjector returns the projector for a format in the dialect of its Facts.
func NewProjector(o ProjectorOptions) Projector {
	switch o.Format {
	case FormatText:
		return &Text{Out: o.Out, Err: o.Err}
	case FormatJSON:
		switch o.Facts.Dialect {
		case streamjson.Qwen:
			return &QwenList{qwen: Qwen{Facts: o.Facts}, out: o.Out}
		case streamjson.Gemini:
			return &GeminiJSON{Gemini: Gemini{Facts: o.Facts}, out: o.Out}
		}
		return &JSON{Facts: o.Facts, Out: o.Out}
	}
	switch o.Facts.Dialect {
	case streamjson.Qwen:
		return &Qwen{Facts: o.Facts, Out: o.Out, Partial: o.Partial}
	case streamjson.Gemini:
		return &Gemini{Facts: o.Facts, Out: o.Out}
	}
	return &Native{Facts: o.Facts, Out: o.Out, Partial: o.Partial, Replay: o.Replay}
}

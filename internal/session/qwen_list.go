package session

import (
	"context"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// QwenList writes all frames of a session as one JSON array, when it is over:
// what --output-format json is in the qwen dialect.
type QwenList struct {
	qwen   Qwen
	out    Output
	frames frameList
}

// Event implements Projector.
func (l *QwenList) Event(ctx context.Context, from agent.Origin, e agent.Event) {
	l.qwen.Out = &l.frames
	l.qwen.Event(ctx, from, e)
}

// Close implements Closer: it writes the array.
func (l *QwenList) Close() {
	_ = l.out.SendText("[" + string(l.frames.lines) + "]") // the Output reports a consumer that went away
	l.frames.lines = nil
}

// frameList is an Output that keeps frames, with commas between them.
type frameList struct{ lines []byte }

func (f *frameList) Send(m streamjson.Message) error {
	at := len(f.lines)
	if at > 0 {
		f.lines = append(f.lines, ',')
	}
	lines, err := streamjson.Append(f.lines, m)
	if err != nil {
		lines = lines[:at]
	}
	f.lines = lines
	return err
}

func (f *frameList) SendDelta(_ context.Context, d *streamjson.StreamDelta) error { return f.Send(d) }

func (f *frameList) SendText(string) error { return nil }

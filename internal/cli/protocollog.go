package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/streamjson"
)

// protocolLog keeps the JSON lines of both directions, each with the
// milliseconds since the start: {"t":12,"dir":"in","msg":{...}}. A line that is
// not JSON is kept as "raw". A nil *protocolLog keeps nothing.
type protocolLog struct {
	start time.Time

	mu   sync.Mutex // guards the rest
	file *os.File
	err  error // of the first write that failed; later ones are not tried
}

func (w *wiring) buildProtocolLog(context.Context) error {
	if w.o.recordProtocol == "" {
		return nil
	}
	f, err := os.OpenFile(w.o.recordProtocol, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(ExitUsage, "--record-protocol: %w", err)
	}
	w.protocol = &protocolLog{start: time.Now(), file: f}
	w.closers = append(w.closers, func() {
		if cerr := f.Close(); w.protocol.err == nil {
			w.protocol.err = cerr
		}
		if w.protocol.err != nil {
			w.log.Error("--record-protocol: the record is not whole", "error", w.protocol.err)
		}
	})
	return nil
}

type protocolLine struct {
	T   int64           `json:"t"`
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg,omitempty"`
	Raw string          `json:"raw,omitempty"`
}

func (p *protocolLog) keep(dir string, line []byte) {
	entry := protocolLine{T: time.Since(p.start).Milliseconds(), Dir: dir}
	if json.Valid(line) {
		entry.Msg = line
	} else {
		entry.Raw = string(line)
	}
	raw, err := json.Marshal(entry)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.err == nil {
		_, err = p.file.Write(append(raw, '\n'))
	}
	if p.err == nil {
		p.err = err
	}
}

// input returns a reader of src whose lines are kept.
func (p *protocolLog) input(src io.Reader) io.Reader {
	if p == nil {
		return src
	}
	return &keptInput{log: p, src: src}
}

type keptInput struct {
	log  *protocolLog
	src  io.Reader
	rest []byte // of a line that is not whole yet
}

func (k *keptInput) Read(b []byte) (int, error) {
	n, err := k.src.Read(b)
	for came, whole := b[:n], true; whole; {
		var line []byte
		line, came, whole = bytes.Cut(came, []byte("\n"))
		k.rest = append(k.rest, line...)
		if whole {
			k.log.keep("in", k.rest)
			k.rest = k.rest[:0]
		}
	}
	if err != nil && len(k.rest) > 0 {
		k.log.keep("in", k.rest)
		k.rest = nil
	}
	return n, err
}

// output returns out with its lines kept.
func (p *protocolLog) output(out session.Output) session.Output {
	if p == nil {
		return out
	}
	return &keptOutput{log: p, next: out}
}

type keptOutput struct {
	log  *protocolLog
	next session.Output
}

func (k *keptOutput) keep(m streamjson.Message) {
	if e, ok := m.(*streamjson.StreamEvent); ok && e.UUID == "" {
		e.UUID = streamjson.NewUUID() // the same in the record and on the wire
	}
	if line, err := streamjson.Append(nil, m); err == nil {
		k.log.keep("out", line)
	}
}

func (k *keptOutput) Send(m streamjson.Message) error {
	k.keep(m)
	return k.next.Send(m)
}

func (k *keptOutput) SendDelta(ctx context.Context, d *streamjson.StreamDelta) error {
	if d.UUID == "" {
		d.UUID = streamjson.NewUUID() // the same in the record and on the wire
	}
	k.keep(d)
	return k.next.SendDelta(ctx, d)
}

func (k *keptOutput) SendText(text string) error {
	k.log.keep("out", []byte(text))
	return k.next.SendText(text)
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxMessage bounds one message of a server, in bytes.
const maxMessage = 16 << 20

// errTooLong ends a connection: whose answer the message was can't be known.
var errTooLong = fmt.Errorf("it sent a message of over %d MiB", maxMessage>>20)

// stream is a connection of JSON-RPC messages, one a line, over any pair of
// streams. Lines that are no message are logged and skipped. It implements the
// SDK's Connection.
type stream struct {
	log  *slog.Logger
	w    io.WriteCloser
	busy chan struct{} // holds one token; whoever has it may write
	// patience is how long a failed write waits for another end to explain it.
	patience time.Duration

	incoming chan jsonrpc.Message
	ended    chan struct{} // closed by end
	once     sync.Once
	cause    error // set before ended is closed; nil: closed by us
}

func newStream(w io.WriteCloser, log *slog.Logger) *stream {
	s := &stream{
		log: log, w: w, busy: make(chan struct{}, 1),
		incoming: make(chan jsonrpc.Message, 16), ended: make(chan struct{}),
	}
	s.busy <- struct{}{}
	return s
}

// Read implements the SDK's Connection. Messages that came before the end are
// still given.
func (s *stream) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.incoming:
		return m, nil
	case <-s.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case m := <-s.incoming:
		return m, nil
	default:
		return nil, s.err()
	}
}

func (s *stream) err() error {
	if s.cause != nil {
		return s.cause
	}
	return io.EOF
}

// deadliner is a writer whose blocked Write can be cut short.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// Write implements the SDK's Connection. A peer that doesn't read blocks it no
// longer than ctx; a message cut in two ends the connection.
func (s *stream) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case <-s.busy:
		defer func() { s.busy <- struct{}{} }()
	case <-s.ended:
		return s.err()
	case <-ctx.Done():
		return ctx.Err()
	}
	if d, ok := s.w.(deadliner); ok {
		cut := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(cut)
			_ = d.SetWriteDeadline(time.Unix(1, 0))
		})
		defer func() {
			if !stop() {
				<-cut // or the deadline would hit the next message
			}
			_ = d.SetWriteDeadline(time.Time{})
		}()
	}
	n, err := s.w.Write(append(data, '\n'))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && n == 0:
		return ctx.Err()
	case ctx.Err() != nil:
		s.end(errors.New("it stopped reading in the middle of a message"))
		return ctx.Err()
	}
	select { // the end of a program explains it better
	case <-s.ended:
	case <-ctx.Done():
	case <-time.After(s.patience):
	}
	s.end(fmt.Errorf("writing to it: %w", err))
	return s.err()
}

// Close implements the SDK's Connection.
func (s *stream) Close() error {
	s.end(nil)
	return nil
}

// SessionID implements the SDK's Connection.
func (s *stream) SessionID() string { return "" }

// end ends the connection; the first cause counts.
func (s *stream) end(cause error) {
	s.once.Do(func() {
		s.cause = cause
		close(s.ended)
		_ = s.w.Close()
	})
}

// line takes one line of the peer: a message, or a batch of them, which old
// versions of the protocol have. It blocks while nobody reads.
func (s *stream) line(text []byte) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return
	}
	var batch []json.RawMessage
	if text[0] != '[' || json.Unmarshal(text, &batch) != nil {
		s.message(text)
		return
	}
	for _, one := range batch {
		s.message(one)
	}
}

// message takes one message of the peer. It blocks while nobody reads.
func (s *stream) message(text []byte) {
	m, err := jsonrpc.DecodeMessage(bytes.Clone(text)) // a message may keep pieces of its text
	if err != nil {
		s.log.Debug("a line that is no message was skipped", "error", err, "line", clip(string(text), 200))
		return
	}
	select {
	case s.incoming <- m:
	case <-s.ended:
	}
}

// lines splits what is written to it into the lines of a stream.
type lines struct {
	s    *stream
	rest []byte // an unfinished line
}

// Write implements io.Writer. It never fails: what comes too late is dropped.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		if len(l.rest)+i > maxMessage {
			l.s.end(errTooLong)
		} else if len(l.rest) == 0 {
			l.s.line(p[:i])
		} else {
			l.s.line(append(l.rest, p[:i]...))
		}
		l.rest, p = l.rest[:0], p[i+1:]
		if cap(l.rest) > 1<<20 {
			l.rest = nil
		}
	}
	if len(l.rest)+len(p) > maxMessage {
		l.s.end(errTooLong)
		l.rest = nil
		return n, nil
	}
	l.rest = append(l.rest, p...)
	return n, nil
}

// flush takes a last line that has no end.
func (l *lines) flush() {
	l.s.line(l.rest)
	l.rest = nil
}

// tail keeps the last bytes written to it, and logs them as they come.
type tail struct {
	log *slog.Logger

	mu   sync.Mutex // guards kept
	kept []byte
}

// maxTail bounds what a tail keeps.
const maxTail = 2000

// Write implements io.Writer. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.log.Debug("stderr", "text", clip(string(p), 2000))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-maxTail):]...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text returns what was kept, trimmed; empty if there is nothing.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(bytes.TrimSpace(t.kept), []byte("?")))
}

// clip returns at most n bytes of s, in valid UTF-8, with a mark where it was
// cut.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return string(bytes.ToValidUTF8([]byte(s), nil))
}

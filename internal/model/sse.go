package model

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

const (
	sseBuffer    = 32 << 10              // one read at most; longer lines are taken in pieces
	sseKeep      = 1 << 20               // a larger event's memory is given back
	sseZeroReads = 100                   // reads of (0, nil) in a row before giving up
	sseSlow      = 50 * time.Millisecond // below the shortest idle limit that can be set

	drainTime  = 50 * time.Millisecond
	drainBytes = 64 << 10
)

// MaxEvent is the largest server-sent event that [SSE] accepts, in bytes of its
// data and name.
const MaxEvent = 64 << 20

// EventSizeError is the error of an [SSE] whose event is larger than Limit
// bytes.
type EventSizeError struct{ Limit int }

// Error implements error.
func (e *EventSizeError) Error() string {
	return fmt.Sprintf("server-sent event is larger than %d MiB", e.Limit>>20)
}

// SSE reads a stream of server-sent events (text/event-stream). It departs
// from the WHATWG rules where model servers do: an event that is not closed by
// a blank line at the end of the stream is delivered (its reader judges whether
// it is whole), and an event without any data is not delivered but counts as a
// keep-alive. Fields other than data and event are skipped. Lines end by \n,
// \r\n or \r, also mixed; a byte order mark at the start is skipped. Bytes are
// passed as they come, valid UTF-8 or not.
//
// It keeps 32 KiB plus the current event. It does not close its reader, and is
// not for concurrent use.
type SSE struct {
	src     io.Reader
	comment func()

	buf       []byte
	pos, end  int   // unread bytes are buf[pos:end]
	scanned   int   // buf[pos:scanned] holds no line end
	readErr   error // from src; the bytes before it are still to be read
	skipLF    bool  // the last line ended by \r: a \n that follows belongs to it
	started   bool  // the first line was begun: no byte order mark any more
	inLine    bool  // the first piece of the current line was taken
	field     sseField
	dataLines int

	name  []byte
	data  []byte
	reads int       // since Next began
	slow  time.Time // when the current event turned out to come in pieces, or last was a sign of life
	done  bool
	err   error
}

type sseField uint8

const (
	sseOther sseField = iota
	sseComment
	sseData
	sseName
)

// NewSSE returns a reader of r's events. Reads of r may block; the way to end
// one is to make r fail (cancel the request).
func NewSSE(r io.Reader) *SSE {
	return &SSE{src: r, buf: make([]byte, sseBuffer)}
}

// SetComment has f called, from within Next, for each sign of life that is no
// event: comment lines, blank lines between events, events without data, and
// every 50 ms or so while bytes of a slow event trickle in. nil (the
// default) ignores them.
func (s *SSE) SetComment(f func()) { s.comment = f }

// Next reads the next event and reports whether there is one. It blocks until
// the event is complete. After it returned false it always does; Err says why.
func (s *SSE) Next() bool {
	s.clear()
	for !s.done {
		piece, eol, ok := s.read()
		if !ok {
			return s.finish()
		}
		if s.take(piece, eol) {
			return true
		}
	}
	return false
}

// Event returns the event's name; empty when it has none. It is valid until
// the next call of Next.
func (s *SSE) Event() []byte { return s.name }

// Data returns the event's data, its lines joined by \n; never empty after Next
// returned true. It is valid until the next call of Next, and may be modified.
func (s *SSE) Data() []byte { return s.data }

// Err says why Next returned false: nil at the end of the stream, the reader's
// error (io.ErrUnexpectedEOF for a cut HTTP body), or an [*EventSizeError].
// [NetworkError] makes an [*Error] of it.
func (s *SSE) Err() error { return s.err }

func (s *SSE) clear() {
	if cap(s.data) > sseKeep {
		s.data = nil
	}
	s.data, s.name, s.dataLines = s.data[:0], s.name[:0], 0
	s.reads, s.slow = 0, time.Time{}
}

func (s *SSE) alive() {
	if s.comment != nil {
		s.comment()
	}
}

// finish ends the stream and reports whether a last event is left. After a
// read error only an event is whose lines are all complete.
func (s *SSE) finish() bool {
	s.done = true
	whole := true
	if s.readErr != io.EOF {
		s.err = s.readErr
		whole = !s.inLine && s.pos == s.end
	}
	if whole && len(s.data) > 0 {
		return true
	}
	s.clear()
	return false
}

// take adds the next piece of a line, its last one if eol, to the event and
// reports whether that completes it.
func (s *SSE) take(piece []byte, eol bool) bool {
	if !s.inLine {
		if !s.started {
			s.started = true
			piece = bytes.TrimPrefix(piece, []byte("\ufeff"))
		}
		if eol && len(piece) == 0 {
			return s.blank()
		}
		piece = s.begin(piece)
	}
	s.inLine = !eol
	switch s.field {
	case sseData:
		s.data = append(s.data, piece...)
	case sseName:
		s.name = append(s.name, piece...)
	default:
		return false
	}
	if len(s.data)+len(s.name) > MaxEvent {
		s.clear()
		s.data = nil
		s.err, s.done = &EventSizeError{Limit: MaxEvent}, true
	}
	return false
}

// blank handles a blank line: the end of an event, or a keep-alive.
func (s *SSE) blank() bool {
	if len(s.data) > 0 {
		return true
	}
	s.clear()
	s.alive()
	return false
}

// begin sets the field from the first piece of its line and returns the rest
// of the piece, which is the value. (The piece is the whole line or longer than
// any field name.)
func (s *SSE) begin(piece []byte) []byte {
	var ok bool
	if piece, ok = sseValue(piece, "data"); ok {
		if s.dataLines > 0 {
			s.data = append(s.data, '\n')
		}
		s.dataLines++
		s.field = sseData
		return piece
	}
	if piece, ok = sseValue(piece, "event"); ok {
		s.name = s.name[:0]
		s.field = sseName
		return piece
	}
	s.field = sseOther
	if len(piece) > 0 && (piece[0] == ':' || piece[0] == ' ') {
		s.field = sseComment
		s.alive()
	}
	return nil
}

// sseValue returns the value of a line "name", "name:value" or "name: value",
// or the line itself and false if it is of another field.
func sseValue(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return line, false
	}
	v := line[len(name):]
	if len(v) == 0 {
		return v, true
	}
	if v[0] != ':' {
		return line, false
	}
	v = v[1:]
	if len(v) > 0 && v[0] == ' ' {
		v = v[1:]
	}
	return v, true
}

// read returns the next line, without its end, or a piece of it when it is
// longer than the buffer; eol is true for the last piece. ok is false when
// nothing is left that may be used. At the end of the stream a line needs no
// line end.
func (s *SSE) read() (piece []byte, eol, ok bool) {
	for {
		if s.skipLF && s.pos < s.end {
			s.skipLF = false
			if s.buf[s.pos] == '\n' {
				s.pos++
				s.scanned = s.pos
			}
		}
		if i := lineEnd(s.buf[s.scanned:s.end]); i >= 0 {
			i += s.scanned
			piece = s.buf[s.pos:i]
			s.skipLF = s.buf[i] == '\r'
			s.pos, s.scanned = i+1, i+1
			return piece, true, true
		}
		s.scanned = s.end
		if s.end-s.pos == len(s.buf) {
			s.pos = s.end
			return s.buf, false, true
		}
		if s.readErr != nil {
			return s.rest()
		}
		s.trickles()
		s.fill()
	}
}

// trickles is called before each read; from the second of an event on it gives
// a sign of life now and then, for the bytes that came.
func (s *SSE) trickles() {
	s.reads++
	if s.reads < 2 {
		return
	}
	switch now := time.Now(); {
	case s.slow.IsZero():
		s.slow = now
	case now.Sub(s.slow) >= sseSlow:
		s.slow = now
		s.alive()
	}
}

// rest returns the unterminated last line of a stream that ended in order.
func (s *SSE) rest() (piece []byte, eol, ok bool) {
	if s.readErr != io.EOF || s.pos == s.end {
		return nil, false, false
	}
	piece = s.buf[s.pos:s.end]
	s.pos = s.end
	return piece, true, true
}

func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if r := bytes.IndexByte(b[:n], '\r'); r >= 0 {
		return r
	}
	return n
}

// fill reads more bytes, or sets readErr.
func (s *SSE) fill() {
	switch {
	case s.pos == s.end:
		s.pos, s.end, s.scanned = 0, 0, 0
	case s.end == len(s.buf):
		n := copy(s.buf, s.buf[s.pos:s.end])
		s.pos, s.end, s.scanned = 0, n, n
	}
	for range sseZeroReads {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		s.readErr = err
		if n > 0 || err != nil {
			return
		}
	}
	s.readErr = io.ErrNoProgress
}

// Drain reads what follows the end of a streamed answer, so that its connection
// can carry the next request: a body that is closed before its end takes the
// connection with it. It reads at most 64 KiB and for 50 ms, after which it
// calls cancel, which must make Read on body return.
func Drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(drainTime, cancel)
	defer t.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, drainBytes)) // any end is the end
}

package scripted

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// call is a decoded request of any of the three APIs.
type call struct {
	format Format
	req    *model.Request
	stream bool
	usage  bool // OpenAI: stream_options.include_usage
}

// answer is what an encoder needs to know from the beginning.
type answer struct {
	seq     int // of the request, for ids
	turn    int
	model   string
	created time.Time
	usage   *model.Usage // final; nil: none
	ask     bool         // OpenAI: usage was asked for
}

// encoder makes the events of one streamed answer. Each method appends to b,
// with lines ending in "\n".
type encoder interface {
	open(b []byte, bl block) []byte
	delta(b []byte, text string, n int) []byte // one of n equal events
	sign(b []byte, sig string) []byte          // "": no signature, also not a made one
	close(b []byte, invalid string) []byte
	finish(b []byte, f finish) []byte
	noFinish(b []byte) []byte // what comes at the end when the finish marker is missing
	ping(b []byte) []byte
	failed(b []byte, v *vendorError) []byte
}

// wireWriter sends the bytes of one answer.
type wireWriter struct {
	r       *http.Request
	w       http.ResponseWriter
	rc      *http.ResponseController
	opts    wireOptions
	newline string
	batch   int // deltas per flush
	pending int
	started bool
	media   string
	buf     []byte
}

// headers sends the headers of an answer with status 200.
func (w *wireWriter) headers() error {
	if w.started {
		return nil
	}
	w.started = true
	h := w.w.Header()
	h.Set("Content-Type", w.media)
	h.Set("Cache-Control", "no-cache")
	w.w.WriteHeader(http.StatusOK)
	return w.flush()
}

func (w *wireWriter) flush() error {
	w.pending = 0
	if !w.started {
		return nil
	}
	return w.rc.Flush()
}

// events sends complete events n times over.
func (w *wireWriter) events(frame []byte, n int) error {
	if len(frame) == 0 {
		return nil
	}
	if err := w.headers(); err != nil {
		return err
	}
	if w.newline != "\n" {
		frame = []byte(strings.ReplaceAll(string(frame), "\n", w.newline))
	}
	if w.opts.bytes > 0 {
		return w.drip(frame, n)
	}
	for n > 0 {
		k := min(n, max(w.batch-w.pending, 1), max(64<<10/len(frame), 1))
		if err := w.write(frame, k); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// write writes the frame k times at once, and flushes when the batch is full.
func (w *wireWriter) write(frame []byte, k int) error {
	if k > 1 {
		w.buf = w.buf[:0]
		for range k {
			w.buf = append(w.buf, frame...)
		}
		frame = w.buf
	}
	if _, err := w.w.Write(frame); err != nil {
		return err
	}
	if w.pending += k; w.pending < w.batch {
		return nil
	}
	return w.flush()
}

// drip writes a few bytes at a time.
func (w *wireWriter) drip(frame []byte, n int) error {
	for range n {
		for rest := frame; len(rest) > 0; {
			k := min(w.opts.bytes, len(rest))
			if _, err := w.w.Write(rest[:k]); err != nil {
				return err
			}
			if err := w.flush(); err != nil {
				return err
			}
			rest = rest[k:]
			if w.opts.every > 0 {
				if err := wait(w.r.Context(), w.opts.every); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sever closes the connection in the middle of the answer: with a TCP reset, or
// in order but without the end of the body.
func (w *wireWriter) sever(reset bool) error {
	if err := w.flush(); err != nil {
		return err
	}
	conn, _, err := w.rc.Hijack()
	if err != nil {
		return fmt.Errorf("closing the connection: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // a closed socket cannot be reset any more
	}
	return conn.Close()
}

// httpSink is the sink of a request over HTTP.
type httpSink struct {
	wire   *wireWriter
	call   *call
	answer answer
	now    time.Time
	memory *memory
	enc    encoder
	whole  *deltaSink // an answer that does not stream; nil: it does
	asm    model.Assembler
	mute   map[int]bool // whole: blocks that the script wants unsigned
	b      block
	frame  []byte
	status int    // what was sent
	end    string // how it ended, for the log
}

func (s *httpSink) begin(usage *model.Usage) {
	s.answer.usage = usage
	if !s.call.stream {
		s.whole = &deltaSink{emit: func(d model.Delta) { s.asm.Add(d) }, model: s.answer.model}
		s.mute = map[int]bool{}
		return
	}
	switch s.call.format {
	case FormatGemini:
		s.enc = &geminiEncoder{answer: s.answer, memory: s.memory}
	case FormatAnthropic:
		s.enc = &anthropicEncoder{answer: s.answer, memory: s.memory}
	default:
		s.enc = newOpenAIEncoder(s.answer)
	}
}

func (s *httpSink) headers() error { return s.wire.headers() }

func (s *httpSink) open(b block) error {
	s.b = b
	if s.whole != nil {
		return s.whole.open(b)
	}
	s.frame = s.enc.open(s.frame[:0], b)
	return s.wire.events(s.frame, 1)
}

func (s *httpSink) delta(text string, n int) error {
	if s.whole != nil {
		return s.whole.delta(text, n)
	}
	s.frame = s.enc.delta(s.frame[:0], text, n)
	return s.wire.events(s.frame, n)
}

func (s *httpSink) sign(sig model.Signature) error {
	if s.whole != nil {
		s.mute[s.b.index] = sig.Value == ""
		return s.whole.sign(sig)
	}
	s.frame = s.enc.sign(s.frame[:0], sig.Value)
	return s.wire.events(s.frame, 1)
}

func (s *httpSink) close(invalid string) error {
	if s.whole != nil {
		if s.b.sig != nil {
			s.mute[s.b.index] = s.b.sig.Value == ""
		}
		return s.whole.close(invalid)
	}
	s.frame = s.enc.close(s.frame[:0], invalid)
	return s.wire.events(s.frame, 1)
}

// usage comes at the places where the formats have it.
func (s *httpSink) usage(model.Usage) error { return nil }

func (s *httpSink) ping(comment string) error {
	if s.whole != nil {
		return nil
	}
	if comment != "" {
		return s.raw(": " + comment + "\n\n")
	}
	s.frame = s.enc.ping(s.frame[:0])
	return s.wire.events(s.frame, 1)
}

func (s *httpSink) raw(text string) error {
	if err := s.wire.headers(); err != nil {
		return err
	}
	if s.wire.opts.bytes > 0 {
		return s.wire.drip([]byte(text), 1)
	}
	if _, err := s.wire.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.wire.flush()
}

func (s *httpSink) flush() error { return s.wire.flush() }

func (s *httpSink) finish(f finish) error {
	s.status, s.end = http.StatusOK, "finished"
	if s.whole != nil {
		return s.finishWhole(f)
	}
	s.frame = s.enc.finish(s.frame[:0], f)
	if err := s.wire.events(s.frame, 1); err != nil {
		return err
	}
	return s.wire.flush()
}

// finishWhole sends an answer that does not stream.
func (s *httpSink) finishWhole(f finish) error {
	s.wire.media = "application/json"
	body, err := s.wholeBody(f)
	if err != nil {
		return err
	}
	return s.raw(string(body) + "\n")
}

func (s *httpSink) wholeBody(f finish) ([]byte, error) {
	switch s.call.format {
	case FormatGemini:
		return wholeGemini(s, f)
	case FormatAnthropic:
		return wholeAnthropic(s, f)
	}
	return wholeOpenAI(s, f)
}

const htmlPage = "<!DOCTYPE html>\n<html><head><title>Sign in to the network</title></head>\n<body><h1>Sign in to the network</h1></body></html>\n"

func (s *httpSink) fault(_ context.Context, name, text string) error {
	s.status, s.end = http.StatusOK, name
	switch name {
	case faultGarbage:
		if text == "" {
			text = "data: {\"this is\": not JSON\n\n"
		}
		return s.raw(text)
	case faultHTML:
		s.wire.media = "text/html; charset=utf-8"
		if text == "" {
			text = htmlPage
		}
		return s.raw(text)
	case faultDrop, faultReset:
		return s.wire.sever(name == faultReset)
	case faultEmpty:
		s.asm = model.Assembler{}
		return s.finish(finish{stop: model.StopEndTurn, usage: s.answer.usage})
	case faultNoFinish:
		if s.whole == nil {
			s.frame = s.enc.noFinish(s.frame[:0])
			if err := s.wire.events(s.frame, 1); err != nil {
				return err
			}
		}
	}
	if err := s.wire.headers(); err != nil {
		return err
	}
	return s.wire.flush()
}

// fail sends an API error: as the answer, or within the stream if that began.
func (s *httpSink) fail(ctx context.Context, e *errorSpec) error {
	status := e.httpStatus(s.call.format)
	if status == 0 {
		return s.failWithout(ctx, e.kind)
	}
	s.status, s.end = status, "error"
	st, h, body := e.response(s.call.format, s.answer.model, s.now)
	switch {
	case !s.wire.started && s.call.stream && s.call.format == FormatGemini && e.kind == model.ErrBlocked && e.noStatus:
		s.status = http.StatusOK
		s.frame = s.enc.(*geminiEncoder).blocked(s.frame[:0])
		return s.wire.events(s.frame, 1)
	case s.wire.started && e.body != nil:
		return s.raw("data: " + string(body) + "\n\n")
	case s.wire.started && s.whole == nil:
		v := vendorError{status: st, kind: e.kindFor(st), message: e.message, wait: e.wait(), model: s.answer.model, requestID: e.requestID}
		s.frame = s.enc.failed(s.frame[:0], &v)
		return s.wire.events(s.frame, 1)
	}
	sendError(s.wire.w, st, h, body)
	return nil
}

// failWithout plays the fault behind a kind of error that is not an answer.
func (s *httpSink) failWithout(ctx context.Context, kind model.ErrorKind) error {
	switch kind {
	case model.ErrStalled:
		s.status, s.end = http.StatusOK, faultStall
		if err := s.wire.flush(); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	case model.ErrNetwork:
		return s.fault(ctx, faultReset, "")
	case model.ErrMalformed:
		return s.fault(ctx, faultGarbage, "")
	case model.ErrEmpty:
		return s.fault(ctx, faultEmpty, "")
	}
	return s.fault(ctx, faultCut, "")
}

func sendError(w http.ResponseWriter, status int, h http.Header, body []byte) {
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// memory knows the signatures that were given out, to refuse changed ones. It
// forgets everything when it has grown over its limit.
type memory struct {
	mu    sync.Mutex // guards known
	known map[string]map[string]bool
}

const memoryLimit = 1 << 16

// Marks for a call that was given out without a signature.
const (
	unsigned = ""         // the script wants none
	follower = "\x00next" // it follows a signed one in the same answer
)

func (m *memory) give(key, sig string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) > memoryLimit {
		m.known = map[string]map[string]bool{}
	}
	if m.known[key] == nil {
		m.known[key] = map[string]bool{}
	}
	m.known[key][sig] = true
}

// given reports whether key was given out at all, and with sig.
func (m *memory) given(key, sig string) (known, same bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, known := m.known[key]
	return known, set[sig]
}

// digest is a short name for a content in the memory.
func digest(parts ...string) string {
	h := fnv.New128a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash takes everything
		_, _ = h.Write([]byte{0})
	}
	return string(h.Sum(nil))
}

// madeSignature is a signature for a script that gives none: the same each time
// for the same content, and recognisable.
func madeSignature(f Format, turn, index int, content string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "scripted:%s:%d:%d:%x", f, turn, index, digest(content)))
}

// foreign reports whether sig was made for another format.
func foreign(f Format, sig string) bool {
	raw, err := base64.StdEncoding.DecodeString(sig)
	rest, made := strings.CutPrefix(string(raw), "scripted:")
	return err == nil && made && !strings.HasPrefix(rest, string(f)+":")
}

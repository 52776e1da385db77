package streamjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

var (
	// ErrOutputClosed is wrapped by every error that means that nothing more
	// can be written: the consumer went away, a write failed, or Close gave up.
	ErrOutputClosed = errors.New("the output is closed")
	// ErrConsumerGone is wrapped too when it was noticed, before a write failed,
	// that the consumer of a pipe or socket went away.
	ErrConsumerGone = errors.New("the other end was closed")
	// ErrWriterClosed is returned by the Send methods after Close was called.
	ErrWriterClosed = errors.New("the writer was closed")
)

// Defaults of WriterOptions.
const (
	DefaultBudget    = 8 << 20
	DefaultHighWater = 64 << 10
	// maxJoined is the encoded length beyond which a delta line is not joined
	// to any more.
	maxJoined = 64 << 10
)

// WriterOptions tune a Writer; the zero value is the default.
type WriterOptions struct {
	Budget    int // bytes queued above which SendDelta waits; 0: DefaultBudget
	HighWater int // bytes queued above which deltas are joined; 0: DefaultHighWater
}

// WriterStats is what a Writer has done so far.
type WriterStats struct {
	QueuedBytes  int   // not yet written, the line being written included
	WrittenBytes int64 // bytes that left, parts of lines included
	WrittenLines int64
	JoinedDeltas int64 // deltas that went out in another one's line
}

// Writer writes messages as lines, whole, in the order in which they were
// sent, each with one write call of its own (a partial write is completed by
// further ones). It is safe for concurrent use. One goroutine writes; Close
// ends it.
//
// Only a [ControlResponse] does not keep its place: it goes ahead of the deltas
// that are queued after the last line of another kind, so that an answer does
// not wait until all that a model says has been read.
//
// The queue has no limit for control and lifecycle lines, which must never
// wait, and a budget for deltas, which are what a slow consumer is flooded by.
//
// When the output is an [*os.File] that is a pipe or socket, a second
// goroutine notices that its consumer has gone even if nothing is written.
type Writer struct {
	w   io.Writer
	out *outFile // nil unless w is an *os.File on a platform with poll

	budget, highWater int

	closed chan struct{} // closed with the first error
	done   chan struct{} // closed when the goroutines are gone

	mu      sync.Mutex // guards everything below
	work    sync.Cond  // queue, closing or err changed while idle
	idle    bool       // the goroutine waits for work
	queue   []entry    // queue[head:] waits to be written
	head    int
	popped  int64         // entries ever taken from the queue
	firm    int64         // the number of the entry after the last one that answers don't pass
	answers []answer      // that pass deltas, in order
	open    []openDelta   // queued deltas that can be joined to, one per parent
	room    chan struct{} // closed and forgotten when there is room; nil when nobody waits
	free    [][]byte      // buffers of written lines
	closing bool
	err     error
	stats   WriterStats
}

// entry is one encoded line with its newline.
type entry struct {
	line []byte
	sent chan<- error // told when the line has left or can't any more; may be nil
}

// answer is an entry that leaves once all entries below a number have.
type answer struct {
	entry
	after int64
}

// openDelta is the last queued delta of one parent: the entry that the next
// delta of the same block may be joined to.
type openDelta struct {
	parent string
	index  int
	kind   DeltaKind
	seq    int64 // its number among all entries ever queued
}

// NewWriter starts a Writer on w. The caller must Close it, and must keep w
// open until then. Whoever passes descriptor 1 or 2 sees to SIGPIPE (see the
// package comment).
func NewWriter(w io.Writer, opts WriterOptions) *Writer {
	wr := &Writer{
		w: w, budget: opts.Budget, highWater: opts.HighWater,
		closed: make(chan struct{}), done: make(chan struct{}),
	}
	if wr.budget <= 0 {
		wr.budget = DefaultBudget
	}
	if wr.highWater <= 0 {
		wr.highWater = DefaultHighWater
	}
	wr.work.L = &wr.mu
	if f, ok := w.(*os.File); ok {
		wr.out = openOutFile(f)
	}
	go wr.run() // ends after Close or the first error; Close waits for it
	return wr
}

// Send queues m and returns at once, however full the queue is. The error is
// one of encoding m (nothing is queued then), or why nothing can be written any
// more. m may be changed after Send has returned.
func (w *Writer) Send(m Message) error {
	return w.send(m, nil)
}

// SendSync queues m and returns when its line has left the process: nil, or
// why it could not. When ctx ends first it returns ctx's cause, and the line
// stays queued.
func (w *Writer) SendSync(ctx context.Context, m Message) error {
	sent := make(chan error, 1)
	if err := w.send(m, sent); err != nil {
		return err
	}
	return await(ctx, sent)
}

// Flush returns when everything that was sent before has left the process: nil,
// or why it could not. When ctx ends first it returns ctx's cause.
func (w *Writer) Flush(ctx context.Context) error {
	sent := make(chan error, 1)
	w.mu.Lock()
	err := w.err
	switch {
	case err != nil:
		sent <- err
	case w.stats.QueuedBytes == 0:
		sent <- nil
	default:
		w.push(entry{sent: sent}) // a line of no bytes
	}
	w.mu.Unlock()
	return await(ctx, sent)
}

// await returns what is sent, or the cause of ctx's end if that comes first.
func await(ctx context.Context, sent <-chan error) error {
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Writer) send(m Message, sent chan<- error) error {
	buf, err := w.buffer()
	if err != nil {
		return err
	}
	line, err := Append(buf, m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		err = w.refusal()
	}
	if err != nil {
		w.recycle(line)
		return err
	}
	e := entry{line: append(line, '\n'), sent: sent}
	if _, ok := m.(*ControlResponse); ok && w.head < len(w.queue) && w.firm < w.end() {
		w.pushAnswer(e)
		return nil
	}
	w.open = w.open[:0] // what comes next must not move ahead of this line
	w.push(e)
	w.firm = w.end()
	return nil
}

// SendDelta queues d. Above the high-water mark it joins the text to the
// previous delta of the same block if that is still queued and nothing but
// deltas of other parents came between; that keeps the first one's UUID. Above
// the budget it waits until there is room, ctx ends (its cause) or nothing can
// be written any more (that error). d is not kept.
func (w *Writer) SendDelta(ctx context.Context, d *StreamDelta) error {
	if !d.Kind.valid() {
		return fmt.Errorf("encoding stream_event: delta kind %d is not one", d.Kind)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.refusal(); err != nil {
			return err
		}
		if w.stats.QueuedBytes < w.budget {
			break
		}
		if err := w.waitForRoom(ctx); err != nil {
			return err
		}
	}
	at := w.openDelta(d.ParentToolUseID)
	if w.stats.QueuedBytes >= w.highWater && w.join(at, d) {
		return nil
	}
	line := append(appendDelta(w.takeBuffer(), d), '\n')
	w.noteOpen(at, d)
	w.push(entry{line: line})
	return nil
}

// Err is the first error of writing, which wraps [ErrOutputClosed]; nil so far.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Closed is closed with the first error of writing; [Writer.Err] says which.
func (w *Writer) Closed() <-chan struct{} { return w.closed }

// Stats is what the Writer has done so far.
func (w *Writer) Stats() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Close refuses further lines, waits until all queued ones have left, however
// long the consumer takes, and returns [Writer.Err]. When ctx ends first it
// gives up on what is left and returns an error that wraps [ErrOutputClosed]
// and ctx's cause; a write call that can't be interrupted (a blocking
// descriptor) may then still be under way and keeps its goroutine until it
// returns. Close may be called again and from several goroutines; it does not
// close the underlying writer.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	w.work.Signal()
	w.freeRoom()
	w.mu.Unlock()

	select {
	case <-w.done:
	case <-ctx.Done():
		w.giveUp(context.Cause(ctx))
	}
	return w.Err()
}

// giveUp drops what is queued and ends the write under way if that is
// possible, in which case it waits for the end.
func (w *Writer) giveUp(cause error) {
	w.mu.Lock()
	left := w.stats.QueuedBytes
	if left > 0 {
		w.fail(fmt.Errorf("gave up with %d bytes unwritten: %w", left, cause))
	}
	w.mu.Unlock()
	if left == 0 { // nothing to give up: the goroutines are about to end
		<-w.done
		return
	}
	if w.out != nil {
		w.out.interrupt()
	}
	d, ok := w.w.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || d.SetWriteDeadline(time.Unix(1, 0)) != nil {
		return
	}
	<-w.done
	_ = d.SetWriteDeadline(time.Time{}) // best effort: the writer is the caller's again
}

// refusal is why no further line is taken, nil if it is.
func (w *Writer) refusal() error {
	if w.err != nil {
		return w.err
	}
	if w.closing {
		return ErrWriterClosed
	}
	return nil
}

// waitForRoom waits, without the lock, until there may be room.
func (w *Writer) waitForRoom(ctx context.Context) error {
	if w.room == nil {
		w.room = make(chan struct{})
	}
	room := w.room
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freeRoom wakes all that wait for room.
func (w *Writer) freeRoom() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// end is the number that the next entry of the queue gets.
func (w *Writer) end() int64 { return w.popped + int64(len(w.queue)-w.head) }

// pushAnswer queues e ahead of the deltas at the end of the queue, which there
// are: so the goroutine is at work.
func (w *Writer) pushAnswer(e entry) {
	w.answers = append(w.answers, answer{e, w.firm})
	w.stats.QueuedBytes += len(e.line)
}

// push queues e.
func (w *Writer) push(e entry) {
	if w.head > 0 && w.head >= len(w.queue)/2 && len(w.queue) == cap(w.queue) {
		n := copy(w.queue, w.queue[w.head:])
		clear(w.queue[n:])
		w.queue, w.head = w.queue[:n], 0
	}
	w.queue = append(w.queue, e)
	w.stats.QueuedBytes += len(e.line)
	if w.idle {
		w.idle = false
		w.work.Signal()
	}
}

// pop takes the next entry; there must be one. When the queue is empty no answer
// is left: each passed a delta of it.
func (w *Writer) pop() entry {
	if len(w.answers) > 0 && w.answers[0].after <= w.popped {
		e := w.answers[0].entry
		w.answers[0] = answer{}
		if w.answers = w.answers[1:]; len(w.answers) == 0 {
			w.answers = nil
		}
		return e
	}
	e := w.queue[w.head]
	w.queue[w.head] = entry{}
	w.head++
	w.popped++
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
	}
	return e
}

// openDelta is the place of parent in open, or len(open).
func (w *Writer) openDelta(parent string) int {
	for i := range w.open {
		if w.open[i].parent == parent {
			return i
		}
	}
	return len(w.open)
}

// noteOpen makes d, which is pushed next, its parent's delta to join to.
func (w *Writer) noteOpen(at int, d *StreamDelta) {
	const maxOpen = 32 // parents; more are just joined less
	o := openDelta{parent: d.ParentToolUseID, index: d.Index, kind: d.Kind, seq: w.end()}
	switch {
	case at < len(w.open):
		w.open[at] = o
	case at < maxOpen:
		w.open = append(w.open, o)
	default:
		w.open = append(w.open[:0], o)
	}
}

// join adds d to its parent's open delta, if it can be.
func (w *Writer) join(at int, d *StreamDelta) bool {
	if at == len(w.open) {
		return false
	}
	o := w.open[at]
	if o.index != d.Index || o.kind != d.Kind || !d.Kind.joins() || o.seq < w.popped {
		return false
	}
	e := &w.queue[w.head+int(o.seq-w.popped)]
	if len(e.line)+len(d.Text) > maxJoined {
		return false
	}
	before := len(e.line)
	line := appendEscaped(e.line[:before-len(deltaTail)-1], d.Text)
	e.line = append(append(line, deltaTail...), '\n')
	w.stats.QueuedBytes += len(e.line) - before
	w.stats.JoinedDeltas++
	return true
}

const (
	maxFree    = 256     // buffers kept for further lines
	maxFreeCap = 4 << 10 // of at most this capacity
)

// buffer is takeBuffer with the lock taken, unless no line is accepted.
func (w *Writer) buffer() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusal(); err != nil {
		return nil, err
	}
	return w.takeBuffer(), nil
}

func (w *Writer) takeBuffer() []byte {
	if n := len(w.free); n > 0 {
		buf := w.free[n-1]
		w.free = w.free[:n-1]
		return buf
	}
	return make([]byte, 0, 512)
}

func (w *Writer) recycle(buf []byte) {
	if cap(buf) > 0 && cap(buf) <= maxFreeCap && len(w.free) < maxFree {
		w.free = append(w.free, buf[:0])
	}
}

// run writes line after line until there is nothing left after Close, or
// nothing can be written.
func (w *Writer) run() {
	if w.out != nil {
		w.out.watch(func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fail(err)
		})
	}
	w.mu.Lock()
	for w.next() {
		e := w.pop()
		w.mu.Unlock()
		n, err := w.writeAll(e.line)
		w.mu.Lock()
		w.written(e, n, err)
	}
	w.mu.Unlock()
	if w.out != nil {
		w.out.close()
	}
	close(w.done)
}

// next waits for work and reports whether there is a line to write.
func (w *Writer) next() bool {
	for w.err == nil && w.head == len(w.queue) && !w.closing {
		w.idle = true
		w.work.Wait()
	}
	w.idle = false
	return w.err == nil && w.head < len(w.queue)
}

// written accounts for e, of which n bytes were written.
func (w *Writer) written(e entry, n int, err error) {
	w.stats.WrittenBytes += int64(n)
	if err != nil {
		w.fail(err)
	} else if n > 0 {
		w.stats.WrittenLines++
	}
	if e.sent != nil {
		if err != nil {
			err = w.err
		}
		e.sent <- err
	}
	if w.err == nil {
		w.stats.QueuedBytes -= len(e.line)
		w.recycle(e.line)
		if w.stats.QueuedBytes < w.budget-w.budget/8 {
			w.freeRoom()
		}
	}
}

// fail keeps the first error, drops the queue and wakes everybody.
func (w *Writer) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = fmt.Errorf("writing output: %w: %w", ErrOutputClosed, err)
	for _, a := range w.answers {
		w.queue = append(w.queue, a.entry)
	}
	for _, e := range w.queue[w.head:] {
		if e.sent != nil {
			e.sent <- w.err
		}
	}
	w.queue, w.head, w.answers, w.open, w.free = nil, 0, nil, nil, nil
	w.stats.QueuedBytes = 0
	close(w.closed)
	w.freeRoom()
	w.work.Signal()
}

// writeAll writes the whole line and says how much of it went out.
func (w *Writer) writeAll(line []byte) (int, error) {
	done := 0
	for done < len(line) {
		n, err := w.w.Write(line[done:])
		if n < 0 || n > len(line)-done {
			return done, fmt.Errorf("the underlying writer says it wrote %d of %d bytes", n, len(line)-done)
		}
		done += n
		switch {
		case err == nil && n == 0:
			return done, io.ErrShortWrite
		case err == nil, done == len(line), errors.Is(err, io.ErrShortWrite) && n > 0:
		case w.out != nil && wouldBlock(err):
			if err := w.out.waitWritable(); err != nil {
				return done, err
			}
		default:
			return done, err
		}
	}
	return done, nil
}

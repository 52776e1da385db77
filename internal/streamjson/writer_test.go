package streamjson

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gate is an output that takes as many writes as it is given leave for.
type gate struct {
	leave chan struct{}

	mu     sync.Mutex
	buf    bytes.Buffer
	writes int
}

func newGate() *gate { return &gate{leave: make(chan struct{})} }

// open lets everything through from now on.
func (g *gate) open() { close(g.leave) }

func (g *gate) Write(p []byte) (int, error) {
	<-g.leave
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	return g.buf.Write(p)
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

func mustClose(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustSend(t testing.TB, w *Writer, m Message) {
	t.Helper()
	if err := w.Send(m); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

func mustDelta(t testing.TB, w *Writer, d *StreamDelta) {
	t.Helper()
	if err := w.SendDelta(t.Context(), d); err != nil {
		t.Fatalf("SendDelta: %v", err)
	}
}

// within waits for a channel to be closed, much longer than any test takes.
func within(t testing.TB, d time.Duration, ch <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		t.Fatalf("%s: not within %v", what, d)
	}
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func note(i int) *System {
	return &System{Subtype: "note", SessionID: fmt.Sprint(i), UUID: "u"}
}

func TestLinesLeaveInOrderOneWriteEach(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	var want strings.Builder
	for i := range 1000 {
		mustSend(t, w, note(i))
		line, _ := Append(nil, note(i))
		want.Write(append(line, '\n'))
	}
	g.open()
	mustClose(t, w)
	if g.String() != want.String() {
		t.Error("the lines differ")
	}
	if s := w.Stats(); g.writes != 1000 || s.WrittenLines != 1000 || s.WrittenBytes != int64(want.Len()) || s.QueuedBytes != 0 {
		t.Errorf("%d writes, %+v", g.writes, s)
	}
}

func TestSendSyncReturnsWhenTheLineHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := NewWriter(g, WriterOptions{})
		mustSend(t, w, note(1))
		done := make(chan error, 1)
		go func() { done <- w.SendSync(t.Context(), note(2)) }()
		g.leave <- struct{}{} // the first line
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("returned before its line was written: %v", err)
		default:
		}
		g.leave <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(g.String(), `"session_id":"2"`) {
			t.Error("the line isn't there")
		}
		g.open()
		mustClose(t, w)
	})
}

func TestSendSyncThatIsGivenUpLeavesItsLineQueued(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if err := w.SendSync(ctx, note(3)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	g.open()
	mustClose(t, w)
	if !strings.Contains(g.String(), `"session_id":"3"`) {
		t.Error("the line was lost")
	}
}

func TestFlushReturnsWhenAllBeforeItHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := NewWriter(g, WriterOptions{})
		if err := w.Flush(t.Context()); err != nil {
			t.Errorf("of nothing: %v", err)
		}
		mustSend(t, w, note(1))
		mustSend(t, w, note(2))
		done := make(chan error, 1)
		go func() { done <- w.Flush(t.Context()) }()
		synctest.Wait()
		mustSend(t, w, note(3))
		g.leave <- struct{}{}
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("returned before the second line was written: %v", err)
		default:
		}
		g.leave <- struct{}{}
		if err := <-done; err != nil || strings.Contains(g.String(), `"session_id":"3"`) {
			t.Errorf("%v, written: %s", err, g.String())
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		if err := w.Flush(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		g.open()
		mustClose(t, w)
		if s := w.Stats(); g.writes != 3 || s.WrittenLines != 3 || s.QueuedBytes != 0 {
			t.Errorf("%d writes, %+v", g.writes, s)
		}
	})
}

func TestFlushFailsWithTheOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := NewWriter(g, WriterOptions{})
		mustSend(t, w, note(1))
		done := make(chan error, 1)
		go func() { done <- w.Flush(t.Context()) }()
		synctest.Wait()
		closing, giveUp := context.WithCancel(t.Context())
		giveUp()
		_ = w.Close(closing)
		if err := <-done; !errors.Is(err, ErrOutputClosed) {
			t.Errorf("got %v", err)
		}
		if err := w.Flush(t.Context()); !errors.Is(err, ErrOutputClosed) {
			t.Errorf("afterwards: %v", err)
		}
		g.open()
	})
}

func TestSendNeverWaitsHoweverFullTheQueue(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{Budget: 1000})
	for i := range 500 { // some 35 KB over a budget of 1,000 bytes
		mustSend(t, w, note(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.SendDelta(ctx, &StreamDelta{Kind: DeltaText, Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a delta over the budget: got %v", err)
	}
	mustSend(t, w, &KeepAlive{})
	g.open()
	mustClose(t, w)
	if n := strings.Count(g.String(), "\n"); n != 501 {
		t.Errorf("%d lines", n)
	}
}

func TestSendDeltaWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := NewWriter(g, WriterOptions{Budget: 1000})
		mustSend(t, w, &System{Subtype: "big", Extra: []byte(`{"x":"` + strings.Repeat("x", 2000) + `"}`)})
		done := make(chan error, 3)
		for i := range cap(done) {
			go func() { done <- w.SendDelta(t.Context(), &StreamDelta{Kind: DeltaText, Index: i, Text: "x"}) }()
		}
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("did not wait")
		}
		mustSend(t, w, note(1)) // control lines pass
		g.open()
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		mustClose(t, w)
		if n := strings.Count(g.String(), "content_block_delta"); n != 3 {
			t.Errorf("%d deltas", n)
		}
	})
}

func TestCloseEndsTheWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := NewWriter(g, WriterOptions{Budget: 1})
		mustSend(t, w, note(1))
		waiting, closing := make(chan error, 1), make(chan error, 1)
		go func() { waiting <- w.SendDelta(t.Context(), &StreamDelta{Kind: DeltaText}) }()
		synctest.Wait()
		go func() { closing <- w.Close(t.Context()) }()
		if err := <-waiting; !errors.Is(err, ErrWriterClosed) {
			t.Errorf("got %v", err)
		}
		g.open()
		if err := <-closing; err != nil {
			t.Error(err)
		}
	})
}

// blocks is the text of each block in the lines, by parent, index and kind,
// and the number of delta lines.
func blocks(t testing.TB, out io.Reader) (map[string]string, int) {
	t.Helper()
	texts, n := map[string]string{}, 0
	r := NewReader(out, 0)
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, n
		}
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := m.(*StreamDelta); ok {
			n++
			texts[fmt.Sprintf("%s/%d/%d", d.ParentToolUseID, d.Index, d.Kind)] += d.Text
		}
	}
}

func TestDeltasAreJoinedUnderBackPressure(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{HighWater: 2000})
	want := map[string]string{}
	add := func(parent string, index int, kind DeltaKind, text string) {
		mustDelta(t, w, &StreamDelta{SessionID: "s", ParentToolUseID: parent, Index: index, Kind: kind, Text: text})
		want[fmt.Sprintf("%s/%d/%d", parent, index, kind)] += text
	}
	for i := range 3000 { // two agents at once, awkward text
		add("", i/1000, DeltaText, fmt.Sprintf("é\"%d\n\u2028", i))
		add("toolu_1", 0, DeltaThinking, fmt.Sprint("t", i))
		add("toolu_2", 7, DeltaInputJSON, `{"a":"\\`)
	}
	if s := w.Stats(); s.QueuedBytes > 200_000 {
		t.Errorf("%d bytes queued", s.QueuedBytes)
	}
	g.open()
	mustClose(t, w)
	got, lines := blocks(t, strings.NewReader(g.String()))
	if len(got) != len(want) {
		t.Errorf("%d blocks, want %d", len(got), len(want))
	}
	for key, text := range want {
		if got[key] != text {
			t.Errorf("block %s: %d bytes, want %d", key, len(got[key]), len(text))
		}
	}
	if s := w.Stats(); lines > 50 || s.JoinedDeltas != int64(9000-lines) {
		t.Errorf("%d lines, %+v", lines, s)
	}
}

func TestDeltasAreOnlyJoinedToTheirOwnBlockAndNeverPastALine(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{HighWater: 1})
	delta := func(parent string, index int, kind DeltaKind, text string) {
		mustDelta(t, w, &StreamDelta{UUID: "u", SessionID: "s", ParentToolUseID: parent, Index: index, Kind: kind, Text: text})
	}
	mustSend(t, w, note(0)) // under way
	delta("", 0, DeltaText, "a")
	delta("p", 0, DeltaText, "b")
	delta("", 0, DeltaText, "c")     // joins a
	delta("", 1, DeltaText, "d")     // another index
	delta("", 1, DeltaThinking, "e") // another kind
	delta("p", 0, DeltaText, "f")    // joins b
	mustSend(t, w, note(1))
	delta("p", 0, DeltaText, "g") // not past the line
	delta("p", 0, DeltaSignature, "h")
	delta("p", 0, DeltaSignature, "i") // signatures are not text
	delta("p", 0, DeltaText, strings.Repeat("j", maxJoined))
	delta("p", 0, DeltaText, "k") // its line is long enough
	g.open()
	mustClose(t, w)
	var got []string
	r := NewReader(strings.NewReader(g.String()), 0)
	for m, err := r.Next(); err == nil; m, err = r.Next() {
		if d, ok := m.(*StreamDelta); ok {
			got = append(got, d.Text[:min(len(d.Text), 3)])
		} else {
			got = append(got, "|")
		}
	}
	if want := "| ac bf d e | g h i jjj k"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

func TestDeltasLeaveOneByOneWhenTheReaderKeepsUp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, WriterOptions{})
	for range 100 {
		mustDelta(t, w, &StreamDelta{Kind: DeltaText, Text: "x"})
	}
	mustClose(t, w)
	if _, n := blocks(t, &out); n != 100 {
		t.Errorf("%d lines", n)
	}
}

func TestAnswersPassDeltasAndNothingElse(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	delta := func(text string) { mustDelta(t, w, &StreamDelta{Kind: DeltaText, Text: text}) }
	mustSend(t, w, &Unknown{Type: "first"}) // the goroutine is stuck with it
	delta("d1")
	mustSend(t, w, &Unknown{Type: "line"})
	delta("d2")
	mustSend(t, w, &ControlResponse{Subtype: ResponseSuccess, RequestID: "r1"})
	delta("d3")
	mustSend(t, w, Failure("r2", "no"))
	mustSend(t, w, &Unknown{Type: "last"})
	mustSend(t, w, Failure("r3", "nothing is left to pass"))
	g.open()
	mustClose(t, w)
	var got []string
	for line := range strings.Lines(g.String()) {
		for _, word := range []string{"first", "d1", "line", "d2", "d3", "r1", "r2", "last", "r3"} {
			if strings.Contains(line, `"`+word+`"`) { // whole: ids hold anything
				got = append(got, word)
				break
			}
		}
	}
	if want := "first d1 line r1 r2 d2 d3 last r3"; strings.Join(got, " ") != want {
		t.Errorf("the lines left as %v, want %s", got, want)
	}
}

func TestAnAnswerThatCannotLeaveIsReported(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	mustSend(t, w, &Unknown{Type: "first"})
	mustDelta(t, w, &StreamDelta{Kind: DeltaText, Text: "d"})
	sent := make(chan error, 1)
	if err := w.send(Failure("r", "no"), sent); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("Close: %v", err)
	}
	if err := <-sent; !errors.Is(err, ErrOutputClosed) {
		t.Errorf("the answer: %v", err)
	}
	g.open()
	<-w.done
}

func TestTwentyMegabytesThroughAPipeWithASlowReader(t *testing.T) {
	t.Parallel()
	r, f := pipe(t)
	w := NewWriter(f, WriterOptions{})
	sums := make(chan [32]byte, 1)
	go func() {
		h := sha256.New()
		buf := make([]byte, 700) // small reads, so that the pipe is always full
		for {
			n, err := r.Read(buf)
			h.Write(buf[:n])
			if err != nil {
				break
			}
		}
		sums <- [32]byte(h.Sum(nil))
	}()
	h, total := sha256.New(), 0
	for i := 0; total < 20<<20; i++ {
		m := &UserLine{Message: UserMessage{Content: TextContent(strings.Repeat(fmt.Sprint(i), 1+i%20_000))}}
		line, err := Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		line = append(line, '\n')
		total += len(line)
		h.Write(line)
		mustSend(t, w, m)
	}
	mustClose(t, w)
	f.Close()
	if got := <-sums; got != [32]byte(h.Sum(nil)) {
		t.Error("the bytes differ")
	}
}

func TestConcurrentSendersKeepTheirOwnOrder(t *testing.T) {
	t.Parallel()
	r, f := pipe(t)
	w := NewWriter(f, WriterOptions{Budget: 32 << 10, HighWater: 8 << 10})
	const senders, each = 8, 300
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			parent := fmt.Sprint("p", s)
			for i := range each {
				var err error
				switch i % 3 {
				case 0:
					err = w.SendDelta(t.Context(), &StreamDelta{ParentToolUseID: parent, Kind: DeltaText, Text: fmt.Sprint(i, ",")})
				case 1:
					err = w.Send(&StreamDelta{ParentToolUseID: parent, Kind: DeltaText, Text: fmt.Sprint(i, ",")})
				default:
					err = w.SendSync(t.Context(), &StreamDelta{ParentToolUseID: parent, Kind: DeltaText, Text: fmt.Sprint(i, ",")})
				}
				if err != nil {
					t.Errorf("sender %d: %v", s, err)
				}
			}
		})
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		wg.Wait()
		mustClose(t, w)
		f.Close()
	}()
	got, _ := blocks(t, r)
	<-closed
	var want strings.Builder
	for i := range each {
		fmt.Fprint(&want, i, ",")
	}
	for s := range senders {
		if got[fmt.Sprintf("p%d/0/1", s)] != want.String() {
			t.Errorf("sender %d: out of order or incomplete", s)
		}
	}
}

func TestAConsumerThatLeavesIsNoticedWithoutAWrite(t *testing.T) {
	t.Parallel()
	r, f := pipe(t)
	w := NewWriter(f, WriterOptions{})
	if err := w.SendSync(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	within(t, 200*time.Millisecond, w.Closed(), "closed pipe")
	if err := w.Err(); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
	if err := w.Send(note(2)); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("Send: %v", err)
	}
	if err := w.SendSync(t.Context(), note(2)); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("SendSync: %v", err)
	}
	if err := w.SendDelta(t.Context(), &StreamDelta{Kind: DeltaText}); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("SendDelta: %v", err)
	}
	if err := w.Close(t.Context()); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("Close: %v", err)
	}
}

func TestAConsumerThatLeavesInTheMiddleWakesEverybody(t *testing.T) {
	t.Parallel()
	r, f := pipe(t)
	w := NewWriter(f, WriterOptions{Budget: 1 << 10})
	for i := range 4000 { // far more than the pipe holds
		mustSend(t, w, note(i))
	}
	errs := make(chan error, 3)
	go func() { errs <- w.SendSync(t.Context(), note(1)) }()
	go func() { errs <- w.SendDelta(t.Context(), &StreamDelta{Kind: DeltaText}) }()
	go func() { errs <- w.Close(t.Context()) }()
	if _, err := bufio.NewReaderSize(r, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrOutputClosed) && !errors.Is(err, ErrWriterClosed) {
			t.Errorf("got %v", err)
		}
	}
	if s := w.Stats(); s.QueuedBytes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARegularFileIsNotTakenForClosed(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out.jsonl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f, WriterOptions{})
	for i := range 100 {
		if err := w.SendSync(t.Context(), note(i)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, w)
	data, err := os.ReadFile(name)
	if err != nil || bytes.Count(data, newline) != 100 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestCloseDrainsAndIsIdempotent(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	for i := range 10 {
		mustSend(t, w, note(i))
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { mustClose(t, w) })
	}
	g.open()
	wg.Wait()
	mustClose(t, w)
	if n := strings.Count(g.String(), "\n"); n != 10 {
		t.Errorf("%d lines", n)
	}
	if err := w.Send(note(1)); !errors.Is(err, ErrWriterClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if err := w.SendDelta(t.Context(), &StreamDelta{Kind: DeltaText}); !errors.Is(err, ErrWriterClosed) {
		t.Errorf("SendDelta after Close: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); err != nil {
		t.Errorf("Close with nothing left to do: %v", err)
	}
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	_, f := pipe(t)
	w := NewWriter(f, WriterOptions{})
	for i := range 4000 {
		mustSend(t, w, note(i))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("told to stop")
	cancel(cause)
	err := w.Close(ctx)
	if !errors.Is(err, ErrOutputClosed) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "bytes unwritten") {
		t.Errorf("got %v", err)
	}
	within(t, 10*time.Second, w.done, "end of the goroutines")
}

// flaky is an output that takes at most three bytes at a time and then fails.
type flaky struct {
	bytes.Buffer
	left int
	err  error
}

func (f *flaky) Write(p []byte) (int, error) {
	n := min(3, len(p), f.left)
	f.left -= n
	f.Buffer.Write(p[:n])
	if f.left == 0 {
		return n, f.err
	}
	return n, nil
}

func TestPartialWritesAreCompleted(t *testing.T) {
	t.Parallel()
	line, _ := Append(nil, note(1))
	out := &flaky{left: 1000}
	w := NewWriter(out, WriterOptions{})
	mustSend(t, w, note(1))
	mustSend(t, w, note(1))
	mustClose(t, w)
	if want := string(line) + "\n" + string(line) + "\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestAWriteErrorIsKept(t *testing.T) {
	t.Parallel()
	boom := errors.New("disk full")
	out := &flaky{left: 100, err: boom}
	w := NewWriter(out, WriterOptions{})
	var last error
	for i := 0; i < 1000 && last == nil; i++ {
		last = w.SendSync(t.Context(), note(i))
	}
	if !errors.Is(last, boom) || !errors.Is(last, ErrOutputClosed) {
		t.Errorf("got %v", last)
	}
	within(t, 10*time.Second, w.Closed(), "Closed")
	if err := w.Close(t.Context()); !errors.Is(err, boom) || out.Len() != 100 {
		t.Errorf("Close: %v, %d bytes written", err, out.Len())
	}
}

func TestAWriterThatWritesNothingIsAnError(t *testing.T) {
	t.Parallel()
	w := NewWriter(&flaky{}, WriterOptions{})
	if err := w.SendSync(t.Context(), note(1)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	if err := w.Close(t.Context()); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
}

func TestSendReportsWhatCannotBeEncodedAndGoesOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, WriterOptions{})
	if err := w.Send(&ControlRequest{RequestID: "1", Request: []byte("{")}); err == nil || errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
	if err := w.SendDelta(t.Context(), &StreamDelta{Text: "x"}); err == nil {
		t.Error("a delta without a kind was taken")
	}
	mustSend(t, w, &KeepAlive{})
	mustClose(t, w)
	if out.String() != "{\"type\":\"keep_alive\"}\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestAQueueThatIsNeverEmptyDoesNotGrow(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{})
	for i := range 10 {
		mustSend(t, w, note(i))
	}
	for i := 10; i < 5000; i++ {
		g.leave <- struct{}{}
		mustSend(t, w, note(i))
	}
	w.mu.Lock()
	if cap(w.queue) > 100 || len(w.free) > 100 {
		t.Errorf("room for %d lines, %d buffers, for a dozen lines", cap(w.queue), len(w.free))
	}
	w.mu.Unlock()
	g.open()
	mustClose(t, w)
	r := NewReader(strings.NewReader(g.String()), 0)
	for i := range 5000 {
		m, err := r.Next()
		if err != nil || m.(*System).SessionID != fmt.Sprint(i) {
			t.Fatalf("line %d: %v, %v", i, m, err)
		}
	}
}

func TestDeltasOfManyParentsAreWhole(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := NewWriter(g, WriterOptions{HighWater: 1})
	for i := range 1000 {
		mustDelta(t, w, &StreamDelta{ParentToolUseID: fmt.Sprint("p", i%40), Kind: DeltaText, Text: fmt.Sprint(i, ",")})
	}
	g.open()
	mustClose(t, w)
	got, _ := blocks(t, strings.NewReader(g.String()))
	for p := range 40 {
		var want strings.Builder
		for i := p; i < 1000; i += 40 {
			fmt.Fprint(&want, i, ",")
		}
		if got[fmt.Sprintf("p%d/0/1", p)] != want.String() {
			t.Errorf("parent %d: %q", p, got[fmt.Sprintf("p%d/0/1", p)])
		}
	}
}

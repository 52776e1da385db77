package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

type sseEvent struct{ Name, Data string }

// readSSE reads all events and counts the signs of life.
func readSSE(r io.Reader) (events []sseEvent, comments int, err error) {
	s := model.NewSSE(r)
	s.SetComment(func() { comments++ })
	for s.Next() {
		events = append(events, sseEvent{string(s.Event()), string(s.Data())})
	}
	return events, comments, s.Err()
}

// chunked gives its bytes in pieces of the given sizes, repeated.
type chunked struct {
	data  []byte
	sizes []byte
	at    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := len(c.data)
	if len(c.sizes) > 0 {
		n = int(c.sizes[c.at%len(c.sizes)])
		c.at++
	}
	if n == 0 && c.at%7 == 0 {
		n = 1 // no endless empty reads
	}
	n = copy(p, c.data[:min(n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

func TestSSEReadsEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		in       string
		want     []sseEvent
		comments int
	}{
		{"nothing", "", nil, 0},
		{"one event", "data: x\n\n", []sseEvent{{"", "x"}}, 0},
		{"named event", "event: ping\ndata: {}\n\n", []sseEvent{{"ping", "{}"}}, 0},
		{"name does not last", "event: a\ndata: 1\n\ndata: 2\n\n", []sseEvent{{"a", "1"}, {"", "2"}}, 0},
		{"last name wins", "event: a\nevent: b\ndata: 1\n\n", []sseEvent{{"b", "1"}}, 0},
		{"crlf", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []sseEvent{{"a", "1"}, {"", "2"}}, 0},
		{"lone cr", "data: 1\r\rdata: 2\r\r", []sseEvent{{"", "1"}, {"", "2"}}, 0},
		{"mixed line ends", "data: 1\r\n\ndata: 2\n\rdata: 3\r\r\n", []sseEvent{{"", "1"}, {"", "2"}, {"", "3"}}, 0},
		{"many lines", "data: a\ndata: b\ndata:c\n\n", []sseEvent{{"", "a\nb\nc"}}, 0},
		{"empty line of data", "data: a\ndata\ndata: b\n\n", []sseEvent{{"", "a\n\nb"}}, 0},
		{"one space only is taken away", "data:  x\n\n", []sseEvent{{"", " x"}}, 0},
		{"colons in data", "data:a: b:c\n\n", []sseEvent{{"", "a: b:c"}}, 0},
		{"byte order mark", "\ufeffdata: x\n\n", []sseEvent{{"", "x"}}, 0},
		{"byte order mark later is no mark", "data: x\n\n\ufeffdata: y\n\n", []sseEvent{{"", "x"}}, 1},
		{"other fields", "id: 7\nretry: 10\ndatax: no\ndata: x\n\n", []sseEvent{{"", "x"}}, 0},
		{"comments", ": hi\n\n:\n\ndata: x\n: in between\n\n", []sseEvent{{"", "x"}}, 5},
		{"blank keep-alives", "\n\n\r\ndata: x\n\n\n", []sseEvent{{"", "x"}}, 4},
		{"no data is a keep-alive", "event: ping\n\ndata:\n\ndata: x\n\n", []sseEvent{{"", "x"}}, 2},
		{"name without data does not reach the next event", "event: ping\n\ndata: x\n\n", []sseEvent{{"", "x"}}, 1},
		{"no blank line at the end", "data: 1\n\ndata: 2\n", []sseEvent{{"", "1"}, {"", "2"}}, 0},
		{"no line end at the end", "data: 1\n\ndata: [DONE]", []sseEvent{{"", "1"}, {"", "[DONE]"}}, 0},
		{"half a field name at the end", "data: 1\n\ndat", []sseEvent{{"", "1"}}, 0},
		{"utf-8 and its invalid kind", "data: h\u00e9\u2028\xff\n\n", []sseEvent{{"", "h\u00e9\u2028\xff"}}, 0},
	}
	readers := map[string]func(string) io.Reader{
		"whole":       func(s string) io.Reader { return strings.NewReader(s) },
		"byte wise":   func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"data+EOF":    func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
		"empty reads": func(s string) io.Reader { return &chunked{data: []byte(s), sizes: []byte{0, 0, 3}} },
	}
	for _, tt := range tests {
		for how, reader := range readers {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				got, comments, err := readSSE(reader(tt.in))
				if err != nil {
					t.Fatalf("error at the end: %v", err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if comments != tt.comments {
					t.Errorf("got %d signs of life, want %d", comments, tt.comments)
				}
			})
		}
	}
}

// onceThenBlock gives its text, then fails the test's goroutine if read again.
type onceThenBlock struct {
	text string
	t    *testing.T
}

func (o *onceThenBlock) Read(p []byte) (int, error) {
	if o.text == "" {
		o.t.Error("read on though an event was complete")
		return 0, io.EOF
	}
	n := copy(p, o.text)
	o.text = o.text[n:]
	return n, nil
}

func TestSSEDeliversAnEventAsSoonAsItIsComplete(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: x\n\n", "data: x\r\n\r\n", "data: x\r\r", "data: x\r\n\r"} {
		s := model.NewSSE(&onceThenBlock{in, t})
		if !s.Next() || string(s.Data()) != "x" {
			t.Errorf("%q: no event", in)
		}
	}
}

func TestSSEReportsABrokenStream(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset")
	tests := []struct {
		name string
		in   string
		want []sseEvent
	}{
		{"between events", "data: 1\n\n", []sseEvent{{"", "1"}}},
		{"in a line", "data: 1\n\ndata: {\"a\":", []sseEvent{{"", "1"}}},
		{"after a line: the event may be whole", "data: 1\n\ndata: [DONE]\n", []sseEvent{{"", "1"}, {"", "[DONE]"}}},
		{"in a later line: the event is not whole", "data: a\ndata: b", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := readSSE(io.MultiReader(strings.NewReader(tt.in), iotest.ErrReader(reset)))
			if !errors.Is(err, reset) {
				t.Errorf("error %v, want %v", err, reset)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

type zeroReader struct{}

func (zeroReader) Read([]byte) (int, error) { return 0, nil }

func TestSSEGivesUpOnAReaderThatGivesNothing(t *testing.T) {
	t.Parallel()
	if _, _, err := readSSE(zeroReader{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want io.ErrNoProgress", err)
	}
}

func TestSSELinesLongerThanTheBuffer(t *testing.T) {
	t.Parallel()
	for _, size := range []int{32<<10 - 7, 32<<10 - 6, 32<<10 - 5, 32 << 10, 100_000, 3 << 20} {
		long := strings.Repeat("abcdefg", size/7+1)[:size]
		for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r", ""} {
			in := ": " + long + "\ndata: " + long + "\nother" + long + "\ndata: " + long + end
			got, comments, err := readSSE(strings.NewReader(in)) // on a slow machine also with signs of life
			if err != nil || comments < 1 || len(got) != 1 || got[0].Data != long+"\n"+long {
				t.Errorf("size %d, end %q: %d events, %d comments, error %v", size, end, len(got), comments, err)
			}
		}
	}
}

// endless repeats a line's inside without an end.
type endless struct{ begin string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.begin)
	e.begin = e.begin[n:]
	for n < len(p) {
		n += copy(p[n:], xs)
	}
	return len(p), nil
}

var xs = bytes.Repeat([]byte("x"), 4096)

func TestSSERefusesAnEventOverTheLimit(t *testing.T) {
	t.Parallel()
	events, _, err := readSSE(&endless{"data: "})
	var size *model.EventSizeError
	if !errors.As(err, &size) || size.Limit != model.MaxEvent || len(events) != 0 {
		t.Errorf("got %d events and error %v, want an EventSizeError", len(events), err)
	}
	if e := model.NetworkError("p", err); e.Kind != model.ErrMalformed {
		t.Errorf("as a model error: %v, want kind %s", e, model.ErrMalformed)
	}
}

func TestSSEAcceptsAnEventUpToTheLimit(t *testing.T) {
	t.Parallel()
	in := io.MultiReader(strings.NewReader("data: "), io.LimitReader(&endless{}, model.MaxEvent), strings.NewReader("\n\ndata: y\n\n"))
	s := model.NewSSE(in)
	if !s.Next() || len(s.Data()) != model.MaxEvent {
		t.Fatalf("large event: %d bytes, error %v", len(s.Data()), s.Err())
	}
	if !s.Next() || string(s.Data()) != "y" {
		t.Errorf("event after it: %q, error %v", s.Data(), s.Err())
	}
}

// slowly gives a byte a second.
type slowly struct {
	data string
	ctx  context.Context
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.data == "" {
		return 0, io.EOF
	}
	if err := pause(s.ctx, time.Second); err != nil {
		return 0, err
	}
	n := copy(p[:1], s.data)
	s.data = s.data[n:]
	return n, nil
}

// A line that drips is slow, not dead: it shows signs of life, so that a stall
// watch lets it go on.
func TestSSEShowsLifeWhileAnEventTricklesIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, comments, err := readSSE(&slowly{"data: " + strings.Repeat("x", 100) + "\n\n", t.Context()})
		if err != nil || len(events) != 1 || comments < 100 || comments > 110 {
			t.Errorf("%d events, %d signs of life, error %v; want one event and a sign for each piece", len(events), comments, err)
		}
	})
}

func TestSSEAllocatesNothingPerEvent(t *testing.T) {
	s := model.NewSSE(&loop{data: []byte("event: content_block_delta\ndata: " + strings.Repeat("x", 200) + "\n\n")})
	s.Next()
	if n := testing.AllocsPerRun(1000, func() { s.Next() }); n != 0 {
		t.Errorf("%v allocations per event, want 0", n)
	}
}

// loop repeats its data for ever.
type loop struct {
	data []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], l.data[l.at:])
		n += c
		l.at = (l.at + c) % len(l.data)
	}
	return n, nil
}

func BenchmarkSSE(b *testing.B) {
	for _, size := range []int{200, 2000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			event := []byte("event: content_block_delta\ndata: " + strings.Repeat("x", size) + "\n\n")
			s := model.NewSSE(&loop{data: event})
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				if !s.Next() {
					b.Fatal(s.Err())
				}
			}
		})
	}
}

// naiveSSE is the same by the plainest means, on the whole input.
func naiveSSE(in []byte) (events []sseEvent, comments int) {
	text := strings.TrimPrefix(string(in), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	ended := lines[len(lines)-1] == ""
	if ended {
		lines = lines[:len(lines)-1]
	}
	name, data, has := "", "", false
	flush := func() {
		if data != "" {
			events = append(events, sseEvent{name, data})
		}
		name, data, has = "", "", false
	}
	for _, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data == "" {
				comments++
			}
			flush()
		case line[0] == ':' || line[0] == ' ':
			comments++
		case field == "data":
			if has {
				data += "\n"
			}
			data, has = data+value, true
		case field == "event":
			name = value
		}
	}
	flush()
	return events, comments
}

func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"data: x\n\n", "event: a\r\ndata: 1\r\n\r\ndata: 2", "data: 1\r\rdata: 2\r\r", "\ufeffdata: x\n\n: c\n\n\n",
		"data\ndata:\ndata: \n\n", "event: ping\n\ndata:\n\n", "data: h\u00e9llo \u2028\n\n", "id: 1\nretry: 2\ndata:x\r\n\n\r",
		"\r\n\r\n\r", " data: x\n\n", "dat", "data: \xff\xfe\n\n",
	} {
		f.Add([]byte(seed), []byte{1, 0, 5})
		f.Add([]byte(seed), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		want, wantComments := naiveSSE(in)
		got, comments, err := readSSE(&chunked{data: bytes.Clone(in), sizes: sizes})
		if err != nil {
			t.Fatalf("error: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if comments != wantComments {
			t.Errorf("%d signs of life, want %d", comments, wantComments)
		}
	})
}

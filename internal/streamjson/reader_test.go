package streamjson

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll is everything a Reader gives: the types of messages (for unknown ones
// their type on the wire), and the kinds of line errors in brackets.
func readAll(t testing.TB, r *Reader) []string {
	t.Helper()
	var got []string
	for {
		m, err := r.Next()
		var lineErr *LineError
		switch {
		case errors.As(err, &lineErr):
			got = append(got, "["+string(lineErr.Kind)+"]")
		case errors.Is(err, io.EOF):
			if _, again := r.Next(); !errors.Is(again, io.EOF) {
				t.Errorf("after io.EOF came %v", again)
			}
			return got
		case err != nil:
			t.Fatalf("unexpected error: %v", err)
		default:
			u, ok := m.(*Unknown)
			if !ok {
				t.Fatalf("unexpected %T", m)
			}
			got = append(got, u.Type)
		}
	}
}

func TestReaderPassesOverWhatIsBlank(t *testing.T) {
	t.Parallel()
	input := "\uFEFF{\"type\":\"a\"}\n\n   \t\n\r\n{\"type\":\"b\"}\r\n\v\f\n\uFEFF\n  {\"type\":\"c\"}  \n\n"
	for name, src := range map[string]io.Reader{
		"at once":       strings.NewReader(input),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(input)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(input)),
	} {
		if diff := cmp.Diff([]string{"a", "b", "c"}, readAll(t, NewReader(src, 0))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReaderGoesOnAfterBadLines(t *testing.T) {
	t.Parallel()
	long := `{"type":"` + strings.Repeat("x", 200) + `"}`
	lines := []string{
		`{"type":"a"}`, `garbage`, `{"type":"b"}`, `{"type":"x","type":"y"}`, `[]`, `{"type":"c"}`, `{}`, long, `{"type":"d"}`,
		strings.Repeat("[", 10_000), `{"type":"e"}`, "{\"type\":\"\x00\"}", long, long, `{"type":"f"}`,
	}
	want := []string{
		"a", "[malformed]", "b", "[duplicate_key]", "[not_object]", "c", "[missing_type]", "[too_long]", "d",
		"[too_long]", "e", "[malformed]", "[too_long]", "[too_long]", "f",
	}
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		input := strings.Join(lines, end)
		for kind, src := range map[string]io.Reader{
			"at once": strings.NewReader(input), "in bytes": iotest.OneByteReader(strings.NewReader(input)), "in halves": iotest.HalfReader(strings.NewReader(input)),
		} {
			if diff := cmp.Diff(want, readAll(t, NewReader(src, 100))); diff != "" {
				t.Errorf("%s %s: %s", name, kind, diff)
			}
		}
	}
}

func TestReaderLimitIsExact(t *testing.T) {
	t.Parallel()
	line := `{"type":"a"}` // 12 bytes
	for _, c := range []struct {
		limit int
		end   string
		want  string
	}{
		{12, "\n", "a"}, {12, "\r\n", "a"}, {12, "", "a"}, {12, "\r", "[too_long]"}, {11, "\n", "[too_long]"}, {11, "\r\n", "[too_long]"}, {11, "", "[too_long]"},
		{12, " \n", "[too_long]"}, {13, " \n", "a"},
	} {
		got := readAll(t, NewReader(strings.NewReader(line+c.end), c.limit))
		if diff := cmp.Diff([]string{c.want}, got); diff != "" {
			t.Errorf("limit %d, ending %q: %s", c.limit, c.end, diff)
		}
	}
}

func TestLastLineWithoutNewlineCountsIfWhole(t *testing.T) {
	t.Parallel()
	for input, want := range map[string][]string{
		"":                                   nil,
		"\n\n":                               nil,
		"{\"type\":\"a\"}":                   {"a"},
		"{\"type\":\"a\"}\n{\"type\":\"b":    {"a", "[truncated]"},
		"{\"type\":\"a\"}\n{\"type\":\"b\n":  {"a", "[malformed]"},
		"{\"type\":\"a\"}\n   ":              {"a"},
		"{":                                  {"[truncated]"},
		"{\"type\":\"user\",\"message\":{\"": {"[truncated]"},
		"[1]":                                {"[not_object]"},
	} {
		if diff := cmp.Diff(want, readAll(t, NewReader(strings.NewReader(input), 0))); diff != "" {
			t.Errorf("%q: %s", input, diff)
		}
	}
}

func TestLineErrorsSayWhere(t *testing.T) {
	t.Parallel()
	input := "\n{\"type\":\"a\"}\r\n\uFEFF {\"type\":\"a\" oops}\n"
	r := NewReader(strings.NewReader(input), 0)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Next()
	var e *LineError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	at := strings.Index(input, "oops")
	if e.Line != 3 || e.Offset != 15 || int(e.Offset)+e.Column-1 != at || !strings.Contains(e.Excerpt, "oops") {
		t.Errorf("got line %d offset %d column %d excerpt %q; the trouble is at %d", e.Line, e.Offset, e.Column, e.Excerpt, at)
	}
	if !strings.HasPrefix(e.Error(), "line 3: malformed: ") {
		t.Error(e.Error())
	}
}

// reads counts calls of Read.
type reads struct {
	io.Reader
	n int
}

func (r *reads) Read(p []byte) (int, error) { r.n++; return r.Reader.Read(p) }

func TestReaderReadsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	src := &reads{Reader: strings.NewReader("{\"type\":\"a\"}\n{\"type\":\"b\"}\n")}
	r := NewReader(src, 0)
	if src.n != 0 {
		t.Fatal("read before Next")
	}
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if src.n != 1 {
		t.Errorf("%d reads for two lines that were there", src.n)
	}
}

func TestReaderReportsTheSourcesError(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	r := NewReader(io.MultiReader(strings.NewReader("{\"type\":\"a\"}\n{\"type\":\"b\"}"), iotest.ErrReader(boom)), 0)
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, boom) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := NewReader(stuck{}, 0).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

// stuck never gives anything.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// endless gives n bytes of one line, then rest.
type endless struct {
	n    int64
	rest []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 0 {
		p = p[:min(int64(len(p)), e.n)]
		if p[0] != 'x' || p[len(p)-1] != 'x' { // else it holds the last one's
			for i := range p {
				p[i] = 'x'
			}
		}
		e.n -= int64(len(p))
		return len(p), nil
	}
	if len(e.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestAHugeLineCostsBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a gigabyte")
	}
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := NewReader(&endless{n: 1 << 30, rest: []byte("\n{\"type\":\"a\"}\n")}, limit)
	got := readAll(t, r)
	runtime.ReadMemStats(&after)
	if diff := cmp.Diff([]string{"[too_long]", "a"}, got); diff != "" {
		t.Fatal(diff)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16*limit {
		t.Errorf("%d bytes allocated for a line over a limit of %d", used, limit)
	}
}

func TestALongLineWithinTheLimitIsRead(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 4<<20/16)
	input := `{"type":"user","message":{"role":"user","content":"` + text + `"}}` + "\n" + `{"type":"keep_alive"}` + "\n"
	r := NewReader(strings.NewReader(input), 0)
	m, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if u := m.(*UserLine); u.Message.Content.Text != text {
		t.Error("the text differs")
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if cap(r.buf) > keepBuf || cap(r.dec.scratch) > maxScratch {
		t.Errorf("buffers of %d and %d bytes kept", cap(r.buf), cap(r.dec.scratch))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("garbage"), false)
	f.Add([]byte(`{"type":"x","type":"y"}`), true)
	f.Add([]byte("{\"type\":\"user\",\"message\":\n{\"content\":[{\"type\":\"image\"}]}}\r\n\uFEFF"), false)
	f.Add([]byte(strings.Repeat("[{\"a\":", 300)), true)
	f.Add([]byte("\xff\xfe\x00\n\\\"\\\\\""), false)
	for _, line := range fixtureLines(f, "input.jsonl") {
		f.Add(line, true)
	}
	const limit = 512
	good := []byte(`{"type":"marker"}`)
	f.Fuzz(func(t *testing.T, bad []byte, small bool) {
		var src io.Reader = bytes.NewReader(bytes.Join([][]byte{good, bad, good, bad, good}, newline))
		if small {
			src = iotest.OneByteReader(src)
		}
		r := NewReader(src, limit)
		markers, errs := 0, 0
		for {
			m, err := r.Next()
			var lineErr *LineError
			switch {
			case errors.As(err, &lineErr):
				if errs++; lineErr.Line == 0 || lineErr.Msg == "" {
					t.Fatalf("an empty error: %#v", lineErr)
				}
			case errors.Is(err, io.EOF):
				if want := 3 + 2*bytes.Count(bad, newline); markers < 3 || markers+errs > want+2 {
					t.Fatalf("%d markers, %d errors", markers, errs)
				}
				return
			case err != nil:
				t.Fatal(err)
			default:
				if u, ok := m.(*Unknown); ok && u.Type == "marker" {
					markers++
				}
			}
		}
	})
}

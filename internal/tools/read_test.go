package tools

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

func TestReadNumbersLines(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.txt", "one\n\ttwo\n\nfour")
	r := b.run(t, "read_file", args{"file_path": "a.txt"})
	wantSame(t, "text", resultText(r), "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour")
	want := textDisplay{Type: "text", File: textFile{FilePath: b.dir + "/a.txt", Content: "one\n\ttwo\n\nfour", NumLines: 4, StartLine: 1, TotalLines: 4}}
	if r.Display != want {
		t.Errorf("display: %+v", r.Display)
	}
	b.put(t, "empty", "")
	wantSame(t, "empty file", b.ok(t, "read_file", args{"path": "empty"}), "[the file is empty]")
	b.ok(t, "write_file", args{"file_path": "empty", "content": "x"})
}

func TestReadRanges(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	b.put(t, "long.txt", text.String())
	got := b.ok(t, "read_file", args{"path": "long.txt"})
	wantText(t, got, "  2000\tline 2000\n\n[lines 1-2000 of 5000; go on with offset 2001]")
	got = b.ok(t, "read_file", args{"path": "long.txt", "offset": "2001", "limit": "2"})
	wantSame(t, "range", got, "  2001\tline 2001\n  2002\tline 2002\n\n[lines 2001-2002 of 5000; go on with offset 2003]")
	got = b.ok(t, "read_file", args{"path": "long.txt", "limit": 4500})
	wantText(t, got, "  4500\tline 4500\n", "[lines 1-4500 of 5000")
	got = b.ok(t, "read_file", args{"path": "long.txt", "offset": 4999})
	wantSame(t, "end", got, "  4999\tline 4999\n  5000\tline 5000")
	got = b.ok(t, "read_file", args{"path": "long.txt", "offset": 6000})
	wantText(t, got, "offset 6000 is past the end, the file has 5000 lines")
	b.fails(t, "read_file", args{"path": "long.txt", "offset": -1}, "1 or more")
	b.fails(t, "read_file", args{"path": "long.txt", "offset": "x"}, "offset must be a whole number, got string")
}

func TestReadCutsWhatIsTooLong(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "min.js", "short\n"+strings.Repeat("é", 60_000)+"\nend\n")
	got := b.ok(t, "read_file", args{"path": "min.js"})
	if len(got) > 10_000 || strings.Count(got, "é") != readLineChars {
		t.Errorf("%d bytes with %d é", len(got), strings.Count(got, "é"))
	}
	wantText(t, got, "... [line cut,", "     3\tend", "1 long lines were cut")
	got = b.ok(t, "read_file", args{"path": "min.js", "offset": 2, "limit": 1})
	if strings.Count(got, "é") != 60_000 {
		t.Errorf("the whole line has %d é", strings.Count(got, "é"))
	}
	b.put(t, "wide.txt", strings.Repeat(strings.Repeat("x", 999)+"\n", 1000))
	got = b.ok(t, "read_file", args{"path": "wide.txt"})
	if len(got) > readBytes+200 {
		t.Errorf("%d bytes", len(got))
	}
	wantText(t, got, "go on with offset 261")
	got = b.ok(t, "read_file", args{"path": "wide.txt", "limit": 1000})
	if strings.Contains(got, "go on") {
		t.Error("an explicit range was cut")
	}
}

func TestReadDecodesAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"utf8bom":  {"\xef\xbb\xbfé\n", []string{"     1\té\n", "UTF-8 with a byte order mark"}},
		"utf16le":  {"\xff\xfe" + string(encUTF16LE.encode("é👩\n2\n")), []string{"     1\té👩\n     2\t2", "UTF-16LE"}},
		"utf16be":  {"\xfe\xff" + string(encUTF16BE.encode("é👩\n")), []string{"     1\té👩\n", "UTF-16BE"}},
		"utf32le":  {"\xff\xfe\x00\x00" + string(encUTF32LE.encode("é👩\n")), []string{"     1\té👩\n", "UTF-32LE"}},
		"utf32be":  {"\x00\x00\xfe\xff" + string(encUTF32BE.encode("é👩\n")), []string{"     1\té👩\n", "UTF-32BE"}},
		"latin1":   {"caf\xe9 na\xefve\n", []string{"     1\tcaf\ufffd na\ufffdve\n", "windows-1252"}},
		"gbk":      {"\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7\n", []string{"\ufffd", "GBK"}},
		"sjis":     {"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\n", []string{"Shift_JIS"}},
		"crlf":     {"a\r\nb\r\n", []string{"     1\ta\n     2\tb\n", "line ends are CRLF"}},
		"mixed":    {"a\r\nb\n", []string{"mixed line ends: 1 CRLF, 1 LF"}},
		"one nul":  {"a text with one\x00in the middle of it\n", []string{"one␀in", "NUL bytes"}},
		"notebook": {`{"cells": []}`, []string{`     1	{"cells": []}`}},
		"escapes":  {"\x1b[1mbold\x1b[0m and plain text\n", []string{"\x1b[1mbold"}},
	} {
		b.put(t, name, c.content)
		wantText(t, b.ok(t, "read_file", args{"path": name}), c.want...)
	}
}

func TestReadRefusesBinaryByContent(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for content, want := range map[string]string{
		"\x7fELF\x02\x01\x01\x00\x00\x00":                 "ELF",
		"PK\x03\x04\x14\x00\x00\x00":                      "zip archive",
		"SQLite format 3\x00\x10\x00":                     "SQLite",
		"\x1f\x8b\x08\x00\x00\x00\x00\xff":                "gzip",
		"a\x00b\x00\xff\xfe\x81\x00":                      "unknown binary data",
		"h\x00e\x00l\x00l\x00o\x00 \x00w\x00o\x00r\x00\n": "UTF-16LE without",
	} {
		b.put(t, "looks-like.txt", content)
		b.fails(t, "read_file", args{"path": "looks-like.txt"}, "binary file", want, fmt.Sprintf("%d bytes", len(content)))
	}
	b.put(t, "BZh.txt", "BZh is the beginning of a bzip2 file\n")
	b.ok(t, "read_file", args{"path": "BZh.txt"})
}

func TestReadShowsImages(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for media, content := range map[string]string{
		"image/png": "\x89PNG\r\n\x1a\n\x00\x00", "image/jpeg": "\xff\xd8\xff\xe0\x00", "image/gif": "GIF89a\x01\x00", "image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
	} {
		b.put(t, "picture.dat", content)
		r := b.run(t, "read_file", args{"path": "picture.dat"})
		if len(r.Blocks) != 1 {
			t.Fatalf("%s: %+v", media, r)
		}
		if img, ok := r.Blocks[0].(model.Image); !ok || img.MediaType != media || string(img.Data) != content {
			t.Errorf("%s: %+v", media, r.Blocks[0])
		}
	}
	b.put(t, "huge.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", imageBytes))
	b.fails(t, "read_file", args{"path": "huge.png"}, "image/png", "5242880")
}

func TestReadSuggestsNearNames(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "src/README.md", "x")
	b.put(t, "src/config.yaml", "x")
	b.fails(t, "read_file", args{"path": "src/readme.md"}, "no such file", "Did you mean", "README.md")
	b.fails(t, "read_file", args{"path": "src/config.yml"}, "config.yaml")
	b.fails(t, "read_file", args{"path": "src/confg.yaml"}, "config.yaml")
	b.fails(t, "read_file", args{"path": "scr/x"}, "directory does not exist")
	b.fails(t, "read_file", args{"path": "src"}, "is a directory", "list_directory")
	b.fails(t, "read_file", args{"path": "src/README.md/x"}, "reading src/README.md/x")
}

// TestReadOfAHugeFileIsCheap reads a range of a sparse file of 1 GB. It is not
// parallel: allocations are counted for the whole process.
func TestReadOfAHugeFileIsCheap(t *testing.T) {
	b := newToolBench(t)
	path := b.put(t, "huge.log", strings.Repeat("first lines\n", 20_000))
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Skip(err)
	}
	var got string
	allocated := testing.Benchmark(func(tb *testing.B) {
		for range tb.N {
			got = b.ok(tb, "read_file", args{"path": "huge.log", "offset": 10_000, "limit": 3})
		}
	})
	wantText(t, got, " 10000\tfirst lines\n 10001\tfirst lines\n 10002\tfirst lines\n", "the file is longer; go on with offset 10003")
	if n := allocated.AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	b.fails(t, "edit", args{"file_path": "huge.log", "old_string": "first", "new_string": "x"}, "more than this tool changes")
}

func TestReadStopsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	path := b.put(t, "huge.log", "x\n")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	ctx, cancel := testContext(t)
	cancel()
	for name, in := range map[string]string{"read_file": `{"path":"huge.log","offset":2}`, "grep_search": `{"pattern":"x"}`, "glob": `{"pattern":"*"}`, "list_directory": `{"path":"."}`} {
		if r := b.tools[name].Run(ctx, &Call{Input: []byte(in)}); !r.IsError {
			t.Errorf("%s went on: %s", name, resultText(r))
		}
	}
}

// makePDF writes a PDF with one page per text.
func makePDF(pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, a ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n", len(at))
		fmt.Fprintf(&b, format, a...)
		b.WriteString("\nendobj\n")
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), len(pages))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, text := range pages {
		object("<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 5+2*i)
		var content strings.Builder
		content.WriteString("BT /F1 12 Tf 72 720 Td ")
		for line := range strings.Lines(text) {
			fmt.Fprintf(&content, "(%s) Tj 0 -14 Td ", strings.TrimSuffix(line, "\n"))
		}
		content.WriteString("[(ker) -20 (ned) -300 (apart)] TJ ET")
		object("<< /Length %d >>\nstream\n%s\nendstream", content.Len(), content.String())
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, a := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}

func TestReadGivesTheTextOfAPDF(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	pages := make([]string, 25)
	for i := range pages {
		pages[i] = fmt.Sprintf("Hello page %d\nsecond line", i+1)
	}
	b.put(t, "doc.pdf", string(makePDF(pages...)))
	got := b.ok(t, "read_file", args{"path": "doc.pdf"})
	wantText(t, got, "--- page 1 ---\nHello page 1\nsecond line\nkerned apart", "--- page 20 ---", "[pages 1-20 of 25; go on with pages 21-25]")
	got = b.ok(t, "read_file", args{"path": "doc.pdf", "pages": "24-"})
	wantText(t, got, "Hello page 24", "Hello page 25", "[pages 24-25 of 25]")
	if strings.Contains(got, "page 23") {
		t.Error("page 23 wasn't asked for")
	}
	wantText(t, b.ok(t, "read_file", args{"path": "doc.pdf", "pages": "7"}), "Hello page 7", "[pages 7-7 of 25; go on")
	wantText(t, b.ok(t, "read_file", args{"path": "doc.pdf", "pages": "99"}), "the PDF has 25 pages")
	b.fails(t, "read_file", args{"path": "doc.pdf", "pages": "x"}, "is not a page")
	b.put(t, "broken.pdf", "%PDF-1.4\ngarbage")
	b.fails(t, "read_file", args{"path": "broken.pdf"}, "can't be read")
	b.put(t, "a.txt", "x\n")
	b.fails(t, "read_file", args{"path": "a.txt", "pages": "1"}, "PDF files only")
}

func FuzzPDF(f *testing.F) {
	f.Add(makePDF("Hello", "World"))
	f.Add([]byte("%PDF-1.4\nxref\n0 0\ntrailer\n<<>>\nstartxref\n9\n%%EOF\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, err := extractPDF(t.Context(), data, 1, 3); err == nil && text == nil {
			t.Fatal("neither text nor error")
		}
	})
}

func FuzzEncodings(f *testing.F) {
	for _, s := range []string{"a\x00\n\x00", "\x00\xd8a\x00", "\x00\xd8\x00\xdc", "\x00\x00\x00a", "\xff\xff\xff\xff", "abc"} {
		f.Add([]byte(s), byte(2), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, which byte, chunk int) {
		enc := encoding(2 + which%4)
		text := enc.decode(b)
		if !utf8.ValidString(text) {
			t.Fatalf("%q is not UTF-8", text)
		}
		r := &wideReader{r: &slowReader{b: b, n: 1 + max(chunk, -chunk)%7}, enc: enc}
		streamed, err := readSized(r, 0)
		if err != nil || string(streamed) != text {
			t.Fatalf("streamed %q, %v, want %q", streamed, err, text)
		}
		if back := enc.decode(enc.encode(text)); back != text {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}

// slowReader gives n bytes at a time.
type slowReader struct {
	b []byte
	n int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(r.n, len(r.b))])
	r.b = r.b[n:]
	return n, nil
}

func BenchmarkReadSmall(b *testing.B) {
	t := newToolBench(b)
	t.put(b, "a/b/small.txt", "one\ntwo\nthree\n")
	call := &Call{Input: []byte(`{"file_path":"` + filepath.ToSlash(t.dir) + `/a/b/small.txt"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if r := t.tools["read_file"].Run(b.Context(), call); r.IsError {
			b.Fatal(resultText(r))
		}
	}
}

func BenchmarkEditSmall(b *testing.B) {
	t := newToolBench(b)
	t.put(b, "a/b/small.txt", "one\ntwo\nthree\n")
	t.ok(b, "read_file", args{"path": "a/b/small.txt"})
	there := &Call{Input: []byte(`{"file_path":"a/b/small.txt","old_string":"two","new_string":"2"}`)}
	back := &Call{Input: []byte(`{"file_path":"a/b/small.txt","old_string":"2","new_string":"two"}`)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call := there
		if i%2 == 1 {
			call = back
		}
		if r := t.tools["edit"].Run(b.Context(), call); r.IsError {
			b.Fatal(resultText(r))
		}
	}
}

func BenchmarkReadHugeRange(b *testing.B) {
	t := newToolBench(b)
	t.put(b, "big.log", strings.Repeat("a line of a log, as they are\n", 1_000_000))
	call := &Call{Input: []byte(`{"file_path":"big.log","offset":500000,"limit":20}`)}
	b.SetBytes(29_000_000)
	for b.Loop() {
		if r := t.tools["read_file"].Run(b.Context(), call); r.IsError {
			b.Fatal(resultText(r))
		}
	}
}

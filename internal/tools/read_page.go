package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// page collects a range of lines of a text, within limits.
type page struct {
	first, count int // the range wanted; lines counted from 1
	maxBytes     int
	lineChars    int

	out     strings.Builder // numbered lines
	raw     strings.Builder // the same without numbers, for display
	line    int             // lines seen
	shown   int
	full    bool // maxBytes reached
	cut     int  // lines that were cut
	ended   bool // the end of the file was seen
	crlf    int
	lf      int
	nul     bool
	invalid []byte // sample of text that isn't UTF-8
	bad     bool
}

func newPage(offset, limit int) *page {
	p := &page{first: max(offset, 1), count: readLines, maxBytes: readBytes, lineChars: readLineChars}
	if limit > 0 {
		p.count, p.maxBytes = limit, readBytesMax
	}
	if limit == 1 {
		p.lineChars, p.maxBytes = readBytes, readBytes+64
	}
	return p
}

// fill reads lines from r, which has about size bytes: to the end if whole, else only what the range needs.
func (p *page) fill(ctx context.Context, r io.Reader, size int64, whole bool) error {
	br := bufio.NewReaderSize(r, int(min(size+1, 32<<10)))
	for {
		if p.line&0xfff == 0 {
			if err := checkContext(ctx); err != nil {
				return err
			}
		}
		if p.done() && !whole {
			return nil
		}
		line, long, err := p.readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			p.line++
			p.add(line, long)
		}
		if err != nil {
			p.ended = true
			return nil
		}
	}
}

// done reports whether nothing more can be shown. (One more line is read to
// know whether there is more.)
func (p *page) done() bool { return p.full || p.line-p.first >= p.count }

// wants reports whether line number n is in the range.
func (p *page) wants(n int) bool { return n >= p.first && n-p.first < p.count && !p.full }

// readLine returns the next line with its line end; of a line longer than can
// be shown only the beginning, with the number of bytes left out.
func (p *page) readLine(br *bufio.Reader) (line []byte, long int, err error) {
	line, err = br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, 0, err
	}
	keep := 0
	if p.wants(p.line + 1) {
		keep = p.lineChars*utf8.UTFMax + 2
	}
	first := len(line)
	line = bytes.Clone(line[:min(first, max(keep, 1))])
	long = first - len(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		var more []byte
		more, err = br.ReadSlice('\n')
		take := min(len(more), max(keep-len(line), 0))
		line = append(line, more[:take]...)
		long += len(more) - take
	}
	return line, long, err
}

// add shows a line if it is in the range.
func (p *page) add(line []byte, long int) {
	if !p.wants(p.line) {
		return
	}
	eol := 0
	if bytes.HasSuffix(line, []byte("\r\n")) {
		p.crlf, eol = p.crlf+1, 2
	} else if bytes.HasSuffix(line, []byte("\n")) {
		p.lf, eol = p.lf+1, 1
	}
	text := p.clean(line[:len(line)-eol])
	text, note := p.cutLine(text, long)
	if p.out.Len()+len(text)+8 > p.maxBytes && p.shown > 0 {
		p.full = true
		return
	}
	if p.shown > 0 {
		p.out.WriteByte('\n')
		p.raw.WriteByte('\n')
	}
	p.shown++
	writeNumber(&p.out, p.line)
	p.out.WriteString(text)
	p.out.WriteString(note)
	p.raw.WriteString(text)
}

// clean makes a line showable: bytes that aren't UTF-8 become U+FFFD each, NUL
// becomes its picture.
func (p *page) clean(line []byte) string {
	if bytes.IndexByte(line, 0) >= 0 {
		p.nul = true
		line = bytes.ReplaceAll(line, []byte{0}, []byte("␀"))
	}
	if utf8.Valid(line) {
		return string(line)
	}
	p.bad = true
	if len(p.invalid) < 4<<10 {
		p.invalid = append(p.invalid, line[:min(len(line), 1<<10)]...)
	}
	return string(bytes.Runes(line)) // each invalid byte gives one U+FFFD
}

// cutLine shortens a line to what may be shown of it.
func (p *page) cutLine(text string, long int) (kept, note string) {
	if len(text) <= p.lineChars && long == 0 {
		return text, ""
	}
	end, chars := len(text), 0
	for i := range text {
		if chars == p.lineChars {
			end = i
			break
		}
		chars++
	}
	if left := len(text) - end + long; left > 0 {
		p.cut++
		return text[:end], fmt.Sprintf(" ... [line cut, %d more bytes]", left)
	}
	return text, ""
}

// writeNumber writes a line number as cat -n does.
func writeNumber(b *strings.Builder, n int) {
	var buf [24]byte
	s := strconv.AppendInt(buf[:0], int64(n), 10)
	for range 6 - len(s) {
		b.WriteByte(' ')
	}
	b.Write(s)
	b.WriteByte('\t')
}

// textDisplay is the machine-readable form of a text that was read.
type textDisplay struct {
	Type string   `json:"type"`
	File textFile `json:"file"`
}

type textFile struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int    `json:"numLines"`
	StartLine  int    `json:"startLine"`
	TotalLines int    `json:"totalLines"`
}

func (p *page) result(at Place, enc encoding) Result {
	text := p.out.String()
	if notes := p.notes(enc); notes != "" {
		if text != "" {
			text += "\n\n"
		}
		text += notes
	}
	r := Text(text)
	r.Display = textDisplay{Type: "text", File: textFile{
		FilePath: at.Named, Content: p.raw.String(), NumLines: p.shown, StartLine: p.first, TotalLines: p.line,
	}}
	return r
}

// notes says what the reader needs to know besides the lines.
func (p *page) notes(enc encoding) string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, "["+fmt.Sprintf(format, args...)+"]") }
	last := p.first + p.shown - 1
	switch {
	case p.line == 0:
		note("the file is empty")
	case p.shown == 0:
		note("nothing to show: offset %d is past the end, the file has %d lines", p.first, p.line)
	case last < p.line && p.ended:
		note("lines %d-%d of %d; go on with offset %d", p.first, last, p.line, last+1)
	case last < p.line:
		note("lines %d-%d, the file is longer; go on with offset %d", p.first, last, last+1)
	}
	if p.cut > 0 {
		note("%d long lines were cut; read one with limit 1 to see it whole", p.cut)
	}
	if enc != encUTF8 {
		note("encoding: %s", enc)
	}
	switch {
	case p.crlf > 0 && p.lf > 0:
		note("mixed line ends: %d CRLF, %d LF among the lines shown", p.crlf, p.lf)
	case p.crlf > 0:
		note("line ends are CRLF; edits keep them, write \\n in them")
	}
	if p.nul {
		note("NUL bytes are shown as ␀")
	}
	if p.bad {
		note("bytes that are not UTF-8 are shown as U+FFFD; the encoding looks like %s", guessEncoding(p.invalid))
	}
	return strings.Join(notes, "\n")
}

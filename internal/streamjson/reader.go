package streamjson

import (
	"bytes"
	"errors"
	"io"
)

// DefaultMaxLine is the longest line that a Reader takes unless told
// otherwise, in bytes.
const DefaultMaxLine = 64 << 20

// Reader reads messages from lines. It is not safe for concurrent use. It
// reads from its source only inside Next, which blocks as long as that does;
// to end a blocked Next, end the source.
type Reader struct {
	src     io.Reader
	maxLine int
	dec     decoder

	buf      []byte // unread bytes are buf[start:]
	start    int
	searched int   // bytes of buf[start:] known to hold no newline
	offset   int64 // of buf[start] in the input
	line     int   // lines begun
	skipping bool  // inside the rest of a line that was too long
	err      error // of src, once it has ended
}

const (
	readChunk = 32 << 10
	// keepBuf is the largest buffer kept after a long line.
	keepBuf = 1 << 20
)

// NewReader makes a Reader of r that takes lines of up to maxLine bytes, not
// counting the line ending; 0 means [DefaultMaxLine]. Memory grows with the
// line at hand, not with maxLine.
func NewReader(r io.Reader, maxLine int) *Reader {
	if maxLine <= 0 {
		maxLine = DefaultMaxLine
	}
	return &Reader{src: r, maxLine: maxLine}
}

// Next is the next message. Blank lines, line endings of either kind and a
// byte order mark are passed over. A [*LineError] concerns one line only and
// the next call goes on behind it; any other error is the source's, io.EOF
// at its end, and final. A last line without a newline counts if it is whole.
func (r *Reader) Next() (Message, error) {
	for {
		line, at, err := r.nextLine()
		if err != nil {
			return nil, err
		}
		trimmed, _ := trimLine(line)
		if len(trimmed) == 0 {
			continue
		}
		m, err := r.dec.decode(line)
		var lineErr *LineError
		if errors.As(err, &lineErr) {
			lineErr.Line, lineErr.Offset = r.line, at
			if r.err != nil && r.start == len(r.buf) && lineErr.Kind == KindMalformed && !bytes.HasSuffix(r.buf, newline) {
				lineErr.Kind = KindTruncated
				lineErr.Msg = "the input ended in the middle of the line: " + lineErr.Msg
			}
		}
		return m, err
	}
}

var newline = []byte{'\n'}

// nextLine is the next line without its newline, good until the next call, and
// its offset. At the end of the input it is what is left, then the error.
func (r *Reader) nextLine() (line []byte, at int64, err error) {
	for {
		end := bytes.IndexByte(r.buf[r.start+r.searched:], '\n')
		if end >= 0 {
			end += r.searched
		}
		have := len(r.buf) - r.start
		switch {
		case r.skipping && end >= 0:
			r.consume(end + 1)
			r.skipping = false
		case r.skipping && r.err == nil:
			r.consume(have)
			r.fill()
		case r.skipping:
			r.consume(have)
			return nil, 0, r.err
		case r.over(end, have):
			return nil, 0, r.tooLong()
		case end >= 0:
			return r.take(end, end+1)
		case r.err == nil:
			r.searched = have
			r.fill()
		case have == 0:
			return nil, 0, r.err
		default:
			return r.take(have, have)
		}
	}
}

// over reports whether the line at hand is too long: its newline is at end, or
// with end < 0 it has have bytes so far. A '\r' before the newline is free.
func (r *Reader) over(end, have int) bool {
	switch {
	case end > r.maxLine:
		return end > r.maxLine+1 || r.buf[r.start+r.maxLine] != '\r'
	case end < 0 && r.err != nil:
		return have > r.maxLine
	case end < 0:
		return have > r.maxLine+1
	}
	return false
}

// take hands out the next n bytes as a line and consumes total.
func (r *Reader) take(n, total int) ([]byte, int64, error) {
	line, at := r.buf[r.start:r.start+n], r.offset
	r.line++
	r.consume(total)
	return line, at, nil
}

func (r *Reader) consume(n int) {
	r.start += n
	r.offset += int64(n)
	r.searched = 0
}

// tooLong reports the line at hand and leaves the rest of it to be skipped.
func (r *Reader) tooLong() error {
	r.line++
	r.skipping = true
	return &LineError{
		Kind: KindTooLong, Msg: "the line is longer than the limit of " + sizeText(r.maxLine),
		Line: r.line, Offset: r.offset, Excerpt: excerpt(r.buf[r.start:], 0),
	}
}

// fill reads once from the source and sets err when it has ended.
func (r *Reader) fill() {
	r.makeRoom()
	for range 100 {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		n = max(0, min(n, cap(r.buf)-len(r.buf)))
		r.buf = r.buf[:len(r.buf)+n]
		if err != nil {
			r.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// makeRoom sees to it that buf has free space, moving or growing it; a large
// buffer is given up once little is in it.
func (r *Reader) makeRoom() {
	rest := r.buf[r.start:]
	switch {
	case cap(r.buf) > keepBuf && len(rest) < readChunk:
		r.buf = append(make([]byte, 0, 2*readChunk), rest...)
	case r.start > 0 && cap(r.buf)-len(rest) >= readChunk/2:
		r.buf = append(r.buf[:0], rest...)
	case cap(r.buf)-len(r.buf) == 0 || r.start > 0:
		size := max(readChunk, 2*len(rest))
		size = max(min(size, r.maxLine+2), len(rest)+readChunk)
		r.buf = append(make([]byte, 0, size), rest...)
	default:
		return
	}
	r.start = 0
}

package tools

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a text file's bytes stand for characters. Only what a byte
// order mark says is decoded; everything else is taken as UTF-8.
type encoding uint8

const (
	encUTF8 encoding = iota
	encUTF8BOM
	encUTF16LE
	encUTF16BE
	encUTF32LE
	encUTF32BE
)

var encodings = [...]struct{ name, bom string }{
	encUTF8:    {"UTF-8", ""},
	encUTF8BOM: {"UTF-8 with a byte order mark", "\xef\xbb\xbf"},
	encUTF16LE: {"UTF-16LE", "\xff\xfe"},
	encUTF16BE: {"UTF-16BE", "\xfe\xff"},
	encUTF32LE: {"UTF-32LE", "\xff\xfe\x00\x00"},
	encUTF32BE: {"UTF-32BE", "\x00\x00\xfe\xff"},
}

func (e encoding) String() string { return encodings[e].name }
func (e encoding) bom() string    { return encodings[e].bom }

// width is the size of a code unit in bytes.
func (e encoding) width() int {
	switch e {
	case encUTF16LE, encUTF16BE:
		return 2
	case encUTF32LE, encUTF32BE:
		return 4
	}
	return 1
}

// detectBOM tells the encoding from the first bytes of a file.
func detectBOM(head []byte) encoding {
	for _, e := range []encoding{encUTF32LE, encUTF32BE, encUTF8BOM, encUTF16LE, encUTF16BE} {
		if bytes.HasPrefix(head, []byte(e.bom())) {
			return e
		}
	}
	return encUTF8
}

// next decodes the first character of wide text b: its value and its size in
// bytes. A broken one is U+FFFD.
func (e encoding) next(b []byte) (rune, int) {
	w := e.width()
	if len(b) < w {
		return utf8.RuneError, len(b)
	}
	switch e {
	case encUTF32LE, encUTF32BE:
		r := rune(e.unit(b))
		if !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		return r, w
	}
	r := rune(e.unit(b))
	if !utf16.IsSurrogate(r) {
		return r, w
	}
	if len(b) >= 2*w {
		if r = utf16.DecodeRune(r, rune(e.unit(b[w:]))); r != utf8.RuneError {
			return r, 2 * w
		}
	}
	return utf8.RuneError, w
}

func (e encoding) unit(b []byte) uint32 {
	switch e {
	case encUTF16LE:
		return uint32(binary.LittleEndian.Uint16(b))
	case encUTF16BE:
		return uint32(binary.BigEndian.Uint16(b))
	case encUTF32LE:
		return binary.LittleEndian.Uint32(b)
	default:
		return binary.BigEndian.Uint32(b)
	}
}

// decode turns the bytes of wide text (without byte order mark) into UTF-8.
func (e encoding) decode(b []byte) string {
	var s strings.Builder
	s.Grow(len(b) / e.width())
	for len(b) > 0 {
		r, n := e.next(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// encode turns UTF-8 text into bytes of this encoding, without a mark.
func (e encoding) encode(text string) []byte {
	switch e {
	case encUTF8, encUTF8BOM:
		return []byte(text)
	}
	var out []byte
	for _, r := range text {
		switch e {
		case encUTF16LE, encUTF16BE:
			for _, u := range utf16.AppendRune(nil, r) {
				out = e.appendUnit(out, uint32(u))
			}
		default:
			out = e.appendUnit(out, uint32(r))
		}
	}
	return out
}

func (e encoding) appendUnit(out []byte, u uint32) []byte {
	switch e {
	case encUTF16LE:
		return binary.LittleEndian.AppendUint16(out, uint16(u))
	case encUTF16BE:
		return binary.BigEndian.AppendUint16(out, uint16(u))
	case encUTF32LE:
		return binary.LittleEndian.AppendUint32(out, u)
	default:
		return binary.BigEndian.AppendUint32(out, u)
	}
}

// offsets maps ascending offsets in the decoded text to offsets in b.
func (e encoding) offsets(b []byte, text []int) []int {
	out := make([]int, 0, len(text))
	at, pos := 0, 0
	for _, want := range text {
		for pos < want && at < len(b) {
			r, n := e.next(b[at:])
			pos += utf8.RuneLen(r)
			at += n
		}
		out = append(out, at)
	}
	return out
}

// wideReader decodes wide text from r to UTF-8, in constant memory.
type wideReader struct {
	r   io.Reader
	enc encoding
	in  []byte // not decoded yet
	out []byte // decoded, not returned yet
	err error
}

func (w *wideReader) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil && len(w.in) == 0 {
			return 0, w.err
		}
		w.fill()
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// fill reads more and decodes what is complete; at the end, everything.
func (w *wideReader) fill() {
	if w.err == nil {
		var buf [16 << 10]byte
		n, err := w.r.Read(buf[:])
		w.in, w.err = append(w.in, buf[:n]...), err
	}
	keep := 0
	if w.err == nil {
		keep = 3 // the longest beginning of a character of four bytes
	}
	w.out = w.out[:0]
	for len(w.in) > keep {
		r, n := w.enc.next(w.in)
		w.out = utf8.AppendRune(w.out, r)
		w.in = w.in[n:]
	}
	w.in = bytes.Clone(w.in)
}

// guessEncoding names the likely encoding of text that isn't UTF-8, from a
// sample of it. It is a guess for the reader, nothing is decoded by it.
func guessEncoding(sample []byte) string {
	alone, pairs, kana, high := 0, 0, 0, 0
	for i := 0; i < len(sample); {
		if sample[i] < 0x80 {
			i++
			continue
		}
		j := i
		for j < len(sample) && sample[j] >= 0x80 {
			j++
		}
		switch run := sample[i:j]; {
		case len(run) == 1:
			alone++
		default:
			pairs += len(run) / 2
			for k := 0; k+1 < len(run); k += 2 {
				if run[k] == 0x82 || run[k] == 0x83 {
					kana++
				}
				if run[k] >= 0xb0 && run[k] <= 0xf7 && run[k+1] >= 0xa1 {
					high++
				}
			}
		}
		i = j
	}
	switch {
	case alone > 2*pairs:
		return "windows-1252 or another single-byte encoding"
	case kana > 0 && kana*3 > pairs:
		return "Shift_JIS"
	case high*10 >= pairs*6:
		return "GBK or another double-byte encoding"
	default:
		return "a legacy encoding, perhaps GBK, Shift_JIS or windows-1251"
	}
}

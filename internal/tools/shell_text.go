package tools

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// cleanOutput turns what a program wrote for a terminal into plain text: no
// escape sequences, lines as a terminal would show them after carriage returns
// and backspaces, no other control characters, valid UTF-8.
func cleanOutput(b []byte) string {
	b = stripEscapes(b)
	if bytes.IndexByte(b, '\r') >= 0 {
		b = applyReturns(b)
	}
	if bytes.IndexByte(b, '\b') >= 0 {
		b = applyBackspaces(b)
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// stripEscapes removes ANSI escape sequences. One that is cut off at the end is
// removed too.
func stripEscapes(b []byte) []byte {
	next := bytes.IndexByte(b, 0x1b)
	if next < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for next >= 0 {
		out = append(out, b[:next]...)
		b = b[next:]
		n, _ := escapeLen(b)
		b = b[n:]
		next = bytes.IndexByte(b, 0x1b)
	}
	return append(out, b...)
}

// maxEscape is the length at which an unfinished sequence counts as text.
const maxEscape = 4096

// escapeLen returns the length of the escape sequence at the start of b, and
// whether it is whole.
func escapeLen(b []byte) (n int, whole bool) {
	if len(b) < 2 {
		return len(b), false
	}
	switch b[1] {
	case '[': // parameters, then a final byte
		for i := 2; i < len(b); i++ {
			switch c := b[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1, true
			case c < 0x20 || c > 0x7e:
				return i, true // malformed: ends here
			}
		}
		return len(b), false
	case ']', 'P', 'X', '^', '_': // a string, ended by BEL or ESC \
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == 0x07:
				return i + 1, true
			case b[i] == 0x1b && i+1 < len(b):
				if b[i+1] == '\\' {
					return i + 2, true
				}
				return i, true
			case i >= maxEscape:
				return 2, true
			}
		}
		return len(b), false
	}
	for i := 1; i < len(b); i++ { // intermediates, then a final byte
		if c := b[i]; c < 0x20 || c > 0x2f {
			if c < 0x30 || c > 0x7e {
				return i, true
			}
			return i + 1, true
		}
	}
	return len(b), false
}

// applyReturns keeps of each line what its last carriage return leaves: a
// progress bar becomes its last state.
func applyReturns(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		line = bytes.TrimRight(line, "\r")
		if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
			line = line[i+1:]
		}
		out = append(out, line...)
		if found {
			out = append(out, '\n')
		}
		b = rest
	}
	return out
}

// applyBackspaces takes back what each backspace overwrites.
func applyBackspaces(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c != '\b' {
			out = append(out, c)
			continue
		}
		if _, size := utf8.DecodeLastRune(out); size > 0 && out[len(out)-1] != '\n' {
			out = out[:len(out)-size]
		}
	}
	return out
}

// unfinished returns how many bytes at the end of b are the beginning of a rune
// or escape sequence of which the rest is still to come.
func unfinished(b []byte) int {
	if i := bytes.LastIndexByte(b, 0x1b); i >= 0 && len(b)-i < 64 {
		if _, whole := escapeLen(b[i:]); !whole {
			return len(b) - i
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// sizeText says a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return fmt.Sprintf("%d MB", n>>20)
	}
}

package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a script, and so the parser's recursion.
const maxDepth = 200

// node is one JSON value that knows where it stands in the file.
type node struct {
	off    int
	kind   byte // '{' '[' '"' '0' (number) 't' 'f' 'n'
	str    string
	raw    []byte // a scalar as it is written
	fields []field
	items  []node
}

type field struct {
	off  int
	key  string
	raw  []byte
	node node
}

// compact appends the value as JSON without comments and white space.
func (n *node) compact(b []byte) []byte {
	switch n.kind {
	case '{':
		b = append(b, '{')
		for i := range n.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, n.fields[i].raw...), ':')
			b = n.fields[i].node.compact(b)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for i := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.items[i].compact(b)
		}
		return append(b, ']')
	}
	return append(b, n.raw...)
}

// what names the value's type for messages.
func (n *node) what() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// syntaxError is a fault at a byte offset; Parse turns it into a ParseError.
type syntaxError struct {
	off int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

func failAt(off int, format string, args ...any) error {
	return &syntaxError{off: off, msg: fmt.Sprintf(format, args...)}
}

// scanner reads JSON values with // and /* */ comments and trailing commas, one
// after the other.
type scanner struct {
	src []byte
	pos int
}

// space skips white space and comments.
func (s *scanner) space() error {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s.pos++
		case bytes.HasPrefix(s.src[s.pos:], []byte("//")):
			end := bytes.IndexByte(s.src[s.pos:], '\n')
			if end < 0 {
				end = len(s.src) - s.pos
			}
			s.pos += end
		case bytes.HasPrefix(s.src[s.pos:], []byte("/*")):
			end := bytes.Index(s.src[s.pos+2:], []byte("*/"))
			if end < 0 {
				return failAt(s.pos, "this comment is not closed; end it with */")
			}
			s.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}

// next reads the next value of the file; ok is false at its end.
func (s *scanner) next() (n node, ok bool, err error) {
	if err := s.space(); err != nil {
		return node{}, false, err
	}
	if s.pos == len(s.src) {
		return node{}, false, nil
	}
	n, err = s.value(0)
	return n, err == nil, err
}

func (s *scanner) value(depth int) (node, error) {
	if err := s.space(); err != nil {
		return node{}, err
	}
	if depth > maxDepth {
		return node{}, failAt(s.pos, "nested more than %d deep", maxDepth)
	}
	if s.pos == len(s.src) {
		return node{}, failAt(s.pos, "the file ends in the middle of a value")
	}
	switch c := s.src[s.pos]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.list(depth)
	case c == '"':
		return s.text()
	default:
		return s.scalar()
	}
}

func (s *scanner) object(depth int) (node, error) {
	n := node{off: s.pos, kind: '{'}
	s.pos++
	for {
		done, err := s.closing('}', len(n.fields) > 0)
		if err != nil || done {
			return n, err
		}
		if s.src[s.pos] != '"' {
			return n, failAt(s.pos, "a key in double quotes is expected here, not %q", s.char())
		}
		key, err := s.text()
		if err != nil {
			return n, err
		}
		if err := s.space(); err != nil {
			return n, err
		}
		if s.pos == len(s.src) || s.src[s.pos] != ':' {
			return n, failAt(s.pos, "a colon is expected after the key %q", key.str)
		}
		s.pos++
		v, err := s.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.fields = append(n.fields, field{off: key.off, key: key.str, raw: key.raw, node: v})
	}
}

func (s *scanner) list(depth int) (node, error) {
	n := node{off: s.pos, kind: '['}
	s.pos++
	for {
		done, err := s.closing(']', len(n.items) > 0)
		if err != nil || done {
			return n, err
		}
		v, err := s.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, v)
	}
}

// closing steps over the comma before the next element, or over the closing
// bracket, and reports whether it was that.
func (s *scanner) closing(bracket byte, comma bool) (bool, error) {
	if err := s.space(); err != nil {
		return false, err
	}
	if comma && s.pos < len(s.src) && s.src[s.pos] == ',' {
		s.pos++
		comma = false
		if err := s.space(); err != nil {
			return false, err
		}
	}
	switch {
	case s.pos == len(s.src):
		return false, failAt(s.pos, "the file ends before the closing %q", bracket)
	case s.src[s.pos] == bracket:
		s.pos++
		return true, nil
	case comma:
		return false, failAt(s.pos, "a comma or %q is expected here, not %q", bracket, s.char())
	}
	return false, nil
}

func (s *scanner) char() rune {
	r, _ := utf8.DecodeRune(s.src[s.pos:])
	return r
}

func (s *scanner) text() (node, error) {
	start := s.pos
	for i := start + 1; i < len(s.src); i++ {
		switch s.src[i] {
		case '\\':
			i++
		case '\n':
			return node{}, failAt(start, "this string is not closed on its line; a line break within is written \\n, or the text is a list of strings")
		case '"':
			raw := s.src[start : i+1]
			if !utf8.Valid(raw) {
				return node{}, failAt(start, "this string is not valid UTF-8")
			}
			n := node{off: start, kind: '"', raw: raw}
			if err := json.Unmarshal(raw, &n.str); err != nil {
				return node{}, failAt(start, "this string is not valid JSON: %s", jsonFault(err))
			}
			s.pos = i + 1
			return n, nil
		}
	}
	return node{}, failAt(start, "this string is not closed")
}

func (s *scanner) scalar() (node, error) {
	start := s.pos
	end := start
	for end < len(s.src) && !strings.ContainsRune(" \t\r\n,:{}[]\"/", rune(s.src[end])) {
		end++
	}
	raw := s.src[start:end]
	n := node{off: start, raw: raw}
	switch {
	case len(raw) == 0:
		return n, failAt(start, "a value is expected here, not %q", s.char())
	case string(raw) == "true", string(raw) == "false", string(raw) == "null":
		n.kind = raw[0]
	case json.Valid(raw):
		n.kind = '0'
	default:
		return n, failAt(start, "%q is not a JSON value; a text needs double quotes", clip(string(raw), 40))
	}
	s.pos = end
	return n, nil
}

func jsonFault(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "invalid character ")
}

// clip shortens s to at most n bytes at the border of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

package openai

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxDepth is the deepest nesting that is accepted in arguments.
const maxDepth = 128

// fit says how an input relates to what was looked for. For a longer input that
// begins with the same bytes, fitYes and fitNo stay what they are.
type fit uint8

const (
	fitNo   fit = iota // it is something else
	fitMore            // so far it may be; it ends too early to tell
	fitYes
)

// repairJSON reads one JSON object, array or other value at the beginning of
// src and returns it as valid JSON with the number of bytes read. What was
// valid is kept byte for byte. Repaired is what has one plausible meaning:
// trailing commas, a comma missing at a line end, single, triple and
// <escape>-quoted strings, raw control characters in strings, escapes that JSON
// does not know, unquoted keys, comments, True, False, None, and numbers such
// as +1 and .5. With complete, src is all there will be, and objects and arrays
// that lack only their closing brackets get them; strings are never completed.
func repairJSON(src string, complete bool) (out string, n int, f fit) {
	r := repairer{src: src, complete: complete, out: make([]byte, 0, len(src)+8)}
	f = r.value(0)
	if f != fitYes {
		return "", 0, f
	}
	if !json.Valid(r.out) {
		return "", 0, fitNo
	}
	return strings.TrimSpace(string(r.out)), r.i, fitYes
}

type repairer struct {
	src      string
	i        int
	out      []byte
	complete bool
}

// end is the result of running out of input where a value is not complete.
func (r *repairer) end() fit {
	if r.complete {
		return fitNo
	}
	return fitMore
}

// space copies white space and drops comments.
func (r *repairer) space() fit {
	for r.i < len(r.src) {
		switch c := r.src[r.i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.out = append(r.out, c)
			r.i++
		case c == '/':
			if f := r.comment(); f != fitYes {
				return f
			}
		default:
			return fitYes
		}
	}
	return fitYes
}

func (r *repairer) comment() fit {
	rest := r.src[r.i:]
	var closer string
	switch {
	case len(rest) == 1:
		return r.end()
	case rest[1] == '/':
		closer = "\n"
	case rest[1] == '*':
		closer = "*/"
	default:
		return fitNo
	}
	n := strings.Index(rest, closer)
	if n < 0 {
		return r.end()
	}
	r.i += n + len(closer)
	return fitYes
}

func (r *repairer) value(depth int) fit {
	if f := r.space(); f != fitYes {
		return f
	}
	if r.i == len(r.src) {
		return r.end()
	}
	switch c := r.src[r.i]; {
	case depth > maxDepth:
		return fitNo
	case c == '{':
		return r.list(depth, '}', r.member)
	case c == '[':
		return r.list(depth, ']', r.value)
	case c == '"' || c == '\'':
		return r.str()
	case c == '<':
		return r.escapeTag()
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return r.number()
	}
	return r.word()
}

// list reads an object or array of elements up to its closing bracket.
func (r *repairer) list(depth int, closer byte, element func(int) fit) fit {
	r.out = append(r.out, r.src[r.i])
	r.i++
	for first := true; ; first = false {
		done, f := r.separator(first, closer)
		if done || f != fitYes {
			return f
		}
		if f := element(depth + 1); f != fitYes {
			return f
		}
	}
}

// separator reads what stands between two elements, and reports whether the
// list is done. A comma is written only once an element follows it.
func (r *repairer) separator(first bool, closer byte) (done bool, f fit) {
	mark := len(r.out)
	if f := r.space(); f != fitYes {
		return false, f
	}
	comma := !first && r.i < len(r.src) && r.src[r.i] == ','
	if comma {
		r.i++
		r.out = append(r.out, ',')
		mark = len(r.out) - 1
		if f := r.space(); f != fitYes {
			return false, f
		}
	}
	switch {
	case r.i == len(r.src):
		if !r.complete {
			return false, fitMore
		}
		r.uncomma(comma, mark)
		r.out = append(r.out, closer)
		return true, fitYes
	case r.src[r.i] == closer:
		r.uncomma(comma, mark)
		r.out = append(r.out, closer)
		r.i++
		return true, fitYes
	case first || comma:
		return false, fitYes
	case bytes.IndexByte(r.out[mark:], '\n') >= 0 && (r.src[r.i] == '"' || r.src[r.i] == '{'):
		r.out = append(r.out, ',')
		return false, fitYes
	}
	return false, fitNo
}

// uncomma takes back a comma written at mark.
func (r *repairer) uncomma(comma bool, mark int) {
	if comma {
		r.out = append(r.out[:mark], r.out[mark+1:]...)
	}
}

// member reads `key: value`.
func (r *repairer) member(depth int) fit {
	if f := r.key(); f != fitYes {
		return f
	}
	if f := r.space(); f != fitYes {
		return f
	}
	if r.i == len(r.src) {
		return r.end()
	}
	if r.src[r.i] != ':' {
		return fitNo
	}
	r.out = append(r.out, ':')
	r.i++
	return r.value(depth)
}

func (r *repairer) key() fit {
	if c := r.src[r.i]; c == '"' || c == '\'' {
		return r.str()
	}
	start := r.i
	for r.i < len(r.src) && identByte(r.src[r.i]) {
		r.i++
	}
	switch {
	case r.i == len(r.src):
		return r.end()
	case r.i == start:
		return fitNo
	}
	r.out = appendString(r.out, r.src[start:r.i])
	return fitYes
}

func identByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// str reads a string in single, double or triple quotes.
func (r *repairer) str() fit {
	quote := r.src[r.i : r.i+1]
	rest := r.src[r.i+1:]
	if strings.HasPrefix(rest, quote) {
		if len(rest) == 1 && !r.complete {
			return fitMore
		}
		if len(rest) > 1 && rest[1] == quote[0] {
			quote = r.src[r.i : r.i+3]
		}
	}
	r.i += len(quote)
	r.out = append(r.out, '"')
	for r.i < len(r.src) {
		c := r.src[r.i]
		switch {
		case c == quote[0]:
			if closed, f := r.closes(quote); f != fitYes {
				return f
			} else if closed {
				return fitYes
			}
			r.out = appendInner(r.out, c)
			r.i++
		case c == '\\':
			if f := r.escape(); f != fitYes {
				return f
			}
		default:
			r.out = appendInner(r.out, c)
			r.i++
		}
	}
	return r.end()
}

// closes reports whether the closing quote is next, and takes it.
func (r *repairer) closes(quote string) (bool, fit) {
	rest := r.src[r.i:]
	if len(rest) < len(quote) && strings.HasPrefix(quote, rest) {
		return false, r.end()
	}
	if !strings.HasPrefix(rest, quote) {
		return false, fitYes
	}
	r.i += len(quote)
	r.out = append(r.out, '"')
	return true, fitYes
}

// appendInner appends a byte of a string's value.
func appendInner(dst []byte, c byte) []byte {
	if c < ' ' || c == '"' || c == '\\' {
		return appendEscape(dst, c)
	}
	return append(dst, c)
}

// escape reads a backslash and what belongs to it.
func (r *repairer) escape() fit {
	rest := r.src[r.i:]
	if len(rest) < 2 {
		return r.end()
	}
	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.out = append(r.out, rest[:2]...)
		r.i += 2
		return fitYes
	case '\'':
		r.out = append(r.out, '\'')
		r.i += 2
		return fitYes
	case 'u':
		return r.unicode(rest)
	}
	r.out = append(r.out, '\\', '\\') // it stands for itself
	r.i++
	return fitYes
}

func (r *repairer) unicode(rest string) fit {
	for k := 2; k < 6; k++ {
		if k == len(rest) {
			return r.end()
		}
		if unhex(rest[k]) < 0 {
			r.out = append(r.out, '\\', '\\')
			r.i++
			return fitYes
		}
	}
	r.out = append(r.out, rest[:6]...)
	r.i += 6
	return fitYes
}

// escapeTag reads <escape>text<escape>, the quotes of FunctionGemma.
func (r *repairer) escapeTag() fit {
	const tag = "<escape>"
	rest := r.src[r.i:]
	if len(rest) < len(tag) && strings.HasPrefix(tag, rest) {
		return r.end()
	}
	if !strings.HasPrefix(rest, tag) {
		return fitNo
	}
	text, _, ok := strings.Cut(rest[len(tag):], tag)
	if !ok {
		return r.end()
	}
	r.out = appendString(r.out, text)
	r.i += len(text) + 2*len(tag)
	return fitYes
}

func (r *repairer) number() fit {
	start := r.i
	for r.i < len(r.src) && (tokenByte(r.src[r.i]) || r.src[r.i] == '+') {
		r.i++
	}
	if r.i == len(r.src) && !r.complete {
		return fitMore
	}
	token := strings.TrimPrefix(r.src[start:r.i], "+")
	if strings.HasPrefix(token, ".") {
		token = "0" + token
	}
	if !json.Valid([]byte(token)) {
		return fitNo
	}
	r.out = append(r.out, token...)
	return fitYes
}

func (r *repairer) word() fit {
	start := r.i
	for r.i < len(r.src) && identByte(r.src[r.i]) {
		r.i++
	}
	if r.i == len(r.src) && !r.complete && r.i-start < 16 {
		return fitMore
	}
	switch r.src[start:r.i] {
	case "true", "True":
		r.out = append(r.out, "true"...)
	case "false", "False":
		r.out = append(r.out, "false"...)
	case "null", "None", "undefined":
		r.out = append(r.out, "null"...)
	default:
		return fitNo
	}
	return fitYes
}

// sameJSON reports whether two JSON texts mean the same.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	ja, errA := json.Marshal(x)
	jb, errB := json.Marshal(y)
	return errA == nil && errB == nil && string(ja) == string(jb)
}

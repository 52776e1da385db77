package openai

import "encoding/json"

// argScan follows the arguments of a tool call while they come, and says how
// far they are sound: the beginning of a JSON object in which nothing will need
// repair. It stops at the first byte that is not strict JSON.
type argScan struct {
	schema toolSchema // properties that the first key is expected to be one of

	pos   int    // bytes looked at
	start int    // where the object begins
	safe  int    // the bytes start..safe are sound; 0 until the first key is known
	done  bool   // the object is complete
	bad   bool   // not strict JSON: what follows is for the tolerant parser
	stack []byte // open '{' and '['
	want  argWant
	token int // where the current string, number or literal began
	hex   int // hexadecimal digits of an escape still to come
	keyed bool
}

type argWant uint8

const (
	wantStart argWant = iota
	wantKeyOrEnd
	wantKey
	wantColon
	wantValue
	wantValueOrEnd
	wantComma
	inKey
	inString
	inKeyEscape
	inStringEscape
	inToken
)

// feed looks at raw, of which it has seen the first pos bytes before.
func (s *argScan) feed(raw []byte) {
	for s.pos < len(raw) && !s.done && !s.bad {
		c := raw[s.pos]
		if s.want == inToken && !tokenByte(c) {
			s.endToken(raw)
			continue
		}
		s.bad = !s.step(raw, c)
		s.pos++
		s.advance()
	}
}

// advance moves safe up to pos where nothing before pos can turn out wrong.
func (s *argScan) advance() {
	if s.bad || !s.keyed {
		return
	}
	switch s.want {
	case inString, inKey, wantComma, wantColon:
		if s.hex == 0 {
			s.safe = s.pos
		}
	case wantKeyOrEnd, wantValueOrEnd:
		s.safe = s.pos
	}
	if s.done {
		s.safe = s.pos
	}
}

func (s *argScan) step(raw []byte, c byte) bool {
	switch s.want {
	case inKey, inString:
		return s.inString(raw, c)
	case inKeyEscape, inStringEscape:
		return s.inEscape(c)
	case inToken:
		return true
	}
	if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		return true
	}
	return s.between(c)
}

// between takes a byte outside strings and tokens.
func (s *argScan) between(c byte) bool {
	switch s.want {
	case wantStart:
		s.start = s.pos
		return c == '{' && s.push(c)
	case wantKeyOrEnd, wantKey:
		if c == '}' && s.want == wantKeyOrEnd {
			return s.pop('{')
		}
		s.want, s.token = inKey, s.pos
		return c == '"'
	case wantColon:
		s.want = wantValue
		return c == ':'
	case wantComma:
		return s.comma(c)
	}
	return s.value(c)
}

func (s *argScan) comma(c byte) bool {
	switch {
	case c == '}':
		return s.pop('{')
	case c == ']':
		return s.pop('[')
	case c != ',':
		return false
	case s.stack[len(s.stack)-1] == '{':
		s.want = wantKey
	default:
		s.want = wantValue
	}
	return true
}

func (s *argScan) value(c byte) bool {
	switch {
	case c == ']' && s.want == wantValueOrEnd:
		return s.pop('[')
	case c == '{' || c == '[':
		return s.push(c)
	case c == '"':
		s.want, s.token = inString, s.pos
		return true
	}
	s.want, s.token = inToken, s.pos
	return tokenByte(c)
}

func (s *argScan) push(c byte) bool {
	s.stack = append(s.stack, c)
	s.want = wantValueOrEnd
	if c == '{' {
		s.want = wantKeyOrEnd
	}
	return len(s.stack) <= maxDepth
}

func (s *argScan) pop(open byte) bool {
	n := len(s.stack) - 1
	if s.stack[n] != open {
		return false
	}
	s.stack = s.stack[:n]
	s.want = wantComma
	s.done = n == 0
	return true
}

func (s *argScan) inString(raw []byte, c byte) bool {
	switch {
	case c == '\\' && s.want == inKey:
		s.want = inKeyEscape
	case c == '\\':
		s.want = inStringEscape
	case c != '"':
		return c >= ' '
	case s.want == inString:
		s.want = wantComma
	default:
		s.want = wantColon
		return s.firstKey(raw[s.token : s.pos+1])
	}
	return true
}

// firstKey holds everything back if the first key is none of the tool's: the
// arguments may be wrapped in something.
func (s *argScan) firstKey(quoted []byte) bool {
	if s.keyed || len(s.stack) > 1 {
		return true
	}
	var key string
	if json.Unmarshal(quoted, &key) != nil {
		return false
	}
	s.keyed = len(s.schema.Properties) == 0 || s.schema.has(key)
	return s.keyed
}

func (s *argScan) inEscape(c byte) bool {
	if s.hex > 0 {
		if unhex(c) < 0 {
			return false
		}
		if s.hex--; s.hex > 0 {
			return true
		}
	} else {
		switch c {
		case 'u':
			s.hex = 4
			return true
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		default:
			return false
		}
	}
	if s.want == inKeyEscape {
		s.want = inKey
	} else {
		s.want = inString
	}
	return true
}

func (s *argScan) endToken(raw []byte) {
	s.bad = !json.Valid(raw[s.token:s.pos])
	s.want = wantComma
	s.advance()
}

// tokenByte reports whether c may stand in a number or literal.
func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

package openai

import "unicode/utf8"

// textChunk is what the common chunk of a streamed answer holds. The slices
// point into the event or the scanner's buffer.
type textChunk struct {
	id, model []byte
	text      []byte
	thinking  []byte
	call      callChunk
	hasCall   bool
}

// callChunk is a fragment of one tool call: its index, and what of its id, name
// and arguments the chunk brings.
type callChunk struct {
	index          int
	id, name, args []byte
}

// fastChunk decodes the chunk that makes up nearly all of a stream: one choice
// (index 0) with a text or reasoning fragment, or a fragment of one tool call
// with an index below 10, and no finish reason or usage. It gives up, ok false, on anything else, without judging it; the
// caller then decodes with encoding/json. For valid UTF-8 it agrees with that;
// invalid bytes within strings are passed through, because a character may be
// split between two chunks.
func fastChunk(data []byte, scratch *[]byte) (c textChunk, ok bool) {
	s := fastScan{b: data, scratch: (*scratch)[:0]}
	ok = s.chunk(&c) && s.atEnd()
	*scratch = s.scratch
	return c, ok
}

// fastScan walks over a JSON text. Its methods report false to give up.
type fastScan struct {
	b       []byte
	i       int
	scratch []byte // unescaped strings
}

func (s *fastScan) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *fastScan) atEnd() bool {
	s.space()
	return s.i == len(s.b)
}

// byte takes c, after white space.
func (s *fastScan) byte(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// object walks an object, calling member for each key with the value next.
func (s *fastScan) object(member func(key []byte) bool) bool {
	if !s.byte('{') {
		return false
	}
	if s.byte('}') {
		return true
	}
	for {
		key, ok := s.key()
		if !ok || !member(key) {
			return false
		}
		if s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

// key takes `"key":`. Only lower case, digits and '_' are taken, for which
// encoding/json's case-insensitive matching is the same as equality.
func (s *fastScan) key() ([]byte, bool) {
	if !s.byte('"') {
		return nil, false
	}
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		c := s.b[s.i]
		if c == '"' {
			key := s.b[start:s.i]
			s.i++
			return key, s.byte(':')
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			break
		}
	}
	return nil, false
}

func (s *fastScan) chunk(c *textChunk) bool {
	var seen uint8
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return once(&seen, 1) && s.stringInto(&c.id)
		case "model":
			return once(&seen, 2) && s.stringInto(&c.model)
		case "choices":
			return once(&seen, 4) && s.choices(c)
		case "usage", "error":
			return s.null()
		}
		return s.skip()
	})
	return ok && seen&4 != 0 // without choices it may be an error
}

func (s *fastScan) choices(c *textChunk) bool {
	return s.byte('[') && s.choice(c) && s.byte(']')
}

func (s *fastScan) choice(c *textChunk) bool {
	var seen uint8
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return once(&seen, 1) && s.byte('0') && !s.digit()
		case "delta":
			return once(&seen, 2) && s.delta(c)
		case "message", "finish_reason":
			return s.null()
		}
		return s.skip()
	})
}

func (s *fastScan) delta(c *textChunk) bool {
	var seen uint8
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return once(&seen, 1) && s.stringInto(&c.text)
		case "reasoning_content", "reasoning":
			return s.null() || once(&seen, 2) && s.stringInto(&c.thinking)
		case "tool_calls":
			return s.null() || once(&seen, 4) && s.byte('[') && s.call(c) && s.byte(']')
		case "refusal", "function_call":
			return s.null()
		}
		return s.skip()
	})
}

// call takes a fragment of a tool call. Without an index it is left to the
// slow path, which tells by other signs to which call it belongs; so are
// invalid bytes, since arguments are passed on while they come.
func (s *fastScan) call(c *textChunk) bool {
	c.hasCall = true
	var seen uint8
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return once(&seen, 1) && s.small(&c.call.index)
		case "id":
			return once(&seen, 2) && s.stringInto(&c.call.id)
		case "function":
			return once(&seen, 4) && s.function(c)
		}
		return s.skip()
	})
	k := &c.call
	return ok && seen&1 != 0 && utf8.Valid(k.id) && utf8.Valid(k.name) && utf8.Valid(k.args)
}

func (s *fastScan) function(c *textChunk) bool {
	var seen uint8
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			return once(&seen, 1) && s.stringInto(&c.call.name)
		case "arguments":
			return once(&seen, 2) && s.stringInto(&c.call.args)
		}
		return s.skip()
	})
}

// small takes a number of one digit.
func (s *fastScan) small(n *int) bool {
	s.space()
	if s.i == len(s.b) || s.b[s.i] < '0' || s.b[s.i] > '9' {
		return false
	}
	*n = int(s.b[s.i] - '0')
	s.i++
	return !s.digit()
}

func once(seen *uint8, bit uint8) bool {
	again := *seen&bit != 0
	*seen |= bit
	return !again
}

func (s *fastScan) digit() bool {
	return s.i < len(s.b) && (s.b[s.i] >= '0' && s.b[s.i] <= '9' || s.b[s.i] == '.' || s.b[s.i] == 'e' || s.b[s.i] == 'E')
}

func (s *fastScan) null() bool {
	s.space()
	return s.literal("null")
}

func (s *fastScan) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// skip takes a value that is not read: a string, a literal, a plain number or
// an empty list or object.
func (s *fastScan) skip() bool {
	s.space()
	if s.i == len(s.b) {
		return false
	}
	switch c := s.b[s.i]; c {
	case '"':
		_, ok := s.str()
		return ok
	case 'n':
		return s.literal("null")
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case '[':
		s.i++
		return s.byte(']')
	case '{':
		s.i++
		return s.byte('}')
	default:
		return s.number()
	}
}

// number takes an integer without a leading zero.
func (s *fastScan) number() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	n := s.i - start
	return n > 0 && (n == 1 || s.b[start] != '0') && !s.digit()
}

// stringInto takes a string, or null, which leaves dst alone.
func (s *fastScan) stringInto(dst *[]byte) bool {
	s.space()
	if s.literal("null") {
		return true
	}
	v, ok := s.str()
	if ok {
		*dst = v
	}
	return ok
}

// str takes a string and returns its value.
func (s *fastScan) str() ([]byte, bool) {
	if !s.byte('"') {
		return nil, false
	}
	for start := s.i; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], true
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// escaped takes the rest of a string that began at start and holds escapes.
func (s *fastScan) escaped(start int) ([]byte, bool) {
	from := len(s.scratch)
	s.scratch = append(s.scratch, s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return s.scratch[from:len(s.scratch):len(s.scratch)], true
		case c < ' ':
			return nil, false
		case c != '\\':
			s.scratch = append(s.scratch, c)
		case !s.escape():
			return nil, false
		}
	}
	return nil, false
}

// escape takes what follows a backslash. Surrogates are left to encoding/json.
func (s *fastScan) escape() bool {
	if s.i == len(s.b) {
		return false
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		return s.unicode()
	default:
		return false
	}
	s.scratch = append(s.scratch, c)
	return true
}

func (s *fastScan) unicode() bool {
	if len(s.b)-s.i < 4 {
		return false
	}
	var r rune
	for _, c := range s.b[s.i : s.i+4] {
		n := unhex(c)
		if n < 0 {
			return false
		}
		r = r<<4 | rune(n)
	}
	if r >= 0xd800 && r <= 0xdfff {
		return false
	}
	s.i += 4
	s.scratch = utf8.AppendRune(s.scratch, r)
	return true
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

package gemini

import (
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// fastChunk is a chunk with one candidate that has one unsigned part of text:
// nearly all of a stream. Its names refer to the parsed bytes.
type fastChunk struct {
	text    string
	thought bool
	usage   usage
	counted bool
	model   []byte
	id      []byte
}

// parse reads data in one pass, in any order and spacing of the members that
// it knows. It returns false for anything else, which is then encoding/json's
// to judge; what it accepts means the same to both (see FuzzFastChunk).
func (f *fastChunk) parse(data []byte) bool {
	s := scanner{b: data}
	found := false
	s.object(func(key []byte) int {
		switch string(key) {
		case "candidates":
			found = true
			s.only(func() { f.candidate(&s) })
			return 0
		case "usageMetadata":
			f.counted = true
			f.counts(&s)
			return 1
		case "modelVersion":
			f.model = s.plain()
			return 2
		case "responseId":
			f.id = s.plain()
			return 3
		case "createTime":
			s.plain()
			return 4
		}
		return unknown
	})
	s.space()
	return !s.bad && found && s.i == len(s.b)
}

func (f *fastChunk) candidate(s *scanner) {
	found := false
	s.object(func(key []byte) int {
		switch string(key) {
		case "content":
			found = true
			f.content(s)
			return 0
		case "index":
			if s.number() != 0 { // which sets bad itself
				s.bad = true
			}
			return 1
		}
		return unknown
	})
	s.bad = s.bad || !found
}

func (f *fastChunk) content(s *scanner) {
	found := false
	s.object(func(key []byte) int {
		switch string(key) {
		case "parts":
			found = true
			s.only(func() { f.part(s) })
			return 0
		case "role":
			s.plain()
			return 1
		}
		return unknown
	})
	s.bad = s.bad || !found
}

func (f *fastChunk) part(s *scanner) {
	s.object(func(key []byte) int {
		switch string(key) {
		case "text":
			f.text = s.text()
			return 0
		case "thought":
			f.thought = s.boolean()
			return 1
		}
		return unknown
	})
}

func (f *fastChunk) counts(s *scanner) {
	s.object(func(key []byte) int {
		switch string(key) {
		case "promptTokenCount":
			f.usage.Prompt = s.number()
			return 0
		case "cachedContentTokenCount":
			f.usage.Cached = s.number()
			return 1
		case "candidatesTokenCount":
			f.usage.Candidates = s.number()
			return 2
		case "thoughtsTokenCount":
			f.usage.Thoughts = s.number()
			return 3
		case "toolUsePromptTokenCount":
			f.usage.ToolUse = s.number()
			return 4
		case "totalTokenCount":
			s.number()
			return 5
		case "trafficType":
			s.plain()
			return 6
		case "promptTokensDetails":
			s.details()
			return 7
		case "cacheTokensDetails":
			s.details()
			return 8
		case "candidatesTokensDetails":
			s.details()
			return 9
		}
		return unknown
	})
}

// unknown is the answer to a key that the fast path leaves to encoding/json.
const unknown = -1

// scanner reads strict JSON of simple shapes from b. Whatever it does not know
// makes it bad, and stay so.
type scanner struct {
	b   []byte
	i   int
	bad bool
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// next skips space and consumes c if it follows.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) want(c byte) {
	if !s.next(c) {
		s.bad = true
	}
}

// object reads an object. member reads the value of a key and returns the
// key's number; a number twice, or unknown, is bad.
func (s *scanner) object(member func(key []byte) int) {
	s.want('{')
	if s.bad || s.next('}') {
		return
	}
	seen := 0
	for !s.bad {
		key := s.plain()
		s.want(':')
		if s.bad {
			return
		}
		n := member(key)
		if n == unknown || seen&(1<<n) != 0 {
			s.bad = true
			return
		}
		seen |= 1 << n
		if s.next('}') {
			return
		}
		s.want(',')
	}
}

// only reads an array of exactly one element.
func (s *scanner) only(element func()) {
	s.want('[')
	if s.bad {
		return
	}
	element()
	s.want(']')
}

// details skips a list of {"modality":"TEXT","tokenCount":3}.
func (s *scanner) details() {
	s.want('[')
	if s.bad || s.next(']') {
		return
	}
	for !s.bad {
		s.object(func(key []byte) int {
			switch string(key) {
			case "modality":
				s.plain()
				return 0
			case "tokenCount":
				s.number()
				return 1
			}
			return unknown
		})
		if s.next(']') {
			return
		}
		s.want(',')
	}
}

// number reads a small natural number.
func (s *scanner) number() int {
	s.space()
	start, n := s.i, 0
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
		if s.i-start > 9 {
			s.bad = true
			return 0
		}
	}
	if s.i == start || s.i > start+1 && s.b[start] == '0' {
		s.bad = true
	}
	if s.i < len(s.b) {
		switch s.b[s.i] {
		case '.', 'e', 'E':
			s.bad = true
		}
	}
	return n
}

func (s *scanner) boolean() bool {
	s.space()
	rest := s.b[s.i:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		s.i += 4
		return true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		s.i += 5
		return false
	}
	s.bad = true
	return false
}

// plain reads a string of printable ASCII without escapes, as it is.
func (s *scanner) plain() []byte {
	s.want('"')
	if s.bad {
		return nil
	}
	b := s.b[s.i:]
	for i, c := range b {
		switch {
		case c == '"':
			s.i += i + 1
			return b[:i]
		case c == '\\' || c < 0x20 || c >= utf8.RuneSelf:
			s.bad = true
			return nil
		}
	}
	s.bad = true
	return nil
}

// text reads any valid string but one with escaped surrogates.
func (s *scanner) text() string {
	s.want('"')
	if s.bad {
		return ""
	}
	b := s.b[s.i:]
	ascii, escaped := true, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i += i + 1
			return s.value(b[:i], ascii, escaped)
		case c == '\\':
			escaped = true
			i++ // whatever it is, it is not the end
		case c < 0x20:
			s.bad = true
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.bad = true
	return ""
}

func (s *scanner) value(raw []byte, ascii, escaped bool) string {
	if !ascii && !utf8.Valid(raw) {
		s.bad = true
		return ""
	}
	if !escaped {
		return string(raw)
	}
	v, ok := model.UnescapeJSON(raw)
	s.bad = s.bad || !ok
	return v
}

package tools

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// lineMatcher decides whether a line matches. It gives ripgrep's answers where
// Go's regexp has others: bytes that aren't UTF-8 match nothing, and \b knows
// all letters. It is safe for concurrent use.
type lineMatcher struct {
	re    *regexp.Regexp
	prog  *syntax.Prog // for the lines where re isn't right
	words bool         // the pattern has \b or \B

	need []needle // a line that has none of these can't match; nil: any may
	pure bool     // a line that has one of them does match
}

func newLineMatcher(parsed *syntax.Regexp, re *regexp.Regexp) (*lineMatcher, error) {
	simple := parsed.Simplify()
	prog, err := syntax.Compile(simple)
	if err != nil {
		return nil, err
	}
	m := &lineMatcher{re: re, prog: prog, words: hasWordBoundary(simple)}
	if lits, ok := requiredLiterals(simple); ok {
		for _, l := range lits {
			m.need = append(m.need, newNeedle(l))
		}
		m.pure = isPure(simple) && !m.need[0].fold
	}
	return m, nil
}

// match decides on a line without its line end.
func (m *lineMatcher) match(line []byte) bool {
	if m.words && !isASCIIBytes(line) {
		return runProg(m.prog, line)
	}
	return m.re.Match(line) && (utf8.Valid(line) || runProg(m.prog, line))
}

// next finds the first matching line in text[from:], which ends with a line's
// end (or the file's): its bounds, without line end; false when there is none.
func (m *lineMatcher) next(text []byte, from int, skip *needleState) (start, end int, ok bool) {
	for from < len(text) {
		if m.need != nil {
			at := skip.next(m.need, text, from)
			if at < 0 {
				return 0, 0, false
			}
			start = 1 + bytes.LastIndexByte(text[from:at], '\n') + from
			end = lineEnd(text, at)
		} else {
			start, end = from, lineEnd(text, from)
		}
		if m.need != nil && m.pure || m.match(text[start:end]) {
			return start, end, true
		}
		from = end + 1
	}
	return 0, 0, false
}

func lineEnd(text []byte, from int) int {
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(text)
}

func isASCIIBytes(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// literal is a piece of text that must be there; fold means in any case.
type literal struct {
	text string
	fold bool
}

// maxNeedles bounds how many literals are looked for side by side.
const maxNeedles = 8

// requiredLiterals returns literals one of which is in every match; false when
// there are none worth looking for.
func requiredLiterals(re *syntax.Regexp) ([]literal, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		l := literalOf(re)
		return []literal{l}, len(l.text) > 0
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiterals(re.Sub[0])
	case syntax.OpConcat:
		return bestOf(re.Sub)
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			l, ok := requiredLiterals(sub)
			if !ok || len(all)+len(l) > maxNeedles {
				return nil, false
			}
			all = append(all, l...)
		}
		return all, true
	}
	return nil, false
}

// bestOf returns the most telling literals of the parts of a sequence.
func bestOf(parts []*syntax.Regexp) (best []literal, ok bool) {
	score := 0
	for _, sub := range parts {
		l, has := requiredLiterals(sub)
		if !has {
			continue
		}
		if s := shortest(l)*16 - len(l); !ok || s > score {
			best, ok, score = l, true, s
		}
	}
	return best, ok
}

func shortest(all []literal) int {
	n := len(all[0].text)
	for _, l := range all {
		n = min(n, len(l.text))
	}
	return n
}

// literalOf returns the longest useful piece of a literal. In any case, only
// ASCII is used, without k and s, which have more than two forms.
func literalOf(re *syntax.Regexp) literal {
	if re.Flags&syntax.FoldCase == 0 {
		return literal{text: string(re.Rune)}
	}
	best, run := "", strings.Builder{}
	take := func() {
		if run.Len() > len(best) {
			best = run.String()
		}
		run.Reset()
	}
	for _, r := range re.Rune {
		if r >= utf8.RuneSelf || r|0x20 == 'k' || r|0x20 == 's' {
			take()
			continue
		}
		run.WriteRune(r)
	}
	take()
	return literal{text: strings.ToLower(best), fold: true}
}

// isPure reports whether re is nothing but a literal or a choice of literals.
func isPure(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0 && utf8.ValidString(string(re.Rune))
	case syntax.OpCapture:
		return isPure(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !isPure(sub) {
				return false
			}
		}
		return true
	}
	return false
}

func hasWordBoundary(re *syntax.Regexp) bool {
	if re.Op == syntax.OpWordBoundary || re.Op == syntax.OpNoWordBoundary {
		return true
	}
	for _, sub := range re.Sub {
		if hasWordBoundary(sub) {
			return true
		}
	}
	return false
}

// needle is a literal made ready for searching.
type needle struct {
	text []byte // lower case if fold
	fold bool
	rare int // index of the byte to look for first
}

func newNeedle(l literal) needle {
	n := needle{text: []byte(l.text), fold: l.fold}
	if l.fold {
		for i := range n.text {
			if rarity(n.text[i]) > rarity(n.text[n.rare]) {
				n.rare = i
			}
		}
	}
	return n
}

// rarity ranks bytes by how seldom they are in text and source.
func rarity(c byte) int {
	if i := strings.IndexByte("etaonisrlhdcump ()_.,fgyb\t\"=w;:vx-/0k{}1*qjz", c); i >= 0 {
		return i
	}
	return 64
}

// index finds the needle in text, from an offset on; -1 if it isn't there.
func (n needle) index(text []byte, from int) int {
	if !n.fold {
		if i := bytes.Index(text[from:], n.text); i >= 0 {
			return from + i
		}
		return -1
	}
	low := n.text[n.rare]
	up := low
	if 'a' <= low && low <= 'z' {
		up -= 0x20
	}
	for pos := from + n.rare; pos < len(text); pos++ {
		i := indexEither(text[pos:], low, up)
		if i < 0 {
			return -1
		}
		pos += i
		if start := pos - n.rare; start+len(n.text) <= len(text) && equalFoldASCII(text[start:start+len(n.text)], n.text) {
			return start
		}
	}
	return -1
}

// indexEither finds the first a or b, in pieces so that a frequent one doesn't
// make the other be searched to the end each time.
func indexEither(text []byte, a, b byte) int {
	if a == b {
		return bytes.IndexByte(text, a)
	}
	const piece = 512
	for base := 0; base < len(text); base += piece {
		part := text[base:min(base+piece, len(text))]
		i, j := bytes.IndexByte(part, a), bytes.IndexByte(part, b)
		switch {
		case i >= 0 && (j < 0 || i < j):
			return base + i
		case j >= 0:
			return base + j
		}
	}
	return -1
}

func equalFoldASCII(text, lower []byte) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// needleState remembers where each needle is found next in one text.
type needleState struct{ at []int }

// reset begins a new text.
func (s *needleState) reset() { s.at = s.at[:0] }

// next returns the first place at or after from where any needle is; -1 if none.
func (s *needleState) next(need []needle, text []byte, from int) int {
	if len(s.at) == 0 {
		for range need {
			s.at = append(s.at, -2) // not looked for yet
		}
	}
	first := -1
	for i := range need {
		if s.at[i] != -1 && s.at[i] < from {
			s.at[i] = need[i].index(text, from)
		}
		if s.at[i] >= 0 && (first < 0 || s.at[i] < first) {
			first = s.at[i]
		}
	}
	return first
}

// spanMatcher searches across lines. Here, too, bytes that aren't UTF-8 match
// nothing; in a text with such bytes, a real U+FFFD doesn't either. It is safe
// for concurrent use.
type spanMatcher struct {
	parsed *syntax.Regexp
	re     *regexp.Regexp

	once   sync.Once
	strict *regexp.Regexp
}

// in returns the expression to use for text.
func (m *spanMatcher) in(text []byte) *regexp.Regexp {
	if utf8.Valid(text) {
		return m.re
	}
	m.once.Do(func() {
		m.strict = m.re
		if re, err := regexp.Compile(withoutReplacement(m.parsed).String()); err == nil {
			m.strict = re
		}
	})
	return m.strict
}

// withoutReplacement returns re with U+FFFD, as which regexp sees every broken
// byte, taken out of what its classes match.
func withoutReplacement(re *syntax.Regexp) *syntax.Regexp {
	out := *re
	class := func(ranges ...rune) {
		out.Op, out.Rune, out.Rune0 = syntax.OpCharClass, nil, [2]rune{}
		for i := 0; i < len(ranges); i += 2 {
			lo, hi := ranges[i], ranges[i+1]
			if lo > utf8.RuneError || hi < utf8.RuneError {
				out.Rune = append(out.Rune, lo, hi)
				continue
			}
			if lo < utf8.RuneError {
				out.Rune = append(out.Rune, lo, utf8.RuneError-1)
			}
			if hi > utf8.RuneError {
				out.Rune = append(out.Rune, utf8.RuneError+1, hi)
			}
		}
	}
	switch re.Op {
	case syntax.OpAnyChar:
		class(0, utf8.MaxRune)
	case syntax.OpAnyCharNotNL:
		class(0, '\n'-1, '\n'+1, utf8.MaxRune)
	case syntax.OpCharClass:
		class(re.Rune...)
	}
	out.Sub = nil
	for _, sub := range re.Sub {
		out.Sub = append(out.Sub, withoutReplacement(sub))
	}
	return &out
}

package tools

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"
)

// wordTables are what \w means: letters, marks, digits, connectors.
var wordTables = []*unicode.RangeTable{
	unicode.L, unicode.Nl, unicode.M, unicode.Nd, unicode.Pc,
	unicode.Other_Alphabetic, unicode.Join_Control,
}

// isWordRune reports whether \w matches r.
func isWordRune(r rune) bool {
	if r < 0x80 {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.In(r, wordTables...)
}

// What the Perl classes are in ripgrep's dialect, inside of a class.
const (
	digitSet = `\p{Nd}`
	spaceSet = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
)

// wordSet is \w, inside of a class.
func wordSet() string {
	var b strings.Builder
	b.WriteString(`\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}`)
	writeRanges(&b, unicode.Other_Alphabetic)
	writeRanges(&b, unicode.Join_Control)
	return b.String()
}

func writeRanges(b *strings.Builder, t *unicode.RangeTable) {
	write := func(lo, hi, stride rune) {
		if stride == 1 {
			fmt.Fprintf(b, `\x{%x}-\x{%x}`, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			fmt.Fprintf(b, `\x{%x}`, r)
		}
	}
	for _, r := range t.R16 {
		write(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		write(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
}

// complement writes everything that in is false for, inside of a class.
func complement(in func(rune) bool) string {
	var b strings.Builder
	start := rune(-1)
	for r := rune(0); r <= unicode.MaxRune+1; r++ {
		outside := r <= unicode.MaxRune && !in(r)
		if outside && start < 0 {
			start = r
		}
		if !outside && start >= 0 {
			fmt.Fprintf(&b, `\x{%x}-\x{%x}`, start, r-1)
			start = -1
		}
	}
	return b.String()
}

// translatePattern turns a pattern in ripgrep's dialect (Rust's regex crate)
// into Go's: the Perl classes are Unicode-aware, \u escapes and classes within
// classes are known there and not here.
func translatePattern(p string) (string, error) {
	t := translator{in: p, nests: new(int)}
	for t.pos < len(t.in) {
		if err := t.token(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

type translator struct {
	in    string
	pos   int
	out   strings.Builder
	nests *int // classes within classes that were looked at so far
}

// maxNests bounds the classes within classes of a pattern: each that isn't closed
// is looked at again from its next character.
const maxNests = 100

var errNests = fmt.Errorf("there are too many classes within classes (more than %d): escape brackets that stand for themselves", maxNests)

func (t *translator) rest() string { return t.in[t.pos:] }

func (t *translator) copy(n int) {
	t.out.WriteString(t.in[t.pos : t.pos+n])
	t.pos += n
}

func (t *translator) token() error {
	switch rest := t.rest(); {
	case strings.HasPrefix(rest, `\Q`):
		return errors.New(`\Q is not known: escape the characters, or set fixed_strings`)
	case rest[0] == '\\':
		return t.escape(false)
	case rest[0] == '[':
		return t.class()
	case strings.HasPrefix(rest, "(?"):
		return t.group()
	}
	t.copy(1)
	return nil
}

// escape translates what a backslash begins.
func (t *translator) escape(inClass bool) error {
	rest := t.rest()
	if len(rest) == 1 {
		return errors.New(`\ at the end`)
	}
	set, negated := "", false
	switch rest[1] {
	case 'd', 'D':
		set, negated = digitSet, rest[1] == 'D'
	case 's', 'S':
		set, negated = spaceSet, rest[1] == 'S'
	case 'w', 'W':
		set, negated = wordSet(), rest[1] == 'W'
	case 'u', 'U', 'x':
		return t.codePoint()
	case 'n':
		t.out.WriteString(`\n`)
		t.pos += 2
		return nil
	case 'b', 'B':
		if strings.HasPrefix(rest[2:], "{") {
			return fmt.Errorf(`%s... is not known: use \b`, rest[:3])
		}
	case 'p', 'P', 'A', 'z', 'a', 'f', 't', 'r', 'v', '1', '2', '3', '4', '5', '6', '7', '8', '9', '0':
	default:
		if c := rest[1]; c == ' ' || c == '<' || c == '>' {
			t.out.WriteString(regexp.QuoteMeta(string(c)))
			t.pos += 2
			return nil
		}
	}
	if set == "" {
		t.copy(2)
		return nil
	}
	t.pos += 2
	switch {
	case inClass && !negated:
		t.out.WriteString(set)
	case inClass:
		t.out.WriteString(complementOf(rest[1]))
	case negated:
		t.out.WriteString("[^" + set + "]")
	default:
		t.out.WriteString("[" + set + "]")
	}
	return nil
}

// \S and \W, inside of a class.
var (
	notSpaceSet = sync.OnceValue(func() string {
		return complement(func(r rune) bool { return unicode.Is(unicode.White_Space, r) })
	})
	notWordSet = sync.OnceValue(func() string { return complement(isWordRune) })
)

// complementOf is \D, \S or \W, inside of a class.
func complementOf(class byte) string {
	switch class {
	case 'D':
		return `\P{Nd}`
	case 'S':
		return notSpaceSet()
	default:
		return notWordSet()
	}
}

var codePointForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|[uUx]\{([0-9A-Fa-f]{1,8})\})`)
})

func (t *translator) codePoint() error {
	m := codePointForm().FindStringSubmatch(t.rest())
	if m == nil {
		return fmt.Errorf(`%.6s is not a character: write \x7F, \u00e9 or \u{1F600}`, t.rest())
	}
	t.out.WriteString(`\x{` + m[1] + m[2] + m[3] + m[4] + `}`)
	t.pos += len(m[0])
	return nil
}

// group passes the beginning of a group on, less the u flag, which is always
// set here.
func (t *translator) group() error {
	rest := t.rest()
	for _, look := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(rest, look) {
			return errors.New("look-around (" + look + "...) is not supported")
		}
	}
	end := 2
	for end < len(rest) && strings.IndexByte("imsUuxR-", rest[end]) >= 0 {
		end++
	}
	if end == len(rest) || rest[end] != ':' && rest[end] != ')' {
		t.copy(2) // a name; or an error for the parser to tell
		return nil
	}
	on, off, _ := strings.Cut(rest[2:end], "-")
	if strings.ContainsAny(on+off, "xR") {
		return errors.New("the flags x and R are not supported")
	}
	if strings.Contains(off, "u") {
		return errors.New("switching Unicode off, (?-u), is not supported")
	}
	flags := strings.ReplaceAll(on, "u", "")
	if off != "" {
		flags += "-" + off
	}
	t.pos += end + 1
	switch {
	case rest[end] == ':':
		t.out.WriteString("(?" + flags + ":")
	case flags != "":
		t.out.WriteString("(?" + flags + ")")
	}
	return nil
}

// class translates a character class.
func (t *translator) class() error {
	t.copy(1)
	if strings.HasPrefix(t.rest(), "^") {
		t.copy(1)
	}
	for first := true; ; first = false {
		rest := t.rest()
		switch {
		case rest == "":
			return errors.New("a character class, [, is not closed")
		case rest[0] == ']' && !first:
			t.copy(1)
			return nil
		case rest[0] == ']':
			t.out.WriteString(`\]`)
			t.pos++
		case rest[0] == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "[:"):
			end := strings.Index(rest, ":]")
			if end < 0 {
				return errors.New("[: in a character class is not closed")
			}
			t.copy(end + 2)
		case rest[0] == '[':
			if err := t.nested(); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "~~"), strings.HasPrefix(rest, "--") && !first:
			return fmt.Errorf("set operations in a character class (%s) are not supported", rest[:2])
		default:
			t.copy(1)
		}
	}
}

// nested takes the members of a class within a class. Where it isn't closed,
// the bracket is taken as itself.
func (t *translator) nested() error {
	if *t.nests++; *t.nests > maxNests {
		return errNests
	}
	inner := translator{in: t.rest(), nests: t.nests}
	err := inner.class()
	if errors.Is(err, errNests) {
		return err
	}
	if err != nil || !strings.Contains(t.in[t.pos+inner.pos:], "]") {
		t.out.WriteString(`\[`)
		t.pos++
		return nil
	}
	text := inner.out.String()
	if strings.HasPrefix(text, "[^") {
		return errors.New("a negated class within a class is not supported")
	}
	t.out.WriteString(text[1 : len(text)-1])
	t.pos += inner.pos
	return nil
}

// parsePattern compiles a pattern to a program and a regexp. Options are those
// of grep_search.
func parsePattern(pattern string, fixed, fold, multiline bool) (*syntax.Regexp, *regexp.Regexp, error) {
	text := regexp.QuoteMeta(pattern)
	if !fixed {
		var err error
		if text, err = translatePattern(pattern); err != nil {
			return nil, nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	flags := "m"
	if fold {
		flags += "i"
	}
	if multiline {
		flags += "s"
	}
	text = "(?" + flags + ")(?:" + text + ")"
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, nil, patternError(pattern, err)
	}
	if !multiline && needsNewline(parsed) {
		return nil, nil, fmt.Errorf(`pattern %q contains a line end, which a search by lines can't find: set multiline`, pattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, nil, patternError(pattern, err)
	}
	return parsed, re, nil
}

func patternError(pattern string, err error) error {
	var se *syntax.Error
	if errors.As(err, &se) {
		return fmt.Errorf("pattern %q: %s. To search for it literally, escape its special characters or set fixed_strings", pattern, se.Code)
	}
	return fmt.Errorf("pattern %q: %w", pattern, err)
}

// needsNewline reports whether there is a literal line end in re.
func needsNewline(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if r == '\n' {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if needsNewline(sub) {
			return true
		}
	}
	return false
}

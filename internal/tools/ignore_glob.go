package tools

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// pathGlob is a compiled glob over slash-separated relative paths, in the
// dialect of ignore files as ripgrep reads them: * and ? stop at a slash, **
// doesn't, [a-z] and [!a] are classes, {a,b} alternatives, \ escapes.
type pathGlob struct {
	kind globShape
	text string
	re   *regexp.Regexp // over Latin-1: each byte of a path is one character
}

// globShape tells the shapes that need no regular expression.
type globShape uint8

const (
	shapeRegexp globShape = iota
	shapePath             // the whole path equals text
	shapeBase             // the last component equals text
	shapeSuffix           // the last component ends in text
	shapeAll
)

func compileGlob(glob string) (pathGlob, error) {
	if rest, ok := strings.CutPrefix(glob, "**/"); ok && !strings.Contains(rest, "/") {
		if isLiteralGlob(rest) {
			return pathGlob{kind: shapeBase, text: rest}, nil
		}
		if suffix, ok := strings.CutPrefix(rest, "*"); ok && isLiteralGlob(suffix) {
			return pathGlob{kind: shapeSuffix, text: suffix}, nil
		}
	}
	switch {
	case glob == "**":
		return pathGlob{kind: shapeAll}, nil
	case isLiteralGlob(glob):
		return pathGlob{kind: shapePath, text: glob}, nil
	}
	c := globCompiler{glob: glob}
	if err := c.compile(); err != nil {
		return pathGlob{}, fmt.Errorf("glob %q: %w", glob, err)
	}
	re, err := regexp.Compile(`(?s)^` + c.re.String() + `$`)
	if err != nil {
		return pathGlob{}, fmt.Errorf("glob %q: %w", glob, err)
	}
	return pathGlob{re: re}, nil
}

func isLiteralGlob(s string) bool { return s != "" && !strings.ContainsAny(s, `*?[]{}\,`) }

func (g pathGlob) match(rel string) bool {
	switch g.kind {
	case shapeAll:
		return true
	case shapePath:
		return rel == g.text
	case shapeBase:
		return path.Base(rel) == g.text
	case shapeSuffix:
		return strings.HasSuffix(rel, g.text) && len(path.Base(rel)) >= len(g.text)
	}
	return g.re.MatchString(latin1(rel))
}

// latin1 turns each byte into one character.
func latin1(s string) string {
	if isASCII(s) {
		return s
	}
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// globCompiler turns a glob into a regular expression over Latin-1.
type globCompiler struct {
	glob string
	pos  int
	re   strings.Builder
	open int // alternatives that are open

	// recursive is the kind of ** last written, if nothing came after it.
	recursive string
}

const (
	reStar   = `[^/]*`
	rePrefix = `(?:/?|.*/)`
	reSuffix = `/.*`
	reMiddle = `(?:/|/.*/)`
)

func (c *globCompiler) compile() error {
	for c.pos < len(c.glob) {
		if err := c.token(); err != nil {
			return err
		}
	}
	if c.open > 0 {
		return fmt.Errorf("{ is not closed")
	}
	return nil
}

func (c *globCompiler) token() error {
	ch := c.glob[c.pos]
	if ch != '*' {
		defer func() { c.recursive = "" }()
	}
	c.pos++
	switch ch {
	case '?':
		c.re.WriteString(`[^/]`)
	case '*':
		c.star()
	case '[':
		return c.class()
	case '{':
		c.open++
		c.re.WriteString("(?:")
	case '}':
		if c.open == 0 {
			return fmt.Errorf("} was not opened")
		}
		c.open--
		c.re.WriteByte(')')
	case ',':
		if c.open > 0 {
			c.re.WriteByte('|')
		} else {
			c.literal(',')
		}
	case '\\':
		if c.pos == len(c.glob) {
			return fmt.Errorf(`\ at the end`)
		}
		c.literal(c.glob[c.pos])
		c.pos++
	default:
		c.literal(ch)
	}
	return nil
}

func (c *globCompiler) literal(b byte) {
	if b < 0x80 {
		c.re.WriteString(regexp.QuoteMeta(string(rune(b))))
	} else {
		fmt.Fprintf(&c.re, `\x{%x}`, b)
	}
}

func (c *globCompiler) peek() byte {
	if c.pos < len(c.glob) {
		return c.glob[c.pos]
	}
	return 0
}

// star writes what the * just read begins. ** means any number of directories
// only as a whole component.
func (c *globCompiler) star() {
	start := c.pos - 1
	if c.peek() != '*' {
		c.re.WriteString(reStar)
		c.recursive = ""
		return
	}
	c.pos++
	next := c.peek()
	atEnd := c.pos == len(c.glob)
	if start == 0 {
		if !atEnd && next != '/' {
			c.re.WriteString(reStar + reStar)
			return
		}
		c.pos = min(c.pos+1, len(c.glob))
		c.re.WriteString(rePrefix)
		c.recursive = rePrefix
		return
	}
	prev := c.glob[start-1]
	inGroup := c.open > 0 && (prev == ',' || prev == '{')
	groupEnd := c.open > 0 && (next == ',' || next == '}')
	if prev != '/' && !inGroup || !atEnd && next != '/' && !groupEnd {
		c.re.WriteString(reStar + reStar)
		c.recursive = ""
		return
	}
	c.recursiveStar(prev, atEnd || groupEnd)
	if next == '/' && !atEnd {
		c.pos++
	}
}

// recursiveStar writes a ** component, taking back the slash before it.
func (c *globCompiler) recursiveStar(prev byte, suffix bool) {
	if c.recursive == rePrefix || c.recursive == reSuffix {
		return // it says the same already
	}
	text := c.re.String()
	if c.recursive == reMiddle {
		text = strings.TrimSuffix(text, reMiddle)
	} else if prev == '/' {
		text = strings.TrimSuffix(text, "/")
	}
	c.recursive = reMiddle
	if suffix {
		c.recursive = reSuffix
	}
	c.re.Reset()
	c.re.WriteString(text + c.recursive)
}

// class writes a character class; the [ was read.
func (c *globCompiler) class() error {
	negated := c.peek() == '!' || c.peek() == '^'
	if negated {
		c.pos++
	}
	type span struct{ lo, hi byte }
	var ranges []span
	inRange := false
	for first := true; ; first = false {
		if c.pos >= len(c.glob) {
			return fmt.Errorf("[ is not closed")
		}
		ch := c.glob[c.pos]
		c.pos++
		if ch == ']' && !first {
			break
		}
		switch {
		case ch == '-' && !first && !inRange:
			inRange = true
		case inRange:
			last := &ranges[len(ranges)-1]
			if last.hi = ch; last.lo > last.hi {
				return fmt.Errorf("the range %c-%c is the wrong way round", last.lo, last.hi)
			}
			inRange = false
		default:
			ranges = append(ranges, span{ch, ch})
		}
	}
	if inRange {
		ranges = append(ranges, span{'-', '-'})
	}
	c.re.WriteByte('[')
	if negated {
		c.re.WriteByte('^')
	}
	for _, r := range ranges {
		fmt.Fprintf(&c.re, `\x{%x}-\x{%x}`, r.lo, r.hi)
	}
	c.re.WriteByte(']')
	return nil
}

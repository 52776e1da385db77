package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s as a person must see it before saying yes: control
// characters, what orders text from right to left, what has no width, blanks
// that look like others and bytes that are no text are written out, as
// \x1b or \u{202e}. Line feeds and tabs stay.
func Visible(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if hidden(r, n) {
			return visible(s, i)
		}
		i += n
	}
	return s
}

func visible(s string, from int) string {
	var b strings.Builder
	b.WriteString(s[:from])
	for i := from; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case !hidden(r, n):
			b.WriteString(s[i : i+n])
		case r == utf8.RuneError && n == 1 || r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += n
	}
	return b.String()
}

// hidden reports whether a rune of n bytes can't be seen for what it is.
func hidden(r rune, n int) bool {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		return false
	case r < 0x80 || r == utf8.RuneError && n == 1:
		return true
	case r == 0x2800: // a blank that is a symbol
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs)
}

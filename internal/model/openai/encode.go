package openai

import (
	"encoding/base64"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s to dst as a JSON string. Invalid UTF-8 becomes U+FFFD;
// U+2028 and U+2029 are escaped; HTML characters are left alone.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if esc := escapeRune(r, n); esc != "" {
				dst = append(append(dst, s[start:i]...), esc...)
				start = i + n
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// escapeRune returns the escape for a non-ASCII rune of n bytes that may not
// stand as it is, or "".
func escapeRune(r rune, n int) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028`
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendDataURL appends a JSON string holding data as a data: URL.
func appendDataURL(dst []byte, mediaType string, data []byte) []byte {
	dst = appendString(dst, "data:"+mediaType+";base64,")
	dst = dst[:len(dst)-1]
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}

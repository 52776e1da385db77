package tools

import (
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decodeText brings a body into UTF-8 by its byte order mark, its declared
// encoding, or the page's own meta element. What claims nothing and is valid
// UTF-8 is that.
func decodeText(body []byte, contentType string) string {
	enc, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" || !certain && utf8.Valid(body) {
		const bom = "\xef\xbb\xbf"
		if len(body) >= len(bom) && string(body[:len(bom)]) == bom {
			body = body[len(bom):]
		}
		return string(body)
	}
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return string(body)
	}
	return string(decoded)
}

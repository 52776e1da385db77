package anthropic

import (
	"strconv"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// fastDelta reads the three events that make up nearly all of a stream, in the
// one spelling that the API uses. ok is false for anything else, which is then
// encoding/json's to judge; what is ok means the same to both (see
// FuzzFastDelta).
func fastDelta(data []byte) (kind model.DeltaKind, index int, text string, ok bool) {
	rest, ok := cutPrefix(data, `{"type":"content_block_delta","index":`)
	if !ok {
		return 0, 0, "", false
	}
	if index, rest, ok = cutIndex(rest); !ok {
		return 0, 0, "", false
	}
	if rest, ok = cutPrefix(rest, `,"delta":{"type":"`); !ok {
		return 0, 0, "", false
	}
	if kind, rest = cutKind(rest); kind == 0 {
		return 0, 0, "", false
	}
	if text, rest, ok = cutString(rest); !ok {
		return 0, 0, "", false
	}
	for _, b := range [...]byte{'}', '}'} {
		if rest = skipSpaces(rest); len(rest) == 0 || rest[0] != b {
			return 0, 0, "", false
		}
		rest = rest[1:]
	}
	return kind, index, text, len(skipSpaces(rest)) == 0
}

func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return b, false
	}
	return b[len(prefix):], true
}

func cutIndex(b []byte) (int, []byte, bool) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == 0 || i > 6 || i > 1 && b[0] == '0' {
		return 0, b, false
	}
	n, err := strconv.Atoi(string(b[:i]))
	return n, b[i:], err == nil
}

func cutKind(b []byte) (model.DeltaKind, []byte) {
	if rest, ok := cutPrefix(b, `text_delta","text":"`); ok {
		return model.DeltaText, rest
	}
	if rest, ok := cutPrefix(b, `input_json_delta","partial_json":"`); ok {
		return model.DeltaToolInput, rest
	}
	if rest, ok := cutPrefix(b, `thinking_delta","thinking":"`); ok {
		return model.DeltaThinking, rest
	}
	return 0, b
}

func skipSpaces(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// cutString reads the rest of a JSON string, its closing quote included.
func cutString(b []byte) (string, []byte, bool) {
	ascii, plain := true, true
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(b[:i]) {
				return "", b, false
			}
			if plain {
				return string(b[:i]), b[i+1:], true
			}
			s, ok := model.UnescapeJSON(b[:i])
			return s, b[i+1:], ok
		case c == '\\':
			plain = false
			i++ // whatever it is, it is not the end
		case c < 0x20:
			return "", b, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", b, false
}

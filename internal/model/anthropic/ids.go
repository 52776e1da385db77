package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The API takes ids and tool names of letters, digits, _ and - only; those of
// other providers' histories may hold anything. The mapping depends on nothing
// but the id, so a call and its result stay a pair, in this request and later.

const maxName = 128

// wireID returns id as the API takes it. Ids that differ stay different.
func wireID(id string) string {
	safe := replaceUnsafe(id)
	if safe == id && id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return safe + "_" + hex.EncodeToString(sum[:4])
}

// wireName returns a tool's name as the API takes it: a name that the model
// made up must not make every later request invalid.
func wireName(s string) string {
	s = replaceUnsafe(s)
	if s == "" {
		return "_"
	}
	return s[:min(len(s), maxName)]
}

func replaceUnsafe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

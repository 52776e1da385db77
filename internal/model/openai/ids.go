package openai

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/agentcli/agent/internal/model"
)

// maxName is the API's limit on the length of tool call ids and tool names.
const maxName = 64

// newID makes a call id for a server that gave none, or one already in use.
func newID() string { return "call_" + rand.Text()[:24] }

// wireName maps an id or a tool name onto what the API accepts: at most 64 of
// [A-Za-z0-9_-]. What fits already is returned as it is; anything else keeps
// its readable part and gets a digest of the whole, so that different names
// stay different and the same name maps alike wherever it stands.
func wireName(s string) string {
	if fits(s) {
		return s
	}
	b := make([]byte, 0, maxName)
	for i := 0; i < len(s) && len(b) < maxName-13; i++ {
		c := s[i]
		if !wireByte(c) {
			c = '_'
		}
		b = append(b, c)
	}
	sum := sha256.Sum256([]byte(s))
	return string(b) + "_" + hex.EncodeToString(sum[:6])
}

func fits(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !wireByte(s[i]) {
			return false
		}
	}
	return true
}

func wireByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// usedIDs returns the ids of the tool calls in msgs.
func usedIDs(msgs []*model.Message) map[string]bool {
	used := map[string]bool{}
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if t, ok := b.(model.ToolUse); ok {
				used[t.ID] = true
			}
		}
	}
	return used
}

// nineLetters maps an id onto Mistral's form of it: nine letters or digits.
func nineLetters(id string) string {
	if len(id) == 9 && fits(id) && !hasPunct(id) {
		return id
	}
	const alphabet = "abcdefghijklmnopqrstuvwxyz012345"
	sum := sha256.Sum256([]byte(id))
	b := make([]byte, 9)
	for i := range b {
		b[i] = alphabet[sum[i]&31]
	}
	return string(b)
}

func hasPunct(id string) bool {
	for i := 0; i < len(id); i++ {
		if id[i] == '_' || id[i] == '-' {
			return true
		}
	}
	return false
}

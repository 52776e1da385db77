package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxName is the longest name of a tool that all providers take.
	maxName = 64
	// maxServerPart bounds the server's part of it.
	maxServerPart = 36
)

// SafeName returns a server's name as it stands in the names of its tools, and
// so in rules: mcp__ and SafeName is the rule for all of them.
func SafeName(name string) string { return bounded(plain(name), maxServerPart, name) }

// toolName returns the name of a server's tool; nth tells apart those whose
// names would be the same, 0 for the first.
func toolName(server, tool string, nth int) string {
	name := "mcp__" + SafeName(server) + "__" + plain(tool)
	if nth > 0 {
		return bounded(name+"_"+digest(server+"\x00"+tool+strings.Repeat("\x00", nth)), maxName, server+"\x00"+tool+strings.Repeat("\x00", nth))
	}
	return bounded(name, maxName, server+"\x00"+tool)
}

// plain replaces what providers don't take in a name.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// bounded shortens name to at most n bytes, the last of them made from whole so
// that different names stay different.
func bounded(name string, n int, whole string) string {
	if len(name) <= n {
		return name
	}
	sum := digest(whole)
	return name[:n-1-len(sum)] + "_" + sum
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

package mcp

import (
	"cmp"
	"slices"
	"strings"
)

// maxInstructions bounds what one server tells the model about itself, in bytes.
const maxInstructions = 2048

// Instructions are what a server wants the model to know.
type Instructions struct {
	Server string // as in Spec.Server of its tools
	Name   string // shown
	Text   string // bounded, without what nobody sees in it; still a stranger's
	Tools  bool   // it has tools
}

// Instructions returns those of the connected servers that give any, by name.
func (m *Manager) Instructions() []Instructions {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Instructions
	for _, s := range m.servers {
		if s.state != Connected || s.instructions == "" {
			continue
		}
		text := strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s.instructions), "\uFFFD")
		if text = strings.TrimSpace(clip(shown(text), maxInstructions)); text != "" {
			out = append(out, Instructions{Server: SafeName(s.cfg.Name), Name: shown(s.cfg.Name), Text: text, Tools: len(s.tools) > 0})
		}
	}
	slices.SortFunc(out, func(a, b Instructions) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

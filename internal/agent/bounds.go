package agent

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// maxResultText bounds the texts of one tool result, in bytes, whatever the tool
// itself allows: one that is too long goes to a file and its ends stay.
const maxResultText = 400_000

// previewText is how much of each end of a spilled text stays, in bytes.
const previewText = 20_000

// bounded replaces texts that are too long by their ends and the path of a
// file with the whole.
func (t *turn) bounded(u model.ToolUse, blocks []model.Block) []model.Block {
	left, cut := t.maxText(u), false
	for i, b := range blocks {
		text, ok := b.(model.Text)
		if !ok {
			continue
		}
		if len(text.Text) <= left {
			left -= len(text.Text)
			continue
		}
		if !cut {
			blocks, cut = slices.Clone(blocks), true
		}
		blocks[i] = model.Text{Text: t.preview(u, text.Text, min(previewText, left/2))}
		left = 0
	}
	return blocks
}

// maxText bounds the texts of the result of a call, in bytes.
func (t *turn) maxText(u model.ToolUse) int {
	if t.c.cfg.MaxServerText > 0 {
		if tool, ok := t.c.cfg.Tools.Lookup(u.Name); ok && tool.Spec().Server != "" {
			return t.c.cfg.MaxServerText
		}
	}
	return maxResultText
}

// preview keeps end bytes of each end of a text.
func (t *turn) preview(u model.ToolUse, text string, end int) string {
	where := "the rest was dropped"
	if t.c.cfg.Spill != nil {
		path, err := t.c.cfg.Spill(u.ID, text)
		if err == nil {
			where = "the whole is in " + path
		} else {
			t.log.Warn("a long tool result could not be kept in a file", "tool", u.Name, "error", err)
		}
	}
	head, tail := cutHead(text, end), cutTail(text, end)
	return fmt.Sprintf("<persisted-output>\n%s\n\n[%d bytes in the middle are not shown; %s]\n\n%s\n</persisted-output>",
		head, len(text)-len(head)-len(tail), where, tail)
}

// cutHead returns at most n bytes of the start of s, in whole characters.
func cutHead(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutTail returns at most n bytes of the end of s, in whole characters.
func cutTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

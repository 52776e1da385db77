package agent

import (
	"fmt"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// maxResultText bounds the text of one tool result, in bytes, whatever the tool
// itself allows: a longer one goes to a file and its ends stay.
const maxResultText = 400_000

// previewText is how much of each end of a spilled text stays, in bytes.
const previewText = 20_000

// bounded replaces texts that are too long by their ends and the path of a
// file with the whole.
func (t *turn) bounded(u model.ToolUse, blocks []model.Block) []model.Block {
	for i, b := range blocks {
		text, ok := b.(model.Text)
		if !ok || len(text.Text) <= maxResultText {
			continue
		}
		out := make([]model.Block, len(blocks))
		copy(out, blocks)
		blocks = out
		blocks[i] = model.Text{Text: t.preview(u, text.Text)}
	}
	return blocks
}

func (t *turn) preview(u model.ToolUse, text string) string {
	where := "the rest was dropped"
	if t.c.cfg.Spill != nil {
		path, err := t.c.cfg.Spill(u.ID, text)
		if err == nil {
			where = "the whole is in " + path
		} else {
			t.log.Warn("a long tool result could not be kept in a file", "tool", u.Name, "error", err)
		}
	}
	head, tail := cutHead(text, previewText), cutTail(text, previewText)
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

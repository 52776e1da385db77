package tools

import (
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
)

// Limits of what display forms carry.
const (
	originalBytes = 96 << 10  // a longer text is left out of a display form
	diffBytes     = 512 << 10 // longer texts are not compared
	patchLines    = 2000      // a longer patch is left out
	contextLines  = 3
)

// hunk is one hunk of a structured patch, as hosts know it.
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"` // each with " ", "-" or "+" before it
}

// diffHunks compares two contents; empty when they are the same, too long or
// not text.
func diffHunks(old, next []byte) []hunk {
	if len(old) > diffBytes || len(next) > diffBytes || !utf8.Valid(old) || !utf8.Valid(next) {
		return []hunk{}
	}
	return patchHunks(string(old), udiff.Lines(string(old), string(next)))
}

// patchHunks turns edits of old into hunks.
func patchHunks(old string, edits []udiff.Edit) []hunk {
	hunks := []hunk{}
	if len(edits) == 0 {
		return hunks
	}
	u, err := udiff.ToUnifiedDiff("a", "b", old, edits, contextLines)
	if err != nil {
		return hunks
	}
	total := 0
	for _, h := range u.Hunks {
		out := hunk{OldStart: h.FromLine, NewStart: h.ToLine, Lines: []string{}}
		for _, l := range h.Lines {
			text := strings.TrimSuffix(l.Content, "\n")
			switch l.Kind {
			case udiff.Delete:
				out.OldLines++
				out.Lines = append(out.Lines, "-"+text)
			case udiff.Insert:
				out.NewLines++
				out.Lines = append(out.Lines, "+"+text)
			default:
				out.OldLines++
				out.NewLines++
				out.Lines = append(out.Lines, " "+text)
			}
		}
		if total += len(out.Lines); total > patchLines {
			return []hunk{}
		}
		hunks = append(hunks, out)
	}
	return hunks
}

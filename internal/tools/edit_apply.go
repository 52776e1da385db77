package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// span is a piece of text to be replaced: offsets into the decoded text.
type span struct {
	start, end int
	text       string // what takes its place
}

// matchKind says how a text was found.
type matchKind uint8

const (
	matchExact matchKind = iota
	matchLineEnds
	matchBlanks
)

func (k matchKind) note() string {
	switch k {
	case matchLineEnds:
		return " (found by ignoring the difference between LF and CRLF)"
	case matchBlanks:
		return " (found by ignoring blanks at the beginning and end of lines; the new text was indented like the text found)"
	}
	return ""
}

// editInfo tells what applyEdit did.
type editInfo struct {
	count int
	lines []int // where each replacement begins, in the old text, from 1
	how   matchKind
	text  string // the old text, decoded
	spans []span // ascending, not overlapping
}

// applyEdit replaces old by new in content, once or (all) everywhere. It is a
// splice: every byte outside of what was found is in the result as it was, in
// whatever encoding. Text with a byte order mark is searched decoded; anything
// else is searched as bytes.
func applyEdit(content []byte, old, new string, all bool) ([]byte, editInfo, error) {
	enc := detectBOM(content)
	body := content[len(enc.bom()):]
	text := ""
	if enc.width() == 1 {
		text = string(body)
	} else {
		text = enc.decode(body)
	}
	spans, how, err := findSpans(text, old, new, all)
	if err != nil {
		return nil, editInfo{}, err
	}
	if !slices.ContainsFunc(spans, func(s span) bool { return text[s.start:s.end] != s.text }) {
		return nil, editInfo{}, errNoChange
	}
	info := editInfo{count: len(spans), how: how, text: text, spans: spans}
	info.lines = lineNumbers(text, spans)
	result := append([]byte(nil), enc.bom()...)
	return append(result, splice(body, enc, spans)...), info, nil
}

// splice puts the spans' texts in their places.
func splice(body []byte, enc encoding, spans []span) []byte {
	at := make([]int, 0, 2*len(spans))
	grow := 0
	for _, s := range spans {
		at = append(at, s.start, s.end)
		grow += len(s.text)
	}
	if enc.width() > 1 {
		at = enc.offsets(body, at)
	}
	out := make([]byte, 0, len(body)+grow*enc.width())
	from := 0
	for i, s := range spans {
		out = append(out, body[from:at[2*i]]...)
		out = append(out, enc.encode(s.text)...)
		from = at[2*i+1]
	}
	return append(out, body[from:]...)
}

// findSpans finds what to replace: exactly; else ignoring LF or CRLF; else
// ignoring blanks around lines.
func findSpans(text, old, new string, all bool) ([]span, matchKind, error) {
	switch {
	case old == "":
		return nil, 0, errors.New("old_string is empty: give the text to replace, or write the whole file")
	case old == new:
		return nil, 0, errors.New("old_string and new_string are the same: there is nothing to change")
	}
	for _, try := range []struct {
		kind matchKind
		find func(text, old, new string, all bool) []span
	}{{matchExact, findExact}, {matchLineEnds, findLineEnds}, {matchBlanks, findBlanks}} {
		spans := try.find(text, old, new, all)
		if len(spans) == 0 {
			continue
		}
		if len(spans) > 1 && !all {
			return nil, 0, fmt.Errorf("old_string was found %d times, at %s: add lines around it until it is found once, or set replace_all", len(spans), atLines(lineNumbers(text, spans)))
		}
		return spans, try.kind, nil
	}
	return nil, 0, notFound(text, old, new)
}

// findExact finds old as it is. Overlapping occurrences count unless all are
// to be replaced: which of them is meant would be a guess.
func findExact(text, old, new string, all bool) []span {
	var spans []span
	free := 0 // where the last occurrence ended
	for from := 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return spans
		}
		start, end := from+i, from+i+len(old)
		if old[0] == '\n' && start > free && text[start-1] == '\r' {
			start-- // the line end is CRLF, all of it was meant
		}
		free = end
		spans = append(spans, span{start, end, withLineEnds(new, usesCRLF(text, start, end))})
		from += i + 1
		if all {
			from = end
		}
	}
}

// findLineEnds finds old where it differs only in LF and CRLF.
func findLineEnds(text, old, new string, all bool) []span {
	if !strings.Contains(text, "\r\n") && !strings.Contains(old, "\r\n") {
		return nil
	}
	plain, removed := withoutCR(text)
	plainOld, _ := withoutCR(old)
	if strings.Contains(old, "\r\n") {
		new, _ = withoutCR(new) // it speaks of lines, not of their ends
	}
	var spans []span
	for _, s := range findExact(plain, plainOld, "", all) {
		start, end := s.start+countBelow(removed, s.start), s.end+countBelow(removed, s.end)
		spans = append(spans, span{start, end, withLineEnds(new, usesCRLF(text, start, end))})
	}
	return spans
}

// withoutCR turns CRLF into LF. removed holds, for each CR left out, the offset
// in the result of the LF that came after it.
func withoutCR(text string) (plain string, removed []int) {
	if !strings.Contains(text, "\r\n") {
		return text, nil
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.Index(text, "\r\n")
		if i < 0 {
			b.WriteString(text)
			return b.String(), removed
		}
		b.WriteString(text[:i])
		removed = append(removed, b.Len())
		text = text[i+1:]
		b.WriteByte('\n')
		text = text[1:]
	}
}

// countBelow returns how many of the ascending offsets are below limit.
func countBelow(offsets []int, limit int) int {
	n, _ := slices.BinarySearch(offsets, limit)
	return n
}

// usesCRLF tells which line ends belong in text[start:end]: those that most
// lines there have; when there are none, that of the line it is in, or of the
// one before.
func usesCRLF(text string, start, end int) bool {
	region := text[start:end]
	if lf := strings.Count(region, "\n"); lf > 0 {
		return 2*strings.Count(region, "\r\n") >= lf
	}
	if i := strings.IndexByte(text[end:], '\n'); i >= 0 {
		return end+i > 0 && text[end+i-1] == '\r'
	}
	i := strings.LastIndexByte(text[:start], '\n')
	return i > 0 && text[i-1] == '\r'
}

// withLineEnds turns each LF of s into CRLF, if crlf; a CRLF stays one.
func withLineEnds(s string, crlf bool) string {
	if !crlf || !strings.Contains(s, "\n") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// lineNumbers returns the line on which each span begins, from 1. A span that
// begins with a line end counts as on the line that this ends.
func lineNumbers(text string, spans []span) []int {
	lines := make([]int, 0, len(spans))
	n, pos := 1, 0
	for _, s := range spans {
		if s.start > pos {
			n += strings.Count(text[pos:s.start], "\n")
			pos = s.start
		}
		lines = append(lines, n)
	}
	return lines
}

// patch gives the replacements as hunks; empty for a long text.
func (i editInfo) patch() []hunk {
	if len(i.text) > 4*diffBytes {
		return []hunk{}
	}
	edits := make([]udiff.Edit, 0, len(i.spans))
	for _, s := range i.spans {
		edits = append(edits, udiff.Edit{Start: s.start, End: s.end, New: s.text})
	}
	return patchHunks(i.text, edits)
}

// Limits of a snippet.
const (
	snippetAround = 3
	snippetLines  = 40
)

// snippet shows the new text of a single replacement with the lines around it,
// numbered; empty for several replacements or a long one.
func (i editInfo) snippet() string {
	if len(i.spans) != 1 || strings.Count(i.spans[0].text, "\n") > snippetLines || len(i.spans[0].text) > 8<<10 {
		return ""
	}
	s := i.spans[0]
	from, first := s.start, i.lines[0]
	for range snippetAround + 1 {
		if from = strings.LastIndexByte(i.text[:from], '\n'); from < 0 {
			break
		}
		first--
	}
	to := s.end
	for range snippetAround + 1 {
		next := strings.IndexByte(i.text[to:], '\n')
		if next < 0 {
			to = len(i.text)
			break
		}
		to += next + 1
	}
	shown := i.text[from+1:s.start] + s.text + i.text[s.end:to]
	if len(shown) > 16<<10 {
		return ""
	}
	var b strings.Builder
	if from >= 0 {
		first++
	}
	for line := range strings.Lines(shown) {
		writeNumber(&b, first)
		b.WriteString(strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "\ufffd"))
		b.WriteByte('\n')
		first++
	}
	return strings.TrimSuffix(b.String(), "\n")
}

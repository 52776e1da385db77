package tools

import (
	"strings"
)

// textLine is one line of a text: text[start:end] without its line end, which
// is text[end:next].
type textLine struct {
	start, end, next int
	trimmed          string
}

const blanks = " \t"

func splitText(text string) []textLine {
	var lines []textLine
	for pos := 0; pos < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			next = pos + i + 1
		}
		body := strings.TrimSuffix(text[pos:next], "\n")
		if len(body) < next-pos {
			body = strings.TrimSuffix(body, "\r")
		}
		lines = append(lines, textLine{pos, pos + len(body), next, strings.Trim(body, blanks)})
		pos = next
	}
	return lines
}

// wanted is old_string or new_string as lines.
type wanted struct {
	lines    []string // without line ends
	complete bool     // the last one has its line end
}

func splitWanted(s string) wanted {
	if s == "" {
		return wanted{}
	}
	body, complete := strings.CutSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	return wanted{strings.Split(body, "\n"), complete}
}

// findBlanks finds whole lines that are those of old but for blanks at their
// beginning and end. How old's lines are indented must say consistently how
// the file's are: lines of another block, which only happen to have the same
// words, don't match.
func findBlanks(text, old, new string, all bool) []span {
	o, n := splitWanted(old), splitWanted(new)
	if strings.Trim(old, blanks+"\r\n") == "" {
		return nil
	}
	trimmed := make([]string, len(o.lines))
	for i, l := range o.lines {
		trimmed[i] = strings.Trim(l, blanks)
	}
	lines := splitText(text)
	var spans []span
	for i := 0; i+len(trimmed) <= len(lines); i++ {
		window := lines[i : i+len(trimmed)]
		if !sameTrimmed(window, trimmed) {
			continue
		}
		indents, ok := mapIndents(text, window, o.lines)
		if !ok {
			continue
		}
		spans = append(spans, blankSpan(text, window, o, n, indents))
		if all {
			i += len(trimmed) - 1
		}
	}
	return spans
}

func sameTrimmed(window []textLine, trimmed []string) bool {
	for j := range trimmed {
		if window[j].trimmed != trimmed[j] {
			return false
		}
	}
	return true
}

// mapIndents says which indentation of the file stands for which of old; false
// when one of old would stand for two.
func mapIndents(text string, window []textLine, old []string) (map[string]string, bool) {
	indents := make(map[string]string)
	for j, l := range window {
		if l.trimmed == "" {
			continue
		}
		theirs := indentOf(text[l.start:l.end])
		ours := indentOf(old[j])
		if known, ok := indents[ours]; ok && known != theirs {
			return nil, false
		}
		indents[ours] = theirs
	}
	return indents, true
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, blanks))]
}

// blankSpan replaces the window by the new lines, indented like the file. Lines
// at the beginning and end that new has in common with old stay as they are in
// the file.
func blankSpan(text string, window []textLine, o, n wanted, indents map[string]string) span {
	last := window[len(window)-1]
	s := span{start: window[0].start, end: last.end}
	if o.complete {
		s.end = last.next
	}
	eol := "\n"
	if usesCRLF(text, s.start, s.end) {
		eol = "\r\n"
	}
	head, tail := commonLines(o.lines, n.lines)
	var b strings.Builder
	for i, line := range n.lines {
		kept := -1
		if i < head {
			kept = i
		} else if i >= len(n.lines)-tail {
			kept = len(window) - (len(n.lines) - i)
		}
		end := eol
		if kept >= 0 {
			w := window[kept]
			b.WriteString(text[w.start:w.end])
			if w.next <= s.end && w.next > w.end {
				end = text[w.end:w.next]
			}
		} else {
			b.WriteString(reindent(line, indents))
		}
		if i < len(n.lines)-1 || n.complete && !(o.complete && last.next == last.end) {
			b.WriteString(end)
		}
	}
	s.text = b.String()
	return s
}

// commonLines counts the lines that both begin and end with.
func commonLines(a, b []string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// reindent gives a new line the file's indentation: that which stands for its
// own, or for the longest known beginning of it; a line indented less than any
// known one is shifted as the others are, where they all are shifted alike.
func reindent(line string, indents map[string]string) string {
	indent := indentOf(line)
	body := line[len(indent):]
	if body == "" {
		return line
	}
	best, found := "", false
	for ours := range indents {
		if strings.HasPrefix(indent, ours) && (!found || len(ours) > len(best)) {
			best, found = ours, true
		}
	}
	if found {
		return indents[best] + indent[len(best):] + body
	}
	if shift, ok := commonShift(indents); ok {
		return shift + line
	}
	return line
}

// commonShift returns what the file has before each of old's indentations, if
// it is the same for all.
func commonShift(indents map[string]string) (shift string, ok bool) {
	first := true
	for ours, theirs := range indents {
		s, cut := strings.CutSuffix(theirs, ours)
		if !cut || !first && s != shift {
			return "", false
		}
		shift, first = s, false
	}
	return shift, !first
}

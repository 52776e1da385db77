package tools

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// grepDisplay is the machine-readable form of a search's outcome.
type grepDisplay struct {
	Mode       grepMode `json:"mode"`
	NumFiles   int      `json:"numFiles"`
	Filenames  []string `json:"filenames"`
	Content    string   `json:"content,omitempty"`
	NumLines   int      `json:"numLines,omitempty"`
	NumMatches int      `json:"numMatches,omitempty"`
	Limit      int      `json:"appliedLimit,omitempty"` // set when results were left out
	Offset     int      `json:"appliedOffset,omitempty"`
	NumHidden  int      `json:"numHidden,omitempty"` // files that were not searched: see FileConfig.Hidden
}

// report writes the outcome for the model.
func (t *grepTool) report(at Place, q *grepQuery, found grepFound) Result {
	d := grepDisplay{Mode: q.mode, NumFiles: len(found.files), Filenames: []string{}, Offset: q.offset, NumHidden: found.numHidden()}
	var out limitedText
	total := len(found.files)
	switch q.mode {
	case grepFiles:
		d.Filenames = t.names(q, found, &out)
	case grepCount:
		d.NumMatches = found.matches()
		d.Filenames = t.counts(q, found, &out)
	default:
		total = found.matches()
		content(at, q, found, &out)
		d.Content, d.NumLines = out.b.String(), out.lines
	}
	text := out.b.String()
	if total == 0 {
		text = "No matches found."
	}
	shown := out.results
	if q.offset+shown < total {
		d.Limit = q.limit
	}
	for _, n := range grepNotes(q, found, shown, total) {
		text = strings.TrimSuffix(text, "\n") + "\n[" + n + "]"
	}
	r := Text(strings.TrimSuffix(text, "\n"))
	r.Display = d
	return r
}

// limitedText is a text that takes no more when it is full.
type limitedText struct {
	b       strings.Builder
	lines   int
	results int // lines that are results, not context
}

// line appends a line; false when there is no room for it.
func (l *limitedText) line(s string, result bool) bool {
	if l.b.Len()+len(s) > grepOutBytes {
		return false
	}
	l.b.WriteString(s)
	l.b.WriteByte('\n')
	l.lines++
	if result {
		l.results++
	}
	return true
}

func grepNotes(q *grepQuery, found grepFound, shown, total int) []string {
	var notes []string
	what := "files"
	if q.mode == grepContent {
		what = "matching lines"
	}
	switch {
	case total > 0 && shown == 0:
		notes = append(notes, fmt.Sprintf("offset %d is past the last of %d %s", q.offset, total, what))
	case q.offset+shown < total:
		notes = append(notes, fmt.Sprintf("%d of %d %s in %d files shown; narrow the search, or go on with offset %d", shown, total, what, len(found.files), q.offset+shown))
	}
	if total == 0 && q.dollar && found.crlf {
		notes = append(notes, `there are files with CRLF line ends, where $ does not match: try \r?$`)
	}
	if found.numHidden() > 0 {
		notes = append(notes, hiddenNote(found.hidden))
	}
	if found.unreadable > 0 {
		notes = append(notes, fmt.Sprintf("%d files or directories could not be read", found.unreadable))
	}
	if found.tooLarge > 0 {
		notes = append(notes, fmt.Sprintf("%d files are too large to be searched across lines", found.tooLarge))
	}
	return notes
}

// numHidden counts the files that were left out because they are hidden.
func (f grepFound) numHidden() int {
	n := 0
	for _, files := range f.hidden {
		n += files
	}
	return n
}

// hiddenNote says in one line how many files were left out, and the most
// frequent reasons.
func hiddenNote(hidden map[string]int) string {
	const most = 3
	reasons := slices.SortedFunc(maps.Keys(hidden), func(a, b string) int {
		return cmp.Or(cmp.Compare(hidden[b], hidden[a]), cmp.Compare(a, b))
	})
	total := grepFound{hidden: hidden}.numHidden()
	var why []string
	for _, r := range reasons[:min(len(reasons), most)] {
		text := strings.Join(strings.Fields(r), " ")
		if len(reasons) > 1 {
			text = fmt.Sprintf("%d: %s", hidden[r], text)
		}
		why = append(why, text)
	}
	if len(reasons) > most {
		why = append(why, "and other reasons")
	}
	files, them := "files were", "one of them"
	if total == 1 {
		files, them = "file was", "it"
	}
	return fmt.Sprintf("%d %s not searched (%s); to search %s all the same, ask for it by name: path must be that very file",
		total, files, strings.Join(why, "; "), them)
}

// page returns the files within offset and limit.
func (q *grepQuery) page(files []fileMatch) []fileMatch {
	from := min(q.offset, len(files))
	return files[from:min(from+q.limit, len(files))]
}

func (t *grepTool) names(q *grepQuery, found grepFound, out *limitedText) []string {
	names := []string{}
	for _, f := range q.page(found.files) {
		if !out.line(quotePath(f.path), true) {
			break
		}
		names = append(names, f.path)
	}
	return names
}

func (t *grepTool) counts(q *grepQuery, found grepFound, out *limitedText) []string {
	names := []string{}
	for _, f := range q.page(found.files) {
		if !out.line(quotePath(f.path)+":"+strconv.Itoa(f.count), true) {
			break
		}
		names = append(names, f.path)
	}
	return names
}

// content writes the lines found, with those around them if asked for.
func content(at Place, q *grepQuery, found grepFound, out *limitedText) {
	skip, left := q.offset, q.limit
	for _, f := range found.files {
		if skip >= f.count {
			skip -= f.count
			continue
		}
		lines := f.lines[min(skip, len(f.lines)):]
		skip = 0
		lines = lines[:min(left, len(lines))]
		left -= len(lines)
		if q.before+q.after > 0 {
			lines = around(at.child(f.rel), q, lines)
		}
		if !writeLines(q, f.path, lines, out) || left == 0 {
			return
		}
	}
}

// writeLines writes lines of one file as path:number:text; lines of context
// have dashes, and "--" stands where lines are left out between.
func writeLines(q *grepQuery, path string, lines []lineMatch, out *limitedText) bool {
	context := q.before+q.after > 0
	last := -1
	for _, l := range lines {
		if context && out.lines > 0 && l.number != last+1 && !out.line("--", false) {
			return false
		}
		last = l.number
		sep := ":"
		if l.context {
			sep = "-"
		}
		number := ""
		if q.numbers {
			number = strconv.Itoa(l.number) + sep
		}
		if !out.line(quotePath(path)+sep+number+l.text, !l.context) {
			return false
		}
	}
	return true
}

// around adds the lines around those found, by reading the file again. When it
// can't be read any more, the lines found must do.
func around(at Place, q *grepQuery, found []lineMatch) []lineMatch {
	f, _, err := at.open()
	if err != nil {
		return found
	}
	defer f.Close()
	r, err := decoded(f)
	if err != nil {
		return found
	}
	var all []lineMatch
	br := bufio.NewReaderSize(r, searchBuffer)
	for number, next := 1, 0; ; number++ {
		for next < len(found) && found[next].number+q.after < number {
			next++
		}
		if next == len(found) {
			return all
		}
		line, err := br.ReadSlice('\n')
		text := line
		if len(line) > 0 {
			if found[next].number-q.before <= number {
				all = append(all, contextLine(found[next:], number, bytes.TrimSuffix(text, []byte("\n"))))
			}
		}
		for err == bufio.ErrBufferFull { //nolint:errorlint // bufio returns the very value
			_, err = br.ReadSlice('\n')
		}
		if err != nil {
			return all
		}
	}
}

// contextLine is the line of that number: the one found, or the text given.
func contextLine(found []lineMatch, number int, text []byte) lineMatch {
	for _, l := range found {
		if l.number == number {
			return l
		}
		if l.number > number {
			break
		}
	}
	return lineMatch{number: number, text: shownLine(text), context: true}
}

package tools

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// Sizes of searching. The buffer is ripgrep's: what a NUL byte hides depends
// on it.
const (
	searchBuffer   = 64 << 10
	searchMaxLine  = 16 << 20 // what follows in a longer line is not searched
	multilineBytes = 64 << 20 // larger files are not searched across lines
)

// fileMatch is what was found in one file.
type fileMatch struct {
	path  string // slash-separated, as it is shown
	rel   string // relative to where the walk began; empty: the file that was named
	count int    // matching lines
	lines []lineMatch
	crlf  bool // a line searched ended in CRLF
}

// lineMatch is one line that matched, or (context) that is near one.
type lineMatch struct {
	number  int
	text    string
	context bool
}

// fileSearcher searches one file after the other. It is used by one goroutine.
type fileSearcher struct {
	matcher  *lineMatcher
	spanning *spanMatcher // set for a search across lines
	keep     int          // how many lines to keep of each file
	first    bool         // stop at the first matching line

	buf   []byte
	skip  needleState
	found fileMatch
}

// search searches r, which has about size bytes, and returns what was found;
// count 0 means nothing. As in ripgrep, the search ends without a word where
// the data turns out to be binary.
func (s *fileSearcher) search(r io.Reader, size int64) (fileMatch, error) {
	s.found = fileMatch{}
	var err error
	if s.spanning != nil {
		err = s.searchSpanning(r, size)
	} else {
		err = s.searchLines(r)
	}
	return s.found, err
}

// decoded returns r as UTF-8 without byte order mark; UTF-16 is decoded.
// ripgrep's reader gives the first bytes, among which it looked for the mark,
// on their own; so does this one.
func decoded(r io.Reader) (io.Reader, error) {
	var head [3]byte
	n, err := readFull(r, head[:])
	if err != nil {
		return nil, err
	}
	switch enc := detectBOM(head[:n]); enc {
	case encUTF8BOM:
		return r, nil
	case encUTF16LE, encUTF16BE:
		return &wideReader{r: io.MultiReader(bytes.NewReader(head[2:n]), r), enc: enc}, nil
	}
	return io.MultiReader(bytes.NewReader(bytes.Clone(head[:n])), r), nil
}

// errBinary ends the search of a file.
var errBinary = errors.New("binary data")

// searchLines searches line by line, in constant memory.
func (s *fileSearcher) searchLines(r io.Reader) error {
	r, err := decoded(r)
	if err != nil {
		return err
	}
	if s.buf == nil {
		s.buf = make([]byte, searchBuffer)
	}
	rest, line := 0, 1 // bytes of an unfinished line; number of the first line in buf
	for {
		end, last, err := s.fill(r, rest)
		if errors.Is(err, errBinary) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		line += s.lines(s.buf[:last], line)
		if err != nil || s.first && s.found.count > 0 {
			return nil
		}
		rest = copy(s.buf, s.buf[last:end])
	}
}

// fill reads until there is a whole line in buf, of which rest bytes are there
// already. It returns how much is in buf, and how much of that are whole lines.
func (s *fileSearcher) fill(r io.Reader, rest int) (end, last int, err error) {
	end = rest
	for {
		if end == len(s.buf) {
			if end >= searchMaxLine {
				return end, end, nil
			}
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		n, err := r.Read(s.buf[end:])
		fresh := s.buf[end : end+n]
		if bytes.IndexByte(fresh, 0) >= 0 {
			return 0, 0, errBinary
		}
		end += n
		if err != nil {
			return end, end, err
		}
		if i := bytes.LastIndexByte(fresh, '\n'); i >= 0 {
			return end, end - n + i + 1, nil
		}
	}
}

// lines searches whole lines, the first of which has the number given, and
// returns how many there are.
func (s *fileSearcher) lines(text []byte, number int) int {
	if !s.found.crlf && bytes.Contains(text, []byte("\r\n")) {
		s.found.crlf = true
	}
	s.skip.reset()
	counted, n := 0, 0
	for from := 0; ; {
		start, end, ok := s.matcher.next(text, from, &s.skip)
		if !ok {
			break
		}
		n += bytes.Count(text[counted:start], []byte("\n"))
		counted = start
		s.add(number+n, text[start:end])
		if s.first {
			break
		}
		from = end + 1
	}
	return n + bytes.Count(text[counted:], []byte("\n"))
}

// add records a matching line.
func (s *fileSearcher) add(number int, line []byte) {
	s.found.count++
	if len(s.found.lines) < s.keep {
		s.found.lines = append(s.found.lines, lineMatch{number: number, text: shownLine(line)})
	}
}

// shownLine is a line as it is shown: cut, and repaired where it isn't UTF-8.
func shownLine(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	cut := 0
	if most := grepLineChars * utf8.UTFMax; len(line) > most {
		cut = len(line) - most
		line = trimPartialRune(line[:most])
	}
	text := string(line)
	if !utf8.Valid(line) {
		text = string(bytes.Runes(line))
	}
	if len(text) <= grepLineChars && cut == 0 {
		return text
	}
	chars := 0
	for i := range text {
		if chars == grepLineChars {
			return text[:i] + " ... [line cut]"
		}
		chars++
	}
	return text
}

// searchSpanning searches the whole text at once, so that matches may span
// lines; every line that a match touches counts.
func (s *fileSearcher) searchSpanning(r io.Reader, size int64) error {
	if size > multilineBytes {
		return errTooLarge
	}
	r, err := decoded(io.LimitReader(r, multilineBytes))
	if err != nil {
		return err
	}
	text, err := readSized(r, size)
	if err != nil || bytes.IndexByte(text[:min(len(text), searchBuffer)], 0) >= 0 {
		return err
	}
	s.found.crlf = bytes.Contains(text, []byte("\r\n"))
	s.spans(text, s.spanning.in(text).FindAllIndex(text, -1))
	return nil
}

// spans records the lines that matches touch, each line once. As in ripgrep,
// matches on the same or adjacent lines are one block, and the search ends at a
// block with a NUL in it.
func (s *fileSearcher) spans(text []byte, matches [][]int) {
	b := spanBlock{number: 1, start: -1}
	for _, m := range matches {
		start, end := m[0], m[1]
		if start == len(text) && (start == 0 || text[start-1] == '\n') {
			break // after the last line
		}
		first := 1 + bytes.LastIndexByte(text[:start], '\n')
		if end == start || text[end-1] != '\n' {
			end = min(lineEnd(text, end)+1, len(text))
		}
		if b.start >= 0 && first > b.end {
			if !s.block(text, &b) {
				return
			}
			b.start = -1
		}
		if b.start < 0 {
			b.start = first
		}
		b.end = max(end, b.end)
	}
	if b.start >= 0 {
		s.block(text, &b)
	}
}

// spanBlock is a run of lines that matches touch, and how far lines have been
// counted: the number of the line at counted.
type spanBlock struct {
	start, end      int
	number, counted int
}

// block records the lines of a block; false when the search is to end.
func (s *fileSearcher) block(text []byte, b *spanBlock) bool {
	if bytes.IndexByte(text[b.start:b.end], 0) >= 0 {
		return false
	}
	b.number += bytes.Count(text[b.counted:b.start], []byte("\n"))
	for at := b.start; at < b.end; b.number++ {
		stop := lineEnd(text, at)
		s.add(b.number, text[at:stop])
		if s.first {
			return false
		}
		at = stop + 1
	}
	b.counted = b.end
	return true
}

// errTooLarge says that a file is not searched because of its size.
var errTooLarge = errors.New("too large to be searched across lines")

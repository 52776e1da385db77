package tools

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// maxOutputFile caps the file that holds the whole of one output.
	maxOutputFile = 64 << 20
	// sniffLen is how much of the beginning tells text from binary.
	sniffLen = 4 << 10
	// reportEvery is the least time between two progress reports.
	reportEvery = 250 * time.Millisecond
)

// headTail keeps the first and the last bytes of a stream, half of max each.
type headTail struct {
	max        int
	head, tail []byte
	total      int64
}

func (h *headTail) write(b []byte) {
	h.total += int64(len(b))
	half := h.max / 2
	if n := min(half-len(h.head), len(b)); n > 0 {
		h.head = append(h.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > half {
		b = b[len(b)-half:]
	}
	h.tail = append(h.tail, b...)
	if len(h.tail) > 2*half {
		h.tail = append(h.tail[:0], h.tail[len(h.tail)-half:]...)
	}
}

// ends returns what is kept of the beginning and the end, cut between runes, and
// how many bytes lie between them.
func (h *headTail) ends() (head, tail []byte, omitted int64) {
	half := h.max / 2
	head, tail = h.head, h.tail[max(0, len(h.tail)-half):]
	omitted = h.total - int64(len(head)+len(tail))
	if omitted == 0 {
		return head, tail, 0
	}
	n := unfinished(head)
	head = head[:len(head)-n]
	m := 0
	for m < min(utf8.UTFMax-1, len(tail)) && !utf8.RuneStart(tail[m]) {
		m++
	}
	return head, tail[m:], omitted + int64(n+m)
}

// capture takes the output of one command: the ends of it in memory, the whole
// in a file as soon as it is more than that. It is an io.Writer for the Runner,
// and may be read while it is written to.
type capture struct {
	store  *outputStore
	report func(Progress) // nil: none

	mu       sync.Mutex // guards all below
	view     headTail
	fresh    *headTail // what task_output has not shown yet; nil in the foreground
	start    []byte    // the first bytes, to tell binary from text
	lines    int64
	file     *os.File
	path     string
	filed    int64
	lost     int64 // bytes that are in no file
	fileErr  error
	noFile   bool
	reported time.Time
}

func newCapture(store *outputStore, max int, report func(Progress)) *capture {
	return &capture{store: store, report: report, view: headTail{max: max &^ 1}}
}

// Write implements io.Writer. It never fails: whatever becomes of the file, the
// command goes on.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view.total+int64(len(b)) > int64(c.view.max) {
		c.spill(b)
	}
	if n := min(sniffLen-len(c.start), len(b)); n > 0 {
		c.start = append(c.start, b[:n]...)
	}
	c.lines += int64(bytes.Count(b, []byte{'\n'}))
	c.view.write(b)
	if c.fresh != nil {
		c.fresh.write(b)
	}
	if now := time.Now(); c.report != nil && now.Sub(c.reported) >= reportEvery {
		c.reported = now
		c.report(Progress{Text: lastLine(c.view.head, c.view.tail), Bytes: c.view.total, Lines: c.lines})
	}
	return len(b), nil
}

// spill appends b to the file, which it first makes of all that came before.
func (c *capture) spill(b []byte) {
	if c.file == nil && !c.noFile {
		c.file, c.path, c.fileErr = c.store.create()
		c.noFile = c.file == nil
		if c.file != nil {
			c.appendFile(c.view.head)
			c.appendFile(c.view.tail)
		}
	}
	c.appendFile(b)
}

func (c *capture) appendFile(b []byte) {
	keep := min(int64(len(b)), maxOutputFile-c.filed)
	if c.file == nil || c.fileErr != nil {
		keep = 0
	}
	if keep > 0 {
		n, err := c.file.Write(b[:keep])
		c.filed += int64(n)
		keep, c.fileErr = int64(n), err
	}
	c.lost += int64(len(b)) - keep
}

// close ends the capture. It may still be read.
func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		if err := c.file.Close(); c.fileErr == nil {
			c.fileErr = err
		}
		c.store.release(c.path)
		c.file, c.noFile = nil, true
	}
}

// size returns how many bytes came so far.
func (c *capture) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.total
}

// text returns the output as the model sees it, and the file of the whole if
// there is one.
func (c *capture) text() (text, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.render(&c.view), c.path
}

// drain returns the output that came since the last drain. While more may come
// it keeps back the beginning of an unfinished rune or escape sequence.
func (c *capture) drain(more bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rest []byte
	if more {
		last := &c.fresh.tail
		if len(*last) == 0 {
			last = &c.fresh.head
		}
		n := unfinished(*last)
		rest = bytes.Clone((*last)[len(*last)-n:])
		*last = (*last)[:len(*last)-n]
		c.fresh.total -= int64(n)
	}
	text := c.render(c.fresh)
	c.fresh = &headTail{max: c.fresh.max}
	c.fresh.write(rest)
	return text
}

// render puts the ends together. mu is held.
func (c *capture) render(h *headTail) string {
	if h.total > 0 && bytes.IndexByte(c.start, 0) >= 0 {
		return fmt.Sprintf("[binary output, %s, %s%s; send it to a file or through a program that shows it as text (xxd, base64)]",
			sizeText(c.view.total), http.DetectContentType(c.start), c.where())
	}
	head, tail, omitted := h.ends()
	if omitted == 0 {
		return cleanOutput(append(bytes.Clone(head), tail...))
	}
	return cleanOutput(head) + fmt.Sprintf("\n[... %s left out here%s ...]\n", sizeText(omitted), c.where()) + cleanOutput(tail)
}

// where says where the whole output is.
func (c *capture) where() string {
	switch {
	case c.path == "" && c.fileErr != nil:
		return "; they could not be kept: " + c.fileErr.Error()
	case c.path == "":
		return ""
	case c.fileErr != nil:
		return fmt.Sprintf("; the first %s are in %s, then writing failed: %v", sizeText(c.filed), c.path, c.fileErr)
	case c.lost > 0:
		return fmt.Sprintf("; the first %s of %s are in %s, the rest was dropped", sizeText(c.filed), sizeText(c.view.total), c.path)
	}
	return fmt.Sprintf("; the whole output (%s, %d lines) is in %s: look at parts of it with grep, head, tail or sed", sizeText(c.view.total), c.lines, c.path)
}

// lastLine returns the last line that has text in it, for display.
func lastLine(head, tail []byte) string {
	b := tail
	if len(b) == 0 {
		b = head
	}
	if len(b) > 1024 {
		b = b[len(b)-1024:]
	}
	line := bytes.TrimSpace(b)
	if i := bytes.LastIndexAny(line, "\r\n"); i >= 0 {
		line = line[i+1:]
	}
	return cleanOutput(line[max(0, len(line)-200):])
}

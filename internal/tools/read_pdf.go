package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

// Limits of reading PDFs.
const (
	pdfBytes     = 32 << 20
	pdfPages     = 20 // without a range
	pdfTextBytes = readBytes
	pdfTime      = 20 * time.Second
	pdfOps       = 5_000_000 // drawing operations of one call
	// pdfContentBytes bounds the drawing operations of one page, inflated: the
	// parser would keep a single string of gigabytes in memory.
	pdfContentBytes = 64 << 20
)

// pdfDisplay is the machine-readable form of a PDF that was read.
type pdfDisplay struct {
	Type string  `json:"type"`
	File pdfFile `json:"file"`
}

type pdfFile struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	StartPage  int    `json:"startPage"`
	NumPages   int    `json:"numPages"`
	TotalPages int    `json:"totalPages"`
}

// readPDF gives the text of a PDF.
func readPDF(ctx context.Context, f *os.File, info fs.FileInfo, p Place, pages string) (Result, error) {
	if info.Size() > pdfBytes {
		return Fail(fmt.Sprintf("%s is a PDF of %d bytes; at most %d can be read. Use a command such as pdftotext", quotePath(p.Named), info.Size(), pdfBytes)), nil
	}
	first, last, err := parsePages(pages)
	if err != nil {
		return failed(err), nil
	}
	data, err := readSized(io.NewSectionReader(f, 0, pdfBytes), info.Size())
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pdfTime, errors.New("it took too long"))
	defer cancel()
	text, err := extractPDF(ctx, data, first, last)
	if err != nil {
		return Fail(fmt.Sprintf("%s: the text of this PDF can't be read: %v. A command such as pdftotext may do better", quotePath(p.Named), err)), nil
	}
	r := Text(text.describe())
	r.Display = pdfDisplay{Type: "pdf", File: pdfFile{
		FilePath: p.Named, Content: text.b.String(), StartPage: text.first, NumPages: text.last - text.first + 1, TotalPages: text.total,
	}}
	return r, nil
}

// parsePages reads "3", "2-5" or "10-"; empty means the first pages. last is 0
// when it is open.
func parsePages(s string) (first, last int, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 1, pdfPages, nil
	}
	from, to, ranged := strings.Cut(s, "-")
	first, err = strconv.Atoi(strings.TrimSpace(from))
	last = first
	if err == nil && ranged {
		last = 0
		if to = strings.TrimSpace(to); to != "" {
			last, err = strconv.Atoi(to)
		}
	}
	if err != nil || first < 1 || last != 0 && last < first {
		return 0, 0, fmt.Errorf("pages %q is not a page or a range of pages like 3, 2-5 or 10-", s)
	}
	return first, last, nil
}

// pdfText is what was extracted.
type pdfText struct {
	b                  strings.Builder
	first, last, total int
	cut                bool
	ops                int
}

func (t *pdfText) describe() string {
	text := strings.TrimRight(t.b.String(), "\n")
	switch {
	case t.total == 0:
		return "[the PDF has no pages]"
	case t.last < t.first:
		return fmt.Sprintf("[nothing to show: the PDF has %d pages]", t.total)
	}
	note := fmt.Sprintf("\n\n[pages %d-%d of %d", t.first, t.last, t.total)
	if t.last < t.total {
		note += fmt.Sprintf("; go on with pages %d-%d", t.last+1, min(t.last+pdfPages, t.total))
	}
	if t.cut {
		note += fmt.Sprintf("; the text was cut at %d bytes", pdfTextBytes)
	}
	return text + note + "]"
}

// errPDFEnough ends the reading of a page from inside the parser.
var errPDFEnough = errors.New("enough text")

// extractPDF runs the parser, which panics on broken files, in a goroutine of
// its own and takes its panics for errors. The parser asks for the file's bytes
// and reports every drawing operation through functions that fail once ctx has
// ended, so it ends soon after; extractPDF waits for it.
func extractPDF(ctx context.Context, data []byte, first, last int) (*pdfText, error) {
	t := &pdfText{first: first}
	done := make(chan error, 1)
	go func() { // ends when the parser does; received from below
		defer func() {
			if r := recover(); r != nil {
				done <- pdfPanic(ctx, r)
			}
		}()
		done <- t.extract(ctx, data, last)
	}()
	if err := <-done; err != nil {
		return nil, err
	}
	return t, nil
}

// pdfPanic turns what the parser panicked with into an error.
func pdfPanic(ctx context.Context, r any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("it is damaged or unusual (%v)", r)
}

func (t *pdfText) extract(ctx context.Context, data []byte, last int) error {
	r, err := pdf.NewReader(readUntilDone(ctx, data), int64(len(data)))
	if err != nil {
		return err
	}
	t.total = r.NumPage()
	if last == 0 || last > t.total {
		last = t.total
	}
	t.last = t.first - 1
	for n := t.first; n <= last && !t.cut; n++ {
		if err := checkContext(ctx); err != nil {
			return err
		}
		fmt.Fprintf(&t.b, "--- page %d ---\n", n)
		if err := t.page(ctx, r.Page(n)); err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
		t.b.WriteByte('\n')
		t.last = n
	}
	return nil
}

// page appends the text of one page.
func (t *pdfText) page(ctx context.Context, p pdf.Page) (err error) {
	content := p.V.Key("Contents")
	if p.V.IsNull() || content.IsNull() {
		return nil
	}
	defer func() {
		if r := recover(); r == errPDFEnough { //nolint:errorlint // the very value that was thrown
			t.cut = true
		} else if r != nil {
			panic(r)
		}
	}()
	if tooMuchContent(content) {
		return fmt.Errorf("its content is larger than %d bytes", pdfContentBytes)
	}
	w := pdfWriter{page: p, fonts: make(map[string]pdf.TextEncoding), b: &t.b}
	pdf.Interpret(content, func(stk *pdf.Stack, op string) {
		if t.ops++; t.ops > pdfOps || t.b.Len() > pdfTextBytes {
			panic(errPDFEnough)
		}
		if t.ops&0x3ff == 0 && ctx.Err() != nil {
			panic(context.Cause(ctx))
		}
		w.operator(op, popAll(stk))
	})
	return nil
}

// tooMuchContent inflates a page's content, without keeping it, to see whether
// it is within the limit.
func tooMuchContent(content pdf.Value) bool {
	left := int64(pdfContentBytes)
	for _, stream := range streamsOf(content) {
		r := stream.Reader()
		n, _ := io.CopyN(io.Discard, r, left+1) // what is broken shows when it is parsed
		r.Close()
		if left -= n; left < 0 {
			return true
		}
	}
	return false
}

func streamsOf(content pdf.Value) []pdf.Value {
	if content.Kind() != pdf.Array {
		return []pdf.Value{content}
	}
	var all []pdf.Value
	for i := range content.Len() {
		all = append(all, content.Index(i))
	}
	return all
}

// popAll empties the operand stack; the first operand comes first.
func popAll(stk *pdf.Stack) []pdf.Value {
	args := make([]pdf.Value, stk.Len())
	for i := len(args) - 1; i >= 0; i-- {
		args[i] = stk.Pop()
	}
	return args
}

// pdfWriter writes the text that drawing operations show.
type pdfWriter struct {
	page  pdf.Page
	fonts map[string]pdf.TextEncoding
	enc   pdf.TextEncoding
	b     *strings.Builder
}

func (w *pdfWriter) operator(op string, args []pdf.Value) {
	switch op {
	case "BT", "T*":
		w.newline()
	case "Td", "TD":
		if len(args) == 2 && args[1].Float64() != 0 {
			w.newline()
		} else {
			w.space()
		}
	case "Tm":
		w.space()
	case "Tf":
		if len(args) == 2 {
			w.setFont(args[0].Name())
		}
	case "'", "\"":
		w.newline()
		w.show(args)
	case "Tj":
		w.show(args)
	case "TJ":
		if len(args) == 1 {
			w.showSpaced(args[0])
		}
	}
}

// showSpaced shows the strings of a TJ operand; a wide gap is a space.
func (w *pdfWriter) showSpaced(list pdf.Value) {
	for i := range list.Len() {
		switch item := list.Index(i); item.Kind() {
		case pdf.String:
			w.text(item.RawString())
		case pdf.Integer, pdf.Real:
			if item.Float64() < -200 {
				w.space()
			}
		}
	}
}

func (w *pdfWriter) show(args []pdf.Value) {
	if len(args) > 0 {
		w.text(args[len(args)-1].RawString())
	}
}

func (w *pdfWriter) text(raw string) {
	if w.enc != nil {
		raw = w.enc.Decode(raw)
	}
	w.b.WriteString(strings.ToValidUTF8(raw, "\ufffd"))
}

func (w *pdfWriter) setFont(name string) {
	enc, ok := w.fonts[name]
	if !ok {
		font := w.page.Font(name)
		enc = font.Encoder()
		w.fonts[name] = enc
	}
	w.enc = enc
}

func (w *pdfWriter) newline() {
	if !w.endsWith("\n") {
		w.b.WriteByte('\n')
	}
}

func (w *pdfWriter) space() {
	if !w.endsWith(" \n") {
		w.b.WriteByte(' ')
	}
}

func (w *pdfWriter) endsWith(chars string) bool {
	s := w.b.String()
	return s == "" || strings.IndexByte(chars, s[len(s)-1]) >= 0
}

// readerAtFunc is an io.ReaderAt of one method.
type readerAtFunc func(p []byte, off int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// readUntilDone returns a reader of data that fails once ctx has ended.
func readUntilDone(ctx context.Context, data []byte) readerAtFunc {
	r := bytes.NewReader(data)
	return func(p []byte, off int64) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.ReadAt(p, off)
	}
}

package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlToMarkdown writes a page as Markdown in one pass over its tokens, in time
// linear in its size whatever is in it: no tree is built, and nesting is
// followed to a few levels only. Links become absolute against base. It fails
// only when ctx ends.
func htmlToMarkdown(ctx context.Context, page string, base *url.URL) (string, error) {
	w := &mdWriter{base: base, out: make([]byte, 0, len(page)/2)}
	z := html.NewTokenizer(strings.NewReader(page))
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				w.line()
				w.word("(the rest can't be read: " + err.Error() + ")")
			}
			return w.finish(), nil
		}
		w.token(kind, z)
	}
}

// mdMaxDepth is how many levels of quotes and of lists are shown.
const mdMaxDepth = 6

// mdWriter turns tokens into Markdown.
type mdWriter struct {
	base *url.URL
	out  []byte

	breaks int  // newlines due before the next text: 0, 1 or 2
	blank  bool // a blank is due before the next text

	skip      atom.Atom // element whose content is left out, and how deep in it
	skipDepth int
	title     *strings.Builder // collects the title while inside it
	pageTitle string

	quotes int
	lists  []mdList
	marker string // of a list item, due before its text
	hashes string // of a heading, due before its text

	pre     *strings.Builder // collects a <pre> while inside it
	preLang string
	link    *mdLink
	marks   []mdMark // open emphasis
	cells   int      // of the table row so far
	inTable int
	inCell  bool
	headRow bool // the next row to end is the table's first
}

// mdList is an open list: next is the number of its next item, 0 for bullets.
type mdList struct{ next int }

// mdLink is an open link: what is in it begins at start of out. marks is how
// many emphases were open before it.
type mdLink struct {
	href  string
	start int
	marks int
}

// mdMark is an open emphasis, written once there is text in it.
type mdMark struct {
	tag     atom.Atom
	text    string
	written bool
}

func (w *mdWriter) token(kind html.TokenType, z *html.Tokenizer) {
	if kind == html.CommentToken || kind == html.DoctypeToken {
		return
	}
	t := z.Token()
	if w.skip != 0 {
		w.skipped(kind, t.DataAtom)
		return
	}
	switch kind {
	case html.TextToken:
		w.text(t.Data)
	case html.StartTagToken, html.SelfClosingTagToken:
		w.start(t, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		w.end(t.DataAtom)
	}
}

// skipped follows an element whose content is left out to its end.
func (w *mdWriter) skipped(kind html.TokenType, tag atom.Atom) {
	switch {
	case w.skip == atom.Head && tag == atom.Title:
		w.collectTitle(kind)
	case w.skip == atom.Head && tag == atom.Body:
		w.skip = 0
	case kind == html.StartTagToken && tag == w.skip:
		w.skipDepth++
	case kind == html.EndTagToken && tag == w.skip:
		if w.skipDepth--; w.skipDepth == 0 {
			w.skip = 0
		}
	}
}

// collectTitle begins or ends collecting the title's text.
func (w *mdWriter) collectTitle(kind html.TokenType) {
	if kind == html.StartTagToken && w.pageTitle == "" {
		w.title, w.skip = &strings.Builder{}, 0
	}
}

// text adds what stands between tags.
func (w *mdWriter) text(s string) {
	switch {
	case w.title != nil:
		w.title.WriteString(s)
		return
	case w.pre != nil:
		w.pre.WriteString(s)
		return
	}
	for s != "" {
		i := strings.IndexFunc(s, isHTMLBlank)
		if i < 0 {
			w.word(s)
			return
		}
		if i > 0 {
			w.word(s[:i])
		}
		w.blank = true
		_, size := utf8.DecodeRuneInString(s[i:])
		s = s[i+size:]
	}
}

func isHTMLBlank(r rune) bool {
	return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' || r == '\u00a0'
}

// word writes text without blanks at its place: after due newlines, prefixes
// and blanks.
func (w *mdWriter) word(s string) {
	w.place()
	for i := range w.marks {
		if !w.marks[i].written {
			w.marks[i].written = true
			w.out = append(w.out, w.marks[i].text...)
		}
	}
	w.out = append(w.out, s...)
}

// place writes what is due before text.
func (w *mdWriter) place() {
	atStart := len(w.out) == 0
	switch {
	case w.breaks > 0 || atStart:
		if !atStart {
			w.out = append(w.out, '\n')
			if w.breaks > 1 {
				w.prefix(false)
				w.out = append(trimBlanks(w.out), '\n')
			}
		}
		w.prefix(w.marker != "")
		w.out = append(append(w.out, w.marker...), w.hashes...)
	case w.blank && !w.openerAtEnd():
		w.out = append(w.out, ' ')
	}
	w.breaks, w.blank, w.marker, w.hashes = 0, false, "", ""
}

// openerAtEnd reports whether the output ends with the [ of the open link, so
// that no blank is wanted.
func (w *mdWriter) openerAtEnd() bool { return w.link != nil && len(w.out) == w.link.start }

// prefix begins a line: quote marks and the indentation of lists. An item's
// first line is one level less indented.
func (w *mdWriter) prefix(item bool) {
	for range min(w.quotes, mdMaxDepth) {
		w.out = append(w.out, "> "...)
	}
	depth := min(len(w.lists), mdMaxDepth)
	if item {
		depth--
	}
	for range depth {
		w.out = append(w.out, "  "...)
	}
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// line asks for a new line, block for an empty line, before the next text.
func (w *mdWriter) line() { w.newlines(1) }

func (w *mdWriter) block() { w.newlines(2) }

func (w *mdWriter) newlines(n int) {
	if w.inCell || w.link != nil {
		w.blank = true
		return
	}
	w.closeMarks()
	w.breaks, w.blank = max(w.breaks, n), false
}

// start handles a start tag.
func (w *mdWriter) start(t html.Token, selfClosing bool) {
	tag := t.DataAtom
	switch tag {
	case atom.Script, atom.Style, atom.Template, atom.Svg, atom.Math, atom.Iframe, atom.Object, atom.Canvas, atom.Noembed, atom.Noframes, atom.Datalist, atom.Head:
		if !selfClosing || tag == atom.Script || tag == atom.Style {
			w.skip, w.skipDepth = tag, 1
		}
	case atom.Title:
		w.collectTitle(html.StartTagToken)
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Main, atom.Aside, atom.Nav, atom.Form,
		atom.Fieldset, atom.Figure, atom.Figcaption, atom.Details, atom.Address, atom.Dl:
		w.block()
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(int(tag.String()[1] - '0'))
	case atom.Br, atom.Summary, atom.Dt, atom.Dd, atom.Option, atom.Legend, atom.Caption:
		w.line()
	case atom.Hr:
		w.block()
		w.word("---")
		w.block()
	case atom.Blockquote:
		w.block()
		w.quotes++
	case atom.Ul, atom.Menu, atom.Ol, atom.Li:
		w.list(t)
	case atom.Strong, atom.B, atom.Em, atom.I, atom.Code, atom.Kbd, atom.Samp, atom.Tt, atom.Del, atom.S:
		w.mark(t)
	case atom.Pre:
		w.startPre(t)
	case atom.A:
		w.startLink(attr(t, "href"))
	case atom.Img:
		w.img(t)
	case atom.Table, atom.Tr, atom.Td, atom.Th:
		w.table(tag)
	}
}

// end handles an end tag.
func (w *mdWriter) end(tag atom.Atom) {
	switch tag {
	case atom.Title:
		if w.title != nil {
			w.pageTitle, w.title = strings.Join(strings.Fields(w.title.String()), " "), nil
		}
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Main, atom.Aside, atom.Nav, atom.Form,
		atom.Fieldset, atom.Figure, atom.Figcaption, atom.Details, atom.Address, atom.Dl,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.endLinkAtBlock(tag)
		w.block()
		w.hashes = ""
	case atom.Summary, atom.Dt, atom.Dd, atom.Option, atom.Legend, atom.Caption, atom.Li:
		w.line()
	case atom.Blockquote:
		w.block()
		w.quotes = max(0, w.quotes-1)
	case atom.Ul, atom.Menu, atom.Ol:
		w.endList()
	case atom.Strong, atom.B, atom.Em, atom.I, atom.Code, atom.Kbd, atom.Samp, atom.Tt, atom.Del, atom.S:
		w.endMark(tag)
	case atom.Pre:
		w.endPre()
	case atom.A:
		w.endLink()
	case atom.Table, atom.Tr, atom.Td, atom.Th:
		w.endTable(tag)
	}
}

func (w *mdWriter) heading(level int) {
	w.block()
	if !w.inCell && w.link == nil && w.pre == nil {
		w.hashes = "######"[:level] + " "
	}
}

func (w *mdWriter) list(t html.Token) {
	if w.inCell {
		w.blank = true
		return
	}
	switch t.DataAtom {
	case atom.Li:
		w.line()
		bullet := "- "
		if n := len(w.lists); n > 0 && w.lists[n-1].next > 0 {
			bullet = fmt.Sprintf("%d. ", w.lists[n-1].next)
			w.lists[n-1].next++
		}
		w.marker = bullet
	default:
		if len(w.lists) == 0 {
			w.block()
		} else {
			w.line()
		}
		l := mdList{}
		if t.DataAtom == atom.Ol {
			l.next = 1
		}
		w.lists = append(w.lists, l)
	}
}

func (w *mdWriter) endList() {
	if w.inCell || len(w.lists) == 0 {
		return
	}
	w.lists = w.lists[:len(w.lists)-1]
	w.marker = ""
	if len(w.lists) == 0 {
		w.block()
	} else {
		w.line()
	}
}

// mark opens emphasis or inline code.
func (w *mdWriter) mark(t html.Token) {
	text := "`"
	switch t.DataAtom {
	case atom.Strong, atom.B:
		text = "**"
	case atom.Em, atom.I:
		text = "_"
	case atom.Del, atom.S:
		text = "~~"
	}
	if w.pre != nil {
		if w.preLang == "" && t.DataAtom == atom.Code {
			w.preLang = language(t)
		}
		return
	}
	for _, m := range w.marks {
		if m.text == text { // twice bold is bold
			return
		}
	}
	w.marks = append(w.marks, mdMark{tag: t.DataAtom, text: text})
}

func (w *mdWriter) endMark(tag atom.Atom) {
	for i := len(w.marks) - 1; i >= 0; i-- {
		if w.marks[i].tag == tag {
			w.closeMarksFrom(i)
			return
		}
	}
}

// closeMarks ends all emphasis: Markdown's doesn't cross blocks.
func (w *mdWriter) closeMarks() { w.closeMarksFrom(0) }

func (w *mdWriter) closeMarksFrom(i int) {
	for j := len(w.marks) - 1; j >= i; j-- {
		if w.marks[j].written {
			w.out = append(w.out, w.marks[j].text...)
		}
	}
	w.marks = w.marks[:i]
}

func (w *mdWriter) startPre(t html.Token) {
	w.block()
	if w.pre == nil {
		w.pre, w.preLang = &strings.Builder{}, language(t)
	}
}

// language is the language in a class such as language-go or lang-go.
func language(t html.Token) string {
	for _, class := range strings.Fields(attr(t, "class")) {
		for _, prefix := range [...]string{"language-", "lang-", "highlight-source-"} {
			if lang, ok := strings.CutPrefix(class, prefix); ok && len(lang) < 20 && !strings.ContainsAny(lang, "`\n") {
				return lang
			}
		}
	}
	return ""
}

func (w *mdWriter) endPre() {
	if w.pre == nil {
		return
	}
	code := strings.Trim(strings.ReplaceAll(w.pre.String(), "\r\n", "\n"), "\n")
	lang := w.preLang
	w.pre, w.preLang = nil, ""
	if strings.TrimSpace(code) == "" {
		return
	}
	if w.inCell || w.link != nil {
		w.text(code)
		return
	}
	fence := "```"
	for strings.Contains(code, fence) && len(fence) < 10 {
		fence += "`"
	}
	w.block()
	w.word(fence + lang)
	for line := range strings.Lines(code) {
		w.out = append(w.out, '\n')
		w.prefix(false)
		w.out = append(w.out, strings.TrimSuffix(line, "\n")...)
	}
	w.out = append(w.out, '\n')
	w.prefix(false)
	w.out = append(w.out, fence...)
	w.block()
}

func (w *mdWriter) startLink(href string) {
	w.endLink()
	href = w.absolute(href)
	if href == "" || w.pre != nil {
		return
	}
	w.word("[")
	w.link = &mdLink{href: href, start: len(w.out), marks: len(w.marks)}
}

func (w *mdWriter) endLink() {
	if w.link == nil {
		return
	}
	link := w.link
	w.link = nil
	w.closeMarksFrom(min(link.marks, len(w.marks)))
	if len(w.out) <= link.start { // a link without text says nothing
		w.out = w.out[:max(0, link.start-1)]
		return
	}
	w.out = append(w.out, "]("+link.href+")"...)
}

// endLinkAtBlock ends a link that was left open, so that it can't swallow the
// rest of the page's structure.
func (w *mdWriter) endLinkAtBlock(tag atom.Atom) {
	if w.link != nil && (tag == atom.Section || tag == atom.Article || tag == atom.Main || len(w.out)-w.link.start > 1000) {
		w.endLink()
	}
}

// absolute resolves a link; "" for what is not worth showing.
func (w *mdWriter) absolute(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") || len(href) > 2000 {
		return ""
	}
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if u = w.base.ResolveReference(u); u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	out := u.String()
	if strings.ContainsAny(out, "()") {
		out = strings.ReplaceAll(strings.ReplaceAll(out, "(", "%28"), ")", "%29")
	}
	return out
}

func (w *mdWriter) img(t html.Token) {
	alt := strings.Join(strings.Fields(attr(t, "alt")), " ")
	src := w.absolute(attr(t, "src"))
	if alt == "" || src == "" || w.pre != nil {
		return
	}
	w.word("![" + alt + "](" + src + ")")
}

// table handles the start of a table, row or cell. Tables in tables are
// flattened into the cell.
func (w *mdWriter) table(tag atom.Atom) {
	switch tag {
	case atom.Table:
		if w.inTable++; w.inTable == 1 {
			w.block()
			w.headRow = true
		}
	case atom.Tr:
		if w.inTable == 1 {
			w.endRow()
			w.line()
		}
	default:
		if w.inTable != 1 {
			w.blank = true
			return
		}
		if w.cells == 0 {
			w.word("|")
		} else if w.inCell {
			w.endCell()
		}
		w.cells++
		w.inCell, w.blank = true, true
	}
}

func (w *mdWriter) endTable(tag atom.Atom) {
	switch {
	case w.inTable > 1:
		if tag == atom.Table {
			w.inTable--
		}
	case w.inTable == 0:
	case tag == atom.Td || tag == atom.Th:
		w.endCell()
	default:
		w.endRow()
		if tag == atom.Table {
			w.inTable = 0
			w.block()
		}
	}
}

func (w *mdWriter) endCell() {
	if !w.inCell {
		return
	}
	w.endLink()
	w.endPre()
	w.closeMarks()
	w.blank = false
	w.out = append(w.out, " |"...)
	w.inCell = false
}

func (w *mdWriter) endRow() {
	w.endCell()
	if w.cells == 0 {
		return
	}
	if w.headRow {
		w.headRow = false
		w.line()
		w.word("|" + strings.Repeat(" --- |", min(w.cells, 100)))
	}
	w.cells = 0
	w.line()
}

// finish ends what is open and returns the page.
func (w *mdWriter) finish() string {
	if w.title != nil {
		w.end(atom.Title)
	}
	w.endPre()
	w.endLink()
	w.endRow()
	w.closeMarks()
	body := string(w.out)
	if w.pageTitle == "" || strings.Contains(body[:min(len(body), 2000)], w.pageTitle) {
		return body
	}
	return "Title: " + w.pageTitle + "\n\n" + body
}

func attr(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

package openai

import (
	"strings"
)

// textSink receives what the text scanner makes of the text.
type textSink interface {
	foundText(string)
	foundThinking(string)
	foundCall(call)
}

// textScanner finds tool calls that a model wrote into its text, and reasoning
// in <think> tags at the beginning. All other text passes unchanged, and at
// once, except for bytes that may be the beginning of a call.
//
// A call counts only if it names a tool of the request. Calls announced by a
// marker of a model family count anywhere outside code fences and inline code.
// Bare JSON and ordinary code fences count only where nothing but white space
// and other calls follow in the answer, and only with arguments that fit the
// tool: otherwise they are what they look like, code.
//
// The result does not depend on how the text is cut into pieces.
type textScanner struct {
	tools *toolset
	out   textSink

	held  []byte // text that may belong to a call, from its beginning
	cur   string // what of held is still to be looked at, while run runs
	retry int    // length of held at which looking again is worth it
	mode  scanMode
	begun bool // text was seen
	line  lineState
	maybe []candidate // calls that count if nothing else follows
}

type scanMode uint8

const (
	scanText  scanMode = iota
	scanThink          // within <think>
	scanCalls          // right after a call
)

// candidate is text that is a call if the answer ends after it.
type candidate struct {
	raw   string
	calls []call
}

// feed takes the next piece of text.
func (s *textScanner) feed(text string) {
	if len(s.held) == 0 && s.mode == scanText && s.begun && len(s.maybe) == 0 {
		n := s.plain(text)
		if n > 0 {
			s.out.foundText(text[:n])
		}
		if n == len(text) {
			return
		}
		text = text[n:]
	}
	s.held = append(s.held, text...)
	if len(s.held) >= s.retry {
		s.run(false, false)
	}
}

// close ends the text. cut says that the answer stopped at its length limit.
func (s *textScanner) close(cut bool) {
	s.run(true, cut)
	for _, m := range s.maybe {
		s.give(m.calls)
	}
	s.maybe = nil
}

// closeAsText ends the text, where the calls come otherwise: what is not
// certain is text.
func (s *textScanner) closeAsText() {
	s.run(true, true)
	s.release()
}

func (s *textScanner) give(calls []call) {
	for _, k := range calls {
		s.out.foundCall(k)
	}
}

// run works off what is held, as far as possible.
func (s *textScanner) run(eof, cut bool) {
	s.cur = string(s.held)
	for s.step(eof, cut) {
	}
	s.held = append(s.held[:0], s.cur...)
	s.cur, s.retry = "", 0
	if n := len(s.held); n > 256 && s.mode != scanThink {
		s.retry = n + n/4 // looking costs as much as is held
	}
}

// step does one step and reports whether there may be another one.
func (s *textScanner) step(eof, cut bool) bool {
	if s.cur == "" {
		return false
	}
	switch {
	case s.mode == scanThink:
		return s.think(eof)
	case s.mode == scanCalls:
		return s.afterCall(eof, cut)
	case !s.begun:
		return s.begin(eof)
	}
	if len(s.maybe) > 0 && s.separators() {
		return true
	}
	n := s.plain(s.cur)
	if n > 0 {
		s.text(n)
		return true
	}
	return s.candidate(eof, cut)
}

// text passes the first n bytes held on, of which the line state knows already.
func (s *textScanner) text(n int) {
	piece := s.cur[:n]
	s.drop(n)
	s.release()
	s.out.foundText(piece)
}

// separators adds what may stand between uncertain calls to the last of them.
func (s *textScanner) separators() bool {
	n := 0
	for n < len(s.cur) && isSeparator(s.cur[n]) {
		n++
	}
	if n == 0 {
		return false
	}
	s.maybe[len(s.maybe)-1].raw += s.cur[:n]
	s.drop(n)
	s.line = lineState{}
	return true
}

func (s *textScanner) drop(n int) { s.cur = s.cur[n:] }

// release lets uncertain calls be text.
func (s *textScanner) release() {
	for _, m := range s.maybe {
		s.out.foundText(m.raw)
	}
	s.maybe = nil
}

var thinkTags = [...][2]string{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}}

// begin looks for a thinking tag at the beginning of the text.
func (s *textScanner) begin(eof bool) bool {
	t := strings.TrimLeft(s.cur, " \t\r\n")
	if t == "" && !eof {
		return false
	}
	for _, tag := range thinkTags {
		if strings.HasPrefix(t, tag[0]) {
			s.drop(len(s.cur) - len(t) + len(tag[0]))
			s.mode, s.begun = scanThink, true
			return true
		}
	}
	for _, tag := range thinkTags {
		if !eof && strings.HasPrefix(tag[0], t) {
			return false
		}
	}
	s.begun = true
	return true
}

// think passes thinking on up to its closing tag.
func (s *textScanner) think(eof bool) bool {
	t := s.cur
	for _, tag := range thinkTags {
		if before, _, ok := strings.Cut(t, tag[1]); ok {
			s.passThinking(len(before))
			s.drop(len(tag[1]))
			s.mode = scanText
			return true
		}
	}
	n := len(t)
	if i := strings.LastIndexByte(t, '<'); i >= 0 && !eof {
		if strings.HasPrefix("</think>", t[i:]) || strings.HasPrefix("</thinking>", t[i:]) {
			n = i
		}
	}
	s.passThinking(n)
	return false
}

func (s *textScanner) passThinking(n int) {
	if n > 0 {
		s.out.foundThinking(s.cur[:n])
		s.drop(n)
	}
}

// plain is how many bytes of text are certainly not the beginning of a call.
// It moves the line state on over them.
func (s *textScanner) plain(text string) int {
	if !s.tools.any() {
		return len(text)
	}
	for i := 0; i < len(text); i++ {
		if s.opens(text[i:]) {
			return i
		}
		s.line.next(text[i])
	}
	return len(text)
}

// opens reports whether a call may begin here.
func (s *textScanner) opens(t string) bool {
	if s.line.fence > 0 || s.line.inline {
		return false
	}
	switch t[0] {
	case '<':
		return s.marked(t)
	case '[':
		return s.line.fresh() || s.marked(t)
	case '{', '`':
		return s.line.fresh()
	case 'a', 'c', 't', 'f', 'A':
		return s.line.fresh() && led(t)
	}
	return false
}

// marked reports whether t begins with a marker or one of the XML forms, or may
// do so yet.
func (s *textScanner) marked(t string) bool {
	if m, partial := tokenAt(t, markers[:]); m != "" || partial {
		return true
	}
	for _, tag := range []string{"<function", "<invoke ", "<tool", "<｜DSML｜"} {
		if strings.HasPrefix(t, tag) || strings.HasPrefix(tag, t) {
			return true
		}
	}
	return t[0] == '<' && (s.tools.anyStarts(t[1:]) || namespaced(t))
}

// namespaced reports whether t is, or may be, <x:invoke.
func namespaced(t string) bool {
	name, rest, ok := strings.Cut(t[1:], ":")
	for i := 0; i < len(name); i++ {
		if !identByte(name[i]) {
			return false
		}
	}
	if len(name) > 15 {
		return false
	}
	return !ok || strings.HasPrefix(rest, "invoke ") || strings.HasPrefix("invoke ", rest)
}

var lineLeads = []string{
	"commentary to=functions.", "assistantcommentary to=functions.", "assistant to=functions.",
	"analysis to=functions.", "to=functions.", "Action:", "functools[",
}

func led(t string) bool {
	w, partial := tokenAt(t, lineLeads)
	return w != "" || partial
}

// candidate decides on what begins at the start of held.
func (s *textScanner) candidate(eof, cut bool) bool {
	t := s.cur
	c := cursor{s: t, eof: eof, cut: cut, tools: s.tools}
	var calls []call
	f, weak := fitNo, false
	switch {
	case t[0] == '`':
		return s.fence(&c)
	case t[0] == '{':
		calls, f = c.jsonCalls(false)
		weak = true
	default:
		calls, f, weak = c.opened()
	}
	switch f {
	case fitMore:
		return false
	case fitNo:
		s.line.next(t[0])
		s.text(1)
		return true
	}
	s.found(c.i, calls, weak)
	return true
}

// opened reads a call at a marker, a tag, a lead or a '['.
func (c *cursor) opened() (calls []call, f fit, weak bool) {
	marked, f := c.noise()
	if f == fitMore {
		return nil, f, false
	}
	if !marked && c.i > 0 || c.atEnd() {
		return nil, fitNo, false
	}
	if !marked && c.s[c.i] == '[' {
		calls, f = c.listCalls(false)
		return calls, f, true
	}
	calls, f = c.calls(marked)
	return calls, f, false
}

// found takes n bytes of held as calls.
func (s *textScanner) found(n int, calls []call, weak bool) {
	raw := s.cur[:n]
	s.drop(n)
	if weak {
		s.line = lineState{text: true}
		s.maybe = append(s.maybe, candidate{raw, calls})
		return
	}
	for _, m := range s.maybe {
		s.give(m.calls)
	}
	s.maybe = nil
	s.give(calls)
	s.mode = scanCalls
}

// afterCall takes closers, and further calls that need no marker of their own.
func (s *textScanner) afterCall(eof, cut bool) bool {
	c := cursor{s: s.cur, eof: eof, cut: cut, tools: s.tools}
	marked, f := c.noise()
	if f == fitMore {
		return false
	}
	after := c.i
	calls, f := c.calls(marked)
	switch {
	case f == fitMore:
		return false
	case f == fitYes:
		s.drop(c.i)
		s.give(calls)
		return true
	case marked:
		after = s.lastClosers()
	}
	s.drop(after)
	s.mode = scanText
	s.line = lineState{}
	return true
}

// lastClosers is the length of the closers at the start of held, up to the
// first marker: a marker that no call follows is text.
func (s *textScanner) lastClosers() int {
	t := s.cur
	for i := 0; i < len(t); {
		if isSeparator(t[i]) || t[i] == '}' || t[i] == ']' {
			i++
			continue
		}
		closer, _ := tokenAt(t[i:], closers[:])
		if marker, _ := tokenAt(t[i:], markers[:]); closer == "" || len(marker) > len(closer) {
			return i
		}
		i += len(closer)
	}
	return len(t)
}

// fence decides on a code fence at the start of held.
func (s *textScanner) fence(c *cursor) bool {
	ticks := 0
	for ticks < len(c.s) && c.s[ticks] == '`' {
		ticks++
	}
	if ticks == len(c.s) && !c.eof {
		return false
	}
	const most = 80 // a longer line opens no fence
	end := strings.IndexByte(c.s[:min(len(c.s), most)], '\n')
	if ticks >= 3 && end < 0 && !c.eof && len(c.s) < most {
		return false
	}
	if ticks < 3 || end < 0 || strings.IndexByte(c.s[ticks:end], '`') >= 0 {
		return s.notFence(max(ticks, 1))
	}
	kind := fenceKind(strings.TrimSpace(c.s[ticks:end]))
	if kind == fenceOther || ticks > 3 {
		return s.plainFence(ticks, end+1)
	}
	c.i = end + 1
	if kind == fenceData && c.dataStart() == fitNo {
		return s.plainFence(ticks, end+1)
	}
	calls, f := c.fenceBody(kind == fenceCalls)
	switch f {
	case fitMore:
		return false
	case fitNo:
		return s.plainFence(ticks, end+1)
	}
	s.found(c.i, calls, kind == fenceData)
	return true
}

// dataStart judges the beginning of a data fence early.
func (c *cursor) dataStart() fit {
	t := strings.TrimLeft(c.rest(), " \t\r\n")
	switch {
	case t == "":
		return c.more()
	case t[0] == '{' && c.notACall(t):
		return fitNo
	}
	return fitMore
}

// notFence passes n back-ticks on as text.
func (s *textScanner) notFence(n int) bool {
	for i := 0; i < n; i++ {
		s.line.next('`')
	}
	s.text(n)
	return true
}

// plainFence passes the line that opens a fence on, n bytes; what is in it is
// text up to its closing line.
func (s *textScanner) plainFence(ticks, n int) bool {
	s.line = lineState{fence: ticks}
	s.text(n)
	return true
}

type fenceType uint8

const (
	fenceOther fenceType = iota // code
	fenceData                   // may hold a call
	fenceCalls                  // is made for calls
)

func fenceKind(info string) fenceType {
	switch strings.ToLower(info) {
	case "tool_call", "tool_calls", "tool_code", "tool_use", "tool", "function_call", "function_calls", "toolcall":
		return fenceCalls
	case "", "json", "jsonc", "json5", "xml", "plaintext", "text":
		return fenceData
	}
	return fenceOther
}

// lineState follows where in a Markdown line the text is.
type lineState struct {
	text   bool // something other than white space stands on this line
	inline bool // within `inline code`
	fence  int  // back-ticks of the open code fence; 0 outside
	ticks  int  // length of the run of back-ticks at the line's beginning
	other  bool // something else follows that run on this line
}

// fresh reports whether the line is still empty.
func (l *lineState) fresh() bool { return !l.text }

// next moves over one byte.
func (l *lineState) next(b byte) {
	switch {
	case b == '\n':
		closes := l.fence > 0 && l.ticks >= l.fence && !l.other
		fence := l.fence
		if closes {
			fence = 0
		}
		*l = lineState{fence: fence}
	case b == '`' && l.fence > 0:
		if !l.text || l.ticks > 0 && !l.other {
			l.ticks++
		}
		l.text = true
	case b == '`':
		l.inline = !l.inline
		l.text = true
	case !isSpace(b):
		l.text = true
		l.other = true
	}
}

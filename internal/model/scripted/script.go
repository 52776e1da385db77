package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// Script is a parsed model script. It is immutable: players made from it keep
// their own count of what was used, so one Script may serve many.
type Script struct {
	name   string
	models []string
	steps  []*step
}

// Name returns the name that Parse was given.
func (s *Script) Name() string { return s.name }

// Models returns the model names that the script offers; empty means any.
func (s *Script) Models() []string { return append([]string(nil), s.models...) }

// Steps returns the number of steps.
func (s *Script) Steps() int { return len(s.steps) }

// ParseError says where a script is wrong. Line and Column count from 1, the
// column in bytes.
type ParseError struct {
	Name         string
	Line, Column int
	Message      string
}

// Error implements error: "NAME:LINE:COLUMN: message".
func (e *ParseError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Message)
}

// Load reads and parses the script file at path.
func Load(path string) (*Script, error) {
	data, err := readScript(path)
	if err != nil {
		return nil, fmt.Errorf("reading model script: %w", err)
	}
	return Parse(path, data)
}

// maxScript bounds a script's file, in bytes.
const maxScript = 64 << 20

// readScript reads a regular file: others may have no end, or never begin.
func readScript(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxScript:
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxScript>>20)
	}
	return os.ReadFile(path)
}

// Parse reads a script: JSON objects, one per step, one after the other, with
// comments and trailing commas allowed. name is used in messages only. Every
// error is a [*ParseError]; a script without steps is one.
func Parse(name string, data []byte) (*Script, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := &Script{name: name}
	err := s.parse(data)
	var at *syntaxError
	if errors.As(err, &at) {
		before := data[:min(at.off, len(data))]
		line := bytes.Count(before, []byte("\n"))
		col := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
		return nil, &ParseError{Name: name, Line: line + 1, Column: col + 1, Message: at.msg}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Script) parse(data []byte) error {
	sc := &scanner{src: data}
	for {
		n, ok, err := sc.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := s.add(&n, data); err != nil {
			return err
		}
	}
	if len(s.steps) == 0 {
		return failAt(len(data), `the script has no steps; a step is an object such as {"emit": [{"text": "Hello."}]}`)
	}
	return nil
}

func (s *Script) add(n *node, data []byte) error {
	if n.kind != '{' {
		return failAt(n.off, "a step is an object, not %s", n.what())
	}
	if len(n.fields) > 0 && n.fields[0].key == "script" {
		if len(s.steps) > 0 {
			return failAt(n.off, `the object with "script" must come first in the file`)
		}
		return s.header(n)
	}
	st, err := parseStep(n)
	if err != nil {
		return err
	}
	st.number = len(s.steps) + 1
	st.line = 1 + bytes.Count(data[:n.off], []byte("\n"))
	s.steps = append(s.steps, st)
	return nil
}

func (s *Script) header(n *node) error {
	return n.object(parsers{
		"script": func(n *node) error {
			v, err := n.count(1, 1)
			if err != nil || v != 1 {
				return failAt(n.off, `"script" is the version of the format: 1`)
			}
			return nil
		},
		"note":   func(n *node) error { _, err := n.string(); return err },
		"models": func(n *node) (err error) { s.models, err = n.strings(); return err },
	})
}

// step is what answers one request.
type step struct {
	number int
	line   int
	when   when
	use    int // how many requests it answers; 0 is no limit
	items  []item
	wire   wireOptions
}

// wireOptions change how bytes are sent over HTTP.
type wireOptions struct {
	bytes       int           // bytes per write; 0: a whole event
	every       time.Duration // between writes
	newline     string        // "": the API's own
	contentType string        // "": the API's own
}

// itemKind says what an item of a step does.
type itemKind uint8

const (
	itemText itemKind = iota + 1
	itemThinking
	itemRedacted
	itemTool
	itemEnd     // closes the open block
	itemUsage   // usage so far
	itemPing    // keep-alive
	itemDelay   // nothing but its delay
	itemHeaders // sends the response headers
	itemRaw     // bytes as they are
	itemError   // an API error
	itemFault   // a fault of transport or format
	itemStop    // ends the answer
)

// item is one thing that a step emits.
type item struct {
	kind   itemKind
	first  int           // acts only on the first uses of the step; 0: always
	delay  time.Duration // before it
	every  time.Duration // before each delta but the first
	repeat int           // >= 1: how often the deltas are emitted

	pieces            []string // text, thinking, redacted, tool input, raw: the deltas
	by                chunking
	literal           bool             // {{...}} in pieces means itself
	template          bool             // pieces hold {{...}}
	sig               *model.Signature // nil: whatever is usual; zero: none
	id, name          string
	invalid           string
	comment           string
	usage             *model.Usage
	noUsage           bool // itemStop: "usage": null
	stop              model.StopReason
	respID, respModel *string // itemStop; nil: the player's own
	fault             string
	duration          time.Duration // stall: 0 is for ever
	err               *errorSpec
}

// chunking says how a text is cut into deltas.
type chunking struct {
	word  bool
	whole bool
	runes int
}

// cut cuts pieces as wanted. No chunking leaves the pieces as they are.
func (c chunking) cut(pieces []string) []string {
	if c == (chunking{}) {
		return pieces
	}
	text := strings.Join(pieces, "")
	switch {
	case c.whole:
		return []string{text}
	case c.word:
		return words(text)
	}
	var out []string
	for len(text) > 0 {
		end := 0
		for n := 0; n < c.runes && end < len(text); n++ {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}

// words cuts text behind each run of white space.
func words(text string) []string {
	var out []string
	start, blank := 0, false
	for i, r := range text {
		space := r == ' ' || r == '\n' || r == '\t' || r == '\r'
		if blank && !space {
			out = append(out, text[start:i])
			start = i
		}
		blank = space
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// errorSpec is an API's error answer.
type errorSpec struct {
	kind       model.ErrorKind // "": from status and body
	status     int             // 0: none
	noStatus   bool            // "status" is absent: the kind's usual one
	message    string
	provider   string // for a recorded error; "": the player's name
	requestID  string
	retryAfter time.Duration
	retryText  string        // Retry-After as it is written
	retryDate  time.Duration // Retry-After as a date so far from now; 0: none
	body       []byte
	bodyType   string
	headers    [][2]string
}

const exampleStep = `for example {"when": {"user": "hi"}, "emit": [{"text": "Hello."}]}`

func parseStep(n *node) (*step, error) {
	st := &step{use: -1}
	err := n.object(parsers{
		"note": func(n *node) error { _, err := n.string(); return err },
		"when": func(n *node) error { return st.when.parse(n) },
		"use":  func(n *node) (err error) { st.use, err = parseUse(n); return err },
		"wire": func(n *node) error { return st.wire.parse(n) },
		"emit": func(n *node) error { return st.parseItems(n) },
	})
	if err != nil {
		return nil, err
	}
	if len(st.items) == 0 {
		return nil, failAt(n.off, `this step has nothing to emit; %s (an empty answer is {"fault": "empty"})`, exampleStep)
	}
	if st.use < 0 {
		st.use = 1
		for i := range st.items {
			st.use = max(st.use, st.items[i].first+1)
		}
	}
	return st, st.checkTemplates(n)
}

func parseUse(n *node) (int, error) {
	if n.kind == '"' {
		switch n.str {
		case "once":
			return 1, nil
		case "always":
			return 0, nil
		}
	}
	if v, err := n.count(1, 1<<30); err == nil {
		return v, nil
	}
	return 0, failAt(n.off, `"use" is "once", "always" or a number from 1`)
}

func (st *step) parseItems(n *node) error {
	if n.kind != '[' {
		return failAt(n.off, `"emit" is a list of objects, not %s`, n.what())
	}
	for i := range n.items {
		it, err := parseItem(&n.items[i])
		if err != nil {
			return err
		}
		if len(st.items) > 0 {
			if last := &st.items[len(st.items)-1]; last.ends() {
				return failAt(n.items[i].off, `nothing can come after the end of the answer; put "first": 1 on it if it is to happen only once`)
			}
		}
		st.items = append(st.items, *it)
	}
	return nil
}

// ends reports whether nothing can come after the item.
func (it *item) ends() bool {
	if it.first > 0 {
		return false
	}
	switch it.kind {
	case itemStop, itemError:
		return true
	case itemFault:
		return it.fault != faultStall && it.fault != faultGarbage || it.fault == faultStall && it.duration == 0
	}
	return false
}

var newlines = map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"}

func (w *wireOptions) parse(n *node) error {
	return n.object(parsers{
		"bytes":    func(n *node) (err error) { w.bytes, err = n.count(1, 1<<20); return err },
		"every_ms": func(n *node) (err error) { w.every, err = n.millis(); return err },
		"newline": func(n *node) error {
			name, err := n.string()
			if w.newline = newlines[name]; err != nil || w.newline == "" {
				return failAt(n.off, `"newline" is "lf", "crlf" or "cr"`)
			}
			return nil
		},
		"content_type": func(n *node) (err error) { w.contentType, err = n.string(); return err },
	})
}

// Faults by name.
const (
	faultStall    = "stall"
	faultCut      = "cut"
	faultDrop     = "drop"
	faultReset    = "reset"
	faultGarbage  = "garbage"
	faultHTML     = "html"
	faultEmpty    = "empty"
	faultNoFinish = "no_finish"
)

var faultNames = []string{faultStall, faultCut, faultDrop, faultReset, faultGarbage, faultHTML, faultEmpty, faultNoFinish}

// itemKinds are the keys that say what an item is.
var itemKinds = []string{
	"text", "thinking", "redacted", "tool", "end", "usage", "stop", "ping", "delay_ms", "headers", "raw", "status", "error", "fault",
}

// kindKey finds the key that says what the item is; of several (a fault has a
// "text", an error has "headers") the first of its list.
func kindKey(n *node) (string, error) {
	if n.kind != '{' {
		return "", failAt(n.off, "what is emitted is an object, not %s", n.what())
	}
	for _, k := range []string{"tool", "stop", "fault", "error", "status", "redacted", "raw", "end", "ping", "text", "thinking", "usage", "headers", "delay_ms"} {
		if n.get(k) != nil {
			return k, nil
		}
	}
	for i := range n.fields {
		if s := nearest(n.fields[i].key, itemKinds); s != "" {
			return "", failAt(n.fields[i].off, "unknown key %q; did you mean %q?", n.fields[i].key, s)
		}
	}
	return "", failAt(n.off, "this object does not say what to emit; it needs one of the keys %s", strings.Join(itemKinds, ", "))
}

func parseItem(n *node) (*item, error) {
	key, err := kindKey(n)
	if err != nil {
		return nil, err
	}
	it := &item{repeat: 1}
	keys := parsers{
		"first":    func(n *node) (err error) { it.first, err = n.count(1, 1<<30); return err },
		"delay_ms": func(n *node) (err error) { it.delay, err = n.millis(); return err },
	}
	if err := it.addKeys(key, n, keys); err != nil {
		return nil, err
	}
	if err := n.object(keys); err != nil {
		return nil, err
	}
	it.template = !it.literal && it.kind != itemRedacted && hasTemplate(it.pieces)
	return it, nil
}

// parsers of one object, by key.
type parsers = map[string]func(*node) error

// addKeys adds the keys that an item of the kind key may have.
func (it *item) addKeys(key string, n *node, keys parsers) error {
	switch key {
	case "text":
		it.textual(key, itemText, keys)
	case "thinking":
		it.textual(key, itemThinking, keys)
	case "redacted":
		it.kind = itemRedacted
		keys[key] = func(n *node) error {
			s, err := n.string()
			it.pieces = []string{s}
			return err
		}
		keys["signature"] = it.parseSignature
	case "tool":
		return it.tool(n, keys)
	case "end":
		it.kind = itemEnd
		keys[key] = (*node).isTrue
	case "usage":
		it.kind = itemUsage
		keys[key] = func(n *node) (err error) { it.usage, err = parseUsage(n); return err }
	case "ping":
		it.kind = itemPing
		keys[key] = it.parsePing
		keys["repeat"], keys["every_ms"] = it.parseRepeat, it.parseEvery
	case "delay_ms":
		it.kind = itemDelay
	case "headers":
		it.kind = itemHeaders
		keys[key] = (*node).isTrue
	case "raw":
		it.kind = itemRaw
		it.texts(key, keys)
		keys["repeat"], keys["every_ms"] = it.parseRepeat, it.parseEvery
	case "status", "error":
		it.apiError(keys)
	case "fault":
		it.faulty(keys)
	case "stop":
		it.stopping(keys)
	}
	return nil
}

func (it *item) parsePing(n *node) error {
	if n.kind == '"' && n.str != "" && !strings.ContainsAny(n.str, "\r\n") {
		it.comment = n.str
		return nil
	}
	if n.kind != 't' {
		return failAt(n.off, `"ping" is true (the API's own keep-alive) or the text of an SSE comment, on one line`)
	}
	return nil
}

// textual are texts that stream as deltas.
func (it *item) textual(key string, kind itemKind, keys parsers) {
	it.kind = kind
	it.texts(key, keys)
	keys["repeat"], keys["every_ms"] = it.parseRepeat, it.parseEvery
	keys["signature"] = it.parseSignature
	keys["by"] = it.parseBy
}

// texts is a string or list of strings, maybe with templates.
func (it *item) texts(key string, keys parsers) {
	keys["literal"] = func(n *node) error { it.literal = true; return n.isTrue() }
	keys[key] = func(n *node) (err error) { it.pieces, err = n.strings(); return err }
}

func (it *item) parseRepeat(n *node) (err error) { it.repeat, err = n.count(1, 1<<30); return err }
func (it *item) parseEvery(n *node) (err error)  { it.every, err = n.millis(); return err }

func (it *item) parseBy(n *node) error {
	switch {
	case n.kind == '"' && n.str == "word":
		it.by = chunking{word: true}
		return nil
	case n.kind == '"' && n.str == "whole":
		it.by = chunking{whole: true}
		return nil
	}
	runes, err := n.count(1, 1<<30)
	if err != nil {
		return failAt(n.off, `"by" is "word", "whole" or a number of characters from 1`)
	}
	it.by = chunking{runes: runes}
	return nil
}

// parseSignature reads "value" or {"provider": ..., "value": ...}.
func (it *item) parseSignature(n *node) error {
	it.sig = &model.Signature{}
	if n.kind == '"' {
		it.sig.Value = n.str
		return nil
	}
	return n.object(parsers{
		"provider": func(n *node) (err error) { it.sig.Provider, err = n.string(); return err },
		"value":    func(n *node) (err error) { it.sig.Value, err = n.string(); return err },
		"from":     func(n *node) (err error) { it.sig.From, err = n.count(0, 1<<40); return err },
	})
}

func (it *item) tool(n *node, keys parsers) error {
	it.kind = itemTool
	if n.get("input") != nil && n.get("input_text") != nil {
		return failAt(n.off, `a tool call has "input" or "input_text", not both`)
	}
	it.pieces = []string{"{}"}
	it.texts("input_text", keys)
	keys["tool"] = func(n *node) (err error) { it.name, err = n.string(); return err }
	keys["input"] = func(n *node) error {
		if n.kind != '{' {
			return failAt(n.off, `"input" is an object, not %s; a broken one is written as "input_text"`, n.what())
		}
		it.pieces = []string{string(n.compact(nil))}
		return nil
	}
	keys["id"] = func(n *node) (err error) { it.id, err = n.string(); return err }
	keys["signature"] = it.parseSignature
	keys["by"] = it.parseBy
	keys["every_ms"] = it.parseEvery
	keys["invalid"] = func(n *node) (err error) { it.invalid, err = n.string(); return err }
	return nil
}

// knownStop reports whether a script can hold s; "" is a stop without a reason.
func knownStop(s model.StopReason) bool {
	switch s {
	case model.StopEndTurn, model.StopToolUse, model.StopMaxTokens, model.StopSequence, model.StopRefusal, model.StopPause, "":
		return true
	}
	return false
}

func (it *item) stopping(keys parsers) {
	it.kind = itemStop
	keys["stop"] = func(n *node) error {
		s, err := n.string()
		it.stop = model.StopReason(s)
		if err != nil || knownStop(it.stop) {
			return err
		}
		return failAt(n.off, `unknown stop reason %q; it is one of end_turn, tool_use, max_tokens, stop_sequence, refusal, pause_turn`, s)
	}
	keys["usage"] = func(n *node) (err error) {
		if it.noUsage = n.kind == 'n'; it.noUsage {
			return nil
		}
		it.usage, err = parseUsage(n)
		return err
	}
	keys["id"] = func(n *node) error { s, err := n.string(); it.respID = &s; return err }
	keys["model"] = func(n *node) error { s, err := n.string(); it.respModel = &s; return err }
}

func (it *item) faulty(keys parsers) {
	it.kind = itemFault
	keys["fault"] = func(n *node) error {
		s, err := n.string()
		if err != nil {
			return err
		}
		for _, f := range faultNames {
			if f == s {
				it.fault = s
				return nil
			}
		}
		return failAt(n.off, "unknown fault %q; it is one of %s", s, strings.Join(faultNames, ", "))
	}
	keys["for_ms"] = func(n *node) (err error) {
		if it.duration, err = n.millis(); err == nil && it.duration == 0 {
			return failAt(n.off, `"for_ms" is at least 1; leave it away for a stall without end`)
		}
		return err
	}
	keys["text"] = func(n *node) (err error) { it.pieces, err = n.strings(); return err }
}

func parseUsage(n *node) (*model.Usage, error) {
	u := &model.Usage{}
	into := func(p *int) func(*node) error {
		return func(n *node) (err error) { *p, err = n.count(0, 1<<40); return err }
	}
	return u, n.object(parsers{
		"input": into(&u.InputTokens), "output": into(&u.OutputTokens), "thinking": into(&u.ThinkingTokens),
		"cache_read": into(&u.CacheReadTokens), "cache_write": into(&u.CacheWriteTokens),
	})
}

// errorKinds are what "error" may name.
var errorKinds = []model.ErrorKind{
	model.ErrAuth, model.ErrRateLimit, model.ErrQuota, model.ErrOverloaded, model.ErrServer, model.ErrBadRequest,
	model.ErrNotFound, model.ErrContext, model.ErrNetwork, model.ErrStalled, model.ErrIncomplete, model.ErrMalformed,
	model.ErrBlocked, model.ErrEmpty, model.ErrConfigured, model.ErrMalformedUse,
}

func parseErrorKind(n *node) (model.ErrorKind, error) {
	s, err := n.string()
	if err != nil {
		return "", err
	}
	var names []string
	for _, k := range errorKinds {
		if string(k) == s {
			return k, nil
		}
		names = append(names, string(k))
	}
	return "", failAt(n.off, "unknown error %q; it is one of %s", s, strings.Join(names, ", "))
}

func (it *item) apiError(keys parsers) {
	it.kind = itemError
	e := &errorSpec{noStatus: true}
	it.err = e
	keys["status"] = func(n *node) error {
		v, err := n.count(0, 599)
		if err != nil || v > 0 && v < 300 {
			return failAt(n.off, `"status" is an HTTP error status, 300 to 599 (0: an error without one)`)
		}
		e.status, e.noStatus = v, false
		return nil
	}
	keys["error"] = func(n *node) (err error) { e.kind, err = parseErrorKind(n); return err }
	keys["message"] = func(n *node) (err error) { e.message, err = n.string(); return err }
	keys["provider"] = func(n *node) (err error) { e.provider, err = n.string(); return err }
	keys["request_id"] = func(n *node) (err error) { e.requestID, err = n.headerValue(); return err }
	keys["retry_after"] = e.parseRetryAfter
	keys["retry_after_date"] = func(n *node) (err error) { e.retryDate, err = n.seconds(); return err }
	keys["body"] = func(n *node) error {
		if n.kind == '"' {
			e.body, e.bodyType = []byte(n.str), "text/plain; charset=utf-8"
			return nil
		}
		e.body, e.bodyType = n.compact(nil), "application/json"
		return nil
	}
	keys["headers"] = e.parseHeaders
}

func (e *errorSpec) parseRetryAfter(n *node) (err error) {
	if n.kind == '"' {
		e.retryText, err = n.headerValue()
		return err
	}
	e.retryAfter, err = n.seconds()
	return err
}

func (e *errorSpec) parseHeaders(n *node) error {
	if n.kind != '{' {
		return failAt(n.off, `"headers" of an error is an object of strings, not %s`, n.what())
	}
	for i := range n.fields {
		f := &n.fields[i]
		v, err := f.node.headerValue()
		if err != nil {
			return err
		}
		if !headerName().MatchString(f.key) {
			return failAt(f.off, "%q cannot be the name of a header", f.key)
		}
		e.headers = append(e.headers, [2]string{f.key, v})
	}
	return nil
}

// The accessors of a node check its type.

func (n *node) get(key string) *node {
	for i := range n.fields {
		if n.fields[i].key == key {
			return &n.fields[i].node
		}
	}
	return nil
}

// object calls the function of each key; unknown and doubled keys are errors.
func (n *node) object(keys parsers) error {
	if n.kind != '{' {
		return failAt(n.off, "an object is expected here, not %s", n.what())
	}
	seen := make(map[string]bool, len(n.fields))
	for i := range n.fields {
		f := &n.fields[i]
		parse, known := keys[f.key]
		if !known {
			return unknownKey(f, keys)
		}
		if seen[f.key] {
			return failAt(f.off, "the key %q is there twice", f.key)
		}
		seen[f.key] = true
		if err := parse(&f.node); err != nil {
			return err
		}
	}
	return nil
}

func unknownKey(f *field, keys parsers) error {
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	if s := nearest(f.key, names); s != "" {
		return failAt(f.off, "unknown key %q; did you mean %q?", f.key, s)
	}
	return failAt(f.off, "unknown key %q; known here: %s", f.key, strings.Join(names, ", "))
}

func (n *node) string() (string, error) {
	if n.kind != '"' {
		return "", failAt(n.off, "a string is expected here, not %s", n.what())
	}
	return n.str, nil
}

// strings reads a string, or a list of strings.
func (n *node) strings() ([]string, error) {
	if n.kind == '"' {
		return []string{n.str}, nil
	}
	if n.kind != '[' {
		return nil, failAt(n.off, "a string or a list of strings is expected here, not %s", n.what())
	}
	out := make([]string, 0, len(n.items))
	for i := range n.items {
		s, err := n.items[i].string()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (n *node) headerValue() (string, error) {
	s, err := n.string()
	if err == nil && strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", failAt(n.off, "a header cannot hold control characters")
	}
	return s, err
}

func (n *node) count(low, high int64) (int, error) {
	var v int64
	if n.kind != '0' || json.Unmarshal(n.raw, &v) != nil || v < low || v > high {
		return 0, failAt(n.off, "a whole number from %d to %d is expected here", low, high)
	}
	return int(v), nil
}

func (n *node) number(high float64, unit string) (float64, error) {
	var v float64
	if n.kind != '0' || json.Unmarshal(n.raw, &v) != nil || v < 0 || v > high {
		return 0, failAt(n.off, "a number of %s from 0 to %.0f is expected here", unit, high)
	}
	return v, nil
}

// millis is at most a day.
func (n *node) millis() (time.Duration, error) {
	v, err := n.number(86_400_000, "milliseconds")
	return time.Duration(v * float64(time.Millisecond)), err
}

func (n *node) seconds() (time.Duration, error) {
	v, err := n.number(4e9, "seconds")
	return time.Duration(math.Round(v * float64(time.Second))), err
}

func (n *node) isTrue() error {
	if n.kind != 't' {
		return failAt(n.off, "only true makes sense here, not %s", n.what())
	}
	return nil
}

// parseRegexp compiles a pattern; . matches line breaks too.
func parseRegexp(n *node) (*regexp.Regexp, error) {
	s, err := n.string()
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile("(?s)" + s)
	if err != nil {
		return nil, failAt(n.off, "not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

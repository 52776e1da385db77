package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

// answer turns the chunks of one answer into deltas. It keeps the block order:
// at most one block is open, indices have no gaps.
type answer struct {
	provider string
	emit     func(model.Delta)
	emitted  int // deltas so far
	scratch  []byte
	carry    []byte // first bytes of a character that is not complete yet

	id, model string
	usage     model.Usage
	hasUsage  bool // usage holds
	toldUsage bool // and was emitted
	finish    string

	next  int             // index of the next block
	open  model.DeltaKind // kind of the open block, 0 if none
	blank piece           // white space that counts only if more follows
	wrote bool            // text other than white space was emitted
	calls int             // tool calls emitted

	refused bool
	tools   *toolset
	text    textScanner
	native  callList
	late    []piece // what came in text after a native call began
}

// piece is text of a kind (DeltaText or DeltaThinking), or a call.
type piece struct {
	kind model.DeltaKind
	text string
	call call
}

func newAnswer(provider string, req *model.Request, emit func(model.Delta)) *answer {
	a := &answer{provider: provider, emit: emit}
	a.tools = newToolset(req)
	a.text = textScanner{tools: a.tools, out: a}
	a.native = callList{a: a}
	return a
}

func (a *answer) out(d model.Delta) {
	a.emitted++
	a.emit(d)
}

func (a *answer) ping() { a.out(model.Delta{Kind: model.DeltaPing}) }

// event takes one event of the stream. resp is for the error of an error event.
func (a *answer) event(resp *http.Response, data []byte) error {
	before := a.emitted
	if err := a.decode(resp, data); err != nil {
		a.flushUsage()
		return err
	}
	if a.emitted == before {
		a.ping()
	}
	return nil
}

func (a *answer) decode(resp *http.Response, data []byte) error {
	if c, ok := fastChunk(data, &a.scratch); ok {
		if a.id == "" || a.model == "" {
			a.name(string(c.id), string(c.model))
		}
		a.thinkingBytes(c.thinking)
		a.contentBytes(c.text)
		if c.hasCall {
			a.fragment(&c.call)
		}
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return a.undecodable(resp, data, err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return model.HTTPError(a.provider, resp, data)
	}
	a.name(string(c.ID), string(c.Model))
	if c.Usage != nil {
		a.usage, a.hasUsage, a.toldUsage = c.Usage.convert(), true, false
	}
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			a.choice(&c.Choices[i])
		}
	}
	if a.finish != "" {
		a.flushUsage()
	}
	if len(c.Choices) == 0 && c.Usage == nil && c.ID == "" && c.Model == "" {
		return a.foreign(resp, data)
	}
	return nil
}

func (a *answer) fragment(c *callChunk) {
	f := fragment{Index: &c.index, ID: flexString(c.id), Function: function{Name: flexString(c.name)}}
	a.native.add(&f, string(c.args))
}

// undecodable is the error of an event that is no chunk: cut off, if it is the
// beginning of a JSON text, else not this API.
func (a *answer) undecodable(resp *http.Response, data []byte, cause error) error {
	if errors.Is(cause, io.ErrUnexpectedEOF) || cutShort(data) {
		return a.incomplete()
	}
	var typed *json.UnmarshalTypeError
	if errors.As(cause, &typed) {
		if err := model.HTTPError(a.provider, resp, data); err.Kind != model.ErrServer {
			return err
		}
	}
	return &model.Error{
		Kind: model.ErrMalformed, Provider: a.provider, Err: cause,
		Message: "an event of the answer is not in the chat-completions format: " + quote(data) + "; check the base URL",
	}
}

// foreign judges a JSON object that has nothing of a chunk: an error in another
// form than usual, or something to skip.
func (a *answer) foreign(resp *http.Response, data []byte) error {
	var e struct {
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Choices json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(data, &e) == nil && e.Choices == nil && (e.Message != "" || e.Detail != nil) {
		return model.HTTPError(a.provider, resp, data)
	}
	return nil
}

// cutShort reports whether data is a JSON text that ends too early.
func cutShort(data []byte) bool {
	var syntax *json.SyntaxError
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	return errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) && bytes.HasPrefix(data, []byte("{"))
}

// quote shows the beginning of data.
func quote(data []byte) string {
	const most = 120
	s := strings.ToValidUTF8(string(data[:min(len(data), most)]), "\ufffd")
	if len(data) > most {
		s += "..."
	}
	return string(appendString(nil, s))
}

func (a *answer) name(id, name string) {
	if a.id == "" {
		a.id = id
	}
	if a.model == "" {
		a.model = name
	}
}

func (a *answer) choice(c *choice) {
	for _, p := range []*part{c.Delta, c.Message} {
		if p != nil {
			a.part(p)
		}
	}
	if c.FinishReason != "" && c.FinishReason != "null" && a.finish == "" {
		a.finish = string(c.FinishReason)
	}
}

func (a *answer) part(p *part) {
	thinking, _ := plain(p.ReasoningContent)
	if thinking == "" {
		thinking, _ = plain(p.Reasoning)
	}
	text, inner := plain(p.Content)
	a.thinking(thinking + inner)
	a.content(text)
	if p.Refusal != "" {
		a.refused = true
		a.content(string(p.Refusal))
	}
	for i := range p.ToolCalls {
		f := &p.ToolCalls[i]
		a.native.add(f, argText(f.Function.Arguments))
	}
	if p.FunctionCall != nil {
		zero := 0
		a.native.add(&fragment{Index: &zero, Function: *p.FunctionCall}, argText(p.FunctionCall.Arguments))
	}
}

// contentBytes and thinkingBytes take a text fragment that may end, or begin,
// within a character.
func (a *answer) contentBytes(b []byte) {
	if len(a.carry) == 0 && utf8.Valid(b) {
		if len(b) > 0 {
			a.content(string(b))
		}
		return
	}
	a.content(a.join(b))
}

func (a *answer) thinkingBytes(b []byte) {
	if len(b) > 0 {
		a.thinking(a.join(b))
	}
}

// join completes a split character and keeps back one that b ends within.
func (a *answer) join(b []byte) string {
	if len(a.carry) > 0 {
		b = append(a.carry, b...)
		a.carry = nil
	}
	if n := splitTail(b); n > 0 {
		a.carry = append([]byte(nil), b[len(b)-n:]...)
		b = b[:len(b)-n]
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}

// splitTail is the number of bytes at the end of b that are the beginning of a
// character.
func splitTail(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// content takes text of the model's answer.
func (a *answer) content(s string) {
	if s != "" {
		a.text.feed(s)
	}
}

// thinking takes reasoning text.
func (a *answer) thinking(s string) {
	if s != "" {
		a.put(model.DeltaThinking, s)
	}
}

// foundText, foundThinking and foundCall are called by the text scanner.
func (a *answer) foundText(s string)     { a.put(model.DeltaText, s) }
func (a *answer) foundThinking(s string) { a.put(model.DeltaThinking, s) }

func (a *answer) foundCall(c call) {
	if a.native.waiting() {
		a.late = append(a.late, piece{kind: model.DeltaToolStart, call: c})
		return
	}
	a.native.recovered = append(a.native.recovered, c)
	a.wholeCall("", c)
}

// put emits text. White space that would open a block waits for what follows;
// text after the beginning of a native call waits for the end of the calls.
func (a *answer) put(kind model.DeltaKind, s string) {
	if a.native.waiting() {
		a.late = append(a.late, piece{kind: kind, text: s})
		return
	}
	if a.open != kind {
		if strings.TrimSpace(s) == "" {
			a.hold(kind, s)
			return
		}
		if a.blank.kind == kind {
			s = a.blank.text + s
		}
		a.begin(kind)
	}
	a.wrote = a.wrote || kind == model.DeltaText
	a.out(model.Delta{Kind: kind, Index: a.next - 1, Text: s})
}

// hold keeps white space back that would begin a block.
func (a *answer) hold(kind model.DeltaKind, s string) {
	if a.blank.kind != kind {
		a.blank = piece{kind: kind}
	}
	a.blank.text += s
}

// begin makes a new block the open one.
func (a *answer) begin(kind model.DeltaKind) {
	a.blank = piece{}
	a.open = kind
	a.next++
}

// startCall opens a tool_use block. The id is made anew if it is missing or
// taken.
func (a *answer) startCall(id, name string) {
	a.begin(model.DeltaToolStart)
	a.calls++
	a.out(model.Delta{Kind: model.DeltaToolStart, Index: a.next - 1, ID: a.tools.uniqueID(id), Name: name})
}

func (a *answer) callInput(s string) {
	if s != "" {
		a.out(model.Delta{Kind: model.DeltaToolInput, Index: a.next - 1, Text: s})
	}
}

func (a *answer) endCall(invalid string) {
	a.open = 0
	a.out(model.Delta{Kind: model.DeltaBlockEnd, Index: a.next - 1, Invalid: invalid})
}

// wholeCall emits a call at once.
func (a *answer) wholeCall(id string, c call) {
	a.startCall(id, c.name)
	if c.invalid == "" {
		a.callInput(c.args)
	}
	a.endCall(c.invalid)
}

func (a *answer) flushUsage() {
	if !a.hasUsage || a.toldUsage {
		return
	}
	a.toldUsage = true
	u := a.usage
	a.out(model.Delta{Kind: model.DeltaUsage, Usage: &u})
}

// incomplete is the error of a stream that ended early.
func (a *answer) incomplete() error {
	a.flushUsage()
	return &model.Error{Kind: model.ErrIncomplete, Provider: a.provider,
		Message: "the stream ended in the middle of the answer, without a finish reason"}
}

// end finishes the answer: what was held back, the calls, and DeltaFinish.
func (a *answer) end() error {
	if len(a.carry) > 0 {
		a.content("\ufffd")
	}
	a.closeText(a.cut())
	a.flushUsage()
	stop, err := a.stop()
	if err != nil {
		return err
	}
	d := model.Delta{Kind: model.DeltaFinish, ID: a.id, Name: a.model, Stop: stop}
	if a.hasUsage {
		u := a.usage
		d.Usage = &u
	}
	a.out(d)
	return nil
}

// closeText ends text and calls. cut says that the answer was cut off.
func (a *answer) closeText(cut bool) {
	if len(a.native.list) == 0 {
		a.text.close(cut)
		return
	}
	a.native.close(cut)
	for _, p := range a.late {
		if p.kind == model.DeltaToolStart {
			a.foundCall(p.call)
			continue
		}
		a.put(p.kind, p.text)
	}
	a.text.closeAsText()
}

// cut reports whether the answer stopped at its length limit.
func (a *answer) cut() bool {
	return a.finish == "length" || a.finish == "max_tokens" || a.finish == "model_length"
}

// stop maps the finish reason; see the package comment.
func (a *answer) stop() (model.StopReason, error) {
	something := a.wrote || a.calls > 0
	if a.cut() {
		return model.StopMaxTokens, nil
	}
	switch a.finish {
	case "content_filter", "safety", "sensitive":
		if !something {
			return "", a.fail(model.ErrBlocked, "the provider's content filter blocked the answer")
		}
		return model.StopRefusal, nil
	case "error":
		return "", a.fail(model.ErrServer, "the server ended the answer with finish reason \"error\"")
	}
	switch {
	case a.refused:
		return model.StopRefusal, nil
	case a.calls > 0:
		return model.StopToolUse, nil
	case !something:
		return "", a.fail(model.ErrEmpty, "the model finished without any text or tool call")
	}
	return model.StopEndTurn, nil
}

func (a *answer) fail(kind model.ErrorKind, message string) error {
	return &model.Error{Kind: kind, Provider: a.provider, Message: message}
}

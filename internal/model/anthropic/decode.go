package anthropic

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/agentcli/agent/internal/model"
)

// event is what is read of the API's stream events.
type event struct {
	Type         string          `json:"type"`
	Index        int             `json:"index"`
	Message      *message        `json:"message"`
	ContentBlock *contentBlock   `json:"content_block"`
	Delta        *delta          `json:"delta"`
	Usage        *usage          `json:"usage"`
	Error        json.RawMessage `json:"error"`
}

type message struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	Usage *usage `json:"usage"`
}

type contentBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Input     json.RawMessage `json:"input"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

type usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
	CacheWrite   int `json:"cache_creation_input_tokens"`
	Details      struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// decoder turns the events of one answer into deltas.
type decoder struct {
	emit func(model.Delta)
	resp *http.Response
	req  *model.Request

	next    int // index of the next block
	block   block
	usage   model.Usage
	id      string
	model   string
	stop    string
	calls   map[string]bool // ids of this answer's tool calls
	content bool            // text or a call came
	done    bool            // the message is complete
}

// block is the one that the server has open.
type block struct {
	open   bool
	server int             // the server's index
	kind   model.DeltaKind // DeltaText, DeltaThinking, DeltaRedacted, DeltaToolStart; 0: not for us
	begun  bool            // deltas of it were emitted
	index  int             // ours, once begun
	sig    string
	input  []byte // of a tool call
	whole  []byte // the input that came with the block's start
}

// decode reads the answer in resp until its message_stop.
func decode(resp *http.Response, req *model.Request, emit func(model.Delta)) error {
	d := &decoder{emit: emit, resp: resp, req: req}
	sse := model.NewSSE(resp.Body)
	sse.SetComment(func() { emit(model.Delta{Kind: model.DeltaPing}) })
	for sse.Next() {
		if err := d.event(sse.Data(), sse.Event()); err != nil {
			return err
		}
		if d.done {
			return d.finish()
		}
	}
	if err := sse.Err(); err != nil {
		return model.NetworkError(name, err)
	}
	return d.fail(model.ErrIncomplete, "the stream ended before the end of the message")
}

func (d *decoder) fail(kind model.ErrorKind, msg string) *model.Error {
	return &model.Error{Kind: kind, Provider: name, Message: msg, RequestID: d.resp.Header.Get("request-id")}
}

// event takes one event, named or not.
func (d *decoder) event(data, named []byte) error {
	if kind, index, text, ok := fastDelta(data); ok {
		return d.piece(kind, index, text)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		if cut(err, data) {
			return d.fail(model.ErrIncomplete, "the stream broke off in the middle of an event")
		}
		return d.fail(model.ErrMalformed, "an event of the stream is not the JSON of this API: "+err.Error())
	}
	if e.Type == "" {
		e.Type = string(named)
	}
	return d.take(&e, data)
}

// cut reports whether err says that data lacks its end.
func cut(err error, data []byte) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) && bytes.HasPrefix(data, []byte("{"))
}

func (d *decoder) take(e *event, data []byte) error {
	switch {
	case e.Type == "error", e.Type == "" && len(e.Error) > 0:
		return model.HTTPError(name, d.resp, data)
	case e.Type == "":
		return d.fail(model.ErrMalformed, "an event of the stream has no type: this is not the Anthropic API; check the provider's base URL")
	}
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			d.id, d.model = e.Message.ID, e.Message.Model
			d.count(e.Message.Usage)
		}
	case "content_block_start":
		d.end()
		if e.ContentBlock != nil {
			d.start(e.Index, e.ContentBlock)
		}
	case "content_block_delta":
		return d.delta(e)
	case "content_block_stop":
		if d.block.server == e.Index {
			d.end()
		}
	case "message_delta":
		if e.Delta != nil && e.Delta.StopReason != "" {
			d.stop = e.Delta.StopReason
		}
		d.count(e.Usage)
	case "message_stop":
		d.done = true
	case "ping":
		d.emit(model.Delta{Kind: model.DeltaPing})
	}
	return nil
}

// count takes cumulative counts. Gateways leave some of them 0 in one of the
// two events that carry them.
func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	set := func(to *int, n int) {
		if n > 0 {
			*to = n
		}
	}
	before := d.usage
	set(&d.usage.InputTokens, u.InputTokens)
	set(&d.usage.OutputTokens, u.OutputTokens)
	set(&d.usage.CacheReadTokens, u.CacheRead)
	set(&d.usage.CacheWriteTokens, u.CacheWrite)
	set(&d.usage.ThinkingTokens, u.Details.Thinking)
	if d.usage != before {
		now := d.usage
		d.emit(model.Delta{Kind: model.DeltaUsage, Usage: &now})
	}
}

// start opens the server's next block.
func (d *decoder) start(index int, b *contentBlock) {
	d.block = block{open: true, server: index}
	switch b.Type {
	case "text":
		d.block.kind = model.DeltaText
		d.say(b.Text)
	case "thinking":
		d.block.kind = model.DeltaThinking
		d.say(b.Thinking)
		d.sign(b.Signature)
	case "redacted_thinking":
		d.block.kind = model.DeltaRedacted
		d.emit(model.Delta{Kind: model.DeltaRedacted, Index: d.begin(), Text: b.Data})
		d.emit(model.Delta{Kind: model.DeltaSignature, Index: d.block.index, Sig: model.Signature{Provider: name}})
	case "tool_use":
		d.content = true
		d.block.kind = model.DeltaToolStart
		d.block.whole = b.Input
		d.emit(model.Delta{Kind: model.DeltaToolStart, Index: d.begin(), ID: d.callID(b.ID), Name: b.Name})
	}
}

// begin gives the open block its index, at its first delta, and returns it.
func (d *decoder) begin() int {
	if !d.block.begun {
		d.block.begun = true
		d.block.index = d.next
		d.next++
	}
	return d.block.index
}

func (d *decoder) delta(e *event) error {
	if e.Delta == nil {
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		return d.piece(model.DeltaText, e.Index, e.Delta.Text)
	case "thinking_delta":
		return d.piece(model.DeltaThinking, e.Index, e.Delta.Thinking)
	case "input_json_delta":
		return d.piece(model.DeltaToolInput, e.Index, e.Delta.PartialJSON)
	case "signature_delta":
		if d.block.open && d.block.server == e.Index && d.block.kind == model.DeltaThinking {
			d.sign(e.Delta.Signature)
		}
	}
	return nil
}

// piece takes a piece of the server's block index.
func (d *decoder) piece(kind model.DeltaKind, index int, text string) error {
	known := d.block.open && d.block.server == index
	if known && d.block.kind == 0 {
		return nil
	}
	if kind == model.DeltaToolInput {
		if !known || d.block.kind != model.DeltaToolStart {
			return d.fail(model.ErrMalformed, "the stream has input for a tool call that did not start")
		}
		d.input(text)
		return nil
	}
	if !known || d.block.kind != kind { // some gateways leave out the start
		d.end()
		d.block = block{open: true, server: index, kind: kind}
	}
	d.say(text)
	return nil
}

// say emits a piece of text or thinking.
func (d *decoder) say(text string) {
	if text == "" {
		return
	}
	d.content = d.content || d.block.kind == model.DeltaText
	d.emit(model.Delta{Kind: d.block.kind, Index: d.begin(), Text: text})
}

func (d *decoder) sign(sig string) {
	if sig == "" {
		return
	}
	if !d.block.begun { // thinking whose text is withheld
		d.emit(model.Delta{Kind: model.DeltaThinking, Index: d.begin()})
	}
	d.block.sig += sig
	d.emit(model.Delta{Kind: model.DeltaSignature, Index: d.block.index, Sig: model.Signature{Provider: name, Value: d.block.sig}})
}

func (d *decoder) input(text string) {
	if text == "" {
		return
	}
	d.block.input = append(d.block.input, text...)
	d.emit(model.Delta{Kind: model.DeltaToolInput, Index: d.block.index, Text: text})
}

// end closes the open block.
func (d *decoder) end() {
	b := &d.block
	if b.kind == model.DeltaToolStart && len(b.input) == 0 && len(b.whole) > 0 && string(b.whole) != "null" {
		d.input(string(b.whole))
	}
	if b.begun {
		end := model.Delta{Kind: model.DeltaBlockEnd, Index: b.index}
		if b.kind == model.DeltaToolStart {
			end.Invalid = invalid(b.input)
		}
		d.emit(end)
	}
	d.block = block{}
}

// invalid says why input is not the input of a tool call; "" if it is one.
func invalid(input []byte) string {
	input = bytes.TrimSpace(input)
	if len(input) == 0 || input[0] == '{' && json.Valid(input) {
		return ""
	}
	return "the arguments are not a JSON object: " + string(input)
}

// callID returns id, or one of our own if it is empty or was used before in
// this conversation.
func (d *decoder) callID(id string) string {
	if id == "" || d.calls[id] || usedBefore(d.req, id) {
		id = "toolu_" + rand.Text()
	}
	if d.calls == nil {
		d.calls = map[string]bool{}
	}
	d.calls[id] = true
	return id
}

func usedBefore(req *model.Request, id string) bool {
	for _, m := range req.Messages {
		if m == nil {
			continue
		}
		for _, b := range m.Blocks {
			if t, ok := b.(model.ToolUse); ok && t.ID == id {
				return true
			}
		}
	}
	return false
}

// finish emits the end of a complete message, or returns why it is none.
func (d *decoder) finish() error {
	d.end()
	stop := stopReason(d.stop, len(d.calls) > 0)
	if !d.content {
		switch stop {
		case model.StopRefusal:
			return d.fail(model.ErrBlocked, "the model refused to answer (stop reason refusal)")
		case model.StopMaxTokens, model.StopPause:
		default:
			return d.fail(model.ErrEmpty, "the answer has no content (stop reason "+strconv.Quote(d.stop)+")")
		}
	}
	end := model.Delta{Kind: model.DeltaFinish, Stop: stop, ID: d.id, Name: d.model}
	if d.usage != (model.Usage{}) {
		now := d.usage
		end.Usage = &now
	}
	d.emit(end)
	return nil
}

func stopReason(s string, calls bool) model.StopReason {
	switch s {
	case "max_tokens", "model_context_window_exceeded":
		return model.StopMaxTokens
	case "stop_sequence":
		return model.StopSequence
	case "refusal":
		return model.StopRefusal
	case "pause_turn":
		return model.StopPause
	}
	if calls {
		return model.StopToolUse
	}
	return model.StopEndTurn
}

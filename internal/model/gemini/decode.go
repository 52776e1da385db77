package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/model"
)

const (
	// graceTime is how long the stream may go on in silence after the finish
	// reason came: usually it ends in the same moment.
	graceTime = 500 * time.Millisecond
	// madeID begins the ids made here for calls that came without one. They are
	// not sent back.
	madeID = "gemini_call_"
)

// chunk is what is read of a GenerateContentResponse.
type chunk struct {
	Candidates     []candidate     `json:"candidates"`
	PromptFeedback *feedback       `json:"promptFeedback"`
	Usage          *usage          `json:"usageMetadata"`
	ModelVersion   string          `json:"modelVersion"`
	ResponseID     string          `json:"responseId"`
	Error          json.RawMessage `json:"error"`
}

type candidate struct {
	Content       parts  `json:"content"`
	FinishReason  string `json:"finishReason"`
	FinishMessage string `json:"finishMessage"`
	Index         int    `json:"index"`
}

type parts struct {
	Parts []part `json:"parts"`
}

type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *call  `json:"functionCall"`
}

type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type feedback struct {
	BlockReason        string `json:"blockReason"`
	BlockReasonMessage string `json:"blockReasonMessage"`
}

type usage struct {
	Prompt     int `json:"promptTokenCount"`
	Cached     int `json:"cachedContentTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount"`
	ToolUse    int `json:"toolUsePromptTokenCount"`
}

func (u usage) tokens() model.Usage {
	return model.Usage{
		InputTokens:     max(u.Prompt-u.Cached, 0) + u.ToolUse,
		CacheReadTokens: u.Cached,
		OutputTokens:    u.Candidates + u.Thoughts,
		ThinkingTokens:  u.Thoughts,
	}
}

// decoder turns the chunks of one answer into deltas.
type decoder struct {
	emit func(model.Delta)
	resp *http.Response
	req  *model.Request

	next    int             // index of the next block
	kind    model.DeltaKind // of the open text or thinking block; 0: none is open
	length  int             // bytes of its text
	used    map[string]bool // ids of this answer's calls
	content bool            // text or a call came

	usage    usage
	counted  bool  // usage came
	told     usage // what was emitted of it
	id       string
	model    string
	finish   string
	finished string // the finish message
}

// decode reads the answer in resp. cancel ends the request: a server that keeps
// the stream open after the end of the answer is not waited for.
func decode(resp *http.Response, req *model.Request, emit func(model.Delta), cancel func()) error {
	d := &decoder{emit: emit, resp: resp, req: req}
	var err error
	if isJSON(resp) {
		err = d.array(resp.Body)
	} else if err = model.CheckEventStream(name, resp); err == nil {
		err = d.events(resp.Body, cancel)
	}
	if err == nil {
		return d.end()
	}
	if now := d.usage.tokens(); d.counted && d.usage != d.told {
		emit(model.Delta{Kind: model.DeltaUsage, Usage: &now})
	}
	return err
}

// events reads server-sent events to the end of the stream, or until cancel.
func (d *decoder) events(body io.Reader, cancel func()) error {
	var grace *time.Timer
	defer func() {
		if grace != nil {
			grace.Stop()
		}
	}()
	sse := model.NewSSE(body)
	sse.SetComment(func() { d.emit(model.Delta{Kind: model.DeltaPing}) })
	for sse.Next() {
		if err := d.data(sse.Data()); err != nil {
			return err
		}
		switch {
		case d.finish == "":
		case grace == nil:
			grace = time.AfterFunc(graceTime, cancel)
		default:
			grace.Reset(graceTime)
		}
	}
	if err := sse.Err(); err != nil && d.finish == "" {
		return model.NetworkError(name, err)
	}
	return nil
}

func isJSON(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// array reads what servers send that do not know alt=sse: a JSON array of
// chunks, or a single one.
func (d *decoder) array(body io.Reader) error {
	dec := json.NewDecoder(io.LimitReader(body, model.MaxEvent))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return d.unreadable(err)
	}
	if raw[0] != '[' {
		return d.data(raw)
	}
	var chunks []json.RawMessage
	if err := json.Unmarshal(raw, &chunks); err != nil {
		return d.unreadable(err)
	}
	for _, c := range chunks {
		if err := d.data(c); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) unreadable(err error) *model.Error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return d.fail(model.ErrMalformed, "a piece of the stream is not the JSON of this API: "+err.Error())
	}
	return model.NetworkError(name, err)
}

func (d *decoder) fail(kind model.ErrorKind, msg string) *model.Error {
	return &model.Error{Kind: kind, Provider: name, Message: msg, RequestID: d.id}
}

// data takes one chunk.
func (d *decoder) data(data []byte) error {
	var f fastChunk
	if f.parse(data) {
		d.identify(f.id, f.model)
		if f.counted {
			d.count(f.usage)
		}
		d.say(kindOf(f.thought), f.text)
		return nil
	}
	if string(data) == "[DONE]" {
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if cut(err, data) {
			return d.fail(model.ErrIncomplete, "the stream broke off in the middle of a chunk")
		}
		return d.unreadable(err)
	}
	return d.take(&c, data)
}

// cut reports whether err says that data lacks its end.
func cut(err error, data []byte) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) && bytes.HasPrefix(data, []byte("{"))
}

// identify remembers the names, without making strings of them each time.
func (d *decoder) identify(id, modelName []byte) {
	if len(id) > 0 && string(id) != d.id {
		d.id = string(id)
	}
	if len(modelName) > 0 && string(modelName) != d.model {
		d.model = string(modelName)
	}
}

func (d *decoder) take(c *chunk, data []byte) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return model.HTTPError(name, d.resp, data)
	}
	d.identify([]byte(c.ResponseID), []byte(c.ModelVersion))
	if c.Usage != nil {
		d.count(*c.Usage)
	}
	for i := range c.Candidates {
		if c.Candidates[i].Index == 0 {
			d.candidate(&c.Candidates[i])
		}
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" && len(c.Candidates) == 0 {
		return d.fail(model.ErrBlocked, withReason("the prompt was blocked", f.BlockReason, f.BlockReasonMessage))
	}
	return nil
}

func withReason(what, reason, detail string) string {
	if detail != "" {
		return what + " (" + reason + "): " + detail
	}
	return what + " (" + reason + ")"
}

// count takes cumulative counts; only the first of an answer are passed on
// before its end.
func (d *decoder) count(u usage) {
	d.usage = u
	if !d.counted {
		d.counted, d.told = true, u
		now := u.tokens()
		d.emit(model.Delta{Kind: model.DeltaUsage, Usage: &now})
	}
}

func (d *decoder) candidate(c *candidate) {
	for i := range c.Content.Parts {
		p := &c.Content.Parts[i]
		if p.Call != nil {
			d.call(p.Call, p.Signature)
			continue
		}
		d.say(kindOf(p.Thought), p.Text)
		if p.Signature != "" {
			d.sign(kindOf(p.Thought), len(p.Text), p.Signature)
		}
	}
	if c.FinishReason != "" {
		d.finish, d.finished = c.FinishReason, c.FinishMessage
	}
}

func kindOf(thought bool) model.DeltaKind {
	if thought {
		return model.DeltaThinking
	}
	return model.DeltaText
}

// say adds text to the open block, or to a new one if that is of another kind.
func (d *decoder) say(kind model.DeltaKind, text string) {
	if text == "" {
		return
	}
	d.open(kind)
	d.length += len(text)
	d.content = d.content || kind == model.DeltaText
	d.emit(model.Delta{Kind: kind, Index: d.next - 1, Text: text})
}

// open makes the open block one of kind, and reports whether it did already.
func (d *decoder) open(kind model.DeltaKind) bool {
	if d.kind == kind {
		return true
	}
	d.close()
	d.kind, d.length = kind, 0
	d.next++
	return false
}

func (d *decoder) close() {
	if d.kind != 0 {
		d.emit(model.Delta{Kind: model.DeltaBlockEnd, Index: d.next - 1})
		d.kind = 0
	}
}

// sign ends the open block with the signature of its last part, of size bytes.
// What came before in the block stays apart: Signature.From.
func (d *decoder) sign(kind model.DeltaKind, size int, value string) {
	if !d.open(kind) && kind == model.DeltaThinking {
		d.emit(model.Delta{Kind: kind, Index: d.next - 1})
	}
	sig := model.Signature{Provider: name, Value: value, From: d.length - size}
	d.emit(model.Delta{Kind: model.DeltaSignature, Index: d.next - 1, Sig: sig})
	d.close()
}

// call emits a whole function call.
func (d *decoder) call(c *call, sig string) {
	d.close()
	d.content = true
	index := d.next
	d.next++
	start := model.Delta{Kind: model.DeltaToolStart, Index: index, ID: d.callID(c.ID), Name: c.Name}
	if sig != "" {
		start.Sig = model.Signature{Provider: name, Value: sig}
	}
	d.emit(start)
	end := model.Delta{Kind: model.DeltaBlockEnd, Index: index}
	if args := bytes.TrimSpace(c.Args); len(args) > 0 && string(args) != "null" {
		d.emit(model.Delta{Kind: model.DeltaToolInput, Index: index, Text: string(args)})
		if args[0] != '{' {
			end.Invalid = "the arguments are not a JSON object: " + string(args)
		}
	}
	d.emit(end)
}

// callID returns id, or one of our own if it is empty or was used before in
// this conversation.
func (d *decoder) callID(id string) string {
	for n := 0; id == "" || d.used[id] || usedBefore(d.req, id); n++ {
		id = d.makeID(n)
	}
	if d.used == nil {
		d.used = map[string]bool{}
	}
	d.used[id] = true
	return id
}

// makeID returns the nth id for the current block. It is the same each time the
// request is sent, so that a retry can say the same again, and no other
// conversation's: messages have ids of their own.
func (d *decoder) makeID(n int) string {
	last := ""
	for _, m := range d.req.Messages {
		if m != nil {
			last = m.ID
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%d", d.req.SessionID, last, d.next, n))
	return madeID + hex.EncodeToString(sum[:12])
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

// wireID returns the id that goes with a call or its response: none if the API
// gave none.
func wireID(id string) string {
	if strings.HasPrefix(id, madeID) {
		return ""
	}
	return id
}

// end emits the end of a complete answer, or returns why it is none.
func (d *decoder) end() error {
	d.close()
	stop, err := d.stop()
	if err != nil {
		return err
	}
	end := model.Delta{Kind: model.DeltaFinish, Stop: stop, ID: d.id, Name: d.model}
	if d.counted {
		now := d.usage.tokens()
		end.Usage = &now
	}
	d.emit(end)
	return nil
}

// stop maps the finish reason.
func (d *decoder) stop() (model.StopReason, error) {
	switch d.finish {
	case "":
		return "", d.fail(model.ErrIncomplete, "the stream ended before the end of the answer (no finish reason)")
	case "MAX_TOKENS":
		return model.StopMaxTokens, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return "", d.fail(model.ErrMalformedUse, withReason("the model made a tool call that the API could not read", d.finish, d.finished))
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		if d.content {
			return model.StopRefusal, nil
		}
		return "", d.fail(model.ErrBlocked, withReason("the answer was blocked", d.finish, d.finished))
	}
	switch {
	case !d.content:
		return "", d.fail(model.ErrEmpty, "the answer has no content (finish reason "+strconv.Quote(d.finish)+")")
	case len(d.used) > 0:
		return model.StopToolUse, nil
	}
	return model.StopEndTurn, nil
}

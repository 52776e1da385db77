package streamjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	// checkOptions normalise a line that is read: compact, strings repaired,
	// duplicate keys refused.
	checkOptions = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.EscapeForJS(true))
	// encodeOptions do the same for raw values that are written. Duplicates in
	// them are the maker's affair.
	encodeOptions = jsonv2.JoinOptions(checkOptions, jsontext.AllowDuplicateNames(true))
	// fieldOptions read a line that checkOptions have been through.
	fieldOptions = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	strictFields = jsonv2.JoinOptions(fieldOptions, jsonv2.RejectUnknownMembers(true))
)

// bom is UTF-8's byte order mark.
var bom = []byte("\uFEFF")

// Decode decodes one line, with or without its newline, of either direction.
// The error is a [*LineError] without Line and Offset. line is not kept.
func Decode(line []byte) (Message, error) {
	var d decoder
	return d.decode(line)
}

// decoder keeps a buffer between lines.
type decoder struct{ scratch []byte }

// maxScratch is the largest buffer kept between lines.
const maxScratch = 1 << 20

func (d *decoder) decode(line []byte) (Message, error) {
	trimmed, skipped := trimLine(line)
	canon, lineErr := d.check(trimmed)
	if lineErr != nil {
		if lineErr.Column > 0 {
			lineErr.Column += skipped
		}
		return nil, lineErr
	}
	kind := textOf(member(canon, `"type"`))
	m, err := decodeObject(canon, kind)
	if err == nil {
		return m, nil
	}
	return nil, &LineError{Kind: KindInvalidField, Msg: describe(err), Excerpt: excerpt(trimmed, 0), Type: kind, RequestID: requestID(canon, kind)}
}

// trimLine cuts white space and a byte order mark, and says how many bytes it
// cut from the front.
func trimLine(line []byte) (trimmed []byte, skipped int) {
	trimmed = bytes.TrimLeft(line, " \t\r\n\v\f")
	trimmed = bytes.TrimPrefix(trimmed, bom)
	trimmed = bytes.TrimLeft(trimmed, " \t\r\n\v\f")
	skipped = len(line) - len(trimmed)
	return bytes.TrimRight(trimmed, " \t\r\n\v\f"), skipped
}

// check makes a line compact and clean, and refuses what is not one JSON
// object with a type. The result is good until the next call.
func (d *decoder) check(line []byte) ([]byte, *LineError) {
	if at := tooDeep(line); at >= 0 {
		return nil, &LineError{Kind: KindTooDeep, Msg: "arrays and objects nested too deeply", Column: at + 1, Excerpt: excerpt(line, at)}
	}
	if cap(d.scratch) > maxScratch {
		d.scratch = nil
	}
	canon, err := jsontext.AppendFormat(d.scratch[:0], line, checkOptions)
	d.scratch = canon
	if err != nil {
		return nil, syntaxError(line, err)
	}
	if canon[0] != '{' {
		return nil, &LineError{Kind: KindNotObject, Msg: "a line must be a JSON object, this is a " + kindName(jsontext.Value(canon).Kind()), Excerpt: excerpt(line, 0)}
	}
	if t := member(canon, `"type"`); len(t) <= len(`""`) || t[0] != '"' {
		return nil, &LineError{Kind: KindMissingType, Msg: `no string under the key "type"`, Excerpt: excerpt(line, 0)}
	}
	return canon, nil
}

func syntaxError(line []byte, err error) *LineError {
	e := &LineError{Kind: KindMalformed, Msg: describe(err), Excerpt: excerpt(line, 0)}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		e.Msg = "the JSON value is not complete"
		e.Column = len(line)
		e.Excerpt = excerpt(line, len(line)-60)
		return e
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return e
	}
	e.Column = int(syntax.ByteOffset) + 1
	e.Excerpt = excerpt(line, int(syntax.ByteOffset))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		e.Kind = KindDuplicateKey
		e.Msg = "key " + string(AppendString(nil, syntax.JSONPointer.LastToken())) + " occurs twice"
		if in := syntax.JSONPointer.Parent(); in != "" {
			e.Msg += " in " + string(in)
		}
		if canon, err := jsontext.AppendFormat(nil, line, encodeOptions); err == nil {
			e.Type = textOf(member(canon, `"type"`))
			e.RequestID = requestID(canon, e.Type)
		}
	}
	return e
}

// textOf is the string that raw holds, "" if it is none.
func textOf(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(text)
}

// requestID is the id of a control line, "" if there is none.
func requestID(line []byte, kind string) string {
	if kind == "control_response" {
		line = member(line, `"response"`)
	}
	return textOf(member(line, `"request_id"`))
}

// decodeObject decodes a line that was checked.
func decodeObject(line []byte, kind string) (Message, error) {
	switch kind {
	case "user":
		return decodeUser(line)
	case "control_request":
		return decodeControlRequest(line)
	case "control_response":
		return decodeControlResponse(line)
	case "control_cancel_request":
		return decodeControlCancel(line)
	case "keep_alive":
		return &KeepAlive{}, nil
	case "assistant":
		return decodeFrame[Assistant](line)
	case "stream_event":
		return decodeStreamEvent(line)
	case "result":
		return decodeFrame[Result](line)
	case "system":
		return decodeSystem(line)
	}
	return &Unknown{Type: kind, Raw: bytes.Clone(line)}, nil
}

func decodeSystem(line []byte) (Message, error) {
	switch textOf(member(line, `"subtype"`)) {
	case "init":
		return decodeSystemFrame[SystemInit](line)
	case "status":
		return decodeSystemFrame[SystemStatus](line)
	case "api_retry":
		return decodeSystemFrame[SystemAPIRetry](line)
	case "permission_denied":
		return decodeSystemFrame[SystemPermissionDenied](line)
	}
	return decodeFrame[System](line)
}

// ignored is a member that was looked at already.
type ignored struct{}

func (*ignored) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }

// frame is a T with the key that leads to it.
type frame[T any] struct {
	Type ignored `json:"type"`
	Body T       `json:",embed"`
}

// systemFrame is a T with the two keys that lead to it.
type systemFrame[T any] struct {
	Type    ignored `json:"type"`
	Subtype ignored `json:"subtype"`
	Body    T       `json:",embed"`
}

// messageOf is a pointer type that is a Message.
type messageOf[T any] interface {
	*T
	Message
}

func decodeFrame[T any, P messageOf[T]](line []byte) (Message, error) {
	var f frame[T]
	if err := jsonv2.Unmarshal(line, &f, fieldOptions); err != nil {
		return nil, err
	}
	return P(&f.Body), nil
}

func decodeSystemFrame[T any, P messageOf[T]](line []byte) (Message, error) {
	var f systemFrame[T]
	if err := jsonv2.Unmarshal(line, &f, fieldOptions); err != nil {
		return nil, err
	}
	return P(&f.Body), nil
}

func decodeUser(line []byte) (Message, error) {
	message := member(line, `"message"`)
	if jsontext.Value(message).Kind() != '{' {
		return nil, badField("a user line needs an object under the key \"message\"")
	}
	if role := member(message, `"role"`); role != nil && textOf(role) != "user" {
		return nil, badField("field /message/role: want \"user\", have %s", excerpt(role, 0))
	}
	if k := jsontext.Value(member(message, `"content"`)).Kind(); k != '"' && k != '[' {
		return nil, badField("field /message/content: want a string or a list of blocks")
	}
	m, err := decodeFrame[UserLine](line)
	if err != nil {
		return nil, err
	}
	u := m.(*UserLine)
	u.Options, u.Origin, u.ToolUseResult = noNull(u.Options), noNull(u.Origin), noNull(u.ToolUseResult)
	return u, nil
}

// noNull is raw, or nil for a JSON null.
func noNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// TurnOptions decodes the line's options. The error is an [*OptionError]: an
// unknown key, or a value that can't be meant. Members that are null are not
// set.
func (m *UserLine) TurnOptions() (TurnOptions, error) {
	var o TurnOptions
	if len(m.Options) == 0 {
		return o, nil
	}
	if k := jsontext.Value(m.Options).Kind(); k != '{' {
		return o, &OptionError{Msg: "want an object, have a " + kindName(k)}
	}
	if err := jsonv2.Unmarshal(m.Options, &o, strictFields); err != nil {
		return TurnOptions{}, optionError(err)
	}
	if raw := member(m.Options, `"maxTurns"`); raw != nil && string(raw) != "null" && o.MaxTurns < 1 {
		return TurnOptions{}, &OptionError{Key: "maxTurns", Msg: "want 1 or more"}
	}
	return o, nil
}

func optionError(err error) error {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return &OptionError{Msg: describe(err)}
	}
	key := semantic.JSONPointer.LastToken()
	if errors.Is(err, jsonv2.ErrUnknownName) {
		return &OptionError{Key: key, Msg: "not known; there are model, permissionMode and maxTurns"}
	}
	msg := "unexpected " + kindName(semantic.JSONKind)
	if semantic.GoType != nil {
		msg = "want " + goTypeName(semantic.GoType.Kind().String()) + ", have " + kindName(semantic.JSONKind)
	}
	return &OptionError{Key: key, Msg: msg}
}

func decodeControlRequest(line []byte) (Message, error) {
	id := textOf(member(line, `"request_id"`))
	if id == "" {
		return nil, badField("a control request needs a string under the key \"request_id\"")
	}
	request := member(line, `"request"`)
	if jsontext.Value(request).Kind() != '{' {
		return nil, badField("a control request needs an object under the key \"request\"")
	}
	subtype := textOf(member(request, `"subtype"`))
	if subtype == "" {
		return nil, badField("field /request: no string under the key \"subtype\"")
	}
	return &ControlRequest{RequestID: id, Subtype: subtype, Request: bytes.Clone(request)}, nil
}

func decodeControlResponse(line []byte) (Message, error) {
	var f struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     json.RawMessage `json:"error"`
		Extra     jsontext.Value  `json:",embed"`
	}
	inner := member(line, `"response"`)
	if jsontext.Value(inner).Kind() != '{' {
		return nil, badField("a control response needs an object under the key \"response\"")
	}
	if err := jsonv2.Unmarshal(inner, &f, fieldOptions); err != nil {
		return nil, err
	}
	if f.RequestID == "" {
		return nil, badField("field /response: no string under the key \"request_id\"")
	}
	m := &ControlResponse{Subtype: f.Subtype, RequestID: f.RequestID, Extra: f.Extra}
	switch f.Subtype {
	case ResponseSuccess:
		m.Response = noNull(f.Response)
	case ResponseError:
		m.Error = errorText(f.Error)
	default:
		return nil, badField("field /response/subtype: want \"success\" or \"error\"")
	}
	return m, nil
}

// errorText is the text of an error that is a string or {"message": string}.
// It is never empty.
func errorText(raw []byte) string {
	text := textOf(raw)
	if text == "" {
		text = textOf(member(raw, `"message"`))
	}
	switch {
	case text != "":
		return text
	case len(raw) == 0 || string(raw) == "null" || string(raw) == `""`:
		return "the error came without a text"
	}
	return string(raw)
}

func decodeControlCancel(line []byte) (Message, error) {
	raw := member(line, `"request_id"`)
	if id := textOf(raw); id != "" || string(raw) == "null" || string(raw) == `""` {
		return &ControlCancel{RequestID: id}, nil
	}
	return nil, badField("a control cancel request needs a string under the key \"request_id\"")
}

// UnmarshalJSONFrom implements the interface of the JSON decoder.
func (c *Content) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*c = Content{}
	switch k := dec.PeekKind(); k {
	case 'n':
		return dec.SkipValue()
	case '"':
		return jsonv2.UnmarshalDecode(dec, &c.Text)
	case '[':
		return c.Blocks.UnmarshalJSONFrom(dec)
	default:
		return badField("field %s: want a string or a list of blocks, have a %s", dec.StackPointer(), kindName(k))
	}
}

// UnmarshalJSONFrom implements the interface of the JSON decoder.
func (bs *Blocks) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*bs = nil
	switch k := dec.PeekKind(); k {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return badField("field %s: want a list of blocks, have a %s", dec.StackPointer(), kindName(k))
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	list := Blocks{}
	for dec.PeekKind() != ']' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		block, err := decodeBlock(raw)
		if err != nil {
			return badField("in %s: %s", dec.StackPointer(), describe(err))
		}
		list = append(list, block)
	}
	*bs = list
	_, err := dec.ReadToken()
	return err
}

func decodeBlock(raw []byte) (Block, error) {
	kind := textOf(member(raw, `"type"`))
	switch kind {
	case "":
		return nil, badField("a content block needs a string under the key \"type\"")
	case "text":
		return blockFrom[TextBlock](raw, "text")
	case "thinking":
		return blockFrom[ThinkingBlock](raw, "thinking")
	case "redacted_thinking":
		return blockFrom[RedactedThinkingBlock](raw, "data")
	case "tool_use":
		return blockFrom[ToolUseBlock](raw, "id", "name")
	case "tool_result":
		return blockFrom[ToolResultBlock](raw, "tool_use_id")
	case "image":
		return sourceBlock[ImageBlock](raw)
	case "document":
		return sourceBlock[DocumentBlock](raw)
	}
	return UnknownBlock{Type: kind, Raw: bytes.Clone(raw)}, nil
}

// blockFrom decodes a block in which the named keys must be strings.
func blockFrom[T Block](raw []byte, required ...string) (Block, error) {
	for _, key := range required {
		if v := member(raw, `"`+key+`"`); len(v) == 0 || v[0] != '"' {
			return nil, badField("this content block needs a string under the key %q", key)
		}
	}
	var b T
	err := jsonv2.Unmarshal(raw, &b, fieldOptions)
	return b, err
}

// sourceBlock decodes an image or document and checks that its source is
// complete.
func sourceBlock[T Block](raw []byte) (Block, error) {
	source := member(raw, `"source"`)
	need := ""
	switch kind := textOf(member(source, `"type"`)); kind {
	case "":
		return nil, badField("this content block needs an object with a type under the key \"source\"")
	case "base64", "text":
		need = "data"
	case "url":
		need = "url"
	}
	if need != "" && textOf(member(source, `"`+need+`"`)) == "" {
		return nil, badField("the source of this content block needs a string under the key %q", need)
	}
	return blockFrom[T](raw)
}

func decodeStreamEvent(line []byte) (Message, error) {
	var f struct {
		Type            ignored         `json:"type"`
		Event           json.RawMessage `json:"event"`
		ParentToolUseID string          `json:"parent_tool_use_id"`
		SessionID       string          `json:"session_id"`
		UUID            string          `json:"uuid"`
		Extra           jsontext.Value  `json:",embed"`
	}
	if err := jsonv2.Unmarshal(line, &f, fieldOptions); err != nil {
		return nil, err
	}
	kind := textOf(member(f.Event, `"type"`))
	if kind == "" {
		return nil, badField("field /event: no string under the key \"type\"")
	}
	if kind == "content_block_delta" && f.Extra == nil {
		if d, ok := decodeDelta(f.Event); ok {
			d.ParentToolUseID, d.SessionID, d.UUID = f.ParentToolUseID, f.SessionID, f.UUID
			return d, nil
		}
	}
	ev, err := decodeEvent(f.Event, kind)
	if err != nil {
		return nil, badField("in /event: %s", describe(err))
	}
	return &StreamEvent{Event: ev, ParentToolUseID: f.ParentToolUseID, SessionID: f.SessionID, UUID: f.UUID, Extra: f.Extra}, nil
}

// decodeDelta decodes a content_block_delta that is nothing but one of the
// common ones.
func decodeDelta(event []byte) (*StreamDelta, bool) {
	var f struct {
		Type  ignored `json:"type"`
		Index int     `json:"index"`
		Delta struct {
			Type        string  `json:"type"`
			Text        *string `json:"text"`
			Thinking    *string `json:"thinking"`
			PartialJSON *string `json:"partial_json"`
			Signature   *string `json:"signature"`
		} `json:"delta"`
	}
	if jsonv2.Unmarshal(event, &f, strictFields) != nil {
		return nil, false
	}
	texts := [...]*string{DeltaText: f.Delta.Text, DeltaThinking: f.Delta.Thinking, DeltaInputJSON: f.Delta.PartialJSON, DeltaSignature: f.Delta.Signature}
	names := [...]string{DeltaText: "text_delta", DeltaThinking: "thinking_delta", DeltaInputJSON: "input_json_delta", DeltaSignature: "signature_delta"}
	var found *StreamDelta
	for kind, text := range texts {
		switch {
		case text == nil:
		case found != nil || f.Delta.Type != names[kind]:
			return nil, false
		default:
			found = &StreamDelta{Index: f.Index, Kind: DeltaKind(kind), Text: *text}
		}
	}
	return found, found != nil
}

func decodeEvent(raw []byte, kind string) (Event, error) {
	switch kind {
	case "message_start":
		return eventFrom[MessageStart](raw)
	case "content_block_start":
		var f struct {
			Index int             `json:"index"`
			Block json.RawMessage `json:"content_block"`
		}
		if err := jsonv2.Unmarshal(raw, &f, fieldOptions); err != nil {
			return nil, err
		}
		block, err := decodeBlock(f.Block)
		return BlockStart{Index: f.Index, Block: block}, err
	case "content_block_stop":
		return eventFrom[BlockStop](raw)
	case "message_delta":
		var f struct {
			Delta struct {
				StopReason   string `json:"stop_reason"`
				StopSequence string `json:"stop_sequence"`
			} `json:"delta"`
			Usage DeltaUsage `json:"usage"`
		}
		err := jsonv2.Unmarshal(raw, &f, fieldOptions)
		return MessageDelta{StopReason: f.Delta.StopReason, StopSequence: f.Delta.StopSequence, Usage: f.Usage}, err
	case "message_stop":
		return MessageStop{}, nil
	case "ping":
		return Ping{}, nil
	}
	return OtherEvent{Type: kind, Raw: bytes.Clone(raw)}, nil
}

func eventFrom[T Event](raw []byte) (Event, error) {
	var ev T
	err := jsonv2.Unmarshal(raw, &ev, fieldOptions)
	return ev, err
}

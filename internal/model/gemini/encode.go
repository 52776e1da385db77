package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// skipSignature is what the API's documentation has clients send in place of
// the thought signature of a function call that Gemini did not make (a
// conversation begun with another model). Gemini 3 refuses a call without one,
// if it is the first of its step.
const skipSignature = "skip_thought_signature_validator"

type head struct {
	SystemInstruction *content          `json:"systemInstruction,omitempty"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitempty"`
}

type content struct {
	Parts []textPart `json:"parts"`
}

type generationConfig struct {
	Temperature     *float64        `json:"temperature,omitempty"`
	TopP            *float64        `json:"topP,omitempty"`
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitempty"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type textPart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought,omitempty"`
	Signature string `json:"thoughtSignature,omitempty"`
}

type callPart struct {
	Call      functionCall `json:"functionCall"`
	Signature string       `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type responsePart struct {
	Response functionResponse `json:"functionResponse"`
}

type functionResponse struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Response result `json:"response"`
}

type result struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

type dataPart struct {
	InlineData inlineData `json:"inlineData"`
}

type inlineData struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type filePart struct {
	FileData fileData `json:"fileData"`
}

type fileData struct {
	MimeType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// encoded is one message in the API's form.
type encoded struct {
	role    string   // user or model
	calls   []string // ids of its function calls, in order
	results []response
	rest    []byte // the other parts: comma-separated JSON objects, maybe none
	// unsigned is the offset in rest behind the last byte of the first function
	// call's object, if that has no signature of this API; else 0.
	unsigned int
}

// response is one function response; call is the id that it answers. A result
// without a tool's name is completed when its call is known.
type response struct {
	call  string
	part  []byte
	later *model.ToolResult
}

// encode returns the body of req.
func (p *provider) encode(req *model.Request) ([]byte, error) {
	turns := join(p.cache.Messages(req.Messages, encodeMessage))
	if len(turns) == 0 {
		return nil, &model.Error{Kind: model.ErrBadRequest, Provider: name, Message: "the request has no message with content"}
	}
	h, err := model.EncodeJSON(newHead(req))
	if err != nil {
		return nil, configError("encoding the request: " + err.Error())
	}
	tools, err := p.cache.Tools(req.Tools, encodeTool)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, len(h)+len(tools)+size(turns)+64)
	body = append(body, `{"contents":[`...)
	body = appendTurns(body, turns, signs(req.Model), req)
	body = append(body, ']')
	if len(tools) > 0 {
		body = append(body, `,"tools":[{"functionDeclarations":[`...)
		body = append(body, tools...)
		body = append(body, `]}]`...)
	}
	if len(h) > len("{}") {
		body = append(body, ',')
	}
	return append(body, h[1:]...), nil
}

func newHead(req *model.Request) head {
	var h head
	if strings.TrimSpace(req.System) != "" {
		h.SystemInstruction = &content{Parts: []textPart{{Text: req.System}}}
	}
	g := generationConfig{Temperature: req.Temperature, TopP: req.TopP, MaxOutputTokens: max(req.MaxOutputTokens, 0), ThinkingConfig: newThinking(req)}
	if g != (generationConfig{}) {
		h.GenerationConfig = &g
	}
	return h
}

// turn is a run of messages of one role.
type turn []*encoded

// join groups messages into turns and leaves out empty ones.
func join(messages []*encoded) []turn {
	turns := make([]turn, 0, len(messages))
	for _, m := range messages {
		if len(m.results)+len(m.rest) == 0 {
			continue
		}
		if last := len(turns) - 1; last >= 0 && turns[last][0].role == m.role {
			turns[last] = append(turns[last], m)
			continue
		}
		turns = append(turns, turn{m})
	}
	return turns
}

func (t turn) calls() []string {
	if len(t) == 1 {
		return t[0].calls
	}
	var all []string
	for _, m := range t {
		all = append(all, m.calls...)
	}
	return all
}

// results returns t's function responses in the order of the calls, which the
// API demands.
func (t turn) results(calls []string) []response {
	all := t[0].results
	if len(t) > 1 {
		all = nil
		for _, m := range t {
			all = append(all, m.results...)
		}
	}
	place := func(r response) int {
		if i := slices.Index(calls, r.call); i >= 0 {
			return i
		}
		return len(calls)
	}
	inOrder := func(a, b response) int { return place(a) - place(b) }
	if !slices.IsSortedFunc(all, inOrder) {
		all = slices.Clone(all)
		slices.SortStableFunc(all, inOrder)
	}
	return all
}

func size(turns []turn) int {
	n := 0
	for _, t := range turns {
		n += 64
		for _, m := range t {
			n += len(m.rest) + 96
			for _, r := range m.results {
				n += len(r.part) + 1
			}
		}
	}
	return n
}

// appendTurns appends the elements of the contents array. signed: the model
// refuses unsigned function calls.
func appendTurns(body []byte, turns []turn, signed bool, req *model.Request) []byte {
	var calls []string
	for i, t := range turns {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"role":"`...)
		body = append(body, t[0].role...)
		body = append(body, `","parts":[`...)
		start := len(body)
		for _, r := range t.results(calls) {
			if r.later != nil {
				r.part = responseOf(*r.later, calledName(req, r.call))
			}
			body = separate(body, start)
			body = append(body, r.part...)
		}
		for _, m := range t {
			if len(m.rest) > 0 {
				body = separate(body, start)
				body = m.appendParts(body, signed)
			}
		}
		body = append(body, "]}"...)
		calls = t.calls()
	}
	return body
}

func separate(body []byte, start int) []byte {
	if len(body) > start {
		body = append(body, ',')
	}
	return body
}

// appendParts appends m's parts; an unsigned first call gets the signature that
// the API accepts in its place.
func (m *encoded) appendParts(body []byte, signed bool) []byte {
	if !signed || m.unsigned == 0 {
		return append(body, m.rest...)
	}
	body = append(body, m.rest[:m.unsigned-1]...)
	body = append(body, `,"thoughtSignature":"`+skipSignature+`"}`...)
	return append(body, m.rest[m.unsigned:]...)
}

// calledName finds the tool that the call id was for.
func calledName(req *model.Request, id string) string {
	for _, m := range req.Messages {
		if m == nil {
			continue
		}
		for _, b := range m.Blocks {
			if t, ok := b.(model.ToolUse); ok && t.ID == id {
				return t.Name
			}
		}
	}
	return "unknown_tool"
}

func encodeTool(t model.ToolSpec) ([]byte, error) {
	b, err := model.EncodeJSON(declaration{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	if err != nil {
		return nil, configError("encoding the schema of tool " + strconv.Quote(t.Name) + ": " + err.Error())
	}
	return b, nil
}

// encodeMessage returns m in the API's form; a nil message is an empty one.
func encodeMessage(m *model.Message) *encoded {
	if m == nil {
		return &encoded{role: "user"}
	}
	e := &encoded{role: "user"}
	if m.Role == model.RoleAssistant {
		e.role = "model"
		e.model(m.Blocks)
	} else {
		e.user(m.Blocks)
	}
	return e
}

// model encodes the model's own blocks. Thinking goes back only if this API
// signed it.
func (e *encoded) model(blocks []model.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case model.Text:
			e.addText(b.Text, b.Sig, false)
		case model.Thinking:
			if signature(b.Sig) != "" {
				e.addText(b.Text, b.Sig, true)
			}
		case model.ToolUse:
			e.addCall(b)
		}
	}
}

// signature returns sig's value if it is of this API.
func signature(sig model.Signature) string {
	if sig.Provider != name {
		return ""
	}
	return sig.Value
}

// addText adds one part, or two where only the end of the text is signed: a
// signature belongs to the part that it came with.
func (e *encoded) addText(text string, sig model.Signature, thought bool) {
	value := signature(sig)
	if value == "" {
		if text != "" {
			e.add(textPart{Text: text, Thought: thought})
		}
		return
	}
	from := min(max(sig.From, 0), len(text))
	if from > 0 {
		e.add(textPart{Text: text[:from], Thought: thought})
	}
	e.add(textPart{Text: text[from:], Thought: thought, Signature: value})
}

func (e *encoded) addCall(t model.ToolUse) {
	args := t.Input
	if len(args) == 0 || args[0] != '{' || !json.Valid(args) {
		args = json.RawMessage("{}")
	}
	sig := signature(t.Sig)
	e.add(callPart{Call: functionCall{ID: wireID(t.ID), Name: t.Name, Args: args}, Signature: sig})
	if len(e.calls) == 0 && sig == "" {
		e.unsigned = len(e.rest)
	}
	e.calls = append(e.calls, t.ID)
}

// user encodes what the user and the tools said. Images of a tool's result
// follow all results, which must not be interrupted.
func (e *encoded) user(blocks []model.Block) {
	for _, b := range blocks {
		r, ok := b.(model.ToolResult)
		if !ok {
			e.add(partOf(b))
			continue
		}
		res := response{call: r.ToolUseID}
		if r.Name == "" {
			res.later = &r
		} else {
			res.part = responseOf(r, r.Name)
		}
		e.results = append(e.results, res)
		for _, b := range r.Blocks {
			if _, isText := b.(model.Text); !isText {
				e.add(partOf(b))
			}
		}
	}
}

// responseOf encodes the text of r as the response of tool.
func responseOf(r model.ToolResult, tool string) []byte {
	var text strings.Builder
	for _, b := range r.Blocks {
		if t, ok := b.(model.Text); ok {
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(t.Text)
		}
	}
	said := text.String()
	var res result
	if r.IsError {
		res.Error = &said
	} else {
		res.Output = &said
	}
	return model.MustEncodeJSON(responsePart{Response: functionResponse{ID: wireID(r.ToolUseID), Name: tool, Response: res}})
}

// partOf returns the part of a block of a user message or a tool result; nil if
// there is nothing to send.
func partOf(b model.Block) any {
	switch b := b.(type) {
	case model.Text:
		if b.Text != "" {
			return textPart{Text: b.Text}
		}
	case model.Image:
		switch {
		case len(b.Data) > 0:
			return dataPart{inlineData{MimeType: b.MediaType, Data: b.Data}}
		case b.URL != "":
			return filePart{fileData{MimeType: b.MediaType, FileURI: b.URL}}
		}
		return textPart{Text: "[an empty image was left out]"}
	case model.Document:
		if len(b.Data) > 0 {
			return dataPart{inlineData{MimeType: b.MediaType, Data: b.Data}}
		}
		return textPart{Text: "[an empty document was left out]"}
	}
	return nil
}

func (e *encoded) add(part any) {
	if part != nil {
		e.rest = model.AppendElement(e.rest, model.MustEncodeJSON(part))
	}
}

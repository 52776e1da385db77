package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// Bodies are put together from encodings of their parts: the head and the
// messages by encoding/json over the structs below, the tools and each message
// only once. A body has at most four cache breakpoints (the API's limit): after
// the tools, after the system prompt, and after the last two user turns.

const cacheControl = `"cache_control":{"type":"ephemeral"}`

type head struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	Temperature  *float64      `json:"temperature,omitempty"`
	TopP         *float64      `json:"top_p,omitempty"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	System       []systemBlock `json:"system,omitempty"`
}

type systemBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redactedBlock struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResultBlock struct {
	Type      string          `json:"type"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type mediaBlock struct {
	Type   string `json:"type"`
	Source source `json:"source"`
	Title  string `json:"title,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      any    `json:"data,omitempty"` // []byte becomes base64
	URL       string `json:"url,omitempty"`
}

// encoded is one message in the API's form.
type encoded struct {
	role model.Role
	// results are the tool_result blocks, rest the others: comma-separated
	// JSON objects, maybe none. The API wants results first.
	results, rest []byte
	calls         bool // has tool_use
	thinksFirst   bool // begins with a thinking block
}

// encode returns the body of req.
func (p *provider) encode(req *model.Request) ([]byte, error) {
	turns := join(p.cache.Messages(req.Messages, encodeMessage))
	switch {
	case req.Model == "":
		return nil, configError("no model is named")
	case len(turns) == 0:
		return nil, &model.Error{Kind: model.ErrBadRequest, Provider: name, Message: "the request has no message with content"}
	}
	h, err := model.EncodeJSON(newHead(req, startsUnthought(turns)))
	if err != nil {
		return nil, configError("encoding the request: " + err.Error())
	}
	tools, err := p.cache.Tools(req.Tools, encodeTool)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, len(h)+len(tools)+size(turns)+256)
	body = append(body, h[:len(h)-1]...)
	if len(tools) > 0 {
		body = append(body, `,"tools":[`...)
		body = appendCached(body, tools)
		body = append(body, ']')
	}
	body = append(body, `,"messages":[`...)
	body = appendTurns(body, turns)
	return append(body, "]}"...), nil
}

// newHead returns all but tools and messages. unthought: the running turn's
// history does not allow budgeted thinking.
func newHead(req *model.Request, unthought bool) head {
	h := head{Model: req.Model, Stream: true, Temperature: req.Temperature, TopP: req.TopP}
	if h.Temperature != nil {
		h.TopP = nil // newer models take one of them
	}
	h.think(req, unthought)
	if strings.TrimSpace(req.System) != "" {
		h.System = []systemBlock{{Type: "text", Text: req.System, CacheControl: json.RawMessage(`{"type":"ephemeral"}`)}}
	}
	return h
}

// turn is a run of messages of one role; the API wants them as one.
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

func (t turn) hasResults() bool {
	for _, m := range t {
		if len(m.results) > 0 {
			return true
		}
	}
	return false
}

func (t turn) calls() bool {
	for _, m := range t {
		if m.calls {
			return true
		}
	}
	return false
}

// startsUnthought reports whether the tool loop that the request goes on with
// was begun without this API's thinking (by another provider, or with thinking
// off): the API then refuses to switch it on before the next user turn.
func startsUnthought(turns []turn) bool {
	i := len(turns) - 1
	for i > 0 && turns[i][0].role == model.RoleUser && turns[i].hasResults() {
		i -= 2 // turns alternate
	}
	first := i + 1
	return first < len(turns) && turns[first][0].role == model.RoleAssistant &&
		turns[first].calls() && !turns[first][0].thinksFirst
}

func size(turns []turn) int {
	n := 0
	for _, t := range turns {
		n += 128
		for _, m := range t {
			n += len(m.results) + len(m.rest) + 2
		}
	}
	return n
}

// appendTurns appends the elements of the messages array.
func appendTurns(body []byte, turns []turn) []byte {
	users := 0
	for i := len(turns) - 1; i >= 0 && users < 2; i-- {
		if turns[i][0].role == model.RoleUser {
			users++
		}
	}
	cachedFrom := len(turns) // index of the first turn with a breakpoint
	for users > 0 {
		cachedFrom--
		if turns[cachedFrom][0].role == model.RoleUser {
			users--
		}
	}
	for i, t := range turns {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"role":"`...)
		body = append(body, t[0].role...)
		body = append(body, `","content":[`...)
		body = appendBlocks(body, t)
		if i >= cachedFrom && t[0].role == model.RoleUser {
			body = append(body[:len(body)-1], ","+cacheControl+"}"...)
		}
		body = append(body, "]}"...)
	}
	return body
}

// appendBlocks appends t's blocks, results first.
func appendBlocks(body []byte, t turn) []byte {
	start := len(body)
	add := func(blocks []byte) {
		if len(blocks) == 0 {
			return
		}
		if len(body) > start {
			body = append(body, ',')
		}
		body = append(body, blocks...)
	}
	for _, m := range t {
		add(m.results)
	}
	for _, m := range t {
		add(m.rest)
	}
	return body
}

// appendCached appends objects with a cache breakpoint in the last of them.
func appendCached(body, objects []byte) []byte {
	body = append(body, objects[:len(objects)-1]...)
	return append(body, ","+cacheControl+"}"...)
}

func encodeTool(t model.ToolSpec) ([]byte, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	b, err := model.EncodeJSON(tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	if err != nil {
		return nil, configError("encoding the schema of tool " + strconv.Quote(t.Name) + ": " + err.Error())
	}
	return b, nil
}

// encodeMessage returns m in the API's form; a nil message is an empty one.
func encodeMessage(m *model.Message) *encoded {
	if m == nil {
		return &encoded{role: model.RoleUser}
	}
	e := &encoded{role: m.Role}
	if m.Role == model.RoleAssistant {
		e.assistant(m.Blocks)
	} else {
		e.role = model.RoleUser
		e.user(m.Blocks)
	}
	return e
}

// assistant encodes the model's own blocks. Thinking without this API's
// signature is left out, and so is thinking that nothing follows: the API
// refuses both.
func (e *encoded) assistant(blocks []model.Block) {
	end := 0 // of the last block that is not thinking
	for _, b := range blocks {
		var block []byte
		switch b := b.(type) {
		case model.Thinking:
			t := thinkingOf(b)
			e.thinksFirst = e.thinksFirst || t != nil && len(e.rest) == 0
			e.rest = model.AppendElement(e.rest, t)
		case model.Text:
			block = textOf(b.Text)
		case model.ToolUse:
			e.calls = true
			block = toolUseOf(b)
		}
		if block != nil {
			e.rest = model.AppendElement(e.rest, block)
			end = len(e.rest)
		}
	}
	e.rest = e.rest[:end]
}

// user encodes what the user and the tools said.
func (e *encoded) user(blocks []model.Block) {
	for _, b := range blocks {
		r, ok := b.(model.ToolResult)
		if !ok {
			e.rest = model.AppendElement(e.rest, contentOf(b))
			continue
		}
		result, aside := resultOf(r)
		e.results = model.AppendElement(e.results, result)
		for _, b := range aside {
			e.rest = model.AppendElement(e.rest, contentOf(b))
		}
	}
}

// thinkingOf returns nil for thinking that was not signed by this API.
func thinkingOf(t model.Thinking) []byte {
	switch {
	case t.Redacted != "" && (t.Sig.Provider == name || t.Sig.Provider == ""):
		return model.MustEncodeJSON(redactedBlock{Type: "redacted_thinking", Data: t.Redacted})
	case t.Redacted == "" && t.Sig.Provider == name && t.Sig.Value != "":
		return model.MustEncodeJSON(thinkingBlock{Type: "thinking", Thinking: t.Text, Signature: t.Sig.Value})
	}
	return nil
}

// textOf returns nil for blank text, which the API refuses.
func textOf(s string) []byte {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return model.MustEncodeJSON(textBlock{Type: "text", Text: s})
}

func toolUseOf(t model.ToolUse) []byte {
	input := t.Input
	if len(input) == 0 || input[0] != '{' || !json.Valid(input) {
		input = json.RawMessage("{}")
	}
	return model.MustEncodeJSON(toolUseBlock{Type: "tool_use", ID: wireID(t.ID), Name: wireName(t.Name), Input: input})
}

// resultOf returns r, and those of its blocks that the API does not take
// inside: an error's content may only be text.
func resultOf(r model.ToolResult) (result []byte, aside []model.Block) {
	var content []byte
	for _, b := range r.Blocks {
		if _, isText := b.(model.Text); r.IsError && !isText {
			aside = append(aside, b)
			continue
		}
		content = model.AppendElement(content, contentOf(b))
	}
	if len(content) == 0 && r.IsError {
		content = textOf("(the tool failed without a message)")
	}
	block := toolResultBlock{Type: "tool_result", ToolUseID: wireID(r.ToolUseID), IsError: r.IsError}
	if len(content) > 0 {
		block.Content = append(append(json.RawMessage{'['}, content...), ']')
	}
	return model.MustEncodeJSON(block), aside
}

// contentOf encodes a block of a user message or a tool result; nil if there
// is nothing to send.
func contentOf(b model.Block) []byte {
	switch b := b.(type) {
	case model.Text:
		return textOf(b.Text)
	case model.Image:
		return imageOf(b)
	case model.Document:
		return documentOf(b)
	}
	return nil
}

func imageOf(i model.Image) []byte {
	switch {
	case len(i.Data) == 0 && i.URL != "":
		return model.MustEncodeJSON(mediaBlock{Type: "image", Source: source{Type: "url", URL: i.URL}})
	case len(i.Data) == 0:
		return textOf("[an empty image was left out]")
	}
	switch i.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return model.MustEncodeJSON(mediaBlock{Type: "image", Source: source{Type: "base64", MediaType: i.MediaType, Data: i.Data}})
	}
	return textOf("[an image was left out: the API does not take the type " + strconv.Quote(i.MediaType) + "]")
}

func documentOf(d model.Document) []byte {
	switch {
	case len(d.Data) == 0:
		return textOf("[an empty document was left out]")
	case d.MediaType == "application/pdf":
		return model.MustEncodeJSON(mediaBlock{Type: "document", Title: d.Name, Source: source{Type: "base64", MediaType: d.MediaType, Data: d.Data}})
	case strings.HasPrefix(d.MediaType, "text/"):
		return model.MustEncodeJSON(mediaBlock{Type: "document", Title: d.Name, Source: source{Type: "text", MediaType: "text/plain", Data: string(d.Data)}})
	}
	return textOf("[a document was left out: the API does not take the type " + strconv.Quote(d.MediaType) + "]")
}

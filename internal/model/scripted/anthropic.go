package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// The Anthropic Messages API, as far as it is spoken here.

type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   *int               `json:"max_tokens"`
	System      json.RawMessage    `json:"system"`
	Messages    []anthropicMessage `json:"messages"`
	Stream      bool               `json:"stream"`
	Temperature *float64           `json:"temperature"`
	Thinking    *struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	} `json:"thinking"`
	Tools []struct {
		Type         string          `json:"type"`
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	blocks []anthropicBlock
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Title     string          `json:"title"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// blocksOf reads a content: a string, or a list of blocks.
func blocksOf(raw json.RawMessage) ([]anthropicBlock, error) {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if json.Unmarshal(raw, &s) == nil {
		return []anthropicBlock{{Type: "text", Text: &s}}, nil
	}
	var blocks []anthropicBlock
	return blocks, json.Unmarshal(raw, &blocks)
}

// decodeAnthropic reads and checks a request body.
func decodeAnthropic(body []byte, lax bool, mem *memory) (*call, *vendorError) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, invalid("The request body is not valid JSON: %s", jsonFault(err))
	}
	c := &call{format: FormatAnthropic, stream: in.Stream, req: &model.Request{Model: in.Model, Temperature: in.Temperature}}
	if in.MaxTokens != nil {
		c.req.MaxOutputTokens = *in.MaxTokens
	}
	if in.Thinking != nil && in.Thinking.Type == "enabled" {
		c.req.ThinkingBudget = in.Thinking.BudgetTokens
	}
	for _, t := range in.Tools {
		c.req.Tools = append(c.req.Tools, model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
	}
	system, err := blocksOf(in.System)
	if err != nil {
		return c, invalid("system: Input should be a valid list")
	}
	c.req.System = joinText(neutralBlocks(system))
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.blocks, err = blocksOf(m.Content); err != nil {
			return c, invalid("messages.%d.content: Input should be a valid list", i)
		}
		c.req.Messages = append(c.req.Messages, &model.Message{Role: model.Role(m.Role), Blocks: neutralBlocks(m.blocks)})
	}
	if lax {
		return c, nil
	}
	return c, checkAnthropic(&in, system, mem)
}

func neutralBlocks(in []anthropicBlock) []model.Block {
	var out []model.Block
	for i := range in {
		if b := in[i].neutral(); b != nil {
			out = append(out, b)
		}
	}
	return out
}

func (b *anthropicBlock) neutral() model.Block {
	switch b.Type {
	case "text":
		return model.Text{Text: deref(b.Text)}
	case "thinking":
		return model.Thinking{Text: deref(b.Thinking), Sig: model.Signature{Provider: string(FormatAnthropic), Value: b.Signature}}
	case "redacted_thinking":
		return model.Thinking{Redacted: b.Data}
	case "tool_use":
		return model.ToolUse{ID: b.ID, Name: b.Name, Input: b.Input}
	case "tool_result":
		content, _ := blocksOf(b.Content) // checked by checkResult
		return model.ToolResult{ToolUseID: b.ToolUseID, Blocks: neutralBlocks(content), IsError: b.IsError}
	case "image", "document":
		return b.media()
	}
	return nil
}

func (b *anthropicBlock) media() model.Block {
	if b.Source == nil {
		return nil
	}
	_, data, _ := dataURL("data:" + b.Source.MediaType + ";base64," + b.Source.Data)
	if b.Type == "image" {
		return model.Image{MediaType: b.Source.MediaType, Data: data, URL: b.Source.URL}
	}
	return model.Document{MediaType: b.Source.MediaType, Name: b.Title, Data: data}
}

// checkAnthropic refuses what the API refuses.
func checkAnthropic(in *anthropicRequest, system []anthropicBlock, mem *memory) *vendorError {
	switch {
	case in.Model == "":
		return invalid("model: Field required")
	case in.MaxTokens == nil:
		return invalid("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return invalid("max_tokens: Input should be greater than or equal to 1")
	case in.Thinking != nil && in.Thinking.Type == "enabled" && in.Thinking.BudgetTokens < 1024:
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case in.Thinking != nil && in.Thinking.Type == "enabled" && in.Thinking.BudgetTokens >= *in.MaxTokens:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	case len(in.Messages) == 0:
		return invalid("messages: at least one message is required")
	case in.Messages[0].Role != "user":
		return invalid("messages: first message must use the \"user\" role")
	}
	for i := range system {
		if deref(system[i].Text) == "" {
			return invalid("system.%d.text: text content blocks must be non-empty", i)
		}
	}
	for i, t := range in.Tools {
		if !toolName(t.Name, 128) {
			return invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		}
	}
	if n := cacheMarks(in, system); n > 4 {
		return invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	ids := map[string]bool{}
	for i := range in.Messages {
		if verr := checkAnthropicMessage(in, i, ids, mem); verr != nil {
			return verr
		}
	}
	return checkLastThinking(in, mem)
}

func cacheMarks(in *anthropicRequest, system []anthropicBlock) (n int) {
	mark := func(raw json.RawMessage) {
		if len(raw) > 0 && string(raw) != "null" {
			n++
		}
	}
	for _, t := range in.Tools {
		mark(t.CacheControl)
	}
	for i := range system {
		mark(system[i].CacheControl)
	}
	for _, m := range in.Messages {
		for i := range m.blocks {
			mark(m.blocks[i].CacheControl)
		}
	}
	return n
}

func checkAnthropicMessage(in *anthropicRequest, i int, ids map[string]bool, mem *memory) *vendorError {
	m := &in.Messages[i]
	if m.Role != "user" && m.Role != "assistant" {
		return invalid("messages: Unexpected role \"%s\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.", m.Role)
	}
	last := i == len(in.Messages)-1
	if len(m.blocks) == 0 && (!last || m.Role == "user") {
		return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	for j := range m.blocks {
		if verr := checkAnthropicBlock(in, i, j, ids, mem); verr != nil {
			return verr
		}
	}
	return checkAnswered(in, i)
}

func checkAnthropicBlock(in *anthropicRequest, i, j int, ids map[string]bool, mem *memory) *vendorError {
	m := &in.Messages[i]
	b := &m.blocks[j]
	at := fmt.Sprintf("messages.%d.content.%d", i, j)
	assistant := m.Role == "assistant"
	switch b.Type {
	case "text":
		if b.Text == nil {
			return invalid("%s.text.text: Field required", at)
		}
		if *b.Text == "" {
			return invalid("messages: text content blocks must be non-empty")
		}
	case "thinking":
		return checkThinking(b, at, assistant, mem)
	case "redacted_thinking":
		if b.Data == "" {
			return invalid("%s.redacted_thinking.data: Field required", at)
		}
	case "tool_use":
		switch {
		case !assistant:
			return invalid("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
		case !toolName(b.ID, 256):
			return invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
		case ids[b.ID]:
			return invalid("%s: `tool_use` ids must be unique", at)
		case len(b.Input) == 0 || b.Input[0] != '{':
			return invalid("%s.tool_use.input: Input should be a valid dictionary", at)
		}
		ids[b.ID] = true
	case "tool_result":
		return checkResult(in, i, j)
	case "image", "document":
		if b.Source == nil {
			return invalid("%s.%s.source: Field required", at, b.Type)
		}
	default:
		return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'", at, b.Type)
	}
	return nil
}

// checkThinking wants thinking back as it was given out.
func checkThinking(b *anthropicBlock, at string, assistant bool, mem *memory) *vendorError {
	switch {
	case !assistant:
		return invalid("%s: `thinking` blocks may only be in `assistant` messages", at)
	case b.Thinking == nil:
		return invalid("%s.thinking.thinking: Field required", at)
	}
	known, same := mem.given(digest("thinking", *b.Thinking), b.Signature)
	_, changed := mem.given(digest("signature", b.Signature), digest(*b.Thinking))
	signed, _ := mem.given(digest("signature", b.Signature), "")
	switch {
	case same:
		return nil
	case b.Signature == "":
		return invalid("%s.thinking.signature: Field required", at)
	case known, signed && !changed, foreign(FormatAnthropic, b.Signature):
		return invalid("%s: Invalid `signature` in `thinking` block", at)
	}
	return nil
}

func checkResult(in *anthropicRequest, i, j int) *vendorError {
	m := &in.Messages[i]
	b := &m.blocks[j]
	if m.Role != "user" {
		return invalid("messages.%d: `tool_result` blocks can only be in `user` messages", i)
	}
	found := false
	if i > 0 && in.Messages[i-1].Role == "assistant" {
		for _, use := range in.Messages[i-1].blocks {
			found = found || use.Type == "tool_use" && use.ID == b.ToolUseID
		}
	}
	if !found {
		return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
	}
	for _, other := range m.blocks[:j] {
		if other.Type == "tool_result" && other.ToolUseID == b.ToolUseID {
			return invalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, j, b.ToolUseID)
		}
	}
	content, err := blocksOf(b.Content)
	if err != nil {
		return invalid("messages.%d.content.%d.tool_result.content: Input should be a valid list", i, j)
	}
	for k := range content {
		if len(b.Content) > 0 && b.Content[0] == '[' && content[k].Type == "text" && deref(content[k].Text) == "" {
			return invalid("messages: text content blocks must be non-empty")
		}
	}
	return nil
}

// checkAnswered wants a result for each call in the message after it.
func checkAnswered(in *anthropicRequest, i int) *vendorError {
	results := map[string]bool{}
	if i+1 < len(in.Messages) {
		for _, b := range in.Messages[i+1].blocks {
			results[b.ToolUseID] = b.Type == "tool_result" || results[b.ToolUseID]
		}
	}
	var open []string
	for _, b := range in.Messages[i].blocks {
		if b.Type == "tool_use" && !results[b.ID] {
			open = append(open, b.ID)
		}
	}
	if open != nil {
		return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(open, ", "))
	}
	return nil
}

// checkLastThinking wants the thinking before the tool calls that are being
// answered, if it was given out with them and thinking is on.
func checkLastThinking(in *anthropicRequest, mem *memory) *vendorError {
	i := len(in.Messages) - 2
	if i < 0 || in.Thinking == nil || in.Thinking.Type == "disabled" || in.Messages[i].Role != "assistant" {
		return nil
	}
	blocks := in.Messages[i].blocks
	if t := blocks[0].Type; t == "thinking" || t == "redacted_thinking" {
		return nil
	}
	for _, b := range blocks {
		if _, thought := mem.given(digest("call", b.ID, callKey(b.Name, string(b.Input))), "thinking"); thought && b.Type == "tool_use" {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`.", i, blocks[0].Type)
		}
	}
	return nil
}

// anthropicEncoder makes Messages events.
type anthropicEncoder struct {
	answer answer
	memory *memory

	begun    bool
	pinged   bool
	b        block
	text     strings.Builder // of thinking, or a tool's input
	signed   bool            // the open thinking block has its signature, or wants none
	thinking bool            // the answer has thinking
}

func event(b []byte, name, data string) []byte {
	b = append(append(b, "event: "...), name...)
	b = append(append(b, "\ndata: "...), data...)
	return append(b, "\n\n"...)
}

func (e *anthropicEncoder) begin(b []byte) []byte {
	if e.begun {
		return b
	}
	e.begun = true
	u := model.Usage{}
	if e.answer.usage != nil {
		u = *e.answer.usage
	}
	return event(b, "message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}`,
		e.answer.anthropicID(), appendQuoted(nil, e.answer.model), u.InputTokens, u.CacheWriteTokens, u.CacheReadTokens, u.CacheWriteTokens))
}

func (a *answer) anthropicID() string { return fmt.Sprintf("msg_scripted%d", a.seq) }

func (e *anthropicEncoder) open(b []byte, bl block) []byte {
	b = e.begin(b)
	e.b = bl
	e.text.Reset()
	e.signed = false
	switch bl.kind {
	case itemText:
		return e.start(b, `{"type":"text","text":""}`)
	case itemThinking:
		e.thinking = true
		return e.start(b, `{"type":"thinking","thinking":"","signature":""}`)
	case itemTool:
		b = e.start(b, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, appendQuoted(nil, bl.id), appendQuoted(nil, bl.name)))
		return e.piece(b, "input_json_delta", "partial_json", "")
	}
	e.thinking = true
	return b // redacted thinking starts with its data
}

func (e *anthropicEncoder) start(b []byte, content string) []byte {
	b = event(b, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, e.b.index, content))
	if e.pinged {
		return b
	}
	e.pinged = true
	return e.ping(b)
}

func (e *anthropicEncoder) piece(b []byte, kind, key, text string) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = strconv.AppendInt(b, int64(e.b.index), 10)
	b = append(append(b, `,"delta":{"type":"`...), kind...)
	b = append(append(append(b, `","`...), key...), `":`...)
	return append(appendQuoted(b, text), "}}\n\n"...)
}

func (e *anthropicEncoder) delta(b []byte, text string, n int) []byte {
	switch e.b.kind {
	case itemText:
		return e.piece(b, "text_delta", "text", text)
	case itemThinking:
		e.text.WriteString(strings.Repeat(text, n))
		return e.piece(b, "thinking_delta", "thinking", text)
	case itemTool:
		e.text.WriteString(strings.Repeat(text, n))
		return e.piece(b, "input_json_delta", "partial_json", text)
	}
	return e.start(b, fmt.Sprintf(`{"type":"redacted_thinking","data":%s}`, appendQuoted(nil, text)))
}

// sign sends the signature of thinking; texts have none in this format.
func (e *anthropicEncoder) sign(b []byte, sig string) []byte {
	if e.b.kind != itemThinking {
		return b
	}
	e.signed = true
	e.memory.giveThinking(e.text.String(), sig)
	if sig == "" {
		return b
	}
	return e.piece(b, "signature_delta", "signature", sig)
}

func (m *memory) giveThinking(text, sig string) {
	m.give(digest("thinking", text), sig)
	if sig != "" {
		m.give(digest("signature", sig), digest(text))
	}
}

func (e *anthropicEncoder) close(b []byte, _ string) []byte {
	switch {
	case e.b.kind == itemThinking && !e.signed:
		b = e.sign(b, madeSignature(FormatAnthropic, e.answer.turn, e.b.index, e.text.String()))
	case e.b.kind == itemTool && e.thinking:
		e.memory.give(digest("call", e.b.id, callKey(e.b.name, e.text.String())), "thinking")
	}
	return event(b, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, e.b.index))
}

func (e *anthropicEncoder) finish(b []byte, f finish) []byte {
	b = e.begin(b)
	usage := ""
	if f.usage != nil {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`,
			f.usage.InputTokens, f.usage.CacheWriteTokens, f.usage.CacheReadTokens, f.usage.OutputTokens)
	}
	b = event(b, "message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null}%s}`, anthropicStop(f.stop), usage))
	return event(b, "message_stop", `{"type":"message_stop"}`)
}

func anthropicStop(s model.StopReason) string {
	if s == "" {
		return string(model.StopEndTurn)
	}
	return string(s)
}

func (e *anthropicEncoder) noFinish(b []byte) []byte { return b }
func (e *anthropicEncoder) ping(b []byte) []byte     { return event(b, "ping", `{"type":"ping"}`) }

func (e *anthropicEncoder) failed(b []byte, v *vendorError) []byte {
	return event(b, "error", string(v.body(FormatAnthropic)))
}

// wholeAnthropic is a message object.
func wholeAnthropic(s *httpSink, f finish) ([]byte, error) {
	content := []any{}
	thought := false
	for i, b := range s.asm.Blocks() {
		switch b := b.(type) {
		case model.Text:
			content = append(content, map[string]any{"type": "text", "text": b.Text})
		case model.Thinking:
			thought = true
			if b.Redacted != "" {
				content = append(content, map[string]any{"type": "redacted_thinking", "data": b.Redacted})
				continue
			}
			sig := b.Sig.Value
			if sig == "" && !s.mute[i] {
				sig = madeSignature(FormatAnthropic, s.answer.turn, i, b.Text)
			}
			s.memory.giveThinking(b.Text, sig)
			content = append(content, map[string]any{"type": "thinking", "thinking": b.Text, "signature": sig})
		case model.ToolUse:
			if thought {
				s.memory.give(digest("call", b.ID, callKey(b.Name, string(b.Input))), "thinking")
			}
			content = append(content, map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": b.Input})
		}
	}
	doc := map[string]any{
		"id": s.answer.anthropicID(), "type": "message", "role": "assistant", "model": s.answer.model,
		"content": content, "stop_reason": anthropicStop(f.stop), "stop_sequence": nil,
	}
	if u := f.usage; u != nil {
		doc["usage"] = map[string]any{"input_tokens": u.InputTokens, "cache_creation_input_tokens": u.CacheWriteTokens,
			"cache_read_input_tokens": u.CacheReadTokens, "output_tokens": u.OutputTokens, "service_tier": "standard"}
	}
	return marshal(doc)
}

// authAnthropic is the key of a request; bad is why there is none.
func authAnthropic(h http.Header) (key string, bad *vendorError) {
	if key = h.Get("X-Api-Key"); key != "" {
		return key, nil
	}
	if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && token != "" {
		return token, nil
	}
	return "", &vendorError{status: http.StatusUnauthorized, kind: model.ErrAuth, message: "x-api-key header is required"}
}

package scripted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// The OpenAI chat completions API, as far as it is spoken here.

type openAIRequest struct {
	Model         string          `json:"model"`
	Messages      []openAIMessage `json:"messages"`
	Tools         []openAITool    `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int      `json:"max_tokens"`
	MaxCompletionTokens int      `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
}

type openAIMessage struct {
	Role       string           `json:"role"`
	Content    json.RawMessage  `json:"content"`
	Reasoning  string           `json:"reasoning_content"`
	ToolCalls  []openAIToolCall `json:"tool_calls"`
	ToolCallID string           `json:"tool_call_id"`
}

type openAIToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type openAITool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type openAIPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Filename string `json:"filename"`
		FileData string `json:"file_data"`
	} `json:"file"`
}

func param(name, format string, args ...any) *vendorError {
	v := invalid(format, args...)
	v.param = name
	return v
}

// decodeOpenAI reads and checks a request body. lax skips the checks.
func decodeOpenAI(body []byte, lax bool) (*call, *vendorError) {
	var in openAIRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, invalid("We could not parse the JSON body of your request. (%s)", jsonFault(err))
	}
	c := &call{format: FormatOpenAI, stream: in.Stream, req: &model.Request{
		Model: in.Model, Temperature: in.Temperature, MaxOutputTokens: max(in.MaxTokens, in.MaxCompletionTokens)}}
	c.usage = in.StreamOptions != nil && in.StreamOptions.IncludeUsage
	for _, t := range in.Tools {
		c.req.Tools = append(c.req.Tools, model.ToolSpec{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	for i := range in.Messages {
		if err := c.addOpenAI(&in.Messages[i], i); err != nil {
			return c, err
		}
	}
	if lax {
		return c, nil
	}
	return c, checkOpenAI(&in, body)
}

func (c *call) addOpenAI(m *openAIMessage, i int) *vendorError {
	blocks, verr := openAIContent(m, i)
	if verr != nil {
		return verr
	}
	switch m.Role {
	case "system", "developer":
		c.req.System = strings.TrimPrefix(c.req.System+"\n"+joinText(blocks), "\n")
	case "user":
		c.req.Messages = append(c.req.Messages, &model.Message{Role: model.RoleUser, Blocks: blocks})
	case "tool":
		result := model.ToolResult{ToolUseID: m.ToolCallID, Blocks: blocks}
		if n := len(c.req.Messages); n > 0 && onlyResults(c.req.Messages[n-1]) {
			c.req.Messages[n-1].Blocks = append(c.req.Messages[n-1].Blocks, result)
			return nil
		}
		c.req.Messages = append(c.req.Messages, &model.Message{Role: model.RoleUser, Blocks: []model.Block{result}})
	case "assistant":
		if m.Reasoning != "" {
			blocks = append([]model.Block{model.Thinking{Text: m.Reasoning}}, blocks...)
		}
		for _, tc := range m.ToolCalls {
			blocks = append(blocks, model.ToolUse{ID: tc.ID, Name: tc.Function.Name, Input: openAIArguments(tc.Function.Arguments)})
		}
		c.req.Messages = append(c.req.Messages, &model.Message{Role: model.RoleAssistant, Blocks: blocks})
	default:
		return param(fmt.Sprintf("messages[%d].role", i), "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	return nil
}

func onlyResults(m *model.Message) bool {
	for _, b := range m.Blocks {
		if _, ok := b.(model.ToolResult); !ok {
			return false
		}
	}
	return m.Role == model.RoleUser
}

func openAIArguments(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) != nil || !json.Valid([]byte(s)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(s)
}

func openAIContent(m *openAIMessage, i int) ([]model.Block, *vendorError) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return nil, nil
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		if s == "" && m.Role == "assistant" {
			return nil, nil
		}
		return []model.Block{model.Text{Text: s}}, nil
	}
	var parts []openAIPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil, param(fmt.Sprintf("messages[%d].content", i), "Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i)
	}
	var out []model.Block
	for j, p := range parts {
		switch p.Type {
		case "text", "refusal":
			out = append(out, model.Text{Text: p.Text})
		case "image_url":
			img := model.Image{URL: p.ImageURL.URL}
			if media, data, ok := dataURL(p.ImageURL.URL); ok {
				img = model.Image{MediaType: media, Data: data}
			}
			out = append(out, img)
		case "file":
			media, data, _ := dataURL(p.File.FileData)
			out = append(out, model.Document{MediaType: media, Name: p.File.Filename, Data: data})
		default:
			return nil, param(fmt.Sprintf("messages[%d].content[%d].type", i, j), "Invalid value: '%s'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.", p.Type)
		}
	}
	return out, nil
}

// dataURL reads "data:MEDIA;base64,DATA".
func dataURL(url string) (media string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	media, encoded, sep := strings.Cut(rest, ";base64,")
	if !ok || !sep {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return media, data, err == nil
}

// checkOpenAI refuses what the API refuses.
func checkOpenAI(in *openAIRequest, body []byte) *vendorError {
	switch {
	case in.Model == "":
		return invalid("you must provide a model parameter")
	case len(in.Messages) == 0:
		return param("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if verr := checkOpenAITools(in, body); verr != nil {
		return verr
	}
	var open []string
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role != "tool" && len(open) > 0 {
			return openAIUnanswered(open, i)
		}
		var verr *vendorError
		if open, verr = checkOpenAIMessage(m, i, open); verr != nil {
			return verr
		}
	}
	if len(open) > 0 {
		return openAIUnanswered(open, len(in.Messages)-1)
	}
	return nil
}

func checkOpenAITools(in *openAIRequest, body []byte) *vendorError {
	var keys map[string]json.RawMessage
	if json.Unmarshal(body, &keys) == nil && keys["tools"] != nil && len(in.Tools) == 0 && string(keys["tools"]) != "null" {
		return param("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, t := range in.Tools {
		if t.Type != "function" {
			return param(fmt.Sprintf("tools[%d].type", i), "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		}
		if !toolName(t.Function.Name, 64) {
			return param(fmt.Sprintf("tools[%d].function.name", i), "Invalid 'tools[%d].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
	}
	return nil
}

func toolName(name string, limit int) bool {
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return false
		}
	}
	return name != "" && len(name) <= limit
}

func openAIUnanswered(open []string, i int) *vendorError {
	return param(fmt.Sprintf("messages.[%d].role", i), "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

// checkOpenAIMessage returns the calls that are still without an answer.
func checkOpenAIMessage(m *openAIMessage, i int, open []string) ([]string, *vendorError) {
	empty := len(m.Content) == 0 || string(m.Content) == "null"
	if m.Role == "tool" {
		for j, id := range open {
			if id == m.ToolCallID {
				return append(open[:j:j], open[j+1:]...), checkOpenAIText(m, i, empty)
			}
		}
		return nil, param(fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	}
	if m.Role != "assistant" || len(m.ToolCalls) == 0 {
		return nil, checkOpenAIText(m, i, empty)
	}
	seen := map[string]bool{}
	for j, tc := range m.ToolCalls {
		var args string
		switch {
		case tc.ID == "" || seen[tc.ID]:
			return nil, param(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), "Invalid 'messages[%d].tool_calls[%d].id': missing or not unique.", i, j)
		case tc.Type != "function":
			return nil, param(fmt.Sprintf("messages[%d].tool_calls[%d].type", i, j), "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", tc.Type)
		case json.Unmarshal(tc.Function.Arguments, &args) != nil:
			return nil, param(fmt.Sprintf("messages[%d].tool_calls[%d].function.arguments", i, j), "Invalid type for 'messages[%d].tool_calls[%d].function.arguments': expected a string.", i, j)
		}
		seen[tc.ID] = true
		open = append(open, tc.ID)
	}
	return open, nil
}

func checkOpenAIText(m *openAIMessage, i int, empty bool) *vendorError {
	if empty {
		return param(fmt.Sprintf("messages.[%d].content", i), "Invalid value for 'content': expected a string, got null.")
	}
	var parts []openAIPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil
	}
	for j, p := range parts {
		if p.Type == "text" && p.Text == "" {
			return param(fmt.Sprintf("messages[%d].content[%d].text", i, j), "Invalid 'messages[%d].content[%d].text': empty string. Expected a string with minimum length 1.", i, j)
		}
	}
	if len(parts) == 0 {
		return param(fmt.Sprintf("messages[%d].content", i), "Invalid 'messages[%d].content': empty array. Expected an array with minimum length 1, but got an empty array instead.", i)
	}
	return nil
}

// openAIEncoder makes chat.completion.chunk events.
type openAIEncoder struct {
	answer answer
	head   string // up to the delta
	tail   string // behind it
	begun  bool
	b      block
}

func (a *answer) openAIID() string { return fmt.Sprintf("chatcmpl-scripted%d", a.seq) }

func newOpenAIEncoder(a answer) *openAIEncoder {
	e := &openAIEncoder{answer: a}
	e.head = `data: ` + e.envelope() + `"choices":[{"index":0,"delta":`
	e.tail = `,"logprobs":null,"finish_reason":null}]` + e.noUsage() + "}\n\n"
	return e
}

func (e *openAIEncoder) envelope() string {
	return fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_scripted",`,
		e.answer.openAIID(), e.answer.created.Unix(), appendQuoted(nil, e.answer.model))
}

func (e *openAIEncoder) noUsage() string {
	if e.answer.ask {
		return `,"usage":null`
	}
	return ""
}

// begin is the first chunk, which names the role.
func (e *openAIEncoder) begin(b []byte, content string) []byte {
	if e.begun {
		return b
	}
	e.begun = true
	return append(append(append(b, e.head...), `{"role":"assistant","content":`+content+`,"refusal":null}`...), e.tail...)
}

func (e *openAIEncoder) open(b []byte, bl block) []byte {
	e.b = bl
	if bl.kind != itemTool {
		return e.begin(b, `""`)
	}
	b = e.begin(b, "null")
	b = append(b, e.head...)
	b = append(b, `{"tool_calls":[{"index":`...)
	b = strconv.AppendInt(b, int64(bl.calls), 10)
	b = append(b, `,"id":`...)
	b = appendQuoted(b, bl.id)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = appendQuoted(b, bl.name)
	b = append(b, `,"arguments":""}}]}`...)
	return append(b, e.tail...)
}

func (e *openAIEncoder) delta(b []byte, text string, _ int) []byte {
	switch e.b.kind {
	case itemText:
		b = append(append(b, e.head...), `{"content":`...)
	case itemThinking:
		b = append(append(b, e.head...), `{"reasoning_content":`...)
	case itemTool:
		b = append(append(b, e.head...), `{"tool_calls":[{"index":`...)
		b = strconv.AppendInt(b, int64(e.b.calls), 10)
		b = append(b, `,"function":{"arguments":`...)
		b = append(appendQuoted(b, text), `}}]}`...)
		return append(b, e.tail...)
	default: // the format has no redacted thinking
		return b
	}
	b = append(appendQuoted(b, text), '}')
	return append(b, e.tail...)
}

// The format has no signatures and no end of a block.
func (e *openAIEncoder) sign(b []byte, _ string) []byte  { return b }
func (e *openAIEncoder) close(b []byte, _ string) []byte { return b }

func (e *openAIEncoder) finish(b []byte, f finish) []byte {
	b = e.begin(b, `""`)
	b = append(b, e.head...)
	b = append(b, `{},"logprobs":null,"finish_reason":"`+openAIStop(f.stop)+`"}]`...)
	b = append(b, e.noUsage()+"}\n\n"...)
	if e.answer.ask && f.usage != nil {
		b = append(b, `data: `+e.envelope()+`"choices":[],"usage":`...)
		b = append(b, openAIUsage(f.usage)...)
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (e *openAIEncoder) noFinish(b []byte) []byte { return append(b, "data: [DONE]\n\n"...) }
func (e *openAIEncoder) ping(b []byte) []byte     { return append(b, ": keep-alive\n\n"...) }

func (e *openAIEncoder) failed(b []byte, v *vendorError) []byte {
	b = append(b, "data: "...)
	return append(append(b, v.body(FormatOpenAI)...), "\n\n"...)
}

func openAIStop(s model.StopReason) string {
	switch s {
	case model.StopToolUse:
		return "tool_calls"
	case model.StopMaxTokens:
		return "length"
	case model.StopRefusal:
		return "content_filter"
	}
	return "stop"
}

func openAIUsage(u *model.Usage) string {
	prompt := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		prompt, u.OutputTokens, prompt+u.OutputTokens, u.CacheReadTokens, u.ThinkingTokens)
}

// wholeOpenAI is a chat.completion object.
func wholeOpenAI(s *httpSink, f finish) ([]byte, error) {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var (
		text, thinking string
		some           bool
		calls          []toolCall
	)
	for _, b := range s.asm.Blocks() {
		switch b := b.(type) {
		case model.Text:
			text, some = text+b.Text, true
		case model.Thinking:
			thinking += b.Text
		case model.ToolUse:
			args := string(b.Input)
			if b.Invalid != "" {
				args = b.Invalid
			}
			calls = append(calls, toolCall{ID: b.ID, Type: "function", Function: function{Name: b.Name, Arguments: args}})
		}
	}
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
	if some || len(calls) == 0 {
		message["content"] = text
	}
	if thinking != "" {
		message["reasoning_content"] = thinking
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	doc := map[string]any{
		"id": s.answer.openAIID(), "object": "chat.completion", "created": s.answer.created.Unix(), "model": s.answer.model,
		"choices":      []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": openAIStop(f.stop)}},
		"service_tier": "default", "system_fingerprint": "fp_scripted",
	}
	if f.usage != nil {
		doc["usage"] = json.RawMessage(openAIUsage(f.usage))
	}
	return marshal(doc)
}

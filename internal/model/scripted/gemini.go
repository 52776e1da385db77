package scripted

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// The Gemini API (and Vertex AI's form of it), as far as it is spoken here.

type geminiRequest struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string          `json:"name"`
			Description          string          `json:"description"`
			Parameters           json.RawMessage `json:"parameters"`
			ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		MaxOutputTokens int      `json:"maxOutputTokens"`
		Temperature     *float64 `json:"temperature"`
		ThinkingConfig  struct {
			ThinkingBudget int `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text             *string `json:"text"`
	Thought          bool    `json:"thought"`
	ThoughtSignature string  `json:"thoughtSignature"`
	InlineData       *struct {
		MIMEType    string `json:"mimeType"`
		DisplayName string `json:"displayName"`
		Data        []byte `json:"data"`
	} `json:"inlineData"`
	FileData *struct {
		MIMEType string `json:"mimeType"`
		FileURI  string `json:"fileUri"`
	} `json:"fileData"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *geminiResponse `json:"functionResponse"`
}

type geminiResponse struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []geminiPart    `json:"parts"`
}

// decodeGemini reads and checks a request body.
func decodeGemini(body []byte, modelName string, lax bool, mem *memory) (*call, *vendorError) {
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, invalid("Invalid JSON payload received. %s", jsonFault(err))
	}
	gen := in.GenerationConfig
	c := &call{format: FormatGemini, req: &model.Request{Model: modelName, MaxOutputTokens: gen.MaxOutputTokens,
		Temperature: gen.Temperature, ThinkingBudget: gen.ThinkingConfig.ThinkingBudget}}
	if in.SystemInstruction != nil {
		c.req.System = in.SystemInstruction.text()
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.ParametersJSONSchema
			if schema == nil {
				schema = f.Parameters
			}
			c.req.Tools = append(c.req.Tools, model.ToolSpec{Name: f.Name, Description: f.Description, Schema: schema})
		}
	}
	d := geminiDecoder{req: c.req}
	for i := range in.Contents {
		d.add(&in.Contents[i], i)
	}
	if lax {
		return c, nil
	}
	return c, checkGemini(&in, mem)
}

func (c *geminiContent) text() string {
	var out []string
	for _, p := range c.Parts {
		if p.Text != nil {
			out = append(out, *p.Text)
		}
	}
	return strings.Join(out, "\n")
}

// geminiDecoder gives ids to calls that have none, and finds the calls that
// responses without an id answer: in order, by name.
type geminiDecoder struct {
	req  *model.Request
	open []model.ToolUse
}

func (d *geminiDecoder) add(c *geminiContent, i int) {
	m := &model.Message{Role: model.RoleUser}
	if c.Role == "model" {
		m.Role = model.RoleAssistant
	}
	for j := range c.Parts {
		m.Blocks = append(m.Blocks, d.block(&c.Parts[j], i, j))
	}
	d.req.Messages = append(d.req.Messages, m)
}

func (d *geminiDecoder) block(p *geminiPart, i, j int) model.Block {
	sig := model.Signature{}
	if p.ThoughtSignature != "" {
		sig = model.Signature{Provider: string(FormatGemini), Value: p.ThoughtSignature}
	}
	switch {
	case p.FunctionCall != nil:
		use := model.ToolUse{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Input: p.FunctionCall.Args, Sig: sig}
		if use.ID == "" {
			use.ID = fmt.Sprintf("gemini_%d_%d", i, j)
		}
		if len(use.Input) == 0 {
			use.Input = json.RawMessage("{}")
		}
		d.open = append(d.open, use)
		return use
	case p.FunctionResponse != nil:
		return d.result(p.FunctionResponse)
	case p.InlineData != nil && strings.HasPrefix(p.InlineData.MIMEType, "image/"):
		return model.Image{MediaType: p.InlineData.MIMEType, Data: p.InlineData.Data}
	case p.InlineData != nil:
		return model.Document{MediaType: p.InlineData.MIMEType, Name: p.InlineData.DisplayName, Data: p.InlineData.Data}
	case p.FileData != nil:
		return model.Image{MediaType: p.FileData.MIMEType, URL: p.FileData.FileURI}
	case p.Thought:
		return model.Thinking{Text: deref(p.Text), Sig: sig}
	}
	return model.Text{Text: deref(p.Text), Sig: sig}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (d *geminiDecoder) result(r *geminiResponse) model.Block {
	out := model.ToolResult{ToolUseID: r.ID, Name: r.Name}
	for i, use := range d.open {
		if r.ID == use.ID || r.ID == "" && r.Name == use.Name {
			out.ToolUseID = use.ID
			d.open = append(d.open[:i:i], d.open[i+1:]...)
			break
		}
	}
	text, isError := responseText(r.Response)
	out.IsError = isError
	out.Blocks = append(out.Blocks, model.Text{Text: text})
	for j := range r.Parts {
		out.Blocks = append(out.Blocks, d.block(&r.Parts[j], 0, j))
	}
	return out
}

// responseText is the text of a function's response: its output or error, the
// keys that the API recommends, else the object as it is.
func responseText(raw json.RawMessage) (text string, isError bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw), false
	}
	_, isError = fields["error"]
	for _, key := range []string{"output", "error", "result", "content"} {
		var s string
		if json.Unmarshal(fields[key], &s) == nil {
			return s, isError
		}
	}
	return string(raw), isError
}

// checkGemini refuses what the API refuses.
func checkGemini(in *geminiRequest, mem *memory) *vendorError {
	if len(in.Contents) == 0 {
		return invalid("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i := range in.Contents {
		if verr := checkGeminiContent(in, i, mem); verr != nil {
			return verr
		}
	}
	if calls(&in.Contents[len(in.Contents)-1]) > 0 {
		return countMismatch()
	}
	return nil
}

func calls(c *geminiContent) (n int) {
	for i := range c.Parts {
		if c.Parts[i].FunctionCall != nil {
			n++
		}
	}
	return n
}

func responses(c *geminiContent) (n int) {
	for i := range c.Parts {
		if c.Parts[i].FunctionResponse != nil {
			n++
		}
	}
	return n
}

func countMismatch() *vendorError {
	return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
}

func checkGeminiContent(in *geminiRequest, i int, mem *memory) *vendorError {
	c := &in.Contents[i]
	if c.Role != "user" && c.Role != "model" && c.Role != "function" && (c.Role != "" || len(in.Contents) > 1) {
		return invalid("Please use a valid role: user, model.")
	}
	if len(c.Parts) == 0 {
		return invalid("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
	}
	before, after := 0, 0
	if i > 0 {
		before = calls(&in.Contents[i-1])
		if before == 0 && calls(c) > 0 && in.Contents[i-1].Role == "model" {
			return invalid("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
	}
	after = responses(c)
	switch {
	case i == 0 && calls(c) > 0:
		return invalid("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	case before == 0 && after > 0:
		return invalid("Please ensure that function response turn comes immediately after a function call turn.")
	case before != after:
		return countMismatch()
	case before > 0:
		if verr := checkResponses(&in.Contents[i-1], c); verr != nil {
			return verr
		}
	}
	return checkGeminiParts(c, i, mem)
}

// checkResponses pairs the responses with the calls before them.
func checkResponses(asked, answered *geminiContent) *vendorError {
	var names []string
	for _, p := range asked.Parts {
		if p.FunctionCall != nil {
			names = append(names, p.FunctionCall.ID+"\x00"+p.FunctionCall.Name)
		}
	}
	for _, p := range answered.Parts {
		r := p.FunctionResponse
		if r == nil {
			continue
		}
		found := false
		for k, n := range names {
			id, name, _ := strings.Cut(n, "\x00")
			if name == r.Name && (r.ID == id || r.ID == "") {
				names = append(names[:k:k], names[k+1:]...)
				found = true
				break
			}
		}
		if !found {
			return invalid("Please ensure that function response turn comes immediately after a function call turn. (functionResponse %q, id %q, answers no functionCall)", r.Name, r.ID)
		}
	}
	return nil
}

func checkGeminiParts(c *geminiContent, i int, mem *memory) *vendorError {
	first := true
	for j := range c.Parts {
		p := &c.Parts[j]
		switch {
		case p.FunctionCall != nil:
			if verr := checkThoughtSignature(p, i, first, mem); verr != nil {
				return verr
			}
			first = false
		case p.FunctionResponse != nil:
			if p.FunctionResponse.Name == "" {
				return invalid("* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.\n", i, j)
			}
		case p.InlineData != nil || p.FileData != nil:
		case p.Text == nil && p.ThoughtSignature == "":
			return invalid("* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", i, j)
		case deref(p.Text) == "" && p.ThoughtSignature == "":
			return invalid("Unable to submit request because it must have a text parameter. Add a text parameter and try again. (contents[%d].parts[%d] is empty)", i, j)
		}
		if foreign(FormatGemini, p.ThoughtSignature) {
			return corrupted()
		}
	}
	return nil
}

func corrupted() *vendorError { return invalid("Corrupted thought signature.") }

// checkThoughtSignature wants a call back as it was given out: with its
// signature, or without one if it came without. The first call of a content
// must have one, if the script does not say otherwise.
func checkThoughtSignature(p *geminiPart, i int, first bool, mem *memory) *vendorError {
	key := callKey(p.FunctionCall.Name, string(p.FunctionCall.Args))
	known, same := mem.given(key, p.ThoughtSignature)
	if !known || same {
		return nil
	}
	if p.ThoughtSignature != "" {
		return corrupted()
	}
	if _, follows := mem.given(key, follower); follows && !first {
		return nil
	}
	return invalid("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
		p.FunctionCall.Name, i+1)
}

// callKey names a call in the memory, however its arguments are spelled.
func callKey(name, args string) string {
	var v any
	if json.Unmarshal([]byte(args), &v) == nil {
		if b, err := marshal(v); err == nil {
			args = string(b)
		}
	}
	if args == "" || args == "null" {
		args = "{}"
	}
	return digest("gemini call", name, args)
}

// geminiEncoder makes streamGenerateContent events.
type geminiEncoder struct {
	answer answer
	memory *memory

	b         block
	input     strings.Builder
	signed    bool // a call of this answer has a signature
	malformed bool
	tailText  string
}

func (e *geminiEncoder) responseID() string { return fmt.Sprintf("scripted%d", e.answer.seq) }

// tail ends an event: usage so far, model and response id.
func (e *geminiEncoder) tail(final *model.Usage) string {
	if final == nil && e.tailText != "" {
		return e.tailText
	}
	usage := ""
	switch {
	case final != nil:
		usage = `"usageMetadata":` + geminiUsage(final) + `,`
	case e.answer.usage != nil:
		prompt := geminiPrompt(e.answer.usage)
		usage = fmt.Sprintf(`"usageMetadata":{"promptTokenCount":%d,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]},`, prompt, prompt, prompt)
	}
	s := fmt.Sprintf(`%s"modelVersion":%s,"responseId":%q}`+"\n\n", usage, appendQuoted(nil, e.answer.model), e.responseID())
	if final == nil {
		e.tailText = s
	}
	return s
}

const (
	geminiHead = `data: {"candidates":[{"content":{"parts":[`
	geminiMid  = `],"role":"model"},"index":0}],`
)

func (e *geminiEncoder) part(b []byte, part string) []byte {
	b = append(append(b, geminiHead...), part...)
	return append(append(b, geminiMid...), e.tail(nil)...)
}

func (e *geminiEncoder) open(b []byte, bl block) []byte {
	e.b = bl
	e.input.Reset()
	return b
}

func (e *geminiEncoder) delta(b []byte, text string, n int) []byte {
	switch e.b.kind {
	case itemTool:
		e.input.WriteString(strings.Repeat(text, n)) // calls come whole
		return b
	case itemText, itemThinking:
		b = append(append(b, geminiHead...), `{"text":`...)
		b = appendQuoted(b, text)
		if e.b.kind == itemThinking {
			b = append(b, `,"thought":true`...)
		}
		b = append(append(b, '}'), geminiMid...)
		return append(b, e.tail(nil)...)
	}
	return b // the format has no redacted thinking
}

func (e *geminiEncoder) sign(b []byte, sig string) []byte {
	if sig == "" || e.b.kind != itemText && e.b.kind != itemThinking {
		return b
	}
	thought := ""
	if e.b.kind == itemThinking {
		thought = `,"thought":true`
	}
	return e.part(b, `{"text":""`+thought+`,"thoughtSignature":`+string(appendQuoted(nil, sig))+`}`)
}

func (e *geminiEncoder) close(b []byte, invalid string) []byte {
	if e.b.kind != itemTool {
		return b
	}
	args := strings.TrimSpace(e.input.String())
	if args == "" {
		args = "{}"
	}
	if invalid != "" || notObject(args) != "" {
		e.malformed = true
		return b
	}
	sig := e.callSignature(args)
	call := `{"functionCall":{`
	if e.b.ownID {
		call += `"id":` + string(appendQuoted(nil, e.b.id)) + `,`
	}
	call += `"name":` + string(appendQuoted(nil, e.b.name)) + `,"args":` + args + `}`
	if sig != "" {
		call += `,"thoughtSignature":` + string(appendQuoted(nil, sig))
	}
	return e.part(b, call+"}")
}

// callSignature is the script's, or one made for the first call of an answer.
func (e *geminiEncoder) callSignature(args string) string {
	key := callKey(e.b.name, args)
	sig := ""
	switch {
	case e.b.sig != nil:
		sig = e.b.sig.Value
		e.memory.give(key, sig)
	case e.signed:
		e.memory.give(key, follower)
	default:
		sig = madeSignature(FormatGemini, e.answer.turn, e.b.index, e.b.name+args)
		e.memory.give(key, sig)
	}
	e.signed = true
	return sig
}

func (e *geminiEncoder) finish(b []byte, f finish) []byte {
	reason := geminiStop(f.stop)
	content := `{"parts":[{"text":""}],"role":"model"},"finishReason":"` + reason + `"`
	if e.malformed {
		content = `{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: the arguments are no object"`
	}
	b = append(b, `data: {"candidates":[{"content":`+content+`,"index":0}],`...)
	return append(b, e.tail(f.usage)...)
}

// blocked is the answer to a prompt that the API will not take.
func (e *geminiEncoder) blocked(b []byte) []byte {
	b = append(b, `data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},`...)
	return append(b, e.tail(nil)...)
}

func (e *geminiEncoder) noFinish(b []byte) []byte { return b }
func (e *geminiEncoder) ping(b []byte) []byte     { return append(b, ": keep-alive\n\n"...) }

func (e *geminiEncoder) failed(b []byte, v *vendorError) []byte {
	b = append(b, "data: "...)
	return append(append(b, v.body(FormatGemini)...), "\n\n"...)
}

func geminiStop(s model.StopReason) string {
	switch s {
	case model.StopMaxTokens:
		return "MAX_TOKENS"
	case model.StopRefusal:
		return "SAFETY"
	}
	return "STOP"
}

func geminiPrompt(u *model.Usage) int { return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens }

func geminiUsage(u *model.Usage) string {
	prompt := geminiPrompt(u)
	s := fmt.Sprintf(`{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d`, prompt, max(0, u.OutputTokens-u.ThinkingTokens), prompt+u.OutputTokens)
	if u.CacheReadTokens > 0 {
		s += fmt.Sprintf(`,"cachedContentTokenCount":%d`, u.CacheReadTokens)
	}
	s += fmt.Sprintf(`,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, prompt)
	if u.ThinkingTokens > 0 {
		s += fmt.Sprintf(`,"thoughtsTokenCount":%d`, u.ThinkingTokens)
	}
	return s + "}"
}

// wholeGemini is a generateContent response.
func wholeGemini(s *httpSink, f finish) ([]byte, error) {
	enc := &geminiEncoder{answer: s.answer, memory: s.memory}
	var parts []json.RawMessage
	for i, b := range s.asm.Blocks() {
		var part []byte
		switch b := b.(type) {
		case model.Text:
			part = fmt.Appendf(nil, `{"text":%s%s}`, appendQuoted(nil, b.Text), thoughtSignature(b.Sig.Value))
		case model.Thinking:
			if b.Redacted != "" {
				continue
			}
			part = fmt.Appendf(nil, `{"text":%s,"thought":true%s}`, appendQuoted(nil, b.Text), thoughtSignature(b.Sig.Value))
		case model.ToolUse:
			if b.Invalid != "" {
				enc.malformed = true
				continue
			}
			enc.b = block{kind: itemTool, index: i, name: b.Name}
			if b.Sig.Value != "" || s.mute[i] {
				enc.b.sig = &b.Sig
			}
			part = fmt.Appendf(nil, `{"functionCall":{"name":%s,"args":%s}%s}`, appendQuoted(nil, b.Name), b.Input, thoughtSignature(enc.callSignature(string(b.Input))))
		}
		parts = append(parts, part)
	}
	candidate := map[string]any{"content": map[string]any{"parts": parts, "role": "model"}, "finishReason": geminiStop(f.stop), "index": 0}
	if enc.malformed {
		candidate["finishReason"] = "MALFORMED_FUNCTION_CALL"
	}
	doc := map[string]any{"candidates": []any{candidate}, "modelVersion": s.answer.model, "responseId": enc.responseID()}
	if f.usage != nil {
		doc["usageMetadata"] = json.RawMessage(geminiUsage(f.usage))
	}
	return marshal(doc)
}

func thoughtSignature(sig string) string {
	if sig == "" {
		return ""
	}
	return `,"thoughtSignature":` + string(appendQuoted(nil, sig))
}

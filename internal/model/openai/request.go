package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// dialect is what is known of a server from its address: which optional
// parameters it has names of its own for. What the address doesn't tell is
// learnt from the server's refusals (see quirks).
type dialect struct {
	official   bool // OpenAI's own API or Azure's: max_completion_tokens, prompt_cache_key, files
	openRouter bool // "reasoning" object, files
	dashScope  bool // enable_thinking and thinking_budget
	mistral    bool // tool call ids of exactly nine letters or digits
}

func dialectOf(host string) dialect {
	return dialect{
		official:   host == "openai.com" || strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com"),
		openRouter: host == "openrouter.ai" || strings.HasSuffix(host, ".openrouter.ai"),
		dashScope:  strings.HasPrefix(host, "dashscope") && strings.HasSuffix(host, ".aliyuncs.com"),
		mistral:    host == "mistral.ai" || strings.HasSuffix(host, ".mistral.ai"),
	}
}

// callID maps a tool call id onto the server's alphabet.
func (d dialect) callID(id string) string {
	if d.mistral {
		return nineLetters(id)
	}
	return wireName(id)
}

// body encodes req. Only what changes from request to request is encoded anew:
// messages and tools come from the cache.
func (p *provider) body(req *model.Request, q quirks) []byte {
	dst := make([]byte, 0, int(p.bodySize.Load())+4096)
	dst = append(dst, `{"model":`...)
	dst = appendString(dst, req.Model)
	dst = append(dst, `,"messages":[`...)
	dst = p.appendMessages(dst, req)
	dst = append(dst, ']')
	dst = p.appendTools(dst, req.Tools)
	dst = append(dst, `,"stream":true`...)
	if !q.has(noStreamOptions) {
		dst = append(dst, `,"stream_options":{"include_usage":true}`...)
	}
	dst = p.appendLimits(dst, req, q)
	dst = p.appendThinking(dst, req, q)
	if p.dialect.official && req.SessionID != "" && !q.has(noCacheKey) {
		dst = append(dst, `,"prompt_cache_key":`...)
		dst = appendString(dst, wireName(req.SessionID))
	}
	dst = append(dst, '}')
	p.bodySize.Store(int64(len(dst)))
	return dst
}

func (p *provider) appendLimits(dst []byte, req *model.Request, q quirks) []byte {
	if req.MaxOutputTokens > 0 {
		name := `,"max_tokens":`
		if p.dialect.official != q.has(otherMaxTokens) {
			name = `,"max_completion_tokens":`
		}
		dst = strconv.AppendInt(append(dst, name...), int64(req.MaxOutputTokens), 10)
	}
	if req.Temperature != nil && !q.has(noTemperature) {
		dst = strconv.AppendFloat(append(dst, `,"temperature":`...), *req.Temperature, 'g', -1, 64)
	}
	if req.TopP != nil && !q.has(noTopP) {
		dst = strconv.AppendFloat(append(dst, `,"top_p":`...), *req.TopP, 'g', -1, 64)
	}
	return dst
}

// appendThinking maps a thinking budget onto what the server calls it. Servers
// that have nothing of the kind get nothing.
func (p *provider) appendThinking(dst []byte, req *model.Request, q quirks) []byte {
	n := int64(req.Budget())
	if n == 0 || q.has(noThinking) {
		return dst
	}
	switch {
	case p.dialect.openRouter && req.ThinkingBudget == 0:
		return append(appendString(append(dst, `,"reasoning":{"effort":`...), nearest(req.Effort, true)), '}')
	case p.dialect.openRouter && n < 0:
		return append(dst, `,"reasoning":{"enabled":false}`...)
	case p.dialect.openRouter:
		return append(strconv.AppendInt(append(dst, `,"reasoning":{"max_tokens":`...), n, 10), '}')
	case p.dialect.dashScope && n < 0:
		return append(dst, `,"enable_thinking":false`...)
	case p.dialect.dashScope:
		return strconv.AppendInt(append(dst, `,"enable_thinking":true,"thinking_budget":`...), n, 10)
	}
	if effort := reasoningEffort(req.Model, req.ThinkingBudget, req.Effort); effort != "" {
		dst = appendString(append(dst, `,"reasoning_effort":`...), effort)
	}
	return dst
}

// reasoningEffort gives the effort for a budget in tokens: up to 4,096 low, up
// to 16,384 medium, above that high; off is the least that the family has. It
// is "" for models that do not reason. An effort by name counts unless thinking
// is off.
func reasoningEffort(name string, budget int, named model.Effort) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	gpt5 := strings.HasPrefix(name, "gpt-5")
	if !gpt5 && !hasAnyPrefix(name, "o1", "o3", "o4", "gpt-oss", "codex") {
		return ""
	}
	switch {
	case budget < 0 && strings.HasPrefix(name, "gpt-5."):
		return "none"
	case budget < 0 && gpt5:
		return "minimal"
	case named != "":
		return nearest(named, beyondHigh(name))
	case budget <= 4096:
		return "low"
	case budget <= 16384:
		return "medium"
	}
	return "high"
}

// nearest is what the API calls an effort; it knows none above xhigh, and some
// models none above high.
func nearest(e model.Effort, xhigh bool) string {
	switch {
	case e != model.EffortXHigh && e != model.EffortMax:
		return string(e)
	case xhigh:
		return "xhigh"
	}
	return "high"
}

// beyondHigh reports whether a model knows the effort xhigh: those from 5.2 on
// do.
func beyondHigh(name string) bool {
	rest, ok := strings.CutPrefix(name, "gpt-5.")
	if !ok {
		return false
	}
	minor, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(minor)
	return err == nil && n >= 2
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func (p *provider) appendTools(dst []byte, tools []model.ToolSpec) []byte {
	list, _ := p.cache.Tools(tools, encodeTool) // which never fails
	if len(list) == 0 {
		return dst
	}
	return append(append(append(dst, `,"tools":[`...), list...), ']')
}

// encodeTool returns t in the API's form. Its error is always nil.
func encodeTool(t model.ToolSpec) ([]byte, error) {
	b := []byte(`{"type":"function","function":{"name":`)
	b = appendString(b, wireName(t.Name))
	b = appendString(append(b, `,"description":`...), t.Description)
	b = append(b, `,"parameters":`...)
	if len(t.Schema) > 0 {
		b = append(b, t.Schema...)
	} else {
		b = append(b, `{"type":"object","properties":{}}`...)
	}
	return append(b, '}', '}'), nil
}

// encoded is one message in the API's form. A user message may become several:
// one per tool result, and one for the rest.
type encoded struct {
	calls   []string // assistant: ids of its tool calls
	results []encodedResult
	rest    []byte // the message itself; nil if nothing is left to say
}

type encodedResult struct {
	id   string
	text string // to quote it when its call is not in the history
	json []byte // the role=tool message
}

// appendMessages appends the conversation. The API refuses a conversation in
// which a tool call has no result right after it, or a result no call, so a
// missing result is stated as such, and a stray one is quoted as user text.
func (p *provider) appendMessages(dst []byte, req *model.Request) []byte {
	w := messageWriter{dst: dst, callID: p.dialect.callID}
	if req.System != "" {
		w.begin()
		w.dst = append(appendString(append(w.dst, `{"role":"system","content":`...), req.System), '}')
	}
	for _, m := range p.cache.Messages(req.Messages, p.encode) {
		w.message(m)
	}
	w.missing()
	return w.dst
}

type messageWriter struct {
	dst     []byte
	some    bool     // a message was written
	pending []string // calls that have no result yet
	callID  func(string) string
}

func (w *messageWriter) begin() {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
}

func (w *messageWriter) raw(message []byte) {
	if message != nil {
		w.begin()
		w.dst = append(w.dst, message...)
	}
}

func (w *messageWriter) message(m *encoded) {
	var strays []string
	for _, r := range m.results {
		if w.answer(r.id) {
			w.raw(r.json)
		} else {
			strays = append(strays, r.text)
		}
	}
	if m.rest == nil && len(strays) == 0 {
		return
	}
	w.missing()
	for _, s := range strays {
		w.begin()
		w.dst = append(appendString(append(w.dst, `{"role":"user","content":`...), "[result of an earlier tool call]\n"+s), '}')
	}
	w.raw(m.rest)
	w.pending = append(w.pending, m.calls...)
}

// answer takes id from the pending calls, and reports whether it was there.
func (w *messageWriter) answer(id string) bool {
	for i, c := range w.pending {
		if c == id {
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			return true
		}
	}
	return false
}

// missing states for each pending call that it has no result.
func (w *messageWriter) missing() {
	for _, id := range w.pending {
		w.begin()
		w.dst = appendToolMessage(w.dst, w.callID(id), "[no result: the call was not completed]")
	}
	w.pending = w.pending[:0]
}

func appendToolMessage(dst []byte, id, text string) []byte {
	dst = appendString(append(dst, `{"role":"tool","tool_call_id":`...), id)
	return append(appendString(append(dst, `,"content":`...), text), '}')
}

// encode makes the API's form of one message.
func (p *provider) encode(m *model.Message) *encoded {
	if m.Role == model.RoleAssistant {
		return p.encodeAssistant(m)
	}
	e := &encoded{}
	var parts content
	for _, b := range m.Blocks {
		if r, ok := b.(model.ToolResult); ok {
			e.results = append(e.results, p.encodeResult(r, &parts))
		}
	}
	for _, b := range m.Blocks {
		p.addPart(&parts, b)
	}
	if !parts.empty() {
		e.rest = append(parts.appendTo([]byte(`{"role":"user","content":`)), '}')
	}
	return e
}

// encodeAssistant drops thinking and signatures: this API takes none back.
func (p *provider) encodeAssistant(m *model.Message) *encoded {
	e := &encoded{}
	var text strings.Builder
	var calls []byte
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case model.Text:
			text.WriteString(b.Text)
		case model.ToolUse:
			if len(calls) > 0 {
				calls = append(calls, ',')
			}
			calls = appendCall(calls, p.dialect.callID(b.ID), b)
			e.calls = append(e.calls, b.ID)
		}
	}
	if text.Len() == 0 && len(calls) == 0 {
		return e
	}
	e.rest = []byte(`{"role":"assistant","content":`)
	if text.Len() == 0 {
		e.rest = append(e.rest, `null`...)
	} else {
		e.rest = appendString(e.rest, text.String())
	}
	if len(calls) > 0 {
		e.rest = append(append(append(e.rest, `,"tool_calls":[`...), calls...), ']')
	}
	e.rest = append(e.rest, '}')
	return e
}

func appendCall(dst []byte, id string, t model.ToolUse) []byte {
	dst = appendString(append(dst, `{"id":`...), id)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = appendString(dst, wireName(t.Name))
	input := string(t.Input)
	if input == "" {
		input = "{}"
	}
	dst = appendString(append(dst, `,"arguments":`...), input)
	return append(dst, '}', '}')
}

// encodeResult makes the role=tool message, which can hold text only; pictures
// and documents of the result go to the user message that follows.
func (p *provider) encodeResult(r model.ToolResult, parts *content) encodedResult {
	var text strings.Builder
	attached := 0
	for _, b := range r.Blocks {
		if t, ok := b.(model.Text); ok {
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(t.Text)
			continue
		}
		if attached++; attached == 1 {
			parts.text("[from the result of tool " + r.Name + "]")
		}
		p.addPart(parts, b)
	}
	s := text.String()
	switch {
	case s == "" && attached > 0:
		s = "(the result is in the next message)"
	case s == "":
		s = "(no output)"
	}
	if r.IsError && !strings.HasPrefix(strings.ToLower(s), "error") {
		s = "Error: " + s
	}
	return encodedResult{id: r.ToolUseID, text: s, json: appendToolMessage(nil, p.dialect.callID(r.ToolUseID), s)}
}

// addPart adds a user block to the content. Tool results are not parts.
func (p *provider) addPart(c *content, b model.Block) {
	switch b := b.(type) {
	case model.Text:
		c.text(b.Text)
	case model.Image:
		c.image(b)
	case model.Document:
		p.addDocument(c, b)
	}
}

// addDocument gives a document as a file where the API is known to take files,
// as text if it is text, else as a note that it is there.
func (p *provider) addDocument(c *content, d model.Document) {
	name := d.Name
	if name == "" {
		name = "document"
	}
	switch {
	case strings.HasPrefix(d.MediaType, "text/"), d.MediaType == "application/json":
		c.text("[" + name + "]\n" + string(d.Data))
	case (p.dialect.official || p.dialect.openRouter) && d.MediaType == "application/pdf":
		part := appendString([]byte(`{"type":"file","file":{"filename":`), name)
		part = appendDataURL(append(part, `,"file_data":`...), d.MediaType, d.Data)
		c.part(append(part, '}', '}'))
	default:
		c.text(fmt.Sprintf("[%s: %s of %d bytes, which cannot be shown to this model]", name, d.MediaType, len(d.Data)))
	}
}

// content collects the content of a user message: a plain string while it is
// only text, which every server understands, else a list of parts.
type content struct {
	texts []string
	parts [][]byte
	media bool
}

func (c *content) empty() bool { return len(c.parts) == 0 }

func (c *content) text(s string) {
	if s == "" {
		return
	}
	c.texts = append(c.texts, s)
	c.parts = append(c.parts, append(appendString([]byte(`{"type":"text","text":`), s), '}'))
}

func (c *content) part(raw []byte) {
	c.media = true
	c.parts = append(c.parts, raw)
}

func (c *content) image(img model.Image) {
	part := []byte(`{"type":"image_url","image_url":{"url":`)
	if len(img.Data) == 0 {
		part = appendString(part, img.URL)
	} else {
		media := img.MediaType
		if media == "" {
			media = http.DetectContentType(img.Data)
		}
		part = appendDataURL(part, media, img.Data)
	}
	c.part(append(part, '}', '}'))
}

func (c *content) appendTo(dst []byte) []byte {
	if !c.media {
		return appendString(dst, strings.Join(c.texts, "\n"))
	}
	dst = append(dst, '[')
	for i, p := range c.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p...)
	}
	return append(dst, ']')
}

// schemaOf returns a tool's schema as far as the tolerant layer needs it.
func schemaOf(raw json.RawMessage) toolSchema {
	var s toolSchema
	if json.Unmarshal(raw, &s) != nil {
		return toolSchema{}
	}
	return s
}

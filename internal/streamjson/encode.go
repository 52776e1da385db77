package streamjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Append appends the encoding of m to dst: one compact JSON object without a
// newline anywhere in it. HTML is not escaped, U+2028/2029 are, invalid UTF-8
// is repaired to U+FFFD, also inside raw values, which are compacted. It fails
// when a raw value is not valid JSON (or not an object where one is due) and
// then returns dst as it was. m is not changed and not kept.
func Append(dst []byte, m Message) ([]byte, error) {
	if d, ok := m.(*StreamDelta); ok {
		if !d.Kind.valid() {
			return dst, fmt.Errorf("encoding stream_event: delta kind %d is not one", d.Kind)
		}
		return appendDelta(dst, d), nil
	}
	e := encoder{b: dst}
	e.message(m)
	if e.err != nil {
		return dst, e.err
	}
	return e.b, nil
}

// Size is the length of m's encoding, without the newline, found without
// writing it. Raw values count as they are, so that the true size can differ
// by what compacting or escaping changes in them.
func Size(m Message) int {
	if d, ok := m.(*StreamDelta); ok {
		var buf [512]byte
		frame := *d
		frame.Text = ""
		return len(appendDelta(buf[:0], &frame)) + stringSize(d.Text) - len(`""`)
	}
	e := encoder{counting: true}
	e.message(m)
	return e.n
}

// Fits reports whether m's encoding, newline included, is within limit bytes.
func Fits(m Message, limit int) bool { return Size(m) < limit }

// encoder appends to b, or with counting set only adds up n. The first error
// sticks.
type encoder struct {
	b        []byte
	counting bool
	n        int
	err      error
}

func (e *encoder) lit(s string) {
	if e.counting {
		e.n += len(s)
		return
	}
	e.b = append(e.b, s...)
}

func (e *encoder) str(s string) {
	if e.counting {
		e.n += stringSize(s)
		return
	}
	e.b = AppendString(e.b, s)
}

func (e *encoder) num(n int64) {
	if e.counting {
		var buf [20]byte
		e.n += len(strconv.AppendInt(buf[:0], n, 10))
		return
	}
	e.b = strconv.AppendInt(e.b, n, 10)
}

// float writes f the way JavaScript does; what JSON can't hold is 0.
func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	var buf [32]byte
	e.lit(string(strconv.AppendFloat(buf[:0], f, format, -1, 64)))
}

// The following write a key (with its comma, as in `,"key":`) and a value.

func (e *encoder) strKey(key, s string)       { e.lit(key); e.str(s) }
func (e *encoder) numKey(key string, n int)   { e.lit(key); e.num(int64(n)) }
func (e *encoder) num64Key(k string, n int64) { e.lit(k); e.num(n) }

func (e *encoder) boolKey(key string, v bool) {
	e.lit(key)
	e.lit(strconv.FormatBool(v))
}

// nullKey writes null for the empty string.
func (e *encoder) nullKey(key, s string) {
	e.lit(key)
	if s == "" {
		e.lit("null")
		return
	}
	e.str(s)
}

func (e *encoder) optStr(key, s string) {
	if s != "" {
		e.strKey(key, s)
	}
}

func (e *encoder) optNum(key string, n int) {
	if n != 0 {
		e.numKey(key, n)
	}
}

func (e *encoder) optTrue(key string, v bool) {
	if v {
		e.boolKey(key, true)
	}
}

func (e *encoder) optRaw(key string, raw json.RawMessage) {
	if raw != nil {
		e.rawKey(key, raw, "null")
	}
}

// rawKey writes a raw value, or instead of an empty one def.
func (e *encoder) rawKey(key string, raw []byte, def string) {
	e.lit(key)
	e.raw(raw, def)
}

func (e *encoder) raw(raw []byte, def string) {
	switch {
	case len(raw) == 0:
		e.lit(def)
	case e.counting:
		e.n += len(raw)
	case e.err == nil:
		b, err := jsontext.AppendFormat(e.b, raw, encodeOptions)
		if err != nil {
			e.err = fmt.Errorf("encoding a raw JSON value: %w", err)
			return
		}
		e.b = b
	}
}

// object writes a raw value that must be an object.
func (e *encoder) object(raw []byte, def string) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] != '{' && e.err == nil {
		e.err = fmt.Errorf("encoding a raw JSON value: want an object, have %s", excerpt(raw, 0))
		return
	}
	e.raw(raw, def)
}

// extra writes the members of a raw object, each with a comma before it.
func (e *encoder) extra(raw []byte) {
	if len(raw) == 0 {
		return
	}
	if e.counting {
		e.n += max(0, len(raw)-1)
		return
	}
	start := len(e.b)
	e.object(raw, "")
	if e.err != nil {
		return
	}
	if len(e.b)-start == len("{}") {
		e.b = e.b[:start]
		return
	}
	e.b[start] = ','
	e.b = e.b[:len(e.b)-1]
}

func (e *encoder) strings(key string, list []string) {
	e.lit(key)
	e.lit("[")
	for i, s := range list {
		e.comma(i)
		e.str(s)
	}
	e.lit("]")
}

func (e *encoder) comma(i int) {
	if i > 0 {
		e.lit(",")
	}
}

// message writes m. Every case closes its own object.
func (e *encoder) message(m Message) {
	switch m := m.(type) {
	case *UserLine:
		e.user(m)
	case *Assistant:
		e.assistant(m)
	case *StreamEvent:
		e.streamEvent(m)
	case *StreamDelta:
		e.b = appendDelta(e.b, m)
	case *Result:
		e.result(m)
	case *SystemInit:
		e.systemInit(m)
	case *SystemStatus:
		e.lit(`{"type":"system","subtype":"status"`)
		e.nullKey(`,"status":`, m.Status)
		e.optStr(`,"permissionMode":`, m.PermissionMode)
		e.optStr(`,"model":`, m.Model)
		e.tail(m.SessionID, m.UUID, m.Extra)
	case *SystemAPIRetry:
		e.apiRetry(m)
	case *SystemPermissionDenied:
		e.strKey(`{"type":"system","subtype":"permission_denied","tool_name":`, m.ToolName)
		e.strKey(`,"tool_use_id":`, m.ToolUseID)
		e.strKey(`,"message":`, m.Message)
		e.optStr(`,"decision_reason":`, m.DecisionReason)
		e.tail(m.SessionID, m.UUID, m.Extra)
	case *System:
		e.strKey(`{"type":"system","subtype":`, m.Subtype)
		e.tail(m.SessionID, m.UUID, m.Extra)
	case *ControlRequest:
		e.controlRequest(m)
	case *ControlResponse:
		e.controlResponse(m)
	case *ControlCancel:
		e.strKey(`{"type":"control_cancel_request","request_id":`, m.RequestID)
		e.lit("}")
	case *KeepAlive:
		e.lit(`{"type":"keep_alive"}`)
	case *Unknown:
		if len(m.Raw) == 0 {
			e.strKey(`{"type":`, m.Type)
			e.lit("}")
			return
		}
		e.object(m.Raw, "")
	default:
		e.err = fmt.Errorf("encoding a message: %T is not one", m)
	}
}

// tail writes the ids that frames end with, the extra members and the brace.
func (e *encoder) tail(sessionID, uuid string, extra []byte) {
	e.strKey(`,"session_id":`, sessionID)
	e.strKey(`,"uuid":`, uuid)
	e.extra(extra)
	e.lit("}")
}

func (e *encoder) user(m *UserLine) {
	e.lit(`{"type":"user","message":{"role":"user","content":`)
	e.content(m.Message.Content)
	e.nullKey(`},"parent_tool_use_id":`, m.ParentToolUseID)
	e.optRaw(`,"tool_use_result":`, m.ToolUseResult)
	e.optRaw(`,"options":`, m.Options)
	e.optRaw(`,"origin":`, m.Origin)
	e.optStr(`,"priority":`, m.Priority)
	if m.ShouldQuery != nil {
		e.boolKey(`,"shouldQuery":`, *m.ShouldQuery)
	}
	e.optTrue(`,"client_composed":`, m.ClientComposed)
	e.optTrue(`,"isSynthetic":`, m.IsSynthetic)
	e.optTrue(`,"isReplay":`, m.IsReplay)
	e.optStr(`,"session_id":`, m.SessionID)
	e.optStr(`,"uuid":`, m.UUID)
	e.extra(m.Extra)
	e.lit("}")
}

func (e *encoder) assistant(m *Assistant) {
	e.lit(`{"type":"assistant","message":`)
	e.assistantMessage(&m.Message)
	e.nullKey(`,"parent_tool_use_id":`, m.ParentToolUseID)
	e.optStr(`,"error":`, m.Error)
	e.tail(m.SessionID, m.UUID, m.Extra)
}

func (e *encoder) assistantMessage(m *AssistantMessage) {
	e.strKey(`{"id":`, m.ID)
	e.strKey(`,"type":"message","role":"assistant","model":`, m.Model)
	e.lit(`,"content":`)
	e.blocks(m.Content)
	e.nullKey(`,"stop_reason":`, m.StopReason)
	e.nullKey(`,"stop_sequence":`, m.StopSequence)
	e.usage(&m.Usage)
	e.lit("}")
}

func (e *encoder) usage(u *Usage) {
	e.numKey(`,"usage":{"input_tokens":`, u.InputTokens)
	e.numKey(`,"output_tokens":`, u.OutputTokens)
	e.numKey(`,"cache_creation_input_tokens":`, u.CacheCreationInputTokens)
	e.numKey(`,"cache_read_input_tokens":`, u.CacheReadInputTokens)
	e.numKey(`,"cache_creation":{"ephemeral_5m_input_tokens":`, u.CacheCreation.Ephemeral5m)
	e.numKey(`,"ephemeral_1h_input_tokens":`, u.CacheCreation.Ephemeral1h)
	e.numKey(`},"server_tool_use":{"web_search_requests":`, u.ServerToolUse.WebSearchRequests)
	e.numKey(`,"web_fetch_requests":`, u.ServerToolUse.WebFetchRequests)
	tier := u.ServiceTier
	if tier == "" {
		tier = "standard"
	}
	e.strKey(`},"service_tier":`, tier)
	e.lit("}")
}

func (e *encoder) content(c Content) {
	if c.Blocks == nil {
		e.str(c.Text)
		return
	}
	e.blocks(c.Blocks)
}

func (e *encoder) blocks(blocks []Block) {
	e.lit("[")
	for i, b := range blocks {
		e.comma(i)
		e.block(b)
	}
	e.lit("]")
}

func (e *encoder) block(b Block) {
	switch b := b.(type) {
	case TextBlock:
		e.strKey(`{"type":"text","text":`, b.Text)
	case ThinkingBlock:
		e.strKey(`{"type":"thinking","thinking":`, b.Thinking)
		e.strKey(`,"signature":`, b.Signature)
	case RedactedThinkingBlock:
		e.strKey(`{"type":"redacted_thinking","data":`, b.Data)
	case ToolUseBlock:
		e.strKey(`{"type":"tool_use","id":`, b.ID)
		e.strKey(`,"name":`, b.Name)
		e.rawKey(`,"input":`, b.Input, "{}")
	case ToolResultBlock:
		e.strKey(`{"type":"tool_result","tool_use_id":`, b.ToolUseID)
		e.lit(`,"content":`)
		e.content(b.Content)
		e.boolKey(`,"is_error":`, b.IsError)
	case ImageBlock:
		e.lit(`{"type":"image","source":`)
		e.source(b.Source)
	case DocumentBlock:
		e.lit(`{"type":"document","source":`)
		e.source(b.Source)
		e.optStr(`,"title":`, b.Title)
		e.optStr(`,"context":`, b.Context)
	case UnknownBlock:
		if len(b.Raw) > 0 {
			e.object(b.Raw, "")
			return
		}
		e.strKey(`{"type":`, b.Type)
	default:
		e.err = fmt.Errorf("encoding a content block: %T is not one", b)
	}
	e.lit("}")
}

func (e *encoder) source(s Source) {
	e.strKey(`{"type":`, s.Type)
	e.optStr(`,"media_type":`, s.MediaType)
	e.optStr(`,"data":`, s.Data)
	e.optStr(`,"url":`, s.URL)
	e.lit("}")
}

func (e *encoder) streamEvent(m *StreamEvent) {
	e.lit(`{"type":"stream_event","event":`)
	e.event(m.Event)
	e.nullKey(`,"parent_tool_use_id":`, m.ParentToolUseID)
	e.strKey(`,"session_id":`, m.SessionID)
	e.lit(`,"uuid":`)
	switch {
	case m.UUID != "":
		e.str(m.UUID)
	case e.counting:
		e.n += len(`""`) + uuidLen
	default:
		e.b = append(AppendUUID(append(e.b, '"')), '"')
	}
	e.extra(m.Extra)
	e.lit("}")
}

func (e *encoder) event(ev Event) {
	switch ev := ev.(type) {
	case MessageStart:
		e.lit(`{"type":"message_start","message":`)
		e.assistantMessage(&ev.Message)
		e.lit("}")
	case BlockStart:
		e.numKey(`{"type":"content_block_start","index":`, ev.Index)
		e.lit(`,"content_block":`)
		e.block(ev.Block)
		e.lit("}")
	case BlockStop:
		e.numKey(`{"type":"content_block_stop","index":`, ev.Index)
		e.lit("}")
	case MessageDelta:
		e.nullKey(`{"type":"message_delta","delta":{"stop_reason":`, ev.StopReason)
		e.nullKey(`,"stop_sequence":`, ev.StopSequence)
		e.numKey(`},"usage":{"output_tokens":`, ev.Usage.OutputTokens)
		e.optNum(`,"input_tokens":`, ev.Usage.InputTokens)
		e.optNum(`,"cache_creation_input_tokens":`, ev.Usage.CacheCreationInputTokens)
		e.optNum(`,"cache_read_input_tokens":`, ev.Usage.CacheReadInputTokens)
		e.lit("}}")
	case MessageStop:
		e.lit(`{"type":"message_stop"}`)
	case Ping:
		e.lit(`{"type":"ping"}`)
	case OtherEvent:
		if len(ev.Raw) > 0 {
			e.object(ev.Raw, "")
			return
		}
		e.strKey(`{"type":`, ev.Type)
		e.lit("}")
	default:
		e.err = fmt.Errorf("encoding a stream event: %T is not one", ev)
	}
}

func (e *encoder) systemInit(m *SystemInit) {
	e.strKey(`{"type":"system","subtype":"init","cwd":`, m.CWD)
	e.strings(`,"tools":`, m.Tools)
	e.lit(`,"mcp_servers":[`)
	for i, s := range m.MCPServers {
		e.comma(i)
		e.strKey(`{"name":`, s.Name)
		e.strKey(`,"status":`, s.Status)
		e.optStr(`,"source":`, s.Source)
		e.lit("}")
	}
	e.strKey(`],"model":`, m.Model)
	e.strKey(`,"permissionMode":`, m.PermissionMode)
	e.strings(`,"slash_commands":`, m.SlashCommands)
	e.strKey(`,"apiKeySource":`, m.APIKeySource)
	e.strKey(`,"claude_code_version":`, m.Version)
	e.strKey(`,"output_style":`, m.OutputStyle)
	if m.Agents != nil {
		e.strings(`,"agents":`, m.Agents)
	}
	e.strings(`,"skills":`, m.Skills)
	e.lit(`,"plugins":[`)
	for i, p := range m.Plugins {
		e.comma(i)
		e.strKey(`{"name":`, p.Name)
		e.strKey(`,"path":`, p.Path)
		e.lit("}")
	}
	e.lit("]")
	if m.Capabilities != nil {
		e.strings(`,"capabilities":`, m.Capabilities)
	}
	e.tail(m.SessionID, m.UUID, m.Extra)
}

func (e *encoder) apiRetry(m *SystemAPIRetry) {
	e.numKey(`{"type":"system","subtype":"api_retry","attempt":`, m.Attempt)
	e.numKey(`,"max_retries":`, m.MaxRetries)
	e.num64Key(`,"retry_delay_ms":`, m.RetryDelayMS)
	e.lit(`,"error_status":`)
	if m.ErrorStatus == 0 {
		e.lit("null")
	} else {
		e.num(int64(m.ErrorStatus))
	}
	e.strKey(`,"error":`, m.Error)
	e.tail(m.SessionID, m.UUID, m.Extra)
}

func (e *encoder) result(m *Result) {
	e.strKey(`{"type":"result","subtype":`, m.Subtype)
	e.boolKey(`,"is_error":`, m.IsError)
	e.num64Key(`,"duration_ms":`, m.DurationMS)
	e.num64Key(`,"duration_api_ms":`, m.DurationAPIMS)
	e.numKey(`,"num_turns":`, m.NumTurns)
	success := m.Subtype == ResultSuccess
	if success || m.Result != "" {
		e.strKey(`,"result":`, m.Result)
	}
	if !success || m.Errors != nil {
		e.strings(`,"errors":`, m.Errors)
	}
	e.nullKey(`,"stop_reason":`, m.StopReason)
	e.lit(`,"total_cost_usd":`)
	e.float(m.TotalCostUSD)
	e.usage(&m.Usage)
	e.modelUsage(m.ModelUsage)
	e.lit(`,"permission_denials":[`)
	for i, d := range m.PermissionDenials {
		e.comma(i)
		e.strKey(`{"tool_name":`, d.ToolName)
		e.strKey(`,"tool_use_id":`, d.ToolUseID)
		e.rawKey(`,"tool_input":`, d.ToolInput, "{}")
		e.lit("}")
	}
	e.lit("]")
	e.optRaw(`,"structured_output":`, m.StructuredOutput)
	e.optNum(`,"api_error_status":`, m.APIErrorStatus)
	e.optStr(`,"terminal_reason":`, m.TerminalReason)
	if m.ResultIndex != nil {
		e.numKey(`,"result_index":`, *m.ResultIndex)
	}
	e.optRaw(`,"origin":`, m.Origin)
	e.optStr(`,"user_message_uuid":`, m.UserMessageUUID)
	e.tail(m.SessionID, m.UUID, m.Extra)
}

func (e *encoder) modelUsage(models map[string]ModelUsage) {
	e.lit(`,"modelUsage":{`)
	for i, name := range slices.Sorted(maps.Keys(models)) {
		u := models[name]
		e.comma(i)
		e.str(name)
		e.numKey(`:{"inputTokens":`, u.InputTokens)
		e.numKey(`,"outputTokens":`, u.OutputTokens)
		e.numKey(`,"cacheReadInputTokens":`, u.CacheReadInputTokens)
		e.numKey(`,"cacheCreationInputTokens":`, u.CacheCreationInputTokens)
		e.numKey(`,"webSearchRequests":`, u.WebSearchRequests)
		e.lit(`,"costUSD":`)
		e.float(u.CostUSD)
		e.numKey(`,"contextWindow":`, u.ContextWindow)
		e.numKey(`,"maxOutputTokens":`, u.MaxOutputTokens)
		e.optNum(`,"thinkingTokens":`, u.ThinkingTokens)
		e.optStr(`,"provider":`, u.Provider)
		e.lit("}")
	}
	e.lit("}")
}

func (e *encoder) controlRequest(m *ControlRequest) {
	e.strKey(`{"type":"control_request","request_id":`, m.RequestID)
	e.lit(`,"request":`)
	if len(m.Request) == 0 {
		e.strKey(`{"subtype":`, m.Subtype)
		e.lit("}")
	} else {
		e.object(m.Request, "")
	}
	e.lit("}")
}

func (e *encoder) controlResponse(m *ControlResponse) {
	e.strKey(`{"type":"control_response","response":{"subtype":`, m.Subtype)
	e.strKey(`,"request_id":`, m.RequestID)
	if m.Subtype == ResponseError {
		e.strKey(`,"error":`, m.Error)
	} else {
		e.rawKey(`,"response":`, m.Response, "null")
	}
	e.extra(m.Extra)
	e.lit("}}")
}

// A delta's text comes last in its line, so that the next delta of the same
// block can be joined to it in place: cut deltaTail, append, put it back.
const (
	deltaTail = `"}}}`
	uuidLen   = 36
)

// valid reports whether k is one of the kinds.
func (k DeltaKind) valid() bool { return k >= DeltaText && k <= DeltaSignature }

// joins reports whether deltas of kind k can be joined.
func (k DeltaKind) joins() bool { return k >= DeltaText && k <= DeltaInputJSON }

// open is the beginning of the inner delta object, up to its text.
func (k DeltaKind) open() string {
	switch k {
	case DeltaText:
		return `,"delta":{"type":"text_delta","text":"`
	case DeltaThinking:
		return `,"delta":{"type":"thinking_delta","thinking":"`
	case DeltaInputJSON:
		return `,"delta":{"type":"input_json_delta","partial_json":"`
	default:
		return `,"delta":{"type":"signature_delta","signature":"`
	}
}

func appendDelta(dst []byte, d *StreamDelta) []byte {
	dst = append(dst, `{"type":"stream_event","uuid":"`...)
	if d.UUID == "" {
		dst = AppendUUID(dst)
	} else {
		dst = appendEscaped(dst, d.UUID)
	}
	dst = append(dst, `","session_id":"`...)
	dst = appendEscaped(dst, d.SessionID)
	dst = append(dst, `","parent_tool_use_id":`...)
	if d.ParentToolUseID == "" {
		dst = append(dst, "null"...)
	} else {
		dst = AppendString(dst, d.ParentToolUseID)
	}
	dst = append(dst, `,"event":{"type":"content_block_delta","index":`...)
	dst = strconv.AppendInt(dst, int64(d.Index), 10)
	dst = append(dst, d.Kind.open()...)
	dst = appendEscaped(dst, d.Text)
	return append(dst, deltaTail...)
}

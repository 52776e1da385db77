package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/streamjson"
)

// protocolSchema returns the JSON Schema of the protocol's lines, made from the
// Go types that are read and written: $defs/in are the lines of hosts, $defs/out
// those of the program in the native and claude dialects, $defs/out_qwen in the
// qwen dialect, and $defs/response.* what answers a control request.
//
// Members that it doesn't name are allowed everywhere, as they are in the
// protocol. What we write has all members that are always there; of what hosts
// write only those are demanded without which a line is an error.
func protocolSchema() (*jsonschema.Schema, error) {
	m := schemaMaker{defs: map[string]*jsonschema.Schema{}}
	in := m.hostLines()
	out := m.ownLines()
	m.defs["in"], m.defs["out"], m.defs["out_qwen"] = anyOf(in), anyOf(out), anyOf(m.qwenLines(out))
	if m.err != nil {
		return nil, fmt.Errorf("making the protocol's schema: %w", m.err)
	}
	return &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema",
		Title:  "One line of the protocol of agent", Description: "See docs/protocol.md.",
		AnyOf: []*jsonschema.Schema{ref("in"), ref("out"), ref("out_qwen")}, Defs: m.defs,
	}, nil
}

// schemaMaker makes the definitions; the first error stays.
type schemaMaker struct {
	defs map[string]*jsonschema.Schema
	err  error
}

func ref(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }

func anyOf(names []string) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, n := range names {
		s.AnyOf = append(s.AnyOf, ref(n))
	}
	return s
}

// text is the schema of one text.
func text(s string) *jsonschema.Schema {
	var c any = s
	return &jsonschema.Schema{Const: &c}
}

func object(required []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: properties, Required: required}
}

// other is an object whose member isn't one of the known texts.
func other(member string, known []string) *jsonschema.Schema {
	values := make([]any, len(known))
	for i, k := range known {
		values[i] = k
	}
	return object([]string{member}, map[string]*jsonschema.Schema{
		member: {Type: "string", Not: &jsonschema.Schema{Enum: values}},
	})
}

func (m *schemaMaker) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// of makes the schema of v's type. Strict is for what we write.
func (m *schemaMaker) of(v any, strict bool) *jsonschema.Schema {
	suffix := ""
	if !strict {
		suffix = "_in"
	}
	blocks := &jsonschema.Schema{Type: "array", Items: ref("block" + suffix)}
	s, err := jsonschema.ForType(reflect.TypeOf(v), &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():    {},
		reflect.TypeFor[jsontext.Value]():     {},
		reflect.TypeFor[streamjson.Blocks]():  blocks,
		reflect.TypeFor[streamjson.Content](): {AnyOf: []*jsonschema.Schema{{Type: "string"}, blocks}},
		reflect.TypeFor[policy.Update]():      ref("permission_update"),
	}})
	if err != nil {
		m.fail(fmt.Errorf("%T: %w", v, err))
		return &jsonschema.Schema{}
	}
	open(s, strict)
	return s
}

// open allows unknown members, and in what hosts write null for what is absent.
func open(s *jsonschema.Schema, strict bool) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
		delete(s.Properties, "Extra")
		s.PropertyOrder = nil
		s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == "Extra" })
		slices.Sort(s.Required)
	}
	if !strict {
		s.Required = nil
	}
	for _, p := range s.Properties {
		open(p, strict)
		if !strict {
			nullable(p)
		}
	}
	open(s.Items, strict)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		open(s.AdditionalProperties, strict)
	}
}

func nullable(s *jsonschema.Schema) {
	if s.Type != "" {
		s.Types, s.Type = []string{"null", s.Type}, ""
	}
	if s.AnyOf != nil {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
	}
}

// fit adds to s what encodings of zero values show: members that are always
// there, such as the type, and which of them may be null.
func fit(s *jsonschema.Schema, samples ...any) {
	first, ok := samples[0].(map[string]any)
	if !ok || s == nil {
		return
	}
	if s.Type == "" && s.Types == nil && s.Ref == "" && s.AnyOf == nil {
		s.Type = "object"
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Required = nil
	for _, key := range slices.Sorted(maps.Keys(first)) {
		values := make([]any, 0, len(samples))
		for _, sample := range samples {
			if v, ok := sample.(map[string]any)[key]; ok {
				values = append(values, v)
			}
		}
		if len(values) < len(samples) {
			continue
		}
		s.Required = append(s.Required, key)
		if s.Properties[key] == nil {
			s.Properties[key] = guess(values[0])
		}
		fitMember(s.Properties[key], values)
	}
}

// fitMember is fit for the value of a member.
func fitMember(s *jsonschema.Schema, values []any) {
	switch values[0].(type) {
	case nil:
		nullable(s)
	case map[string]any:
		switch inner := elements(values); {
		case s.Ref != "":
		case s.AdditionalProperties == nil || s.AdditionalProperties.Not != nil:
			fit(s, values...)
		case len(inner) > 0:
			fit(s.AdditionalProperties, inner...)
		}
	case []any:
		if inner := elements(values); len(inner) > 0 && s.Items != nil && s.Items.Ref == "" {
			fit(s.Items, inner...)
		}
	}
}

// elements are what lists or objects hold.
func elements(values []any) []any {
	var inner []any
	for _, v := range values {
		switch v := v.(type) {
		case []any:
			inner = append(inner, v...)
		case map[string]any:
			inner = slices.AppendSeq(inner, maps.Values(v))
		}
	}
	return inner
}

// guess is the schema of a member that no Go field has.
func guess(v any) *jsonschema.Schema {
	switch v := v.(type) {
	case string:
		if v == "" {
			return &jsonschema.Schema{Type: "string"}
		}
		return text(v)
	case float64:
		return &jsonschema.Schema{Type: "integer"}
	case bool:
		return &jsonschema.Schema{Type: "boolean"}
	case nil:
		return &jsonschema.Schema{Type: "string"} // becomes nullable
	case []any:
		return &jsonschema.Schema{Type: "array"}
	}
	return &jsonschema.Schema{Type: "object"}
}

// encoded is the JSON value of a message.
func (m *schemaMaker) encoded(msg streamjson.Message) any {
	line, err := streamjson.Append(nil, msg)
	var v any
	if err == nil {
		err = json.Unmarshal(line, &v)
	}
	if err != nil {
		m.fail(fmt.Errorf("%T: %w", msg, err))
	}
	return v
}

// frame defines a message of which the first sample has the Go type.
func (m *schemaMaker) frame(name string, samples ...streamjson.Message) string {
	s := m.of(reflect.ValueOf(samples[0]).Elem().Interface(), true)
	values := make([]any, len(samples))
	for i, sample := range samples {
		values[i] = m.encoded(sample)
	}
	fit(s, values...)
	m.defs[name] = s
	return name
}

// ownLines defines what the program writes and returns the names.
func (m *schemaMaker) ownLines() []string {
	m.permissionUpdate()
	m.blocks(true)
	names := []string{
		m.frame("user", &streamjson.UserLine{Message: streamjson.UserMessage{Content: streamjson.BlockContent()}}),
		m.frame("assistant", &streamjson.Assistant{}),
		m.frame("system.init", &streamjson.SystemInit{}, &streamjson.SystemInit{MCPServers: make([]streamjson.MCPServer, 1), Plugins: make([]streamjson.Plugin, 1)}),
		m.frame("system.status", &streamjson.SystemStatus{}),
		m.frame("system.api_retry", &streamjson.SystemAPIRetry{}),
		m.frame("system.permission_denied", &streamjson.SystemPermissionDenied{}),
		m.frame("result", &streamjson.Result{}, &streamjson.Result{
			Subtype: streamjson.ResultSuccess, ModelUsage: map[string]streamjson.ModelUsage{"": {}}, PermissionDenials: make([]streamjson.PermissionDenial, 1),
		}),
		m.frame("keep_alive", &streamjson.KeepAlive{}),
		m.frame("control_cancel_request", &streamjson.ControlCancel{RequestID: ""}),
	}
	names = append(names, m.otherSystem())
	names = append(names, m.plainFrames()...)
	names = append(names, m.streamEvents()...)
	names = append(names, m.requests("control_request", true), "control_response")
	m.defs["control_response"] = controlResponse()
	return names
}

// qwenLines defines what the program writes in the qwen dialect: own forms of
// some frames, and those of the other dialects' that it shares.
func (m *schemaMaker) qwenLines(out []string) []string {
	var names []string
	for name, frame := range session.QwenFrames() {
		s := m.of(frame, true)
		kind, subtype, _ := strings.Cut(name, ".")
		switch {
		case kind == "stream_event":
			s.Properties["type"] = text(subtype)
			s = object([]string{"event", "session_id", "type", "uuid"}, map[string]*jsonschema.Schema{
				"event": s, "session_id": {Type: "string"}, "uuid": {Type: "string"}, "parent_tool_use_id": {Types: []string{"null", "string"}},
			})
		case name == "system.init":
			s.Properties["subtype"] = text(subtype)
		case name == "system.other":
			s.Properties["subtype"] = other("subtype", []string{"init"}).Properties["subtype"]
		}
		s.Properties["type"] = text(kind)
		m.defs["qwen."+name] = s
		names = append(names, "qwen."+name)
	}
	for _, name := range out {
		shared := strings.HasPrefix(name, "stream_event.") && name != "stream_event.message_start" || strings.HasPrefix(name, "control_")
		if shared {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hostLines defines what hosts write and returns the names.
func (m *schemaMaker) hostLines() []string {
	m.blocks(false)
	user := m.of(streamjson.UserLine{}, false)
	user.Properties["type"], user.Required = text("user"), []string{"message", "type"}
	options := m.of(streamjson.TurnOptions{}, false)
	nullable(options)
	user.Properties["options"] = options
	message := user.Properties["message"]
	message.Type, message.Types, message.Required = "object", nil, []string{"content"}
	m.defs["user_in"] = user
	return []string{"user_in", m.requests("control_request_in", false), "control_response", "control_cancel_request", "keep_alive"}
}

// otherSystem are the system lines without a Go type of their own.
func (m *schemaMaker) otherSystem() string {
	name := m.frame("system.other", &streamjson.System{})
	m.defs[name].Properties["subtype"] = other("subtype", []string{"init", "status", "api_retry", "permission_denied"}).Properties["subtype"]
	return name
}

// blocks defines the content blocks.
func (m *schemaMaker) blocks(strict bool) {
	suffix := ""
	if !strict {
		suffix = "_in"
	}
	var names, kinds []string
	for _, b := range []streamjson.Block{
		streamjson.TextBlock{}, streamjson.ThinkingBlock{}, streamjson.RedactedThinkingBlock{}, streamjson.ToolUseBlock{},
		streamjson.ToolResultBlock{}, streamjson.ImageBlock{}, streamjson.DocumentBlock{},
	} {
		line, _ := m.encoded(&streamjson.Assistant{Message: streamjson.AssistantMessage{Content: streamjson.Blocks{b}}}).(map[string]any)
		message, _ := line["message"].(map[string]any)
		content, _ := message["content"].([]any)
		if len(content) != 1 {
			m.fail(fmt.Errorf("%T has no encoding", b))
			return
		}
		zero, _ := content[0].(map[string]any)
		kind, _ := zero["type"].(string)
		s := m.of(b, strict)
		if strict {
			fit(s, zero)
		} else {
			s.Properties["type"], s.Required = text(kind), []string{"type"}
		}
		name := "block." + kind + suffix
		m.defs[name] = s
		names, kinds = append(names, name), append(kinds, kind)
	}
	all := anyOf(names)
	all.AnyOf = append(all.AnyOf, other("type", kinds))
	m.defs["block"+suffix] = all
}

// streamEvents defines the stream_event lines, one for each event.
func (m *schemaMaker) streamEvents() []string {
	var names []string
	add := func(kind string, msg streamjson.Message, event *jsonschema.Schema) {
		s := object(nil, map[string]*jsonschema.Schema{})
		if event != nil {
			s.Properties["event"] = event
		}
		fit(s, m.encoded(msg))
		name := "stream_event." + kind
		m.defs[name] = s
		names = append(names, name)
	}
	add("message_start", &streamjson.StreamEvent{UUID: " ", Event: streamjson.MessageStart{}}, m.of(streamjson.MessageStart{}, true))
	add("content_block_start", &streamjson.StreamEvent{UUID: " ", Event: streamjson.BlockStart{Block: streamjson.TextBlock{}}},
		object(nil, map[string]*jsonschema.Schema{"content_block": ref("block")}))
	add("content_block_stop", &streamjson.StreamEvent{UUID: " ", Event: streamjson.BlockStop{}}, m.of(streamjson.BlockStop{}, true))
	add("message_delta", &streamjson.StreamEvent{UUID: " ", Event: streamjson.MessageDelta{}},
		object(nil, map[string]*jsonschema.Schema{"usage": m.of(streamjson.DeltaUsage{}, true)}))
	add("message_stop", &streamjson.StreamEvent{UUID: " ", Event: streamjson.MessageStop{}}, nil)
	add("ping", &streamjson.StreamEvent{UUID: " ", Event: streamjson.Ping{}}, nil)
	for kind, name := range map[streamjson.DeltaKind]string{
		streamjson.DeltaText: "text_delta", streamjson.DeltaThinking: "thinking_delta",
		streamjson.DeltaInputJSON: "input_json_delta", streamjson.DeltaSignature: "signature_delta",
	} {
		add(name, &streamjson.StreamDelta{UUID: " ", Kind: kind}, nil)
	}
	for _, name := range names {
		m.defs[name].Properties["uuid"] = &jsonschema.Schema{Type: "string"}
	}
	slices.Sort(names)
	m.defs["stream_event.other"] = otherEvent(names)
	return append(names, "stream_event.other")
}

// otherEvent is an event, or a delta of a block, that has no Go type.
func otherEvent(names []string) *jsonschema.Schema {
	var events, deltas []string
	for _, n := range names {
		kind := strings.TrimPrefix(n, "stream_event.")
		if strings.HasSuffix(kind, "_delta") && kind != "message_delta" {
			deltas = append(deltas, kind)
		} else {
			events = append(events, kind)
		}
	}
	delta := object([]string{"delta", "type"}, map[string]*jsonschema.Schema{"type": text("content_block_delta"), "delta": other("type", deltas)})
	return object([]string{"event", "type"}, map[string]*jsonschema.Schema{
		"type": text("stream_event"), "event": {AnyOf: []*jsonschema.Schema{other("type", append(events, "content_block_delta")), delta}},
	})
}

func controlResponse() *jsonschema.Schema {
	message := object([]string{"message"}, map[string]*jsonschema.Schema{"message": {Type: "string"}})
	response := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		object([]string{"request_id", "subtype"}, map[string]*jsonschema.Schema{"subtype": text(streamjson.ResponseSuccess), "request_id": {Type: "string"}, "response": {}}),
		object([]string{"error", "request_id", "subtype"}, map[string]*jsonschema.Schema{
			"subtype": text(streamjson.ResponseError), "request_id": {Type: "string"}, "error": {AnyOf: []*jsonschema.Schema{{Type: "string"}, message}},
		}),
	}}
	return object([]string{"response", "type"}, map[string]*jsonschema.Schema{"type": text("control_response"), "response": response})
}

// requests defines the control requests of one side and what answers them.
func (m *schemaMaker) requests(name string, fromProgram bool) string {
	var names, subtypes []string
	for _, p := range control.Payloads() {
		if p.FromProgram != fromProgram {
			continue
		}
		key := payloadKey(p)
		request := object(nil, map[string]*jsonschema.Schema{})
		if p.Request != nil {
			request = m.of(p.Request, fromProgram)
		}
		request.Properties["subtype"] = text(p.Subtype)
		if !fromProgram {
			request.Required = slices.Clone(p.Needs)
		}
		request.Required = append(request.Required, "subtype")
		slices.Sort(request.Required)
		m.defs["request."+key] = request
		names, subtypes = append(names, "request."+key), append(subtypes, p.Subtype)
		if p.Response != nil {
			response := m.of(p.Response, !fromProgram)
			if fromProgram {
				response.Required = slices.Sorted(slices.Values(p.AnswerNeeds))
			}
			m.defs["response."+key] = response
		}
	}
	all := anyOf(names)
	if !fromProgram { // an unknown one gets an error, and the session goes on
		all.AnyOf = append(all.AnyOf, other("subtype", slices.Compact(subtypes)))
	}
	one := 1
	m.defs[name] = object([]string{"request", "request_id", "type"}, map[string]*jsonschema.Schema{
		"type": text("control_request"), "request_id": {Type: "string", MinLength: &one}, "request": all,
	})
	return name
}

// payloadKey names a payload's definitions: the subtype, for what the program
// sends with "own" in front, and the dialects if it doesn't look so in all.
func payloadKey(p control.Payload) string {
	parts := []string{p.Subtype}
	if p.FromProgram {
		parts = []string{"own", p.Subtype}
	}
	for _, d := range p.Dialects {
		parts = append(parts, string(d))
	}
	return strings.Join(parts, ".")
}

// permissionUpdate defines what policy.Update is on the wire.
func (m *schemaMaker) permissionUpdate() {
	words := func(list ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: list} }
	rule := object([]string{"toolName"}, map[string]*jsonschema.Schema{"toolName": {Type: "string"}, "ruleContent": {Type: "string"}})
	m.defs["permission_update"] = object([]string{"type"}, map[string]*jsonschema.Schema{
		"type":        words("addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories"),
		"rules":       {Type: "array", Items: rule},
		"behavior":    words("allow", "deny", "ask"),
		"mode":        {Type: "string"},
		"directories": {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		"destination": words("session", "localSettings", "projectSettings", "userSettings", "cliArg"),
	})
}

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// Initialize is what a host's initialize request carries, in one form for all
// dialects. What is nil or empty was not sent.
type Initialize struct {
	SDKServers   []string                   // MCP servers inside the host, in order
	MCPServers   map[string]json.RawMessage // configurations by name
	Agents       json.RawMessage            // definitions, by name or a list
	SystemPrompt *string                    // replaces the default one; "" is an empty one
	AppendPrompt string                     // follows the system prompt
	JSONSchema   json.RawMessage            // an object, of the structured output
	Skills       []string
	Effort       string // one of Efforts
	Title        string
	HookTimeout  time.Duration // for hooks that have none of their own; 0: no limit
	// ForwardSubagentText asks for the text of sub-agents as well as their calls.
	ForwardSubagentText bool
}

// InitRequest is the request to initialize on the wire.
type InitRequest struct {
	Hooks               jsontext.Value `json:"hooks"`
	SDKMCPServers       jsontext.Value `json:"sdkMcpServers"`
	MCPServers          jsontext.Value `json:"mcpServers"`
	Agents              jsontext.Value `json:"agents"`
	SystemPrompt        jsontext.Value `json:"systemPrompt"`
	AppendSystemPrompt  string         `json:"appendSystemPrompt"`
	JSONSchema          jsontext.Value `json:"jsonSchema"`
	Skills              jsontext.Value `json:"skills"`
	Timeout             jsontext.Value `json:"timeout"`
	Effort              jsontext.Value `json:"effort"`
	Title               string         `json:"title"`
	ForwardSubagentText bool           `json:"forwardSubagentText"`
}

// initialized is a request that was read.
type initialized struct {
	Initialize
	hooks     []HookRegistration
	sentHooks bool
	timeouts  timeouts
}

// parseInitialize reads an initialize request. Defaults are the deadlines of
// what isn't sent.
func parseInitialize(raw []byte, d streamjson.Dialect, defaults timeouts) (*initialized, error) {
	var w InitRequest
	if err := decode(raw, &w); err != nil {
		return nil, err
	}
	in := &initialized{sentHooks: !isNull(w.Hooks), timeouts: defaults}
	in.AppendPrompt, in.Title, in.ForwardSubagentText = w.AppendSystemPrompt, w.Title, w.ForwardSubagentText
	if !isNull(w.Agents) {
		in.Agents = json.RawMessage(w.Agents)
	}
	var err error
	for _, step := range []func() error{
		func() error { in.hooks, err = parseHooks(w.Hooks); return err },
		func() error { in.SDKServers, err = sdkServers(w.SDKMCPServers); return err },
		func() error { in.MCPServers, err = configs("mcpServers", w.MCPServers); return err },
		func() error { in.SystemPrompt, err = systemPrompt(w.SystemPrompt); return err },
		func() error { in.JSONSchema, err = jsonSchema(w.JSONSchema); return err },
		func() error { in.Skills, err = names("skills", w.Skills); return err },
		func() error { in.Effort, err = initEffort(w.Effort, d); return err },
		func() error { return in.timeouts.read(w.Timeout, d) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	in.HookTimeout = in.timeouts.hook
	in.takeSDKServers()
	return in, nil
}

// takeSDKServers moves configurations of type sdk to the SDK servers.
func (in *initialized) takeSDKServers() {
	for _, name := range sdkNames(in.MCPServers) {
		delete(in.MCPServers, name)
		if !slices.Contains(in.SDKServers, name) {
			in.SDKServers = append(in.SDKServers, name)
		}
	}
}

// sdkNames lists the configurations of servers inside the host, sorted.
func sdkNames(servers map[string]json.RawMessage) []string {
	var out []string
	for name, config := range servers {
		var kind struct {
			Type string `json:"type"`
		}
		if decode(config, &kind) == nil && kind.Type == "sdk" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// member is a member of an object, in order.
type objectMember struct {
	name  string
	value jsontext.Value
}

// members are the members of an object in the order in which they came.
func members(field string, raw jsontext.Value) ([]objectMember, error) {
	if !isObject(raw) {
		return nil, badField(field, "have %s, want an object", kindName(raw.Kind()))
	}
	var list orderedObject
	if err := decode(raw, &list); err != nil {
		return nil, fmt.Errorf("field %q: %w", field, err)
	}
	return list, nil
}

// orderedObject is an object whose members keep their order.
type orderedObject []objectMember

// UnmarshalJSONFrom implements the interface of the JSON decoder.
func (o *orderedObject) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		*o = append(*o, objectMember{key, value.Clone()})
	}
	_, err := dec.ReadToken()
	return err
}

// names reads a list of names, a single one, or an object by name.
func names(field string, raw jsontext.Value) ([]string, error) {
	var list []string
	switch kind := raw.Kind(); {
	case isNull(raw):
		return nil, nil
	case kind == '{':
		m, err := members(field, raw)
		for _, one := range m {
			list = append(list, one.name)
		}
		return list, err
	case kind == '"':
		raw = jsontext.Value("[" + string(raw) + "]")
	case kind != '[':
		return nil, badField(field, "have %s, want a list of names", kindName(kind))
	}
	if err := decode(raw, &list); err != nil {
		return nil, badField(field, "want a list of names")
	}
	return list, nil
}

// sdkServers reads the names of servers inside the host: a list, or an object by
// name, whose values must not say that they are anything else.
func sdkServers(raw jsontext.Value) ([]string, error) {
	const field = "sdkMcpServers"
	if raw.Kind() != '{' {
		return names(field, raw)
	}
	list, err := members(field, raw)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range list {
		var config struct {
			Type *string `json:"type"`
		}
		if !isNull(m.value) {
			if !isObject(m.value) {
				return nil, badField(field+"."+m.name, "have %s, want an object", kindName(m.value.Kind()))
			}
			if err := decode(m.value, &config); err != nil {
				return nil, fmt.Errorf("field %q: %w", field+"."+m.name, err)
			}
		}
		if config.Type != nil && *config.Type != "sdk" {
			return nil, badField(field+"."+m.name+".type", "is %q: servers inside the host are of type sdk, others belong in mcpServers", *config.Type)
		}
		out = append(out, m.name)
	}
	return out, nil
}

// initEffort reads the effort. What is no text says nothing to the published
// SDKs' peers; elsewhere it is an error.
func initEffort(raw jsontext.Value, d streamjson.Dialect) (string, error) {
	if d == streamjson.Native && !isNull(raw) && raw.Kind() != '"' {
		return "", badField("effort", "have %s, want a text", kindName(raw.Kind()))
	}
	return effortOf(raw)
}

// configs reads an object of objects.
func configs(field string, raw jsontext.Value) (map[string]json.RawMessage, error) {
	if isNull(raw) {
		return nil, nil
	}
	list, err := members(field, raw)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(list))
	for _, m := range list {
		if !isObject(m.value) {
			return nil, badField(field+"."+m.name, "have %s, want an object", kindName(m.value.Kind()))
		}
		out[m.name] = json.RawMessage(m.value)
	}
	return out, nil
}

// dynamicBoundary is a line that hosts may put into a system prompt; it means
// nothing here.
const dynamicBoundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// systemPrompt reads a text or a list of texts; nil: none was sent.
func systemPrompt(raw jsontext.Value) (*string, error) {
	if isNull(raw) {
		return nil, nil
	}
	if k := raw.Kind(); k != '"' && k != '[' {
		return nil, badField("systemPrompt", "have %s, want a text or a list of texts", kindName(k))
	}
	parts, err := names("systemPrompt", raw)
	if err != nil {
		return nil, badField("systemPrompt", "want a text or a list of texts")
	}
	var kept []string
	for _, p := range parts {
		lines := slices.DeleteFunc(strings.Split(p, "\n"), func(line string) bool { return strings.TrimSpace(line) == dynamicBoundary })
		if text := strings.Join(lines, "\n"); text != "" {
			kept = append(kept, text)
		}
	}
	return new(strings.Join(kept, "\n\n")), nil
}

func jsonSchema(raw jsontext.Value) (json.RawMessage, error) {
	switch {
	case isNull(raw):
		return nil, nil
	case !isObject(raw):
		return nil, badField("jsonSchema", "have %s, want an object", kindName(raw.Kind()))
	}
	return json.RawMessage(raw), nil
}

// read takes over the deadlines that were sent, in milliseconds. qwen-code
// ignores one that it doesn't like, elsewhere that is an error; 0 is none.
func (t *timeouts) read(raw jsontext.Value, d streamjson.Dialect) error {
	if isNull(raw) {
		return nil
	}
	list, err := members("timeout", raw)
	if err != nil {
		return err
	}
	for _, m := range list {
		var to *time.Duration
		switch m.name {
		case "canUseTool":
			to = &t.ask
		case "hook":
			to = &t.hook
		case "mcp":
			to = &t.mcp
		default:
			continue
		}
		if err := readTimeout(to, m, d); err != nil {
			return err
		}
	}
	return nil
}

func readTimeout(to *time.Duration, m objectMember, d streamjson.Dialect) error {
	var ms float64
	err := decode(m.value, &ms)
	switch bad := err != nil || ms < 0 || ms > math.MaxInt32; {
	case isNull(m.value):
	case d == streamjson.Qwen && (bad || ms == 0 || ms > float64(qwenAskMost.Milliseconds())):
	case bad:
		return badField("timeout."+m.name, "want milliseconds, 0 for no limit")
	default:
		*to = time.Duration(ms * float64(time.Millisecond))
	}
	return nil
}

// initialize registers what the request carries and describes the session.
func (s *SystemController) initialize(r *request) (any, error) {
	in, err := parseInitialize(r.body, s.d.cfg.Dialect, defaultTimeouts(s.d.cfg))
	var words protocolError
	if s.d.cfg.Dialect == streamjson.Qwen && errors.As(err, &words) {
		return nil, words
	}
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if len(in.hooks) > 0 && s.d.effects.Hooks == nil {
		return nil, fmt.Errorf("initialize: hooks are not supported here")
	}
	undo, err := s.d.hook.register(in.hooks)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	s.d.mcp.Register(in.SDKServers...)
	if err := s.d.effects.Session.Initialize(r.ctx, &in.Initialize); err != nil {
		undo()
		return nil, fmt.Errorf("initialize: %w", err)
	}
	s.d.calls.setTimeouts(in.timeouts)
	s.d.cancelCalls(callHook, ErrReplaced)
	applied := true
	if in.Effort != "" && s.d.effects.Thinking != nil {
		if applied, err = s.d.effects.Thinking.SetEffort(in.Effort); err != nil {
			return nil, fmt.Errorf("initialize: %w", err)
		}
	}
	return s.initPayload(in, applied), nil
}

func (s *SystemController) initPayload(in *initialized, effortApplied bool) any {
	about := s.d.effects.Session.Describe()
	switch s.d.cfg.Dialect {
	case streamjson.Claude:
		return s.claudeInit(in, &about)
	case streamjson.Qwen:
		out := &QwenInitResponse{Subtype: "initialize", SessionID: about.SessionID, Capabilities: s.qwenCapabilities()}
		if in.Effort != "" {
			out.EffortStatus = &SetEffortResponse{Effort: in.Effort, Applied: effortApplied}
		}
		return out
	}
	return s.nativeInit(&about)
}

// InitResponse is the native response to initialize.
type InitResponse struct {
	Subtype         string       `json:"subtype"`
	SessionID       string       `json:"session_id"`
	ProtocolVersion string       `json:"protocol_version"`
	InputFormat     string       `json:"input_format"`
	OutputFormat    string       `json:"output_format"`
	Commands        []string     `json:"commands"`
	OutputStyle     string       `json:"output_style"`
	Capabilities    Capabilities `json:"capabilities"`
	Model           string       `json:"model"`
	PermissionMode  string       `json:"permissionMode"`
	Agents          []string     `json:"agents"`
}

// protocolVersion is the native protocol's.
const protocolVersion = "1.0"

func (s *SystemController) nativeInit(about *Description) *InitResponse {
	out := &InitResponse{
		Subtype: "initialize", SessionID: about.SessionID, ProtocolVersion: protocolVersion,
		InputFormat: orElse(about.InputFormat, "stream-json"), OutputFormat: orElse(about.OutputFormat, "stream-json"),
		Commands: commandNames(s.commands()), OutputStyle: orElse(about.OutputStyle, "stream-json"),
		Capabilities: s.capabilities(about.Tools), Model: about.Model, PermissionMode: modeName(s.d.cfg.Dialect, about.Mode),
	}
	for _, a := range about.Agents {
		out.Agents = append(out.Agents, a.Name)
	}
	return out
}

// Capabilities say what the program can do in this session.
type Capabilities struct {
	Tools             []string `json:"tools"` // outward names
	MCPServers        bool     `json:"mcpServers"`
	Hooks             bool     `json:"hooks"`
	PermissionControl bool     `json:"permissionControl"`
	CanUseTool        bool     `json:"can_handle_can_use_tool"`
	HookCallback      bool     `json:"can_handle_hook_callback"`
	SetPermissionMode bool     `json:"can_set_permission_mode"`
	SetModel          bool     `json:"can_set_model"`
	MCPMessage        bool     `json:"can_handle_mcp_message"`
	SetEffort         bool     `json:"can_set_effort"`
	ContextUsage      bool     `json:"can_get_context_usage"`
	AvailableModels   bool     `json:"can_get_available_models"`
	UsageInfo         bool     `json:"can_get_usage_info"`
	Interrupt         bool     `json:"can_interrupt"`
	CommandHints      bool     `json:"can_give_command_hints"`
	Heartbeat         bool     `json:"heartbeat"`
	Rewind            bool     `json:"can_rewind_files"`
}

func (s *SystemController) capabilities(tools []string) Capabilities {
	d, e := s.d, &s.d.effects
	return Capabilities{
		Tools: tools, MCPServers: e.Servers != nil, Hooks: e.Hooks != nil, PermissionControl: e.Conversation != nil,
		CanUseTool: e.Judge != nil, HookCallback: e.Hooks != nil, SetPermissionMode: e.Conversation != nil, SetModel: e.Conversation != nil,
		MCPMessage: e.Servers != nil, SetEffort: d.supports("set_effort"), ContextUsage: d.supports("get_context_usage"),
		AvailableModels: d.supports("get_available_models"), UsageInfo: d.supports("get_usage_info"), Interrupt: e.Conversation != nil,
		CommandHints: d.supports("command_hints"), Heartbeat: d.supports("heartbeat"), Rewind: d.supports("rewind_files"),
	}
}

// QwenInitResponse is qwen-code's response to initialize.
type QwenInitResponse struct {
	Subtype      string             `json:"subtype"`
	SessionID    string             `json:"session_id"`
	Capabilities QwenCapabilities   `json:"capabilities"`
	EffortStatus *SetEffortResponse `json:"effort_status,omitzero"`
}

// QwenCapabilities are those that qwen-code tells of.
type QwenCapabilities struct {
	CanUseTool        bool `json:"can_handle_can_use_tool"`
	HookCallback      bool `json:"can_handle_hook_callback"`
	SetPermissionMode bool `json:"can_set_permission_mode"`
	SetModel          bool `json:"can_set_model"`
	SetEffort         bool `json:"can_set_effort"`
	ContextUsage      bool `json:"can_get_context_usage"`
	AvailableModels   bool `json:"can_get_available_models"`
	UsageInfo         bool `json:"can_get_usage_info"`
	MCPMessage        bool `json:"can_handle_mcp_message"`
}

func (s *SystemController) qwenCapabilities() QwenCapabilities {
	c := s.capabilities(nil)
	return QwenCapabilities{
		CanUseTool: c.CanUseTool, SetPermissionMode: c.SetPermissionMode, SetModel: c.SetModel, SetEffort: c.SetEffort,
		ContextUsage: c.ContextUsage, AvailableModels: c.AvailableModels, UsageInfo: c.UsageInfo, MCPMessage: c.MCPMessage,
	}
}

// ClaudeInitResponse is Claude's response to initialize.
type ClaudeInitResponse struct {
	Commands     []ClaudeCommand `json:"commands"`
	Agents       []AgentInfo     `json:"agents"`
	OutputStyle  string          `json:"output_style"`
	OutputStyles []string        `json:"available_output_styles"`
	Models       []ClaudeModel   `json:"models"`
	Account      Account         `json:"account"`
	HooksApplied bool            `json:"hooks_applied,omitzero"`
	HookFailure  bool            `json:"hook_on_failure_supported,omitzero"`
	Version      string          `json:"claude_code_version,omitzero"`
}

// ClaudeCommand is one slash command in Claude's form.
type ClaudeCommand struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	Builtin      bool     `json:"builtin,omitzero"`
}

// ClaudeModel is one model in Claude's form.
type ClaudeModel struct {
	Value          string   `json:"value"`
	DisplayName    string   `json:"displayName"`
	Description    string   `json:"description"`
	SupportsEffort bool     `json:"supportsEffort,omitzero"`
	Efforts        []string `json:"supportedEffortLevels,omitempty"`
}

// envelope implements what success looks for.
func (*ClaudeInitResponse) envelope() jsontext.Value {
	return jsontext.Value(`{"pending_permission_requests":[],"pending_user_dialog_requests":[]}`)
}

func (s *SystemController) claudeInit(in *initialized, about *Description) *ClaudeInitResponse {
	out := &ClaudeInitResponse{
		Agents: about.Agents, OutputStyle: orElse(about.OutputStyle, "default"), OutputStyles: about.OutputStyles,
		Account: about.Account, HooksApplied: in.sentHooks, HookFailure: s.d.effects.Hooks != nil, Version: about.Version,
	}
	if out.OutputStyles == nil {
		out.OutputStyles = []string{out.OutputStyle}
	}
	for _, c := range s.commands() {
		out.Commands = append(out.Commands, ClaudeCommand{c.Name, c.Description, c.ArgumentHint, c.Aliases, c.Builtin})
	}
	if s.d.effects.Models == nil {
		return out
	}
	for _, m := range s.d.effects.Models.Models() {
		out.Models = append(out.Models, ClaudeModel{m.ID, orElse(m.Label, m.ID), m.Description, len(m.Efforts) > 0, m.Efforts})
	}
	return out
}

// modeName is the outward name of a permission mode.
func modeName(d streamjson.Dialect, m policy.Mode) string { return policy.ModeName(string(d), m) }

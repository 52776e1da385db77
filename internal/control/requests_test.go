package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

const (
	native = streamjson.Native
	claude = streamjson.Claude
	qwen   = streamjson.Qwen
)

var dialects = []streamjson.Dialect{native, claude, qwen}

// requestCases are each subtype's success and errors, in each dialect; an answer
// for "" holds in those that have none of their own. Beginnings are enough
// where the text ends in "...".
var requestCases = map[string]struct {
	request string
	want    map[streamjson.Dialect]string
}{
	"set_model": {`{"subtype":"set_model","model":"m2"}`, map[streamjson.Dialect]string{
		"": `{"subtype":"set_model","model":"m2"}`, claude: `{}`}},
	"set_model null": {`{"subtype":"set_model","model":null}`, map[streamjson.Dialect]string{
		native: `{"subtype":"set_model","model":"the-default"}`, claude: `{}`, qwen: `error: Invalid model specified for set_model request`}},
	"set_model absent": {`{"subtype":"set_model"}`, map[streamjson.Dialect]string{
		native: `{"subtype":"set_model","model":"the-default"}`, claude: `{}`, qwen: `error: Invalid model specified for set_model request`}},
	"set_model default": {`{"subtype":"set_model","model":"default"}`, map[streamjson.Dialect]string{
		native: `{"subtype":"set_model","model":"the-default"}`, claude: `{}`, qwen: `{"subtype":"set_model","model":""}`}},
	"set_model number": {`{"subtype":"set_model","model":3}`, map[streamjson.Dialect]string{
		"": `error: set_model: field "model": have a number, want a string, or null for the default model`, qwen: `error: Invalid model specified for set_model request`}},
	"set_model empty": {`{"subtype":"set_model","model":""}`, map[streamjson.Dialect]string{
		"": `error: set_model: field "model": is empty...`, qwen: `error: Invalid model specified for set_model request`}},
	"set_model panic": {`{"subtype":"set_model","model":"panic"}`, map[streamjson.Dialect]string{"": `error: internal error in set_model: boom`}},
	"set_permission_mode": {`{"subtype":"set_permission_mode","mode":"acceptEdits"}`, map[streamjson.Dialect]string{
		"": `{"status":"updated","mode":"auto-edit"}`, claude: `{"mode":"acceptEdits"}`}},
	"set_permission_mode bogus": {`{"subtype":"set_permission_mode","mode":"bogus"}`, map[streamjson.Dialect]string{
		native: `error: unknown permission mode "bogus": use one of default, plan, auto-edit, yolo, dont-ask`,
		claude: `error: unknown permission mode "bogus": use one of default, acceptEdits, plan, bypassPermissions, dontAsk`,
		qwen:   `error: Invalid permission mode: bogus. Valid values are: plan, default, auto-edit, auto, yolo`}},
	"set_permission_mode number": {`{"subtype":"set_permission_mode","mode":3}`, map[streamjson.Dialect]string{"": `error: ...`}},
	"set_effort":                 {`{"subtype":"set_effort","effort":"high"}`, map[streamjson.Dialect]string{"": `{"subtype":"set_effort","effort":"high","applied":true,"override":null}`}},
	"set_effort bogus":           {`{"subtype":"set_effort","effort":"zzz"}`, map[streamjson.Dialect]string{"": `error: Invalid effort value. Supported: low, medium, high, xhigh, max`}},
	"set_effort absent":          {`{"subtype":"set_effort"}`, map[streamjson.Dialect]string{"": `error: Invalid effort specified for set_effort request`}},
	"thinking":                   {`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":100}`, map[streamjson.Dialect]string{"": `{"subtype":"set_max_thinking_tokens"}`, claude: `{}`}},
	"thinking negative":          {`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":-1}`, map[streamjson.Dialect]string{"": `error: field "max_thinking_tokens": is -1...`}},
	"thinking text":              {`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":"x"}`, map[streamjson.Dialect]string{"": `error: field "max_thinking_tokens": have a string, want a whole number`}},
	"supported_commands": {`{"subtype":"supported_commands"}`, map[streamjson.Dialect]string{
		"":   `{"subtype":"supported_commands","commands":["clear","model"],"details":[{"name":"clear","description":"","argumentHint":"","headless":false},{"name":"model","description":"sets it","argumentHint":"[name]","headless":true}]}`,
		qwen: `{"subtype":"supported_commands","commands":["clear","model"]}`}},
	"interrupt": {`{"subtype":"interrupt"}`, map[streamjson.Dialect]string{
		native: `{"subtype":"interrupt","still_queued":["u1"]}`, claude: `{"still_queued":["u1"]}`, qwen: `{"subtype":"interrupt"}`}},
	"interrupt queued": {`{"subtype":"interrupt","cancel_queued":true}`, map[streamjson.Dialect]string{
		native: `{"subtype":"interrupt","still_queued":["u1"],"cancelled":["u2"]}`, claude: `{"still_queued":["u1"],"cancelled":["u2"]}`, qwen: `{"subtype":"interrupt"}`}},
	"interrupt malformed": {`{"subtype":"interrupt","cancel_queued":3}`, map[streamjson.Dialect]string{"": `error: field "cancel_queued": have a number, want true or false`}},
	"can_use_tool": {`{"subtype":"can_use_tool","tool_name":"x","input":{}}`, map[streamjson.Dialect]string{
		native: `{"subtype":"can_use_tool","behavior":"allow","decision":"allow","reason":"free"}`,
		claude: `{"behavior":"allow","decision":"allow","reason":"free"}`, qwen: `{"subtype":"can_use_tool","behavior":"allow"}`}},
	"can_use_tool nameless":  {`{"subtype":"can_use_tool"}`, map[streamjson.Dialect]string{"": `error: field "tool_name": is missing`}},
	"can_use_tool bad input": {`{"subtype":"can_use_tool","tool_name":"x","input":[]}`, map[streamjson.Dialect]string{"": `error: field "input": have a list, want an object`}},
	"mcp_server_status": {`{"subtype":"mcp_server_status"}`, map[streamjson.Dialect]string{
		native: `{"subtype":"mcp_server_status","status":{"calc":"connected","z":"connecting"},"servers":[{"name":"calc","status":"connected","type":"sdk","tools":[{"name":"add","annotations":{"readOnly":true}}]},{"name":"z","status":"connecting","type":"stdio"}]}`,
		"":     `{"subtype":"mcp_server_status","status":{"calc":"connected","z":"connecting"}}`}},
	"mcp_status": {`{"subtype":"mcp_status"}`, map[streamjson.Dialect]string{
		"": `{"mcpServers":[{"name":"calc","status":"connected","scope":"sdk","source":"sdk","tools":[{"name":"add","annotations":{"readOnly":true}}]},{"name":"z","status":"pending"}]}`}},
	"mcp_message": {`{"subtype":"mcp_message","server_name":"calc","message":{"id":1,"method":"ping"}}`, map[streamjson.Dialect]string{
		"": `{"error":null,"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}`, qwen: `error: Unknown control request subtype: mcp_message`}},
	"mcp_message notification": {`{"subtype":"mcp_message","server_name":"calc","message":{"method":"n"}}`, map[streamjson.Dialect]string{
		native: `{"error":null,"mcp_response":null}`, claude: `{}`, qwen: `error: Unknown control request subtype: mcp_message`}},
	"mcp_message unknown": {`{"subtype":"mcp_message","server_name":"no","message":{"method":"n"}}`, map[streamjson.Dialect]string{
		"": `error: there is no MCP server "no"`, qwen: `error: Unknown control request subtype: mcp_message`}},
	"mcp_reconnect":          {`{"subtype":"mcp_reconnect","serverName":"z"}`, map[streamjson.Dialect]string{"": `{"subtype":"mcp_reconnect"}`, claude: `{}`}},
	"mcp_reconnect nameless": {`{"subtype":"mcp_reconnect"}`, map[streamjson.Dialect]string{"": `error: field "serverName": is missing`}},
	"mcp_toggle":             {`{"subtype":"mcp_toggle","server_name":"z","enabled":false}`, map[streamjson.Dialect]string{"": `{"subtype":"mcp_toggle"}`, claude: `{}`}},
	"mcp_toggle half":        {`{"subtype":"mcp_toggle","serverName":"z"}`, map[streamjson.Dialect]string{"": `error: field "enabled": is missing`}},
	"mcp_set_servers": {`{"subtype":"mcp_set_servers","servers":{"x":{"type":"sdk"}}}`, map[streamjson.Dialect]string{
		"": `{"subtype":"mcp_set_servers","added":["x"],"removed":[],"errors":{}}`, claude: `{"added":["x"],"removed":[],"errors":{}}`}},
	"mcp_set_servers bad": {`{"subtype":"mcp_set_servers","servers":{"x":3}}`, map[streamjson.Dialect]string{"": `error: field "servers.x": have a number, want an object`}},
	"hook_callback unknown": {`{"subtype":"hook_callback","callback_id":"h"}`, map[streamjson.Dialect]string{
		"": `error: there is no hook callback "h"`, qwen: `error: Unknown control request subtype: hook_callback`}},
	"stop_task":         {`{"subtype":"stop_task","task_id":"t1"}`, map[streamjson.Dialect]string{"": `{"subtype":"stop_task"}`, claude: `{}`}},
	"stop_task unknown": {`{"subtype":"stop_task","task_id":"t2"}`, map[streamjson.Dialect]string{"": `error: there is no task "t2"`}},
	"continue":          {`{"subtype":"continue_last_turn"}`, map[streamjson.Dialect]string{"": `{"subtype":"continue_last_turn","accepted":true,"interruption":"interrupted_turn"}`}},
	"settings":          {`{"subtype":"apply_flag_settings","settings":{"a":null}}`, map[streamjson.Dialect]string{"": `{"subtype":"apply_flag_settings"}`, claude: `{}`}},
	"settings bad":      {`{"subtype":"apply_flag_settings"}`, map[streamjson.Dialect]string{"": `error: field "settings": want an object`}},
	"rewind":            {`{"subtype":"rewind_files","user_message_id":"u"}`, map[streamjson.Dialect]string{"": `{"canRewind":true}`}},
	"hints":             {`{"subtype":"command_hints","prefix":"/","limit":1}`, map[streamjson.Dialect]string{"": `{"subtype":"command_hints","hints":[{"kind":"command","value":"/x","description":""}]}`}},
	"hints bad":         {`{"subtype":"command_hints","prefix":"x"}`, map[streamjson.Dialect]string{"": `error: field "prefix": is "x": it begins with /, @ or ?`}},
	"heartbeat":         {`{"subtype":"heartbeat"}`, map[streamjson.Dialect]string{"": `{"subtype":"heartbeat","uptime_ms":1000,"turn":"idle","last_event_ms":null,"rss_bytes":5}`}},
	"keep_alive":        {`{"subtype":"keep_alive"}`, map[streamjson.Dialect]string{"": `{}`}},
	"models":            {`{"subtype":"get_available_models"}`, map[streamjson.Dialect]string{"": `{"subtype":"get_available_models","models":[{"id":"m1","label":"m1","capabilities":{},"contextWindowSize":100}]}`}},
	"usage": {`{"subtype":"get_usage_info","range":"today"}`, map[streamjson.Dialect]string{
		"": `{"subtype":"get_usage_info","generatedAt":"...`}},
	"usage bad": {`{"subtype":"get_usage_info","range":"century"}`, map[streamjson.Dialect]string{"": `error: field "range": is "century": use one of today, week, month, all`}},
	"context": {`{"subtype":"get_context_usage","show_details":true}`, map[streamjson.Dialect]string{
		"":     `{"subtype":"get_context_usage","modelName":"m1","totalTokens":200,"contextWindowSize":1000,"breakdown":{"systemPrompt":100,"builtinTools":50,"mcpTools":0,"memoryFiles":0,"skills":0,"messages":50,"cachedTokens":0,"freeSpace":700,"autocompactBuffer":100},"builtinTools":[{"name":"read_file","tokens":50}],"mcpTools":[],"memoryFiles":[],"skills":[],"showDetails":true}`,
		claude: `{"categories":[{"name":"System prompt","tokens":100,"color":"promptBorder","kind":"used"},...`}},
	"unknown": {`{"subtype":"no_such_thing"}`, map[streamjson.Dialect]string{
		native: `error: unknown control request subtype "no_such_thing": use one of apply_flag_settings, ...`,
		claude: `error: Unsupported control request subtype: no_such_thing`, qwen: `error: Unknown control request subtype: no_such_thing`}},
	"no subtype": {`{}`, map[streamjson.Dialect]string{"": `error: ...`, qwen: `error: Unknown control request subtype: undefined`}},
}

func TestRequests(t *testing.T) {
	for name, c := range requestCases {
		for _, d := range dialects {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				h, _ := newHost(t, d)
				want, ok := c.want[d]
				if !ok {
					want = c.want[""]
				}
				got := h.ask(c.request)
				if begin, cut := strings.CutSuffix(want, "..."); got != want && !(cut && strings.HasPrefix(got, begin)) {
					t.Errorf("have %s\nwant %s", got, want)
				}
			})
		}
	}
}

// TestFailingEffects: what an effect fails with is the response.
func TestFailingEffects(t *testing.T) {
	for _, request := range []string{
		`{"subtype":"initialize"}`, `{"subtype":"set_model","model":"x"}`, `{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"set_effort","effort":"low"}`,
		`{"subtype":"set_max_thinking_tokens"}`, `{"subtype":"mcp_reconnect","serverName":"z"}`, `{"subtype":"mcp_toggle","serverName":"z","enabled":true}`,
		`{"subtype":"continue_last_turn"}`, `{"subtype":"apply_flag_settings","settings":{}}`, `{"subtype":"rewind_files","user_message_id":"u"}`,
		`{"subtype":"get_usage_info"}`, `{"subtype":"get_context_usage"}`,
	} {
		for _, d := range dialects {
			h, w := newHost(t, d)
			w.fail = errors.New("it is raining")
			if got := h.ask(request); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "it is raining") {
				t.Errorf("%s: %s: %s", d, request, got)
			}
		}
	}
}

// TestNotSupported: without effects each request has an answer, and nothing is
// advertised.
func TestNotSupported(t *testing.T) {
	for _, d := range dialects {
		h, _ := newHost(t, d)
		h.d.Attach(Effects{})
		for _, s := range subtypes {
			got := h.ask(`{"subtype":"` + s + `"}`)
			if s == "keep_alive" {
				continue
			}
			if !strings.HasPrefix(got, "error: ") {
				t.Errorf("%s: %s: %s", d, s, got)
			}
		}
		h.d.Attach(Effects{Session: &world{mode: policy.ModeDefault}})
		if got := h.ask(`{"subtype":"initialize"}`); strings.Contains(got, ":true") {
			t.Errorf("%s advertises: %s", d, got)
		}
	}
}

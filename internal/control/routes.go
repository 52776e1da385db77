package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/streamjson"
)

// lane is how a request is run.
type lane int

const (
	laneNow     lane = iota // by the reader, at once
	laneState               // in order of arrival; what they wait for afterwards keeps no other waiting
	laneFree                // concurrently
	laneOutside             // the same, but they may wait long for the host or a server, and keep no other waiting
)

type route struct {
	lane   lane
	handle func(*request) (any, error)
}

// subtypes are all that requests of hosts may have, sorted.
var subtypes = [...]string{
	"apply_flag_settings", "can_use_tool", "command_hints", "continue_last_turn", "get_available_models",
	"get_context_usage", "get_usage_info", "heartbeat", "hook_callback", "initialize", "interrupt", "keep_alive",
	"mcp_message", "mcp_reconnect", "mcp_server_status", "mcp_set_servers", "mcp_status", "mcp_toggle", "rewind_files",
	"set_effort", "set_max_thinking_tokens", "set_model", "set_permission_mode", "stop_task", "supported_commands",
}

// route finds the handler for a subtype; false: there is none in this dialect.
func (d *Dispatcher) route(subtype string) (route, bool) {
	if d.cfg.Dialect == streamjson.Qwen && (subtype == "hook_callback" || subtype == "mcp_message") {
		return route{}, false // its hosts are told so, and none sends them
	}
	r := d.find(subtype)
	switch {
	case r.handle == nil:
		return r, false
	case !d.supports(subtype):
		r.handle = unsupported
		if r.lane == laneState {
			r.lane = laneFree
		}
	}
	return r, true
}

func (d *Dispatcher) find(subtype string) route {
	switch subtype {
	case "initialize":
		return route{laneState, d.system.initialize}
	case "interrupt":
		return route{laneNow, d.system.interrupt}
	case "keep_alive":
		return route{laneFree, func(*request) (any, error) { return nil, nil }}
	case "set_model":
		return route{laneState, d.system.setModel}
	case "set_effort":
		return route{laneState, d.system.setEffort}
	case "set_max_thinking_tokens":
		return route{laneState, d.system.setThinking}
	case "apply_flag_settings":
		return route{laneState, d.system.applySettings}
	case "continue_last_turn":
		return route{laneState, d.system.continueLast}
	case "stop_task":
		return route{laneState, d.system.stopTask}
	case "rewind_files":
		return route{laneState, d.system.rewind}
	case "supported_commands":
		return route{laneFree, d.system.supportedCommands}
	case "command_hints":
		return route{laneFree, d.system.commandHints}
	case "heartbeat":
		return route{laneFree, d.system.heartbeat}
	case "get_context_usage":
		return route{laneFree, d.system.contextUsage}
	case "get_usage_info":
		return route{laneFree, d.system.usageInfo}
	case "get_available_models":
		return route{laneFree, d.system.availableModels}
	}
	return d.findOther(subtype)
}

// findOther finds what isn't the SystemController's.
func (d *Dispatcher) findOther(subtype string) route {
	switch subtype {
	case "set_permission_mode":
		return route{laneState, d.permission.setMode}
	case "can_use_tool":
		return route{laneFree, d.permission.judge}
	case "mcp_set_servers":
		return route{laneState, d.mcp.setServers}
	case "mcp_reconnect":
		return route{laneState, d.mcp.reconnect}
	case "mcp_toggle":
		return route{laneState, d.mcp.toggle}
	case "mcp_server_status":
		return route{laneFree, d.mcp.serverStatus}
	case "mcp_status":
		return route{laneFree, d.mcp.status}
	case "mcp_message":
		return route{laneOutside, d.mcp.message}
	case "hook_callback":
		return route{laneOutside, d.hook.callback}
	}
	return route{}
}

// supports reports whether the program has what a subtype acts on.
func (d *Dispatcher) supports(subtype string) bool {
	e := &d.effects
	switch subtype {
	case "initialize":
		return e.Session != nil
	case "interrupt", "set_model", "set_permission_mode":
		return e.Conversation != nil
	case "set_effort", "set_max_thinking_tokens":
		return e.Thinking != nil
	case "apply_flag_settings":
		return e.Settings != nil
	case "continue_last_turn":
		return e.Continuation != nil
	case "stop_task":
		return e.Tasks != nil
	case "rewind_files":
		return e.Checkpoints != nil
	case "supported_commands":
		return e.Commands != nil
	case "command_hints":
		return e.Hints != nil
	case "heartbeat":
		return e.Health != nil
	case "get_context_usage", "get_usage_info":
		return e.Usage != nil
	case "get_available_models":
		return e.Models != nil
	case "can_use_tool":
		return e.Judge != nil
	case "mcp_server_status", "mcp_status", "mcp_message":
		return e.Servers != nil
	case "mcp_set_servers", "mcp_reconnect", "mcp_toggle":
		return e.ServerAdmin != nil
	}
	return slices.Contains(subtypes[:], subtype)
}

func unsupported(r *request) (any, error) {
	if r.subtype == "rewind_files" {
		return nil, fmt.Errorf("rewind_files is not supported: no file checkpoints are kept, so files can't be brought back")
	}
	return nil, fmt.Errorf("control request %q is not supported here", r.subtype)
}

// unknownText says that there is no such subtype, and which there are.
func (d *Dispatcher) unknownText(subtype string) string {
	switch d.cfg.Dialect {
	case streamjson.Qwen:
		return "Unknown control request subtype: " + subtype
	case streamjson.Claude:
		return "Unsupported control request subtype: " + subtype
	}
	var known []string
	for _, s := range subtypes {
		if d.supports(s) {
			known = append(known, s)
		}
	}
	return fmt.Sprintf("unknown control request subtype %q: use one of %s", subtype, strings.Join(known, ", "))
}

// malformedText says what is wrong with a control request.
func (d *Dispatcher) malformedText(bad *streamjson.LineError) string {
	if d.cfg.Dialect == streamjson.Qwen && strings.Contains(bad.Msg, `"subtype"`) {
		return "Unknown control request subtype: undefined"
	}
	return bad.Error()
}

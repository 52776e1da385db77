// Package testkit is what tests and benchmarks use to look at the program from
// outside: a checker of frames, a comparer of transcripts, and a driver that
// spawns it. Only tests and bench import it.
package testkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// required lists the keys that a frame must have, by type or type/subtype, from
// the "Python-required" and "Typed-required" columns of
// wire/claude-agent-sdk.md §2.2. A trailing ? allows null.
var required = map[string][]string{
	"system/init": {
		"subtype", "cwd", "session_id", "tools", "mcp_servers", "model", "permissionMode", "slash_commands", "output_style",
		"skills", "plugins", "apiKeySource", "claude_code_version", "uuid",
	},
	"assistant":     {"message", "parent_tool_use_id?", "uuid", "session_id", "message.content", "message.model", "message.id"},
	"user":          {"message", "parent_tool_use_id?", "message.content"},
	"stream_event":  {"event", "uuid", "session_id", "parent_tool_use_id?", "event.type"},
	"system/status": {"subtype", "status?", "session_id", "uuid"},
	"system/api_retry": {
		"attempt", "max_retries", "retry_delay_ms", "error_status?", "error", "uuid", "session_id",
	},
	"system/permission_denied": {"tool_name", "tool_use_id", "message", "uuid", "session_id"},
	"result": {
		"subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id", "stop_reason?", "total_cost_usd",
		"usage", "modelUsage", "permission_denials", "uuid", "terminal_reason",
		"usage.input_tokens", "usage.output_tokens", "usage.cache_creation_input_tokens", "usage.cache_read_input_tokens",
		"usage.server_tool_use.web_search_requests", "usage.service_tier", "usage.cache_creation.ephemeral_5m_input_tokens",
	},
	"control_response":       {"response", "response.subtype", "response.request_id"},
	"control_request":        {"request_id", "request", "request.subtype"},
	"control_cancel_request": {"request_id"},
	"keep_alive":             {},
	"tool_progress":          {"tool_use_id", "tool_name", "parent_tool_use_id?", "elapsed_time_seconds"},
}

// blockKeys lists the keys of content blocks by type (§2.3).
var blockKeys = map[string][]string{
	"text": {"text"}, "thinking": {"thinking", "signature"}, "redacted_thinking": {"data"},
	"tool_use": {"id", "name", "input"}, "tool_result": {"tool_use_id"}, "image": {"source"}, "document": {"source"},
}

// Frame is a line of JSON that was understood.
type Frame map[string]any

// Parse reads a line as a frame and checks that it has what its type requires.
// Types that are not in the tables are an error: nothing unknown is emitted.
func Parse(line []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(line, &f); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w: %.200s", err, line)
	}
	return f, f.check()
}

// Kind is the type, with the subtype for system frames.
func (f Frame) Kind() string {
	kind, _ := f["type"].(string)
	if kind == "system" {
		sub, _ := f["subtype"].(string)
		return "system/" + sub
	}
	return kind
}

// Get returns the value at a path of keys joined by dots, and whether it is
// there.
func (f Frame) Get(path string) (any, bool) {
	var v any = map[string]any(f)
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// String returns the string at a path, "" if there is none.
func (f Frame) String(path string) string {
	v, _ := f.Get(path)
	s, _ := v.(string)
	return s
}

func (f Frame) check() error {
	kind := f.Kind()
	keys, known := required[kind]
	if !known && strings.HasPrefix(kind, "system/") {
		keys, known = []string{"uuid", "session_id"}, true
	}
	if !known {
		return fmt.Errorf("a frame of unknown type %q", kind)
	}
	for _, key := range keys {
		path, nullable := strings.CutSuffix(key, "?")
		v, ok := f.Get(path)
		if !ok || (v == nil && !nullable) {
			return fmt.Errorf("a %s frame without %s", kind, path)
		}
	}
	return f.checkMore(kind)
}

func (f Frame) checkMore(kind string) error {
	switch kind {
	case "assistant", "user":
		return f.checkContent(kind)
	case "result":
		return f.checkResult()
	case "system/init":
		return f.checkLists()
	}
	return nil
}

func (f Frame) checkLists() error {
	for _, key := range []string{"tools", "mcp_servers", "slash_commands", "skills", "plugins"} {
		if _, ok := f[key].([]any); !ok {
			return fmt.Errorf("system/init: %s is no list", key)
		}
	}
	return nil
}

func (f Frame) checkResult() error {
	sub := f.String("subtype")
	known := []string{"success", "error_during_execution", "error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"}
	if !slices.Contains(known, sub) {
		return fmt.Errorf("a result of unknown subtype %q", sub)
	}
	if sub == "success" {
		if _, ok := f["result"].(string); !ok {
			return fmt.Errorf("a success result without result")
		}
		return nil
	}
	if _, ok := f["errors"].([]any); !ok {
		return fmt.Errorf("a %s result without a list of errors", sub)
	}
	return nil
}

func (f Frame) checkContent(kind string) error {
	content, _ := f.Get("message.content")
	list, ok := content.([]any)
	if !ok {
		if _, isText := content.(string); isText && kind == "user" {
			return nil
		}
		return fmt.Errorf("%s: message.content is a %T", kind, content)
	}
	for i, item := range list {
		block, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: content block %d is a %T", kind, i, item)
		}
		name, _ := block["type"].(string)
		keys, known := blockKeys[name]
		if !known {
			return fmt.Errorf("%s: content block %d has unknown type %q", kind, i, name)
		}
		for _, key := range keys {
			if _, ok := block[key]; !ok {
				return fmt.Errorf("%s: content block %d of type %s lacks %s", kind, i, name, key)
			}
		}
	}
	return nil
}

package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// qwenVersion is the version of the reference program whose frames ours follow.
const qwenVersion = "0.24.4"

// The frames of the qwen dialect, with their fields in its order.
type (
	qwenInit struct {
		Type      string       `json:"type"`
		Subtype   string       `json:"subtype"`
		UUID      string       `json:"uuid"` // the session's id
		SessionID string       `json:"session_id"`
		Cwd       string       `json:"cwd"`
		Tools     []string     `json:"tools"`
		Servers   []qwenServer `json:"mcp_servers"`
		Model     string       `json:"model"`
		Mode      string       `json:"permission_mode"`
		Commands  []string     `json:"slash_commands"`
		Version   string       `json:"qwen_code_version"`
		Agents    []string     `json:"agents"`
	}
	qwenServer struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	qwenSystem struct {
		Type      string  `json:"type"`
		Subtype   string  `json:"subtype"`
		UUID      string  `json:"uuid"`
		SessionID string  `json:"session_id"`
		Parent    *string `json:"parent_tool_use_id"`
		Data      any     `json:"data"`
	}
	qwenRetry struct {
		Reason     string `json:"reason"`
		Attempt    int    `json:"attempt"`
		MaxRetries int    `json:"maxRetries"`
		DelayMS    int64  `json:"delayMs"`
		Discarded  int    `json:"discardedToolCalls"`
		Preserve   bool   `json:"preserveText"`
	}
	qwenAssistant struct {
		Type      string      `json:"type"`
		UUID      string      `json:"uuid"`
		SessionID string      `json:"session_id"`
		Parent    *string     `json:"parent_tool_use_id"`
		Message   qwenMessage `json:"message"`
	}
	qwenMessage struct {
		ID      string    `json:"id"` // the frame's uuid
		Type    string    `json:"type"`
		Role    string    `json:"role"`
		Model   string    `json:"model"`
		Content []any     `json:"content"`
		Stop    *string   `json:"stop_reason"` // tool_use or null
		Usage   qwenUsage `json:"usage"`
	}
	qwenUsage struct {
		Input     int  `json:"input_tokens"` // what was read from a cache included
		Output    int  `json:"output_tokens"`
		CacheRead *int `json:"cache_read_input_tokens,omitempty"`
		Total     int  `json:"total_tokens,omitempty"`
	}
	qwenText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	qwenThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	qwenToolUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	qwenUser struct {
		Type      string          `json:"type"`
		UUID      string          `json:"uuid"`
		SessionID string          `json:"session_id"`
		Parent    *string         `json:"parent_tool_use_id"`
		Message   qwenUserMessage `json:"message"`
	}
	qwenUserMessage struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	qwenToolResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		IsError   bool   `json:"is_error"`
		Content   string `json:"content"`
	}
	qwenMessageStart struct {
		Type    string           `json:"type"`
		Message qwenStartMessage `json:"message"`
	}
	qwenStartMessage struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		Model   string `json:"model"`
		Content []any  `json:"content"`
	}
	qwenResult struct {
		Type       string       `json:"type"`
		Subtype    string       `json:"subtype"`
		UUID       string       `json:"uuid"`
		SessionID  string       `json:"session_id"`
		IsError    bool         `json:"is_error"`
		DurationMS int64        `json:"duration_ms"`
		APIMS      int64        `json:"duration_api_ms"`
		Turns      int          `json:"num_turns"`
		Result     *string      `json:"result,omitempty"`
		Usage      qwenUsage    `json:"usage"`
		Denials    []qwenDenial `json:"permission_denials"`
		Error      *qwenProblem `json:"error,omitempty"`

		Structured json.RawMessage `json:"structured_result,omitempty"`
	}
	qwenFallback struct {
		From   string `json:"fromModel"`
		To     string `json:"toModel"`
		Status int    `json:"statusCode"`
		Index  int    `json:"fallbackIndex"`
	}
	qwenUnkept struct {
		SessionID string `json:"session_id"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
	}
	qwenDenial struct {
		ToolName  string          `json:"tool_name"`
		ToolUseID string          `json:"tool_use_id"`
		Input     json.RawMessage `json:"tool_input"`
	}
	qwenProblem struct {
		Message string `json:"message"`
	}
)

// encode is the JSON of a frame, without the escapes for HTML.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // raw values are checked by object
		panic("session: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// object returns a JSON object as it is, and {} for anything else.
func object(raw json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	return json.RawMessage("{}")
}

// parent is the call that started a sub-agent, null for the main conversation.
func parent(from agent.Origin) *string {
	if from.ParentToolUseID == "" {
		return nil
	}
	return &from.ParentToolUseID
}

// qwenCount converts usage; nil is none.
func qwenCount(u *model.Usage) qwenUsage {
	if u == nil {
		return qwenUsage{}
	}
	in := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	out := qwenUsage{Input: in, Output: u.OutputTokens, Total: in + u.OutputTokens}
	if u.CacheReadTokens > 0 {
		out.CacheRead = &u.CacheReadTokens
	}
	return out
}

func kindOf(b model.Block) string {
	switch b.(type) {
	case model.Text:
		return "text"
	case model.Thinking:
		return "thinking"
	}
	return "tool_use"
}

// joinTexts joins the texts among blocks, and names what is none.
func joinTexts(blocks []model.Block) string {
	var parts []string
	for _, b := range blocks {
		switch b := b.(type) {
		case model.Text:
			parts = append(parts, b.Text)
		case model.Image:
			parts = append(parts, "[image "+b.MediaType+b.URL+"]")
		case model.Document:
			parts = append(parts, "[document "+b.MediaType+"]")
		}
	}
	return strings.Join(parts, "\n")
}

// qwenText64 is the text of a tool result as this dialect shows it: the output
// of a command without what the model is told about it, else what the model
// gets; at most maxResultText.
func qwenText64(e *agent.ToolEnded) string {
	text := joinTexts(e.Result.Blocks)
	if !e.Result.IsError && policy.CanonicalTool(e.Result.Name) == "run_shell_command" {
		var shown struct {
			Stdout string `json:"stdout"`
		}
		if json.Unmarshal(e.Display, &shown) == nil && strings.TrimSpace(shown.Stdout) != "" {
			text = strings.TrimSuffix(shown.Stdout, "\n")
		}
	}
	return projected(text)
}

// maxResultText is the most bytes that the text of a tool result takes as JSON.
const maxResultText = 65536

const resultCut = "\n[... truncated for Headless transport ...]\n"

// projected returns s, or its beginning and end if it is too long.
func projected(s string) string {
	if len(s) <= maxResultText/6-2 || jsonLen(s) <= maxResultText {
		return s
	}
	room := (maxResultText - jsonLen(resultCut)) / 2
	head, used := 0, 0
	for head < len(s) {
		_, size := utf8.DecodeRuneInString(s[head:])
		if used += jsonLen(s[head:head+size]) - 2; used > room {
			break
		}
		head += size
	}
	tail, used := len(s), 0
	for tail > head {
		_, size := utf8.DecodeLastRuneInString(s[:tail])
		if used += jsonLen(s[tail-size:tail]) - 2; used > room {
			break
		}
		tail -= size
	}
	return s[:head] + resultCut + s[tail:]
}

// jsonLen is the length of s as a JSON string, quotes included.
func jsonLen(s string) int { return len(streamjson.AppendString(nil, s)) }

package openai

import (
	"encoding/json"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// chunk is one event of the stream, or a whole answer that was not streamed.
// Only what is read is declared; what servers disagree on is kept raw.
type chunk struct {
	ID      flexString      `json:"id"`
	Model   flexString      `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int        `json:"index"`
	Delta        *part      `json:"delta"`
	Message      *part      `json:"message"`
	FinishReason flexString `json:"finish_reason"`
}

type part struct {
	Content          json.RawMessage `json:"content"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	Refusal          flexString      `json:"refusal"`
	ToolCalls        []fragment      `json:"tool_calls"`
	FunctionCall     *function       `json:"function_call"`
}

// fragment is a piece of a tool call.
type fragment struct {
	Index    *int       `json:"index"`
	ID       flexString `json:"id"`
	Function function   `json:"function"`
}

type function struct {
	Name      flexString      `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// flexString is a string that may come as null, or as a number or another
// value, which is then kept as it is written.
type flexString string

// UnmarshalJSON implements json.Unmarshaler.
func (f *flexString) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*f = ""
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*f = flexString(s)
	default:
		*f = flexString(b)
	}
	return nil
}

type usage struct {
	Prompt        float64        `json:"prompt_tokens"`
	Completion    float64        `json:"completion_tokens"`
	CacheHit      float64        `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached        float64        `json:"cached_tokens"`           // Moonshot
	PromptDetails *promptDetails `json:"prompt_tokens_details"`
	OutputDetails *outputDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached float64 `json:"cached_tokens"`
	Write  float64 `json:"cache_write_tokens"` // OpenRouter
}

type outputDetails struct {
	Reasoning float64 `json:"reasoning_tokens"`
}

// plain is a JSON value as text: a string's value, the texts of a list of
// content parts, "" for null.
func plain(raw json.RawMessage) (text, thinking string) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", ""
	}
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &text) // it is valid: it was decoded before
		return text, ""
	case '[':
		return plainParts(raw)
	}
	return "", ""
}

func plainParts(raw json.RawMessage) (text, thinking string) {
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	var t, th strings.Builder
	for _, p := range parts {
		t.WriteString(p.Text)
		inner, _ := plain(p.Thinking)
		th.WriteString(inner)
	}
	return t.String(), th.String()
}

// convert returns the server's counts in our terms: InputTokens excludes cached tokens, and
// OutputTokens includes reasoning also where the server counts it apart.
func (u *usage) convert() model.Usage {
	var cached, write, reasoning float64
	if d := u.PromptDetails; d != nil {
		cached, write = d.Cached, d.Write
	}
	if d := u.OutputDetails; d != nil {
		reasoning = d.Reasoning
	}
	cached = max(cached, u.CacheHit, u.Cached)
	out := u.Completion
	if reasoning > out {
		out += reasoning
	}
	return model.Usage{
		InputTokens:      count(u.Prompt - cached - write),
		OutputTokens:     count(out),
		CacheReadTokens:  count(cached),
		CacheWriteTokens: count(write),
		ThinkingTokens:   count(reasoning),
	}
}

// count is n as a number of tokens: never negative, and bounded.
func count(n float64) int { return int(max(0, min(n, 1e12))) }

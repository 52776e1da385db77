package openai

import "strings"

// markers are the tokens by which model families begin a tool call. They mean
// nothing by themselves: a call of one of the request's tools must follow.
var markers = [...]string{
	"<tool_call>", "<tool_calls>", "<toolcall>", "<tool_use>", "<tools>", // Hermes, Qwen, GLM and others
	"<function_call>", "<function_calls>", "<functioncall>", "<|tool_call|>", "<|tool_calls|>", // Granite, Phi
	"<|python_tag|>",                                // Llama 3
	"[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]", // Mistral, LM Studio
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", // DeepSeek V3, R1
	"<｜DSML｜function_calls>",                              // DeepSeek V3.2
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>", // Kimi
	"<|START_ACTION|>", "<|action_start|>", "<|plugin|>", // Command R, InternLM
	"<start_function_call>", "<minimax:tool_call>", "functools", // Gemma, MiniMax, Phi 4 mini
	"<|start|>", "<|channel|>", // gpt-oss
}

// closers are the tokens that may follow a call and are dropped there.
var closers = [...]string{
	"</tool_call>", "</tool_calls>", "</toolcall>", "</tool_use>", "</tools>",
	"</function_call>", "</function_calls>", "</functioncall>", "<|/tool_call|>", "<|/tool_calls|>",
	"</function>", "</invoke>", "</minimax:tool_call>", "</｜DSML｜invoke>", "</｜DSML｜function_calls>",
	"[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]",
	"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>",
	"<|tool_call_end|>", "<|tool_calls_section_end|>", "<|END_ACTION|>", "<|action_end|>",
	"<end_function_call>", "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|end|>", "<|call|>", "</s>",
}

// tokenAt returns the longest of tokens at the beginning of s, and whether s is
// the beginning of one of them.
func tokenAt(s string, tokens []string) (token string, partial bool) {
	if s == "" {
		return "", false
	}
	for _, t := range tokens {
		switch {
		case t[0] != s[0]:
		case len(t) > len(token) && strings.HasPrefix(s, t):
			token = t
		case len(t) > len(s) && strings.HasPrefix(t, s):
			partial = true
		}
	}
	return token, partial
}

// noiseAt is the length of the marker or closer at the beginning of s, or 0.
func noiseAt(s string) int {
	a, _ := tokenAt(s, markers[:])
	b, _ := tokenAt(s, closers[:])
	return max(len(a), len(b))
}

// cursor walks over held text. Its parsers return fitMore when they come to the
// end before they can tell, and never at eof.
type cursor struct {
	s     string
	i     int
	eof   bool // s is all there will be
	cut   bool // it was cut off at the output limit: complete nothing
	tools *toolset
}

func (c *cursor) rest() string { return c.s[c.i:] }
func (c *cursor) atEnd() bool  { return c.i == len(c.s) }

// more is the result of coming to the end too early.
func (c *cursor) more() fit {
	if c.eof {
		return fitNo
	}
	return fitMore
}

func (c *cursor) space() {
	for c.i < len(c.s) && isSpace(c.s[c.i]) {
		c.i++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// take takes word if it is next; fitMore if only its beginning is there.
func (c *cursor) take(word string) fit {
	rest := c.rest()
	if strings.HasPrefix(rest, word) {
		c.i += len(word)
		return fitYes
	}
	if strings.HasPrefix(word, rest) {
		return c.more()
	}
	return fitNo
}

// takeAny takes any of words, as often as they come, with white space between.
func (c *cursor) takeAny(words []string) fit {
	for {
		c.space()
		if c.atEnd() {
			return c.more()
		}
		w, partial := tokenAt(c.rest(), words)
		if partial && !c.eof {
			return fitMore
		}
		if w == "" {
			return fitYes
		}
		c.i += len(w)
	}
}

// isSeparator reports whether b may stand between two calls.
func isSeparator(b byte) bool { return isSpace(b) || b == ',' || b == ';' }

// noise takes markers, closers, separators and surplus brackets; marked says that a
// marker was among them.
func (c *cursor) noise() (marked bool, f fit) {
	for {
		for c.i < len(c.s) && (isSeparator(c.s[c.i]) || c.s[c.i] == '}' || c.s[c.i] == ']') {
			c.i++
		}
		if c.atEnd() {
			return marked, c.more()
		}
		m, p1 := tokenAt(c.rest(), markers[:])
		e, p2 := tokenAt(c.rest(), closers[:])
		switch {
		case (p1 || p2) && !c.eof:
			return marked, fitMore
		case m == "" && e == "":
			return marked, fitYes
		case len(m) > len(e):
			marked = true
		}
		c.i += max(len(m), len(e))
	}
}

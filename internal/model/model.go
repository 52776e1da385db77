// Package model is the provider-neutral vocabulary between the conversation
// and the model APIs: messages, requests, streamed deltas, usage and typed
// errors, and the decorators (retry, stall watch) that work on any Provider.
// It knows no vendor: vendor types stop in the adapter packages below it
// (gemini, openai, anthropic, scripted), which import it and never each other.
package model

import (
	"context"
	"encoding/json"
	"strings"
)

// Provider is one model API. Its one method sends one request and streams one
// answer.
//
// Stream calls emit, serially and from the calling goroutine, for each piece of
// the answer, in order, and returns nil only after it has emitted exactly one
// DeltaFinish, as the last delta. Any other end is an error, normally an
// [*Error] whose Kind says what may be done about it; ctx's cause when ctx
// ended. emit must not be called after Stream returned. req is not modified and
// not kept. Stream may be called from several goroutines at once.
type Provider interface {
	Stream(ctx context.Context, req *Request, emit func(Delta)) error
}

// Role says who wrote a message.
type Role string

// Roles. Tool results travel in user messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of the history. It is immutable once it is in a Request:
// adapters may key caches of their encodings on its address.
type Message struct {
	ID     string // uuid on the wire and in the transcript; may be empty
	Role   Role
	Blocks []Block
}

// Block is one piece of a message: Text, Thinking, ToolUse, ToolResult, Image
// or Document.
type Block interface{ isBlock() }

// Signature is an opaque token that a provider gives with a block and demands
// back byte for byte (Gemini thought signatures, Anthropic thinking
// signatures). It is sent back only to the provider family named, so it
// survives a provider swap and back. The zero value is "none".
type Signature struct {
	Provider string `json:"provider,omitempty"` // "gemini", "anthropic", ...
	Value    string `json:"value,omitempty"`    // as it came on the wire (base64 stays base64)
	// From is the offset in the block's text, in bytes, at which the signed
	// piece begins: Gemini signs pieces of a text and demands them back unmerged.
	From int `json:"from,omitempty"`
}

// Text is plain text, by the user or the model.
type Text struct {
	Text string
	Sig  Signature
}

// Thinking is the model's reasoning. Redacted holds the provider's opaque data
// for redacted thinking; Text is then empty.
type Thinking struct {
	Text     string
	Sig      Signature
	Redacted string
}

// ToolUse is the model's wish to call a tool. Input is one JSON object, always
// valid ("{}" at least). ID is unique within a conversation: adapters that get
// none, or one already used, make one.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage
	Sig   Signature
	// Invalid, when not empty, says why the model's arguments could not be
	// read as a JSON object; Input is then "{}" and the call must be answered
	// by an error result that quotes it.
	Invalid string
}

// ToolResult answers the ToolUse of the same ID. Blocks are Text, Image and
// Document only.
type ToolResult struct {
	ToolUseID string
	Name      string // name of the tool; Gemini needs it
	Blocks    []Block
	IsError   bool
}

// Image is a picture: Data with MediaType ("image/png"), or URL.
type Image struct {
	MediaType string
	Data      []byte
	URL       string
}

// Document is a file given to the model as it is ("application/pdf").
type Document struct {
	MediaType string
	Name      string
	Data      []byte
}

func (Text) isBlock()       {}
func (Thinking) isBlock()   {}
func (ToolUse) isBlock()    {}
func (ToolResult) isBlock() {}
func (Image) isBlock()      {}
func (Document) isBlock()   {}

// JoinText joins the texts among blocks, with nothing between them.
func JoinText(blocks []Block) string {
	var sb strings.Builder
	for _, b := range blocks {
		if t, ok := b.(Text); ok {
			sb.WriteString(t.Text)
		}
	}
	return sb.String()
}

// ToolSpec declares a tool to the model. Schema is a JSON Schema object.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one call of a model. The zero values of the options mean the
// provider's default.
type Request struct {
	Model    string // the provider's own name of it, without a provider prefix
	System   string
	Messages []*Message
	Tools    []ToolSpec

	MaxOutputTokens int      // 0: from the catalogue, else the provider's default
	Temperature     *float64 // nil: default
	TopP            *float64 // nil: default; left out where a model takes only one of the two
	ThinkingBudget  int      // tokens; 0 default, -1 off
	Effort          Effort   // how hard to think; a ThinkingBudget counts before it where tokens are counted
	SessionID       string   // for cache affinity and logs; may be empty
}

// DeltaKind says which fields of a Delta hold.
type DeltaKind uint8

// Kinds of deltas.
const (
	// DeltaText appends Text to the text block Index, opening it if new.
	DeltaText DeltaKind = iota + 1
	// DeltaThinking appends Text to the thinking block Index, opening it if new.
	DeltaThinking
	// DeltaRedacted is a whole redacted-thinking block: Text is its data.
	DeltaRedacted
	// DeltaSignature sets Sig on block Index, which is open; it may come with
	// no text before it only for a text block (Gemini), which it then opens.
	DeltaSignature
	// DeltaToolStart opens a tool_use block: ID, Name, maybe Sig.
	DeltaToolStart
	// DeltaToolInput appends Text to the JSON input of block Index.
	DeltaToolInput
	// DeltaBlockEnd closes block Index. Invalid is set on a tool_use whose
	// input is not a JSON object. A new block, and DeltaFinish, close the open
	// one implicitly.
	DeltaBlockEnd
	// DeltaUsage replaces the usage so far (cumulative for this request).
	DeltaUsage
	// DeltaPing carries nothing: the provider is alive (keep-alive comment).
	DeltaPing
	// DeltaFinish ends the answer: Stop, and Usage if known.
	DeltaFinish
	// DeltaRetry is made by [Retry], never by adapters: an attempt failed and
	// another one follows after Retry.Delay.
	DeltaRetry
	// DeltaRestart is made by [Retry]: what was emitted for this request so
	// far is void, the blocks begin anew at index 0.
	DeltaRestart
)

// Delta is one piece of a streamed answer. It is passed by value and holds no
// reference to the adapter's buffers. Index counts blocks within the answer
// from 0 without gaps; at most one block is open at a time.
type Delta struct {
	Kind    DeltaKind
	Index   int
	Text    string
	ID      string // DeltaToolStart: call id. DeltaFinish: the provider's response id, if any
	Name    string // DeltaToolStart: tool. DeltaFinish: the model that answered, if it says so
	Sig     Signature
	Invalid string
	Usage   *Usage
	Stop    StopReason
	Retry   *RetryInfo
}

// StopReason says why the model stopped, in the Messages API's words.
type StopReason string

// Stop reasons. Adapters map theirs onto these.
const (
	StopEndTurn   StopReason = "end_turn"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopSequence  StopReason = "stop_sequence"
	StopRefusal   StopReason = "refusal"
	StopPause     StopReason = "pause_turn"
)

// Usage counts tokens of one request. InputTokens excludes cache reads and
// writes (the Messages API's way); OutputTokens includes ThinkingTokens.
type Usage struct {
	InputTokens      int
	OutputTokens     int
	CacheReadTokens  int
	CacheWriteTokens int
	ThinkingTokens   int
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ThinkingTokens += v.ThinkingTokens
	return u
}

// Total returns all tokens that passed, cached ones included.
func (u Usage) Total() int {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

package streamjson

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// StreamEvent is a line of type "stream_event", for every event but the common
// deltas, which are [StreamDelta]. An empty UUID is filled in by Append, a
// fresh one each time.
type StreamEvent struct {
	Event           Event
	ParentToolUseID string
	SessionID       string
	UUID            string
	Extra           jsontext.Value
}

// Event is one streaming event of the Messages API: [MessageStart],
// [BlockStart], [BlockStop], [MessageDelta], [MessageStop], [Ping] or
// [OtherEvent]; values, not pointers.
type Event interface{ isEvent() }

// MessageStart opens a message; its content is empty.
type MessageStart struct {
	Message AssistantMessage `json:"message"`
}

// BlockStart opens content block Index with an empty block of its type.
type BlockStart struct {
	Index int
	Block Block
}

// BlockStop closes content block Index.
type BlockStop struct {
	Index int `json:"index"`
}

// MessageDelta says why the message stopped and what it used.
type MessageDelta struct {
	StopReason   string
	StopSequence string
	Usage        DeltaUsage
}

// DeltaUsage is the usage of a MessageDelta. All but OutputTokens is left out
// when zero.
type DeltaUsage struct {
	OutputTokens             int `json:"output_tokens"`
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
}

// MessageStop ends a message.
type MessageStop struct{}

// Ping means nothing.
type Ping struct{}

// OtherEvent is any other event: Raw is the whole object.
type OtherEvent struct {
	Type string
	Raw  json.RawMessage
}

func (MessageStart) isEvent() {}
func (BlockStart) isEvent()   {}
func (BlockStop) isEvent()    {}
func (MessageDelta) isEvent() {}
func (MessageStop) isEvent()  {}
func (Ping) isEvent()         {}
func (OtherEvent) isEvent()   {}

// DeltaKind says what a StreamDelta adds to.
type DeltaKind uint8

// Kinds of StreamDelta. All but DeltaSignature can be joined by
// concatenating their texts.
const (
	DeltaText      DeltaKind = iota + 1 // text_delta
	DeltaThinking                       // thinking_delta
	DeltaInputJSON                      // input_json_delta
	DeltaSignature                      // signature_delta
)

// StreamDelta is a line of type "stream_event" with a content_block_delta of
// one of the common kinds: the frame of which there are most, encoded without
// allocating. An empty UUID is filled in by Append, a fresh one each time.
type StreamDelta struct {
	SessionID       string
	UUID            string
	ParentToolUseID string
	Index           int
	Kind            DeltaKind
	Text            string // the text, thinking, partial JSON or signature
}

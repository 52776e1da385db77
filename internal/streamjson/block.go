package streamjson

import "encoding/json"

// Content is the content of a message or tool result: a plain string when
// Blocks is nil, else a list of blocks (Text is then empty).
type Content struct {
	Text   string
	Blocks Blocks
}

// TextContent is content that is a plain string.
func TextContent(text string) Content { return Content{Text: text} }

// BlockContent is content that is a list; without blocks it is an empty list,
// not an empty string.
func BlockContent(blocks ...Block) Content {
	if blocks == nil {
		blocks = []Block{}
	}
	return Content{Blocks: blocks}
}

// Blocks is a list of content blocks. It never holds nil.
type Blocks []Block

// Block is one content block: [TextBlock], [ThinkingBlock],
// [RedactedThinkingBlock], [ToolUseBlock], [ToolResultBlock], [ImageBlock],
// [DocumentBlock] or [UnknownBlock]; values, not pointers. Keys that have no
// field are dropped when a known block is read.
type Block interface{ isBlock() }

// TextBlock is a block of type "text".
type TextBlock struct {
	Text string `json:"text"`
}

// ThinkingBlock is a block of type "thinking". The signature is always
// written, "" when the model gives none.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// RedactedThinkingBlock is a block of type "redacted_thinking".
type RedactedThinkingBlock struct {
	Data string `json:"data"`
}

// ToolUseBlock is a block of type "tool_use". Input is one JSON object; nil is
// written as {}.
type ToolUseBlock struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// ToolResultBlock is a block of type "tool_result".
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Content   Content `json:"content"`
	IsError   bool    `json:"is_error"`
}

// ImageBlock is a block of type "image".
type ImageBlock struct {
	Source Source `json:"source"`
}

// DocumentBlock is a block of type "document". Title and Context are left out
// when empty.
type DocumentBlock struct {
	Source  Source `json:"source"`
	Title   string `json:"title"`
	Context string `json:"context"`
}

// Source is where the bytes of an image or document are: Type "base64" has
// MediaType and Data (as sent, not decoded), "text" MediaType and Data as plain
// text, "url" URL. Empty members are left out.
type Source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// UnknownBlock is a block of any other type: Raw is the whole object.
type UnknownBlock struct {
	Type string
	Raw  json.RawMessage
}

func (TextBlock) isBlock()             {}
func (ThinkingBlock) isBlock()         {}
func (RedactedThinkingBlock) isBlock() {}
func (ToolUseBlock) isBlock()          {}
func (ToolResultBlock) isBlock()       {}
func (ImageBlock) isBlock()            {}
func (DocumentBlock) isBlock()         {}
func (UnknownBlock) isBlock()          {}

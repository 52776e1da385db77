package session

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/agentcli/agent/internal/streamjson"
)

// previewBytes is how much of a text that was spilled stays in the frame.
const previewBytes = 32 << 10

// keepBytes is the length up to which a string is left alone in a frame that
// is too long.
const keepBytes = 100 << 10

// fit makes m no longer than a frame may be: the display copy of a tool result
// goes first, then long strings are kept in files, with a preview in place.
// Only what is shown is shortened: history and transcript have the whole.
func (f *Facts) fit(m streamjson.Message) {
	limit := cmp.Or(f.MaxFrame, streamjson.MaxFrame)
	if streamjson.Fits(m, limit) {
		return
	}
	switch m := m.(type) {
	case *streamjson.UserLine:
		m.ToolUseResult = nil
		if !streamjson.Fits(m, limit) {
			m.Message.Content = f.fitContent(m.UUID, m.Message.Content)
		}
	case *streamjson.Assistant:
		m.Message.Content = f.fitBlocks(m.UUID, m.Message.Content)
	case *streamjson.Result:
		m.Result = f.fitText(m.UUID, m.Result)
		for i := range m.Errors {
			m.Errors[i] = f.fitText(m.UUID, m.Errors[i])
		}
		for i := range m.PermissionDenials {
			m.PermissionDenials[i].ToolInput = f.fitInput(m.UUID, m.PermissionDenials[i].ToolInput)
		}
	}
}

func (f *Facts) fitContent(id string, c streamjson.Content) streamjson.Content {
	if c.Blocks == nil {
		return streamjson.TextContent(f.fitText(id, c.Text))
	}
	return streamjson.BlockContent(f.fitBlocks(id, c.Blocks)...)
}

func (f *Facts) fitBlocks(id string, blocks streamjson.Blocks) streamjson.Blocks {
	out := make(streamjson.Blocks, len(blocks))
	for i, b := range blocks {
		out[i] = f.fitBlock(id, b)
	}
	return out
}

func (f *Facts) fitBlock(id string, b streamjson.Block) streamjson.Block {
	switch b := b.(type) {
	case streamjson.TextBlock:
		b.Text = f.fitText(id, b.Text)
		return b
	case streamjson.ThinkingBlock:
		b.Thinking = f.fitText(id, b.Thinking)
		return b
	case streamjson.ToolUseBlock:
		b.Input = f.fitInput(id, b.Input)
		return b
	case streamjson.ToolResultBlock:
		b.Content = f.fitContent(id, b.Content)
		return b
	case streamjson.ImageBlock:
		if len(b.Source.Data) > keepBytes {
			return streamjson.TextBlock{Text: f.fitText(id, b.Source.Data)}
		}
	case streamjson.DocumentBlock:
		if len(b.Source.Data) > keepBytes {
			return streamjson.TextBlock{Text: f.fitText(id, b.Source.Data)}
		}
	}
	return b
}

// fitText returns s, or a preview of it that names the file with the whole.
func (f *Facts) fitText(id, s string) string {
	if len(s) <= keepBytes {
		return s
	}
	where := "the rest is not shown"
	if f.Spill != nil {
		if path, err := f.Spill(id, s); err == nil {
			where = "the whole is in " + path
		} else {
			where = "the whole could not be kept in a file: " + err.Error()
		}
	}
	return fmt.Sprintf("<persisted-output>\n%s\n\n[%d bytes in all; %s]\n</persisted-output>", cut(s, previewBytes), len(s), where)
}

// fitInput shortens the long strings inside of a JSON value.
func (f *Facts) fitInput(id string, raw json.RawMessage) json.RawMessage {
	if len(raw) <= keepBytes {
		return raw
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return json.RawMessage(`{}`)
	}
	out, err := json.Marshal(f.fitValue(id, v))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

func (f *Facts) fitValue(id string, v any) any {
	switch v := v.(type) {
	case string:
		return f.fitText(id, v)
	case []any:
		for i := range v {
			v[i] = f.fitValue(id, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = f.fitValue(id, v[k])
		}
	}
	return v
}

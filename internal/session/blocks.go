package session

import (
	"encoding/base64"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

// resultContent is a plain string when there is only one text.
func resultContent(blocks []model.Block) streamjson.Content {
	if len(blocks) == 1 {
		if t, ok := blocks[0].(model.Text); ok {
			return streamjson.TextContent(t.Text)
		}
	}
	return streamjson.BlockContent(toWireBlocks(blocks)...)
}

func toWire(b model.Block) streamjson.Block {
	switch b := b.(type) {
	case model.Text:
		return streamjson.TextBlock{Text: b.Text}
	case model.Thinking:
		if b.Redacted != "" {
			return streamjson.RedactedThinkingBlock{Data: b.Redacted}
		}
		return streamjson.ThinkingBlock{Thinking: b.Text, Signature: b.Sig.Value}
	case model.ToolUse:
		return streamjson.ToolUseBlock{ID: b.ID, Name: b.Name, Input: b.Input}
	case model.ToolResult:
		return streamjson.ToolResultBlock{ToolUseID: b.ToolUseID, Content: resultContent(b.Blocks), IsError: b.IsError}
	case model.Image:
		if b.URL != "" {
			return streamjson.ImageBlock{Source: streamjson.Source{Type: "url", URL: b.URL}}
		}
		return streamjson.ImageBlock{Source: streamjson.Source{
			Type: "base64", MediaType: b.MediaType, Data: base64.StdEncoding.EncodeToString(b.Data),
		}}
	case model.Document:
		return streamjson.DocumentBlock{Title: b.Name, Source: streamjson.Source{
			Type: "base64", MediaType: b.MediaType, Data: base64.StdEncoding.EncodeToString(b.Data),
		}}
	}
	panic("session: unknown block")
}

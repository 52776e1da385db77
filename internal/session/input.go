package session

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// toInput reads a user line. What is wrong with it is in the input's Err, so
// that it is answered in its place in the queue. With embed, blocks of unknown
// types are texts.
func toInput(line *streamjson.UserLine, embed bool) agent.Input {
	in := agent.Input{
		UUID: line.UUID, Origin: humanOrigin(line.Origin), Composed: line.ClientComposed,
		AppendOnly: line.ShouldQuery != nil && !*line.ShouldQuery,
	}
	blocks, err := toBlocks(line.Message.Content, embed)
	if err == nil {
		in.Blocks, in.Size = blocks, sizeOf(blocks)
		err = applyOptions(&in, line)
	}
	if err == nil {
		in.Priority, err = priority(line.Priority)
	}
	if err != nil {
		in.Err = fmt.Errorf("user line: %w", err)
	}
	return in
}

// priority reads a line's place in the queue; "" is the usual one.
func priority(text string) (agent.Priority, error) {
	switch text {
	case "now":
		return agent.Now, nil
	case "next", "":
		return agent.Next, nil
	case "later":
		return agent.Later, nil
	}
	return agent.Next, fmt.Errorf("priority is %q: use one of now, next, later", text)
}

// humanOrigin is where a user line says that it comes from, if it says that a
// person wrote it: no host can pass a line off as anything else.
func humanOrigin(raw json.RawMessage) json.RawMessage {
	var origin struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(raw, &origin) != nil || origin.Kind != "human" {
		return nil
	}
	return raw
}

func applyOptions(in *agent.Input, line *streamjson.UserLine) error {
	opts, err := line.TurnOptions()
	if err != nil {
		return err
	}
	in.Model, in.MaxTurns = opts.Model, opts.MaxTurns
	if opts.PermissionMode != "" {
		mode, err := policy.ParseMode(opts.PermissionMode)
		if err != nil {
			return fmt.Errorf("options: %w", err)
		}
		in.Mode = &mode
	}
	return nil
}

// sizeOf is roughly what blocks take in memory, in bytes.
func sizeOf(blocks []model.Block) int {
	n := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case model.Text:
			n += len(b.Text)
		case model.Image:
			n += len(b.Data)
		case model.Document:
			n += len(b.Data)
		case model.ToolResult:
			n += sizeOf(b.Blocks)
		}
	}
	return n
}

var errEmpty = errors.New("the message is empty")

func toBlocks(c streamjson.Content, embed bool) ([]model.Block, error) {
	if c.Blocks == nil {
		if strings.TrimSpace(c.Text) == "" {
			return nil, errEmpty
		}
		return []model.Block{model.Text{Text: c.Text}}, nil
	}
	var out []model.Block
	for i, b := range c.Blocks {
		if u, unknown := b.(streamjson.UnknownBlock); unknown && embed {
			b = streamjson.TextBlock{Text: string(u.Raw)}
		}
		m, err := toBlock(b)
		if err != nil {
			return nil, fmt.Errorf("content block %d: %w", i, err)
		}
		if m != nil {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, errEmpty
	}
	return out, nil
}

// toBlock converts one block; nil for a blank text, which says nothing.
func toBlock(b streamjson.Block) (model.Block, error) {
	switch b := b.(type) {
	case streamjson.TextBlock:
		if strings.TrimSpace(b.Text) == "" {
			return nil, nil
		}
		return model.Text{Text: b.Text}, nil
	case streamjson.ImageBlock:
		return toImage(b.Source)
	case streamjson.DocumentBlock:
		return toDocument(b)
	case streamjson.ToolResultBlock:
		return toToolResult(b)
	case streamjson.UnknownBlock:
		return nil, fmt.Errorf("type %q is not one of text, image, document, tool_result", b.Type)
	}
	return nil, fmt.Errorf("a %T does not belong in a user line", b)
}

// toToolResult converts the result of a call that the host carried out. Whether
// the call is open is known when its turn comes.
func toToolResult(b streamjson.ToolResultBlock) (model.Block, error) {
	if b.ToolUseID == "" {
		return nil, errors.New("tool_result has no tool_use_id")
	}
	out := model.ToolResult{ToolUseID: b.ToolUseID, IsError: b.IsError}
	if b.Content.Blocks == nil {
		out.Blocks = []model.Block{model.Text{Text: b.Content.Text}}
		return out, nil
	}
	for i, inner := range b.Content.Blocks {
		switch inner.(type) {
		case streamjson.TextBlock, streamjson.ImageBlock, streamjson.DocumentBlock:
		default:
			return nil, fmt.Errorf("tool_result block %d: only text, image and document belong there", i)
		}
		m, err := toBlock(inner)
		if err != nil {
			return nil, fmt.Errorf("tool_result block %d: %w", i, err)
		}
		if m != nil {
			out.Blocks = append(out.Blocks, m)
		}
	}
	if len(out.Blocks) == 0 {
		out.Blocks = []model.Block{model.Text{}}
	}
	return out, nil
}

func toImage(s streamjson.Source) (model.Block, error) {
	switch s.Type {
	case "url":
		if s.URL == "" {
			return nil, errors.New("image source has no url")
		}
		return model.Image{URL: s.URL}, nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(s.Data)
		if err != nil {
			return nil, fmt.Errorf("image data: %w", err)
		}
		if !strings.HasPrefix(s.MediaType, "image/") || len(data) == 0 {
			return nil, fmt.Errorf("image source needs data and a media_type image/..., got %q and %d bytes", s.MediaType, len(data))
		}
		return model.Image{MediaType: s.MediaType, Data: data}, nil
	}
	return nil, fmt.Errorf("image source type %q is not one of base64, url", s.Type)
}

func toDocument(b streamjson.DocumentBlock) (model.Block, error) {
	switch b.Source.Type {
	case "text":
		text := b.Source.Data
		if b.Title != "" {
			text = b.Title + "\n\n" + text
		}
		return model.Text{Text: text}, nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil {
			return nil, fmt.Errorf("document data: %w", err)
		}
		if b.Source.MediaType == "" || len(data) == 0 {
			return nil, errors.New("document source needs data and a media_type")
		}
		return model.Document{MediaType: b.Source.MediaType, Name: b.Title, Data: data}, nil
	}
	return nil, fmt.Errorf("document source type %q is not one of base64, text", b.Source.Type)
}

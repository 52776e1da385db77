package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/tools"
)

// maxImage bounds an image that is given to the model, in bytes.
const maxImage = 10 << 20

// resultOf makes a tool's result of a server's. Hosts are shown the content as
// the server gave it.
func resultOf(r *sdk.CallToolResult) tools.Result {
	blocks := blocksOf(r.Content)
	if r.StructuredContent != nil && !hasText(blocks) {
		blocks = append(blocks, model.Text{Text: string(rawJSON(r.StructuredContent))})
	}
	if len(blocks) == 0 {
		text := "(no output)"
		if r.IsError {
			text = "The tool failed and said nothing."
		}
		blocks = []model.Block{model.Text{Text: text}}
	}
	return tools.Result{Blocks: blocks, IsError: r.IsError, Display: displayOf(r.Content)}
}

// displayOf returns a server's content as JSON.
func displayOf(content []sdk.Content) json.RawMessage {
	if content == nil {
		content = []sdk.Content{}
	}
	return rawJSON(content)
}

func hasText(blocks []model.Block) bool {
	for _, b := range blocks {
		if _, ok := b.(model.Text); ok {
			return true
		}
	}
	return false
}

// blocksOf makes blocks for the model of a server's content. What can't be
// shown to it is named.
func blocksOf(content []sdk.Content) []model.Block {
	var blocks []model.Block
	for _, c := range content {
		switch c := c.(type) {
		case *sdk.TextContent:
			blocks = append(blocks, model.Text{Text: strings.ToValidUTF8(c.Text, "\uFFFD")})
		case *sdk.ImageContent:
			blocks = append(blocks, data("image", "", c.MIMEType, c.Data))
		case *sdk.AudioContent:
			blocks = append(blocks, data("audio", "", c.MIMEType, c.Data))
		case *sdk.ResourceLink:
			blocks = append(blocks, model.Text{Text: linkText(c)})
		case *sdk.EmbeddedResource:
			if c.Resource != nil {
				blocks = append(blocks, resourceBlock(c.Resource))
			}
		default:
			blocks = append(blocks, model.Text{Text: fmt.Sprintf("[content of a kind that can't be shown: %.200s]", rawJSON(c))})
		}
	}
	return blocks
}

// resourceBlock makes a block of the contents of a resource.
func resourceBlock(r *sdk.ResourceContents) model.Block {
	if r.Blob != nil {
		return data("resource", r.URI, r.MIMEType, r.Blob)
	}
	return model.Text{Text: fmt.Sprintf("[resource %s]\n%s", r.URI, strings.ToValidUTF8(r.Text, "\uFFFD"))}
}

func linkText(c *sdk.ResourceLink) string {
	text := fmt.Sprintf("[resource link: %s", c.URI)
	for _, more := range []string{c.Name, c.MIMEType, c.Description} {
		if more != "" {
			text += "; " + more
		}
	}
	return clip(text, 2000) + "; it can be read as a resource]"
}

// data makes a block of binary data: images and PDF that models take, a note of
// anything else.
func data(kind, uri, mime string, b []byte) model.Block {
	mime, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(mime)), ";")
	if len(b) > 0 && len(b) <= maxImage {
		switch mime {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			return model.Image{MediaType: mime, Data: b}
		case "application/pdf":
			return model.Document{MediaType: mime, Name: uri, Data: b}
		}
	}
	if uri != "" {
		kind += " " + uri
	}
	return model.Text{Text: fmt.Sprintf("[%s of type %q, %d bytes: it can't be shown]", kind, clip(mime, 100), len(b))}
}

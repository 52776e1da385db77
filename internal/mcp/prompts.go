package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/model"
)

// Prompt is a text that a server makes on request.
type Prompt struct {
	Server      string
	Name        string
	Description string
	Arguments   []PromptArgument
}

// PromptArgument is a value that a prompt takes.
type PromptArgument struct {
	Name        string
	Description string
	Required    bool
}

// Prompts returns the prompts of the servers that are connected, in the
// servers' order.
func (m *Manager) Prompts() []Prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Prompt
	for _, name := range m.order {
		for _, p := range m.servers[name].prompts {
			if p == nil || p.Name == "" {
				continue
			}
			prompt := Prompt{Server: name, Name: p.Name, Description: p.Description}
			for _, a := range p.Arguments {
				if a != nil {
					prompt.Arguments = append(prompt.Arguments, PromptArgument{a.Name, a.Description, a.Required})
				}
			}
			list = append(list, prompt)
		}
	}
	return list
}

// GetPrompt has a server make a prompt. The messages' contents are returned one
// after the other.
func (m *Manager) GetPrompt(ctx context.Context, server, name string, arguments map[string]string) ([]model.Block, error) {
	l, c, err := m.linkTo(server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := l.within(ctx, firstTime(c.Timeout, m.o.ToolTime))
	defer cancel()
	r, err := l.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, fmt.Errorf("prompt %q of MCP server %q: %w", name, server, l.why(err))
	}
	var content []sdk.Content
	for _, message := range r.Messages {
		if message != nil && message.Content != nil {
			content = append(content, message.Content)
		}
	}
	return blocksOf(content), nil
}

package anthropic

import (
	"bytes"
	"slices"
	"sync"

	"github.com/agentcli/agent/internal/model"
)

// conversations is how many histories a cache remembers: one provider serves a
// conversation and the sub-agents that run beside it.
const conversations = 4

// cache remembers the encoding of each message of the last request of a few
// conversations, so that a request costs what it adds. Messages are immutable;
// their address is the key. The zero value is ready to use, also concurrently.
type cache struct {
	mu    sync.Mutex
	slots []slot // the one used last comes first

	tools        []model.ToolSpec // those of the last request, and
	toolsEncoded []byte           // their encoding
}

// slot is one conversation, known by its first message. Its slices are never
// written again.
type slot struct {
	messages []*model.Message
	encoded  []*encoded
}

// encode returns the encodings of messages, in order.
func (c *cache) encode(messages []*model.Message) []*encoded {
	if len(messages) == 0 {
		return nil
	}
	old := c.find(messages[0])
	all := make([]*encoded, len(messages))
	n := 0
	for n < len(messages) && n < len(old.messages) && messages[n] == old.messages[n] {
		all[n] = old.encoded[n]
		n++
	}
	moved := make(map[*model.Message]*encoded, len(old.messages)-n)
	for i := n; i < len(old.messages); i++ {
		moved[old.messages[i]] = old.encoded[i]
	}
	for i := n; i < len(messages); i++ {
		if all[i] = moved[messages[i]]; all[i] == nil {
			all[i] = encodeMessage(messages[i])
		}
	}
	c.store(slot{messages: slices.Clone(messages), encoded: all})
	return all
}

func (c *cache) find(root *model.Message) slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots {
		if s.messages[0] == root {
			return s
		}
	}
	return slot{}
}

func (c *cache) store(s slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slots := append(make([]slot, 0, conversations+1), s)
	for _, old := range c.slots {
		if old.messages[0] != s.messages[0] {
			slots = append(slots, old)
		}
	}
	c.slots = slots[:min(len(slots), conversations)]
}

// encodeTools returns the tools as comma-separated objects.
func (c *cache) encodeTools(tools []model.ToolSpec) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.EqualFunc(tools, c.tools, sameTool) {
		return c.toolsEncoded, nil
	}
	b, err := encodeTools(tools)
	if err != nil {
		return nil, err
	}
	c.tools, c.toolsEncoded = slices.Clone(tools), b
	return b, nil
}

func sameTool(a, b model.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

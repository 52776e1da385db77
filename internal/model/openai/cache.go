package openai

import (
	"sync"

	"github.com/agentcli/agent/internal/model"
)

// cacheRequests is for how many requests an encoding is kept unused. More than
// one, because sub-agents use one provider in turns with histories of their own.
const cacheRequests = 8

// messageCache keeps the encodings of the messages of the last requests, keyed
// by address (messages are immutable), so that a conversation of n messages is
// not encoded n times.
type messageCache struct {
	mu      sync.Mutex // guards the fields below
	clock   uint64
	entries map[*model.Message]*encoded
}

// use calls each, in order, with the encoding of every message, encoding those
// that are new.
func (c *messageCache) use(msgs []*model.Message, encode func(*model.Message) *encoded, each func(*encoded)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[*model.Message]*encoded)
	}
	c.clock++
	for _, m := range msgs {
		e := c.entries[m]
		if e == nil {
			e = encode(m)
			c.entries[m] = e
		}
		e.used = c.clock
		each(e)
	}
	for m, e := range c.entries {
		if e.used+cacheRequests <= c.clock {
			delete(c.entries, m)
		}
	}
}

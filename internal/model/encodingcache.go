package model

import (
	"bytes"
	"slices"
	"sync"
)

// cachedConversations is how many histories, and how many lists of tools, an
// EncodingCache remembers: one provider serves a conversation and the
// sub-agents that run beside it.
const cachedConversations = 8

// EncodingCache remembers an adapter's encodings of what is the same in one
// request after the other, so that a request costs what it adds: of each
// message of the last request of a few conversations, and of the lists of
// tools. E is the adapter's form of one message.
//
// The zero value is ready to use, also concurrently. Adapters whose encodings
// depend on more than the message must not change that while they use the cache.
type EncodingCache[E any] struct {
	mu            sync.Mutex         // guards the fields below
	conversations []*conversation[E] // the one used last comes first
	tools         []toolList         // likewise
}

// conversation is one history, known by its first message, with the encoding of
// each. It is never changed. Its slices may share their memory with those of
// the conversation that it was extended to.
type conversation[E any] struct {
	messages []*Message
	encoded  []E
}

type toolList struct {
	tools   []ToolSpec
	encoded []byte
}

// Messages returns the encodings of messages, in order, calling encode for those
// that were not in the last request with the same first message. Messages are
// known by their address, for they are immutable; messages itself is not kept.
// The result is shared: it is only to be read, and so is what it refers to.
// encode runs without the cache being locked; of two calls at once both may
// encode the same message.
func (c *EncodingCache[E]) Messages(messages []*Message, encode func(*Message) E) []E {
	if len(messages) == 0 {
		return nil
	}
	old := c.find(messages[0])
	n := commonPrefix(old.messages, messages)
	next := old
	if n < len(messages) || n < len(old.messages) {
		next = c.keep(old, n, messages[n:], old.encodeRest(n, messages[n:], encode))
	}
	return slices.Clip(next.encoded)
}

// find returns the conversation that begins with first, and makes it the one
// used last; an empty one if there is none.
func (c *EncodingCache[E]) find(first *Message) *conversation[E] {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.index(first)
	if i < 0 {
		return &conversation[E]{}
	}
	c.conversations = toFront(c.conversations, i, c.conversations[i])
	return c.conversations[0]
}

// keep makes the first n messages of old and then messages, whose encodings are
// encoded, the last request of the conversation, and returns it.
func (c *EncodingCache[E]) keep(old *conversation[E], n int, messages []*Message, encoded []E) *conversation[E] {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &conversation[E]{}
	if n == len(old.messages) && slices.Contains(c.conversations, old) {
		// Whoever replaces old, which happens once, may use the memory behind
		// its end.
		next.messages = append(old.messages, messages...)
		next.encoded = append(old.encoded, encoded...)
	} else {
		next.messages = slices.Concat(old.messages[:n], messages)
		next.encoded = slices.Concat(old.encoded[:n], encoded)
	}
	c.conversations = toFront(c.conversations, c.index(next.messages[0]), next)
	return next
}

// index returns where the conversation is that begins with first, or -1.
func (c *EncodingCache[E]) index(first *Message) int {
	for i, v := range c.conversations {
		if v.messages[0] == first {
			return i
		}
	}
	return -1
}

// encodeRest encodes messages, which follow the first n of v. Those that v has
// elsewhere it takes from there.
func (v *conversation[E]) encodeRest(n int, messages []*Message, encode func(*Message) E) []E {
	moved := make(map[*Message]E, len(v.messages)-n)
	for i := n; i < len(v.messages); i++ {
		moved[v.messages[i]] = v.encoded[i]
	}
	rest := make([]E, len(messages))
	for i, m := range messages {
		e, ok := moved[m]
		if !ok {
			e = encode(m)
		}
		rest[i] = e
	}
	return rest
}

func commonPrefix(a, b []*Message) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Tools returns the encodings of tools with commas between them, calling encode
// for each of them if a list like this was not used lately. It fails with
// encode's error. The result is shared: it is only to be read.
func (c *EncodingCache[E]) Tools(tools []ToolSpec, encode func(ToolSpec) ([]byte, error)) ([]byte, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.tools, func(l toolList) bool { return slices.EqualFunc(l.tools, tools, sameTool) })
	if i >= 0 {
		c.tools = toFront(c.tools, i, c.tools[i])
		return c.tools[0].encoded, nil
	}
	var all []byte
	for _, t := range tools {
		b, err := encode(t)
		if err != nil {
			return nil, err
		}
		all = AppendElement(all, b)
	}
	all = slices.Clip(all)
	c.tools = toFront(c.tools, -1, toolList{slices.Clone(tools), all})
	return all, nil
}

func sameTool(a, b ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// toFront puts v in front of list, in place of element i, or if there is none
// (-1), of the last one when the list is full.
func toFront[T any](list []T, i int, v T) []T {
	if i < 0 {
		if len(list) < cachedConversations {
			list = append(list, v)
		}
		i = len(list) - 1
	}
	copy(list[1:], list[:i])
	list[0] = v
	return list
}

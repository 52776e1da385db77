package testkit

import (
	"fmt"
	"strings"
)

// CheckTurns demands of the frames of a whole run that they are in order: each
// turn begins with system/init and ends with one result; every tool_use of an
// assistant frame is answered by one tool_result before the result; stream
// events nest; and for each block the joined deltas are the block's text.
func CheckTurns(frames []Frame) error {
	c := turnChecker{open: map[string]bool{}, calls: map[string]string{}, deltas: map[int]*strings.Builder{}}
	for i, f := range frames {
		if err := c.take(f); err != nil {
			return fmt.Errorf("frame %d (%s): %w", i, f.Kind(), err)
		}
	}
	if c.inTurn {
		return fmt.Errorf("the last turn has no result")
	}
	return nil
}

type turnChecker struct {
	inTurn  bool
	message bool
	block   bool
	index   int
	open    map[string]bool   // tool calls without a result
	calls   map[string]string // of assistant frames, by uuid
	deltas  map[int]*strings.Builder
	whole   bool // the open block's assistant frame came
}

func (c *turnChecker) take(f Frame) error {
	kind := f.Kind()
	switch kind {
	case "system/init":
		if c.inTurn {
			return fmt.Errorf("a turn begins inside of a turn")
		}
		c.inTurn = true
	case "result":
		return c.result()
	case "control_response":
	default:
		if !c.inTurn && !betweenTurns[kind] {
			return fmt.Errorf("a frame outside of any turn")
		}
	}
	switch kind {
	case "assistant":
		return c.assistant(f)
	case "user":
		return c.user(f)
	case "stream_event":
		return c.event(f)
	}
	return nil
}

func (c *turnChecker) result() error {
	c.inTurn = false
	if len(c.open) > 0 {
		return fmt.Errorf("%d tool calls have no result", len(c.open))
	}
	return nil
}

func blocks(f Frame) []map[string]any {
	content, _ := f.Get("message.content")
	list, _ := content.([]any)
	var out []map[string]any
	for _, item := range list {
		if b, ok := item.(map[string]any); ok {
			out = append(out, b)
		}
	}
	return out
}

func (c *turnChecker) assistant(f Frame) error {
	c.supersede(f)
	if f.String("message.model") == "<synthetic>" {
		c.message, c.block = false, false // the open message broke off within a call
		return nil
	}
	for _, b := range blocks(f) {
		if b["type"] == "tool_use" {
			id := b["id"].(string)
			c.open[id] = true
			c.calls[f.String("uuid")] = id
		}
		if err := c.joined(b); err != nil {
			return err
		}
	}
	c.whole = true
	return nil
}

// supersede forgets the calls of frames that f voids.
func (c *turnChecker) supersede(f Frame) {
	void, _ := f["supersedes"].([]any)
	for _, uuid := range void {
		name, _ := uuid.(string)
		delete(c.open, c.calls[name])
	}
}

// joined compares the whole block with the deltas that announced it.
func (c *turnChecker) joined(b map[string]any) error {
	if !c.block {
		return nil
	}
	var got string
	switch b["type"] {
	case "text":
		got, _ = b["text"].(string)
	case "thinking":
		got, _ = b["thinking"].(string)
	default:
		return nil
	}
	if sb := c.deltas[c.index]; sb != nil && sb.String() != got && !strings.HasPrefix(got, "<persisted-output>") {
		return fmt.Errorf("the joined deltas of block %d differ from the block: %.60q, %.60q", c.index, sb.String(), got)
	}
	return nil
}

func (c *turnChecker) user(f Frame) error {
	for _, b := range blocks(f) {
		if b["type"] != "tool_result" {
			continue
		}
		id, _ := b["tool_use_id"].(string)
		if !c.open[id] {
			return fmt.Errorf("a tool_result for %q, which is not open", id)
		}
		delete(c.open, id)
	}
	return nil
}

func (c *turnChecker) event(f Frame) error {
	index := -1
	if v, ok := f.Get("event.index"); ok {
		index = int(v.(float64))
	}
	switch f.String("event.type") {
	case "message_start":
		c.message, c.block = true, false // one that was begun is void
		c.deltas = map[int]*strings.Builder{}
	case "content_block_start":
		if !c.message || c.block {
			return fmt.Errorf("block %d begins at the wrong place", index)
		}
		c.block, c.index, c.whole = true, index, false
		c.deltas[index] = &strings.Builder{}
	case "content_block_delta":
		if !c.block || index != c.index || c.whole {
			return fmt.Errorf("a delta of block %d at the wrong place", index)
		}
		c.deltas[index].WriteString(f.String("event.delta.text") + f.String("event.delta.thinking"))
	case "content_block_stop":
		if !c.block || index != c.index || !c.whole {
			return fmt.Errorf("block %d ends at the wrong place", index)
		}
		c.block = false
	case "message_delta":
	case "message_stop":
		if !c.message || c.block {
			return fmt.Errorf("a message ends at the wrong place")
		}
		c.message = false
	default:
		return fmt.Errorf("unknown event %q", f.String("event.type"))
	}
	return nil
}

// betweenTurns are the frames that need no turn around them.
var betweenTurns = map[string]bool{
	"system/user_appended": true, "system/status": true, "system/heartbeat": true, "conversation_reset": true,
	"system/task_notification": true, "system/task_updated": true, "system/task_progress": true,
	"system/hook_started": true, "system/hook_response": true, "control_request": true, "control_cancel_request": true,
}

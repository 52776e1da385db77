// Package transcript keeps a session as an append-only JSON Lines file in the
// layout that the Claude session helpers read, or in qwen-code's, with a
// sequence number and a checksum on each record. One Writer owns a file; a record is one write.
package transcript

import (
	"encoding/json"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// Entry is one record before it is written. The Writer adds the sequence
// number, the parent (the entry appended before it), the session's constants
// and the checksum.
type Entry struct {
	UUID      string // the same as on the wire
	Time      time.Time
	Message   *model.Message // user or assistant
	MessageID string         // assistant: the API message's id, shared by its blocks
	Model     string         // assistant
	Usage     *model.Usage   // assistant
	Stop      model.StopReason
	// ToolUseResult is the display form of a tool result; may be nil.
	ToolUseResult json.RawMessage
	// APIError marks the text of a failed request, which is no part of the
	// history that is sent to a model.
	APIError bool
}

package transcript

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// record is one line of the file. The order of the fields is that of the
// file; the checksum is appended by hand, see seal.
type record struct {
	ParentUUID  *string         `json:"parentUuid"`
	IsSidechain bool            `json:"isSidechain"`
	UserType    string          `json:"userType"`
	Cwd         string          `json:"cwd"`
	SessionID   string          `json:"sessionId"`
	Version     string          `json:"version"`
	GitBranch   string          `json:"gitBranch"`
	AgentID     string          `json:"agentId,omitempty"`
	Type        string          `json:"type"`
	Message     message         `json:"message"`
	APIError    bool            `json:"isApiErrorMessage,omitempty"`
	ToolResult  json.RawMessage `json:"toolUseResult,omitempty"`
	UUID        string          `json:"uuid"`
	Timestamp   string          `json:"timestamp"`
	Seq         int64           `json:"seq"`
}

// message is the API form of a message.
type message struct {
	ID           string   `json:"id,omitempty"`
	Type         string   `json:"type,omitempty"`
	Role         string   `json:"role"`
	Model        string   `json:"model,omitempty"`
	Content      []block  `json:"content"`
	StopReason   *string  `json:"stop_reason,omitempty"`
	StopSequence *string  `json:"stop_sequence,omitempty"`
	Usage        *counted `json:"usage,omitempty"`
}

type counted struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
}

// block is any content block; Type says which fields hold.
type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Invalid   string          `json:"invalid_input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	SignedBy  string          `json:"signature_provider,omitempty"`
	SignedAt  int             `json:"signature_from,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// timeFormat is ISO 8601 in UTC with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

func (w *Writer) encode(e Entry) ([]byte, error) {
	if e.Message == nil {
		return nil, fmt.Errorf("transcript entry %s has no message", e.UUID)
	}
	line, err := json.Marshal(w.record(e))
	if err != nil {
		return nil, fmt.Errorf("encoding transcript entry %s: %w", e.UUID, err)
	}
	return seal(line), nil
}

// record is an entry as a line of the layout.
func (w *Writer) record(e Entry) any {
	if w.o.Layout == Qwen {
		return w.qwenRecord(e)
	}
	r := record{
		UserType: "external", Cwd: w.o.Cwd, SessionID: w.o.SessionID, Version: w.o.Version,
		GitBranch: w.o.GitBranch, Type: string(e.Message.Role), APIError: e.APIError,
		ToolResult: e.ToolUseResult, UUID: e.UUID, Timestamp: e.Time.UTC().Format(timeFormat), Seq: w.seq,
		Message: encodeMessage(e),
	}
	if w.parent != "" {
		r.ParentUUID = &w.parent
	}
	if w.o.Agent != nil {
		r.IsSidechain, r.AgentID = true, w.o.Agent.ID
	}
	return r
}

func encodeMessage(e Entry) message {
	m := message{Role: string(e.Message.Role), Content: encodeBlocks(e.Message.Blocks)}
	if e.Message.Role != model.RoleAssistant {
		return m
	}
	m.ID, m.Type, m.Model = e.MessageID, "message", e.Model
	if e.Stop != "" {
		s := string(e.Stop)
		m.StopReason = &s
	}
	if e.Usage != nil {
		m.Usage = &counted{e.Usage.InputTokens, e.Usage.OutputTokens, e.Usage.CacheWriteTokens, e.Usage.CacheReadTokens}
	}
	return m
}

func encodeBlocks(blocks []model.Block) []block {
	out := make([]block, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, encodeBlock(b))
	}
	return out
}

func encodeBlock(b model.Block) block {
	switch b := b.(type) {
	case model.Text:
		return sign(block{Type: "text", Text: &b.Text}, b.Sig)
	case model.Thinking:
		if b.Redacted != "" {
			return sign(block{Type: "redacted_thinking", Data: b.Redacted}, b.Sig)
		}
		out := sign(block{Type: "thinking", Thinking: &b.Text}, b.Sig)
		if out.Signature == nil {
			out.Signature = new(string) // readers require the key
		}
		return out
	case model.ToolUse:
		return sign(block{Type: "tool_use", ID: b.ID, Name: b.Name, Input: b.Input, Invalid: b.Invalid}, b.Sig)
	case model.ToolResult:
		return block{Type: "tool_result", ToolUseID: b.ToolUseID, Name: b.Name, Content: encodeBlocks(b.Blocks), IsError: b.IsError}
	case model.Image:
		if b.URL != "" {
			return block{Type: "image", Source: &source{Type: "url", URL: b.URL}}
		}
		return block{Type: "image", Source: &source{Type: "base64", MediaType: b.MediaType, Data: b.Data}}
	case model.Document:
		return block{Type: "document", Title: b.Name, Source: &source{Type: "base64", MediaType: b.MediaType, Data: b.Data}}
	}
	panic(fmt.Sprintf("transcript: unknown block %T", b))
}

func sign(b block, s model.Signature) block {
	if s.Value != "" {
		b.Signature, b.SignedBy, b.SignedAt = &s.Value, s.Provider, s.From
	}
	return b
}

// castagnoli is made when first needed: it would cost every start 0.2 ms.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// seal appends the checksum to a record: `,"crc":"xxxxxxxx"}` in place of the
// closing brace, the CRC-32C of everything before that, and the newline.
func seal(line []byte) []byte {
	line = line[:len(line)-1]
	sum := crc32.Checksum(line, castagnoli())
	return fmt.Appendf(line, ",\"crc\":\"%08x\"}\n", sum)
}

// sealLen is the length of what seal appends, without the newline.
const sealLen = len(`,"crc":"00000000"}`)

// intact reports whether a line, without its newline, has the right checksum.
func intact(line []byte) bool {
	if len(line) < sealLen {
		return false
	}
	body := line[:len(line)-sealLen]
	return string(line[len(body):]) == fmt.Sprintf(`,"crc":"%08x"}`, crc32.Checksum(body, castagnoli()))
}

func parseTime(s string) time.Time {
	t, err := time.Parse(timeFormat, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

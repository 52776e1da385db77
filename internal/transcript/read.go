package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/agentcli/agent/internal/model"
)

// Damage describes a line that could not be used.
type Damage struct {
	Line   int // from 1
	Reason string
}

// Replay is what a file tells.
type Replay struct {
	Entries []Entry
	Damaged []Damage // lines skipped: torn, altered or not understood
}

// Read reads a session's records. Lines that are torn or fail their checksum
// are skipped and listed; reading goes on. The error is the reader's.
func Read(r io.Reader) (*Replay, error) {
	var out Replay
	br := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			out.add(n, line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return &out, nil
		case err != nil:
			return &out, fmt.Errorf("reading transcript: %w", err)
		}
	}
}

func (p *Replay) add(n int, line []byte) {
	if line[len(line)-1] != '\n' {
		p.Damaged = append(p.Damaged, Damage{n, "torn: no newline at its end"})
		return
	}
	line = line[:len(line)-1]
	if !intact(line) {
		p.Damaged = append(p.Damaged, Damage{n, "checksum does not match"})
		return
	}
	var rec interface{ entry() Entry } = new(record)
	if bytes.HasPrefix(line, []byte(qwenStart)) {
		rec = new(qwenRecord)
	}
	if err := json.Unmarshal(line, rec); err != nil {
		p.Damaged = append(p.Damaged, Damage{n, err.Error()})
		return
	}
	p.Entries = append(p.Entries, rec.entry())
}

func (r *record) entry() Entry {
	e := Entry{
		UUID: r.UUID, Time: parseTime(r.Timestamp), MessageID: r.Message.ID, Model: r.Message.Model,
		ToolUseResult: r.ToolResult, APIError: r.APIError,
		Message: &model.Message{ID: r.UUID, Role: model.Role(r.Message.Role), Blocks: decodeBlocks(r.Message.Content)},
	}
	if r.Message.StopReason != nil {
		e.Stop = model.StopReason(*r.Message.StopReason)
	}
	if u := r.Message.Usage; u != nil {
		e.Usage = &model.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	return e
}

func decodeBlocks(in []block) []model.Block {
	var out []model.Block
	for _, b := range in {
		if d := decodeBlock(b); d != nil {
			out = append(out, d)
		}
	}
	return out
}

func decodeBlock(b block) model.Block {
	var sig model.Signature
	if b.Signature != nil && *b.Signature != "" {
		sig = model.Signature{Provider: b.SignedBy, Value: *b.Signature, From: b.SignedAt}
	}
	switch b.Type {
	case "text":
		return model.Text{Text: deref(b.Text), Sig: sig}
	case "thinking":
		return model.Thinking{Text: deref(b.Thinking), Sig: sig}
	case "redacted_thinking":
		return model.Thinking{Redacted: b.Data, Sig: sig}
	case "tool_use":
		return model.ToolUse{ID: b.ID, Name: b.Name, Input: b.Input, Invalid: b.Invalid, Sig: sig}
	case "tool_result":
		return model.ToolResult{ToolUseID: b.ToolUseID, Name: b.Name, Blocks: decodeBlocks(b.Content), IsError: b.IsError}
	case "image":
		if b.Source != nil {
			return model.Image{MediaType: b.Source.MediaType, Data: b.Source.Data, URL: b.Source.URL}
		}
	case "document":
		if b.Source != nil {
			return model.Document{MediaType: b.Source.MediaType, Name: b.Title, Data: b.Source.Data}
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// History joins the entries to the messages that a model is sent: the blocks of
// one answer become one message, the results of its calls another; failed
// requests are left out.
func (p *Replay) History() []*model.Message {
	var out []*model.Message
	lastID := ""
	for _, e := range p.Entries {
		if e.APIError {
			continue
		}
		role := e.Message.Role
		if n := len(out); n > 0 && joins(out[n-1], e, lastID) {
			out[n-1].Blocks = append(out[n-1].Blocks, e.Message.Blocks...)
			continue
		}
		id := e.UUID
		if role == model.RoleAssistant {
			id = e.MessageID
		}
		lastID = e.MessageID
		out = append(out, &model.Message{ID: id, Role: role, Blocks: e.Message.Blocks})
	}
	return out
}

// joins reports whether e goes on with the message m.
func joins(m *model.Message, e Entry, lastID string) bool {
	if m.Role != e.Message.Role {
		return false
	}
	if m.Role == model.RoleAssistant {
		return e.MessageID == lastID
	}
	return isResult(m.Blocks) && isResult(e.Message.Blocks)
}

func isResult(blocks []model.Block) bool {
	for _, b := range blocks {
		if _, ok := b.(model.ToolResult); !ok {
			return false
		}
	}
	return len(blocks) > 0
}

package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// qwenStart is how a line of the qwen layout begins, and none of the others.
const qwenStart = `{"uuid":`

// qwenRecord is one line of the qwen layout. What its own readers don't know
// is there for ours: an entry comes back as it was.
type qwenRecord struct {
	UUID       string      `json:"uuid"`
	ParentUUID *string     `json:"parentUuid"`
	SessionID  string      `json:"sessionId"`
	Timestamp  string      `json:"timestamp"`
	Type       string      `json:"type"` // user, assistant or tool_result
	Cwd        string      `json:"cwd"`
	Version    string      `json:"version"`
	GitBranch  string      `json:"gitBranch,omitempty"`
	Model      string      `json:"model,omitempty"`
	Message    qwenMessage `json:"message"`
	Usage      *qwenUsage  `json:"usageMetadata,omitempty"`

	AgentID    string          `json:"agentId,omitempty"`
	MessageID  string          `json:"messageId,omitempty"`
	Stop       string          `json:"stopReason,omitempty"`
	APIError   bool            `json:"isApiErrorMessage,omitempty"`
	ToolResult json.RawMessage `json:"toolUseResult,omitempty"`
	Seq        int64           `json:"seq"`
}

type qwenMessage struct {
	Role  string     `json:"role"` // user or model
	Parts []qwenPart `json:"parts"`
}

type qwenUsage struct {
	Prompt     int `json:"promptTokenCount"` // what was read from a cache included
	Candidates int `json:"candidatesTokenCount"`
	Total      int `json:"totalTokenCount"`
	Cached     int `json:"cachedContentTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
	CacheWrite int `json:"cacheWriteTokenCount,omitempty"`
}

// qwenPart is a part of a message as the Gemini API has them.
type qwenPart struct {
	Text      *string       `json:"text,omitempty"`
	Thought   bool          `json:"thought,omitempty"`
	Redacted  string        `json:"redactedThought,omitempty"`
	Call      *qwenCall     `json:"functionCall,omitempty"`
	Response  *qwenResponse `json:"functionResponse,omitempty"`
	Inline    *qwenInline   `json:"inlineData,omitempty"`
	File      *qwenFile     `json:"fileData,omitempty"`
	Document  bool          `json:"document,omitempty"` // of Inline, which is else an image
	Signature string        `json:"thoughtSignature,omitempty"`
	SignedBy  string        `json:"signatureProvider,omitempty"`
	SignedAt  int           `json:"signatureFrom,omitempty"`
}

type qwenCall struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
	Invalid string          `json:"invalidArgs,omitempty"`
}

type qwenResponse struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Answer qwenAnswer `json:"response"`
	Parts  []qwenPart `json:"parts,omitempty"` // of an answer that is not one text
}

type qwenAnswer struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

type qwenInline struct {
	MediaType string `json:"mimeType"`
	Data      []byte `json:"data"`
	Name      string `json:"displayName,omitempty"`
}

type qwenFile struct {
	URI string `json:"fileUri"`
}

func (w *Writer) qwenRecord(e Entry) qwenRecord {
	r := qwenRecord{
		UUID: e.UUID, SessionID: w.o.SessionID, Timestamp: e.Time.UTC().Format(timeFormat), Type: string(e.Message.Role),
		Cwd: w.o.Cwd, Version: w.o.Version, GitBranch: w.o.GitBranch, Model: e.Model, MessageID: e.MessageID,
		Stop: string(e.Stop), APIError: e.APIError, ToolResult: e.ToolUseResult, Seq: w.seq,
		Message: qwenMessage{Role: "user", Parts: qwenParts(e.Message.Blocks)},
	}
	if w.parent != "" {
		r.ParentUUID = &w.parent
	}
	if w.o.Agent != nil {
		r.AgentID = w.o.Agent.ID
	}
	if e.Message.Role == model.RoleAssistant {
		r.Message.Role = "model"
	} else if answersCalls(e.Message.Blocks) {
		r.Type = "tool_result"
	}
	if u := e.Usage; u != nil {
		in := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
		r.Usage = &qwenUsage{in, u.OutputTokens, in + u.OutputTokens, u.CacheReadTokens, u.ThinkingTokens, u.CacheWriteTokens}
	}
	return r
}

func answersCalls(blocks []model.Block) bool {
	for _, b := range blocks {
		if _, ok := b.(model.ToolResult); ok {
			return true
		}
	}
	return false
}

func qwenParts(blocks []model.Block) []qwenPart {
	out := make([]qwenPart, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, qwenPartOf(b))
	}
	return out
}

func qwenPartOf(b model.Block) qwenPart {
	switch b := b.(type) {
	case model.Text:
		return signPart(qwenPart{Text: &b.Text}, b.Sig)
	case model.Thinking:
		return signPart(qwenPart{Text: &b.Text, Thought: true, Redacted: b.Redacted}, b.Sig)
	case model.ToolUse:
		args := b.Input
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		return signPart(qwenPart{Call: &qwenCall{b.ID, b.Name, args, b.Invalid}}, b.Sig)
	case model.ToolResult:
		return qwenPart{Response: qwenResponseOf(b)}
	case model.Image:
		if b.URL != "" {
			return qwenPart{File: &qwenFile{b.URL}}
		}
		return qwenPart{Inline: &qwenInline{MediaType: b.MediaType, Data: b.Data}}
	case model.Document:
		return qwenPart{Inline: &qwenInline{b.MediaType, b.Data, b.Name}, Document: true}
	}
	panic(fmt.Sprintf("transcript: unknown block %T", b))
}

func qwenResponseOf(b model.ToolResult) *qwenResponse {
	out := &qwenResponse{ID: b.ToolUseID, Name: b.Name}
	var texts []string
	for _, x := range b.Blocks {
		if t, ok := x.(model.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if out.Answer.Output = &text; b.IsError {
		out.Answer = qwenAnswer{Error: &text}
	}
	if len(b.Blocks) != 1 || len(texts) != 1 {
		out.Parts = qwenParts(b.Blocks)
	}
	return out
}

func signPart(p qwenPart, s model.Signature) qwenPart {
	p.Signature, p.SignedBy, p.SignedAt = s.Value, s.Provider, s.From
	return p
}

// entry reads the record back.
func (r *qwenRecord) entry() Entry {
	role := model.RoleUser
	if r.Message.Role == "model" {
		role = model.RoleAssistant
	}
	e := Entry{
		UUID: r.UUID, Time: parseTime(r.Timestamp), MessageID: r.MessageID, Model: r.Model, Stop: model.StopReason(r.Stop),
		ToolUseResult: r.ToolResult, APIError: r.APIError,
		Message: &model.Message{ID: r.UUID, Role: role, Blocks: qwenBlocks(r.Message.Parts)},
	}
	if u := r.Usage; u != nil {
		e.Usage = &model.Usage{
			InputTokens: u.Prompt - u.Cached - u.CacheWrite, OutputTokens: u.Candidates,
			CacheReadTokens: u.Cached, CacheWriteTokens: u.CacheWrite, ThinkingTokens: u.Thoughts,
		}
	}
	return e
}

func qwenBlocks(parts []qwenPart) []model.Block {
	var out []model.Block
	for _, p := range parts {
		if b := p.block(); b != nil {
			out = append(out, b)
		}
	}
	return out
}

// block returns the block of a part; nil for one of a kind that we don't have.
func (p *qwenPart) block() model.Block {
	sig := model.Signature{Provider: p.SignedBy, Value: p.Signature, From: p.SignedAt}
	switch {
	case p.Call != nil:
		return model.ToolUse{ID: p.Call.ID, Name: p.Call.Name, Input: p.Call.Args, Invalid: p.Call.Invalid, Sig: sig}
	case p.Response != nil:
		return p.Response.block()
	case p.Inline != nil && p.Document:
		return model.Document{MediaType: p.Inline.MediaType, Name: p.Inline.Name, Data: p.Inline.Data}
	case p.Inline != nil:
		return model.Image{MediaType: p.Inline.MediaType, Data: p.Inline.Data}
	case p.File != nil:
		return model.Image{URL: p.File.URI}
	case p.Thought:
		return model.Thinking{Text: deref(p.Text), Redacted: p.Redacted, Sig: sig}
	case p.Text != nil:
		return model.Text{Text: *p.Text, Sig: sig}
	}
	return nil
}

func (r *qwenResponse) block() model.Block {
	out := model.ToolResult{ToolUseID: r.ID, Name: r.Name, IsError: r.Answer.Error != nil}
	if out.Blocks = qwenBlocks(r.Parts); out.Blocks != nil {
		return out
	}
	text := deref(r.Answer.Output)
	if out.IsError {
		text = *r.Answer.Error
	}
	out.Blocks = []model.Block{model.Text{Text: text}}
	return out
}

package model

import (
	"encoding/json"
	"strings"
)

// Assembler builds the answer's blocks from its deltas, so that the joined
// deltas and the final message cannot differ. The zero value is ready to use.
type Assembler struct {
	blocks []Block
	open   bool
	index  int
	kind   DeltaKind // of the open block
	buf    strings.Builder
	id     string
	name   string
	sig    Signature
	bad    string
	usage  Usage
	stop   StopReason
	respID string
	model  string
}

// Add takes the next delta. It returns the index and block that this delta
// completed, or -1 and nil.
func (a *Assembler) Add(d Delta) (int, Block) {
	switch d.Kind {
	case DeltaText, DeltaThinking:
		i, b := a.enter(d)
		a.buf.WriteString(d.Text)
		return i, b
	case DeltaRedacted:
		i, b := a.close()
		a.open, a.index, a.kind = true, d.Index, DeltaRedacted
		a.buf.WriteString(d.Text)
		return i, b
	case DeltaSignature:
		i, b := -1, Block(nil)
		if !a.open || a.index != d.Index {
			d.Kind = DeltaText
			i, b = a.enter(d)
		}
		a.sig = d.Sig
		return i, b
	case DeltaToolStart:
		i, b := a.close()
		a.open, a.index, a.kind = true, d.Index, DeltaToolStart
		a.id, a.name, a.sig = d.ID, d.Name, d.Sig
		return i, b
	case DeltaToolInput:
		if a.open && a.kind == DeltaToolStart {
			a.buf.WriteString(d.Text)
		}
	case DeltaBlockEnd:
		if a.open {
			a.bad = d.Invalid
		}
		return a.close()
	case DeltaUsage:
		if d.Usage != nil {
			a.usage = *d.Usage
		}
	case DeltaFinish:
		if d.Usage != nil {
			a.usage = *d.Usage
		}
		a.stop, a.respID, a.model = d.Stop, d.ID, d.Name
		return a.close()
	case DeltaRestart:
		*a = Assembler{}
	}
	return -1, nil
}

// Abandon closes the open block of an answer that broke off, if it is worth
// keeping: text and thinking are, half a tool call is dropped. It returns what
// Add would.
func (a *Assembler) Abandon() (int, Block) {
	if a.open && a.kind == DeltaToolStart {
		*a = Assembler{blocks: a.blocks, usage: a.usage}
	}
	return a.close()
}

// enter makes d's block the open one.
func (a *Assembler) enter(d Delta) (int, Block) {
	if a.open && a.index == d.Index && a.kind == d.Kind {
		return -1, nil
	}
	i, b := a.close()
	a.open, a.index, a.kind = true, d.Index, d.Kind
	return i, b
}

func (a *Assembler) close() (int, Block) {
	if !a.open {
		return -1, nil
	}
	var b Block
	s := a.buf.String()
	switch a.kind {
	case DeltaText:
		b = Text{Text: s, Sig: a.sig}
	case DeltaThinking:
		b = Thinking{Text: s, Sig: a.sig}
	case DeltaRedacted:
		b = Thinking{Redacted: s, Sig: a.sig}
	case DeltaToolStart:
		b = a.toolUse(s)
	}
	i := a.index
	a.blocks = append(a.blocks, b)
	a.open, a.sig, a.id, a.name, a.bad = false, Signature{}, "", "", ""
	a.buf = strings.Builder{}
	return i, b
}

func (a *Assembler) toolUse(input string) ToolUse {
	t := ToolUse{ID: a.id, Name: a.name, Sig: a.sig, Invalid: a.bad}
	switch trimmed := strings.TrimSpace(input); {
	case t.Invalid != "":
		t.Input = json.RawMessage("{}")
	case trimmed == "":
		t.Input = json.RawMessage("{}")
	case trimmed[0] != '{' || !json.Valid([]byte(trimmed)):
		t.Input = json.RawMessage("{}")
		t.Invalid = trimmed
	default:
		t.Input = json.RawMessage(trimmed)
	}
	return t
}

// Blocks returns the completed blocks. The slice is the Assembler's own.
func (a *Assembler) Blocks() []Block { return a.blocks }

// Usage returns the usage so far.
func (a *Assembler) Usage() Usage { return a.usage }

// Stop returns the stop reason; empty before DeltaFinish.
func (a *Assembler) Stop() StopReason { return a.stop }

// Response returns the provider's response id and the model that it named.
func (a *Assembler) Response() (id, model string) { return a.respID, a.model }

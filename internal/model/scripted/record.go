package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/agentcli/agent/internal/model"
)

// Recorder is a provider that writes what another one streams as a script. It
// may be used by several goroutines at once.
type Recorder struct {
	provider model.Provider
	redact   func(string) string

	mu  sync.Mutex // guards the rest
	w   io.Writer
	err error
}

// Record returns a provider that streams what p streams, and appends each
// answer to w when it has ended: one line, a step of a script without a "when",
// so that the recording plays back in order. Put it directly around an adapter,
// below retries, so that faults are recorded too.
//
// Secrets are taken out of everything written by redact; nil means [Redact].
// Failing writes do not disturb the conversation: they are kept for
// [Recorder.Err], and the recording stops.
func Record(p model.Provider, w io.Writer, redact func(string) string) *Recorder {
	if redact == nil {
		redact = Redact
	}
	return &Recorder{provider: p, w: w, redact: redact}
}

// Err returns the error that stopped the recording, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stream implements model.Provider.
func (r *Recorder) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	t := &tape{redact: r.redact}
	err := r.provider.Stream(ctx, req, func(d model.Delta) {
		t.add(d)
		emit(d)
	})
	t.end(ctx, err)
	r.write(t, req)
	return err
}

func (r *Recorder) write(t *tape, req *model.Request) {
	c := look(req)
	line, err := marshal(stepJSON{Note: r.note(&c), Emit: t.items})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	if err != nil {
		r.err = fmt.Errorf("recording model traffic: %w", err)
	}
}

// note says what was asked, for the reader of the script.
func (r *Recorder) note(c *conversation) string {
	s := fmt.Sprintf("turn %d", c.turn)
	if c.fresh {
		s += "; user: " + clip(r.redact(c.userText()), 200)
	}
	for _, t := range c.results {
		s += "; result of " + t.name + ": " + clip(r.redact(t.text), 200)
	}
	return s
}

// The JSON forms of a script, in the order in which they are read best.

type stepJSON struct {
	Note string     `json:"note"`
	Emit []itemJSON `json:"emit"`
}

type itemJSON struct {
	Text      *texts          `json:"text,omitempty"`
	Thinking  *texts          `json:"thinking,omitempty"`
	Redacted  *string         `json:"redacted,omitempty"`
	Tool      *string         `json:"tool,omitempty"`
	ID        *string         `json:"id,omitempty"`
	Model     *string         `json:"model,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	InputText *texts          `json:"input_text,omitempty"`
	Invalid   string          `json:"invalid,omitempty"`
	Signature any             `json:"signature,omitempty"`
	End       bool            `json:"end,omitempty"`
	Ping      bool            `json:"ping,omitempty"`
	Usage     *usageJSON      `json:"usage,omitempty"`
	Stop      *string         `json:"stop,omitempty"`
	Error     string          `json:"error,omitempty"`
	Status    *int            `json:"status,omitempty"`
	Provider  string          `json:"provider,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Retry     float64         `json:"retry_after,omitempty"`
	Message   string          `json:"message,omitempty"`
	Fault     string          `json:"fault,omitempty"`
	Literal   bool            `json:"literal,omitempty"`
}

// texts is one string, or a list of the deltas.
type texts []string

// MarshalJSON implements json.Marshaler.
func (t texts) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return marshal(t[0])
	}
	return marshal([]string(t))
}

// usageJSON is null if there is no usage.
type usageJSON struct{ *model.Usage }

// MarshalJSON implements json.Marshaler.
func (u usageJSON) MarshalJSON() ([]byte, error) {
	if u.Usage == nil {
		return []byte("null"), nil
	}
	return marshal(struct {
		Input      int `json:"input"`
		Output     int `json:"output"`
		Thinking   int `json:"thinking,omitempty"`
		CacheRead  int `json:"cache_read,omitempty"`
		CacheWrite int `json:"cache_write,omitempty"`
	}{u.InputTokens, u.OutputTokens, u.ThinkingTokens, u.CacheReadTokens, u.CacheWriteTokens})
}

// tape turns deltas into the items of a step.
type tape struct {
	redact func(string) string
	items  []itemJSON

	kind   model.DeltaKind // of the open item: text, thinking, redacted, tool; 0: none
	index  int
	pieces []string
	sig    model.Signature
	signed bool
	id     string
	name   string

	ended    model.DeltaKind // of a text that has ended, without an item that says so; 0: none
	finished bool
}

func (t *tape) add(d model.Delta) {
	switch d.Kind {
	case model.DeltaText, model.DeltaThinking:
		t.enter(d.Kind, d.Index)
		if t.signed { // what follows a signature is an item of its own
			t.flush("")
			t.kind, t.index = d.Kind, d.Index
		}
		t.pieces = append(t.pieces, d.Text)
	case model.DeltaRedacted:
		t.enter(d.Kind, d.Index)
		t.pieces = append(t.pieces, d.Text)
	case model.DeltaSignature:
		if t.kind == 0 || t.index != d.Index {
			t.enter(model.DeltaText, d.Index)
		}
		t.sig, t.signed = d.Sig, true
	case model.DeltaToolStart:
		t.enter(d.Kind, d.Index)
		t.id, t.name, t.sig = d.ID, d.Name, d.Sig
	case model.DeltaToolInput:
		t.pieces = append(t.pieces, d.Text)
	case model.DeltaBlockEnd:
		t.leave(d.Invalid)
	case model.DeltaRestart: // what was recorded is void
		*t = tape{redact: t.redact}
	default:
		t.other(d)
	}
}

// other are deltas that belong to no block.
func (t *tape) other(d model.Delta) {
	switch d.Kind {
	case model.DeltaUsage:
		if d.Usage != nil {
			t.pauseText()
			u := *d.Usage
			t.items = append(t.items, itemJSON{Usage: &usageJSON{&u}})
		}
	case model.DeltaPing:
		t.pauseText()
		t.items = append(t.items, itemJSON{Ping: true})
	case model.DeltaFinish:
		t.leave("")
		t.finished = true
		id, name, stop := t.redact(d.ID), t.redact(d.Name), string(d.Stop)
		if !knownStop(d.Stop) {
			stop = string(model.StopEndTurn)
		}
		it := itemJSON{Stop: &stop, ID: &id, Model: &name, Usage: &usageJSON{}}
		if d.Usage != nil {
			u := *d.Usage
			it.Usage.Usage = &u
		}
		t.items = append(t.items, it)
	}
}

// enter makes the block of kind and index the open one.
func (t *tape) enter(kind model.DeltaKind, index int) {
	if t.kind == kind && t.index == index && kind != model.DeltaToolStart {
		return
	}
	t.leave("")
	if t.ended == kind { // else they would become one block
		t.items = append(t.items, itemJSON{End: true})
	}
	t.kind, t.index, t.ended = kind, index, 0
}

// leave ends the open block.
func (t *tape) leave(invalid string) {
	t.flush(invalid)
	if t.kind == model.DeltaText || t.kind == model.DeltaThinking {
		t.ended = t.kind
	}
	t.kind = 0
}

// pauseText writes the text so far, so that what comes now keeps its place. What
// comes within a tool call is put before it: a call is one item.
func (t *tape) pauseText() {
	switch t.kind {
	case model.DeltaText, model.DeltaThinking:
		t.flush("")
	case model.DeltaRedacted:
		t.leave("")
	}
	if t.ended != 0 {
		t.items, t.ended = append(t.items, itemJSON{End: true}), 0
	}
}

// flush writes what the open block has so far.
func (t *tape) flush(invalid string) {
	switch t.kind {
	case model.DeltaText:
		t.flushText(func(it *itemJSON, p *texts) { it.Text = p })
	case model.DeltaThinking:
		t.flushText(func(it *itemJSON, p *texts) { it.Thinking = p })
	case model.DeltaRedacted:
		data := strings.Join(t.pieces, "")
		t.items = append(t.items, itemJSON{Redacted: &data, Signature: t.signature()})
	case model.DeltaToolStart:
		t.items = append(t.items, t.tool(invalid))
	default:
		return
	}
	t.pieces, t.sig, t.signed = nil, model.Signature{}, false
}

func (t *tape) flushText(set func(*itemJSON, *texts)) {
	if len(t.pieces) == 0 && !t.signed {
		return
	}
	pieces := t.clean(t.pieces)
	it := itemJSON{Signature: t.signature(), Literal: hasTemplate(pieces)}
	set(&it, &pieces)
	t.items = append(t.items, it)
}

// clean redacts a text as a whole, because a secret may lie across deltas.
func (t *tape) clean(pieces []string) texts {
	whole := strings.Join(pieces, "")
	if out := t.redact(whole); out != whole {
		return texts{out}
	}
	if pieces == nil {
		return texts{}
	}
	return pieces
}

// signature is the JSON form of a signature; "" says that there is none.
func (t *tape) signature() any {
	switch {
	case t.sig == model.Signature{}:
		return ""
	case t.sig.Provider == "" || t.sig.From != 0:
		return t.sig
	}
	return map[string]string{"provider": t.sig.Provider, "value": t.sig.Value}
}

func (t *tape) tool(invalid string) itemJSON {
	id, name := t.id, t.name
	it := itemJSON{Tool: &name, ID: &id, Signature: t.signature(), Invalid: t.redact(invalid)}
	pieces := texts(t.pieces)
	input := strings.Join(t.pieces, "")
	if clean := t.cleanInput(input); clean != input {
		pieces, input = texts{clean}, clean
	}
	it.Literal = hasTemplate(pieces)
	if len(pieces) == 1 && invalid == "" && compactObject(input) {
		it.Input = json.RawMessage(input)
		return it
	}
	if pieces == nil {
		pieces = texts{}
	}
	it.InputText = &pieces
	return it
}

// compactObject reports whether input is an object that a script's "input"
// brings back byte for byte.
func compactObject(input string) bool {
	if !json.Valid([]byte(input)) || input == "" || input[0] != '{' {
		return false
	}
	sc := &scanner{src: []byte(input)}
	n, ok, err := sc.next()
	return err == nil && ok && sc.pos == len(input) && string(n.compact(nil)) == input && marshalKeeps(input)
}

// marshalKeeps reports whether encoding/json writes a raw message as it is.
func marshalKeeps(input string) bool {
	b, err := marshal(json.RawMessage(input))
	return err == nil && string(b) == input
}

// cleanInput redacts a tool's input: its strings, if it is JSON.
func (t *tape) cleanInput(input string) string {
	sc := &scanner{src: []byte(input)}
	n, ok, err := sc.next()
	if err != nil || !ok || !json.Valid([]byte(input)) {
		return t.redact(input)
	}
	if t.cleanNode(&n, "") {
		return string(n.compact(nil))
	}
	return input
}

// cleanNode redacts the strings of a value; under names them the way the
// patterns know.
func (t *tape) cleanNode(n *node, under string) (changed bool) {
	switch n.kind {
	case '{':
		for i := range n.fields {
			f := &n.fields[i]
			if clean := t.redact(f.key); clean != f.key {
				f.raw, changed = appendQuoted(nil, clean), true
			}
			changed = t.cleanNode(&f.node, f.key) || changed
		}
	case '[':
		for i := range n.items {
			changed = t.cleanNode(&n.items[i], under) || changed
		}
	case '"':
		clean := t.redact(n.str)
		if prefix := under + "="; clean == n.str && under != "" && t.redact(prefix+n.str) != prefix+n.str {
			clean = strings.TrimPrefix(t.redact(prefix+n.str), prefix)
		}
		if clean != n.str {
			n.raw, changed = appendQuoted(nil, clean), true
		}
	}
	return changed
}

// end records how the stream ended.
func (t *tape) end(ctx context.Context, err error) {
	t.flush("")
	t.kind = 0
	if err == nil {
		if !t.finished {
			t.items = append(t.items, itemJSON{Fault: faultCut})
		}
		return
	}
	if t.finished { // a provider that fails after its end: the end stays
		return
	}
	var e *model.Error
	switch {
	case errors.As(err, &e):
		t.items = append(t.items, t.failure(e))
	case ctx.Err() != nil: // given up in the middle of it
		t.items = append(t.items, itemJSON{Fault: faultStall})
	default:
		t.items = append(t.items, t.failure(model.NetworkError("", err)))
	}
}

func (t *tape) failure(e *model.Error) itemJSON {
	kind, status := e.Kind, e.Status
	if !slices.Contains(errorKinds, kind) {
		kind = model.ErrServer
	}
	if status < 300 || status > 599 {
		status = 0
	}
	return itemJSON{Error: string(kind), Status: &status, Provider: e.Provider, RequestID: oneLine(t.redact(e.RequestID)),
		Retry: max(0, e.RetryAfter.Seconds()), Message: t.redact(e.Message)}
}

// oneLine makes s fit for a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

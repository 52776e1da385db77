package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// Options configure a provider that plays in process. The zero value is ready.
type Options struct {
	// Name is the provider's name in errors and signatures; "" is "scripted".
	Name string
	// OnRequest, if not nil, sees each request before it is answered. It is
	// called by Stream, maybe from several goroutines at once, and must
	// neither change nor keep the request.
	OnRequest func(*model.Request)
}

// New returns a provider that answers from script. It keeps count of the steps
// that it used; make another one to start anew. Requests that no real API would
// take (unanswered tool calls, empty texts) and requests that no step matches
// are refused with an [*model.Error] of kind ErrBadRequest. Faults become the
// errors that adapters make of them; a stall ends with ctx.
func New(script *Script, opts Options) model.Provider {
	if opts.Name == "" {
		opts.Name = "scripted"
	}
	return &provider{player: newPlayer(script), opts: opts}
}

type provider struct {
	player *player
	opts   Options
}

// Stream implements model.Provider.
func (p *provider) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.opts.OnRequest != nil {
		p.opts.OnRequest(req)
	}
	if err := validate(req); err != nil {
		return p.refuse(err)
	}
	c, err := p.player.choose(req)
	if err != nil {
		return p.refuse(err)
	}
	c.idPrefix = "call_"
	s := &deltaSink{emit: emit, name: p.opts.Name, model: req.Model, turn: c.values.turn, calls: c.values.calls}
	return play(ctx, &c, s)
}

func (p *provider) refuse(err error) error {
	return &model.Error{Kind: model.ErrBadRequest, Provider: p.opts.Name, Status: 400, Message: err.Error()}
}

// validate refuses what the real APIs refuse, by the neutral request.
func validate(req *model.Request) error {
	if len(req.Messages) == 0 {
		return errors.New("the request has no messages")
	}
	if req.Messages[0].Role != model.RoleUser {
		return fmt.Errorf("messages[0]: the first message is by the %s; it must be the user's", req.Messages[0].Role)
	}
	open := map[string]bool{} // calls of the last assistant message without a result
	for i, m := range req.Messages {
		if m.Role == model.RoleAssistant && len(open) > 0 {
			return unanswered(i, open)
		}
		if err := validateMessage(i, m, open); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return unanswered(len(req.Messages), open)
	}
	return nil
}

func unanswered(i int, open map[string]bool) error {
	var ids []string
	for id := range open {
		ids = append(ids, id)
	}
	return fmt.Errorf("messages before %d: tool calls without a result: %s", i, strings.Join(ids, ", "))
}

func validateMessage(i int, m *model.Message, open map[string]bool) error {
	if len(m.Blocks) == 0 {
		return fmt.Errorf("messages[%d]: the message is empty", i)
	}
	for j, b := range m.Blocks {
		switch b := b.(type) {
		case model.Text:
			if b.Text == "" && b.Sig.Value == "" {
				return fmt.Errorf("messages[%d].blocks[%d]: the text is empty", i, j)
			}
		case model.ToolUse:
			if open[b.ID] || b.ID == "" {
				return fmt.Errorf("messages[%d].blocks[%d]: the id %q of the tool call is not unique", i, j, b.ID)
			}
			open[b.ID] = true
		case model.ToolResult:
			if !open[b.ToolUseID] {
				return fmt.Errorf("messages[%d].blocks[%d]: a result for %q, which is no open tool call", i, j, b.ToolUseID)
			}
			delete(open, b.ToolUseID)
		}
	}
	return nil
}

// block describes a block that opens.
type block struct {
	kind     itemKind // text, thinking, redacted or tool
	index    int      // within the answer
	calls    int      // tool: index among the calls
	id, name string
	ownID    bool             // the id is the script's, not made here
	sig      *model.Signature // tool, redacted; nil: whatever is usual
}

// finish is the end of an answer.
type finish struct {
	stop      model.StopReason
	usage     *model.Usage // nil: none
	id, model *string      // nil: the sink's own
}

// sink is where an answer goes. Its methods are called serially; an error ends
// the answer. Text of a tool block is its input.
type sink interface {
	begin(usage *model.Usage)
	headers() error
	open(b block) error
	delta(text string, n int) error // n times
	sign(sig model.Signature) error // the zero value: none is wanted
	close(invalid string) error
	usage(u model.Usage) error
	ping(comment string) error
	raw(text string) error
	flush() error // before a wait
	finish(f finish) error
	fault(ctx context.Context, name, text string) error // ends the answer, except garbage
	fail(ctx context.Context, e *errorSpec) error       // ends the answer
}

// errEnded stops a play after a fault that leaves no error to report.
var errEnded = errors.New("the answer has ended")

// play emits the chosen step into s.
func play(ctx context.Context, c *choice, s sink) error {
	r := &run{c: c, sink: s}
	for i := range c.step.items {
		if it := &c.step.items[i]; it.first == 0 || c.use <= it.first {
			r.items = append(r.items, it)
		}
	}
	s.begin(r.finalUsage())
	for _, it := range r.items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.pause(ctx, it.delay); err != nil {
			return err
		}
		if err := r.item(ctx, it); err != nil || r.done {
			return err
		}
	}
	return r.finish(&item{})
}

// run is one answer being emitted.
type run struct {
	c      *choice
	items  []*item
	sink   sink
	last   block // the open block, or the last one
	isOpen bool
	index  int // of the next block
	calls  int
	done   bool
}

// finalUsage is the usage at the end of the answer: the script's, else 100
// tokens in and a token for every four bytes out.
func (r *run) finalUsage() *model.Usage {
	var u *model.Usage
	size := 0
	for _, it := range r.items {
		if it.kind == itemStop && it.noUsage {
			return nil
		}
		if it.usage != nil {
			u = it.usage
		}
		if it.kind <= itemTool {
			for _, p := range it.pieces {
				size += len(p) * it.repeat
			}
		}
	}
	if u == nil {
		u = &model.Usage{InputTokens: 100, OutputTokens: max(1, size/4)}
	}
	return u
}

// pause waits for d, or until ctx ends.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if err := r.sink.flush(); err != nil {
		return err
	}
	return wait(ctx, d)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *run) item(ctx context.Context, it *item) error {
	switch it.kind {
	case itemText, itemThinking:
		return r.text(ctx, it)
	case itemRedacted, itemTool:
		return r.whole(ctx, it)
	case itemEnd:
		return r.close("")
	case itemUsage:
		return r.sink.usage(*it.usage)
	case itemPing:
		return r.repeat(ctx, it, func() error { return r.sink.ping(it.comment) })
	case itemHeaders:
		return r.sink.headers()
	case itemRaw:
		for _, p := range it.deltas(&r.c.values) {
			if err := r.repeat(ctx, it, func() error { return r.sink.raw(p) }); err != nil {
				return err
			}
		}
	case itemError:
		return r.end(r.sink.fail(ctx, it.err))
	case itemFault:
		return r.fault(ctx, it)
	case itemStop:
		return r.finish(it)
	}
	return nil
}

// end marks the answer as ended by itself.
func (r *run) end(err error) error {
	r.done = true
	if err == nil {
		err = errEnded
	}
	return err
}

func (r *run) fault(ctx context.Context, it *item) error {
	switch it.fault {
	case faultStall:
		if it.duration > 0 {
			return r.pause(ctx, it.duration)
		}
		if err := r.sink.flush(); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	case faultGarbage:
		return r.sink.fault(ctx, it.fault, strings.Join(it.pieces, ""))
	}
	return r.end(r.sink.fault(ctx, it.fault, strings.Join(it.pieces, "")))
}

// repeat calls f it.repeat times, it.every apart.
func (r *run) repeat(ctx context.Context, it *item, f func() error) error {
	for i := range it.repeat {
		if i > 0 {
			if err := r.pause(ctx, it.every); err != nil {
				return err
			}
		}
		if err := f(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// open opens a block, closing the one before.
func (r *run) open(b block) error {
	if err := r.close(""); err != nil {
		return err
	}
	b.index = r.index
	r.index++
	r.last, r.isOpen = b, true
	return r.sink.open(b)
}

func (r *run) close(invalid string) error {
	if !r.isOpen {
		return nil
	}
	r.isOpen = false
	return r.sink.close(invalid)
}

// text appends to the open block of its kind, or opens one.
func (r *run) text(ctx context.Context, it *item) error {
	if !r.isOpen || r.last.kind != it.kind {
		if err := r.open(block{kind: it.kind}); err != nil {
			return err
		}
	}
	if err := r.deltas(ctx, it); err != nil {
		return err
	}
	if it.sig == nil {
		return nil
	}
	return r.sink.sign(*it.sig)
}

// deltas emits the item's text.
func (r *run) deltas(ctx context.Context, it *item) error {
	pieces := it.deltas(&r.c.values)
	if it.every == 0 && len(pieces) == 1 {
		return r.same(ctx, pieces[0], it.repeat)
	}
	first := true
	return r.repeat(ctx, &item{repeat: it.repeat}, func() error {
		for _, p := range pieces {
			if !first {
				if err := r.pause(ctx, it.every); err != nil {
					return err
				}
			}
			first = false
			if err := r.sink.delta(p, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// same emits one text n times, looking at ctx now and then.
func (r *run) same(ctx context.Context, text string, n int) error {
	for n > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		batch := min(n, 256)
		if err := r.sink.delta(text, batch); err != nil {
			return err
		}
		n -= batch
	}
	return nil
}

// whole is a block that one item makes: a tool call or redacted thinking.
func (r *run) whole(ctx context.Context, it *item) error {
	b := block{kind: it.kind, sig: it.sig, id: it.id, name: it.name}
	if it.kind == itemTool {
		b.calls = r.calls
		r.calls++
		if b.ownID = b.id != ""; !b.ownID {
			b.id = r.c.values.freeID(r.c.idPrefix, b.calls)
		}
	}
	if err := r.open(b); err != nil {
		return err
	}
	if err := r.deltas(ctx, it); err != nil {
		return err
	}
	return r.close(it.invalid)
}

// freeID makes the id of the n-th call of this turn: the same each time the
// conversation is played, and new to its history.
func (v *values) freeID(prefix string, n int) string {
	id := fmt.Sprintf("%s%d_%d", prefix, v.turn, n+1)
	for i := 2; v.calls[id] != ""; i++ {
		id = fmt.Sprintf("%s%d_%d_%d", prefix, v.turn, n+1, i)
	}
	return id
}

func (r *run) finish(it *item) error {
	r.done = true
	if err := r.close(""); err != nil {
		return err
	}
	f := finish{stop: it.stop, usage: r.finalUsage(), id: it.respID, model: it.respModel}
	if f.stop == "" && it.kind == 0 {
		f.stop = model.StopEndTurn
		if r.calls > 0 {
			f.stop = model.StopToolUse
		}
	}
	return r.sink.finish(f)
}

// deltaSink is the sink of a provider in process.
type deltaSink struct {
	emit  func(model.Delta)
	name  string
	model string
	turn  int
	calls map[string]string // of the history

	b     block
	input strings.Builder
	given map[string]bool // ids of this answer
}

func (s *deltaSink) begin(*model.Usage) {}
func (s *deltaSink) headers() error     { return nil }
func (s *deltaSink) flush() error       { return nil }

// raw bytes only exist on a wire.
func (s *deltaSink) raw(string) error { return nil }

func (s *deltaSink) open(b block) error {
	s.b = b
	if b.kind != itemTool {
		return nil
	}
	s.input.Reset()
	s.emit(model.Delta{Kind: model.DeltaToolStart, Index: b.index, ID: s.unique(b.id), Name: b.name, Sig: s.signature(b.sig)})
	return nil
}

// unique makes the id of a call one that the conversation does not have yet, as
// adapters do.
func (s *deltaSink) unique(id string) string {
	free := id
	for i := 2; s.given[free] || s.calls[free] != ""; i++ {
		free = fmt.Sprintf("%s_%d", id, i)
	}
	if s.given == nil {
		s.given = map[string]bool{}
	}
	s.given[free] = true
	return free
}

// signature fills in the provider that the script leaves open.
func (s *deltaSink) signature(sig *model.Signature) model.Signature {
	if sig == nil || *sig == (model.Signature{}) {
		return model.Signature{}
	}
	if sig.Provider == "" {
		return model.Signature{Provider: s.name, Value: sig.Value, From: sig.From}
	}
	return *sig
}

func (s *deltaSink) delta(text string, n int) error {
	d := model.Delta{Index: s.b.index, Text: text}
	switch s.b.kind {
	case itemText:
		d.Kind = model.DeltaText
	case itemThinking:
		d.Kind = model.DeltaThinking
	case itemRedacted:
		d.Kind = model.DeltaRedacted
	default:
		d.Kind = model.DeltaToolInput
		s.input.WriteString(strings.Repeat(text, n))
	}
	for range n {
		s.emit(d)
	}
	return nil
}

func (s *deltaSink) sign(sig model.Signature) error {
	if sig != (model.Signature{}) {
		s.emit(model.Delta{Kind: model.DeltaSignature, Index: s.b.index, Sig: s.signature(&sig)})
	}
	return nil
}

func (s *deltaSink) close(invalid string) error {
	switch {
	case s.b.kind == itemRedacted && s.signature(s.b.sig) != (model.Signature{}):
		s.emit(model.Delta{Kind: model.DeltaSignature, Index: s.b.index, Sig: s.signature(s.b.sig)})
	case s.b.kind == itemTool && invalid == "":
		invalid = notObject(s.input.String())
	}
	s.emit(model.Delta{Kind: model.DeltaBlockEnd, Index: s.b.index, Invalid: invalid})
	return nil
}

// notObject returns the text of a tool's input if that is no JSON object.
func notObject(input string) string {
	text := strings.TrimSpace(input)
	if text == "" || text[0] == '{' && json.Valid([]byte(text)) {
		return ""
	}
	return text
}

func (s *deltaSink) usage(u model.Usage) error {
	s.emit(model.Delta{Kind: model.DeltaUsage, Usage: &u})
	return nil
}

func (s *deltaSink) ping(string) error {
	s.emit(model.Delta{Kind: model.DeltaPing})
	return nil
}

func (s *deltaSink) finish(f finish) error {
	d := model.Delta{Kind: model.DeltaFinish, Stop: f.stop, ID: fmt.Sprintf("scripted_%d", s.turn), Name: s.model}
	if f.id != nil {
		d.ID = *f.id
	}
	if f.model != nil {
		d.Name = *f.model
	}
	if f.usage != nil {
		u := *f.usage
		d.Usage = &u
	}
	s.emit(d)
	return nil
}

func (s *deltaSink) fault(_ context.Context, name, _ string) error {
	e := &model.Error{Provider: s.name}
	switch name {
	case faultCut, faultNoFinish:
		e.Kind, e.Message = model.ErrIncomplete, "the stream ended without a finish marker"
	case faultDrop, faultReset:
		e.Kind, e.Message = model.ErrNetwork, "the connection was reset in the middle of the answer"
	case faultEmpty:
		e.Kind, e.Message = model.ErrEmpty, "the model answered with nothing"
	case faultHTML:
		e.Kind, e.Message = model.ErrMalformed, "answered with a web page (HTML) instead of this API"
	default:
		e.Kind, e.Message = model.ErrMalformed, "the stream holds data that is not this API's"
	}
	return e
}

func (s *deltaSink) fail(_ context.Context, e *errorSpec) error {
	return e.inProcess(s.name, s.model)
}

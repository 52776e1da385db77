package model

// replay passes the deltas of one request's attempts on and remembers the
// blocks it passed. What a later attempt says again it swallows; where an
// attempt says something else, it starts the answer anew.
type replay struct {
	emit     func(Delta)
	sent     []sentBlock // what the receiver has got; only the last may be open
	finished bool        // this attempt emitted DeltaFinish
	usage    *Usage      // of this attempt, as far as it is known

	// This attempt has said sent[:at] again and, if inside, the first pos bytes
	// of sent[at], with the signature sig. Once live, it says new things.
	live   bool
	at     int
	inside bool
	pos    int
	sig    Signature
}

type sentBlock struct {
	index    int
	kind     DeltaKind // DeltaText, DeltaThinking, DeltaRedacted or DeltaToolStart
	id, name string
	sig      Signature
	text     []byte
	invalid  string
	closed   bool
}

// verdict is what to do with a delta that is compared with what was sent.
type verdict uint8

const (
	differs verdict = iota
	swallow
	isNew
)

// begin starts the next attempt.
func (r *replay) begin() {
	r.finished, r.usage = false, nil
	r.live = len(r.sent) == 0
	r.at, r.inside, r.pos, r.sig = 0, false, 0, Signature{}
}

// add takes the attempt's next delta.
func (r *replay) add(d Delta) {
	switch d.Kind {
	case DeltaPing:
		r.emit(d)
		return
	case DeltaUsage:
		r.usage = d.Usage
		r.emit(d)
		return
	case DeltaFinish:
		r.finished = true
	}
	if !r.live {
		switch r.compare(&d) {
		case swallow:
			return
		case differs:
			r.restart()
		}
		r.live = true
	}
	r.record(d)
	r.emit(d)
}

// record notes what the receiver has got.
func (r *replay) record(d Delta) {
	switch d.Kind {
	case DeltaText, DeltaThinking:
		b := r.open(d, d.Kind)
		b.text = append(b.text, d.Text...)
	case DeltaSignature:
		kind := DeltaText
		if b := r.last(); b != nil && !b.closed && b.index == d.Index {
			kind = b.kind
		}
		r.open(d, kind).sig = d.Sig
	case DeltaToolStart, DeltaRedacted:
		r.closeLast("")
		r.sent = append(r.sent, sentBlock{
			index: d.Index, kind: d.Kind, id: d.ID, name: d.Name, sig: d.Sig, text: []byte(d.Text),
		})
	case DeltaToolInput:
		if b := r.last(); b != nil {
			b.text = append(b.text, d.Text...)
		}
	case DeltaBlockEnd:
		r.closeLast(d.Invalid)
	}
}

func (r *replay) last() *sentBlock {
	if len(r.sent) == 0 {
		return nil
	}
	return &r.sent[len(r.sent)-1]
}

// open returns d's block, opening it if it is not the open one.
func (r *replay) open(d Delta, kind DeltaKind) *sentBlock {
	if b := r.last(); b != nil && !b.closed && b.index == d.Index && b.kind == kind {
		return b
	}
	r.closeLast("")
	r.sent = append(r.sent, sentBlock{index: d.Index, kind: kind})
	return r.last()
}

func (r *replay) closeLast(invalid string) {
	if b := r.last(); b != nil && !b.closed {
		b.closed, b.invalid = true, invalid
	}
}

// compare judges d against what was sent. When d goes on beyond that, its text
// is cut to what is new.
func (r *replay) compare(d *Delta) verdict {
	switch d.Kind {
	case DeltaFinish:
		if r.inside && !r.leave() || r.at < len(r.sent) {
			return differs
		}
		return isNew
	case DeltaBlockEnd:
		return r.compareEnd(d)
	}
	if !r.inside || !r.continues(d) {
		if v := r.enter(d); v != swallow {
			return v
		}
	}
	if d.Kind == DeltaSignature {
		return r.compareSignature(d)
	}
	return r.compareText(d)
}

// continues reports whether d belongs to the block the attempt is in.
func (r *replay) continues(d *Delta) bool {
	b := &r.sent[r.at]
	switch d.Kind {
	case DeltaToolInput:
		return true
	case DeltaSignature:
		return b.index == d.Index
	case DeltaText, DeltaThinking:
		return b.index == d.Index && b.kind == d.Kind
	}
	return false
}

// leave ends the block the attempt is in, and reports whether it was the same
// as before.
func (r *replay) leave() bool {
	b := &r.sent[r.at]
	if r.pos != len(b.text) || r.sig != b.sig {
		return false
	}
	r.at, r.inside, r.pos, r.sig = r.at+1, false, 0, Signature{}
	return true
}

// enter begins the next block.
func (r *replay) enter(d *Delta) verdict {
	if r.inside && !r.leave() {
		return differs
	}
	if r.at == len(r.sent) {
		return isNew
	}
	b := &r.sent[r.at]
	kind := d.Kind
	if kind == DeltaSignature {
		kind = DeltaText
	}
	if b.index != d.Index || b.kind != kind || b.id != d.ID || b.name != d.Name {
		return differs
	}
	if kind == DeltaToolStart && b.sig != d.Sig || kind == DeltaRedacted && string(b.text) != d.Text {
		return differs // these come whole
	}
	r.inside, r.pos, r.sig = true, 0, Signature{}
	if kind == DeltaToolStart {
		r.sig = d.Sig
	}
	return swallow
}

// compareSignature lets a new signature replace the one of an open block.
func (r *replay) compareSignature(d *Delta) verdict {
	b := &r.sent[r.at]
	if b.sig != d.Sig {
		if b.closed {
			return differs
		}
		b.sig = d.Sig
		r.emit(*d)
	}
	r.sig = d.Sig
	return swallow
}

func (r *replay) compareText(d *Delta) verdict {
	b := &r.sent[r.at]
	before := b.text[r.pos:]
	n := min(len(before), len(d.Text))
	switch {
	case string(before[:n]) != d.Text[:n]:
		return differs
	case n == len(d.Text):
		r.pos += n
		return swallow
	case b.closed, r.sig != b.sig: // the signature was of the shorter text
		return differs
	}
	d.Text = d.Text[n:]
	return isNew
}

func (r *replay) compareEnd(d *Delta) verdict {
	if !r.inside {
		return swallow
	}
	b := &r.sent[r.at]
	closed, invalid := b.closed, b.invalid
	switch {
	case closed && invalid != d.Invalid, !r.leave():
		return differs
	case closed:
		return swallow
	}
	return isNew
}

// restart voids what was sent and sends what this attempt has said so far.
func (r *replay) restart() {
	kept := r.sent[:r.at]
	if r.inside {
		b := r.sent[r.at]
		b.text, b.sig, b.closed, b.invalid = b.text[:r.pos:r.pos], r.sig, false, ""
		kept = append(kept, b)
	}
	r.sent = kept
	r.emit(Delta{Kind: DeltaRestart})
	for i := range kept {
		kept[i].send(r.emit)
	}
	if r.usage != nil {
		r.emit(Delta{Kind: DeltaUsage, Usage: r.usage})
	}
}

// send emits the block as few deltas.
func (b *sentBlock) send(emit func(Delta)) {
	text := string(b.text)
	switch b.kind {
	case DeltaToolStart:
		emit(Delta{Kind: DeltaToolStart, Index: b.index, ID: b.id, Name: b.name, Sig: b.sig})
		if text != "" {
			emit(Delta{Kind: DeltaToolInput, Index: b.index, Text: text})
		}
	default:
		emit(Delta{Kind: b.kind, Index: b.index, Text: text})
		if b.sig != (Signature{}) {
			emit(Delta{Kind: DeltaSignature, Index: b.index, Sig: b.sig})
		}
	}
	if b.closed {
		emit(Delta{Kind: DeltaBlockEnd, Index: b.index, Invalid: b.invalid})
	}
}

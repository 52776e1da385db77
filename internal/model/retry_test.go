package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

// providerFunc is a Provider of one function.
type providerFunc func(ctx context.Context, req *model.Request, emit func(model.Delta)) error

func (f providerFunc) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	return f(ctx, req, emit)
}

// attempt is one scripted answer: deltas, then the error.
type attempt struct {
	deltas []model.Delta
	err    error
}

// plays plays its attempts one after the other and notes when each began.
type plays struct {
	mu       sync.Mutex
	attempts []attempt
	begun    []time.Time
}

func (p *plays) Stream(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
	p.mu.Lock()
	i := len(p.begun)
	p.begun = append(p.begun, time.Now())
	a := p.attempts[min(i, len(p.attempts)-1)]
	p.mu.Unlock()
	for _, d := range a.deltas {
		emit(d)
	}
	return a.err
}

// receiver takes deltas as a front end does, and keeps a short record of them.
type receiver struct {
	answer model.Assembler
	log    []string
	waits  []time.Duration
}

func (r *receiver) emit(d model.Delta) {
	r.answer.Add(d)
	switch d.Kind {
	case model.DeltaText:
		r.log = append(r.log, fmt.Sprintf("%d:%s", d.Index, d.Text))
	case model.DeltaThinking:
		r.log = append(r.log, fmt.Sprintf("%d~%s", d.Index, d.Text))
	case model.DeltaToolStart:
		r.log = append(r.log, fmt.Sprintf("%d!%s/%s", d.Index, d.Name, d.ID))
	case model.DeltaToolInput:
		r.log = append(r.log, fmt.Sprintf("%d=%s", d.Index, d.Text))
	case model.DeltaRedacted:
		r.log = append(r.log, fmt.Sprintf("%d#%s", d.Index, d.Text))
	case model.DeltaSignature:
		r.log = append(r.log, fmt.Sprintf("%d@%s", d.Index, d.Sig.Value))
	case model.DeltaBlockEnd:
		r.log = append(r.log, fmt.Sprintf("%d.", d.Index))
	case model.DeltaFinish:
		r.log = append(r.log, "finish")
	case model.DeltaRestart:
		r.log = append(r.log, "RESTART")
	case model.DeltaRetry:
		r.log = append(r.log, "retry")
		r.waits = append(r.waits, d.Retry.Delay)
	}
}

func text(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaText, Index: i, Text: s}
}
func thinking(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaThinking, Index: i, Text: s}
}
func signature(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaSignature, Index: i, Sig: model.Signature{Provider: "p", Value: s}}
}
func toolStart(i int, id, name string) model.Delta {
	return model.Delta{Kind: model.DeltaToolStart, Index: i, ID: id, Name: name}
}
func toolInput(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaToolInput, Index: i, Text: s}
}
func blockEnd(i int) model.Delta { return model.Delta{Kind: model.DeltaBlockEnd, Index: i} }
func redacted(i int, s string) model.Delta {
	return model.Delta{Kind: model.DeltaRedacted, Index: i, Text: s}
}

var finish = model.Delta{Kind: model.DeltaFinish, Stop: model.StopEndTurn}

func fails(kind model.ErrorKind) *model.Error {
	return &model.Error{Kind: kind, Provider: "p", Message: "m"}
}

// fullJitter makes each wait the longest possible.
func fullJitter() float64 { return 1 }

func TestRetryDoesNotRepeatWhatWasSaid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		first  []model.Delta
		second []model.Delta
		want   string
	}{
		{"nothing was said", nil, []model.Delta{text(0, "a"), finish}, "retry 0:a finish"},
		{"cut between deltas", []model.Delta{text(0, "Hello "), text(0, "wor")}, []model.Delta{text(0, "Hello world"), finish}, "0:Hello  0:wor retry 0:ld finish"},
		{"cut elsewhere than chunks are", []model.Delta{text(0, "Hel")}, []model.Delta{text(0, "H"), text(0, "e"), text(0, "llo"), text(0, "!"), finish}, "0:Hel retry 0:lo 0:! finish"},
		{"all was said", []model.Delta{text(0, "Hello")}, []model.Delta{text(0, "Hello"), finish}, "0:Hello retry finish"},
		{"block end is new", []model.Delta{text(0, "Hello")}, []model.Delta{text(0, "Hello"), blockEnd(0), finish}, "0:Hello retry 0. finish"},
		{"block end was said", []model.Delta{text(0, "Hello"), blockEnd(0)}, []model.Delta{text(0, "Hello"), blockEnd(0), text(1, "x"), finish}, "0:Hello 0. retry 1:x finish"},
		{"other text", []model.Delta{text(0, "Hello"), text(0, " world")}, []model.Delta{text(0, "Hello"), text(0, " you"), finish}, "0:Hello 0: world retry RESTART 0:Hello 0: you finish"},
		{"shorter text", []model.Delta{text(0, "Hello")}, []model.Delta{text(0, "Hel"), finish}, "0:Hello retry RESTART 0:Hel finish"},
		{"longer text in a closed block", []model.Delta{text(0, "Hel"), blockEnd(0)}, []model.Delta{text(0, "Hello"), finish}, "0:Hel 0. retry RESTART 0: 0:Hello finish"},
		{"text for thinking", []model.Delta{thinking(0, "hm")}, []model.Delta{text(0, "hm"), finish}, "0~hm retry RESTART 0:hm finish"},
		{"second block differs", []model.Delta{thinking(0, "hm"), signature(0, "s"), text(1, "yes")}, []model.Delta{thinking(0, "hm"), signature(0, "s"), text(1, "no"), finish}, "0~hm 0@s 1:yes retry RESTART 0~hm 0@s 0. 1: 1:no finish"},
		{"another signature on a closed block", []model.Delta{thinking(0, "hm"), signature(0, "s"), text(1, "yes")}, []model.Delta{thinking(0, "hm"), signature(0, "T"), text(1, "yes"), finish}, "0~hm 0@s 1:yes retry RESTART 0~hm 0@T 1:yes finish"},
		{"another signature on an open block", []model.Delta{thinking(0, "hm"), signature(0, "s")}, []model.Delta{thinking(0, "hm"), signature(0, "T"), text(1, "yes"), finish}, "0~hm 0@s retry 0@T 1:yes finish"},
		{"signature does not come again", []model.Delta{thinking(0, "hm"), signature(0, "s"), text(1, "yes")}, []model.Delta{thinking(0, "hm"), text(1, "yes"), finish}, "0~hm 0@s 1:yes retry RESTART 0~hm 1:yes finish"},
		{"signed text without text", []model.Delta{signature(0, "s")}, []model.Delta{signature(0, "s"), text(0, "a"), finish}, "0@s retry 0:a finish"},
		{"same call", []model.Delta{toolStart(0, "c1", "edit"), toolInput(0, `{"a":`)}, []model.Delta{toolStart(0, "c1", "edit"), toolInput(0, `{"a":1}`), blockEnd(0), finish}, `0!edit/c1 0={"a": retry 0=1} 0. finish`},
		{"call with another id", []model.Delta{toolStart(0, "c1", "edit"), toolInput(0, `{"a":`)}, []model.Delta{toolStart(0, "c2", "edit"), toolInput(0, `{"a":1}`), finish}, `0!edit/c1 0={"a": retry RESTART 0!edit/c2 0={"a":1} finish`},
		{"text before a call with another id", []model.Delta{text(0, "ok"), toolStart(1, "c1", "edit")}, []model.Delta{text(0, "ok"), toolStart(1, "c2", "edit"), finish}, `0:ok 1!edit/c1 retry RESTART 0:ok 0. 1!edit/c2 finish`},
		{"other input", []model.Delta{toolStart(0, "c1", "edit"), toolInput(0, `{"a":1`)}, []model.Delta{toolStart(0, "c1", "edit"), toolInput(0, `{"a":`), toolInput(0, `2}`), finish}, `0!edit/c1 0={"a":1 retry RESTART 0!edit/c1 0={"a": 0=2} finish`},
		{"redacted again", []model.Delta{redacted(0, "xyz"), text(1, "a")}, []model.Delta{redacted(0, "xyz"), text(1, "ab"), finish}, "0#xyz 1:a retry 1:b finish"},
		{"redacted longer", []model.Delta{redacted(0, "xyz")}, []model.Delta{redacted(0, "xyz!"), finish}, "0#xyz retry RESTART 0#xyz! finish"},
		{"ends before a block that was said", []model.Delta{text(0, "a"), text(1, "b")}, []model.Delta{text(0, "a"), finish}, "0:a 1:b retry RESTART 0:a 0. finish"},
		{"says nothing now", []model.Delta{text(0, "a")}, []model.Delta{finish}, "0:a retry RESTART finish"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &plays{attempts: []attempt{{tt.first, fails(model.ErrNetwork)}, {tt.second, nil}}}
				var r receiver
				if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(r.log, " "); got != tt.want {
					t.Errorf("deltas\n%s\nwant\n%s", got, tt.want)
				}
				var direct model.Assembler
				for _, d := range tt.second {
					direct.Add(d)
				}
				if diff := cmp.Diff(direct.Blocks(), r.answer.Blocks()); diff != "" {
					t.Errorf("answer differs from the last attempt's (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRetryRepeatsTheUsageAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		usage := model.Usage{InputTokens: 7}
		p := &plays{attempts: []attempt{
			{[]model.Delta{text(0, "a")}, fails(model.ErrNetwork)},
			{[]model.Delta{{Kind: model.DeltaUsage, Usage: &usage}, text(0, "b"), finish}, nil},
		}}
		var r receiver
		if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit); err != nil {
			t.Fatal(err)
		}
		if r.answer.Usage() != usage {
			t.Errorf("usage %+v, want %+v", r.answer.Usage(), usage)
		}
	})
}

func TestRetryAcrossSeveralCutAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plays{attempts: []attempt{
			{[]model.Delta{text(0, "one two")}, fails(model.ErrNetwork)},
			{[]model.Delta{text(0, "one")}, fails(model.ErrOverloaded)}, // fails before it caught up
			{[]model.Delta{text(0, "one tw"), text(0, "o three")}, fails(model.ErrNetwork)},
			{[]model.Delta{text(0, "one four")}, fails(model.ErrNetwork)},
			{[]model.Delta{text(0, "one four five"), finish}, nil},
		}}
		var r receiver
		if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit); err != nil {
			t.Fatal(err)
		}
		const want = "0:one two retry retry 0: three retry RESTART 0: 0:one four retry 0: five finish"
		if got := strings.Join(r.log, " "); got != want {
			t.Errorf("deltas\n%s\nwant\n%s", got, want)
		}
	})
}

func TestRetryOnlyWhatMayHelp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind  model.ErrorKind
		calls int
	}{
		{model.ErrAuth, 1}, {model.ErrQuota, 1}, {model.ErrBadRequest, 1}, {model.ErrNotFound, 1}, {model.ErrContext, 1},
		{model.ErrBlocked, 1}, {model.ErrConfigured, 1},
		{model.ErrRateLimit, 10}, {model.ErrOverloaded, 10}, {model.ErrServer, 10}, {model.ErrNetwork, 10},
		{model.ErrStalled, 3}, {model.ErrIncomplete, 3}, {model.ErrMalformed, 3}, {model.ErrEmpty, 3}, {model.ErrMalformedUse, 3},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &plays{attempts: []attempt{{nil, fmt.Errorf("asking: %w", fails(tt.kind))}}}
				var r receiver
				err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit)
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != tt.kind {
					t.Errorf("error %v, want kind %s", err, tt.kind)
				}
				if len(p.begun) != tt.calls || len(r.waits) != tt.calls-1 {
					t.Errorf("%d attempts and %d retry deltas, want %d attempts", len(p.begun), len(r.waits), tt.calls)
				}
				if tt.calls > 1 && !strings.Contains(err.Error(), fmt.Sprintf("gave up after %d attempts", tt.calls)) {
					t.Errorf("error does not say that it gave up: %v", err)
				}
			})
		})
	}
}

func TestRetryPassesOtherEndsOn(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	p := &plays{attempts: []attempt{{nil, plain}}}
	if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != plain {
		t.Errorf("error %v, want %v", err, plain)
	}
}

func TestRetryNeverRepeatsAFinishedAnswer(t *testing.T) {
	t.Parallel()
	p := &plays{attempts: []attempt{{[]model.Delta{text(0, "a"), finish}, fails(model.ErrNetwork)}}}
	err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, func(model.Delta) {})
	if err == nil || len(p.begun) != 1 {
		t.Errorf("error %v after %d attempts, want the error after one", err, len(p.begun))
	}
}

func TestRetryUselessAnswersCountInARowOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plays{attempts: []attempt{
			{nil, fails(model.ErrEmpty)}, {nil, fails(model.ErrIncomplete)}, {nil, fails(model.ErrServer)},
			{nil, fails(model.ErrEmpty)}, {nil, fails(model.ErrEmpty)}, {[]model.Delta{finish}, nil},
		}}
		if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != nil {
			t.Error(err)
		}
	})
}

func TestRetryBacksOffExponentially(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plays{attempts: []attempt{{nil, fails(model.ErrServer)}}}
		var r receiver
		_ = model.Retry(p, model.RetryOptions{MaxAttempts: 6, MaxDelay: 3 * time.Second, Rand: fullJitter}).Stream(t.Context(), &model.Request{}, r.emit)
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}
		if diff := cmp.Diff(want, r.waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
		for i, w := range want {
			if got := p.begun[i+1].Sub(p.begun[i]); got != w {
				t.Errorf("attempt %d came after %s, want %s", i+2, got, w)
			}
		}
	})
}

func TestRetryStopsWhenTheBudgetIsSpent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plays{attempts: []attempt{{nil, fails(model.ErrServer)}}}
		var r receiver
		begin := time.Now()
		err := model.Retry(p, model.RetryOptions{MaxAttempts: 1000, Budget: time.Minute, Rand: fullJitter}).Stream(t.Context(), &model.Request{}, r.emit)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %s, want the budget of 1m", took)
		}
		if err == nil || !strings.Contains(err.Error(), "gave up") {
			t.Errorf("error %v", err)
		}
	})
}

func TestRetryAfterIsAFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := fails(model.ErrRateLimit)
		limited.RetryAfter = 7 * time.Second
		p := &plays{attempts: []attempt{{nil, limited}, {nil, limited}, {[]model.Delta{finish}, nil}}}
		if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if wait := p.begun[i+1].Sub(p.begun[i]); wait < 7*time.Second || wait > 9*time.Second {
				t.Errorf("attempt %d came after %s, want 7s and a little", i+2, wait)
			}
		}
	})
}

func TestRetryAfterBeyondTheBudgetEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := fails(model.ErrRateLimit)
		limited.RetryAfter = 10 * time.Minute
		p := &plays{attempts: []attempt{{nil, limited}}}
		provider := model.Retry(p, model.RetryOptions{})
		begin := time.Now()
		err := provider.Stream(t.Context(), &model.Request{}, func(model.Delta) {})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.ErrRateLimit || !strings.Contains(e.Message, "asks to wait 10m0s") {
			t.Errorf("error %v, want the rate limit with the wait in it", err)
		}
		if time.Since(begin) != 0 || len(p.begun) != 1 {
			t.Errorf("took %s and %d attempts, want one at once", time.Since(begin), len(p.begun))
		}
		if limited.Message != "m" {
			t.Error("the provider's error was changed")
		}
		// The next prompt may ask again.
		_ = provider.Stream(t.Context(), &model.Request{}, func(model.Delta) {})
		if time.Since(begin) != 0 || len(p.begun) != 2 {
			t.Errorf("a later request: took %s, %d attempts in all, want a second one at once", time.Since(begin), len(p.begun))
		}
	})
}

func TestRetryWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		interrupted := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		limited := fails(model.ErrRateLimit)
		limited.RetryAfter = time.Minute
		p := &plays{attempts: []attempt{{nil, limited}}}
		begin := time.Now()
		time.AfterFunc(time.Second, func() { cancel(interrupted) })
		err := model.Retry(p, model.RetryOptions{}).Stream(ctx, &model.Request{}, func(model.Delta) {})
		if err != interrupted || time.Since(begin) != time.Second {
			t.Errorf("error %v after %s, want %v after 1s", err, time.Since(begin), interrupted)
		}
	})
}

func TestRetrySharesTheRateLimitAcrossRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := fails(model.ErrRateLimit)
		limited.RetryAfter = 10 * time.Second
		p := &plays{attempts: []attempt{{nil, limited}, {[]model.Delta{finish}, nil}}}
		provider := model.Retry(p, model.RetryOptions{})
		begin := time.Now()
		ask := func(r *receiver) {
			if err := provider.Stream(t.Context(), &model.Request{}, r.emit); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		var first receiver
		wg.Go(func() { ask(&first) })
		synctest.Wait() // the first request now waits
		var others [4]receiver
		for i := range others {
			wg.Go(func() { ask(&others[i]) })
		}
		wg.Wait()
		if len(p.begun) != 6 {
			t.Fatalf("%d attempts, want 6", len(p.begun))
		}
		for i, at := range p.begun[1:] {
			if at.Sub(begin) < 10*time.Second {
				t.Errorf("attempt %d was sent after %s, within the wait asked for", i+2, at.Sub(begin))
			}
		}
		for i, r := range others {
			if got := strings.Join(r.log, " "); got != "retry finish" {
				t.Errorf("request %d emitted %q, want its wait and its end", i+2, got)
			}
		}
	})
}

func TestRetryInfoTellsOfTheRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := fails(model.ErrOverloaded)
		p := &plays{attempts: []attempt{{nil, failure}, {nil, failure}, {[]model.Delta{finish}, nil}}}
		var got []model.RetryInfo
		err := model.Retry(p, model.RetryOptions{Rand: fullJitter}).Stream(t.Context(), &model.Request{}, func(d model.Delta) {
			if d.Kind == model.DeltaRetry {
				got = append(got, *d.Retry)
			}
		})
		want := []model.RetryInfo{
			{Attempt: 1, MaxRetries: 9, Delay: 500 * time.Millisecond, Err: failure},
			{Attempt: 2, MaxRetries: 9, Delay: time.Second, Err: failure},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, retries (-want +got):\n%s", err, diff)
		}
	})
}

// answerFrom makes a well-formed answer out of bytes: few blocks, few letters,
// so that different seeds often share a beginning.
func answerFrom(seed []byte) []model.Delta {
	var out []model.Delta
	index := -1
	kind := model.DeltaKind(0)
	for _, b := range seed {
		piece := strings.Repeat(string(rune('a'+b>>4&1)), 1+int(b>>5&3))
		switch op := b % 8; {
		case op < 2 || index < 0:
			index++
			kind = []model.DeltaKind{model.DeltaText, model.DeltaThinking, model.DeltaToolStart, model.DeltaRedacted}[b>>3&3]
			d := model.Delta{Kind: kind, Index: index, Text: piece}
			if kind == model.DeltaToolStart {
				d.ID, d.Name, d.Text = piece, "tool", ""
			}
			out = append(out, d)
		case op == 2 && (kind == model.DeltaText || kind == model.DeltaThinking):
			out = append(out, signature(index, piece))
		case op == 3 && kind != 0:
			out = append(out, blockEnd(index))
			kind = 0
		case op == 4:
			out = append(out, model.Delta{Kind: model.DeltaPing})
		case kind == model.DeltaToolStart:
			out = append(out, toolInput(index, piece))
		case kind == model.DeltaText || kind == model.DeltaThinking:
			out = append(out, model.Delta{Kind: kind, Index: index, Text: piece})
		}
	}
	return out
}

// FuzzRetryAnswerIsTheLastAttempts cuts attempts anywhere and checks that the
// receiver ends up with just the blocks of the attempt that finished, and was
// never told more than it.
func FuzzRetryAnswerIsTheLastAttempts(f *testing.F) {
	f.Add([]byte{0, 5, 5, 5}, []byte{0, 5, 5, 5, 5, 2}, []byte{0, 5, 6, 7, 3, 8, 5}, uint8(3))
	f.Add([]byte{16, 5, 5, 8, 21}, []byte{16, 21, 5, 8, 21, 5}, []byte{16, 5, 5, 8, 21, 53}, uint8(0))
	f.Add([]byte{24, 0, 5}, []byte{24, 0, 5, 5}, []byte{24, 0}, uint8(9))
	f.Fuzz(func(t *testing.T, a, b, c []byte, cut uint8) {
		if len(a)+len(b)+len(c) > 300 {
			return
		}
		last := append(answerFrom(c), finish)
		first := answerFrom(a)
		p := &plays{attempts: []attempt{
			{first, fails(model.ErrNetwork)},
			{answerFrom(b), fails(model.ErrNetwork)},
			{last[:min(int(cut), len(last)-1)], fails(model.ErrNetwork)}, // the same, cut
			{last, nil},
		}}
		synctest.Test(t, func(t *testing.T) {
			var r receiver
			if err := model.Retry(p, model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit); err != nil {
				t.Fatal(err)
			}
			var direct model.Assembler
			for _, d := range last {
				direct.Add(d)
			}
			if diff := cmp.Diff(direct.Blocks(), r.answer.Blocks()); diff != "" {
				t.Errorf("answer (-last attempt +received):\n%s\nlog: %s", diff, strings.Join(r.log, " "))
			}
		})
	})
}

func BenchmarkRetryPerDelta(b *testing.B) {
	n := 0
	p := providerFunc(func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		d := text(0, "some words of an answer")
		for b.Loop() {
			emit(d)
		}
		emit(finish)
		return nil
	})
	b.ReportAllocs()
	if err := model.Retry(model.StallWatch(p, 0), model.RetryOptions{}).Stream(b.Context(), &model.Request{}, func(model.Delta) { n++ }); err != nil {
		b.Fatal(err)
	}
}

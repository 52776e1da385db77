package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// pause waits, or returns ctx's cause.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drips emits d every so often, n times, then finishes.
func drips(d model.Delta, every time.Duration, n int) model.Provider {
	return providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.Delta)) error {
		for range n {
			if err := pause(ctx, every); err != nil {
				return err
			}
			emit(d)
		}
		emit(finish)
		return nil
	})
}

func TestStallWatchCutsASilentStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		said  int
		after time.Duration
	}{
		{"before the first byte", 0, 60 * time.Second},
		{"in the middle", 3, 63 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.Delta)) error {
					for range tt.said {
						if err := pause(ctx, time.Second); err != nil {
							return err
						}
						emit(text(0, "a"))
					}
					<-ctx.Done()
					return errors.New("read on closed body") // as an adapter may
				})
				begin := time.Now()
				err := model.StallWatch(p, 0).Stream(t.Context(), &model.Request{Model: "m-1"}, func(model.Delta) {})
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != model.ErrStalled || !e.Temporary() || !strings.Contains(e.Error(), "m-1 for 1m0s") {
					t.Errorf("error %v, want a stall", err)
				}
				if took := time.Since(begin); took != tt.after {
					t.Errorf("cut after %s, want %s", took, tt.after)
				}
			})
		})
	}
}

func TestStallWatchLeavesALivingStreamAlone(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]model.Delta{"text": text(0, "a"), "pings": {Kind: model.DeltaPing}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				err := model.StallWatch(drips(d, 59*time.Second, 100), 0).Stream(t.Context(), &model.Request{}, func(model.Delta) { n++ })
				if err != nil || n != 101 {
					t.Errorf("%d deltas, error %v; want 101 and none", n, err)
				}
			})
		})
	}
}

func TestStallWatchDoesNotBlameTheProviderForASlowReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := model.StallWatch(drips(text(0, "a"), 30*time.Second, 3), time.Minute).Stream(t.Context(), &model.Request{}, func(model.Delta) {
			if err := pause(t.Context(), 10*time.Minute); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestStallWatchPassesEndsOn(t *testing.T) {
	t.Parallel()
	own := fails(model.ErrAuth)
	p := &plays{attempts: []attempt{{nil, own}}}
	if err := model.StallWatch(p, 0).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != error(own) {
		t.Errorf("error %v, want the provider's", err)
	}
	synctest.Test(t, func(t *testing.T) {
		interrupted := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(interrupted) })
		if err := model.StallWatch(drips(text(0, "a"), time.Hour, 1), 0).Stream(ctx, &model.Request{}, func(model.Delta) {}); err != interrupted {
			t.Errorf("error %v, want %v", err, interrupted)
		}
	})
}

func TestStallWatchKeepsAnAnswerThatFinishedAfterAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.Delta)) error {
			<-ctx.Done()
			emit(finish)
			return nil
		})
		if err := model.StallWatch(p, 0).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != nil {
			t.Error(err)
		}
	})
}

func TestStallWatchCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if err := model.StallWatch(drips(text(0, "a"), 24*time.Hour, 2), -1).Stream(t.Context(), &model.Request{}, func(model.Delta) {}); err != nil {
			t.Error(err)
		}
	})
}

func TestStallWatchEndsItsWatchWhenTheProviderPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		p := providerFunc(func(context.Context, *model.Request, func(model.Delta)) error { panic("bug") })
		_ = model.StallWatch(p, 0).Stream(t.Context(), &model.Request{}, func(model.Delta) {})
	})
}

// A stalled stream is retried, its text is not repeated, and the third stall in
// a row is the end.
func TestStalledStreamIsRetriedWithoutRepeatingText(t *testing.T) {
	t.Parallel()
	stalls := func(times int) model.Provider {
		n := 0
		return providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.Delta)) error {
			n++
			emit(text(0, "Half a "))
			if n <= times {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			emit(text(0, "sentence."))
			emit(finish)
			return nil
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var r receiver
		if err := model.Retry(model.StallWatch(stalls(2), 0), model.RetryOptions{}).Stream(t.Context(), &model.Request{}, r.emit); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.log, " "); got != "0:Half a  retry retry 0:sentence. finish" {
			t.Errorf("deltas %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		err := model.Retry(model.StallWatch(stalls(3), 0), model.RetryOptions{}).Stream(t.Context(), &model.Request{}, func(model.Delta) {})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.ErrStalled {
			t.Errorf("error %v, want a stall", err)
		}
	})
}

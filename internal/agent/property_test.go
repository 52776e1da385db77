package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// endless is a model that calls a tool once and then answers, however often it
// is asked.
type endless struct {
	mu sync.Mutex
	n  int
}

func (m *endless) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	m.mu.Lock()
	m.n++
	id := fmt.Sprintf("t%d", m.n)
	m.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(req.Messages) > 0 && answersCalls(req.Messages[len(req.Messages)-1]) {
		return says("done")(ctx, req, emit)
	}
	return calls(call{"look", id, `{}`}, call{"change", id + "b", `{}`})(ctx, req, emit)
}

// Whatever is submitted, interrupted, cancelled, cleared and continued, and
// whenever: each input has one result, or was cancelled, or was only appended.
func TestEveryInputHasOneFate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := new(endless)
		c := New(Config{
			SessionID: "s", Tools: tools.NewRegistry(echo("look", policy.ClassRead), echo("change", policy.ClassEdit)),
			Policy: policy.NewEngine(nil), Mode: policy.ModeYolo,
			Resolve: func(string) (Model, error) { return Model{Provider: m}, nil },
		})
		var mu sync.Mutex
		results, appended, cancelled := map[string]int{}, map[string]int{}, map[string]int{}
		var ran sync.WaitGroup
		ran.Go(func() {
			c.Run(context.Background(), func(_ context.Context, _ Origin, e Event) {
				mu.Lock()
				defer mu.Unlock()
				switch e := e.(type) {
				case *TurnEnded:
					results[e.Result.InputUUID]++
				case *Appended:
					appended[e.Input.UUID]++
				}
			})
		})
		turns, lines, continued := map[string]bool{}, map[string]bool{}, 0
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := fmt.Sprintf("u%d", i)
			in := Input{UUID: id, Blocks: []model.Block{model.Text{Text: id}}}
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				in.AppendOnly = true
				lines[id] = c.Submit(in)
			case 1:
				c.Interrupt(ErrInterrupted, false)
			case 2:
				_, gone := c.Interrupt(ErrInterrupted, true)
				mu.Lock()
				for _, id := range gone {
					cancelled[id]++
				}
				mu.Unlock()
			case 3:
				c.Clear()
			case 4:
				if accepted, _ := continueLast(c); accepted {
					continued++
				}
			case 5:
				c.SetMode(policy.ModePlan)
			default:
				turns[id] = c.Submit(in)
			}
		}
		c.CloseInput()
		ran.Wait()
		for id := range turns {
			if results[id]+cancelled[id] != 1 {
				t.Fatalf("%s has %d results and was cancelled %d times", id, results[id], cancelled[id])
			}
			delete(results, id)
			delete(cancelled, id)
		}
		for id := range lines {
			if appended[id]+cancelled[id] != 1 || results[id] != 0 {
				t.Fatalf("%s was appended %d times and cancelled %d times", id, appended[id], cancelled[id])
			}
			delete(cancelled, id)
		}
		for _, n := range results {
			continued -= n
		}
		for _, n := range cancelled {
			continued -= n
		}
		if continued != 0 {
			t.Fatalf("%d continued turns have no fate, or two", continued)
		}
		for i, msg := range c.history {
			if len(toolUses(msg)) > 0 && (i+1 == len(c.history) || !answersCalls(c.history[i+1])) {
				t.Fatalf("the calls of message %d are not answered", i)
			}
		}
	})
}

package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
)

// longHistory is a history of n turns with a tool call each.
func longHistory(n int) []*model.Message {
	var h []*model.Message
	for i := range n {
		id := "t" + strconv.Itoa(i)
		h = append(h,
			&model.Message{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: "do it"}}},
			&model.Message{Role: model.RoleAssistant, Blocks: []model.Block{model.ToolUse{ID: id, Name: "look", Input: []byte(`{}`)}}},
			&model.Message{Role: model.RoleUser, Blocks: []model.Block{model.ToolResult{ToolUseID: id, Blocks: []model.Block{model.Text{Text: "seen"}}}}},
			&model.Message{Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: "done"}}})
	}
	return h
}

// unsynced is a transcript on disk that is not made durable.
type unsynced struct{ *transcript.Writer }

func (unsynced) Sync() error { return nil }

// runTurns runs n turns with one tool call each behind a history of so many,
// with begin called once all is set up.
func runTurns(tb testing.TB, behind, n int, begin func()) {
	w, err := transcript.New(transcript.Options{Path: filepath.Join(tb.TempDir(), "t.jsonl"), SessionID: "s"})
	if err != nil {
		tb.Fatal(err)
	}
	defer w.Close()
	m := new(fakeModel)
	c := New(Config{
		SessionID: "s", Tools: tools.NewRegistry(echo("look", policy.ClassRead), NewToolSearch()), Policy: policy.NewEngine(nil),
		Mode: policy.ModeDefault, History: longHistory(behind), Transcript: unsynced{w},
		Resolve: func(string) (Model, error) { return Model{Provider: m}, nil },
	})
	for i := range n {
		m.replies = append(m.replies, calls(call{"look", "u" + strconv.Itoa(i), `{}`}), says("done"))
		c.Submit(Input{UUID: strconv.Itoa(i), Blocks: []model.Block{model.Text{Text: "do it"}}})
	}
	c.CloseInput()
	begin()
	c.Run(context.Background(), func(context.Context, Origin, Event) {})
}

// BenchmarkTurn is our own time of a turn: it must not grow with the history.
func BenchmarkTurn(b *testing.B) {
	for _, behind := range []int{0, 20, 2000} {
		b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) {
			b.ReportAllocs()
			runTurns(b, behind, b.N, b.ResetTimer)
		})
	}
}

// It is not parallel: what other tests allocate would count.
func TestATurnCostsTheSameHoweverLongTheHistory(t *testing.T) {
	cost := func(behind int) uint64 {
		var before, after runtime.MemStats
		runTurns(t, behind, 20, func() { runtime.ReadMemStats(&before) })
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(0) // what is made once
	short, long := cost(1), cost(4000)
	if long > 2*short+200_000 { // the history itself is moved once
		t.Errorf("20 turns took %d bytes behind a short history and %d behind a long one", short, long)
	}
}

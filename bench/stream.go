package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// deltaCounts are the lengths of the streams.
var deltaCounts = []int{1_000, 5_000, 20_000, 100_000}

// mainCount is the length at which program and floor are compared.
const mainCount = 20_000

func streamPrompt(n int) string { return fmt.Sprintf("stream %d", n) }

func (b *bench) streamSpecs(p provider, n int) (ours, floor testkit.Spec) {
	return b.prompt(p, streamPrompt(n), "--include-partial-messages"),
		b.spec(b.floor("stream"), b.env, p.name, b.url, streamPrompt(n))
}

// stream compares 20,000 deltas with partial messages. It also shows how many
// lines they made, for deltas are joined when their reader lags behind, and how
// long the server takes when nothing decodes what it sends.
func stream(b *bench) ([]row, error) {
	var rows []row
	for _, p := range providers {
		var wall, cpu, floorWall, floorCPU, server []time.Duration
		var lines, floorLines []int64
		ours, floor := b.streamSpecs(p, mainCount)
		drain := floor
		drain.Args = append(slices.Clone(floor.Args), "drain")
		err := pair(b.runs(11), ours, floor, func(a, f sample) error {
			wall, floorWall = append(wall, a.Wall), append(floorWall, f.Wall)
			cpu, floorCPU = append(cpu, a.CPU), append(floorCPU, f.CPU)
			lines, floorLines = append(lines, int64(len(a.proc.Lines()))), append(floorLines, int64(len(f.proc.Lines())))
			d, err := finish(drain)
			server = append(server, d.Wall)
			return errors.Join(err, whole(a.proc, mainCount))
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			against("20,000 deltas, wall, "+p.name, wall, floorWall, 1.5),
			against("20,000 deltas, CPU, "+p.name, cpu, floorCPU, 3),
			row{name: "  lines that they made; the server alone", figure: fmt.Sprint(median(lines)), floor: fmt.Sprint(median(floorLines)), ratio: ms(median(server))})
	}
	return rows, nil
}

// linear compares what a delta costs in short and in long streams. It is a slope
// between few points, so the lengths take turns, and of each the best run counts:
// what else the machine does only adds.
func linear(b *bench) ([]row, error) {
	var rows []row
	for _, p := range providers {
		ours, floor := map[int]time.Duration{}, map[int]time.Duration{}
		for range b.runs(5) {
			for _, n := range deltaCounts {
				a, f := b.streamSpecs(p, n)
				err := pair(1, a, f, func(a, f sample) error {
					ours[n], floor[n] = least(ours[n], a.CPU), least(floor[n], f.CPU)
					return nil
				})
				if err != nil {
					return nil, err
				}
			}
		}
		early, late := perDelta(ours, 1_000, 20_000), perDelta(ours, 20_000, 100_000)
		rows = append(rows, row{
			name:   "CPU per delta to 20,000, to 100,000, " + p.name,
			figure: fmt.Sprintf("%.2f us %.2f us", early, late),
			floor:  fmt.Sprintf("%.2f %.2f", perDelta(floor, 1_000, 20_000), perDelta(floor, 20_000, 100_000)),
			ratio:  fmt.Sprintf("%.2f", late/early), target: "<= 1.5", verdict: judge(late <= 1.5*early),
		})
	}
	return rows, nil
}

// least is the smaller one of what was measured; 0: nothing was.
func least(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// perDelta is the slope between two lengths, in microseconds.
func perDelta(at map[int]time.Duration, from, to int) float64 {
	return float64(at[to]-at[from]) / float64(to-from) / 1e3
}

// slowReader reads the output slowly and demands all of it.
func slowReader(b *bench) ([]row, error) {
	n, good := b.runs(20), 0
	var first error
	for begin := 0; begin < n; begin += 4 { // a few at a time: they mostly wait
		size := min(4, n-begin)
		results := make(chan error, size)
		for i := range size {
			go func() { results <- b.slowRun(providers[(begin+i)%len(providers)]) }() // received below
		}
		for range size {
			if err := <-results; err == nil {
				good++
			} else if first == nil {
				first = err
			}
		}
	}
	r := row{
		name: "20,000 deltas whole on a slow pipe", figure: fmt.Sprintf("%d of %d", good, n),
		target: "all", verdict: judge(good == n),
	}
	if first != nil {
		r.ratio = first.Error()
	}
	return []row{r}, nil
}

func (b *bench) slowRun(p provider) error {
	s, _ := b.streamSpecs(p, mainCount)
	s.NoRead = true
	proc, err := testkit.Start(s)
	if err != nil {
		return err
	}
	proc.Read(2 << 20)
	exit, err := proc.Wait(limit)
	switch {
	case err != nil:
		return err
	case exit.Code != 0:
		return fmt.Errorf("exit code %d", exit.Code)
	}
	return whole(proc, mainCount)
}

// whole demands that the output is: each line a frame, in order, with all the
// text in the pieces, and a result at the end.
func whole(proc *testkit.Proc, n int) error {
	if out := proc.Lines(); len(out) == 0 || !bytes.Contains(out[len(out)-1].Text, []byte(`"type":"result"`)) {
		return fmt.Errorf("no result at the end of %d lines", len(out))
	}
	frames, err := proc.Frames()
	if err != nil {
		return err
	}
	if err := testkit.CheckTurns(frames); err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range frames {
		text.WriteString(f.String("event.delta.text"))
	}
	if text.String() != strings.Repeat("word ", n) {
		return fmt.Errorf("the pieces have %d bytes of %d", text.Len(), n*len("word "))
	}
	return nil
}

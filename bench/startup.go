package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// version compares --version with a bare Go process.
func version(b *bench) ([]row, error) {
	var wall, cpu, floorWall, floorCPU []time.Duration
	err := pair(b.runs(50), b.spec(b.agent, b.env, "--version"), b.spec(b.floor("hello"), b.env), func(a, f sample) error {
		wall, floorWall = append(wall, a.Wall), append(floorWall, f.Wall)
		cpu, floorCPU = append(cpu, a.CPU), append(floorCPU, f.CPU)
		return nil
	})
	return []row{
		against("--version, wall", wall, floorWall, 5),
		against("--version, CPU", cpu, floorCPU, 5),
	}, err
}

// firstRequest compares the time from the spawn to the arrival of the first
// model request.
func firstRequest(b *bench) ([]row, error) {
	var rows []row
	for _, p := range providers {
		if err := b.log.skip(); err != nil {
			return nil, err
		}
		var ours, floor []time.Duration
		floorSpec := b.spec(b.floor("stream"), b.env, p.name, b.url, "hi")
		err := pair(b.runs(25), b.prompt(p, "hi"), floorSpec, func(a, f sample) error {
			list, err := b.log.next(2)
			if err != nil {
				return err
			}
			last := list[len(list)-2:]
			ours, floor = append(ours, last[0].Time.Sub(a.began)), append(floor, last[1].Time.Sub(f.began))
			return nil
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, against("spawn to first model request, "+p.name, ours, floor, 4))
	}
	return rows, nil
}

// control measures round trips of control lines over stdin, beside a bare echo.
// What the answer says does not matter: each request gets one.
func control(b *bench) ([]row, error) {
	p := providers[0]
	ours := b.spec(b.agent, slices.Concat(b.env, p.env(b.url)), "--model", p.model, "--input-format", "stream-json", "--output-format", "stream-json")
	n := b.runs(1000)
	trips, err := roundTrips(ours, n)
	if err != nil {
		return nil, err
	}
	floor, err := roundTrips(b.spec(b.floor("echo"), b.env), n)
	r := against("control line over stdin and back", trips, floor, 0)
	r.figure = fmt.Sprintf("%.1f us", float64(median(trips))/1e3)
	r.floor = fmt.Sprintf("%.1f us", float64(median(floor))/1e3)
	return []row{r}, err
}

// roundTrips sends n lines, each after the answer to the one before.
func roundTrips(s testkit.Spec, n int) ([]time.Duration, error) {
	s.HoldStdin = true
	proc, err := testkit.Start(s)
	if err != nil {
		return nil, err
	}
	var out []time.Duration
	any := func(testkit.Line) bool { return true }
	for i, at := 0, 0; i < n; i++ {
		begin := time.Now()
		line := fmt.Sprintf(`{"type":"control_request","request_id":"r%d","request":{"subtype":"supported_commands"}}`, i)
		if err := proc.Send(line); err != nil {
			return nil, err
		}
		if _, at, err = proc.Await(at, limit, any); err != nil {
			return nil, fmt.Errorf("%w: %s", err, proc.Stderr())
		}
		out = append(out, time.Since(begin))
	}
	proc.CloseStdin()
	_, err = proc.Wait(limit)
	return out, err
}

// size looks at the binary.
func size(b *bench) ([]row, error) {
	st, err := os.Stat(b.agent)
	if err != nil {
		return nil, err
	}
	return []row{{name: "size of the binary", figure: mb(st.Size()), target: "<= 45 MB", verdict: judge(st.Size() <= 45e6)}}, nil
}

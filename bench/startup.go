package main

import (
	"os"
	"time"
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

// size looks at the binary.
func size(b *bench) ([]row, error) {
	st, err := os.Stat(b.agent)
	if err != nil {
		return nil, err
	}
	return []row{{name: "size of the binary", figure: mb(st.Size()), target: "<= 45 MB", verdict: judge(st.Size() <= 45e6)}}, nil
}

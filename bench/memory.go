package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// memory is the peak of one headless turn.
func memory(b *bench) ([]row, error) {
	var rows []row
	for _, p := range providers {
		var ours, floor []int64
		err := pair(b.runs(5), b.prompt(p, "hi", "--include-partial-messages"), b.spec(b.floor("stream"), b.env, p.name, b.url, "hi"), func(a, f sample) error {
			ours, floor = append(ours, a.MaxRSS), append(floor, f.MaxRSS)
			return nil
		})
		if err != nil {
			return nil, err
		}
		m := median(ours)
		rows = append(rows, row{
			name: "peak memory of one headless turn, " + p.name, figure: mb(m), floor: mb(median(floor)),
			ratio: fmt.Sprintf("%.2f", float64(m)/float64(median(floor))), target: "<= 40 MB", verdict: judge(m <= 40e6),
		})
	}
	return rows, nil
}

// together is how many runs many makes at once.
const together = 8

// many runs several prompts at once, and samples their memory.
func many(b *bench) ([]row, error) {
	p := providers[0]
	var ours, floor []time.Duration
	var peaks, floorPeaks []int64
	for range b.runs(5) {
		wall, peak, err := crowd(b.prompt(p, "hi"))
		if err != nil {
			return nil, err
		}
		ours, peaks = append(ours, wall), append(peaks, peak)
		if wall, peak, err = crowd(b.spec(b.floor("stream"), b.env, p.name, b.url, "hi")); err != nil {
			return nil, err
		}
		floor, floorPeaks = append(floor, wall), append(floorPeaks, peak)
	}
	wall := against(fmt.Sprintf("%d headless prompts at once, wall", together), ours, floor, 0)
	rss := row{
		name: fmt.Sprintf("%d headless prompts at once, memory of all", together), figure: mb(median(peaks)), floor: mb(median(floorPeaks)),
		ratio: fmt.Sprintf("%.2f", float64(median(peaks))/float64(median(floorPeaks))),
	}
	return []row{wall, rss}, nil
}

// crowd runs s several times at once and returns the time until the last has
// ended and the most memory that all their process trees held at one time.
func crowd(s testkit.Spec) (time.Duration, int64, error) {
	begin := time.Now()
	var procs []*testkit.Proc
	for range together {
		p, err := testkit.Start(s)
		if err != nil {
			return 0, 0, err
		}
		procs = append(procs, p)
	}
	stop, peak := make(chan struct{}), make(chan int64)
	go func() { peak <- watch(procs, stop) }() // ends with stop
	var failed error
	for _, p := range procs {
		exit, err := p.Wait(limit)
		if err == nil {
			err = sample{proc: p, Exit: exit}.check(s)
		}
		if err != nil {
			failed = err
		}
	}
	wall := time.Since(begin)
	close(stop)
	return wall, <-peak, failed
}

// watch samples the memory of process trees until stop and returns the peak.
func watch(procs []*testkit.Proc, stop <-chan struct{}) int64 {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var all []int64
	for {
		var sum int64
		for _, p := range procs {
			sum += testkit.TreeRSS(p.PID())
		}
		all = append(all, sum)
		select {
		case <-tick.C:
		case <-stop:
			return slices.Max(all)
		}
	}
}

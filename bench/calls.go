package main

import (
	"fmt"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// gaps are the times of one run between the end of an answer and the next
// request: all that the program does for a call, the tool included.
type gaps struct {
	all         []time.Duration
	bytes       int // of the last request
	first, last time.Duration
}

func (b *bench) gapsOf(s testkit.Spec, n int) (gaps, error) {
	if err := b.log.skip(); err != nil {
		return gaps{}, err
	}
	if _, err := finish(s); err != nil {
		return gaps{}, err
	}
	list, err := b.log.next(n + 1)
	if err != nil {
		return gaps{}, err
	}
	if len(list) != n+1 {
		return gaps{}, fmt.Errorf("%d requests instead of %d", len(list), n+1)
	}
	var g gaps
	for i := range n {
		g.all = append(g.all, list[i+1].Time.Sub(list[i].end()))
	}
	g.bytes = list[n].Bytes
	tenth := max(n/10, 1)
	g.first, g.last = median(g.all[:tenth]), median(g.all[n-tenth:])
	return g, nil
}

// calls measures sequential calls of read_file.
func calls(b *bench) ([]row, error) {
	var rows []row
	floorSpec := b.spec(b.floor("calls"), b.env, b.url, "read")
	for _, p := range providers {
		ours, floor, err := b.callSeries(b.runs(7), b.prompt(p, "read"), floorSpec, readCalls)
		if err != nil {
			return nil, err
		}
		each := against("time per call of 100 read_file, "+p.name, ours.all, floor.all, 0)
		each.target, each.verdict = "<= 1 ms", judge(median(ours.all) <= time.Millisecond)
		growth := row{
			name:   "  first 10 % and last 10 % of them",
			figure: ms(median(ours.first)) + " " + ms(median(ours.last)),
			floor:  fmt.Sprintf("%.2f %.2f", millis(floor.first), millis(floor.last)),
		}
		// What grows is the request: twice what that costs the floor is
		// allowed, and 0.2 ms, which is less than two runs differ by.
		grown := median(ours.last) - median(ours.first)
		allowed := 2*max(median(floor.last)-median(floor.first), 0) + 200*time.Microsecond
		growth.ratio = fmt.Sprintf("%+.2f ms", float64(grown)/1e6)
		growth.target, growth.verdict = fmt.Sprintf("<= %+.2f ms", float64(allowed)/1e6), judge(grown <= allowed)
		rows = append(rows, each, growth)
	}
	return rows, nil
}

func millis(list []time.Duration) float64 { return float64(median(list)) / 1e6 }

// series collects the gaps of several runs.
type series struct{ all, first, last []time.Duration }

func (s *series) add(g gaps) {
	s.all = append(s.all, median(g.all))
	s.first, s.last = append(s.first, g.first), append(s.last, g.last)
}

func (b *bench) callSeries(runs int, ours, floor testkit.Spec, n int) (a, f series, err error) {
	for range runs {
		g, err := b.gapsOf(ours, n)
		if err != nil {
			return a, f, err
		}
		a.add(g)
		if floor.Path == "" {
			continue
		}
		if g, err = b.gapsOf(floor, n); err != nil {
			return a, f, err
		}
		f.add(g)
	}
	return a, f, nil
}

// shell measures sequential calls of run_shell_command, the start of bash
// included, which is the floor.
func shell(b *bench) ([]row, error) {
	ours, _, err := b.callSeries(b.runs(7), b.prompt(providers[0], "shell"), testkit.Spec{}, shellCalls)
	if err != nil {
		return nil, err
	}
	var bash []time.Duration
	for range b.runs(40) {
		s, err := finish(b.spec("/bin/bash", b.env, "--noprofile", "--norc", "-c", "true"))
		if err != nil {
			return nil, err
		}
		bash = append(bash, s.Wall)
	}
	each := against("time per call of 20 run_shell_command", ours.all, bash, 0)
	each.target, each.verdict = "<= 5 ms", judge(median(ours.all) <= 5*time.Millisecond)
	return []row{each}, nil
}

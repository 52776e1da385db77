// Command bench measures the program from outside, side by side with floor
// programs that do the least that the same job takes, and prints one table.
//
//	go run ./bench -agent PATH [-quick] [-only NAME]
//
// Runs of the program and of its floor take turns, so that whatever else the
// machine does falls on both; figures are medians, and the ratio is what
// counts. The exit status is 1 when a target is missed.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	agent := flag.String("agent", "bin/agent", "the program to measure")
	quick := flag.Bool("quick", false, "fewer runs: a look, not a figure to quote")
	only := flag.String("only", "", "only the measures whose name begins with this: "+strings.Join(names(), ", "))
	flag.Parse()
	missed, err := run(*agent, *quick, *only)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(2)
	case missed > 0:
		fmt.Printf("\n%d targets missed\n", missed)
		os.Exit(1)
	}
}

// measures are all there are, in order. Memory comes first: the peak that the
// system reports for a small child is at least the driver's own.
var measures = []struct {
	name string
	run  func(*bench) ([]row, error)
}{
	{"memory", memory},
	{"size", size},
	{"version", version},
	{"request", firstRequest},
	{"initialize", initialize},
	{"control", control},
	{"turns", turns},
	{"calls", calls},
	{"shell", shell},
	{"stream", stream},
	{"linear", linear},
	{"slow", slowReader},
	{"many", many},
}

func names() []string {
	var out []string
	for _, m := range measures {
		out = append(out, m.name)
	}
	return out
}

// run makes the measures and returns how many targets were missed.
func run(agent string, quick bool, only string) (missed int, err error) {
	agent, err = filepath.Abs(agent)
	if err != nil {
		return 0, err
	}
	b, err := newBench(agent, quick)
	if err != nil {
		return 0, err
	}
	defer b.close()
	stop := b.closeOnSignal()
	defer stop()
	t := newTable(os.Stdout)
	for _, m := range measures {
		if !strings.HasPrefix(m.name, only) {
			continue
		}
		rows, err := m.run(b)
		if err != nil {
			return missed, fmt.Errorf("%s: %w", m.name, err)
		}
		for _, r := range rows {
			t.print(r)
			if r.verdict == miss {
				missed++
			}
		}
	}
	return missed, nil
}

// closeOnSignal tidies up when the driver is interrupted.
func (b *bench) closeOnSignal() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { // ends with stop, or the process
		select {
		case <-signals:
			b.close()
			os.Exit(130)
		case <-done:
		}
	}()
	return func() { close(done) }
}

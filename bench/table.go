package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// row is one line of the table.
type row struct {
	name, figure, floor, ratio, target string
	verdict                            verdict
}

type verdict string

const (
	ok   verdict = "ok"
	miss verdict = "MISS"
	info verdict = "" // no target
)

// judge is ok if held.
func judge(held bool) verdict {
	if held {
		return ok
	}
	return miss
}

type table struct{ w io.Writer }

const columns = "%-44s %22s %14s %8s %12s %s\n"

func newTable(w io.Writer) *table {
	fmt.Fprintf(w, columns, "measure (medians)", "figure", "floor", "ratio", "target", "")
	return &table{w}
}

func (t *table) print(r row) {
	fmt.Fprintf(t.w, columns, r.name, r.figure, r.floor, r.ratio, r.target, r.verdict)
}

// against compares the medians of two series of durations.
func against(name string, ours, floor []time.Duration, limit float64) row {
	a, b := median(ours), median(floor)
	ratio := float64(a) / float64(b)
	r := row{name: name, figure: ms(a), floor: ms(b), ratio: fmt.Sprintf("%.2f", ratio)}
	if limit > 0 {
		r.target, r.verdict = fmt.Sprintf("<= %gx", limit), judge(ratio <= limit)
	}
	return r
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// median returns the middle of list, 0 of an empty one.
func median[T time.Duration | int64](list []T) T { return percentile(list, 50) }

// percentile returns the value that percent of list lie below, 0 of an empty
// one.
func percentile[T time.Duration | int64](list []T, percent int) T {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

package policy

import "fmt"

// nearest returns words that point at the known name most like an unknown one;
// "" if none is.
func nearest(name string, known []string) string {
	best, least := "", 4
	for _, k := range known {
		if d := EditDistance(name, k); d < least && d < len(name) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// EditDistance is the number of bytes to put in, take out or change to get from
// a to b (Levenshtein's).
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			cost := diagonal
			if a[i] != b[k] {
				cost++
			}
			diagonal = row[k+1]
			row[k+1] = min(cost, row[k]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

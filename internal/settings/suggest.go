package settings

import (
	"strings"
)

// unknown is the message for a path that leads to no key, with the nearest
// one.
func unknown(table []Key, path []string) string {
	const text = "no such setting"
	if len(path) == 1 {
		if key, _ := matchKey(table, strings.Split(path[0], ".")); key != nil {
			return text + "; write it nested, as " + nested(strings.Split(path[0], "."))
		}
	}
	if best := nearest(table, path); best != "" {
		return text + "; did you mean " + best + "?"
	}
	return text
}

// nested returns {"a": {"b": ...}} for a path.
func nested(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteString(`{"` + step + `": `)
	}
	return b.String() + "..." + strings.Repeat("}", len(path))
}

// nearest returns the name of the key that path most likely means, or "". It
// compares whole names, and last steps for a key put into the wrong object.
func nearest(table []Key, path []string) string {
	given := strings.ToLower(strings.Join(path, "."))
	last := path[len(path)-1]
	if i := strings.LastIndexByte(last, '.'); i >= 0 {
		last = last[i+1:]
	}
	last = strings.ToLower(last)
	best, bestDistance := "", 1<<30
	for i := range table {
		name := strings.ToLower(table[i].Name)
		if len(path) > 1 && path[0] == "providers" {
			name = strings.Replace(name, "<name>", strings.ToLower(path[1]), 1)
		}
		d := distance(given, name)
		if d > limit(given) {
			tail := name[strings.LastIndexByte(name, '.')+1:]
			if d = distance(last, tail); d > limit(last) {
				continue
			}
			d += 3 // behind those whose whole name is near
		}
		if d < bestDistance {
			best, bestDistance = table[i].Name, d
		}
	}
	return best
}

// limit is how many edits a typo of s may have.
func limit(s string) int { return min(3, len(s)/4+1) }

// distance counts the edits (insert, delete, replace, swap of neighbours) from
// a to b; strings of very different length count as far apart.
func distance(a, b string) int {
	const far = 1 << 20
	if len(a) > 100 || len(b) > 100 || len(a)-len(b) > 4 || len(b)-len(a) > 4 {
		return far
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}

package tools

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// nearNames suggests, for a file that doesn't exist, what may have been meant:
// ": did you mean ...?", or what is wrong with its directory. It is empty when
// there is nothing to suggest, and for a granted path, whose neighbours were
// not granted.
func nearNames(p Place) string {
	if p.granted() {
		return ""
	}
	dir, err := p.openDir(filepath.Dir(p.rel), false)
	if err != nil {
		return " (its directory does not exist either)"
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return ""
	}
	defer f.Close()
	entries, err := f.ReadDir(5000)
	if err != nil {
		return ""
	}
	want := filepath.Base(p.rel)
	var near []string
	for _, e := range entries {
		if likeName(want, e.Name()) {
			near = append(near, filepath.Join(filepath.Dir(p.Named), e.Name()))
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.Sort(near)
	return ". Did you mean " + strings.Join(near[:min(len(near), 3)], " or ") + "?"
}

// likeName reports whether have may be what was meant by want: the same but
// for case, extension or a slip or two.
func likeName(want, have string) bool {
	w, h := strings.ToLower(want), strings.ToLower(have)
	if w == h {
		return true
	}
	stem := func(s string) string { return strings.TrimSuffix(s, filepath.Ext(s)) }
	if stem(w) != "" && stem(w) == stem(h) {
		return true
	}
	return len(w) > 3 && distanceWithin(w, h, 1+len(w)/8)
}

// distanceWithin reports whether at most limit insertions, deletions and
// replacements make b of a.
func distanceWithin(a, b string, limit int) bool {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return false
	}
	return policy.EditDistance(a, b) <= limit
}

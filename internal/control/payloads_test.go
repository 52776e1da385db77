package control

import (
	"slices"
	"testing"
)

// TestPayloadsAreComplete: what is routed is in the list, and nothing else.
func TestPayloadsAreComplete(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, p := range Payloads() {
		if !p.FromProgram && !slices.Contains(listed, p.Subtype) {
			listed = append(listed, p.Subtype)
		}
		if p.Does == "" {
			t.Errorf("%s has no description", p.Subtype)
		}
	}
	if !slices.Equal(listed, subtypes[:]) {
		t.Errorf("listed are %v, routed %v", listed, subtypes)
	}
}

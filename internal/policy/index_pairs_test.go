package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzWithin compares within with a search for each key.
func FuzzWithin(f *testing.F) {
	f.Add("/src/main.go\n/etc/passwd", "main.go,/etc,,x,\xff")
	f.Add("", ",a")
	f.Fuzz(func(t *testing.T, text, list string) {
		var keys []key
		var all, want []int32
		for i, k := range strings.Split(list, ",") {
			keys, all = append(keys, newKey(k)), append(all, int32(i))
			if text == anyText || strings.Contains(text, k) {
				want = append(want, int32(i))
			}
		}
		if got := within(all, keys, text); !slices.Equal(got, want) {
			t.Error(fmt.Sprint(got, want))
		}
	})
}

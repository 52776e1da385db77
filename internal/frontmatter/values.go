package frontmatter

import (
	"fmt"
	"strings"
)

// List is a list of words, written as a YAML list or as one text with commas
// between them. A comma within parentheses separates nothing: "Bash(a, b)" is
// one word.
type List []string

// UnmarshalYAML accepts both forms.
func (l *List) UnmarshalYAML(decode func(any) error) error {
	var items []string
	if decode(&items) == nil {
		*l = items
		return nil
	}
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	*l = splitWords(text)
	return nil
}

func splitWords(text string) []string {
	var words []string
	depth, start := 0, 0
	add := func(word string) {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			add(text[start:i])
			start = i + 1
		}
	}
	add(text[start:])
	return words
}

// Text is one text. What YAML takes for a list, such as the [file] of an
// argument hint, is put back into its brackets.
type Text string

// UnmarshalYAML accepts a text, a number or a list of them.
func (t *Text) UnmarshalYAML(decode func(any) error) error {
	var text string
	if decode(&text) == nil {
		*t = Text(text)
		return nil
	}
	var items []any
	if err := decode(&items); err != nil {
		return err
	}
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = fmt.Sprint(item)
	}
	*t = Text("[" + strings.Join(words, ", ") + "]")
	return nil
}

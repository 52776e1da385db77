// Package frontmatter reads markdown files that begin with settings in YAML,
// as files for commands and agents do:
//
//	---
//	description: Reviews a change
//	tools: read_file, glob
//	---
//	The text.
//
// Such files often come from strangers, and are often not quite YAML.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxSize bounds the settings of one file, in bytes; the text after them may be
// longer.
const MaxSize = 64 << 10

// Error says what is wrong with the settings of a file, and where.
type Error struct {
	Line int // of the file, from 1
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

var byteOrderMark = []byte("\xef\xbb\xbf")

// Parse sets v, a pointer to a struct with yaml tags, from the settings at the
// beginning of data, and returns the text after them. Unknown keys are ignored.
// Without settings v stays as it is, and the text is all of data. A byte order
// mark is dropped, and lines that end in CRLF are taken as lines; those of the
// text stay so.
//
// A value at the top level that is no YAML, such as
//
//	description: Use it so: like this
//	argument-hint: [file] [line]
//
// is taken as it is written. Any other error is an *Error.
func Parse(data []byte, v any) (body string, err error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	meta, body, ok, err := split(data)
	if err != nil || !ok {
		return body, err
	}
	err = load(meta, v)
	if err != nil {
		if mended := mend(meta); !bytes.Equal(mended, meta) && load(mended, v) == nil {
			err = nil
		}
	}
	if err != nil {
		return "", located(err)
	}
	return body, nil
}

// split cuts data into settings and text; ok is false when it has no settings.
// The settings begin with an empty line, so that their lines have the numbers
// that they have in the file.
func split(data []byte) (meta []byte, body string, ok bool, err error) {
	first, rest, found := bytes.Cut(data, []byte{'\n'})
	if !found || !isFence(first) {
		return nil, string(data), false, nil
	}
	for at := 0; at <= len(rest) && at <= MaxSize; {
		line, _, more := bytes.Cut(rest[at:], []byte{'\n'})
		if isFence(line) {
			end := min(at+len(line)+1, len(rest))
			return append([]byte{'\n'}, rest[:at]...), string(rest[end:]), true, nil
		}
		if !more {
			return nil, "", false, &Error{Line: 1, Text: "the settings that begin with --- have no end; put a line of --- behind them"}
		}
		at += len(line) + 1
	}
	return nil, "", false, &Error{Line: 1, Text: fmt.Sprintf("the settings are longer than %d KiB, or have no end; put a line of --- behind them", MaxSize>>10)}
}

func isFence(line []byte) bool {
	return string(bytes.TrimRight(line, " \t\r")) == "---"
}

// load turns a panic of the library into an error: what it reads may be made to
// provoke one.
func load(meta []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Line: 1, Text: fmt.Sprintf("the settings cannot be read as YAML: %v", r)}
		}
	}()
	return yaml.Unmarshal(meta, v)
}

// plain is a value at the top level on the line of its key.
var plain = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*):[ \t]+([^|>&!\s].*)$`)

// mend puts quotes around the values at the top level that are no YAML.
func mend(meta []byte) []byte {
	lines := strings.Split(string(meta), "\n")
	for i, line := range lines {
		m := plain.FindStringSubmatch(strings.TrimRight(line, " \t\r"))
		if m == nil {
			continue
		}
		var any map[string]any
		if load([]byte(line), &any) != nil {
			lines[i] = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// located makes an *Error of what the library said.
func located(err error) error {
	var own *Error
	var one *yaml.LoadError
	var all *yaml.LoadErrors
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &all) && len(all.Errors) > 0:
		one = all.Errors[0]
	case errors.As(err, &one):
	default:
		return &Error{Line: 1, Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	return &Error{Line: max(one.Mark.Line, 1), Text: one.Message}
}

package streamjson

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrorKind says what is wrong with a line.
type ErrorKind string

// Kinds of a LineError.
const (
	KindMalformed    ErrorKind = "malformed"     // not JSON
	KindTruncated    ErrorKind = "truncated"     // the input ended in the middle of it
	KindTooLong      ErrorKind = "too_long"      // over the reader's limit; the rest is skipped unread
	KindTooDeep      ErrorKind = "too_deep"      // nested more than MaxDepth
	KindDuplicateKey ErrorKind = "duplicate_key" // some object has a key twice
	KindNotObject    ErrorKind = "not_object"    // JSON, but not an object
	KindMissingType  ErrorKind = "missing_type"  // no string under the key "type"
	KindInvalidField ErrorKind = "invalid_field" // a field is missing or has the wrong type
)

// LineError says that one line is not a message. The lines after it can be
// read.
type LineError struct {
	Kind ErrorKind
	Msg  string // what is wrong, for people
	// Line counts lines from 1, blank ones too, and Offset is where the line
	// begins in the input, in bytes. Both are 0 from Decode.
	Line   int
	Offset int64
	// Column is the byte of the line where the trouble is, from 1; 0 when
	// unknown.
	Column int
	// Excerpt is a piece of the line around the trouble, at most 80 bytes, one
	// printable line of valid UTF-8.
	Excerpt string
	// Type and RequestID are the line's, when they could be made out beyond
	// doubt, so that a bad request can be answered and a bad response can end
	// the wait for it.
	Type      string
	RequestID string
}

// Error implements error.
func (e *LineError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	fmt.Fprintf(&b, "%s: %s", strings.ReplaceAll(string(e.Kind), "_", " "), e.Msg)
	if e.Excerpt != "" {
		fmt.Fprintf(&b, " (near %q)", e.Excerpt)
	}
	return b.String()
}

// OptionError says that the options of a user line can't be used.
type OptionError struct {
	Key string // the option; empty when the options as a whole are wrong
	Msg string
}

// Error implements error.
func (e *OptionError) Error() string {
	if e.Key == "" {
		return "options: " + e.Msg
	}
	return fmt.Sprintf("option %q: %s", e.Key, e.Msg)
}

// fieldError is a field that is missing or wrong, found by our own checks.
type fieldError struct{ msg string }

func (e *fieldError) Error() string { return e.msg }

func badField(format string, args ...any) error {
	return &fieldError{msg: fmt.Sprintf(format, args...)}
}

// describe puts a decoding error into stable words of ours.
func describe(err error) string {
	var field *fieldError
	if errors.As(err, &field) {
		return field.msg
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		msg := "unexpected " + kindName(semantic.JSONKind)
		if semantic.GoType != nil {
			msg += ", want " + goTypeName(semantic.GoType.Kind().String())
		}
		if semantic.JSONPointer != "" {
			msg = "field " + string(semantic.JSONPointer) + ": " + msg
		}
		return msg
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err != nil {
		return syntax.Err.Error()
	}
	return err.Error()
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "list"
	}
	return "value"
}

func goTypeName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "a boolean"
	case kind == "slice":
		return "a list"
	case kind == "struct", kind == "map":
		return "an object"
	}
	return "a " + kind
}

// excerpt is a printable piece of line around the byte offset at.
func excerpt(line []byte, at int) string {
	const before, most = 20, 80
	start := min(max(at-before, 0), len(line))
	end := min(start+most, len(line))
	for start < end && !utf8.RuneStart(line[start]) {
		start++
	}
	var b strings.Builder
	for _, r := range string(line[start:end]) {
		switch {
		case b.Len()+utf8.RuneLen(r) > most:
			return b.String()
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029':
			b.WriteByte('.')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// sizeText is a number of bytes for people.
func sizeText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

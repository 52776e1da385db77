package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// input is the input of a call, decoded when it is needed.
type input struct {
	raw    json.RawMessage
	fields map[string]any
	err    error
	text   string
	done   bool
}

// object returns the fields; nil if the input is no JSON object.
func (in *input) object() map[string]any {
	if !in.done {
		in.done = true
		d := json.NewDecoder(bytes.NewReader(in.raw))
		d.UseNumber()
		if in.err = d.Decode(&in.fields); in.err == nil && d.More() {
			in.err = errTrailing
		}
		if in.err != nil {
			in.fields = nil
		}
	}
	return in.fields
}

func (in *input) str(key string) (string, bool) {
	s, ok := in.object()[key].(string)
	return s, ok
}

// stable returns the input in the one form that patterns on it are held
// against: sorted keys, no blanks, each pair of the outermost object between
// NUL bytes, so that a pattern can pin one and no text within a value can look
// like it. (gemini-cli's form.)
func (in *input) stable() string {
	if in.text == "" {
		in.text = stableJSON(in.object())
	}
	return in.text
}

// stableOf is stable with the command replaced by one part of it.
func (in *input) stableOf(l *line) string {
	command := l.whole
	if l.part != nil {
		command = l.part.Text
	}
	fields := map[string]any{}
	for k, v := range in.object() {
		fields[k] = v
	}
	fields["command"] = command
	return stableJSON(fields)
}

func stableJSON(fields map[string]any) string {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(0)
		b.Write(plainJSON(k))
		b.WriteByte(':')
		b.Write(plainJSON(fields[k]))
		b.WriteByte(0)
	}
	b.WriteByte('}')
	return b.String()
}

// plainJSON encodes a decoded value; < > & stay as they are.
func plainJSON(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil // decoded values can be encoded
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errTrailing = errors.New("there is text after the object")
	errNoObject = errors.New("it is something else")
)

// input is the input of a call, decoded as far as it is needed.
type input struct {
	raw    json.RawMessage
	values []field        // of the outermost object; nil: it is none, see err
	fields map[string]any // the same, decoded
	err    error
	text   string
	done   bool
}

// field is a key of an object with its value as it is written.
type field struct {
	key   string
	value jsontext.Value
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// read takes the outermost object apart. A key twice, or text that is not
// UTF-8, is an error: readers differ in what they make of those.
func (in *input) read() []field {
	if in.done {
		return in.values
	}
	in.done = true
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(in.raw))
	if d.PeekKind() != '{' {
		if in.err = errNoObject; len(in.raw) > 0 {
			if _, err := d.ReadValue(); err != nil {
				in.err = err
			}
		}
		return nil
	}
	values := make([]field, 0, 4)
	_, in.err = d.ReadToken()
	for in.err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		if name, in.err = d.ReadToken(); in.err != nil {
			break
		}
		key := name.String()
		var v jsontext.Value
		if v, in.err = d.ReadValue(); in.err == nil {
			end := int(d.InputOffset())
			values = append(values, field{key, jsontext.Value(in.raw[end-len(v) : end])})
		}
	}
	if in.err == nil {
		_, in.err = d.ReadToken()
	}
	if in.err == nil {
		if _, err := d.ReadToken(); err != io.EOF {
			in.err = errTrailing
		}
	}
	if in.err == nil {
		in.values = values
	}
	return in.values
}

// value returns what is written under a key; nil if nothing is.
func (in *input) value(key string) jsontext.Value {
	for _, f := range in.read() {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// object returns the fields, numbers as json.Number; nil if the input is no
// JSON object.
func (in *input) object() map[string]any {
	if in.fields == nil && in.read() != nil {
		fields := make(map[string]any, len(in.values))
		for _, f := range in.values {
			d := json.NewDecoder(bytes.NewReader(f.value))
			d.UseNumber()
			var v any
			if in.err = d.Decode(&v); in.err != nil {
				return nil
			}
			fields[f.key] = v
		}
		in.fields = fields
	}
	return in.fields
}

// str returns a text; false if there is none under that key.
func (in *input) str(key string) (string, bool) {
	raw := in.value(key)
	if raw.Kind() != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 { // read has seen that it is whole
		return string(raw[1 : len(raw)-1]), true
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	return string(s), err == nil
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
	if l.stable == "" {
		command := l.whole
		if l.part != nil {
			command = l.part.Text
		}
		l.stable = in.stableWith(command)
	}
	return l.stable
}

// stableRead is stableOf with the part as the shell would read it.
func (in *input) stableRead(l *line) string {
	if l.stableRead == "" {
		l.stableRead = in.stableWith(l.text())
	}
	return l.stableRead
}

// stableWith is stable with another command.
func (in *input) stableWith(command string) string {
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

package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/tailscale/hujson"
)

const (
	maxFileBytes = 1 << 20
	maxBrackets  = 10_000 // bounds the parser's recursion
)

type object = hujson.Object

// errNotDir is what a path beneath a file gives: nothing is there either.
var errNotDir error = syscall.ENOTDIR

// readFile reads a settings file.
func readFile(path string) ([]byte, error) { return ReadFile(path, maxFileBytes) }

// ReadFile reads a regular file of at most this many bytes: a project's may be
// made to be waited for, or to fill the memory. A larger one is an error.
func ReadFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, err
}

// reason is an error without the path, which the message has already.
func reason(err error) string {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return perr.Err.Error()
	}
	return err.Error()
}

var utf8BOM = []byte("\xef\xbb\xbf")

// document is a parsed settings file. A file without any value is an empty
// object.
type document struct {
	path string
	bom  []byte // as it was: nil or utf8BOM
	data []byte // what follows bom
	tree hujson.Value
	root *object
}

// line returns the line of an offset in data.
func (d *document) line(offset int) int { return 1 + bytes.Count(d.data[:offset], []byte("\n")) }

// parseDocument parses the content of path. The error is an [*Error] with line
// and column.
func parseDocument(path string, data []byte) (*document, error) {
	d := &document{path: path, data: data}
	if bytes.HasPrefix(data, utf8BOM) {
		d.bom, d.data = utf8BOM, data[len(utf8BOM):]
	}
	if bytes.Count(d.data, []byte("{"))+bytes.Count(d.data, []byte("[")) > maxBrackets {
		return nil, &Error{File: path, Message: "too many nested values"}
	}
	if len(bytes.TrimSpace(d.data)) == 0 {
		d.root = &object{}
		d.tree = hujson.Value{Value: d.root, AfterExtra: hujson.Extra("\n")}
		return d, nil
	}
	var err error
	if d.tree, err = hujson.Parse(d.data); err != nil {
		return nil, syntaxError(path, err)
	}
	root, ok := d.tree.Value.(*object)
	if !ok {
		return nil, &Error{File: path, Line: d.line(d.tree.StartOffset), Message: "settings must be an object, not " + kindOf(d.tree.Value)}
	}
	d.root = root
	return d, nil
}

// syntaxError takes the position out of the parser's message.
func syntaxError(path string, err error) *Error {
	e := &Error{File: path, Message: "broken settings file: " + err.Error()}
	var line, column int
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n == 2 {
		e.Line, e.Column = line, column
		if inner := errors.Unwrap(err); inner != nil {
			e.Message = "broken settings file: " + inner.Error()
		}
	}
	return e
}

// member is one name and value of an object.
type member struct {
	name   string
	offset int // of the name
	value  *hujson.Value
}

func members(obj *object) []member {
	list := make([]member, len(obj.Members))
	for i := range obj.Members {
		m := &obj.Members[i]
		list[i] = member{name: m.Name.Value.(hujson.Literal).String(), offset: m.Name.StartOffset, value: &m.Value}
	}
	return list
}

// kindOf names a JSON value as an error message does.
func kindOf(v hujson.ValueTrimmed) string {
	switch v.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	}
	return "an object"
}

// fromJSON reads a key's value out of the syntax tree. The items' origin holds
// only the offset of the value, in Line. The error continues a sentence that
// began with the key's name.
func fromJSON(key *Key, v *hujson.Value) ([]item, error) {
	wrong := func(v *hujson.Value) error {
		return fmt.Errorf("must be %s, not %s", expected(key), kindOf(v.Value))
	}
	at := func(value any, v *hujson.Value) item {
		return item{value: value, origin: Origin{Line: v.StartOffset}}
	}
	var items []item
	switch key.Type {
	case String, Int:
		scalar, ok := scalarOf(key.Type, v.Value)
		if !ok {
			return nil, wrong(v)
		}
		items = append(items, at(scalar, v))
	case StringList:
		list, ok := v.Value.(*hujson.Array)
		if !ok {
			return nil, wrong(v)
		}
		for i := range list.Elements {
			e := &list.Elements[i]
			text, ok := scalarOf(String, e.Value)
			if !ok {
				return nil, fmt.Errorf("must be %s; entry %d is %s", expected(key), i+1, kindOf(e.Value))
			}
			items = append(items, at(text, e))
		}
	case StringMap:
		obj, ok := v.Value.(*object)
		if !ok {
			return nil, wrong(v)
		}
		for _, m := range members(obj) {
			text, ok := scalarOf(String, m.value.Value)
			if !ok {
				return nil, fmt.Errorf("must be %s; %s is %s", expected(key), m.name, kindOf(m.value.Value))
			}
			it := at(text, m.value)
			it.name = m.name
			items = append(items, it)
		}
	case ObjectMap:
		obj, ok := v.Value.(*object)
		if !ok {
			return nil, wrong(v)
		}
		for _, m := range members(obj) {
			if _, ok := m.value.Value.(*object); !ok {
				return nil, fmt.Errorf("must be %s; %s is %s", expected(key), m.name, kindOf(m.value.Value))
			}
			plain := m.value.Clone()
			plain.Minimize()
			it := at(json.RawMessage(plain.Pack()), m.value)
			it.name = m.name
			items = append(items, it)
		}
	}
	return normalize(key, items)
}

// scalarOf returns a literal as a string or int.
func scalarOf(t Type, v hujson.ValueTrimmed) (any, bool) {
	lit, ok := v.(hujson.Literal)
	if !ok {
		return nil, false
	}
	switch {
	case t == String && lit.Kind() == '"':
		return lit.String(), true
	case t == Int && lit.Kind() == '0':
		var n int
		err := json.Unmarshal(lit, &n)
		return n, err == nil
	}
	return nil, false
}

// fromGo reads a key's value given as a Go value: string, int, []string or
// map[string]string.
func fromGo(key *Key, v any) ([]item, error) {
	var items []item
	ok := false
	switch v := v.(type) {
	case string:
		items, ok = []item{{value: v}}, key.Type == String
	case int:
		items, ok = []item{{value: v}}, key.Type == Int
	case []string:
		for _, s := range v {
			items = append(items, item{value: s})
		}
		ok = key.Type == StringList
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			items = append(items, item{name: name, value: v[name]})
		}
		ok = key.Type == StringMap
	case map[string]json.RawMessage:
		ok = key.Type == ObjectMap
		for _, name := range slices.Sorted(maps.Keys(v)) {
			ok = ok && bytes.HasPrefix(bytes.TrimSpace(v[name]), []byte("{"))
			items = append(items, item{name: name, value: v[name]})
		}
	}
	if !ok {
		return nil, fmt.Errorf("must be %s, not %T", expected(key), v)
	}
	return normalize(key, items)
}

// normalize checks values against the key and brings strings into their
// canonical form.
func normalize(key *Key, items []item) ([]item, error) {
	for i, it := range items {
		switch v := it.value.(type) {
		case int:
			if v < key.Min || v > key.Max {
				return nil, fmt.Errorf("must be %s, not %d", expected(key), v)
			}
		case json.RawMessage:
			if err := key.entry(it.name); err != nil {
				return nil, fmt.Errorf("must be %s: %w", expected(key), err)
			}
		case string:
			if key.entry != nil {
				if err := key.entry(it.name); err != nil {
					return nil, fmt.Errorf("must be %s: %w", expected(key), err)
				}
			}
			if key.normal == nil {
				continue
			}
			text, err := key.normal(v)
			if err != nil && len(key.Enum) > 0 {
				return nil, fmt.Errorf("must be %s, not %q", expected(key), v)
			}
			if err != nil {
				return nil, fmt.Errorf("must be %s: %w", expected(key), err)
			}
			items[i].value = text
		}
	}
	return items, nil
}

// expected says what a key's value must be.
func expected(key *Key) string {
	switch {
	case key.Type == Int:
		return fmt.Sprintf("a whole number from %d to %d", key.Min, key.Max)
	case key.Type == StringList && len(key.Enum) > 0:
		return "a list of any of " + quoteAll(key.Enum)
	case len(key.Enum) > 0:
		return "one of " + quoteAll(key.Enum)
	}
	return key.Type.String()
}

func quoteAll(list []string) string {
	var b []byte
	for i, s := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendQuote(b, s)
	}
	return string(b)
}

func itoa(n int) string { return strconv.Itoa(n) }

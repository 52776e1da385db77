package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// decodeInput reads a call's input, a JSON object, into the struct that in
// points to. It knows these field tags:
//
//	json:"name"      the key; a field without it is not filled
//	alias:"a,b"      other keys for the same field, used when name is absent
//	required:"true"  absence (or null) is an error
//
// Fields may be string, bool, integers, float64, pointers to those (nil when
// absent), slices, nested structs, map[string]T and json.RawMessage. Types are
// strict, except that what models get wrong without being misunderstood is
// accepted: whole numbers and booleans given as strings, whole numbers as
// floats ("10", 10.0), a single string for a list of strings. Unknown keys are
// ignored, null counts as absent. Errors are written for the model: "offset
// must be a whole number, got string".
func decodeInput(input json.RawMessage, in any) error {
	keys, err := decodeObject(input)
	if err != nil {
		return err
	}
	return decodeFields(keys, "", reflect.ValueOf(in).Elem())
}

// decodeObject reads a call's input into its keys, of which the last counts
// when one is repeated.
func decodeObject(input json.RawMessage) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(input, &keys); err != nil || keys == nil {
		return nil, errors.New("the input must be a JSON object, got " + jsonKind(input))
	}
	return keys, nil
}

func decodeStruct(raw json.RawMessage, path string, v reflect.Value) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil || keys == nil {
		return typeError(path, "an object", raw)
	}
	return decodeFields(keys, path, v)
}

// inputKeys yields the keys that decodeInput knows of a struct type, each with
// its aliases; none of a nil type.
func inputKeys(t reflect.Type) iter.Seq2[string, string] {
	return func(yield func(name, aliases string) bool) {
		for i := 0; t != nil && i < t.NumField(); i++ {
			if name, aliases, ok := inputKey(t.Field(i)); ok && !yield(name, aliases) {
				return
			}
		}
	}
}

// inputKey returns the key of a field and its aliases; false if it has none.
func inputKey(f reflect.StructField) (name, aliases string, ok bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, f.Tag.Get("alias"), name != "" && name != "-"
}

// decode is decodeInput into the type that the tool declares: Canonical and
// Touched go by that one.
func (s Spec) decode(input json.RawMessage, in any) error {
	if reflect.TypeOf(in).Elem() != s.input {
		return fmt.Errorf("tool %s declares another input than %T: a defect of this program", s.Name, in)
	}
	return decodeInput(input, in)
}

// Fits says why the tool would refuse an input for its form alone: a key that is
// missing or of another type. It is nil for a tool whose form isn't known here.
func (s Spec) Fits(input json.RawMessage) error {
	if s.input == nil {
		return nil
	}
	return decodeInput(input, reflect.New(s.input).Interface())
}

func decodeFields(keys map[string]json.RawMessage, path string, v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, aliases, ok := inputKey(f)
		if !ok {
			continue
		}
		value, key := lookupKey(keys, name, aliases)
		if value == nil {
			if f.Tag.Get("required") == "true" {
				return fmt.Errorf("%s is missing", join(path, name))
			}
			continue
		}
		if err := decodeValue(value, join(path, key), v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// lookupKey finds the value of name or else of one of its aliases; nil when
// there is none.
func lookupKey(keys map[string]json.RawMessage, name, aliases string) (json.RawMessage, string) {
	if v, ok := keys[name]; ok && !isNull(v) {
		return v, name
	}
	for aliases != "" {
		var a string
		a, aliases, _ = strings.Cut(aliases, ",")
		if v, ok := keys[a]; ok && !isNull(v) {
			return v, a
		}
	}
	return nil, ""
}

func decodeValue(raw json.RawMessage, path string, v reflect.Value) error {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes(bytes.Clone(raw))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return decodeString(raw, path, v)
	case reflect.Bool:
		return decodeBool(raw, path, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt(raw, path, v)
	case reflect.Float32, reflect.Float64:
		return decodeFloat(raw, path, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(raw, path, v.Elem())
	case reflect.Slice:
		return decodeSlice(raw, path, v)
	case reflect.Struct:
		return decodeStruct(raw, path, v)
	case reflect.Map:
		return decodeMap(raw, path, v)
	default:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

func decodeString(raw json.RawMessage, path string, v reflect.Value) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return typeError(path, "a string", raw)
	}
	v.SetString(s)
	return nil
}

func decodeBool(raw json.RawMessage, path string, v reflect.Value) error {
	switch strings.ToLower(unquoted(raw)) {
	case "true":
		v.SetBool(true)
	case "false":
		v.SetBool(false)
	default:
		return typeError(path, "true or false", raw)
	}
	return nil
}

func decodeInt(raw json.RawMessage, path string, v reflect.Value) error {
	text := unquoted(raw)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return typeError(path, "a whole number", raw)
		}
		n = int64(f)
	}
	if v.OverflowInt(n) {
		return fmt.Errorf("%s is out of range: %d", path, n)
	}
	v.SetInt(n)
	return nil
}

func decodeFloat(raw json.RawMessage, path string, v reflect.Value) error {
	f, err := strconv.ParseFloat(unquoted(raw), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return typeError(path, "a number", raw)
	}
	v.SetFloat(f)
	return nil
}

func decodeSlice(raw json.RawMessage, path string, v reflect.Value) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		if v.Type().Elem().Kind() != reflect.String || jsonKind(raw) != "string" {
			return typeError(path, "a list", raw)
		}
		items = []json.RawMessage{raw}
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := decodeValue(item, fmt.Sprintf("%s[%d]", path, i), out.Index(i)); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func decodeMap(raw json.RawMessage, path string, v reflect.Value) error {
	var items map[string]json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || v.Type().Key().Kind() != reflect.String {
		return typeError(path, "an object", raw)
	}
	out := reflect.MakeMapWithSize(v.Type(), len(items))
	for key, item := range items {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(item, join(path, key), e); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
	}
	v.Set(out)
	return nil
}

// unquoted returns the text of a JSON scalar; for a string, what is in it.
func unquoted(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return strings.TrimSpace(s)
		}
	}
	return string(raw)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func typeError(path, want string, raw json.RawMessage) error {
	return fmt.Errorf("%s must be %s, got %s", path, want, jsonKind(raw))
}

// jsonKind names the JSON type of raw.
func jsonKind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

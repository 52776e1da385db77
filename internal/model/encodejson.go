package model

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EncodeJSON is json.Marshal that leaves <, > and & as they are: source code is
// full of them.
func EncodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MustEncodeJSON is EncodeJSON for values that can always be encoded: structs of
// the adapters whose only raw JSON was checked before. It panics at any other.
func MustEncodeJSON(v any) []byte {
	b, err := EncodeJSON(v)
	if err != nil {
		panic(fmt.Sprintf("model: encoding a %T: %v", v, err))
	}
	return b
}

// AppendElement appends element to list, the inside of a JSON array, with a
// comma between if list has elements. An empty element is none.
func AppendElement(list, element []byte) []byte {
	if len(element) == 0 {
		return list
	}
	if len(list) > 0 {
		list = append(list, ',')
	}
	return append(list, element...)
}

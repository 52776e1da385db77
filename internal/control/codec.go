package control

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/streamjson"
)

var (
	// encoding writes payloads: nil lists are [], maps are in order.
	encoding = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	// decoding reads what the line reader has been through.
	decoding = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
)

// encodeRequest encodes a request of a subtype with a payload that encodes as an
// object.
func encodeRequest(subtype string, payload any) ([]byte, error) {
	members, err := json.Marshal(payload, encoding)
	if err != nil {
		return nil, err
	}
	if len(members) < 2 || members[0] != '{' {
		return nil, fmt.Errorf("payload %T is not an object", payload)
	}
	out := make([]byte, 0, len(members)+len(subtype)+16)
	out = streamjson.AppendString(append(out, `{"subtype":`...), subtype)
	if len(members) > 2 {
		out = append(out, ',')
	}
	return append(out, members[1:]...), nil
}

// success is the success response with a payload; nil is {}. A payload may bring
// members for beside it.
func (d *Dispatcher) success(id string, payload any) (*streamjson.ControlResponse, error) {
	resp := &streamjson.ControlResponse{Subtype: streamjson.ResponseSuccess, RequestID: id}
	if payload == nil {
		resp.Response = []byte("{}")
		return resp, nil
	}
	raw, err := json.Marshal(payload, encoding)
	resp.Response = raw
	if e, ok := payload.(interface{ envelope() jsontext.Value }); ok {
		resp.Extra = e.envelope()
	}
	return resp, err
}

// decode reads an object into the struct that v points to. Unknown members are
// ignored. The error names the field and what was wrong.
func decode(raw []byte, v any) error {
	err := json.Unmarshal(raw, v, decoding)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return fmt.Errorf("not an object: %w", err)
	}
	var own *fieldError
	if errors.As(semantic.Err, &own) {
		return own
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	if field == "" {
		return fmt.Errorf("want an object, have %s", kindName(semantic.JSONKind))
	}
	return badField(field, "have %s, want %s", kindName(semantic.JSONKind), wanted(semantic))
}

func wanted(e *json.SemanticError) string {
	if e.GoType == nil {
		return "something else"
	}
	switch kind := strings.TrimRight(e.GoType.Kind().String(), "0123456789"); kind {
	case "int", "uint":
		return "a whole number"
	case "float":
		return "a number"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	case "map", "struct":
		return "an object"
	default:
		return "a " + kind
	}
}

// fieldError says what is wrong with a field.
type fieldError struct{ field, msg string }

func (e *fieldError) Error() string { return fmt.Sprintf("field %q: %s", e.field, e.msg) }

func badField(field, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "a value that is not JSON"
}

// isNull reports whether a member is absent or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

func isObject(raw []byte) bool { return jsontext.Value(raw).Kind() == '{' }

// object checks that a member is an object; absent and null are {}.
func object(field string, raw jsontext.Value) (jsontext.Value, error) {
	switch {
	case isNull(raw):
		return jsontext.Value("{}"), nil
	case !isObject(raw):
		return nil, badField(field, "have %s, want an object", kindName(raw.Kind()))
	}
	return raw, nil
}

// sameJSON reports whether two values are the same but for white space, order of
// members and spelling of strings and numbers.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// mustEncode encodes a value of ours that always can be.
func mustEncode(v any) jsontext.Value {
	raw, err := json.Marshal(v, encoding)
	if err != nil {
		panic(err) // a type that can't be encoded: a fault of this package
	}
	return raw
}

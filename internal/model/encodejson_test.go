package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/model"
)

func TestEncodeJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{"if a < b && c > d {\n", `"if a < b && c > d {\n"`},
		{"\u2028\xff", `"\u2028\ufffd"`},
		{struct {
			Data []byte          `json:"data"`
			Raw  json.RawMessage `json:"raw"`
			None string          `json:"none,omitempty"`
		}{[]byte("x"), json.RawMessage(` { "a" : "<" } `), ""}, `{"data":"eA==","raw":{"a":"<"}}`},
		{"ends in a line feed\n", `"ends in a line feed\n"`},
	} {
		got, err := model.EncodeJSON(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("EncodeJSON(%q) = %s, %v; want %s", c.v, got, err, c.want)
		}
		if must := model.MustEncodeJSON(c.v); string(must) != c.want {
			t.Errorf("MustEncodeJSON(%q) = %s, want %s", c.v, must, c.want)
		}
	}
}

func TestEncodeJSONOfWhatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	bad := json.RawMessage(`{`)
	if b, err := model.EncodeJSON(bad); err == nil {
		t.Errorf("got %s", b)
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "RawMessage") {
			t.Errorf("panicked with %q", said)
		}
	}()
	t.Errorf("got %s", model.MustEncodeJSON(bad))
}

func TestAppendElement(t *testing.T) {
	t.Parallel()
	var list []byte
	for _, c := range []struct{ element, want string }{
		{"", ""}, {"1", "1"}, {"", "1"}, {`{"a":2}`, `1,{"a":2}`}, {"[]", `1,{"a":2},[]`},
	} {
		if list = model.AppendElement(list, []byte(c.element)); string(list) != c.want {
			t.Errorf("with %q it is %s, want %s", c.element, list, c.want)
		}
	}
}

package tools

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inputSample struct {
	Path   string            `json:"file_path" alias:"path" required:"true"`
	Offset int               `json:"offset"`
	Limit  *int              `json:"limit"`
	All    bool              `json:"all"`
	Ratio  float64           `json:"ratio"`
	Names  []string          `json:"names"`
	Items  []inputItem       `json:"items"`
	Labels map[string]string `json:"labels"`
	Raw    json.RawMessage   `json:"raw"`
}

type inputItem struct {
	Status string `json:"status" required:"true"`
}

func TestDecodeInputToleratesWhatModelsGetWrong(t *testing.T) {
	t.Parallel()
	ten := 10
	for name, c := range map[string]struct {
		in   string
		want inputSample
	}{
		"plain":                {`{"file_path":"a","offset":3,"all":true,"ratio":0.5}`, inputSample{Path: "a", Offset: 3, All: true, Ratio: 0.5}},
		"alias":                {`{"path":"a"}`, inputSample{Path: "a"}},
		"name wins over alias": {`{"path":"a","file_path":"b"}`, inputSample{Path: "b"}},
		"numbers as strings":   {`{"path":"a","offset":"3","limit":" 10 ","ratio":"1e1"}`, inputSample{Path: "a", Offset: 3, Limit: &ten, Ratio: 10}},
		"whole float":          {`{"path":"a","offset":3.0,"limit":1e1}`, inputSample{Path: "a", Offset: 3, Limit: &ten}},
		"booleans as strings":  {`{"path":"a","all":"True"}`, inputSample{Path: "a", All: true}},
		"null is absent":       {`{"file_path":null,"path":"a","offset":null,"limit":null}`, inputSample{Path: "a"}},
		"string for a list":    {`{"path":"a","names":"x"}`, inputSample{Path: "a", Names: []string{"x"}}},
		"nested":               {`{"path":"a","items":[{"status":"done"}],"labels":{"k":"v"},"raw":[1]}`, inputSample{Path: "a", Items: []inputItem{{"done"}}, Labels: map[string]string{"k": "v"}, Raw: json.RawMessage("[1]")}},
		"unknown keys":         {`{"path":"a","reason":"because"}`, inputSample{Path: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got inputSample
			if err := decodeInput(json.RawMessage(c.in), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecodeInputSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                       "file_path is missing",
		`[]`:                                     "the input must be a JSON object, got a list",
		`null`:                                   "the input must be a JSON object, got null",
		`{"file_path":3}`:                        "file_path must be a string, got number",
		`{"path":{}}`:                            "path must be a string, got an object",
		`{"path":"a","offset":"x"}`:              "offset must be a whole number, got string",
		`{"path":"a","offset":1.5}`:              "offset must be a whole number, got number",
		`{"path":"a","all":1}`:                   "all must be true or false, got number",
		`{"path":"a","names":[1]}`:               "names[0] must be a string, got number",
		`{"path":"a","items":[{}]}`:              "items[0].status is missing",
		`{"path":"a","items":[{"status":true}]}`: "items[0].status must be a string, got boolean",
		`{"path":"a","items":{}}`:                "items must be a list, got an object",
		`{"path":"a","labels":{"k":1}}`:          "labels.k must be a string, got number",
	} {
		var got inputSample
		err := decodeInput(json.RawMessage(in), &got)
		if err == nil || err.Error() != want {
			t.Errorf("decodeInput(%s) = %v, want %s", in, err, want)
		}
	}
}

func FuzzDecodeInput(f *testing.F) {
	for _, s := range []string{`{"file_path":"a"}`, `{"path":"a","offset":"9999999999999999999"}`, `{"path":"\ud800","items":[{"status":[]}]}`, `{`, `{"path":"a","ratio":"NaN"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got inputSample
		if err := decodeInput(json.RawMessage(s), &got); err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Fatal("an error without a message")
		}
	})
}

func TestFits(t *testing.T) {
	t.Parallel()
	known := Spec{Name: "sample", input: reflect.TypeFor[inputSample]()}
	for input, want := range map[string]string{
		`{"file_path":"a"}`: "", `{"path":"a"}`: "", `{"bad":1}`: "file_path is missing", `{"file_path":"a","names":7}`: "names",
	} {
		if err := known.Fits(json.RawMessage(input)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
	if err := (Spec{}).Fits(json.RawMessage(`{"bad":1}`)); err != nil {
		t.Errorf("a form that isn't known: %v", err)
	}
}

package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

func TestToolsUnderTheNamesOfADialect(t *testing.T) {
	t.Parallel()
	list := builtIn(t)
	for _, dialect := range []string{"claude", "qwen", "gemini"} {
		n := NewNames(dialect)
		for _, spec := range list {
			out := n.Spec(spec)
			if out.Name != policy.ToolName(dialect, spec.Name) || !json.Valid(out.Schema) {
				t.Errorf("%s: %s is offered as %+v", dialect, spec.Name, out)
			}
			for ours, theirs := range policy.ToolNames(dialect) {
				if strings.Contains(ours, "_") && ours != theirs && mentionsWord(out, ours) {
					t.Errorf("%s: %s mentions %s, which is %s there", dialect, out.Name, ours, theirs)
				}
			}
			checkParams(t, dialect, spec, out)
		}
	}
}

func mentionsWord(s model.ToolSpec, name string) bool {
	text := strings.FieldsFunc(s.Description+" "+string(s.Schema), func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z')
	})
	return slices.Contains(text, name)
}

// checkParams checks that the model's input under the outward names is read as
// the same input under ours, and the other way round.
func checkParams(t *testing.T, dialect string, spec Spec, out model.ToolSpec) {
	t.Helper()
	var ours, theirs struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(spec.Schema, &ours) != nil || json.Unmarshal(out.Schema, &theirs) != nil {
		t.Fatalf("%s: schema of %s", dialect, spec.Name)
	}
	if len(ours.Properties) != len(theirs.Properties) {
		t.Errorf("%s: %s has %d parameters, offered are %d", dialect, spec.Name, len(ours.Properties), len(theirs.Properties))
	}
	for _, r := range theirs.Required {
		if theirs.Properties[r] == nil {
			t.Errorf("%s: %s requires %s, which it has not", dialect, out.Name, r)
		}
	}
	n := NewNames(dialect)
	for name := range ours.Properties {
		in := json.RawMessage(`{"` + name + `":"x"}`)
		outward := n.Input(out.Name, in)
		back, err := Canonical(spec, outward)
		if err != nil || string(back) != string(in) {
			t.Errorf("%s: %s has %s, which is read as %s, %v", dialect, out.Name, outward, back, err)
		}
	}
}

func TestInputKeepsWhatItCannotRename(t *testing.T) {
	t.Parallel()
	n := NewNames("qwen")
	for in, want := range map[string]string{
		`{"command":"x","run_in_background":true,"other":1}`: `{"command":"x","is_background":true,"other":1}`,
		`{"run_in_background":true,"is_background":false}`:   `{"run_in_background":true,"is_background":false}`,
		`[1]`: `[1]`,
	} {
		if got := string(n.Input("Bash", json.RawMessage(in))); got != want {
			t.Errorf("Input(%s) = %s, want %s", in, got, want)
		}
	}
	var none *Names
	if none.Tool("Bash") != "Bash" || none.Text("read_file") != "read_file" || string(none.Input("x", json.RawMessage(`{}`))) != "{}" {
		t.Error("nil names change something")
	}
	if NewNames("native") != nil || NewNames("claude").Text("the edit tool, an edit, read_file") != "the Edit tool, an edit, Read" {
		t.Error("Text")
	}
	s := Spec{Name: "mcp__s__read_file", Server: "s", Description: "like read_file"}
	if out := NewNames("claude").Spec(s); out.Name != s.Name || out.Description != s.Description {
		t.Errorf("a server's tool is offered as %+v", out)
	}
}

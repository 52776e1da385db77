package mcp

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/model"
)

func TestToolNames(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	long := strings.Repeat("x", 100)
	seen := map[string]bool{}
	for _, c := range [][2]string{{"s", "t"}, {"s.é", "a/b"}, {long, "t"}, {long + "y", "t"}, {"s", long}, {"s", long + "y"}, {long, long}} {
		for nth := range 2 {
			name := toolName(c[0], c[1], nth)
			if !valid.MatchString(name) || seen[name] || !strings.HasPrefix(name, "mcp__"+SafeName(c[0])+"__") {
				t.Errorf("%q %q %d: %q", c[0], c[1], nth, name)
			}
			seen[name] = true
		}
	}
	if got := toolName("my server", "do.it", 0); got != "mcp__my_server__do_it" {
		t.Error(got)
	}
}

func TestToolsOfOneNameAreToldApart(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	s := &server{m: m, cfg: Config{Name: "s"}}
	s.listing.tools = []*sdk.Tool{{Name: "a.b"}, {Name: "a_b"}, {Name: "a.b"}, {Name: ""}, {Name: "a/b"}}
	list := s.offered(map[string]bool{})
	if len(list) != 3 {
		t.Fatalf("%d tools", len(list))
	}
	names := map[string]bool{}
	for _, tool := range list {
		names[tool.spec.Name] = true
	}
	if len(names) != 3 || !names["mcp__s__a_b"] {
		t.Errorf("%v", names)
	}
}

func TestSafeSchema(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`null`:                           `{"properties":{},"type":"object"}`,
		`"x"`:                            `{"properties":{},"type":"object"}`,
		`{"$schema":"s","required":"x"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:              `{"properties":{"a":{"$ref":"#"}},"required":["a"],"type":"object"}`,
		`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}}},true]}`: `{"properties":{"a":{"type":"string"},"b":{}},"type":"object"}`,
	} {
		var schema any
		if err := json.Unmarshal([]byte(in), &schema); err != nil {
			t.Fatal(err)
		}
		if got := string(safeSchema(schema)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	res := resultOf(&sdk.CallToolResult{IsError: true, Content: []sdk.Content{
		&sdk.TextContent{Text: "a\xff"},
		&sdk.ImageContent{MIMEType: "image/png", Data: []byte{1}},
		&sdk.ImageContent{MIMEType: "image/tiff", Data: []byte{1, 2}},
		&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte{1, 2, 3}},
		&sdk.ResourceLink{URI: "file:///x", Name: "x"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u:1", Text: "body"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u:2", MIMEType: "application/pdf", Blob: []byte("%PDF")}},
	}})
	if len(res.Blocks) != 7 || !res.IsError {
		t.Fatalf("%+v", res)
	}
	if _, ok := res.Blocks[1].(model.Image); !ok {
		t.Errorf("%T", res.Blocks[1])
	}
	if _, ok := res.Blocks[6].(model.Document); !ok {
		t.Errorf("%T", res.Blocks[6])
	}
	got, _ := text(res)
	for _, want := range []string{"a\uFFFD", `"image/tiff", 2 bytes`, `"audio/wav", 3 bytes`, "file:///x", "[resource u:1]\nbody"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if d, ok := res.Display.(json.RawMessage); !ok || !bytes.HasPrefix(d, []byte(`[{"type":"text"`)) {
		t.Errorf("display %s", res.Display)
	}
	if got, _ := text(resultOf(&sdk.CallToolResult{})); got != "(no output)" {
		t.Error(got)
	}
}

func TestHostileDeclarations(t *testing.T) {
	t.Parallel()
	big := map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"description": strings.Repeat("y", maxSchema)}}}
	if got := string(safeSchema(big)); got != `{"type":"object","properties":{}}` {
		t.Errorf("a schema of %d bytes is declared", len(got))
	}
	text := "adds\x1b]0;pwned\x07 two\u202e numbers\u200b\n\U000e0041\U000e0042ok\u2066\x00"
	if got := shown(text); got != "adds]0;pwned two numbers\nok" {
		t.Errorf("%q", got)
	}
}

package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/streamjson"
)

// TestProtocolPageIsFresh compares the sections of docs/protocol.md on control
// requests with the code.
func TestProtocolPageIsFresh(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "protocol.md")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := protocolSchema()
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	for name, fromProgram := range map[string]bool{"requests of the host": false, "requests of the program": true} {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
		head, rest, ok := strings.Cut(want, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no part between %q and %q", page, begin, end)
		}
		want = head + begin + requestSections(schema.Defs, fromProgram) + end + tail
	}
	switch {
	case want == string(data):
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run go test ./internal/cli -run TestProtocolPageIsFresh -update", page)
	}
}

// requestSections has a section for each subtype.
func requestSections(defs map[string]*jsonschema.Schema, fromProgram bool) string {
	var sb strings.Builder
	var last control.Payload
	lastRequest := ""
	for _, p := range control.Payloads() {
		if p.FromProgram != fromProgram {
			continue
		}
		if p.Subtype != last.Subtype {
			endSection(&sb, last)
			fmt.Fprintf(&sb, "\n#### %s\n\n%s\n\n", p.Subtype, p.Does)
			lastRequest = ""
		}
		request := "only its subtype"
		if m := members(defs["request."+payloadKey(p)], fromProgram); m != "" {
			request = m
		}
		switch {
		case lastRequest == "" && !fromProgram: // the same in all dialects
			fmt.Fprintf(&sb, "- Request: %s\n", request)
		case request != lastRequest:
			fmt.Fprintf(&sb, "- Request%s: %s\n", inDialects(p), request)
		}
		last, lastRequest = p, request
		fmt.Fprintf(&sb, "- Response%s: %s\n", inDialects(p), responseText(p, defs["response."+payloadKey(p)], !fromProgram))
	}
	endSection(&sb, last)
	return sb.String() + "\n"
}

func endSection(sb *strings.Builder, p control.Payload) {
	if len(p.Notes) > 0 {
		sb.WriteString("\n* " + strings.Join(p.Notes, "\n* ") + "\n")
	}
}

func inDialects(p control.Payload) string {
	if len(p.Dialects) == 0 {
		return ""
	}
	names := make([]string, len(p.Dialects))
	for i, d := range p.Dialects {
		names[i] = string(d)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func responseText(p control.Payload, s *jsonschema.Schema, written bool) string {
	switch m := members(s, written); {
	case m != "":
		return m
	case p.Response != nil && slices.Equal(p.Dialects, []streamjson.Dialect{streamjson.Claude}):
		return "`{}`"
	case p.Response != nil && len(p.Dialects) > 0:
		return "only `subtype`"
	case p.Response != nil:
		return "only `subtype`, `{}` in the claude dialect"
	case p.FromProgram:
		return "an object"
	}
	return "`{}`"
}

// members describes the members of an object on one line; of what we have
// written it says also what may be null.
func members(s *jsonschema.Schema, written bool) string {
	if s == nil {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if name == "subtype" {
			continue
		}
		text := "`" + name + "` " + kindOf(s.Properties[name], written)
		if !slices.Contains(s.Required, name) {
			text += "?"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// kindOf names what a member holds.
func kindOf(s *jsonschema.Schema, written bool) string {
	kinds := slices.Clone(s.Types)
	if s.Type != "" {
		kinds = append(kinds, s.Type)
	}
	null := slices.Contains(kinds, "null") && written
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "null" })
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/")
	case len(kinds) != 1:
		return "value"
	case kinds[0] == "array" && s.Items != nil:
		return "list of " + kindOf(s.Items, written)
	case kinds[0] == "object" && len(s.Properties) > 0:
		return "object (" + members(s, written) + ")"
	case null:
		return kinds[0] + " or null"
	}
	return kinds[0]
}

package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
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

// schemaFile is the schema as published.
var schemaFile = filepath.Join("..", "..", "docs", "reference", "protocol.schema.json")

// TestProtocolSchemaIsFresh compares the schema with the published one. With
// -update it is written anew, unless a member is missing: hosts rely on them.
func TestProtocolSchemaIsFresh(t *testing.T) {
	t.Parallel()
	now, err := protocolSchemaJSON()
	if err != nil {
		t.Fatal(err)
	}
	then, err := os.ReadFile(schemaFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if err == nil {
		var before, after any
		if err := json.Unmarshal(then, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(now, &after); err != nil {
			t.Fatal(err)
		}
		if gone := missing("", before, after); len(gone) > 0 {
			t.Fatalf("hosts rely on what the schema has no more: %s", strings.Join(gone, ", "))
		}
	}
	if bytes.Equal(now, then) {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: run go test ./internal/cli -run TestProtocolSchemaIsFresh -update", schemaFile)
	}
	if err := os.WriteFile(schemaFile, now, 0o644); err != nil {
		t.Fatal(err)
	}
}

// missing lists the members of objects named "properties" and "$defs" that
// before has and after hasn't.
func missing(at string, before, after any) []string {
	b, ok := before.(map[string]any)
	if !ok {
		return nil
	}
	a, _ := after.(map[string]any)
	var gone []string
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, there := a[key]; !there && (strings.HasSuffix(at, "/properties") || strings.HasSuffix(at, "/$defs")) {
			gone = append(gone, at+"/"+key)
			continue
		}
		gone = append(gone, missing(at+"/"+key, b[key], a[key])...)
	}
	return gone
}

func TestMissingMembersAreFound(t *testing.T) {
	t.Parallel()
	data, err := protocolSchemaJSON()
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]any
	if err := json.Unmarshal(data, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &after); err != nil {
		t.Fatal(err)
	}
	result := after["$defs"].(map[string]any)["result"].(map[string]any)["properties"].(map[string]any)
	delete(result, "num_turns")
	if gone := missing("", before, after); !slices.Equal(gone, []string{"/$defs/result/properties/num_turns"}) {
		t.Errorf("missing: %v", gone)
	}
}

// resolved returns the schema of one of the definitions.
func resolved(t testing.TB, def string) *jsonschema.Resolved {
	t.Helper()
	s, err := protocolSchema()
	if err != nil {
		t.Fatal(err)
	}
	if def != "" {
		s.AnyOf = []*jsonschema.Schema{ref(def)}
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGoldenLinesFitTheSchema checks every recorded line.
func TestGoldenLinesFitTheSchema(t *testing.T) {
	t.Parallel()
	files := recordings(t, "..", "../../integration/testdata", "../../docs/examples")
	schema, checked := resolved(t, ""), 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range bytes.Lines(data) {
			n++
			var conversation struct{ Out json.RawMessage }
			if json.Unmarshal(line, &conversation) == nil && conversation.Out != nil {
				line = conversation.Out // what we wrote, in the record of a conversation
			}
			msg, err := streamjson.Decode(line)
			if _, unknown := msg.(*streamjson.Unknown); err != nil || unknown || msg == nil {
				continue
			}
			checked++
			if err := fits(schema, line); err != nil {
				t.Errorf("%s:%d: %v\n%.300s", file, n, err, line)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d lines were checked in %v", checked, files)
	}
}

// recordings are the files with lines below some folders.
func recordings(t *testing.T, folders ...string) []string {
	t.Helper()
	var files []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			shortened := strings.Contains(filepath.ToSlash(path), "testdata/golden/control/") // whoever records them checks them whole
			if filepath.Ext(path) == ".jsonl" && !shortened {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func fits(schema *jsonschema.Resolved, line []byte) error {
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := resolved(t, "")
	for _, line := range []string{
		`{}`, `[]`, `{"type":"what"}`,
		`{"type":"user"}`, `{"type":"user","message":{"content":5}}`,
		`{"type":"user","message":{"content":"x"},"options":{"maxTurns":"many"}}`,
		`{"type":"control_request","request":{"subtype":"interrupt"}}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"stop_task"}}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"set_max_thinking_tokens","max_thinking_tokens":"x"}}`,
		`{"type":"control_response","response":{"subtype":"error","request_id":"1"}}`,
		`{"type":"system","subtype":"init"}`,
		`{"type":"result","subtype":"success"}`,
		`{"type":"stream_event","event":{"type":"content_block_stop"}}`,
	} {
		if fits(schema, []byte(line)) == nil {
			t.Errorf("%s fits", line)
		}
	}
	for _, line := range []string{
		`{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":null,"more":1}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"something_new","x":1}}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"set_model","model":null}}`,
		`{"type":"control_response","response":{"subtype":"error","request_id":"1","error":{"message":"x"}}}`,
		`{"type":"keep_alive"}`,
	} {
		if err := fits(schema, []byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// FuzzSchema: whatever line is understood fits the schema once we write it.
func FuzzSchema(f *testing.F) {
	for _, file := range []string{"frames.jsonl", "input.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "streamjson", "testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f.Add(bytes.Clone(line))
		}
	}
	schema := resolved(f, "")
	f.Fuzz(func(t *testing.T, line []byte) {
		msg, err := streamjson.Decode(line)
		if err != nil {
			return
		}
		switch msg := msg.(type) {
		case *streamjson.Unknown, *streamjson.ControlRequest, *streamjson.StreamEvent:
			return // what is in them goes through as it came
		case *streamjson.UserLine:
			if len(msg.Options) > 0 {
				return
			}
		}
		written, err := streamjson.Append(nil, msg)
		if err != nil {
			return
		}
		if err := fits(schema, written); err != nil {
			t.Errorf("%v\nfrom %q\nwritten %s", err, line, written)
		}
	})
}

// TestControlGoldensFitTheSchema checks the recorded control traffic: requests
// that were answered, and the payloads of the answers by the request's subtype.
func TestControlGoldensFitTheSchema(t *testing.T) {
	t.Parallel()
	for _, dialect := range []streamjson.Dialect{streamjson.Native, streamjson.Claude, streamjson.Qwen} {
		data, err := os.ReadFile(filepath.Join("..", "control", "testdata", string(dialect)+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		c := controlChecker{t: t, dialect: dialect, defs: map[string]*jsonschema.Resolved{}}
		for line := range bytes.Lines(data) {
			c.line(line)
		}
		if c.requests < 20 || c.answers < 20 {
			t.Errorf("%s: only %d requests and %d answers were checked", dialect, c.requests, c.answers)
		}
	}
}

type controlChecker struct {
	t       *testing.T
	dialect streamjson.Dialect
	defs    map[string]*jsonschema.Resolved
	own     map[string]json.RawMessage // requests of the program by id, within the case
	host    map[string]json.RawMessage

	requests, answers int
}

func (c *controlChecker) line(line []byte) {
	var l struct {
		Case string          `json:"case"`
		In   json.RawMessage `json:"in"`
		Out  json.RawMessage `json:"out"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		c.t.Fatal(err)
	}
	switch {
	case l.Case != "":
		c.own, c.host = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	case l.In != nil:
		c.message(l.In, c.host, c.own, false)
	case l.Out != nil:
		c.message(l.Out, c.own, c.host, true)
	}
}

// message takes a line of one side, whose open requests are mine.
func (c *controlChecker) message(line json.RawMessage, mine, theirs map[string]json.RawMessage, fromProgram bool) {
	msg, err := streamjson.Decode(line)
	if err != nil {
		return
	}
	switch msg := msg.(type) {
	case *streamjson.ControlRequest:
		mine[msg.RequestID] = line
		if fromProgram {
			c.requests++
			c.fits("control_request", line)
		}
	case *streamjson.ControlResponse:
		request, known := theirs[msg.RequestID]
		if !fromProgram || !known || msg.Subtype != streamjson.ResponseSuccess {
			return
		}
		c.requests++
		c.fits("control_request_in", request)
		nothing := string(msg.Response) == "null" || c.dialect == streamjson.Claude && string(msg.Response) == "{}"
		if !nothing {
			c.payload(request, msg.Response)
		}
	}
}

// payload checks the answer to a request of the host.
func (c *controlChecker) payload(request, payload json.RawMessage) {
	decoded, err := streamjson.Decode(request)
	if err != nil {
		c.t.Fatal(err)
	}
	subtype := decoded.(*streamjson.ControlRequest).Subtype
	for _, p := range control.Payloads() {
		here := p.Dialects == nil || slices.Contains(p.Dialects, c.dialect)
		if p.Subtype == subtype && !p.FromProgram && here && p.Response != nil {
			c.answers++
			c.fits("response."+payloadKey(p), payload)
		}
	}
}

func (c *controlChecker) fits(def string, line json.RawMessage) {
	if c.defs[def] == nil {
		c.defs[def] = resolved(c.t, def)
	}
	if err := fits(c.defs[def], line); err != nil {
		c.t.Errorf("%s: %v\n%.300s", c.dialect, err, line)
	}
}

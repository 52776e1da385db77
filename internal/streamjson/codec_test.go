package streamjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decodeAny is the value of a JSON text for comparison.
func decodeAny(t testing.TB, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, raw)
	}
	return v
}

func fixtureLines(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

func TestFixturesSurviveDecodeAndEncode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"frames.jsonl", "input.jsonl"} {
		for i, line := range fixtureLines(t, name) {
			m, err := Decode(line)
			if err != nil {
				t.Errorf("%s:%d: %v", name, i+1, err)
				continue
			}
			out, err := Append(nil, m)
			if err != nil {
				t.Errorf("%s:%d: encoding %T: %v", name, i+1, m, err)
				continue
			}
			if diff := cmp.Diff(decodeAny(t, line), decodeAny(t, out)); diff != "" {
				t.Errorf("%s:%d: %T differs (-want +got):\n%s", name, i+1, m, diff)
			}
			if size := Size(m); size < len(out) || size > len(out) {
				t.Errorf("%s:%d: %T: Size is %d, the encoding %d", name, i+1, m, size, len(out))
			}
			if bytes.Contains(out, []byte(`"Extra"`)) {
				t.Errorf("%s:%d: leaked a Go field name: %s", name, i+1, out)
			}
		}
	}
}

func TestFixturesDecodeIntoTheirTypes(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, name := range []string{"frames.jsonl", "input.jsonl"} {
		for _, line := range fixtureLines(t, name) {
			m, err := Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			count[reflect.TypeOf(m).Elem().Name()]++
		}
	}
	want := map[string]int{
		"ControlResponse": 4, "SystemInit": 1, "StreamEvent": 10, "StreamDelta": 3, "Assistant": 4, "ControlRequest": 3,
		"UserLine": 3, "Result": 4, "System": 4, "Unknown": 2, "ControlCancel": 1, "KeepAlive": 1, "SystemStatus": 2,
		"SystemAPIRetry": 2, "SystemPermissionDenied": 1,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
}

func TestUserLineIsDecodedWhole(t *testing.T) {
	t.Parallel()
	no := false
	got, err := Decode(fixtureLines(t, "input.jsonl")[2])
	if err != nil {
		t.Fatal(err)
	}
	want := &UserLine{
		Message: UserMessage{Content: BlockContent(
			TextBlock{Text: "look"},
			ImageBlock{Source: Source{Type: "base64", MediaType: "image/png", Data: "aGk="}},
			ImageBlock{Source: Source{Type: "url", URL: "https://example.com/a.png"}},
			DocumentBlock{Source: Source{Type: "base64", MediaType: "application/pdf", Data: "aGk="}, Title: "t"},
			ToolResultBlock{ToolUseID: "toolu_1", Content: BlockContent(TextBlock{Text: "x"}), IsError: true},
			UnknownBlock{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram","depth":3}`)},
		)},
		ParentToolUseID: "toolu_0", UUID: "u",
		Options: json.RawMessage(`{"model":"m","permissionMode":"plan","maxTurns":3}`),
		Origin:  json.RawMessage(`{"kind":"human"}`), Priority: "next", ShouldQuery: &no,
		Extra: []byte(`{"timestamp":"2026-01-01T00:00:00Z"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	options, err := want.TurnOptions()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(TurnOptions{Model: "m", PermissionMode: "plan", MaxTurns: 3}, options); diff != "" {
		t.Error(diff)
	}
}

func TestRequiredKeysArePresentInZeroFrames(t *testing.T) {
	t.Parallel()
	usage := `{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard"}`
	cases := map[string]struct {
		m    Message
		want string
	}{
		"success": {&Result{Subtype: ResultSuccess},
			`{"type":"result","subtype":"success","is_error":false,"duration_ms":0,"duration_api_ms":0,"num_turns":0,"result":"","stop_reason":null,"total_cost_usd":0,"usage":` + usage + `,"modelUsage":{},"permission_denials":[],"session_id":"","uuid":""}`},
		"error": {&Result{Subtype: ResultErrorExecution, PermissionDenials: []PermissionDenial{{ToolName: "x"}}, TotalCostUSD: math.NaN()},
			`{"type":"result","subtype":"error_during_execution","is_error":false,"duration_ms":0,"duration_api_ms":0,"num_turns":0,"errors":[],"stop_reason":null,"total_cost_usd":0,"usage":` + usage + `,"modelUsage":{},"permission_denials":[{"tool_name":"x","tool_use_id":"","tool_input":{}}],"session_id":"","uuid":""}`},
		"init": {&SystemInit{},
			`{"type":"system","subtype":"init","cwd":"","tools":[],"mcp_servers":[],"model":"","permissionMode":"","slash_commands":[],"apiKeySource":"","claude_code_version":"","output_style":"","skills":[],"plugins":[],"session_id":"","uuid":""}`},
		"assistant": {&Assistant{Message: AssistantMessage{Content: Blocks{ThinkingBlock{}, ToolUseBlock{}, ToolResultBlock{}}}},
			`{"type":"assistant","message":{"id":"","type":"message","role":"assistant","model":"","content":[{"type":"thinking","thinking":"","signature":""},{"type":"tool_use","id":"","name":"","input":{}},{"type":"tool_result","tool_use_id":"","content":"","is_error":false}],"stop_reason":null,"stop_sequence":null,"usage":` + usage + `},"parent_tool_use_id":null,"session_id":"","uuid":""}`},
		"user":             {&UserLine{}, `{"type":"user","message":{"role":"user","content":""},"parent_tool_use_id":null}`},
		"request":          {&ControlRequest{RequestID: "1", Subtype: "interrupt"}, `{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`},
		"success response": {&ControlResponse{Subtype: ResponseSuccess, RequestID: "1"}, `{"type":"control_response","response":{"subtype":"success","request_id":"1","response":null}}`},
		"error response":   {Failure("1", "no"), `{"type":"control_response","response":{"subtype":"error","request_id":"1","error":"no"}}`},
	}
	for name, c := range cases {
		got, err := Append(nil, c.m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestRawValuesCannotBreakALine(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage("{\n  \"a\": \"\u2028<b>\xff\",\r\n \"big\": 123456789012345678901234567890 }")
	out, err := Append(nil, &ControlRequest{RequestID: "r\n", Subtype: "x", Request: raw})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"control_request","request_id":"r\n","request":{"a":"\u2028<b>` + "\uFFFD" + `","big":123456789012345678901234567890}}`
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func TestAppendRefusesWhatIsNotJSONAndKeepsDst(t *testing.T) {
	t.Parallel()
	bad := map[string]Message{
		"broken request":    &ControlRequest{RequestID: "1", Request: json.RawMessage(`{"a":`)},
		"two values":        &ControlRequest{RequestID: "1", Request: json.RawMessage(`{}{}`)},
		"list as request":   &ControlRequest{RequestID: "1", Request: json.RawMessage(`[1]`)},
		"list as extra":     &System{Subtype: "x", Extra: []byte(`["a"]`)},
		"broken tool input": &Assistant{Message: AssistantMessage{Content: Blocks{ToolUseBlock{Input: json.RawMessage(`nope`)}}}},
		"nil block":         &Assistant{Message: AssistantMessage{Content: Blocks{nil}}},
		"nil event":         &StreamEvent{},
		"no message":        nil,
		"delta of no kind":  &StreamDelta{Text: "x"},
	}
	for name, m := range bad {
		got, err := Append([]byte("before"), m)
		if err == nil || string(got) != "before" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestExtraMembersAreWrittenBesideTheOthers(t *testing.T) {
	t.Parallel()
	for extra, want := range map[string]string{
		`{"a": 1, "b": [2]}`: `{"type":"system","subtype":"x","session_id":"s","uuid":"u","a":1,"b":[2]}`,
		` { } `:              `{"type":"system","subtype":"x","session_id":"s","uuid":"u"}`,
		``:                   `{"type":"system","subtype":"x","session_id":"s","uuid":"u"}`,
	} {
		got, err := Append(nil, &System{Subtype: "x", SessionID: "s", UUID: "u", Extra: []byte(extra)})
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v", extra, got, err)
		}
	}
}

func TestStringsAreEscaped(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"plain <b> & 'x'":      `"plain <b> & 'x'"`,
		"q\"b\\s/":             `"q\"b\\s/"`,
		"\n\r\t\b\f\x00\x1f":   `"\n\r\t\b\f\u0000\u001f"`,
		"\x7f é 漢 😀":           "\"\x7f é 漢 😀\"",
		"a\u2028b\u2029c":      `"a\u2028b\u2029c"`,
		"\xff\xc0a\xe2\x80":    "\"\uFFFD\uFFFDa\uFFFD\uFFFD\"",
		"\xed\xa0\x80":         "\"\uFFFD\uFFFD\uFFFD\"", // a surrogate in UTF-8
		"kept \uFFFD as it is": "\"kept \uFFFD as it is\"",
	}
	for in, want := range cases {
		got := AppendString(nil, in)
		if string(got) != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
		if n := stringSize(in); n != len(got) {
			t.Errorf("%q: stringSize is %d, want %d", in, n, len(got))
		}
	}
}

func TestBadLines(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_000)
	cases := map[string]struct {
		line    string
		kind    ErrorKind
		msg     string
		typ, id string
	}{
		"text":                       {line: `hello`, kind: KindMalformed},
		"half an object":             {line: `{"type":"user","mess`, kind: KindMalformed, msg: "not complete"},
		"two objects":                {line: `{"type":"keep_alive"}{}`, kind: KindMalformed, msg: "after top-level value"},
		"NaN":                        {line: `{"type":"x","n":NaN}`, kind: KindMalformed},
		"infinity":                   {line: `{"type":"x","n":-Infinity}`, kind: KindMalformed},
		"raw NUL":                    {line: "{\"type\":\"x\x00\"}", kind: KindMalformed},
		"only NULs":                  {line: "\x00\x00\x00", kind: KindMalformed},
		"UTF-16":                     {line: "\xff\xfe{\x00", kind: KindMalformed},
		"invalid UTF-8 outside":      {line: "{\"type\":\"x\",\xff}", kind: KindMalformed},
		"trailing comma":             {line: `{"type":"x",}`, kind: KindMalformed},
		"10,000 deep":                {line: `{"type":"x","a":` + deep, kind: KindTooDeep},
		"10,000 deep and closed":     {line: `{"type":"x","a":` + deep + strings.Repeat("]", 10_000) + `}`, kind: KindTooDeep},
		"10,000 objects deep":        {line: strings.Repeat(`{"a":`, 10_000), kind: KindTooDeep},
		"list":                       {line: `[{"type":"user"}]`, kind: KindNotObject},
		"string":                     {line: `"user"`, kind: KindNotObject, msg: "this is a string"},
		"null":                       {line: `null`, kind: KindNotObject},
		"no type":                    {line: `{"subtype":"interrupt"}`, kind: KindMissingType},
		"type a number":              {line: `{"type":1}`, kind: KindMissingType},
		"type empty":                 {line: `{"type":""}`, kind: KindMissingType},
		"type in capitals":           {line: `{"Type":"user","message":{"role":"user","content":"x"}}`, kind: KindMissingType},
		"duplicate type":             {line: `{"type":"user","type":"control_request"}`, kind: KindDuplicateKey, msg: `key "type" occurs twice`},
		"duplicate by escape":        {line: `{"type":"keep_alive","\u0074ype":"x"}`, kind: KindDuplicateKey},
		"duplicate in request":       {line: `{"type":"control_request","request_id":"7","request":{"subtype":"set_model","model":"a","model":"b"}}`, kind: KindDuplicateKey, msg: `key "model" occurs twice in /request`, typ: "control_request", id: "7"},
		"duplicate in response":      {line: `{"type":"control_response","response":{"subtype":"success","request_id":"7","response":{"behavior":"deny","behavior":"allow"}}}`, kind: KindDuplicateKey, typ: "control_response", id: "7"},
		"duplicate request id":       {line: `{"type":"control_request","request_id":"7","request_id":"8","request":{"subtype":"x"}}`, kind: KindDuplicateKey, typ: "control_request"},
		"duplicate in message":       {line: `{"type":"user","message":{"role":"user","content":"a","content":"b"}}`, kind: KindDuplicateKey, typ: "user"},
		"request id folded":          {line: `{"type":"control_request","Request_ID":"7","request":{"subtype":"x"}}`, kind: KindInvalidField, msg: "request_id", typ: "control_request"},
		"request id with Kelvin":     {line: `{"type":"control_cancel_re` + "\u212a" + `uest"}`, kind: "", msg: ""},
		"request id a number":        {line: `{"type":"control_request","request_id":7,"request":{"subtype":"x"}}`, kind: KindInvalidField, typ: "control_request"},
		"request missing":            {line: `{"type":"control_request","request_id":"7"}`, kind: KindInvalidField, typ: "control_request", id: "7"},
		"request a list":             {line: `{"type":"control_request","request_id":"7","request":["subtype"]}`, kind: KindInvalidField, typ: "control_request", id: "7"},
		"subtype folded":             {line: `{"type":"control_request","request_id":"7","request":{"Subtype":"x"}}`, kind: KindInvalidField, typ: "control_request", id: "7"},
		"subtype with long s":        {line: `{"type":"control_request","request_id":"7","request":{"` + "\u017f" + `ubtype":"x"}}`, kind: KindInvalidField, typ: "control_request", id: "7"},
		"response missing":           {line: `{"type":"control_response"}`, kind: KindInvalidField, typ: "control_response"},
		"response without id":        {line: `{"type":"control_response","response":{"subtype":"success"}}`, kind: KindInvalidField, typ: "control_response"},
		"response of odd subtype":    {line: `{"type":"control_response","response":{"subtype":"maybe","request_id":"7"}}`, kind: KindInvalidField, typ: "control_response", id: "7"},
		"cancel without id":          {line: `{"type":"control_cancel_request"}`, kind: KindInvalidField, typ: "control_cancel_request"},
		"user without message":       {line: `{"type":"user"}`, kind: KindInvalidField, typ: "user"},
		"user with message folded":   {line: `{"type":"user","Message":{"role":"user","content":"x"}}`, kind: KindInvalidField, typ: "user"},
		"user without content":       {line: `{"type":"user","message":{"role":"user"}}`, kind: KindInvalidField, typ: "user"},
		"content a number":           {line: `{"type":"user","message":{"content":3}}`, kind: KindInvalidField, typ: "user"},
		"user in the wrong role":     {line: `{"type":"user","message":{"role":"assistant","content":"x"}}`, kind: KindInvalidField, msg: "/message/role", typ: "user"},
		"block a string":             {line: `{"type":"user","message":{"content":["x"]}}`, kind: KindInvalidField, msg: "/message/content/0", typ: "user"},
		"block without type":         {line: `{"type":"user","message":{"content":[{"text":"x"}]}}`, kind: KindInvalidField, typ: "user"},
		"text block without text":    {line: `{"type":"user","message":{"content":[{"type":"text"}]}}`, kind: KindInvalidField, msg: `"text"`, typ: "user"},
		"image without source":       {line: `{"type":"user","message":{"content":[{"type":"image"}]}}`, kind: KindInvalidField, msg: `"source"`, typ: "user"},
		"image without data":         {line: `{"type":"user","message":{"content":[{"type":"image","source":{"type":"base64"}}]}}`, kind: KindInvalidField, msg: `"data"`, typ: "user"},
		"tool result without id":     {line: `{"type":"user","message":{"content":[{"type":"tool_result","content":""}]}}`, kind: KindInvalidField, typ: "user"},
		"session id a number":        {line: `{"type":"user","session_id":5,"message":{"content":"x"}}`, kind: KindInvalidField, msg: "field /session_id: unexpected number, want a string", typ: "user"},
		"result with a huge number":  {line: `{"type":"result","duration_ms":1e400}`, kind: KindInvalidField, typ: "result"},
		"stream event without event": {line: `{"type":"stream_event"}`, kind: KindInvalidField, typ: "stream_event"},
	}
	for name, c := range cases {
		m, err := Decode([]byte(c.line))
		if c.kind == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var e *LineError
		if !errors.As(err, &e) {
			t.Errorf("%s: got %#v, %v; want a LineError", name, m, err)
			continue
		}
		if e.Kind != c.kind || e.Type != c.typ || e.RequestID != c.id || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s: got kind %q type %q id %q: %v", name, e.Kind, e.Type, e.RequestID, e)
		}
		if e.Msg == "" || len(e.Excerpt) > 80 || !utf8.ValidString(e.Excerpt) || strings.ContainsAny(e.Excerpt, "\n\r\x00") {
			t.Errorf("%s: message %q, excerpt %q", name, e.Msg, e.Excerpt)
		}
		if strings.Contains(e.Msg, "jsontext") || strings.Contains(e.Msg, "streamjson.") {
			t.Errorf("%s: names our insides: %q", name, e.Msg)
		}
	}
}

func TestTolerableLines(t *testing.T) {
	t.Parallel()
	text := func(s string) *UserLine { return &UserLine{Message: UserMessage{Content: TextContent(s)}} }
	user := func(s string) string { return `{"type":"user","message":{"content":"` + s + `"}}` }
	cases := map[string]struct {
		line string
		want Message
	}{
		"byte order mark":         {"\uFEFF" + user("x"), text("x")},
		"CRLF":                    {user("x") + "\r\n", text("x")},
		"white space all over":    {" \t{ \"type\" : \"user\" ,\t\"message\":{\"content\": \"x\" } } \r\n", text("x")},
		"invalid UTF-8":           {user("a\xffb"), text("a\uFFFDb")},
		"lone surrogate":          {user(`a\ud800b\udc00`), text("a\uFFFDb\uFFFD")},
		"surrogate pair":          {user(`\ud83d\ude00`), text("😀")},
		"escaped NUL":             {user(`a\u0000b`), text("a\x00b")},
		"line separators":         {user("a\u2028b\u2029"), text("a\u2028b\u2029")},
		"unknown key":             {`{"type":"keep_alive","later":{"x":1}}`, &KeepAlive{}},
		"empty list":              {`{"type":"user","message":{"content":[]}}`, &UserLine{Message: UserMessage{Content: BlockContent()}}},
		"escaped type":            {`{"\u0074ype":"keep_\u0061live"}`, &KeepAlive{}},
		"null options":            {`{"type":"user","message":{"content":"x"},"options":null,"parent_tool_use_id":null}`, text("x")},
		"tool result w/o content": {`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}`, &UserLine{Message: UserMessage{Content: BlockContent(ToolResultBlock{ToolUseID: "t"})}}},
		"error as an object":      {`{"type":"control_response","response":{"subtype":"error","request_id":"1","error":{"message":"no"}}}`, Failure("1", "no")},
		"error missing":           {`{"type":"control_response","response":{"subtype":"error","request_id":"1"}}`, Failure("1", "the error came without a text")},
		"success without payload": {`{"type":"control_response","response":{"subtype":"success","request_id":"1"}}`, &ControlResponse{Subtype: "success", RequestID: "1"}},
		"surrogate in a payload": {`{"type":"control_request","request_id":"1","request":{"subtype":"x","v":"\ud800","n":1e999, "z":12345678901234567890}}`,
			&ControlRequest{RequestID: "1", Subtype: "x", Request: json.RawMessage(`{"subtype":"x","v":"` + "\uFFFD" + `","n":1e999,"z":12345678901234567890}`)}},
		"both spellings of a key": {`{"type":"control_cancel_request","Request_Id":"2","request_id":"1"}`, &ControlCancel{RequestID: "1"}},
		"brackets in strings":     {`{"a":"}],[{\\\"","n":-1.5e3,"type":"t","b":[true,{"type":"no"}]}`, &Unknown{Type: "t", Raw: json.RawMessage(`{"a":"}],[{\\\"","n":-1.5e3,"type":"t","b":[true,{"type":"no"}]}`)}},
	}
	for name, c := range cases {
		got, err := Decode([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTurnOptions(t *testing.T) {
	t.Parallel()
	good := map[string]TurnOptions{
		``:                                       {},
		`{}`:                                     {},
		`{"model":null,"maxTurns":null}`:         {},
		`{"model":"m"}`:                          {Model: "m"},
		`{"permissionMode":"plan","maxTurns":1}`: {PermissionMode: "plan", MaxTurns: 1},
	}
	for raw, want := range good {
		got, err := (&UserLine{Options: json.RawMessage(raw)}).TurnOptions()
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
	bad := map[string]string{ // options to the key to blame
		`{"modle":"m"}`:                  "modle",
		`{"Model":"m"}`:                  "Model",
		`{"model":"m","maxTurns":0}`:     "maxTurns",
		`{"maxTurns":-1}`:                "maxTurns",
		`{"maxTurns":1.5}`:               "maxTurns",
		`{"maxTurns":1e99}`:              "maxTurns",
		`{"maxTurns":"3"}`:               "maxTurns",
		`{"model":5}`:                    "model",
		`{"model":"m","a/b~c":{"x":[]}}`: "a/b~c",
		`["model"]`:                      "",
		`"model"`:                        "",
	}
	for raw, key := range bad {
		got, err := (&UserLine{Options: json.RawMessage(raw)}).TurnOptions()
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Key != key || got != (TurnOptions{}) {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
}

func TestUUIDsAreVersion4AndDifferent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		u := NewUUID()
		if len(u) != 36 || u[8] != '-' || u[13] != '-' || u[18] != '-' || u[23] != '-' || u[14] != '4' || !strings.ContainsRune("89ab", rune(u[19])) {
			t.Fatalf("not a UUID: %q", u)
		}
		if seen[u] {
			t.Fatalf("twice the same: %q", u)
		}
		seen[u] = true
	}
}

func TestFitsCountsTheNewline(t *testing.T) {
	t.Parallel()
	m := &Assistant{Message: AssistantMessage{Content: Blocks{TextBlock{Text: strings.Repeat("é\"", 1000)}}}}
	line, err := Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if Fits(m, len(line)) || !Fits(m, len(line)+1) {
		t.Errorf("size %d, encoding %d", Size(m), len(line))
	}
}

// fill sets everything in v to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	switch v.Interface().(type) {
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"raw":1}`)))
		return
	case jsontext.Value:
		v.Set(reflect.ValueOf(jsontext.Value(`{"extra":[1]}`)))
		return
	case Content:
		v.Set(reflect.ValueOf(BlockContent(TextBlock{Text: "t"})))
		return
	case Blocks:
		v.Set(reflect.ValueOf(Blocks{TextBlock{Text: "t"}}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.String:
		v.SetString("s")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(t, elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	default:
		t.Fatalf("a %s can't be filled", v.Type())
	}
}

func TestEveryFieldIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	messages := []Message{
		&UserLine{}, &Assistant{}, &SystemInit{}, &SystemStatus{}, &SystemAPIRetry{}, &SystemPermissionDenied{}, &System{}, &Result{}, &ControlCancel{},
	}
	for _, m := range messages {
		fill(t, reflect.ValueOf(m).Elem())
	}
	for _, b := range []any{
		&TextBlock{}, &ThinkingBlock{}, &RedactedThinkingBlock{}, &ToolUseBlock{}, &ToolResultBlock{}, &ImageBlock{}, &DocumentBlock{},
	} {
		v := reflect.ValueOf(b).Elem()
		fill(t, v)
		block := v.Interface().(Block)
		messages = append(messages, &UserLine{Message: UserMessage{Content: BlockContent(block)}},
			&StreamEvent{Event: BlockStart{Index: 7, Block: block}, UUID: "u"})
	}
	var start MessageStart
	fill(t, reflect.ValueOf(&start).Elem())
	var delta MessageDelta
	fill(t, reflect.ValueOf(&delta).Elem())
	for _, ev := range []Event{start, delta, BlockStop{Index: 7}, MessageStop{}, Ping{}, OtherEvent{Type: "x", Raw: json.RawMessage(`{"type":"x","y":1}`)}} {
		messages = append(messages, &StreamEvent{Event: ev, ParentToolUseID: "p", SessionID: "s", UUID: "u", Extra: []byte(`{"ttft_ms":1}`)})
	}
	for kind := DeltaText; kind.valid(); kind++ {
		messages = append(messages, &StreamDelta{SessionID: "s", UUID: "u", ParentToolUseID: "p\"", Index: 7, Kind: kind, Text: "t\n"})
	}
	for _, m := range messages {
		line, err := Append(nil, m)
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		got, err := Decode(line)
		if err != nil {
			t.Errorf("%T: %v\n%s", m, err, line)
		} else if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%T: %s", m, diff)
		}
		if Size(m) != len(line) {
			t.Errorf("%T: Size is %d, the encoding %d", m, Size(m), len(line))
		}
	}
}

func TestMessagesDoNotShareMemoryWithTheReader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"frames.jsonl", "input.jsonl"} {
		lines := fixtureLines(t, name)
		r := NewReader(bytes.NewReader(bytes.Join(lines, newline)), 0)
		var kept []Message
		for range lines {
			m, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, m)
		}
		clear(r.buf[:cap(r.buf)])
		clear(r.dec.scratch[:cap(r.dec.scratch)])
		for i, line := range lines {
			want, err := Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, kept[i]); diff != "" {
				t.Errorf("%s:%d: %s", name, i+1, diff)
			}
		}
	}
}

func TestStreamEventsWithoutAUUIDGetAFreshOne(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{&StreamEvent{Event: Ping{}}, &StreamDelta{Kind: DeltaText}} {
		a, _ := Append(nil, m)
		b, _ := Append(nil, m)
		if bytes.Equal(a, b) || len(a) != len(b) || Size(m) != len(a) {
			t.Errorf("%s\n%s\nSize %d", a, b, Size(m))
		}
	}
}

func TestStreamingDoesNotAllocate(t *testing.T) {
	var buf []byte
	if n := testing.AllocsPerRun(1000, func() { buf, _ = Append(buf[:0], benchDelta) }); n >= 1 {
		t.Errorf("%v allocations for each delta", n)
	}
}

// roundTrip is decode, encode, decode, encode of a line, if it is a message.
func roundTrip(t *testing.T, line []byte) {
	first, err := Decode(line)
	if err != nil {
		return
	}
	once, err := Append(nil, first)
	if err != nil {
		t.Fatalf("can't encode what was decoded: %v\n%q", err, line)
	}
	if bytes.ContainsAny(once, "\n\r\u2028\u2029") || !utf8.Valid(once) || !json.Valid(once) {
		t.Fatalf("not a line: %q", once)
	}
	second, err := Decode(once)
	if err != nil {
		t.Fatalf("can't decode what was encoded: %v\n%q\n%q", err, line, once)
	}
	twice, err := Append(nil, second)
	if err != nil {
		t.Fatal(err)
	}
	if ev, ok := first.(*StreamEvent); ok && ev.UUID == "" {
		return // a fresh one each time
	}
	if d, ok := first.(*StreamDelta); ok && d.UUID == "" {
		return
	}
	if !bytes.Equal(once, twice) {
		t.Fatalf("not stable:\n%q\n%q\n%q", line, once, twice)
	}
	switch first.(type) {
	case *UserLine, *ControlRequest, *ControlResponse, *ControlCancel, *System, *Unknown, *StreamDelta:
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("decoded differently: %s", diff)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, name := range []string{"frames.jsonl", "input.jsonl"} {
		for _, line := range fixtureLines(f, name) {
			f.Add(line)
		}
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"text","text":"\ud800\u0000` + "\xff\u2028" + `"}]},"k\u2028":"\ud83d"}`))
	f.Add([]byte(`{"type":"result","total_cost_usd":1e-9,"modelUsage":{"a":{"costUSD":1e22}},"subtype":"success","errors":[],"result_index":0}`))
	f.Fuzz(roundTrip)
}

func TestErrorsReadWell(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`line 3: duplicate key: twice (near "x")`: &LineError{Kind: KindDuplicateKey, Msg: "twice", Line: 3, Excerpt: "x"},
		`not object: a list`:                      &LineError{Kind: KindNotObject, Msg: "a list"},
		`option "modle": not known`:               &OptionError{Key: "modle", Msg: "not known"},
		`options: want an object`:                 &OptionError{Msg: "want an object"},
	} {
		if err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
	for line, want := range map[string]string{
		`{"type":"result","is_error":"no"}`:              "field /is_error: unexpected string, want a boolean",
		`{"type":"result","num_turns":1.5}`:              "field /num_turns: unexpected number, want a whole number",
		`{"type":"result","errors":{}}`:                  "field /errors: unexpected object, want a list",
		`{"type":"result","usage":[]}`:                   "field /usage: unexpected list, want an object",
		`{"type":"result","total_cost_usd":true}`:        "field /total_cost_usd: unexpected boolean, want a number",
		`{"type":"assistant","message":{"content":"x"}}`: "field /message/content: want a list of blocks, have a string",
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":5}]}}`: "in /message/content/0: field /content: want a string or a list of blocks, have a number",
	} {
		_, err := Decode([]byte(line))
		var e *LineError
		if !errors.As(err, &e) || e.Msg != want {
			t.Errorf("%s:\n got %v\nwant %s", line, err, want)
		}
	}
	long := NewReader(strings.NewReader(strings.Repeat("é", 3<<10)), 4<<10)
	if _, err := long.Next(); err == nil || !strings.Contains(err.Error(), "limit of 4 KiB") {
		t.Errorf("got %v", err)
	}
}

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/testkit"
)

// hostLimit bounds each wait of a scripted host.
const hostLimit = 30 * time.Second

// scriptedHost plays the part of the program that spawned us: it writes lines,
// waits for what they cause, and answers.
type scriptedHost struct {
	t       *testing.T
	p       *place
	proc    *testkit.Proc
	dialect streamjson.Dialect
	whole   bool

	seen     int // index behind the last line that was waited for
	said     []said
	asked    int               // requests so far
	requests map[string]string // subtypes of our requests, by id
	tools    toolAnswers       // of the MCP servers in the host; nil: there are none
	exit     int
}

// said is what the host did, before line at of the program.
type said struct {
	at   int
	line any
}

func newScriptedHost(t *testing.T, d streamjson.Dialect, c goldenCase) *scriptedHost {
	t.Helper()
	h := &scriptedHost{t: t, p: newPlace(t), dialect: d, whole: c.whole, requests: map[string]string{}}
	for name, text := range c.files {
		h.p.write(name, text)
	}
	script := c.model
	if script == "" {
		script = chat
	}
	args := append([]string{"--dialect=" + string(d), h.p.scripted(script)}, bothWays...)
	if d == streamjson.Claude {
		args = append(args, "--permission-prompt-tool=stdio")
	}
	for _, f := range c.flags {
		args = append(args, strings.ReplaceAll(f, "DIR", h.p.dir))
	}
	h.proc = h.p.start(testkit.Spec{Args: args, HoldStdin: true})
	return h
}

// send writes a line.
func (h *scriptedHost) send(line string) {
	h.t.Helper()
	var v any = line
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(line)) == nil {
		line = compact.String()
		_ = json.Unmarshal(compact.Bytes(), &v) // it is valid
	}
	h.said = append(h.said, said{h.seen, map[string]any{"in": v}})
	if err := h.proc.Send(line); err != nil {
		h.t.Fatalf("%v after %q", err, line)
	}
}

// user says something.
func (h *scriptedHost) user(text string) {
	h.t.Helper()
	h.send(line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}, "parent_tool_use_id": nil}))
}

// post sends a request, and doesn't wait. It returns its id.
func (h *scriptedHost) post(request string) string {
	h.t.Helper()
	h.asked++
	id := fmt.Sprintf("host_%d", h.asked)
	var body struct{ Subtype string }
	_ = json.Unmarshal([]byte(request), &body) // it may be malformed on purpose
	h.requests[id] = body.Subtype
	h.send(`{"type":"control_request","request_id":"` + id + `","request":` + request + `}`)
	return id
}

// request sends a request and waits for its response.
func (h *scriptedHost) request(request string) testkit.Frame {
	h.t.Helper()
	return h.response(h.post(request))
}

// initialize opens the session; more are members of the request.
func (h *scriptedHost) initialize(more string) testkit.Frame {
	h.t.Helper()
	if more != "" {
		more = "," + more
	}
	return h.request(`{"subtype":"initialize"` + more + `}`)
}

// response waits for the response to a request of ours.
func (h *scriptedHost) response(id string) testkit.Frame {
	h.t.Helper()
	return h.await("the response to "+id, func(f testkit.Frame) bool {
		return f.Kind() == "control_response" && f.String("response.request_id") == id
	})
}

// await waits for a frame. MCP messages that come before it are answered, if
// there is a server.
func (h *scriptedHost) await(what string, want func(testkit.Frame) bool) testkit.Frame {
	h.t.Helper()
	for {
		l, next, err := h.proc.Await(h.seen, hostLimit, func(testkit.Line) bool { return true })
		if err != nil {
			h.t.Fatalf("waiting for %s: %v\nstdin:\n%s\nstdout:\n%.6000s", what, err, h.saidText(), h.proc.Output())
		}
		h.seen = next
		var f testkit.Frame
		if err := json.Unmarshal(l.Text, &f); err != nil {
			h.t.Fatalf("%v: %s", err, l.Text)
		}
		served := h.serve(f)
		if want(f) {
			return f
		}
		if f.Kind() == "control_response" && !served && h.requests[f.String("response.request_id")] == "" {
			h.t.Logf("a response that nobody waits for: %s", l.Text)
		}
	}
}

func (h *scriptedHost) saidText() string {
	var sb strings.Builder
	for _, s := range h.said {
		raw, _ := json.Marshal(s.line)
		fmt.Fprintf(&sb, "%d %s\n", s.at, raw)
	}
	return sb.String()
}

// frame waits for a frame of a kind.
func (h *scriptedHost) frame(kind string) testkit.Frame {
	h.t.Helper()
	return h.await(kind, func(f testkit.Frame) bool { return f.Kind() == kind })
}

// result waits for the end of a turn.
func (h *scriptedHost) result() testkit.Frame {
	h.t.Helper()
	return h.frame("result")
}

// question waits for a request of the program.
func (h *scriptedHost) question(subtype string) testkit.Frame {
	h.t.Helper()
	return h.await("a "+subtype+" request", func(f testkit.Frame) bool {
		return f.Kind() == "control_request" && f.String("request.subtype") == subtype
	})
}

// delta waits for a piece of text.
func (h *scriptedHost) delta() {
	h.t.Helper()
	h.await("a delta", func(f testkit.Frame) bool { return f.String("event.delta.type") == "text_delta" })
}

// answer answers a request of the program.
func (h *scriptedHost) answer(q testkit.Frame, response string) {
	h.t.Helper()
	h.send(`{"type":"control_response","response":{"subtype":"success","request_id":` + quote(q.String("request_id")) + `,"response":` + response + `}}`)
}

// refuse answers a request of the program by an error.
func (h *scriptedHost) refuse(q testkit.Frame, text string) {
	h.t.Helper()
	h.send(`{"type":"control_response","response":{"subtype":"error","request_id":` + quote(q.String("request_id")) + `,"error":` + quote(text) + `}}`)
}

// hook answers the next call of a hook.
func (h *scriptedHost) hook(output string) {
	h.t.Helper()
	h.answer(h.question("hook_callback"), output)
}

// file waits for a file of the working folder.
func (h *scriptedHost) file(name string) {
	h.t.Helper()
	eventually(h.t, hostLimit, name+" is there", func() bool { return h.p.has(name) })
}

// eof closes stdin.
func (h *scriptedHost) eof() {
	h.said = append(h.said, said{h.seen, map[string]any{"eof": true}})
	h.proc.CloseStdin()
}

// end closes stdin unless that was done, waits for the exit and checks it.
func (h *scriptedHost) end(code int) {
	h.t.Helper()
	if !slices.ContainsFunc(h.said, func(s said) bool { return isEOF(s.line) }) {
		h.eof()
	}
	exit, err := h.proc.Wait(hostLimit)
	if err != nil {
		h.t.Fatalf("%v\nstdin:\n%s\nstdout:\n%.6000s", err, h.saidText(), h.proc.Output())
	}
	if exit.Code != code || h.proc.Stderr() != "" {
		h.t.Errorf("exit code %d, want %d; stderr: %s", exit.Code, code, h.proc.Stderr())
	}
	h.exit = exit.Code
	h.checkSchema()
}

func isEOF(v any) bool {
	m, _ := v.(map[string]any)
	return m["eof"] == true
}

// checkSchema holds every line against the published schema, and responses
// against that of their subtype.
func (h *scriptedHost) checkSchema() {
	h.t.Helper()
	def := "out"
	if h.dialect == streamjson.Qwen {
		def = "out_qwen"
	}
	schema := wireSchema(h.t, def)
	for _, l := range h.proc.Lines() {
		var v map[string]any
		if err := json.Unmarshal(l.Text, &v); err != nil {
			h.t.Errorf("%v: %s", err, l.Text)
			continue
		}
		if err := schema.Validate(v); err != nil {
			h.t.Errorf("the schema has no such line: %.2000s\n%v", l.Text, err)
		}
		h.checkResponse(v)
	}
}

func (h *scriptedHost) checkResponse(f testkit.Frame) {
	h.t.Helper()
	subtype := h.requests[f.String("response.request_id")]
	payload, ok := f.Get("response.response")
	if f.Kind() != "control_response" || subtype == "" || !ok || f.String("response.subtype") != "success" {
		return
	}
	if m, isMap := payload.(map[string]any); isMap && len(m) == 0 && h.dialect == streamjson.Claude {
		return // nothing to tell
	}
	for _, suffix := range []string{"", "." + string(h.dialect), ".native.claude", ".native.qwen"} {
		if strings.Contains(suffix, ".native.") && !strings.Contains(suffix, string(h.dialect)) {
			continue
		}
		if schema := wireSchema(h.t, "response."+subtype+suffix); schema != nil {
			if err := schema.Validate(payload); err != nil {
				h.t.Errorf("the response to %s: %v\n%v", subtype, err, payload)
			}
			return
		}
	}
}

// record is what was said by both, in order and redacted.
func (h *scriptedHost) record() []any {
	r := newRedactor(h)
	var out []any
	said := h.said
	for i, l := range h.proc.Lines() {
		for len(said) > 0 && said[0].at <= i {
			out, said = append(out, r.any(said[0].line)), said[1:]
		}
		var f map[string]any
		if err := json.Unmarshal(l.Text, &f); err != nil {
			h.t.Errorf("%v: %s", err, l.Text)
			continue
		}
		if !isProgress(f) {
			out = append(out, map[string]any{"out": r.frame(f)})
		}
	}
	for _, s := range said {
		out = append(out, r.any(s.line))
	}
	return append(out, map[string]any{"exit": h.exit})
}

// redactor replaces what differs from run to run.
type redactor struct {
	h     *scriptedHost
	ours  string            // what the host said: its ids stay
	ids   map[string]string // what stands for ids of the program
	texts *strings.Replacer
}

var (
	anUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anID   = regexp.MustCompile(`\b(agent-|msg_)?[0-9a-f]{16,32}\b`)
	aPID   = regexp.MustCompile(`(PGID|pid|process group|process):? \d+`)
	// notInNames is what is replaced in the names of folders of transcripts.
	notInNames = regexp.MustCompile(`[^A-Za-z0-9]`)
	aTime      = regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|s)\b`)
	aDay       = regexp.MustCompile(`\b20\d\d-\d\d-\d\d(T[0-9:.]+Z)?`)
)

func newRedactor(h *scriptedHost) *redactor {
	root := filepath.Dir(h.p.dir)
	return &redactor{
		h: h, ours: h.saidText(), ids: map[string]string{},
		texts: strings.NewReplacer(os.Args[0], "TESTS", h.p.dir, "DIR", root, "ROOT", notInNames.ReplaceAllString(root, "-"), "-ROOT"),
	}
}

// unsteady are the members whose values are left out.
var unsteady = map[string]any{
	"pid": 0, "claude_code_version": "VERSION", "agent_version": "VERSION", "qwen_code_version": "VERSION", "version": "VERSION",
	"duration_ms": 0, "duration_api_ms": 0, "durationMs": 0, "totalDurationMs": 0, "elapsed_time_seconds": 0, "elapsedMs": 0,
	"uptime_ms": 0, "last_event_ms": 0, "rss_bytes": 0, "generatedAt": "TIME", "generated_at": "TIME", "end_time": 0,
	"lastOutputAgeMs": 0, "total_tokens": 0, "totalTokens": 0, "retry_delay_ms": 0, "delayMs": 0, "progressToken": 0,
	"timestamp": "TIME",
}

// frame redacts a frame of the program.
func (r *redactor) frame(f map[string]any) any {
	delete(f, "ttft_ms") // is left out when it is less than one
	frame := testkit.Frame(f)
	if !r.h.whole {
		r.shorten(frame)
	}
	if r.h.requests[frame.String("response.request_id")] == "get_context_usage" {
		numberless(f)
	}
	if id := frame.String("request_id"); id != "" && frame.Kind() != "control_response" {
		r.name(id, "program_")
	}
	content, _ := frame.Get("message.content")
	list, _ := content.([]any)
	for _, item := range list {
		b, _ := item.(map[string]any)
		if id, _ := b["id"].(string); id != "" && !strings.HasPrefix(id, "call_") {
			r.name(id, "call_id_")
		}
	}
	return r.any(f)
}

// name remembers an id of the program.
func (r *redactor) name(id, prefix string) {
	if r.ids[id] == "" {
		n := 1
		for _, v := range r.ids {
			if strings.HasPrefix(v, prefix) {
				n++
			}
		}
		r.ids[id] = fmt.Sprint(prefix, n)
	}
}

// shorten leaves out what is in full in cases that are about it.
func (r *redactor) shorten(f testkit.Frame) {
	switch f.Kind() {
	case "system/init":
		maps.DeleteFunc(f, func(key string, _ any) bool { return !slices.Contains(kept, key) })
		f["..."] = "..."
	case "control_response":
		body, _ := f.Get("response")
		if _, ok := f.Get("response.response"); ok && r.h.requests[f.String("response.request_id")] == "initialize" {
			body.(map[string]any)["response"] = "..."
		}
	}
	for _, path := range []string{"", "message", "event", "event.message"} {
		var m any = map[string]any(f)
		if path != "" {
			m, _ = f.Get(path)
		}
		if m, ok := m.(map[string]any); ok {
			delete(m, "queued_turn_count") // how far the reader got is the machine's own
			for _, key := range []string{"usage", "modelUsage"} {
				if m[key] != nil {
					m[key] = "..."
				}
			}
		}
	}
}

// kept are the members of system/init that are always kept.
var kept = []string{"type", "subtype", "session_id", "uuid", "model", "permissionMode", "permission_mode", "mcp_servers"}

// numberless replaces numbers by 0.
func numberless(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if _, ok := value.(float64); ok {
				v[key] = 0
			}
			numberless(value)
		}
	case []any:
		for _, item := range v {
			numberless(item)
		}
	}
}

func (r *redactor) any(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "protocolVersion" { // a date
				continue
			}
			if by, ok := unsteady[key]; ok && !isNothing(value) {
				v[key] = by
			} else if key == "session_id" && value != "" {
				v[key] = "SESSION"
			} else {
				delete(v, key)
				v[r.text(key)] = r.any(value)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.any(v[i])
		}
		return v
	case string:
		return r.text(v)
	}
	return v
}

// isNothing reports whether a value says only that there is none.
func isNothing(v any) bool { return v == nil || v == "" }

func (r *redactor) text(s string) string {
	if id := r.ids[s]; id != "" {
		return id
	}
	s = r.texts.Replace(s)
	s = anUUID.ReplaceAllStringFunc(s, func(id string) string {
		if strings.Contains(r.ours, id) && r.ids[id] == "" && strings.HasPrefix(id, "0000") {
			return id
		}
		return "UUID"
	})
	s = anID.ReplaceAllString(s, "${1}ID")
	s = aPID.ReplaceAllString(s, "$1 0")
	s = aTime.ReplaceAllString(s, "0 ms")
	return aDay.ReplaceAllString(s, "TIME")
}

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// patience bounds every wait for the program in tests that say nothing else.
const patience = 20 * time.Second

// userHost is a program that runs a session over JSON lines, as an SDK does.
type userHost struct {
	*testkit.Proc
	t       *testing.T
	dialect string
	at      int // behind the last line that was waited for
}

// host starts a session in a dialect whose host answers questions.
func (p *place) host(t *testing.T, dialect string, s testkit.Spec) *userHost {
	t.Helper()
	s.HoldStdin = true
	s.Args = append(append([]string{"--dialect", dialect}, bothWays...), s.Args...)
	if dialect == "claude" {
		s.Args = append(s.Args, "--permission-prompt-tool", "stdio")
	}
	return &userHost{Proc: p.start(s), t: t, dialect: dialect}
}

// ask sends a control request; see answer.
func (h *userHost) ask(id string, body map[string]any) {
	h.t.Helper()
	h.send(line(map[string]any{"type": "control_request", "request_id": id, "request": body}))
}

func (h *userHost) send(line string) {
	h.t.Helper()
	if err := h.Send(line); err != nil {
		h.t.Fatal(err)
	}
}

func (h *userHost) say(text string) { h.send(userLine(text)) }

// initialize sends the request, with what is in body, and waits for success.
func (h *userHost) initialize(body map[string]any) testkit.Frame {
	h.t.Helper()
	all := map[string]any{"subtype": "initialize"}
	for k, v := range body {
		all[k] = v
	}
	h.ask("init", all)
	f := h.answer("init")
	if f.String("response.subtype") != "success" {
		h.t.Fatalf("initialize: %v", f)
	}
	return f
}

// await waits for a line that want accepts, behind the last one that was waited
// for.
func (h *userHost) await(what string, want func(f testkit.Frame) bool) testkit.Frame {
	h.t.Helper()
	var found testkit.Frame
	_, next, err := h.Await(h.at, patience, func(l testkit.Line) bool {
		found = h.parse(l)
		return want(found)
	})
	if err != nil {
		h.t.Fatalf("waiting for %s: %v\nstdout: %.6000s", what, err, h.Output())
	}
	h.at = next
	return found
}

// parse reads a line; those of dialects that have other keys are not checked.
func (h *userHost) parse(l testkit.Line) testkit.Frame {
	h.t.Helper()
	if h.dialect != "qwen" {
		f, err := testkit.Parse(l.Text)
		if err != nil {
			h.t.Errorf("%v: %.300s", err, l.Text)
		}
		return f
	}
	var f testkit.Frame
	if err := json.Unmarshal(l.Text, &f); err != nil {
		h.t.Errorf("%v: %.300s", err, l.Text)
	}
	return f
}

// frames are all lines so far.
func (h *userHost) frames() []testkit.Frame {
	h.t.Helper()
	var list []testkit.Frame
	for _, l := range h.Lines() {
		list = append(list, h.parse(l))
	}
	return list
}

// answer waits for the response to a request, wherever it stands.
func (h *userHost) answer(id string) testkit.Frame {
	h.t.Helper()
	at := h.at
	h.at = 0
	f := h.await("the response to "+id, func(f testkit.Frame) bool { return f.String("response.request_id") == id })
	h.at = at
	return f
}

// asked waits for the next request of the program with this subtype.
func (h *userHost) asked(subtype string) testkit.Frame {
	h.t.Helper()
	return h.await("a "+subtype+" request", func(f testkit.Frame) bool {
		return f.Kind() == "control_request" && f.String("request.subtype") == subtype
	})
}

// reply answers a request of the program.
func (h *userHost) reply(request testkit.Frame, payload any) {
	h.t.Helper()
	h.send(line(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": request.String("request_id"), "response": payload,
	}}))
}

func (h *userHost) refuse(request testkit.Frame, text string) {
	h.t.Helper()
	h.send(line(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "error", "request_id": request.String("request_id"), "error": text,
	}}))
}

func (h *userHost) result() testkit.Frame {
	h.t.Helper()
	return h.await("a result", func(f testkit.Frame) bool { return f.Kind() == "result" })
}

// end ends stdin and waits for the end; the exit code must be want.
func (h *userHost) end(want int) []testkit.Frame {
	h.t.Helper()
	h.CloseStdin()
	exit, err := h.Wait(patience)
	if err != nil || exit.Code != want {
		h.t.Fatalf("%v, exit code %d, want %d\nstderr: %s\nstdout: %.3000s", err, exit.Code, want, h.Stderr(), h.Output())
	}
	return h.frames()
}

// count is the number of frames that want accepts.
func count(list []testkit.Frame, want func(testkit.Frame) bool) int {
	n := 0
	for _, f := range list {
		if want(f) {
			n++
		}
	}
	return n
}

// requestsOf are the program's requests with this subtype.
func requestsOf(list []testkit.Frame, subtype string) int {
	return count(list, func(f testkit.Frame) bool {
		return f.Kind() == "control_request" && f.String("request.subtype") == subtype
	})
}

var sdkDialects = []string{"native", "claude", "qwen"}

// eachDialect runs f side by side in every dialect of hosts.
func eachDialect(t *testing.T, f func(t *testing.T, dialect string)) {
	t.Helper()
	for _, d := range sdkDialects {
		t.Run(d, func(t *testing.T) {
			t.Parallel()
			f(t, d)
		})
	}
}

// allow and deny are a host's answers to can_use_tool.
var (
	allow = map[string]any{"behavior": "allow", "updatedInput": map[string]any{}}
	deny  = map[string]any{"behavior": "deny", "message": "the user said no"}
)

// write is a step that has a file written.
func write(turn int, file string) string {
	return call(turn, "write_file", map[string]any{"file_path": file, "content": "x"})
}

// hookDialects are those whose SDKs have hooks.
var hookDialects = []string{"native", "claude"}

// hookOn registers one callback for all that an event is of.
func hookOn(event, id string) map[string]any {
	return map[string]any{event: []any{map[string]any{"matcher": nil, "hookCallbackIds": []string{id}}}}
}

func mustContain(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s lacks %q: %.1000s", what, part, fmt.Sprint(text))
	}
}

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// reply answers a request of the program: nil leaves it open, an error is an
// error response, json.RawMessage is sent as it is.
type reply func(subtype string, request map[string]any) any

// puppet is a host whose every move a test decides. It is used by one goroutine.
type puppet struct {
	t     testing.TB
	proc  *testkit.Proc
	reply reply
	next  int              // line to read
	ids   int              // of our requests
	asked []map[string]any // requests of the program
}

// puppet starts the program with a host that replies so.
func (p *place) puppet(r reply, flags ...string) *puppet {
	p.t.Helper()
	return &puppet{t: p.t, proc: p.start(testkit.Spec{Args: append(flags, bothWays...), HoldStdin: true}), reply: r}
}

// until reads on, answering requests, until a frame is wanted.
func (h *puppet) until(what string, want func(testkit.Frame) bool) testkit.Frame {
	h.t.Helper()
	for {
		line, next, err := h.proc.Await(h.next, 30*time.Second, func(testkit.Line) bool { return true })
		if err != nil {
			h.t.Fatalf("%s: %v\nstdout: %.3000s\nstderr: %.2000s", what, err, h.proc.Output(), h.proc.Stderr())
		}
		h.next = next
		var f testkit.Frame
		if err := json.Unmarshal(line.Text, &f); err != nil {
			h.t.Fatalf("%v: %.500s", err, line.Text)
		}
		if f.String("type") == "control_request" {
			h.answer(f)
		}
		if want(f) {
			return f
		}
	}
}

func (h *puppet) answer(f testkit.Frame) {
	request, _ := f["request"].(map[string]any)
	h.asked = append(h.asked, request)
	if h.reply == nil {
		return
	}
	if body := h.reply(f.String("request.subtype"), request); body != nil {
		h.respond(f.String("request_id"), body)
	}
}

// respond answers a request of the program.
func (h *puppet) respond(id string, body any) {
	response := map[string]any{"subtype": "success", "request_id": id, "response": body}
	var failed error
	if err, ok := body.(error); ok {
		failed = err
		response = map[string]any{"subtype": "error", "request_id": id, "error": failed.Error()}
	}
	h.send(line(map[string]any{"type": "control_response", "response": response}))
}

// send writes lines.
func (h *puppet) send(lines ...string) {
	h.t.Helper()
	if _, err := h.proc.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		h.t.Fatalf("%v\nstderr: %s", err, h.proc.Stderr())
	}
}

// request sends a request and returns the answer's inner object, or its error.
func (h *puppet) request(body string) (map[string]any, error) {
	h.t.Helper()
	h.ids++
	id := fmt.Sprintf("q%d", h.ids)
	h.send(fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":%s}`, id, body))
	f := h.until(body, func(f testkit.Frame) bool { return f.String("response.request_id") == id })
	if text := f.String("response.error"); text != "" {
		return nil, errors.New(text)
	}
	response, _ := f.Get("response.response")
	out, _ := response.(map[string]any)
	return out, nil
}

// must is request for one that has to succeed.
func (h *puppet) must(body string) map[string]any {
	h.t.Helper()
	out, err := h.request(body)
	if err != nil {
		h.t.Fatalf("%s: %v", body, err)
	}
	return out
}

// prompt sends a user line and returns the result of its turn.
func (h *puppet) prompt(text string) testkit.Frame {
	h.t.Helper()
	h.send(userLine(text))
	return h.result()
}

func (h *puppet) result() testkit.Frame {
	h.t.Helper()
	return h.until("a result", func(f testkit.Frame) bool { return f.Kind() == "result" })
}

// end closes stdin and waits for the program's end.
func (h *puppet) end() testkit.Exit {
	h.t.Helper()
	h.proc.CloseStdin()
	exit, err := h.proc.Wait(30 * time.Second)
	if err != nil {
		h.t.Fatalf("%v\nstdout: %.3000s", err, h.proc.Output())
	}
	return exit
}

// requests are the program's requests of a subtype.
func (h *puppet) requests(subtype string) []map[string]any {
	var out []map[string]any
	for _, r := range h.asked {
		if r["subtype"] == subtype {
			out = append(out, r)
		}
	}
	return out
}

// inits are the names of the tools in the init frames, the last one's.
func (h *puppet) inits() []string {
	var names []string
	for _, l := range h.proc.Lines() {
		var f struct {
			Subtype string   `json:"subtype"`
			Tools   []string `json:"tools"`
		}
		if json.Unmarshal(l.Text, &f) == nil && f.Subtype == "init" {
			names = f.Tools
		}
	}
	return names
}

// calls is a script whose n-th turn makes the n-th call, and then says done.
func calls(list ...attempt) string {
	var sb strings.Builder
	for i, c := range list {
		raw, _ := json.Marshal(c.input)
		fmt.Fprintf(&sb, "{\"when\": {\"turn\": %d}, \"emit\": [{\"tool\": %q, \"input\": %s, \"literal\": true}]}\n", i+1, c.tool, raw)
	}
	return sb.String() + say("done")
}

// frames are all frames so far.
func (h *puppet) frames() []testkit.Frame {
	var out []testkit.Frame
	for _, l := range h.proc.Lines() {
		var f testkit.Frame
		if json.Unmarshal(l.Text, &f) == nil {
			out = append(out, f)
		}
	}
	return out
}

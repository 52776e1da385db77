package session

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

// TestTenThousandRequestsOverAWholeSession: with random cancels, interrupts and
// turns of every kind each request has one response, state changes are answered
// in order of arrival, every line of the user finds the state changes before it
// done, and has one result unless an interrupt dropped it.
func TestTenThousandRequestsOverAWholeSession(t *testing.T) {
	t.Parallel()
	for _, d := range []streamjson.Dialect{streamjson.Native, streamjson.Claude, streamjson.Qwen} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			n := 10_000
			if testing.Short() || d != streamjson.Native {
				n = 3000
			}
			newStorm(t, d).run(n)
		})
	}
}

// storm is the host of that test.
type storm struct {
	*peer
	rnd  *rand.Rand
	qwen bool // whose answer to an interrupt doesn't say what was dropped

	wantMu sync.Mutex
	want   map[string]int // by the user's line: the number of the model that must be set by then

	states    []string        // ids of state changes, in order
	withdrawn map[string]bool // ids of requests that were cancelled
	lines     int
}

func newStorm(t *testing.T, d streamjson.Dialect) *storm {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &storm{rnd: rand.New(rand.NewPCG(seed, 0)), qwen: d == streamjson.Qwen, want: map[string]int{}, withdrawn: map[string]bool{}}
	s.peer = startPeer(t, d, s.asked, &peer{request: s.answer, frame: s.unblock})
	return s
}

// asked checks a request to the model: the line that it answers came after a
// set_model, which must hold.
func (s *storm) asked(req *model.Request) {
	text := lastUserText(req)
	s.wantMu.Lock()
	want, ok := s.want[text]
	s.wantMu.Unlock()
	if !ok {
		s.t.Errorf("the model was asked about %q", text)
		return
	}
	if got, _ := strconv.Atoi(strings.TrimPrefix(req.Model, "m")); got < want {
		s.t.Errorf("%q found model m%d, and m%d was set before it", text, got, want)
	}
}

// answer answers our requests, well and badly; what it leaves open an interrupt
// ends.
func (s *storm) answer(id, subtype string) {
	kind := id[len(id)-1] % 8
	switch {
	case subtype == "hook_callback" && kind == 0:
		s.send(`{"type":"control_response","response":{"subtype":"error","request_id":` + strconv.Quote(id) + `,"error":"no"}}`)
	case subtype == "hook_callback":
		s.send(responseLine(id, `{}`))
	case kind == 0:
		s.send(requestLine("open-"+id, `{"subtype":"interrupt"}`))
	case kind == 1:
		s.send(responseLine(id, `{"behavior":"deny","message":"no","interrupt":true}`))
	case kind == 2:
		s.send(responseLine(id, `"what?"`), responseLine(id, `{"behavior":"allow"}`))
	default:
		s.send(responseLine(id, `{"behavior":"allow","updatedInput":{}}`))
	}
}

// unblock interrupts the turns that never end by themselves, once they are so
// far.
func (s *storm) unblock(_ string, line []byte) {
	if text := string(line); strings.Contains(text, `"half"`) && strings.Contains(text, "text_delta") ||
		strings.Contains(text, `"name":"hang"`) && strings.HasPrefix(text, `{"type":"assistant"`) {
		s.lines++ // s.mu is held
		go s.send(requestLine(fmt.Sprint("unblock-", s.lines), `{"subtype":"interrupt"}`))
	}
}

func (s *storm) run(n int) {
	s.send(requestLine("first", `{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":null,"hookCallbackIds":["h1"]}],"Stop":[{"hookCallbackIds":["h2"]}]}}`))
	bodies := []string{
		`{"subtype":"set_permission_mode","mode":"plan"}`, `{"subtype":"set_permission_mode","mode":"yolo"}`, `{"subtype":"set_permission_mode","mode":"default"}`,
		`{"subtype":"interrupt"}`, `{"subtype":"interrupt","cancel_queued":true}`, `{"subtype":"supported_commands"}`, `{"subtype":"mcp_server_status"}`,
		`{"subtype":"can_use_tool","tool_name":"change","input":{}}`, `{"subtype":"hook_callback","callback_id":"h1","input":{}}`, `{"subtype":"nonsense"}`, `{}`,
		`{"subtype":"set_model","model":3}`, `{"subtype":"heartbeat"}`, `{"subtype":"set_permission_mode","mode":"x"}`, `{"subtype":"initialize"}`,
	}
	if s.qwen {
		bodies[4] = bodies[3]
	}
	words := []string{"say", "say", "look", "change", "stall", "hang", "break"}
	users, model := 0, 0
	for i := range n {
		id := fmt.Sprintf("q%d", i)
		cancel := s.rnd.IntN(20) == 0
		kind := s.rnd.IntN(len(bodies) + 3)
		body := fmt.Sprintf(`{"subtype":"set_model","model":"m%d"}`, i)
		if kind < len(bodies) {
			body = bodies[kind]
		}
		if kind < 3 || kind >= len(bodies) {
			s.states = append(s.states, id)
		}
		s.send(requestLine(id, body))
		switch {
		case cancel:
			s.withdrawn[id] = true
			s.send(`{"type":"control_cancel_request","request_id":"` + id + `"}`)
		case kind >= len(bodies):
			model = i
		}
		if s.rnd.IntN(15) == 0 {
			users++
			text := fmt.Sprintf("%s #%d", words[s.rnd.IntN(len(words))], users)
			s.wantMu.Lock()
			s.want[text] = model
			s.wantMu.Unlock()
			s.send(textLine(fmt.Sprint("u", users), text))
			s.await(func() bool { return users-s.results-len(s.cancelled) < 8 })
		}
	}
	s.await(func() bool { return s.results+len(s.cancelled) >= users })
	s.close()
	s.check(n, users)
}

func (s *storm) check(n, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	order := []string{}
	isState := map[string]bool{}
	for _, id := range s.states {
		isState[id] = true
	}
	for _, id := range s.responses {
		count[id]++
		if isState[id] && !s.withdrawn[id] {
			order = append(order, id)
		}
	}
	for i := range n {
		if id := fmt.Sprintf("q%d", i); count[id] != 1 {
			s.t.Errorf("%s has %d responses", id, count[id])
		}
	}
	at := 0
	for _, id := range s.states {
		if s.withdrawn[id] {
			continue
		}
		if at >= len(order) || order[at] != id {
			s.t.Fatalf("state changes were answered out of order: %s is late", id)
		}
		at++
	}
	if s.results+len(s.cancelled) != users {
		s.t.Errorf("%d results and %d lines that were dropped, for %d lines", s.results, len(s.cancelled), users)
	}
	s.t.Logf("%d lines of the user: %d results, %d dropped; %d responses", users, s.results, len(s.cancelled), len(s.responses))
}

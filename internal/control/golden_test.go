package control

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/streamjson"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares what goes over the wire, for each subtype in each
// direction and each way in which it can end, with testdata/DIALECT.jsonl. A
// line of that is {"case"}, {"in"} from the host, {"out"} to it, or {"error"}: what
// whoever called the host gets.
func TestGolden(t *testing.T) {
	for _, d := range dialects {
		var got bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(requestCases)) {
			record(t, &got, d, "host asks: "+name, func(g *golden) { g.request(requestCases[name].request) })
		}
		record(t, &got, d, "host asks: initialize", func(g *golden) {
			g.request(`{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"],"timeout":30}]},"effort":"high"}`)
			g.request(`{"subtype":"initialize","hooks":3}`)
		})
		record(t, &got, d, "host asks: cancelled", func(g *golden) {
			g.w.block = make(chan struct{})
			g.line(`{"type":"control_request","request_id":"r1","request":{"subtype":"set_model","model":"x"}}`)
			g.line(`{"type":"control_cancel_request","request_id":"r1"}`)
			g.line(`{"type":"control_cancel_request","request_id":""}`)
		})
		record(t, &got, d, "host asks: timed out", func(g *golden) {
			g.w.block = make(chan struct{})
			g.request(`{"subtype":"set_model","model":"x"}`)
		})
		record(t, &got, d, "host asks: the input ends", func(g *golden) {
			g.h.d.CloseInput()
			g.request(`{"subtype":"set_model","model":"x"}`)
		})
		for _, subtype := range slices.Sorted(maps.Keys(outgoing)) {
			goldenCalls(t, &got, d, subtype)
		}
		compareGolden(t, filepath.Join("testdata", string(d)+".jsonl"), got.Bytes())
	}
}

// successes are answers to our calls.
var successes = map[string][]string{
	"can_use_tool": {
		`{"behavior":"allow"}`, `{"behavior":"allow","updatedInput":{"command":"touch b"}}`, `{"behavior":"deny","message":"no","interrupt":true}`, `{"behavior":"perhaps"}`,
	},
	"hook_callback": {`{"continue":true}`, `null`, `[]`},
	"mcp_message":   {`{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}}`, `{}`},
}

func goldenCalls(t *testing.T, got *bytes.Buffer, d streamjson.Dialect, subtype string) {
	t.Helper()
	call := func(name string, answer func(g *golden, m *streamjson.ControlRequest, cancel context.CancelFunc), before func(g *golden)) {
		record(t, got, d, "we ask: "+subtype+": "+name, func(g *golden) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if before != nil {
				before(g)
				synctest.Wait()
			}
			if answer != nil {
				g.h.answer = func(_ *host, m *streamjson.ControlRequest) { answer(g, m, cancel) }
			}
			if err := outgoing[subtype](ctx, g.h.d); err != nil {
				g.note("error", err.Error())
			}
		})
	}
	for i, s := range successes[subtype] {
		call(fmt.Sprint("answer ", i), func(g *golden, m *streamjson.ControlRequest, _ context.CancelFunc) {
			g.line(`{"type":"control_response","response":{"subtype":"success","request_id":"` + m.RequestID + `","response":` + s + `}}`)
		}, nil)
	}
	for _, f := range failures {
		call(f.name, func(g *golden, m *streamjson.ControlRequest, cancel context.CancelFunc) { f.do(g.h, m, cancel) }, nil)
	}
	call("input closed before", nil, func(g *golden) { g.h.d.CloseInput() })
	call("timed out", nil, func(g *golden) {
		g.line(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","timeout":{"canUseTool":1000}}}`)
	})
}

// golden records one case.
type golden struct {
	h    *host
	w    *world
	out  *bytes.Buffer
	seen int
}

func record(t *testing.T, out *bytes.Buffer, d streamjson.Dialect, name string, run func(*golden)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, w := newHost(t, d)
		g := &golden{h: h, w: w, out: out}
		g.note("case", name)
		run(g)
		synctest.Wait()
		g.drain()
	})
}

func (g *golden) note(key, text string) {
	g.drain()
	line, err := json.Marshal(map[string]string{key: text})
	if err != nil {
		g.h.t.Fatal(err)
	}
	g.out.Write(append(line, '\n'))
}

// drain writes what was sent since.
func (g *golden) drain() {
	for _, line := range g.h.sent()[g.seen:] {
		fmt.Fprintf(g.out, "{\"out\":%s}\n", line)
		g.seen++
	}
}

// line feeds a line.
func (g *golden) line(text string) {
	g.drain()
	fmt.Fprintf(g.out, "{\"in\":%s}\n", text)
	g.h.line(text)
}

func (g *golden) request(body string) {
	g.line(`{"type":"control_request","request_id":"r","request":` + body + `}`)
	synctest.Wait()
	if len(g.h.sent()) == g.seen {
		time.Sleep(stateLimit) // in the bubble: until it is given up
		synctest.Wait()
	}
	g.drain()
}

// uuids are different each time.
var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	got = uuids.ReplaceAll(got, []byte("UUID"))
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got; go test ./internal/control -run Golden -update writes it anew):\n%s", path, diff)
	}
}

package session

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/streamjson"
)

// FuzzStdin: whatever a host writes, in whatever dialect, the session lives on:
// a good request and a good line of the user are still answered, and the end of
// the input ends it.
func FuzzStdin(f *testing.F) {
	for i, seed := range fuzzSeeds() {
		f.Add([]byte(seed), byte(i))
	}
	f.Fuzz(func(t *testing.T, input []byte, which byte) {
		if len(input) > 1<<14 {
			t.Skip()
		}
		d := []streamjson.Dialect{streamjson.Native, streamjson.Claude, streamjson.Qwen}[which%3]
		defer time.AfterFunc(15*time.Second, func() {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			panic(fmt.Sprintf("the session is wedged by %q in %s", input, d))
		}).Stop()
		var p *peer
		n := 0 // p.mu is held
		interrupt := func() {
			n++
			go p.send(requestLine(fmt.Sprintf("unblock-%d", n), `{"subtype":"interrupt"}`)) // ends with its line written
		}
		p = &peer{
			request: func(id, subtype string) {
				if subtype == "can_use_tool" {
					p.send(responseLine(id, `{"behavior":"allow"}`))
					return
				}
				p.send(responseLine(id, `{}`))
			},
			frame: func(_ string, line []byte) { // turns that never end by themselves
				if text := string(line); strings.Contains(text, `"half"`) && strings.Contains(text, "text_delta") ||
					strings.Contains(text, `"name":"hang"`) && strings.HasPrefix(text, `{"type":"assistant"`) {
					interrupt()
				}
			},
		}
		startPeer(t, d, nil, p)
		p.send(string(input))
		if !p.alive() {
			t.Errorf("%s: no answer any more after %q", d, input)
		}
		p.close()
	})
}

// alive reports whether a request and a line of the user are still answered. An
// interrupt that was meant for a turn before may hit the first lines.
func (p *peer) alive() bool {
	p.send(requestLine("the-probe", `{"subtype":"supported_commands"}`))
	if !p.await(func() bool { return p.payloads["the-probe"] != nil }) {
		return false
	}
	for i := range 20 {
		uuid := fmt.Sprintf("probe-%d", i)
		p.send(textLine(uuid, "say"))
		var err error
		if !p.await(func() bool { e, ok := p.turns[uuid]; err = e; return ok }) {
			return false
		}
		if err == nil {
			return true
		}
	}
	return false
}

// fuzzSeeds are inputs of many kinds, each for the three dialects.
func fuzzSeeds() []string {
	bodies := []string{
		`{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"look","hookCallbackIds":["h"],"timeout":1}],"UserPromptSubmit":[{"hookCallbackIds":["h2"]}]},"timeout":{"canUseTool":5}}`,
		`{"subtype":"initialize","hooks":[{"event":"Stop","callback_id":"h"}],"agents":[],"mcpServers":{},"sdkMcpServers":["a"]}`,
		`{"subtype":"initialize","hooks":7}`, `{"subtype":"interrupt"}`, `{"subtype":"interrupt","cancel_queued":true}`,
		`{"subtype":"set_model","model":"m"}`, `{"subtype":"set_model","model":null}`, `{"subtype":"set_model","model":{}}`,
		`{"subtype":"set_permission_mode","mode":"yolo"}`, `{"subtype":"set_permission_mode","mode":[]}`, `{"subtype":"supported_commands"}`,
		`{"subtype":"can_use_tool","tool_name":"change","input":{"a":1}}`, `{"subtype":"mcp_server_status"}`,
		`{"subtype":"mcp_message","server_name":"a","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`,
		`{"subtype":"hook_callback","callback_id":"h","input":{}}`, `{"subtype":"heartbeat"}`, `{"subtype":"continue_last_turn"}`,
		`{"subtype":"set_effort","effort":"high"}`, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":0}`, `{"subtype":"stop_task","task_id":"x"}`,
		`{"subtype":"keep_alive"}`, `{"subtype":""}`, `{}`, `null`, `[1]`,
	}
	var list []string
	for _, b := range bodies {
		list = append(list, requestLine("r", b))
	}
	list = append(list, strings.Join(list, "\n"),
		textLine("u", "look")+"\n"+textLine("v", "stall")+"\n"+requestLine("i", `{"subtype":"interrupt"}`)+"\n"+textLine("w", "change"),
		textLine("u", "hang")+"\n"+textLine("u", "break")+"\n"+textLine("u", "stall")+"\n"+requestLine("i", `{"subtype":"interrupt","cancel_queued":true}`),
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[]}]},"options":{"model":"n","maxTurns":1}}`,
		`{"type":"user","shouldQuery":false,"message":{"role":"user","content":"know this"}}`+"\n"+`{"type":"user","message":{"role":"user","content":{}}}`,
		`{"type":"control_cancel_request","request_id":"r"}`+"\n"+`{"type":"control_cancel_request"}`+"\n"+`{"type":"keep_alive"}`,
		responseLine("nobody", `{"behavior":"allow"}`)+"\n"+`{"type":"control_response","response":{"subtype":"error","request_id":"1"}}`+"\n"+`{"type":"control_response"}`,
		"not json\n{\n\"\n[]\n\x00\xff\n{\"type\":\"user\"", "\r\n\r\n  \n", `{"type":"control_request","request_id":"`, strings.Repeat("[", 5000),
		`{"type":"control_request","request_id":1,"request":{"subtype":"interrupt"}}`+"\n"+`{"type":"control_request","request":{"subtype":"initialize"}}`,
	)
	var all []string
	for _, one := range list {
		all = append(all, one, one, one)
	}
	return all
}

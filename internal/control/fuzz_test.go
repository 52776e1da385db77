package control

import (
	"context"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// FuzzRequests: whatever a request's payload is, there is one response.
func FuzzRequests(f *testing.F) {
	for _, s := range subtypes {
		f.Add(`{"subtype":"`+s+`"}`, byte(0))
	}
	f.Add(`{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["x"],"timeout":1}]},"agents":[{"name":"a"}],"systemPrompt":["a"],"timeout":{"mcp":1}}`, byte(1))
	f.Add(`{"subtype":"mcp_set_servers","servers":{"x":{"type":"sdk"}}}`, byte(2))
	f.Add(`{"subtype":"can_use_tool","tool_name":"x","input":{"a":1}}`, byte(0))
	f.Add(`{"subtype":"hook_callback","callback_id":"x","input":{"a":1},"tool_use_id":"y"}`, byte(1))
	f.Fuzz(func(t *testing.T, body string, which byte) {
		if len(body) > 10_000 {
			t.Skip()
		}
		h, _ := newHost(t, dialects[int(which)%len(dialects)])
		h.answer = replies(`{}`)
		line := `{"type":"control_request","request_id":"r","request":` + body + `}`
		m, err := streamjson.Decode([]byte(line))
		if err != nil {
			t.Skip()
		}
		r, ok := m.(*streamjson.ControlRequest)
		if !ok || r.RequestID != "r" {
			t.Skip()
		}
		h.d.Receive(m)
		if err := h.d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range h.msgs {
			if _, ok := m.(*streamjson.ControlResponse); ok {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d responses to %s", n, body)
		}
	})
}

// FuzzAnswers: whatever a host answers, it is an approval only if it says allow,
// and then it is bound to the call.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"setMode","mode":"plan"},{"type":"allow","rule":"Bash(x)"}]}`)
	f.Add(`{"behavior":"deny","message":"m","interrupt":true}`)
	f.Add(`{"behavior":"allow","updatedInput":{"answers":{"Which?":["a"],"0":"b"}}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		m, err := streamjson.Decode([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"r","response":` + answer + `}}`))
		r, ok := m.(*streamjson.ControlResponse)
		if err != nil || !ok {
			t.Skip()
		}
		for _, d := range dialects {
			p := New(Config{Dialect: d, Out: outputFunc(func(streamjson.Message) error { return nil })}).Permission()
			q := question()
			a := p.readAnswer(r.Response, q, []byte(q.Input))
			if a.Allow && (a.Hash != q.Hash || a.ToolUseID != q.ToolUseID || !strings.Contains(strings.ToLower(answer), "llow") && !strings.Contains(answer, `\`)) {
				t.Fatalf("%s: %s: %+v", d, answer, a)
			}
			if !a.Allow && (a.UpdatedInput != nil || len(a.Updates) > 0 || a.Remember != "") {
				t.Fatalf("%s: %s: a denial changes something: %+v", d, answer, a)
			}
			ask := policy.AskUser{ToolUseID: "t1", Questions: []policy.UserQuestion{{Question: "Which?"}}}
			if a, err := p.readAnswers(r.Response, ask); err == nil && a.Allow && len(a.Answers) == 0 {
				t.Fatalf("%s: %s: answers were invented", d, answer)
			}
		}
	})
}

package control

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// question is a question about a command.
func question() policy.ToolPermission {
	input := json.RawMessage(`{"command":"touch a","description":"makes a"}`)
	always, err := policy.ParseRule("Bash(touch a)", policy.Allow, "approved")
	if err != nil {
		panic(err)
	}
	return policy.ToolPermission{
		ToolName: "run_shell_command", ToolUseID: "t1", Input: input, Class: policy.ClassExec, Reason: "nothing allowed it", Why: policy.WhyDefault,
		Path: "/etc/x", Agent: "agent-7", Always: &always, Hash: policy.Bind("run_shell_command", input),
		Suggestions: policy.Suggest(policy.Facts{Tool: "run_shell_command", Class: policy.ClassExec, Input: input}, &always),
	}
}

func TestCanUseToolPayloads(t *testing.T) {
	for d, want := range map[streamjson.Dialect]string{
		native: `{"subtype":"can_use_tool","tool_name":"run_shell_command","tool_use_id":"t1","input":{"command":"touch a","description":"makes a"},"permission_suggestions":[{"type":"allow","label":"Allow Command","description":"Execute: touch a","rule":"Bash(touch a)"},{"type":"deny","label":"Deny","description":"Block this command execution"}],"blocked_path":"/etc/x","decision_reason":"nothing allowed it","agent_id":"agent-7"}`,
		qwen:   `{"subtype":"can_use_tool","tool_name":"run_shell_command","tool_use_id":"t1","input":{"command":"touch a","description":"makes a"},"permission_suggestions":[{"type":"allow","label":"Allow Command","description":"Execute: touch a","rule":"Bash(touch a)"},{"type":"deny","label":"Deny","description":"Block this command execution"}],"blocked_path":"/etc/x","agent_id":"agent-7"}`,
		claude: `{"subtype":"can_use_tool","tool_name":"run_shell_command","display_name":"run_shell_command","input":{"command":"touch a","description":"makes a"},"tool_use_id":"t1","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch a"}],"behavior":"allow","destination":"localSettings"}],"blocked_path":"/etc/x","decision_reason":"nothing allowed it","decision_reason_type":"mode","title":"Execute: touch a","description":"makes a","agent_id":"agent-7"}`,
	} {
		h, _ := newHost(t, d)
		h.answer = replies(`{"behavior":"allow"}`)
		a, err := h.d.Permission().Ask(t.Context(), question())
		if err != nil || !a.Allow || a.Hash != question().Hash || a.ToolUseID != "t1" || a.UpdatedInput != nil {
			t.Errorf("%s: %+v, %v", d, a, err)
		}
		if got := string(h.waitRequest("can_use_tool").Request); got != want {
			t.Errorf("%s:\nhave %s\nwant %s", d, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		check        func(a policy.Answer) bool
	}{
		{"allow with the same input", `{"behavior":"allow","updatedInput":{"description":"makes \u0061", "command":"touch a"}}`, func(a policy.Answer) bool { return a.Allow && a.UpdatedInput == nil }},
		{"allow with {}", `{"behavior":"allow","updatedInput":{}}`, func(a policy.Answer) bool { return a.Allow && a.UpdatedInput == nil }},
		{"allow with null", `{"behavior":"allow","updatedInput":null,"updatedPermissions":null,"toolUseID":"t1","decisionClassification":"x"}`, func(a policy.Answer) bool { return a.Allow && a.UpdatedInput == nil }},
		{"allow with another input", `{"behavior":"allow","updatedInput":{"command":"touch b"}}`, func(a policy.Answer) bool { return a.Allow && string(a.UpdatedInput) == `{"command":"touch b"}` }},
		{"deny", `{"behavior":"deny","message":"no"}`, func(a policy.Answer) bool { return !a.Allow && a.Message == "no" && !a.Interrupt }},
		{"deny and interrupt", `{"behavior":"deny","interrupt":true}`, func(a policy.Answer) bool { return !a.Allow && a.Interrupt }},
		{"updates", `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits"},{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch:*"}],"behavior":"allow","destination":"localSettings"}]}`, func(a policy.Answer) bool {
			return a.Allow && len(a.Updates) == 2 && a.Updates[0].Mode == policy.ModeAutoEdit && a.Updates[1].Rules[0].Text == "Bash(touch:*)" && a.Updates[1].Destination == policy.ToLocal
		}},
		{"its own rule", `{"behavior":"allow","updatedPermissions":[{"type":"allow","label":"Allow Command","rule":"Bash(touch a)"}]}`, func(a policy.Answer) bool { return a.Allow && a.Remember == policy.ScopeSession && len(a.Updates) == 0 }},
		{"its own rule for good", `{"behavior":"allow","updatedPermissions":[{"type":"allow","rule":"Bash(touch a)","destination":"localSettings"}]}`, func(a policy.Answer) bool { return a.Allow && a.Remember == policy.ScopeLocal }},
		{"another rule", `{"behavior":"allow","updatedPermissions":[{"type":"allow","rule":"Bash(touch *)"}]}`, func(a policy.Answer) bool {
			return a.Allow && a.Remember == "" && len(a.Updates) == 1 && a.Updates[0].Rules[0].Text == "Bash(touch *)"
		}},
		{"a suggestion without a rule", `{"behavior":"allow","updatedPermissions":[{"type":"allow","label":"Allow"}]}`, func(a policy.Answer) bool { return a.Allow && len(a.Updates) == 0 }},
		{"a modification", `{"behavior":"allow","updatedPermissions":[{"type":"modify","label":"Milder","modifiedInput":{"command":"true"}}]}`, func(a policy.Answer) bool { return a.Allow && string(a.UpdatedInput) == `{"command":"true"}` }},
	} {
		for _, d := range dialects {
			h, _ := newHost(t, d)
			h.answer = replies(c.answer)
			a, err := h.d.Permission().Ask(t.Context(), question())
			if err != nil || !c.check(a) {
				t.Errorf("%s: %s: %+v, %v", d, c.name, a, err)
			}
		}
	}
}

// The form of the SDKs before claude-agent-sdk.
func TestOlderAnswers(t *testing.T) {
	for answer, check := range map[string]func(a policy.Answer) bool{
		`{"allow":true}`: func(a policy.Answer) bool { return a.Allow && a.UpdatedInput == nil },
		`{"allow":true,"input":{"command":"touch b"}}`: func(a policy.Answer) bool { return a.Allow && string(a.UpdatedInput) == `{"command":"touch b"}` },
		`{"allow":true,"input":3}`:                     func(a policy.Answer) bool { return !a.Allow && strings.Contains(a.Message, "updatedInput") },
		`{"allow":false,"reason":"no"}`:                func(a policy.Answer) bool { return !a.Allow && a.Message == "no" },
		`{"allow":false,"behavior":"allow"}`:           func(a policy.Answer) bool { return a.Allow }, // the form of today counts
		`{"allow":true,"behavior":"deny"}`:             func(a policy.Answer) bool { return !a.Allow },
		`{"allow":"yes"}`:                              func(a policy.Answer) bool { return !a.Allow && strings.Contains(a.Message, `field "allow"`) },
		`{"allow":null}`:                               func(a policy.Answer) bool { return !a.Allow && strings.Contains(a.Message, `field "behavior"`) },
	} {
		for _, d := range dialects {
			h, _ := newHost(t, d)
			h.answer = replies(answer)
			a, err := h.d.Permission().Ask(t.Context(), question())
			if old := !strings.Contains(answer, "behavior"); err != nil || old && d != claude && a.Allow || (!old || d == claude) && !check(a) {
				t.Errorf("%s: %s: %+v, %v", d, answer, a, err)
			}
		}
	}
}

func TestMalformedAnswersDeny(t *testing.T) {
	for answer, want := range map[string]string{
		`null`:                   "it is empty",
		`{}`:                     `field "behavior": is ""`,
		`3`:                      "want an object",
		`{"behavior":"perhaps"}`: `field "behavior": is "perhaps": want allow or deny`,
		`{"behavior":true}`:      `field "behavior": have a boolean, want a string`,
		`{"behavior":"allow","updatedInput":"x"}`:                                 `field "updatedInput": have a string, want an object`,
		`{"behavior":"allow","updatedInput":[]}`:                                  `field "updatedInput": have a list`,
		`{"behavior":"allow","toolUseID":"t2"}`:                                   `another call's`,
		`{"behavior":"allow","updatedPermissions":{}}`:                            `field "updatedPermissions": want a list`,
		`{"behavior":"allow","updatedPermissions":[3]}`:                           `updatedPermissions.0`,
		`{"behavior":"allow","updatedPermissions":[{"type":"setMode"}]}`:          `unknown permission mode`,
		`{"behavior":"allow","updatedPermissions":[{"type":"allow","rule":"("}]}`: `empty rule`,
		`{"behavior":"deny","interrupt":"yes"}`:                                   `field "interrupt": have a string, want true or false`,
	} {
		for _, d := range dialects {
			h, _ := newHost(t, d)
			h.answer = replies(answer)
			a, err := h.d.Permission().Ask(t.Context(), question())
			if err != nil || a.Allow || a.Interrupt || !strings.Contains(a.Message, want) {
				t.Errorf("%s: %s: %+v, %v", d, answer, a, err)
			}
		}
	}
}

// failures are the ways in which a call to the host ends without an answer.
var failures = []struct {
	name  string
	do    func(h *host, m *streamjson.ControlRequest, cancel context.CancelFunc)
	is    error
	text  map[streamjson.Dialect]string
	tells bool // the host, where the dialect does
}{
	{"host error", func(h *host, m *streamjson.ControlRequest, _ context.CancelFunc) {
		h.d.Receive(streamjson.Failure(m.RequestID, "canUseTool callback is not provided"))
	}, nil, map[streamjson.Dialect]string{"": "canUseTool callback is not provided"}, false},
	{"input closed", func(h *host, _ *streamjson.ControlRequest, _ context.CancelFunc) { h.d.CloseInput() }, ErrInputClosed,
		map[streamjson.Dialect]string{"": "Input closed", claude: "Stream closed"}, false},
	{"caller gone", func(_ *host, _ *streamjson.ControlRequest, cancel context.CancelFunc) { cancel() }, ErrAborted,
		map[streamjson.Dialect]string{"": "Request aborted"}, true},
	{"malformed line", func(h *host, m *streamjson.ControlRequest, _ context.CancelFunc) {
		h.line(`{"type":"control_response","response":{"subtype":"perhaps","request_id":"` + m.RequestID + `"}}`)
	}, ErrMalformed, map[streamjson.Dialect]string{"": `malformed answer: field /response/subtype: want "success" or "error"`}, false},
}

// outgoing are the calls that we make.
var outgoing = map[string]func(ctx context.Context, d *Dispatcher) error{
	"can_use_tool": func(ctx context.Context, d *Dispatcher) error {
		_, err := d.Permission().Ask(ctx, question())
		return err
	},
	"hook_callback": func(ctx context.Context, d *Dispatcher) error {
		_, err := d.Hook().CallHook(ctx, "h1", json.RawMessage(`{"a":1}`), "t1")
		return err
	},
	"mcp_message": func(ctx context.Context, d *Dispatcher) error {
		d.SDKMCP().Register("calc")
		_, err := d.SDKMCP().Send(ctx, "calc", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		return err
	},
}

func TestCallsThatFail(t *testing.T) {
	for subtype, call := range outgoing {
		for _, f := range failures {
			for _, d := range dialects {
				t.Run(subtype+"/"+f.name+"/"+string(d), func(t *testing.T) {
					h, _ := newHost(t, d)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					h.answer = func(h *host, m *streamjson.ControlRequest) { f.do(h, m, cancel) }
					err := call(ctx, h.d)
					want, ok := f.text[d]
					if !ok {
						want = f.text[""]
					}
					if err == nil || err.Error() != want || f.is != nil && !errors.Is(err, f.is) {
						t.Errorf("have %v, want %q", err, want)
					}
					lines := h.sent()
					told := strings.HasPrefix(lines[len(lines)-1], `{"type":"control_cancel_request"`)
					if told != (f.tells && d != qwen) {
						t.Errorf("cancelled at the host: %v", told)
					}
					// A late answer changes nothing.
					h.reply(h.waitRequest(subtype).RequestID, `{"behavior":"allow"}`)
				})
			}
		}
	}
}

func TestCallsAfterTheInputClosedFailAtOnce(t *testing.T) {
	for subtype, call := range outgoing {
		for _, d := range dialects {
			h, _ := newHost(t, d)
			h.d.CloseInput()
			if err := call(t.Context(), h.d); !errors.Is(err, ErrInputClosed) || len(h.sent()) != 0 {
				t.Errorf("%s: %s: %v, sent %v", d, subtype, err, h.sent())
			}
		}
	}
}

func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		subtype string
		d       streamjson.Dialect
		timeout string // of initialize
		want    time.Duration
	}{
		{"hook_callback", native, `{}`, 60 * time.Second},
		{"hook_callback", claude, `{}`, 60 * time.Second},
		{"hook_callback", native, `{"hook":1500}`, 1500 * time.Millisecond},
		{"mcp_message", native, `{}`, 60 * time.Second},
		{"mcp_message", qwen, `{}`, 30 * time.Second},
		{"mcp_message", native, `{"mcp":10}`, 10 * time.Millisecond},
		{"can_use_tool", qwen, `{}`, 60 * time.Second},
		{"can_use_tool", qwen, `{"canUseTool":2000}`, 2 * time.Second},
		{"can_use_tool", qwen, `{"canUseTool":600001}`, 60 * time.Second},
		{"can_use_tool", qwen, `{"canUseTool":-1}`, 60 * time.Second},
		{"can_use_tool", qwen, `{"canUseTool":"x"}`, 60 * time.Second},
		{"can_use_tool", native, `{"canUseTool":2000}`, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := newHost(t, c.d)
			if got := h.ask(`{"subtype":"initialize","timeout":` + c.timeout + `}`); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			begin := time.Now()
			err := outgoing[c.subtype](t.Context(), h.d)
			if took := time.Since(begin); !errors.Is(err, ErrTimeout) || err.Error() != "Control request timeout" || took != c.want {
				t.Errorf("%+v: %v after %s", c, err, took)
			}
			lines := h.sent()
			if told := strings.HasPrefix(lines[len(lines)-1], `{"type":"control_cancel_request"`); told != (c.d != qwen) {
				t.Errorf("%+v: cancelled at the host: %v", c, told)
			}
		})
	}
}

func TestAQuestionHasNoDeadlineOfItsOwn(t *testing.T) {
	for _, d := range []streamjson.Dialect{native, claude} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := newHost(t, d)
			h.answer = func(h *host, m *streamjson.ControlRequest) {
				time.AfterFunc(48*time.Hour, func() { h.reply(m.RequestID, `{"behavior":"allow"}`) })
			}
			if a, err := h.d.Permission().Ask(t.Context(), question()); err != nil || !a.Allow {
				t.Errorf("%s: %+v, %v", d, a, err)
			}
		})
	}
}

// TestQwenAsksOneByOne: the second question is sent when the first is answered,
// and only then does its time run.
func TestQwenAsksOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHost(t, qwen)
		begin := time.Now()
		asked := []time.Duration{}
		h.answer = func(h *host, m *streamjson.ControlRequest) {
			asked = append(asked, time.Since(begin))
			time.AfterFunc(50*time.Second, func() { h.reply(m.RequestID, `{"behavior":"allow"}`) })
		}
		done := make(chan error)
		for range 3 {
			go func() {
				_, err := h.d.Permission().Ask(t.Context(), question())
				done <- err
			}()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(asked) != 3 || asked[1] != 50*time.Second || asked[2] != 100*time.Second {
			t.Errorf("asked at %v", asked)
		}
	})
}

func TestQwenQuestionsThatWaitEndWithTheInput(t *testing.T) {
	h, _ := newHost(t, qwen)
	done := make(chan error)
	for range 2 {
		go func() {
			_, err := h.d.Permission().Ask(t.Context(), question())
			done <- err
		}()
	}
	h.waitRequest("can_use_tool")
	h.d.CloseInput()
	for range 2 {
		if err := <-done; !errors.Is(err, ErrInputClosed) {
			t.Error(err)
		}
	}
}

func TestOversizedRequestsAreNotSentToClaudeHosts(t *testing.T) {
	q := question()
	q.Input = json.RawMessage(`{"command":"` + strings.Repeat("x", streamjson.MaxFrame) + `"}`)
	for _, d := range dialects {
		h, _ := newHost(t, d)
		h.answer = replies(`{"behavior":"allow"}`)
		a, err := h.d.Permission().Ask(t.Context(), q)
		var big *TooLargeError
		if d == claude && (!errors.As(err, &big) || len(h.sent()) != 0) || d != claude && (err != nil || !a.Allow) {
			t.Errorf("%s: %+v, %v", d, a, err)
		}
	}
}

func TestAskUser(t *testing.T) {
	q := policy.AskUser{ToolUseID: "t1", Questions: []policy.UserQuestion{
		{Question: "Which?", Header: "W", Options: []policy.UserOption{{Label: "a", Preview: "p"}, {Label: "b"}}, MultiSelect: true}, {Question: "Why?"},
	}}
	for d, want := range map[streamjson.Dialect]string{
		native: `{"subtype":"can_use_tool","tool_name":"ask_user","tool_use_id":"t1","input":{"questions":[`,
		qwen:   `{"subtype":"can_use_tool","tool_name":"ask_user_question","tool_use_id":"t1","input":{"questions":[{"question":"Which?","header":"W","options":[{"label":"a","description":"","preview":"p"},{"label":"b","description":""}],"multiSelect":true},{"question":"Why?","header":"","options":[],"multiSelect":false}]},"permission_suggestions":[{"type":"allow","label":"Allow"`,
		claude: `{"subtype":"can_use_tool","tool_name":"AskUserQuestion","display_name":"AskUserQuestion","input":{"questions":[`,
	} {
		h, _ := newHost(t, d)
		h.answer = replies(`{"behavior":"allow","updatedInput":{"questions":[],"answers":{"Which?":["a","b"],"1":"because","Who?":"x"}}}`)
		a, err := h.d.Permission().Ask(t.Context(), q)
		if err != nil || !a.Allow || a.Answers["Which?"] != "a, b" || a.Answers["Why?"] != "because" || len(a.Answers) != 2 {
			t.Errorf("%s: %+v, %v", d, a, err)
		}
		if got := string(h.waitRequest("can_use_tool").Request); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\nhave %s\nwant %s", d, got, want)
		}
	}
	for answer, want := range map[string]string{
		`{"behavior":"allow"}`:                                           "gave no answers",
		`{"behavior":"allow","updatedInput":{"answers":{}}}`:             "gave no answers",
		`{"behavior":"allow","updatedInput":{"answers":{"Which?":" "}}}`: "gave no answers",
		`{"behavior":"allow","updatedInput":{"answers":{"Which?":3}}}`:   "want a text",
		`{"behavior":"allow","updatedInput":{"answers":[]}}`:             "want an object",
		`{"behavior":"allow","updatedInput":7}`:                          "updatedInput",
		`null`:                                                           "it is empty",
	} {
		h, _ := newHost(t, native)
		h.answer = replies(answer)
		if a, err := h.d.Permission().Ask(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", answer, a, err)
		}
	}
	h, _ := newHost(t, native)
	h.answer = replies(`{"behavior":"deny","message":"later"}`)
	if a, err := h.d.Permission().Ask(t.Context(), q); err != nil || a.Allow || a.Message != "later" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestHooksOfTheHost(t *testing.T) {
	for answer, want := range map[string]string{
		`{"continue":true}`: `{"continue":true}`, `null`: `{}`, `{}`: `{}`,
		`[]`: `error: malformed answer: the output of the hook "h1" is a list, want an object`,
	} {
		h, _ := newHost(t, claude)
		h.answer = replies(answer)
		got, err := h.d.Hook().CallHook(t.Context(), "h1", json.RawMessage(`{"a":1}`), "")
		text := string(got)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != want {
			t.Errorf("%s: %s", answer, text)
		}
		if sent := string(h.waitRequest("hook_callback").Request); sent != `{"subtype":"hook_callback","callback_id":"h1","input":{"a":1},"tool_use_id":null}` {
			t.Error(sent)
		}
	}
}

func TestHookTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newHost(t, claude)
		h.ask(`{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h1"],"timeout":2.5}]}}`)
		begin := time.Now()
		if _, err := h.d.Hook().CallHook(t.Context(), "h1", nil, "t1"); !errors.Is(err, ErrTimeout) || time.Since(begin) != 2500*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		if len(w.hooks) != 1 || w.hooks[0].Timeout != 2500*time.Millisecond {
			t.Errorf("registered %+v", w.hooks)
		}
	})
}

func TestASecondInitializeEndsHookCalls(t *testing.T) {
	h, w := newHost(t, claude)
	done := make(chan error)
	go func() {
		_, err := h.d.Hook().CallHook(t.Context(), "h1", nil, "")
		done <- err
	}()
	id := h.waitRequest("hook_callback").RequestID
	h.ask(`{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["h2"]}]}}`)
	if err := <-done; !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	if !strings.Contains(strings.Join(h.sent(), "\n"), `{"type":"control_cancel_request","request_id":"`+id+`"}`) {
		t.Error("the host was not told")
	}
	if len(w.hooks) != 1 || w.hooks[0].CallbackIDs[0] != "h2" {
		t.Errorf("registered %+v", w.hooks)
	}
}

func TestHookCallbackRunsTheHook(t *testing.T) {
	for d, want := range map[streamjson.Dialect]string{
		native: `{"result":{"saw":{"a":1}},"callback_id":"own_1"}`, claude: `{"result":{"saw":{"a":1}},"callback_id":"own_1"}`,
	} {
		h, _ := newHost(t, d)
		id := h.d.Services().Hooks.Register(func(_ context.Context, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
			if toolUseID == "bad" {
				return nil, errors.New("no")
			}
			return json.RawMessage(`{"saw":` + string(input) + `}`), nil
		})
		if got := h.ask(`{"subtype":"hook_callback","callback_id":"` + id + `","input":{"a":1},"tool_use_id":null}`); got != want {
			t.Errorf("%s: %s", d, got)
		}
		if got := h.ask(`{"subtype":"hook_callback","callback_id":"` + id + `","tool_use_id":"bad"}`); got != `error: hook "own_1" failed: no` {
			t.Errorf("%s: %s", d, got)
		}
		// One that the host registered is called at the host.
		h.ask(`{"subtype":"initialize","hooks":[{"event":"Stop","callback_id":"h1"}]}`)
		h.answer = replies(`{"continue":false}`)
		if got := h.ask(`{"subtype":"hook_callback","callback_id":"h1","input":{}}`); !strings.Contains(got, `{"continue":false}`) {
			t.Errorf("%s: %s", d, got)
		}
	}
}

func TestSDKServers(t *testing.T) {
	h, _ := newHost(t, claude)
	send := func(answer, message string) string {
		h.answer = replies(answer)
		got, err := h.d.SDKMCP().Send(t.Context(), "calc", json.RawMessage(message))
		if err != nil {
			return "error: " + err.Error()
		}
		return string(got)
	}
	const request = `{"jsonrpc":"2.0","id":0,"method":"tools/list"}`
	if got := send(`{}`, request); got != `error: there is no MCP server "calc" in the host` {
		t.Error(got)
	}
	h.ask(`{"subtype":"initialize","sdkMcpServers":["calc"],"mcpServers":{"two":{"type":"sdk"}}}`)
	if got := h.d.SDKMCP().SDKServers(); len(got) != 2 {
		t.Error(got)
	}
	for _, c := range []struct{ answer, message, want string }{
		{`{"mcp_response":{"jsonrpc":"2.0","id":0,"result":{"tools":[]}}}`, request, `{"jsonrpc":"2.0","id":0,"result":{"tools":[]}}`},
		{`{"mcp_response":{"jsonrpc":"2.0","id":0,"error":{"code":-32601}}}`, request, `{"jsonrpc":"2.0","id":0,"error":{"code":-32601}}`},
		{`{}`, request, `error: Invalid MCP response from SDK for server 'calc'`},
		{`null`, request, `error: Invalid MCP response from SDK for server 'calc'`},
		{`{"mcp_response":3}`, request, `error: Invalid MCP response from SDK for server 'calc'`},
		{`{"mcp_response":{"jsonrpc":"2.0","result":{},"id":0}}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{`{}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, ``},
		{`{}`, `[]`, `error: the message for the MCP server "calc" is no JSON-RPC object`},
	} {
		if got := send(c.answer, c.message); got != c.want {
			t.Errorf("%s to %s: %s", c.answer, c.message, got)
		}
	}
	a, _ := h.d.Services().MCP.Client("calc")
	b, _ := h.d.Services().MCP.Client("calc")
	if a == nil || a != b || a.Name() != "calc" {
		t.Error("the client is not the same")
	}
	if got := h.d.Services().MCP.Servers(); len(got) != 2 || got[0].Name != "calc" {
		t.Error(got)
	}
}

func TestPermissionService(t *testing.T) {
	h, _ := newHost(t, native)
	s := h.d.Services().Permission
	var states []ToolCallState
	stop := s.WatchToolCalls(func(u ToolCallUpdate) { states = append(states, u.State) })
	s.SetCanUseTool(func(_ context.Context, q policy.ToolPermission) (policy.Answer, error) { return q.Allow(), nil })
	if a, err := h.d.Permission().Ask(t.Context(), question()); err != nil || !a.Allow || len(h.sent()) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	s.SetCanUseTool(func(context.Context, policy.ToolPermission) (policy.Answer, error) { return policy.Answer{}, nil })
	_, _ = h.d.Permission().Ask(t.Context(), question())
	s.SetCanUseTool(nil)
	h.d.CloseInput()
	_, _ = h.d.Permission().Ask(t.Context(), question())
	stop()
	_, _ = h.d.Permission().Ask(t.Context(), question())
	want := []ToolCallState{ToolCallAsking, ToolCallAllowed, ToolCallAsking, ToolCallDenied, ToolCallAsking, ToolCallFailed}
	if len(states) != len(want) {
		t.Fatal(states)
	}
	for i := range want {
		if states[i] != want[i] {
			t.Fatal(states)
		}
	}
	if got := s.BuildSuggestions(ToolCall{Tool: "run_shell_command", Input: json.RawMessage(`{"command":"x"}`)}); len(got) < 2 {
		t.Error(got)
	}
	if !h.d.Services().System.Capabilities().CanUseTool {
		t.Error("capabilities")
	}
}

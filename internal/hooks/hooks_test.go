package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events are those that fire.
var events = []Event{
	PreToolUse, PostToolUse, PostToolUseFailure, UserPromptSubmit, SessionStart, SessionEnd,
	Stop, SubagentStart, SubagentStop, PreCompact, Notification, PermissionRequest,
}

// returns is a hook that always says the same.
func returns(out string) Func {
	return func(context.Context, json.RawMessage, string) (json.RawMessage, error) {
		return json.RawMessage(out), nil
	}
}

func fails(context.Context, json.RawMessage, string) (json.RawMessage, error) {
	return nil, errors.New("it broke")
}

// run registers hooks for an event in order and runs it.
func run(t *testing.T, e Event, list ...Func) Outcome {
	t.Helper()
	r := New(nil, nil)
	for _, f := range list {
		if err := r.Register(Registration{Event: e, Func: f}); err != nil {
			t.Fatal(err)
		}
	}
	return r.Run(t.Context(), e, Input{ToolName: "Bash"})
}

func TestOutputsOfEachEvent(t *testing.T) {
	t.Parallel()
	specific := func(e Event, fields string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + string(e) + `",` + fields + `}}`
	}
	tests := []struct {
		name string
		out  func(e Event) string
		want func(e Event, o *Outcome)
	}{
		{"nothing", func(Event) string { return "" }, nil},
		{"null", func(Event) string { return " null " }, nil},
		{"no opinion", func(Event) string { return "{}" }, nil},
		{"continue true", func(Event) string { return `{"continue":true,"suppressOutput":true,"whatever":[1]}` }, nil},
		{"nulls", func(Event) string {
			return `{"continue":null,"decision":null,"reason":null,"hookSpecificOutput":null,"systemMessage":null}`
		}, nil},
		{"continue false", func(Event) string { return `{"continue":false,"stopReason":"enough"}` },
			func(_ Event, o *Outcome) { o.Stop, o.StopReason = true, "enough" }},
		{"continue_ as Python spells it", func(Event) string { return `{"continue_":false}` },
			func(_ Event, o *Outcome) { o.Stop = true }},
		{"system message", func(Event) string { return `{"systemMessage":"careful"}` },
			func(_ Event, o *Outcome) { o.Messages = []string{"careful"} }},
		{"async has no say", func(Event) string { return `{"async":true,"asyncTimeout":5,"decision":"block"}` }, nil},
		{"async_ as Python spells it", func(Event) string { return `{"async_":true,"continue":false}` }, nil},
		{"block", func(Event) string { return `{"decision":"block","reason":"no good"}` }, func(e Event, o *Outcome) {
			o.Block, o.Reason = true, "no good"
			switch e {
			case PreToolUse:
				o.Permission = Deny
			case PermissionRequest:
				o.Answer = &PermissionAnswer{Message: "no good"}
			}
		}},
		{"approve", func(Event) string { return `{"decision":"approve","reason":"fine"}` }, func(e Event, o *Outcome) {
			switch e {
			case PreToolUse:
				o.Permission, o.Reason = Allow, "fine"
			case PermissionRequest:
				o.Answer = &PermissionAnswer{Allow: true}
			}
		}},
		{"context", func(e Event) string { return specific(e, `"additionalContext":"know this"`) },
			func(_ Event, o *Outcome) { o.Context = []string{"know this"} }},
		{"permission deny", func(e Event) string {
			return specific(e, `"permissionDecision":"deny","permissionDecisionReason":"never"`)
		}, func(e Event, o *Outcome) {
			if e == PreToolUse {
				o.Permission, o.Reason = Deny, "never"
			}
		}},
		{"permission ask", func(e Event) string { return specific(e, `"permissionDecision":"ask"`) }, func(e Event, o *Outcome) {
			if e == PreToolUse {
				o.Permission = Ask
			}
		}},
		{"permission defer", func(e Event) string { return specific(e, `"permissionDecision":"defer"`) }, func(e Event, o *Outcome) {
			if e == PreToolUse {
				o.Permission = Defer
			}
		}},
		{"permission allow with another input", func(e Event) string {
			return specific(e, `"permissionDecision":"allow","updatedInput":{"command":"ls"}`)
		}, func(e Event, o *Outcome) {
			if e == PreToolUse {
				o.Permission, o.UpdatedInput = Allow, json.RawMessage(`{"command":"ls"}`)
			}
		}},
		{"an empty input changes nothing", func(e Event) string { return specific(e, `"updatedInput":{}`) }, nil},
		{"another result", func(e Event) string { return specific(e, `"updatedToolOutput":"short"`) }, func(e Event, o *Outcome) {
			if e == PostToolUse || e == PostToolUseFailure {
				o.Result = new("short")
			}
		}},
		{"another MCP result", func(e Event) string {
			return specific(e, `"updatedMCPToolOutput":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)
		}, func(e Event, o *Outcome) {
			if e == PostToolUse || e == PostToolUseFailure {
				o.Result = new("a\nb")
			}
		}},
		{"request allowed", func(e Event) string {
			if e != PermissionRequest {
				return "{}"
			}
			return specific(e, `"decision":{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"setMode","mode":"plan"}]}`)
		}, func(e Event, o *Outcome) {
			if e == PermissionRequest {
				o.Answer = &PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"a":1}`), Updates: []policy.Update{{Type: policy.UpdateSetMode, Mode: policy.ModePlan, Destination: policy.ToSession}}}
			}
		}},
		{"request denied", func(e Event) string {
			if e != PermissionRequest {
				return "{}"
			}
			return specific(e, `"decision":{"behavior":"deny","message":"stop it","interrupt":true}`)
		}, func(e Event, o *Outcome) {
			if e == PermissionRequest {
				o.Answer = &PermissionAnswer{Message: "stop it", Interrupt: true}
			}
		}},
	}
	for _, tt := range tests {
		for _, e := range events {
			t.Run(tt.name+"/"+string(e), func(t *testing.T) {
				t.Parallel()
				want := Outcome{Ran: 1}
				if tt.want != nil {
					tt.want(e, &want)
				}
				if diff := cmp.Diff(want, run(t, e, returns(tt.out(e)))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAHookThatFailsDeniesWhereItGuards(t *testing.T) {
	t.Parallel()
	bad := map[string]Func{
		"error":                fails,
		"panic":                func(context.Context, json.RawMessage, string) (json.RawMessage, error) { panic("oh") },
		"no JSON":              returns(`{`),
		"no object":            returns(`"deny"`),
		"wrong type":           returns(`{"continue":"no"}`),
		"unknown decision":     returns(`{"decision":"perhaps"}`),
		"a key twice":          returns(`{"decision":"block","decision":"approve"}`),
		"trailing text":        returns(`{} {}`),
		"specific of no shape": returns(`{"hookSpecificOutput":"deny"}`),
		"of another event":     returns(`{"hookSpecificOutput":{"hookEventName":"Elsewhere","permissionDecision":"allow"}}`),
	}
	for name, f := range bad {
		for _, e := range events {
			t.Run(name+"/"+string(e), func(t *testing.T) {
				t.Parallel()
				o := run(t, e, returns(`{"decision":"approve"}`), f)
				if len(o.Failures) != 1 {
					t.Fatalf("failures = %v", o.Failures)
				}
				if o.Block != e.guards() {
					t.Errorf("block = %v where it guards = %v", o.Block, e.guards())
				}
				if e.guards() && !strings.Contains(o.Reason, "failed") {
					t.Errorf("reason %q doesn't say that a hook failed", o.Reason)
				}
				if e == PreToolUse && o.Permission != Deny {
					t.Errorf("permission = %q", o.Permission)
				}
				if e == PermissionRequest && (o.Answer == nil || o.Answer.Allow || o.Answer.Message == "") {
					t.Errorf("answer = %+v", o.Answer)
				}
			})
		}
	}
}

func TestBadWordsOfOneEvent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		event Event
		out   string
	}{
		{PreToolUse, `{"hookSpecificOutput":{"permissionDecision":"maybe"}}`},
		{PreToolUse, `{"hookSpecificOutput":{"updatedInput":"rm"}}`},
		{PreToolUse, `{"hookSpecificOutput":{"updatedInput":{"a":1,"a":2}}}`},
		{PermissionRequest, `{"hookSpecificOutput":{"decision":{}}}`},
		{PermissionRequest, `{"hookSpecificOutput":{"decision":"allow"}}`},
		{PermissionRequest, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedPermissions":{}}}}`},
		{PermissionRequest, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedPermissions":[{"type":"setMode"}]}}}`},
		{PermissionRequest, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":[]}}}`},
	}
	for _, tt := range tests {
		if o := run(t, tt.event, returns(tt.out)); !o.Block || len(o.Failures) != 1 {
			t.Errorf("%s %s: outcome %+v", tt.event, tt.out, o)
		}
	}
}

func TestBlocksMakesALateFailureAnObjection(t *testing.T) {
	t.Parallel()
	for _, e := range events {
		r := New(nil, nil)
		if err := r.Register(Registration{Event: e, Func: fails, Blocks: true}); err != nil {
			t.Fatal(err)
		}
		want := e.guards() || e == PostToolUse || e == PostToolUseFailure
		if o := r.Run(t.Context(), e, Input{}); o.Block != want {
			t.Errorf("%s: block = %v, want %v", e, o.Block, want)
		}
	}
}

func TestOfSeveralTheStrictestCountsInAnyOrder(t *testing.T) {
	t.Parallel()
	say := func(p Permission) Func {
		return returns(`{"hookSpecificOutput":{"permissionDecision":"` + string(p) + `","permissionDecisionReason":"says ` + string(p) + `"}}`)
	}
	order := []Permission{NoOpinion, Allow, Ask, Defer, Deny}
	for i, a := range order {
		for j, b := range order {
			o := run(t, PreToolUse, say(a), say(b))
			want := order[max(i, j)]
			if o.Permission != want {
				t.Errorf("%q and %q = %q, want %q", a, b, o.Permission, want)
			}
			if want != NoOpinion && o.Reason != "says "+string(want) {
				t.Errorf("%q and %q: reason %q", a, b, o.Reason)
			}
		}
	}
}

func TestTheLastInputWinsAndContextsFollowInOrder(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	slow := func(ctx context.Context, _ json.RawMessage, _ string) (json.RawMessage, error) {
		<-first // the first registered answers last
		return json.RawMessage(`{"systemMessage":"m1","hookSpecificOutput":{"updatedInput":{"n":1},"additionalContext":"c1"}}`), nil
	}
	quick := func(context.Context, json.RawMessage, string) (json.RawMessage, error) {
		defer close(first)
		return json.RawMessage(`{"systemMessage":"m2","hookSpecificOutput":{"updatedInput":{"n":2},"additionalContext":"c2"}}`), nil
	}
	o := run(t, PreToolUse, slow, quick)
	want := Outcome{Ran: 2, UpdatedInput: json.RawMessage(`{"n":2}`), Context: []string{"c1", "c2"}, Messages: []string{"m1", "m2"}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAllowIsForTheInputThatItsHookSaw(t *testing.T) {
	t.Parallel()
	allow := returns(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`)
	rewrite := returns(`{"hookSpecificOutput":{"updatedInput":{"command":"rm -r /"}}}`)
	both := returns(`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}`)
	tests := []struct {
		name string
		list []Func
		want Permission
	}{
		{"allowed, then rewritten by another", []Func{allow, rewrite}, NoOpinion},
		{"rewritten by another, then allowed", []Func{rewrite, allow}, NoOpinion},
		{"rewritten by the one that allows", []Func{both}, Allow},
		{"the last rewriter allows", []Func{rewrite, both}, Allow},
		{"the last rewriter says nothing", []Func{both, rewrite}, NoOpinion},
	}
	for _, tt := range tests {
		if got := run(t, PreToolUse, tt.list...).Permission; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDecisionForPolicy(t *testing.T) {
	t.Parallel()
	tests := map[Permission]*policy.HookDecision{
		NoOpinion: nil,
		Allow:     {Behavior: policy.Allow, Reason: "r"},
		Ask:       {Behavior: policy.Ask, Reason: "r"},
		Defer:     {Behavior: policy.Ask, Reason: "r"},
		Deny:      {Behavior: policy.Deny, Reason: "r"},
	}
	for p, want := range tests {
		o := Outcome{Permission: p, Reason: "r"}
		if diff := cmp.Diff(want, o.Decision()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", p, diff)
		}
	}
}

func TestMatchers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		matcher string
		event   Event
		subject string
		want    bool
	}{
		{"", PreToolUse, "Bash", true},
		{"*", PreToolUse, "anything", true},
		{"Bash", PreToolUse, "Bash", true},
		{"Bash", PreToolUse, "run_shell_command", true},
		{"run_shell_command", PreToolUse, "Bash", true},
		{"Bash", PreToolUse, "BashOutput", false},
		{"bash", PreToolUse, "Bash", false},
		{"Task", PreToolUse, "Agent", true},
		{"Agent", PreToolUse, "Task", true},
		{"Edit|Write", PreToolUse, "write_file", true},
		{"Edit | Write", PreToolUse, "Write", true},
		{"Edit||Write", PreToolUse, "Read", false},
		{"|", PreToolUse, "Read", false},
		{"mcp__files-1__read", PreToolUse, "mcp__files-1__read", true},
		{"mcp__files__.*", PreToolUse, "mcp__files__read", true},
		{"mcp__files__.*", PreToolUse, "mcp__other__read", false},
		{"^Bash$", PreToolUse, "run_shell_command", true},
		{"^Bash", PermissionRequest, "Bash", true},
		{"Notebook.*", PostToolUse, "notebook_edit", true},
		{"startup", SessionStart, "startup", true},
		{"startup|resume", SessionStart, "clear", false},
		{"Bash", SubagentStart, "run_shell_command", false},
		{"rev.*", SubagentStop, "reviewer", true},
		{"manual", PreCompact, "auto", false},
		{"idle.*", Notification, "idle_prompt", true},
		{"", Stop, "", true},
	}
	for _, tt := range tests {
		m, err := newMatcher(tt.matcher, tt.event.onTools())
		if err != nil {
			t.Fatal(err)
		}
		if got := m.matches(tt.subject); got != tt.want {
			t.Errorf("%q for %s on %q = %v", tt.matcher, tt.event, tt.subject, got)
		}
	}
}

func TestAnInvalidMatcherIsRefusedWithAllOthers(t *testing.T) {
	t.Parallel()
	r := New(nil, nil)
	good := Registration{Event: PreToolUse, CallbackID: "h0"}
	if err := r.Replace([]Registration{good}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Registration{
		{Event: PreToolUse, CallbackID: "h1", Matcher: "(?!Bash)"},
		{Event: Stop},
		{CallbackID: "h2"},
	} {
		err := r.Replace([]Registration{{Event: Stop, CallbackID: "h3"}, bad})
		if err == nil {
			t.Errorf("%+v was accepted", bad)
		}
		if r.Has(Stop) || !r.Has(PreToolUse) {
			t.Error("a refused list changed the hooks")
		}
	}
}

func TestUnknownEventsAreAcceptedAndNeverFire(t *testing.T) {
	t.Parallel()
	r := New(nil, nil)
	if err := r.Replace([]Registration{{Event: "WorktreeCreate", CallbackID: "h"}}); err != nil {
		t.Fatal(err)
	}
}

func TestReplaceKeepsTheProgramsOwnHooks(t *testing.T) {
	t.Parallel()
	r := New(nil, nil)
	_ = r.Register(Registration{Event: Stop, CallbackID: "own", Func: returns("{}")})
	_ = r.Replace([]Registration{{Event: SessionStart, CallbackID: "h0"}})
	if list := r.List(); len(list) != 2 || list[0].CallbackID != "own" || list[1].CallbackID != "h0" {
		t.Errorf("list = %+v", list)
	}
	_ = r.Replace(nil)
	if !r.Has(Stop) || r.Has(SessionStart) {
		t.Error("Replace took away or left the wrong hooks")
	}
	if !r.Remove("own") || r.Remove("own") || r.Has(Stop) {
		t.Error("Remove doesn't do what it says")
	}
}

func TestANilRunnerHasNoHooks(t *testing.T) {
	t.Parallel()
	var r *Runner
	if r.Has(Stop) || r.List() != nil {
		t.Error("it has")
	}
	if diff := cmp.Diff(Outcome{}, r.Run(t.Context(), Stop, Input{})); diff != "" {
		t.Error(diff)
	}
	if _, err := r.Call(t.Context(), "h", nil, ""); !errors.Is(err, ErrUnknownCallback) {
		t.Errorf("error = %v", err)
	}
}

// host is a Caller that notes what it is asked.
type host struct {
	mu    sync.Mutex
	calls []string
	reply func(ctx context.Context, id string) (json.RawMessage, error)
}

func (h *host) CallHook(ctx context.Context, id string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	h.mu.Lock()
	h.calls = append(h.calls, id+" "+toolUseID+" "+string(input))
	h.mu.Unlock()
	return h.reply(ctx, id)
}

func TestHostsHooksAreCalledWithTheEventsInput(t *testing.T) {
	t.Parallel()
	base := Input{
		SessionID: "s", TranscriptPath: "/t", Cwd: "/w", PermissionMode: "default",
		ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"a<b"}`), ToolUseID: "t1",
		ToolResponse: json.RawMessage(`{"stdout":"x"}`), Took: 3 * time.Millisecond, Error: "exit 1", IsInterrupt: true,
		PermissionSuggestions: json.RawMessage(`[]`),
		Prompt:                "hi\xff", Source: "startup", Model: "m", Reason: "other", StopHookActive: true,
		LastAssistantMessage: "bye", AgentTranscriptPath: "/a", Trigger: "auto", Message: "msg", NotificationType: "idle_prompt",
	}
	tests := map[Event]string{
		PreToolUse:         `"tool_name":"Bash","tool_input":{"command":"a<b"},"tool_use_id":"t1"`,
		PostToolUse:        `"tool_name":"Bash","tool_input":{"command":"a<b"},"tool_response":{"stdout":"x"},"tool_use_id":"t1","duration_ms":3`,
		PostToolUseFailure: `"tool_name":"Bash","tool_input":{"command":"a<b"},"tool_use_id":"t1","error":"exit 1","is_interrupt":true,"duration_ms":3`,
		PermissionRequest:  `"tool_name":"Bash","tool_input":{"command":"a<b"},"permission_suggestions":[]`,
		UserPromptSubmit:   `"prompt":"hi` + "\ufffd" + `"`,
		SessionStart:       `"source":"startup","model":"m"`,
		SessionEnd:         `"reason":"other"`,
		Stop:               `"stop_hook_active":true,"last_assistant_message":"bye"`,
		SubagentStart:      ``,
		SubagentStop:       `"stop_hook_active":true,"agent_transcript_path":"/a","last_assistant_message":"bye"`,
		PreCompact:         `"trigger":"auto","custom_instructions":null`,
		Notification:       `"message":"msg","notification_type":"idle_prompt"`,
	}
	for _, e := range events {
		h := &host{reply: func(context.Context, string) (json.RawMessage, error) { return nil, nil }}
		r := New(h, nil)
		if err := r.Replace([]Registration{{Event: e, CallbackID: "h0"}}); err != nil {
			t.Fatal(err)
		}
		r.Run(t.Context(), e, base)
		want := `h0 t1 {"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"` + string(e) + `"`
		if tests[e] != "" {
			want += "," + tests[e]
		}
		if diff := cmp.Diff([]string{want + "}"}, h.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e, diff)
		}
	}
}

func TestSubagentsAreNamedInTheInput(t *testing.T) {
	t.Parallel()
	h := &host{reply: func(context.Context, string) (json.RawMessage, error) { return nil, nil }}
	r := New(h, nil)
	_ = r.Replace([]Registration{{Event: PreToolUse, CallbackID: "h0"}})
	r.Run(t.Context(), PreToolUse, Input{ToolName: "Read", AgentID: "a1", AgentType: "reviewer"})
	if len(h.calls) != 1 || !strings.Contains(h.calls[0], `"agent_id":"a1","agent_type":"reviewer"`) || !strings.Contains(h.calls[0], `"tool_input":{}`) {
		t.Errorf("calls = %q", h.calls)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ string) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tests := []struct {
		name string
		own  time.Duration
		set  time.Duration
		want time.Duration
	}{
		{"of its own", 3 * time.Second, time.Hour, 3 * time.Second},
		{"of its own, where others have none", 3 * time.Second, 0, 3 * time.Second},
		{"the Runner's", 0, 7 * time.Second, 7 * time.Second},
		{"the default", 0, -1, DefaultTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := New(&host{reply: hang}, nil)
				if tt.set >= 0 {
					r.SetTimeout(tt.set)
				}
				_ = r.Replace([]Registration{{Event: PreToolUse, CallbackID: "h0", Timeout: tt.own}})
				begin := time.Now()
				o := r.Run(t.Context(), PreToolUse, Input{ToolName: "Bash"})
				if got := time.Since(begin); got != tt.want {
					t.Errorf("it waited %v, want %v", got, tt.want)
				}
				if o.Permission != Deny || !errors.Is(o.Failures[0], ErrTimeout) || !strings.Contains(o.Reason, "no answer in time") {
					t.Errorf("outcome = %+v", o)
				}
			})
		})
	}
}

func TestHooksMayHaveNoTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(&host{reply: func(ctx context.Context, _ string) (json.RawMessage, error) {
			if _, limited := ctx.Deadline(); limited {
				t.Error("the hook has a deadline")
			}
			time.Sleep(24 * time.Hour) // of the test's own clock
			return json.RawMessage(`{"decision":"approve"}`), nil
		}}, nil)
		r.SetTimeout(0)
		_ = r.Replace([]Registration{{Event: PreToolUse, CallbackID: "h0"}})
		if o := r.Run(t.Context(), PreToolUse, Input{ToolName: "Bash"}); o.Permission != Allow {
			t.Errorf("outcome = %+v", o)
		}
	})
}

func TestTheEndOfTheContextFailsWhatIsOpen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{reply: func(ctx context.Context, _ string) (json.RawMessage, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	r := New(h, nil)
	_ = r.Replace([]Registration{{Event: PreToolUse, CallbackID: "h0"}})
	var steps []Step
	o := r.Run(ctx, PreToolUse, Input{ToolName: "Bash", Watch: func(s Step) { steps = append(steps, s) }})
	if o.Permission != Deny {
		t.Errorf("outcome = %+v", o)
	}
	if len(steps) != 2 || steps[0].Ended || !steps[1].Ended || !steps[1].Cancelled || steps[0].ID != steps[1].ID || steps[1].Name != "PreToolUse:Bash" {
		t.Errorf("steps = %+v", steps)
	}
}

func TestAllHooksOfAnEventRunAtOnce(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(maxParallel)
	h := &host{reply: func(context.Context, string) (json.RawMessage, error) {
		together.Done()
		together.Wait() // returns only if all run at once
		return nil, nil
	}}
	r := New(h, nil)
	var list []Registration
	for range maxParallel {
		list = append(list, Registration{Event: Stop, CallbackID: "h"})
	}
	_ = r.Replace(list)
	if o := r.Run(t.Context(), Stop, Input{}); o.Ran != maxParallel || len(o.Failures) > 0 {
		t.Errorf("outcome = %+v", o)
	}
}

func TestWatchHidesWhatAHookWantsHidden(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{`{"systemMessage":"a"}`: `{"systemMessage":"a"}`, `{"suppressOutput":true}`: ""} {
		r := New(nil, nil)
		_ = r.Register(Registration{Event: Stop, Func: returns(out)})
		var got string
		r.Run(t.Context(), Stop, Input{Watch: func(s Step) { got = string(s.Output) }})
		if got != want {
			t.Errorf("output of %s shown as %q", out, got)
		}
	}
}

func TestCallRunsTheHookOfAnID(t *testing.T) {
	t.Parallel()
	h := &host{reply: func(_ context.Context, id string) (json.RawMessage, error) {
		return json.RawMessage(`{"id":"` + id + `"}`), nil
	}}
	r := New(h, nil)
	_ = r.Replace([]Registration{{Event: Stop, CallbackID: "h0"}})
	_ = r.Register(Registration{Event: Stop, CallbackID: "own", Func: returns(`{"own":true}`)})
	for id, want := range map[string]string{"h0": `{"id":"h0"}`, "own": `{"own":true}`} {
		got, err := r.Call(t.Context(), id, json.RawMessage(`{}`), "")
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
	if _, err := r.Call(t.Context(), "h9", nil, ""); !errors.Is(err, ErrUnknownCallback) || !strings.Contains(err.Error(), "h9") {
		t.Errorf("error = %v", err)
	}
	if _, err := New(nil, nil).Call(t.Context(), "", nil, ""); !errors.Is(err, ErrUnknownCallback) {
		t.Errorf("error = %v", err)
	}
}

func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"continue":false}`, `{"decision":"block","reason":"x"}`, `{"async":true}`,
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","updatedInput":{"a":1}}}`,
		`{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedPermissions":[]},"updatedToolOutput":[{"type":"text","text":"x"}]}}`,
		`{"decision":"block","decision":"approve"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, e := range events {
			out, err := decode(e, json.RawMessage(raw))
			if err != nil {
				continue
			}
			if out.updated != nil && !json.Valid(out.updated) {
				t.Errorf("updated input %q", out.updated)
			}
			// Whatever one hook says, another's denial stands.
			deny := output{decision: "deny", permission: Deny, answer: &PermissionAnswer{}}
			for _, all := range [][]spoken{{{out: out}, {out: deny}}, {{out: deny}, {out: out}}} {
				if o := merge(e, all); o.Permission != Deny || !o.Block || o.Answer.Allow {
					t.Errorf("%s: %q lifts a denial: %+v", e, raw, o)
				}
			}
		}
	})
}

func FuzzMatcher(f *testing.F) {
	for _, seed := range []string{"", "*", "Bash", "Edit|Write", "mcp__.*", "^(?!x)", "|", "a||b"} {
		f.Add(seed, "Bash")
	}
	f.Fuzz(func(t *testing.T, text, subject string) {
		for _, tools := range []bool{false, true} {
			m, err := newMatcher(text, tools)
			if err != nil {
				continue
			}
			got := m.matches(subject)
			if !tools {
				continue
			}
			for _, name := range policy.ToolSpellings(subject) {
				if m.matches(name) != got {
					t.Errorf("%q matches %q but not its other name %q", text, subject, name)
				}
			}
		}
	})
}

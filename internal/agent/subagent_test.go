package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/usage"
)

// cast is a model that answers each conversation, told by its system prompt,
// with replies of its own.
type cast struct {
	mu    sync.Mutex
	parts map[string]*fakeModel
}

func (c *cast) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	c.mu.Lock()
	part := c.parts[req.System]
	c.mu.Unlock()
	if part == nil {
		return &model.Error{Kind: model.ErrBadRequest, Provider: "fake", Message: "no part for " + req.System}
	}
	return part.Stream(ctx, req, emit)
}

func (c *cast) requests(system string) []*model.Request {
	part := c.parts[system]
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.requests
}

// stage is a conversation with sub-agents under test.
type stage struct {
	*Conversation
	cast   *cast
	mu     sync.Mutex
	story  []string
	events []Event
	ended  []Result
	on     func(from Origin, e Event) // called outside of mu
}

type parts map[string][]reply

func newStage(p parts, change func(*Config), defs ...Definition) *stage {
	s := &stage{cast: &cast{parts: map[string]*fakeModel{}}}
	for system, replies := range p {
		s.cast.parts[system] = &fakeModel{replies: replies}
	}
	for i := range defs {
		if defs[i].Prompt == "" {
			defs[i].Prompt = defs[i].Name
		}
	}
	cfg := Config{
		SessionID: "s", System: "main", Policy: policy.NewEngine(nil), Mode: policy.ModeDefault,
		Tools: tools.NewRegistry(echo("look", policy.ClassRead), echo("change", policy.ClassEdit), NewAgentTool(AgentToolConfig{Definitions: defs})),
		Resolve: func(name string) (Model, error) {
			if name == "missing" {
				return Model{}, errors.New("no model named missing")
			}
			return Model{Provider: s.cast, ProviderName: "fake", Name: name, Display: "fake-" + name}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	s.Conversation = New(cfg)
	return s
}

func (s *stage) take(_ context.Context, from Origin, e Event) {
	who := orElse(from.AgentType, "main")
	line := ""
	switch e := e.(type) {
	case *TurnStarted:
		line = "turn"
	case *BlockEnded:
		switch b := e.Block.(type) {
		case model.Text:
			line = "says " + b.Text
		case model.ToolUse:
			line = "calls " + b.Name
		}
	case *ToolEnded:
		line = fmt.Sprintf("answer %s error=%v", e.Result.ToolUseID, e.Result.IsError)
	case *TaskStarted:
		line = fmt.Sprintf("task started %s background=%v", e.Task.ToolUseID, e.Task.Background)
	case *TaskEnded:
		line = fmt.Sprintf("task ended %s %s", e.Task.ToolUseID, e.Status)
	case *TurnEnded:
		line = "result " + string(e.Result.Terminal)
	case *Noted:
		line = fmt.Sprintf("note %d", e.Kind)
	}
	s.mu.Lock()
	if line != "" {
		s.story = append(s.story, who+": "+line)
	}
	if _, delta := e.(*BlockDelta); !delta {
		s.events = append(s.events, e)
	}
	if e, ok := e.(*TurnEnded); ok {
		s.ended = append(s.ended, e.Result)
	}
	s.mu.Unlock()
	if s.on != nil {
		s.on(from, e)
	}
}

// play runs one prompt to the end of the conversation.
func (s *stage) play(ctx context.Context) []Result {
	s.Submit(Input{UUID: "u", Blocks: []model.Block{model.Text{Text: "go"}}})
	s.CloseInput()
	s.Run(ctx, s.take)
	return s.ended
}

// toolAnswer is what the model got for a call of the main conversation.
func (s *stage) toolAnswer(t *testing.T, id string) (text string, isError bool) {
	t.Helper()
	for _, m := range s.history {
		for _, b := range m.Blocks {
			if r, ok := b.(model.ToolResult); ok && r.ToolUseID == id {
				return textOf(r.Blocks), r.IsError
			}
		}
	}
	t.Fatalf("no answer to %s", id)
	return "", false
}

func start(id, agentType, rest string) call {
	return call{"agent", id, fmt.Sprintf(`{"description":"work of %s","prompt":"do %s","subagent_type":%q%s}`, id, id, agentType, rest)}
}

func TestASubagentAnswersItsCall(t *testing.T) {
	t.Parallel()
	ledger := new(usage.Ledger)
	s := newStage(parts{
		"main":  {calls(start("t1", "scout", "")), says("thanks")},
		"scout": {calls(call{"look", "n1", `{"a":1}`}), says("it is there")},
	}, func(c *Config) { c.Ledger = ledger }, Definition{Name: "scout"})
	got := s.play(t.Context())
	want := []string{
		"main: turn", "main: calls agent", "main: task started t1 background=false",
		"scout: turn", "scout: calls look", "scout: answer n1 error=false", "scout: says it is there",
		"main: task ended t1 completed", "main: answer t1 error=false", "main: says thanks", "main: result completed",
	}
	if diff := cmp.Diff(want, s.story); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if text, isError := s.toolAnswer(t, "t1"); text != "it is there" || isError {
		t.Errorf("answer %q", text)
	}
	if len(got) != 1 || got[0].Usage != (model.Usage{InputTokens: 15, OutputTokens: 3}) {
		t.Errorf("results %+v", got)
	}
	if _, totals := ledger.Models(); ledger.Requests() != 4 || totals[0].Usage != (model.Usage{InputTokens: 30, OutputTokens: 6}) {
		t.Errorf("the ledger has %d requests, %+v", ledger.Requests(), totals)
	}
	first := s.cast.requests("scout")[0]
	if len(first.Messages) != 1 || textOf(first.Messages[0].Blocks) != "do t1" {
		t.Errorf("it was asked %+v", first.Messages)
	}
	for _, tool := range first.Tools {
		if tool.Name == "agent" {
			t.Error("it may start agents itself")
		}
	}
	var display AgentResult
	for _, e := range s.events {
		switch e := e.(type) {
		case *ToolEnded:
			if e.Result.ToolUseID == "t1" {
				if err := json.Unmarshal(e.Display, &display); err != nil {
					t.Fatal(err)
				}
			}
		case *TaskProgressed:
			if e.Usage.ToolUses != 1 || e.LastTool != "look" || e.Usage.Tokens != 6 {
				t.Errorf("progress %+v", e)
			}
		}
	}
	if display.Status != "completed" || display.ToolUses != 1 || display.Tokens != 18 || display.Prompt != "do t1" || display.Content[0].Text != "it is there" ||
		display.AgentID == "" || display.Usage.Input != 15 {
		t.Errorf("display %+v", display)
	}
	checkHistory(t, s.history)
}

func TestSubagentsRunSideBySide(t *testing.T) {
	t.Parallel()
	var met sync.WaitGroup
	met.Add(3)
	meets := func(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
		met.Done()
		met.Wait() // returns only if all three run at once
		return says("here")(nil, nil, emit)
	}
	s := newStage(parts{
		"main": {calls(start("t1", "a", ""), start("t2", "b", ""), start("t3", "a", "")), says("ok")},
		"a":    {meets, meets}, "b": {meets},
	}, nil, Definition{Name: "a"}, Definition{Name: "b"})
	s.play(t.Context())
	ids := map[string]bool{}
	for _, e := range s.events {
		if e, ok := e.(*TaskEnded); ok {
			ids[e.Task.ID] = true
		}
	}
	if len(ids) != 3 || s.ended[0].Terminal != Completed {
		t.Errorf("tasks %v, results %+v", ids, s.ended)
	}
	checkHistory(t, s.history)
}

func TestASubagentThatFailsGivesAnErrorAndNoResult(t *testing.T) {
	t.Parallel()
	breaks := func(context.Context, *model.Request, func(model.Delta)) error {
		return &model.Error{Kind: model.ErrAuth, Provider: "fake", Message: "bad key"}
	}
	looks := func(n int) reply {
		return func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
			emit(model.Delta{Kind: model.DeltaText, Text: fmt.Sprint("step ", n)})
			emit(model.Delta{Kind: model.DeltaBlockEnd})
			emit(model.Delta{Kind: model.DeltaToolStart, Index: 1, ID: fmt.Sprint("n", n), Name: "look"})
			emit(model.Delta{Kind: model.DeltaToolInput, Index: 1, Text: fmt.Sprintf(`{"n":%d}`, n)})
			emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopToolUse})
			return nil
		}
	}
	silent := func(ctx context.Context, _ *model.Request, _ func(model.Delta)) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	tests := []struct {
		name    string
		def     Definition
		replies []reply
		want    []string
	}{
		{"a failed request", Definition{}, []reply{breaks}, []string{"bad key"}},
		{"too many turns", Definition{MaxTurns: 2}, []reply{looks(1), looks(2), says("never")}, []string{"maximum number of turns (2)", "What it said last:\nstep 2"}},
		{"no time left", Definition{MaxTime: time.Millisecond}, []reply{silent}, []string{"its time of 1ms is up"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.def.Name = "a"
			s := newStage(parts{"main": {calls(start("t1", "a", "")), says("pity")}, "a": test.replies}, nil, test.def)
			got := s.play(t.Context())
			text, isError := s.toolAnswer(t, "t1")
			for _, want := range test.want {
				if !isError || !strings.Contains(text, want) {
					t.Errorf("answer %q (error %v), want %q", text, isError, want)
				}
			}
			if len(got) != 1 || got[0].Terminal != Completed || !slices.Contains(s.story, "main: task ended t1 failed") {
				t.Errorf("results %+v, story %q", got, s.story)
			}
		})
	}
}

func TestAnInterruptEndsSubagentsInTheForeground(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	hangs := func(ctx context.Context, _ *model.Request, _ func(model.Delta)) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	var s *stage
	tool := fakeTool{"slow", policy.ClassRead, func(ctx context.Context, _ *tools.Call) tools.Result {
		<-begun // both are at work
		s.Interrupt(ErrInterrupted, false)
		<-ctx.Done()
		return tools.Fail("stopped")
	}}
	s = newStage(parts{
		"main": {calls(start("t1", "a", ""), start("t2", "b", "")), says("never")},
		"a":    {calls(call{"slow", "n1", `{}`}), says("never")}, "b": {hangs},
	}, func(c *Config) { c.Tools.Add(tool) }, Definition{Name: "a"}, Definition{Name: "b"})
	got := s.play(t.Context())
	if len(got) != 1 || got[0].Terminal != AbortedTools || got[0].IsError {
		t.Fatalf("results %+v", got)
	}
	for _, id := range []string{"t1", "t2"} {
		if text, isError := s.toolAnswer(t, id); !isError || !strings.Contains(text, "interrupted") {
			t.Errorf("answer %q", text)
		}
		if !slices.Contains(s.story, "main: task ended "+id+" stopped") {
			t.Errorf("story %q", s.story)
		}
	}
	checkHistory(t, s.history)
}

func TestQuestionsFromWithinSayWhoAsks(t *testing.T) {
	t.Parallel()
	var asked []policy.ToolPermission
	asker := askFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
		p := q.(policy.ToolPermission)
		asked = append(asked, p)
		if len(asked) == 1 {
			return p.Allow(), nil
		}
		return policy.Answer{Message: "not that"}, nil
	})
	s := newStage(parts{
		"main": {calls(start("t1", "a", "")), says("ok")},
		"a":    {calls(call{"change", "n1", `{}`}, call{"change", "n2", `{"x":1}`}), says("half done")},
	}, func(c *Config) { c.Asker = asker; c.Facts.Interactive = true }, Definition{Name: "a"})
	got := s.play(t.Context())
	if len(asked) != 2 || asked[0].Agent == "" || asked[0].ToolUseID != "n1" {
		t.Fatalf("asked %+v", asked)
	}
	if d := got[0].Denials; len(d) != 1 || d[0].ToolUseID != "n2" {
		t.Errorf("denials %+v", d)
	}
	if text, _ := s.toolAnswer(t, "t1"); text != "half done" {
		t.Errorf("answer %q", text)
	}
}

func TestADenialWithinMayEndEverything(t *testing.T) {
	t.Parallel()
	stop := askFunc(func(context.Context, policy.Question) (policy.Answer, error) {
		return policy.Answer{Message: "stop it", Interrupt: true}, nil
	})
	roles := func() parts {
		return parts{
			"main": {calls(start("t1", "a", "")), says("never")},
			"a":    {calls(call{"change", "n1", `{}`}), says("never")},
		}
	}
	s := newStage(roles(), func(c *Config) { c.Asker = stop; c.Facts.Interactive = true }, Definition{Name: "a"})
	if got := s.play(t.Context()); len(got) != 1 || got[0].Terminal != AbortedTools {
		t.Errorf("results %+v", got)
	}
	if !slices.ContainsFunc(s.events, func(e Event) bool {
		end, ok := e.(*ToolEnded)
		return ok && end.Result.ToolUseID == "t1" && end.Result.IsError
	}) {
		t.Error("the agent that gave no answer did not fail")
	}
	s = newStage(roles(), func(c *Config) { c.FailOnDenial = true }, Definition{Name: "a"})
	if got := s.play(t.Context()); len(got) != 1 || !errors.Is(got[0].Err, ErrDenied) {
		t.Errorf("results %+v", got)
	}
}

func TestRulesSpeakOfSubagents(t *testing.T) {
	t.Parallel()
	deny, err := policy.ParseRule("Agent(general-purpose)", policy.Deny, "test")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(parts{
		"main": {calls(start("t1", General, ""), call{"agent", "t2", `{"prompt":"p"}`}, call{"agent", "t3", `{"prompt":"p","Subagent_Type":"a","name":"a"}`}, start("t4", "nobody", ""),
			call{"agent", "t5", `{"subagent_type":"a"}`}, start("t6", "a", `,"model":"missing"`)), says("ok")},
	}, func(c *Config) { c.Policy = policy.NewEngine([]policy.Rule{deny}) }, Definition{Name: General}, Definition{Name: "a"})
	s.play(t.Context())
	for id, want := range map[string]string{
		"t1": "denied", "t2": "subagent_type is missing", "t3": "subagent_type is missing",
		"t4": "The agents are: general-purpose, a", "t5": "prompt is missing", "t6": "no model named missing",
	} {
		if text, isError := s.toolAnswer(t, id); !isError || !strings.Contains(text, want) {
			t.Errorf("%s: answer %q, want %q", id, text, want)
		}
	}
}

func TestDefinitionsLimitTools(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		tools, disallow []string
		depth           int
		want            string
	}{
		{"all but agents", nil, nil, 0, "look change todo_write mcp__s__x mcp__t__y"},
		{"named ones", []string{"look", "mcp__s", "TodoWrite"}, nil, 0, "look todo_write mcp__s__x"},
		{"a server's", []string{"mcp__t__*", "change(x)"}, nil, 0, "change mcp__t__y"},
		{"none", []string{}, nil, 0, ""},
		{"some taken away", nil, []string{"change", "mcp__s__x", "TodoWrite"}, 0, "look mcp__t__y"},
		{"deeper", nil, []string{"mcp__*", "todo_write"}, 2, "look change agent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(parts{"main": {calls(start("t1", "a", "")), says("ok")}, "a": {says("done")}},
				func(c *Config) {
					c.MaxDepth = test.depth
					c.Tools.Add(echo("mcp__s__x", policy.ClassMCP), echo("mcp__t__y", policy.ClassMCP), echo("exit_plan_mode", policy.ClassPlan), tools.NewTodoWrite(new(tools.TodoList)))
				}, Definition{Name: "a", Tools: test.tools, DisallowedTools: test.disallow})
			s.play(t.Context())
			var got []string
			for _, spec := range s.cast.requests("a")[0].Tools {
				got = append(got, spec.Name)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("tools %q, want %q", got, test.want)
			}
		})
	}
}

func TestHooksSeeWhoseCallItIs(t *testing.T) {
	t.Parallel()
	var trans closable
	log, cfg := withHooks(t, answers{hooks.SubagentStart: {specific(`"additionalContext":"mind the gap"`)}}, func(c *Config) {
		c.SubTranscript = func(SubagentMeta) (SubTranscript, error) { return &trans, nil }
	})
	s := newStage(parts{
		"main": {calls(start("t1", "a", "")), says("ok")}, "a": {calls(call{"look", "n1", `{}`}), says("done")},
	}, cfg, Definition{Name: "a"})
	s.play(t.Context())
	want := []string{
		"SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart", "PreToolUse", "PostToolUse", "SubagentStop", "PostToolUse", "Stop", "SessionEnd",
	}
	if diff := cmp.Diff(want, log.names()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	calls := log.of(hooks.PreToolUse)
	if _, within := calls[0]["agent_id"]; within || calls[1]["agent_type"] != "a" || calls[1]["agent_id"] == "" || calls[1]["permission_mode"] != "default" {
		t.Errorf("calls %v", calls)
	}
	if stop := log.of(hooks.SubagentStop)[0]; stop["agent_transcript_path"] != "/t/agent.jsonl" || stop["last_assistant_message"] != "done" {
		t.Errorf("stop %v", stop)
	}
	if text := textOf(s.cast.requests("a")[0].Messages[0].Blocks); !strings.Contains(text, "mind the gap") {
		t.Errorf("it was asked %q", text)
	}
}

// deferred is a tool that is not declared until it is found.
type deferred struct{ fakeTool }

func (d deferred) Spec() tools.Spec {
	s := d.fakeTool.Spec()
	s.Deferred = true
	return s
}

func TestNamedToolsNeedNotBeFound(t *testing.T) {
	t.Parallel()
	s := newStage(parts{"main": {calls(start("t1", "a", "")), says("ok")}, "a": {says("done")}},
		func(c *Config) { c.Tools.Add(deferred{echo("mcp__s__x", policy.ClassMCP)}) }, Definition{Name: "a", Tools: []string{"mcp__s"}})
	s.play(t.Context())
	if got := s.cast.requests("a")[0].Tools; len(got) != 1 || got[0].Name != "mcp__s__x" {
		t.Errorf("tools %+v", got)
	}
}

func TestAgentsMayBeStartedInTheBackgroundUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{"": "true", `,"run_in_background":false`: "false", `,"run_in_background":true`: "true"} {
		defs := []Definition{{Name: "a", Prompt: "a"}}
		s := newStage(parts{"main": {calls(start("t1", "a", more)), says("ok"), says("heard")}, "a": {says("done")}}, func(c *Config) {
			c.Tools.Add(NewAgentTool(AgentToolConfig{Definitions: defs, Background: true}))
		})
		s.play(t.Context())
		if line := "task started t1 background=" + want; !slices.ContainsFunc(s.story, func(l string) bool { return strings.Contains(l, line) }) {
			t.Errorf("with %q: %q, want %q", more, s.story, line)
		}
	}
}

func TestSubagentsOfSubagentsAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(parts{
		"main": {calls(start("t1", "a", "")), says("ok")},
		"a":    {calls(start("n1", "b", `,"run_in_background":true`)), says("b says so")},
		"b":    {says("deep")},
	}, func(c *Config) { c.MaxDepth = 2 }, Definition{Name: "a"}, Definition{Name: "b", Background: true})
	if got := s.play(t.Context()); len(got) != 1 {
		t.Errorf("results %+v", got)
	}
	if text, _ := s.toolAnswer(t, "t1"); text != "b says so" || !slices.Contains(s.story, "b: says deep") {
		t.Errorf("answer %q, story %q", text, s.story)
	}
}

func TestASubagentIsNeverLaxerThanItsCaller(t *testing.T) {
	t.Parallel()
	tests := []struct {
		caller, own, then policy.Mode // then: set while it runs
		want              string
	}{
		{policy.ModeDefault, policy.ModeYolo, "", "denied"},
		{policy.ModeYolo, "", "", "ran"},
		{policy.ModeYolo, policy.ModeDefault, "", "denied"},
		{policy.ModeYolo, policy.ModePlan, "", "denied"},
		{policy.ModePlan, policy.ModeYolo, "", "denied"},
		{policy.ModeYolo, policy.ModeYolo, policy.ModePlan, "denied"},
		{policy.ModeDefault, "", policy.ModeYolo, "ran"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s-%s-%s", test.caller, test.own, test.then), func(t *testing.T) {
			t.Parallel()
			ran := "denied"
			var s *stage
			act := fakeTool{"act", policy.ClassOther, func(context.Context, *tools.Call) tools.Result { ran = "ran"; return tools.Text("ok") }}
			acts := func(ctx context.Context, r *model.Request, emit func(model.Delta)) error {
				if test.then != "" {
					s.SetMode(test.then)
				}
				return calls(call{"act", "n1", `{}`})(ctx, r, emit)
			}
			s = newStage(parts{"main": {calls(start("t1", "a", "")), says("ok")}, "a": {acts, says("done")}},
				func(c *Config) { c.Mode = test.caller; c.Tools.Add(act) }, Definition{Name: "a", PermissionMode: test.own})
			s.play(t.Context())
			if ran != test.want {
				t.Errorf("%s, want %s", ran, test.want)
			}
		})
	}
}

func TestTheDescriptionListsTheAgents(t *testing.T) {
	t.Parallel()
	text := NewAgentTool(AgentToolConfig{Definitions: append(BuiltinDefinitions(), Definition{Name: "x", Description: "two\nlines", Background: true})}).Spec().Description
	for _, want := range []string{"- general-purpose: ", "- explore: ", "- x: two lines (always in the background)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	var many []Definition
	for i := range 100 {
		many = append(many, Definition{Name: fmt.Sprint("a", i), Description: strings.Repeat("long ", 3000)})
	}
	if text = NewAgentTool(AgentToolConfig{Definitions: many}).Spec().Description; len(text) > 2*maxShownAgents || !strings.Contains(text, "- a99") {
		t.Errorf("%d bytes", len(text))
	}
	if res := NewAgentTool(AgentToolConfig{}).Run(t.Context(), &tools.Call{Input: json.RawMessage(`{}`)}); !res.IsError {
		t.Error("an agent was started by nobody")
	}
}

// closable is a transcript of a sub-agent.
type closable struct {
	memory
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }
func (c *closable) Path() string { return "/t/agent.jsonl" }

func TestASubagentHasItsOwnTranscriptAndModel(t *testing.T) {
	t.Parallel()
	var trans closable
	var meta SubagentMeta
	heat := 0.5
	s := newStage(parts{"main": {calls(start("t1", "a", "")), says("ok")}, "env+a": {says("done")}},
		func(c *Config) {
			c.SubSystem = func(prompt string) string { return "env+" + prompt }
			c.SubTranscript = func(m SubagentMeta) (SubTranscript, error) { meta = m; return &trans, nil }
		}, Definition{Name: "a", Model: "small", Temperature: &heat, TopP: &heat})
	s.play(t.Context())
	if len(trans.entries) != 2 || !trans.closed || meta.AgentType != "a" || meta.ToolUseID != "t1" || meta.Description != "work of t1" {
		t.Errorf("transcript %+v, meta %+v", trans, meta)
	}
	if req := s.cast.requests("env+a")[0]; req.Model != "small" || *req.Temperature != heat || *req.TopP != heat {
		t.Errorf("request %+v", req)
	}
	for _, e := range s.events {
		if e, ok := e.(*TaskEnded); ok && (e.OutputFile != "/t/agent.jsonl" || e.Task.ID != meta.AgentID) {
			t.Errorf("ended %+v", e)
		}
	}
}

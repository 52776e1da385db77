package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

func TestPreToolUseDecides(t *testing.T) {
	t.Parallel()
	decision := func(p string) string {
		return specific(`"permissionDecision":"` + p + `","permissionDecisionReason":"so it is"`)
	}
	tests := []struct {
		name   string
		say    string
		tool   string
		asker  policy.Asker
		result string // in the tool's result
		denied bool
	}{
		{"deny", decision("deny"), "look", nil, "A hook denied this call of look: so it is.", true},
		{"legacy block", `{"decision":"block","reason":"no"}`, "look", nil, "no", true},
		{"a hook that fails denies", "fail", "look", nil, "it broke", true},
		{"allow", decision("allow"), "change", nil, "change{", false},
		{"no opinion asks as before", "", "change", nil, "nobody is there", true},
		{"ask forces a question", decision("ask"), "look", nil, "so it is", true},
		{"ask, answered yes", decision("ask"), "look", askFunc(yes), "look{", false},
		{"another input", specific(`"permissionDecision":"allow","updatedInput":{"b":2}`), "change", nil, `change{"b":2}`, false},
		{"an empty input changes nothing", specific(`"permissionDecision":"allow","updatedInput":{}`), "change", nil, `change{"a":1}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, cfg := withHooks(t, answers{hooks.PreToolUse: {tt.say}}, func(c *Config) {
				c.Asker = tt.asker
				c.Facts.Interactive = tt.asker != nil
			})
			r := newRig(t, cfg, calls(call{tt.tool, "t1", `{"a":1}`}), says("done"))
			res := r.run(t.Context(), "hi")[0]
			if got := r.historyText(2); !strings.Contains(got, tt.result) {
				t.Errorf("the model was told %q, want %q in it", got, tt.result)
			}
			if (len(res.Denials) == 1) != tt.denied || res.IsError {
				t.Errorf("result = %+v", res)
			}
			checkHistory(t, r.c.history)
		})
	}
}

// No sequence of what hooks say makes a call run that policy denies, in
// whatever order they say it.
func TestHooksLiftNoDenial(t *testing.T) {
	t.Parallel()
	says1 := []string{
		"", `{"decision":"approve"}`, specific(`"permissionDecision":"allow"`), specific(`"permissionDecision":"ask"`),
		specific(`"permissionDecision":"allow","updatedInput":{"command":"rm -rf build"}`),
		specific(`"updatedInput":{"command":"rm -rf build"}`),
	}
	request := specific(`"decision":{"behavior":"allow"}`)
	for _, first := range says1 {
		for _, second := range says1 {
			for _, command := range []string{"rm -rf build", "ls"} {
				rule, err := policy.ParseRule("Bash(rm:*)", policy.Deny, "test")
				if err != nil {
					t.Fatal(err)
				}
				ran := ""
				tool := fakeTool{"run_shell_command", policy.ClassExec, func(_ context.Context, c *tools.Call) tools.Result {
					ran = string(c.Input)
					return tools.Text("ran")
				}}
				runner := hooks.New(nil, nil)
				for _, say := range []struct {
					event hooks.Event
					out   string
				}{{hooks.PreToolUse, first}, {hooks.PreToolUse, second}, {hooks.PermissionRequest, request}} {
					_ = runner.Register(hooks.Registration{Event: say.event, Func: func(context.Context, json.RawMessage, string) (json.RawMessage, error) {
						return json.RawMessage(say.out), nil
					}})
				}
				r := newRig(t, func(c *Config) {
					c.Hooks, c.Tools, c.Mode = runner, tools.NewRegistry(tool), policy.ModeYolo
					c.Policy = policy.NewEngine([]policy.Rule{rule})
					c.Asker, c.Facts.Interactive = askFunc(yes), true
				}, calls(call{"Bash", "t1", `{"command":"` + command + `"}`}), says("done"))
				r.run(t.Context(), "hi")
				if strings.Contains(ran, "rm") {
					t.Errorf("hooks say %s, then %s: %q ran as %s", first, second, command, ran)
				}
			}
		}
	}
}

func TestPostToolUse(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, say, want string }{
		{"another result", specific(`"updatedToolOutput":"short"`), "short"},
		{"an objection", `{"decision":"block","reason":"not formatted"}`, `look{}<hook-context>`},
		{"an objection's reason", `{"decision":"block","reason":"not formatted"}`, "not formatted"},
		{"a failure changes nothing", "fail", "look{}"},
	}
	for _, tt := range tests {
		_, cfg := withHooks(t, answers{hooks.PostToolUse: {tt.say}}, nil)
		r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
		res := r.run(t.Context(), "hi")[0]
		if got := r.historyText(2); !strings.Contains(got, tt.want) || res.Text != "done" {
			t.Errorf("%s: the model was told %q", tt.name, got)
		}
	}
}

func TestPostToolUseFailure(t *testing.T) {
	t.Parallel()
	log, cfg := withHooks(t, answers{hooks.PostToolUseFailure: {specific(`"additionalContext":"try the other one"`)}}, func(c *Config) {
		c.Tools = tools.NewRegistry(fakeTool{"look", policy.ClassRead, func(context.Context, *tools.Call) tools.Result {
			return tools.Fail("no such file")
		}})
	})
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
	r.run(t.Context(), "hi")
	in := log.of(hooks.PostToolUseFailure)
	if len(in) != 1 || in[0]["error"] != "no such file" || in[0]["is_interrupt"] != false || len(log.of(hooks.PostToolUse)) != 0 {
		t.Errorf("hooks were told %v", in)
	}
	if !strings.Contains(r.historyText(2), "try the other one") {
		t.Errorf("the model was told %q", r.historyText(2))
	}
}

func TestAnInterruptedCallIsAFailureToHooks(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	log, cfg := withHooks(t, answers{}, func(c *Config) {
		c.Tools = tools.NewRegistry(fakeTool{"look", policy.ClassRead, func(ctx context.Context, _ *tools.Call) tools.Result {
			close(started)
			<-ctx.Done()
			return tools.Fail("stopped")
		}})
	})
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}))
	go func() {
		<-started
		r.c.Interrupt(ErrInterrupted, false)
	}()
	res := r.run(t.Context(), "hi")[0]
	if in := log.of(hooks.PostToolUseFailure); len(in) != 1 || in[0]["is_interrupt"] != true || res.Terminal != AbortedTools {
		t.Errorf("hooks were told %v; result %+v", in, res)
	}
}

func TestPermissionRequestAnswersInPlaceOfTheUser(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, say, want string
		asked           int
		terminal        Terminal
	}{
		{"allow", specific(`"decision":{"behavior":"allow"}`), `change{"a":1}`, 0, Completed},
		{"allow another input", specific(`"decision":{"behavior":"allow","updatedInput":{"a":2}}`), `change{"a":2}`, 0, Completed},
		{"deny", specific(`"decision":{"behavior":"deny","message":"not today"}`), "not today", 0, Completed},
		{"deny and interrupt", specific(`"decision":{"behavior":"deny","message":"stop","interrupt":true}`), "stop", 0, AbortedTools},
		{"a failure denies", "fail", "it broke", 0, Completed},
		{"no opinion", "{}", `change{"a":1}`, 1, Completed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			log, cfg := withHooks(t, answers{hooks.PermissionRequest: {tt.say}}, func(c *Config) {
				c.Facts.Interactive = true
				c.Asker = askFunc(func(ctx context.Context, q policy.Question) (policy.Answer, error) {
					asked++
					return yes(ctx, q)
				})
			})
			r := newRig(t, cfg, calls(call{"change", "t1", `{"a":1}`}), says("done"))
			res := r.run(t.Context(), "hi")[0]
			if got := r.historyText(2); !strings.Contains(got, tt.want) || asked != tt.asked || res.Terminal != tt.terminal {
				t.Errorf("the model was told %q, the user asked %d times, result %+v", got, asked, res)
			}
			if in := log.of(hooks.PermissionRequest)[0]; in["tool_name"] != "change" {
				t.Errorf("input = %v", in)
			}
			checkHistory(t, r.c.history)
		})
	}
}

func TestADeferredCallIsAnsweredLater(t *testing.T) {
	t.Parallel()
	result := model.ToolResult{ToolUseID: "t1", Blocks: []model.Block{model.Text{Text: "from the host"}}}
	tests := []struct {
		name   string
		next   Input
		want   []string // terminal reasons
		answer string   // to the call
	}{
		{"by its result", Input{Blocks: []model.Block{model.Text{Text: "and go on"}, result}}, []string{"tool_deferred", "completed"}, "from the host"},
		{"by an appended result", Input{Blocks: []model.Block{result}, AppendOnly: true}, []string{"tool_deferred"}, "from the host"},
		{"not: a plain prompt", Input{Blocks: []model.Block{model.Text{Text: "never mind"}}}, []string{"tool_deferred", "completed"}, "no result for it came"},
		{"not: the result of another", Input{Blocks: []model.Block{model.ToolResult{ToolUseID: "t9"}}}, []string{"tool_deferred", "turn_setup_failed"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, cfg := withHooks(t, answers{hooks.PreToolUse: {specific(`"permissionDecision":"defer"`)}}, nil)
			r := newRig(t, cfg, calls(call{"look", "t1", `{"a":1}`}), says("done"))
			r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "hi"}}})
			r.c.Submit(tt.next)
			got := r.run(t.Context())
			var terminals []string
			for _, res := range got {
				terminals = append(terminals, string(res.Terminal))
			}
			if diff := cmp.Diff(tt.want, terminals); diff != "" {
				t.Fatalf("results (-want +got):\n%s", diff)
			}
			if d := got[0].Deferred; d == nil || d.ID != "t1" || d.Name != "look" || string(d.Input) != `{"a":1}` || got[0].IsError {
				t.Errorf("result = %+v", got[0])
			}
			if tt.answer == "" {
				if len(r.c.openCalls()) != 1 {
					t.Error("the call is not open any more")
				}
				return
			}
			checkHistory(t, r.c.history)
			first := r.c.history[2].Blocks[0].(model.ToolResult)
			if first.Name != "look" || !strings.Contains(textOf(first.Blocks), tt.answer) {
				t.Errorf("the call was answered by %+v", first)
			}
		})
	}
}

func TestADeferAmongSeveralCallsAsks(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{hooks.PreToolUse: {specific(`"permissionDecision":"defer"`)}}, nil)
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}, call{"look", "t2", `{}`}), says("done"))
	res := r.run(t.Context(), "hi")[0]
	if res.Terminal != Completed || len(res.Denials) != 2 {
		t.Errorf("result = %+v", res)
	}
	checkHistory(t, r.c.history)
}

func TestContinuingAfterADeferredCallAnswersIt(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{hooks.PreToolUse: {specific(`"permissionDecision":"defer"`)}}, nil)
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
	r.c.Submit(Input{Blocks: []model.Block{model.Text{Text: "hi"}}})
	r.c.Submit(Input{Injected: true})
	got := r.run(t.Context())
	if got[1].Text != "done" || slices.Contains(r.story(), "Noted") {
		t.Errorf("results %+v, story %q", got, r.story())
	}
	checkHistory(t, r.c.history)
}

func TestResultsOfDeferredCallsComeBeforeNotesOfTasks(t *testing.T) {
	t.Parallel()
	_, cfg := withHooks(t, answers{hooks.PreToolUse: {specific(`"permissionDecision":"defer"`)}}, nil)
	r := newRig(t, cfg, calls(call{"look", "t1", `{}`}), says("done"))
	r.onEnd = func(res Result) {
		if res.Deferred != nil {
			r.c.backlog.begin()
			r.c.backlog.end("a task ended", false)
		}
	}
	r.run(t.Context(), "hi", "go on")
	checkHistory(t, r.c.history)
	if got := r.historyText(3); got != "a task ended" {
		t.Errorf("after the results comes %q", got)
	}
}

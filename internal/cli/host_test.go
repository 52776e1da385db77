package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// wired is a run with a host, up to its first line.
func wired(t *testing.T, p *testPlace, args ...string) *host {
	t.Helper()
	script := p.write("home/model.jsonc", `{"use": "always", "emit": [{"text": "hello"}]}`)
	root, o := newRootOf(p.io)
	if err := root.ParseFlags(append([]string{"--input-format=stream-json", "--output-format=stream-json", "--model=scripted/" + script}, args...)); err != nil {
		t.Fatal(err)
	}
	o.host = hostArgs{dialect: streamjson.Native}
	h := newHost(o)
	w, err := newWiring(t.Context(), p.io, o, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	conv, err := w.conversation()
	if err != nil {
		t.Fatal(err)
	}
	out := streamjson.NewWriter(&p.out, streamjson.WriterOptions{})
	t.Cleanup(func() { _ = out.Close(context.Background()) })
	h.attach(w, conv, out, w.servers.Start)
	return h
}

// judged is what the host would be told of a shell command.
func judged(t *testing.T, h *host, command string) policy.Behavior {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return h.Judge(t.Context(), control.ToolCall{Tool: "Bash", ToolUseID: "t", Input: input}).Behavior
}

func rules(t *testing.T, b policy.Behavior, texts ...string) []policy.Rule {
	t.Helper()
	var out []policy.Rule
	for _, text := range texts {
		r, err := policy.ParseRule(text, b, "test")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestAnswersChangeWhatIsAllowed(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	h := wired(t, p)
	local := filepath.Join(p.io.Dir, ".agent", "settings.local.json")
	step := func(what string, u policy.Update, want policy.Behavior, inFile bool) {
		t.Helper()
		if err := h.w.perms.apply(u); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := judged(t, h, "make thing"); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		data, _ := os.ReadFile(local) // is not there before something is saved
		if got := strings.Contains(string(data), "make thing"); got != inFile {
			t.Errorf("%s: in the file: %v, want %v: %s", what, got, inFile, data)
		}
	}
	allow := rules(t, policy.Allow, "Bash(make thing)")
	step("allowed for the session", policy.Update{Type: policy.UpdateAddRules, Rules: allow, Behavior: policy.Allow, Destination: policy.ToSession}, policy.Allow, false)
	step("taken back", policy.Update{Type: policy.UpdateRemoveRules, Rules: allow, Behavior: policy.Allow, Destination: policy.ToSession}, policy.Ask, false)
	step("allowed for good", policy.Update{Type: policy.UpdateAddRules, Rules: allow, Behavior: policy.Allow, Destination: policy.ToLocal}, policy.Allow, true)
	step("replaced", policy.Update{Type: policy.UpdateReplaceRules, Rules: rules(t, policy.Allow, "Bash(other)"), Behavior: policy.Allow, Destination: policy.ToLocal}, policy.Ask, false)
	step("denied", policy.Update{Type: policy.UpdateAddRules, Rules: rules(t, policy.Deny, "Bash(make:*)"), Behavior: policy.Deny, Destination: policy.ToSession}, policy.Deny, false)
	step("an allow lifts no denial", policy.Update{Type: policy.UpdateAddRules, Rules: allow, Behavior: policy.Allow, Destination: policy.ToSession}, policy.Deny, false)
	step("nor does a mode", policy.Update{Type: policy.UpdateSetMode, Mode: policy.ModeYolo, Destination: policy.ToSession}, policy.Deny, false)
	if h.conv.Mode() != policy.ModeYolo {
		t.Errorf("mode %s", h.conv.Mode())
	}
}

func TestAnswersChangeTheDirectories(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	more := p.write("more/a.txt", "a")
	h := wired(t, p)
	look := func() policy.Behavior {
		input, err := json.Marshal(map[string]string{"file_path": more})
		if err != nil {
			t.Fatal(err)
		}
		return h.Judge(t.Context(), control.ToolCall{Tool: "Read", Input: input}).Behavior
	}
	if got := look(); got != policy.Ask {
		t.Fatalf("outside: %s", got)
	}
	u := policy.Update{Type: policy.UpdateAddDirectories, Directories: []string{filepath.Dir(more)}, Destination: policy.ToSession}
	if err := h.w.perms.apply(u); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != policy.Allow {
		t.Errorf("added: %s", got)
	}
	u.Type = policy.UpdateRemoveDirectories
	if err := h.w.perms.apply(u); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != policy.Ask {
		t.Errorf("removed: %s", got)
	}
	u.Type, u.Directories = policy.UpdateAddDirectories, []string{"/no/such/directory"}
	if err := h.w.perms.apply(u); err == nil {
		t.Error("a directory that is not there was added")
	}
}

func TestFlagSettingsHoldTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	h := wired(t, p)
	apply := func(settings string) error {
		return h.ApplyFlagSettings(t.Context(), json.RawMessage(settings))
	}
	if err := apply(`{"permissions": {"allow": ["Bash(make thing)"], "defaultMode": "acceptEdits"}}`); err != nil {
		t.Fatal(err)
	}
	if judged(t, h, "make thing") != policy.Allow || h.conv.Mode() != policy.ModeAutoEdit {
		t.Errorf("%s, mode %s", judged(t, h, "make thing"), h.conv.Mode())
	}
	for settings, want := range map[string]string{
		`{"permissions": {"deny": ["Bash(make thing)"], "allow": ["("]}}`: "permissions.allow",
		`{"permissions": {"defaultMode": "sing"}}`:                        "unknown permission mode",
		`{"model": "no/such/model", "permissions": {"deny": ["Bash"]}}`:   "model",
		`{"model": 3}`:           "settings.model",
		`{"theme": "dark"}`:      "settings.theme: can't be changed",
		`{"permissions": "all"}`: "settings.permissions",
	} {
		if err := apply(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
	if judged(t, h, "make thing") != policy.Allow {
		t.Error("what could not be applied changed something")
	}
	if err := apply(`{"permissions": null}`); err != nil {
		t.Fatal(err)
	}
	if judged(t, h, "make thing") != policy.Ask {
		t.Error("cleared permissions still hold")
	}
}

func TestInitializeWithAFaultChangesNothing(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	h := wired(t, p)
	system := h.conv.System()
	prompt := "other"
	for name, in := range map[string]*control.Initialize{
		"agents": {SystemPrompt: &prompt, Agents: json.RawMessage(`{"a":{"prompt":3}}`)},
		"schema": {SystemPrompt: &prompt, JSONSchema: json.RawMessage(`{"type":3}`)},
	} {
		if err := h.Initialize(t.Context(), in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if h.conv.System() != system || h.answers() {
		t.Error("something changed all the same")
	}
	if err := h.Initialize(t.Context(), &control.Initialize{SystemPrompt: &prompt, AppendPrompt: "more"}); err != nil {
		t.Fatal(err)
	}
	if h.conv.System() != "other\n\nmore" || !h.answers() {
		t.Errorf("system prompt %q", h.conv.System())
	}
}

func TestAnotherInitializeDefinesTheAgentsAnew(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	h := wired(t, p)
	described := func(agents string) string {
		t.Helper()
		if err := h.Initialize(t.Context(), &control.Initialize{Agents: json.RawMessage(agents)}); err != nil {
			t.Fatal(err)
		}
		tool, ok := h.w.toolset.registry.Lookup("agent")
		if !ok {
			return ""
		}
		return tool.Spec().Description
	}
	if got := described(`{"critic":{"description":"reviews","prompt":"p"}}`); !strings.Contains(got, "critic: reviews") {
		t.Fatalf("the model is told %q", got)
	}
	if got := described(""); !strings.Contains(got, "critic") {
		t.Errorf("a request without agents took them away: %q", got)
	}
	if got := described(`{}`); strings.Contains(got, "critic") || !strings.Contains(got, "explore") {
		t.Errorf("without any the model is told %q", got)
	}
	h.w.agents.rest = nil // as in qwen's sessions
	h.w.agents.setSession(nil)
	if _, ok := h.w.toolset.registry.Lookup("agent"); ok {
		t.Error("without agents there is a tool to call them")
	}
}

// TestThePartsOfTheContextAddUpToWhatWasCounted: the sub-agents, which the agent
// tool describes, are not counted twice, and deferred tools not at all.
func TestThePartsOfTheContextAddUpToWhatWasCounted(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	h := wired(t, p)
	if err := h.Initialize(t.Context(), &control.Initialize{Agents: json.RawMessage(`{"critic":{"description":"reviews what was changed, and says so","prompt":"p"}}`)}); err != nil {
		t.Fatal(err)
	}
	h.w.toolset.registry.Add(deferredTool{})
	const counted = 50_000
	h.w.watch.see(agent.Origin{}, &agent.MessageEnded{Usage: model.Usage{InputTokens: counted - 100, OutputTokens: 100}})
	u, err := h.ContextUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := u.SystemPrompt + u.Messages
	for _, list := range [][]control.UsageItem{u.Tools, u.MCPTools, u.Agents} {
		for _, i := range list {
			if !i.Absent {
				sum += i.Tokens
			}
		}
	}
	if sum != counted || u.Messages == 0 || len(u.Agents) != 3 {
		t.Errorf("the parts are %d tokens, want %d: %+v", sum, counted, u)
	}
	if len(u.MCPTools) != 1 || !u.MCPTools[0].Absent {
		t.Errorf("tools of servers: %+v", u.MCPTools)
	}
}

// deferredTool is a tool of a server that must be searched for.
type deferredTool struct{ tools.Tool }

func (deferredTool) Spec() tools.Spec {
	return tools.Spec{Name: "mcp__a__b", Description: strings.Repeat("long ", 1000), Server: "a", Deferred: true}
}

// TestAgentsOfHostsHaveTheirLevel: a host's agent wins by its name unless the
// host says that it is a lesser one than the project's.
func TestAgentsOfHostsHaveTheirLevel(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.write("work/.agent/agents/critic.md", "---\ndescription: the project's\n---\nP")
	for level, want := range map[string]string{"": "the host's", "session": "the host's", "project": "the host's", "user": "the project's", "builtin": "the project's"} {
		h := wired(t, p)
		agents, err := json.Marshal(map[string]any{"critic": map[string]any{"description": "the host's", "prompt": "H", "level": level}})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Initialize(t.Context(), &control.Initialize{Agents: agents}); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range h.Describe().Agents {
			if a.Name == "critic" {
				got += a.Description
			}
		}
		if got != want {
			t.Errorf("level %q: %s, want %s", level, got, want)
		}
	}
	h := wired(t, p)
	err := h.Initialize(t.Context(), &control.Initialize{Agents: []byte(`{"a":{"level":"planet"}}`)})
	if err == nil || !strings.Contains(err.Error(), `agent "a": level: it is "planet": use one of`) {
		t.Errorf("error %v", err)
	}
}

// TestHooksForEventsThatNeverCome: in the native dialect a guard that would
// never be called is refused, and the SDKs' later events are passed over.
func TestHooksForEventsThatNeverCome(t *testing.T) {
	t.Parallel()
	h := wired(t, newTestPlace(t))
	typo := []control.HookRegistration{{Event: "PreToolUSe", CallbackIDs: []string{"guard"}}}
	if err := h.RegisterHooks(typo); err == nil || !strings.Contains(err.Error(), `"PreToolUSe"`) || !strings.Contains(err.Error(), "PreToolUse ") {
		t.Errorf("error %v", err)
	}
	h.o.host.dialect = streamjson.Claude
	if err := h.RegisterHooks(typo); err != nil {
		t.Error(err)
	}
}

// TestJudgeOfACallThatCannotRun: the host is told what the model would be, and
// not that somebody must be asked.
func TestJudgeOfACallThatCannotRun(t *testing.T) {
	t.Parallel()
	h := wired(t, newTestPlace(t))
	d := h.Judge(t.Context(), control.ToolCall{Tool: "write_file", Input: []byte(`{"content":"x"}`)})
	if d.Behavior != policy.Deny || !strings.Contains(d.Reason, "file_path") {
		t.Errorf("%+v", d)
	}
	if d := h.Judge(t.Context(), control.ToolCall{Tool: "write_file", Input: []byte(`{"file_path":"a","content":"x"}`)}); d.Behavior != policy.Ask {
		t.Errorf("%+v", d)
	}
}

// TestAToolOfAServerThatIsAway: the model is told of the server, and not that
// there is no such tool.
func TestAToolOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	h := wired(t, newTestPlace(t))
	h.w.servers.AddFailed("dynamic", map[string]error{"the db": errors.New("it is wrong")})
	if got := h.w.awayTool("mcp__the_db__query"); got != `the MCP server "the db" is failed` {
		t.Errorf("told %q", got)
	}
	for _, name := range []string{"mcp__other__query", "the_db", "read_file"} {
		if got := h.w.awayTool(name); got != "" {
			t.Errorf("%s: told %q", name, got)
		}
	}
}

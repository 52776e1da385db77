package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/usage"
)

// golden reads recorded frames; a control frame is left out.
func golden(t *testing.T, name string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, m := range decode(t, bytes.Split(bytes.TrimSpace(data), []byte("\n"))) {
		if kind := m["type"].(string); !strings.HasPrefix(kind, "control_") {
			out = append(out, m)
		}
	}
	return out
}

// piece is a block of an answer, as it is streamed.
type piece struct {
	block  model.Block
	deltas []string
}

// answered are the events of one answer of the model.
func answered(id string, stop model.StopReason, u model.Usage, pieces ...piece) []agent.Event {
	out := []agent.Event{&agent.MessageStarted{MessageID: id, Model: "m"}}
	for i, p := range pieces {
		kind, empty := model.DeltaText, model.Block(model.Text{})
		switch b := p.block.(type) {
		case model.Thinking:
			kind, empty = model.DeltaThinking, model.Thinking{}
		case model.ToolUse:
			kind, empty = model.DeltaToolInput, model.ToolUse{ID: b.ID, Name: b.Name}
		}
		out = append(out, &agent.BlockStarted{Index: i, Block: empty})
		for _, d := range p.deltas {
			out = append(out, &agent.BlockDelta{Index: i, Kind: kind, Text: d})
		}
		out = append(out, &agent.BlockEnded{Index: i, Block: p.block, UUID: "b", MessageID: id, Model: "m"}, &agent.BlockClosed{Index: i})
	}
	return append(out, &agent.MessageEnded{MessageID: id, Stop: stop, Usage: u})
}

func toolEnded(id, name, text string, isError bool, display string) *agent.ToolEnded {
	e := &agent.ToolEnded{UUID: "r", Result: model.ToolResult{
		ToolUseID: id, Name: name, IsError: isError, Blocks: []model.Block{model.Text{Text: text}}}}
	if display != "" {
		e.Display = json.RawMessage(display)
	}
	return e
}

// project returns the frames that p, which writes to out, makes of events.
func project(t *testing.T, p Projector, out *sink, from agent.Origin, events ...agent.Event) []map[string]any {
	t.Helper()
	at := len(out.lines)
	for _, e := range events {
		p.Event(t.Context(), from, e)
	}
	return decode(t, out.lines[at:])
}

// plain makes ids and times of frames the same everywhere. A message's id is
// that of its frame, or not.
func plain(list []map[string]any) []map[string]any {
	for _, m := range list {
		if msg, ok := m["message"].(map[string]any); ok && msg["id"] != nil {
			msg["id"] = fmt.Sprint("own: ", msg["id"] == m["uuid"])
		}
		if event, ok := m["event"].(map[string]any); ok {
			if msg, ok := event["message"].(map[string]any); ok {
				msg["id"] = "id"
			}
		}
		m["uuid"] = fmt.Sprint("the session's: ", m["uuid"] == m["session_id"])
		for _, key := range []string{"duration_ms", "duration_api_ms"} {
			if m[key] != nil {
				m[key] = 0
			}
		}
		m["session_id"] = "s"
	}
	return list
}

func qwenFacts(input, output, cached int) *Facts {
	l := new(usage.Ledger)
	l.Add(usage.Entry{Model: "m", Usage: model.Usage{InputTokens: input - cached, CacheReadTokens: cached, OutputTokens: output}})
	return &Facts{
		Dialect: streamjson.Qwen, SessionID: "s", Cwd: "/w", Ledger: l,
		Tools:         func() []string { return []string{"web_fetch", "get_goal", "update_goal"} },
		SlashCommands: func() []string { return []string{"auth", "batch"} },
	}
}

func tokens(in, out, cached int) model.Usage {
	return model.Usage{InputTokens: in - cached, CacheReadTokens: cached, OutputTokens: out}
}

func TestQwenAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(203, 14, 6), Out: out, Partial: true}
	got := project(t, q, out, agent.Origin{}, append(append([]agent.Event{&agent.TurnStarted{Model: "m", Mode: policy.ModeYolo}},
		answered("1", model.StopEndTurn, tokens(101, 7, 3),
			piece{model.Thinking{Text: "let me think"}, []string{"let", " me think"}},
			piece{model.Text{Text: "hello partial"}, []string{"hello", " part", "ial"}})...),
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "hello partial", ModelCalls: 1}})...)
	shell, read := json.RawMessage(`{"command":"echo a; sleep 1; echo b","description":"d"}`), json.RawMessage(`{"file_path":"/etc/hostname"}`)
	events := append([]agent.Event{&agent.TurnStarted{Model: "m", Mode: policy.ModeYolo}},
		answered("2", model.StopToolUse, tokens(103, 7, 3),
			piece{model.Text{Text: "before tool"}, []string{"befor", "e too", "l"}},
			piece{model.ToolUse{ID: "call_3_0", Name: "run_shell_command", Input: shell}, []string{string(shell)}},
			piece{model.ToolUse{ID: "call_3_1", Name: "read_file", Input: read}, []string{string(read)}})...)
	events = append(events, toolEnded("call_3_0", "run_shell_command", "a\nb\n[exit code 0]", false, `{"stdout":"a\nb\n"}`),
		toolEnded("call_3_1", "read_file", "vm\n", false, ""))
	events = append(events, answered("3", model.StopEndTurn, tokens(104, 7, 3),
		piece{model.Text{Text: "done after tool: vm\n"}, []string{"done after tool: ", "vm\n"}})...)
	q.Facts.Ledger.Add(usage.Entry{Model: "m", Usage: tokens(207, 14, 6)})
	events = append(events, &agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "done after tool: vm\n", ModelCalls: 2}})
	got = append(got, project(t, q, out, agent.Origin{}, events...)...)
	if diff := cmp.Diff(plain(golden(t, "qwen-partial.jsonl")), plain(got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

func TestQwenFailureAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	f := qwenFacts(0, 0, 0)
	err := &model.Error{Kind: model.ErrAuth, Message: "mock error 401", Status: 401}
	got := project(t, &Qwen{Facts: f, Out: out, Partial: true}, out, agent.Origin{},
		&agent.TurnStarted{Model: "m", Mode: policy.ModeAutoEdit},
		&agent.RequestFailed{UUID: "f", Err: err, Text: "API Error"},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, IsError: true, APIError: err, ModelCalls: 1}})
	want := golden(t, "qwen-err401.jsonl")[:3]
	// Other words, and its mode auto is none of ours.
	want[0]["permission_mode"] = "auto-edit"
	text := apiProblem(err)
	want[1]["message"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"] = text
	want[2]["error"] = map[string]any{"message": text}
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

func TestQwenSubagentAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out, Partial: true}
	sub := agent.Origin{AgentID: "a", AgentType: "helper-x", ParentToolUseID: "call_12_0"}
	prompt := `use TOOL:run_shell_command:{"command":"touch zz"}`
	events := append([]agent.Event{&agent.TurnStarted{Model: "m", Input: agent.Input{Blocks: []model.Block{model.Text{Text: prompt}}}}},
		answered("1", model.StopToolUse, tokens(5, 5, 0),
			piece{model.Text{Text: "not shown"}, []string{"not shown"}},
			piece{model.ToolUse{ID: "call_13_0", Name: "run_shell_command", Input: json.RawMessage(`{"command":"touch zz"}`)}, []string{"{"}})...)
	events = append(events, toolEnded("call_13_0", "run_shell_command", "Tool call cancelled by user abort.", true, ""),
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorDuringExecution}})
	got := project(t, q, out, sub, events...)
	var want []map[string]any
	for _, m := range golden(t, "qwen-agents-fg.jsonl") {
		if m["parent_tool_use_id"] == "call_12_0" {
			want = append(want, m)
		}
	}
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

func TestQwenAnswerThatBeginsAnew(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out}
	got := project(t, q, out, agent.Origin{},
		&agent.MessageStarted{Model: "m"},
		&agent.BlockEnded{Block: model.ToolUse{ID: "t1", Name: "read_file"}, Model: "m"},
		&agent.RequestRetried{Info: model.RetryInfo{Attempt: 1, MaxRetries: 3}},
		&agent.MessageStarted{Model: "m", Supersedes: []string{"b"}},
		&agent.BlockStarted{Block: model.Text{}}, &agent.BlockEnded{Block: model.Text{Text: "x"}}, &agent.MessageEnded{},
		&agent.RequestRetried{Info: model.RetryInfo{Attempt: 1, MaxRetries: 3}})
	var kinds []string
	for _, m := range got {
		kinds = append(kinds, fmt.Sprint(m["type"], m["subtype"]))
	}
	if diff := cmp.Diff([]string{"assistant<nil>", "user<nil>", "systemretry", "assistant<nil>", "systemretry"}, kinds); diff != "" {
		t.Fatal(diff)
	}
	if data := got[2]["data"].(map[string]any); data["discardedToolCalls"] != 1.0 || data["preserveText"] != false {
		t.Errorf("retry = %v", data)
	}
}

func TestQwenResults(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out}
	denial := agent.Denial{ToolName: "write_file", ToolUseID: "t", Input: json.RawMessage(`{"a":1}`), Reason: "a rule"}
	host := agent.Denial{ToolName: "edit", ToolUseID: "u", Source: agent.ByHost}
	got := project(t, q, out, agent.Origin{},
		&agent.ToolDenied{Denial: denial}, &agent.ToolDenied{Denial: host},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorDuringExecution, Terminal: agent.AbortedTools, Text: "half"}},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorMaxTurns, IsError: true, Errors: []string{"too many"}}})
	for i, want := range []string{"Operation cancelled.", "too many"} {
		m := got[i]
		if m["is_error"] != true || m["error"].(map[string]any)["message"] != want || m["result"] != nil || len(m["permission_denials"].([]any)) != 1 {
			t.Errorf("result = %v", m)
		}
	}
}

func TestQwenTellsOnceThatNothingIsKept(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out}
	ended := &agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Unsaved: true}}
	got := project(t, q, out, agent.Origin{}, ended, ended)
	if len(got) != 3 || got[0]["subtype"] != "session_recording_degraded" || got[0]["data"].(map[string]any)["reason"] != "write_failed" || got[2]["type"] != "result" {
		t.Errorf("frames = %v", got)
	}
}

func TestQwenFailedCommandsSaySo(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out}
	failed := &agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorDuringExecution, IsError: true, Terminal: agent.BadInput, Errors: []string{"/mode: no such mode"}}}
	got := project(t, q, out, agent.Origin{}, &agent.TurnStarted{Model: "m"}, failed)
	if len(got) != 3 || got[1]["type"] != "assistant" || !strings.Contains(fmt.Sprint(got[1]["message"]), "/mode: no such mode") {
		t.Errorf("frames = %v", got)
	}
	if got := project(t, q, out, agent.Origin{}, failed); len(got) != 1 { // a line that began no turn
		t.Errorf("frames = %v", got)
	}
}

func TestQwenCutsLongToolResults(t *testing.T) {
	t.Parallel()
	for _, s := range []string{strings.Repeat("é\n", 50000), strings.Repeat("\x01", 20000), strings.Repeat("a", 65534)} {
		got := projected(s)
		if n := jsonLen(got); n > maxResultText || !utf8.ValidString(got) {
			t.Errorf("%d bytes of JSON", n)
		}
		if cutOut := strings.Contains(got, resultCut); cutOut != (jsonLen(s) > maxResultText) {
			t.Errorf("cut: %v, of %d bytes of JSON", cutOut, jsonLen(s))
		}
	}
}

func TestQwenListIsOneArray(t *testing.T) {
	t.Parallel()
	out := &sink{}
	p := NewProjector(ProjectorOptions{Format: FormatJSON, Facts: qwenFacts(1, 1, 0), Out: out})
	for _, e := range append([]agent.Event{&agent.TurnStarted{Model: "m", Mode: policy.ModeDefault}},
		append(answered("1", model.StopEndTurn, tokens(1, 1, 0), piece{model.Text{Text: "hi"}, []string{"hi"}}),
			&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "hi"}})...) {
		p.Event(t.Context(), agent.Origin{}, e)
	}
	p.(Closer).Close()
	var list []map[string]any
	if len(out.lines) != 1 || json.Unmarshal(out.lines[0], &list) != nil || len(list) != 3 || list[2]["result"] != "hi" {
		t.Errorf("%q", out.lines)
	}
}

// shape is a frame without its values: keys, and the types of what is in them.
func shape(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if key == "modelUsage" {
				k = "MODEL"
			}
			out[k] = shape(x, k)
		}
		return out
	case []any:
		if len(v) > 0 {
			return []any{shape(v[0], "")}
		}
		return []any{}
	case string:
		if key == "type" || key == "subtype" {
			return v
		}
		return "string"
	case nil:
		return nil
	}
	return fmt.Sprintf("%T", v)
}

func shapes(list []map[string]any) []any {
	var out []any
	for _, m := range list {
		out = append(out, shape(m, ""))
	}
	return out
}

func claudeFacts() *Facts {
	l := new(usage.Ledger)
	l.Add(usage.Entry{Model: "m"})
	return &Facts{
		Dialect: streamjson.Claude, SessionID: "s", Cwd: "/w", Ledger: l, Version: "0.1", PID: 7,
		Tools: func() []string { return []string{"Bash"} },
		MCPServers: func() []streamjson.MCPServer {
			return []streamjson.MCPServer{{Name: "test", Status: "connected", Source: "sdk"}}
		},
		SlashCommands: func() []string { return []string{"clear"} },
		Agents:        func() []string { return []string{"general-purpose"} },
		Capabilities:  []string{"interrupt_receipt_v1"},
	}
}

func TestClaudeAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	n := NewProjector(ProjectorOptions{Format: FormatStream, Facts: claudeFacts(), Out: out, Partial: true})
	events := append([]agent.Event{&agent.TurnStarted{Model: "m", Mode: policy.ModeAutoEdit}},
		answered("1", model.StopToolUse, model.Usage{OutputTokens: 20},
			piece{model.Thinking{Text: "need touch"}, []string{"need touch"}},
			piece{model.ToolUse{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"touch a"}`)}, []string{`{"command":"touch a"}`}})...)
	events = append(events, toolEnded("toolu_1", "Bash", "", false, `{"stdout":"","stderr":"","interrupted":false,"isImage":false}`),
		&agent.BlockEnded{Block: model.Text{Text: "Done."}, UUID: "b", MessageID: "msg_02", Model: "m"},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "Done.", ModelCalls: 2, Stop: model.StopEndTurn, Terminal: agent.Completed}})
	got := project(t, n, out, agent.Origin{}, events...)
	want := golden(t, "claude.jsonl")[:len(got)]
	if diff := cmp.Diff(shapes(want), shapes(got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
	if got[0]["permissionMode"] != "acceptEdits" || got[0]["output_style"] != "default" || got[0]["apiKeySource"] != "none" {
		t.Errorf("init = %v", got[0])
	}
}

func TestClaudeResultsAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	f := claudeFacts()
	f.Ledger = new(usage.Ledger)
	got := project(t, &Native{Facts: f, Out: out}, out, agent.Origin{},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, IsError: true, Terminal: agent.APIFailed, Text: "API Error: 404",
			APIError: &model.Error{Status: 404}}},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorMaxTurns, IsError: true, Terminal: agent.MaxTurnsReached,
			Text: "said before", Stop: model.StopToolUse, Errors: []string{"Reached maximum number of turns (3)"}}},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorDuringExecution, Terminal: agent.AbortedStreaming, Text: "said before"}})
	for i, m := range got {
		delete(m, "result_index")
		if i > 0 && m["result"] != nil {
			t.Errorf("an error with a result: %v", m)
		}
	}
	want := golden(t, "claude.jsonl")
	at := len(want) - 8
	if diff := cmp.Diff(shapes(want[at:at+3]), shapes(got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

func TestSubagentsInClaude(t *testing.T) {
	t.Parallel()
	sub := agent.Origin{AgentID: "a", AgentType: "greeter", ParentToolUseID: "toolu_9"}
	events := append([]agent.Event{&agent.TurnStarted{Input: agent.Input{Blocks: []model.Block{model.Text{Text: "greet"}}}}},
		answered("1", model.StopToolUse, model.Usage{}, piece{model.Text{Text: "hello"}, []string{"hello"}},
			piece{model.ToolUse{ID: "t", Name: "Read"}, nil})...)
	events = append(events, toolEnded("t", "Read", "x", false, ""), &agent.Noted{Text: "note"}, &agent.TurnEnded{})
	for _, forward := range []bool{false, true} {
		out := &sink{}
		f := claudeFacts()
		f.ForwardText = func() bool { return forward }
		got := project(t, &Native{Facts: f, Out: out, Partial: true}, out, sub, events...)
		texts := 0
		for _, m := range got {
			if m["parent_tool_use_id"] != "toolu_9" {
				t.Errorf("frame without its parent: %v", m)
			}
			if m["type"] == "result" || m["type"] == "system" {
				t.Errorf("a sub-agent gave %v", m)
			}
			if line := fmt.Sprint(m); strings.Contains(line, "hello") || strings.Contains(line, "note") || m["type"] == "stream_event" {
				texts++
			}
		}
		if forward != (texts > 0) || !forward && len(got) != 2 {
			t.Errorf("forward %v: %v", forward, got)
		}
	}
}

func TestParallelAgentsKeepTheirVoidFrames(t *testing.T) {
	t.Parallel()
	out := &sink{}
	f := claudeFacts()
	f.ForwardText = func() bool { return true }
	n := &Native{Facts: f, Out: out}
	a, b := agent.Origin{AgentID: "a", ParentToolUseID: "1"}, agent.Origin{AgentID: "b", ParentToolUseID: "2"}
	n.Event(t.Context(), a, &agent.MessageStarted{Supersedes: []string{"x"}})
	n.Event(t.Context(), b, &agent.BlockEnded{Block: model.Text{Text: "b"}})
	n.Event(t.Context(), a, &agent.BlockEnded{Block: model.Text{Text: "a"}})
	list := decode(t, out.lines)
	if list[0]["supersedes"] != nil || list[1]["supersedes"] == nil {
		t.Errorf("%v", list)
	}
}

func TestGemini(t *testing.T) {
	t.Parallel()
	events := append([]agent.Event{&agent.TurnStarted{Model: "m", Input: agent.Input{Blocks: []model.Block{model.Text{Text: "list files"}}}}},
		answered("1", model.StopToolUse, model.Usage{}, piece{model.Thinking{Text: "hm"}, []string{"hm"}}, piece{model.Text{Text: "Sure"}, []string{"Sure"}},
			piece{model.ToolUse{ID: "ls-1", Name: "list_directory", Input: json.RawMessage(`{"dir_path":"."}`)}, []string{"{}"}})...)
	events = append(events, toolEnded("ls-1", "list_directory", "3 files", false, ""), toolEnded("x", "edit", "no", true, ""),
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "ok", Duration: 900 * time.Millisecond}},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.ErrorDuringExecution, IsError: true, Terminal: agent.LoopGuard, Errors: []string{"a loop"}}})
	out, object := &sink{}, &sink{}
	facts := &Facts{Dialect: streamjson.Gemini, SessionID: "s", Ledger: qwenFacts(7, 7, 2).Ledger}
	g := NewProjector(ProjectorOptions{Format: FormatStream, Facts: facts, Out: out}).(*Gemini)
	g.Now = func() time.Time { return time.Unix(0, 0) }
	project(t, g, out, agent.Origin{}, events...)
	project(t, g, out, agent.Origin{AgentID: "a"}, events...)
	const at = `"timestamp":"1970-01-01T00:00:00.000Z"`
	stats := `"stats":{"total_tokens":14,"input_tokens":7,"output_tokens":7,"cached":2,"input":5,"duration_ms":%d,"tool_calls":1,` +
		`"models":{"m":{"total_tokens":14,"input_tokens":7,"output_tokens":7,"cached":2,"input":5}}}`
	want := []string{
		`{"type":"init",` + at + `,"session_id":"s","model":"m"}`,
		`{"type":"message",` + at + `,"role":"user","content":"list files"}`,
		`{"type":"message",` + at + `,"role":"assistant","content":"Sure","delta":true}`,
		`{"type":"tool_use",` + at + `,"tool_name":"list_directory","tool_id":"ls-1","parameters":{"dir_path":"."}}`,
		`{"type":"tool_result",` + at + `,"tool_id":"ls-1","status":"success","output":"3 files"}`,
		`{"type":"tool_result",` + at + `,"tool_id":"x","status":"error","error":{"type":"tool_error","message":"no"}}`,
		`{"type":"result",` + at + `,"status":"success",` + fmt.Sprintf(stats, 900) + `}`,
		`{"type":"error",` + at + `,"severity":"error","message":"a loop"}`,
		`{"type":"result",` + at + `,"status":"error","error":{"type":"loop_guard","message":"a loop"},` + fmt.Sprintf(stats, 0) + `}`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), string(bytes.Join(out.lines, []byte("\n")))); diff != "" {
		t.Error(diff)
	}
	j := NewProjector(ProjectorOptions{Format: FormatJSON, Facts: facts, Out: object})
	project(t, j, object, agent.Origin{}, events[:len(events)-1]...)
	j.(Closer).Close()
	if got := decode(t, object.lines); len(got) != 1 || got[0]["response"] != "ok" || got[0]["error"] != nil {
		t.Errorf("json = %v", got)
	}
}

// randomEvent is any event, whether it makes sense there or not.
func randomEvent(r *rand.Rand) agent.Event {
	text := []string{"", "x", "a\xff\u2028b", `{"a":1}`}[r.IntN(4)]
	block := []model.Block{
		model.Text{Text: text}, model.Thinking{Text: text}, model.Thinking{Redacted: "r"},
		model.ToolUse{ID: "t", Name: "Bash", Input: json.RawMessage(text)},
	}[r.IntN(4)]
	if u, ok := block.(model.ToolUse); ok && text != `{"a":1}` {
		u.Input = nil
		block = u
	}
	switch r.IntN(23) {
	case 0:
		return &agent.TurnStarted{Model: text, Mode: policy.ModeDontAsk, Input: agent.Input{Blocks: []model.Block{model.Text{Text: text}}}}
	case 1:
		return &agent.MessageStarted{Model: text, Supersedes: []string{text}[:r.IntN(2)]}
	case 2:
		return &agent.BlockStarted{Index: r.IntN(3), Block: block}
	case 3:
		return &agent.BlockDelta{Kind: []model.DeltaKind{model.DeltaText, model.DeltaThinking, model.DeltaToolInput, model.DeltaSignature}[r.IntN(4)], Text: text}
	case 4:
		return &agent.BlockEnded{Block: block, UUID: "b"}
	case 5:
		return &agent.BlockClosed{}
	case 6:
		return &agent.MessageEnded{}
	case 7:
		return &agent.RequestFailed{Err: &model.Error{Message: text}, Text: text}
	case 8:
		return &agent.RequestRetried{Info: model.RetryInfo{Err: &model.Error{Message: text}}}
	case 9:
		return &agent.ToolProgressed{}
	case 10:
		return &agent.ToolDenied{Denial: agent.Denial{Reason: text}}
	case 11:
		return toolEnded("t", "Bash", text, r.IntN(2) == 0, "")
	case 12:
		return &agent.Noted{Text: text}
	case 13:
		return &agent.ModelFallback{From: text, To: text}
	case 14:
		return &agent.ModeChanged{New: policy.ModeYolo}
	case 20:
		return &agent.TaskStarted{Task: agent.Task{ID: "a", Background: true, Kind: tools.TaskAgent}, Prompt: text}
	case 21:
		return &agent.TaskProgressed{LastTool: text}
	case 22:
		return &agent.TaskEnded{Task: agent.Task{ID: "a", Background: true, Kind: tools.TaskAgent, Description: text}}
	case 17:
		return &agent.HookEnded{ID: text, Output: json.RawMessage(text), Err: errors.New(text)}
	case 18:
		return &agent.HookMessage{Text: text}
	case 15:
		return &agent.ConversationReset{Old: text, New: "n"}
	case 16:
		return &agent.TurnEnded{Result: agent.Result{Deferred: &model.ToolUse{Input: json.RawMessage(text)}, Structured: json.RawMessage(`[1]`)}}
	}
	return &agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: text}}
}

func FuzzAnyEventsGiveLinesThatDecode(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(99))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var events []agent.Event
		var from []agent.Origin
		for range 40 {
			events = append(events, randomEvent(r))
			from = append(from, []agent.Origin{{}, {AgentID: "a", ParentToolUseID: "p"}, {AgentID: "b", ParentToolUseID: "q"}}[r.IntN(3)])
		}
		for _, d := range streamjson.Dialects {
			for _, format := range []Format{FormatJSON, FormatStream} {
				checkLines(t, d, format, from, events)
			}
		}
	})
}

// checkLines checks that there is one result for each turn of the main
// conversation, and that each line is an object, or array, of its own.
func checkLines(t *testing.T, d streamjson.Dialect, format Format, from []agent.Origin, events []agent.Event) {
	t.Helper()
	out := &sink{}
	p := NewProjector(ProjectorOptions{Format: format, Out: out, Partial: true,
		Facts: &Facts{Dialect: d, SessionID: "s", Ledger: new(usage.Ledger), ForwardText: func() bool { return true }}})
	turns, results := 0, 0
	for i, e := range events {
		if _, ok := e.(*agent.TurnEnded); ok && isMain(from[i]) {
			turns++
		}
		p.Event(context.Background(), from[i], e)
	}
	if c, ok := p.(Closer); ok {
		c.Close()
	}
	for _, line := range out.lines {
		if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsAny(line, "\n") {
			t.Fatalf("%s: %s", d, line)
		}
		if bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			results++
		}
	}
	if format == FormatStream && turns != results {
		t.Errorf("%s: %d turns, %d results", d, turns, results)
	}
}

func TestChangesInClaude(t *testing.T) {
	t.Parallel()
	out := &sink{}
	n := &Native{Facts: claudeFacts(), Out: out, Replay: true}
	prompt := agent.Input{UUID: "u", Blocks: []model.Block{model.Text{Text: "hi"}}}
	told := prompt
	told.Injected, told.Origin = true, json.RawMessage(`{"kind":"task-notification"}`)
	got := project(t, n, out, agent.Origin{},
		&agent.ModeChanged{New: policy.ModeAutoEdit}, &agent.ConversationReset{Old: "s", New: "n"},
		&agent.TurnStarted{Input: prompt}, &agent.TurnStarted{Input: told},
		&agent.TurnEnded{Result: agent.Result{Deferred: &model.ToolUse{ID: "t", Name: "Bash"}}})
	if got[0]["permissionMode"] != "acceptEdits" || got[0]["status"] != nil {
		t.Errorf("status = %v", got[0])
	}
	recorded := golden(t, "claude.jsonl")
	if diff := cmp.Diff(shape(recorded[len(recorded)-3], ""), shape(got[1], "")); diff != "" {
		t.Error(diff)
	}
	if got[1]["session_id"] != "s" || got[2]["session_id"] != "n" {
		t.Errorf("the old conversation ends with %v, the new one begins with %v", got[1], got[2])
	}
	if got[3]["isReplay"] != true || got[3]["uuid"] != "u" || got[5]["isSynthetic"] != true || got[5]["origin"] == nil {
		t.Errorf("replay %v, injected %v", got[3], got[5])
	}
	if d, ok := got[6]["deferred_tool_use"].(map[string]any); !ok || d["name"] != "Bash" {
		t.Errorf("result = %v", got[6])
	}
	if sub := project(t, n, out, agent.Origin{AgentID: "a"}, &agent.ModeChanged{}); len(sub) != 0 {
		t.Errorf("a sub-agent's mode: %v", sub)
	}
}

func TestHooksInClaudeAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	got := project(t, &Native{Facts: claudeFacts(), Out: out}, out, agent.Origin{},
		&agent.HookEnded{ID: "h1", Name: "PreToolUse:Bash", Event: "PreToolUse", Outcome: "success"})
	recorded := golden(t, "claude.jsonl")
	if diff := cmp.Diff(shape(recorded[len(recorded)-2], ""), shape(got[0], "")); diff != "" {
		t.Error(diff)
	}
}

func TestTasksAsRecorded(t *testing.T) {
	t.Parallel()
	out := &sink{}
	task := agent.Task{ID: "a1b2", ToolUseID: "toolu_9", Kind: tools.TaskAgent, Description: "greet", AgentType: "greeter"}
	usage := tools.TaskUsage{Tokens: 112, ToolUses: 0, Took: 338 * time.Millisecond}
	got := project(t, &Native{Facts: claudeFacts(), Out: out}, out, agent.Origin{},
		&agent.TaskStarted{Task: task, Prompt: "say hi"}, &agent.TaskEnded{Task: task, Status: agent.TaskCompleted, Summary: "greeted", Usage: usage},
		&agent.TaskProgressed{Task: task, LastTool: "Read"})
	recorded := golden(t, "claude.jsonl")
	if diff := cmp.Diff(shapes(recorded[len(recorded)-5:len(recorded)-3]), shapes(got[:2])); diff != "" {
		t.Error(diff)
	}
	if got[2]["subtype"] != "task_progress" || got[2]["last_tool_name"] != "Read" {
		t.Errorf("%v", got[2])
	}
	q := &Qwen{Facts: qwenFacts(0, 0, 0), Out: out}
	task = agent.Task{ID: "helper-x-call_3_0", ToolUseID: "call_3_0", Kind: tools.TaskAgent, Description: "do it", AgentType: "helper-x", Background: true}
	got = project(t, q, out, agent.Origin{}, &agent.TaskStarted{Task: task},
		&agent.TaskEnded{Task: task, Status: agent.TaskCompleted, Usage: usage})
	want := golden(t, "qwen-tasks.jsonl")
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Error(diff)
	}
}

func TestQwenFramesOfCommandsNameTheModel(t *testing.T) {
	t.Parallel()
	out := &sink{}
	q := NewProjector(ProjectorOptions{Format: FormatStream, Out: out, Partial: true, Facts: qwenFacts(0, 0, 0)})
	for _, e := range []agent.Event{
		&agent.TurnStarted{Model: "m"},
		&agent.MessageStarted{Model: synthetic},
		&agent.BlockStarted{Block: model.Text{}},
		&agent.BlockDelta{Kind: model.DeltaText, Text: "hi"},
		&agent.BlockEnded{Block: model.Text{Text: "hi"}, Model: synthetic},
		&agent.MessageEnded{},
	} {
		q.Event(t.Context(), agent.Origin{}, e)
	}
	for _, f := range decode(t, out.lines) {
		if strings.Contains(fmt.Sprint(f), synthetic) {
			t.Errorf("frame %v", f)
		}
	}
}

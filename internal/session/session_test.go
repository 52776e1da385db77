package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps the lines that are sent.
type sink struct {
	lines [][]byte
	full  bool // SendDelta fails as it does when the queue is full
}

func (s *sink) Send(m streamjson.Message) error {
	line, err := streamjson.Append(nil, m)
	s.lines = append(s.lines, line)
	return err
}

func (s *sink) SendDelta(ctx context.Context, d *streamjson.StreamDelta) error {
	if s.full && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.Send(d)
}

func (s *sink) SendText(text string) error {
	s.lines = append(s.lines, []byte(text))
	return nil
}

// talker is a provider that says what it is asked.
type talker struct{}

func (talker) Stream(_ context.Context, req *model.Request, emit func(model.Delta)) error {
	last := req.Messages[len(req.Messages)-1]
	emit(model.Delta{Kind: model.DeltaText, Text: "you said: " + last.Blocks[0].(model.Text).Text})
	emit(model.Delta{Kind: model.DeltaFinish, Stop: model.StopEndTurn, Usage: &model.Usage{InputTokens: 3, OutputTokens: 2}})
	return nil
}

func newConversation() (*agent.Conversation, *Facts) {
	ledger := new(usage.Ledger)
	c := agent.New(agent.Config{
		SessionID: "s", Tools: tools.NewRegistry(), Policy: policy.NewEngine(nil), Mode: policy.ModeDefault, Ledger: ledger,
		Resolve: func(string) (agent.Model, error) {
			return agent.Model{Provider: talker{}, ProviderName: "fake", Name: "m", Display: "m"}, nil
		},
	})
	return c, &Facts{SessionID: "s", Cwd: "/w", Ledger: ledger, Tools: func() []string { return []string{"read_file"} }}
}

// runLines runs a session over input and returns its lines, decoded.
func runLines(t *testing.T, input string) ([]map[string]any, Outcome) {
	t.Helper()
	c, facts := newConversation()
	out := &sink{}
	end := Run(t.Context(), Config{
		Conversation: c, Projector: &Native{Facts: facts, Out: out, Partial: true}, Out: out,
		Lines: streamjson.NewReader(strings.NewReader(input), 0), Unblock: func() {}, Log: slog.New(slog.DiscardHandler),
	})
	return decode(t, out.lines), end
}

func decode(t *testing.T, lines [][]byte) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, l := range lines {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		list = append(list, m)
	}
	return list
}

func ofType(list []map[string]any, kind string) []map[string]any {
	var out []map[string]any
	for _, m := range list {
		if m["type"] == kind {
			out = append(out, m)
		}
	}
	return out
}

func TestEachLineIsAnsweredInItsPlace(t *testing.T) {
	t.Parallel()
	list, end := runLines(t, `{"type":"user","message":{"role":"user","content":"one"}}
oops
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"two"}]},"uuid":"u2"}
{"type":"weather"}
{"type":"user","message":{"role":"user","content":"  "}}
{"type":"user","message":{"role":"user","content":"x"},"options":{"colour":"red"}}
{"type":"user","message":{"role":"user","content":"x"},"options":{"permissionMode":"brave"}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9","content":"x"}]}}
{"type":"user","message":{"role":"user","content":"three"}}
`)
	var got []string
	for _, r := range ofType(list, "result") {
		text, _ := r["result"].(string)
		if errs, ok := r["errors"].([]any); ok && len(errs) > 0 {
			text = errs[0].(string)
		}
		got = append(got, text)
	}
	for i, want := range []string{"you said: one", "malformed", "you said: two", "weather", "empty", "colour", "brave", "t9", "you said: three"} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Fatalf("results = %q, want number %d to say %q", got, i, want)
		}
	}
	if end.BadLines != 2 || end.Turns != 9 || len(got) != 9 {
		t.Errorf("outcome = %+v, %d results", end, len(got))
	}
}

// TestLinesOfOtherDirectionsAreNamed: frames of the program on its input are
// called what their lines say, and a control line that can't be read counts as
// bad like any other.
func TestLinesOfOtherDirectionsAreNamed(t *testing.T) {
	t.Parallel()
	list, end := runLines(t, `{"type":"assistant","message":{}}
{"type":"system","subtype":"status"}
{"type":"system","subtype":"other"}
{"type":"result"}
{"type":"stream_event","event":{"type":"ping"}}
{"type":"control_request","request_id":"r"}
`)
	var got []string
	for _, r := range ofType(list, "result") {
		got = append(got, strings.Split(r["errors"].([]any)[0].(string), `"`)[1])
	}
	if want := []string{"assistant", "system", "system", "result", "stream_event"}; !slices.Equal(got, want) {
		t.Errorf("lines are called %q, want %q", got, want)
	}
	if n := len(ofType(list, "control_response")); n != 1 || end.BadLines != 6 {
		t.Errorf("%d responses, %d bad lines", n, end.BadLines)
	}
}

func TestControlRequestsAreAnsweredByErrors(t *testing.T) {
	t.Parallel()
	list, _ := runLines(t, `{"type":"control_request","request_id":"r1","request":{"subtype":"initialize"}}
{"type":"control_request","request_id":"r2","request":{}}
{"type":"keep_alive"}
`)
	var ids []string
	for _, m := range ofType(list, "control_response") {
		resp := m["response"].(map[string]any)
		if resp["subtype"] != "error" || resp["error"] == "" {
			t.Errorf("response = %v", resp)
		}
		ids = append(ids, resp["request_id"].(string))
	}
	if diff := cmp.Diff([]string{"r1", "r2"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestImagesAndDocumentsComeIn(t *testing.T) {
	t.Parallel()
	in := toInput(&streamjson.UserLine{Message: streamjson.UserMessage{Content: streamjson.BlockContent(
		streamjson.ImageBlock{Source: streamjson.Source{Type: "base64", MediaType: "image/png", Data: "AAEC"}},
		streamjson.ImageBlock{Source: streamjson.Source{Type: "url", URL: "https://x/y.png"}},
		streamjson.DocumentBlock{Title: "t", Source: streamjson.Source{Type: "base64", MediaType: "application/pdf", Data: "AAEC"}},
		streamjson.DocumentBlock{Title: "n", Source: streamjson.Source{Type: "text", Data: "body"}},
	)}}, false)
	want := []model.Block{
		model.Image{MediaType: "image/png", Data: []byte{0, 1, 2}}, model.Image{URL: "https://x/y.png"},
		model.Document{MediaType: "application/pdf", Name: "t", Data: []byte{0, 1, 2}}, model.Text{Text: "n\n\nbody"},
	}
	if diff := cmp.Diff(want, in.Blocks); diff != "" || in.Err != nil {
		t.Errorf("%v %s", in.Err, diff)
	}
	for _, bad := range []streamjson.Block{
		streamjson.ImageBlock{Source: streamjson.Source{Type: "base64", MediaType: "image/png", Data: "%"}},
		streamjson.ImageBlock{Source: streamjson.Source{Type: "base64", MediaType: "text/html", Data: "AAEC"}},
		streamjson.ImageBlock{Source: streamjson.Source{Type: "file"}},
		streamjson.DocumentBlock{Source: streamjson.Source{Type: "url"}},
		streamjson.UnknownBlock{Type: "hologram"},
	} {
		in := toInput(&streamjson.UserLine{Message: streamjson.UserMessage{Content: streamjson.BlockContent(bad)}}, false)
		if in.Err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	in = toInput(&streamjson.UserLine{Message: streamjson.UserMessage{Content: streamjson.BlockContent(
		streamjson.UnknownBlock{Type: "hologram", Raw: []byte(`{"type":"hologram"}`)},
	)}}, true)
	if diff := cmp.Diff([]model.Block{model.Text{Text: `{"type":"hologram"}`}}, in.Blocks); diff != "" || in.Err != nil {
		t.Errorf("%v %s", in.Err, diff)
	}
}

func TestLongFramesAreMadeToFit(t *testing.T) {
	t.Parallel()
	const limit = 250_000
	long := strings.Repeat("é", limit)
	kept := map[string]bool{}
	f := &Facts{MaxFrame: limit, SessionID: "s", Ledger: new(usage.Ledger), Spill: func(_, text string) (string, error) {
		kept[text] = true
		return "/spill/file", nil
	}}
	input, _ := json.Marshal(map[string]any{"content": long, "list": []any{long, 1}})
	display, _ := json.Marshal(long)
	out := &sink{}
	n := &Native{Facts: f, Out: out}
	for _, e := range []agent.Event{
		&agent.BlockEnded{Block: model.Text{Text: long}, UUID: "1"},
		&agent.BlockEnded{Block: model.Thinking{Text: long}, UUID: "2"},
		&agent.BlockEnded{Block: model.ToolUse{ID: "t", Name: "write_file", Input: input}, UUID: "3"},
		&agent.ToolEnded{UUID: "4", Display: display, Result: model.ToolResult{ToolUseID: "t", Blocks: []model.Block{model.Text{Text: "short"}}}},
		&agent.ToolEnded{UUID: "5", Result: model.ToolResult{ToolUseID: "t", Blocks: []model.Block{
			model.Text{Text: long}, model.Image{MediaType: "image/png", Data: bytes.Repeat([]byte{7}, limit)}}}},
		&agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: long, Denials: []agent.Denial{{Input: input}}}},
	} {
		n.Event(t.Context(), agent.Origin{}, e)
	}
	for i, line := range out.lines {
		if len(line) >= limit || !json.Valid(line) {
			t.Errorf("frame %d has %d bytes", i, len(line))
		}
		if bytes.Contains(line, []byte(`\ufffd`)) || !utf8.Valid(line) {
			t.Errorf("frame %d was cut inside of a character", i)
		}
		if i != 3 && !bytes.Contains(line, []byte("/spill/file")) {
			t.Errorf("frame %d does not name the file: %.200s", i, line)
		}
	}
	if !kept[long] {
		t.Error("the whole text was not kept")
	}
	if bytes.Contains(out.lines[3], []byte("tool_use_result")) || !bytes.Contains(out.lines[3], []byte("short")) {
		t.Errorf("the display copy should go first: %.200s", out.lines[3])
	}
}

func TestALongDeltaIsSplitInWholeCharacters(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("aé", maxDelta/2)
	out := &sink{}
	n := &Native{Facts: &Facts{}, Out: out, Partial: true}
	n.Event(t.Context(), agent.Origin{}, &agent.BlockDelta{Kind: model.DeltaText, Text: text})
	joined := ""
	for _, m := range decode(t, out.lines) {
		joined += m["event"].(map[string]any)["delta"].(map[string]any)["text"].(string)
	}
	if joined != text || len(out.lines) < 2 {
		t.Errorf("%d deltas, joined %d bytes of %d", len(out.lines), len(joined), len(text))
	}
}

func TestADeltaThatComesAsTheTurnEndsIsNotLost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	out := &sink{full: true}
	n := &Native{Facts: &Facts{}, Out: out, Partial: true}
	n.Event(ctx, agent.Origin{}, &agent.BlockDelta{Kind: model.DeltaText, Text: "last words"})
	if len(out.lines) != 1 || !bytes.Contains(out.lines[0], []byte("last words")) {
		t.Errorf("lines = %q", out.lines)
	}
}

func TestTextAndJSONSayTheSame(t *testing.T) {
	t.Parallel()
	text, object := &sink{}, &sink{}
	var stderr bytes.Buffer
	f := &Facts{Ledger: new(usage.Ledger)}
	for _, p := range []Projector{&Text{Out: text, Err: &stderr}, &JSON{Facts: f, Out: object}} {
		p.Event(t.Context(), agent.Origin{}, &agent.RequestRetried{Info: model.RetryInfo{Attempt: 1, Delay: 1234e6, Err: &model.Error{Provider: "x", Kind: model.ErrNetwork, Message: "refused"}}})
		p.Event(t.Context(), agent.Origin{}, &agent.TurnEnded{Result: agent.Result{Subtype: agent.Success, Text: "answer\n"}})
		p.Event(t.Context(), agent.Origin{}, &agent.TurnEnded{Result: agent.Result{
			Subtype: agent.ErrorDuringExecution, IsError: true, Errors: []string{"went wrong"}}})
	}
	if len(text.lines) != 1 || string(text.lines[0]) != "answer" || stderr.String() != "x: network: refused; trying again in 1.2s\nerror: went wrong\n" {
		t.Errorf("text = %q, stderr = %q", text.lines, stderr.String())
	}
	list := decode(t, object.lines)
	if len(list) != 2 || list[0]["result"] != "answer\n" || list[1]["errors"].([]any)[0] != "went wrong" {
		t.Errorf("json = %v", list)
	}
}

func TestReadingEndsWithTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c, facts := newConversation()
	out := &sink{}
	r, w := io.Pipe()
	done := make(chan Outcome)
	go func() {
		done <- Run(ctx, Config{
			Conversation: c, Projector: &Native{Facts: facts, Out: out}, Out: out,
			Lines: streamjson.NewReader(r, 0), Unblock: func() { r.Close() }, Log: slog.New(slog.DiscardHandler),
		})
	}()
	if _, err := io.WriteString(w, `{"type":"user","message":{"role":"user","content":"x"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	cancel(agent.ErrStopped)
	<-done
}

func TestOnlyAPersonIsAnOrigin(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		`{"kind":"human"}`: `{"kind":"human"}`, `{"kind":"coordinator"}`: "", `"human"`: "", "": "",
	} {
		in := toInput(&streamjson.UserLine{Origin: []byte(origin), Message: streamjson.UserMessage{Content: streamjson.Content{Text: "hi"}}}, false)
		if string(in.Origin) != want {
			t.Errorf("%s became %s", origin, in.Origin)
		}
	}
}

func TestAComposedLineIsNoCommand(t *testing.T) {
	t.Parallel()
	content := streamjson.UserMessage{Content: streamjson.Content{Text: "/clear"}}
	for _, composed := range []bool{true, false} {
		if in := toInput(&streamjson.UserLine{ClientComposed: composed, Message: content}, false); in.Composed != composed {
			t.Errorf("client_composed %t became %t", composed, in.Composed)
		}
	}
}

// TestNoTwoLinesHaveOneID: the second keeps its turn, and gets another id.
func TestNoTwoLinesHaveOneID(t *testing.T) {
	t.Parallel()
	line := `{"type":"user","message":{"role":"user","content":"hi"},"uuid":"u1"}` + "\n"
	list, _ := runLines(t, line+line)
	results := ofType(list, "result")
	if len(results) != 2 {
		t.Fatalf("%d results, want 2", len(results))
	}
	if first, second := results[0]["user_message_uuid"], results[1]["user_message_uuid"]; first != "u1" || second == "u1" || second == nil {
		t.Errorf("the ids are %v and %v, want u1 and a new one", first, second)
	}
}

func TestPriorityOfALine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.Priority{"": agent.Next, "now": agent.Now, "next": agent.Next, "later": agent.Later} {
		in := toInput(&streamjson.UserLine{Priority: text, Message: streamjson.UserMessage{Content: streamjson.TextContent("x")}}, false)
		if in.Err != nil || in.Priority != want {
			t.Errorf("%q: %v, %v", text, in.Priority, in.Err)
		}
	}
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/model/scripted"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/usage"
)

// aDay is a model for any number of turns. The first word of the user's line
// says what happens.
const aDay = `
{"use": "always", "when": {"user": {"regex": "^stall"}}, "emit": [{"text": "half"}, {"fault": "stall"}]}
{"use": "always", "when": {"user": {"regex": "^break"}}, "emit": [{"text": "half"}, {"fault": "cut"}]}
{"use": "always", "when": {"user": {"regex": "^hang"}}, "emit": [{"tool": "hang", "input": {}}]}
{"use": "always", "when": {"user": {"regex": "^look"}}, "emit": [{"thinking": "hm"}, {"tool": "look", "input": {}}, {"tool": "look", "input": {}}]}
{"use": "always", "when": {"user": {"regex": "^change"}}, "emit": [{"tool": "change", "input": {"a": 1}}]}
{"use": "always", "emit": [{"text": "done"}]}
`

// inert is a tool that answers, or waits for its end.
type inert struct {
	name  string
	class policy.Class
}

func (f inert) Spec() tools.Spec {
	return tools.Spec{Name: f.name, Class: f.class, ReadOnly: f.class == policy.ClassRead, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (f inert) Run(ctx context.Context, _ *tools.Call) tools.Result {
	if f.name == "hang" {
		<-ctx.Done()
		return tools.Fail("stopped")
	}
	return tools.Text("there")
}

// whole is a whole session in process: the control plane, a conversation with
// tools and hooks, a scripted model. Its own methods are what control requests
// act on.
type whole struct {
	conv   *agent.Conversation
	runner *hooks.Runner
	disp   *control.Dispatcher
	engine *policy.Engine
	cfg    Config
}

// newWhole makes a session that reads in and writes out, with asked seeing each
// request to the model. Closing in and out is the caller's.
func newWhole(t testing.TB, d streamjson.Dialect, in io.Reader, out Output, asked func(*model.Request)) *whole {
	t.Helper()
	script, err := scripted.Parse("aDay", []byte(aDay))
	if err != nil {
		t.Fatal(err)
	}
	provider := scripted.New(script, scripted.Options{OnRequest: asked})
	log := slog.New(slog.DiscardHandler)
	w := &whole{engine: policy.NewEngine(nil)}
	w.disp = control.New(control.Config{Dialect: d, Out: out, Log: log})
	w.runner = hooks.New(w.disp.Hook(), log)
	ledger := new(usage.Ledger)
	w.conv = agent.New(agent.Config{
		SessionID: "s", Policy: w.engine, Mode: policy.ModeDefault, Ledger: ledger, Hooks: w.runner, Log: log,
		Tools: tools.NewRegistry(inert{"look", policy.ClassRead}, inert{"hang", policy.ClassRead}, inert{"change", policy.ClassEdit}),
		Asker: w.disp.Permission(), Interactive: func() bool { return true },
		Resolve: func(name string) (agent.Model, error) {
			if strings.ContainsAny(name, "\x00 ") {
				return agent.Model{}, fmt.Errorf("there is no model %q", name)
			}
			return agent.Model{Provider: provider, ProviderName: "scripted", Name: name, Display: name}, nil
		},
	})
	w.disp.Attach(control.Effects{
		Session: w, Conversation: w, Thinking: w, Continuation: w, Judge: w, Hooks: w, Servers: w, Commands: w, Tasks: w, Health: w,
	})
	pipe, stop := io.Reader(in), func() {}
	if c, ok := in.(*io.PipeReader); ok {
		stop = func() { _ = c.Close() }
	}
	w.cfg = Config{
		Conversation: w.conv, Out: out, Control: w.disp, Lines: streamjson.NewReader(pipe, 0), Unblock: stop, Log: log,
		Lenient: d != streamjson.Native,
		Projector: NewProjector(ProjectorOptions{Format: FormatStream, Out: out, Partial: true, Replay: true, Facts: &Facts{
			Dialect: d, SessionID: "s", Cwd: "/w", Ledger: ledger, Tools: func() []string { return []string{"look", "hang", "change"} },
		}}),
	}
	return w
}

func (w *whole) Initialize(context.Context, *control.Initialize) error { return nil }
func (w *whole) Describe() control.Description {
	return control.Description{SessionID: "s", Model: w.conv.Model(), Mode: w.conv.Mode()}
}
func (w *whole) Interrupt(cancelQueued bool, receipt func(control.Interrupted)) {
	w.conv.InterruptAfter(agent.ErrInterrupted, cancelQueued, func(queued, cancelled []string) {
		receipt(control.Interrupted{StillQueued: queued, Cancelled: cancelled})
	})
}
func (w *whole) SetModel(_ context.Context, name string) (string, error) {
	_, err := w.conv.SetModel(name)
	return name, err
}
func (w *whole) SetMode(m policy.Mode) error           { w.conv.SetMode(m); return nil }
func (w *whole) SetThinking(*int, string) error        { return nil }
func (w *whole) SetEffort(effort string) (bool, error) { return true, nil }
func (w *whole) StopTask(context.Context, string, func()) error {
	return errors.New("there is no such task")
}
func (w *whole) ContinueLast(receipt func(bool, string)) error {
	w.conv.ContinueLast(func(accepted bool, how agent.Interruption) { receipt(accepted, string(how)) })
	return nil
}
func (w *whole) Judge(_ context.Context, c control.ToolCall) policy.Decision {
	return w.conv.Judge(policy.Facts{Tool: c.Tool, Class: policy.ClassEdit, Input: c.Input})
}
func (w *whole) Suggest(control.ToolCall) []policy.Suggestion { return nil }
func (w *whole) RegisterHooks(list []control.HookRegistration) error {
	var out []hooks.Registration
	for _, r := range list {
		for _, id := range r.CallbackIDs {
			out = append(out, hooks.Registration{Event: hooks.Event(r.Event), Matcher: r.Matcher, CallbackID: id, Timeout: r.Timeout})
		}
	}
	return w.runner.Replace(out)
}
func (w *whole) ServerStatus() []control.ServerStatus { return nil }
func (w *whole) Message(_ context.Context, server string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, fmt.Errorf("there is no server %q", server)
}
func (w *whole) Commands() []control.Command { return []control.Command{{Name: "help"}} }
func (w *whole) Health() control.Pulse       { return control.Pulse{Turn: "idle", LastEvent: -1} }

// peer is the host of a whole session: it talks over pipes and keeps account of
// what comes.
type peer struct {
	t   testing.TB
	w   *whole
	in  *io.PipeWriter
	out *streamjson.Writer
	end chan Outcome
	eof chan struct{} // no more output

	sendMu sync.Mutex // held for a line

	mu        sync.Mutex
	more      *sync.Cond
	responses []string                   // ids, in order
	payloads  map[string]json.RawMessage // of responses, by id
	results   int
	cancelled map[string]bool  // uuids of user lines that an interrupt dropped
	turns     map[string]error // how turns ended, by the uuid of their line
	ended     bool             // of the output

	// request answers a request of ours; it runs in the goroutine that reads.
	request func(id, subtype string)
	// frame sees every other line.
	frame func(kind string, line []byte)
}

// startPeer starts a session with its host.
func startPeer(t testing.TB, d streamjson.Dialect, asked func(*model.Request), p *peer) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p.t, p.in, p.end, p.eof = t, inW, make(chan Outcome, 1), make(chan struct{})
	p.more, p.payloads, p.cancelled = sync.NewCond(&p.mu), map[string]json.RawMessage{}, map[string]bool{}
	p.turns = map[string]error{}
	p.out = streamjson.NewWriter(outW, streamjson.WriterOptions{})
	p.w = newWhole(t, d, inR, p.out, asked)
	p.w.cfg.Watch = p.watch
	go p.read(outR) // ends with the output
	go func() {     // ends with the session; close waits for it
		end := Run(context.Background(), p.w.cfg)
		_ = p.out.Close(context.Background())
		_ = outW.Close()
		p.end <- end
	}()
	return p
}

// watch notes the ends of turns.
func (p *peer) watch(_ agent.Origin, e agent.Event) {
	if ended, ok := e.(*agent.TurnEnded); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turns[ended.Result.InputUUID] = ended.Result.Err
		p.more.Broadcast()
	}
}

// send writes lines to the session.
func (p *peer) send(lines ...string) {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			return // the session is over
		}
	}
}

func (p *peer) read(r io.Reader) {
	defer close(p.eof)
	dec := json.NewDecoder(r)
	for {
		var line json.RawMessage
		if err := dec.Decode(&line); err != nil {
			p.mu.Lock()
			p.ended = true
			p.more.Broadcast()
			p.mu.Unlock()
			return
		}
		p.take(line)
	}
}

func (p *peer) take(line []byte) {
	var m struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Request   struct {
			Subtype string `json:"subtype"`
		} `json:"request"`
		Response struct {
			RequestID string          `json:"request_id"`
			Response  json.RawMessage `json:"response"`
		} `json:"response"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Errorf("%v: %s", err, line)
		return
	}
	p.mu.Lock()
	defer p.more.Broadcast()
	defer p.mu.Unlock()
	switch m.Type {
	case "control_response":
		p.responses = append(p.responses, m.Response.RequestID)
		p.payloads[m.Response.RequestID] = m.Response.Response
		var receipt struct {
			Cancelled []string `json:"cancelled"`
		}
		if json.Unmarshal(m.Response.Response, &receipt) == nil {
			for _, id := range receipt.Cancelled {
				p.cancelled[id] = true
			}
		}
	case "control_request":
		if p.request != nil {
			go p.request(m.RequestID, m.Request.Subtype) // ends with its line written
		}
	case "result":
		p.results++
	}
	if p.frame != nil {
		p.frame(m.Type, line)
	}
}

// await waits until ok, called with p.mu held, is true, or the output has ended.
func (p *peer) await(ok func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !ok() && !p.ended {
		p.more.Wait()
	}
	return ok()
}

// close ends the input and waits until all is over.
func (p *peer) close() Outcome {
	p.t.Helper()
	p.sendMu.Lock()
	_ = p.in.Close()
	p.sendMu.Unlock()
	select {
	case end := <-p.end:
		<-p.eof
		return end
	case <-time.After(2 * time.Minute):
		p.t.Fatal("the session does not end")
		return Outcome{}
	}
}

func requestLine(id, body string) string {
	return `{"type":"control_request","request_id":` + strconv.Quote(id) + `,"request":` + body + `}`
}

func textLine(uuid, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"message":{"role":"user","content":%q}}`, uuid, text)
}

func responseLine(id, payload string) string {
	return `{"type":"control_response","response":{"subtype":"success","request_id":` + strconv.Quote(id) + `,"response":` + payload + `}}`
}

// lastUserText is the text of the line that a model request answers.
func lastUserText(req *model.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		for _, b := range m.Blocks {
			if text, ok := b.(model.Text); ok && m.Role == model.RoleUser {
				return text.Text
			}
		}
	}
	return ""
}

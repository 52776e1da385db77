package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// host is the program that spawned us, as the rest of a run sees it: it joins
// the control plane to the conversation and what that works with. It is made
// before the wiring, which asks it, and completed by attach.
type host struct {
	o    *options
	out  lateOutput
	disp *control.Dispatcher

	// spoken is set once the host sent initialize: it answers questions.
	spoken  atomic.Bool
	waiting atomic.Int32 // open questions
	forward atomic.Bool  // it wants the texts of sub-agents

	// Set by attach, before the first line is read.
	w    *wiring
	conv *agent.Conversation
}

// lateOutput is an output that is known only after those who write to it: a
// server of the host's may be spoken to before.
type lateOutput struct {
	to    session.Output
	once  sync.Once
	known chan struct{} // closed by set
}

// set says what the output is; nil: there will be none. The first word counts.
func (l *lateOutput) set(to session.Output) {
	l.once.Do(func() {
		l.to = to
		close(l.known)
	})
}

// Send implements control.Output. It waits for set.
func (l *lateOutput) Send(m streamjson.Message) error {
	<-l.known
	if l.to == nil {
		return errNoOutput
	}
	return l.to.Send(m)
}

var errNoOutput = errors.New("the session did not start")

// newHost makes the host of a run with JSON lines on stdin.
func newHost(o *options) *host {
	h := &host{o: o, out: lateOutput{known: make(chan struct{})}}
	h.disp = control.New(control.Config{
		Dialect: o.host.dialect, Out: &h.out, Names: outward{tools.NewNames(string(o.host.dialect))},
	})
	return h
}

// outward gives the control plane names of tools and parameters.
type outward struct{ *tools.Names }

// firstAnswer is an output that calls then, in a goroutine of its own, once the
// first answer to a request of the host has been sent.
type firstAnswer struct {
	session.Output
	then func()
	once sync.Once
}

// Send implements control.Output.
func (f *firstAnswer) Send(m streamjson.Message) error {
	err := f.Output.Send(m)
	if _, ok := m.(*streamjson.ControlResponse); ok {
		f.once.Do(func() { go f.then() })
	}
	return err
}

// attach completes the host. Nothing may have been read before. answered is
// called in a goroutine of its own once a first request has been answered; it
// must end by itself.
func (h *host) attach(w *wiring, conv *agent.Conversation, out session.Output, answered func()) {
	h.w, h.conv = w, conv
	h.disp.SetLog(w.log)
	h.disp.Attach(control.Effects{
		Session: h, Conversation: h, Thinking: h, Continuation: h, Judge: h, Hooks: h,
		Servers: h, ServerAdmin: h, Commands: h, Hints: h, Models: h, Usage: h, Tasks: h, Settings: h, Health: h,
	})
	h.out.set(&firstAnswer{Output: out, then: answered})
}

// answers reports whether the host answers questions.
func (h *host) answers() bool {
	switch {
	case h.o.prompts == "none":
		return false
	case h.o.promptTool != "":
		return true
	case h.o.host.dialect == streamjson.Claude:
		return false
	}
	return h.spoken.Load()
}

// Ask implements policy.Asker.
func (h *host) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	if !h.answers() {
		return policy.Answer{}, policy.ErrNoUser
	}
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	if server, tool, ok := promptTool(h.o.promptTool); ok {
		return h.w.askTool(ctx, server, tool, q)
	}
	return h.disp.Permission().Ask(ctx, q)
}

// Initialize implements control.Session. What can be wrong is looked at before
// anything is changed. What isn't sent stays as it is.
func (h *host) Initialize(ctx context.Context, in *control.Initialize) error {
	list, err := agent.ParseDefinitions(in.Agents)
	if err != nil {
		return err
	}
	servers, err := h.w.parseServers(in.MCPServers)
	if err != nil {
		return err
	}
	if _, err := h.w.mainAgent(list); err != nil {
		return err
	}
	if in.JSONSchema != nil {
		if err := h.conv.SetSchema(in.JSONSchema); err != nil {
			return fmt.Errorf("jsonSchema: %w", err)
		}
	}
	if err := h.w.becomeLate(ctx, list); err != nil {
		return err
	}
	if in.SystemPrompt != nil || in.AppendPrompt != "" {
		h.conv.SetSystem(joinPrompt(orDefault(in.SystemPrompt, h.w.system), in.AppendPrompt))
	}
	if len(in.Agents) > 0 {
		h.w.chooseModels(list)
		h.w.agents.setSession(list)
	}
	h.w.hooks.SetTimeout(in.HookTimeout)
	h.w.addServers("dynamic", servers)
	h.w.addTunnelled(in.SDKServers)
	h.forward.Store(in.ForwardSubagentText)
	h.spoken.Store(true)
	return nil
}

func orDefault(s *string, def string) string {
	if s != nil {
		return *s
	}
	return def
}

func joinPrompt(base, more string) string {
	if base != "" && more != "" {
		base += "\n\n"
	}
	return base + more
}

// Describe implements control.Session.
func (h *host) Describe() control.Description {
	d := control.Description{
		SessionID: h.conv.SessionID(), Version: version.Wire, Model: h.w.models.display(h.conv.Model()), Mode: h.conv.Mode(),
		Tools: h.w.toolNames(), OutputStyle: h.w.outputStyle(), Account: control.Account{APIKeySource: h.w.models.keySource()},
	}
	for _, a := range h.w.agents.list() {
		d.Agents = append(d.Agents, control.AgentInfo{Name: a.Name, Description: a.Description, Model: a.Model})
	}
	return d
}

// Interrupt implements control.Conversation.
func (h *host) Interrupt(cancelQueued bool, receipt func(control.Interrupted)) {
	h.conv.InterruptAfter(agent.ErrInterrupted, cancelQueued, func(queued, cancelled []string) {
		receipt(control.Interrupted{StillQueued: queued, Cancelled: cancelled})
	})
}

// SetModel implements control.Conversation. In the native dialect the model's
// provider is asked whether it has it.
func (h *host) SetModel(ctx context.Context, name string) (string, error) {
	h.w.models.choose(name)
	_, err := h.w.models.resolve(name)
	if err == nil && h.o.host.dialect == streamjson.Native {
		err = h.w.models.probe(ctx, name)
	}
	if err == nil {
		_, err = h.conv.SetModel(name)
	}
	if err != nil {
		return "", fmt.Errorf("model %q can't be set, the old one stays: %w", name, messageOf(err))
	}
	return h.w.models.display(name), nil
}

// SetMode implements control.Conversation.
func (h *host) SetMode(m policy.Mode) error {
	h.conv.SetMode(m)
	return nil
}

// SetThinking implements control.Thinking.
func (h *host) SetThinking(tokens *int, _ string) error {
	h.conv.SetThinking(thinkingBudget(tokens))
	return nil
}

// thinkingBudget is a limit of tokens as model requests have it.
func thinkingBudget(tokens *int) int {
	switch {
	case tokens == nil:
		return 0
	case *tokens == 0:
		return -1
	}
	return *tokens
}

// SetEffort implements control.Thinking.
func (h *host) SetEffort(effort string) (bool, error) {
	e, err := model.ParseEffort(effort)
	if err != nil {
		return false, err
	}
	return h.conv.SetEffort(e), nil
}

// ContinueLast implements control.Continuation.
func (h *host) ContinueLast(receipt func(accepted bool, interruption string)) error {
	h.conv.ContinueLast(func(accepted bool, how agent.Interruption) { receipt(accepted, string(how)) })
	return nil
}

// Judge implements control.Judge: a call is judged by the same engine, and the
// same facts, as the conversation's own.
func (h *host) Judge(_ context.Context, c control.ToolCall) policy.Decision {
	refused := func(err error) policy.Decision {
		return policy.Decision{Behavior: policy.Deny, Why: policy.WhyHard, Reason: err.Error()}
	}
	f, err := h.facts(c)
	if err != nil {
		return refused(err)
	}
	d := h.conv.Judge(f)
	if tool, ok := h.w.toolset.registry.Lookup(c.Tool); ok && d.Behavior == policy.Ask {
		if err := tool.Spec().Fits(f.Input); err != nil { // nobody is asked about what can't run
			return refused(err)
		}
	}
	return d
}

// Suggest implements control.Judge.
func (h *host) Suggest(c control.ToolCall) []policy.Suggestion {
	f, err := h.facts(c)
	if err != nil {
		return nil
	}
	return policy.Suggest(f, h.w.engine.Always(f))
}

func (h *host) facts(c control.ToolCall) (policy.Facts, error) {
	tool, ok := h.w.toolset.registry.Lookup(c.Tool)
	if !ok {
		return policy.Facts{}, fmt.Errorf("there is no tool named %q", c.Tool)
	}
	input := c.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return agent.CallFacts(h.conv.Facts(), tool.Spec(), input)
}

// StopTask implements control.Tasks.
func (h *host) StopTask(_ context.Context, id string, receipt func()) error {
	if slices.ContainsFunc(h.w.toolset.tasks.List(), func(t tools.TaskInfo) bool { return t.ID == id }) {
		receipt()
	}
	return h.conv.StopTask(id)
}

// Health implements control.Health.
func (h *host) Health() control.Pulse {
	p := control.Pulse{Uptime: time.Since(h.w.watch.begin), Turn: "idle", LastEvent: h.w.watch.sinceLast(), RSS: residentBytes()}
	switch {
	case h.waiting.Load() > 0:
		p.Turn = "waiting"
	case h.conv.Busy():
		p.Turn = "running"
	}
	return p
}

// beat sends a heartbeat line as often as --heartbeat says, until the function
// that it returns is called.
func (h *host) beat(ctx context.Context) (stop func()) {
	if h.o.heartbeat == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { // ends with stop
		defer close(over)
		tick := time.NewTicker(time.Duration(h.o.heartbeat) * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.sendPulse()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

func (h *host) sendPulse() {
	p := h.disp.System().Pulse()
	extra, err := json.Marshal(map[string]any{"uptime_ms": p.UptimeMS, "turn": p.Turn, "last_event_ms": p.LastEventMS, "rss_bytes": p.RSSBytes})
	if err != nil { // numbers and a word
		return
	}
	_ = h.out.Send(&streamjson.System{ // the Output reports a consumer that went away
		Subtype: p.Subtype, SessionID: h.conv.SessionID(), UUID: streamjson.NewUUID(), Extra: extra,
	})
}

// words phrase denials as qwen's SDK expects them.
func (o *options) words() agent.Words {
	if o.host.dialect != streamjson.Qwen {
		return agent.Words{}
	}
	cancelled := func(reason string) string { return "[Operation Cancelled] Reason: " + reason }
	return agent.Words{
		HostDenied: func(_, message string) string {
			if message == "" {
				message = "User did not allow this call."
			}
			return cancelled(message)
		},
		Unanswered: func(_ string, err error) string {
			if errors.Is(err, agent.ErrInterrupted) || errors.Is(err, agent.ErrStopped) {
				err = errors.New("Request aborted") //nolint:staticcheck // the protocol's words
			}
			return cancelled("Error: " + err.Error())
		},
		Interrupted: func(string) string {
			return cancelled("User intentionally cancelled. Stop and await further instructions; do not retry.")
		},
	}
}

// accept lets a host's user line choose any model, a script too.
func (h *host) accept(in *agent.Input) {
	if in.Model != "" {
		h.w.models.choose(in.Model)
	}
}

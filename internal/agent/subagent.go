package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// SubTranscript is where the entries of a sub-agent are kept. *transcript.Writer
// is one. If it has a method Path() string, that is told to hosts.
type SubTranscript interface {
	Transcript
	Close() error
}

// SubagentMeta describes a sub-agent to those who keep its transcript.
type SubagentMeta struct {
	AgentID       string
	AgentType     string
	Description   string
	ToolUseID     string // of the call that started it
	ParentAgentID string // empty: the main conversation started it
}

// errAgentTime ends a sub-agent whose time is up.
var errAgentTime = errors.New("its time is up")

// subagent is one sub-agent at work: a conversation of one turn.
type subagent struct {
	id         string
	def        *Definition
	in         agentInput
	parent     *turn // whose call started it; it may be over if background
	toolUseID  string
	background bool
	conv       *Conversation
	trans      SubTranscript // nil: nothing is kept

	mu       sync.Mutex // guards the rest
	started  time.Time
	took     time.Duration // once it ended
	usage    model.Usage
	toolUses int
	lastTool string
	lastText string
	result   Result
}

// newSubagent makes a sub-agent for a call within t. Nothing runs yet.
func newSubagent(t *turn, d *Definition, in agentInput, toolUseID string) (*subagent, error) {
	s := &subagent{
		id: strings.ReplaceAll(uuid.NewString(), "-", "")[:16], def: d, in: in, parent: t, toolUseID: toolUseID,
		// A sub-agent waits for those that it starts: its own end is its answer.
		background: (*in.Background || d.Background) && t.c.parent == nil,
		started:    t.c.cfg.Now(),
	}
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	s.conv = New(cfg)
	s.conv.parent, s.conv.depth = s, t.c.depth+1
	if d.Tools != nil { // what is named need not be searched for
		for _, tool := range cfg.Tools.All() {
			if spec := tool.Spec(); spec.Deferred {
				s.conv.found = append(s.conv.found, spec.Name)
			}
		}
	}
	return s, nil
}

// config is that of the sub-agent's conversation: its caller's but for what is
// its own.
func (s *subagent) config() (Config, error) {
	t, d := s.parent, s.def
	cfg, now := t.c.cfg, t.c.tuned()
	cfg.SessionID, cfg.Facts, cfg.MaxTurns = now.sessionID, now.facts, now.maxTurns
	cfg.ThinkingBudget, cfg.Effort = now.thinking, now.effort
	cfg.Prepare, cfg.Expand, cfg.Reopen = nil, nil, nil
	var err error
	if cfg.Model, err = s.model(); err != nil {
		return cfg, err
	}
	cfg.Origin = Origin{AgentID: s.id, AgentType: d.Name, ParentToolUseID: s.toolUseID}
	cfg.Facts.Agent = d.Name
	cfg.Mode = s.mode()
	cfg.Tools = s.tools()
	cfg.System = d.Prompt
	if cfg.SubSystem != nil {
		cfg.System = cfg.SubSystem(d.Prompt)
	}
	if d.MaxTurns > 0 {
		cfg.MaxTurns = d.MaxTurns
	}
	if effort, err := model.ParseEffort(d.Effort); err != nil {
		t.log.Warn("the effort of an agent is not known: it has its caller's", "agent", d.Name, "error", err)
	} else if effort != "" {
		cfg.Effort = effort
	}
	if d.Temperature != nil {
		cfg.Temperature = d.Temperature
	}
	if d.TopP != nil {
		cfg.TopP = d.TopP
	}
	cfg.History, cfg.Transcript, cfg.WaitForTasks = nil, nil, false
	if cfg.SubTranscript != nil {
		s.trans, err = cfg.SubTranscript(SubagentMeta{
			AgentID: s.id, AgentType: d.Name, Description: s.in.Description, ToolUseID: s.toolUseID,
			ParentAgentID: t.c.cfg.Origin.AgentID,
		})
		if err != nil {
			t.log.Error("the transcript of a sub-agent cannot be written", "agent", d.Name, "error", err)
		} else if s.trans != nil {
			cfg.Transcript, cfg.AgentTranscriptPath = s.trans, s.path()
		}
	}
	return cfg, nil
}

// model is the name of its model: the call's, the definition's, the caller's.
// A definition may come from another program and name a model that isn't had
// here.
func (s *subagent) model() (string, error) {
	caller := s.parent.modelName()
	if name := s.in.Model; name != "" && name != "inherit" {
		if _, err := s.parent.c.cfg.Resolve(name); err != nil {
			return "", fmt.Errorf("model: %w. Leave model out to use the one of this conversation", err)
		}
		return name, nil
	}
	if s.def.Model == "" {
		return caller, nil
	}
	if _, err := s.parent.c.cfg.Resolve(s.def.Model); err != nil {
		s.parent.log.Warn("the model of an agent is not to be had: it uses its caller's", "agent", s.def.Name, "model", s.def.Model, "error", err)
		return caller, nil
	}
	return s.def.Model, nil
}

// mode is the permission mode as it is now: never laxer than the caller's.
func (s *subagent) mode() policy.Mode {
	if s.background { // what holds for the one turn isn't meant
		return stricter(s.def.PermissionMode, s.parent.c.Mode())
	}
	return stricter(s.def.PermissionMode, s.parent.mode())
}

// root is the main conversation.
func (c *Conversation) root() *Conversation {
	for c.parent != nil {
		c = c.parent.parent.c
	}
	return c
}

// setMode changes the mode of the main conversation, by an answer to a question
// of the sub-agent.
func (s *subagent) setMode(ctx context.Context, m policy.Mode) {
	c := s.parent.c.root()
	if old := c.SetMode(m); old != m {
		c.send(ctx, &ModeChanged{Old: old, New: m})
	}
}

// laxness orders the modes.
var laxness = map[policy.Mode]int{
	policy.ModePlan: 1, policy.ModeDontAsk: 2, policy.ModeDefault: 3, policy.ModeAutoEdit: 4, policy.ModeYolo: 5,
}

// stricter returns the more careful mode. What is no mode doesn't count.
func stricter(a, b policy.Mode) policy.Mode {
	if n := laxness[a]; n > 0 && (n < laxness[b] || laxness[b] == 0) {
		return a
	}
	return b
}

// notForSubagents are tools that change the conversation of their caller.
var notForSubagents = map[string]bool{"enter_plan_mode": true, "exit_plan_mode": true, "structured_output": true}

// tools are those of the caller, as they are now, that its definition leaves.
func (s *subagent) tools() *tools.Registry {
	deepest := s.parent.c.depth+1 >= max(s.parent.c.cfg.MaxDepth, 1)
	kept := s.parent.c.cfg.Tools.Filter(func(spec tools.Spec) bool {
		if spec.Name == agentToolName && deepest || notForSubagents[spec.Name] {
			return false
		}
		return s.def.Offers(spec)
	})
	if own := s.parent.c.cfg.OwnTools; own != nil {
		for _, tool := range own() {
			if _, ok := kept.Lookup(tool.Spec().Name); ok {
				kept.Add(tool)
			}
		}
	}
	return kept
}

// namesTool reports whether a list of a definition names the tool. What a name
// says of arguments is for rules, and doesn't count here.
func namesTool(list []string, spec tools.Spec) bool {
	for _, entry := range list {
		name, _, _ := strings.Cut(entry, "(")
		name = policy.CanonicalTool(strings.TrimSpace(name))
		if name == "*" || name == spec.Name {
			return true
		}
		prefix, all := strings.CutSuffix(name, "*")
		if !all {
			prefix += "__" // a server
		}
		if strings.HasPrefix(prefix, "mcp__") && strings.HasPrefix(spec.Name, prefix) {
			return true
		}
	}
	return false
}

// path is that of its transcript; empty if it has none.
func (s *subagent) path() string {
	if file, ok := s.trans.(interface{ Path() string }); ok {
		return file.Path()
	}
	return ""
}

// info describes the sub-agent as a task.
func (s *subagent) info() tools.TaskInfo {
	return tools.TaskInfo{
		ID: s.id, Kind: tools.TaskAgent, ToolUseID: s.toolUseID, Description: s.in.Description,
		AgentType: s.def.Name, Prompt: s.in.Prompt, Foreground: !s.background,
	}
}

// run works until there is an answer, or ctx or the time ends.
func (s *subagent) run(ctx context.Context) tools.TaskEnd {
	if s.def.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.def.MaxTime, errAgentTime)
		defer cancel()
	}
	s.conv.Submit(Input{Blocks: []model.Block{model.Text{Text: s.in.Prompt}}})
	s.conv.CloseInput()
	s.conv.Run(ctx, s.take)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = s.conv.cfg.Now().Sub(s.started)
	s.inherit()
	end := tools.TaskEnd{Status: tools.TaskCompleted, Text: s.answer()}
	if why := s.failure(); why != "" {
		end.Status, end.Text = tools.TaskFailed, s.report(why)
		if err := s.result.Err; errors.Is(err, ErrInterrupted) || errors.Is(err, ErrStopped) || err == nil && s.result.Terminal == AbortedTools {
			end.Status = tools.TaskStopped
		}
	}
	if s.trans != nil {
		if err := s.trans.Close(); err != nil {
			s.parent.log.Error("closing the transcript of a sub-agent", "agent", s.def.Name, "error", err)
		}
		end.OutputFile = s.path()
	}
	return end
}

// take passes its events on to the caller's. The end of its turn is the end of
// a tool call there, and no event.
func (s *subagent) take(ctx context.Context, from Origin, e Event) {
	if from != s.conv.cfg.Origin { // of a sub-agent of its own
		s.parent.c.forward(ctx, from, e)
		return
	}
	switch e := e.(type) {
	case *TurnEnded:
		s.mu.Lock()
		s.result = e.Result
		s.mu.Unlock()
		return
	case *Noted:
		if e.Text == noteStreaming || e.Text == noteTools {
			return // that it was interrupted is the caller's to tell
		}
	}
	s.parent.c.forward(ctx, from, e)
	if p := s.note(e); p != nil {
		s.parent.c.forward(ctx, Origin{}, p)
	}
}

// note counts what an event tells, and returns the progress to report, if any.
func (s *subagent) note(e Event) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case *MessageEnded:
		s.usage = s.usage.Add(e.Usage)
	case *BlockEnded:
		switch b := e.Block.(type) {
		case model.ToolUse:
			s.toolUses++
			s.lastTool = b.Name
		case model.Text:
			s.lastText = b.Text
		}
	case *ToolEnded:
		return &TaskProgressed{Task: taskOf(s.info()), Usage: s.used(), LastTool: e.Result.Name}
	}
	return nil
}

// taskUsage is what it has used so far.
func (s *subagent) taskUsage() tools.TaskUsage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used()
}

// used is taskUsage with mu held.
func (s *subagent) used() tools.TaskUsage {
	took := s.took
	if took == 0 {
		took = s.conv.cfg.Now().Sub(s.started)
	}
	return tools.TaskUsage{Tokens: s.usage.Total(), ToolUses: s.toolUses, Took: took}
}

// answer is the final text.
func (s *subagent) answer() string { return orElse(s.result.Text, "(The agent gave no answer.)") }

// failure says why there is no answer; "" if there is one.
func (s *subagent) failure() string {
	r := &s.result
	switch {
	case errors.Is(r.Err, errAgentTime):
		return fmt.Sprintf("its time of %s is up", s.def.MaxTime)
	case r.APIError != nil:
		return r.Text
	case r.Deferred != nil:
		return "a hook put off its call of " + r.Deferred.Name
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Err != nil:
		return r.Err.Error()
	case r.IsError, r.Subtype == ErrorDuringExecution: // whoever denied a call wanted to end it
		return "it was stopped by the user"
	}
	return ""
}

// report says that there is no answer, with what there is instead.
func (s *subagent) report(why string) string {
	text := fmt.Sprintf("The agent %s did not finish: %s.", s.def.Name, strings.TrimSuffix(why, "."))
	if s.lastText != "" {
		text += "\n\nWhat it said last:\n" + s.lastText
	}
	return text
}

// AgentResult is the Display of the agent tool.
type AgentResult struct {
	Status      string       `json:"status"` // completed, failed, async_launched
	AgentID     string       `json:"agentId"`
	AgentType   string       `json:"agentType"`
	Description string       `json:"description,omitempty"`
	Prompt      string       `json:"prompt"`
	Content     []AgentText  `json:"content,omitempty"`
	ToolUses    int          `json:"totalToolUseCount"`
	DurationMS  int64        `json:"totalDurationMs"`
	Tokens      int          `json:"totalTokens"`
	Usage       *AgentTokens `json:"usage,omitempty"`
	OutputFile  string       `json:"outputFile,omitempty"`
}

// AgentText is a piece of a sub-agent's answer.
type AgentText struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

// AgentTokens counts the tokens of a sub-agent's requests.
type AgentTokens struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// toolResult is what its call gives, once it ended.
func (s *subagent) toolResult() tools.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used()
	d := &AgentResult{
		Status: "completed", AgentID: s.id, AgentType: s.def.Name, Description: s.in.Description, Prompt: s.in.Prompt,
		ToolUses: used.ToolUses, DurationMS: used.Took.Milliseconds(), Tokens: used.Tokens,
		Usage: &AgentTokens{s.usage.InputTokens, s.usage.OutputTokens, s.usage.CacheReadTokens, s.usage.CacheWriteTokens},
	}
	res := tools.Text(s.answer())
	if why := s.failure(); why != "" {
		res = tools.Fail(s.report(why))
		d.Status = "failed"
	}
	for _, b := range res.Blocks {
		if text, ok := b.(model.Text); ok {
			d.Content = append(d.Content, AgentText{"text", text.Text})
		}
	}
	res.Display = d
	return res
}

// inherited is what a conversation takes over from its sub-agents.
type inherited struct {
	mu      sync.Mutex // guards the rest
	denials []Denial   // not in a result yet
	halt    bool       // the user wanted all to stop
}

// inherit takes over what a sub-agent's end means for its caller: the calls
// that were denied and, if a turn waits for it, that the user wanted all to
// stop.
func (s *subagent) inherit() {
	in, r := &s.parent.c.inherited, &s.result
	in.mu.Lock()
	defer in.mu.Unlock()
	in.denials = append(in.denials, r.Denials...)
	in.halt = in.halt || !s.background && r.Terminal == AbortedTools && r.Err == nil
}

// settleInherited lists the denials of sub-agents that ended, and reports
// whether the turn is to end. It is the worker's.
func (t *turn) settleInherited() (halt bool) {
	in := &t.c.inherited
	in.mu.Lock()
	defer in.mu.Unlock()
	t.denials = append(t.denials, in.denials...)
	halt = in.halt
	in.denials, in.halt = nil, false
	return halt
}

package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

const agentToolName = "agent"

const (
	maxShownDescription = 1_000  // characters of one agent's description
	maxShownAgents      = 40_000 // bytes of all
)

//go:embed agenttool.md
var agentToolDescription string

// AgentToolConfig is what the agent tool is made of.
type AgentToolConfig struct {
	Definitions []Definition
	// Class is ClassInternal if empty: starting an agent asks nobody, for each of
	// its calls is judged. With ClassOther starting one asks, too.
	Class policy.Class
	// Background starts in the background what does not ask for the opposite.
	Background bool
	// Foreground has every call wait for its agent, whatever the call or the
	// definition says.
	Foreground bool
}

// NewAgentTool returns the tool that runs sub-agents. It runs in turns of a
// Conversation only. When the definitions change, another one is put into its
// place.
func NewAgentTool(cfg AgentToolConfig) tools.Tool {
	t := &agentTool{defs: cfg.Definitions, background: cfg.Background, foreground: cfg.Foreground}
	schema, about := agentToolSchema, agentToolDescription
	switch {
	case cfg.Foreground:
		t.defs = slices.Clone(t.defs)
		for i := range t.defs {
			t.defs[i].Background = false
		}
		schema = strings.Replace(schema, agentToolBackground, "", 1)
		about, _, _ = strings.Cut(about, "With `run_in_background`")
	case cfg.Background:
		schema = strings.Replace(schema, "Return at once; you are told when it has ended", "Return at once, as without this; you are told when it has ended. With false the call waits for its answer", 1)
	}
	if cfg.Class == "" {
		cfg.Class = policy.ClassInternal
	}
	t.spec = tools.Spec{
		Name:        agentToolName,
		Description: strings.TrimSpace(strings.ReplaceAll(about, "{{agents}}", t.list())),
		Schema:      json.RawMessage(schema),
		Class:       cfg.Class,
		ReadOnly:    true, // several run side by side; what they call is judged by itself
	}.WithInput(agentInput{})
	return t
}

const agentToolSchema = `{"type":"object","properties":{
"description":{"type":"string","description":"What it is to do, in 3 to 5 words, for the user"},
"prompt":{"type":"string","description":"The task, with all that the agent needs to know"},
"subagent_type":{"type":"string","description":"The name of the agent"},
` + agentToolBackground + `"model":{"type":"string","description":"A model other than the agent's own"},
"name":{"type":"string","description":"A short name for this run"}
},"required":["description","prompt"]}`

const agentToolBackground = `"run_in_background":{"type":"boolean","description":"Return at once; you are told when it has ended"},
`

type agentInput struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt" alias:"objective,query" required:"true"`
	Type        string `json:"subagent_type" alias:"agent_name,agent"`
	Background  *bool  `json:"run_in_background" alias:"is_background,background"`
	Model       string `json:"model"`
	Name        string `json:"name"`
}

type agentTool struct {
	spec       tools.Spec
	defs       []Definition
	background bool // unless the call says otherwise
	foreground bool // whatever the call says
}

// Spec implements tools.Tool.
func (a *agentTool) Spec() tools.Spec { return a.spec }

// Run implements tools.Tool.
func (a *agentTool) Run(ctx context.Context, call *tools.Call) tools.Result {
	t := turnOf(ctx)
	if t == nil {
		return tools.Fail("Agents can be started within a conversation only.")
	}
	in, def, err := a.read(t, call)
	if err != nil {
		return tools.Fail(err.Error())
	}
	s, err := newSubagent(t, def, in, call.ID)
	if err != nil {
		return tools.Fail(err.Error())
	}
	if s.background {
		return s.launch(ctx)
	}
	told, err := t.c.cfg.Tasks.Go(ctx, tools.Job{Info: s.info(), Run: s.run, Usage: s.taskUsage})
	if err != nil {
		return tools.Fail(err.Error())
	}
	<-told // ends with its context, which ctx is the parent of
	return s.toolResult()
}

// read reads the input of a call.
func (a *agentTool) read(t *turn, call *tools.Call) (in agentInput, def *Definition, err error) {
	if err := a.spec.Decode(call.Input, &in); err != nil {
		return in, nil, err
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return in, nil, fmt.Errorf("prompt is empty")
	}
	if in.Background == nil || a.foreground {
		in.Background = &a.background
	}
	if in.Description == "" {
		in.Description = orElse(in.Name, firstWords(in.Prompt))
	}
	if in.Type == "" {
		in.Type = General
		if err := a.judgeUnnamed(t, call.Input); err != nil {
			return in, nil, err
		}
	}
	for i := range a.defs {
		if a.defs[i].Name == in.Type {
			return in, &a.defs[i], nil
		}
	}
	return in, nil, fmt.Errorf("there is no agent %q. The agents are: %s", in.Type, strings.Join(a.names(), ", "))
}

// judgeUnnamed demands that the name of the agent is said where a rule may
// speak of it: the call was judged without.
func (a *agentTool) judgeUnnamed(t *turn, input json.RawMessage) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(input, &keys); err != nil {
		return err
	}
	keys["subagent_type"] = json.RawMessage(`"` + General + `"`)
	named, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	_, f, err := t.facts(a, model.ToolUse{Name: agentToolName, Input: named})
	if err != nil {
		return err
	}
	if d := t.c.cfg.Policy.Decide(f); d.Behavior != policy.Allow && d.Why == policy.WhyRule {
		return fmt.Errorf("subagent_type is missing: say which agent. The agents are: %s", strings.Join(a.names(), ", "))
	}
	return nil
}

// launch starts the sub-agent in the background.
func (s *subagent) launch(ctx context.Context) tools.Result {
	c := s.parent.c
	c.beginTask()
	// It outlives the call: it ends by itself, by task_stop, or with the
	// conversation.
	_, err := c.cfg.Tasks.Go(context.WithoutCancel(ctx), tools.Job{Info: s.info(), Run: s.run, Usage: s.taskUsage})
	if err != nil {
		c.cancelTask()
		return tools.Fail(err.Error())
	}
	d := &AgentResult{
		Status: "async_launched", AgentID: s.id, AgentType: s.def.Name, Description: s.in.Description, Prompt: s.in.Prompt,
		OutputFile: s.path(),
	}
	res := tools.Text(fmt.Sprintf("The agent %s works in the background.\ntask_id: %s\nYou are told when it has ended: don't wait for it and don't ask for it. Go on with something else, or end your answer.",
		s.def.Name, s.id))
	res.Display = d
	return res
}

func (a *agentTool) names() []string {
	var names []string
	for i := range a.defs {
		names = append(names, a.defs[i].Name)
	}
	return names
}

// list shows the agents to the model.
func (a *agentTool) list() string {
	var sb strings.Builder
	for i := range a.defs {
		d := &a.defs[i]
		line := "- " + d.Name
		if about := strings.Join(strings.Fields(d.Description), " "); about != "" && sb.Len() < maxShownAgents {
			line += ": " + cutHead(about, maxShownDescription)
		}
		if d.Background {
			line += " (always in the background)"
		}
		sb.WriteString(line + "\n")
	}
	if sb.Len() == 0 {
		return "(none)"
	}
	return strings.TrimSuffix(sb.String(), "\n")
}

// firstWords are the beginning of a text, on one line.
func firstWords(text string) string {
	words := strings.Fields(text)
	return cutHead(strings.Join(words[:min(len(words), 6)], " "), 80)
}

// HistoryOf returns the history of the conversation whose call is judged or
// run with ctx, sub-agents included; nil outside of calls. It must not be
// changed, and not be read once the call is over.
func HistoryOf(ctx context.Context) []*model.Message {
	if t := turnOf(ctx); t != nil {
		return t.c.history
	}
	return nil
}

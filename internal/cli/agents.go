package cli

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
)

// agentFolders are the folders of sub-agents' files beneath a home or project.
var agentFolders = []string{".agent/agents", ".claude/agents", ".qwen/agents", ".gemini/agents"}

// agents are the sub-agents that can be called, in the order in which their
// names win: the host's, the project's, the user's, built in.
type agents struct {
	changed func([]agent.Definition) // told of each change

	mu      sync.Mutex // guards the rest
	session []agent.Definition
	rest    []agent.Definition
}

// setSession replaces the host's agents.
func (a *agents) setSession(list []agent.Definition) {
	a.mu.Lock()
	a.session = list
	a.mu.Unlock()
	a.changed(a.list())
}

// list returns the agents, each name once.
func (a *agents) list() []agent.Definition {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []agent.Definition
	for _, d := range slices.Concat(a.session, a.rest) {
		if !slices.ContainsFunc(out, func(o agent.Definition) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	return out
}

func (a *agents) names() []string {
	var out []string
	for _, d := range a.list() {
		out = append(out, d.Name)
	}
	return out
}

// loadAgents finds the sub-agents of flags and files. qwen's SDK expects its
// session to have no others than the host's.
func (w *wiring) loadAgents(context.Context) error {
	w.agents = &agents{changed: w.offerAgents}
	if w.o.agents != "" {
		list, err := agent.ParseDefinitions([]byte(w.o.agents))
		if err != nil {
			return fail(ExitUsage, "--agents: %w", err)
		}
		w.agents.session = list
		w.chooseModels(list)
	}
	if !(w.o.hosted() && w.o.host.dialect == streamjson.Qwen) {
		found, problems := agent.LoadDefinitions(w.agentFolders(), settings.ReadFile)
		for _, p := range problems {
			w.warn(p.Error())
		}
		w.agents.rest = append(found, agent.BuiltinDefinitions()...)
	}
	w.offerAgents(w.agents.list())
	for _, tool := range append(agent.NewPlanTools(), agent.NewToolSearch()) {
		if w.wanted(tool.Spec()) {
			w.toolset.registry.Add(tool)
		}
	}
	return nil
}

func (w *wiring) agentFolders() []agent.Folder {
	var out []agent.Folder
	add := func(root string, level agent.Level) {
		for _, f := range agentFolders {
			out = append(out, agent.Folder{Path: filepath.Join(root, filepath.FromSlash(f)), Level: level})
		}
	}
	root := settings.FindRoot(w.cio.Dir)
	if w.o.reads("project") && root != w.dirs.Home {
		add(root, agent.LevelProject)
	}
	if w.dirs.Home != "" && w.o.reads("user") {
		add(w.dirs.Home, agent.LevelUser)
	}
	return out
}

// chooseModels lets agents of flags and hosts name what models they like.
func (w *wiring) chooseModels(list []agent.Definition) {
	for i := range list {
		w.models.choose(list[i].Model)
	}
}

// offerAgents gives the model a tool that knows these agents.
func (w *wiring) offerAgents(list []agent.Definition) {
	tool := agent.NewAgentTool(agent.AgentToolConfig{Definitions: list})
	if w.wanted(tool.Spec()) && len(list) > 0 {
		w.toolset.registry.Add(tool)
	}
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// agentFolders are the folders of sub-agents' files beneath a home or project.
var agentFolders = []string{".agent/agents", ".claude/agents", ".qwen/agents", ".gemini/agents"}

// agents are the sub-agents that can be called, in the order in which their
// names win: the host's, the project's, the user's, built in. The host may say
// that one of its own counts as the project's or the user's.
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
	all := slices.Concat(a.session, a.rest)
	slices.SortStableFunc(all, func(x, y agent.Definition) int { return cmp.Compare(y.Level, x.Level) })
	var out []agent.Definition
	for _, d := range all {
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
	if err := w.becomeAgent(nil); err != nil && w.host == nil { // a host may define it yet
		return fail(ExitUsage, "%w", err)
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
	if w.o.reads("user") {
		for _, f := range userFolders(w.dirs, "agents") {
			out = append(out, agent.Folder{Path: f, Level: agent.LevelUser})
		}
	}
	return out
}

// userFolders are the user's folders of a kind: our own, and those of other
// programs, wherever they are.
func userFolders(d settings.Dirs, kind string) []string {
	var out []string
	if d.Home != "" {
		out = append(out, filepath.Join(d.Home, ".agent", kind))
	}
	for _, tool := range []string{"claude", "qwen", "gemini"} {
		if dir := d.OfTool(tool); dir != "" {
			out = append(out, filepath.Join(dir, kind))
		}
	}
	return out
}

// chooseModels lets agents of flags and hosts name what models they like.
func (w *wiring) chooseModels(list []agent.Definition) {
	for i := range list {
		w.models.choose(list[i].Model)
	}
}

// offerAgents gives the model a tool that knows these agents, none if there are
// none.
func (w *wiring) offerAgents(list []agent.Definition) {
	tool := agent.NewAgentTool(agent.AgentToolConfig{Definitions: list, Background: w.o.host.dialect == streamjson.Qwen, Foreground: w.limits.foreground})
	spec := tool.Spec()
	switch {
	case len(list) == 0:
		w.toolset.registry.Remove(func(s tools.Spec) bool { return s.Name == spec.Name })
	case w.wanted(spec):
		w.toolset.registry.Add(tool)
	}
}

// mainAgent returns the agent that --agent names, nil without that flag. more
// are agents that are yet to be added.
func (w *wiring) mainAgent(more []agent.Definition) (*agent.Definition, error) {
	if w.o.agent == "" {
		return nil, nil
	}
	list := slices.Concat(more, w.agents.list())
	for i := range list {
		if list[i].Name == w.o.agent {
			return &list[i], nil
		}
	}
	return nil, fmt.Errorf("--agent: there is no agent %q: the agents are %s", w.o.agent, strings.Join(w.agents.names(), ", "))
}

// becomeAgent leaves the conversation the tools of the agent that --agent names,
// the first time that it is there.
func (w *wiring) becomeAgent(more []agent.Definition) error {
	d, err := w.mainAgent(more)
	if err != nil || d == nil || w.main.Load() != nil {
		return err
	}
	w.offering.Lock()
	defer w.offering.Unlock()
	w.main.Store(d)
	w.toolset.registry.Remove(func(s tools.Spec) bool { return !d.Offers(s) })
	return nil
}

// becomeLate is becomeAgent for an agent that the host defines: the conversation
// is there already.
func (w *wiring) becomeLate(ctx context.Context, more []agent.Definition) error {
	if w.main.Load() != nil {
		return nil
	}
	if err := w.becomeAgent(more); err != nil || w.main.Load() == nil {
		return err
	}
	if err := w.buildPrompt(ctx); err != nil {
		return err
	}
	w.conv.SetSystem(w.system)
	w.conv.Adopt(w.main.Load(), w.o.model != "")
	return nil
}

// resolve returns the model of a name: agent.Config.Resolve. There is none while
// the conversation waits to become an agent that the host has yet to define.
func (w *wiring) resolve(name string) (agent.Model, error) {
	if w.main.Load() == nil {
		if _, err := w.mainAgent(nil); err != nil {
			return agent.Model{}, fail(ExitUsage, "%w", err)
		}
	}
	return w.models.resolve(name)
}

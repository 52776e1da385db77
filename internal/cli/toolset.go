package cli

import (
	"context"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/tools"
)

// tasksGrace is how long background tasks get to end when a run does.
const tasksGrace = 3 * time.Second

// toolset is the tools of one conversation and what they hold.
type toolset struct {
	registry *tools.Registry // what the model is offered
	all      *tools.Registry // with what flags and rules leave out
	roots    *tools.Roots
	tasks    *tools.Tasks
}

// newToolset builds the tools that flags and rules leave.
func (w *wiring) newToolset() (*toolset, error) {
	roots, err := tools.OpenRoots(tools.RootsConfig{
		Dirs: append([]string{w.cio.Dir}, w.set.List(settings.AdditionalDirectories)...), Home: w.dirs.Home,
	})
	if err != nil {
		return nil, fail(ExitUsage, "%w", err)
	}
	t := &toolset{roots: roots}
	w.place = w.findPlace(roots)
	list := tools.NewFileTools(tools.FileConfig{Roots: roots, State: tools.NewFileState(), Hidden: w.hides})
	list = append(list, w.newShell(t)...)
	list = append(list, w.newFetch(), tools.NewTodoWrite(new(tools.TodoList)), tools.NewAskUser(w.asker))
	t.all = tools.NewRegistry(list...)
	t.registry, err = w.offered(t.all)
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (w *wiring) newShell(t *toolset) []tools.Tool {
	t.tasks = tools.NewTasks()
	shell := tools.NewShell(tools.ShellConfig{
		Runner: sandbox.New(), Roots: t.roots, Tasks: t.tasks, Env: w.cio.Env, OutputDir: w.stateDir("output"),
		DefaultTimeout: w.set.Milliseconds(settings.ShellTimeoutMs), MaxOutput: w.set.Int(settings.ShellMaxOutputChars),
	})
	return []tools.Tool{shell, tools.NewTaskOutput(t.tasks), tools.NewTaskStop(t.tasks)}
}

func (w *wiring) newFetch() tools.Tool {
	return tools.NewWebFetch(tools.WebFetchOptions{
		HTTP: networkOptions(w.cio, w.set), AllowedPrivateHosts: w.set.List(settings.WebAllowedPrivateHosts),
	})
}

// offered leaves the tools that --tools names and no rule denies.
func (w *wiring) offered(all *tools.Registry) (*tools.Registry, error) {
	wanted := func(string) bool { return true }
	if w.o.tools != "default" {
		names, err := toolNames(w.o.tools, all)
		if err != nil {
			return nil, err
		}
		wanted = func(name string) bool { return names[name] }
	}
	return all.Filter(func(s tools.Spec) bool { return wanted(s.Name) && !w.engine.Denied(w.callFacts(s)) }), nil
}

func toolNames(list string, all *tools.Registry) (map[string]bool, error) {
	names := map[string]bool{}
	for _, text := range policy.SplitRules(list) {
		name := policy.CanonicalTool(text)
		if _, ok := all.Lookup(name); !ok {
			return nil, fail(ExitUsage, "--tools: there is no tool %q: the tools are %s", text, strings.Join(specNames(all), ", "))
		}
		names[name] = true
	}
	return names, nil
}

func specNames(r *tools.Registry) []string {
	var out []string
	for _, t := range r.All() {
		out = append(out, t.Spec().Name)
	}
	return out
}

// close ends the background tasks and lets go of the folders.
func (t *toolset) close() {
	if t.tasks != nil {
		ctx, cancel := context.WithTimeout(context.Background(), tasksGrace)
		defer cancel()
		t.tasks.Close(ctx)
	}
	_ = t.roots.Close() // nothing was written through them
}

// callFacts are what policy knows of every call of a tool before its input is
// there.
func (w *wiring) callFacts(s tools.Spec) policy.Facts {
	f := w.place
	f.Tool, f.Class, f.Mode = s.Name, s.Class, w.set.Mode()
	return f
}

// findPlace says where the calls of this run are made.
func (w *wiring) findPlace(roots *tools.Roots) policy.Facts {
	_, nobody := w.asker.(policy.Nobody)
	f := policy.Facts{
		Interactive: !nobody, Cwd: roots.Dir(), Roots: roots.All(), Home: w.dirs.Home, Paths: tools.Disk{}, Tree: new(tools.SecretTrees), Repo: tools.NewGitConfigs(),
	}
	f.Project = f.Paths.Resolve(settings.FindRoot(w.cio.Dir)).Real
	if dir := f.Paths.Resolve(w.stateDir("output")).Real; dir != "" {
		f.Reads = []string{dir} // what was too long for the model is kept there
	}
	for _, dir := range []string{w.dirs.Config, w.dirs.State} {
		if dir != "" {
			f.Guarded = append(f.Guarded, dir)
		}
	}
	f.Guarded = append(f.Guarded, w.guarded...)
	return f
}

// hides says why a search must leave out a file; "" if it need not.
func (w *wiring) hides(abs string) string {
	f := w.place
	f.Mode = w.set.Mode()
	return w.engine.Hides(f, abs)
}

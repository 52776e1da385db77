package cli

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
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
	files, todo := w.newFileTools(roots), tools.NewTodoWrite(new(tools.TodoList))
	t.all = tools.NewRegistry(slices.Concat(files, w.newShell(t), []tools.Tool{w.newFetch(), todo, tools.NewAskUser(w.asker)})...)
	if err := w.chooseTools(t.all); err != nil {
		t.close()
		return nil, err
	}
	t.registry = t.all.Filter(w.wanted)
	return t, nil
}

// newFileTools makes the file tools of one conversation, which has read nothing.
func (w *wiring) newFileTools(roots *tools.Roots) []tools.Tool {
	return tools.NewFileTools(tools.FileConfig{Roots: roots, State: tools.NewFileState(), Hidden: w.hides, Names: w.names})
}

// ownTools are the tools of which each conversation has its own.
func (w *wiring) ownTools() []tools.Tool {
	return append(w.newFileTools(w.toolset.roots), tools.NewTodoWrite(new(tools.TodoList)))
}

func (w *wiring) newShell(t *toolset) []tools.Tool {
	t.tasks = tools.NewTasks()
	c := tools.ShellConfig{
		Runner: sandbox.New(), Roots: t.roots, Tasks: t.tasks, Names: w.names, Env: w.cio.Env, OutputDir: w.stateDir("output"),
		DefaultTimeout: cmp.Or(w.limits.shellTimeout, w.set.Milliseconds(settings.ShellTimeoutMs)), MaxTimeout: w.limits.maxShellTimeout,
		MaxOutput: w.set.Int(settings.ShellMaxOutputChars),
	}
	if w.limits.foreground {
		c.Tasks = nil
		return []tools.Tool{tools.NewShell(c)}
	}
	shell := tools.NewShell(c)
	return []tools.Tool{shell, tools.NewTaskOutput(t.tasks), tools.NewTaskStop(t.tasks)}
}

func (w *wiring) newFetch() tools.Tool {
	return tools.NewWebFetch(tools.WebFetchOptions{
		HTTP: networkOptions(w.cio, w.set), AllowedPrivateHosts: w.set.List(settings.WebAllowedPrivateHosts),
	})
}

// chooseTools reads which built-in tools are wanted.
func (w *wiring) chooseTools(all *tools.Registry) error {
	var names map[string]bool
	switch {
	case len(w.o.coreTools) > 0:
		names = map[string]bool{}
		for _, list := range w.o.coreTools {
			for _, text := range policy.SplitRules(list) {
				text, _, _ = strings.Cut(text, "(")
				names[policy.CanonicalTool(text)] = true
			}
		}
		for _, support := range supportTools {
			names[support] = true
		}
	case w.o.tools != "default":
		var err error
		if names, err = w.namedTools(all); err != nil {
			return err
		}
	}
	w.chosen = names
	return nil
}

// supportTools serve the agent itself; --core-tools leaves them.
var supportTools = []string{"agent", "tool_search", "task_stop", "task_output", "ask_user", "skill"}

// laterTools are built-in tools that come to the registry later on.
var laterTools = []string{"agent", "tool_search", "enter_plan_mode", "exit_plan_mode", "list_mcp_resources", "read_mcp_resource"}

// namedTools are the tools that --tools names. One that isn't there is an error,
// but not to a published SDK: its users name those of other programs too.
func (w *wiring) namedTools(all *tools.Registry) (map[string]bool, error) {
	names := map[string]bool{}
	for _, text := range policy.SplitRules(w.o.tools) {
		name := policy.CanonicalTool(text)
		if _, ok := all.Lookup(name); !ok && !slices.Contains(laterTools, name) && !w.o.hosted() {
			return nil, fail(ExitUsage, "--tools: there is no tool %q: the tools are %s", text, strings.Join(append(specNames(all), laterTools...), ", "))
		}
		names[name] = true
	}
	return names, nil
}

// wanted reports whether flags and rules leave a tool to the model. Tools of MCP
// servers are wanted with the server.
func (w *wiring) wanted(s tools.Spec) bool {
	if w.chosen != nil && s.Server == "" && !w.chosen[s.Name] {
		return false
	}
	if d := w.main.Load(); d != nil && !d.Offers(s) {
		return false
	}
	if s.Name == "ask_user" && w.host != nil && w.o.host.dialect == streamjson.Claude && !w.host.answers() {
		return false // nobody there can answer, and nobody will come
	}
	if w.o.hostedBy(streamjson.Qwen) && (s.Name == "enter_plan_mode" || s.Name == "exit_plan_mode") {
		return false // its SDK has no answer to a plan
	}
	return !w.engine.Denied(w.callFacts(s))
}

func specNames(r *tools.Registry) []string {
	var out []string
	for _, t := range r.All() {
		out = append(out, t.Spec().Name)
	}
	return out
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
	f.Server, f.Annotations = s.Server, s.Annotations
	return f
}

// findPlace says where the calls of this run are made.
func (w *wiring) findPlace(roots *tools.Roots) policy.Facts {
	_, nobody := w.asker.(policy.Nobody)
	f := policy.Facts{
		Interactive: !nobody, Dialect: string(w.o.host.dialect), Cwd: roots.Dir(), Roots: roots.All(), Home: w.dirs.Home, Paths: tools.Disk{}, Tree: new(tools.SecretTrees), Repo: tools.NewGitConfigs(),
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

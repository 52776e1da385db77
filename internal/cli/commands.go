package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/command"
	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// hintWait bounds the wait for file names when the project is walked for a
// hint.
const hintWait = 15 * time.Millisecond

// commandEnv is what slash commands work on.
type commandEnv struct{ *wiring }

// buildCommands makes the slash commands: built in and from files.
func (w *wiring) buildCommands(context.Context) error {
	e := commandEnv{w}
	w.files = tools.NewFileNames(w.toolset.roots)
	w.closers = append(w.closers, w.files.Close)
	w.commands = command.New(command.Env{
		Dialect: string(w.o.host.dialect), Disabled: w.disabledCommands(),
		Models: e, Modes: e, Rules: e, Conversation: e, Compactor: e, Context: e, Usage: e, Servers: e,
		Agents: agentItems{w}, Tools: toolItems{w}, Hooks: e, Status: statusItems{w}, Transcript: e, Files: e, Shell: e,
	})
	for _, p := range w.commands.Load(w.commandFolders()) {
		w.warn(p.String())
	}
	return nil
}

// disabledCommands are those that a host of qwen's switches off.
func (w *wiring) disabledCommands() []string {
	var out []string
	if w.o.hostedBy(streamjson.Qwen) {
		for name := range strings.SplitSeq(w.cio.Getenv("QWEN_DISABLED_SLASH_COMMANDS"), ",") {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(name), "/"))
		}
	}
	return out
}

func (w *wiring) commandFolders() []command.Folder {
	var out []command.Folder
	root := settings.FindRoot(w.cio.Dir)
	if w.o.reads("project") && root != w.dirs.Home {
		out = append(out, command.Folders(root, command.Project)...)
	}
	if w.dirs.Home != "" && w.o.reads("user") {
		out = append(out, command.Folders(w.dirs.Home, command.User)...)
	}
	for i, f := range out { // the user may keep them elsewhere
		tool, _, _ := strings.Cut(f.Path, string(filepath.Separator))
		if dir := w.dirs.OfTool(strings.TrimPrefix(tool, ".")); f.Source == command.User && dir != "" && dir != filepath.Join(f.Root, tool) {
			out[i].Root, out[i].Path = dir, filepath.Base(f.Path)
		}
	}
	return out
}

// expand makes of a line what its command says: agent.Config.Expand. A name that
// is no command is an error, but in qwen's dialect, where it goes to the model,
// and so does what looks like a path.
func (w *wiring) expand(ctx context.Context, in agent.Input) (agent.Expansion, error) {
	first, ok := in.Blocks[0].(model.Text)
	if _, _, isCommand := command.Parse(first.Text); !ok || !isCommand {
		return agent.Expansion{}, nil
	}
	x, err := w.commands.Expand(ctx, first.Text)
	var unknown *command.UnknownError
	switch {
	case errors.As(err, &unknown) && w.o.host.dialect == streamjson.Qwen:
		return agent.Expansion{}, nil
	case errors.As(err, &unknown) && w.o.host.dialect == streamjson.Claude:
		return agent.Expansion{Handled: true, Reply: "Unknown slash command: " + unknown.Name}, nil
	case errors.As(err, &unknown):
		return agent.Expansion{Handled: true, Err: &exitError{ExitInput, err}}, nil
	case err != nil:
		return agent.Expansion{Handled: true, Err: err}, nil
	case x.Prompt != "":
		blocks := append([]model.Block{model.Text{Text: x.Prompt}}, in.Blocks[1:]...)
		return agent.Expansion{Handled: true, Blocks: blocks, Model: x.Model, AllowedTools: w.granted(x)}, nil
	}
	reset := w.clearing.Swap(false)
	return agent.Expansion{Handled: true, Reply: x.Reply, Reset: reset}, nil
}

// granted are the rules that a command's file asks for, which count when the
// file is the user's own: a project's may be a stranger's.
func (w *wiring) granted(x command.Expansion) []policy.Rule {
	if x.Source != command.User {
		return nil
	}
	var out []policy.Rule
	for _, text := range x.AllowedTools {
		r, err := policy.ParseRule(text, policy.Allow, "command /"+x.Command)
		if err != nil {
			w.log.Warn("a command allows what is no rule", "command", x.Command, "rule", text, "error", err)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Model implements command.Models.
func (e commandEnv) Model() string { return e.models.display(e.conv.Model()) }

// SetModel implements command.Models.
func (e commandEnv) SetModel(_ context.Context, name string) error {
	e.models.choose(name)
	_, err := e.conv.SetModel(name)
	return messageOf(err)
}

// Models implements command.Models.
func (e commandEnv) Models() []string {
	var out []string
	for _, m := range e.models.known(e.conv.Model()) {
		out = append(out, m.ID)
	}
	return out
}

// Mode implements command.Modes.
func (e commandEnv) Mode() string { return e.names.Mode(e.conv.Mode()) }

// SetMode implements command.Modes.
func (e commandEnv) SetMode(name string) error {
	m, err := policy.ParseMode(name)
	if err != nil {
		return err
	}
	e.conv.SetMode(m)
	return nil
}

// Modes implements command.Modes.
func (e commandEnv) Modes() []string {
	var out []string
	for _, m := range policy.Modes {
		if name := e.names.Mode(m); !slices.Contains(out, name) { // a dialect may have no name of its own for it
			out = append(out, name)
		}
	}
	return out
}

// Rules implements command.Rules.
func (e commandEnv) Rules() []command.Rule {
	var out []command.Rule
	for _, r := range e.engine.Rules() {
		out = append(out, command.Rule{Behavior: string(r.Behavior), Rule: r.Text, Origin: r.Origin})
	}
	return out
}

// Clear implements command.Conversation: the turn that runs it ends with it.
func (e commandEnv) Clear(context.Context) error {
	e.clearing.Store(true)
	return nil
}

// Compact implements command.Compactor.
func (e commandEnv) Compact(ctx context.Context, instructions string) (command.Compacted, error) {
	done, err := e.conv.Compact(ctx, instructions)
	return command.Compacted{Before: done.Before, After: done.After}, err
}

// ContextUse implements command.Context.
func (e commandEnv) ContextUse(context.Context) (command.ContextUse, error) {
	u := e.contextUsage()
	sum := func(list []control.UsageItem) int {
		n := 0
		for _, i := range list {
			if !i.Absent {
				n += i.Tokens
			}
		}
		return n
	}
	return command.ContextUse{Window: u.Window, Parts: []command.Part{
		{Name: "System prompt", Tokens: u.SystemPrompt}, {Name: "Tools", Tokens: sum(u.Tools)},
		{Name: "MCP tools", Tokens: sum(u.MCPTools)}, {Name: "Sub-agents", Tokens: sum(u.Agents)}, {Name: "Messages", Tokens: u.Messages},
	}}, nil
}

// Usage implements command.Usage.
func (e commandEnv) Usage() command.Used {
	seen := e.watch.counted()
	out := command.Used{Turns: seen.turns, Duration: time.Since(e.watch.begin)}
	names, totals := e.ledger.Models()
	for i, t := range totals {
		out.Models = append(out.Models, command.ModelUse{
			Model: names[i], Requests: t.Requests, Input: int64(t.Usage.InputTokens), Output: int64(t.Usage.OutputTokens),
			CacheRead: int64(t.Usage.CacheReadTokens), CacheWrite: int64(t.Usage.CacheWriteTokens), Cost: t.CostUSD, Priced: t.CostUSD > 0,
		})
	}
	return out
}

// Servers implements command.Servers.
func (e commandEnv) Servers() []command.Server {
	var out []command.Server
	for _, s := range e.servers.Status() {
		out = append(out, command.Server{Name: s.Name, Status: string(s.State), Type: s.Type, Error: s.Error, Tools: len(s.Tools)})
	}
	return out
}

// Hooks implements command.Hooks.
func (e commandEnv) Hooks() []command.Hook {
	var out []command.Hook
	for _, r := range e.hooks.List() {
		out = append(out, command.Hook{Event: string(r.Event), Matcher: r.Matcher, Does: "the host's " + r.CallbackID})
	}
	return out
}

// TranscriptPath implements command.Transcript.
func (e commandEnv) TranscriptPath() string {
	if e.trans == nil {
		return ""
	}
	return e.trans.Path()
}

// RunShell implements command.Shell: the command is judged, and asked about, as
// a call of the model is.
func (e commandEnv) RunShell(ctx context.Context, line string) (string, error) {
	return e.conv.RunTool(ctx, "run_shell_command", map[string]any{"command": line, "description": "from a command file"})
}

// ReadFile implements command.Files: files and folders are read as a call of
// the model is.
func (e commandEnv) ReadFile(ctx context.Context, path string) (string, error) {
	place, err := e.toolset.roots.Resolve(path)
	if err != nil {
		return "", err
	}
	if !place.Exists {
		return "", fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if isDir(place.Path) {
		return e.conv.RunTool(ctx, "list_directory", map[string]any{"path": path})
	}
	return e.conv.RunTool(ctx, "read_file", map[string]any{"file_path": path})
}

// FindFiles implements command.Files.
func (e commandEnv) FindFiles(ctx context.Context, typed string, limit int) []string {
	ctx, cancel := context.WithTimeout(ctx, hintWait)
	defer cancel()
	return e.files.Find(ctx, typed, limit)
}

// agentItems, toolItems and statusItems list what /agents, /tools and /status
// show.
type (
	agentItems  struct{ *wiring }
	toolItems   struct{ *wiring }
	statusItems struct{ *wiring }
)

// Agents implements command.Agents.
func (e agentItems) Agents() []command.Item {
	var out []command.Item
	for _, a := range e.agents.list() {
		out = append(out, command.Item{Name: a.Name, Description: a.Description})
	}
	return out
}

// Tools implements command.Tools.
func (e toolItems) Tools() []command.Item {
	var out []command.Item
	for _, t := range e.toolset.registry.All() {
		s := t.Spec()
		first, _, _ := strings.Cut(s.Description, "\n")
		out = append(out, command.Item{Name: e.names.Tool(s.Name), Description: first})
	}
	return out
}

// Status implements command.Status.
func (e statusItems) Status() []command.Item {
	items := []command.Item{
		{Name: "version", Description: version.Line()},
		{Name: "session", Description: e.conv.SessionID()},
		{Name: "model", Description: e.models.display(e.conv.Model())},
		{Name: "mode", Description: e.names.Mode(e.conv.Mode())},
		{Name: "directory", Description: e.cio.Dir},
		{Name: "credentials", Description: e.models.keySource()},
	}
	if more := e.toolset.roots.All()[1:]; len(more) > 0 {
		items = append(items, command.Item{Name: "further directories", Description: strings.Join(more, string(filepath.ListSeparator))})
	}
	if names := e.serverNames(); len(names) > 0 {
		items = append(items, command.Item{Name: "MCP servers", Description: strings.Join(names, ", ")})
	}
	return items
}

// commandNames are the names of the slash commands, sorted.
func (w *wiring) commandNames() []string {
	names := w.commands.Names()
	slices.Sort(names)
	return names
}

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/command"
	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/mcp"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/model/scripted"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
	"github.com/agentcli/agent/internal/usage"
)

// wiring is everything one run is made of.
type wiring struct {
	cio       IO
	o         *options
	sessionID string
	log       *slog.Logger
	set       *settings.Settings
	dirs      settings.Dirs

	foreignServers map[string]json.RawMessage // that the user has for qwen-code, in its sessions
	skip           []settings.Layer           // files that don't count
	models         *models
	toolset        *toolset
	engine         *policy.Engine
	policies       policy.Policy // of policy files
	lenient        bool          // problems of policy files are kept, and end nothing
	guarded        []string      // files and folders of policies, which no call changes unasked
	place          policy.Facts  // what policy knows of every call
	asker          policy.Asker
	ledger         *usage.Ledger
	trans          *transcript.Writer // nil: nothing is kept
	sessions       transcript.Options // of this run's transcripts
	system         string
	spill          *spill
	host           *host        // nil: no JSON lines on stdin
	names          *tools.Names // of tools and parameters in the dialect
	conv           *agent.Conversation
	perms          *permissions
	hooks          *hooks.Runner
	agents         *agents
	main           atomic.Pointer[agent.Definition] // what the conversation itself is; nil: no agent
	offering       sync.Mutex                       // held while tools are offered or taken away
	chosen         map[string]bool                  // built-in tools that flags name; nil: all
	servers        *mcp.Manager
	missed         map[string]mcp.State // of servers that a person was told of; the worker's
	commands       *command.Registry
	files          *tools.FileNames
	watch          *watch
	limits         hostLimits
	style          string       // the output style that --settings names
	clearing       atomic.Bool  // a command wants the conversation to begin anew
	protocol       *protocolLog // --record-protocol; nil without

	pathOf      func(sessionID string) string // of a transcript
	agentPathOf func(sessionID, agentID string) string

	closers []func()
}

// newWiring puts a run together. On an error nothing is left open.
func newWiring(ctx context.Context, cio IO, o *options, asker policy.Asker) (_ *wiring, err error) {
	w := &wiring{
		cio: cio, o: o, asker: asker, ledger: new(usage.Ledger), sessionID: o.sessionID,
		names: tools.NewNames(string(o.host.dialect)), watch: newWatch(), missed: map[string]mcp.State{},
	}
	w.host, _ = asker.(*host)
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.sessionID == "" {
		w.sessionID = uuid.NewString()
	}
	log, closeLog, err := o.newLog(cio, w.sessionID)
	if err != nil {
		return nil, err
	}
	w.log, w.closers = log, append(w.closers, closeLog)
	if len(o.host.dropped) > 0 {
		log.Info("passed over flags that are not known here", "flags", fmt.Sprint(o.host.dropped))
	}
	for _, step := range []func(context.Context) error{
		w.loadSettings, w.buildModels, w.buildPolicy, w.buildTools, w.buildHooks, w.loadAgents, w.buildServers, w.buildCommands,
		w.buildPrompt, w.buildTranscript, w.buildProtocolLog,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// close releases everything, in the reverse order of its making.
func (w *wiring) close() {
	for i := len(w.closers) - 1; i >= 0; i-- {
		w.closers[i]()
	}
	w.closers = nil
}

func (w *wiring) loadSettings(context.Context) error {
	dirs, err := findDirs(w.cio)
	if err != nil {
		return err
	}
	mode, err := w.o.mode()
	if err != nil {
		return err
	}
	given, restrict, err := w.o.documents(w.cio.Dir)
	if err != nil {
		return err
	}
	more := append(w.o.dirs(), w.takeClaude(given)...)
	flags := map[string]any{}
	if mode != "" {
		flags[settings.DefaultMode] = string(mode)
	}
	if w.o.model == "default" && w.o.host.dialect == streamjson.Claude {
		w.o.model = "" // its SDKs' name for none
	}
	if w.o.model != "" {
		flags[settings.Model] = w.o.model
	}
	if w.o.maxTurns > 0 {
		flags[settings.MaxTurns] = w.o.maxTurns
	}
	w.dirs, w.skip = dirs, w.o.skippedLayers()
	w.readHostEnv(flags)
	w.readQwen(flags)
	if len(more) > 0 {
		flags[settings.AdditionalDirectories] = more
	}
	set, err := loadSettings(w.cio, settings.LoadOptions{
		Dirs: dirs, Flags: flags, Skip: w.skip, Given: given, Restrict: restrict,
	}, w.warn)
	w.set = set
	return err
}

// takeClaude takes from --settings what an SDK's users say there in Claude's
// words, and returns the directories among it.
func (w *wiring) takeClaude(given []settings.Document) (dirs []string) {
	if w.o.host.dialect != streamjson.Claude {
		return nil
	}
	for _, doc := range given {
		d := settings.ReadClaude(doc)
		w.style = cmp.Or(d.OutputStyle, w.style)
		w.cio = w.cio.with(d.Env)
		dirs = append(dirs, d.Directories...)
	}
	return dirs
}

// warn shows the user what has no effect; a published SDK's user finds it in
// the debug log.
func (w *wiring) warn(text string) {
	if w.o.hosted() {
		w.log.Warn(text)
		return
	}
	fmt.Fprintf(w.cio.Err, "warning: %s\n", text)
}

// loadSettings loads all layers and shows what has no effect.
func loadSettings(cio IO, o settings.LoadOptions, warn func(string)) (*settings.Settings, error) {
	o.Root, o.ManagedFile = settings.FindRoot(cio.Dir), settings.ManagedFile
	set, warnings, err := settings.Load(o)
	for _, warning := range warnings {
		warn(warning.String())
	}
	if err != nil {
		return nil, fail(ExitSettings, "settings: %w", err)
	}
	return set, nil
}

func (w *wiring) buildModels(ctx context.Context) error {
	record, err := w.recorder()
	if err != nil {
		return err
	}
	o := modelOptions{betas: w.o.betas, record: record, oauth: w.hostEnv("CLAUDE_CODE_OAUTH_TOKEN"), app: w.clientApp()}
	switch {
	case w.o.authType != "":
		o.vendor, o.forced = authTypes[w.o.authType], true
	case w.o.host.dialect == streamjson.Claude:
		o.vendor = "anthropic"
	}
	m, err := newModels(ctx, w.cio, w.set, o)
	if err != nil {
		return err
	}
	m.choose(w.o.fallback...)
	w.models, w.closers = m, append(w.closers, m.close)
	return nil
}

// recorder returns what records the traffic of a provider with --record, else
// nil.
func (w *wiring) recorder() (func(model.Provider) model.Provider, error) {
	if w.o.record == "" {
		return nil, nil
	}
	f, err := os.OpenFile(w.o.record, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fail(ExitUsage, "--record: %w", err)
	}
	var made []*scripted.Recorder
	w.closers = append(w.closers, func() {
		err := f.Close()
		for _, r := range made {
			err = errors.Join(r.Err(), err)
		}
		if err != nil {
			w.log.Error("--record: the recording is not whole", "error", err)
		}
	})
	return func(p model.Provider) model.Provider {
		r := scripted.Record(p, f, nil)
		made = append(made, r)
		return r
	}, nil
}

// buildPolicy collects the rules of flags, settings and policy files.
func (w *wiring) buildPolicy(context.Context) error {
	allow, err := w.o.parseRules("--allowed-tools", policy.Allow, w.o.allowedTools, w.warn)
	if err != nil {
		return err
	}
	deny, err := w.o.parseRules("--disallowed-tools", policy.Deny, w.o.disallowedTools, w.warn)
	if err != nil {
		return err
	}
	rules, warnings, err := settings.Rules(w.set, w.ruleOptions())
	for _, warning := range warnings {
		w.warn(warning.String())
	}
	if err != nil {
		return fail(ExitSettings, "settings: %w", err)
	}
	files, err := w.policyFiles()
	if err != nil {
		return err
	}
	w.engine = policy.NewEngine(slices.Concat(allow, deny, rules, files.Rules), files.Checkers...)
	return nil
}

// ruleOptions say where settings files of other programs lie.
func (w *wiring) ruleOptions() settings.RuleOptions {
	return settings.RuleOptions{Dirs: w.dirs, Root: settings.FindRoot(w.cio.Dir), Skip: w.skip}
}

func (w *wiring) buildTools(context.Context) error {
	w.spill = &spill{dir: w.stateDir("output", w.sessionID)}
	t, err := w.newToolset()
	if err != nil {
		return err
	}
	w.toolset, w.closers = t, append(w.closers, t.close)
	return nil
}

func (w *wiring) buildPrompt(context.Context) (err error) {
	w.system, err = w.o.buildSystemPrompt(w.names, w.main.Load(), w.cio.Dir, w.toolset.roots.All(), time.Now())
	return err
}

// stateDir is a folder for our own files; without a home it lies in the
// system's folder for temporary files.
func (w *wiring) stateDir(elem ...string) string {
	base := w.dirs.State
	if base == "" {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("agent-%d", os.Getuid()))
	}
	return filepath.Join(append([]string{base}, elem...)...)
}

// gitBranch reads the current branch without running git, whose configuration
// may come from a stranger; "" if it can't be told.
func gitBranch(root string) string {
	head, err := settings.ReadFile(filepath.Join(root, ".git", "HEAD"), 4096)
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}

// conversation makes the conversation of this run.
func (w *wiring) conversation() (*agent.Conversation, error) {
	check := &checkers{runner: sandbox.New(), env: w.cio.Env, log: w.log, history: agent.HistoryOf}
	w.perms = &permissions{w: w}
	w.conv = agent.New(w.agentConfig(check))
	w.perms.conv = w.conv
	if d := w.main.Load(); d != nil {
		w.conv.Adopt(d, w.o.model != "")
	}
	if w.o.jsonSchema != "" {
		if err := w.conv.SetSchema([]byte(w.o.jsonSchema)); err != nil {
			return nil, fail(ExitUsage, "--json-schema: %w", err)
		}
	}
	return w.conv, nil
}

func (w *wiring) agentConfig(check *checkers) agent.Config {
	c := agent.Config{
		SessionID: w.sessionID, Resolve: w.resolve, System: w.system, Tools: w.toolset.registry, Names: w.names,
		Policy: w.engine, Facts: w.place, Mode: w.set.Mode(), Asker: w.asker, Ledger: w.ledger,
		Check: check.judge, Save: w.saveRule, Apply: w.perms.apply, Words: w.o.words(),
		MaxTurns: w.set.Int(settings.MaxTurns), MaxBudgetUSD: w.o.maxBudget, FailOnDenial: w.o.onDeny == "fail",
		ThinkingBudget: w.o.thinkingBudget(), Effort: model.Effort(w.o.effort), Fallback: w.o.fallback,
		Expand: w.expand, Prepare: w.waitForServers, Away: w.awayTool, Hooks: w.hooks, HookEvents: w.o.hookEvents,
		Tasks: w.toolset.tasks, MaxDepth: w.o.maxDepth, WaitForTasks: w.o.host.dialect == streamjson.Qwen, SubSystem: w.subSystem, OwnTools: w.ownTools, SystemNotes: w.serverNotes,
		Log: w.log, Spill: w.spill.keep, MaxServerText: w.limits.serverText,
	}
	if w.host != nil {
		c.Interactive = w.host.answers
	}
	if w.trans != nil {
		c.Transcript, c.TranscriptPath = w.trans, w.trans.Path()
		c.Reopen, c.SubTranscript = w.reopen, w.subTranscript
	}
	return c
}

// subSystem is the system prompt of a sub-agent: its own, and where it works.
func (w *wiring) subSystem(prompt string) string {
	return prompt + "\n" + environment(w.cio.Dir, w.toolset.roots.All(), time.Now())
}

func (w *wiring) buildHooks(context.Context) error {
	if w.host != nil {
		w.hooks = hooks.New(w.host.disp.Hook(), w.log)
	}
	return nil
}

// saveRule keeps a rule that the user approved for longer than this run.
func (w *wiring) saveRule(scope policy.Scope, r policy.Rule) error {
	layer := settings.Local
	if scope == policy.ScopeUser {
		layer = settings.User
	}
	file, err := settings.SaveRules(w.saveOptions(layer), []policy.Rule{r})
	if err == nil {
		w.log.Info("a rule was saved", "rule", r.Text, "file", file)
	}
	return err
}

func (w *wiring) facts() *session.Facts {
	return &session.Facts{
		Dialect: w.o.host.dialect, SessionID: w.sessionID, Cwd: w.cio.Dir, KeySource: w.models.keySource(), Version: version.Own,
		Ledger: w.ledger, PID: os.Getpid(), Spill: w.spill.keep, MaxFrame: w.set.Int(settings.MaxFrameBytes),
		Tools: w.toolNames, MCPServers: w.mcpServers, SlashCommands: w.commandNames, Agents: w.agents.names,
		OutputStyle: w.outputStyle, Capabilities: []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1"},
		ForwardText: w.forwardsText,
	}
}

// toolNames are the names of the tools that the model is offered now.
func (w *wiring) toolNames() []string {
	var out []string
	for _, s := range w.conv.Offered() {
		out = append(out, w.names.Tool(s.Name))
	}
	return out
}

func (w *wiring) forwardsText() bool {
	return w.o.subagentText || w.hostEnv("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT") == "1" || w.host != nil && w.host.forward.Load()
}

// outputStyle is what Claude's settings say; hosts expect it back, whatever it
// is.
func (w *wiring) outputStyle() string {
	if w.o.host.dialect != streamjson.Claude {
		return ""
	}
	return cmp.Or(w.style, settings.ClaudeString(w.ruleOptions(), "outputStyle"))
}

// modelName is the name of the model to start with.
func (w *wiring) modelName() string {
	m, err := w.models.resolve("")
	if err != nil { // newModels built it
		return "unknown"
	}
	return m.Display
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/model/scripted"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/settings"
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
	models    *models
	toolset   *toolset
	engine    *policy.Engine
	policies  policy.Policy // of policy files
	lenient   bool          // problems of policy files are kept, and end nothing
	guarded   []string      // files and folders of policies, which no call changes unasked
	place     policy.Facts  // what policy knows of every call
	asker     policy.Asker
	ledger    *usage.Ledger
	trans     *transcript.Writer // nil: nothing is kept
	system    string
	spill     *spill
	protocol  *protocolLog // --record-protocol; nil without

	closers []func()
}

// newWiring puts a run together. On an error nothing is left open.
func newWiring(ctx context.Context, cio IO, o *options, asker policy.Asker) (_ *wiring, err error) {
	w := &wiring{cio: cio, o: o, asker: asker, ledger: new(usage.Ledger), sessionID: o.sessionID}
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
	for _, step := range []func(context.Context) error{
		w.loadSettings, w.buildModels, w.buildPolicy, w.buildTools, w.buildPrompt, w.buildTranscript, w.buildProtocolLog,
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
	flags := map[string]any{}
	if mode != "" {
		flags[settings.DefaultMode] = string(mode)
	}
	if w.o.model != "" {
		flags[settings.Model] = w.o.model
	}
	if w.o.maxTurns > 0 {
		flags[settings.MaxTurns] = w.o.maxTurns
	}
	if more := w.o.dirs(); len(more) > 0 {
		flags[settings.AdditionalDirectories] = more
	}
	set, err := loadSettings(w.cio, dirs, flags)
	w.set, w.dirs = set, dirs
	return err
}

// loadSettings loads all layers and shows what has no effect.
func loadSettings(cio IO, dirs settings.Dirs, flags map[string]any) (*settings.Settings, error) {
	set, warnings, err := settings.Load(settings.LoadOptions{
		Dirs: dirs, Root: settings.FindRoot(cio.Dir), ManagedFile: settings.ManagedFile, Flags: flags,
	})
	for _, warning := range warnings {
		fmt.Fprintf(cio.Err, "warning: %s\n", warning)
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
	m, err := newModels(ctx, w.cio, w.set, record)
	if err != nil {
		return err
	}
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
	allow, err := parseRules("--allowed-tools", policy.Allow, w.o.allowedTools)
	if err != nil {
		return err
	}
	deny, err := parseRules("--disallowed-tools", policy.Deny, w.o.disallowedTools)
	if err != nil {
		return err
	}
	rules, warnings, err := settings.Rules(w.set, settings.RuleOptions{Dirs: w.dirs, Root: settings.FindRoot(w.cio.Dir)})
	for _, warning := range warnings {
		fmt.Fprintf(w.cio.Err, "warning: %s\n", warning)
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
	w.system, err = w.o.buildSystemPrompt(w.cio.Dir, w.toolset.roots.All(), time.Now())
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

func (w *wiring) buildTranscript(context.Context) error {
	dir, err := w.dirs.SessionsDir()
	if err != nil {
		fmt.Fprintf(w.cio.Err, "warning: the conversation is not kept: %v\n", err)
		return nil
	}
	t, err := transcript.New(transcript.Options{
		Path: transcript.Path(dir, w.cio.Dir, w.sessionID), SessionID: w.sessionID,
		Cwd: w.cio.Dir, Version: version.Own, GitBranch: gitBranch(settings.FindRoot(w.cio.Dir)),
	})
	switch {
	case errors.Is(err, transcript.ErrExists):
		return fail(ExitInput, "--session-id: %w", err)
	case err != nil:
		return fail(ExitUnwritable, "%w", err)
	}
	w.trans, w.closers = t, append(w.closers, func() {
		if err := t.Close(); err != nil {
			w.log.Error("closing the transcript", "error", err)
		}
	})
	return nil
}

// gitBranch reads the current branch without running git, whose configuration
// may come from a stranger; "" if it can't be told.
func gitBranch(root string) string {
	head, err := os.ReadFile(filepath.Join(root, ".git", "HEAD"))
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
func (w *wiring) conversation() *agent.Conversation {
	check := &checkers{runner: sandbox.New(), env: w.cio.Env, log: w.log, history: agent.HistoryOf}
	return agent.New(w.agentConfig(check))
}

func (w *wiring) agentConfig(check *checkers) agent.Config {
	c := agent.Config{
		SessionID: w.sessionID, Resolve: w.models.resolve, System: w.system, Tools: w.toolset.registry,
		Policy: w.engine, Facts: w.place, Mode: w.set.Mode(), Asker: w.asker, Ledger: w.ledger,
		MaxTurns: w.set.Int(settings.MaxTurns), FailOnDenial: w.o.onDeny == "fail", Log: w.log, Spill: w.spill.keep,
	}
	if w.trans != nil {
		c.Transcript = w.trans
	}
	c.Check = check.judge
	c.Save = w.saveRule
	return c
}

// saveRule keeps a rule that the user approved for longer than this run.
func (w *wiring) saveRule(scope policy.Scope, r policy.Rule) error {
	layer := settings.Local
	if scope == policy.ScopeUser {
		layer = settings.User
	}
	file, err := settings.SaveRules(settings.SaveOptions{Dirs: w.dirs, Root: settings.FindRoot(w.cio.Dir), Scope: layer}, []policy.Rule{r})
	if err == nil {
		w.log.Info("a rule was saved", "rule", r.Text, "file", file)
	}
	return err
}

func (w *wiring) facts() *session.Facts {
	f := &session.Facts{
		SessionID: w.sessionID, Cwd: w.cio.Dir, KeySource: w.models.keySource(), Version: version.Own,
		Ledger: w.ledger, PID: os.Getpid(), Spill: w.spill.keep, MaxFrame: w.set.Int(settings.MaxFrameBytes),
	}
	f.Tools = func() []string { return specNames(w.toolset.registry) }
	return f
}

// modelName is the name of the model to start with.
func (w *wiring) modelName() string {
	m, err := w.models.resolve("")
	if err != nil { // newModels built it
		return "unknown"
	}
	return m.Display
}

// Package agent runs a conversation: user inputs become turns, a turn asks the
// model and runs the tools it calls until the model is done or somebody stops
// it. It knows nothing about terminals or JSON lines: whatever happens is an
// Event, whatever needs an answer goes to a policy.Asker.
//
// It promises one TurnEnded for each input, whatever happens, and a tool result
// for each tool call that entered the history.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
	"github.com/agentcli/agent/internal/transcript"
	"github.com/agentcli/agent/internal/usage"
)

// Causes that end a turn before it is done.
var (
	// ErrInterrupted: somebody asked for it; the conversation goes on.
	ErrInterrupted = errors.New("interrupted by the user")
	// ErrStopped: the program is told to end (a signal); no further turn starts.
	ErrStopped = errors.New("stopped")
	// ErrLoop: the model kept making the same call.
	ErrLoop = errors.New("stopped by the loop guard")
	// ErrDenied: a call was denied and the run is to fail then.
	ErrDenied = errors.New("a tool call was denied")
	// ErrMaxTurns: the limit of model round trips is used up.
	ErrMaxTurns = errors.New("turn limit reached")
	// ErrInternal wraps a recovered panic.
	ErrInternal = errors.New("internal error")
)

// Model is a model ready to be asked.
type Model struct {
	Provider     model.Provider
	ProviderName string
	Name         string // as sent in requests
	Display      string // as shown, and named in frames
	Info         model.Info
}

// Transcript is where entries are kept. *transcript.Writer is one.
type Transcript interface {
	// Append writes one entry.
	Append(transcript.Entry) error
	// Sync makes what was appended durable.
	Sync() error
}

// Config is what a Conversation is made of. Fields without a note are needed.
type Config struct {
	SessionID string
	Origin    Origin // of a sub-agent's conversation; zero for the main one
	// Resolve builds the model of a name, offline; "" is the default model.
	Resolve func(name string) (Model, error)
	Model   string // the name to start with; "" is the default
	System  string // may be empty
	Tools   *tools.Registry
	// Names are the names that the model, events and the transcript have of
	// tools; nil: ours.
	Names  *tools.Names
	Policy *policy.Engine
	Facts  policy.Facts // what is the same for every call, such as where it is made
	// Interactive says whether somebody can be asked now; nil: as Facts has it.
	Interactive func() bool
	Mode        policy.Mode
	Asker       policy.Asker
	// Check runs an external safety checker on a call; nil: none can be run, and
	// a call that one must see is denied.
	Check func(ctx context.Context, c *policy.Checker, f policy.Facts) (policy.Behavior, string)
	// Save keeps a rule that the user approved for longer than this session; nil:
	// it holds for the session.
	Save   func(scope policy.Scope, r policy.Rule) error
	Ledger *usage.Ledger

	Transcript     Transcript // nil: nothing is kept
	History        []*model.Message
	MaxTurns       int // model round trips per turn; 0: no limit
	FailOnDenial   bool
	ThinkingBudget int
	MaxOutput      int
	Log            *slog.Logger // nil: none
	Now            func() time.Time
	// Spill keeps a text that is too long to pass on and returns the path of
	// the file; nil: such texts are cut.
	Spill func(toolUseID, text string) (string, error)
}

// Conversation is one dialogue. Run is its worker; the other methods may be
// called from any goroutine at any time.
type Conversation struct {
	cfg   Config
	inbox *inbox
	log   *slog.Logger

	emitMu sync.Mutex
	emit   Emit

	// Owned by the worker.
	history      []*model.Message
	results      int
	unsaved      error            // the transcript's first failure
	specs        []model.ToolSpec // of the tools as they were at specsVersion
	specsVersion uint64

	mu      sync.Mutex // guards the rest
	model   string
	mode    policy.Mode
	cancel  context.CancelCauseFunc // of the running turn; nil when idle
	latched error                   // ends the next turn at once
	working bool                    // the worker took an input
}

// New returns a conversation. Nothing happens until Run.
func New(cfg Config) *Conversation {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ledger == nil {
		cfg.Ledger = new(usage.Ledger)
	}
	if cfg.Asker == nil {
		cfg.Asker = policy.Nobody{}
	}
	return &Conversation{
		cfg: cfg, inbox: newInbox(), log: cfg.Log,
		history: cfg.History, model: cfg.Model, mode: cfg.Mode,
	}
}

// Submit queues an input. It does not block. With too much in the queue
// already the input is queued as a failed one. It reports false when the
// conversation takes no more.
func (c *Conversation) Submit(in Input) bool {
	if in.UUID == "" {
		in.UUID = uuid.NewString()
	}
	return c.inbox.put(in)
}

// CloseInput says that no more inputs come: Run returns after the queued ones.
func (c *Conversation) CloseInput() { c.inbox.close() }

// Interrupt ends the running turn, whatever it is doing, and returns the uuids
// of the inputs that stay queued. An input that was submitted but not begun
// counts as running when nothing else is. With nothing to end it has no effect.
func (c *Conversation) Interrupt(cause error) (queued []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	queued = c.inbox.pending()
	switch {
	case c.cancel != nil:
		c.cancel(cause)
	case c.working || len(queued) > 0:
		c.latched = cause
		if !c.working && len(queued) > 0 {
			queued = queued[1:]
		}
	}
	return queued
}

// SetModel makes name the model from the next model request on. The model is
// built first; on an error the old one stays.
func (c *Conversation) SetModel(name string) error {
	if _, err := c.cfg.Resolve(name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model = name
	return nil
}

// SetMode sets the permission mode, also for calls that wait to be judged.
func (c *Conversation) SetMode(m policy.Mode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = m
}

// Mode returns the permission mode.
func (c *Conversation) Mode() policy.Mode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode
}

// History returns the conversation so far. Only what the worker calls may call
// it: Config.Check, and askers while they are asked. It must not be changed.
func (c *Conversation) History() []*model.Message { return c.history }

// Model returns the name of the model, "" for the default.
func (c *Conversation) Model() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model
}

// Busy reports whether a turn runs.
func (c *Conversation) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working
}

// Emit takes one event. ctx is the turn's: it may block to slow the
// conversation down, but not once ctx ended.
type Emit func(ctx context.Context, from Origin, e Event)

// Run works the inputs off until CloseInput and the queue is empty, or ctx
// ends; a turn that runs then is ended with its result, and the queued inputs
// get theirs. emit gets the events, one at a time. Run is called once.
func (c *Conversation) Run(ctx context.Context, emit Emit) {
	c.emit = emit
	for {
		in, ok, open := c.take()
		switch {
		case ok:
			c.serve(ctx, in)
			continue
		case !open:
			return
		}
		select {
		case <-c.inbox.ready:
		case <-ctx.Done():
			c.inbox.close()
		}
	}
}

func (c *Conversation) take() (Input, bool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, ok, open := c.inbox.take()
	c.working = ok
	return in, ok, open
}

// serve gives in its result, or acknowledges it.
func (c *Conversation) serve(ctx context.Context, in Input) {
	if in.AppendOnly && in.Err == nil {
		c.remember(&model.Message{ID: in.UUID, Role: model.RoleUser, Blocks: in.Blocks}, transcript.Entry{})
		c.send(ctx, &Appended{Input: in})
		c.idle()
		return
	}
	turnCtx, cancel := context.WithCancelCause(ctx)
	c.begin(cancel)
	t := &turn{c: c, in: in, start: c.cfg.Now(), maxTurns: c.cfg.MaxTurns}
	result := t.run(turnCtx)
	cancel(nil)
	c.idle()
	c.sync(&result)
	result.Index = c.results
	result.Queued = c.inbox.len()
	c.results++
	c.send(ctx, &TurnEnded{Result: result})
}

func (c *Conversation) begin(cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
	if c.latched != nil {
		cancel(c.latched)
		c.latched = nil
	}
}

func (c *Conversation) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel, c.working, c.latched = nil, false, nil
}

// send delivers one event.
func (c *Conversation) send(ctx context.Context, e Event) {
	c.emitMu.Lock()
	defer c.emitMu.Unlock()
	c.emit(ctx, c.cfg.Origin, e)
}

// remember adds m to the history and the transcript.
func (c *Conversation) remember(m *model.Message, e transcript.Entry) {
	c.history = append(c.history, m)
	e.UUID, e.Message = m.ID, m
	c.record(e)
}

// record writes an entry; the first failure is kept for the result.
func (c *Conversation) record(e transcript.Entry) {
	if c.cfg.Transcript == nil {
		return
	}
	e.Time = c.cfg.Now()
	c.noteUnsaved(c.cfg.Transcript.Append(e))
}

func (c *Conversation) sync(r *Result) {
	if c.cfg.Transcript != nil && c.unsaved == nil {
		c.noteUnsaved(c.cfg.Transcript.Sync())
	}
	r.Unsaved = c.unsaved != nil
}

func (c *Conversation) noteUnsaved(err error) {
	if err == nil || c.unsaved != nil {
		return
	}
	c.unsaved = err
	c.log.Error("the transcript cannot be written; the conversation goes on without", "error", err)
}

// Unsaved returns why the transcript could not be written, nil if it could. It
// may be called once Run returned.
func (c *Conversation) Unsaved() error { return c.unsaved }

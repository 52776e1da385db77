// Package agent runs a conversation: user inputs become turns, a turn asks the
// model and runs the tools it calls until the model is done or somebody stops
// it. It knows nothing about terminals or JSON lines: whatever happens is an
// Event, whatever needs an answer goes to a policy.Asker.
//
// It promises one TurnEnded for each input, whatever happens, and a tool result
// for each tool call that entered the history.
package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/hooks"
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

	Hooks      *hooks.Runner // nil: none
	HookEvents bool          // tell of each hook that runs: HookStarted, HookEnded
	// Source says how the session came to be, for SessionStart hooks: startup,
	// resume, fork; empty: resume if there is a History, else startup.
	Source string
	// TranscriptPath is the session's file, as hooks are told; a sub-agent's own
	// one is AgentTranscriptPath. Empty: there is none.
	TranscriptPath, AgentTranscriptPath string

	Transcript     Transcript // nil: nothing is kept
	History        []*model.Message
	MaxTurns       int      // model round trips per turn; 0: no limit
	MaxBudgetUSD   float64  // what all requests of the ledger may cost; 0: no limit
	Temperature    *float64 // nil: the model's default
	TopP           *float64 // nil: the model's default
	FailOnDenial   bool
	ThinkingBudget int
	Effort         model.Effort
	MaxOutput      int
	// Fallback are the models to ask, in order, when the one asked can't
	// answer after its retries; for the rest of the turn.
	Fallback []string
	// Prepare, if not nil, is called before each turn says that it starts, and
	// with what: it waits, bounded, for what the turn needs, and returns when ctx
	// ends.
	Prepare func(ctx context.Context)
	// Expand, if not nil, is offered each text of the user that begins with
	// "/". It may call the conversation's setters; an error fails the turn.
	Expand func(ctx context.Context, in Input) (Expansion, error)
	// Reopen returns the transcript of what follows a reset; the one before is
	// its maker's to close. nil: the transcript goes on.
	Reopen func(sessionID string) (Transcript, error)
	// Apply brings a change of permissions into force that came with an answer;
	// nil: rules hold in Policy and modes in the conversation, others are errors.
	Apply func(policy.Update) error
	Words Words        // of denials
	Log   *slog.Logger // nil: none
	Now   func() time.Time
	// MaxServerText bounds the texts that one call of a tool of an MCP server
	// returns, in bytes; 0: as for every tool.
	MaxServerText int
	// Spill keeps a text that is too long to pass on and returns the path of
	// the file; nil: such texts are cut.
	Spill func(toolUseID, text string) (string, error)

	// Tasks owns what runs in the background; Run tells of it as events, and
	// stops what is left at its end. nil: an owner of its own.
	Tasks *tools.Tasks
	// MaxDepth is how many levels of sub-agents there may be; 0: one.
	MaxDepth int
	// WaitForTasks has the result of a turn wait for the sub-agents in the
	// background. Without it they have turns of their own when they end, and the
	// conversation does not end before.
	WaitForTasks bool
	// Away says why a tool that isn't there may yet come, by its name; "" if it
	// never does. nil: none comes.
	Away func(tool string) string
	// SubSystem makes the system prompt of a sub-agent from that of its
	// definition; nil: that is it.
	SubSystem func(prompt string) string
	// SystemNotes is what follows the system prompt of a conversation that has
	// these tools, sub-agents' included; it is asked before each request, so that
	// a text that stays the same keeps what providers cache. nil: nothing.
	SystemNotes func(*tools.Registry) string
	// OwnTools makes anew the tools that keep account of one conversation, such as
	// what it has read: a sub-agent gets them in the place of its caller's. nil:
	// it shares those.
	OwnTools func() []tools.Tool
	// SubTranscript opens the transcript of a sub-agent; nil: none is kept.
	SubTranscript func(SubagentMeta) (SubTranscript, error)
}

// Conversation is one dialogue. Run is its worker; the other methods may be
// called from any goroutine at any time.
type Conversation struct {
	cfg     Config
	inbox   *inbox
	log     *slog.Logger
	backlog *backlog
	parent  *subagent // whose conversation it is; nil: the main one
	depth   int       // 0: the main one

	emitMu sync.Mutex
	emit   Emit

	inherited inherited // from sub-agents

	// Owned by the worker.
	history   []*model.Message
	failed    bool // the last result is an error
	results   int
	unsaved   error // the transcript's first failure
	offer     offer // the tools that were declared last
	hooking   hooking
	postponed bool // the last answer's call was put off: its result may still come

	mu        sync.Mutex // guards the rest
	tune      tuning
	cancel    context.CancelCauseFunc // of the running turn; nil when idle
	latched   error                   // ends the turn that is about to begin
	working   bool                    // the worker took an input that becomes a turn
	found     []string                // deferred tools that were found; never changed in place
	resumable Interruption            // how the last turn ended
	spentUSD  float64                 // what was spent before the ledger was reset
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
	if cfg.Tasks == nil {
		cfg.Tasks = tools.NewTasks()
	}
	return &Conversation{
		cfg: cfg, inbox: newInbox(), log: cfg.Log, backlog: newBacklog(),
		history: cfg.History, tune: newTuning(&cfg), resumable: interruption(cfg.History),
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
//
// With cancelQueued the inputs that would stay are taken away instead and
// returned as cancelled: the caller tells their sender, they get no result.
func (c *Conversation) Interrupt(cause error, cancelQueued bool) (queued, cancelled []string) {
	c.InterruptAfter(cause, cancelQueued, func(q, gone []string) { queued, cancelled = q, gone })
	return queued, cancelled
}

// InterruptAfter is Interrupt that tells receipt, before anything ends, what
// stays queued and what is taken away. receipt must not block or call the
// conversation.
func (c *Conversation) InterruptAfter(cause error, cancelQueued bool, receipt func(queued, cancelled []string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first error // of the waiting inputs is running, if nothing else is
	if c.cancel == nil && !c.working {
		first = cause
	}
	queued := c.inbox.pending(first)
	if cancelQueued {
		c.inbox.drop(queued)
		receipt(nil, queued)
	} else {
		receipt(queued, nil)
	}
	switch {
	case c.cancel != nil:
		c.cancel(cause)
	case c.working:
		c.latched = cause
	}
}

// History returns the conversation so far. Only what the worker calls may call
// it: Config.Check, and askers while they are asked. It must not be changed.
func (c *Conversation) History() []*model.Message { return c.history }

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
	c.emitMu.Lock()
	c.emit = emit
	c.emitMu.Unlock()
	if c.parent == nil {
		defer c.openTasks(ctx)()
	}
	c.hooking.open(ctx)
	defer c.endSession(ctx)
	done := ctx.Done()
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
		case <-done:
			done = nil
			c.inbox.abandon()
		case <-c.idleTimer():
			c.notify(c.hookInput(), "idle_prompt", "The agent is waiting for your input")
		}
	}
}

func (c *Conversation) take() (Input, bool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, ok, open := c.inbox.take()
	c.working = ok && in.hasTurn()
	return in, ok, open
}

// serve gives in its result, or acknowledges it.
func (c *Conversation) serve(ctx context.Context, in Input) {
	if in.clear {
		if err := c.reset(ctx); err != nil {
			c.log.Error("the conversation can't be emptied", "error", err)
		}
		return
	}
	if !in.hasTurn() {
		in.Err = c.checkResults(in.Blocks)
	}
	if !in.hasTurn() {
		blocks := c.settleOpen(ctx, in.Blocks)
		c.remember(&model.Message{ID: in.UUID, Role: model.RoleUser, Blocks: blocks}, transcript.Entry{})
		c.send(ctx, &Appended{Input: in})
		return
	}
	turnCtx, cancel := context.WithCancelCause(ctx)
	c.begin(&in, cancel)
	t := &turn{c: c, in: in, start: c.cfg.Now()}
	result := t.run(turnCtx)
	cancel(nil)
	c.idle(&result)
	c.sync(&result)
	result.Index = c.results
	result.Queued = c.inbox.len()
	c.results++
	c.failed = result.IsError
	if c.parent == nil && c.inbox.exhausted() {
		c.stopTasks(ctx) // so that the last result is the last of all
	}
	c.send(ctx, &TurnEnded{Result: result})
}

func (c *Conversation) begin(in *Input, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
	if cause := cmp.Or(in.interrupted, c.latched); cause != nil {
		cancel(cause)
		c.latched = nil
	}
}

// idle books the end of a turn.
func (c *Conversation) idle(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel, c.working, c.latched = nil, false, nil
	switch how := interruption(c.history); {
	case r.ModelCalls > 0 && r.Subtype == Success && !r.IsError:
		c.resumable = None
	case how == None && r.ModelCalls > 0: // the answer broke off
		c.resumable = InterruptedTurn
	default:
		c.resumable = how
	}
}

// send delivers one event.
func (c *Conversation) send(ctx context.Context, e Event) { c.forward(ctx, c.cfg.Origin, e) }

// forward delivers one event, which may be a sub-agent's.
func (c *Conversation) forward(ctx context.Context, from Origin, e Event) {
	c.emitMu.Lock()
	defer c.emitMu.Unlock()
	c.emit(ctx, from, e)
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

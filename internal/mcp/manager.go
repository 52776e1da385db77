package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentcli/agent/internal/httpclient"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/tools"
)

// State is where a server is.
type State string

// States of servers.
const (
	Connecting   State = "connecting"
	Connected    State = "connected"
	Failed       State = "failed"
	NeedsAuth    State = "needs-auth"
	Disabled     State = "disabled"
	Disconnected State = "disconnected" // away; it is being started again
)

// DefaultWait is how long Wait waits when it isn't told.
const DefaultWait = 30 * time.Second

const (
	defaultConnectTime = 60 * time.Second
	defaultToolTime    = 10 * time.Minute
	// closeTime bounds a polite goodbye.
	closeTime = time.Second
)

// Deferral says whether the tools are declared to the model only once
// tool_search has found them.
type Deferral string

// Deferrals. DeferAuto defers all tools of servers once there are more than
// deferTools of them or their descriptions and schemas come to more than
// deferBytes.
const (
	DeferAuto   Deferral = "auto"
	DeferAlways Deferral = "always"
	DeferNever  Deferral = "never"
)

const (
	deferTools = 40
	deferBytes = 20_000
)

// Options of a Manager. The zero value can run programs and reach the network.
type Options struct {
	Log     *slog.Logger // nil: none
	Sandbox sandbox.Runner
	// HTTP makes the requests of servers on the network; nil: a direct one of
	// httpclient.
	HTTP http.RoundTripper
	// Tunnel reaches servers inside the host; nil: there are none.
	Tunnel Tunnel
	// Env is our environment. Programs get a clean copy of it; MCP_TIMEOUT and
	// MCP_TOOL_TIMEOUT (milliseconds) in it replace the two times below.
	Env []string
	// Dir is the working directory of programs.
	Dir string
	// Roots returns the directories that servers are told of; nil: Dir.
	Roots func() []string
	// ConnectTime limits the making of one connection (0: a minute), ToolTime a
	// call of a tool (0: 10 minutes).
	ConnectTime, ToolTime time.Duration
	// Deferral; empty: DeferAuto.
	Deferral Deferral
	// Hold: servers that are added are connecting in name only until Start or Wait
	// is called.
	Hold bool
	// TrustTunnelled: servers inside the host count as trusted.
	TrustTunnelled bool
	// Client is what servers are told about us.
	ClientName, ClientVersion string
	// OnTools is called, never twice at once, when tools have come, changed or
	// gone. It must not call the Manager. May be nil.
	OnTools func(added []tools.Tool, removed []string)
	// OnChange is called after the state of a server has changed, never twice at
	// once. It must not call the Manager. May be nil.
	OnChange func(server string, state State)
}

// Manager owns the servers. It is safe for concurrent use. Close ends it.
type Manager struct {
	o   Options
	log *slog.Logger

	direct func() (*http.Transport, error) // made once, when it is needed
	made   atomic.Bool                     // direct was needed
	pause  time.Duration                   // before a server that died is started again, at first

	mu      sync.Mutex // guards the rest
	servers map[string]*server
	order   []string
	changed chan struct{} // closed and replaced at each change
	held    bool          // servers aren't started yet
	closed  bool
	running sync.WaitGroup
	ids     map[string]*atomic.Int64 // per tunnelled server

	tellMu  sync.Mutex // held while callbacks run; guards offered
	offered map[string]offer
}

// offer is a tool that was reported, with what it was made from.
type offer struct {
	tool tools.Tool
	mark string
}

// New returns a Manager without servers.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sandbox == nil {
		o.Sandbox = sandbox.New()
	}
	if o.Deferral == "" {
		o.Deferral = DeferAuto
	}
	o.ConnectTime = firstTime(envTime(o.Env, "MCP_TIMEOUT"), o.ConnectTime, defaultConnectTime)
	o.ToolTime = firstTime(envTime(o.Env, "MCP_TOOL_TIMEOUT"), o.ToolTime, defaultToolTime)
	m := &Manager{
		o: o, log: o.Log, pause: firstRestart, held: o.Hold, servers: map[string]*server{}, changed: make(chan struct{}),
		ids: map[string]*atomic.Int64{}, offered: map[string]offer{},
	}
	m.direct = sync.OnceValues(func() (*http.Transport, error) {
		m.made.Store(true)
		return httpclient.New(httpclient.Options{})
	})
	return m
}

func (m *Manager) roundTripper() (http.RoundTripper, error) {
	if m.o.HTTP != nil {
		return m.o.HTTP, nil
	}
	return m.direct()
}

// Getenv returns a lookup in an environment, as Parse takes it; the last of
// several values counts.
func Getenv(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, kv := range slices.Backward(env) {
			if k, v, ok := strings.Cut(kv, "="); ok && k == name {
				return v, true
			}
		}
		return "", false
	}
}

func envTime(env []string, name string) time.Duration {
	v, _ := Getenv(env)(name)
	ms, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
	if err != nil || ms <= 0 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func firstTime(list ...time.Duration) time.Duration {
	for _, d := range list {
		if d > 0 {
			return d
		}
	}
	return 0
}

// Start connects to the servers that were held back, and from now on to each as
// it is added. It returns at once, and may be called again.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held || m.closed {
		return
	}
	m.held = false
	for _, name := range m.order {
		if s := m.servers[name]; s.state == Connecting && s.cancel == nil {
			s.start()
		}
	}
}

// Add starts to connect to servers (see Options.Hold) and returns at once. scope
// says where they were configured ("project", "user", "dynamic", "sdk" ...); a server replaces
// the one of its name, unless that one is the same.
func (m *Manager) Add(scope string, list ...Config) {
	for _, c := range list {
		m.put(scope, c, nil)
	}
	m.publish()
}

// AddFailed lists servers whose configuration is invalid as failed, with the
// error that ConfigErrors gives.
func (m *Manager) AddFailed(scope string, bad map[string]error) {
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		m.put(scope, Config{Name: name}, bad[name])
		m.tell(name, Failed)
	}
	m.publish()
}

// put adds or replaces one server and reports whether that changed anything.
func (m *Manager) put(scope string, c Config, bad error) bool {
	s := &server{m: m, cfg: c, scope: scope, state: Connecting, refresh: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	old := m.servers[c.Name]
	if old != nil {
		if bad == nil && old.bad == nil && old.cfg.same(&c) {
			old.scope = scope
			return false
		}
		old.retire()
	} else {
		m.order = append(m.order, c.Name)
	}
	m.servers[c.Name] = s
	if bad != nil {
		s.bad, s.state, s.err = bad, Failed, bad.Error()
		m.signal()
		return true
	}
	if !m.held {
		s.start()
	}
	return true
}

// SetResult says what Set did.
type SetResult struct {
	Added, Removed []string
	Errors         map[string]error
}

// dynamicScopes are those whose servers Set replaces.
var dynamicScopes = []string{"dynamic", "sdk"}

// Set makes list, and nothing else, the servers of the scopes "dynamic" and
// "sdk": those that aren't in it are closed, those that are the same stay as
// they are. bad are servers whose configuration is invalid, by name; one that
// runs under that name stays. It doesn't wait for connections.
func (m *Manager) Set(list []Config, bad map[string]error) SetResult {
	res := SetResult{Added: []string{}, Removed: []string{}, Errors: map[string]error{}}
	maps.Copy(res.Errors, bad)
	wanted := map[string]bool{}
	for _, c := range list {
		wanted[c.Name] = true
	}
	var gone []string
	m.mu.Lock()
	for _, name := range m.order {
		if s := m.servers[name]; !wanted[name] && bad[name] == nil && slices.Contains(dynamicScopes, s.scope) {
			gone = append(gone, name)
		}
	}
	m.mu.Unlock()
	for _, name := range gone {
		if m.Remove(name) {
			res.Removed = append(res.Removed, name)
		}
	}
	for _, c := range list {
		scope := "dynamic"
		if c.Type == TypeSDK {
			scope = "sdk"
		}
		if m.put(scope, c, nil) {
			res.Added = append(res.Added, c.Name)
		}
	}
	m.publish()
	return res
}

// Remove closes a server and forgets it; it reports whether there was one.
func (m *Manager) Remove(name string) bool {
	m.mu.Lock()
	s := m.servers[name]
	if s != nil {
		delete(m.servers, name)
		m.order = slices.DeleteFunc(m.order, func(n string) bool { return n == name })
		s.retire()
		m.signal()
	}
	m.mu.Unlock()
	m.publish()
	return s != nil
}

// signal tells those who wait that something changed. m.mu is held.
func (m *Manager) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Wait starts what is held back, and waits until no server is connecting. Each is
// waited for no longer than limit (0: DefaultWait, or MCP_TIMEOUT of the
// environment) from its start on: one that hangs delays whoever waits first, and
// not everybody again. Nothing is waited for once the Manager is closed. It
// returns the names of those that are connecting still: they go on, and their
// tools are reported when they come.
func (m *Manager) Wait(ctx context.Context, limit time.Duration) []string {
	m.Start()
	limit = firstTime(limit, envTime(m.o.Env, "MCP_TIMEOUT"), DefaultWait)
	for {
		waiting, left, changed := m.connecting(limit)
		if left <= 0 {
			return waiting
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return waiting
		}
	}
}

// connecting lists the servers that are connecting. It says how long one of them
// is still to be waited for, and what is closed when something changes.
func (m *Manager) connecting(limit time.Duration) (names []string, left time.Duration, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.order {
		if s := m.servers[name]; s.state == Connecting {
			names = append(names, name)
			left = max(left, limit-time.Since(s.since))
		}
	}
	if m.closed {
		left = 0
	}
	return names, left, m.changed
}

// await waits until a server is no longer connecting, and returns its state and
// error.
func (m *Manager) await(ctx context.Context, s *server) (State, string) {
	for {
		m.mu.Lock()
		state, err, changed, retired := s.state, s.err, m.changed, s.retired
		m.mu.Unlock()
		switch {
		case retired:
			return Disconnected, "it was closed or replaced meanwhile"
		case state != Connecting:
			return state, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Connecting, "it is still connecting"
		}
	}
}

func (m *Manager) find(name string) (*server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[name]
	if s == nil {
		return nil, &UnknownServerError{Name: name, Known: slices.Clone(m.order)}
	}
	return s, nil
}

// UnknownServerError names a server that there is not.
type UnknownServerError struct {
	Name  string
	Known []string
}

func (e *UnknownServerError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no MCP server %q: none is configured", e.Name)
	}
	return fmt.Sprintf("there is no MCP server %q; there are: %s", e.Name, strings.Join(e.Known, ", "))
}

// Reconnect begins to connect to a server anew, whatever its state. wait returns
// when it is connected, or an error when it isn't or ctx ends; nil: err says why
// nothing was begun.
func (m *Manager) Reconnect(name string) (wait func(context.Context) error, err error) {
	s, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return m.restart(s)
}

// Toggle turns a server off, its tools gone, or on again, as Reconnect does; wait
// is nil when there is nothing to wait for.
func (m *Manager) Toggle(name string, enabled bool) (wait func(context.Context) error, err error) {
	s, err := m.find(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	off := s.state == Disabled
	if !enabled && !off {
		s.retire()
		s.set(Disabled, "")
	}
	m.mu.Unlock()
	switch {
	case enabled && off:
		return m.restart(s)
	case !enabled && !off:
		m.publish()
		m.tell(name, Disabled)
	}
	return nil, nil
}

// restart replaces a server by a new one of its configuration.
func (m *Manager) restart(old *server) (wait func(context.Context) error, err error) {
	if old.bad != nil {
		return nil, old.bad
	}
	name := old.cfg.Name
	s := &server{m: m, cfg: old.cfg, scope: old.scope, state: Connecting, refresh: make(chan struct{}, 1)}
	m.mu.Lock()
	if m.closed || m.servers[name] != old {
		m.mu.Unlock()
		return nil, fmt.Errorf("MCP server %q is gone or has been replaced meanwhile", name)
	}
	old.retire()
	m.servers[name] = s
	s.start()
	m.mu.Unlock()
	m.publish()
	return func(ctx context.Context) error {
		if state, why := m.await(ctx, s); state != Connected {
			return fmt.Errorf("MCP server %q: %s: %s", name, state, why)
		}
		return nil
	}, nil
}

// Names returns the names of the servers in the order in which they came.
func (m *Manager) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.order)
}

// Close takes all servers down: stdin closed, SIGTERM, SIGKILL, whole trees. It
// returns when all are gone, or with an error when ctx ends before.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	for _, s := range m.servers {
		s.retire()
	}
	m.signal()
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when all servers have
		m.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("closing MCP servers: %w", context.Cause(ctx))
	}
	if m.made.Load() {
		if t, err := m.direct(); err == nil {
			t.CloseIdleConnections()
		}
	}
	return nil
}

// tell calls OnChange.
func (m *Manager) tell(name string, state State) {
	if m.o.OnChange == nil {
		return
	}
	m.tellMu.Lock()
	defer m.tellMu.Unlock()
	m.o.OnChange(name, state)
}

var errNotConnected = errors.New("it is not connected")

// notConnected says why a server can't be used.
func notConnected(name string, state State, why string) error {
	if why != "" {
		return fmt.Errorf("MCP server %q is %s: %s", name, state, why)
	}
	return fmt.Errorf("MCP server %q is %s: %w", name, state, errNotConnected)
}

// rawJSON marshals what is known to be possible to marshal.
func rawJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

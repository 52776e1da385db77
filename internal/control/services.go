package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/agentcli/agent/internal/policy"
)

// Services are the domains through which the rest of the program meets the
// control plane, without knowing requests and responses. The controllers use
// them too. All are safe for concurrent use.
type Services struct {
	Permission *PermissionService
	System     *SystemService
	MCP        *MCPService
	Hooks      *HookService
}

func newServices(d *Dispatcher) *Services {
	return &Services{
		Permission: &PermissionService{d: d, watchers: map[int]func(ToolCallUpdate){}},
		System:     &SystemService{d: d},
		MCP:        &MCPService{d: d, clients: map[string]*MCPClient{}},
		Hooks:      &HookService{own: map[string]HookFunc{}},
	}
}

// CanUseTool answers whether a call may run.
type CanUseTool func(ctx context.Context, q policy.ToolPermission) (policy.Answer, error)

// PermissionService is the domain of permissions.
type PermissionService struct {
	d *Dispatcher

	mu       sync.Mutex
	answer   CanUseTool
	watchers map[int]func(ToolCallUpdate)
	next     int
}

// ToolCallState is how far the question about a call is.
type ToolCallState string

// States of a question.
const (
	ToolCallAsking  ToolCallState = "asking"  // it was put to whoever answers
	ToolCallAllowed ToolCallState = "allowed" // and answered
	ToolCallDenied  ToolCallState = "denied"
	ToolCallFailed  ToolCallState = "failed" // nobody answered: Err says why
)

// ToolCallUpdate says that the question about a call has moved on.
type ToolCallUpdate struct {
	Tool      string // our name
	ToolUseID string
	Agent     string // id of the sub-agent that calls; "": the conversation itself
	State     ToolCallState
	Err       error
}

// BuildSuggestions returns what could be done about a call; nil if the program
// can't judge calls.
func (s *PermissionService) BuildSuggestions(c ToolCall) []policy.Suggestion {
	if s.d.effects.Judge == nil {
		return nil
	}
	return s.d.effects.Judge.Suggest(c)
}

// WatchToolCalls has f called with each update, in order for each call, by the
// goroutine that asks: f must return soon. It returns what ends that.
func (s *PermissionService) WatchToolCalls(f func(ToolCallUpdate)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.watchers[id] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

// SetCanUseTool has f answer questions about calls in place of the host; nil:
// the host answers again.
func (s *PermissionService) SetCanUseTool(f CanUseTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// ask puts a question to whoever answers and tells the watchers.
func (s *PermissionService) ask(ctx context.Context, q policy.ToolPermission) (policy.Answer, error) {
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		answer = s.d.permission.askHost
	}
	u := ToolCallUpdate{Tool: q.ToolName, ToolUseID: q.ToolUseID, Agent: q.Agent, State: ToolCallAsking}
	s.tell(u)
	a, err := answer(ctx, q)
	switch {
	case err != nil:
		u.State, u.Err = ToolCallFailed, err
	case a.Allow:
		u.State = ToolCallAllowed
	default:
		u.State = ToolCallDenied
	}
	s.tell(u)
	return a, err
}

func (s *PermissionService) tell(u ToolCallUpdate) {
	s.mu.Lock()
	ids := make([]int, 0, len(s.watchers))
	for id := range s.watchers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := make([]func(ToolCallUpdate), len(ids))
	for i, id := range ids {
		list[i] = s.watchers[id]
	}
	s.mu.Unlock()
	for _, f := range list {
		f(u)
	}
}

// SystemService is the domain of the session as a whole.
type SystemService struct{ d *Dispatcher }

// Capabilities returns what the program can do in this session.
func (s *SystemService) Capabilities() Capabilities {
	var tools []string
	if s.d.effects.Session != nil {
		tools = s.d.effects.Session.Describe().Tools
	}
	return s.d.system.capabilities(tools)
}

// MCPService is the domain of MCP servers.
type MCPService struct {
	d *Dispatcher

	mu      sync.Mutex
	clients map[string]*MCPClient
}

// MCPClient sends messages to one server inside the host.
type MCPClient struct {
	name string
	c    *SDKMCPController
}

// Name returns the server's name.
func (c *MCPClient) Name() string { return c.name }

// Send is SDKMCPController.Send for this server.
func (c *MCPClient) Send(ctx context.Context, message json.RawMessage) (json.RawMessage, error) {
	return c.c.send(ctx, c.name, message)
}

// Client returns the client of a server inside the host, the same for each
// name. The error names a server that isn't there.
func (s *MCPService) Client(name string) (*MCPClient, error) {
	if !s.d.mcp.knows(name) {
		return nil, fmt.Errorf("there is no MCP server %q in the host", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[name]
	if c == nil {
		c = &MCPClient{name: name, c: s.d.mcp}
		s.clients[name] = c
	}
	return c, nil
}

// Servers returns the state of all MCP servers, by name.
func (s *MCPService) Servers() []ServerStatus {
	if s.d.effects.Servers == nil {
		return nil
	}
	return s.d.mcp.list()
}

// HookFunc is a hook of the program's own. It returns the hook's output object;
// nil is no opinion.
type HookFunc func(ctx context.Context, input json.RawMessage, toolUseID string) (json.RawMessage, error)

// HookService is the domain of hooks.
type HookService struct {
	mu   sync.Mutex
	own  map[string]HookFunc
	last int
}

// Register makes f callable by hook_callback, under the id that it returns.
func (s *HookService) Register(f HookFunc) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id = "own_" + strconv.Itoa(s.last)
	s.own[id] = f
	return id
}

func (s *HookService) find(id string) HookFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[id]
}

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentcli/agent/internal/streamjson"
)

// SDKMCPController carries JSON-RPC to MCP servers inside the host, and answers
// the host's requests about MCP servers.
type SDKMCPController struct {
	d *Dispatcher

	mu      sync.Mutex
	servers map[string]bool // inside the host
}

// Register names servers that are inside the host, besides those already known:
// from flags, or from initialize.
func (c *SDKMCPController) Register(servers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range servers {
		c.servers[name] = true
	}
}

// SDKServers lists the servers inside the host, sorted.
func (c *SDKMCPController) SDKServers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]string, 0, len(c.servers))
	for name := range c.servers {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (c *SDKMCPController) knows(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[server]
}

// MCPMessageRequest is mcp_message, both ways.
type MCPMessageRequest struct {
	ServerName string         `json:"server_name"`
	Message    jsontext.Value `json:"message"`
}

// Send carries a JSON-RPC message to a server inside the host. It returns the
// reply to a request as it came, JSON-RPC errors included, and nil for a
// notification or a response, once the host has taken it.
func (c *SDKMCPController) Send(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	client, err := c.d.services.MCP.Client(server)
	if err != nil {
		return nil, err
	}
	return client.Send(ctx, message)
}

func (c *SDKMCPController) send(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	if !isObject(message) {
		return nil, fmt.Errorf("the message for the MCP server %q is no JSON-RPC object", server)
	}
	if isHandshake(message) { // it follows the response to the initialize that asks for it
		if err := c.d.opened(ctx); err != nil {
			return nil, err
		}
	}
	raw, err := c.d.Call(ctx, callMCP, &MCPMessageRequest{ServerName: server, Message: jsontext.Value(message)})
	if err != nil {
		return nil, err
	}
	if !isCall(message) {
		return nil, nil // the host answers these too, with a dummy that must not match anything
	}
	var reply MCPMessageReply
	if isNull(raw) || decode(raw, &reply) != nil || !isObject(reply.Response) {
		return nil, protocolError(fmt.Sprintf("Invalid MCP response from SDK for server '%s'", server))
	}
	return json.RawMessage(reply.Response), nil
}

// isHandshake reports whether a JSON-RPC message opens a connection.
func isHandshake(message json.RawMessage) bool {
	var m struct {
		Method string `json:"method"`
	}
	return decode(message, &m) == nil && m.Method == "initialize"
}

// isCall reports whether a JSON-RPC message wants a reply.
func isCall(message json.RawMessage) bool {
	var m struct {
		ID     jsontext.Value `json:"id"`
		Method jsontext.Value `json:"method"`
	}
	return decode(message, &m) == nil && !isNull(m.ID) && !isNull(m.Method)
}

// MCPMessageResponse is the native response to mcp_message.
type MCPMessageResponse struct {
	Error    *string        `json:"error"`
	Response jsontext.Value `json:"mcp_response"`
}

// message is mcp_message from the host.
func (c *SDKMCPController) message(r *request) (any, error) {
	var in MCPMessageRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.ServerName == "" {
		return nil, badField("server_name", "is missing")
	}
	if !isObject(in.Message) {
		return nil, badField("message", "want a JSON-RPC object")
	}
	reply, err := c.d.effects.Servers.Message(r.ctx, in.ServerName, json.RawMessage(in.Message))
	if err != nil {
		return nil, err
	}
	if c.d.cfg.Dialect == streamjson.Claude && reply == nil {
		return nil, nil
	}
	if reply == nil {
		reply = json.RawMessage("null")
	}
	return &MCPMessageResponse{Response: jsontext.Value(reply)}, nil
}

// ServerStatusResponse is the response to mcp_server_status.
type ServerStatusResponse struct {
	Subtype string            `json:"subtype"`
	Status  map[string]string `json:"status"`
	Servers []ServerState     `json:"servers,omitzero"` // native
}

// ServerState is one server in it.
type ServerState struct {
	Name   string       `json:"name"`
	Status string       `json:"status"`
	Type   string       `json:"type"`
	Error  string       `json:"error,omitzero"`
	Tools  []ServerTool `json:"tools,omitzero"`
}

// list are the servers by name.
func (c *SDKMCPController) list() []ServerStatus {
	list := slices.Clone(c.d.effects.Servers.ServerStatus())
	slices.SortFunc(list, func(a, b ServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (c *SDKMCPController) serverStatus(r *request) (any, error) {
	out := &ServerStatusResponse{Subtype: r.subtype, Status: map[string]string{}}
	if c.d.cfg.Dialect == streamjson.Native {
		out.Servers = []ServerState{}
	}
	for _, s := range c.list() {
		out.Status[s.Name] = s.State
		if out.Servers != nil {
			out.Servers = append(out.Servers, ServerState{s.Name, s.State, s.Type, s.Error, s.Tools})
		}
	}
	return out, nil
}

// MCPStatusResponse is the response to mcp_status.
type MCPStatusResponse struct {
	Servers []MCPServerStatus `json:"mcpServers"`
}

// MCPServerStatus is one server in it.
type MCPServerStatus struct {
	Name   string         `json:"name"`
	Status string         `json:"status"`
	Info   jsontext.Value `json:"serverInfo,omitzero"`
	Error  string         `json:"error,omitzero"`
	Config jsontext.Value `json:"config,omitzero"`
	Scope  string         `json:"scope,omitzero"`
	Source string         `json:"source,omitzero"`
	Tools  []ServerTool   `json:"tools,omitzero"`
}

func (c *SDKMCPController) status(*request) (any, error) {
	out := &MCPStatusResponse{}
	for _, s := range c.list() {
		out.Servers = append(out.Servers, MCPServerStatus{
			Name: s.Name, Status: ClaudeState(s.State), Info: jsontext.Value(s.Info), Error: s.Error,
			Config: jsontext.Value(s.Config), Scope: s.Source, Source: s.Source, Tools: s.Tools,
		})
	}
	return out, nil
}

// ClaudeState is the state of a server in Claude's words.
func ClaudeState(state string) string {
	switch state {
	case StateConnecting:
		return "pending"
	case StateDisconnected:
		return StateFailed
	}
	return state
}

// serverName reads the name of a server in either spelling.
func serverName(r *request) (string, error) {
	var in ServerRequest
	if err := decode(r.body, &in); err != nil {
		return "", err
	}
	if name := orElse(in.Name, in.Other); name != "" {
		return name, nil
	}
	return "", badField("serverName", "is missing")
}

func (c *SDKMCPController) reconnect(r *request) (any, error) {
	name, err := serverName(r)
	if err != nil {
		return nil, err
	}
	return c.begun(r)(c.d.effects.ServerAdmin.Reconnect(name))
}

// begun returns what makes a payload of a change of servers that has begun: once
// it is complete.
func (c *SDKMCPController) begun(r *request) func(wait func(context.Context) error, err error) (any, error) {
	return func(wait func(context.Context) error, err error) (any, error) {
		if err != nil || wait == nil {
			return c.d.system.plain(r), err
		}
		return later(func() (any, error) {
			if err := wait(r.ctx); err != nil {
				return nil, err
			}
			return c.d.system.plain(r), nil
		}), nil
	}
}

func (c *SDKMCPController) toggle(r *request) (any, error) {
	name, err := serverName(r)
	if err != nil {
		return nil, err
	}
	var in ToggleRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.Enabled == nil {
		return nil, badField("enabled", "is missing")
	}
	return c.begun(r)(c.d.effects.ServerAdmin.Toggle(name, *in.Enabled))
}

// SetServersResponse is the response to mcp_set_servers.
type SetServersResponse struct {
	Subtype string            `json:"subtype,omitzero"`
	Added   []string          `json:"added"`
	Removed []string          `json:"removed"`
	Errors  map[string]string `json:"errors"`
}

func (c *SDKMCPController) setServers(r *request) (any, error) {
	var in SetServersRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	servers, err := configs("servers", in.Servers)
	if err != nil {
		return nil, err
	}
	c.Register(sdkNames(servers)...)
	added, removed, errs := c.d.effects.ServerAdmin.SetServers(r.ctx, servers)
	out := &SetServersResponse{Added: added, Removed: removed, Errors: errs}
	if c.d.cfg.Dialect != streamjson.Claude {
		out.Subtype = r.subtype
	}
	return out, nil
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// FromHost takes a JSON-RPC message that the host sent for a server. From a
// server inside the host it enters the tunnel, as if the server had sent it; to
// a server of ours it is forwarded under an id of our own, and the reply comes
// back under the host's. The reply to a request is returned, errors of the
// server included; nil to a notification. An error means that the message
// reached nobody.
func (m *Manager) FromHost(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	msg, err := jsonrpc.DecodeMessage([]byte(string(message))) // it may keep pieces of its text
	if err != nil {
		return nil, fmt.Errorf("the message for MCP server %q is no JSON-RPC 2.0 message: %w", server, err)
	}
	r, ok := msg.(*jsonrpc.Request)
	if !ok {
		return nil, fmt.Errorf("the message for MCP server %q is a reply: replies belong in the response to the mcp_message that asked", server)
	}
	l, c, err := m.linkTo(m.realName(server))
	if err != nil {
		return nil, err
	}
	if l.tunnel != nil {
		return l.tunnel.fromHost(ctx, r)
	}
	if !r.IsCall() {
		return nil, nil // the session's life is ours: initialized, and cancellations of what is over
	}
	ctx, cancel := l.within(ctx, firstTime(c.Timeout, m.o.ToolTime))
	defer cancel()
	reply := &jsonrpc.Response{ID: r.ID}
	reply.Result, err = l.forward(ctx, r)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		reply.Result, reply.Error = nil, refused
	case err != nil:
		return nil, fmt.Errorf("MCP server %q: %w", server, l.why(err))
	}
	return jsonrpc.EncodeMessage(reply)
}

// forward sends a request of the host to the server.
func (l *link) forward(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	s := l.session
	switch r.Method {
	case "initialize": // it has happened; a second one would end the session
		return rawJSON(s.InitializeResult()), nil
	case "ping":
		return pass(ctx, r, func(ctx context.Context, p *sdk.PingParams) (struct{}, error) { return struct{}{}, s.Ping(ctx, p) })
	case "tools/list":
		return pass(ctx, r, s.ListTools)
	case "tools/call":
		return pass(ctx, r, s.CallTool)
	case "prompts/list":
		return pass(ctx, r, s.ListPrompts)
	case "prompts/get":
		return pass(ctx, r, s.GetPrompt)
	case "resources/list":
		return pass(ctx, r, s.ListResources)
	case "resources/templates/list":
		return pass(ctx, r, s.ListResourceTemplates)
	case "resources/read":
		return pass(ctx, r, s.ReadResource)
	case "completion/complete":
		return pass(ctx, r, s.Complete)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not forwarded to servers", r.Method)}
}

// pass decodes the parameters of r, calls, and encodes what comes back.
func pass[P, R any](ctx context.Context, r *jsonrpc.Request, call func(context.Context, *P) (R, error)) (json.RawMessage, error) {
	params := new(P)
	if len(r.Params) > 0 {
		if err := json.Unmarshal(r.Params, params); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the parameters don't fit the method: " + err.Error()}
		}
	}
	res, err := call(ctx, params)
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

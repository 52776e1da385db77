package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

// Resource is something that a server lets be read.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Size        int64  `json:"size,omitempty"`
}

// Resources lists the resources of a server, of all that are connected if
// server is empty. The error names the servers that could not be asked; what
// the others have is returned all the same.
func (m *Manager) Resources(ctx context.Context, server string) ([]Resource, error) {
	if server != "" {
		return m.resourcesOf(ctx, server)
	}
	var (
		all  []Resource
		errs []error
	)
	m.mu.Lock()
	names := slices.DeleteFunc(slices.Clone(m.order), func(n string) bool {
		s := m.servers[n]
		return s.link == nil || !s.resources
	})
	m.mu.Unlock()
	for _, name := range names {
		list, err := m.resourcesOf(ctx, name)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, list...)
	}
	return all, errors.Join(errs...)
}

func (m *Manager) resourcesOf(ctx context.Context, name string) ([]Resource, error) {
	l, c, err := m.linkTo(m.realName(name))
	if err != nil {
		return nil, err
	}
	ctx, cancel := l.within(ctx, firstTime(c.Timeout, m.o.ToolTime))
	defer cancel()
	list, err := pages(func(cursor string) ([]*sdk.Resource, string, error) {
		r, err := l.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.Resources, r.NextCursor, nil
	})
	if err != nil {
		return nil, fmt.Errorf("MCP server %q: %w", c.Name, err)
	}
	var out []Resource
	for _, r := range list {
		if r != nil {
			out = append(out, Resource{c.Name, r.URI, r.Name, r.Description, r.MIMEType, r.Size})
		}
	}
	return out, nil
}

// ReadResource reads a resource: the server's "contents" as JSON, and blocks
// for the model.
func (m *Manager) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, []model.Block, error) {
	l, c, err := m.linkTo(m.realName(server))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := l.within(ctx, firstTime(c.Timeout, m.o.ToolTime))
	defer cancel()
	r, err := l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, nil, fmt.Errorf("MCP server %q: %w", c.Name, l.why(err))
	}
	var blocks []model.Block
	for _, part := range r.Contents {
		if part != nil {
			blocks = append(blocks, resourceBlock(part))
		}
	}
	if r.Contents == nil {
		r.Contents = []*sdk.ResourceContents{}
	}
	return rawJSON(r.Contents), blocks, nil
}

// realName returns the name of the server that name means: its own, or as it
// stands in the names of its tools.
func (m *Manager) realName(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.servers[name] == nil {
		for _, n := range m.order {
			if SafeName(n) == name {
				return n
			}
		}
	}
	return name
}

// listResources is the tool list_mcp_resources.
type listResources struct{ m *Manager }

// Spec implements tools.Tool.
func (*listResources) Spec() tools.Spec {
	return tools.Spec{
		Name:        "list_mcp_resources",
		Description: "Lists the resources that MCP servers offer: the server, URI, name and type of each. Read one with read_mcp_resource.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"server":{"type":"string","description":"Only this server's resources. Leave it out for all."}}}`),
		Class:       policy.ClassInternal, ReadOnly: true,
	}
}

// Run implements tools.Tool.
func (t *listResources) Run(ctx context.Context, call *tools.Call) tools.Result {
	var in struct {
		Server string `json:"server"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil && len(call.Input) > 0 {
		return tools.Fail("list_mcp_resources: the input must be an object with \"server\" (a string) or nothing.")
	}
	list, err := t.m.Resources(ctx, in.Server)
	if err != nil && len(list) == 0 {
		return tools.Fail(err.Error())
	}
	text := "No resources."
	if len(list) > 0 {
		text = string(rawJSON(list))
	}
	if err != nil {
		text += "\n\nNot all servers could be asked: " + err.Error()
	}
	res := tools.Text(text)
	if list == nil {
		list = []Resource{}
	}
	res.Display = list
	return res
}

// readResource is the tool read_mcp_resource.
type readResource struct{ m *Manager }

// Spec implements tools.Tool.
func (*readResource) Spec() tools.Spec {
	return tools.Spec{
		Name:        "read_mcp_resource",
		Description: "Reads one resource of an MCP server. list_mcp_resources lists servers and URIs.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"server":{"type":"string","description":"The name of the server."},` +
			`"uri":{"type":"string","description":"The URI of the resource."}},"required":["server","uri"]}`),
		Class: policy.ClassMCP, ReadOnly: true,
	}
}

// Run implements tools.Tool.
func (t *readResource) Run(ctx context.Context, call *tools.Call) tools.Result {
	var in struct {
		Server     string `json:"server"`
		ServerName string `json:"server_name"`
		URI        string `json:"uri"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return tools.Fail("read_mcp_resource: the input must be an object with \"server\" and \"uri\", both strings.")
	}
	if in.Server == "" {
		in.Server = in.ServerName
	}
	if in.Server == "" || strings.TrimSpace(in.URI) == "" {
		return tools.Fail("\"server\" and \"uri\" are needed; the list of resources has them.")
	}
	contents, blocks, err := t.m.ReadResource(ctx, in.Server, in.URI)
	if err != nil {
		return tools.Fail(err.Error())
	}
	if len(blocks) == 0 {
		blocks = []model.Block{model.Text{Text: "(the resource is empty)"}}
	}
	return tools.Result{Blocks: blocks, Display: map[string]json.RawMessage{"contents": contents}}
}

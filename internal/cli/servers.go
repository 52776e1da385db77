package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/mcp"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// serversGrace bounds the goodbye of MCP servers at the end of a run.
const serversGrace = 3 * time.Second

// serverSet is MCP servers that were read, with those whose configuration is
// wrong.
type serverSet struct {
	list []mcp.Config
	bad  map[string]error
}

// buildServers makes the owner of the MCP servers that flags and settings name. It
// starts them, but with a host only once that has its first answer, or with the
// first turn: they would take time from it. Nothing is waited for.
func (w *wiring) buildServers(context.Context) error {
	o := mcp.Options{
		Log: w.log, HTTP: w.models.http.Transport, Env: w.cio.Env, Dir: w.cio.Dir, Roots: w.toolset.roots.All,
		TrustTunnelled: w.o.host.dialect == streamjson.Qwen,
		ClientName:     "agent", ClientVersion: version.Own, OnTools: w.serverTools,
		Hold: w.host != nil,
	}
	if w.host != nil {
		o.Tunnel = w.host.disp.SDKMCP()
	}
	w.servers = mcp.New(o)
	w.closers = append(w.closers, func() {
		ctx, cancel := context.WithTimeout(context.Background(), serversGrace)
		defer cancel()
		if err := w.servers.Close(ctx); err != nil {
			w.log.Warn("an MCP server does not end", "error", err)
		}
	})
	return w.addConfigured()
}

// addConfigured adds the servers of flags and settings.
func (w *wiring) addConfigured() error {
	for _, given := range w.o.mcpConfig {
		data := []byte(given)
		if !strings.HasPrefix(strings.TrimSpace(given), "{") {
			text, err := readTextFile("--mcp-config", given)
			if err != nil {
				return err
			}
			data = []byte(text)
		}
		set, err := sortOut(mcp.Parse(data, mcp.Getenv(w.cio.Env)))
		if err != nil {
			return fail(ExitUsage, "--mcp-config: %w", err)
		}
		w.addServers("dynamic", set)
	}
	if w.o.strictMCP {
		return nil
	}
	set, err := w.parseServers(w.set.Objects(settings.MCPServers))
	if err != nil {
		return fail(ExitSettings, "%s: %w", settings.MCPServers, err)
	}
	w.addServers("user", set)
	if set, err = w.parseServers(w.foreignServers); err != nil {
		return fail(ExitSettings, "%s of qwen-code's settings: %w", settings.MCPServers, err)
	}
	w.addServers("user", set)
	return nil
}

// parseServers reads configurations by name. One that is wrong is no error: its
// server has failed.
func (w *wiring) parseServers(servers map[string]json.RawMessage) (serverSet, error) {
	if len(servers) == 0 {
		return serverSet{}, nil
	}
	return sortOut(mcp.ParseServers(servers, mcp.Getenv(w.cio.Env)))
}

// sortOut tells errors of single servers from one of the whole.
func sortOut(list []mcp.Config, err error) (serverSet, error) {
	if err == nil {
		return serverSet{list: list}, nil
	}
	bad := mcp.ConfigErrors(err)
	if len(bad) == 0 {
		return serverSet{}, err
	}
	return serverSet{list, bad}, nil
}

// addServers adds servers. Those inside the host are only reached.
func (w *wiring) addServers(scope string, set serverSet) {
	if len(set.list)+len(set.bad) == 0 {
		return // whom to trust is as before
	}
	for _, c := range set.list {
		at := scope
		if c.Type == mcp.TypeSDK {
			at = "sdk"
			if w.host == nil {
				w.warn(fmt.Sprintf("MCP server %q is inside a host, and none is there: it is left out", c.Name))
				continue
			}
			w.host.disp.SDKMCP().Register(c.Name)
		}
		w.distrust(c)
		w.servers.Add(at, c)
	}
	w.servers.AddFailed(scope, set.bad)
	w.trust()
}

// addTunnelled reaches servers inside the host.
func (w *wiring) addTunnelled(names []string) {
	var set serverSet
	for _, name := range names {
		set.list = append(set.list, mcp.SDKConfig(name))
	}
	w.addServers("sdk", set)
}

// trustOrigin is the Origin of rules for trusted servers.
const trustOrigin = "trusted MCP server"

// trust lets the tools of the trusted servers of now run without a question, and
// those of no others; what denies or asks by rule still does.
func (w *wiring) trust() {
	trusted := map[string]bool{}
	list := w.servers.Status()
	for _, s := range list {
		if s.Trusted {
			trusted[mcp.SafeName(s.Name)] = true
		}
	}
	for _, s := range list { // one name, or the names of tools, may stand for several
		if s.Trusted {
			continue
		}
		own := mcp.SafeName(s.Name)
		maps.DeleteFunc(trusted, func(name string, _ bool) bool { return name == own || strings.HasPrefix(name, own+"__") })
	}
	w.engine.Remove(w.trustRules(func(server string) bool { return !trusted[server] })...)
	for _, server := range slices.Sorted(maps.Keys(trusted)) {
		r, err := policy.ParseRule("mcp__"+server, policy.Allow, trustOrigin)
		if err != nil {
			w.log.Error("a trusted MCP server's tools will ask", "server", server, "error", err)
			continue
		}
		w.engine.Add(r)
	}
}

// distrust takes back the trust in a server before another configuration takes
// its place.
func (w *wiring) distrust(c mcp.Config) {
	w.engine.Remove(w.trustRules(func(server string) bool { return server == mcp.SafeName(c.Name) })...)
}

// trustRules are the rules for the trusted servers that are wanted.
func (w *wiring) trustRules(wanted func(server string) bool) []policy.Rule {
	return slices.DeleteFunc(w.engine.Rules(), func(r policy.Rule) bool {
		server, ok := strings.CutPrefix(r.Text, "mcp__")
		return r.Origin != trustOrigin || !ok || !wanted(server)
	})
}

// awayTool says why a tool of an MCP server isn't there, if the server isn't:
// agent.Config.Away.
func (w *wiring) awayTool(tool string) string {
	for _, s := range w.servers.Status() {
		if s.State != mcp.Connected && strings.HasPrefix(tool, "mcp__"+mcp.SafeName(s.Name)+"__") {
			return fmt.Sprintf("the MCP server %q is %s", s.Name, s.State)
		}
	}
	return ""
}

// serverTools takes tools of MCP servers that have come or gone.
func (w *wiring) serverTools(added []tools.Tool, removed []string) {
	w.offering.Lock()
	defer w.offering.Unlock()
	w.toolset.registry.Remove(func(s tools.Spec) bool { return slices.Contains(removed, s.Name) })
	added = slices.DeleteFunc(slices.Clone(added), func(t tools.Tool) bool { return !w.wanted(t.Spec()) })
	w.toolset.registry.Add(added...)
}

// waitForServers gives MCP servers time to come before the model is asked. A
// person is told, once of each, which are not there; a host has their status.
func (w *wiring) waitForServers(ctx context.Context) {
	if late := w.servers.Wait(ctx, 0); len(late) > 0 {
		w.log.Warn("MCP servers are not there yet: the model is asked without their tools", "servers", late)
	}
	if w.host != nil {
		return
	}
	for _, s := range w.servers.Status() {
		if s.State == mcp.Connected || s.State == mcp.Disabled || w.missed[s.Name] == s.State {
			continue
		}
		w.missed[s.Name] = s.State
		why := ""
		if s.Error != "" {
			why = ": " + visible(strings.Join(strings.Fields(s.Error), " "), 500)
		}
		w.warn(fmt.Sprintf("MCP server %q is %s, the model has no tools of it%s", s.Name, s.State, why))
	}
}

// ServerStatus implements control.Servers.
func (h *host) ServerStatus() []control.ServerStatus {
	var out []control.ServerStatus
	for _, s := range h.w.servers.Status() {
		one := control.ServerStatus{
			Name: s.Name, State: string(s.State), Type: s.Type, Error: s.Error, Source: s.Scope, Config: s.Config,
		}
		if len(s.Notes) > 0 {
			one.Error = strings.Join(append(nonEmptyList(s.Error), s.Notes...), "; ")
		}
		if s.Info != nil {
			one.Info, _ = json.Marshal(s.Info) // strings only
		}
		for _, t := range s.Tools {
			one.Tools = append(one.Tools, control.ServerTool{Name: t.Name, Description: t.Description, Annotations: hintsOf(t.Annotations)})
		}
		out = append(out, one)
	}
	return out
}

func nonEmptyList(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// hintsOf are the annotations of a tool that hosts know.
func hintsOf(annotations map[string]any) *control.ToolHints {
	if annotations == nil {
		return nil
	}
	get := func(key string) *bool {
		if b, ok := annotations[key].(bool); ok {
			return &b
		}
		return nil
	}
	return &control.ToolHints{ReadOnly: get("readOnlyHint"), Destructive: get("destructiveHint"), OpenWorld: get("openWorldHint")}
}

// Message implements control.Servers.
func (h *host) Message(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	return h.w.servers.FromHost(ctx, server, message)
}

// Reconnect implements control.ServerAdmin.
func (h *host) Reconnect(name string) (wait func(context.Context) error, err error) {
	return h.w.servers.Reconnect(name)
}

// Toggle implements control.ServerAdmin.
func (h *host) Toggle(name string, enabled bool) (wait func(context.Context) error, err error) {
	return h.w.servers.Toggle(name, enabled)
}

// SetServers implements control.ServerAdmin.
func (h *host) SetServers(_ context.Context, servers map[string]json.RawMessage) (added, removed []string, errs map[string]string) {
	errs = map[string]string{}
	set, err := h.w.parseServers(servers)
	if err != nil {
		for name := range servers {
			errs[name] = err.Error()
		}
		return nil, nil, errs
	}
	for _, c := range set.list {
		h.w.distrust(c)
	}
	res := h.w.servers.Set(set.list, set.bad)
	h.w.trust()
	for name, err := range res.Errors {
		errs[name] = err.Error()
	}
	return res.Added, res.Removed, errs
}

// mcpServers are the servers as frames tell of them.
func (w *wiring) mcpServers() []streamjson.MCPServer {
	var out []streamjson.MCPServer
	for _, s := range w.servers.Status() {
		state := string(s.State)
		if w.o.host.dialect == streamjson.Claude {
			state = control.ClaudeState(state)
		}
		out = append(out, streamjson.MCPServer{Name: s.Name, Status: state, Source: s.Scope})
	}
	return out
}

// promptTool splits the name of an MCP tool that answers permission questions;
// false for stdio.
func promptTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

func isPromptTool(name string) bool {
	server, tool, ok := promptTool(name)
	return ok && server != "" && tool != ""
}

// askTool puts a permission question to a tool of an MCP server, which answers
// as a host would.
func (w *wiring) askTool(ctx context.Context, server, tool string, q policy.Question) (policy.Answer, error) {
	p, ok := q.(policy.ToolPermission)
	if !ok {
		return policy.Answer{}, policy.ErrNoUser
	}
	name := "mcp__" + server + "__" + tool
	t, ok := w.toolset.all.Lookup(name)
	if !ok {
		t, ok = w.toolset.registry.Lookup(name)
	}
	if !ok {
		return policy.Answer{}, fmt.Errorf("--permission-prompt-tool: there is no tool %s", name)
	}
	input, err := json.Marshal(map[string]any{
		"tool_name": w.names.Tool(p.ToolName), "input": w.names.Input(p.ToolName, p.Input), "tool_use_id": p.ToolUseID,
	})
	if err != nil {
		return policy.Answer{}, err
	}
	res := t.Run(ctx, &tools.Call{ID: p.ToolUseID + "_permission", Input: input})
	text := model.JoinText(res.Blocks)
	if res.IsError {
		return policy.Answer{}, errors.New("--permission-prompt-tool: " + text)
	}
	return w.host.disp.Permission().Read(json.RawMessage(text), p), nil
}

// serverNames are the names of the MCP servers, sorted.
func (w *wiring) serverNames() []string {
	return slices.Sorted(slices.Values(w.servers.Names()))
}

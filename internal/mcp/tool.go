package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

const (
	// maxDescription bounds the description of a tool, in bytes.
	maxDescription = 8000
	// maxSchema bounds the schema of its input, in bytes: one that no model takes
	// would fail each request from then on.
	maxSchema = 100_000
)

// toolUseKey is where servers find the id of the model's call.
const toolUseKey = "claudecode/toolUseId"

// tool is one tool of a server, as the model can call it. It outlives the
// connection: a call goes to the one that there is then.
type tool struct {
	m      *Manager
	server string
	remote string // the server's name of it
	spec   tools.Spec
}

// Spec implements tools.Tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Run implements tools.Tool.
func (t *tool) Run(ctx context.Context, call *tools.Call) tools.Result {
	return t.m.call(ctx, t.server, t.remote, call)
}

// offers returns the tools that there are now, by name. m.mu is held.
func (m *Manager) offers() map[string]offer {
	var list []*tool
	resources := false
	names := map[string]bool{}
	for _, name := range m.order {
		s := m.servers[name]
		if s.link == nil {
			continue
		}
		resources = resources || s.resources
		list = append(list, s.offered(names)...)
	}
	deferred := m.defers(list)
	out := make(map[string]offer, len(list)+2)
	for _, t := range list {
		t.spec.Deferred = deferred
		out[t.spec.Name] = offer{t, t.mark()}
	}
	if resources {
		for _, t := range []tools.Tool{&listResources{m}, &readResource{m}} {
			out[t.Spec().Name] = offer{t, ""}
		}
	}
	return out
}

// offered returns the tools of a server that its configuration lets through,
// with names that aren't in names yet, and adds those.
func (s *server) offered(names map[string]bool) []*tool {
	var list []*tool
	seen := map[string]bool{}
	for _, t := range s.listing.tools {
		if t.Name == "" || seen[t.Name] || !s.cfg.wants(t.Name) {
			continue
		}
		seen[t.Name] = true
		name := toolName(s.cfg.Name, t.Name, 0)
		for nth := 1; names[name]; nth++ {
			name = toolName(s.cfg.Name, t.Name, nth)
		}
		names[name] = true
		list = append(list, &tool{m: s.m, server: s.cfg.Name, remote: t.Name, spec: tools.Spec{
			Name: name, Description: clip(shown(description(t)), maxDescription), Schema: safeSchema(t.InputSchema),
			Class: policy.ClassMCP, Server: SafeName(s.cfg.Name), Annotations: annotations(t),
			ReadOnly: s.trusted() && t.Annotations != nil && t.Annotations.ReadOnlyHint,
		}})
	}
	return list
}

func description(t *sdk.Tool) string {
	switch {
	case t.Description != "":
		return t.Description
	case t.Title != "":
		return t.Title
	case t.Annotations != nil && t.Annotations.Title != "":
		return t.Annotations.Title
	}
	return t.Name
}

// annotations returns what a server says of a tool, under the protocol's names;
// nil if it says nothing.
func annotations(t *sdk.Tool) map[string]any {
	a := t.Annotations
	if a == nil {
		return nil
	}
	out := map[string]any{"readOnlyHint": a.ReadOnlyHint, "idempotentHint": a.IdempotentHint}
	if a.DestructiveHint != nil {
		out["destructiveHint"] = *a.DestructiveHint
	}
	if a.OpenWorldHint != nil {
		out["openWorldHint"] = *a.OpenWorldHint
	}
	if a.Title != "" {
		out["title"] = a.Title
	}
	return out
}

// mark is what makes a tool a different one for the model or the user.
func (t *tool) mark() string {
	s := t.spec
	return string(rawJSON([]any{t.server, t.remote, s.Description, s.Schema, s.Annotations, s.ReadOnly, s.Deferred}))
}

// defers reports whether so many tools are to be found by search only.
func (m *Manager) defers(list []*tool) bool {
	switch m.o.Deferral {
	case DeferAlways:
		return true
	case DeferNever:
		return false
	}
	size := 0
	for _, t := range list {
		size += len(t.spec.Name) + len(t.spec.Description) + len(t.spec.Schema)
	}
	return len(list) > deferTools || size > deferBytes
}

// publish reports the tools that have come, changed and gone since the last
// time.
func (m *Manager) publish() {
	m.tellMu.Lock()
	defer m.tellMu.Unlock()
	m.mu.Lock()
	now := m.offers()
	m.mu.Unlock()
	var (
		added   []tools.Tool
		removed []string
	)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old, ok := m.offered[name]; ok && old.mark == now[name].mark {
			now[name] = old
			continue
		}
		added = append(added, now[name].tool)
	}
	for _, name := range slices.Sorted(maps.Keys(m.offered)) {
		if _, ok := now[name]; !ok {
			removed = append(removed, name)
		}
	}
	m.offered = now
	if m.o.OnTools != nil && len(added)+len(removed) > 0 {
		m.o.OnTools(added, removed)
	}
}

// safeSchema returns a schema that providers take: an object at the top, with
// properties, and no choice between whole inputs there, which some of them
// refuse. The rest is passed on as it is.
func safeSchema(schema any) json.RawMessage {
	top, ok := schema.(map[string]any)
	if !ok {
		top = map[string]any{}
	}
	top = maps.Clone(top)
	delete(top, "$schema")
	top["type"] = "object"
	properties, ok := top["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
	}
	properties = maps.Clone(properties)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		branches, _ := top[key].([]any)
		delete(top, key)
		for _, b := range branches {
			branch, _ := b.(map[string]any)
			more, _ := branch["properties"].(map[string]any)
			for name, p := range more {
				if _, ok := properties[name]; !ok {
					properties[name] = p
				}
			}
		}
	}
	top["properties"] = properties
	if _, ok := top["required"].([]any); !ok {
		delete(top, "required")
	}
	out := rawJSON(top)
	if len(out) > maxSchema || out == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// shown is a server's text without what nobody sees in it: controls, which a
// terminal would obey, and the invisible or turning characters that hide words
// from a person who reads along.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r >= 0xE0000 && r <= 0xE007F,
			r == '\u200b', r == '\u2060', r == '\ufeff', r == '\u00ad':
			return -1
		}
		return r
	}, s)
}

// linkTo returns the session with a server and its configuration.
func (m *Manager) linkTo(name string) (*link, *Config, error) {
	s, err := m.find(name)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.link == nil {
		return nil, nil, notConnected(name, s.state, s.err)
	}
	return s.link, &s.cfg, nil
}

// CallTool calls a tool of a server by the server's own name for it, whatever
// includeTools says. Failures are results, as those of a tool are.
func (m *Manager) CallTool(ctx context.Context, server, tool string, arguments json.RawMessage) tools.Result {
	return m.call(ctx, server, tool, &tools.Call{Input: arguments})
}

// call calls a tool and returns when the server has answered, ctx has ended or
// the time is up.
func (m *Manager) call(ctx context.Context, server, name string, call *tools.Call) tools.Result {
	l, c, err := m.linkTo(server)
	if err != nil {
		return tools.Fail(err.Error())
	}
	limit := firstTime(c.Timeout, m.o.ToolTime)
	within, cancel := l.within(ctx, limit)
	defer cancel()

	token := l.tokens.Add(1)
	if call.Progress != nil {
		key := fmt.Sprint(token)
		l.progress.Store(key, func(p *sdk.ProgressNotificationParams) { call.Report(tools.Progress{Text: progressText(p)}) })
		defer l.progress.Delete(key)
	}
	meta := sdk.Meta{"progressToken": token}
	if call.ID != "" {
		meta[toolUseKey] = call.ID
	}
	var arguments any = map[string]any{}
	if len(call.Input) > 0 && string(call.Input) != "null" {
		arguments = call.Input
	}
	res, err := l.session.CallTool(within, &sdk.CallToolParams{Meta: meta, Name: name, Arguments: arguments})
	if err == nil {
		return resultOf(res)
	}
	return tools.Fail(callError(ctx, within, l, server, name, limit, err))
}

// callError says what became of a call that got no result.
func callError(ctx, within context.Context, l *link, server, name string, limit time.Duration, err error) string {
	who := fmt.Sprintf("%s of MCP server %q", name, server)
	switch {
	case ctx.Err() != nil:
		return who + ": the call was cancelled."
	case l.closing.Err() != nil || errors.Is(err, sdk.ErrConnectionClosed) || l.endedBy(err):
		return fmt.Sprintf("%s: the connection ended during the call: %v. What the call did is not known.", who, l.why(err))
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("%s did not answer within %v, and the call was cancelled. The server's \"timeout\" (milliseconds) sets the limit.", who, limit)
	}
	text := strings.TrimPrefix(err.Error(), `calling "tools/call": `)
	return fmt.Sprintf("%s: %s", who, text)
}

// endedBy reports whether an error is that of the end of the link, which the SDK
// may dress up as an answer.
func (l *link) endedBy(err error) bool {
	if l.cause == nil {
		return false
	}
	cause := l.cause()
	return cause != nil && strings.Contains(err.Error(), cause.Error())
}

func progressText(p *sdk.ProgressNotificationParams) string {
	text := fmt.Sprint(p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf("/%v", p.Total)
	}
	if p.Message != "" {
		text += " " + clip(p.Message, 500)
	}
	return text
}

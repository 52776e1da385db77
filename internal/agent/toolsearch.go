package agent

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

//go:embed toolsearch.md
var toolSearchDescription string

const (
	toolSearchName  = "tool_search"
	defaultFound    = 5
	maxFound        = 20
	toolSearchInput = `{"type":"object","properties":{
"query":{"type":"string","description":"select:NAME,NAME, or words to search for."},
"max_results":{"type":"integer","minimum":1,"maximum":20,"description":"How many tools to return at most. Default: 5."}},
"required":["query"]}`
)

const allDeclared = "There are no tools to find: all are declared."

// toolSearch implements tool_search for the conversation that calls it.
type toolSearch struct{}

// NewToolSearch returns the tool tool_search, which finds deferred tools of the
// conversation that calls it. It is declared only where some are deferred.
func NewToolSearch() tools.Tool { return toolSearch{} }

// Spec implements tools.Tool.
func (toolSearch) Spec() tools.Spec {
	return tools.Spec{
		Name: toolSearchName, Description: toolSearchDescription, Schema: json.RawMessage(toolSearchInput), Class: policy.ClassInternal,
	}
}

func (toolSearch) unfit(c *Conversation, _ bool) string {
	if c.hasDeferred() {
		return ""
	}
	return allDeclared
}

// foundDisplay is the machine-readable form of a search.
type foundDisplay struct {
	Query    string   `json:"query"`
	Matches  []string `json:"matches"`
	Deferred int      `json:"total_deferred_tools"`
}

// Run implements tools.Tool.
func (toolSearch) Run(ctx context.Context, call *tools.Call) tools.Result {
	var in struct {
		Query      string `json:"query"`
		MaxResults int    `json:"max_results"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return tools.Fail("query must be a string and max_results a whole number")
	}
	if strings.TrimSpace(in.Query) == "" {
		return tools.Fail("query is missing: give words to search for, or select: with names")
	}
	t := turnOf(ctx)
	if t == nil {
		return tools.Fail("tool_search works in a conversation only")
	}
	if in.MaxResults <= 0 {
		in.MaxResults = defaultFound
	}
	waiting := t.c.Deferred()
	matches, missing := searchTools(t.c.cfg.Tools, waiting, in.Query, min(in.MaxResults, maxFound))
	d := foundDisplay{Query: in.Query, Matches: []string{}, Deferred: len(waiting)}
	var b strings.Builder
	for _, s := range matches {
		spec := t.c.cfg.Names.Spec(s)
		line, err := json.Marshal(map[string]any{"name": spec.Name, "description": spec.Description, "parameters": spec.Schema})
		if err != nil {
			return tools.Fail(fmt.Sprintf("the schema of %s can't be read: %v", spec.Name, err))
		}
		fmt.Fprintf(&b, "<function>%s</function>\n", line)
		d.Matches = append(d.Matches, spec.Name)
		t.c.find(s.Name)
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "There is no tool named %s.\n", strings.Join(missing, ", "))
	}
	if b.Len() == 0 && len(waiting) == 0 {
		return tools.Fail(allDeclared)
	}
	if b.Len() == 0 {
		return tools.Result{Blocks: tools.Text("No tool matches. Try other words, or go on without.").Blocks, Display: d}
	}
	r := tools.Text(strings.TrimSuffix(b.String(), "\n"))
	r.Display, r.IsError = d, len(matches) == 0
	return r
}

// searchTools returns the tools that a query finds, the best first, and the
// names it selects that no tool has.
func searchTools(all *tools.Registry, waiting []tools.Spec, query string, most int) (matches []tools.Spec, missing []string) {
	if names, ok := strings.CutPrefix(strings.TrimSpace(query), "select:"); ok {
		for _, name := range strings.Split(names, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if tool, ok := all.Lookup(name); ok {
				matches = append(matches, tool.Spec())
			} else {
				missing = append(missing, name)
			}
		}
		return matches, missing
	}
	type hit struct {
		spec  tools.Spec
		score int
	}
	var hits []hit
	words := strings.Fields(strings.ToLower(query))
	for _, s := range waiting {
		if score := matchTool(s, words); score > 0 {
			hits = append(hits, hit{s, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	for _, h := range hits[:min(len(hits), most)] {
		matches = append(matches, h.spec)
	}
	return matches, nil
}

// matchTool scores a tool: a word in the name counts more than one in the
// description; 0 if nothing matches, or a word that must be there is not.
func matchTool(s tools.Spec, words []string) int {
	name, text := strings.ToLower(s.Name), strings.ToLower(s.Description)
	score := 0
	for _, w := range words {
		w, must := strings.CutPrefix(w, "+")
		inName := w != "" && strings.Contains(name, w)
		switch {
		case must && !inName:
			return 0
		case inName:
			score += 4
		case strings.Contains(text, w):
			score++
		}
	}
	return score
}

package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

//go:embed prompts/init.md
var initPrompt string

//go:embed prompts/summary.md
var summaryPrompt string

// builtins returns the built-in commands for which env has the parts.
func (r *Registry) builtins() []Command {
	env := r.env
	compact, other := "compress", "compact"
	if env.Dialect == "claude" {
		compact, other = other, compact
	}
	all := []struct {
		possible bool
		Command
	}{
		{true, Command{Name: "help", Description: "List the commands, or explain one command or topic", ArgumentHint: "[command or topic]", Run: r.help}},
		{true, Command{Name: "init", Description: "Let the model write AGENTS.md, the guide to this project", Run: prompt(initPrompt, "Mind this too: ")}},
		{true, Command{Name: "summary", Description: "Let the model sum up the conversation", ArgumentHint: "[what to stress]", Run: prompt(summaryPrompt, "Stress this: ")}},
		{env.Conversation != nil, Command{Name: "clear", Aliases: []string{"new", "reset"}, Description: "Begin a new conversation", Run: r.clear}},
		{env.Compactor != nil, Command{Name: compact, Aliases: []string{other}, Description: "Replace the conversation by a summary of it", ArgumentHint: "[what must stay]", Run: r.compact}},
		{env.Context != nil, Command{Name: "context", Description: "Show what fills the model's context window", Run: r.context}},
		{env.Usage != nil, Command{Name: "usage", Aliases: []string{"cost", "stats"}, Description: "Show the tokens used and what they cost", Run: r.usage}},
		{env.Models != nil, Command{Name: "model", Description: "Show or change the model", ArgumentHint: "[name]", Run: r.model}},
		{env.Modes != nil, Command{Name: "mode", Aliases: []string{"approval-mode"}, Description: "Show or change the permission mode", ArgumentHint: "[mode]", Run: r.mode}},
		{env.Rules != nil, Command{Name: "permissions", Description: "List the permission rules", Run: r.rules}},
		{env.Servers != nil, Command{Name: "mcp", Description: "List the MCP servers and their state", Run: r.servers}},
		{env.Agents != nil, Command{Name: "agents", Description: "List the sub-agents", Run: r.agents}},
		{env.Tools != nil, Command{Name: "tools", Description: "List the tools that the model can use", Run: r.tools}},
		{env.Hooks != nil, Command{Name: "hooks", Description: "List the hooks", Run: r.hooks}},
		{env.Status != nil, Command{Name: "status", Aliases: []string{"about"}, Description: "Show the session, its model, mode and version", Run: r.status}},
		{env.Transcript != nil, Command{Name: "export", Description: "Say where the transcript of this session is", Run: r.transcript}},
	}
	var list []Command
	for _, c := range all {
		if c.possible {
			c.Source = Builtin
			list = append(list, c.Command)
		}
	}
	return list
}

// prompt returns a command that asks the model; what the user adds follows
// after the words of introduction.
func prompt(text, introduction string) func(context.Context, string) (Expansion, error) {
	return func(_ context.Context, args string) (Expansion, error) {
		p := strings.TrimSpace(text)
		if args != "" {
			p += "\n\n" + introduction + args
		}
		return Expansion{Prompt: p}, nil
	}
}

func reply(format string, args ...any) (Expansion, error) {
	return Expansion{Reply: fmt.Sprintf(format, args...)}, nil
}

func (r *Registry) clear(ctx context.Context, _ string) (Expansion, error) {
	if err := r.env.Conversation.Clear(ctx); err != nil {
		return Expansion{}, err
	}
	return reply("A new conversation begins.")
}

func (r *Registry) compact(ctx context.Context, args string) (Expansion, error) {
	c, err := r.env.Compactor.Compact(ctx, args)
	if err != nil {
		return Expansion{}, fmt.Errorf("the conversation stays as it was: %w", err)
	}
	return reply("A summary replaces the conversation: about %d tokens instead of %d.", c.After, c.Before)
}

func (r *Registry) context(ctx context.Context, _ string) (Expansion, error) {
	use, err := r.env.Context.ContextUse(ctx)
	if err != nil {
		return Expansion{}, err
	}
	sum := 0
	for _, p := range use.Parts {
		sum += p.Tokens
	}
	t := newTable()
	for _, p := range use.Parts {
		t.row(p.Name, fmt.Sprint(p.Tokens), percent(p.Tokens, use.Window))
	}
	t.row("in all", fmt.Sprint(sum), percent(sum, use.Window))
	if use.Window > 0 {
		t.row("free", fmt.Sprint(max(0, use.Window-sum)), percent(max(0, use.Window-sum), use.Window))
		return reply("Tokens of the context window of %d, estimated:\n\n%s", use.Window, t)
	}
	return reply("Tokens in the context, estimated; the size of the model's window is not known:\n\n%s", t)
}

func percent(part, whole int) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func (r *Registry) usage(context.Context, string) (Expansion, error) {
	used := r.env.Usage.Usage()
	head := fmt.Sprintf("%d turns, %s.", used.Turns, used.Duration.Round(time.Second))
	if len(used.Models) == 0 {
		return reply("%s No model was asked yet.", head)
	}
	t := newTable()
	t.row("model", "requests", "input", "output", "cache read", "cache written", "cost")
	total, priced := 0.0, true
	for _, m := range used.Models {
		cost := "not known"
		if m.Priced {
			cost = fmt.Sprintf("$%.4f", m.Cost)
		}
		total, priced = total+m.Cost, priced && m.Priced
		t.row(m.Model, fmt.Sprint(m.Requests), fmt.Sprint(m.Input), fmt.Sprint(m.Output), fmt.Sprint(m.CacheRead), fmt.Sprint(m.CacheWrite), cost)
	}
	if len(used.Models) > 1 && priced {
		head += fmt.Sprintf(" $%.4f in all.", total)
	}
	return reply("%s Tokens:\n\n%s", head, t)
}

func (r *Registry) model(ctx context.Context, name string) (Expansion, error) {
	m := r.env.Models
	if name != "" {
		if err := m.SetModel(ctx, name); err != nil {
			return Expansion{}, err
		}
		return reply("The model is %s now.", name)
	}
	text := "The model is " + m.Model() + "."
	if names := m.Models(); len(names) > 0 {
		text += "\n\nKnown models:\n" + bullets(names)
	}
	return reply("%s", text)
}

func (r *Registry) mode(_ context.Context, mode string) (Expansion, error) {
	m := r.env.Modes
	if mode == "" {
		return reply("The permission mode is %s. The modes are %s.", m.Mode(), strings.Join(m.Modes(), ", "))
	}
	if err := m.SetMode(mode); err != nil {
		return Expansion{}, err
	}
	return reply("The permission mode is %s now.", m.Mode())
}

func (r *Registry) rules(context.Context, string) (Expansion, error) {
	rules := r.env.Rules.Rules()
	text := "There are no rules of the user's, the project's or the session's."
	if len(rules) > 0 {
		t := newTable()
		t.row("decision", "rule", "from")
		for _, rule := range rules {
			t.row(rule.Behavior, rule.Rule, rule.Origin)
		}
		text = t.String()
	}
	if r.env.Modes != nil {
		text = "The permission mode is " + r.env.Modes.Mode() + ".\n\n" + text
	}
	return reply("%s", text)
}

func (r *Registry) servers(context.Context, string) (Expansion, error) {
	servers := r.env.Servers.Servers()
	if len(servers) == 0 {
		return reply("No MCP server is configured.")
	}
	t := newTable()
	t.row("server", "state", "type", "tools", "")
	for _, s := range servers {
		t.row(s.Name, s.Status, s.Type, fmt.Sprint(s.Tools), s.Error)
	}
	return reply("%s", t)
}

func (r *Registry) agents(context.Context, string) (Expansion, error) {
	return items(r.env.Agents.Agents(), "There is no sub-agent.")
}

func (r *Registry) tools(context.Context, string) (Expansion, error) {
	return items(r.env.Tools.Tools(), "There is no tool.")
}

func (r *Registry) status(context.Context, string) (Expansion, error) {
	return items(r.env.Status.Status(), "Nothing is known of the session.")
}

func items(list []Item, none string) (Expansion, error) {
	if len(list) == 0 {
		return reply("%s", none)
	}
	t := newTable()
	for _, i := range list {
		t.row(i.Name, oneLine(i.Description))
	}
	return reply("%s", t)
}

func (r *Registry) hooks(context.Context, string) (Expansion, error) {
	hooks := r.env.Hooks.Hooks()
	if len(hooks) == 0 {
		return reply("There is no hook.")
	}
	t := newTable()
	t.row("event", "matches", "does")
	for _, h := range hooks {
		matcher := h.Matcher
		if matcher == "" {
			matcher = "everything"
		}
		t.row(h.Event, matcher, h.Does)
	}
	return reply("%s", t)
}

func (r *Registry) transcript(context.Context, string) (Expansion, error) {
	if path := r.env.Transcript.TranscriptPath(); path != "" {
		return reply("The transcript of this session is %s", path)
	}
	return reply("No transcript of this session is kept.")
}

func (r *Registry) help(_ context.Context, about string) (Expansion, error) {
	about = strings.TrimPrefix(about, "/")
	if about == "" {
		t := newTable()
		for _, c := range r.List() {
			t.row(strings.TrimSpace("/"+c.Name+" "+c.ArgumentHint), c.Description)
		}
		return reply("Commands:\n\n%s\n\nTopics, for /help: %s", t, strings.Join(topicNames(), ", "))
	}
	if i := slices.IndexFunc(topics, func(t topic) bool { return t.name == about }); i >= 0 {
		return reply("%s", topics[i].text)
	}
	c, ok := r.Lookup(about)
	if !ok {
		unknown := UnknownError{Name: about, Near: r.near(about)}
		return Expansion{}, errors.New(unknown.Error()) // /help itself is known
	}
	text := strings.TrimSpace("/"+c.Name+" "+c.ArgumentHint) + "\n" + c.Description
	if len(c.Aliases) > 0 {
		text += "\nAlso: /" + strings.Join(c.Aliases, ", /")
	}
	if c.File != "" {
		text += "\nFrom: " + c.File
	}
	return reply("%s", text)
}

func bullets(lines []string) string {
	return "- " + strings.Join(lines, "\n- ")
}

// table lines up columns.
type table struct {
	sb strings.Builder
	w  *tabwriter.Writer
}

func newTable() *table {
	t := new(table)
	t.w = tabwriter.NewWriter(&t.sb, 0, 0, 2, ' ', 0)
	return t
}

// row adds a line; what cells hold cannot break it.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// String ends the table.
func (t *table) String() string {
	t.w.Flush()
	lines := strings.Split(strings.TrimRight(t.sb.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

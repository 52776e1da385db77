// Package command holds the slash commands: those built in, those from files
// of the user and of the project, and those that others add while the program
// runs. What a command does headless is its answer, or a prompt for the model.
package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/agentcli/agent/internal/policy"
)

// Source is where a command comes from.
type Source string

// Sources.
const (
	Builtin Source = "builtin"
	User    Source = "user"    // a file of the user's own
	Project Source = "project" // a file of the project, which may be a stranger's
	MCP     Source = "mcp"     // a prompt of an MCP server
	Skill   Source = "skill"
)

// rank orders the sources: of two commands with one name the higher one has it.
var rank = map[Source]int{Builtin: 5, Project: 4, User: 3, Skill: 2, MCP: 1}

// Command is one slash command.
type Command struct {
	Name         string // without the slash; "git:commit" is commit in the folder git
	Description  string // one line
	ArgumentHint string // "[file]"; may be empty
	Aliases      []string
	Source       Source
	File         string // of a command from a file

	// Run does its work. args is the rest of the line, without blanks around it.
	Run func(ctx context.Context, args string) (Expansion, error)
}

// Expansion is what became of a line: either Reply or Prompt is set.
type Expansion struct {
	// Command is the name of the command; empty for a line that is none.
	Command string
	// Reply is the command's answer. The model isn't asked.
	Reply string
	// Prompt goes to the model in the place of the line.
	Prompt string
	// Model is the model for this turn; empty: the current one.
	Model string
	// AllowedTools are the rules that the command's file asks for. They grant
	// nothing by themselves; Source says whose file it is.
	AllowedTools []string
	Source       Source
}

// UnknownError says that no command has a name.
type UnknownError struct {
	Name string
	Near []string // names that are almost the same, the nearest first
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("unknown command /%s", e.Name)
	if len(e.Near) > 0 {
		return text + ": did you mean /" + strings.Join(e.Near, " or /") + "?"
	}
	return text + ": /help lists the commands"
}

// maxName bounds the length of a command's name.
const maxName = 128

// validName reports whether name is parts joined by colons, each of letters,
// digits, "_", "." and "-", of which the last two don't begin it.
func validName(name string) bool {
	first := true // of a part
	for _, r := range name {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			first = false
		case first:
			return false
		case r == ':':
			first = true
		case r != '.' && r != '-':
			return false
		}
	}
	return !first && len(name) <= maxName
}

// Parse splits a line such as "/model x" into name and arguments. ok is false
// for a line that is no command, such as a path.
func Parse(line string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "/")
	if !ok {
		return "", "", false
	}
	name = rest
	if i := strings.IndexFunc(rest, isSpace); i >= 0 {
		name, args = rest[:i], strings.TrimSpace(rest[i:])
	}
	if name == "?" {
		return "help", args, true
	}
	return name, args, validName(name)
}

func isSpace(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Registry holds the commands. It is safe for concurrent use; no lock is held
// while a command runs.
type Registry struct {
	env Env

	mu       sync.RWMutex
	commands []Command          // as added
	byName   map[string]Command // names and aliases
}

// New returns a registry with the built-in commands that env makes possible.
func New(env Env) *Registry {
	r := &Registry{env: env}
	r.commands = r.builtins()
	r.index()
	return r
}

// Add adds commands. One whose name is taken by a command of a higher source,
// or by an earlier one of the same source, is known as "source:name" only. An
// invalid name is an error, and then none is added.
func (r *Registry) Add(commands ...Command) error {
	for _, c := range commands {
		if !validName(c.Name) || c.Run == nil || c.Source == Builtin || rank[c.Source] == 0 {
			return fmt.Errorf("adding command %q of source %q: it needs a valid name, a source that is not built in, and something to run", c.Name, c.Source)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = append(r.commands, commands...)
	r.index()
	return nil
}

// Remove removes the commands for which drop is true; built-in ones stay.
func (r *Registry) Remove(drop func(Command) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = slices.DeleteFunc(r.commands, func(c Command) bool { return c.Source != Builtin && drop(c) })
	r.index()
}

// index gives out the names. mu is held.
func (r *Registry) index() {
	ordered := slices.DeleteFunc(slices.Clone(r.commands), r.disabled)
	slices.SortStableFunc(ordered, func(a, b Command) int { return rank[b.Source] - rank[a.Source] })
	r.byName = make(map[string]Command, len(ordered))
	for _, c := range ordered {
		if !r.claim(c.Name, c) {
			c.Name, c.Aliases = string(c.Source)+":"+c.Name, nil
			if !r.claim(c.Name, c) {
				continue
			}
		}
	}
	for _, c := range ordered {
		if holder, ok := r.byName[c.Name]; ok && holder.Source == c.Source && holder.File == c.File {
			for _, alias := range c.Aliases {
				r.claim(alias, c)
			}
		}
	}
}

// disabled reports whether a command, by its name or another, must not be there.
func (r *Registry) disabled(c Command) bool {
	return slices.ContainsFunc(r.env.Disabled, func(name string) bool {
		return strings.EqualFold(name, c.Name) || slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.EqualFold(name, a) })
	})
}

// claim gives c a name that is free.
func (r *Registry) claim(name string, c Command) bool {
	if _, taken := r.byName[name]; taken {
		return false
	}
	r.byName[name] = c
	return true
}

// List returns the commands by name. Run of one that was renamed because its
// name was taken works as well.
func (r *Registry) List() []Command {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Command, 0, len(r.byName))
	for name, c := range r.byName {
		if name == c.Name {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Names returns the names of the commands, sorted; no aliases.
func (r *Registry) Names() []string {
	list := r.List()
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return names
}

// Lookup finds a command by its name or an alias.
func (r *Registry) Lookup(name string) (Command, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.byName[name]
	return c, ok
}

// Expand does what line asks for. A line that is no command stands for itself,
// as the prompt. The error is an *UnknownError when no command has the name;
// any other one is the command's failure, to be shown as its answer. It blocks
// while the command works.
func (r *Registry) Expand(ctx context.Context, line string) (Expansion, error) {
	name, args, ok := Parse(line)
	if !ok {
		return Expansion{Prompt: line}, nil
	}
	c, ok := r.Lookup(name)
	if !ok {
		return Expansion{}, &UnknownError{Name: name, Near: r.near(name)}
	}
	e, err := c.Run(ctx, args)
	if err != nil {
		return Expansion{}, fmt.Errorf("/%s: %w", c.Name, err)
	}
	e.Command, e.Source = c.Name, c.Source
	return e, nil
}

// near returns at most three names that are almost name.
func (r *Registry) near(name string) []string {
	type scored struct {
		name string
		d    int
	}
	var all []scored
	for _, n := range r.Names() {
		if d := policy.EditDistance(name, n); d <= max(1, min(2, len(name)/2)) || strings.HasPrefix(n, name) {
			all = append(all, scored{n, d})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return a.d - b.d })
	var names []string
	for _, s := range all[:min(3, len(all))] {
		names = append(names, s.name)
	}
	return names
}

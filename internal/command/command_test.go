package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuiltins(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ line, reply, prompt, err string }{
		{line: "/help", reply: "/model [name]"},
		{line: "/?", reply: "Topics"},
		{line: "/help model", reply: "/model [name]\nShow or change the model"},
		{line: "/help compact", reply: "Also: /compact"},
		{line: "/help files", reply: "@path"},
		{line: "/help modle", err: "did you mean /mode or /model?"},
		{line: "/init", prompt: "write AGENTS.md"},
		{line: "/init no tests here", prompt: "Mind this too: no tests here"},
		{line: "/summary", prompt: "Summarise this conversation"},
		{line: "/clear", reply: "new conversation"},
		{line: "/new", reply: "new conversation"},
		{line: "/compress", reply: "about 40 tokens instead of 900"},
		{line: "/compact keep names", reply: "about 40"},
		{line: "/compress fail", err: "stays as it was: the model is away"},
		{line: "/context", reply: "in all         250  25.0%"},
		{line: "/usage", reply: "$0.5000"},
		{line: "/cost", reply: "2 turns, 3s"},
		{line: "/model", reply: "The model is one.\n\nKnown models:\n- one"},
		{line: " /model two \n", reply: "The model is two now."},
		{line: "/model none", err: "/model: no model none"},
		{line: "/mode", reply: "default. The modes are default, plan"},
		{line: "/mode plan", reply: "The permission mode is plan now."},
		{line: "/mode what", err: "unknown mode"},
		{line: "/permissions", reply: "deny      Read(.env)"},
		{line: "/mcp", reply: "refused there"},
		{line: "/agents", reply: "does anything"},
		{line: "/tools", reply: "read_file"},
		{line: "/hooks", reply: "everything"},
		{line: "/status", reply: "id-1"},
		{line: "/export", reply: "/t/id-1.jsonl"},
		{line: "/nonsense", err: "unknown command /nonsense: /help lists the commands"},
		{line: "/modl", err: "did you mean /mode or /model?"},
		{line: "/etc/passwd is readable", prompt: "/etc/passwd is readable"},
		{line: "a /model", prompt: "a /model"},
		{line: "/", prompt: "/"},
		{line: "// a comment", prompt: "// a comment"},
	} {
		t.Run(test.line, func(t *testing.T) {
			t.Parallel()
			_, env := newSession()
			e, err := New(env).Expand(context.Background(), test.line)
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			case err != nil:
				t.Error(err)
			case test.reply != "" && (!strings.Contains(e.Reply, test.reply) || e.Prompt != ""):
				t.Errorf("reply %q, want %q", e.Reply, test.reply)
			case test.prompt != "" && (!strings.Contains(e.Prompt, test.prompt) || e.Reply != ""):
				t.Errorf("prompt %q, want %q", e.Prompt, test.prompt)
			}
		})
	}
}

// TestEveryNameDoesItsWork: what is listed can be sent as a line.
func TestEveryNameDoesItsWork(t *testing.T) {
	t.Parallel()
	_, env := newSession()
	r := New(env)
	for _, name := range r.Names() {
		if e, err := r.Expand(context.Background(), "/"+name); err != nil || (e.Reply == "") == (e.Prompt == "") || e.Command != name {
			t.Errorf("/%s: %+v, %v", name, e, err)
		}
	}
	if names := New(Env{}).Names(); !slices.Equal(names, []string{"help", "init", "summary"}) {
		t.Errorf("with nothing to work on there are %v", names)
	}
	env.Dialect = "claude"
	if names := New(env).Names(); !slices.Contains(names, "compact") || slices.Contains(names, "compress") {
		t.Errorf("the claude dialect has %v", names)
	}
}

func TestUnknownErrorIsTyped(t *testing.T) {
	t.Parallel()
	_, env := newSession()
	r := New(env)
	var unknown *UnknownError
	if _, err := r.Expand(context.Background(), "/hepl"); !errors.As(err, &unknown) || unknown.Name != "hepl" || !slices.Equal(unknown.Near, []string{"help"}) {
		t.Errorf("error %#v", err)
	}
	if _, err := r.Expand(context.Background(), "/help hepl"); err == nil || errors.As(err, &unknown) {
		t.Errorf("/help of something unknown: %#v", err)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	_, env := newSession()
	r := New(env)
	say := func(name, text string, source Source, aliases ...string) Command {
		return Command{Name: name, Source: source, Aliases: aliases, Run: func(context.Context, string) (Expansion, error) {
			return Expansion{Reply: text}, nil
		}}
	}
	if err := r.Add(say("deploy", "user's", User), say("deploy", "project's", Project), say("model", "stranger's", Project, "mode"), say("x", "prompt", MCP, "deploy", "y")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"/deploy": "project's", "/user:deploy": "user's", "/project:model": "stranger's", "/model": "The model is one", "/mode": "The permission mode is", "/y": "prompt",
	} {
		if e, err := r.Expand(context.Background(), line); err != nil || !strings.HasPrefix(e.Reply, want) {
			t.Errorf("%s: %q, %v; want %q", line, e.Reply, err, want)
		}
	}
	r.Remove(func(c Command) bool { return true })
	if !slices.Equal(r.Names(), New(env).Names()) {
		t.Errorf("after Remove: %v", r.Names())
	}
	for _, bad := range []Command{say("a b", "", User), say("", "", User), say("a/b", "", User), say("a", "", Builtin), {Name: "a", Source: User}} {
		if r.Add(bad) == nil {
			t.Errorf("added %+v", bad)
		}
	}
}

func TestRegistryIsConcurrent(t *testing.T) {
	t.Parallel()
	_, env := newSession()
	r := New(env)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				_ = r.Add(Command{Name: "x", Source: MCP, Run: func(context.Context, string) (Expansion, error) { return Expansion{Reply: "x"}, nil }})
				_, _ = r.Expand(context.Background(), "/help")
				r.Hints(context.Background(), "/", 5)
				r.Remove(func(c Command) bool { return c.Name == "x" })
			}
		})
	}
	wg.Wait()
}

func TestHints(t *testing.T) {
	t.Parallel()
	_, env := newSession()
	r := New(env)
	if err := r.Add(Command{Name: "git:commit", Description: "Commit", Source: User, Run: func(context.Context, string) (Expansion, error) { return Expansion{Reply: "x"}, nil }}); err != nil {
		t.Fatal(err)
	}
	values := func(prefix string, limit int) []string {
		var v []string
		for _, h := range r.Hints(context.Background(), prefix, limit) {
			v = append(v, h.Kind+" "+h.Value)
		}
		return v
	}
	for _, test := range []struct {
		prefix string
		limit  int
		want   []string
	}{
		{"/mo", 10, []string{"command /mode", "command /model"}},
		{"/MOD", 1, []string{"command /mode"}},
		{"/comm", 10, []string{"command /git:commit"}},
		{"/cost", 10, []string{"command /usage"}},
		{"@", 3, []string{"server @calc", "server @web", "file @main.go"}},
		{"@ma", 0, []string{"file @main.go", "file @map.go"}},
		{"?mo", 5, []string{"help ?models"}},
		{"", 5, nil},
		{"model", 5, nil},
	} {
		if diff := cmp.Diff(test.want, values(test.prefix, test.limit)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.prefix, diff)
		}
	}
}

func TestDisabledCommandsAreNotThere(t *testing.T) {
	t.Parallel()
	r := New(Env{Disabled: []string{"INIT", "", "mine"}})
	mine := Command{Name: "mine", Source: User, Run: func(context.Context, string) (Expansion, error) { return Expansion{}, nil }}
	if err := r.Add(mine); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"init", "mine", "user:mine"} {
		if _, ok := r.Lookup(name); ok {
			t.Errorf("/%s is there", name)
		}
	}
	if _, ok := r.Lookup("summary"); !ok {
		t.Error("/summary is not there")
	}
}

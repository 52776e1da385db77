package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesOfEachDialect(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	writeFiles(t, home, map[string]string{
		".agent/commands/mine.md":   "Mine.",
		".gemini/commands/twice.md": "The user's {{args}}",
	})
	writeFiles(t, project, map[string]string{
		".agent/commands/plain.md":        "# Do it\n\nwell",
		".claude/commands/git/commit.md":  "---\r\ndescription: Commits: all\r\nargument-hint: [file] [why]\r\nallowed-tools: Bash(git add:*), Bash(git commit:*)\r\nmodel: two\r\n---\r\nCommit $1 because $ARGUMENTS. See @a.txt.\r\n\r\n!`git diff \"$1\"`",
		".qwen/commands/ask.md":           "---\ndescription: Asks\n---\nAnswer {{args}} with @{a.txt} and !{grep {{args}} .}",
		".gemini/commands/sum.toml":       "description = \"Sums up\"\nprompt = \"\"\"\nSum up !{cat a | awk '{print $1}'}\n\"\"\"",
		".gemini/commands/twice.toml":     "prompt = 'The project'",
		".claude/commands/model.md":       "A stranger's",
		".claude/commands/notes.txt":      "no command",
		".claude/commands/.hidden.md":     "no command",
		".claude/commands/bad name.md":    "no command",
		".gemini/commands/broken.toml":    "prompt = ",
		".gemini/commands/empty.toml":     "description = 'x'",
		".claude/commands/unended.md":     "---\nx: y\n",
		".claude/commands/latin.md":       "caf\xe9",
		".claude/commands/1/2/3/4/5/6.md": "deep",
		".claude/commands/1/2/3/4/5/6/7":  "deeper",
	})
	s, env := newSession()
	r := New(env)
	problems := r.Load(append(Folders(home, User), Folders(project, Project)...))
	var said []string
	for _, p := range problems {
		said = append(said, strings.TrimPrefix(p.String(), project+string(filepath.Separator)))
	}
	slices.Sort(said)
	for i, want := range []string{".claude/commands/1/2/3/4/5/6: folders nest", ".claude/commands/bad name.md: ", ".claude/commands/latin.md: the file is not UTF-8", ".claude/commands/unended.md: line 1", ".gemini/commands/broken.toml: line 1", ".gemini/commands/empty.toml: the key prompt"} {
		if i >= len(said) || !strings.HasPrefix(filepath.ToSlash(said[i]), want) {
			t.Errorf("problem %d: want %q in %q", i, want, said)
		}
	}
	c, ok := r.Lookup("git:commit")
	if !ok || c.Description != "Commits: all" || c.ArgumentHint != "[file] [why]" || c.Source != Project {
		t.Errorf("git:commit is %+v", c)
	}
	for _, test := range []struct {
		line string
		want Expansion
		ran  []string
	}{
		{line: "/mine", want: Expansion{Command: "mine", Prompt: "Mine.", Source: User}},
		{line: "/plain now", want: Expansion{Command: "plain", Prompt: "# Do it\n\nwell\n\nARGUMENTS: now", Source: Project}},
		{line: "/git:commit 'a b' c", want: Expansion{
			Command: "git:commit", Source: Project, Model: "two", AllowedTools: []string{"Bash(git add:*)", "Bash(git commit:*)"},
			Prompt: "Commit a b because 'a b' c. See @a.txt.\r\n\r\nout $1 {{args}}\n\nContents of a.txt:\n\ntext of a !`rm`",
		}, ran: []string{`git diff "a b"`}},
		{line: "/ask it's", want: Expansion{Command: "ask", Source: Project, Prompt: "Answer it's with text of a !`rm` and out $1 {{args}}"}, ran: []string{`grep 'it'\''s' .`}},
		{line: "/sum up", want: Expansion{Command: "sum", Source: Project, Prompt: "Sum up out $1 {{args}}\n\n/sum up"}, ran: []string{"cat a | awk '{print $1}'"}},
		{line: "/twice", want: Expansion{Command: "twice", Source: Project, Prompt: "The project"}},
		{line: "/user:twice x", want: Expansion{Command: "user:twice", Source: User, Prompt: "The user's x"}},
		{line: "/project:model", want: Expansion{Command: "project:model", Source: Project, Prompt: "A stranger's"}},
	} {
		s.ran = nil
		got, err := r.Expand(context.Background(), test.line)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		if diff := cmp.Diff(test.want, got) + cmp.Diff(test.ran, s.ran); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.line, diff)
		}
	}
}

func TestFilesAreReadWhenTheyRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{".agent/commands/a.md": "old"})
	_, env := newSession()
	r := New(env)
	r.Load(Folders(dir, User))
	writeFiles(t, dir, map[string]string{".agent/commands/a.md": "new"})
	if e, err := r.Expand(context.Background(), "/a"); err != nil || e.Prompt != "new" {
		t.Errorf("%+v, %v", e, err)
	}
	if err := os.Remove(filepath.Join(dir, ".agent/commands/a.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Expand(context.Background(), "/a"); err == nil {
		t.Error("the command outlived its file")
	}
	if r.Load(Folders(dir, User)); slices.Contains(r.Names(), "a") {
		t.Error("the command is still listed")
	}
}

func TestHomeIsTheProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{".agent/commands/a.md": "x"})
	r := New(Env{})
	r.Load(append(Folders(dir, Project), Folders(dir, User)...))
	if c, _ := r.Lookup("a"); c.Source != User {
		t.Errorf("source %q", c.Source)
	}
}

func TestSymlinksStayInside(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	writeFiles(t, dir, map[string]string{".agent/commands/a.md": "inside", "real/commands/b.md": "moved"})
	writeFiles(t, other, map[string]string{"secret.md": "secret", "commands/c.md": "secret"})
	for from, to := range map[string]string{
		".agent/commands/out.md":  filepath.Join(other, "secret.md"),
		".agent/commands/in.md":   "a.md",
		".agent/commands/up.md":   "../../real/commands/b.md",
		".agent/commands/loop.md": "loop.md",
		".agent/commands/dir":     filepath.Join(other, "commands"),
		".claude":                 other,
		".qwen":                   "real",
	} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Skip(err)
		}
	}
	r := New(Env{})
	problems := r.Load(Folders(dir, Project))
	for _, name := range []string{"out", "up", "loop", "c", "dir:c", "secret"} {
		if _, ok := r.Lookup(name); ok {
			t.Errorf("/%s exists", name)
		}
	}
	for _, name := range []string{"a", "in", "b"} {
		if _, ok := r.Lookup(name); !ok {
			t.Errorf("/%s does not exist", name)
		}
	}
	if len(problems) != 4 {
		t.Errorf("problems: %v", problems)
	}
}

func TestFoldersAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{".agent/commands/0big.md": strings.Repeat("x", maxFile+1)}
	for i := range maxFiles + 5 {
		files[fmt.Sprintf(".agent/commands/c%d.md", i)] = "x"
	}
	writeFiles(t, dir, files)
	r := New(Env{})
	problems := r.Load(Folders(dir, Project))
	if n := len(r.Names()); n != maxFiles+3 || len(problems) != 2 {
		t.Errorf("%d commands; %v", n, problems)
	}
}

func TestHostileDescriptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{".agent/commands/a.md": "---\ndescription: \"\\e[2Jx\\u202Ey\\nz" + strings.Repeat("w", 500) + "\"\n---\nx"})
	r := New(Env{})
	r.Load(Folders(dir, Project))
	c, _ := r.Lookup("a")
	if !strings.HasPrefix(c.Description, "[2Jxy zwww") || len([]rune(c.Description)) > maxDescription {
		t.Errorf("description %q", c.Description)
	}
}

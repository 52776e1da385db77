//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// testPlace is a throw-away home and project, and what the program said there.
type testPlace struct {
	t        testing.TB
	io       IO
	out, err bytes.Buffer
}

func newTestPlace(t testing.TB) *testPlace {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &testPlace{t: t}
	home := filepath.Join(root, "home")
	p.io = IO{
		In: strings.NewReader(""), Out: &p.out, Err: &p.err, Dir: filepath.Join(root, "work"),
		Admin: AdminDir{filepath.Join(root, "etc", "policies"), os.Getuid()},
		Getenv: func(name string) string {
			return map[string]string{"HOME": home, "AGENT_HOME": filepath.Join(home, "agent")}[name]
		},
	}
	for _, dir := range []string{home, p.io.Dir, filepath.Join(p.io.Dir, ".agent")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// admin, user and project write a policy file of that tier.
func (p *testPlace) admin(name, text string) string { return p.write("etc/policies/"+name, text) }
func (p *testPlace) user(name, text string) string  { return p.write("home/agent/policies/"+name, text) }
func (p *testPlace) project(name, text string) string {
	return p.write("work/.agent/policies/"+name, text)
}

// write makes a file in the place and returns its path.
func (p *testPlace) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(filepath.Dir(p.io.Dir), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// run runs the program and demands its exit code.
func (p *testPlace) run(want ExitCode, args ...string) {
	p.t.Helper()
	p.out.Reset()
	p.err.Reset()
	if got := Main(p.t.Context(), p.io, args); got != want {
		p.t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, want, p.out.String(), p.err.String())
	}
}

// says demands texts of what the last run wrote to stderr.
func (p *testPlace) says(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.err.String(), text) {
			p.t.Errorf("stderr does not say %q:\n%s", text, p.err.String())
		}
	}
}

// rule is a [[rule]] about commands.
func rule(decision, prefix string, priority string) string {
	return "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"" + prefix + "\"\ndecision = \"" + decision + "\"\npriority = " + priority + "\n"
}

// decided is the decision for a command with these flags, and its rule's
// origin within the place.
func (p *testPlace) decided(command string, flags ...string) (decision, origin string) {
	p.t.Helper()
	e := p.explain(append(flags, "--", command)...)
	root := filepath.Dir(p.io.Dir) + "/"
	return e.Decision, strings.TrimPrefix(e.Origin, root)
}

func TestPolicyFilesOfAllTiers(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("10-mine.toml", rule("allow", "make", "100")+rule("allow", "make deploy", "200"))
	p.project("p.toml", rule("deny", "make clean", "999")+rule("allow", "curl", "1"))
	check := func(command, decision, origin string, flags ...string) {
		t.Helper()
		if d, o := p.decided(command, flags...); d != decision || o != origin {
			t.Errorf("%s with %q: %s by %q, want %s by %q", command, flags, d, o, decision, origin)
		}
	}
	check("make test", "allow", "home/agent/policies/10-mine.toml, rule 1")
	check("make clean", "allow", "home/agent/policies/10-mine.toml, rule 1") // the higher tier wins
	check("curl example.com", "ask", "")                                     // a project allows nothing
	p.says("warning: ", ".agent/policies/p.toml, rule 2: left out")

	other := p.write("other.toml", rule("deny", "make test", "1"))
	check("make test", "deny", "other.toml, rule 1", "--policy", other)
	check("make clean", "deny", "work/.agent/policies/p.toml, rule 1", "--policy", "../other.toml")
	more := p.write("more/x.toml", rule("ask", "make clean", "1"))
	check("make clean", "ask", "more/x.toml, rule 1", "--policy", other+", "+filepath.Dir(more))
	check("make test", "deny", "other.toml, rule 1", "--admin-policy", other)

	p.admin("a.toml", rule("ask", "make", "0"))
	check("make test", "ask", "etc/policies/a.toml, rule 1")
	check("make test", "ask", "etc/policies/a.toml, rule 1", "--admin-policy", other)
	p.says("other.toml: --admin-policy is ignored")
}

func TestPolicyFilesInNameOrder(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("b.toml", rule("allow", "make", "5"))
	p.user("a.toml", rule("deny", "make", "5"))
	p.user("c.toml.off", "this is no TOML")
	if d, o := p.decided("make"); d != "deny" || o != "home/agent/policies/a.toml, rule 1" {
		t.Errorf("%s by %s", d, o)
	}
}

// TestPolicyFilesOfTheProjectsRoot runs the program in a folder of a project.
func TestPolicyFilesOfTheProjectsRoot(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.project("ours.toml", rule("deny", "make", "5"))
	p.write("work/deep/.agent-is-not-here", "")
	p.io.Dir = filepath.Join(p.io.Dir, "deep")
	if d, o := p.decided("make"); d != "deny" || !strings.HasSuffix(o, ".agent/policies/ours.toml, rule 1") {
		t.Errorf("%s by %s", d, o)
	}
}

func TestPolicyFilesOfGemini(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.write("home/.gemini/policies/g.toml", rule("allow", "make", "5"))
	if d, _ := p.decided("make"); d != "ask" {
		t.Errorf("%s though nothing is imported", d)
	}
	p.write("home/agent/settings.json", `{"permissions": {"import": ["gemini"]}}`)
	if d, o := p.decided("make"); d != "allow" || o != "home/.gemini/policies/g.toml, rule 1" {
		t.Errorf("%s by %s", d, o)
	}
	given := p.write("given.toml", "")
	if d, _ := p.decided("make", "--policy", given); d != "ask" {
		t.Errorf("%s though --policy takes the place of the user's folders", d)
	}
}

func TestAdminPoliciesThatOthersCouldHaveWritten(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(p *testPlace, file string){
		"another owner":   func(p *testPlace, _ string) { p.io.Admin.Owner++ },
		"group's folder":  func(p *testPlace, file string) { chmod(p.t, filepath.Dir(file), 0o775) },
		"anyone's folder": func(p *testPlace, file string) { chmod(p.t, filepath.Dir(file), 0o777) },
		"anyone's parent": func(p *testPlace, file string) { chmod(p.t, filepath.Dir(filepath.Dir(file)), 0o777) },
		"group's file":    func(p *testPlace, file string) { chmod(p.t, file, 0o664) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestPlace(t)
			file := p.admin("a.toml", rule("allow", "make", "1"))
			if d, _ := p.decided("make"); d != "allow" {
				t.Fatalf("%s before it is spoilt", d)
			}
			spoil(p, file)
			if d, _ := p.decided("make"); d != "ask" {
				t.Errorf("%s", d)
			}
			p.says("warning: ", "ignored")
			given := p.write("given.toml", rule("deny", "make", "1"))
			if d, _ := p.decided("make", "--admin-policy", given); d != "deny" {
				t.Errorf("%s: a folder that does not count keeps --admin-policy from counting", d)
			}
		})
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestPolicyFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("a.toml", rule("allow", "make", "5")+"[[rule]]\ntoolName = \"edit\"\ndecision = \"allow\"\npriority = 1\nprioritty = 2\n")
	p.user("b.toml", "[[rule]\n")
	p.project("c.toml", rule("perhaps", "make", "5"))
	if err := syscall.Mkfifo(filepath.Join(p.io.Dir, ".agent/policies/d.toml"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := "--model=scripted/" + p.write("model.jsonc", `{"emit": [{"text": "done"}]}`)
	p.run(ExitSettings, "-p", "hi", model)
	p.says(`a.toml, rule 2: unknown key "prioritty" (did you mean "priority"?)`, "b.toml: line 1", "c.toml, rule 1: decision must be",
		"d.toml: it can't be read: it is not a regular file")
	p.run(ExitSettings, "policy", "explain", "--", "ls")
	p.says("c.toml, rule 1")
}

func TestPolicyFlagsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	model := "--model=scripted/" + p.write("model.jsonc", `{"emit": [{"text": "done"}]}`)
	p.run(ExitUsage, "-p", "hi", model, "--policy", "none.toml")
	p.says("--policy", "none.toml")
	p.run(ExitUsage, "-p", "hi", model, "--admin-policy", "a,,b")
	p.says("--admin-policy names no file")
	p.run(ExitOK, "policy", "list", "--policy", ".")
	if !strings.Contains(p.out.String(), "no .toml file") {
		t.Errorf("an empty folder is not told of:\n%s", p.out.String())
	}
}

func TestPolicyFolderThatIsAFile(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.write("work/.agent/policies", "")
	p.run(ExitSettings, "policy", "explain", "--", "ls")
	p.says("policies: the policy files in it can't be read")
}

func TestPolicyFilesOfARunAreGuarded(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.write("work/ci/rules.toml", rule("allow", "make", "5"))
	for flag, path := range map[string]string{"ci/rules.toml": "ci/rules.toml", "ci": "ci/new.toml"} {
		e := p.explain("--mode=yolo", "--policy="+flag, "Write", `{"file_path":"`+path+`","content":""}`)
		if e.Decision != "ask" || e.Why != "protected" {
			t.Errorf("--policy %s: writing %s: %s, %s", flag, path, e.Decision, e.Why)
		}
	}
	p.write("work/own.toml", rule("allow", "make", "5"))
	if e := p.explain("--mode=yolo", "--policy=.", "Write", `{"file_path":"main.go","content":""}`); e.Decision != "allow" {
		t.Errorf("a policy file in the working directory guards all of it: %s", e.Reason)
	}
}

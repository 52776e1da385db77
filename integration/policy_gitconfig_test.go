package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestGitRunsNothingThatARepositoryNames: looking with git is free, but not in a
// repository whose own settings make it run programs.
func TestGitRunsNothingThatARepositoryNames(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "git")
	commands := []string{"git status", "git diff", "git log -p -1", "git -C sub status"}
	for name, c := range map[string]struct {
		prepare func(p *place)
		asks    []bool
	}{
		"clean": {func(*place) {}, []bool{false, false, false, false}},
		"core.fsmonitor": {func(p *place) {
			p.git("config", "core.fsmonitor", "./evil")
		}, []bool{true, true, true, true}},
		"a filter": {func(p *place) {
			p.write(".gitattributes", "* filter=x diff=x\n")
			p.git("config", "filter.x.clean", "./evil")
			p.git("config", "diff.x.textconv", "./evil")
		}, []bool{true, true, true, true}},
		"a repository without a working tree": {func(p *place) {
			p.write("sub/HEAD", "ref: refs/heads/main\n")
			p.write("sub/objects/x", "")
			p.write("sub/refs/x", "")
			p.write("sub/config", "[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = ../evil\n")
		}, []bool{false, false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.repository()
			p.write("sub/file", "x")
			evil := p.write("evil", "#!/bin/sh\necho > "+filepath.Join(p.dir, "canary")+"\n")
			if err := os.Chmod(evil, 0o755); err != nil {
				t.Fatal(err)
			}
			c.prepare(p)
			var steps strings.Builder
			for i, command := range commands {
				steps.WriteString(shell(i+1, command))
			}
			proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", p.scripted(steps.String() + say("done"))}})
			answers := toolResults(frames(t, proc))
			var asked []bool
			for _, a := range answers {
				asked = append(asked, a.isError)
			}
			if fmt.Sprint(asked) != fmt.Sprint(c.asks) {
				t.Errorf("asked about %v: %v, want %v\n%v", commands, asked, c.asks, answers)
			}
			if p.has("canary") {
				t.Error("the repository's program was run")
			}
		})
	}
}

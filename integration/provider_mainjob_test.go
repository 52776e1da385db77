package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copySource copies this repository's tracked files into the working folder.
func (p *place) copySource() {
	p.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		p.t.Skip("git is not installed: it lists the files to copy")
	}
	list := exec.Command("git", "ls-files", "-z", "--", "cmd", "internal", "go.mod", "Makefile")
	list.Dir = ".."
	raw, err := list.Output()
	if err != nil {
		p.t.Skipf("this is no git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(raw), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.write(name, string(data))
	}
}

// theJob is what a model says and calls to change a constant of this program:
// two looks at once, an edit by what they showed, a command that checks it.
const theJob = `
{"when": {"user": {"contains": "give up after"}}, "emit": [
  {"thinking": "Where is that limit?"},
  {"text": "I'll look for the limit.", "by": "word"},
  {"tool": "grep_search", "input": {"pattern": "const probeLimit|probeLimit +=", "path": "internal/model"}},
  {"tool": "read_file", "input": {"file_path": "internal/model/probe.go"}},
  {"tool": "list_directory", "input": {"path": "cmd/agent"}},
  {"usage": {"input": 1000, "output": 50}}]}
{"when": {"tool": "read_file", "result": {"regex": "probeLimit = (?P<ms>\\d+) \\* time.Millisecond"}}, "emit": [
  {"text": "It is {{result.ms}} ms."},
  {"tool": "edit", "input": {"file_path": "internal/model/probe.go",
    "old_string": "probeLimit = {{result.ms}} * time.Millisecond", "new_string": "probeLimit = 450 * time.Millisecond"}},
  {"usage": {"input": 1500, "output": 60, "cache_read": 900}}]}
{"when": {"tool": "edit"}, "emit": [
  {"tool": "run_shell_command", "input": {"command": "gofmt -l internal/model/probe.go && grep -c '450 \\* time.Millisecond' internal/model/probe.go"}},
  {"usage": {"input": 1700, "output": 30, "cache_read": 1400}}]}
{"when": {"tool": "run_shell_command", "result": {"contains": "1"}}, "emit": [
  {"text": ["The probe now gives up ", "after 450 ms."]},
  {"usage": {"input": 1800, "output": 20, "cache_read": 1600}}]}
`

// TestUsersRow01_TheMainJobOnThisRepositorysOwnSource runs the main job through each
// vendor's API, with real tools on real files.
func TestUsersRow01_TheMainJobOnThisRepositorysOwnSource(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		p.copySource()
		file := filepath.Join(p.dir, "internal/model/probe.go")
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base, log := p.serve(theJob)

		a := p.ask("Make the probe for local servers give up after 450 ms.", pr.model, pr.env(base), "--permission-mode", "yolo")

		if a.exit.Code != 0 || a.result["is_error"] != false || a.result.String("terminal_reason") != "completed" {
			t.Fatalf("exit %d, result %v", a.exit.Code, a.result)
		}
		if got := a.result.String("result"); got != "The probe now gives up after 450 ms." {
			t.Errorf("result %q", got)
		}
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Replace(before, []byte("= 300 * time"), []byte("= 450 * time"), 1); !bytes.Equal(after, want) {
			t.Errorf("the edit is not what was asked for:\n%.600s", after)
		}
		refused(t, log)
		if n := len(requests(t, log)); n != 4 || number(t, a.result, "num_turns") != 4 {
			t.Errorf("%d requests, num_turns %v, want 4", n, a.result["num_turns"])
		}
		want := tokens{In: 6000, Out: 160, CacheRead: 3900}
		if u, m := usageOf(t, a.result), modelUsageOf(t, a.result); u != want || m != want {
			t.Errorf("usage %+v, modelUsage %+v, want %+v", u, m, want)
		}
	})
}

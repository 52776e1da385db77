package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestSettingsInClaudesWords: what users of Claude's SDKs say in --settings has
// an effect, or is refused where going on without it would be unguarded.
func TestSettingsInClaudesWords(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "note.txt"), []byte("from there"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := p.host(t, "claude", testkit.Spec{
		Args: []string{
			p.scripted(shell(1, "echo colour=$COLOUR") + call(2, "read_file", map[string]any{"file_path": filepath.Join(other, "note.txt")}) + say("done")),
			"--settings", line(map[string]any{
				"outputStyle": "terse", "env": map[string]any{"COLOUR": "green"},
				"permissions": map[string]any{"additionalDirectories": []string{other}, "allow": []string{"Bash(echo:*)"}},
			}),
		},
	})
	if style := h.initialize(nil).String("response.response.output_style"); style != "terse" {
		t.Errorf("initialize says that the output style is %q", style)
	}
	h.say("go")
	h.result()
	all := h.end(0)
	results := toolResults(all)
	if len(results) != 2 || !strings.Contains(results[0].text, "colour=green") || !strings.Contains(results[1].text, "from there") {
		t.Errorf("results: %+v", results)
	}
	if style := all[1].String("output_style"); style != "terse" {
		t.Errorf("system/init says that the output style is %q", style)
	}
}

func TestHooksThatGuardAreRefusedInSettings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	proc, exit := p.run(testkit.Spec{
		Args:  append([]string{"--dialect=claude", p.scripted(say("hi")), "--settings", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"false"}]}]}}`}, bothWays...),
		Stdin: userLine("go") + "\n",
	})
	f, err := testkit.Parse(bytes.TrimSpace([]byte(proc.Output())))
	if err != nil || exit.Code != 1 || f.Kind() != "result" || !strings.Contains(line(f), "PreToolUse") {
		t.Errorf("exit %d, %v: %s", exit.Code, err, proc.Output())
	}
}

// TestStartWithoutAWorkingDirectory: a host is told why, and the version is
// still told.
func TestStartWithoutAWorkingDirectory(t *testing.T) {
	t.Parallel()
	onLinux(t)
	run := func(input string, args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{"-c", `d=$(mktemp -d) && cd "$d" && rmdir "$d" && exec "$@"`, "sh", agentPath(t)}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		return string(out), err
	}
	out, err := run(userLine("hi")+"\n", append([]string{"--dialect=claude"}, bothWays...)...)
	var f struct {
		Type, Subtype string
		IsError       bool `json:"is_error"`
		Errors        []string
	}
	if jerr := json.Unmarshal([]byte(out), &f); err == nil || jerr != nil || f.Type != "result" || !f.IsError || !strings.Contains(strings.Join(f.Errors, ""), "working directory") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("", "-v"); err != nil || !strings.HasPrefix(out, "2.1.") {
		t.Errorf("-v: %v: %s", err, out)
	}
}

// TestAComposedLineIsNoCommandForAHost: see client_composed.
func TestAComposedLineIsNoCommandForAHost(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.host(t, "claude", testkit.Spec{Args: []string{p.scripted(say("from the model"))}})
	h.initialize(nil)
	h.send(line(map[string]any{"type": "user", "client_composed": true, "message": map[string]any{"role": "user", "content": "/clear"}}))
	if text := h.result().String("result"); text != "from the model" {
		t.Errorf("the result is %q", text)
	}
	h.end(0)
}

// TestRulesThatCantBeReadAllowNothing: as in the program that Claude's SDKs are
// made for. One that is to deny something ends the start.
func TestRulesThatCantBeReadAllowNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(shell(1, "touch made.txt") + say("done"))
	for flag, code := range map[string]int{"--allowedTools": 0, "--disallowedTools": 1} {
		for _, rule := range []string{"(bad", "Bash(", "WebFetch(/x)"} {
			proc, exit := p.run(testkit.Spec{Args: append([]string{"--dialect=claude", model, flag, rule}, bothWays...), Stdin: userLine("go") + "\n"})
			if exit.Code != code || p.has("made.txt") {
				t.Errorf("%s %s: exit %d: %s%s", flag, rule, exit.Code, proc.Output(), proc.Stderr())
			}
		}
	}
}

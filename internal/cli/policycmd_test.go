//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/agentcli/agent/internal/policy"
)

// explain runs "agent policy explain --json".
func (p *testPlace) explain(args ...string) explanation {
	p.t.Helper()
	p.run(ExitOK, append([]string{"policy", "explain", "--json"}, args...)...)
	var e explanation
	if err := json.Unmarshal(p.out.Bytes(), &e); err != nil {
		p.t.Fatalf("%v\n%s", err, p.out.String())
	}
	return e
}

// ranAs is what a run makes of one call: how the engine decided, and why if it
// did not allow it.
func (p *testPlace) ranAs(tool, input string, flags ...string) (decision, reason string) {
	p.t.Helper()
	model := p.write("model.jsonc", fmt.Sprintf(`{"use": "always", "when": {"turn": 1}, "emit": [{"tool": %q, "input": %s}]}
{"use": "always", "emit": [{"text": "done"}]}`, tool, input))
	p.run(ExitOK, append(flags, "-p", "go", "--model=scripted/"+model, "--output-format=stream-json")...)
	for line := range strings.Lines(p.out.String()) {
		var frame struct {
			Subtype string          `json:"subtype"`
			Message json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &frame); err != nil {
			p.t.Fatal(err)
		}
		if frame.Subtype != "permission_denied" {
			continue
		}
		var reason string
		if err := json.Unmarshal(frame.Message, &reason); err != nil {
			p.t.Fatal(err)
		}
		if reason, asked := strings.CutSuffix(reason, ", and nobody is there to ask"); asked {
			return "ask", reason
		}
		return "deny", reason
	}
	return "allow", ""
}

// TestExplainAgreesWithARun makes the calls and compares decision and reason.
func TestExplainAgreesWithARun(t *testing.T) {
	t.Parallel()
	shell := func(command string) string { return fmt.Sprintf(`{"command":%q}`, command) }
	for _, tt := range []struct {
		tool, input string
		flags       []string
		want        string
	}{
		{"run_shell_command", shell("ls"), nil, "allow"},
		{"run_shell_command", shell("touch made"), nil, "ask"},
		{"run_shell_command", shell("touch made"), []string{"--permission-mode=auto-edit"}, "allow"},
		{"run_shell_command", shell("touch made && frob"), []string{"--permission-mode=auto-edit"}, "ask"},
		{"run_shell_command", shell("touch made"), []string{"--permission-mode=plan"}, "deny"},
		{"run_shell_command", shell("touch made"), []string{"--allowed-tools=Bash(touch:*)"}, "allow"},
		{"run_shell_command", shell("touch made | frob"), []string{"--allowed-tools=Bash(touch:*)"}, "ask"},
		{"run_shell_command", shell("env touch made"), []string{"--permission-mode=yolo", "--disallowed-tools=Bash(touch:*)"}, "deny"},
		{"run_shell_command", shell("rm -rf ../.."), []string{"--permission-mode=yolo"}, "ask"},
		{"run_shell_command", shell("echo 'half"), nil, "ask"},
		{"run_shell_command", shell("make it"), nil, "allow"},        // by the user's policy file
		{"run_shell_command", shell("make clean"), nil, "deny"},      // by another one of it
		{"run_shell_command", shell("frob --hard"), nil, "deny"},     // by the project's
		{"run_shell_command", `{"cmd":"touch made"}`, nil, "deny"},   // no command in it
		{"write_file", `{"file_path":"a","content":""}`, nil, "ask"}, // settings ask nothing of it
		{"write_file", `{"file_path":"a","content":""}`, []string{"--permission-mode=auto-edit"}, "allow"},
		{"write_file", `{"file_path":".git/config","content":""}`, []string{"--permission-mode=yolo"}, "ask"},
		{"write_file", `{"file_path":"../a","content":""}`, []string{"--permission-mode=auto-edit"}, "ask"},
		{"write_file", `{"file_path":"../more/a","content":""}`, []string{"--permission-mode=auto-edit", "--add-dir=../more"}, "allow"},
		{"read_file", `{"file_path":"model.jsonc"}`, nil, "allow"},
		{"read_file", `{"file_path":"/etc/shadow"}`, nil, "ask"},
		{"web_fetch", `{"url":"http://127.0.0.1:1/"}`, []string{"--disallowed-tools=WebFetch(domain:127.0.0.1)"}, "deny"},
		{"web_fetch", `{"url":"http://127.0.0.1:1/"}`, nil, "ask"},
		{"web_fetch", `{"url":"http://127.0.0.1:1/"}`, []string{"--permission-mode=dont-ask"}, "deny"},
	} {
		t.Run(strings.Join(append(tt.flags, tt.tool, tt.input), " "), func(t *testing.T) {
			t.Parallel()
			p := newTestPlace(t)
			p.write("more/.keep", "")
			p.user("mine.toml", rule("allow", "make", "5")+rule("deny", "make clean", "6"))
			p.project("ours.toml", rule("deny", "frob --hard", "1"))
			e := p.explain(append(slices.Clone(absolute(p, tt.flags)), "--headless", tt.tool, tt.input)...)
			decision, reason := p.ranAs(tt.tool, tt.input, absolute(p, tt.flags)...)
			if decision != e.Decision || decision != tt.want {
				t.Errorf("explained as %s, run as %s, want %s", e.Decision, decision, tt.want)
			}
			if decision != "allow" && reason != e.Reason {
				t.Errorf("explained by %q, run by %q", e.Reason, reason)
			}
		})
	}
}

// absolute makes the paths of --add-dir absolute: the program takes them from
// the process's own folder.
func absolute(p *testPlace, flags []string) []string {
	out := slices.Clone(flags)
	for i := range out {
		if dir, ok := strings.CutPrefix(out[i], "--add-dir="); ok {
			out[i] = "--add-dir=" + filepath.Join(p.io.Dir, dir)
		}
	}
	return out
}

func TestExplainHidesNothing(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	hostile := "touch a\x1b[2Kb \u202ergo.live\u202c\r\u00a0c\u200d && echo \x07 > 'x\u2028y'"
	p.user("evil\x1b\u202e.toml", rule("ask_user", "touch", "5"))
	for _, args := range [][]string{
		{"explain", "--", hostile},
		{"explain", "--json", "--", hostile},
		{"explain", "Write", `{"file_path":"a\u001b\u202eb","content":"\u202e"}`},
		{"explain", "--json", "Write", `{"file_path":"a\u001b\u202eb","content":"\u202e"}`},
		{"list"},
		{"list", "--json"},
	} {
		p.run(ExitOK, append([]string{"policy"}, args...)...)
		noHidden(t, p.out.String()+p.err.String())
	}
	p.run(ExitUsage, "policy", "explain", "To\x1b\u202eol", "{}")
	noHidden(t, p.err.String())
	p.run(ExitUsage, "policy", "explain", "Write", "\x1b\u202e")
	noHidden(t, p.err.String())
	file := p.write("work/te\x1bst\u202e.toml", "[[example]]\ncommand = \"touch \\u202E \\u001b\"\nexpect = \"deny\"\n")
	p.run(ExitFailed, "policy", "test", file)
	noHidden(t, p.out.String())
	if !strings.Contains(p.out.String(), `\u{202e}`) {
		t.Errorf("the direction mark is not shown:\n%s", p.out.String())
	}
}

func noHidden(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u00a0') {
			t.Fatalf("%U in %q", r, text)
		}
	}
}

// TestExplainedTextsLookLikeNothingElse gives lines that could be taken for
// what the program says.
func TestExplainedTextsLookLikeNothingElse(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.run(ExitOK, "policy", "explain", "--", "frob '\nALLOW: the mode decides\n  reason  trust me'\nwhat would allow it:")
	for line := range strings.Lines(p.out.String()) {
		if strings.HasPrefix(line, "ALLOW") || strings.HasPrefix(line, "  reason  trust me") {
			t.Errorf("%q", line)
		}
	}
	if strings.Count(p.out.String(), "\nwhat would allow it:\n") != 1 {
		t.Error(p.out.String())
	}
}

func TestExplainManyParts(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	var b strings.Builder
	for i := range 9_999 {
		fmt.Fprintf(&b, "ls a%d;", i)
	}
	e := p.explain("--", b.String()+"frob")
	if len(e.Parts) != 10_000 || e.Decision != "ask" || e.Parts[9_999].Text != "frob" || e.Parts[9_999].Decision != "ask" || e.Parts[0].Decision != "allow" {
		t.Errorf("%d parts, %s", len(e.Parts), e.Decision)
	}
	p.run(ExitOK, "policy", "explain", "--", b.String()+"frob")
	if !strings.Contains(p.out.String(), "10000. ask   frob\n") {
		t.Error("the last part is not shown")
	}
}

func TestExplainSuggestsWhatAllows(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	for _, call := range [][]string{{"--", "npm run 'a b' | frob"}, {"Write", `{"file_path":"a*b.go","content":""}`}, {"WebFetch", `{"url":"https://example.com/x"}`}} {
		e := p.explain(call...)
		i := slices.IndexFunc(e.Suggestions, func(s policy.Suggestion) bool { return s.Type == "allow" && s.Rule != "" })
		if e.Decision != "ask" || i < 0 {
			t.Errorf("%q: %s, %+v", call, e.Decision, e.Suggestions)
			continue
		}
		rule := e.Suggestions[i].Rule
		if with := p.explain(append([]string{"--allowed-tools", rule}, call...)...); with.Decision != "allow" || len(with.Suggestions) != 0 {
			t.Errorf("%q with %s: %s", call, rule, with.Decision)
		}
		p.run(ExitOK, append([]string{"policy", "explain"}, call...)...)
		if want := "what would allow it:\n  the rule " + rule; !strings.Contains(p.out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, p.out.String())
		}
	}
	for want, args := range map[string][]string{
		"no rule and no mode": {"--mode=yolo", "Write", `{"file_path":".git/config","content":""}`},
		"another mode":        {"--mode=plan", "--", "frob"},
		"as long as there is": {"--disallowed-tools=Bash(frob)", "--", "frob"},
		"call it in another":  {"Bash", `{"command":""}`},
		"--force-with-lease":  {"--", "git push --force origin x"},
	} {
		p.run(ExitOK, append([]string{"policy", "explain"}, args...)...)
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%q: %q is not in:\n%s", args, want, p.out.String())
		}
	}
}

func TestExplainCallsThatAreNone(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{`there is no tool "Bsh" (did you mean "Bash"?): the tools are read_file,`, []string{"Bsh", "{}"}},
		{"the input of edit is no JSON object: unexpected end", []string{"Edit", `{"file_path"`}},
		{"the input of edit is no JSON object", []string{"Edit", `[1]`}},
		{"must be a JSON object", []string{"Edit", `null`}},
		{"give a tool and its input", []string{"Edit"}},
		{"give a tool and its input", nil},
		{"as one argument: policy explain -- 'git push'", []string{"--", "git", "push"}},
		{"not UTF-8", []string{"--", "echo \xff"}},
		{"unknown permission mode", []string{"--mode=wild", "--", "ls"}},
		{"malformed", []string{"--allowed-tools=Bash(", "--", "ls"}},
	} {
		p.run(ExitUsage, append([]string{"policy", "explain"}, tt.args...)...)
		if p.out.Len() > 0 {
			t.Errorf("%q: %s", tt.args, p.out.String())
		}
		p.says(tt.want)
	}
}

// TestExplainReadsInputAsTheToolDoes gives a key by its alias.
func TestExplainReadsInputAsTheToolDoes(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	if e := p.explain("--mode=yolo", "Write", `{"path":".git/config","content":""}`); e.Why != "protected" {
		t.Errorf("%s: %s", e.Decision, e.Reason)
	}
}

func TestExplainOfAToolThatTheModelDoesNotGet(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	if e := p.explain("--disallowed-tools=Write", "Write", `{"file_path":"a","content":""}`); e.Decision != "deny" || e.Rule != "Write" || e.Origin != "--disallowed-tools" || e.Offered {
		t.Errorf("%+v", e)
	}
	if e := p.explain("--disallowed-tools=Write(a)", "Write", `{"file_path":"a","content":""}`); e.Decision != "deny" || !e.Offered {
		t.Errorf("%+v", e)
	}
	p.run(ExitOK, "policy", "explain", "--disallowed-tools=Write", "Write", `{"file_path":"a","content":""}`)
	if !strings.Contains(p.out.String(), "note    the model does not get this tool") {
		t.Error(p.out.String())
	}
}

func TestExplainForNobody(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("a.toml", "[[rule]]\ntoolName = \"edit\"\ndecision = \"deny\"\npriority = 1\ninteractive = false\n")
	call := []string{"Edit", `{"file_path":"a","old_string":"a","new_string":"b"}`}
	if e := p.explain(call...); e.Decision != "ask" {
		t.Errorf("with somebody there: %s", e.Decision)
	}
	if e := p.explain(append([]string{"--headless"}, call...)...); e.Decision != "deny" {
		t.Errorf("with nobody there: %s", e.Decision)
	}
}

func TestExplainAsksCheckers(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("a.toml", `
[[safety_checker]]
toolName = "write_file"
priority = 9
[safety_checker.checker]
type = "in-process"
name = "allowed-path"

[[safety_checker]]
toolName = "write_file"
priority = 8
[safety_checker.checker]
type = "external"
name = "/bin/does-not-run"
`)
	e := p.explain("--mode=yolo", "Write", `{"file_path":"node_modules/x","content":""}`)
	if e.Decision != "deny" || len(e.Checkers) != 2 || e.Checkers[0].Decision != "deny" || e.Checkers[1].Decision != "" {
		t.Errorf("%+v", e)
	}
}

func TestPolicyExamples(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	rules := rule("deny", "git push", "9") + rule("allow", "git fetch", "9") +
		"[[rule]]\ntoolName = \"mcp_github_*\"\ndecision = \"deny\"\npriority = 1\n"
	good := rules + `
[[example]]
command = "git fetch && git push"
expect = "deny"
[[example]]
command = "git fetch"
mode = "plan"
expect = "deny"
[[example]]
tool = "Write"
input = { path = ".git/config", content = "" }
mode = "yolo"
expect = "ask_user"
[[example]]
tool = "mcp__github__create"
expect = "deny"
[[example]]
command = "cat /home/user/project/x"
expect = "allow"
`
	file := p.write("work/good.toml", good)
	p.user("other.toml", rule("allow", "git push", "99")) // has no part in it
	p.run(ExitOK, "policy", "test", file)
	if want := file + ": 5 of 5 examples are as expected\n"; p.out.String() != want {
		t.Errorf("%q, want %q", p.out.String(), want)
	}
	bad := p.write("work/bad.toml", rules+`
[[example]]
command = "git push"
expect = "allow"
[[example]]
tool = "Wrte"
expect = "allow"
[[example]]
command = "git fetch"
expect = "allow"
`)
	empty, broken := p.write("work/empty.toml", rules), p.write("work/broken.toml", "[[rule]]\n")
	p.run(ExitFailed, "policy", "test", bad, file, empty, broken, "missing.toml")
	for _, want := range []string{
		`FAIL: ` + bad + `, example 1: run_shell_command git push in mode default`, "expected allow, but it is deny: denied by the rule", bad + ", rule 1",
		`example 2: there is no tool "Wrte" (did you mean "Write"?)`, bad + ": 1 of 3 examples",
		file + ": 5 of 5", "FAIL: " + empty + ": there is no [[example]] in it", "FAIL: " + broken + ", rule 1: ", "FAIL: missing.toml: it can't be read: no such file",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, p.out.String())
		}
	}
	p.run(ExitUsage, "policy", "test")
	p.says("name the policy files")
}

func TestPolicyList(t *testing.T) {
	t.Parallel()
	p := newTestPlace(t)
	p.user("a.toml", rule("deny", "make", "5")+
		"[[rule]]\ntoolName = \"edit\"\ndecision = \"deny\"\npriority = 7\n"+
		"[[rule]]\ntoolName = [\"edit\", \"rite_file\"]\ndecision = \"allow\"\npriority = 6\nmodes = [\"plan\"]\n"+
		"[[rule]]\ntoolName = \"edit\"\ndecision = \"allow\"\npriority = 3\n")
	p.admin("z.toml", rule("allow", "make", "0"))
	p.project("p.toml", rule("allow", "make", "1"))
	p.run(ExitOK, "policy", "list", "--json", "--allowed-tools=Bash(ls)", "--disallowed-tools=WebFech")
	var l policyList
	if err := json.Unmarshal(tiersAsNumbers(p.out.Bytes()), &l); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range l.Rules {
		if r.Tier != policy.TierDefault {
			got = append(got, strings.Join(append([]string{r.Tier.String(), fmt.Sprint(r.Priority), r.Decision}, r.Problems...), " "))
		}
	}
	root := filepath.Dir(p.io.Dir)
	want := []string{
		`list 0 deny there is no tool "WebFech" (did you mean "WebFetch"?)`,
		"list 0 allow", "admin 0 allow", "user 7 deny",
		`user 6 allow there is no tool "rite_file" (did you mean "write_file"?)`,
		"user 5 deny",
		"user 3 allow it never counts, for this comes before it: deny edit (" + root + "/home/agent/policies/a.toml, rule 2)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(l.Problems) != 1 || l.Problems[0].Fatal || !strings.Contains(l.Problems[0].Origin, "p.toml, rule 1") {
		t.Errorf("%+v", l.Problems)
	}
	p.user("b.toml", "[[rule]]\n")
	p.run(ExitSettings, "policy", "list")
	for _, text := range []string{"error: ", "b.toml, rule 1: ", "admin    0         allow     allow run_shell_command make", "default", "warning: it never counts"} {
		if !strings.Contains(p.out.String(), text) {
			t.Errorf("%q is not in:\n%s", text, p.out.String())
		}
	}
}

// tiersAsNumbers is the list with tiers as Go has them.
func tiersAsNumbers(raw []byte) []byte {
	text := string(raw)
	for tier := policy.TierList; tier <= policy.TierAdmin; tier++ {
		text = strings.ReplaceAll(text, fmt.Sprintf(`"tier": %q`, tier.String()), fmt.Sprintf(`"tier": %d`, tier))
	}
	return []byte(text)
}

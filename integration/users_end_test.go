package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// kindsOfRuns are model scripts that end in as many ways, with the flags.
var kindsOfRuns = []struct {
	name  string
	steps string
	flags []string
}{
	{"text", say("fine"), nil},
	{"tools", shell(1, "echo hi; sleep 0.1") + say("done"), []string{"--permission-mode=yolo"}},
	{"tool error", call(1, "read_file", map[string]any{"file_path": "nowhere"}) + say("sorry"), nil},
	{"denied", shell(1, "echo hi") + say("sorry"), nil},
	{"denied, to fail", shell(1, "echo hi") + say("sorry"), []string{"--on-deny=fail"}},
	{"background work", call(1, "run_shell_command", map[string]any{"command": "sleep 600", "run_in_background": true}) + say("started it"), []string{"--permission-mode=yolo"}},
	{"stall", `{"use": "always", "emit": [{"text": "half"}, {"fault": "stall"}]}`, nil},
	{"cut", `{"use": "always", "emit": [{"text": "half"}, {"fault": "cut"}]}`, nil},
	{"429", `{"emit": [{"status": 429, "retry_after": 0, "first": 1}, {"text": "fine"}]}`, nil},
	{"429 for ever", `{"use": "always", "emit": [{"status": 429}]}`, nil},
	{"unknown tool", call(1, "no_such_tool", nil) + say("sorry"), nil},
	{"turn limit", `{"use": "always", "emit": [{"tool": "list_directory", "input": {"path": "."}}]}`, []string{"--max-turns=2"}},
}

// TestUsersRow01_EveryRunEndsWithOneResult starts many runs, six at a time, of
// every kind: each has one result, as its last line, ends soon after it, and
// leaves nothing behind.
func TestUsersRow01_EveryRunEndsWithOneResult(t *testing.T) {
	t.Parallel()
	onLinux(t)
	rounds := 5
	if soak() {
		rounds = 42 // of 12 kinds: 504 runs
	}
	mark := mark()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 6)
	for i := range rounds * len(kindsOfRuns) {
		kind := kindsOfRuns[i%len(kindsOfRuns)]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := oneRun(newPlace(t), kind.steps, append(kind.flags, "-ostream-json", "-pgo"), mark); err != nil {
				t.Errorf("%s: %v", kind.name, err)
			}
		})
	}
	wg.Wait()
	noneLeft(t, mark, 2*time.Second)
}

func oneRun(p *place, steps string, flags []string, mark string) error {
	p.settings(`{"network": {"retryBudgetMs": 300, "idleTimeoutMs": 200}}`)
	proc, err := testkit.Start(testkit.Spec{
		Path: agentPath(p.t), Args: append(flags, p.scripted(steps)), Dir: p.dir, Env: append(p.env, mark), HoldStdin: true,
	})
	if err != nil {
		return err
	}
	defer proc.CloseStdin()
	exit, err := proc.Wait(30 * time.Second)
	if err != nil {
		return err
	}
	list, err := proc.Frames()
	if err != nil {
		return err
	}
	if err := testkit.CheckTurns(list); err != nil {
		return err
	}
	lines := proc.Lines()
	if n := len(results(list)); n != 1 || !isResult(lines[len(lines)-1]) {
		return fmt.Errorf("%d results, want one as the last line: %s", n, proc.Output())
	}
	if late := exit.Wall - lines[len(lines)-1].At; late > 2*time.Second {
		return fmt.Errorf("ended %s after the result", late)
	}
	return nil
}

// TestUsersRow03_AnOpenStdinIsNotWaitedFor holds stdin open with a prompt given.
func TestUsersRow03_AnOpenStdinIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-p", "hi"}, {"hi"}, {"--prompt-file", "prompt.txt"}} {
		p := newPlace(t)
		p.write("prompt.txt", "hi")
		proc := p.start(testkit.Spec{Args: append(args, "-ostream-json", p.scripted(say("done"))), Env: []string{"TERM=dumb"}, HoldStdin: true})
		if _, _, err := proc.Await(0, 5*time.Second, isInit); err != nil {
			t.Errorf("%v: init: %v", args, err)
		}
		exit, err := proc.Wait(10 * time.Second)
		if err != nil || exit.Code != 0 {
			t.Errorf("%v: %v, exit code %d", args, err, exit.Code)
		}
		proc.CloseStdin()
	}
}

// TestUsersRow03_StdinIsNotReadAtAll looks at the system calls.
func TestUsersRow03_StdinIsNotReadAtAll(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	trace := filepath.Join(filepath.Dir(p.dir), "trace")
	proc := p.traced(trace, "read,readv,pread64", testkit.Spec{Args: []string{"-p", "hi", p.scripted(say("done"))}, HoldStdin: true})
	if _, err := proc.Wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	proc.CloseStdin()
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "read(") {
		t.Fatal("nothing was traced")
	}
	if found := regexp.MustCompile(`(?m)^.*\b(?:p?readv?|pread64)\(0[,<].*$`).FindString(string(raw)); found != "" {
		t.Errorf("stdin was read: %s", found)
	}
}

// traced starts the program under strace, which writes the calls to file.
func (p *place) traced(file, calls string, s testkit.Spec) *testkit.Proc {
	p.t.Helper()
	s.Path = tool(p.t, "strace")
	s.Args = append([]string{"-f", "-qq", "-s", "64", "-o", file, "-e", "trace=" + calls, agentPath(p.t)}, s.Args...)
	s.Dir, s.Env = p.dir, append(append([]string(nil), p.env...), s.Env...)
	proc, err := testkit.Start(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return proc
}

// classes are calls of each permission class that would ask in mode default,
// each leaving a trace if it ran.
func classes(fetch string) string {
	return `{"when": {"turn": 1}, "emit": [
	{"tool": "write_file", "input": {"file_path": "new.txt", "content": "x"}},
	{"tool": "edit", "input": {"file_path": "old.txt", "old_string": "old", "new_string": "new"}},
	{"tool": "edit", "input": {"file_path": "made.txt", "old_string": "", "new_string": "new"}},
	{"tool": "run_shell_command", "input": {"command": "touch shell.txt"}},
	{"tool": "run_shell_command", "input": {"command": "touch background.txt", "run_in_background": true}},
	{"tool": "web_fetch", "input": {"url": "` + fetch + `", "prompt": "what is there?"}}
]}` + say("done")
}

// TestUsersRow05_NothingRunsBeforeItIsAllowed calls every tool that changes,
// runs or fetches: each is reported as denied before its answer comes, and none
// has an effect.
func TestUsersRow05_NothingRunsBeforeItIsAllowed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	url := local(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	for _, mode := range []string{"default", "plan"} {
		p := newPlace(t)
		p.write("old.txt", "old")
		p.settings(`{"tools": {"webFetch": {"allowedPrivateHosts": ["127.0.0.1"]}}}`)
		proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode", mode, p.scripted(classes(url))}})
		list := frames(t, proc)
		denied := map[string]bool{}
		for _, f := range list {
			if f.Kind() == "system/permission_denied" {
				denied[f.String("tool_use_id")] = true
			}
			if f.Kind() == "user" && !denied[blockID(f)] {
				t.Errorf("mode %s: %s was answered before it was reported as denied", mode, blockID(f))
			}
		}
		if len(denied) != 6 || len(toolResults(list)) != 6 {
			t.Errorf("mode %s: %d denials and %d answers, want 6 each", mode, len(denied), len(toolResults(list)))
		}
		denials, _ := results(list)[0]["permission_denials"].([]any)
		if len(denials) != 6 {
			t.Errorf("mode %s: the result lists %d denials, want 6", mode, len(denials))
		}
		if p.has("new.txt") || p.has("made.txt") || p.has("shell.txt") || p.has("background.txt") || p.content("old.txt") != "old" || hits.Load() > 0 {
			t.Errorf("mode %s: a denied call had an effect", mode)
		}
	}
}

func blockID(f testkit.Frame) string {
	for _, b := range content(f) {
		id, _ := b["tool_use_id"].(string)
		return id
	}
	return ""
}

// TestUsersRow05_TheAllowedOnesRun is the other side: the calls of the test
// before have their effects once they are allowed.
func TestUsersRow05_TheAllowedOnesRun(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	url := local(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	p := newPlace(t)
	p.write("old.txt", "old")
	p.settings(`{"tools": {"webFetch": {"allowedPrivateHosts": ["127.0.0.1"]}}}`)
	steps := call(1, "read_file", map[string]any{"file_path": "old.txt"}) + strings.Replace(classes(url), `"turn": 1`, `"turn": 2`, 1)
	proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--allowed-tools=Write,Edit,Bash,WebFetch", p.scripted(steps)}})
	frames(t, proc)
	eventually(t, 5*time.Second, "the background command ran", func() bool { return p.has("background.txt") })
	if !p.has("new.txt") || !p.has("made.txt") || !p.has("shell.txt") || p.content("old.txt") != "new" || hits.Load() != 1 {
		t.Errorf("an allowed call had no effect; requests to the server: %d\n%s", hits.Load(), proc.Output())
	}
}

// TestUsersRow13_NobodyThereIsNeverWaitedFor drives each class of call to a
// question with nobody there, under every kind of stdin.
func TestUsersRow13_NobodyThereIsNeverWaitedFor(t *testing.T) {
	t.Parallel()
	ask := `{"when": {"turn": 2}, "emit": [{"tool": "ask_user", "input": {"questions": [{"question": "Which?", "header": "h", "options": [{"label": "a"}, {"label": "b"}]}]}}]}`
	for _, hold := range []bool{true, false} {
		p := newPlace(t)
		p.write("old.txt", "old")
		proc := p.start(testkit.Spec{
			Args: []string{"-pgo", "-ostream-json", p.scripted(ask + classes("http://127.0.0.1:9/"))}, HoldStdin: hold,
		})
		exit, err := proc.Wait(20 * time.Second)
		if err != nil || exit.Code != 0 {
			t.Fatalf("%v, exit code %d", err, exit.Code)
		}
		proc.CloseStdin()
		list, lines := frames(t, proc), proc.Lines()
		for i, l := range lines[1:] {
			if wait := l.At - lines[i].At; wait > time.Second {
				t.Errorf("%s of waiting before line %d: %.300s", wait, i+2, l.Text)
			}
		}
		answers := toolResults(list)
		if len(answers) != 7 {
			t.Fatalf("%d answers, want 7", len(answers))
		}
		for _, a := range answers {
			if !a.isError || !strings.Contains(strings.ToLower(a.text), "nobody is there") {
				t.Errorf("an answer that does not say that nobody is there: %+v", a)
			}
		}
		if p.has("new.txt") || p.has("shell.txt") || p.has("background.txt") || p.content("old.txt") != "old" {
			t.Error("a call ran without permission")
		}
	}
}

// TestUsersRow20_StartIsFast takes the best of a few starts, as other tests run
// beside this one; bench has the real figures.
func TestUsersRow20_StartIsFast(t *testing.T) {
	t.Parallel()
	best := func(n int, one func() time.Duration) time.Duration {
		var all []time.Duration
		for range n {
			all = append(all, one())
		}
		return slices.Min(all)
	}
	p := newPlace(t)
	model := p.scripted(say("hi"))
	if took := best(8, func() time.Duration {
		_, exit := p.run(testkit.Spec{Args: []string{"-v"}})
		return exit.Wall
	}); took > 50*time.Millisecond {
		t.Errorf("-v took %s", took)
	}
	if took := best(8, func() time.Duration {
		proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", model}})
		first, _, err := proc.Await(0, time.Second, isInit)
		if err != nil {
			t.Fatal(err)
		}
		return first.At
	}); took > 150*time.Millisecond {
		t.Errorf("init came after %s", took)
	}
}

// TestUsersRow20_InitDoesNotWaitForTheModel asks a server that never answers.
func TestUsersRow20_InitDoesNotWaitForTheModel(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		model, env := p.served(pr, `{"use": "always", "emit": [{"fault": "stall"}]}`)
		proc := p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", model}, Env: env})
		if _, _, err := proc.Await(0, 5*time.Second, isInit); err != nil {
			t.Errorf("init: %v", err)
		}
		proc.Signal(15)
		if exit, err := proc.Wait(5 * time.Second); err != nil || exit.Code != 143 {
			t.Errorf("%v, exit code %d", err, exit.Code)
		}
	})
}

// TestUsersRow20_NoNetworkBeforeThePrompt looks at the system calls of a session
// that answers a control request and then gets its prompt: there is no
// connection before the prompt.
func TestUsersRow20_NoNetworkBeforeThePrompt(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		model, env := p.served(pr, say("hi"))
		trace := filepath.Join(filepath.Dir(p.dir), "trace")
		proc := p.traced(trace, "connect,write", testkit.Spec{Args: append([]string{model}, bothWays...), Env: env, HoldStdin: true})
		_ = proc.Send(line(map[string]any{"type": "control_request", "request_id": "r", "request": map[string]any{"subtype": "what"}}))
		_, next, err := proc.Await(0, 20*time.Second, func(testkit.Line) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		_ = proc.Send(userLine("hi"))
		if _, _, err := proc.Await(next, 20*time.Second, isResult); err != nil {
			t.Fatal(err)
		}
		proc.CloseStdin()
		if _, err := proc.Wait(20 * time.Second); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		answered := regexp.MustCompile(`write\(1, "\{\\"type\\":\\"control_response`).FindIndex(raw)
		connect := regexp.MustCompile(`connect\([^\n]*AF_INET`).FindIndex(raw)
		if answered == nil || connect == nil {
			t.Fatalf("answered: %v, connected: %v\n%.3000s", answered != nil, connect != nil, raw)
		}
		if connect[0] < answered[0] {
			t.Error("a connection was made before there was a prompt")
		}
	})
}

// TestUsersRow22_LongPromptsComeFromFiles gives 2 MB of prompt and 1 MB of
// system prompt, through each provider's API.
func TestUsersRow22_LongPromptsComeFromFiles(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		prompt := strings.Repeat("0123456789abcde\n", 2<<20/16) + "THE END OF THE PROMPT"
		p.write("prompt.txt", prompt)
		p.write("system.txt", strings.Repeat("be careful. ", 1<<20/12)+"THE END OF THE SYSTEM PROMPT")
		url, log := p.serve(`{"when": {"user": {"contains": "THE END OF THE PROMPT"}, "system": {"contains": "THE END OF THE SYSTEM PROMPT"}}, "emit": [{"text": "{{user_text}}"}]}`)
		proc, exit := p.run(testkit.Spec{
			Args: []string{"--prompt-file", "prompt.txt", "--system-prompt-file", "system.txt", "--model", pr.model}, Env: pr.env(url),
		})
		if exit.Code != 0 || proc.Output() != prompt+"\n" {
			t.Errorf("exit code %d, %d bytes of answer, want %d: %s", exit.Code, len(proc.Output()), len(prompt)+1, proc.Stderr())
		}
		refused(t, log)
	})
}

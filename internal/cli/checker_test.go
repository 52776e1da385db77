//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/sandbox"
)

func testCheckers() *checkers {
	return &checkers{
		runner: sandbox.New(), env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, log: slog.New(slog.DiscardHandler), limit: 20 * time.Second,
	}
}

// script writes a checker and returns it.
func script(t *testing.T, body string) *policy.Checker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "checker")
	writeProgram(t, path, "#!/bin/sh\n"+body+"\n")
	return &policy.Checker{Name: path, Program: true}
}

// writeProgram writes an executable file through a child, so that no descriptor
// of ours is open for writing while another test forks ("text file busy").
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	p, err := sandbox.New().Start(context.Background(), sandbox.Command{
		Argv: []string{"/bin/sh", "-c", `cat > "$1" && chmod 700 "$1"`, "sh", path}, Stdin: []byte(text),
		Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Code != 0 {
		t.Fatalf("writing %s: %+v", path, exit)
	}
}

func place() policy.Facts {
	return policy.Facts{Tool: "run_shell_command", Input: json.RawMessage(`{"command":"make <x> \u0026\u0026 true"}`), Cwd: "/", Roots: []string{"/", "/tmp"}}
}

func TestCheckerAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		want   policy.Behavior
		reason string // part of it
	}{
		"allow":                          {`echo '{"decision":"allow"}'`, policy.Allow, ""},
		"allow with a reason":            {`echo '{"decision":"allow","reason":"fine"}'`, policy.Allow, "fine"},
		"deny":                           {`echo '{"decision":"deny","reason":"not on a Sunday"}'`, policy.Deny, "not on a Sunday"},
		"ask":                            {`echo '{"decision":"ask_user","reason":"look first"}'`, policy.Ask, "look first"},
		"keys that we don't know":        {`echo ' { "decision" : "allow", "score": [1] } '`, policy.Allow, ""},
		"what it says is made visible":   {`printf '{"decision":"deny","reason":"a\\u202eb"}'`, policy.Deny, `a\u{202e}b`},
		"it need not read":               {`exec <&-; echo '{"decision":"allow"}'`, policy.Allow, ""},
		"nothing":                        {`exit 0`, policy.Deny, "no answer"},
		"no JSON":                        {`echo yes`, policy.Deny, "no answer"},
		"a list":                         {`echo '["allow"]'`, policy.Deny, "no answer"},
		"half an answer":                 {`printf '{"decision":"allow"'`, policy.Deny, "no answer"},
		"two answers":                    {`echo '{"decision":"deny","reason":"x"}{"decision":"allow"}'`, policy.Deny, "no answer"},
		"a decision twice":               {`echo '{"decision":"deny","decision":"allow"}'`, policy.Deny, "duplicate"},
		"another case":                   {`echo '{"Decision":"allow"}'`, policy.Deny, "must be allow, deny or ask_user"},
		"no decision":                    {`echo '{}'`, policy.Deny, "must be allow, deny or ask_user"},
		"an unknown decision":            {`echo '{"decision":"yes"}'`, policy.Deny, `"yes"`},
		"a decision that is no text":     {`echo '{"decision":true}'`, policy.Deny, "no answer"},
		"ask without a reason":           {`echo '{"decision":"ask_user"}'`, policy.Deny, "no reason"},
		"allow and a failure":            {`echo '{"decision":"allow"}'; exit 3`, policy.Deny, "code 3"},
		"allow and death":                {`echo '{"decision":"allow"}'; kill -KILL $$`, policy.Deny, "SIGKILL"},
		"too much":                       {`echo '{"decision":"allow"}'; head -c 100000 /dev/zero | tr '\0' ' '`, policy.Deny, "too large"},
		"too much, for ever":             {`while :; do echo '                                        '; done`, policy.Deny, "too large"},
		"much on stderr is no matter":    {`head -c 1000000 /dev/zero >&2; echo '{"decision":"allow"}'`, policy.Allow, ""},
		"an answer on stderr is none":    {`echo '{"decision":"allow"}' >&2`, policy.Deny, "no answer"},
		"it leaves something behind":     {`sleep 300 & echo '{"decision":"allow"}'`, policy.Allow, ""},
		"what it left speaks after it":   {`(sleep 0.05; echo '{"decision":"allow"}') & echo '{"decision":"deny","reason":"x"}'`, policy.Deny, ""},
		"it runs where the call is made": {`[ "$PWD" = / ] && echo '{"decision":"allow"}'`, policy.Allow, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, reason := testCheckers().judge(context.Background(), script(t, tt.script), place())
			if b != tt.want || !strings.Contains(reason, tt.reason) || b == policy.Deny && reason == "" {
				t.Errorf("judge = %s, %q; want %s because of %q", b, reason, tt.want, tt.reason)
			}
		})
	}
}

func TestCheckerThatCannotRunDenies(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte(`{"decision":"allow"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*policy.Checker{
		"no such file":       {Name: "/nonexistent/checker", Program: true},
		"no such program":    {Name: "no-such-checker", Program: true},
		"a relative path":    {Name: "./checker", Program: true},
		"not executable":     {Name: plain, Program: true},
		"not our in-process": {Name: "conseca"},
	} {
		if b, reason := testCheckers().judge(context.Background(), c, place()); b != policy.Deny || reason == "" {
			t.Errorf("%s: judge = %s, %q; want deny with a reason", name, b, reason)
		}
	}
	f := place()
	f.Input = json.RawMessage(`{`)
	if b, reason := testCheckers().judge(context.Background(), script(t, `echo '{"decision":"allow"}'`), f); b != policy.Deny || reason == "" {
		t.Errorf("broken input: judge = %s, %q; want deny with a reason", b, reason)
	}
}

func TestInProcessCheckerIsJudgedByPolicy(t *testing.T) {
	t.Parallel()
	c := &policy.Checker{Name: "allowed-path"}
	for path, want := range map[string]policy.Behavior{"/w/a": policy.Allow, "/etc/passwd": policy.Deny, "/w/.vscode/x": policy.Ask} {
		f := policy.Facts{Tool: "edit", Cwd: "/w", Input: json.RawMessage(`{"file_path":"` + path + `"}`)}
		if b, reason := testCheckers().judge(context.Background(), c, f); b != want {
			t.Errorf("%s: judge = %s, %q; want %s", path, b, reason, want)
		}
	}
}

// TestCheckerQuestion looks at what a program really reads.
func TestCheckerQuestion(t *testing.T) {
	t.Parallel()
	history := []*model.Message{
		{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: "build it"}, model.Text{Text: "please"}}},
		{Role: model.RoleAssistant, Blocks: []model.Block{
			model.Thinking{Text: "hm"}, model.Text{Text: "Looking."}, model.ToolUse{ID: "1", Name: "read_file", Input: json.RawMessage(`{"file_path":"a"}`)}}},
		{Role: model.RoleUser, Blocks: []model.Block{model.ToolResult{ToolUseID: "1", Blocks: []model.Block{model.Text{Text: "secret"}}}}},
		{Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: "Building."}}},
		{Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: "Still."}}},
	}
	environment := `"environment":{"cwd":"/","workspaces":["/","/tmp"]}`
	turns := `"history":{"turns":[
		{"user":{"text":"build it\nplease"},"model":{"text":"Looking.","toolCalls":[{"name":"read_file","args":{"file_path":"a"}}]}},
		{"user":{"text":""},"model":{"text":"Building."}},
		{"user":{"text":""},"model":{"text":"Still."}}]}`
	for name, tt := range map[string]struct {
		context []string
		config  map[string]any
		history bool
		want    string
	}{
		"all that there is":  {nil, nil, true, `"context":{` + environment + `,` + turns + `}`},
		"without a history":  {nil, nil, false, `"context":{` + environment + `}`},
		"the environment":    {[]string{"environment"}, nil, true, `"context":{` + environment + `}`},
		"the history":        {[]string{"history"}, nil, true, `"context":{` + turns + `}`},
		"with configuration": {[]string{"environment"}, map[string]any{"max": int64(3), "on": []any{"a"}}, true, `"context":{` + environment + `},"config":{"max":3,"on":["a"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := filepath.Join(t.TempDir(), "question")
			k, c := testCheckers(), script(t, "cat > '"+into+`'; echo '{"decision":"allow"}'`)
			c.Context, c.Config = tt.context, tt.config
			if tt.history {
				k.history = func(context.Context) []*model.Message { return history }
			}
			if b, reason := k.judge(context.Background(), c, place()); b != policy.Allow {
				t.Fatalf("judge = %s, %q", b, reason)
			}
			raw, err := os.ReadFile(into)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"protocolVersion":"1.0.0","toolCall":{"name":"run_shell_command","args":{"command":"make <x> && true"}},` + tt.want + `}`
			if diff := cmp.Diff(decoded(t, []byte(want)), decoded(t, raw)); diff != "" {
				t.Errorf("the question (-want +got):\n%s", diff)
			}
		})
	}
	c := script(t, `echo '{"decision":"allow"}'`)
	c.Context = []string{"history"}
	if b, reason := testCheckers().judge(context.Background(), c, place()); b != policy.Deny || !strings.Contains(reason, "history") {
		t.Errorf("without the history that it needs: judge = %s, %q; want deny", b, reason)
	}
}

func decoded(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// TestCheckerThatHangsIsTakenDown checks that nothing of it is left, not even a
// grandchild that left its session and heeds no SIGTERM.
func TestCheckerThatHangsIsTakenDown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit  time.Duration
		cancel bool
		reason string
	}{
		"in time":       {limit: 2 * time.Second, reason: "longer than"},
		"with the turn": {limit: time.Minute, cancel: true, reason: "the turn ends"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pids := filepath.Join(dir, "pids")
			if err := syscall.Mkfifo(pids, 0o600); err != nil {
				t.Fatal(err)
			}
			c := script(t, fmt.Sprintf(`trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > "%[1]s"; while :; do sleep 1; done' &
echo '{"decision":"allow"}'
wait`, pids))
			k := testCheckers()
			k.limit = tt.limit
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			pid := make(chan int, 1)
			go func() {
				raw, _ := os.ReadFile(pids) // waits for the grandchild
				n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
				pid <- n
				if tt.cancel {
					cancel(errors.New("the turn ends"))
				}
			}()
			b, reason := k.judge(ctx, c, place())
			if b != policy.Deny || !strings.Contains(reason, tt.reason) {
				t.Errorf("judge = %s, %q; want deny because %q", b, reason, tt.reason)
			}
			if n := <-pid; n == 0 || syscall.Kill(n, 0) != syscall.ESRCH {
				t.Errorf("the grandchild %d is there still", n)
			}
		})
	}
}

func TestCheckerStderrIsLogged(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	k := testCheckers()
	k.log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.judge(context.Background(), script(t, `echo "it's a note" >&2; echo '{"decision":"allow"}'`), place())
	if !strings.Contains(text.String(), "it's a note") {
		t.Errorf("the log is %q", &text)
	}
}

func TestCheckersAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	k := testCheckers()
	yes, no := script(t, `cat >/dev/null; echo '{"decision":"allow"}'`), script(t, `cat >/dev/null; echo '{"decision":"deny","reason":"no"}'`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if b, reason := k.judge(context.Background(), yes, place()); b != policy.Allow {
				t.Errorf("judge = %s, %q; want allow", b, reason)
			}
		})
		wg.Go(func() {
			if b, _ := k.judge(context.Background(), no, place()); b != policy.Deny {
				t.Errorf("judge = %s; want deny", b)
			}
		})
	}
	wg.Wait()
}

package integration

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// ending is a way for a run to end, and what has to be seen of it.
type ending struct {
	name    string
	steps   string
	flags   []string
	line    string // of stdin, which makes it stream-json
	overAPI bool
	signal  syscall.Signal // sent when the file "started" is there
	code    int
	isError bool
	subtype string
	reason  string // terminal_reason
	says    string // in stderr with text output
}

const stuckTool = `{"emit": [{"text": "I will wait."}, {"tool": "run_shell_command", "input": {"command": "touch started; sleep 600"}}]}`

var endings = []ending{
	{name: "success", steps: `{"emit": [{"text": "fine"}]}`, overAPI: true, subtype: "success", reason: "completed"},
	{name: "401", steps: `{"use": "always", "emit": [{"status": 401}]}`, overAPI: true,
		code: 41, isError: true, subtype: "success", reason: "api_error", says: "401"},
	{name: "quota", steps: `{"use": "always", "emit": [{"error": "quota"}]}`, overAPI: true,
		code: 1, isError: true, subtype: "success", reason: "api_error", says: "429"},
	{name: "500 exhausted", steps: `{"use": "always", "emit": [{"status": 500}]}`, overAPI: true,
		code: 1, isError: true, subtype: "success", reason: "api_error", says: "500"},
	{name: "stall", steps: `{"use": "always", "emit": [{"text": "I was"}, {"fault": "stall"}]}`, overAPI: true,
		code: 1, isError: true, subtype: "success", reason: "api_error", says: "stalled"},
	{name: "max turns", steps: `{"use": "always", "emit": [{"tool": "list_directory", "input": {"path": "."}}]}`, flags: []string{"--max-turns=1"},
		code: 53, isError: true, subtype: "error_max_turns", reason: "max_turns", says: "maximum number of turns"},
	{name: "denied", steps: `{"use": "always", "emit": [{"tool": "write_file", "input": {"file_path": "a", "content": "b"}}]}`,
		flags: []string{"--on-deny=fail"},
		code:  57, isError: true, subtype: "error_during_execution", reason: "permission_denied", says: "write_file"},
	{name: "SIGINT", steps: stuckTool, flags: []string{"--permission-mode=yolo"}, signal: syscall.SIGINT,
		code: 130, subtype: "error_during_execution", reason: "aborted_tools"},
	{name: "SIGTERM", steps: stuckTool, flags: []string{"--permission-mode=yolo"}, signal: syscall.SIGTERM,
		code: 143, subtype: "error_during_execution", reason: "aborted_tools"},
	{name: "malformed line", steps: `{"emit": [{"text": "never"}]}`, line: "{\"type\":\"user\", oops\n",
		code: 42, isError: true, subtype: "error_during_execution", reason: "turn_setup_failed", says: "input: "},
}

// TestUsersRow12_ExitCodeSubtypeAndIsErrorAgree checks each way to end in each
// output format against the table of exit codes.
func TestUsersRow12_ExitCodeSubtypeAndIsErrorAgree(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		for i, format := range []string{"text", "json", "stream-json"} {
			t.Run(e.name+"/"+format, func(t *testing.T) {
				t.Parallel()
				proc, exit := e.play(t, format, providers[i])
				if exit.Code != e.code {
					t.Errorf("exit code %d, want %d; stderr: %s", exit.Code, e.code, proc.Stderr())
				}
				if format == "text" {
					e.checkText(t, proc)
					return
				}
				e.checkJSON(t, format, proc)
			})
		}
	}
}

func (e ending) play(t *testing.T, format string, api provider) (*testkit.Proc, testkit.Exit) {
	p := newPlace(t)
	p.settings(`{"network": {"retryBudgetMs": 200, "idleTimeoutMs": 300}}`)
	spec := testkit.Spec{Args: append([]string{"--output-format", format}, e.flags...)}
	if e.line == "" {
		spec.Args = append(spec.Args, "-p", "go")
	} else {
		spec.Args = append(spec.Args, "--input-format", "stream-json")
		spec.Stdin = e.line
	}
	flag := ""
	if e.overAPI {
		flag, spec.Env = p.served(api, e.steps)
	} else {
		flag = p.scripted(e.steps)
	}
	spec.Args = append(spec.Args, flag)
	proc := p.start(spec)
	if e.signal != 0 {
		eventually(t, 20*time.Second, "the tool runs", func() bool { return p.has("started") })
		proc.Signal(e.signal)
	}
	exit, err := proc.Wait(30 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return proc, exit
}

func (e ending) checkText(t *testing.T, proc *testkit.Proc) {
	stderr := proc.Stderr()
	if e.isError != strings.Contains("\n"+stderr, "\nerror: ") { // announced retries may come first
		t.Errorf("stderr is %q, and is_error would be %v", stderr, e.isError)
	}
	if !strings.Contains(stderr, e.says) {
		t.Errorf("stderr does not say %q: %q", e.says, stderr)
	}
}

func (e ending) checkJSON(t *testing.T, format string, proc *testkit.Proc) {
	list := frames(t, proc)
	found := results(list)
	if len(found) != 1 || list[len(list)-1].Kind() != "result" {
		t.Fatalf("%d results, or not the last line:\n%s", len(found), proc.Output())
	}
	if format == "json" && len(list) != 1 {
		t.Errorf("%d lines of json output, want 1", len(list))
	}
	r := found[0]
	got := ending{isError: r["is_error"] == true, subtype: r.String("subtype"), reason: r.String("terminal_reason")}
	if got.isError != e.isError || got.subtype != e.subtype || got.reason != e.reason {
		raw, _ := json.Marshal(r)
		t.Errorf("is_error %v, subtype %s, terminal_reason %s; want %v, %s, %s\n%s",
			got.isError, got.subtype, got.reason, e.isError, e.subtype, e.reason, raw)
	}
}

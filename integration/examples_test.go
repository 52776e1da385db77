package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// examples is docs/examples/stream-json.
func examples(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "docs", "examples", "stream-json"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runExample runs a command as the examples' README says it, in an empty
// folder, and returns what it prints to stdout.
func runExample(t *testing.T, stdin string, command ...string) string {
	t.Helper()
	p := newPlace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{filepath.Join(examples(t), "with-model.sh")}, command...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.dir, append(p.env, "AGENT="+agentPath(t)), strings.NewReader(stdin)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// matchLog compares what an example prints with its log.
func matchLog(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another one now (-update writes it):\n%s", path, got)
	}
}

// TestExampleRequests sends the files of requests down the pipe.
func TestExampleRequests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"request", "request_interrupt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(examples(t), name)
			requests, err := os.ReadFile(file + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			out := runExample(t, string(requests), agentPath(t), "--input-format", "stream-json", "--output-format", "stream-json")
			matchLog(t, file+".log.jsonl", stable(t, out))
		})
	}
}

// TestExampleShellClients runs the clients in plain shell.
func TestExampleShellClients(t *testing.T) {
	t.Parallel()
	tool(t, "jq")
	dir := filepath.Join(examples(t), "shell")
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		out := runExample(t, "y\n", "sh", filepath.Join(dir, "client.sh"), "My number is 7.", "What is my number?", "Write a note.")
		matchLog(t, filepath.Join(dir, "client.log"), out)
	})
	t.Run("validate", func(t *testing.T) {
		t.Parallel()
		matchLog(t, filepath.Join(dir, "validate.log"), runExample(t, "", "sh", filepath.Join(dir, "validate.sh")))
	})
}

// redactions are what differs from run to run, by key.
var redactions = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"(session_id|uuid|user_message_uuid)":"[^"]+"`), `"$1":"..."`},
	{regexp.MustCompile(`"id":"msg_[^"]+"`), `"id":"msg_..."`},
	{regexp.MustCompile(`"(duration_ms|duration_api_ms|ttft_ms|pid)":\d+`), `"$1":0`},
	{regexp.MustCompile(`"(total_cost_usd|costUSD)":[\d.e-]+`), `"$1":0`},
	{regexp.MustCompile(`"cwd":"[^"]+"`), `"cwd":"/work"`},
	{regexp.MustCompile(`"filePath":"[^"]+/`), `"filePath":"/work/`},
	{regexp.MustCompile(`"(agent_version|claude_code_version)":"[^"]+"`), `"$1":"..."`},
	{regexp.MustCompile(`"(tools|commands|slash_commands)":\["([^"]+)",[^\]]+\]`), `"$1":["$2","..."]`},
}

// stable is the output of a run without what differs from run to run. Responses
// to control requests come at once: they are put first, in the order of their
// ids. How far an interrupted turn got doesn't count.
func stable(t *testing.T, out string) string {
	t.Helper()
	for _, r := range redactions {
		out = r.what.ReplaceAllString(out, r.with)
	}
	var responses, rest []string
	for line := range strings.Lines(out) {
		var f struct {
			Type           string
			TerminalReason string `json:"terminal_reason"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch {
		case f.Type == "control_response":
			responses = append(responses, line)
		case strings.HasPrefix(f.TerminalReason, "aborted"):
			rest = append(rest, regexp.MustCompile(`"num_turns":\d+`).ReplaceAllString(line, `"num_turns":0`))
		default:
			rest = append(rest, line)
		}
	}
	slices.SortFunc(responses, func(a, b string) int { return strings.Compare(requestID(a), requestID(b)) })
	return strings.Join(responses, "") + strings.Join(rest, "")
}

func requestID(line string) string {
	_, id, _ := strings.Cut(line, `"request_id":"`)
	return id
}

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// conversation is a model script with everything in it: thinking, text, reads
// side by side, an edit, a command and a final answer, with the files it needs.
const conversation = `
{"when": {"turn": 1, "user": "Mend the greeting."}, "emit": [
	{"thinking": "I should look at both files first.", "by": "word"},
	{"text": "I'll read \u201cboth\u201d files \u2014 one moment \ud83d\ude00.", "by": 3},
	{"tool": "read_file", "input": {"file_path": "greeting.txt"}},
	{"tool": "read_file", "input": {"file_path": "names.txt"}},
	{"usage": {"input": 120, "output": 40}}
]}
{"when": {"turn": 2}, "emit": [
	{"text": "Now the edit.", "by": "whole"},
	{"tool": "edit", "input": {"file_path": "greeting.txt", "old_string": "Helo, World", "new_string": "Hello, World"}, "by": 5},
	{"usage": {"input": 200, "output": 30, "cache_read": 100}}
]}
{"when": {"turn": 3}, "emit": [
	{"tool": "run_shell_command", "input": {"command": "cat greeting.txt; echo \"to stderr\" >&2; exit 3", "description": "look at it"}},
	{"usage": {"input": 50, "output": 20, "cache_read": 300}}
]}
{"when": {"turn": 4}, "emit": [
	{"tool": "read_file", "input": {"file_path": "missing.txt"}},
	{"tool": "glob", "input": {"pattern": "*.txt"}},
	{"usage": {"input": 60, "output": 25, "cache_read": 350}}
]}
{"when": {"turn": 5}, "emit": [
	{"text": ["Done:\n", "1. the greeting says <hello> & 'hi'\n", "2. nothing else changed\n"]},
	{"usage": {"input": 70, "output": 22, "cache_read": 400}}
]}
`

// deliveries are the ways in which the model's side of a conversation reaches
// the program: in process, and by each provider's API.
func deliveries() []string {
	names := []string{"in process"}
	for _, pr := range providers {
		names = append(names, pr.name)
	}
	return names
}

// converse plays the conversation once and returns what was printed.
func converse(t *testing.T, delivery string, flags ...string) (*place, string) {
	t.Helper()
	p := newPlace(t)
	p.write("greeting.txt", "Helo, World\r\nand all\r\n")
	p.write("names.txt", "Ann\nBob\n")
	model, env := "", []string(nil)
	if i := slices.Index(deliveries(), delivery); i > 0 {
		model, env = p.served(providers[i-1], conversation)
	} else {
		model = p.scripted(conversation)
	}
	proc, exit := p.run(testkit.Spec{
		Args: append([]string{"-p", "Mend the greeting.", "--permission-mode=yolo", model}, flags...), Env: env,
	})
	if exit.Code != 0 || proc.Stderr() != "" {
		t.Fatalf("exit code %d, stderr: %s", exit.Code, proc.Stderr())
	}
	if got := p.content("greeting.txt"); got != "Hello, World\r\nand all\r\n" {
		t.Errorf("the file is %q", got)
	}
	if strings.HasPrefix(proc.Output(), "{") {
		list, err := proc.Frames()
		if err == nil {
			err = testkit.CheckTurns(list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p, proc.Output()
}

// TestGoldenTranscripts demands the same transcript from every delivery, as
// text, JSON and stream-json, with and without partial messages.
func TestGoldenTranscripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		golden string
		flags  []string
	}{
		{"conversation.txt", []string{"-o", "text"}},
		{"conversation.json", []string{"-o", "json"}},
		{"conversation.jsonl", []string{"-o", "stream-json"}},
		{"conversation_partial.jsonl", []string{"-o", "stream-json", "--include-partial-messages"}},
	} {
		for _, delivery := range deliveries() {
			t.Run(c.golden+"/"+delivery, func(t *testing.T) {
				if !*update {
					t.Parallel()
				}
				p, out := converse(t, delivery, c.flags...)
				if c.golden != "conversation.txt" {
					out = redact(t, p, out)
				}
				compare(t, c.golden, delivery, out)
			})
		}
	}
}

// compare compares with a golden file; -update writes the one of the delivery
// in process.
func compare(t *testing.T, name, delivery, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update && delivery == deliveries()[0] {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with: go test ./integration -run Golden -update)", err)
	}
	if got == string(want) {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("%s differs from line %d on (%d and %d lines):\nwant %s\ngot  %s", path, i+1, len(a), len(b),
				strings.Join(a[min(i, len(a)):min(i+2, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+2, len(b))], "\n"))
		}
	}
}

// TestGoldenFormatsAgree compares the golden files with each other: what the
// formats have in common is the same.
func TestGoldenFormatsAgree(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join("testdata", "golden", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	var plain, partial []string
	for line := range strings.Lines(read("conversation.jsonl")) {
		plain = append(plain, line)
	}
	for line := range strings.Lines(read("conversation_partial.jsonl")) {
		if !strings.Contains(line, `"type":"stream_event"`) {
			partial = append(partial, line)
		}
	}
	if !slices.Equal(plain, partial) {
		t.Error("without its stream events, the transcript with partial messages is not the one without")
	}
	last := plain[len(plain)-1]
	if read("conversation.json") != last {
		t.Errorf("json has\n%s\nand stream-json ends with\n%s", read("conversation.json"), last)
	}
	var r testkit.Frame
	if err := json.Unmarshal([]byte(last), &r); err != nil {
		t.Fatal(err)
	}
	if got, want := read("conversation.txt"), strings.TrimSuffix(r.String("result"), "\n")+"\n"; got != want {
		t.Errorf("text has %q, and the result is %q", got, want)
	}
}

// redacted are the members that differ from run to run or from provider to
// provider, with what stands in their place.
var redacted = map[string]any{
	"uuid": "UUID", "session_id": "SESSION", "user_message_uuid": "UUID", "signature": "", "model": "MODEL",
	"apiKeySource": "KEY", "pid": 0, "claude_code_version": "VERSION", "agent_version": "VERSION",
	"duration_ms": 0, "duration_api_ms": 0, "durationMs": 0, "elapsed_time_seconds": 0, "total_cost_usd": 0, "modelUsage": "MODELS",
}

var toolID = regexp.MustCompile(`"(?:id|tool_use_id)":"([^"]+)"`)

// redact makes the output of a run the same for all of them: ids, times and
// what is the provider's own replaced, adjacent deltas joined, progress left
// out.
func redact(t *testing.T, p *place, out string) string {
	t.Helper()
	out = strings.ReplaceAll(strings.ReplaceAll(out, p.dir, "DIR"), filepath.Dir(p.dir), "ROOT")
	ids := map[string]string{}
	for _, m := range toolID.FindAllStringSubmatch(out, -1) {
		if _, seen := ids[m[1]]; !seen {
			ids[m[1]] = fmt.Sprintf("ID%d", len(ids)+1)
		}
	}
	var list []map[string]any
	for line := range strings.Lines(out) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		// What is known of the usage while an answer comes is the provider's own;
		// message_delta and result have the final one.
		for _, path := range []string{"message", "event.message"} {
			if m, ok := testkit.Frame(f).Get(path); ok && f["type"] != "user" {
				m.(map[string]any)["usage"] = "NOT FINAL"
			}
		}
		delete(f, "ttft_ms") // is left out when it is less than one
		if !isProgress(f) {
			list = joinDelta(list, replaceIn(f, ids).(map[string]any))
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, f := range list {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return buf.String()
}

// replaceIn redacts a value and all within it.
func replaceIn(v any, ids map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if by, ok := redacted[key]; ok {
				v[key] = by
			} else {
				v[key] = replaceIn(value, ids)
			}
		}
	case []any:
		for i := range v {
			v[i] = replaceIn(v[i], ids)
		}
	case string:
		if id, ok := ids[v]; ok {
			return id
		}
	}
	return v
}

// joinDelta appends f, or its text to the delta before it; signatures are left
// out.
func joinDelta(list []map[string]any, f map[string]any) []map[string]any {
	kind := testkit.Frame(f).String("event.delta.type")
	if kind == "signature_delta" {
		return list
	}
	if len(list) == 0 || kind == "" {
		return append(list, f)
	}
	last := testkit.Frame(list[len(list)-1])
	if last.String("event.delta.type") != kind {
		return append(list, f)
	}
	a, _ := last.Get("event.delta")
	b, _ := testkit.Frame(f).Get("event.delta")
	for _, key := range []string{"text", "thinking", "partial_json"} {
		if text, ok := b.(map[string]any)[key].(string); ok {
			a.(map[string]any)[key] = a.(map[string]any)[key].(string) + text
		}
	}
	return list
}

// isProgress reports whether a frame tells how far a call is, in the form of any
// dialect: such frames come as time will have it.
func isProgress(f testkit.Frame) bool {
	return f.String("type") == "tool_progress" || f.String("event.type") == "tool_progress"
}

package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestUsersRow02_WorkInTheBackgroundIsNotLost: a run whose turn ended while a
// sub-agent works goes on until that is done, and ends by a result.
func TestUsersRow02_WorkInTheBackgroundIsNotLost(t *testing.T) {
	t.Parallel()
	steps := `{"when": {"user": "go", "turn": 1}, "emit": [{"tool": "agent", "input": {"description": "work", "prompt": "please", "subagent_type": "worker", "run_in_background": true}}]}
{"when": {"user": {"contains": "please"}, "turn": 1}, "emit": [{"tool": "run_shell_command", "input": {"command": "touch working; until test -e leave; do sleep 0.05; done; touch marker"}}]}
` + say("done")
	p := newPlace(t)
	proc := p.start(testkit.Spec{Args: []string{
		"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps), "--agents", `{"worker":{"description":"works","prompt":"You work."}}`,
	}})
	_, next, err := proc.Await(0, patience, isResult)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the sub-agent works", func() bool { return p.has("working") })
	p.write("leave", "")
	if _, _, err := proc.Await(next, patience, isResult); err != nil {
		t.Fatalf("no result after the sub-agent's end: %v\n%s", err, proc.Output())
	}
	if !p.has("marker") {
		t.Error("the result came before the work was done")
	}
	if exit, err := proc.Wait(patience); err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d", err, exit.Code)
	}
	if lines := proc.Lines(); !isResult(lines[len(lines)-1]) {
		t.Errorf("the last line is no result: %s", lines[len(lines)-1].Text)
	}
}

// TestUsersRow17_ParallelDeltasAreAttributed: of sub-agents that speak at once
// each delta has its parent, and joined they are what each one said.
func TestUsersRow17_ParallelDeltasAreAttributed(t *testing.T) {
	t.Parallel()
	const n = 8
	var calls []string
	steps := ""
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"tool": "agent", "input": {"description": "say it", "prompt": "please %d", "subagent_type": "worker"}}`, i))
		steps += fmt.Sprintf(`{"when": {"user": {"contains": "please %d"}}, "emit": [{"text": "agent %d speaks. ", "by": "word", "repeat": 40}]}`+"\n", i, i)
	}
	steps = `{"when": {"user": "go", "turn": 1}, "emit": [` + strings.Join(calls, ",") + "]}\n" + steps + say("done")
	p := newPlace(t)
	proc, exit := p.run(testkit.Spec{Args: []string{
		"-pgo", "-ostream-json", "--include-partial-messages", "--forward-subagent-text", p.scripted(steps), "--agents", `{"worker":{"description":"works","prompt":"You work."}}`,
	}})
	list, err := proc.Frames()
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	deltas, said := map[string]string{}, map[string]string{}
	for _, f := range list {
		parent := f.String("parent_tool_use_id")
		if f.String("event.delta.type") == "text_delta" {
			deltas[parent] += f.String("event.delta.text")
		}
		if f.Kind() != "assistant" {
			continue
		}
		for _, b := range content(f) {
			if text, ok := b["text"].(string); ok {
				said[parent] += text
			}
		}
	}
	if len(said) != n+1 {
		t.Fatalf("%d speakers, want %d", len(said), n+1)
	}
	for parent, text := range deltas {
		if text != said[parent] {
			t.Errorf("%s: the deltas say %.100q, the message %.100q", parent, text, said[parent])
		}
	}
	for parent, text := range said {
		if parent != "" && strings.Count(text, text[:len("agent 0 speaks")]) != 40 {
			t.Errorf("%s: others' words are among its own: %.200q", parent, text)
		}
	}
}

// TestUsersRow21_SuccessMeansThatTheObjectFits: an answer that misses the schema
// is asked for again, at most so often; success is a fitting object, and nothing
// else is.
func TestUsersRow21_SuccessMeansThatTheObjectFits(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	bad := func(n int) string {
		return fmt.Sprintf(`{"use": %d, "emit": [{"tool": "structured_output", "input": {"n": "seven"}}]}`+"\n", n)
	}
	good := `{"use": "always", "emit": [{"tool": "structured_output", "input": {"n": 7}}]}`
	for misses := range 7 {
		t.Run(fmt.Sprint(misses), func(t *testing.T) {
			t.Parallel()
			p, steps := newPlace(t), good
			if misses > 0 {
				steps = bad(misses) + good
			}
			proc, exit := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--json-schema", schema, p.scripted(steps)}})
			r := results(frames(t, proc))[0]
			n, has := r.Get("structured_output.n")
			if fits := misses < 5; fits != (r.String("subtype") == "success") || fits != (has && n == 7.0) || fits != (exit.Code == 0) {
				t.Errorf("exit code %d, %v", exit.Code, r)
			}
		})
	}
}

// TestWhatASubagentHasReadItsCallerHasNot: an edit builds on what the agent that
// makes it has seen, and on nothing that another one has.
func TestWhatASubagentHasReadItsCallerHasNot(t *testing.T) {
	t.Parallel()
	edit := `{"tool": "edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}`
	for name, test := range map[string]struct {
		steps string
		want  string
	}{
		"the caller edits": {`{"emit": [{"tool": "agent", "input": {"description": "look", "prompt": "please", "subagent_type": "worker"}}]}
{"emit": [{"tool": "read_file", "input": {"file_path": "a.txt"}}]}
{"emit": [{"text": "It says one."}]}
{"emit": [` + edit + `]}
{"use": "always", "emit": [{"text": "{{last_tool_result}}"}]}`, "one"},
		"the sub-agent edits": {`{"emit": [{"tool": "read_file", "input": {"file_path": "a.txt"}}]}
{"emit": [{"tool": "agent", "input": {"description": "edit", "prompt": "please", "subagent_type": "worker"}}]}
{"emit": [` + edit + `]}
{"use": "always", "emit": [{"text": "{{last_tool_result}}"}]}`, "one"},
		"it reads, and edits": {`{"emit": [{"tool": "agent", "input": {"description": "edit", "prompt": "please", "subagent_type": "worker"}}]}
{"emit": [{"tool": "read_file", "input": {"file_path": "a.txt"}}]}
{"emit": [` + edit + `]}
{"use": "always", "emit": [{"text": "{{last_tool_result}}"}]}`, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			path := p.write("a.txt", "one\n")
			proc, exit := p.run(testkit.Spec{Args: []string{
				"-pgo", "--permission-mode=yolo", p.scripted(test.steps), "--agents", `{"worker":{"description":"works","prompt":"You work."}}`,
			}})
			data, err := os.ReadFile(path)
			if err != nil || exit.Code != 0 || strings.TrimSpace(string(data)) != test.want {
				t.Errorf("%v, exit code %d, the file is %q, want %q: %s%s", err, exit.Code, data, test.want, proc.Output(), proc.Stderr())
			}
		})
	}
}

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// where each API's requests go.
var paths = map[string]string{"gemini": ":streamGenerateContent", "openai": "/chat/completions", "anthropic": "/messages"}

// theSwaps has each model think, make parallel calls and answer, with
// signatures where its API has them.
const theSwaps = `
{"when": {"model": "gemini-test", "user": "g1"}, "emit": [
  {"thinking": "Three looks."},
  {"text": "Looking."},
  {"tool": "read_file", "input": {"file_path": "a.txt"}, "signature": "R1NJRy1jYWxsLS8rPT0="},
  {"tool": "read_file", "input": {"file_path": "b.txt"}},
  {"tool": "list_directory", "input": {"path": "."}}]}
{"when": {"model": "gemini-test", "user": "g2"}, "emit": [{"tool": "read_file", "input": {"file_path": "c.txt"}, "signature": "R1NJRy1sYXRlcg=="}]}
{"when": {"model": "gemini-test", "tool": "read_file"}, "use": "always", "emit": [{"text": "Seen.", "signature": "R1NJRy10ZXh0"}]}
{"when": {"model": "claude-test", "user": "a1"}, "emit": [
  {"thinking": "Let me see.", "signature": "QVNJRy1vbmUrLz0="},
  {"redacted": "UkVEQUNURUQ="},
  {"text": "Looking."},
  {"tool": "read_file", "input": {"file_path": "claude/a.txt"}},
  {"tool": "read_file", "input": {"file_path": "claude/b.txt"}}]}
{"when": {"model": "claude-test", "user": "a2"}, "emit": [{"thinking": "Again.", "signature": "QVNJRy10d28="}, {"tool": "read_file", "input": {"file_path": "claude/c.txt"}}]}
{"when": {"model": "claude-test", "tool": "read_file"}, "use": "always", "emit": [{"text": "Seen."}]}
{"when": {"model": "gpt-test", "user": "o1"}, "emit": [{"thinking": "So."}, {"tool": "read_file", "input": {"file_path": "gpt/a.txt"}}, {"tool": "read_file", "input": {"file_path": "gpt/b.txt"}}]}
{"when": {"model": "gpt-test", "tool": "read_file"}, "use": "always", "emit": [{"text": "Seen."}]}
{"when": {"user": "bye"}, "use": "always", "emit": [{"text": "Bye."}]}
`

// modelLine is a user line for one model.
func modelLine(text, model string) string {
	raw, _ := json.Marshal(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text}, "options": map[string]any{"model": model},
	})
	return string(raw)
}

// TestSignaturesComeBackByteForByte goes through all providers and back within
// one session: each gets its own signatures back as it gave them, after
// parallel calls too, and nobody gets another's.
func TestSignaturesComeBackByteForByte(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} { // each API its own: the server knows calls by their arguments
		p.write(name, "one\n")
		p.write("claude/"+name, "two\n")
		p.write("gpt/"+name, "three\n")
	}
	base, log := p.serve(theSwaps)
	seen := newTap(t, base)
	const gemini, claude, gpt = "gemini/gemini-test", "anthropic/claude-test", "openai/gpt-test"
	lines := []string{
		modelLine("g1", gemini), modelLine("a1", claude), modelLine("o1", gpt), modelLine("g2", gemini), modelLine("a2", claude),
		modelLine("bye", gemini), modelLine("bye", claude), modelLine("bye", gpt),
	}
	args := append([]string{"--input-format", "stream-json", "--model", gemini}, streamJSON...)
	proc, exit := p.run(testkit.Spec{Args: args, Env: allProviders(seen.url), Stdin: strings.Join(lines, "\n") + "\n"})
	for i, r := range results(frames(t, proc)) {
		if r["is_error"] != false {
			t.Errorf("turn %d: %v", i, r)
		}
	}
	refused(t, log)
	if n := len(results(frames(t, proc))); exit.Code != 0 || n != len(lines) {
		t.Fatalf("exit %d, %d results", exit.Code, n)
	}

	google := []string{`"R1NJRy1jYWxsLS8rPT0="`, `"R1NJRy1sYXRlcg=="`, `"R1NJRy10ZXh0"`}
	anthropic := []string{`"QVNJRy1vbmUrLz0="`, `"UkVEQUNURUQ="`, `"QVNJRy10d28="`}
	g, a, o := seen.last(t, paths["gemini"]).body, seen.last(t, paths["anthropic"]).body, seen.last(t, paths["openai"]).body
	mentions(t, "gemini's last request", g, google...)
	mentions(t, "anthropic's last request", a, anthropic...)
	for name, body := range map[string]string{"gemini": g, "anthropic": a, "openai": o} {
		for _, sig := range append(google, anthropic...) {
			own := name == "gemini" && strings.Contains(strings.Join(google, ""), sig) || name == "anthropic" && strings.Contains(strings.Join(anthropic, ""), sig)
			if !own && strings.Contains(body, sig) {
				t.Errorf("%s got the signature %s of another API", name, sig)
			}
		}
	}
}

package integration

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// brokenCalls are ways in which local models spell a call of write_file with
// the path out.txt and the content "a \"b\"\n<c>".
var brokenCalls = map[string]string{
	"fenced JSON":           "I'll write it.\n```json\n{\"name\": \"write_file\", \"arguments\": {\"file_path\": \"out.txt\", \"content\": \"a \\\"b\\\"\\n<c>\"}}\n```\n",
	"hermes tags":           "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"file_path\": \"out.txt\", \"content\": \"a \\\"b\\\"\\n<c>\"}}\n</tool_call>",
	"half-open tag":         "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"file_path\": \"out.txt\", \"content\": \"a \\\"b\\\"\\n<c>\"}}",
	"XML of Qwen's coder":   "<tool_call>\n<function=write_file>\n<parameter=file_path>\nout.txt\n</parameter>\n<parameter=content>\na \"b\"\n<c>\n</parameter>\n</function>\n</tool_call>",
	"stringified arguments": "<tool_call>{\"name\": \"write_file\", \"arguments\": \"{\\\"file_path\\\": \\\"out.txt\\\", \\\"content\\\": \\\"a \\\\\\\"b\\\\\\\"\\\\n<c>\\\"}\"}</tool_call>",
	"mistral's list":        "[TOOL_CALLS][{\"name\": \"write_file\", \"arguments\": {\"file_path\": \"out.txt\", \"content\": \"a \\\"b\\\"\\n<c>\"}}]",
}

// TestUsersRow56_CallsInTextRunTheRealTool plays each spelling to the adapter, cut at
// words, and looks at the file.
func TestUsersRow56_CallsInTextRunTheRealTool(t *testing.T) {
	t.Parallel()
	for name, text := range brokenCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			runBroken(t, `{"text": `+string(quoted)+`, "by": 3}`)
		})
	}
}

// runBroken has a model make one call and checks what came of it.
func runBroken(t *testing.T, emit string) {
	p, pr := newPlace(t), providers[1]
	base, log := p.serve(`{"emit": [` + emit + `]} {"when": {"tool": "write_file"}, "emit": [{"text": "done"}]}`)
	a := p.ask("write it", pr.model, pr.env(base), "--permission-mode", "auto-edit")
	refused(t, log)
	if a.exit.Code != 0 || a.result.String("result") != "done" {
		t.Errorf("exit %d: %v", a.exit.Code, a.result)
	}
	got, err := os.ReadFile(filepath.Join(p.dir, "out.txt"))
	if err != nil || strings.TrimSuffix(string(got), "\n") != "a \"b\"\n<c>" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// TestUsersRow56_NativeCallsOfLocalServers are calls in the API's own place, broken
// as some servers break them.
func TestUsersRow56_NativeCallsOfLocalServers(t *testing.T) {
	t.Parallel()
	const args = `{"file_path": "out.txt", "content": "a \"b\"\n<c>"}`
	quoted, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]string{
		"arguments as an object": `{"index":0,"id":"c1","type":"function","function":{"name":"write_file","arguments":` + args + `}}`,
		"no id and no index":     `{"function":{"name":"write_file","arguments":` + string(quoted) + `}}`,
		"arguments quoted twice": `{"index":0,"id":"c1","function":{"name":"write_file","arguments":` + twice(t, string(quoted)) + `}}`,
		"a key twice":            `{"index":0,"id":"c1","function":{"name":"write_file","arguments":"{\"file_path\":\"no.txt\",\"file_path\":\"out.txt\",\"content\":\"a \\\"b\\\"\\n<c>\"}"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chunk := `{"id":"x","model":"m","choices":[{"index":0,"delta":{"tool_calls":[` + call + `]},"finish_reason":null}]}`
			raw, err := json.Marshal("data: " + chunk + "\n\n")
			if err != nil {
				t.Fatal(err)
			}
			runBroken(t, `{"raw": `+string(raw)+`, "literal": true}, {"stop": "tool_use"}`)
		})
	}
}

func twice(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestUsersRow56_AMalformedCallGetsARepairTurn checks that the model is told what is
// wrong with a call that cannot be read, and that its next one runs.
func TestUsersRow56_AMalformedCallGetsARepairTurn(t *testing.T) {
	t.Parallel()
	p, pr := newPlace(t), providers[1]
	base, log := p.serve(`
		{"emit": [{"tool": "write_file", "input_text": "file_path=out.txt content"}]}
		{"when": {"tool": "write_file", "result": {"contains": "not a JSON object"}}, "emit": [{"tool": "write_file", "input": {"file_path": "out.txt", "content": "x"}}]}
		{"when": {"tool": "write_file"}, "emit": [{"text": "done"}]}`)
	a := p.ask("write it", pr.model, pr.env(base), "--permission-mode", "auto-edit")
	refused(t, log)
	if a.exit.Code != 0 || a.result.String("result") != "done" || !p.made("out.txt") {
		t.Errorf("exit %d: %v", a.exit.Code, a.result)
	}
}

// TestUsersRow56_LoopsEnd has a model make the same call for ever.
func TestUsersRow56_LoopsEnd(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"the same write":    `{"tool": "write_file", "input": {"file_path": "out.txt", "content": "x"}}`,
		"the same in text":  `{"text": "<tool_call>{\"name\": \"list_directory\", \"arguments\": {\"path\": \".\"}}</tool_call>"}`,
		"no such tool":      `{"tool": "fly", "input": {}}`,
		"arguments missing": `{"tool": "write_file", "input": {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, pr := newPlace(t), providers[1]
			base, log := p.serve(`{"use": "always", "emit": [` + call + `]}`)
			a := p.ask("go", pr.model, pr.env(base), "--permission-mode", "auto-edit")
			refused(t, log)
			if a.exit.Code != 56 || a.result.String("terminal_reason") != "loop_guard" {
				t.Errorf("exit %d: %v", a.exit.Code, a.result)
			}
			if n := len(requests(t, log)); n > 10 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// localPorts are where the program looks for a local model server.
var localPorts = []int{11434, 8080, 8000, 1234}

// TestLocalServerIsFoundOnItsUsualPort serves on one of the usual ports, without
// any key or setting: it is found and does the work. Without a server the run
// ends at once and says how to go on.
func TestLocalServerIsFoundOnItsUsualPort(t *testing.T) {
	var taken []string
	var free net.Listener
	for _, port := range localPorts {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		ln, err := net.Listen("tcp", addr)
		switch {
		case err != nil:
			taken = append(taken, addr)
		case free == nil:
			free = ln
		default:
			ln.Close()
		}
	}
	if free == nil {
		t.Skipf("every usual port of a local model server is taken here: %v", taken)
	}
	p := newPlace(t)
	p.write("a.txt", "one\n")
	base, log := p.serve(`{"script": 1, "models": ["nomic-embed-text", "qwen3-coder:30b"]}
		{"emit": [{"text": "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a.txt\"}}</tool_call>"}]}
		{"when": {"tool": "read_file", "result": {"contains": "one"}}, "emit": [{"text": "found"}]}`)
	next := forward(t, base)
	keyless := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "" && key != "Bearer none" {
			t.Errorf("a local server got the key %q", key)
		}
		r.Header.Set("Authorization", "Bearer local") // what serves the script wants one
		next.ServeHTTP(w, r)
	}))
	keyless.Listener.Close()
	keyless.Listener = free
	keyless.Start()
	args := append([]string{"-p", "hi"}, streamJSON...)
	if len(taken) == 0 || free.Addr().(*net.TCPAddr).Port == localPorts[0] {
		proc, exit := p.run(testkit.Spec{Args: args})
		list := results(frames(t, proc))
		if exit.Code != 0 || len(list) != 1 || list[0].String("result") != "found" {
			t.Errorf("exit %d: %v\n%s", exit.Code, list, proc.Stderr())
		}
		refused(t, log)
		for _, r := range requests(t, log) {
			if r.Model != "" && r.Model != "qwen3-coder:30b" {
				t.Errorf("asked for model %s", r.Model)
			}
		}
	}
	keyless.CloseClientConnections()
	keyless.Close()
	if len(taken) > 0 {
		t.Logf("not checked without a server: %v are taken", taken)
		return
	}
	proc, exit := p.run(testkit.Spec{Args: []string{"-p", "hi"}})
	if exit.Code != 41 || exit.Wall > time.Second {
		t.Errorf("without a server: exit %d after %s", exit.Code, exit.Wall)
	}
	mentions(t, "stderr", proc.Stderr(), "GEMINI_API_KEY", "OPENAI_BASE_URL", "11434", "scripted/")
}

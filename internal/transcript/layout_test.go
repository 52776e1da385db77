package transcript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryLayoutIsReadBack(t *testing.T) {
	t.Parallel()
	for _, l := range []Layout{Native, Claude, Qwen} {
		w, err := New(Options{Path: l.Path(t.TempDir(), "/w", "s"), SessionID: "s", Cwd: "/w", Version: "1", Layout: l})
		if err != nil {
			t.Fatal(err)
		}
		want := conversation()
		for _, e := range want {
			if err := w.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := readFile(t, w.Path())
		if diff := cmp.Diff(want, got.Entries); diff != "" || len(got.Damaged) != 0 {
			t.Errorf("%s: damaged %v, entries differ (-appended +read):\n%s", l, got.Damaged, diff)
		}
	}
}

func TestPathsOfLayouts(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for _, c := range []struct{ got, want string }{
		{Claude.Dir(none, "/h"), "/h/.claude"},
		{Claude.Dir(func(k string) string { return map[string]string{"CLAUDE_CONFIG_DIR": "/c"}[k] }, "/h"), "/c"},
		{Qwen.Dir(func(k string) string { return map[string]string{"QWEN_HOME": "/q/"}[k] }, "/h"), "/q"},
		{Qwen.Dir(func(k string) string {
			return map[string]string{"QWEN_HOME": "/q/", "QWEN_RUNTIME_DIR": "/r"}[k]
		}, "/h"), "/r"},
		{Qwen.Dir(func(k string) string { return map[string]string{"QWEN_RUNTIME_DIR": "r"}[k] }, "/h"), "/h/.qwen"},
		{Qwen.Dir(none, ""), ""},
		{Native.Dir(none, "/h"), ""},
		{Claude.Path("/c", "/no/such_dir", "s"), "/c/projects/-no-such-dir/s.jsonl"},
		{Claude.AgentPath("/c", "/no/such_dir", "s", "a"), "/c/projects/-no-such-dir/s/subagents/agent-a.jsonl"},
		{Qwen.Path("/q", "/no/such_dir", "s"), "/q/projects/-no-such-dir/chats/s.jsonl"},
		{Qwen.AgentPath("/q", "/no/such_dir", "s", "a"), "/q/projects/-no-such-dir/subagents/s/agent-a.jsonl"},
	} {
		if filepath.ToSlash(c.got) != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestLinesOfTheQwenLayout(t *testing.T) {
	t.Parallel()
	w, err := New(Options{Path: filepath.Join(t.TempDir(), "s.jsonl"), SessionID: "s", Cwd: "/w", Version: "1", Layout: Qwen})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, e := range conversation() {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for i, want := range map[int][]string{
		0: {`"parentUuid":null`, `"type":"user"`, `"message":{"role":"user","parts":[{"text":`, `"inlineData":{"mimeType":"image/png"`},
		4: {`"parentUuid":"a3"`, `"type":"assistant"`, `"role":"model"`, `"functionCall":{"id":"t1","name":"read_file","args":{"a":1}}`, `"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":10,"cachedContentTokenCount":3`},
		7: {`"type":"tool_result"`, `"functionResponse":{"id":"t2","name":"edit","response":{"error":"bad"}}`},
	} {
		for _, s := range want {
			if !strings.Contains(lines[i], s) {
				t.Errorf("line %d has no %s: %s", i, s, lines[i])
			}
		}
	}
}

func TestTranscriptOfASubagent(t *testing.T) {
	t.Parallel()
	var mirrored []string
	path := Claude.AgentPath(t.TempDir(), "/w", "s", "a1")
	w, err := New(Options{
		Path: path, SessionID: "s", Cwd: "/w", Layout: Claude,
		Agent: &Agent{ID: "a1", Type: "greeter", ToolUseID: "toolu_9"},
		Mirror: func(p string, records []json.RawMessage) {
			for _, r := range records {
				if !json.Valid(r) || p != path {
					t.Errorf("%s: %s", p, r)
				}
				mirrored = append(mirrored, string(r))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, e := range conversation()[:2] {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".meta.json")
	if err != nil || string(meta) != `{"agentType":"greeter","toolUseId":"toolu_9"}` {
		t.Errorf("%s, %v", meta, err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), `"isSidechain":true`) != 2 || !strings.Contains(string(data), `"agentId":"a1"`) {
		t.Errorf("%s, %v", data, err)
	}
	want := append([]string{`{"type":"agent_metadata","agentType":"greeter","toolUseId":"toolu_9"}`}, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	if diff := cmp.Diff(want, mirrored); diff != "" {
		t.Errorf("mirror:\n%s", diff)
	}
}

func TestLinesOfOthersStay(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	entries := conversation()
	titles := []string{"{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n", "{\"type\":\"tag\"}"}
	for i, title := range titles {
		if err := w.Append(entries[i]); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(w.Path(), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(title); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := w.Append(entries[2]); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 5 || lines[1]+"\n" != titles[0] || lines[3] != titles[1] {
		t.Errorf("lines: %q", lines)
	}
	if diff := cmp.Diff(entries[:3], readFile(t, w.Path()).Entries); diff != "" {
		t.Error(diff)
	}
}

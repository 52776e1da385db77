package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func newWriter(t *testing.T) *Writer {
	t.Helper()
	w, err := New(Options{
		Path: filepath.Join(t.TempDir(), "projects", "p", "s.jsonl"), SessionID: "s", Cwd: "/w", Version: "1", GitBranch: "main",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

var at = time.Date(2026, 11, 21, 1, 2, 3, 4e6, time.UTC)

// conversation has every kind of block.
func conversation() []Entry {
	user := func(id string, b ...model.Block) Entry {
		return Entry{UUID: id, Time: at, Message: &model.Message{ID: id, Role: model.RoleUser, Blocks: b}}
	}
	said := func(id, msg string, b model.Block) Entry {
		return Entry{UUID: id, Time: at, MessageID: msg, Model: "m", Stop: model.StopToolUse,
			Usage:   &model.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4},
			Message: &model.Message{ID: id, Role: model.RoleAssistant, Blocks: []model.Block{b}}}
	}
	return []Entry{
		user("u1", model.Text{Text: "héllo <&> \u2028 \"q\""}, model.Image{MediaType: "image/png", Data: []byte{0, 1, 255}}, model.Image{URL: "http://x/y"},
			model.Document{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")}),
		said("a1", "msg1", model.Thinking{Text: "hm", Sig: model.Signature{Provider: "anthropic", Value: "c2ln+/="}}),
		said("a2", "msg1", model.Thinking{Redacted: "opaque"}),
		said("a3", "msg1", model.Text{Text: "on it", Sig: model.Signature{Provider: "gemini", Value: "AAA=", From: 3}}),
		said("a4", "msg1", model.ToolUse{ID: "t1", Name: "read_file", Input: json.RawMessage(`{"a":1}`), Sig: model.Signature{Provider: "gemini", Value: "BBB="}}),
		said("a5", "msg1", model.ToolUse{ID: "t2", Name: "edit", Input: json.RawMessage(`{}`), Invalid: "{oops"}),
		user("r1", model.ToolResult{ToolUseID: "t1", Name: "read_file", Blocks: []model.Block{model.Text{Text: "x"}, model.Image{MediaType: "image/png", Data: []byte("p")}}}),
		user("r2", model.ToolResult{ToolUseID: "t2", Name: "edit", IsError: true, Blocks: []model.Block{model.Text{Text: "bad"}}}),
		{UUID: "e1", Time: at, MessageID: "msgE", Model: "<synthetic>", APIError: true, Message: &model.Message{ID: "e1", Role: model.RoleAssistant, Blocks: []model.Block{model.Text{Text: "API Error"}}}},
		user("u2", model.Text{Text: "go on"}),
	}
}

func TestWhatIsAppendedIsRead(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	want := conversation()
	for _, e := range want {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	got := readFile(t, w.Path())
	if len(got.Damaged) != 0 {
		t.Fatalf("damaged lines: %v", got.Damaged)
	}
	if diff := cmp.Diff(want, got.Entries); diff != "" {
		t.Errorf("entries differ (-appended +read):\n%s", diff)
	}
}

func readFile(t *testing.T, path string) *Replay {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHistoryJoinsTheBlocksOfAnAnswerAndTheirResults(t *testing.T) {
	t.Parallel()
	h := (&Replay{Entries: conversation()}).History()
	var shape []string
	for _, m := range h {
		shape = append(shape, string(m.Role)+" "+m.ID+" "+strings.Repeat("b", len(m.Blocks)))
	}
	want := []string{"user u1 bbbb", "assistant msg1 bbbbb", "user r1 bb", "user u2 b"}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestLayoutOfARecord(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	for _, e := range conversation()[:2] {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	if !strings.Contains(lines[0], `"type":"user"`) || strings.Contains(lines[0], `"isSidechain":true`) {
		t.Errorf("the first line must hold compact \"type\":\"user\": %s", lines[0])
	}
	var second map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"parentUuid": "u1", "uuid": "a1", "sessionId": "s", "cwd": "/w", "version": "1", "gitBranch": "main",
		"type": "assistant", "userType": "external", "timestamp": "2026-11-21T01:02:03.004Z", "seq": 1.0,
	} {
		if second[key] != want {
			t.Errorf("%s = %v, want %v", key, second[key], want)
		}
	}
	msg := second["message"].(map[string]any)
	if msg["id"] != "msg1" || msg["model"] != "m" || msg["role"] != "assistant" {
		t.Errorf("message = %v", msg)
	}
}

func TestDamagedLinesAreListedAndSkipped(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	for _, e := range conversation() {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[3] = bytes.Replace(lines[3], []byte("on it"), []byte("no it"), 1)
	lines[6] = []byte("garbage\n")
	torn := bytes.Join(lines[:len(lines)-1], nil)
	r, err := Read(bytes.NewReader(torn[:len(torn)-10]))
	if err != nil {
		t.Fatal(err)
	}
	var bad []int
	for _, d := range r.Damaged {
		bad = append(bad, d.Line)
	}
	if diff := cmp.Diff([]int{4, 7, 10}, bad); diff != "" {
		t.Errorf("damaged lines (-want +got):\n%s", diff)
	}
	if len(r.Entries) != 7 {
		t.Errorf("%d entries are left, want 7", len(r.Entries))
	}
}

func TestAnExistingSessionIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	if err := w.Append(conversation()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := New(w.o); !errors.Is(err, ErrExists) {
		t.Errorf("New = %v, want ErrExists", err)
	}
}

func TestWhatCouldNotBeWrittenComesLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blocker := filepath.Join(dir, "projects")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Path: filepath.Join(blocker, "p", "s.jsonl"), SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	entries := conversation()
	if err := w.Append(entries[0]); err == nil {
		t.Fatal("Append succeeded where the folder cannot be made")
	}
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(entries[1]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries[:2], readFile(t, w.Path()).Entries); diff != "" {
		t.Errorf("entries differ (-want +got):\n%s", diff)
	}
}

// TestOneHugeEntryIsNoBacklog appends an entry that is longer than what may
// wait: nothing waits, so it is written.
func TestOneHugeEntryIsNoBacklog(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	e := Entry{UUID: "u1", Time: at, Message: &model.Message{
		ID: "u1", Role: model.RoleUser, Blocks: []model.Block{model.Document{MediaType: "a/b", Data: make([]byte, maxBacklog/4*3)}},
	}}
	if err := w.Append(e); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(w.Path())
	if err != nil || info.Size() < maxBacklog {
		t.Errorf("%v, %v", info, err)
	}
}

func TestProjectKey(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("a", 250)
	for path, want := range map[string]string{
		"/w":         "-w",
		"/a b/ç.d_e": "-a-b---d-e",
		"/x/😀":       "-x---",
		long:         "-" + strings.Repeat("a", 199) + "-" + pathHash(long),
	} {
		if got := ProjectKey(path); got != want {
			t.Errorf("ProjectKey(%q) = %q, want %q", path, got, want)
		}
	}
}

// FuzzRead checks that no bytes make Read panic or lose an intact record.
func FuzzRead(f *testing.F) {
	f.Add([]byte("garbage"), uint16(3))
	f.Add([]byte("{}\n\x00"), uint16(0))
	w, err := New(Options{Path: filepath.Join(f.TempDir(), "s.jsonl")})
	if err != nil {
		f.Fatal(err)
	}
	var lines [][]byte
	for _, e := range conversation() {
		line, err := w.encode(e)
		if err != nil {
			f.Fatal(err)
		}
		lines = append(lines, line)
	}
	f.Fuzz(func(t *testing.T, junk []byte, where uint16) {
		i := int(where) % (len(lines) + 1)
		junk = append(bytes.ReplaceAll(junk, []byte("\n"), []byte(" ")), '\n')
		all := bytes.Join([][]byte{bytes.Join(lines[:i], nil), junk, bytes.Join(lines[i:], nil)}, nil)
		r, err := Read(bytes.NewReader(all))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Entries) < len(lines) {
			t.Fatalf("%d of %d intact records were read", len(r.Entries), len(lines))
		}
	})
}

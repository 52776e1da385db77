package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestUsersRow16_InitializeIsAnsweredBeforeServersStart: the program of a server
// is started once the host has its first answer, or with a first turn that comes
// before one. The server keeps what it found in the program's output.
func TestUsersRow16_InitializeIsAnsweredBeforeServersStart(t *testing.T) {
	t.Parallel()
	onLinux(t)
	const mode = `{"type":"control_request","request_id":"first","request":{"subtype":"set_permission_mode","mode":"plan"}}`
	for name, c := range map[string]struct{ line, found string }{
		"initialize":      {`{"type":"control_request","request_id":"first","request":{"subtype":"initialize"}}`, `"request_id":"first"`},
		"another request": {mode, `"request_id":"first"`},
		"a user line":     {userLine("hi"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			out, err := os.Create(filepath.Join(p.dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			server := map[string]any{"command": "sh", "args": []string{"-c", "cp out found.part && mv found.part found"}}
			h := p.host(t, "native", testkit.Spec{Stdout: out, Args: []string{
				"--heartbeat=1", p.scripted(say("done")), mcpFlag(map[string]any{"s": server}),
			}})
			has := func(file, text string) func() bool {
				return func() bool { return p.has(file) && strings.Contains(p.content(file), text) }
			}
			eventually(t, patience, "the program has started", has("out", `"heartbeat"`))
			if p.has("found") {
				t.Error("the server was started before the first line")
			}
			h.send(c.line)
			eventually(t, patience, "the server was started, after the answer", has("found", c.found))
			if c.found == "" {
				eventually(t, patience, "the turn ended", has("out", `"result":"done"`))
			}
			h.end(0)
		})
	}
}

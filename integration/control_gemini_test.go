package integration

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// TestGoldenGemini compares the lines of the gemini dialect, which is a form of
// output only, with testdata/golden/control/gemini.
func TestGoldenGemini(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model string
		exit  int
	}{
		"conversation": {model: conversation},
		"failure":      {model: `{"use": "always", "emit": [{"status": 400, "message": "no such thing"}]}`, exit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write("greeting.txt", "Helo, World\r\nand all\r\n")
			p.write("names.txt", "Ann\nBob\n")
			proc, exit := p.run(testkit.Spec{Args: []string{
				"-p", "Mend the greeting.", "--permission-mode=yolo", p.scripted(c.model), "--output-format=stream-json", "--dialect=gemini",
			}})
			if exit.Code != c.exit || proc.Stderr() != "" {
				t.Errorf("exit code %d, want %d; stderr: %s", exit.Code, c.exit, proc.Stderr())
			}
			r := newRedactor(&scriptedHost{p: p, whole: true})
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			for line := range strings.Lines(proc.Output()) {
				var f map[string]any
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if err := enc.Encode(r.frame(f)); err != nil {
					t.Fatal(err)
				}
			}
			compareControl(t, filepath.Join("testdata", "golden", "control", "gemini", "output", name+".jsonl"), got.Bytes())
		})
	}
}

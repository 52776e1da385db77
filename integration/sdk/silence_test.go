package sdk

import (
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// TestNothingIsSaid: a host that says nothing but initialize, and ends its
// input, gets its answer, no turn and a good end.
func TestNothingIsSaid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "qwen"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			p, err := testkit.Start(testkit.Spec{
				Path: agentPath(t), Dir: home,
				Args:  []string{"--dialect", name, "--input-format", "stream-json", "--output-format", "stream-json"},
				Env:   []string{"HOME=" + home, "OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=m"},
				Stdin: `{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":null}}` + "\n",
			})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
			if exit.Code != 0 || len(lines) != 1 || !strings.Contains(lines[0], `"subtype":"success","request_id":"1"`) {
				t.Errorf("exit code %d, output:\n%s\nstderr: %s", exit.Code, p.Output(), p.Stderr())
			}
		})
	}
}

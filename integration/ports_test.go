package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ports of Claude's SDKs look for "claude" in PATH, and at the first word of what
// --version prints.
func TestPortsProbeTheVersionByName(t *testing.T) {
	t.Parallel()
	path, err := program.Path()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "claude")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--version", "-v"} {
		out, err := exec.Command(link, flag).Output()
		if err != nil || !strings.HasPrefix(string(out), "2.1.240 (agent ") {
			t.Errorf("%s: %q, %v", flag, out, err)
		}
	}
}

package integration

import (
	"errors"
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

// A link of that name puts the program in Claude Code's place.
func TestPortsFindItsDialectByName(t *testing.T) {
	t.Parallel()
	path, err := program.Path()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link, script := filepath.Join(dir, "claude"), filepath.Join(dir, "model.jsonc")
	if err := errors.Join(os.Symlink(path, link), os.WriteFile(script, []byte(`{"emit": [{"text": "Hello."}]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{link: `"tools":["Read","Write",`, path: `"tools":["read_file","write_file",`} {
		cmd := exec.Command(name, "-p", "hi", "--output-format", "stream-json", "--verbose", "--model", "scripted/"+script)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), `"result":"Hello."`) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

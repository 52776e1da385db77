package sdk

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExamples runs the clients in docs/examples/stream-json as their README
// says it, and compares what they print with their logs.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ folder, kit, ext string }{
		{"python", "python", ".py"},
		{"typescript", "typescript", ".mts"},
		{"qwen", "qwen", ".mts"},
	} {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			k := need(t, c.kit)
			runtime := k.runtime(k.dir)
			if c.ext == ".mts" {
				runtime = node22(need(t, "qwen").dir) // runs TypeScript as it is
			}
			dir := besidePackages(t, k, c.folder)
			for name, prompts := range map[string][]string{
				"client":   {"My number is 7.", "What is my number?", "Write a note."},
				"validate": nil,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					got := runExample(t, append([]string{runtime, filepath.Join(dir, name+c.ext)}, prompts...)...)
					want, err := os.ReadFile(filepath.Join(exampleFolder, c.folder, name+".log"))
					if err != nil {
						t.Fatal(err)
					}
					if got != string(want) {
						t.Errorf("it prints\n%s\nits log has\n%s", got, want)
					}
				})
			}
		})
	}
}

var exampleFolder = filepath.Join("..", "..", "docs", "examples", "stream-json")

// besidePackages copies a folder of examples to where Node finds the packages of
// a kit.
func besidePackages(t *testing.T, k *kit, folder string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(exampleFolder, folder))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(k.dir, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runExample runs a command with the examples' model, in an empty folder, and
// returns what it prints to stdout.
func runExample(t *testing.T, command ...string) string {
	t.Helper()
	model, err := filepath.Abs(filepath.Join(exampleFolder, "with-model.sh"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{model}, command...)...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = t.TempDir(), strings.NewReader("y\n"), 5*time.Second
	cmd.Env = append(clean(os.Environ()), "HOME="+t.TempDir(), "AGENT="+agentPath(t))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

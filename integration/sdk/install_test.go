package sdk

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kits are the SDKs that are tested.
var kits = map[string]*kit{
	"python":       {name: "python", folder: "claude-python", script: "claude.py", dialect: claude, install: venv, runtime: func(dir string) string { return filepath.Join(dir, "venv", "bin", "python") }},
	"python-older": {name: "python-older", folder: "claude-code-python", script: "claude_code.py", dialect: claude, install: venv, runtime: func(dir string) string { return filepath.Join(dir, "venv", "bin", "python") }},
	"typescript":   {name: "typescript", folder: "claude-typescript", script: "claude.mjs", dialect: claude, install: npm("--omit=optional"), runtime: func(string) string { return "node" }},
	"qwen":         {name: "qwen", folder: "qwen", script: "qwen.mjs", dialect: qwen, install: npm(), runtime: node22},
	"qwen-0.1.7":   {name: "qwen-0.1.7", folder: "qwen-0.1.7", script: "qwen.mjs", dialect: qwen, install: npm("--omit=optional"), runtime: func(string) string { return "node" }},
}

// required reports whether AGENT_TEST_REQUIRE demands the SDKs.
func required() bool {
	return slices.Contains(strings.Fields(os.Getenv("AGENT_TEST_REQUIRE")), "sdks")
}

// need returns the kit, installed. Where that is impossible the test is
// skipped, or fails if the SDKs are demanded.
func need(t testing.TB, name string) *kit {
	t.Helper()
	k := kits[name]
	k.ready.Do(func() { k.dir, k.err = k.installed() })
	if k.err == nil {
		return k
	}
	if required() {
		t.Fatalf("the %s SDK is not here, and AGENT_TEST_REQUIRE demands it: %v", name, k.err)
	}
	t.Skipf("needs the %s SDK: %v", name, k.err)
	return nil
}

// installLimit is how long an installation may take.
const installLimit = 4 * time.Minute

// installed returns the folder with the SDK, which is kept from run to run
// under the hash of what is in it.
func (k *kit) installed() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.New()
	for _, pattern := range []string{"packages/" + k.folder + "/*", "install_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			sum.Write(content)
		}
	}
	dir := filepath.Join(cache, "agent-sdk-tests", fmt.Sprintf("%s-%x", k.name, sum.Sum(nil)[:8]))
	if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
		return dir, nil
	}
	// A virtual environment can't be moved: what is incomplete is made anew.
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("packages", k.folder))); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	if err := k.install(ctx, dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "done"), nil, 0o644)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_CONSTRAINT=requirements.txt")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %.2000s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func venv(ctx context.Context, dir string) error {
	if err := command(ctx, dir, "python3", "-m", "venv", "venv"); err != nil {
		return err
	}
	return command(ctx, dir, filepath.Join(dir, "venv", "bin", "python"), "-m", "pip", "install", "-q", "--no-binary", "claude-agent-sdk", "-r", "requirements.txt")
}

func npm(flags ...string) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		return command(ctx, dir, "npm", append([]string{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, flags...)...)
	}
}

// node22 is the interpreter that is among the packages.
func node22(dir string) string {
	if found, _ := filepath.Glob(filepath.Join(dir, "node_modules", "node-*", "bin", "node")); len(found) > 0 {
		return found[0]
	}
	return "node"
}

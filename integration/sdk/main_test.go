// Package sdk tests the program as the published SDKs drive it: the packages are
// installed as they are (pinned, see packages/), a small driver per SDK plays a
// scenario with it and says what the SDK's user saw, and the test looks at that,
// at what the model was asked and at the working folder. The conversations in
// testdata/qwen are played without an SDK and compared line by line.
package sdk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, k := range kits {
		k.close()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// built is the folder of a program that the tests built themselves.
var built string

// binary returns the program under test: AGENT_BINARY, or one that is built
// once.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("AGENT_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "agent-sdk-test")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "agent")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/agent").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

func agentPath(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

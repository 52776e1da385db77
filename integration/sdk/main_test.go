// Package sdk tests the program as the published SDKs drive it: the packages are
// installed as they are (pinned, see packages/), a small driver per SDK plays a
// scenario with it and says what the SDK's user saw, and the test looks at that,
// at what the model was asked and at the working folder. The conversations in
// testdata/qwen are played without an SDK and compared line by line.
package sdk

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/testkit"
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
	program.Remove()
	os.Exit(code)
}

// program is the program under test.
var program = testkit.NewProgram(os.Getenv("AGENT_BINARY"))

func agentPath(t testing.TB) string {
	t.Helper()
	path, err := program.Path()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

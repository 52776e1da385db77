package tools

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds is how often a test goes round that looks for what happens now and then:
// n times in make soak, a fifth of that in the gate.
func rounds(n int) int {
	if os.Getenv("AGENT_SOAK") != "" {
		return n
	}
	return n / 5
}

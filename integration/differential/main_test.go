// Package differential runs what the policy engine judged to be read-only, and
// watches it: random command lines go through policy.JudgeShell, those that
// come out as read-only are run by bash under strace in a sandbox, and none of
// them may do what reading doesn't need. See effects_test.go for what that is.
//
// Nothing is run before the sandbox has been found to hold, from inside of it.
//
//	go test ./integration/differential                          a few hundred, always the same
//	AGENT_SOAK=1 go test -v -run Soak ./integration/differential    for AGENT_SOAK_TIME (5m)
//	AGENT_DIFFERENTIAL_SEED=n                                   repeats a soak
//	AGENT_DIFFERENTIAL_COMMAND='git log' go test -v -run One    one command line
package differential

import (
	"os"
	"testing"
)

// TestMain is also the start of the program that runs the commands inside of
// the sandbox: the test binary itself.
func TestMain(m *testing.M) {
	if dir := os.Getenv(driverEnv); dir != "" {
		os.Exit(drive(dir))
	}
	os.Exit(m.Run())
}

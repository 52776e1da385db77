//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func programSuffixes([]string) []string { return nil }

func mayExecute(m fs.FileMode) bool { return m&0o111 != 0 }

func sameKey(a, b string) bool { return a == b }

// exitOf returns the exit code, or -1 and the name of the signal.
func exitOf(state *os.ProcessState) (int, string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		if name := unix.SignalName(ws.Signal()); name != "" {
			return -1, name
		}
		return -1, ws.Signal().String()
	}
	return state.ExitCode(), ""
}

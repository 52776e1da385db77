//go:build linux && !amd64

package sandbox

import "golang.org/x/sys/unix"

// callKinds are the calls in which one waits for input.
var callKinds = map[int]callKind{
	unix.SYS_READ:     callRead,
	unix.SYS_PPOLL:    callPpoll,
	unix.SYS_PSELECT6: callSelect,
}

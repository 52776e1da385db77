//go:build unix && !solaris && !illumos && !aix

package tools

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how long to wait for another agent's replacement in the same
// directory; one takes well under a millisecond per megabyte.
const lockWait = 2 * time.Second

// lockDir takes an advisory lock on a directory, which keeps agents in other
// processes from replacing a file in it at the same moment. It is a courtesy:
// when it can't be had in time the replacement goes on, checked as ever. The
// function returned gives it back.
func lockDir(ctx context.Context, dir *os.File) (unlock func()) {
	fd := int(dir.Fd())
	deadline := time.Now().Add(lockWait)
	for pause := time.Millisecond; ; pause *= 2 {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = unix.Flock(fd, unix.LOCK_UN) }
		}
		busy := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR)
		if !busy || time.Now().After(deadline) || !wait(ctx, pause) {
			return func() {}
		}
	}
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

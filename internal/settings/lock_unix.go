//go:build unix

package settings

import (
	"errors"
	"os"
	"syscall"
)

// lockDir takes the exclusive lock of a directory, waiting for others. The
// kernel frees it if we die. It leaves no lock file behind.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

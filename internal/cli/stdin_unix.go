//go:build linux || darwin

package cli

import (
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// polledStdin reads a pipe or socket, which it waits for by poll, so that no
// goroutine stands between it and who reads: each costs a line the time in which
// the system wakes a thread. The descriptor keeps its mode, which other
// processes share.
type polledStdin struct {
	src          *os.File
	wakeR, wakeW *os.File
}

// newPolledStdin returns nil when src can't be polled.
func newPolledStdin(src *os.File) stdin {
	st, err := src.Stat()
	if err != nil || st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	return &polledStdin{src: src, wakeR: r, wakeW: w}
}

// Read implements io.Reader.
func (s *polledStdin) Read(p []byte) (int, error) {
	// What the last line began runs first, on this thread: the runtime doesn't
	// know how long the call below takes, and would wake another for it.
	runtime.Gosched()
	if s.wait() {
		return 0, io.EOF
	}
	n, err := s.src.Read(p)
	return n, readError(err)
}

// wait returns when a read would not block, or with true after Unblock. What is
// wrong with the source the read will say.
func (s *polledStdin) wait() (stopped bool) {
	var fds [2]unix.PollFd
	err := withFD(s.src, func(src int32) error {
		return withFD(s.wakeR, func(wake int32) error {
			fds[0] = unix.PollFd{Fd: src, Events: unix.POLLIN}
			fds[1] = unix.PollFd{Fd: wake, Events: unix.POLLIN}
			for {
				if _, err := unix.Poll(fds[:], -1); !errors.Is(err, unix.EINTR) {
					return err
				}
			}
		})
	})
	return err == nil && fds[1].Revents != 0
}

// withFD calls use with the descriptor of f, which stays open meanwhile.
func withFD(f *os.File, use func(fd int32) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = use(int32(fd)) }); err != nil {
		return err
	}
	return failed
}

// Unblock implements stdin.
func (s *polledStdin) Unblock() {
	_, _ = s.wakeW.Write([]byte{0}) // nobody reads it: it stays readable for ever
}

func (s *polledStdin) release() {
	s.wakeW.Close()
	s.wakeR.Close()
}

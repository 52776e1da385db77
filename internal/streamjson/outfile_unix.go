//go:build linux || darwin

package streamjson

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// outFile polls the descriptor of an output: for the end of its consumer, and
// for room when the descriptor is in non-blocking mode outside the Go
// runtime's knowledge. It works on a duplicate of the descriptor, so that it
// neither changes the file's mode nor depends on who closes it.
type outFile struct {
	fd           int
	wakeR, wakeW *os.File
	gone         bool // pipe or socket: the end of its consumer can be seen
	watching     sync.WaitGroup
}

// openOutFile is nil when f can't be polled; it is then an output like any
// other.
func openOutFile(f *os.File) *outFile {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	fd, gone := -1, false
	err = raw.Control(func(d uintptr) {
		var st unix.Stat_t
		if unix.Fstat(int(d), &st) == nil {
			mode := uint32(st.Mode) & unix.S_IFMT
			gone = mode == unix.S_IFIFO || mode == unix.S_IFSOCK
		}
		fd, _ = unix.FcntlInt(d, unix.F_DUPFD_CLOEXEC, 3)
	})
	if err != nil || fd < 0 {
		return nil
	}
	o := &outFile{fd: fd, gone: gone}
	if o.wakeR, o.wakeW, err = os.Pipe(); err != nil {
		unix.Close(fd)
		return nil
	}
	return o
}

// watch calls report, at most once and from its own goroutine, when the
// consumer of a pipe or socket has gone. It returns at once; close ends it.
func (o *outFile) watch(report func(error)) {
	if !o.gone {
		return
	}
	o.watching.Go(func() {
		// POLLHUP and POLLERR are always reported; naming one keeps darwin
		// from ignoring the descriptor.
		if events, err := o.poll(unix.POLLHUP); err == nil && events&(unix.POLLERR|unix.POLLHUP) != 0 {
			report(ErrConsumerGone)
		}
	})
}

// errInterrupted means that interrupt or close was called.
var errInterrupted = errors.New("interrupted")

// waitWritable waits until a write makes progress, or would fail.
func (o *outFile) waitWritable() error {
	_, err := o.poll(unix.POLLOUT)
	return err
}

// poll waits for one of the events, an error condition, or interrupt.
func (o *outFile) poll(events int16) (int16, error) {
	var fds [2]unix.PollFd
	raw, err := o.wakeR.SyscallConn()
	if err != nil {
		return 0, err
	}
	var pollErr error
	err = raw.Control(func(wake uintptr) {
		fds[0] = unix.PollFd{Fd: int32(o.fd), Events: events}
		fds[1] = unix.PollFd{Fd: int32(wake), Events: unix.POLLIN}
		for {
			_, pollErr = unix.Poll(fds[:], -1)
			if !errors.Is(pollErr, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case pollErr != nil:
		return 0, fmt.Errorf("polling the output: %w", pollErr)
	case fds[1].Revents != 0:
		return 0, errInterrupted
	}
	return fds[0].Revents, nil
}

// interrupt ends every poll, now and later.
func (o *outFile) interrupt() {
	_, _ = o.wakeW.Write([]byte{0}) // nobody reads it: it stays readable for all
}

// close ends the watching and frees the descriptors. Nothing may be called
// after it but interrupt.
func (o *outFile) close() {
	o.wakeW.Close()
	o.watching.Wait()
	o.wakeR.Close()
	unix.Close(o.fd)
}

// wouldBlock reports whether a write failed only because there was no room.
func wouldBlock(err error) bool {
	return errors.Is(err, unix.EAGAIN)
}

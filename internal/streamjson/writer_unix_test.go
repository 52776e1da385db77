//go:build linux || darwin

package streamjson

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rawPipe is a pipe whose write end is in blocking mode for the Go runtime,
// as an inherited stdout is.
func rawPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func sendMany(t *testing.T, w *Writer) (want string) {
	t.Helper()
	var b strings.Builder
	m := &UserLine{Message: UserMessage{Content: TextContent(strings.Repeat("x", 10_000))}}
	line, err := Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		mustSend(t, w, m)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestAnOutputThatTurnsNonBlockingWorks(t *testing.T) {
	t.Parallel()
	r, f := rawPipe(t)
	// Behind the runtime's back, as another holder of the pipe can do.
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), true) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(f, WriterOptions{})
	want := sendMany(t, w)
	got := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(r)
		got <- string(data)
	}()
	mustClose(t, w)
	f.Close()
	if <-got != want {
		t.Error("the bytes differ")
	}
}

func TestCloseGivesUpOnAFullNonBlockingOutput(t *testing.T) {
	t.Parallel()
	_, f := rawPipe(t)
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), true) }); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(f, WriterOptions{})
	sendMany(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
	within(t, 10*time.Second, w.done, "end of the goroutines")
}

func TestABlockingOutputIsNoticedToBeClosed(t *testing.T) {
	t.Parallel()
	r, f := rawPipe(t)
	w := NewWriter(f, WriterOptions{})
	r.Close()
	within(t, 200*time.Millisecond, w.Closed(), "closed pipe")
	if err := w.Close(t.Context()); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
}

func TestABlockingOutputKeepsItsMode(t *testing.T) {
	t.Parallel()
	r, f := rawPipe(t)
	w := NewWriter(f, WriterOptions{})
	if err := w.SendSync(t.Context(), &KeepAlive{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, w)
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var nonblock bool
	if err := raw.Control(func(fd uintptr) {
		flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		nonblock = flags&unix.O_NONBLOCK != 0
	}); err != nil {
		t.Fatal(err)
	}
	if nonblock {
		t.Error("the writer changed the mode of the pipe")
	}
	_ = r
}

func TestASocketIsNoticedToBeClosed(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	host, err := net.FileConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	w := NewWriter(ours, WriterOptions{})
	if err := w.SendSync(t.Context(), &KeepAlive{}); err != nil {
		t.Fatal(err)
	}
	host.Close()
	within(t, 200*time.Millisecond, w.Closed(), "closed socket")
	if err := w.Close(t.Context()); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
}

func TestNullDeviceIsNotTakenForClosed(t *testing.T) {
	t.Parallel()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f, WriterOptions{})
	if err := w.SendSync(t.Context(), &KeepAlive{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, w)
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestReport: the code of an error, and what is said about it.
func TestReport(t *testing.T) {
	t.Parallel()
	write := func(err error) error {
		return fmt.Errorf("schema: %w", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: err})
	}
	for _, c := range []struct {
		err  error
		code ExitCode
		said string
	}{
		{nil, ExitOK, ""},
		{&endedError{ExitDenied}, ExitDenied, ""},
		{fail(ExitInput, "no prompt"), ExitInput, "error: no prompt\n"},
		{fail(ExitUsage, "too many"), ExitUsage, "error: too many\nSee 'agent --help'.\n"},
		{errors.New("unknown flag"), ExitUsage, "error: unknown flag\nSee 'agent --help'.\n"},
		{write(syscall.EPIPE), ExitUnwritable, ""},
		{write(syscall.ENOSPC), ExitUnwritable, "error: schema: write /dev/stdout: no space left on device\n"},
	} {
		var said bytes.Buffer
		if code := report(IO{Err: &said}, c.err); code != c.code || said.String() != c.said {
			t.Errorf("report(%v) is %d and says %q, want %d and %q", c.err, code, said.String(), c.code, c.said)
		}
	}
}

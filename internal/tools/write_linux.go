package tools

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names of dir atomically. The error is ErrUnsupported
// where the system or the file system can't.
func exchange(dir *os.File, a, b string) error {
	fd := int(dir.Fd())
	err := unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EXDEV):
		return errors.ErrUnsupported
	}
	return err
}

// copyXattrs copies the extended attributes that we may set; what can't be
// copied is left out.
func copyXattrs(from, to *os.File) {
	size, err := unix.Flistxattr(int(from.Fd()), nil)
	if err != nil || size == 0 {
		return
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(int(from.Fd()), names); err != nil {
		return
	}
	for _, name := range splitNames(names[:size]) {
		n, err := unix.Fgetxattr(int(from.Fd()), name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, n)
		if n, err = unix.Fgetxattr(int(from.Fd()), name, value); err == nil {
			_ = unix.Fsetxattr(int(to.Fd()), name, value[:n], 0)
		}
	}
}

func splitNames(list []byte) []string {
	var names []string
	start := 0
	for i, c := range list {
		if c == 0 {
			names = append(names, string(list[start:i]))
			start = i + 1
		}
	}
	return names
}

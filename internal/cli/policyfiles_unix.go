//go:build unix

package cli

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user id that a file belongs to; false if there is no
// telling.
func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

//go:build !unix

package cli

import "io/fs"

// ownerOf never knows: an administrator's folder is never trusted here.
func ownerOf(fs.FileInfo) (int, bool) { return 0, false }

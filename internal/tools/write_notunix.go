//go:build !unix

package tools

import (
	"io/fs"
	"os"
)

// linkCount is not known here.
func linkCount(fs.FileInfo) uint64 { return 1 }

// copyOwner has nothing to do here: new files inherit from the directory.
func copyOwner(*os.File, fs.FileInfo) error { return nil }

// isInPlaceOnly is only meaningful on Unix.
func isInPlaceOnly(error) bool { return false }

//go:build !linux && !darwin

package cli

import "os"

// newPolledStdin has no poll to build on here.
func newPolledStdin(*os.File) stdin { return nil }

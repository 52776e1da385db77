//go:build !unix

package tools

// openNonblock is not needed where FIFOs aren't files.
const openNonblock = 0

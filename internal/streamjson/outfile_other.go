//go:build !linux && !darwin

package streamjson

import "os"

// outFile does nothing on this platform: a consumer that has gone is noticed
// by the next write.
type outFile struct{}

func openOutFile(*os.File) *outFile { return nil }

func (*outFile) watch(func(error))   {}
func (*outFile) waitWritable() error { return nil }
func (*outFile) interrupt()          {}
func (*outFile) close()              {}

func wouldBlock(error) bool { return false }

// Package streamjson is the wire vocabulary of the JSON-lines protocol: it
// decodes a line into a [Message], encodes a Message into a line, reads lines
// ([Reader]) and writes them whole and in order ([Writer]). It has no
// behaviour beyond that: it answers nothing, knows no session and imports
// nothing of this module. The session and the control plane read and write
// through it, and so do the test kit and the Go SDK, which see the other side
// of the same frames.
//
// Reading is strict where laxness is dangerous and tolerant where strictness
// only hurts. Keys are matched case-sensitively, a duplicate key anywhere in a
// line refuses the line, and nesting is limited; blank lines, CRLF, a byte
// order mark and unknown keys are fine, and invalid UTF-8 or lone surrogates
// inside strings are replaced by U+FFFD. A bad line is a [*LineError]; the
// reader then goes on with the next line.
//
// # SIGPIPE
//
// A Writer reports a consumer that went away as [ErrOutputClosed]. For file
// descriptors 1 and 2 the Go runtime instead kills the process with SIGPIPE on
// the first failed write, unless the program has called signal.Ignore or
// signal.Notify for SIGPIPE. Doing so is the job of the program's main
// package, before the first write.
package streamjson

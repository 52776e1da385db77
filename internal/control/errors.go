package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentcli/agent/internal/streamjson"
)

// Why a call to the host has no answer. Their texts are what the protocols say,
// capital letters included; compare with errors.Is.
var (
	// ErrInputClosed: the host closed our input, so no answer can come.
	ErrInputClosed error = protocolError("Input closed")
	// ErrTimeout: the host did not answer in time.
	ErrTimeout error = protocolError("Control request timeout")
	// ErrAborted: whoever asked gave up; the context's cause is wrapped too.
	ErrAborted error = protocolError("Request aborted")
	// ErrClosed: the session has ended.
	ErrClosed = errors.New("the session has ended")
	// ErrMalformed: what the host answered can't be read.
	ErrMalformed = errors.New("malformed answer")
	// ErrReplaced: the host has registered its hooks anew.
	ErrReplaced = errors.New("the host registered its hooks anew")
)

// protocolError is an error in the words of a protocol, which begin with a
// capital letter.
type protocolError string

// Error implements error.
func (e protocolError) Error() string { return string(e) }

// HostError is the host's error response to a call.
type HostError struct {
	Subtype string // of the call
	Text    string
}

// Error implements error: the host's words.
func (e *HostError) Error() string { return e.Text }

// TooLargeError says that a request was not sent because the host can't read
// lines of its size.
type TooLargeError struct {
	Subtype     string
	Size, Limit int
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s request for the host has %d bytes, more than the %d that it can take: make the input smaller, for instance in several steps", e.Subtype, e.Size, e.Limit)
}

// worded is an error in a dialect's words.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }
func (e *worded) Unwrap() error { return e.err }

// inputClosed is ErrInputClosed in the dialect's words.
func inputClosed(d streamjson.Dialect) error {
	if d == streamjson.Claude {
		return &worded{"Stream closed", ErrInputClosed}
	}
	return ErrInputClosed
}

// abortedError is ErrAborted with its cause.
type abortedError struct{ cause error }

func (e *abortedError) Error() string   { return ErrAborted.Error() }
func (e *abortedError) Unwrap() []error { return []error{ErrAborted, e.cause} }

func aborted(ctx context.Context) error { return &abortedError{context.Cause(ctx)} }

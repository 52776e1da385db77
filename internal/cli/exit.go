package cli

import (
	"errors"
	"fmt"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
)

// ExitCode is what the process ends with. docs/reference/exit-codes.md lists
// them; the numbers 41, 42, 44, 52, 53, 55 and 130 mean what they mean in
// gemini-cli.
type ExitCode int

// Exit codes.
const (
	ExitOK          ExitCode = 0
	ExitFailed      ExitCode = 1   // the run's last result is an error
	ExitUsage       ExitCode = 2   // flags or arguments that make no sense
	ExitAuth        ExitCode = 41  // no credentials, or refused ones
	ExitInput       ExitCode = 42  // bad input: malformed lines, no prompt
	ExitSettings    ExitCode = 52  // settings that cannot be used
	ExitTurnLimit   ExitCode = 53  // --max-turns reached
	ExitLoop        ExitCode = 56  // stopped by a loop guard
	ExitDenied      ExitCode = 57  // a call was denied, with --on-deny=fail
	ExitInternal    ExitCode = 70  // a defect of this program
	ExitUnwritable  ExitCode = 74  // output or transcript could not be written
	ExitInterrupted ExitCode = 130 // SIGINT
	ExitTerminated  ExitCode = 143 // SIGTERM
)

// exitError is an error that knows its exit code. Only this package turns
// errors into codes.
type exitError struct {
	code ExitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code ExitCode, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// resultCode is the exit code that a run's last result asks for.
func resultCode(r agent.Result) ExitCode {
	if !r.IsError {
		return ExitOK
	}
	var coded *exitError
	var apiErr *model.Error
	switch {
	case errors.As(r.Err, &coded):
		return coded.code
	case errors.Is(r.Err, agent.ErrMaxTurns):
		return ExitTurnLimit
	case errors.Is(r.Err, agent.ErrLoop):
		return ExitLoop
	case errors.Is(r.Err, agent.ErrDenied):
		return ExitDenied
	case errors.Is(r.Err, agent.ErrInternal):
		return ExitInternal
	case errors.As(r.Err, &apiErr) && apiErr.Kind == model.ErrAuth:
		return ExitAuth
	}
	return ExitFailed
}

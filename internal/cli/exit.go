package cli

import (
	"errors"
	"fmt"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/streamjson"
)

// ExitCode is what the process ends with. docs/reference/exit-codes.md lists
// them; the numbers 41, 42, 44, 52, 53, 55 and 130 mean what they mean in
// gemini-cli.
type ExitCode int

// Exit codes; exitTable says what they mean.
const (
	ExitOK          ExitCode = 0
	ExitFailed      ExitCode = 1
	ExitUsage       ExitCode = 2
	ExitAuth        ExitCode = 41
	ExitInput       ExitCode = 42
	ExitSettings    ExitCode = 52
	ExitTurnLimit   ExitCode = 53
	ExitBudget      ExitCode = 54
	ExitLoop        ExitCode = 56
	ExitDenied      ExitCode = 57
	ExitSchema      ExitCode = 58
	ExitInternal    ExitCode = 70
	ExitUnwritable  ExitCode = 74
	ExitInterrupted ExitCode = 130
	ExitTerminated  ExitCode = 143
)

// exitTable is what docs/reference/exit-codes.md is made from.
var exitTable = []struct {
	Code    ExitCode
	Meaning string
}{
	{ExitOK, "the last turn ended well (an interrupted one did)"},
	{ExitFailed, "the last result is an error, of a kind without a code of its own"},
	{ExitUsage, "flags or arguments that make no sense"},
	{ExitAuth, "no credentials for a model, or refused ones"},
	{ExitInput, "bad input: lines that could not be read, no prompt, an unknown slash command, a session id that is in use, a script that is wrong"},
	{ExitSettings, "settings that cannot be used"},
	{ExitTurnLimit, "the limit of model requests in a turn was reached (--max-turns)"},
	{ExitBudget, "the models have cost what they may (--max-budget-usd)"},
	{ExitLoop, "stopped by the loop guard: the model kept making the same call, or only calls that could not be read"},
	{ExitDenied, "a tool call was denied, with --on-deny=fail"},
	{ExitSchema, "the model gave no answer that fits the schema (--json-schema)"},
	{ExitInternal, "a defect of this program"},
	{ExitUnwritable, "output or transcript could not be written"},
	{ExitInterrupted, "SIGINT"},
	{ExitTerminated, "SIGTERM"},
}

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
	case errors.Is(r.Err, agent.ErrBudget):
		return ExitBudget
	case errors.Is(r.Err, agent.ErrNoStructured):
		return ExitSchema
	case errors.Is(r.Err, agent.ErrLoop):
		return ExitLoop
	case errors.Is(r.Err, agent.ErrDenied):
		return ExitDenied
	case errors.Is(r.Err, agent.ErrInternal):
		return ExitInternal
	case errors.As(r.Err, &apiErr) && apiErr.Kind == model.ErrAuth:
		return ExitAuth
	case errors.As(r.Err, &apiErr) && apiErr.Kind == model.ErrMalformedUse:
		return ExitLoop
	}
	return ExitFailed
}

// hostCode is the exit code of a session that an SDK started: the Claude SDKs
// show the last result's text on 1 alone; qwen's throws on any but 0, after a
// good result too, and knows the turn limit's.
func (o *options) hostCode(last agent.Result) ExitCode {
	switch {
	case o.host.dialect == streamjson.Qwen && errors.Is(last.Err, agent.ErrMaxTurns):
		return ExitTurnLimit
	case o.host.dialect == streamjson.Claude && last.IsError:
		return ExitFailed
	}
	return ExitOK
}

// hostError is the error of a session that could not start, with the code that
// SDKs expect then.
func (o *options) hostError(err error) error {
	var coded *exitError
	if o.hosted() && errors.As(err, &coded) {
		return &exitError{ExitFailed, coded.err}
	}
	return err
}

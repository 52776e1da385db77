package agent

import "context"

// Words phrases what the model is told of calls that somebody kept from
// running, for hosts that expect certain texts. A nil func means our words.
type Words struct {
	// HostDenied: whoever was asked said no. message is theirs, may be empty.
	HostDenied func(tool, message string) string
	// Unanswered: the question got no valid answer. err says why: a timeout, a
	// closed input, an error of the host, or the cause that ended the turn.
	Unanswered func(tool string, err error) string
	// Interrupted: the turn ended before the call began.
	Interrupted func(tool string) string
}

func (w Words) hostDenied(tool, message string) string {
	if w.HostDenied != nil {
		return w.HostDenied(tool, message)
	}
	return orElse(message, "The user does not want this call to run. Ask what to do instead, or go on without it.")
}

func (w Words) unanswered(ctx context.Context, tool string, err error) string {
	switch {
	case w.Unanswered != nil:
		return w.Unanswered(tool, err)
	case context.Cause(ctx) != nil:
		return "The call was not run: the request was interrupted by the user."
	}
	return "Permission to use " + tool + " was denied: " + err.Error() + "."
}

func (w Words) interrupted(tool string) string {
	if w.Interrupted != nil {
		return w.Interrupted(tool)
	}
	return "The call was not run: the request was interrupted by the user."
}

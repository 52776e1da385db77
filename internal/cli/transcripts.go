package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/transcript"
)

// sessionsPlace is where this run's transcripts lie, and in which form: where
// the session helpers of the SDK that started us look for them, else in our own
// state directory.
func (w *wiring) sessionsPlace() (dir string, layout transcript.Layout, err error) {
	layout = transcript.Native
	if w.o.hosted() {
		layout = transcript.Layout(w.o.host.dialect)
		if dir = layout.Dir(w.cio.Getenv, w.dirs.Home); dir != "" {
			return dir, layout, nil
		}
	}
	dir, err = w.dirs.SessionsDir()
	return dir, layout, err
}

func (w *wiring) buildTranscript(context.Context) error {
	if w.o.noPersistence || w.o.hostedBy(streamjson.Qwen) && !settings.QwenRecords(w.ruleOptions()) {
		return nil
	}
	dir, layout, err := w.sessionsPlace()
	if err != nil {
		w.warn("the conversation is not kept: " + err.Error())
		return nil
	}
	w.sessions = transcript.Options{
		SessionID: w.sessionID, Cwd: w.cio.Dir, Version: version.Own, GitBranch: gitBranch(settings.FindRoot(w.cio.Dir)), Layout: layout,
	}
	if layout == transcript.Claude {
		w.sessions.Version = version.Wire
	}
	if w.o.sessionMirror && w.host != nil {
		w.sessions.Mirror = w.host.mirror
	}
	w.pathOf = func(id string) string { return layout.Path(dir, w.cio.Dir, id) }
	w.agentPathOf = func(id, agentID string) string { return layout.AgentPath(dir, w.cio.Dir, id, agentID) }
	t, err := w.openTranscript(w.sessionID)
	switch {
	case errors.Is(err, transcript.ErrExists):
		return fail(ExitInput, "--session-id: %w", err)
	case err != nil:
		return fail(ExitUnwritable, "%w", err)
	}
	w.trans = t
	return nil
}

// openTranscript opens the transcript of a session, until the end of the run.
func (w *wiring) openTranscript(id string) (*transcript.Writer, error) {
	o := w.sessions
	o.SessionID, o.Path = id, w.pathOf(id)
	t, err := transcript.New(o)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, func() { w.closeTranscript(t) })
	return t, nil
}

func (w *wiring) closeTranscript(t *transcript.Writer) {
	if err := t.Close(); err != nil {
		w.log.Error("closing the transcript", "error", err)
	}
}

// reopen opens the transcript of the session that follows a reset. The worker
// calls it.
func (w *wiring) reopen(id string) (agent.Transcript, error) {
	t, err := w.openTranscript(id)
	if err != nil {
		return nil, err
	}
	w.trans = t
	return t, nil
}

// subTranscript opens the transcript of a sub-agent.
func (w *wiring) subTranscript(m agent.SubagentMeta) (agent.SubTranscript, error) {
	o := w.sessions
	o.SessionID = w.conv.SessionID()
	o.Path = w.agentPathOf(o.SessionID, m.AgentID)
	o.Agent = &transcript.Agent{
		ID: m.AgentID, Type: m.AgentType, Description: m.Description, ToolUseID: m.ToolUseID, ParentID: m.ParentAgentID,
	}
	return transcript.New(o)
}

// mirror tells the host what was written to a transcript.
func (h *host) mirror(path string, records []json.RawMessage) {
	for _, m := range h.w.facts().MirrorFrames(path, records) {
		_ = h.out.Send(m) // the Output reports a consumer that went away
	}
}

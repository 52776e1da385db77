package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/telemetry"
	"github.com/agentcli/agent/internal/usage"
)

// stuckLimit is how long a run that was told to end waits for an output that
// does not move.
const stuckLimit = 2 * time.Second

// runMain is the main command: chat on a terminal, else one headless run.
func runMain(ctx context.Context, cio IO, o *options) error {
	switch {
	case o.protocolVersion:
		fmt.Fprintln(cio.Out, version.ProtocolLine())
		return nil
	case o.version:
		fmt.Fprintln(cio.Out, version.Line())
		return nil
	}
	if err := o.check(); err != nil {
		return o.refused(cio, err)
	}
	ctx = telemetry.WithTraceParent(ctx, cio.Getenv("TRACEPARENT"), cio.Getenv("TRACESTATE"))
	if o.wantsChat(cio) {
		return runChat(ctx, cio, o)
	}
	return runHeadless(ctx, cio, o)
}

// wantsChat reports whether a person sits there to talk to.
func (o *options) wantsChat(cio IO) bool {
	return cio.InTTY && cio.OutTTY && !o.print && !o.changed("prompt") && o.promptFile == "" &&
		o.inputFormat == formatText && o.outputFormat == formatText &&
		!(len(o.args) > 0 && o.args[len(o.args)-1] == "-")
}

// runHeadless runs the prompts that flags and stdin give, and ends.
func runHeadless(ctx context.Context, cio IO, o *options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cio.onSignal(cancel)()

	out := streamjson.NewWriter(cio.Out, streamjson.WriterOptions{})
	asker := policy.Asker(policy.Nobody{})
	if o.inputFormat == formatStreamJSON {
		asker = newHost(o)
		shareProcessors(cio)
	}
	w, err := newWiring(ctx, cio, o, asker)
	if err == nil {
		defer w.close()
		err = runSession(ctx, cancel, cio, o, w, out)
	} else {
		startFailed(o, out, err)
		err = o.hostError(err)
	}
	if derr := drain(ctx, out); derr != nil && stopCode(ctx) == 0 {
		if !o.hosted() || !readerLeft(derr) {
			fmt.Fprintf(cio.Err, "error: %v\n", derr)
		}
		return &endedError{ExitUnwritable}
	}
	if code := stopCode(ctx); code != 0 {
		return &endedError{code}
	}
	return err
}

// hostThreads is how many threads run Go code at once, at least, while a host
// waits for answers.
const hostThreads = 4

// shareProcessors lets the system, and not the Go scheduler, share out few
// processors, unless the user decided: a line from the host then never waits until
// the pieces of an answer that came together are dealt with.
func shareProcessors(cio IO) {
	if runtime.GOMAXPROCS(0) < hostThreads && cio.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(hostThreads)
	}
}

// runSession runs one session to its end and says what the exit code is.
func runSession(ctx context.Context, cancel context.CancelCauseFunc, cio IO, o *options, w *wiring, out *streamjson.Writer) error {
	if w.host != nil {
		defer w.host.out.set(nil) // whoever waits for an output ends
	}
	conv, err := w.conversation()
	if err != nil {
		startFailed(o, out, err)
		return o.hostError(err)
	}
	cfg := session.Config{Conversation: conv, Log: w.log, Watch: w.watch.see, Lenient: o.hosted(), EmbedUnknown: o.host.dialect == streamjson.Qwen}
	cfg.Out = w.protocol.output(out)
	cfg.Projector = projector(cio, o, w.facts(), cfg.Out)
	if w.host != nil {
		in := newStdin(w.protocol.input(cio.In))
		defer in.release()
		cfg.Lines, cfg.Unblock = streamjson.NewReader(in, 0), in.Unblock
		cfg.Control = w.host.disp
		cfg.Accept = w.host.accept
		w.host.attach(w, conv, cfg.Out, func() { // ends at the latest with the output
			if out.Flush(ctx) == nil {
				w.servers.Start()
			}
		})
		defer w.host.beat(ctx)()
	} else {
		prompt, err := o.readPrompt(cio.In, cio.InTTY)
		if err != nil {
			startFailed(o, out, err)
			return err
		}
		conv.Submit(agent.Input{Blocks: []model.Block{model.Text{Text: prompt}}})
		conv.CloseInput()
	}
	watched := make(chan struct{})
	go func() { // ends when the output closes or the session is over
		select {
		case <-out.Closed():
			cancel(out.Err())
		case <-watched:
		}
	}()
	end := session.Run(ctx, cfg)
	close(watched)
	return outcome(o, end, cfg.Conversation)
}

// outcome turns how a session ended into the error with its exit code.
func outcome(o *options, end session.Outcome, c *agent.Conversation) error {
	code := ExitOK
	if o.hosted() {
		if code = o.hostCode(end.Last); code != ExitOK {
			return &endedError{code}
		}
		return nil
	}
	if end.Turns > 0 {
		code = resultCode(end.Last)
	}
	switch {
	case end.BadLines > 0:
		code = ExitInput
	case code == ExitOK && c.Unsaved() != nil:
		code = ExitUnwritable
	}
	if code == ExitOK {
		return nil
	}
	return &endedError{code}
}

func projector(cio IO, o *options, facts *session.Facts, out session.Output) session.Projector {
	format := session.FormatText
	switch o.outputFormat {
	case formatStreamJSON:
		format = session.FormatStream
	case formatJSON:
		format = session.FormatJSON
	}
	return session.NewProjector(session.ProjectorOptions{
		Format: format, Facts: facts, Out: out, Err: cio.Err, Partial: o.partial, Replay: o.replayUser,
	})
}

// startFailed tells a consumer of JSON why there will be no turn.
func startFailed(o *options, out *streamjson.Writer, err error) {
	if o.outputFormat == formatText {
		return
	}
	id := o.sessionID
	if id == "" {
		id = uuid.NewString()
	}
	format := session.FormatStream
	if o.outputFormat == formatJSON {
		format = session.FormatJSON
	}
	p := session.NewProjector(session.ProjectorOptions{
		Format: format, Out: out, Facts: &session.Facts{Dialect: o.host.dialect, SessionID: id, Ledger: new(usage.Ledger)},
	})
	p.Event(context.Background(), agent.Origin{}, &agent.TurnEnded{Result: agent.Result{ // drain reports a closed output
		Subtype: agent.ErrorDuringExecution, IsError: true, Terminal: agent.BadInput, Errors: []string{err.Error()}, Err: err,
	}})
	if c, ok := p.(session.Closer); ok {
		c.Close()
	}
}

// readerLeft reports whether writing failed because nobody reads any more: SDKs
// that have a result leave like that, and what we print then reaches their user's
// terminal.
func readerLeft(err error) bool {
	return errors.Is(err, streamjson.ErrConsumerGone) || errors.Is(err, syscall.EPIPE)
}

// drain waits until everything is written, however slow the reader is; once the
// run was told to end it gives up on a reader that does not move.
func drain(ctx context.Context, out *streamjson.Writer) error {
	closing, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	done := make(chan error, 1)
	go func() { done <- out.Close(closing) }() // ends at the latest by giveUp
	tick := time.NewTicker(stuckLimit)
	defer tick.Stop()
	last := out.Stats().WrittenBytes
	for {
		select {
		case err := <-done:
			if errors.Is(err, streamjson.ErrWriterClosed) {
				return nil
			}
			return err
		case <-tick.C:
			now := out.Stats().WrittenBytes
			if ctx.Err() != nil && now == last {
				giveUp(errors.New("the reader of the output does not read"))
			}
			last = now
		}
	}
}

// stopCode is the exit code of the signal that ended ctx, 0 if none did.
func stopCode(ctx context.Context) ExitCode {
	var stop *stopError
	if errors.As(context.Cause(ctx), &stop) {
		return stop.code
	}
	return 0
}

// onSignal cancels by the signals that end a run, until the returned function
// is called.
func (cio IO) onSignal(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	go func() { // ends with stop
		for {
			select {
			case s := <-cio.Signals:
				cancel(fmt.Errorf("%w: %w", agent.ErrStopped, signalError(s)))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func signalError(s os.Signal) *stopError {
	if s == os.Interrupt {
		return &stopError{"SIGINT", ExitInterrupted}
	}
	return &stopError{"SIGTERM", ExitTerminated}
}

// newLog makes the log that the flags ask for; close closes its file.
func (o *options) newLog(cio IO, sessionID string) (log *slog.Logger, closeLog func(), err error) {
	level, dst := slog.LevelError, cio.Err
	closeLog = func() {}
	switch {
	case o.debugFile != "":
		f, err := os.OpenFile(o.debugFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fail(ExitUsage, "--debug-file: %w", err)
		}
		level, dst, closeLog = slog.LevelDebug, io.Writer(f), func() { f.Close() }
	case o.debug:
		level = slog.LevelDebug
	case o.verbose && o.outputFormat != formatStreamJSON:
		level = slog.LevelInfo
	}
	h := slog.NewTextHandler(dst, &slog.HandlerOptions{Level: level})
	return slog.New(h).With("session_id", sessionID), closeLog, nil
}

// findDirs works out where the user's files lie.
func findDirs(cio IO) (settings.Dirs, error) {
	dirs, err := settings.FindDirs(cio.Getenv, runtime.GOOS)
	if err != nil {
		return dirs, fail(ExitSettings, "%w", err)
	}
	return dirs, nil
}

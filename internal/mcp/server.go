package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// protocolVersion is what servers are asked for first; older ones are taken.
	protocolVersion = "2025-11-25"
	// maxRestarts is how often in a row a server that died is started again,
	// after 1, 2, 4, 8 and 16 seconds.
	maxRestarts  = 5
	firstRestart = time.Second
	// settledTime is how long a server must have lived for its next death to
	// count as the first.
	settledTime = 10 * time.Second
	// probeTime limits the answer to a ping, when a server seems to be away.
	probeTime = 1500 * time.Millisecond
	// maxListed bounds the entries that are taken of one list of a server.
	maxListed = 2000
)

// server is one configured server. The manager's mutex guards what is below
// retired; run, its goroutine, is the only one that changes it before.
type server struct {
	m       *Manager
	cfg     Config
	bad     error         // why the configuration is invalid; nil: it isn't
	refresh chan struct{} // gets a token when a list has changed

	scope   string
	cancel  context.CancelFunc // nil: never started
	since   time.Time          // when it was started
	retired bool               // it is none of the manager's any more
	state   State
	err     string
	link    *link // nil unless connected
	listing
}

// listing is what a server said it has.
type listing struct {
	tools        []*sdk.Tool
	prompts      []*sdk.Prompt
	resources    bool
	info         *sdk.Implementation
	instructions string
}

// wire is a way to a server before the handshake.
type wire struct {
	transport sdk.Transport
	shut      func()       // cuts it, and returns when all of it is gone; may be called twice
	cause     func() error // why it ended or failed, if that is known; may be nil
	needsAuth func() bool  // the server demands a sign-in; may be nil
	lost      <-chan struct{}
	polite    bool    // the server is told of the end
	tunnel    *tunnel // nil: not a tunnel
}

// link is a session with a server.
type link struct {
	wire
	session *sdk.ClientSession
	stop    context.CancelFunc // ends what the connection was made with
	closing context.Context    // done when close begins
	hangUp  context.CancelFunc
	ended   chan struct{} // closed when the session has ended
	endErr  error         // set before

	tokens   atomic.Int64
	progress sync.Map // progress token (string) to func(*sdk.ProgressNotificationParams)
}

// start runs the server. m.mu is held.
func (s *server) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.since = cancel, time.Now()
	s.m.signal()
	s.m.running.Go(func() { s.run(ctx) })
}

// retire ends the server for good. m.mu is held; nothing waits.
func (s *server) retire() {
	s.retired, s.link, s.listing = true, nil, listing{}
	if s.cancel != nil {
		s.cancel()
	}
}

// set changes the state. m.mu is held.
func (s *server) set(state State, why string) {
	s.state, s.err = state, why
	s.m.signal()
}

// update changes the state, and what there is of the server, unless it is
// retired, and tells of it.
func (s *server) update(state State, why error, l *link, has listing) {
	text := ""
	if why != nil {
		text = clip(why.Error(), 4000)
	}
	s.m.mu.Lock()
	retired := s.retired
	if !retired {
		s.link, s.listing = l, has
		if state != Connected {
			s.set(state, text)
		}
	}
	s.m.mu.Unlock()
	if retired {
		return
	}
	s.m.publish()
	if state == Connected { // once its tools are known
		s.m.mu.Lock()
		if !s.retired {
			s.set(state, text)
		}
		s.m.mu.Unlock()
	}
	s.m.log.Debug("MCP server", "server", s.cfg.Name, "state", state, "error", text)
	s.m.tell(s.cfg.Name, state)
}

// trusted reports whether its tools run without a question.
func (s *server) trusted() bool {
	return s.cfg.Trust || s.cfg.Type == TypeSDK && s.m.o.TrustTunnelled
}

// run connects, and again when the connection ends, until ctx does.
func (s *server) run(ctx context.Context) {
	defer s.cancel()
	for deaths, pause := 0, s.m.pause; ; pause *= 2 {
		l, has, err := s.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			born := time.Now()
			s.update(Connected, nil, l, has)
			err = s.serve(ctx, l)
			if ctx.Err() == nil {
				s.update(Disconnected, err, nil, listing{})
			}
			l.close()
			if time.Since(born) >= settledTime {
				deaths, pause = 0, s.m.pause
			}
		case isAuth(err):
			s.update(NeedsAuth, err, nil, listing{})
			return
		case deaths == 0:
			s.update(Failed, err, nil, listing{})
			return
		}
		if deaths++; deaths > maxRestarts {
			s.update(Failed, fmt.Errorf("it ended %d times in a row: %w", deaths, err), nil, listing{})
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// serve watches a session until it ends or ctx does; it returns why.
func (s *server) serve(ctx context.Context, l *link) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.why(errors.New("it closed the connection"))
		case <-l.lost:
			if err := l.ping(ctx); err != nil {
				return l.why(err)
			}
		case <-s.refresh:
			has, err := s.list(ctx, l)
			if err != nil {
				s.m.log.Debug("a changed list could not be read", "server", s.cfg.Name, "error", err)
				continue
			}
			s.update(Connected, nil, l, has)
		}
	}
}

// authError says that a server demands a sign-in.
type authError struct{ err error }

func (e *authError) Error() string {
	return "it demands a sign-in, which is not supported yet: put a token into its headers (" + e.err.Error() + ")"
}

func (e *authError) Unwrap() error { return e.err }

func isAuth(err error) bool {
	var a *authError
	return errors.As(err, &a)
}

// connect makes a session and reads the server's lists.
func (s *server) connect(ctx context.Context) (*link, listing, error) {
	l, has, err := s.connectAs(ctx, s.cfg.Type)
	if err != nil && s.cfg.anyHTTP && !isAuth(err) && ctx.Err() == nil {
		if l, has, err := s.connectAs(ctx, TypeHTTP); err == nil {
			return l, has, nil
		}
	}
	return l, has, err
}

func (s *server) connectAs(ctx context.Context, kind string) (*link, listing, error) {
	// SSE keeps the context for as long as it lasts, so the limit is a timer.
	ctx, stop := context.WithCancel(ctx)
	var late atomic.Bool
	timer := time.AfterFunc(s.m.o.ConnectTime, func() {
		late.Store(true)
		stop()
	})
	defer timer.Stop()
	w, err := s.dial(ctx, kind)
	if err != nil {
		stop()
		if late.Load() {
			err = s.lateError(err)
		}
		return nil, listing{}, err
	}
	l, err := s.handshake(ctx, stop, w)
	var has listing
	if err == nil {
		has, err = s.list(ctx, l)
	}
	if err == nil && (timer.Stop() || !late.Load()) {
		return l, has, nil
	}
	if w.cause != nil {
		if cause := w.cause(); cause != nil {
			err = cause
		}
	}
	if l != nil {
		l.close()
	}
	w.shut()
	stop()
	if w.cause != nil { // a program that was told to end may have said why by now
		if cause := w.cause(); cause != nil {
			err = cause
		}
	}
	switch {
	case w.needsAuth != nil && w.needsAuth():
		err = &authError{err}
	case late.Load():
		err = s.lateError(err)
	}
	return nil, listing{}, err
}

func (s *server) lateError(err error) error {
	return fmt.Errorf("it was not ready within %v (%w); MCP_TIMEOUT in the environment sets the limit, in milliseconds", s.m.o.ConnectTime, err)
}

func (s *server) dial(ctx context.Context, kind string) (*wire, error) {
	switch kind {
	case TypeStdio:
		return s.m.dialStdio(&s.cfg)
	case TypeTCP:
		return s.m.dialTCP(ctx, &s.cfg)
	case TypeSDK:
		return s.m.dialTunnel(&s.cfg, s.m.idsOf(s.cfg.Name))
	}
	return s.m.dialHTTP(&s.cfg, kind)
}

// idsOf returns the counter of the ids of a tunnelled server.
func (m *Manager) idsOf(name string) *atomic.Int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids[name] == nil {
		m.ids[name] = new(atomic.Int64)
	}
	return m.ids[name]
}

// handshake makes the session over w.
func (s *server) handshake(ctx context.Context, stop context.CancelFunc, w *wire) (*link, error) {
	if w.polite { // its requests don't all heed ctx
		defer context.AfterFunc(ctx, w.shut)()
	}
	l := &link{wire: *w, stop: stop, ended: make(chan struct{})}
	l.closing, l.hangUp = context.WithCancel(context.Background())
	changed := func() {
		select {
		case s.refresh <- struct{}{}:
		default:
		}
	}
	name := s.m.o.ClientName
	if name == "" {
		name = "agent"
	}
	client := sdk.NewClient(&sdk.Implementation{Name: name, Version: s.m.o.ClientVersion}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { changed() },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { changed() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { l.report(r.Params) },
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			s.m.log.Debug("MCP server says", "server", s.cfg.Name, "level", r.Params.Level, "data", clip(fmt.Sprint(r.Params.Data), 2000))
		},
	})
	client.AddRoots(s.m.roots()...)
	session, err := client.Connect(ctx, w.transport, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		l.hangUp()
		return nil, err
	}
	l.session = session
	go func() { // ends with the session; close waits for it
		defer close(l.ended)
		l.endErr = session.Wait()
	}()
	return l, nil
}

// roots returns the directories that servers are told of.
func (m *Manager) roots() []*sdk.Root {
	dirs := []string{m.o.Dir}
	if m.o.Roots != nil {
		dirs = m.o.Roots()
	}
	var roots []*sdk.Root
	for _, d := range dirs {
		if d != "" {
			path := filepath.ToSlash(d)
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			roots = append(roots, &sdk.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(d)})
		}
	}
	return roots
}

// list reads what the server has. A server that doesn't know a list has none.
func (s *server) list(ctx context.Context, l *link) (listing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.m.o.ConnectTime)
	defer cancel()
	has := listing{}
	hello := l.session.InitializeResult()
	caps := hello.Capabilities
	if caps == nil {
		caps = &sdk.ServerCapabilities{}
	}
	has.info, has.instructions, has.resources = hello.ServerInfo, hello.Instructions, caps.Resources != nil
	var err error
	has.tools, err = pages(func(cursor string) ([]*sdk.Tool, string, error) {
		r, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.Tools, r.NextCursor, nil
	})
	if err != nil {
		return listing{}, err
	}
	if caps.Prompts != nil {
		has.prompts, err = pages(func(cursor string) ([]*sdk.Prompt, string, error) {
			r, err := l.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
		if err != nil { // its tools are good all the same
			s.m.log.Debug("the prompts of an MCP server could not be listed", "server", s.cfg.Name, "error", err)
		}
	}
	return has, nil
}

// pages reads a list page by page. A list that the server doesn't know is empty.
func pages[T any](page func(cursor string) ([]T, string, error)) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	for cursor := ""; ; {
		list, next, err := page(cursor)
		var refused *jsonrpc.Error
		switch {
		case errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound:
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, list...)
		if next == "" || seen[next] || len(all) >= maxListed {
			return all[:min(len(all), maxListed)], nil
		}
		seen[next], cursor = true, next
	}
}

// why says why the link ended, err if that is not known better.
func (l *link) why(err error) error {
	if l.cause != nil {
		if cause := l.cause(); cause != nil {
			return cause
		}
	}
	select {
	case <-l.ended:
		if l.endErr != nil {
			return l.endErr
		}
	default:
	}
	return err
}

// ping reports whether the server is there: any answer will do.
func (l *link) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := l.session.Ping(ctx, nil)
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case l.cause != nil && l.cause() != nil: // also dressed up as an answer, by the SDK
		return l.cause()
	case errors.As(err, &refused):
		return nil
	}
	return err
}

// close ends the session, politely where that makes sense, and returns when
// nothing of it is left.
func (l *link) close() {
	l.hangUp()
	closed := make(chan struct{})
	if l.polite {
		go func() { // ends soon after shut; waited for below
			defer close(closed)
			_ = l.session.Close()
		}()
		timer := time.NewTimer(closeTime)
		select {
		case <-closed:
		case <-timer.C:
		}
		timer.Stop()
		l.shut()
		<-closed
	} else {
		l.shut()
		_ = l.session.Close()
	}
	l.stop()
	<-l.ended
}

// within returns a context for one request: it ends with ctx, when the link is
// closed, and after limit.
func (l *link) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(l.closing, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// report hands progress to the call that it is of.
func (l *link) report(p *sdk.ProgressNotificationParams) {
	if f, ok := l.progress.Load(fmt.Sprint(p.ProgressToken)); ok {
		f.(func(*sdk.ProgressNotificationParams))(p)
	}
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// streamHeaderTime limits the wait for the header of a stream that a server
// offers for its own messages: the SDK waits for it before a session is ready.
const streamHeaderTime = 5 * time.Second

// dialTCP connects to a server that speaks lines over TCP.
func (m *Manager) dialTCP(ctx context.Context, c *Config) (*wire, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, err
	}
	s := newStream(conn, m.log.With("server", c.Name))
	gone := make(chan struct{})
	go func() { // ends when the connection does; shut waits for it
		defer close(gone)
		in := &lines{s: s}
		_, err := io.Copy(in, conn)
		in.flush()
		if err == nil {
			err = errors.New("it closed the connection")
		}
		s.end(err)
	}()
	shut := func() {
		s.end(nil)
		<-gone
	}
	return &wire{transport: ready{s}, shut: shut, cause: s.causeIfEnded}, nil
}

// dialHTTP prepares a connection by SSE or streamable HTTP; the SDK makes it.
func (m *Manager) dialHTTP(c *Config, kind string) (*wire, error) {
	base, err := m.roundTripper()
	if err != nil {
		return nil, err
	}
	life, cut := context.WithCancelCause(context.Background())
	home, err := url.Parse(c.URL)
	if err != nil {
		cut(nil)
		return nil, errors.New("its URL can't be read")
	}
	rt := &roundTripper{next: base, home: home, headers: c.Headers, life: life, lost: make(chan struct{}, 1)}
	client := &http.Client{Transport: rt}
	w := &wire{
		shut:      func() { cut(errClosed) },
		cause:     func() error { return rt.failure() },
		needsAuth: func() bool { s := rt.status.Load(); return s == http.StatusUnauthorized || s == http.StatusForbidden },
		lost:      rt.lost,
		polite:    true,
	}
	rt.optional = kind == TypeHTTP
	if kind == TypeSSE {
		w.transport = &sdk.SSEClientTransport{Endpoint: c.URL, HTTPClient: client, MaxEventSize: maxMessage}
	} else {
		w.transport = &sdk.StreamableClientTransport{Endpoint: c.URL, HTTPClient: client, MaxEventSize: maxMessage}
	}
	return w, nil
}

// errNoStream ends a request for a stream that gets no header: the SDK is told
// that there is none.
var errNoStream = errors.New("no answer to the request for a stream")

var errClosed = errors.New("the connection was closed")

// roundTripper adds a server's headers to requests, ends them all with its life,
// and watches for what says that the server is away or wants a sign-in.
type roundTripper struct {
	next    http.RoundTripper
	home    *url.URL // headers are sent there only: they may be credentials
	headers map[string]string
	life    context.Context
	// optional: GET asks for a stream that the server need not have.
	optional bool
	lost     chan struct{} // gets a token when a stream or a request broke
	status   atomic.Int32  // of the last response
	broken   atomic.Pointer[error]
}

// failure returns what the last request failed with below HTTP, or its status
// if that was an error; nil if it was neither.
func (t *roundTripper) failure() error {
	if p := t.broken.Load(); p != nil {
		return *p
	}
	if s := int(t.status.Load()); s >= 400 {
		return fmt.Errorf("it answered %d %s", s, http.StatusText(s))
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(t.life, func() { cancel(errClosed) })
	end := func() {
		stop()
		cancel(nil)
	}
	r = r.Clone(ctx)
	if t.atHome(r.URL) {
		for k, v := range t.headers {
			r.Header.Set(k, v)
		}
	}
	if host := r.Header.Get("Host"); host != "" { // a header of the configuration
		r.Host = host
	}
	if t.optional && r.Method == http.MethodGet {
		timer := time.AfterFunc(streamHeaderTime, func() { cancel(errNoStream) })
		defer timer.Stop()
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil && context.Cause(ctx) == errNoStream {
		end()
		return &http.Response{
			StatusCode: http.StatusMethodNotAllowed, Status: "405 Method Not Allowed", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	if err != nil {
		if r.Context().Err() == nil {
			t.broken.Store(&err)
			t.tell()
		}
		end()
		return nil, err
	}
	if !t.optional || r.Method != http.MethodGet {
		t.status.Store(int32(resp.StatusCode))
	}
	t.broken.Store(nil)
	streams := r.Method == http.MethodGet && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = &body{ReadCloser: resp.Body, t: t, end: end, streams: streams}
	return resp, nil
}

// atHome reports whether u is on the server that is configured, and not where a
// redirection or the server itself points. Going over to https is staying.
func (t *roundTripper) atHome(u *url.URL) bool {
	return u.Host == t.home.Host && u.Scheme == t.home.Scheme ||
		u.Hostname() == t.home.Hostname() && t.home.Scheme == "http" && u.Scheme == "https"
}

func (t *roundTripper) tell() {
	select {
	case t.lost <- struct{}{}:
	default:
	}
}

// body ends its request when it is closed, and tells when a stream breaks.
type body struct {
	io.ReadCloser
	t       *roundTripper
	end     func()
	streams bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.streams && b.t.life.Err() == nil {
		b.t.tell()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// Package httpclient is the one place where HTTP transports are made, so that
// every request of the program (models, web pages, servers) trusts the same
// certificates and goes through the same proxy. It reads no environment and no
// settings: cli hands both over in [Options]. It imports nothing of ours.
package httpclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// Options says how to reach the network. The zero value connects directly and
// trusts the system's certificates.
type Options struct {
	// HTTPProxy, HTTPSProxy, AllProxy and NoProxy are the values of the
	// environment variables of those names. AllProxy stands in for an empty
	// HTTPProxy or HTTPSProxy.
	HTTPProxy, HTTPSProxy, AllProxy, NoProxy string
	// Proxy is the proxy of the command line or the settings: it wins over the
	// three above, for both schemes. NoProxy still counts. Proxies are
	// http://, https://, socks5:// or socks5h:// URLs, user:password@ allowed;
	// a bare host:port means http://host:port. "direct" means none.
	Proxy string
	// ProxyLoopback sends also requests for localhost and loopback addresses
	// to the proxy. They go there never otherwise.
	ProxyLoopback bool
	// CAFile names a PEM file of certificates trusted besides the system's.
	CAFile string
	// UserAgent is sent in a CONNECT to a proxy, and by [Client] in requests
	// that set none. Empty: Go's own.
	UserAgent string
	// DialControl, if set, sees each address (always an IP) just before a
	// connection to it is made, proxies included, and can refuse it. Like
	// [net.Dialer.Control].
	DialControl func(network, address string, c syscall.RawConn) error
	// DialTimeout limits one TCP connect; 0 means 10 s.
	DialTimeout time.Duration
	// TLSHandshakeTimeout limits one TLS handshake; 0 means 10 s.
	TLSHandshakeTimeout time.Duration
	// ResponseHeaderTimeout limits the wait for a response's header; 0 means
	// no limit.
	ResponseHeaderTimeout time.Duration
}

const (
	defaultDialTimeout  = 10 * time.Second
	defaultTLSTimeout   = 10 * time.Second
	idleConnTimeout     = 90 * time.Second
	maxIdleConns        = 100
	maxIdleConnsPerHost = 16
)

// New returns a transport that follows o. It does no network I/O, and reads no
// file but CAFile; the system's certificates are loaded by the first TLS
// connection. An error says which option is wrong. The caller closes idle
// connections when it is done with the transport.
func New(o Options) (*http.Transport, error) {
	proxy, err := o.ProxyFunc()
	if err != nil {
		return nil, err
	}
	extra, err := readCAFile(o.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{
		Timeout:   cmp.Or(o.DialTimeout, defaultDialTimeout),
		KeepAlive: 30 * time.Second,
		Control:   o.DialControl,
	}
	t := &http.Transport{
		Proxy:                 func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   cmp.Or(o.TLSHandshakeTimeout, defaultTLSTimeout),
		ResponseHeaderTimeout: o.ResponseHeaderTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleConnTimeout,
		MaxIdleConns:          maxIdleConns,
		MaxIdleConnsPerHost:   maxIdleConnsPerHost,
		ForceAttemptHTTP2:     true,
	}
	if len(extra) > 0 {
		trustAlso(t, dialer, extra)
	}
	if o.UserAgent != "" {
		t.ProxyConnectHeader = http.Header{"User-Agent": {o.UserAgent}}
	}
	return t, nil
}

// trustAlso makes t trust extra besides the system's certificates. The pool is
// filled in place before the first connection, which every TLS handshake
// comes after; clones of t share both the pool and the dial function.
func trustAlso(t *http.Transport, dialer *net.Dialer, extra []certificate) {
	pool := newLazyPool(extra)
	t.TLSClientConfig = &tls.Config{RootCAs: pool.roots, MinVersion: tls.VersionTLS12}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		pool.fill()
		return dialer.DialContext(ctx, network, addr)
	}
}

// Client returns a client over [New]'s transport, without a time limit of its
// own (requests carry contexts). Requests without a User-Agent get
// o.UserAgent.
func Client(o Options) (*http.Client, error) {
	t, err := New(o)
	if err != nil {
		return nil, err
	}
	if o.UserAgent == "" {
		return &http.Client{Transport: t}, nil
	}
	return &http.Client{Transport: &userAgent{next: t, value: o.UserAgent}}, nil
}

// userAgent sets the User-Agent of requests that have none.
type userAgent struct {
	next  *http.Transport
	value string
}

// RoundTrip implements http.RoundTripper.
func (u *userAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, set := r.Header["User-Agent"]; !set {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", u.value)
	}
	return u.next.RoundTrip(r)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (u *userAgent) CloseIdleConnections() { u.next.CloseIdleConnections() }

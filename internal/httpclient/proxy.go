package httpclient

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// ErrProxy marks a proxy option that can't be used.
var ErrProxy = errors.New("invalid proxy")

// ProxyFunc returns the function that names the proxy for a URL: nil means a
// direct connection. It is safe for concurrent use. The error (ErrProxy) says
// which option is wrong; it never holds a password.
func (o Options) ProxyFunc() (func(*url.URL) (*url.URL, error), error) {
	proxies := []struct{ name, value string }{
		{"HTTP_PROXY", firstNonEmpty(o.Proxy, o.HTTPProxy, o.AllProxy)},
		{"HTTPS_PROXY", firstNonEmpty(o.Proxy, o.HTTPSProxy, o.AllProxy)},
	}
	urls := make([]*url.URL, len(proxies))
	for i, p := range proxies {
		u, err := parseProxy(p.value)
		if err != nil {
			return nil, fmt.Errorf("%w (network.proxy, --proxy or %s): %w", ErrProxy, p.name, err)
		}
		urls[i] = u
	}
	if urls[0] == nil && urls[1] == nil {
		return func(*url.URL) (*url.URL, error) { return nil, nil }, nil
	}
	chosen := httpproxy.Config{HTTPProxy: text(urls[0]), HTTPSProxy: text(urls[1]), NoProxy: noProxyList(o.NoProxy)}
	choose := chosen.ProxyFunc()
	return func(u *url.URL) (*url.URL, error) {
		if !isLoopback(u.Hostname()) {
			return choose(u)
		}
		if !o.ProxyLoopback {
			return nil, nil
		}
		if u.Scheme == "https" {
			return urls[1], nil
		}
		return urls[0], nil
	}, nil
}

// parseProxy reads one proxy; nil for none ("" or "direct").
func parseProxy(s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if s == "" || strings.EqualFold(s, "direct") {
		return nil, nil
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil { // not shown: it may quote a piece of the password
		return nil, errors.New("it is no URL; write it as http://user:password@host:port, with special characters %-encoded")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, fmt.Errorf("scheme %q is none of http, https, socks5, socks5h", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%q has no host; write it as http://host:port", u.Redacted())
	}
	return u, nil
}

func text(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}

// noProxyList makes the comma-separated list that httpproxy reads out of one
// that may also be separated by blanks.
func noProxyList(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n'
	}), ",")
}

// isLoopback reports whether host (without a port) is this machine by name or
// address.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func firstNonEmpty(list ...string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// NetworkError makes the error of a request that got no answer, or of a stream
// that broke: its Kind, and a message that says what happened and what to do.
// What it cannot tell apart is ErrNetwork. Faults that stay until somebody
// changes something (certificates, a proxy that wants a password, a bad URL)
// are ErrConfigured and so not retried. An [*Error] within err is returned as
// it is, with provider filled in if it has none; a context's error keeps being
// one for errors.Is. err is not nil. Neither URLs nor credentials get into the message.
func NetworkError(provider string, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		if own.Provider == "" {
			named := *own
			named.Provider = provider
			return &named
		}
		return own
	}
	kind, msg := describeNetwork(err)
	return &Error{Kind: kind, Provider: provider, Message: cleanMessage(msg), Err: err}
}

// networkFaults are tried in order; the first that knows the error decides.
var networkFaults = []func(error) (ErrorKind, string){
	describeSize, describeCertificate, describeTLS, describeDNS, describeSyscall, describeProxy, describeEnd, describeTimeout,
}

func describeNetwork(err error) (ErrorKind, string) {
	for _, f := range networkFaults {
		if kind, msg := f(err); kind != "" {
			return kind, msg
		}
	}
	return ErrNetwork, "request failed: " + plainCause(err)
}

// plainCause is the error's text without the URL that net/http puts before it.
func plainCause(err error) string {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// host is the host of the failed request, for messages.
func host(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		if parsed, perr := url.Parse(u.URL); perr == nil && parsed.Host != "" {
			return parsed.Host
		}
	}
	return "the server"
}

func describeSize(err error) (ErrorKind, string) {
	var size *EventSizeError
	if errors.As(err, &size) {
		return ErrMalformed, size.Error()
	}
	return "", ""
}

func describeCertificate(err error) (ErrorKind, string) {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
		roots   x509.SystemRootsError
	)
	switch {
	case errors.As(err, &unknown):
		return ErrConfigured, "the certificate of " + host(err) + " is signed by an authority that is not trusted here" +
			" (often a company's TLS-inspecting proxy): name its CA certificate with the setting network.caFile, or add it to the system's trust store"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ErrConfigured, "the certificate of " + host(err) + " has expired or is not valid yet: check this machine's clock, then the server"
	case errors.As(err, &name):
		return ErrConfigured, "the certificate of " + host(err) + " is for another host: check the base URL and the proxy"
	case errors.As(err, &roots):
		return ErrConfigured, "the system's trusted certificates cannot be read: install them (package ca-certificates) or use the setting network.caFile"
	}
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) || errors.As(err, &invalid) {
		return ErrConfigured, "the certificate of " + host(err) + " is not accepted (" + plainCause(err) + "): if a proxy replaces certificates, use the setting network.caFile"
	}
	return "", ""
}

func describeTLS(err error) (ErrorKind, string) {
	var record tls.RecordHeaderError
	if errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return ErrConfigured, host(err) + " does not speak TLS: use http:// in the base URL, or check the proxy"
	}
	var alert tls.AlertError
	if errors.As(err, &alert) {
		return ErrNetwork, "TLS with " + host(err) + " failed: " + alert.Error()
	}
	return "", ""
}

func describeDNS(err error) (ErrorKind, string) {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return "", ""
	}
	if dns.IsNotFound {
		return ErrNetwork, "host " + dns.Name + " is not known: check the base URL and the network; behind a proxy, set HTTPS_PROXY"
	}
	return ErrNetwork, "looking up host " + dns.Name + " failed: check the network and its DNS server; behind a proxy, set HTTPS_PROXY"
}

func describeSyscall(err error) (ErrorKind, string) {
	at := host(err)
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		at = op.Addr.String()
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return ErrNetwork, "connection to " + at + " refused: nothing listens there; start the server, or check the base URL and the proxy"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return ErrNetwork, "connection to " + at + " was reset"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return ErrNetwork, at + " cannot be reached: check the network; behind a proxy, set HTTPS_PROXY"
	}
	return "", ""
}

// describeProxy knows net/http's untyped errors of proxies and URLs.
func describeProxy(err error) (ErrorKind, string) {
	text := err.Error()
	switch {
	case strings.Contains(text, "Proxy Authentication Required"):
		return ErrConfigured, "the HTTP proxy asks for a user and password: put them into the proxy URL (http://user:password@host:port)"
	case strings.Contains(text, "unsupported protocol scheme"), strings.Contains(text, "no Host in request URL"):
		return ErrConfigured, "the base URL is not usable (" + plainCause(err) + "): it must begin with http:// or https:// and name a host"
	case strings.Contains(text, "proxyconnect"), strings.Contains(text, "socks connect"):
		return ErrNetwork, "the proxy cannot be used (" + plainCause(err) + "): check HTTPS_PROXY and NO_PROXY"
	}
	return "", ""
}

func describeEnd(err error) (ErrorKind, string) {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return ErrNetwork, "the connection to " + host(err) + " was closed in the middle of the answer"
	}
	return "", ""
}

func describeTimeout(err error) (ErrorKind, string) {
	if errors.Is(err, context.Canceled) {
		return ErrNetwork, "request cancelled"
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ErrNetwork, "no answer from " + host(err) + " in time: check the network; behind a proxy, set HTTPS_PROXY"
	}
	return "", ""
}

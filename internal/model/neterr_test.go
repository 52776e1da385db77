package model_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/model"
)

func TestNetworkErrorSaysWhatHappenedAndWhatToDo(t *testing.T) {
	t.Parallel()
	at := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://user:hunter2@api.example.com/v1?key=hunter2", Err: err}
	}
	dial := func(err error) error {
		return at(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}, Err: os.NewSyscallError("connect", err)})
	}
	tests := []struct {
		name string
		err  error
		kind model.ErrorKind
		want string
	}{
		{"refused", dial(syscall.ECONNREFUSED), model.ErrNetwork, "10.0.0.1:443 refused"},
		{"unreachable", dial(syscall.ENETUNREACH), model.ErrNetwork, "HTTPS_PROXY"},
		{"reset", at(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), model.ErrNetwork, "reset"},
		{"no such host", at(&net.DNSError{Name: "api.example.com", IsNotFound: true}), model.ErrNetwork, "host api.example.com is not known"},
		{"dns times out", at(&net.DNSError{Name: "api.example.com", IsTimeout: true}), model.ErrNetwork, "DNS"},
		{"unknown authority", at(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), model.ErrConfigured, "network.caFile"},
		{"expired", at(x509.CertificateInvalidError{Reason: x509.Expired}), model.ErrConfigured, "clock"},
		{"wrong host", at(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.example.com"}), model.ErrConfigured, "another host"},
		{"plain http", at(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), model.ErrConfigured, "http://"},
		{"proxy wants a password", at(errors.New("Proxy Authentication Required")), model.ErrConfigured, "proxy URL"},
		{"bad scheme", at(errors.New(`unsupported protocol scheme "htp"`)), model.ErrConfigured, "base URL"},
		{"proxy down", at(errors.New("proxyconnect tcp: EOF")), model.ErrNetwork, "HTTPS_PROXY"},
		{"cut body", io.ErrUnexpectedEOF, model.ErrNetwork, "closed in the middle"},
		{"end before the headers", at(io.EOF), model.ErrNetwork, "closed in the middle"},
		{"timeout", at(context.DeadlineExceeded), model.ErrNetwork, "in time"},
		{"anything else", at(errors.New("http2: client connection lost")), model.ErrNetwork, "http2: client connection lost"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := model.NetworkError("gemini", tt.err)
			if e.Kind != tt.kind || e.Provider != "gemini" || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got %v, want kind %s with %q", e, tt.kind, tt.want)
			}
			if strings.Contains(e.Message, "hunter2") {
				t.Errorf("message tells the password: %s", e.Message)
			}
			if !errors.Is(e, tt.err) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestNetworkErrorPassesOwnErrorsOn(t *testing.T) {
	t.Parallel()
	stalled := &model.Error{Kind: model.ErrStalled, Message: "nothing came"}
	got := model.NetworkError("openai", fmt.Errorf("reading: %w", stalled))
	if got.Kind != model.ErrStalled || got.Provider != "openai" || stalled.Provider != "" {
		t.Errorf("got %v (original %v)", got, stalled)
	}
	named := &model.Error{Kind: model.ErrAuth, Provider: "other"}
	if got := model.NetworkError("openai", named); got != named {
		t.Errorf("got %v, want it unchanged", got)
	}
}

func TestNetworkErrorOfRealConnections(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	hangsUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	t.Cleanup(hangsUp.Close)
	tests := []struct {
		name, url string
		kind      model.ErrorKind
		want      string
	}{
		{"certificate of a private authority", server.URL, model.ErrConfigured, "network.caFile"},
		{"https to an http server", strings.Replace(plain.URL, "http:", "https:", 1), model.ErrConfigured, "does not speak TLS"},
		{"nobody listens", gone.URL, model.ErrNetwork, "refused"},
		{"hangs up", hangsUp.URL, model.ErrNetwork, "closed in the middle"},
		{"no scheme", "localhost:1/v1", model.ErrConfigured, "base URL"},
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp, err := client.Get(tt.url)
			if err == nil {
				resp.Body.Close()
				t.Fatal("no error")
			}
			if e := model.NetworkError("p", err); e.Kind != tt.kind || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got %v, want kind %s with %q", e, tt.kind, tt.want)
			}
		})
	}
}

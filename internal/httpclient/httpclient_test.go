package httpclient_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/httpclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is a private CA, as a company's TLS-intercepting proxy has one.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, file: file}
}

// leaf makes a server certificate for host.
func (a *authority) leaf(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// proxyServer answers every request itself, naming the host it was asked for;
// TLS in a CONNECT is intercepted with certificates of the authority.
type proxyServer struct {
	*httptest.Server
	ca *authority

	mu   sync.Mutex
	seen []string // method, host and credentials of each request to the proxy
}

func newProxy(t *testing.T, ca *authority) *proxyServer {
	t.Helper()
	p := &proxyServer{ca: ca}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *proxyServer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

func (p *proxyServer) serve(w http.ResponseWriter, r *http.Request) {
	cred, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic "))
	p.mu.Lock()
	p.seen = append(p.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.Host, cred)))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		fmt.Fprintf(w, "proxied %s", r.URL)
		return
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	host, _, _ := net.SplitHostPort(r.Host)
	cert, err := p.ca.leaf(host)
	if err != nil {
		return
	}
	tconn := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*cert}})
	req, err := http.ReadRequest(bufio.NewReader(tconn))
	if err != nil {
		return
	}
	body := "intercepted " + req.Host
	fmt.Fprintf(tconn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func get(t *testing.T, o httpclient.Options, target string) (string, error) {
	t.Helper()
	client, err := httpclient.Client(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(target)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestInterceptingProxyWithAPrivateCAIsTrustedThroughTheCAFile(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	proxy := newProxy(t, ca)
	body, err := get(t, httpclient.Options{HTTPSProxy: proxy.URL, CAFile: ca.file}, "https://models.example/v1")
	if err != nil || body != "intercepted models.example" {
		t.Errorf("got %q, %v", body, err)
	}
	if _, err := get(t, httpclient.Options{HTTPSProxy: proxy.URL}, "https://models.example/v1"); err == nil {
		t.Error("without the CA file the private CA was trusted")
	}
}

func TestCAFileDoesNotWeakenTheNameCheck(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, err := ca.leaf("other.example")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	_, err = get(t, httpclient.Options{CAFile: ca.file}, srv.URL)
	var bad x509.HostnameError
	if !errors.As(err, &bad) {
		t.Errorf("a certificate for another host gave %v, want a HostnameError", err)
	}
}

func TestCAFileWorksForDirectTLSAndForClones(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	data = append([]byte("comment first\n"), data...)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	transport, err := httpclient.New(httpclient.Options{CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	clone := transport.Clone()
	var wg sync.WaitGroup
	for _, tr := range []*http.Transport{transport, clone, transport, clone} {
		wg.Go(func() {
			resp, err := (&http.Client{Transport: tr}).Get(srv.URL)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	transport.CloseIdleConnections()
	clone.CloseIdleConnections()
}

func TestHTTP2IsSpokenWhereTheServerOffersIt(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if body, err := get(t, httpclient.Options{CAFile: file}, srv.URL); err != nil || body != "HTTP/2.0" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestBrokenCAFileNamesFileAndProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct{ path, want string }{
		"missing":     {filepath.Join(dir, "absent.pem"), "no such file"},
		"empty":       {write("empty.pem", ""), "no certificate in it"},
		"binary":      {write("der.pem", "\x30\x82\x01"), "no certificate in it"},
		"bad content": {write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "certificate 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := httpclient.New(httpclient.Options{CAFile: c.path})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %v should name %s and %q", err, c.path, c.want)
			}
		})
	}
}

func TestAuthenticatedProxyGetsTheCredentials(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	proxy := newProxy(t, ca)
	withUser := strings.Replace(proxy.URL, "http://", "http://joe:s%40crt@", 1)
	o := httpclient.Options{Proxy: withUser, CAFile: ca.file}
	for _, target := range []string{"http://plain.example/", "https://secure.example/"} {
		if _, err := get(t, o, target); err != nil {
			t.Error(err)
		}
	}
	want := []string{"GET plain.example joe:s@crt", "CONNECT secure.example:443 joe:s@crt"}
	if got := proxy.requests(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("proxy saw %q, want %q", got, want)
	}
}

func TestBareHostPortIsAnHTTPProxy(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, nil)
	bare := strings.TrimPrefix(proxy.URL, "http://")
	for _, o := range []httpclient.Options{{Proxy: bare}, {HTTPProxy: bare}, {AllProxy: bare}, {HTTPProxy: " " + bare + "\n"}} {
		if body, err := get(t, o, "http://page.example/x"); err != nil || body != "proxied http://page.example/x" {
			t.Errorf("%+v: got %q, %v", o, body, err)
		}
	}
}

func TestSOCKS5ProxyResolvesAndAuthenticates(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.Host) }))
	defer target.Close()
	for _, scheme := range []string{"socks5", "socks5h"} {
		asked := make(chan string, 1)
		addr := socksServer(t, target.Listener.Addr().String(), asked)
		body, err := get(t, httpclient.Options{AllProxy: scheme + "://joe:pw@" + addr}, "http://inner.example:81/")
		if err != nil || body != "hello inner.example:81" {
			t.Errorf("%s: got %q, %v", scheme, body, err)
		}
		if got := <-asked; got != "joe:pw inner.example:81" {
			t.Errorf("%s server was asked for %q", scheme, got)
		}
	}
}

// socksServer serves one SOCKS5 connection: it reports "user:password
// host:port" and connects to upstream whatever was asked for.
func socksServer(t *testing.T, upstream string, asked chan<- string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends when the connection or the listener is closed
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		who, err := socksHandshake(conn)
		if err != nil {
			asked <- err.Error()
			return
		}
		asked <- who
		up, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		var wg sync.WaitGroup
		wg.Go(func() { io.Copy(up, conn); up.Close() })
		io.Copy(conn, up)
		conn.Close()
		wg.Wait()
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func socksHandshake(conn net.Conn) (string, error) {
	field := func() string { // a length byte and as many bytes
		n := make([]byte, 1)
		io.ReadFull(conn, n)
		b := make([]byte, n[0])
		io.ReadFull(conn, b)
		return string(b)
	}
	skip := func(n int64) { io.CopyN(io.Discard, conn, n) }
	skip(1) // version
	if methods := field(); !strings.Contains(methods, "\x02") {
		return "", fmt.Errorf("no password offered: %x", methods)
	}
	conn.Write([]byte{5, 2})
	skip(1)
	user := field()
	password := field()
	conn.Write([]byte{1, 0})
	skip(4) // version, command, reserved, address type (a name)
	host := field()
	var port uint16
	if err := binary.Read(conn, binary.BigEndian, &port); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%s %s:%d", user, password, host, port), nil
}

func TestProxyChoice(t *testing.T) {
	t.Parallel()
	const p = "http://proxy:8080"
	cases := []struct {
		name   string
		o      httpclient.Options
		target string
		want   string
	}{
		{"no option", httpclient.Options{}, "https://a.example", ""},
		{"https for https", httpclient.Options{HTTPSProxy: p}, "https://a.example", p},
		{"https not for http", httpclient.Options{HTTPSProxy: p}, "http://a.example", ""},
		{"all stands in", httpclient.Options{AllProxy: p}, "http://a.example", p},
		{"specific before all", httpclient.Options{AllProxy: "other:1", HTTPProxy: p}, "http://a.example", p},
		{"flag wins", httpclient.Options{HTTPProxy: "other:1", Proxy: p}, "http://a.example", p},
		{"flag direct switches off", httpclient.Options{HTTPProxy: p, Proxy: "direct"}, "http://a.example", ""},
		{"https proxy", httpclient.Options{Proxy: "https://proxy:8443"}, "https://a.example", "https://proxy:8443"},
		{"exact host", httpclient.Options{AllProxy: p, NoProxy: "a.example"}, "https://a.example", ""},
		{"its subdomain", httpclient.Options{AllProxy: p, NoProxy: "a.example"}, "https://x.a.example", ""},
		{"look-alike goes through", httpclient.Options{AllProxy: p, NoProxy: "a.example"}, "https://bada.example", p},
		{"look-alike prefix goes through", httpclient.Options{AllProxy: p, NoProxy: "a.example"}, "https://a.example.evil.test", p},
		{"dot means subdomains only", httpclient.Options{AllProxy: p, NoProxy: ".a.example"}, "https://a.example", p},
		{"star dot", httpclient.Options{AllProxy: p, NoProxy: "*.a.example"}, "https://x.a.example", ""},
		{"case", httpclient.Options{AllProxy: p, NoProxy: "A.Example"}, "https://a.example", ""},
		{"port matches", httpclient.Options{AllProxy: p, NoProxy: "a.example:8443"}, "https://a.example:8443", ""},
		{"port differs", httpclient.Options{AllProxy: p, NoProxy: "a.example:8443"}, "https://a.example", p},
		{"cidr", httpclient.Options{AllProxy: p, NoProxy: "10.0.0.0/8"}, "http://10.9.8.7", ""},
		{"outside cidr", httpclient.Options{AllProxy: p, NoProxy: "10.0.0.0/8"}, "http://11.9.8.7", p},
		{"cidr v6", httpclient.Options{AllProxy: p, NoProxy: "fd00::/8"}, "http://[fd00::1]:80", ""},
		{"star", httpclient.Options{AllProxy: p, NoProxy: "*"}, "https://a.example", ""},
		{"blanks separate too", httpclient.Options{AllProxy: p, NoProxy: "b.example  a.example"}, "https://a.example", ""},
		{"no proxy counts against the flag", httpclient.Options{Proxy: p, NoProxy: "a.example"}, "https://a.example", ""},
		{"localhost", httpclient.Options{Proxy: p}, "http://localhost:11434", ""},
		{"localhost with a dot", httpclient.Options{Proxy: p}, "http://LocalHost.:11434", ""},
		{"loopback", httpclient.Options{Proxy: p}, "http://127.9.9.9:1", ""},
		{"loopback v6", httpclient.Options{Proxy: p}, "http://[::1]:1", ""},
		{"mapped loopback", httpclient.Options{Proxy: p}, "http://[::ffff:127.0.0.1]:1", ""},
		{"forced", httpclient.Options{Proxy: p, ProxyLoopback: true}, "http://localhost:11434", p},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			choose, err := c.o.ProxyFunc()
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(c.target)
			if err != nil {
				t.Fatal(err)
			}
			got, err := choose(u)
			if err != nil {
				t.Fatal(err)
			}
			s := ""
			if got != nil {
				s = got.String()
			}
			if s != c.want {
				t.Errorf("proxy for %s is %q, want %q", c.target, s, c.want)
			}
		})
	}
}

func TestUnusableProxyIsRefusedWithoutShowingThePassword(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"ftp://u:secret@h:1", "http://", "http://u:secret@:80", "http://u:secret/@h", "http://h:port", "http://u:sec%ret@h", "socks4://h:1"} {
		_, err := httpclient.New(httpclient.Options{HTTPSProxy: bad})
		if !errors.Is(err, httpclient.ErrProxy) {
			t.Errorf("%s gave %v", bad, err)
			continue
		}
		if s := err.Error(); strings.Contains(s, "secret") || strings.Contains(s, "sec%ret") || !strings.Contains(s, "HTTPS_PROXY") {
			t.Errorf("%s gave %q", bad, s)
		}
	}
}

func TestDialControlCanRefuseAnAddress(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	refused := errors.New("refused")
	_, err := get(t, httpclient.Options{DialControl: func(_, addr string, _ syscall.RawConn) error { return refused }}, srv.URL)
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestUserAgentIsSentUnlessTheRequestHasOne(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.UserAgent()) }))
	defer srv.Close()
	client, err := httpclient.Client(httpclient.Options{UserAgent: "agent/1"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for own, want := range map[string]string{"": "agent/1", "sdk/2": "sdk/2"} {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, srv.URL, nil)
		if own != "" {
			req.Header.Set("User-Agent", own)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("own %q: server saw %q, want %q", own, body, want)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := httpclient.New(httpclient.Options{HTTPSProxy: "http://u:p@proxy:8080", NoProxy: "localhost,10.0.0.0/8,.corp.example"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewWithCAFile(b *testing.B) {
	ca := newAuthority(b)
	for b.Loop() {
		if _, err := httpclient.New(httpclient.Options{CAFile: ca.file}); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzProxy checks that no proxy option makes New panic, and that whatever is
// accepted is a URL of a scheme that the transport speaks.
func FuzzProxy(f *testing.F) {
	for _, s := range []string{"", "direct", "h:1", "http://u:p@h:1", "socks5h://[::1]:1080", "://", "http://\x00", "h:1/path?q#f", "[::1]:80", "%41:1"} {
		f.Add(s, "localhost, .x *")
	}
	f.Fuzz(func(t *testing.T, proxy, noProxy string) {
		choose, err := httpclient.Options{Proxy: proxy, NoProxy: noProxy}.ProxyFunc()
		if err != nil {
			return
		}
		u, err := choose(&url.URL{Scheme: "https", Host: "a.example"})
		if err != nil || u == nil {
			return
		}
		if u.Hostname() == "" || !strings.Contains(" http https socks5 socks5h ", " "+u.Scheme+" ") {
			t.Errorf("%q was accepted as %v", proxy, u)
		}
	})
}

package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// farAway is a name that only a proxy can find.
const farAway = "model.invalid"

// hello answers any number of prompts.
const hello = `{"use": "always", "emit": [{"text": "hello"}]}`

// httpProxy is a proxy that wants a password and knows where farAway is.
func httpProxy(t testing.TB, target, user string) (addr string, used *atomic.Int32) {
	t.Helper()
	used = new(atomic.Int32)
	next := forward(t, target)
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
	proxy := local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user != "" && r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", `Basic realm="proxy"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		used.Add(1)
		if r.Method == http.MethodConnect {
			tunnel(w, strings.TrimPrefix(target, "http://"))
			return
		}
		next.ServeHTTP(w, r)
	}))
	return strings.TrimPrefix(proxy, "http://"), used
}

// tunnel joins the proxy's client to a server, until one of them ends it.
func tunnel(w http.ResponseWriter, addr string) {
	far, err := net.Dial("tcp", addr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		far.Close()
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n") // joining shows what is broken
	join(near, buffered, far)
}

// join copies both ways and closes both.
func join(near net.Conn, from io.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { // ends when the near side closes, or far is closed
		_, _ = io.Copy(far, from)
		far.Close()
	})
	_, _ = io.Copy(near, far)
	near.Close()
	far.Close()
	both.Wait()
}

// socksProxy is a SOCKS5 proxy which takes every name to target. It ends with
// the test.
func socksProxy(t testing.TB, target string) (addr string, used *atomic.Int32) {
	t.Helper()
	used = new(atomic.Int32)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { // ends when ln is closed
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { // ends with its connection
				if socksHandshake(c) != nil {
					c.Close()
					return
				}
				used.Add(1)
				far, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
				if err != nil {
					c.Close()
					return
				}
				join(c, c, far)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		serving.Wait()
	})
	return ln.Addr().String(), used
}

// socksHandshake reads the greeting and a request for a connection to a name,
// and grants both.
func socksHandshake(c net.Conn) error {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(head[1])); err != nil {
		return err
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return err
	}
	request := make([]byte, 5) // version, command, reserved, address type, length of the name
	if _, err := io.ReadFull(c, request); err != nil {
		return err
	}
	if request[3] != 3 {
		return net.InvalidAddrError("not a name: the proxy is to look it up")
	}
	rest := make([]byte, int(request[4])+2)
	if _, err := io.ReadFull(c, rest); err != nil {
		return err
	}
	_, err := c.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 1})
	return err
}

// TestUsersRow55_ProxiesCarryAllTraffic reaches a server that only the proxy knows.
func TestUsersRow55_ProxiesCarryAllTraffic(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(hello)
		far := pr.env("http://" + farAway)
		secured, usedSecured := httpProxy(t, base, "me:p@ss")
		open, usedOpen := httpProxy(t, base, "")
		socks, usedSocks := socksProxy(t, base)
		for _, try := range []struct {
			name, proxy string
			used        *atomic.Int32
		}{
			{"user and password", "HTTP_PROXY=http://me:p%40ss@" + secured, usedSecured},
			{"bare host and port", "HTTP_PROXY=" + open, usedOpen},
			{"small letters", "http_proxy=http://" + open, usedOpen},
			{"SOCKS5", "ALL_PROXY=socks5://" + socks, usedSocks},
			{"SOCKS5 that looks names up", "ALL_PROXY=socks5h://" + socks, usedSocks},
		} {
			before := try.used.Load()
			a := p.ask("hi", pr.model, append(far, try.proxy))
			if a.exit.Code != 0 || a.result.String("result") != "hello" {
				t.Errorf("%s: exit %d: %v", try.name, a.exit.Code, a.result)
			}
			if try.used.Load() == before {
				t.Errorf("%s: the proxy was not used", try.name)
			}
		}
		refused(t, log)
	})
}

// TestUsersRow55_ProxyOfTheSettings has the proxy in settings.json, which wins over
// the environment, and exceptions.
func TestUsersRow55_ProxyOfTheSettings(t *testing.T) {
	t.Parallel()
	p, pr := newPlace(t), providers[1]
	base, _ := p.serve(hello)
	proxy, used := httpProxy(t, base, "")
	p.settings(`{"network": {"proxy": "` + proxy + `"}}`)
	a := p.ask("hi", pr.model, append(pr.env("http://"+farAway), "HTTP_PROXY=http://"+unused(t)))
	if a.exit.Code != 0 || used.Load() == 0 {
		t.Errorf("exit %d, proxy used %d times: %v", a.exit.Code, used.Load(), a.result)
	}
}

// TestUsersRow55_NoProxyAndLoopbackGoDirect checks the exceptions: a proxy that
// nobody can reach does no harm.
func TestUsersRow55_NoProxyAndLoopbackGoDirect(t *testing.T) {
	t.Parallel()
	p, pr := newPlace(t), providers[1]
	base, _ := p.serve(hello)
	dead := "HTTP_PROXY=http://" + unused(t)
	if a := p.ask("hi", pr.model, append(pr.env(base), dead)); a.exit.Code != 0 {
		t.Errorf("loopback: exit %d: %v", a.exit.Code, a.result)
	}
	p.settings(`{"network": {"retryBudgetMs": 1}}`)
	a := p.ask("hi", pr.model, append(pr.env("http://"+farAway), dead, "NO_PROXY=other, .invalid"))
	mentions(t, "the error of a name that nobody knows", a.result.String("result"), "host "+farAway)
	a = p.ask("hi", pr.model, append(pr.env("http://"+farAway), dead))
	mentions(t, "the error of a dead proxy", a.result.String("result"), "proxy")
}

// TestUsersRow55_ARefusedProxyPasswordIsFinal says what to do, at once.
func TestUsersRow55_ARefusedProxyPasswordIsFinal(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(hello)
		proxy, _ := httpProxy(t, base, "me:secret")
		for _, far := range []string{"http://" + farAway, "https://" + farAway} {
			a := p.ask("hi", pr.model, append(pr.env(far), "ALL_PROXY=http://me:wrong-word@"+proxy))
			text := a.result.String("result")
			mentions(t, far, text, "proxy", "user and password")
			if strings.Contains(text, "wrong-word") {
				t.Errorf("the password is shown: %s", text)
			}
			if a.exit.Code == 0 || a.exit.Wall > 5*time.Second || len(a.kinds("system/api_retry")) > 0 {
				t.Errorf("%s: exit %d after %s with %d retries", far, a.exit.Code, a.exit.Wall, len(a.kinds("system/api_retry")))
			}
		}
		if n := len(requests(t, log)); n != 0 {
			t.Errorf("%d requests came through", n)
		}
	})
}

// secured puts TLS with a private certificate before a server.
func secured(t testing.TB, base string) (url string, authority []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(forward(t, base))
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// strangerCA is a certificate that signed nothing.
func strangerCA(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stranger"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// TestUsersRow55_APrivateCAIsTrustedWhenNamed reaches a server behind a company's
// certificate, directly and through a proxy that needs a password.
func TestUsersRow55_APrivateCAIsTrustedWhenNamed(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(hello)
		at, ca := secured(t, base)
		path := p.write("corp-ca.pem", string(ca))
		p.settings(`{"network": {"caFile": "` + path + `"}}`)
		if a := p.ask("hi", pr.model, pr.env(at)); a.exit.Code != 0 || a.result.String("result") != "hello" {
			t.Errorf("exit %d: %v", a.exit.Code, a.result)
		}
		// the certificate of httptest is for example.com too
		proxy, used := httpProxy(t, strings.Replace(at, "https://", "http://", 1), "me:word")
		a := p.ask("hi", pr.model, append(pr.env("https://example.com"), "HTTPS_PROXY=http://me:word@"+proxy))
		if a.exit.Code != 0 || used.Load() == 0 {
			t.Errorf("through a proxy: exit %d, used %d times: %v", a.exit.Code, used.Load(), a.result)
		}
		refused(t, log)
	})
}

// TestUsersRow55_AnUnknownCASaysWhatToDo checks that a certificate nobody trusts ends
// the run at once, with words that help.
func TestUsersRow55_AnUnknownCASaysWhatToDo(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(hello)
		at, _ := secured(t, base)
		stranger := p.write("other-ca.pem", string(strangerCA(t)))
		for _, settings := range []string{`{}`, `{"network": {"caFile": "` + stranger + `"}}`} {
			p.settings(settings)
			a := p.ask("hi", pr.model, pr.env(at))
			mentions(t, "the error", a.result.String("result"), "certificate", "network.caFile")
			if a.exit.Code != 1 || a.exit.Wall > 5*time.Second || len(a.kinds("system/api_retry")) > 0 {
				t.Errorf("exit %d after %s with %d retries", a.exit.Code, a.exit.Wall, len(a.kinds("system/api_retry")))
			}
		}
		if n := len(requests(t, log)); n != 0 {
			t.Errorf("%d requests came through", n)
		}
	})
}

// TestUsersRow55_ABadCAFileIsASettingsError names the file before anything is sent.
func TestUsersRow55_ABadCAFileIsASettingsError(t *testing.T) {
	t.Parallel()
	p, pr := newPlace(t), providers[0]
	path := filepath.Join(p.dir, "nothing.pem")
	p.settings(`{"network": {"caFile": "` + path + `"}}`)
	proc, exit := p.run(testkit.Spec{Args: []string{"-p", "hi", "--model", pr.model}, Env: pr.env("http://" + unused(t))})
	if exit.Code != 52 {
		t.Errorf("exit %d", exit.Code)
	}
	mentions(t, "stderr", proc.Stderr(), path)
}

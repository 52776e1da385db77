package tools

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/httpclient"
	"github.com/agentcli/agent/internal/model"
)

// fetchFrom runs web_fetch with the server allowed.
func fetchFrom(t testing.TB, srv *httptest.Server, input map[string]any) Result {
	t.Helper()
	tool := NewWebFetch(WebFetchOptions{
		HTTP:                httpclient.Options{UserAgent: "agent/test"},
		AllowedPrivateHosts: []string{strings.TrimPrefix(srv.URL, "http://")},
	})
	return runFetch(t, context.Background(), tool, input)
}

func runFetch(t testing.TB, ctx context.Context, tool Tool, input map[string]any) Result {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Run(ctx, &Call{ID: "1", Input: raw})
}

func shown(r Result) string {
	var parts []string
	for _, b := range r.Blocks {
		if t, ok := b.(model.Text); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func TestWebFetchGivesHTMLAsMarkdown(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<title>T</title><h1>Hello</h1><p>by <a href='/u'>%s</a>", r.UserAgent())
	})
	r := fetchFrom(t, srv, map[string]any{"url": srv.URL + "/p#frag", "prompt": "the author"})
	want := srv.URL + "/p#frag: 200 OK, text/html, 63 bytes\nYou look for: the author\n\nTitle: T\n\n# Hello\n\nby [agent/test](" + srv.URL + "/u)"
	got := shown(r)
	if i := strings.Index(got, " bytes"); i < 0 || r.IsError || got[i:] != want[strings.Index(want, " bytes"):] {
		t.Errorf("got %q\nwant %q", got, want)
	}
	d, ok := r.Display.(WebFetchDisplay)
	if !ok || d.Code != 200 || d.CodeText != "OK" || d.Bytes == 0 || !strings.HasPrefix(d.URL, srv.URL+"/p") {
		t.Errorf("display %+v", r.Display)
	}
}

func TestWebFetchByContentType(t *testing.T) {
	t.Parallel()
	png, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	cases := []struct {
		name, contentType string
		body              []byte
		want              string
		isError           bool
	}{
		{"json as it is", "application/json", []byte(`{"a": [1]}`), `{"a": [1]}`, false},
		{"text", "text/plain; charset=utf-8", []byte("a < b"), "a < b", false},
		{"declared latin-1", "text/plain; charset=iso-8859-1", []byte("caf\xe9"), "café", false},
		{"meta charset", "text/html", []byte("<meta charset=shift_jis><p>\x93\xfa\x96\x7b"), "日本", false},
		{"utf-8 behind a kilobyte of ascii", "text/plain", []byte(strings.Repeat("a", 2000) + "é"), strings.Repeat("a", 2000) + "é", false},
		{"byte order mark", "text/plain", []byte("\xef\xbb\xbfx"), "bytes\n\nx", false},
		{"controls are dropped", "text/plain", []byte("a\x00b\x1b[31mc\r\nd"), "ab[31mc\nd", false},
		{"unknown type that is text", "", []byte("plain words"), "plain words", false},
		{"binary is described", "application/zip", []byte("PK\x03\x04"), "application/zip, 4 bytes: not shown", false},
		{"empty", "text/plain", nil, "(the answer is empty)", false},
		{"image that is none", "image/png", []byte("<html>hello"), "it looks like text/html", true},
		{"image", "image/png", png, "image/png, 70 bytes", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.Write(c.body)
			})
			r := fetchFrom(t, srv, map[string]any{"url": srv.URL})
			if got := shown(r); !strings.Contains(got, c.want) || r.IsError != c.isError {
				t.Errorf("error %v, got %q", r.IsError, got)
			}
			if c.name == "image" {
				img, ok := r.Blocks[1].(model.Image)
				if !ok || img.MediaType != "image/png" || !bytes.Equal(img.Data, png) {
					t.Errorf("blocks %v", r.Blocks)
				}
			}
		})
	}
}

func TestWebFetchPagesThroughLongText(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("äbc\n", 50_000)) })
	first := shown(fetchFrom(t, srv, map[string]any{"url": srv.URL}))
	if !strings.HasSuffix(first, "(characters 0 to 100000 of 199999; for more, call again with offset 100000)") || strings.Count(first, "ä") != 25_000 {
		t.Errorf("first part ends with %q", first[len(first)-100:])
	}
	second := shown(fetchFrom(t, srv, map[string]any{"url": srv.URL, "offset": 199_990, "max_length": 5}))
	if !strings.HasSuffix(second, "\n\nc\näbc\n\n(characters 199990 to 199995 of 199999; for more, call again with offset 199995)") {
		t.Errorf("second part is %q", second)
	}
	if r := fetchFrom(t, srv, map[string]any{"url": srv.URL, "offset": 200_000}); !r.IsError || !strings.Contains(shown(r), "has 199999 characters") {
		t.Errorf("behind the end: %q", shown(r))
	}
}

func TestWebFetchErrorStatusIsAnErrorWithThePageText(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no such thing", http.StatusNotFound) })
	r := fetchFrom(t, srv, map[string]any{"url": srv.URL})
	if got := shown(r); !r.IsError || !strings.Contains(got, "404 Not Found") || !strings.Contains(got, "no such thing") {
		t.Errorf("error %v, %q", r.IsError, got)
	}
	if d := r.Display.(WebFetchDisplay); d.Code != 404 {
		t.Errorf("display %+v", d)
	}
}

func TestWebFetchFollowsRedirectsAndTells(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" {
			t.Error("a referer was sent")
		}
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
			return
		}
		io.WriteString(w, "arrived")
	})
	r := fetchFrom(t, srv, map[string]any{"url": srv.URL + "/5"})
	if got := shown(r); r.IsError || !strings.Contains(got, "arrived") || !strings.Contains(got, "Redirected from "+srv.URL+"/5 and ") || strings.Contains(got, "another host") {
		t.Errorf("five redirects: %q", got)
	}
	if d := r.Display.(WebFetchDisplay); len(d.Redirects) != 5 || d.URL != srv.URL+"/0" {
		t.Errorf("display %+v", d)
	}
	if r := fetchFrom(t, srv, map[string]any{"url": srv.URL + "/6"}); !r.IsError || !strings.Contains(shown(r), "more than 5 redirects") {
		t.Errorf("six redirects: %q", shown(r))
	}
}

func TestWebFetchTellsOfARedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "127.") {
			http.Redirect(w, r, "http://"+strings.Replace(r.Host, "127.0.0.1", "localhost", 1)+"/x", http.StatusFound)
			return
		}
		io.WriteString(w, "other")
	})
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	tool := NewWebFetch(WebFetchOptions{AllowedPrivateHosts: []string{"127.0.0.1" + port, "localhost" + port}})
	if got := shown(runFetch(t, context.Background(), tool, map[string]any{"url": srv.URL})); !strings.Contains(got, "this is another host, localhost") {
		t.Errorf("got %q", got)
	}
}

func TestWebFetchChecksEveryRedirect(t *testing.T) {
	t.Parallel()
	hit := make(chan string, 20)
	inner := serve(t, func(w http.ResponseWriter, r *http.Request) { hit <- r.Host })
	port := inner.URL[strings.LastIndexByte(inner.URL, ':'):]
	for _, to := range []string{
		inner.URL, "http://localhost" + port, "http://2130706433" + port, "http://0x7f.1" + port, "http://[::ffff:127.0.0.1]" + port,
		"http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "http://u:p@example.com/", "gopher://x/", "http://metadata.google.internal/",
	} {
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		})
		if r := fetchFrom(t, srv, map[string]any{"url": srv.URL}); !r.IsError {
			t.Errorf("a redirect to %s gave %q", to, shown(r))
		}
	}
	select {
	case host := <-hit:
		t.Errorf("the inner server was asked as %s", host)
	default:
	}
}

func TestWebFetchRefusesPrivateAddressesAtDialTime(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the server was reached") })
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	// The static check is passed by (as by a name that resolves to a private
	// address): what counts is the address dialled.
	guard, err := newWebGuard(WebFetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.close()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+port, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := guard.public.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	var refused *refusedError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestWebFetchBehindAProxyChecksTheHostFirst(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		io.WriteString(w, "from the proxy")
	})
	tool := NewWebFetch(WebFetchOptions{HTTP: httpclient.Options{HTTPProxy: proxy.URL}})
	ctx := context.Background()
	r := runFetch(t, ctx, tool, map[string]any{"url": "http://Public.Example./x"})
	if got := shown(r); r.IsError || !strings.Contains(got, "from the proxy") {
		t.Errorf("got %q", got)
	}
	if got := <-asked; got != "http://public.example/x" {
		t.Errorf("the proxy was asked for %s", got)
	}
	for _, bad := range []string{"http://10.0.0.1/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://169.254.169.254./", "http://metadata.google.internal/", "http://intranet/", "http://[fd00::1]/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::10.0.0.1]/", "http://printer.local/"} {
		if r := runFetch(t, ctx, tool, map[string]any{"url": bad}); !r.IsError || !strings.Contains(shown(r), "is refused") {
			t.Errorf("%s gave %q", bad, shown(r))
		}
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %s", <-asked)
	}
}

func TestWebFetchBoundsDecompressedBodies(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	zw := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 16 { // 16 MB in 16 KB
		zw.Write(zeros)
	}
	zw.Close()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Query().Get("enc"))
		w.Header().Set("Content-Type", "application/x-thing")
		w.Write(bomb.Bytes())
	})
	r := fetchFrom(t, srv, map[string]any{"url": srv.URL + "?enc=gzip"})
	if d := r.Display.(WebFetchDisplay); d.Bytes != webBodyBytes || !strings.Contains(shown(r), "longer than 10 MB") {
		t.Errorf("%d bytes, %q", d.Bytes, shown(r))
	}
	if r := fetchFrom(t, srv, map[string]any{"url": srv.URL + "?enc=br"}); !r.IsError || !strings.Contains(shown(r), `encoded as "br"`) {
		t.Errorf("unasked encoding: %q", shown(r))
	}
}

func TestWebFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	release := make(chan struct{})
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(reached)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { <-reached; cancel(errors.New("the user interrupted")) }()
	tool := NewWebFetch(WebFetchOptions{AllowedPrivateHosts: []string{strings.TrimPrefix(srv.URL, "http://")}})
	r := runFetch(t, ctx, tool, map[string]any{"url": srv.URL})
	if !r.IsError || !strings.Contains(shown(r), "the user interrupted") {
		t.Errorf("got %q", shown(r))
	}
}

func TestWebFetchRefusesBadURLs(t *testing.T) {
	t.Parallel()
	tool := NewWebFetch(WebFetchOptions{})
	for _, bad := range []string{
		"", "example.com", "ftp://example.com", "http://", "http:///x", "https://u@example.com", "http://a b.example", "http://a.example/\x00",
		"http://a.example/\r\nX: y", "http://good.com\x00.evil.com", "http://evil\u202emoc.doog", "http://a\u200b.example", "http://a.example:0", "http://a.example:99999",
		"http://[fe80::1%25eth0]/", "http://a..example", "http://-_!.example", "javascript:alert(1)", "http:opaque", "http://1.2.3.4.5/", "http://256.1.1.1", "http://%31%32.example/",
		"http://" + strings.Repeat("a", 64) + ".example", "https://a.example/" + strings.Repeat("a", 9000),
	} {
		if r := runFetch(t, context.Background(), tool, map[string]any{"url": bad}); !r.IsError {
			t.Errorf("%q gave %q", bad, shown(r))
		}
	}
	if r := runFetch(t, context.Background(), tool, map[string]any{}); !r.IsError || !strings.Contains(shown(r), "url is missing") {
		t.Errorf("no url: %q", shown(r))
	}
}

func TestHostsAreNormalized(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://Example.COM./":        "example.com",
		"http://bücher.example/":      "xn--bcher-kva.example",
		"http://①②⑦.0.0.1/":           "127.0.0.1",
		"http://127.1/":               "127.0.0.1",
		"http://0x7F000001/":          "127.0.0.1",
		"http://017700000001/":        "127.0.0.1",
		"http://2130706433/":          "127.0.0.1",
		"http://0x7f.0.0.0x1:80/":     "127.0.0.1:80",
		"http://8.8.8.8/":             "8.8.8.8",
		"http://[0:0:0:0:0:0:0:1]:1/": "[::1]:1",
		"http://a_b.example/":         "a_b.example",
		"HTTPS://a.example:8443/x":    "a.example:8443",
	} {
		u, err := parseWebURL(raw)
		if err != nil || u.Host != want {
			t.Errorf("%s: host %v, %v, want %s", raw, u, err, want)
		}
	}
}

func TestAddressClasses(t *testing.T) {
	t.Parallel()
	private := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"168.63.129.16", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "100::1", "5f00::1",
	}
	for _, s := range private {
		if privateReason(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808", "::ffff:8.8.8.8"} {
		if why := privateReason(netip.MustParseAddr(s)); why != "" {
			t.Errorf("%s is refused: %s", s, why)
		}
	}
	if privateReason(netip.Addr{}) == "" {
		t.Error("no address counts as public")
	}
}

// T-23: hosts are compared whole.
func TestAllowedHostsAreComparedWhole(t *testing.T) {
	t.Parallel()
	list := hostList{"localhost:3000", "dev.internal", "[::1]:8080", "192.168.1.5", "fd00::2"}
	for raw, want := range map[string]bool{
		"http://localhost:3000/":              true,
		"http://LOCALHOST.:3000/":             true,
		"http://localhost/":                   false,
		"http://localhost:30001/":             false,
		"http://localhost:3000.evil.example/": false,
		"http://dev.internal:99/":             true,
		"http://x.dev.internal/":              false,
		"http://dev.internal.evil.example/":   false,
		"http://evildev.internal/":            false,
		"http://[::1]:8080/":                  true,
		"http://[::1]/":                       false,
		"http://192.168.1.5:1/":               true,
		"http://0xc0a80105/":                  true,
		"http://192.168.1.50/":                false,
		"http://[fd00::2]/":                   true,
	} {
		u, err := parseWebURL(raw)
		if err != nil {
			if want {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		if got := list.contains(u); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
	if (hostList{}).contains(&url.URL{Host: "a.example"}) || (hostList{""}).contains(&url.URL{}) {
		t.Error("an empty list allows something")
	}
}

func TestWebFetchSpec(t *testing.T) {
	t.Parallel()
	for _, tool := range []Tool{NewWebFetch(WebFetchOptions{}), NewTodoWrite(&TodoList{}), NewAskUser(nil)} {
		spec := tool.Spec()
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 || len(schema.Required) != 1 {
			t.Errorf("%s: schema %v %+v", spec.Name, err, schema)
		}
		if n := len(spec.Description); n < 200 || n > 2000 {
			t.Errorf("%s: the description has %d characters", spec.Name, n)
		}
	}
	if diff := cmp.Diff(100_000, webChars); diff != "" {
		t.Error("the description names another limit", diff)
	}
}

// FuzzWebAddress checks that whatever URL is accepted has a host that is
// compared as it will be dialled, and that no form of a private address passes.
func FuzzWebAddress(f *testing.F) {
	for _, s := range []string{"http://a.example/", "http://0x7f.1/", "http://[::ffff:7f00:1]/", "http://①.0.0.1", "http://127.0.0.1.:80/", "https://u@h/", "http://0177.1", "http://[fe80::1%25a]/", "http://xn--a.example", "http://%6c/", "http://1.0x.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseWebURL(raw)
		if err != nil {
			return
		}
		again, err := parseWebURL(u.String())
		if err != nil || again.Host != u.Host {
			t.Errorf("%q became %q, which became %v (%v)", raw, u, again, err)
		}
		host := u.Hostname()
		if strings.ContainsAny(host, "\x00\r\n /@%") || strings.HasSuffix(host, ".") || host != strings.ToLower(host) {
			t.Errorf("%q has host %q", raw, host)
		}
		if ip, err := netip.ParseAddr(host); err == nil && privateReason(ip) != "" && checkHost(host) == nil {
			t.Errorf("%q is accepted", raw)
		}
		if last := host[strings.LastIndexByte(host, '.')+1:]; isNumber(last) && !strings.Contains(host, ":") {
			if _, err := netip.ParseAddr(host); err != nil {
				t.Errorf("%q has the numeric host %q", raw, host)
			}
		}
	})
}

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// scenario is something that users do with an SDK.
type scenario struct {
	name   string   // as the drivers know it
	kits   string   // the SDKs that play it, by name
	model  string   // the model script; @bash and its like stand for the dialect's names
	files  []string // files in the working folder: a name, then its content
	env    []string // more environment
	alone  bool     // in a driver of its own, which it holds up
	expect func(t *testing.T, r *played)
}

// every is all SDKs; claudes and qwens are the two families.
const (
	claudes = "python typescript"
	qwens   = "qwen qwen-0.1.7"
	every   = claudes + " " + qwens
)

// play runs scenarios with every SDK that they name, side by side.
func play(t *testing.T, list []scenario) {
	t.Helper()
	for _, s := range list {
		for _, name := range strings.Fields(s.kits) {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				k := need(t, name)
				driver := k.shared
				if s.alone {
					driver = k.start
				}
				d, err := driver()
				if err != nil {
					t.Fatal(err)
				}
				if s.alone {
					t.Cleanup(d.close)
				}
				r := newPlayed(t, k, s)
				r.run(d)
				if s.expect(t, r); t.Failed() {
					t.Logf("what the user saw:\n%s", r.story())
				}
			})
		}
	}
}

// played is a scenario that was played: what its user saw, what the model was
// asked, and where it happened.
type played struct {
	t      *testing.T
	kit    *kit
	name   string
	id     string
	dir    string
	env    []string
	model  *tap
	events []testkit.Frame
}

var numbers atomic.Int64

func newPlayed(t *testing.T, k *kit, s scenario) *played {
	t.Helper()
	root := t.TempDir()
	r := &played{t: t, kit: k, name: s.name, id: fmt.Sprintf("%s#%d", t.Name(), numbers.Add(1)), dir: filepath.Join(root, "work")}
	home := filepath.Join(root, "home")
	for _, d := range []string{r.dir, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i+1 < len(s.files); i += 2 {
		path := filepath.Join(r.dir, s.files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s.files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	place := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + root, "LANG=C.UTF-8"}
	script := s.model
	for placeholder, tool := range k.dialect.names {
		script = strings.ReplaceAll(script, placeholder, tool)
	}
	script = strings.ReplaceAll(script, "@dir", r.dir)
	r.model = newTap(t, serveModel(t, root, place, script))
	r.env = append(append(place, k.dialect.env(r.model.url)...), s.env...)
	return r
}

// scenarioLimit is how long a scenario may take on a machine that is busy.
const scenarioLimit = 90 * time.Second

// run plays the scenario to its end.
func (r *played) run(d *driver) {
	r.t.Helper()
	if err := d.ask(r.id, r.name, r.dir, variables(r.env)); err != nil {
		r.t.Fatalf("%v; the driver says: %s", err, d.said())
	}
	var err error
	if r.events, err = d.await(r.id, "end", scenarioLimit); err != nil {
		r.t.Fatalf("%v\n%s", err, r.story())
	}
	for _, e := range r.all("raised") {
		r.t.Logf("raised %s: %s; the driver's stderr so far: %.2000s", e.String("type"), e.String("message"), d.said())
	}
}

// story is what the user saw, a line each.
func (r *played) story() string {
	var sb strings.Builder
	for _, e := range r.events {
		line, _ := json.Marshal(e)
		fmt.Fprintf(&sb, "%.600s\n", line)
	}
	return sb.String()
}

// all returns the events of a kind.
func (r *played) all(ev string) []testkit.Frame {
	var out []testkit.Frame
	for _, e := range r.events {
		if e.String("ev") == ev {
			out = append(out, e)
		}
	}
	return out
}

// one returns the only event of a kind.
func (r *played) one(ev string) testkit.Frame {
	r.t.Helper()
	all := r.all(ev)
	if len(all) != 1 {
		r.t.Fatalf("%d events %q, want one\n%s", len(all), ev, r.story())
	}
	return all[0]
}

// count demands so many events of a kind.
func (r *played) count(ev string, want int) []testkit.Frame {
	r.t.Helper()
	all := r.all(ev)
	if len(all) != want {
		r.t.Fatalf("%d events %q, want %d\n%s", len(all), ev, want, r.story())
	}
	return all
}

// results demands a result per turn, each as said: "ok TEXT", or else the
// result's subtype.
func (r *played) results(want ...string) []testkit.Frame {
	r.t.Helper()
	all := r.count("result", len(want))
	for i, f := range all {
		got := f.String("subtype")
		if f["is_error"] == false && got == "success" {
			got = "ok " + f.String("result")
		}
		if got != want[i] {
			r.t.Errorf("result %d is %q, want %q", i, got, want[i])
		}
	}
	return all
}

// quiet demands that nothing was raised.
func (r *played) quiet() {
	r.t.Helper()
	for _, e := range r.all("raised") {
		r.t.Errorf("raised %s: %s", e.String("type"), e.String("message"))
	}
}

// tool returns the only tool result, which is an error or not.
func (r *played) tool(isError bool) string {
	r.t.Helper()
	e := r.one("tool_result")
	if e["error"] != isError {
		r.t.Errorf("the tool result's is_error is %v, want %v: %s", e["error"], isError, e.String("text"))
	}
	return e.String("text")
}

// file returns the content of a file in the working folder, "" if it isn't
// there.
func (r *played) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(content)
}

// made reports whether the working folder has the file.
func (r *played) made(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	return err == nil
}

// kinds joins the kinds of all events, for a look at their order.
func (r *played) kinds(of ...string) string {
	var out []string
	for _, e := range r.events {
		if kind := e.String("ev"); len(of) == 0 || contains(of, kind) {
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// mentions fails the test for each of parts that text lacks.
func mentions(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q: %.1000s", what, part, text)
		}
	}
}

// serveModel plays a script over HTTP until the test ends.
func serveModel(t *testing.T, root string, env []string, script string) string {
	t.Helper()
	path := filepath.Join(root, "script.jsonc")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	proc, err := testkit.Start(testkit.Spec{Path: agentPath(t), Args: []string{"model", "serve", "--script", path}, Dir: root, Env: env, HoldStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proc.Signal(syscall.SIGTERM)
		if _, err := proc.Wait(10 * time.Second); err != nil {
			t.Errorf("model server: %v", err)
		}
	})
	line, _, err := proc.Await(0, 20*time.Second, func(l testkit.Line) bool { return bytes.Contains(l.Text, []byte("http://")) })
	if err != nil {
		t.Fatalf("model server: %v\n%s", err, proc.Output())
	}
	_, rest, _ := strings.Cut(string(line.Text), "http://")
	return "http://" + strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '/' || r == '"' })[0]
}

// tap passes the model's requests on and keeps their bodies.
type tap struct {
	url string

	mu     sync.Mutex // guards bodies
	bodies []string
}

func newTap(t *testing.T, base string) *tap {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1}
	next.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // an interrupted request
	tp := new(tap)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method == http.MethodPost {
			tp.mu.Lock()
			tp.bodies = append(tp.bodies, string(body))
			tp.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer func() { _ = recover() }() // the proxy's way to say that the client is gone
		next.ServeHTTP(w, r)
	}))
	tp.url = s.URL
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		transport.CloseIdleConnections()
	})
	return tp
}

// asked returns the requests so far.
func (p *tap) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

// last returns the last request.
func (p *tap) last(t testing.TB) string {
	t.Helper()
	all := p.asked()
	if len(all) == 0 {
		t.Fatal("the model was asked nothing")
	}
	return all[len(all)-1]
}

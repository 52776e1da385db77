package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// settings writes the user's settings.
func (p *place) settings(content string) {
	p.t.Helper()
	dir := filepath.Join(p.home, "agent")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// request is a line of the model server's log.
type request struct {
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	Format string    `json:"format"`
	Model  string    `json:"model"`
	Step   int       `json:"step"`
	Status int       `json:"status"`
	End    string    `json:"end"`
	Error  string    `json:"error"`
	Tools  int       `json:"tools"`
}

// requests reads the model server's log, in the order in which they came. A
// request is in it once it has ended; await more than n of them with settle.
func requests(t testing.TB, log string) []request {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	for line := range bytes.Lines(raw) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("request log: %v: %s", err, line)
		}
		out = append(out, r)
	}
	return out
}

// refused fails the test for requests that the API would refuse.
func refused(t testing.TB, log string) {
	t.Helper()
	for _, r := range requests(t, log) {
		if r.Error != "" {
			t.Errorf("the %s API refused request %d: %s", r.Format, r.Seq, r.Error)
		}
	}
}

// answered is a headless run of one prompt with partial messages, and what it
// told.
type answered struct {
	frames []testkit.Frame
	result testkit.Frame
	exit   testkit.Exit
	proc   *testkit.Proc
	stderr string
}

// streamJSON are the flags of a run whose every frame is looked at.
var streamJSON = []string{"--output-format", "stream-json", "--include-partial-messages"}

// ask runs one prompt and checks what holds for every run: frames in order, one
// result, it last, quiet stderr, the text once.
func (p *place) ask(prompt, model string, env []string, flags ...string) answered {
	p.t.Helper()
	args := append([]string{"-p", prompt, "--model", model}, streamJSON...)
	proc, exit := p.run(testkit.Spec{Args: append(args, flags...), Env: env})
	a := answered{frames: frames(p.t, proc), exit: exit, proc: proc, stderr: proc.Stderr()}
	all := results(a.frames)
	if len(all) != 1 || a.frames[len(a.frames)-1].Kind() != "result" {
		p.t.Fatalf("%d results, want one as the last line\n%.3000s", len(all), proc.Output())
	}
	a.result = all[0]
	if a.stderr != "" {
		p.t.Errorf("stderr: %s", a.stderr)
	}
	a.checkText(p.t)
	return a
}

// checkText demands that the deltas of the last message that says something,
// joined, are the text of the result.
func (a answered) checkText(t testing.TB) {
	t.Helper()
	if a.result["is_error"] != false {
		return
	}
	var text string
	for _, f := range a.frames {
		switch {
		case f.String("event.type") == "message_start":
			text = ""
		case f.String("event.delta.type") == "text_delta":
			text += f.String("event.delta.text")
		}
	}
	if want := a.result.String("result"); text != want {
		t.Errorf("the joined deltas are %q, the result is %q", text, want)
	}
}

// kinds counts the frames of a kind.
func (a answered) kinds(kind string) []testkit.Frame {
	var out []testkit.Frame
	for _, f := range a.frames {
		if f.Kind() == kind {
			out = append(out, f)
		}
	}
	return out
}

// number returns the number at a path.
func number(t testing.TB, f testkit.Frame, path string) int {
	t.Helper()
	v, ok := f.Get(path)
	n, isNumber := v.(float64)
	if !ok || !isNumber {
		t.Fatalf("no number at %s in %v", path, f)
	}
	return int(n)
}

// tokens are the counts that usage and modelUsage have in common.
type tokens struct{ In, Out, CacheRead, CacheWrite int }

func (t tokens) add(u tokens) tokens {
	return tokens{t.In + u.In, t.Out + u.Out, t.CacheRead + u.CacheRead, t.CacheWrite + u.CacheWrite}
}

// usageOf returns the tokens of a result.
func usageOf(t testing.TB, r testkit.Frame) tokens {
	t.Helper()
	return tokens{
		number(t, r, "usage.input_tokens"), number(t, r, "usage.output_tokens"),
		number(t, r, "usage.cache_read_input_tokens"), number(t, r, "usage.cache_creation_input_tokens"),
	}
}

// modelUsageOf returns the session's tokens up to a result, over all models.
func modelUsageOf(t testing.TB, r testkit.Frame) tokens {
	t.Helper()
	var sum tokens
	models, _ := r["modelUsage"].(map[string]any)
	for name := range models {
		m := testkit.Frame(models[name].(map[string]any))
		sum = sum.add(tokens{
			number(t, m, "inputTokens"), number(t, m, "outputTokens"),
			number(t, m, "cacheReadInputTokens"), number(t, m, "cacheCreationInputTokens"),
		})
	}
	return sum
}

// local serves h on a loopback port until the test ends.
func local(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// forward passes requests on to the server at base.
func forward(t testing.TB, base string) *httputil.ReverseProxy {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
	}
}

// tap passes requests on and keeps their bodies.
type tap struct {
	url string

	mu   sync.Mutex // guards seen
	seen []passed
}

// passed is a request that came by.
type passed struct {
	path, body string
	header     http.Header
}

func newTap(t testing.TB, base string) *tap {
	t.Helper()
	next, seen := forward(t, base), new(tap)
	seen.url = local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		seen.mu.Lock()
		seen.seen = append(seen.seen, passed{r.URL.Path, string(body), r.Header})
		seen.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}))
	return seen
}

// all returns the bodies so far.
func (s *tap) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, p := range s.seen {
		out = append(out, p.body)
	}
	return out
}

// last returns the last request to a path that ends so.
func (s *tap) last(t testing.TB, suffix string) passed {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range slices.Backward(s.seen) {
		if strings.HasSuffix(p.path, suffix) {
			return p
		}
	}
	t.Fatalf("no request to %s", suffix)
	return passed{}
}

// answer writes a whole good answer in a provider's format.
func answer(provider, text string) string {
	q, _ := json.Marshal(text)
	switch provider {
	case "gemini":
		return `data: {"candidates":[{"content":{"role":"model","parts":[{"text":` + string(q) +
			`}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}` + "\n\n"
	case "openai":
		return `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":{"role":"assistant","content":` + string(q) +
			`},"finish_reason":null}]}` + "\n\n" +
			`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\n" +
			"data: [DONE]\n\n"
	}
	return "event: message_start\n" +
		`data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + string(q) + `}}` + "\n\n" +
		"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}}` + "\n\n" +
		"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"
}

// eachProvider runs f side by side for every provider.
func eachProvider(t *testing.T, f func(t *testing.T, pr provider)) {
	t.Helper()
	for _, pr := range providers {
		t.Run(pr.name, func(t *testing.T) {
			t.Parallel()
			f(t, pr)
		})
	}
}

// allProviders is the environment with every provider at one address.
func allProviders(base string) []string {
	var env []string
	for _, pr := range providers {
		env = append(env, pr.env(base)...)
	}
	return env
}

// unused returns an address of this machine where nothing listens.
func unused(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
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

// made reports whether the working folder has the file.
func (p *place) made(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

// quiet is a log for servers whose clients misbehave on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

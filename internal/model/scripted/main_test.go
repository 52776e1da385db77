package scripted

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse is Parse for scripts that are right.
func parse(t testing.TB, script string) *Script {
	t.Helper()
	s, err := Parse("test.jsonc", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// api is what the tests need to know of a format.
type api struct {
	format Format
	path   string
	header map[string]string
	body   string // %s stands for the JSON string of the prompt
}

var apis = []api{
	{FormatGemini, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", map[string]string{"X-Goog-Api-Key": "k"},
		`{"contents":[{"role":"user","parts":[{"text":%s}]}]}`},
	{FormatOpenAI, "/v1/chat/completions", map[string]string{"Authorization": "Bearer k"},
		`{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%s}]}`},
	{FormatAnthropic, "/v1/messages", map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01"},
		`{"model":"claude-x","max_tokens":100,"stream":true,"messages":[{"role":"user","content":%s}]}`},
}

func apiOf(f Format) api {
	for _, a := range apis {
		if a.format == f {
			return a
		}
	}
	panic("no such format " + f)
}

// serve starts a server for script on a TCP port of its own.
func serve(t testing.TB, script string, opts ServerOptions) *httptest.Server {
	t.Helper()
	if opts.Now == nil {
		opts.Now = func() time.Time { return time.Unix(1700000000, 0) }
	}
	srv := httptest.NewServer(Handler(parse(t, script), opts))
	t.Cleanup(srv.Close)
	return srv
}

// send posts a body as it is.
func send(t testing.TB, srv *httptest.Server, a api, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+a.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range a.header {
		req.Header.Set(k, v)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// ask sends a prompt and returns the status and what could be read.
func ask(t testing.TB, srv *httptest.Server, a api, prompt string) (resp *http.Response, body string, readErr error) {
	t.Helper()
	resp = send(t, srv, a, prompted(a, prompt))
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func prompted(a api, prompt string) string {
	quoted, err := json.Marshal(prompt)
	if err != nil {
		panic(err)
	}
	return string(bytes.ReplaceAll([]byte(a.body), []byte("%s"), quoted))
}

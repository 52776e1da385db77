package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// finished says whether a stream has the API's finish marker.
func finished(f Format, body string) bool {
	switch f {
	case FormatGemini:
		return strings.Contains(body, `"finishReason":"STOP"`)
	case FormatAnthropic:
		return strings.Contains(body, "message_stop") && strings.Contains(body, `"stop_reason":"end_turn"`)
	}
	return strings.Contains(body, `"finish_reason":"stop"`) && strings.Contains(body, "data: [DONE]")
}

// TestFaultsOverTCP plays each fault to a plain HTTP client, in each format.
func TestFaultsOverTCP(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, emit string
		want       func(f Format, resp *http.Response, body string, err error) bool
	}{
		{"cut", `{"text": "half"}, {"fault": "cut"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return err == nil && strings.Contains(body, "half") && !finished(f, body) && !strings.Contains(body, "[DONE]")
		}},
		{"cut before anything", `{"fault": "cut"}`, func(_ Format, resp *http.Response, body string, err error) bool {
			return err == nil && body == "" && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		}},
		{"drop", `{"text": "half"}, {"fault": "drop"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(body, "half") && !finished(f, body)
		}},
		{"reset", `{"text": "half"}, {"ping": true}, {"fault": "reset"}`, func(_ Format, _ *http.Response, _ string, err error) bool {
			return errors.Is(err, syscall.ECONNRESET)
		}},
		{"no finish marker", `{"text": "whole"}, {"fault": "no_finish"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return err == nil && !finished(f, body) && (f != FormatOpenAI || strings.Contains(body, "[DONE]"))
		}},
		{"empty", `{"fault": "empty"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return err == nil && finished(f, body) && !strings.Contains(body, "content_block")
		}},
		{"garbage", `{"text": "a"}, {"fault": "garbage"}, {"text": "b"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return err == nil && strings.Contains(body, `{"this is": not JSON`) && finished(f, body)
		}},
		{"own garbage", `{"fault": "garbage", "text": "\u0000\u0001 what\n"}`, func(_ Format, _ *http.Response, body string, _ error) bool {
			return strings.HasPrefix(body, "\x00\x01 what\n")
		}},
		{"html page", `{"fault": "html"}`, func(_ Format, resp *http.Response, body string, err error) bool {
			return err == nil && resp.StatusCode == 200 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && strings.Contains(body, "<html>")
		}},
		{"comments keep it alive", `{"ping": "still here", "repeat": 3}, {"text": "a"}`, func(f Format, _ *http.Response, body string, err error) bool {
			return err == nil && strings.HasPrefix(body, ": still here\n\n: still here\n\n: still here\n\n") && finished(f, body)
		}},
		{"half an event", `{"raw": "data: {\"par"}, {"fault": "cut"}`, func(_ Format, _ *http.Response, body string, err error) bool {
			return err == nil && body == `data: {"par`
		}},
		{"error in the stream", `{"text": "a"}, {"status": 503, "message": "busy now"}`, func(f Format, resp *http.Response, body string, err error) bool {
			return err == nil && resp.StatusCode == 200 && strings.Contains(body, "busy now") && !finished(f, body)
		}},
		{"quota", `{"error": "quota"}`, is(model.ErrQuota, map[Format]int{FormatGemini: 429, FormatOpenAI: 429, FormatAnthropic: 429})},
		{"rate limit", `{"status": 429}`, is(model.ErrRateLimit, map[Format]int{FormatGemini: 429, FormatOpenAI: 429, FormatAnthropic: 429})},
		{"overloaded", `{"error": "overloaded"}`, is(model.ErrOverloaded, map[Format]int{FormatGemini: 503, FormatOpenAI: 503, FormatAnthropic: 529})},
		{"500", `{"status": 500}`, is(model.ErrServer, map[Format]int{FormatGemini: 500, FormatOpenAI: 500, FormatAnthropic: 500})},
		{"503", `{"status": 503}`, is(model.ErrOverloaded, map[Format]int{FormatGemini: 503, FormatOpenAI: 503, FormatAnthropic: 503})},
		{"529", `{"status": 529}`, is(model.ErrOverloaded, map[Format]int{FormatGemini: 529, FormatOpenAI: 529, FormatAnthropic: 529})},
		{"400", `{"status": 400}`, is(model.ErrBadRequest, map[Format]int{FormatGemini: 400, FormatOpenAI: 400, FormatAnthropic: 400})},
		{"401", `{"status": 401}`, is(model.ErrAuth, map[Format]int{FormatGemini: 401, FormatOpenAI: 401, FormatAnthropic: 401})},
		{"403", `{"status": 403}`, is(model.ErrAuth, map[Format]int{FormatGemini: 403, FormatOpenAI: 403, FormatAnthropic: 403})},
		{"404", `{"status": 404}`, is(model.ErrNotFound, map[Format]int{FormatGemini: 404, FormatOpenAI: 404, FormatAnthropic: 404})},
		{"prompt too long", `{"error": "prompt_too_long"}`, is(model.ErrContext, map[Format]int{FormatGemini: 400, FormatOpenAI: 400, FormatAnthropic: 400})},
		{"own body", `{"status": 502, "body": "<html>bad gateway</html>", "headers": {"Content-Type": "text/html", "Via": "1.1 proxy"}}`,
			func(_ Format, resp *http.Response, body string, _ error) bool {
				return resp.StatusCode == 502 && body == "<html>bad gateway</html>" && resp.Header.Get("Content-Type") == "text/html" && resp.Header.Get("Via") == "1.1 proxy"
			}},
	} {
		for _, a := range apis {
			t.Run(fmt.Sprintf("%s/%s", tc.name, a.format), func(t *testing.T) {
				t.Parallel()
				srv := serve(t, `{"emit": [`+tc.emit+`]}`, ServerOptions{})
				resp, body, err := ask(t, srv, a, "hi")
				if !tc.want(a.format, resp, body, err) {
					t.Errorf("%s, %v\n%v\n%s", resp.Status, err, resp.Header, body)
				}
			})
		}
	}
}

// is wants an error answer that model.HTTPError understands as kind.
func is(kind model.ErrorKind, status map[Format]int) func(Format, *http.Response, string, error) bool {
	return func(f Format, resp *http.Response, body string, err error) bool {
		var doc map[string]any
		return err == nil && json.Unmarshal([]byte(body), &doc) == nil && resp.StatusCode == status[f] &&
			model.HTTPError("x", resp, []byte(body)).Kind == kind
	}
}

func TestRetryAfterIsSentInSecondsAsDateAndAsWritten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0).UTC()
	for script, want := range map[string]struct {
		header string
		wait   time.Duration
	}{
		`"retry_after": 7`:                     {"7", 7 * time.Second},
		`"retry_after": 0.2`:                   {"1", time.Second},
		`"retry_after_date": 90`:               {now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		`"retry_after": "-1"`:                  {"-1", 0},
		`"retry_after": "1000000000"`:          {"1000000000", 24 * time.Hour},
		`"retry_after": "soon", "status": 429`: {"soon", 0},
	} {
		if !strings.Contains(script, "status") {
			script += `, "status": 429`
		}
		for _, a := range apis {
			srv := serve(t, `{"emit": [{`+script+`}]}`, ServerOptions{})
			resp, body, _ := ask(t, srv, a, "hi")
			wait := model.HTTPError("x", resp, []byte(body)).RetryAfter
			if resp.Header.Get("Retry-After") != want.header || wait != want.wait && a.format != FormatGemini {
				t.Errorf("%s, %s: Retry-After %q, understood as %s", a.format, script, resp.Header.Get("Retry-After"), wait)
			}
		}
	}
}

func TestStallSendsNothingUntilTheClientGivesUp(t *testing.T) {
	t.Parallel()
	for emit, got := range map[string]string{
		`{"fault": "stall"}`:                            "",        // not even headers
		`{"headers": true}, {"fault": "stall"}`:         "headers", // no first byte
		`{"text": "half"}, {"fault": "stall"}`:          "half",
		`{"raw": "data: {\"mid\""}, {"fault": "stall"}`: "mid",
		`{"text": "half"}, {"error": "stream_stalled"}`: "half",
	} {
		for _, a := range apis {
			t.Run(fmt.Sprintf("%s/%q", a.format, got), func(t *testing.T) {
				t.Parallel()
				srv := serve(t, `{"emit": [`+emit+`]}`, ServerOptions{})
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+a.path, strings.NewReader(prompted(a, "hi")))
				if err != nil {
					t.Fatal(err)
				}
				for k, v := range a.header {
					req.Header.Set(k, v)
				}
				resp, err := srv.Client().Do(req)
				if got == "" {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("headers came: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if !errors.Is(err, context.DeadlineExceeded) || got != "headers" && !strings.Contains(string(body), got) || got == "headers" && len(body) > 0 {
					t.Errorf("%v, %s", err, body)
				}
			})
		}
	}
}

func TestStallForSomeTimeGoesOn(t *testing.T) {
	t.Parallel()
	srv := serve(t, `{"emit": [{"text": "a"}, {"fault": "stall", "for_ms": 30}, {"text": "b"}]}`, ServerOptions{})
	began := time.Now()
	_, body, err := ask(t, srv, apiOf(FormatOpenAI), "hi")
	if err != nil || !finished(FormatOpenAI, body) || time.Since(began) < 30*time.Millisecond {
		t.Errorf("after %s: %v\n%s", time.Since(began), err, body)
	}
}

func TestFaultOnTheFirstRequestsOnlySoThatARetrySucceeds(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`{"emit": [{"status": 503, "first": 2}, {"text": "there"}]}`,
		`{"use": 2, "emit": [{"status": 503}]} {"emit": [{"text": "there"}]}`,
	} {
		srv := serve(t, script, ServerOptions{})
		for i, want := range []int{503, 503, 200, 400} {
			if resp, body, _ := ask(t, srv, apiOf(FormatAnthropic), "hi"); resp.StatusCode != want {
				t.Errorf("%s: request %d: %s\n%s", script, i+1, resp.Status, body)
			}
		}
	}
}

// TestWireOptions reads each write on its own.
func TestWireOptions(t *testing.T) {
	t.Parallel()
	a := apiOf(FormatOpenAI)
	t.Run("drip splits characters", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, `{"wire": {"bytes": 1, "every_ms": 0.01}, "emit": [{"text": "日本"}]}`, ServerOptions{})
		var body []byte
		for _, c := range chunks(t, srv, a) {
			if len(c) != 1 {
				t.Fatalf("a write of %d bytes: %q", len(c), c)
			}
			body = append(body, c...)
		}
		if !finished(FormatOpenAI, string(body)) || !strings.Contains(string(body), "日本") {
			t.Errorf("%s", body)
		}
	})
	for every, want := range map[int]int{0: 10, 1: 10, 5: 2} {
		t.Run(fmt.Sprintf("flush every %d", every), func(t *testing.T) {
			t.Parallel()
			srv := serve(t, `{"emit": [{"text": "x", "repeat": 10}]}`, ServerOptions{FlushEvery: every})
			got := 0
			for _, c := range chunks(t, srv, a) {
				if strings.Contains(string(c), `"content":"x"`) {
					got++
				}
			}
			if got != want && every < 5 || got > want+1 {
				t.Errorf("ten deltas came in %d writes", got)
			}
		})
	}
	for name, nl := range map[string]string{"cr": "\r", "crlf": "\r\n", "lf": "\n"} {
		t.Run("newline "+name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, `{"wire": {"newline": "`+name+`", "content_type": "text/plain"}, "emit": [{"text": "a\nb"}]}`, ServerOptions{})
			resp, body, err := ask(t, srv, a, "hi")
			if err != nil || !strings.HasSuffix(body, "data: [DONE]"+nl+nl) || strings.Count(strings.ReplaceAll(body, nl, ""), "\n") > 0 ||
				resp.Header.Get("Content-Type") != "text/plain" {
				t.Errorf("%v %q", err, body)
			}
		})
	}
}

// chunks returns the chunks of an answer, which are the server's flushes.
func chunks(t *testing.T, srv *httptest.Server, a api) [][]byte {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := prompted(a, "hi")
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer k\r\nContent-Length: %d\r\n\r\n%s", a.path, len(body), body)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(all, []byte("\r\n\r\n"))
	var out [][]byte
	for {
		head, tail, ok := bytes.Cut(rest, []byte("\r\n"))
		size, err := strconv.ParseUint(string(head), 16, 32)
		if !ok || err != nil || uint64(len(tail)) < size+2 {
			t.Fatalf("not a chunk: %q", clip(string(rest), 100))
		}
		if size == 0 {
			return out
		}
		out = append(out, tail[:size])
		rest = tail[size+2:]
	}
}

// TestFaultsInProcess maps each fault onto the error that an adapter gives.
func TestFaultsInProcess(t *testing.T) {
	t.Parallel()
	for emit, want := range map[string]model.Error{
		`{"fault": "cut"}`:                     {Kind: model.ErrIncomplete},
		`{"fault": "no_finish"}`:               {Kind: model.ErrIncomplete},
		`{"fault": "drop"}`:                    {Kind: model.ErrNetwork},
		`{"fault": "reset"}`:                   {Kind: model.ErrNetwork},
		`{"fault": "garbage"}`:                 {Kind: model.ErrMalformed},
		`{"fault": "html"}`:                    {Kind: model.ErrMalformed},
		`{"fault": "empty"}`:                   {Kind: model.ErrEmpty},
		`{"status": 429, "retry_after": 3}`:    {Kind: model.ErrRateLimit, Status: 429, RetryAfter: 3 * time.Second},
		`{"error": "quota"}`:                   {Kind: model.ErrQuota, Status: 429},
		`{"status": 529}`:                      {Kind: model.ErrOverloaded, Status: 529},
		`{"status": 500, "message": "m"}`:      {Kind: model.ErrServer, Status: 500, Message: "m"},
		`{"status": 401}`:                      {Kind: model.ErrAuth, Status: 401},
		`{"status": 404}`:                      {Kind: model.ErrNotFound, Status: 404},
		`{"status": 400}`:                      {Kind: model.ErrBadRequest, Status: 400},
		`{"error": "prompt_too_long"}`:         {Kind: model.ErrContext, Status: 400},
		`{"error": "network", "message": "m"}`: {Kind: model.ErrNetwork, Message: "m"},
		`{"status": 400, "body": {"error": {"code": "insufficient_quota"}}}`: {Kind: model.ErrQuota, Status: 400},
	} {
		deltas, err := collect(t.Context(), New(parse(t, `{"emit": [{"text": "a"}, `+emit+`]}`), Options{Name: "fake"}), prompt("hi"))
		var got *model.Error
		if !errors.As(err, &got) || got.Kind != want.Kind || got.Status != want.Status || got.RetryAfter != want.RetryAfter ||
			got.Provider != "fake" || got.Message == "" || want.Message != "" && got.Message != want.Message || deltas[0].Text != "a" {
			t.Errorf("%s: %+v", emit, err)
		}
	}
}

func TestStallInProcessEndsWithTheContext(t *testing.T) {
	t.Parallel()
	why := errors.New("the user pressed Escape")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := New(parse(t, `{"emit": [{"text": "a"}, {"fault": "stall"}]}`), Options{}).Stream(ctx, prompt("hi"), func(model.Delta) { cancel(why) })
	if !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestHugeRepeatStopsWhenItsReaderStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := New(parse(t, `{"emit": [{"text": "a", "repeat": 100000000}]}`), Options{}).Stream(ctx, prompt("hi"), func(model.Delta) {
		if seen++; seen == 1000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || seen > 2000 {
		t.Errorf("%v after %d deltas", err, seen)
	}
}

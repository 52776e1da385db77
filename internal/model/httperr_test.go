package model_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/model"
)

func response(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

const (
	geminiPerDay = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[
		{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"50"}]},
		{"@type":"type.googleapis.com/google.rpc.Help","links":[]},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	geminiPerMinute = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[
		{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	geminiBadKey = `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`
)

func TestHTTPErrorClassifiesByStatusAndBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   model.ErrorKind
	}{
		{"401", 401, ``, model.ErrAuth},
		{"403", 403, ``, model.ErrAuth},
		{"402", 402, ``, model.ErrQuota},
		{"404", 404, ``, model.ErrNotFound},
		{"400", 400, `oops`, model.ErrBadRequest},
		{"422", 422, `{"detail":"bad field"}`, model.ErrBadRequest},
		{"413", 413, ``, model.ErrContext},
		{"429", 429, ``, model.ErrRateLimit},
		{"408", 408, ``, model.ErrServer},
		{"500", 500, ``, model.ErrServer},
		{"502", 502, ``, model.ErrServer},
		{"503", 503, ``, model.ErrOverloaded},
		{"529", 529, ``, model.ErrOverloaded},
		{"redirect", 307, ``, model.ErrMalformed},
		{"broken json", 429, `{"error":`, model.ErrRateLimit},

		{"gemini quota per day", 429, geminiPerDay, model.ErrQuota},
		{"gemini quota per minute", 429, geminiPerMinute, model.ErrRateLimit},
		{"gemini in an array", 429, "[" + geminiPerDay + "]", model.ErrQuota},
		{"gemini bad key", 400, geminiBadKey, model.ErrAuth},
		{"gemini prompt too long", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, model.ErrContext},
		{"gemini overloaded", 503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, model.ErrOverloaded},
		{"gemini not found", 404, `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`, model.ErrNotFound},
		{"gemini internal", 500, `{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}`, model.ErrServer},
		{"gemini denied", 403, `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`, model.ErrAuth},

		{"openai out of quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, model.ErrQuota},
		{"openai rate limit", 429, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, model.ErrRateLimit},
		{"openai context", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, model.ErrContext},
		{"openai too large for the limit", 429, `{"error":{"message":"Request too large for gpt-x: Limit 30000, Requested 31000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ErrContext},
		{"openai no such model", 404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, model.ErrNotFound},
		{"openai no such model as 400", 400, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, model.ErrNotFound},
		{"openai bad key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, model.ErrAuth},
		{"azure content filter", 400, `{"error":{"message":"filtered","type":null,"code":"content_filter"}}`, model.ErrBlocked},

		{"anthropic overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.ErrOverloaded},
		{"anthropic rate limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute"}}`, model.ErrRateLimit},
		{"anthropic context", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.ErrContext},
		{"anthropic context with output", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000"}}`, model.ErrContext},
		{"anthropic request too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, model.ErrContext},
		{"anthropic no credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, model.ErrQuota},
		{"anthropic billing", 402, `{"type":"error","error":{"type":"billing_error","message":"no"}}`, model.ErrQuota},
		{"anthropic bad request", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}`, model.ErrBadRequest},

		{"vllm", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`, model.ErrContext},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}`, model.ErrContext},
		{"ollama", 404, `{"error":"model \"x\" not found, try pulling it first"}`, model.ErrNotFound},
		{"dashscope arrears", 400, `{"error":{"message":"Access denied, please make sure your account is in good standing.","type":"Arrearage","code":"Arrearage"}}`, model.ErrQuota},
		{"dashscope length", 400, `{"error":{"message":"Range of input length should be [1, 98304]","type":"invalid_request_error","code":"invalid_parameter_error"}}`, model.ErrContext},

		{"in the stream: anthropic", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.ErrOverloaded},
		{"in the stream: anthropic server", 200, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, model.ErrServer},
		{"in the stream: openrouter", 200, `{"error":{"code":502,"message":"Provider returned error"}}`, model.ErrServer},
		{"in the stream: code 429", 200, `{"error":{"code":429,"message":"slow down"}}`, model.ErrRateLimit},
		{"in the stream: nothing known", 200, `{"error":{"message":"hm"}}`, model.ErrServer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := model.HTTPError("p", response(tt.status, ""), []byte(tt.body))
			if e.Kind != tt.want {
				t.Errorf("kind %s, want %s (%v)", e.Kind, tt.want, e)
			}
			if e.Message == "" || e.Provider != "p" || tt.status >= 300 && e.Status != tt.status {
				t.Errorf("incomplete error: %+v", e)
			}
		})
	}
}

func TestHTTPErrorReadsTheWaitAskedFor(t *testing.T) {
	t.Parallel()
	const date = "Fri, 20 Nov 2026 10:00:00 GMT"
	tests := []struct {
		name   string
		header []string
		body   string
		want   time.Duration
	}{
		{"none", nil, "", 0},
		{"seconds", []string{"Retry-After", "7"}, "", 7 * time.Second},
		{"fraction", []string{"Retry-After", " 1.5 "}, "", 1500 * time.Millisecond},
		{"milliseconds go first", []string{"Retry-After", "7", "Retry-After-Ms", "250"}, "", 250 * time.Millisecond},
		{"zero", []string{"Retry-After", "0"}, "", 0},
		{"negative", []string{"Retry-After", "-5"}, "", 0},
		{"huge", []string{"Retry-After", "1e9"}, "", 24 * time.Hour},
		{"infinite", []string{"Retry-After", "inf"}, "", 24 * time.Hour},
		{"not a number", []string{"Retry-After", "nan"}, "", 0},
		{"garbage", []string{"Retry-After", "soon"}, "", 0},
		{"date by the server's clock", []string{"Retry-After", "Fri, 20 Nov 2026 10:01:30 GMT", "Date", date}, "", 90 * time.Second},
		{"date in the past", []string{"Retry-After", "Fri, 20 Nov 2026 09:00:00 GMT", "Date", date}, "", 0},
		{"date far ahead", []string{"Retry-After", "Fri, 20 Nov 2037 09:00:00 GMT", "Date", date}, "", 24 * time.Hour},
		{"gemini's body", nil, geminiPerMinute, 34500 * time.Millisecond},
		{"the longer of both", []string{"Retry-After", "60"}, geminiPerMinute, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := model.HTTPError("p", response(429, "", tt.header...), []byte(tt.body)).RetryAfter; got != tt.want {
				t.Errorf("wait %s, want %s", got, tt.want)
			}
		})
	}
}

func TestHTTPErrorMessageIsFitToShow(t *testing.T) {
	t.Parallel()
	quoted := func(s string) string {
		b, _ := json.Marshal(s)
		return `{"error":{"message":` + string(b) + `}}`
	}
	tests := []struct {
		name        string
		status      int
		body        string
		want, avoid string
	}{
		{"the server's words", 400, quoted("temperature: too hot"), "temperature: too hot", "{"},
		{"control characters", 400, quoted("a\x1b[31mb\x00c\r\nd\u202ee"), "a[31mbc de", "\x1b"},
		{"plain text body", 500, "upstream connect error\n", "upstream connect error", "\n"},
		{"a web page", 502, "<html><head><title>502 Bad\n Gateway</title></head><body>secret page</body></html>", `titled "502 Bad Gateway"`, "secret page"},
		{"a sign-in page", 403, "<!DOCTYPE html><title>Hotel WLAN</title>", "sign-in page", "DOCTYPE"},
		{"nothing", 503, "", "service unavailable", ""},
		{"a key", 401, quoted("Incorrect API key provided: sk-proj-abcdef123456. Bearer abcdefghijk and AIzaSyA1234567890 too"), "[key]", "abcdef"},
		{"openrouter's upstream", 502, `{"error":{"message":"Provider returned error","metadata":{"raw":"the real reason"}}}`, "the real reason", ""},
		{"proxy", 407, "", "proxy URL", ""},
		{"request id is no message", 400, `{"error":{"message":"m"},"request_id":7}`, "m", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			msg := model.HTTPError("p", response(tt.status, ""), []byte(tt.body)).Message
			if !strings.Contains(msg, tt.want) || tt.avoid != "" && strings.Contains(msg, tt.avoid) {
				t.Errorf("message %q: want %q in it and not %q", msg, tt.want, tt.avoid)
			}
		})
	}
	long := model.HTTPError("p", response(400, ""), []byte(quoted(strings.Repeat("\u00e9", 5000)))).Message
	if len(long) > 2048 || len(long) < 2000 || !utf8.ValidString(long) || !strings.HasSuffix(long, "...") {
		t.Errorf("long message is %d bytes, ends %q", len(long), long[len(long)-8:])
	}
}

func TestHTTPErrorKeepsTheRequestID(t *testing.T) {
	t.Parallel()
	for _, resp := range []*http.Response{
		response(500, "", "Request-Id", "req_1"), response(500, "", "X-Request-Id", "req_1"), nil,
	} {
		if got := model.HTTPError("p", resp, []byte(`{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"req_1"}`)).RequestID; got != "req_1" {
			t.Errorf("request id %q, want req_1", got)
		}
	}
}

func TestCheckEventStream(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"text/event-stream", "text/event-stream; charset=utf-8", "TEXT/EVENT-STREAM", "", "text/plain", "application/octet-stream"} {
		if err := model.CheckEventStream("p", response(200, "", "Content-Type", ok)); err != nil {
			t.Errorf("content type %q: %v", ok, err)
		}
	}
	tests := []struct {
		name, contentType, body string
		kind                    model.ErrorKind
		want                    string
	}{
		{"captive portal", "text/html; charset=utf-8", "<html><title>Welcome</title>", model.ErrMalformed, `titled "Welcome"`},
		{"json", "application/json", `{"choices":[]}`, model.ErrMalformed, "application/json"},
		{"an error as json", "application/json", `{"error":{"message":"no credit","code":"insufficient_quota"}}`, model.ErrQuota, "no credit"},
		{"broken type", ";;;", "", model.ErrMalformed, ";;;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := model.CheckEventStream("p", response(200, tt.body, "Content-Type", tt.contentType))
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Message, tt.want) {
				t.Errorf("error %v, want kind %s with %q", err, tt.kind, tt.want)
			}
		})
	}
}

func FuzzHTTPError(f *testing.F) {
	for _, body := range []string{geminiPerDay, geminiBadKey, `[`, `{"error":null}`, `{"error":[1]}`, `{"error":{"code":{}}}`, "<html", "data: {}", "\xff"} {
		f.Add(429, "7", body)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		e := model.HTTPError("p", response(status, "", "Retry-After", retryAfter), []byte(body))
		if e.Kind == "" || e.Message == "" || len(e.Message) > 2048 || !utf8.ValidString(e.Message) {
			t.Errorf("unfit error %+v", e)
		}
		if e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour {
			t.Errorf("wait %s", e.RetryAfter)
		}
	})
}

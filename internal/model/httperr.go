package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessage    = 2 << 10        // bytes of a server's message that are kept
	maxErrorBody  = 64 << 10       // bytes of an unexpected body that are read
	maxRetryAfter = 24 * time.Hour // a longer Retry-After is cut to this
)

// HTTPError makes the error of an HTTP answer that is not the wanted stream,
// from its status, its headers and the error formats of the Gemini, OpenAI and
// Anthropic APIs (and of servers that imitate them). body may be cut or empty;
// resp may be nil. It also serves for an error object inside a stream that
// began with status 200: then the object alone decides. resp.Body is not
// touched.
func HTTPError(provider string, resp *http.Response, body []byte) *Error {
	e := &Error{Provider: provider}
	header := http.Header{}
	if resp != nil {
		header = resp.Header
		if resp.StatusCode >= 300 {
			e.Status = resp.StatusCode
		}
	}
	said := parseErrorBody(body)
	if e.Status == 0 {
		e.Status = said.status()
	}
	e.Kind = said.kind(e.Status)
	e.RetryAfter = max(retryAfter(header), said.retryDelay())
	e.RequestID = requestID(header, said)
	e.Message = errorMessage(e, said, header, body)
	return e
}

// CheckEventStream returns nil if resp's content type can be a stream of
// server-sent events (a missing or unspecific one is let pass), else an
// [*Error]: the API's error object if the body is one, else ErrMalformed,
// naming what came. In that case it reads a part of resp.Body, which it leaves
// for the caller to close.
func CheckEventStream(provider string, resp *http.Response) error {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		media = strings.TrimSpace(resp.Header.Get("Content-Type"))
	}
	switch strings.ToLower(media) {
	case "", "text/event-stream", "text/plain", "application/octet-stream":
		return nil
	}
	// A cut or failing body still says what it is.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if said := parseErrorBody(body); said.found {
		return HTTPError(provider, resp, body)
	}
	what := "answered with content type " + cleanMessage(media) + " where text/event-stream was asked for"
	if isHTML(resp.Header, body) {
		what = describeHTML(body)
	}
	return &Error{
		Kind: ErrMalformed, Provider: provider, RequestID: requestID(resp.Header, apiError{}),
		Message: what + "; " + checkBaseURL,
	}
}

const checkBaseURL = "check the provider's base URL and whether a proxy or a network sign-in page is in the way"

// apiError is what the vendors' error bodies have in common.
type apiError struct {
	found     bool // the body is an error object in one of the known forms
	Message   string
	Code      string // a word, or a number as text
	Type      string // OpenAI's and Anthropic's error.type
	Status    string // google.rpc.Code as a word
	Details   []errorDetail
	RequestID string
}

// errorDetail holds the google.rpc details that matter: ErrorInfo, RetryInfo
// and QuotaFailure.
type errorDetail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaMetric string `json:"quotaMetric"`
		QuotaID     string `json:"quotaId"`
		Subject     string `json:"subject"`
	} `json:"violations"`
}

type rawError struct {
	Error     json.RawMessage `json:"error"`
	Errors    json.RawMessage `json:"errors"`
	Message   json.RawMessage `json:"message"`
	Detail    json.RawMessage `json:"detail"`
	Code      json.RawMessage `json:"code"`
	Type      json.RawMessage `json:"type"`
	Status    json.RawMessage `json:"status"`
	Details   json.RawMessage `json:"details"`
	Metadata  json.RawMessage `json:"metadata"`
	RequestID json.RawMessage `json:"request_id"`
}

// parseErrorBody understands {"error":{...}}, {"error":"..."}, [{"error":...}],
// {"message":...}, {"detail":...} and the same after an SSE "data:".
func parseErrorBody(body []byte) apiError {
	body = bytes.TrimSpace(body)
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("data:")))
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return apiError{}
		}
		body = list[0]
	}
	var top rawError
	if json.Unmarshal(body, &top) != nil {
		return apiError{}
	}
	inner := top
	switch {
	case isJSON(top.Error, '{'):
		inner = rawError{}
		if json.Unmarshal(top.Error, &inner) != nil {
			return apiError{}
		}
	case isJSON(top.Error, '"'):
		inner.Message = top.Error
	}
	e := apiError{
		Message:   firstOf(text(inner.Message), text(inner.Detail), text(inner.Errors)),
		Code:      text(inner.Code),
		Type:      text(inner.Type),
		Status:    text(inner.Status),
		RequestID: firstOf(text(top.RequestID), text(inner.RequestID)),
	}
	if raw := upstreamError(inner.Metadata); raw != "" && raw != e.Message {
		e.Message = strings.TrimSpace(e.Message + ": " + raw)
	}
	_ = json.Unmarshal(inner.Details, &e.Details) // other servers have other details
	e.found = len(top.Error) > 0 && string(top.Error) != "null" || e.Message != "" && (e.Code != "" || top.Detail != nil || e.Type != "")
	return e
}

// upstreamError is what OpenRouter quotes of the provider behind it.
func upstreamError(metadata json.RawMessage) string {
	var m struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return ""
	}
	return text(m.Raw)
}

func isJSON(raw json.RawMessage, first byte) bool { return len(raw) > 0 && raw[0] == first }

// text is a JSON string's value; any other value as it is written.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// status is the HTTP status that the body names, or 0.
func (a apiError) status() int {
	n, err := strconv.Atoi(a.Code)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// kindOfWord maps the vendors' codes, types and status words; "" is unknown.
func kindOfWord(word string) ErrorKind {
	switch strings.ToLower(word) {
	case "insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active",
		"account_deactivated", "quota_exceeded", "quota_exhausted", "arrearage",
		"allocationquota.freetieronly":
		return ErrQuota
	case "context_length_exceeded", "exceed_context_size_error", "request_too_large":
		return ErrContext
	case "model_not_found", "modelnotfound", "not_found_error", "notfounderror", "not_found":
		return ErrNotFound
	case "rate_limit_exceeded", "rate_limit_error", "tokens", "requests", "resource_exhausted",
		"throttling", "throttling.ratequota", "throttling.allocationquota":
		return ErrRateLimit
	case "overloaded_error", "server_overloaded", "service_unavailable", "unavailable":
		return ErrOverloaded
	case "timeout_error", "deadline_exceeded", "api_error", "server_error", "internal_error",
		"internal_server_error", "internal":
		return ErrServer
	case "invalid_api_key", "invalidapikey", "authentication_error", "permission_error",
		"permission_denied", "unauthenticated", "api_key_invalid",
		"unsupported_country_region_territory":
		return ErrAuth
	case "content_filter", "content_policy_violation", "data_inspection_failed",
		"datainspectionfailed":
		return ErrBlocked
	case "invalid_request_error", "invalid_argument", "failed_precondition", "badrequesterror":
		return ErrBadRequest
	}
	return ""
}

// tellingTexts are messages that say more than their code does, in lower case.
var tellingTexts = []struct {
	text string
	kind ErrorKind
}{
	{"prompt is too long", ErrContext},
	{"exceed context limit", ErrContext},
	{"maximum context length", ErrContext},
	{"exceeds the available context size", ErrContext},
	{"exceeds the context length", ErrContext},
	{"exceeds the context window", ErrContext},
	{"input token count", ErrContext},
	{"range of input length", ErrContext},
	{"input or output tokens must be reduced", ErrContext},
	{"credit balance is too low", ErrQuota},
	{"extra usage is required", ErrQuota},
	{"api usage limits", ErrQuota},
	{"api key not valid", ErrAuth},
	{"api key expired", ErrAuth},
}

// kind classifies by the details, then the message, then the words, then the
// status.
func (a apiError) kind(status int) ErrorKind {
	if k := a.kindOfDetails(); k != "" {
		return k
	}
	word := a.kindOfWords()
	if word == ErrQuota || word == ErrContext {
		return word
	}
	if k := kindOfText(a.Message); k != "" {
		return k
	}
	if k := kindOfStatus(status); k != "" && (word == "" || word == ErrBadRequest || word == ErrServer) {
		return k
	}
	if word != "" {
		return word
	}
	return ErrServer
}

// kindOfDetails reads Google's details: a quota per day, or an account's, is
// used up for hours; one per minute is not.
func (a apiError) kindOfDetails() ErrorKind {
	var kind ErrorKind
	for _, d := range a.Details {
		switch strings.ToUpper(d.Reason) {
		case "API_KEY_INVALID", "API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED", "API_KEY_SERVICE_BLOCKED":
			return ErrAuth
		case "QUOTA_EXHAUSTED":
			return ErrQuota
		case "RATE_LIMIT_EXCEEDED":
			kind = ErrRateLimit
		}
		for _, v := range d.Violations {
			id := strings.ToLower(v.QuotaID + " " + v.QuotaMetric)
			if strings.Contains(id, "perday") || strings.Contains(id, "per_day") || strings.Contains(id, "daily") {
				return ErrQuota
			}
			kind = ErrRateLimit
		}
	}
	return kind
}

// kindOfWords prefers a telling word to "bad request".
func (a apiError) kindOfWords() ErrorKind {
	var kind ErrorKind
	for _, w := range []string{a.Code, a.Type, a.Status} {
		k := kindOfWord(w)
		if k != "" && (kind == "" || kind == ErrBadRequest) {
			kind = k
		}
	}
	return kind
}

func kindOfText(message string) ErrorKind {
	m := strings.ToLower(message)
	for _, t := range tellingTexts {
		if strings.Contains(m, t.text) {
			return t.kind
		}
	}
	return ""
}

func kindOfStatus(status int) ErrorKind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return ErrAuth
	case status == http.StatusPaymentRequired:
		return ErrQuota
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusRequestEntityTooLarge:
		return ErrContext
	case status == http.StatusTooManyRequests:
		return ErrRateLimit
	case status == http.StatusServiceUnavailable, status == 529:
		return ErrOverloaded
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return ErrServer
	case status >= 400:
		return ErrBadRequest
	case status >= 300:
		return ErrMalformed
	}
	return ""
}

func requestID(h http.Header, said apiError) string {
	return cleanMessage(firstOf(h.Get("Request-Id"), h.Get("X-Request-Id"), h.Get("X-Goog-Request-Id"), said.RequestID))
}

// errorMessage is what to show: the server's words, or what can be said
// without any.
func errorMessage(e *Error, said apiError, h http.Header, body []byte) string {
	msg := said.Message
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return "the HTTP proxy asks for a user and password: put them into the proxy URL (http://user:password@host:port)"
	case msg != "":
	case isHTML(h, body):
		msg = describeHTML(body)
		if e.Status < 500 {
			msg += "; " + checkBaseURL
		}
	case e.Status >= 300 && e.Status < 400:
		msg = "redirected to " + redirectHost(h) + " instead of an answer; " + checkBaseURL
	case len(said.Code)+len(said.Type)+len(said.Status) > 0:
		msg = firstOf(said.Status, said.Type, said.Code)
	default:
		msg = string(body)
	}
	if msg = cleanMessage(msg); msg == "" {
		msg = firstOf(strings.ToLower(http.StatusText(e.Status)), "the server gave no reason")
	}
	return msg
}

func redirectHost(h http.Header) string {
	loc, _, _ := strings.Cut(h.Get("Location"), "?") // a query may hold secrets
	return firstOf(loc, "nowhere")
}

// isHTML reports whether the answer is a web page.
func isHTML(h http.Header, body []byte) bool {
	ct := strings.ToLower(h.Get("Content-Type"))
	if strings.HasPrefix(ct, "text/html") || strings.HasPrefix(ct, "application/xhtml") {
		return true
	}
	head := bytes.ToLower(bytes.TrimSpace(body[:min(len(body), 256)]))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

// The patterns are compiled when the first error needs them.
var titleElement = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)<title[^>]*>\s*(.{1,200}?)\s*</title>`)
})

func describeHTML(body []byte) string {
	what := "answered with a web page (HTML) instead of this API"
	if m := titleElement().FindSubmatch(body[:min(len(body), maxErrorBody)]); m != nil {
		what += fmt.Sprintf(", titled %q", cleanMessage(string(m[1])))
	}
	return what
}

var secrets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:sk-|AIza|ya29\.|gsk_|hf_)[A-Za-z0-9_.-]{6,}|(?i:\bbearer\s+)[A-Za-z0-9_.~+/=-]{6,}|(?i:\bkey=)[^\s&"']{6,}`)
})

// cleanMessage makes a server's text fit to show: one line of valid UTF-8, no
// control characters, nothing that looks like a key, at most 2 KiB.
func cleanMessage(s string) string {
	if len(s) > 4*maxMessage {
		s = s[:4*maxMessage]
	}
	s = secrets().ReplaceAllString(strings.ToValidUTF8(s, "\ufffd"), "[key]")
	space := false
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return cut(b.String(), maxMessage)
}

// cut shortens s to at most n bytes, at the border of a character, marking it.
func cut(s string, n int) string {
	const mark = "..."
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// retryDelay is the wait of Google's RetryInfo ("34.07s"), or 0.
func (a apiError) retryDelay() time.Duration {
	var wait time.Duration
	for _, d := range a.Details {
		if v, err := time.ParseDuration(d.RetryDelay); err == nil {
			wait = max(wait, v)
		}
	}
	return min(wait, maxRetryAfter)
}

// retryAfter reads Retry-After (seconds, also fractional, or a date, taken
// against the server's own clock if it gives it) and Retry-After-Ms. What is
// negative, past or unreadable is 0; more than a day is a day.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clampWait(ms / 1e3)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(v, 64); err == nil {
		return clampWait(seconds)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return clampWait(at.Sub(now).Seconds())
}

func clampWait(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	if seconds >= maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}

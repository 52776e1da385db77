package model

import (
	"strconv"
	"time"
)

// ErrorKind classifies what went wrong with a request, by what can be done.
type ErrorKind string

// Kinds of errors.
const (
	ErrAuth         ErrorKind = "authentication"     // bad or missing key, 401, 403
	ErrRateLimit    ErrorKind = "rate_limit"         // 429, worth a retry after RetryAfter
	ErrQuota        ErrorKind = "quota"              // used up for hours: final, never retried
	ErrOverloaded   ErrorKind = "overloaded"         // 503, 529
	ErrServer       ErrorKind = "server"             // other 5xx
	ErrBadRequest   ErrorKind = "invalid_request"    // 400, 413, 422
	ErrNotFound     ErrorKind = "model_not_found"    // 404
	ErrContext      ErrorKind = "prompt_too_long"    // the request exceeds the model's window
	ErrNetwork      ErrorKind = "network"            // dial, TLS, reset, before or in the stream
	ErrStalled      ErrorKind = "stream_stalled"     // nothing came for the idle limit
	ErrIncomplete   ErrorKind = "incomplete"         // the stream ended without a finish marker
	ErrMalformed    ErrorKind = "malformed_stream"   // what came is not this API (HTML, garbage)
	ErrBlocked      ErrorKind = "blocked"            // safety or content filter
	ErrEmpty        ErrorKind = "empty_response"     // finished without any content
	ErrConfigured   ErrorKind = "configuration"      // cannot even be sent (no such model, no credentials)
	ErrMalformedUse ErrorKind = "malformed_tool_use" // a call that the API itself could not read
)

// Error is a failed model request. Message is safe to show: it holds no
// credentials.
type Error struct {
	Kind       ErrorKind
	Provider   string        // "gemini", "openai", "anthropic", ...
	Status     int           // HTTP status; 0 when there was none
	RetryAfter time.Duration // the server's wish; 0 when it gave none
	RequestID  string        // the server's id of the request, if it gave one
	Message    string        // what the server said, or what happened
	Err        error         // cause; may be nil
}

// Error implements error: "gemini: 429 rate_limit: message", without what is
// not known.
func (e *Error) Error() string {
	s := string(e.Kind) + ": " + e.Message
	if e.Status != 0 {
		s = strconv.Itoa(e.Status) + " " + s
	}
	if e.Provider != "" {
		s = e.Provider + ": " + s
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed if sent again.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case ErrRateLimit, ErrOverloaded, ErrServer, ErrNetwork, ErrStalled, ErrIncomplete, ErrMalformed, ErrEmpty, ErrMalformedUse:
		return true
	}
	return false
}

// RetryInfo tells of one retry, for the event stream.
type RetryInfo struct {
	Attempt    int           // the attempt that failed, from 1; 0 while another request's rate limit holds the first back
	MaxRetries int           // retries allowed in all
	Delay      time.Duration // wait before the next attempt
	Err        *Error        // why
}

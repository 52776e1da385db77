package openai

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/agentcli/agent/internal/model"
)

// quirks are the optional parameters that a server refuses for a model.
type quirks uint8

const (
	noStreamOptions quirks = 1 << iota
	otherMaxTokens         // the other one of max_tokens and max_completion_tokens
	noTemperature
	noTopP
	noThinking
	noCacheKey
)

func (q quirks) has(x quirks) bool { return q&x != 0 }

// learntQuirks remembers quirks per model for the life of a provider. The zero
// value is empty.
type learntQuirks struct {
	mu      sync.Mutex // guards byModel
	byModel map[string]quirks
}

func (l *learntQuirks) of(name string) quirks {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byModel[name]
}

func (l *learntQuirks) add(name string, q quirks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byModel == nil {
		l.byModel = make(map[string]quirks)
	}
	l.byModel[name] |= q
}

// refusal is an answer with an error status.
type refusal struct {
	err  *model.Error
	body []byte
}

// Error implements error.
func (r *refusal) Error() string { return r.err.Error() }

// quirk returns the optional parameter of req that the server complains about
// and that was sent (q says what was not), or 0.
func (r *refusal) quirk(q quirks, req *model.Request) quirks {
	if r.err.Status != http.StatusBadRequest && r.err.Status != http.StatusUnprocessableEntity {
		return 0
	}
	if r.err.Kind != model.ErrBadRequest {
		return 0
	}
	body := bytes.ToLower(r.body)
	if !q.has(noStreamOptions) && bytes.Contains(body, []byte("stream_options")) {
		return noStreamOptions
	}
	if !saysUnknown(body) {
		return 0
	}
	for _, o := range []struct {
		quirk quirks
		sent  bool
		names []string
	}{
		{otherMaxTokens, req.MaxOutputTokens > 0, []string{"max_tokens", "max_completion_tokens"}},
		{noTemperature, req.Temperature != nil, []string{"temperature"}},
		{noTopP, req.TopP != nil, []string{"top_p"}},
		{noThinking, req.Budget() != 0, []string{"reasoning", "thinking"}},
		{noCacheKey, req.SessionID != "", []string{"prompt_cache_key"}},
	} {
		if o.sent && !q.has(o.quirk) && containsAny(body, o.names) {
			return o.quirk
		}
	}
	return 0
}

// saysUnknown reports whether an error text (lower case) speaks of a parameter
// that is not known or not supported, rather than of a bad value.
func saysUnknown(body []byte) bool {
	return containsAny(body, []string{
		"unsupported", "not support", "unrecognized", "unrecognised", "unknown", "unexpected",
		"extra", "not permitted", "not allowed", "no such", "only supported",
	})
}

func containsAny(b []byte, words []string) bool {
	for _, w := range words {
		if bytes.Contains(b, []byte(w)) {
			return true
		}
	}
	return false
}

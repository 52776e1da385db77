package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// namingServer is an OpenAI-compatible API whose models say their names. list
// answers requests for the list of models.
func namingServer(t *testing.T, list http.HandlerFunc) (env []string) {
	t.Helper()
	url := local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			list(w, r)
			return
		}
		var body struct {
			Model string `json:"model"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I am %s\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", body.Model)
	}))
	return []string{"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=key", "OPENAI_MODEL=first"}
}

// lists answers with a list of models, to who has the key.
func lists(names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var data []any
		for _, n := range names {
			data = append(data, map[string]any{"id": n, "object": "model"})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
	}
}

// TestSetModelUnknownToItsProvider: the native set_model refuses what a provider
// does not list; one without a list, or without an answer, stands in no one's
// way; other dialects take any name.
func TestSetModelUnknownToItsProvider(t *testing.T) {
	t.Parallel()
	gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	junk := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }
	for _, c := range []struct {
		name, dialect string
		list          http.HandlerFunc
		model         string
		refused       string // in the error; "": it is set
	}{
		{"listed", "native", lists("first", "second"), "second", ""},
		{"listed under a tag", "native", lists("first", "second:latest"), "second", ""},
		{"not listed", "native", lists("first", "second"), "secnd", "second"},
		{"not listed by its full name", "native", lists("first", "second"), "openai/secnd", "openai/secnd"},
		{"no list", "native", gone, "secnd", ""},
		{"no answer", "native", hangs, "secnd", ""},
		{"no JSON", "native", junk, "secnd", ""},
		{"an empty list", "native", lists(), "secnd", ""},
		{"any name", "claude", lists("first"), "secnd", ""},
		{"any name", "qwen", lists("first"), "secnd", ""},
	} {
		t.Run(c.dialect+" "+c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.host(t, c.dialect, testkit.Spec{Env: namingServer(t, c.list)})
			h.initialize(nil)
			h.ask("set", map[string]any{"subtype": "set_model", "model": c.model})
			h.say("who are you?") // waits for the model
			answer, result := h.answer("set"), h.result()
			text := answer.String("response.error")
			if (text != "") != (c.refused != "") || c.refused != "" && !strings.Contains(text, fmt.Sprintf("%q", c.model)) || !strings.Contains(text, c.refused) {
				t.Errorf("the answer is %v", answer)
			}
			want := "I am " + strings.TrimPrefix(c.model, "openai/")
			if c.refused != "" {
				want = "I am first"
			}
			if got := result.String("result"); got != want {
				t.Errorf("the result is %q, want %q", got, want)
			}
			h.end(0)
		})
	}
}

// TestSetModelWaitsAlone: while a provider is asked, requests that change nothing
// are answered; changes that come later take place later.
func TestSetModelWaitsAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.host(t, "native", testkit.Spec{Env: namingServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })})
	h.initialize(nil)
	h.ask("set", map[string]any{"subtype": "set_model", "model": "second"})
	h.ask("mode", map[string]any{"subtype": "set_permission_mode", "mode": "plan"})
	h.ask("again", map[string]any{"subtype": "set_model", "model": nil})
	h.say("who are you?")
	for i := range 20 {
		h.ask(fmt.Sprint("beat", i), map[string]any{"subtype": "heartbeat"})
	}
	if got := h.result().String("result"); got != "I am first" {
		t.Errorf("the result is %q", got)
	}
	var order []string
	for _, f := range h.end(0) {
		if id := f.String("response.request_id"); id != "" && (!strings.HasPrefix(id, "beat") || len(order) < 3) {
			order = append(order, strings.TrimRight(id, "0123456789"))
		}
	}
	if got := strings.Join(order, " "); got != "init beat beat set mode again" {
		t.Errorf("answers came in the order %s", got)
	}
}

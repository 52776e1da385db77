package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestListModelsOfEachAPI(t *testing.T) {
	for name, c := range map[string]struct {
		target Target
		path   string // below the server's address, with what must be in the header
		body   string
		want   string
	}{
		"openai":         {Target{Provider: "openai", BaseURL: "/v1/", Key: "k"}, "/v1/models Bearer k", `{"data":[{"id":"a"},{"id":""},{"id":"b/c"}]}`, "a b/c"},
		"openai, a path": {Target{Provider: "openai", BaseURL: "/x/chat/completions?v=1"}, "/x/models?v=1 ", `{"data":[{"id":"a"}]}`, "a"},
		"anthropic":      {Target{Provider: "anthropic", BaseURL: "/v1", Key: "k"}, "/v1/models?limit=1000 k", `{"data":[{"id":"a"}],"has_more":false}`, "a"},
		"a token":        {Target{Provider: "anthropic", AuthToken: "t"}, "/v1/models?limit=1000 Bearer t", `{"data":[{"id":"a"}]}`, "a"},
		"gemini":         {Target{Provider: "gemini", Key: "k"}, "/v1beta/models?pageSize=1000 k", `{"models":[{"name":"models/a"},{"name":"models/b"}]}`, "a b"},
		"more pages":     {Target{Provider: "anthropic", Key: "k"}, "/v1/models?limit=1000 k", `{"data":[{"id":"a"}],"has_more":true}`, "error"},
		"nothing":        {Target{Provider: "openai"}, "/models ", `{"data":[]}`, "error"},
		"another thing":  {Target{Provider: "openai"}, "/models ", `[]`, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h := r.Header
				got = r.URL.RequestURI() + " " + h.Get("Authorization") + h.Get("X-Api-Key") + h.Get("X-Goog-Api-Key")
				if h.Get("X-Own") != "1" {
					t.Errorf("header: %v", h)
				}
				fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			c.target.BaseURL = server.URL + c.target.BaseURL
			ids, err := ListModels(context.Background(), server.Client(), c.target, http.Header{"x-own": {"1"}})
			if (err != nil) != (c.want == "error") || err == nil && strings.Join(ids, " ") != c.want || got != c.path {
				t.Errorf("%v, %v; the request was %q", ids, err, got)
			}
		})
	}
	for _, target := range []Target{{Provider: "gemini", Vertex: true}, {Provider: "scripted"}} {
		if _, err := ListModels(context.Background(), nil, target, nil); !errors.Is(err, ErrNoList) {
			t.Errorf("%+v: %v", target, err)
		}
	}
}

func TestListed(t *testing.T) {
	list := []string{"gpt-5", "qwen3:latest", "claude-sonnet-4-5-20250929", "maker/model", "open/*", "Mixed"}
	for id, want := range map[string]bool{
		"gpt-5": true, "GPT-5": true, "gpt-": false, "gpt-5-mini": false, "gpt": false, "qwen3": true, "qwen": false, "qwen3:8b": false,
		"claude-sonnet-4-5": true, "claude-sonnet-4": false, "claude-sonnet": false, "maker/model:free": true, "model": false,
		"open/any": true, "mixed": true, "": false, "models/gpt-5": true,
	} {
		if Listed(list, id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

func TestNearModels(t *testing.T) {
	long := []string{"gpt-5", "gpt-5-mini", "gpt-4o", "o3", "text-embedding-3-large", "whisper-1", "dall-e-3"}
	for id, want := range map[string]string{"gtp-5": "gpt-5", "wisper": "whisper-1", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz": ""} {
		if got := strings.Join(NearModels(long, id), " "); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if got := NearModels([]string{"b", "a"}, "zz"); strings.Join(got, " ") != "a b" {
		t.Errorf("%q", got)
	}
	if got := NearModels(long, strings.Repeat("x", 1<<20)); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

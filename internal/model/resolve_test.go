package model_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	const (
		gateway    = "http://gateway.example/v1"
		openRouter = "https://openrouter.ai/api/v1"
		dashScope  = "https://dashscope.aliyuncs.com/compatible-mode/v1"
	)
	def := model.DefaultCatalog().Default
	all := model.Credentials{GeminiKey: "g", OpenAIKey: "o", AnthropicKey: "a", DashScopeKey: "d", OpenRouterKey: "r"}
	tests := []struct {
		name  string
		model string
		cred  model.Credentials
		want  model.Target
	}{
		// Nothing named.
		{"gemini first", "", all, model.Target{Provider: "gemini", Vendor: "gemini", Model: def("gemini"), Key: "g"}},
		{"gemini's preferred model", "", model.Credentials{GeminiKey: "g", GeminiModel: "pro"}, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemini-3.1-pro-preview", Key: "g"}},
		{"google key", "", model.Credentials{GoogleKey: "k", OpenAIKey: "o"}, model.Target{Provider: "gemini", Vendor: "gemini", Model: def("gemini"), Key: "k"}},
		{"vertex with a key", "", model.Credentials{GoogleKey: "k", UseVertex: true}, model.Target{Provider: "gemini", Vendor: "gemini", Model: def("gemini"), Key: "k", Vertex: true}},
		{"vertex with a project", "", model.Credentials{UseVertex: true, Project: "p", Location: "l", GeminiKey: "g"}, model.Target{Provider: "gemini", Vendor: "gemini", Model: def("gemini"), Vertex: true, Project: "p", Location: "l"}},
		{"vertex switch without means", "", model.Credentials{UseVertex: true, GeminiKey: "g"}, model.Target{Provider: "gemini", Vendor: "gemini", Model: def("gemini"), Key: "g"}},
		{"a project alone is nothing", "", model.Credentials{Project: "p", AnthropicKey: "a"}, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: def("anthropic"), Key: "a"}},
		{"openai before anthropic", "", model.Credentials{OpenAIKey: "o", AnthropicKey: "a"}, model.Target{Provider: "openai", Vendor: "openai", Model: def("openai"), Key: "o"}},
		{"openai's model", "", model.Credentials{OpenAIKey: "o", OpenAIModel: "gpt-4.1"}, model.Target{Provider: "openai", Vendor: "openai", Model: "gpt-4.1", Key: "o"}},
		{"gateway with its model, no key", "", model.Credentials{OpenAIBaseURL: gateway, OpenAIModel: "meta/llama"}, model.Target{Provider: "openai", Vendor: "openai", Model: "meta/llama", BaseURL: gateway}},
		{"gateway that is dashscope", "", model.Credentials{OpenAIBaseURL: dashScope, OpenAIKey: "o"}, model.Target{Provider: "openai", Vendor: "dashscope", Model: def("dashscope"), BaseURL: dashScope, Key: "o"}},
		{"anthropic's token", "", model.Credentials{AnthropicAuthToken: "t", AnthropicModel: "opus", AnthropicBaseURL: "http://a"}, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: "claude-opus-5-5", AuthToken: "t", BaseURL: "http://a"}},
		{"anthropic's address alone", "", model.Credentials{AnthropicBaseURL: "http://a"}, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: def("anthropic"), BaseURL: "http://a"}},
		{"a key goes before an address", "", model.Credentials{GeminiBaseURL: "http://g", DashScopeKey: "d"}, model.Target{Provider: "openai", Vendor: "dashscope", Model: def("dashscope"), BaseURL: dashScope, Key: "d"}},

		// provider/model.
		{"openai/x", "openai/gpt-5", all, model.Target{Provider: "openai", Vendor: "openai", Model: "gpt-5", Key: "o"}},
		{"more slashes belong to the model", "openai/meta-llama/llama-3", model.Credentials{OpenAIBaseURL: gateway}, model.Target{Provider: "openai", Vendor: "openai", Model: "meta-llama/llama-3", BaseURL: gateway}},
		{"anthropic/alias", "anthropic/sonnet", all, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: "claude-sonnet-5-5", Key: "a"}},
		{"a name of another's alias", "openai/sonnet", all, model.Target{Provider: "openai", Vendor: "openai", Model: "sonnet", Key: "o"}},
		{"gemini/x", "Gemini/gemini-2.5-flash", all, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemini-2.5-flash", Key: "g"}},
		{"google/x", "google/gemma-3", all, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemma-3", Key: "g"}},
		{"vertex/x", "vertex/pro", model.Credentials{GeminiKey: "g", Project: "p", Location: "l"}, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemini-3.1-pro-preview", Vertex: true, Project: "p", Location: "l"}},
		{"qwen/x", "qwen/qwen3-coder-plus", all, model.Target{Provider: "openai", Vendor: "dashscope", Model: "qwen3-coder-plus", BaseURL: dashScope, Key: "d"}},
		{"openrouter/x/y", "openrouter/meta-llama/llama-3", all, model.Target{Provider: "openai", Vendor: "openrouter", Model: "meta-llama/llama-3", BaseURL: openRouter, Key: "r"}},
		{"openrouter as the gateway", "openrouter/meta-llama/llama-3", model.Credentials{OpenAIBaseURL: openRouter, OpenAIKey: "o"}, model.Target{Provider: "openai", Vendor: "openrouter", Model: "meta-llama/llama-3", BaseURL: openRouter, Key: "o"}},
		{"openrouter's own openai models", "openai/gpt-5", model.Credentials{OpenAIBaseURL: openRouter, OpenAIKey: "o"}, model.Target{Provider: "openai", Vendor: "openai", Model: "openai/gpt-5", BaseURL: openRouter, Key: "o"}},
		{"scripted/file", "scripted/dir/a file.jsonc", model.Credentials{}, model.Target{Provider: "scripted", Vendor: "scripted", Model: "dir/a file.jsonc"}},
		{"scripted absolute file", "scripted//tmp/a", model.Credentials{}, model.Target{Provider: "scripted", Vendor: "scripted", Model: "/tmp/a"}},
		{"ollama/x gets no key", "ollama/qwen3-coder:30b", all, model.Target{Provider: "openai", Vendor: "ollama", Model: "qwen3-coder:30b", BaseURL: "http://127.0.0.1:11434/v1"}},
		{"ollama elsewhere", "ollama/x", model.Credentials{OllamaHost: "box"}, model.Target{Provider: "openai", Vendor: "ollama", Model: "x", BaseURL: "http://box:11434/v1"}},
		{"ollama listening everywhere", "ollama/x", model.Credentials{OllamaHost: "0.0.0.0:99"}, model.Target{Provider: "openai", Vendor: "ollama", Model: "x", BaseURL: "http://127.0.0.1:99/v1"}},
		{"ollama behind tls", "ollama/x", model.Credentials{OllamaHost: "https://box/o/"}, model.Target{Provider: "openai", Vendor: "ollama", Model: "x", BaseURL: "https://box/o/v1"}},
		{"ollama at nonsense", "ollama/x", model.Credentials{OllamaHost: "http://"}, model.Target{Provider: "openai", Vendor: "ollama", Model: "x", BaseURL: "http://127.0.0.1:11434/v1"}},
		{"lmstudio/x/y", "lmstudio/qwen/x", model.Credentials{}, model.Target{Provider: "openai", Vendor: "lmstudio", Model: "qwen/x", BaseURL: "http://127.0.0.1:1234/v1"}},
		{"no key of its own: the gateway, with the whole name", "anthropic/claude-sonnet-4.5", model.Credentials{OpenAIBaseURL: openRouter, OpenAIKey: "o"}, model.Target{Provider: "openai", Vendor: "openrouter", Model: "anthropic/claude-sonnet-4.5", BaseURL: openRouter, Key: "o"}},
		{"unknown maker: the gateway", "meta-llama/llama-3", model.Credentials{OpenAIBaseURL: gateway}, model.Target{Provider: "openai", Vendor: "openai", Model: "meta-llama/llama-3", BaseURL: gateway}},

		// A bare name.
		{"alias", "flash", all, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemini-3.8-flash", Key: "g"}},
		{"alias in another case, with space", " Opus ", all, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: "claude-opus-5-5", Key: "a"}},
		{"listed id", "gpt-4o", all, model.Target{Provider: "openai", Vendor: "openai", Model: "gpt-4o", Key: "o"}},
		{"dated id is kept", "claude-sonnet-4-5-20250929", all, model.Target{Provider: "anthropic", Vendor: "anthropic", Model: "claude-sonnet-4-5-20250929", Key: "a"}},
		{"family gemini", "gemini-9-ultra", all, model.Target{Provider: "gemini", Vendor: "gemini", Model: "gemini-9-ultra", Key: "g"}},
		{"family o3", "o3-deep", all, model.Target{Provider: "openai", Vendor: "openai", Model: "o3-deep", Key: "o"}},
		{"family qwen", "qwen-max-latest", all, model.Target{Provider: "openai", Vendor: "dashscope", Model: "qwen-max-latest", BaseURL: dashScope, Key: "d"}},
		{"known, but no key: the gateway", "claude-sonnet-4-5", model.Credentials{OpenAIBaseURL: gateway, OpenAIKey: "o"}, model.Target{Provider: "openai", Vendor: "openai", Model: "claude-sonnet-4-5", BaseURL: gateway, Key: "o"}},
		{"alias at the gateway", "qwen", model.Credentials{OpenAIBaseURL: gateway}, model.Target{Provider: "openai", Vendor: "openai", Model: "qwen3-coder-plus", BaseURL: gateway}},
		{"unknown: the gateway", "my-own", model.Credentials{OpenAIBaseURL: gateway}, model.Target{Provider: "openai", Vendor: "openai", Model: "my-own", BaseURL: gateway}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := model.Resolve(tt.model, tt.cred)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveErrorsSayHowToGoOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		model  string
		cred   model.Credentials
		noKey  bool
		wanted []string
	}{
		{"nothing set up", "", model.Credentials{}, true, []string{"GEMINI_API_KEY", "OPENAI_BASE_URL", "Ollama", "--model", "scripted/FILE"}},
		{"no key for gemini", "gemini-2.5-pro", model.Credentials{OpenAIKey: "o"}, true, []string{"gemini-2.5-pro", "GEMINI_API_KEY"}},
		{"no key for anthropic", "anthropic/claude-x", model.Credentials{}, true, []string{"ANTHROPIC_API_KEY"}},
		{"no key for dashscope", "qwen", model.Credentials{}, true, []string{"DASHSCOPE_API_KEY"}},
		{"no key for openrouter", "openrouter/a/b", model.Credentials{OpenAIKey: "o"}, true, []string{"OPENROUTER_API_KEY"}},
		{"no project for vertex", "vertex/x", model.Credentials{OpenAIBaseURL: "http://g"}, true, []string{"GOOGLE_CLOUD_PROJECT"}},
		{"unknown model", "my-own", model.Credentials{OpenAIKey: "o"}, false, []string{`"my-own"`, "ollama/my-own", "OPENAI_BASE_URL"}},
		{"a local tag is not dashscope's", "qwen3:8b", model.Credentials{DashScopeKey: "d"}, false, []string{"ollama/qwen3:8b"}},
		{"unknown provider", "foo/bar", model.Credentials{OpenAIKey: "o"}, false, []string{`"foo"`, "gemini, vertex"}},
		{"no model after the slash", "ollama/", model.Credentials{}, false, []string{`"ollama/"`}},
		{"gateway without a model", "", model.Credentials{OpenAIBaseURL: "http://g", OpenAIKey: "o"}, false, []string{"OPENAI_MODEL"}},
		{"openrouter without a model", "", model.Credentials{OpenRouterKey: "r"}, false, []string{"--model openrouter/"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := model.Resolve(tt.model, tt.cred)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != model.ErrConfigured {
				t.Fatalf("error %v, want a configuration error", err)
			}
			if errors.Is(err, model.ErrNoCredentials) != tt.noKey {
				t.Errorf("error %v: wraps ErrNoCredentials = %t, want %t", err, !tt.noKey, tt.noKey)
			}
			for _, w := range tt.wanted {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q lacks %q", err, w)
				}
			}
		})
	}
}

func TestResolveUsesTheOverriddenCatalogue(t *testing.T) {
	t.Parallel()
	c, err := model.LoadCatalog(strings.NewReader(`{"models":[{"provider":"vllm","id":"Org/Mine","aliases":["mine"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Resolve("mine", model.Credentials{GeminiKey: "g"})
	want := model.Target{Provider: "openai", Vendor: "vllm", Model: "Org/Mine", BaseURL: "http://127.0.0.1:8000/v1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, target (-want +got):\n%s", err, diff)
	}
}

// machine is a transport to the servers of a machine, by port.
type machine map[string]http.HandlerFunc

func (m machine) RoundTrip(req *http.Request) (*http.Response, error) {
	serve, ok := m[req.URL.Port()]
	if !ok || req.URL.Hostname() != "127.0.0.1" {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	serve(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func lists(ids ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet || req.URL.Path != "/v1/models" {
			http.NotFound(w, req)
			return
		}
		body := `{"object":"list","data":[`
		for i, id := range ids {
			if i > 0 {
				body += ","
			}
			body += `{"id":"` + id + `"}`
		}
		_, _ = w.Write([]byte(body + "]}"))
	}
}

func hangs(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

func TestProbeLocalFindsTheFirstServerThatListsAModel(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>a web app in development")) }
	redirect := func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://127.0.0.1:1234/v1/models", http.StatusFound)
	}
	tests := []struct {
		name    string
		machine machine
		vendor  string
		model   string
		within  time.Duration
	}{
		{"ollama", machine{"11434": lists("a", "b"), "1234": lists("c")}, "ollama", "a", 0},
		{"ollama without models", machine{"11434": lists(), "1234": lists("c")}, "lmstudio", "c", 0},
		{"embedding models do not chat", machine{"1234": lists("text-embedding-nomic", "c")}, "lmstudio", "c", 0},
		{"other servers on these ports", machine{"8080": page, "8000": http.NotFound, "1234": lists("c")}, "lmstudio", "c", 0},
		{"redirects are not followed", machine{"8080": redirect}, "", "", 0},
		{"vllm", machine{"8000": lists("org/m")}, "vllm", "org/m", 0},
		{"one that hangs costs the limit, not more", machine{"11434": hangs, "8080": lists("m")}, "llamacpp", "m", 300 * time.Millisecond},
		{"one that hangs behind the found one costs nothing", machine{"11434": lists("m"), "8080": hangs}, "ollama", "m", 0},
		{"nobody", machine{}, "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				got, err := model.ProbeLocal(t.Context(), &http.Client{Transport: tt.machine})
				if took := time.Since(begin); took != tt.within {
					t.Errorf("took %s, want %s", took, tt.within)
				}
				if tt.vendor == "" {
					if !errors.Is(err, model.ErrNoCredentials) || !strings.Contains(err.Error(), "scripted/FILE") {
						t.Errorf("target %+v, error %v; want an error that says how to go on", got, err)
					}
					return
				}
				if err != nil || got.Vendor != tt.vendor || got.Model != tt.model || got.Provider != "openai" || !strings.HasPrefix(got.BaseURL, "http://127.0.0.1:") {
					t.Errorf("target %+v, error %v; want %s/%s", got, err, tt.vendor, tt.model)
				}
			})
		})
	}
}

func TestProbeLocalEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		interrupted := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(interrupted) })
		begin := time.Now()
		_, err := model.ProbeLocal(ctx, &http.Client{Transport: machine{"11434": hangs, "1234": hangs}})
		if err != interrupted || time.Since(begin) != time.Millisecond {
			t.Errorf("error %v after %s, want %v after 1ms", err, time.Since(begin), interrupted)
		}
	})
}

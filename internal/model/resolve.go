package model

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// ErrNoCredentials is wrapped by the errors of [Resolve] when what is missing
// is a key or a server. With no model named either, a local server may still
// help: see [ProbeLocal].
var ErrNoCredentials = errors.New("no credentials")

// Credentials are the keys, addresses and preferred models that are set up.
// Empty fields are not.
type Credentials struct {
	GeminiKey, GeminiModel, GeminiBaseURL string

	GoogleKey         string // also for Vertex, in its express mode
	UseVertex         bool
	Project, Location string // of Vertex; without a key its own credentials are used

	OpenAIKey, OpenAIBaseURL, OpenAIModel string

	AnthropicKey, AnthropicAuthToken string
	AnthropicBaseURL, AnthropicModel string
	DashScopeKey, DashScopeBaseURL   string
	OpenRouterKey                    string
	OllamaHost                       string // host, host:port or URL
}

// Target says which adapter to use, and how.
type Target struct {
	Provider string // the adapter: "gemini", "openai", "anthropic" or "scripted"
	Vendor   string // who serves the model, for messages and [Catalog.Lookup]: also "dashscope", "ollama", ...
	Model    string // the vendor's name of it; of "scripted": the script's file

	BaseURL   string // empty: the adapter's own
	Key       string // API key; empty: none is needed, or AuthToken or Vertex's own credentials
	AuthToken string // Anthropic bearer token

	Vertex            bool
	Project, Location string
}

const (
	dashScopeURL  = "https://dashscope.aliyuncs.com/compatible-mode/v1"
	openRouterURL = "https://openrouter.ai/api/v1"
)

// Resolve chooses the provider and model for name with the shipped catalogue;
// see [Catalog.Resolve].
func Resolve(name string, c Credentials) (Target, error) {
	return DefaultCatalog().Resolve(name, c)
}

// Resolve chooses the provider and model. It looks at nothing but its arguments.
//
// name is "vendor/model" (gemini, vertex, openai, anthropic, dashscope, qwen,
// openrouter, ollama, llamacpp, vllm, lmstudio, scripted; what follows the
// first slash is the vendor's name of the model and may hold slashes), or a
// model's id or alias. If its vendor has no key but an OpenAI-compatible gateway
// (OpenAIBaseURL) is set up, it goes there; so do names that are not known.
//
// An empty name takes the first of: Vertex if asked for, Gemini, Google,
// OpenAI, Anthropic, DashScope, with the model preferred there.
//
// Errors are [*Error] of kind ErrConfigured that say what to do; they wrap
// ErrNoCredentials if a key is missing.
func (c *Catalog) Resolve(name string, cred Credentials) (Target, error) {
	r := resolver{catalog: c, cred: cred}
	name = strings.TrimSpace(name)
	if name == "" {
		return r.byKeys()
	}
	prefix, rest, slash := strings.Cut(name, "/")
	if !slash {
		return r.bare(name)
	}
	vendor := vendorNamed(prefix)
	switch {
	case vendor == "" && r.hasGateway():
		return r.gateway(name)
	case vendor == "":
		return Target{}, configError("", "unknown provider %q in model name %q: use one of gemini, vertex, openai, anthropic, dashscope, openrouter,"+
			" ollama, llamacpp, vllm, lmstudio, scripted, or set OPENAI_BASE_URL to the server that has this model", prefix, name)
	case rest == "":
		return Target{}, configError(vendor, "model name %q lacks the model after the slash", name)
	}
	return r.explicit(vendor, rest, name)
}

type resolver struct {
	catalog *Catalog
	cred    Credentials
}

func configError(vendor, format string, args ...any) *Error {
	return &Error{Kind: ErrConfigured, Provider: vendor, Message: fmt.Sprintf(format, args...)}
}

func noCredentials(vendor, format string, args ...any) *Error {
	e := configError(vendor, format, args...)
	e.Err = ErrNoCredentials
	return e
}

// vendorNamed returns the vendor of a prefix, or "".
func vendorNamed(prefix string) string {
	switch p := strings.ToLower(prefix); p {
	case "gemini", "vertex", "openai", "anthropic", "dashscope", "openrouter", "ollama", "llamacpp", "vllm", "lmstudio", "scripted":
		return p
	case "google":
		return "gemini"
	case "claude":
		return "anthropic"
	case "qwen", "alibaba":
		return "dashscope"
	case "llama.cpp":
		return "llamacpp"
	}
	return ""
}

// explicit serves vendor/model; full is the whole name, for a gateway.
func (r resolver) explicit(vendor, id, full string) (Target, error) {
	switch vendor {
	case "scripted":
		return Target{Provider: "scripted", Vendor: "scripted", Model: id}, nil
	case "openrouter":
		return r.openRouter(id)
	}
	if url, ok := r.localURL(vendor); ok {
		return Target{Provider: "openai", Vendor: vendor, Model: id, BaseURL: url}, nil
	}
	if m, ok := r.catalog.Named(id); ok && isAlias(m, id) && (m.Provider == vendor || m.Provider == "gemini" && vendor == "vertex") {
		id = m.ID
	}
	if vendor == "openai" && strings.Contains(r.cred.OpenAIBaseURL, "openrouter.ai") && !strings.Contains(id, "/") {
		id = full // its names begin with the maker's
	}
	if t, ok := r.at(vendor, id); ok {
		return t, nil
	}
	if r.hasGateway() && vendor != "vertex" {
		return r.gateway(full)
	}
	return Target{}, missingKey(vendor, id)
}

func isAlias(m Info, name string) bool {
	for _, a := range m.Aliases {
		if strings.EqualFold(a, name) {
			return true
		}
	}
	return false
}

// bare serves a name without a vendor.
func (r resolver) bare(name string) (Target, error) {
	id, vendor := name, familyOf(name)
	if m, ok := r.catalog.Named(name); ok {
		vendor = m.Provider
		if isAlias(m, name) {
			id = m.ID
		}
	}
	if vendor != "" {
		if t, ok := r.at(vendor, id); ok {
			return t, nil
		}
		if url, ok := r.localURL(vendor); ok { // from an overriding catalogue
			return Target{Provider: "openai", Vendor: vendor, Model: id, BaseURL: url}, nil
		}
	}
	switch {
	case r.hasGateway():
		return r.gateway(id)
	case vendor != "":
		return Target{}, missingKey(vendor, id)
	}
	return Target{}, configError("", "unknown model %q: name its provider too (ollama/%[1]s, openai/%[1]s, ...), or set OPENAI_BASE_URL to the server that has it", name)
}

// familyOf guesses the vendor from how an id begins; "" if it cannot be told.
func familyOf(id string) string {
	key := strings.ToLower(id)
	if strings.Contains(key, ":") {
		return "" // a local server's tag
	}
	for _, f := range []struct{ prefix, vendor string }{
		{"gemini-", "gemini"}, {"claude-", "anthropic"},
		{"gpt-", "openai"}, {"chatgpt-", "openai"}, {"codex-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
		{"qwen", "dashscope"}, {"qwq", "dashscope"},
	} {
		if strings.HasPrefix(key, f.prefix) {
			return f.vendor
		}
	}
	return ""
}

// at returns the target at the vendor itself, if it is set up.
func (r resolver) at(vendor, id string) (Target, bool) {
	c := r.cred
	switch vendor {
	case "vertex":
		return r.vertex(id), c.GoogleKey != "" || c.Project != ""
	case "gemini":
		return r.google(id)
	case "openai":
		t := Target{Provider: "openai", Vendor: "openai", Model: id, BaseURL: c.OpenAIBaseURL, Key: c.OpenAIKey}
		return t, c.OpenAIKey != "" || c.OpenAIBaseURL != ""
	case "anthropic":
		t := Target{
			Provider: "anthropic", Vendor: "anthropic", Model: id,
			BaseURL: c.AnthropicBaseURL, Key: c.AnthropicKey, AuthToken: c.AnthropicAuthToken,
		}
		return t, c.AnthropicKey != "" || c.AnthropicAuthToken != "" || c.AnthropicBaseURL != ""
	case "dashscope":
		t := Target{Provider: "openai", Vendor: "dashscope", Model: id, BaseURL: firstOf(c.DashScopeBaseURL, dashScopeURL), Key: c.DashScopeKey}
		return t, c.DashScopeKey != ""
	}
	return Target{}, false
}

func (r resolver) vertex(id string) Target {
	return Target{
		Provider: "gemini", Vendor: "gemini", Model: id, BaseURL: r.cred.GeminiBaseURL,
		Key: r.cred.GoogleKey, Vertex: true, Project: r.cred.Project, Location: r.cred.Location,
	}
}

func (r resolver) google(id string) (Target, bool) {
	c := r.cred
	if r.wantsVertex() {
		return r.vertex(id), true
	}
	t := Target{Provider: "gemini", Vendor: "gemini", Model: id, BaseURL: c.GeminiBaseURL, Key: firstOf(c.GeminiKey, c.GoogleKey)}
	return t, t.Key != "" || t.BaseURL != ""
}

// wantsVertex reports whether Vertex was asked for and has what it needs. The
// switch has no other meaning, so it goes before a Gemini key.
func (r resolver) wantsVertex() bool {
	return r.cred.UseVertex && (r.cred.GoogleKey != "" || r.cred.Project != "")
}

func (r resolver) openRouter(id string) (Target, error) {
	if r.cred.OpenRouterKey != "" {
		return Target{Provider: "openai", Vendor: "openrouter", Model: id, BaseURL: openRouterURL, Key: r.cred.OpenRouterKey}, nil
	}
	if strings.Contains(r.cred.OpenAIBaseURL, "openrouter.ai") {
		return r.gateway(id)
	}
	return Target{}, missingKey("openrouter", id)
}

func (r resolver) hasGateway() bool { return r.cred.OpenAIBaseURL != "" }

// gateway sends the name as it is to the OpenAI-compatible server.
func (r resolver) gateway(name string) (Target, error) {
	return Target{
		Provider: "openai", Vendor: r.gatewayVendor(), Model: name,
		BaseURL: r.cred.OpenAIBaseURL, Key: r.cred.OpenAIKey,
	}, nil
}

// gatewayVendor recognises who is behind OpenAIBaseURL.
func (r resolver) gatewayVendor() string {
	host := r.cred.OpenAIBaseURL
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	switch {
	case strings.HasSuffix(host, "openrouter.ai"):
		return "openrouter"
	case strings.Contains(host, "dashscope"):
		return "dashscope"
	}
	return "openai"
}

// byKeys serves the case that no model is named.
func (r resolver) byKeys() (Target, error) {
	c := r.cred
	gemini := firstOf(c.GeminiModel, r.catalog.Default("gemini"))
	claude := firstOf(c.AnthropicModel, r.catalog.Default("anthropic"))
	switch {
	case r.wantsVertex():
		return r.vertex(r.unalias(gemini)), nil
	case c.GeminiKey != "", c.GoogleKey != "":
		t, _ := r.google(r.unalias(gemini))
		return t, nil
	case c.OpenAIKey != "", c.OpenAIBaseURL != "":
		return r.openAIDefault()
	case c.AnthropicKey != "", c.AnthropicAuthToken != "":
		t, _ := r.at("anthropic", r.unalias(claude))
		return t, nil
	case c.DashScopeKey != "":
		t, _ := r.at("dashscope", r.catalog.Default("dashscope"))
		return t, nil
	case c.AnthropicBaseURL != "":
		t, _ := r.at("anthropic", r.unalias(claude))
		return t, nil
	case c.GeminiBaseURL != "":
		t, _ := r.google(r.unalias(gemini))
		return t, nil
	case c.OpenRouterKey != "":
		return Target{}, configError("openrouter", "no model is named: use --model openrouter/MAKER/MODEL")
	}
	return Target{}, noCredentials("", "%s", howToGoOn)
}

func (r resolver) unalias(name string) string {
	if m, ok := r.catalog.Named(name); ok && isAlias(m, name) {
		return m.ID
	}
	return name
}

// openAIDefault takes the preferred model; what else an unknown server has
// cannot be guessed.
func (r resolver) openAIDefault() (Target, error) {
	c := r.cred
	t := Target{Provider: "openai", Vendor: r.gatewayVendor(), BaseURL: c.OpenAIBaseURL, Key: c.OpenAIKey}
	switch {
	case c.OpenAIModel != "":
		t.Model = c.OpenAIModel
		if t.Vendor == "openai" {
			t.Model = r.unalias(t.Model)
		}
	case c.OpenAIBaseURL == "", t.Vendor == "dashscope", strings.Contains(c.OpenAIBaseURL, "api.openai.com"):
		t.Model = r.catalog.Default(t.Vendor)
	default:
		return Target{}, configError("openai", "OPENAI_BASE_URL is set but no model is named: use --model openai/NAME or set OPENAI_MODEL")
	}
	return t, nil
}

// localURL returns the address of a local server's API, if vendor is one.
func (r resolver) localURL(vendor string) (string, bool) {
	for _, s := range localServers {
		if s.vendor == vendor {
			if vendor == "ollama" && r.cred.OllamaHost != "" {
				return ollamaURL(r.cred.OllamaHost), true
			}
			return s.url(), true
		}
	}
	return "", false
}

// ollamaURL understands what Ollama itself does: a host, with port and scheme
// or without.
func ollamaURL(host string) string {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return localServers[0].url()
	}
	name, port := u.Hostname(), u.Port()
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1" // where it listens, not where it is
	}
	if port == "" && u.Scheme == "http" {
		port = localServers[0].port
	}
	u.Host = name
	if port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	return strings.TrimRight(u.String(), "/") + "/v1"
}

// missingKey says which key a vendor needs.
func missingKey(vendor, id string) *Error {
	need := map[string]string{
		"gemini":     "GEMINI_API_KEY",
		"vertex":     "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION (with application default credentials), or GOOGLE_API_KEY",
		"openai":     "OPENAI_API_KEY",
		"anthropic":  "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
		"dashscope":  "DASHSCOPE_API_KEY",
		"openrouter": "OPENROUTER_API_KEY",
	}[vendor]
	if need == "" {
		return configError(vendor, "provider of model %q is not known to this program", id)
	}
	return noCredentials(vendor, "model %s needs %s; or set OPENAI_BASE_URL (and OPENAI_API_KEY) to a gateway that has it,"+
		" or try the program without a key: --model scripted/FILE", id, need)
}

const howToGoOn = `no model provider is set up. Do one of these:
  - set GEMINI_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or DASHSCOPE_API_KEY
    (Vertex: GOOGLE_GENAI_USE_VERTEXAI=true with GOOGLE_CLOUD_PROJECT or GOOGLE_API_KEY)
  - set OPENAI_BASE_URL and OPENAI_MODEL to any OpenAI-compatible server
  - start a local server: Ollama (port 11434), llama.cpp (8080), vLLM (8000) or LM Studio (1234)
  - name a model with --model PROVIDER/MODEL; --model scripted/FILE works without a key`

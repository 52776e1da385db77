package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/cli/version"
	"github.com/agentcli/agent/internal/httpclient"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/model/anthropic"
	"github.com/agentcli/agent/internal/model/gemini"
	"github.com/agentcli/agent/internal/model/openai"
	"github.com/agentcli/agent/internal/model/scripted"
	"github.com/agentcli/agent/internal/settings"
)

// models builds the models that names ask for, each once. It is safe for
// concurrent use.
type models struct {
	set     *settings.Settings
	getenv  func(string) string
	catalog *model.Catalog
	cred    model.Credentials
	http    *http.Client
	// vendor serves names without a provider: all of them when they are forced,
	// else those that nobody else is known for. Empty: none does.
	vendor string
	forced bool
	betas  []string // of Anthropic's API
	oauth  string   // token of Anthropic's API where nothing else is given; may be empty
	agent  string   // User-Agent of model requests; empty: each adapter's own

	local *model.Target // a local server that was found, when nothing is configured
	// record, if not nil, is put directly around each adapter.
	record func(model.Provider) model.Provider

	mu    sync.Mutex // guards the rest
	built map[string]*building
	named map[string]bool // names that flags, the user or the host chose
}

// modelOptions are what flags say of models.
type modelOptions struct {
	vendor string // see models
	forced bool
	betas  []string
	oauth  string                              // see models
	app    string                              // who is told of in the User-Agent; may be empty
	record func(model.Provider) model.Provider // may be nil
}

// newModels reads what is configured. It looks for a local server, for at most
// 300 ms, only if nothing is.
func newModels(ctx context.Context, cio IO, set *settings.Settings, o modelOptions) (*models, error) {
	m := &models{
		set: set, getenv: cio.Getenv, catalog: model.DefaultCatalog(), built: map[string]*building{}, named: map[string]bool{set.String(settings.Model): true},
		vendor: o.vendor, forced: o.forced, betas: o.betas, oauth: o.oauth, record: o.record,
	}
	if o.app != "" {
		m.agent = userAgent() + " " + o.app
	}
	if path := set.String(settings.CatalogFile); path != "" {
		if err := m.loadCatalog(path); err != nil {
			return nil, err
		}
	}
	client, err := httpclient.Client(networkOptions(cio, set))
	if err != nil {
		return nil, fail(ExitSettings, "network settings: %w", err)
	}
	m.http = client
	m.cred = m.credentials()
	_, err = m.target(set.String(settings.Model))
	if set.String(settings.Model) == "" && errors.Is(err, model.ErrNoCredentials) {
		if t, perr := model.ProbeLocal(ctx, client); perr == nil {
			m.local = &t
			err = nil
		}
	}
	if err != nil {
		return nil, startError(err)
	}
	if _, err := m.resolve(""); err != nil {
		return nil, startError(err)
	}
	return m, nil
}

// startError gives the error of a model that cannot be built its exit code.
func startError(err error) error {
	if errors.Is(err, model.ErrNoCredentials) {
		return &exitError{ExitAuth, messageOf(err)}
	}
	var coded *exitError
	if errors.As(err, &coded) {
		return err
	}
	return &exitError{ExitUsage, messageOf(err)}
}

// messageOf is err without the prefix that is meant for failed requests.
func messageOf(err error) error {
	var e *model.Error
	if errors.As(err, &e) && e.Kind == model.ErrConfigured {
		return errors.New(e.Message)
	}
	return err
}

func (m *models) loadCatalog(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fail(ExitSettings, "%s: %w", settings.CatalogFile, err)
	}
	defer f.Close()
	if m.catalog, err = model.LoadCatalog(f); err != nil {
		return fail(ExitSettings, "%s %s: %w", settings.CatalogFile, path, err)
	}
	return nil
}

// userAgent is what servers are told about us.
func userAgent() string { return "agent/" + version.Own }

// networkOptions says how to reach the network.
func networkOptions(cio IO, set *settings.Settings) httpclient.Options {
	env := func(name string) string {
		if v := cio.Getenv(name); v != "" {
			return v
		}
		return cio.Getenv(strings.ToLower(name))
	}
	noProxy := set.String(settings.NoProxy)
	if noProxy == "" {
		noProxy = env("NO_PROXY")
	}
	return httpclient.Options{
		HTTPProxy: env("HTTP_PROXY"), HTTPSProxy: env("HTTPS_PROXY"), AllProxy: env("ALL_PROXY"), NoProxy: noProxy,
		Proxy: set.String(settings.Proxy), CAFile: set.String(settings.CAFile), UserAgent: userAgent(),
	}
}

// credentials reads keys and addresses: the environment, and for each provider
// what the settings say instead.
func (m *models) credentials() model.Credentials {
	env := m.getenv
	c := model.Credentials{
		GeminiKey: env(m.keyVariable("gemini", "GEMINI_API_KEY")), GeminiModel: env("GEMINI_MODEL"),
		GeminiBaseURL: m.base("gemini", env("GOOGLE_GEMINI_BASE_URL")),
		GoogleKey:     env("GOOGLE_API_KEY"), UseVertex: isTrue(env("GOOGLE_GENAI_USE_VERTEXAI")),
		Project: env("GOOGLE_CLOUD_PROJECT"), Location: env("GOOGLE_CLOUD_LOCATION"),
		OpenAIKey: env(m.keyVariable("openai", "OPENAI_API_KEY")), OpenAIBaseURL: m.base("openai", env("OPENAI_BASE_URL")), OpenAIModel: env("OPENAI_MODEL"),
		AnthropicKey: env(m.keyVariable("anthropic", "ANTHROPIC_API_KEY")), AnthropicAuthToken: cmp.Or(env("ANTHROPIC_AUTH_TOKEN"), m.oauth),
		AnthropicBaseURL: m.base("anthropic", env("ANTHROPIC_BASE_URL")), AnthropicModel: env("ANTHROPIC_MODEL"),
		DashScopeKey: env(m.keyVariable("dashscope", "DASHSCOPE_API_KEY")), DashScopeBaseURL: m.base("dashscope", ""),
		OpenRouterKey: env(m.keyVariable("openrouter", "OPENROUTER_API_KEY")), OllamaHost: m.base("ollama", env("OLLAMA_HOST")),
	}
	return c
}

// keyVariable is the variable with a provider's key: the one that the settings
// name, else the usual one.
func (m *models) keyVariable(provider, usual string) string {
	return cmp.Or(m.set.Provider(provider).APIKeyEnv, usual)
}

func (m *models) base(provider, usual string) string {
	if url := m.set.Provider(provider).BaseURL; url != "" {
		return url
	}
	return usual
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// resolve returns the model of a name; "" is the configured or default one. It
// is offline.
func (m *models) resolve(name string) (agent.Model, error) {
	if name == "" {
		name = m.set.String(settings.Model)
	}
	m.mu.Lock()
	one, ok := m.built[name]
	if !ok {
		one = &building{}
		m.built[name] = one
	}
	named := m.named[name]
	m.mu.Unlock()
	one.mu.Lock() // whoever else wants this model waits for it, and nobody else
	defer one.mu.Unlock()
	if one.done {
		return one.model, nil
	}
	built, err := m.build(name, named)
	if err != nil {
		m.forget(name, one)
		return agent.Model{}, err
	}
	one.model, one.done = built, true
	return built, nil
}

// forget takes away a model that could not be built.
func (m *models) forget(name string, one *building) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.built[name] == one {
		delete(m.built, name)
	}
}

// building is a model that is built by the first who wants it.
type building struct {
	mu    sync.Mutex
	done  bool
	model agent.Model
}

// build makes the model of a name; named: flags, the user or the host chose it.
func (m *models) build(name string, named bool) (agent.Model, error) {
	t, err := m.target(name)
	if err != nil {
		return agent.Model{}, err
	}
	if t.Provider == "scripted" && !named {
		return agent.Model{}, fmt.Errorf("model %q: a file of a project, or a model, can't choose a model script; flags, settings, /model and hosts can", name)
	}
	p, err := m.provider(t)
	if err != nil {
		return agent.Model{}, err
	}
	return agent.Model{
		Provider: m.decorate(p), ProviderName: t.Vendor, Name: t.Model, Display: t.Model, Info: m.catalog.Lookup(t.Vendor, t.Model),
	}, nil
}

// probeLimit is how long a provider may take to say which models it has.
const probeLimit = 1500 * time.Millisecond

// probe asks the provider of a model whether it has it. It is an error only if
// the provider gives its list in time, and the model isn't in it.
func (m *models) probe(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	t, err := m.target(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	list, err := model.ListModels(ctx, m.http, t, m.headers(t))
	if err != nil || model.Listed(list, t.Model) {
		return nil //nolint:nilerr // nothing is known against it
	}
	text := t.Vendor + " does not list it"
	if near := model.NearModels(list, t.Model); len(near) > 0 {
		text += ", but " + strings.Join(near, ", ")
	}
	return errors.New(text)
}

// choose notes that the user or the host named a model, which agents, commands
// and the model itself may then name, too, whatever it is.
func (m *models) choose(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		m.named[name] = true
	}
}

func (m *models) target(name string) (model.Target, error) {
	if name == "" && m.local != nil {
		return *m.local, nil
	}
	if m.vendor == "" || strings.Contains(name, "/") {
		return m.catalog.Resolve(name, m.cred)
	}
	if m.forced || name == "" && m.hasVendor() {
		return m.atVendor(name)
	}
	t, err := m.catalog.Resolve(name, m.cred)
	if err != nil && name != "" {
		if other, verr := m.atVendor(name); verr == nil {
			return other, nil
		}
	}
	return t, err
}

// atVendor resolves a name without a provider at m.vendor; "" is the model
// preferred there.
func (m *models) atVendor(name string) (model.Target, error) {
	if name == "" {
		name = m.preferred()
	}
	if name == "" {
		name = m.catalog.Default(m.vendor)
	}
	return m.catalog.Resolve(m.vendor+"/"+name, m.cred)
}

// hasVendor reports whether m.vendor is set up.
func (m *models) hasVendor() bool {
	c := m.cred
	return m.vendor == "anthropic" && (c.AnthropicKey != "" || c.AnthropicAuthToken != "" || c.AnthropicBaseURL != "")
}

// preferred is the model that the environment names for m.vendor.
func (m *models) preferred() string {
	switch m.vendor {
	case "openai":
		return m.cred.OpenAIModel
	case "anthropic":
		return m.cred.AnthropicModel
	case "gemini", "vertex":
		return m.cred.GeminiModel
	}
	return ""
}

// decorate adds what every adapter gets: a recorder, which sees each attempt
// with its faults, a stall watch and retries.
func (m *models) decorate(p model.Provider) model.Provider {
	if m.record != nil {
		p = m.record(p)
	}
	p = model.StallWatch(p, m.set.Milliseconds(settings.IdleTimeoutMs))
	return model.Retry(p, model.RetryOptions{Budget: m.set.Milliseconds(settings.RetryBudgetMs)})
}

// display is a model's name as shown; "" is the configured one.
func (m *models) display(name string) string {
	built, err := m.resolve(name)
	if err != nil { // it was built when it was set
		return name
	}
	return built.Display
}

// known lists the models that the catalogue has of the provider in use, the one
// in use first.
func (m *models) known(current string) []model.Info {
	t, err := m.target(cmp.Or(current, m.set.String(settings.Model)))
	if err != nil {
		return nil
	}
	out := []model.Info{m.catalog.Lookup(t.Vendor, t.Model)}
	out[0].ID = t.Model
	for _, info := range m.catalog.Of(t.Vendor) {
		if info.ID != t.Model {
			out = append(out, info)
		}
	}
	return out
}

// headers are what requests to the provider of a target have besides its own.
func (m *models) headers(t model.Target) http.Header {
	headers := http.Header{}
	if m.agent != "" {
		headers.Set("User-Agent", m.agent)
	}
	for k, v := range m.set.Provider(t.Vendor).Headers {
		headers.Set(k, v)
	}
	if t.Provider == "anthropic" && len(m.betas) > 0 {
		headers.Set("anthropic-beta", strings.Join(m.betas, ","))
	}
	return headers
}

// provider builds the adapter of a target.
func (m *models) provider(t model.Target) (model.Provider, error) {
	headers := m.headers(t)
	switch t.Provider {
	case "gemini":
		o := gemini.Options{
			APIKey: t.Key, BaseURL: t.BaseURL, Vertex: t.Vertex, Project: t.Project, Location: t.Location,
			HTTPClient: m.http, Headers: headers,
		}
		if t.Vertex && t.Key == "" { // elsewhere the file is other programs'
			o.CredentialsFile = m.getenv("GOOGLE_APPLICATION_CREDENTIALS")
		}
		return gemini.New(o)
	case "openai":
		return openai.New(openai.Options{
			Name: t.Vendor, APIKey: t.Key, BaseURL: t.BaseURL, HTTPClient: m.http, Headers: headers,
			Organization: m.getenv("OPENAI_ORG_ID"), Project: m.getenv("OPENAI_PROJECT_ID"),
		})
	case "anthropic":
		return anthropic.New(anthropic.Options{
			APIKey: t.Key, AuthToken: t.AuthToken, BaseURL: t.BaseURL, HTTPClient: m.http, Headers: headers,
		})
	case "scripted":
		return newScripted(t.Model)
	}
	return nil, fmt.Errorf("no adapter for provider %q", t.Provider)
}

// newScripted plays a script file.
func newScripted(path string) (model.Provider, error) {
	script, err := scripted.Load(path)
	if err != nil {
		return nil, fail(ExitInput, "model script: %w", err)
	}
	return scripted.New(script, scripted.Options{}), nil
}

// keySource names the variable that the credentials of the start model come
// from; "none" if there are none.
func (m *models) keySource() string {
	t, err := m.target(m.set.String(settings.Model))
	switch {
	case err != nil:
	case t.Key != "":
		for _, name := range m.keyVariables(t) {
			if m.getenv(name) == t.Key {
				return name
			}
		}
	case t.AuthToken != "" && t.AuthToken == m.oauth:
		return "CLAUDE_CODE_OAUTH_TOKEN"
	case t.AuthToken != "":
		return "ANTHROPIC_AUTH_TOKEN"
	}
	return "none"
}

// keyVariables are the variables that the key of a target may come from, the
// first that has it first.
func (m *models) keyVariables(t model.Target) []string {
	openAI := m.keyVariable("openai", "OPENAI_API_KEY")
	switch {
	case t.Vertex:
		return []string{"GOOGLE_API_KEY"}
	case t.Provider == "gemini":
		return []string{m.keyVariable("gemini", "GEMINI_API_KEY"), "GOOGLE_API_KEY"}
	case t.Provider == "anthropic":
		return []string{m.keyVariable("anthropic", "ANTHROPIC_API_KEY")}
	case t.BaseURL != "" && t.BaseURL == m.cred.OpenAIBaseURL: // a gateway, whoever is behind it
		return []string{openAI}
	case t.Vendor == "dashscope":
		return []string{m.keyVariable("dashscope", "DASHSCOPE_API_KEY"), openAI}
	case t.Vendor == "openrouter":
		return []string{m.keyVariable("openrouter", "OPENROUTER_API_KEY"), openAI}
	}
	return []string{openAI}
}

func (m *models) close() { m.http.CloseIdleConnections() }

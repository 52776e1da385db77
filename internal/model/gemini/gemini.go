// Package gemini speaks the Gemini API (streamGenerateContent) with an API key,
// and the same on Vertex AI with an API key, a service-account file or
// application default credentials. Google's SDK (genai, with cloud.google.com/
// go/auth) resolves endpoint and credentials; the request itself is made here:
// the SDK's reflective codecs cost more per delta than everything else of a
// turn, and it does not keep a thought signature's exact text.
package gemini

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentcli/agent/internal/model"
)

// name is the provider's name in errors and signatures.
const name = "gemini"

const maxErrorBody = 64 << 10 // bytes of an error's body that are read

// Options configures a provider.
type Options struct {
	// APIKey is the key for the Gemini API, or, with Vertex and no Project, for
	// Vertex AI in express mode.
	APIKey string
	// BaseURL is the API's root without a version; empty: Google's for the
	// backend and Location.
	BaseURL string
	// APIVersion is v1beta (v1beta1 on Vertex) if empty.
	APIVersion string
	// Vertex chooses Vertex AI.
	Vertex bool
	// Project and Location are Vertex's; without Project it is the one that the
	// credentials name, without Location "global".
	Project  string
	Location string
	// CredentialsFile is a Google credentials file for Vertex. Without it (and
	// without APIKey) application default credentials are looked for where
	// Google's tools keep them, at the first Stream: GOOGLE_APPLICATION_CREDENTIALS,
	// gcloud's file in the home directory, the metadata server. Google's auth
	// library itself reads GOOGLE_CLOUD_QUOTA_PROJECT and
	// GOOGLE_CLOUD_UNIVERSE_DOMAIN for Vertex; nothing else is taken from the
	// environment.
	CredentialsFile string
	// HTTPClient carries the requests, also those for access tokens; it needs no
	// timeout. Redirects are not followed whatever it says, for they would carry
	// the key elsewhere. nil: a client without a proxy.
	HTTPClient *http.Client
	// Headers are set on each request to the model.
	Headers http.Header
}

// New returns the provider that o describes. It does no I/O; for Vertex the
// credentials are read at the first Stream. Its errors are of kind
// [model.ErrConfigured].
func New(o Options) (model.Provider, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &provider{options: o, gate: make(chan struct{}, 1)}
	p.options.HTTPClient = httpClient(o.HTTPClient)
	p.options.Headers = o.Headers.Clone()
	if o.Vertex && o.APIKey == "" {
		return p, nil
	}
	var err error
	if p.ready, err = connect(p.options, nil, p.options.Project); err != nil {
		return nil, err
	}
	return p, nil
}

func (o Options) check() error {
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return configError("the base URL is not usable: it must begin with http:// or https:// and name a host")
		}
	}
	switch {
	case !o.Vertex && o.APIKey == "":
		return configError("no API key: set GEMINI_API_KEY, or use Vertex AI (GOOGLE_GENAI_USE_VERTEXAI=true with GOOGLE_CLOUD_PROJECT)")
	case !o.Vertex && (o.Project != "" || o.Location != "" || o.CredentialsFile != ""):
		return configError("project, location and credentials file are for Vertex AI only: set GOOGLE_GENAI_USE_VERTEXAI=true to use it")
	case o.APIKey != "" && o.CredentialsFile != "":
		return configError("an API key and a credentials file exclude each other: give one of them")
	}
	return nil
}

func configError(msg string) *model.Error {
	return &model.Error{Kind: model.ErrConfigured, Provider: name, Message: msg}
}

// httpClient returns a copy of c that follows no redirects and has a transport.
func httpClient(c *http.Client) *http.Client {
	var own http.Client
	if c != nil {
		own = *c
	}
	if t, ok := http.DefaultTransport.(*http.Transport); ok && own.Transport == nil {
		t = t.Clone()
		t.Proxy = nil // would read the environment
		own.Transport = t
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// provider implements [model.Provider].
type provider struct {
	options Options
	cache   model.EncodingCache[*encoded]

	gate  chan struct{} // held by who sets ready
	ready *endpoint     // nil until the credentials are there
}

// endpoint returns where requests go, with credentials. A failure is not
// remembered: the next call tries again.
func (p *provider) endpoint(ctx context.Context) (*endpoint, error) {
	select {
	case p.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.gate }()
	if p.ready == nil {
		e, err := connectVertex(ctx, p.options)
		if err != nil {
			return nil, err
		}
		p.ready = e
	}
	return p.ready, nil
}

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	body, err := p.encode(req)
	if err != nil {
		return err
	}
	rctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.stream(rctx, cancel, req, body, emit); err != nil {
		return failure(ctx, err)
	}
	return nil
}

// stream sends body and reads the answer. cancel ends ctx.
func (p *provider) stream(ctx context.Context, cancel func(), req *model.Request, body []byte, emit func(model.Delta)) error {
	e, err := p.endpoint(ctx)
	if err != nil {
		return err
	}
	hr, err := e.request(ctx, req.Model, body)
	if err != nil {
		return err
	}
	resp, err := e.client.Do(hr)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode >= 300 {
		// A cut body still says something; the status says the most.
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return model.HTTPError(name, resp, said)
	}
	return decode(resp, req, emit, cancel)
}

// failure returns what Stream reports for err: the cause of ctx if that ended.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var own *model.Error
	if errors.As(err, &own) {
		return own
	}
	if t := tokenError(err); t != nil {
		return t
	}
	return model.NetworkError(name, err)
}

// request makes the HTTP request for one answer of the model.
func (e *endpoint) request(ctx context.Context, modelName string, body []byte) (*http.Request, error) {
	path, err := e.path(modelName)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.root+path+":streamGenerateContent?alt=sse", bytes.NewReader(body))
	if err != nil {
		return nil, configError("the base URL or the model's name is not usable in a URL")
	}
	hr.Header = e.header.Clone()
	return hr, nil
}

// path returns the model's resource name below the endpoint's root.
func (e *endpoint) path(modelName string) (string, error) {
	m := strings.TrimPrefix(strings.Trim(modelName, "/"), "models/")
	if m == "" || strings.Contains(m, "..") {
		return "", configError("the model's name is empty or not usable in a URL")
	}
	parts := strings.Split(m, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	escaped := strings.Join(parts, "/")
	switch {
	case !e.vertex && len(parts) == 1:
		return "models/" + escaped, nil
	case !e.vertex: // tunedModels/x
		return escaped, nil
	case parts[0] == "projects":
		return escaped, nil
	case parts[0] == "publishers":
		return e.scope + escaped, nil
	case len(parts) == 2: // publisher/model
		return e.scope + "publishers/" + parts[0] + "/models/" + parts[1], nil
	}
	return e.scope + "publishers/google/models/" + escaped, nil
}

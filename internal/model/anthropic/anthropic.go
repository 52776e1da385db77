// Package anthropic speaks the Anthropic Messages API (POST v1/messages,
// streamed). The vendor's SDK is the client: base URL, credentials, headers.
// Its retries are off ([model.Retry] decides those), it takes nothing from the
// environment, and bodies and events are encoded and decoded here, because its
// reflective codecs cost more per delta than everything else of a turn.
package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/agentcli/agent/internal/model"
)

// name is the provider's name in errors and signatures.
const name = "anthropic"

const (
	defaultBaseURL = "https://api.anthropic.com/"
	maxErrorBody   = 64 << 10 // bytes of an error's body that are read
)

// Options configures a provider. Nothing else is consulted: no environment, no
// files.
type Options struct {
	// APIKey is sent as x-api-key; AuthToken, used if there is no APIKey, as a
	// bearer token. Both may be empty only if BaseURL is set (a gateway).
	APIKey    string
	AuthToken string
	// BaseURL is the API's root, without v1; empty: Anthropic's.
	BaseURL string
	// HTTPClient carries the requests; it needs no timeout. Redirects are not
	// followed whatever it says, for they would carry the key elsewhere. nil: a
	// client without a proxy.
	HTTPClient *http.Client
	// Headers are set on each request, over those of the SDK.
	Headers http.Header
	// Betas are sent in the anthropic-beta header.
	Betas []string
}

// New returns the provider that o describes. It does no I/O. Its errors are of
// kind [model.ErrConfigured].
func New(o Options) (model.Provider, error) {
	base, err := baseURL(o)
	if err != nil {
		return nil, err
	}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(base),
		option.WithHTTPClient(httpClient(o.HTTPClient)),
		option.WithMaxRetries(0),
		option.WithMiddleware(refuseStatus),
		option.WithHeader("Accept", "text/event-stream"),
	}
	switch {
	case o.APIKey != "":
		opts = append(opts, option.WithAPIKey(o.APIKey))
	case o.AuthToken != "":
		opts = append(opts, option.WithAuthToken(o.AuthToken))
	}
	if len(o.Betas) > 0 {
		opts = append(opts, option.WithHeader("anthropic-beta", strings.Join(o.Betas, ",")))
	}
	for key, values := range o.Headers {
		opts = append(opts, option.WithHeaderDel(key))
		for _, v := range values {
			opts = append(opts, option.WithHeaderAdd(key, v))
		}
	}
	return &provider{client: sdk.NewClient(opts...)}, nil
}

func baseURL(o Options) (string, error) {
	if o.BaseURL == "" {
		if o.APIKey == "" && o.AuthToken == "" {
			return "", configError("no credentials: set an API key (ANTHROPIC_API_KEY) or an auth token (ANTHROPIC_AUTH_TOKEN)")
		}
		return defaultBaseURL, nil
	}
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", configError("the base URL is not usable: it must begin with http:// or https:// and name a host")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") + "/"
	return u.String(), nil
}

func configError(msg string) *model.Error {
	return &model.Error{Kind: model.ErrConfigured, Provider: name, Message: msg}
}

// httpClient returns a copy of c that follows no redirects.
func httpClient(c *http.Client) *http.Client {
	var own http.Client
	if c != nil {
		own = *c
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.Proxy = nil // would read the environment
		own.Transport = t
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// refuseStatus makes a typed error of any answer that is not a success, before
// the SDK reads all of its body.
func refuseStatus(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is lost
	// A cut body still says something; the status says the most.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, model.HTTPError(name, resp, body)
}

// provider implements [model.Provider].
type provider struct {
	client sdk.Client
	cache  model.EncodingCache[*encoded]
}

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	body, err := p.encode(req)
	if err != nil {
		return err
	}
	rctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var resp *http.Response
	if err := p.client.Post(rctx, "v1/messages", body, &resp); err != nil {
		return failure(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if err := model.CheckEventStream(name, resp); err != nil {
		return failure(ctx, err)
	}
	if err := decode(resp, req, emit); err != nil {
		return failure(ctx, err)
	}
	model.Drain(resp.Body, cancel)
	return nil
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
	return model.NetworkError(name, err)
}

// Package openai speaks the OpenAI chat-completions API: OpenAI itself and the
// many servers that imitate it (DashScope, OpenRouter, vLLM, Ollama, llama.cpp,
// LM Studio and others). It is a [model.Provider] and nothing more: it neither
// retries (model.Retry does), nor reads the environment, nor keeps a
// conversation.
//
// The vendor's SDK is the HTTP client: addresses, authentication, headers. What
// goes through it is encoded and decoded here, because its reflective codec
// costs more per streamed token than the rest of the program together.
//
// Servers differ, and models on local servers even more so. Optional
// parameters that a server refuses are left out from then on (quirks.go); tool
// calls that come broken, or as text, are recovered (the tolerant_*.go files,
// pure functions of the answer's text and the request's tools).
//
// Stop reasons: "stop" is end_turn, or tool_use if the answer holds calls;
// "length" is max_tokens; "content_filter" and a refusal are refusal if there
// is text, else model.ErrBlocked; anything unknown counts as "stop".
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/agentcli/agent/internal/model"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	maxErrorBody  = 64 << 10 // bytes of an error answer that are read
	maxPlainBody  = 64 << 20 // bytes of an answer that is not streamed
	finishedGrace = 2 * time.Second
)

// Options configure a provider.
type Options struct {
	// Name stands in errors: "openai" (the default), "dashscope", "ollama", ...
	Name string
	// APIKey is sent as a bearer token; empty: no Authorization header.
	APIKey string
	// BaseURL is the address up to and without "/chat/completions"; empty:
	// DefaultBaseURL. Its query, if any, is sent with each request.
	BaseURL string
	// HTTPClient does the requests; nil: http.DefaultClient. It must not limit
	// the time of a whole request, which may stream for long.
	HTTPClient *http.Client
	// Headers are added to each request and replace what would be sent under
	// the same name.
	Headers http.Header
	// Organization and Project are OpenAI's headers of that name; may be empty.
	Organization, Project string
}

// New returns the provider for o. It does not touch the network. The error says
// what is wrong with o. The provider may be used concurrently.
func New(o Options) (model.Provider, error) {
	if o.Name == "" {
		o.Name = "openai"
	}
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, &model.Error{Kind: model.ErrConfigured, Provider: o.Name, Message: err.Error(), Err: err}
	}
	// Not sdk.NewClient: it reads OPENAI_* from the environment by itself.
	return &provider{
		name:    o.Name,
		client:  &sdk.Client{Options: clientOptions(o, base)},
		dialect: dialectOf(strings.ToLower(base.Hostname())),
	}, nil
}

func parseBase(raw string) (*url.URL, error) {
	if raw == "" {
		raw = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("base URL is not usable: it must begin with http:// or https:// and name a host")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") + "/"
	u.RawPath = ""
	return u, nil
}

func clientOptions(o Options, base *url.URL) []option.RequestOption {
	plain := *base
	plain.RawQuery = ""
	opts := []option.RequestOption{
		option.WithBaseURL(plain.String()),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream"),
	}
	for name, values := range base.Query() {
		for _, v := range values {
			opts = append(opts, option.WithQueryAdd(name, v))
		}
	}
	if o.HTTPClient != nil {
		opts = append(opts, option.WithHTTPClient(o.HTTPClient))
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	if o.Organization != "" {
		opts = append(opts, option.WithOrganization(o.Organization))
	}
	if o.Project != "" {
		opts = append(opts, option.WithProject(o.Project))
	}
	for name, values := range o.Headers {
		opts = append(opts, option.WithHeaderDel(name))
		for _, v := range values {
			opts = append(opts, option.WithHeaderAdd(name, v))
		}
	}
	return opts
}

type provider struct {
	name     string
	client   *sdk.Client
	dialect  dialect
	cache    model.EncodingCache[*encoded]
	learnt   learntQuirks
	bodySize atomic.Int64 // of the last request, to size the next one
}

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request, emit func(model.Delta)) error {
	// Its end frees the connection, also when the answer was left half read.
	reqCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := p.open(reqCtx, req)
	if err == nil {
		defer resp.Body.Close()
		err = p.read(resp, newAnswer(p.name, req, emit), cancel)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// open sends req until the server takes it or refuses it for another reason
// than an optional parameter.
func (p *provider) open(ctx context.Context, req *model.Request) (*http.Response, error) {
	for {
		q := p.learnt.of(req.Model)
		resp, err := p.send(ctx, p.body(req, q))
		var refused *refusal
		if !errors.As(err, &refused) {
			return resp, err
		}
		drop := refused.quirk(q, req)
		if drop == 0 {
			return nil, refused.err
		}
		p.learnt.add(req.Model, drop)
	}
}

// send does one request. A status other than success is a *refusal.
func (p *provider) send(ctx context.Context, body []byte) (*http.Response, error) {
	var got *http.Response
	// The answer is taken before the SDK sees it, which would read an error
	// body of any size and decode it by reflection.
	capture := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		resp, err := next(r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 300 {
			return nil, p.refusal(resp)
		}
		got = resp
		return resp, nil
	}
	var raw *http.Response
	err := p.client.Execute(ctx, http.MethodPost, "chat/completions", body, &raw, option.WithMiddleware(capture))
	if err != nil {
		if got != nil {
			got.Body.Close()
		}
		var refused *refusal
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, model.NetworkError(p.name, err)
	}
	return got, nil
}

func (p *provider) refusal(resp *http.Response) *refusal {
	defer resp.Body.Close()
	// A body that breaks off still says something.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return &refusal{err: model.HTTPError(p.name, resp, body), body: body}
}

// read decodes the answer. cancel ends the request; it is called when a server
// that has finished its answer keeps the stream open.
func (p *provider) read(resp *http.Response, a *answer, cancel func()) error {
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "application/json" {
		return p.readPlain(resp, a)
	}
	if err := model.CheckEventStream(p.name, resp); err != nil {
		return err
	}
	s := model.NewSSE(resp.Body)
	s.SetComment(a.ping)
	var grace *time.Timer // runs once the answer is finished
	defer func() {
		if grace != nil {
			grace.Stop()
		}
	}()
	for s.Next() {
		data := bytes.TrimSpace(s.Data())
		if string(data) == "[DONE]" {
			err := a.end()
			model.Drain(resp.Body, cancel)
			return err
		}
		if err := a.event(resp, data); err != nil {
			return err
		}
		if grace == nil && a.finish != "" {
			grace = time.AfterFunc(finishedGrace, cancel)
		}
	}
	switch err := s.Err(); {
	case a.finish != "":
		return a.end()
	case err != nil:
		a.flushUsage()
		return model.NetworkError(p.name, err)
	}
	return a.incomplete()
}

// readPlain takes the answer of a server that does not stream.
func (p *provider) readPlain(resp *http.Response, a *answer) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPlainBody))
	if err != nil {
		return model.NetworkError(p.name, err)
	}
	if err := a.event(resp, body); err != nil {
		return err
	}
	if a.finish == "" {
		return a.incomplete()
	}
	return a.end()
}

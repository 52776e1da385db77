package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	"google.golang.org/genai"

	"github.com/agentcli/agent/internal/model"
)

const (
	scope        = "https://www.googleapis.com/auth/cloud-platform"
	tokenTimeout = 30 * time.Second // for one request for an access token
	quotaHeader  = "X-Goog-User-Project"
	geminiURL    = "https://generativelanguage.googleapis.com/"
)

// endpoint is where requests go, and with what.
type endpoint struct {
	client *http.Client
	header http.Header
	root   string // ends in the API version and a slash
	scope  string // projects/P/locations/L/ on Vertex, or empty
	vertex bool
}

// connect resolves the endpoint. Every field that the SDK would else fill from
// the environment is given.
func connect(o Options, creds *auth.Credentials, project string) (*endpoint, error) {
	cc := &genai.ClientConfig{
		APIKey:      o.APIKey,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  o.HTTPClient,
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL, APIVersion: o.APIVersion},
	}
	location := o.Location
	if o.Vertex {
		cc.Backend = genai.BackendVertexAI
		cc.Credentials = creds
		if location == "" && (project != "" || o.APIKey == "") {
			location = "global"
		}
		cc.Project, cc.Location = project, location
		if o.BaseURL == "" {
			cc.HTTPOptions.BaseURL = vertexURL(location)
		}
	} else if o.BaseURL == "" {
		cc.HTTPOptions.BaseURL = geminiURL
	}
	client, err := genai.NewClient(context.Background(), cc)
	if err != nil {
		return nil, configError("the endpoint cannot be resolved: check API key, project and location") // err quotes the key
	}
	resolved := client.ClientConfig()
	e := &endpoint{
		client: resolved.HTTPClient,
		vertex: o.Vertex,
		root:   strings.TrimRight(resolved.HTTPOptions.BaseURL, "/") + "/" + resolved.HTTPOptions.APIVersion + "/",
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
	}
	if o.APIKey != "" {
		e.header.Set("X-Goog-Api-Key", o.APIKey)
	}
	if project != "" {
		e.scope = "projects/" + project + "/locations/" + location + "/"
	}
	for key, values := range o.Headers {
		e.header[http.CanonicalHeaderKey(key)] = values
	}
	return e, nil
}

// vertexURL is the endpoint of a location, "" for express mode.
func vertexURL(location string) string {
	switch location {
	case "", "global":
		return "https://aiplatform.googleapis.com/"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com/"
	}
	return "https://" + location + "-aiplatform.googleapis.com/"
}

// connectVertex finds the credentials and connects with them.
func connectVertex(ctx context.Context, o Options) (*endpoint, error) {
	creds, err := findCredentials(o)
	if err != nil {
		return nil, err
	}
	project := o.Project
	if project == "" {
		if project, err = creds.ProjectID(ctx); err != nil || project == "" {
			return nil, configError("Vertex AI needs a project and the credentials name none: set GOOGLE_CLOUD_PROJECT")
		}
	}
	authorised := *o.HTTPClient
	if err := httptransport.AddAuthorizationMiddleware(&authorised, creds); err != nil {
		return nil, configError("the credentials cannot be used: " + err.Error())
	}
	o.HTTPClient = &authorised
	e, err := connect(o, creds, project)
	if err != nil {
		return nil, err
	}
	if quota, err := creds.QuotaProjectID(ctx); err == nil && quota != "" && e.header.Get(quotaHeader) == "" {
		e.header.Set(quotaHeader, quota)
	}
	return e, nil
}

// findCredentials reads o's credentials file, or finds the default ones.
func findCredentials(o Options) (*auth.Credentials, error) {
	opts := &credentials.DetectOptions{
		Scopes:              []string{scope},
		Client:              &http.Client{Transport: o.HTTPClient.Transport, Timeout: tokenTimeout},
		DisableAsyncRefresh: true, // no goroutine without an owner
		Logger:              slog.New(slog.DiscardHandler),
	}
	if o.CredentialsFile == "" {
		creds, err := credentials.DetectDefault(opts)
		if err != nil {
			return nil, configError("no Google credentials found: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file")
		}
		return creds, nil
	}
	data, err := os.ReadFile(o.CredentialsFile)
	if err != nil {
		why := err
		var path *fs.PathError
		if errors.As(err, &path) {
			why = path.Err
		}
		return nil, configError("reading the Google credentials file " + o.CredentialsFile + ": " + why.Error())
	}
	var file struct {
		Type credentials.CredType `json:"type"`
	}
	if err := json.Unmarshal(data, &file); err != nil || file.Type == "" {
		return nil, configError("the Google credentials file " + o.CredentialsFile + " is not one: it must be JSON with a \"type\"")
	}
	creds, err := credentials.NewCredentialsFromJSON(file.Type, data, opts)
	if err != nil {
		return nil, configError("the Google credentials file " + o.CredentialsFile + " cannot be used: its content is incomplete or of a type that is not supported")
	}
	return creds, nil
}

// tokenError makes the error of a refused access token; nil if err is none.
func tokenError(err error) *model.Error {
	var refused *auth.Error
	if !errors.As(err, &refused) {
		return nil
	}
	e := model.HTTPError(name, refused.Response, refused.Body)
	if e.Status < 500 && e.Kind != model.ErrRateLimit {
		e.Kind = model.ErrAuth
	}
	e.Message = "getting a Google access token failed: " + e.Message
	e.Err = err
	return e
}

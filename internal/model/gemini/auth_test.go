package gemini

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

// vertex is a fake Vertex AI with its token server.
type vertex struct {
	*httptest.Server
	client *http.Client
	tokens atomic.Int32
	refuse atomic.Bool // tokens are refused
	paths  chan string
	heads  chan http.Header
}

func newVertex(t *testing.T) *vertex {
	t.Helper()
	v := &vertex{paths: make(chan string, 10), heads: make(chan http.Header, 10)}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			v.token(w, r)
			return
		}
		v.paths <- r.URL.RequestURI()
		v.heads <- r.Header
		events(helloChunk, helloEnd)(w, r)
	}))
	t.Cleanup(v.Close)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	v.client = &http.Client{Transport: tr}
	return v
}

func (v *vertex) token(w http.ResponseWriter, r *http.Request) {
	v.tokens.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if v.refuse.Load() {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`)
		return
	}
	if err := r.ParseForm(); err != nil || r.Form.Get("assertion") == "" && r.Form.Get("refresh_token") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, `{"access_token":"ya29.fake","token_type":"Bearer","expires_in":3600}`)
}

// serviceAccount writes a key file whose tokens come from v.
func (v *vertex) serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, map[string]string{
		"type": "service_account", "project_id": "from-the-file", "private_key_id": "1", "client_email": "a@b.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": v.URL + "/token",
	})
}

func write(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestVertexWithAServiceAccountFile(t *testing.T) {
	t.Parallel()
	v := newVertex(t)
	p, err := New(Options{Vertex: true, Location: "europe-west4", CredentialsFile: v.serviceAccount(t), BaseURL: v.URL, HTTPClient: v.client})
	if err != nil {
		t.Fatal(err)
	}
	if v.tokens.Load() != 0 {
		t.Error("New asked for a token")
	}
	for range 2 {
		a, err := run(t, p, hello())
		if err != nil {
			t.Fatal(err)
		}
		wantBlocks(t, a.blocks, model.Text{Text: "Hello world"})
		if got, want := <-v.paths, "/v1beta1/projects/from-the-file/locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"; got != want {
			t.Errorf("path %s, want %s", got, want)
		}
		if h := <-v.heads; h.Get("Authorization") != "Bearer ya29.fake" || h.Get("X-Goog-Api-Key") != "" {
			t.Errorf("headers %v", h)
		}
	}
	if n := v.tokens.Load(); n != 1 {
		t.Errorf("%d tokens for two requests", n)
	}
}

func TestVertexRefusedTokenIsAnAuthError(t *testing.T) {
	t.Parallel()
	v := newVertex(t)
	v.refuse.Store(true)
	p, err := New(Options{Vertex: true, Project: "p", CredentialsFile: v.serviceAccount(t), BaseURL: v.URL, HTTPClient: v.client})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run(t, p, hello())
	if e := wantKind(t, err, model.ErrAuth); e.Temporary() || !strings.Contains(e.Message, "access token") {
		t.Error(e)
	}
	v.refuse.Store(false)
	if _, err := run(t, p, hello()); err != nil {
		t.Errorf("after the server came to its senses: %v", err)
	}
}

func TestVertexCredentialsFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	v := newVertex(t)
	file := filepath.Join(t.TempDir(), "later.json")
	p, err := New(Options{Vertex: true, CredentialsFile: file, BaseURL: v.URL, HTTPClient: v.client})
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{"": "reading", "{}": "type", "secret": "type", `{"type":"authorized_user"}`: "project"} {
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(file)
		}
		_, err := run(t, p, hello())
		if e := wantKind(t, err, model.ErrConfigured); strings.Contains(e.Error(), "secret") || !strings.Contains(e.Message, want) && !strings.Contains(e.Message, "cannot be used") {
			t.Errorf("%q: %v", content, e)
		}
	}
	// It is looked at anew: once it is right, it works.
	good, err := os.ReadFile(v.serviceAccount(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, p, hello()); err != nil {
		t.Error(err)
	}
}

func TestVertexWithDefaultCredentials(t *testing.T) {
	// Not parallel: the place of the default credentials is in the environment.
	v := newVertex(t)
	// User credentials have their token server fixed; a service account serves.
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", v.serviceAccount(t))
	t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "payer")
	p, err := New(Options{Vertex: true, Project: "mine", BaseURL: v.URL, HTTPClient: v.client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, p, hello()); err != nil {
		t.Fatal(err)
	}
	if got := <-v.paths; !strings.HasPrefix(got, "/v1beta1/projects/mine/locations/global/publishers/google/models/") {
		t.Error(got)
	}
	if h := <-v.heads; h.Get("Authorization") != "Bearer ya29.fake" || h.Get("X-Goog-User-Project") != "payer" {
		t.Error(h)
	}
}

func TestVertexWithAnAPIKey(t *testing.T) {
	t.Parallel()
	v := newVertex(t)
	for project, want := range map[string]string{
		"":  "/v1/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
		"p": "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
	} {
		p, err := New(Options{Vertex: true, APIKey: "express", Project: project, APIVersion: "v1", BaseURL: v.URL, HTTPClient: v.client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, p, hello()); err != nil {
			t.Fatal(err)
		}
		if got := <-v.paths; got != want {
			t.Errorf("path %s, want %s", got, want)
		}
		if h := <-v.heads; h.Get("X-Goog-Api-Key") != "express" || h.Get("Authorization") != "" {
			t.Error(h)
		}
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o     Options
		model string
		want  string
	}{
		{Options{APIKey: "k"}, "gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro"},
		{Options{APIKey: "k", BaseURL: "http://localhost:1/gate/"}, "models/x", "http://localhost:1/gate/v1beta/models/x"},
		{Options{APIKey: "k", APIVersion: "v1alpha"}, "tunedModels/x", "https://generativelanguage.googleapis.com/v1alpha/tunedModels/x"},
		{Options{APIKey: "k"}, "a b?c", "https://generativelanguage.googleapis.com/v1beta/models/a%20b%3Fc"},
		{Options{Vertex: true, APIKey: "k"}, "x", "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/x"},
		{Options{Vertex: true, APIKey: "k", Project: "p", Location: "eu"}, "x", "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/locations/eu/publishers/google/models/x"},
		{Options{Vertex: true, APIKey: "k", Project: "p", Location: "us-east1"}, "publishers/meta/models/y", "https://us-east1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-east1/publishers/meta/models/y"},
		{Options{Vertex: true, APIKey: "k", Project: "p"}, "meta/y", "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/meta/models/y"},
		{Options{Vertex: true, APIKey: "k", Project: "p"}, "projects/q/locations/z/endpoints/1", "https://aiplatform.googleapis.com/v1beta1/projects/q/locations/z/endpoints/1"},
	} {
		p, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		e := p.(*provider).ready
		path, err := e.path(c.model)
		if got := e.root + path; err != nil || got != c.want {
			t.Errorf("%s (%v), want %s", got, err, c.want)
		}
	}
	e := &endpoint{}
	for _, m := range []string{"", "/", "../x"} {
		_, err := e.path(m)
		wantKind(t, err, model.ErrConfigured)
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {APIKey: "k", Project: "p"}, {APIKey: "k", Location: "l"}, {APIKey: "k", CredentialsFile: "f"}, {Vertex: true, APIKey: "k", CredentialsFile: "f"},
		{APIKey: "secret-key", BaseURL: "localhost:80"}, {APIKey: "secret-key", BaseURL: "ftp://x"},
	} {
		_, err := New(o)
		if e := wantKind(t, err, model.ErrConfigured); strings.Contains(e.Error(), "secret-key") {
			t.Error(e)
		}
	}
}

func TestOptionsRule(t *testing.T) {
	// Not parallel: it sets the environment, which must not matter.
	for k, v := range map[string]string{
		"GEMINI_API_KEY": "env1", "GOOGLE_API_KEY": "env2", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "env3",
		"GOOGLE_CLOUD_LOCATION": "env4", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1", "GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:1",
	} {
		t.Setenv(k, v)
	}
	var said bytes.Buffer // the SDK remarks on the environment in the standard log
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	got := map[string]string{}
	for name, o := range map[string]Options{"gemini": {APIKey: "own"}, "vertex": {Vertex: true, APIKey: "own"}, "project": {Vertex: true, APIKey: "own", Project: "p"}} {
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		e := p.(*provider).ready
		got[name] = e.root + e.scope + " " + e.header.Get("X-Goog-Api-Key")
	}
	want := map[string]string{
		"gemini":  "https://generativelanguage.googleapis.com/v1beta/ own",
		"vertex":  "https://aiplatform.googleapis.com/v1beta1/ own",
		"project": "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/ own",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(said.String(), "env1") || strings.Contains(said.String(), "own") {
		t.Errorf("the SDK logs keys: %s", said.String())
	}
}

func TestOwnHeadersAreSent(t *testing.T) {
	t.Parallel()
	v := newVertex(t)
	p, err := New(Options{APIKey: "k", BaseURL: v.URL, HTTPClient: v.client, Headers: http.Header{"user-agent": {"agent/1"}, "X-Own": {"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, p, hello()); err != nil {
		t.Fatal(err)
	}
	h := <-v.heads
	if h.Get("User-Agent") != "agent/1" || strings.Join(h.Values("X-Own"), ",") != "a,b" || h.Get("Content-Type") != "application/json" {
		t.Error(h)
	}
}

func TestWaitingForCredentialsEndsWithTheContext(t *testing.T) {
	t.Parallel()
	p := &provider{options: Options{Vertex: true}, gate: make(chan struct{}, 1)}
	p.gate <- struct{}{} // somebody is at it
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := p.Stream(ctx, hello(), func(model.Delta) {}); !errors.Is(err, cause) {
		t.Error(err)
	}
}

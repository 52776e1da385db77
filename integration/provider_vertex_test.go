package integration

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// serviceAccount is a key file whose tokens come from tokenURL.
func serviceAccount(t testing.TB, tokenURL string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "my-project", "private_key_id": "k1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "robot@my-project.iam.gserviceaccount.com", "client_id": "1", "token_uri": tokenURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// tokenServer gives out access tokens, or refuses with a status.
func tokenServer(t testing.TB, status int) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	return local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if status != http.StatusOK || !strings.HasPrefix(r.FormValue("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer") {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`))
			return
		}
		_, _ = w.Write([]byte(`{"access_token": "token-of-the-test", "token_type": "Bearer", "expires_in": 3600}`))
	})), asked
}

// TestVertexWithAServiceAccount runs a turn with a tool through Vertex AI: the
// token is fetched once, requests go to the project's path with it.
func TestVertexWithAServiceAccount(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a.txt", "one\n")
	tokens, asked := tokenServer(t, http.StatusOK)
	base, log := p.serve(`
		{"emit": [{"thinking": "Look."}, {"tool": "read_file", "input": {"file_path": "a.txt"}}]}
		{"when": {"tool": "read_file"}, "emit": [{"text": "one"}]}`)
	seen := newTap(t, base)
	env := []string{
		"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_CLOUD_PROJECT=my-project", "GOOGLE_CLOUD_LOCATION=europe-west1",
		"GOOGLE_APPLICATION_CREDENTIALS=" + p.write("key.json", serviceAccount(t, tokens)), "GOOGLE_GEMINI_BASE_URL=" + seen.url,
	}
	a := p.ask("read it", "vertex/gemini-test", env)
	refused(t, log)
	if a.exit.Code != 0 || a.result.String("result") != "one" {
		t.Fatalf("exit %d: %v", a.exit.Code, a.result)
	}
	last := seen.last(t, paths["gemini"])
	if want := "/v1beta1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-test:streamGenerateContent"; last.path != want {
		t.Errorf("path %s, want %s", last.path, want)
	}
	if got := last.header.Get("Authorization"); got != "Bearer token-of-the-test" {
		t.Errorf("authorisation %q", got)
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests for a token, want 1", asked.Load())
	}
}

// TestVertexWithDefaultCredentials finds what gcloud leaves in the home folder.
func TestVertexWithDefaultCredentials(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	tokens, asked := tokenServer(t, http.StatusOK)
	dir := filepath.Join(p.home, ".config", "gcloud")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "application_default_credentials.json"), []byte(serviceAccount(t, tokens)), 0o600); err != nil {
		t.Fatal(err)
	}
	base, log := p.serve(hello)
	seen := newTap(t, base)
	a := p.ask("hi", "vertex/gemini-test", []string{"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_CLOUD_PROJECT=other", "GOOGLE_GEMINI_BASE_URL=" + seen.url})
	refused(t, log)
	if a.exit.Code != 0 || asked.Load() != 1 {
		t.Fatalf("exit %d after %d requests for a token: %v", a.exit.Code, asked.Load(), a.result)
	}
	if path := seen.last(t, paths["gemini"]).path; !strings.Contains(path, "/projects/other/locations/global/") {
		t.Errorf("path %s", path)
	}
}

// TestVertexARefusedTokenIsAnAuthenticationError ends the run with exit 41.
func TestVertexARefusedTokenIsAnAuthenticationError(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	tokens, asked := tokenServer(t, http.StatusBadRequest)
	env := []string{
		"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_CLOUD_PROJECT=my-project",
		"GOOGLE_APPLICATION_CREDENTIALS=" + p.write("key.json", serviceAccount(t, tokens)), "GOOGLE_GEMINI_BASE_URL=http://" + unused(t),
	}
	a := p.ask("hi", "vertex/gemini-test", env)
	if a.exit.Code != 41 || asked.Load() != 1 {
		t.Errorf("exit %d after %d requests for a token: %v", a.exit.Code, asked.Load(), a.result)
	}
	mentions(t, "the error", a.result.String("result"), "access token")
}

// TestACredentialsFileDoesNotDisturbAnAPIKey has both set, as on machines with
// gcloud: the key is for the Gemini API, the file for other programs.
func TestACredentialsFileDoesNotDisturbAnAPIKey(t *testing.T) {
	t.Parallel()
	p, pr := newPlace(t), providers[0]
	base, _ := p.serve(hello)
	file := p.write("key.json", `{"type": "service_account"}`)
	proc, exit := p.run(testkit.Spec{
		Args: []string{"-p", "hi", "--model", pr.model}, Env: append(pr.env(base), "GOOGLE_APPLICATION_CREDENTIALS="+file, "GOOGLE_CLOUD_PROJECT=p"),
	})
	if exit.Code != 0 || proc.Output() != "hello\n" {
		t.Errorf("exit %d: %s%s", exit.Code, proc.Output(), proc.Stderr())
	}
}

package mcp

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// hidden stands where a secret is.
const hidden = "***"

// Public returns the configuration as JSON for a host to show: values of the
// environment and of headers, passwords and query values in URLs, and arguments
// that look like secrets are hidden.
func (c *Config) Public() json.RawMessage {
	out := struct {
		Type         string            `json:"type"`
		Name         string            `json:"name,omitempty"`
		Command      string            `json:"command,omitempty"`
		Args         []string          `json:"args,omitempty"`
		Env          map[string]string `json:"env,omitempty"`
		Cwd          string            `json:"cwd,omitempty"`
		URL          string            `json:"url,omitempty"`
		Headers      map[string]string `json:"headers,omitempty"`
		TCP          string            `json:"tcp,omitempty"`
		Timeout      int64             `json:"timeout,omitempty"`
		Trust        bool              `json:"trust,omitempty"`
		Description  string            `json:"description,omitempty"`
		IncludeTools []string          `json:"includeTools,omitempty"`
		ExcludeTools []string          `json:"excludeTools,omitempty"`
		Extension    string            `json:"extensionName,omitempty"`
	}{
		Type: c.Type, Command: c.Command, Args: publicArgs(c.Args), Env: hideValues(c.Env), Cwd: c.Dir,
		URL: publicURL(c.URL), Headers: hideValues(c.Headers), TCP: c.Address, Timeout: c.Timeout.Milliseconds(),
		Trust: c.Trust, Description: c.Description, IncludeTools: c.IncludeTools, ExcludeTools: c.ExcludeTools,
		Extension: c.Extension,
	}
	if c.Type == TypeSDK {
		out.Name = c.Name
	}
	data, err := json.Marshal(out)
	if err != nil { // can't be: strings, numbers and booleans
		return nil
	}
	return data
}

func hideValues(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k := range m {
		out[k] = hidden
	}
	return out
}

var (
	secretFlag = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(key|token|secret|password|passwd|auth|credential)[a-z0-9_-]*$`)
	})
	secretValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^([a-z0-9_-]*(?:key|token|secret|password|passwd|auth|credential|authorization)[a-z0-9_-]*\s*[=:]\s*).+`)
	})
)

// publicArgs hides --token=VALUE, --token VALUE, TOKEN=VALUE and header values.
func publicArgs(args []string) []string {
	var out []string
	for i, a := range args {
		switch {
		case i > 0 && secretFlag().MatchString(args[i-1]):
			a = hidden
		case secretValue().MatchString(a):
			a = secretValue().ReplaceAllString(a, "${1}"+hidden)
		case strings.Contains(a, "://"):
			a = publicURL(a)
		}
		out = append(out, a)
	}
	return out
}

func publicURL(s string) string {
	u, err := url.Parse(s)
	if s == "" || err != nil || u.Scheme == "" {
		return s
	}
	if u.RawQuery != "" {
		q := u.Query()
		for k := range q {
			q[k] = []string{hidden}
		}
		u.RawQuery = strings.ReplaceAll(q.Encode(), url.QueryEscape(hidden), hidden)
	}
	return strings.ReplaceAll(u.Redacted(), ":xxxxx@", ":"+hidden+"@")
}

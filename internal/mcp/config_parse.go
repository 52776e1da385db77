package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Parse reads the servers of one JSON text: {"mcpServers":{name:{...}}}, or the
// inner object alone. Both forms of a server are understood: with "type"
// (stdio, sse, http, sdk), and by the key that is there (command, url, httpUrl,
// tcp). ${VAR} and ${VAR:-default} in values are replaced by way of getenv (nil:
// nothing is set); a variable that isn't set stays as it is written, and a note
// says so. The servers that are valid are returned in order of their names, also
// when there is an error: it joins a *ConfigError for each of the others.
func Parse(data []byte, getenv func(string) (string, bool)) ([]Config, error) {
	var outer map[string]json.RawMessage
	if err := unmarshal(data, &outer); err != nil {
		return nil, &ConfigError{Reason: "it is no JSON object: " + plainJSONError(err)}
	}
	if inner, ok := outer["mcpServers"]; ok {
		outer = nil
		if err := unmarshal(inner, &outer); err != nil {
			return nil, &ConfigError{Reason: "mcpServers is no object of servers by name: " + plainJSONError(err)}
		}
	}
	return ParseServers(outer, getenv)
}

// ParseServers reads servers by name, as Parse does.
func ParseServers(servers map[string]json.RawMessage, getenv func(string) (string, bool)) ([]Config, error) {
	var (
		list []Config
		errs []error
	)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c, err := ParseServer(name, servers[name], getenv)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, c)
	}
	return list, errors.Join(errs...)
}

// ParseServer reads one server, as Parse does.
func ParseServer(name string, data json.RawMessage, getenv func(string) (string, bool)) (Config, error) {
	if strings.TrimSpace(name) == "" {
		return Config{}, &ConfigError{Server: "(unnamed)", Reason: "it has no name"}
	}
	p := &parser{server: name, getenv: getenv, left: map[string]json.RawMessage{}}
	if err := unmarshal(data, &p.left); err != nil || p.left == nil {
		return Config{}, &ConfigError{Server: name, Reason: "it must be an object such as {\"command\": \"...\"}"}
	}
	c := p.config()
	if p.err != nil {
		return Config{}, p.err
	}
	return c, nil
}

// parser takes the fields of one server, one by one; the first error stays.
type parser struct {
	server string
	getenv func(string) (string, bool)
	left   map[string]json.RawMessage // fields not taken yet
	notes  []string
	err    error
}

func (p *parser) config() Config {
	c := Config{
		Name: p.server, Type: p.text("type"),
		Command: p.text("command"), Args: p.list("args"), Env: p.strings("env"), Dir: p.text("cwd"),
		Headers: p.strings("headers"), Address: p.text("tcp"),
		Timeout: p.millis("timeout"), Trust: p.flag("trust"), Description: p.text("description"),
		IncludeTools: p.list("includeTools"), ExcludeTools: p.list("excludeTools"), Extension: p.text("extensionName"),
	}
	sse, stream := p.text("url"), p.text("httpUrl")
	p.settle(&c, sse, stream)
	p.signIn(&c)
	p.rest()
	c.Notes = p.notes
	return c
}

// typeNames are the spellings of the types.
var typeNames = map[string]string{
	"stdio": TypeStdio, "sse": TypeSSE, "http": TypeHTTP, "streamable-http": TypeHTTP, "streamableHttp": TypeHTTP,
	"streamable_http": TypeHTTP, "tcp": TypeTCP, "sdk": TypeSDK,
}

// settle finds out the type and demands what it needs.
func (p *parser) settle(c *Config, sse, stream string) {
	given := c.Type
	if given != "" {
		known, ok := typeNames[given]
		if !ok {
			p.fail("type", fmt.Sprintf("%q is none of stdio, sse, http, tcp, sdk", given))
			return
		}
		c.Type = known
	} else {
		switch {
		case c.Command != "":
			c.Type = TypeStdio
		case stream != "":
			c.Type = TypeHTTP
		case sse != "":
			c.Type, c.anyHTTP = TypeSSE, true
		case c.Address != "":
			c.Type = TypeTCP
		default:
			p.fail("", "it needs one of command, url, httpUrl, tcp, or type \"sdk\"")
			return
		}
	}
	switch c.Type {
	case TypeStdio:
		if strings.TrimSpace(c.Command) == "" {
			p.fail("command", "it is empty: name the program to start")
		}
	case TypeSSE, TypeHTTP:
		field := "url"
		c.URL = sse
		if c.Type == TypeHTTP && stream != "" || sse == "" {
			field, c.URL = "httpUrl", stream
		}
		if c.URL == "" {
			field = "url"
		}
		p.checkURL(field, c.URL)
	case TypeTCP:
		if _, _, err := net.SplitHostPort(c.Address); err != nil {
			p.fail("tcp", "it must be host:port, such as localhost:9000")
		}
	}
	p.unused(c, sse, stream)
}

// unused notes the fields that play no part for the type.
func (p *parser) unused(c *Config, sse, stream string) {
	var names []string
	if c.Type != TypeStdio && (c.Command != "" || len(c.Args) > 0 || len(c.Env) > 0 || c.Dir != "") {
		names = append(names, "command, args, env and cwd")
	}
	if c.Type != TypeSSE && c.Type != TypeHTTP {
		if sse != "" || stream != "" {
			names = append(names, "url and httpUrl")
		}
		if len(c.Headers) > 0 {
			names = append(names, "headers")
		}
	}
	if c.Type != TypeTCP && c.Address != "" {
		names = append(names, "tcp")
	}
	for _, n := range names {
		p.notes = append(p.notes, fmt.Sprintf("%s: no effect on a server of type %s", n, c.Type))
	}
}

func (p *parser) checkURL(field, s string) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		p.fail(field, "it is missing")
	case err != nil: // not shown: it may quote a secret
		p.fail(field, "it is no URL; write it as https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		p.fail(field, fmt.Sprintf("scheme %q is neither http nor https", u.Scheme))
	case u.Host == "":
		p.fail(field, "it has no host; write it as https://host/path")
	}
}

// signInFields ask for ways to sign in.
var signInFields = []string{"oauth", "authProviderType", "targetAudience", "targetServiceAccount"}

// signIn notes the ways to sign in, which have no effect yet.
func (p *parser) signIn(c *Config) {
	for _, field := range signInFields {
		raw, ok := p.take(field)
		if !ok || isEmptyJSON(raw) {
			continue
		}
		if field == "authProviderType" {
			var kind string
			kinds := []string{"dynamic_discovery", "google_credentials", "service_account_impersonation"}
			if json.Unmarshal(raw, &kind) != nil || !slices.Contains(kinds, kind) {
				p.fail(field, "it is none of "+strings.Join(kinds, ", "))
			}
		}
		c.signIn = true
		p.notes = append(p.notes, field+": no effect yet: signing in is not supported; put a token into headers instead")
	}
}

// known fields of hosts that carry nothing for us.
var ignoredFields = []string{"name", "instance", "disabled"}

// rest notes the fields that nobody knows.
func (p *parser) rest() {
	for _, field := range slices.Sorted(maps.Keys(p.left)) {
		if !slices.Contains(ignoredFields, field) {
			p.notes = append(p.notes, fmt.Sprintf("%.60q: no effect: the field is not known", field))
		}
	}
}

func (p *parser) fail(field, reason string) {
	if p.err == nil {
		p.err = &ConfigError{Server: p.server, Field: field, Reason: reason}
	}
}

// take removes a field; a null is as if it weren't there.
func (p *parser) take(field string) (json.RawMessage, bool) {
	raw, ok := p.left[field]
	delete(p.left, field)
	return raw, ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (p *parser) text(field string) string {
	raw, ok := p.take(field)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		p.fail(field, "it must be a string")
	}
	return p.expand(field, s)
}

func (p *parser) list(field string) []string {
	raw, ok := p.take(field)
	if !ok {
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		p.fail(field, "it must be a list of strings")
	}
	for i, s := range list {
		list[i] = p.expand(fmt.Sprintf("%s[%d]", field, i), s)
	}
	return list
}

// strings reads an object of strings; numbers and booleans are taken as they
// are written, as people write ports.
func (p *parser) strings(field string) map[string]string {
	raw, ok := p.take(field)
	if !ok {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		p.fail(field, "it must be an object of strings")
		return nil
	}
	out := make(map[string]string, len(object))
	for _, k := range slices.Sorted(maps.Keys(object)) {
		var s string
		switch v := bytes.TrimSpace(object[k]); {
		case json.Unmarshal(v, &s) == nil && string(v) != "null":
		case len(v) > 0 && v[0] != '{' && v[0] != '[' && string(v) != "null":
			s = string(v)
		default:
			p.fail(field+"."+k, "it must be a string")
		}
		if k == "" || strings.ContainsAny(k, "=\x00\r\n") {
			p.fail(field, fmt.Sprintf("%q can't be a name", k))
		}
		out[k] = p.expand(field+"."+k, s)
		if strings.ContainsAny(out[k], "\x00") || field == "headers" && strings.ContainsAny(out[k], "\r\n") {
			p.fail(field+"."+k, "it holds a character that can't be sent")
		}
	}
	return out
}

func (p *parser) flag(field string) bool {
	raw, ok := p.take(field)
	var b bool
	if ok && json.Unmarshal(raw, &b) != nil {
		p.fail(field, "it must be true or false")
	}
	return b
}

func (p *parser) millis(field string) time.Duration {
	raw, ok := p.take(field)
	if !ok {
		return 0
	}
	ms, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if err != nil || !(ms > 0) || ms > math.MaxInt32 {
		p.fail(field, "it must be a number of milliseconds above 0")
		return 0
	}
	return max(time.Duration(ms*float64(time.Millisecond)), time.Millisecond)
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`) })

// expand replaces ${VAR} and ${VAR:-default}.
func (p *parser) expand(field, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	return variable().ReplaceAllStringFunc(s, func(ref string) string {
		m := variable().FindStringSubmatch(ref)
		if p.getenv != nil {
			if v, ok := p.getenv(m[1]); ok && (v != "" || m[2] == "") {
				return v
			}
		}
		if m[2] != "" {
			return m[3]
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: the variable %s is not set", field, m[1]))
		return ref
	})
}

func isEmptyJSON(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case `""`, "{}", "false":
		return true
	}
	return false
}

// unmarshal decodes one JSON value with nothing behind it.
func unmarshal(data []byte, v any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("it is empty")
	}
	return json.Unmarshal(data, v)
}

// plainJSONError says what is wrong without the names of Go types.
func plainJSONError(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return "it holds a " + kind.Value
	}
	return err.Error()
}

// SDKConfig returns the configuration of a server inside the host.
func SDKConfig(name string) Config { return Config{Name: name, Type: TypeSDK} }

package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Types of servers, as a Config and a Status name them.
const (
	TypeStdio = "stdio"
	TypeSSE   = "sse"
	TypeHTTP  = "http"
	TypeTCP   = "tcp"
	TypeSDK   = "sdk" // inside the host, reached through the Tunnel
)

// Config says how to reach one server and what to take from it. Parse makes it.
type Config struct {
	Name string
	Type string // one of the Type constants

	// A program (TypeStdio). Dir empty means the working directory.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	// A server on the network. URL is for TypeSSE and TypeHTTP, Address
	// (host:port) for TypeTCP.
	URL     string
	Headers map[string]string
	Address string

	Timeout      time.Duration // of one tool call; 0: the manager's
	Trust        bool          // its tools run without a question
	Description  string
	IncludeTools []string // empty: all
	ExcludeTools []string // wins over IncludeTools
	Extension    string   // the extension that brought the server

	// Notes name what the configuration asks for and doesn't get, such as ways
	// to sign in. They are part of the server's Status.
	Notes []string

	// anyHTTP: the transport was not said, so streamable HTTP is tried when SSE
	// isn't there.
	anyHTTP bool
	// signIn: the configuration names a way to sign in that has no effect yet.
	signIn bool
}

// ConfigError says what is wrong with the configuration of one server.
type ConfigError struct {
	Server string // empty: the whole text
	Field  string // empty: the server's configuration as a whole
	Reason string
}

func (e *ConfigError) Error() string {
	switch {
	case e.Server == "":
		return "MCP configuration: " + e.Reason
	case e.Field == "":
		return fmt.Sprintf("MCP server %q: %s", e.Server, e.Reason)
	}
	return fmt.Sprintf("MCP server %q: %s: %s", e.Server, e.Field, e.Reason)
}

// ConfigErrors returns the errors of single servers in an error of Parse, by
// name; none of an error that is about the text as a whole.
func ConfigErrors(err error) map[string]error {
	out := map[string]error{}
	var list []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	} else if err != nil {
		list = []error{err}
	}
	for _, e := range list {
		var c *ConfigError
		if errors.As(e, &c) && c.Server != "" {
			out[c.Server] = e
		}
	}
	return out
}

// wants reports whether includeTools and excludeTools leave the tool. Entries
// may carry a list of parameters in parentheses, which plays no part.
func (c *Config) wants(tool string) bool {
	named := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "(")
		return name == tool
	}
	if slices.ContainsFunc(c.ExcludeTools, named) {
		return false
	}
	return len(c.IncludeTools) == 0 || slices.ContainsFunc(c.IncludeTools, named)
}

// same reports whether the two reach the same server in the same way.
func (c *Config) same(o *Config) bool { return fmt.Sprint(*c) == fmt.Sprint(*o) }

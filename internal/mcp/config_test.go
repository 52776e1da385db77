package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "t0k", "EMPTY": ""}[name]
	return v, ok
}

func TestParse(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`{"mcpServers":{
		"a":{"command":"npx","args":["-y","x","${TOKEN}"],"env":{"K":"${NONE:-d}","PORT":80},"cwd":"sub","timeout":1500,"trust":true,
			"description":"d","includeTools":["x","y(z)"],"excludeTools":["x"],"extensionName":"e"},
		"b":{"type":"http","url":"https://h/${EMPTY:-p}","headers":{"Authorization":"Bearer ${TOKEN}"}},
		"c":{"url":"http://h/sse"},
		"d":{"httpUrl":"http://h/m","oauth":{"enabled":true},"authProviderType":"google_credentials","targetAudience":"x","targetServiceAccount":"y"},
		"e":{"tcp":"localhost:9000"},
		"f":{"type":"sdk","name":"f"},
		"g":{"command":"x","headers":{"A":"${UNSET}"},"colour":1}
	}}`), env)
	if err != nil || len(list) != 7 {
		t.Fatalf("%v %v", list, err)
	}
	a, b, c, d, e, f, g := list[0], list[1], list[2], list[3], list[4], list[5], list[6]
	if a.Type != TypeStdio || a.Args[2] != "t0k" || a.Env["K"] != "d" || a.Env["PORT"] != "80" || a.Dir != "sub" ||
		a.Timeout != 1500*time.Millisecond || !a.Trust || a.Description != "d" || a.Extension != "e" || len(a.Notes) != 0 {
		t.Errorf("a: %+v", a)
	}
	if a.wants("x") || !a.wants("y") || a.wants("z") {
		t.Error("includeTools and excludeTools")
	}
	if b.Type != TypeHTTP || b.URL != "https://h/p" || b.Headers["Authorization"] != "Bearer t0k" {
		t.Errorf("b: %+v", b)
	}
	if c.Type != TypeSSE || !c.anyHTTP || e.Type != TypeTCP || e.Address != "localhost:9000" || f.Type != TypeSDK {
		t.Errorf("c, e, f: %+v %+v %+v", c, e, f)
	}
	notes := strings.Join(d.Notes, "\n")
	for _, field := range signInFields {
		if !strings.Contains(notes, field+": no effect yet") {
			t.Errorf("%s has no note: %s", field, notes)
		}
	}
	notes = strings.Join(g.Notes, "\n")
	for _, want := range []string{"UNSET is not set", "headers: no effect", `"colour": no effect`} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in %s", want, notes)
		}
	}
	if s := string(b.Public()); strings.Contains(s, "t0k") || !strings.Contains(s, "Authorization") {
		t.Errorf("public: %s", s)
	}
}

func TestParseErrorsNameServerAndField(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                     "empty",
		`[]`:                                   "no JSON object",
		`{"mcpServers":[]}`:                    "mcpServers",
		`{"x":{}}`:                             `"x": it needs one of`,
		`{"x":null}`:                           `"x": it must be an object`,
		`{"x":{"type":"ws","url":"w"}}`:        `"x": type: "ws"`,
		`{"x":{"command":""}}`:                 `"x"`,
		`{"x":{"command":1}}`:                  `command: it must be a string`,
		`{"x":{"command":"a","args":"b"}}`:     `args: it must be a list`,
		`{"x":{"command":"a","env":{"A":{}}}}`: `env.A`,
		`{"x":{"command":"a","timeout":-1}}`:   `timeout`,
		`{"x":{"command":"a","trust":"y"}}`:    `trust`,
		`{"x":{"url":"ftp://h"}}`:              `url: scheme`,
		`{"x":{"type":"http"}}`:                `url: it is missing`,
		`{"x":{"tcp":"h"}}`:                    `tcp`,
		`{"x":{"url":"http://h","headers":{"A":"b\r\nc"}}}`: `headers.A`,
		`{"x":{"url":"http://h","authProviderType":"z"}}`:   `authProviderType`,
	} {
		list, err := Parse([]byte(in), env)
		var c *ConfigError
		if !errors.As(err, &c) || !strings.Contains(err.Error(), want) || len(list) != 0 {
			t.Errorf("%s: %v %v, want %q", in, list, err, want)
		}
	}
	if _, err := Parse([]byte(`{`), nil); err == nil || len(ConfigErrors(err)) != 0 {
		t.Errorf("the error of a whole text is one of a server's: %v", err)
	}
	list, err := Parse([]byte(`{"good":{"command":"a"},"bad":{},"":1}`), nil)
	if len(list) != 1 || len(ConfigErrors(err)) != 2 || ConfigErrors(err)["bad"] == nil || len(ConfigErrors(nil)) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func TestPublicHidesSecrets(t *testing.T) {
	t.Parallel()
	c := Config{
		Type: TypeStdio, Args: []string{"--api-key", "s3cret", "--token=s3cret", "Authorization: Bearer s3cret", "https://u:s3cret@h/?k=s3cret", "plain"},
		Env: map[string]string{"A": "s3cret"}, Headers: map[string]string{"B": "s3cret"}, URL: "https://u:s3cret@h/p?key=s3cret",
	}
	if s := string(c.Public()); strings.Contains(s, "s3cret") || !strings.Contains(s, "plain") || !strings.Contains(s, "--token=***") {
		t.Error(s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"${X:-y}","args":["z"],"env":{"K":1},"timeout":1e3}}}`))
	f.Add([]byte(`{"a":{"url":"http://h","headers":{"A":"b"},"oauth":{}},"b":{"tcp":"h:1"},"c":{"type":"sdk"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse(data, env)
		for _, c := range list {
			if c.Name == "" || typeNames[c.Type] != c.Type {
				t.Errorf("an invalid server: %+v", c)
			}
			if !json.Valid(c.Public()) {
				t.Errorf("Public of %+v", c)
			}
			toolName(c.Name, c.Command, 0)
		}
		for name, e := range ConfigErrors(err) {
			if e.Error() == "" {
				t.Errorf("%q: an error without text", name)
			}
		}
	})
}

// Package settings loads the layers of settings files, merges them and
// remembers where each value came from; it writes one key at a time. One table
// of keys drives parsing, writing, the JSON Schema and the manual. It reads no
// environment variables besides those handed to [FindDirs], never a .env file,
// and takes nothing from a project's files that would move endpoints,
// credentials, permissions or reach, but for rules that the user allowed there.
// It gathers the rules of all layers and of other tools' files. cli calls it.
package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/policy"
)

// Layer is where a value comes from. Higher layers win.
type Layer uint8

// Layers, from the lowest on.
const (
	Default Layer = iota // the table of keys
	User                 // the user's settings.json
	Project              // the project's .agent/settings.json
	Local                // the project's .agent/settings.local.json
	Flags                // the command line
	Managed              // the administrator's file
)

var layerNames = [...]string{"default", "user", "project", "local", "flags", "managed"}

// String returns the layer's name: "user", "project" and so on.
func (l Layer) String() string { return layerNames[l] }

// Origin says where a value was set.
type Origin struct {
	Layer Layer
	File  string // empty for defaults and flags
	Line  int    // from 1; 0 without a file
}

// String returns "user /home/u/.config/agent/settings.json:3", or the layer
// alone.
func (o Origin) String() string {
	if o.File == "" {
		return o.Layer.String()
	}
	return o.Layer.String() + " " + o.File + ":" + strconv.Itoa(o.Line)
}

// Warning is something in a settings file that has no effect, and why. Line is
// 0 where there is none to name.
type Warning struct {
	File    string
	Line    int
	Message string
}

// String returns "FILE:LINE: MESSAGE".
func (w Warning) String() string {
	switch {
	case w.File == "":
		return w.Message
	case w.Line == 0:
		return w.File + ": " + w.Message
	}
	return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Message)
}

// Error is something in a settings file or flag that can't be used. Column is
// 0 where it would tell nothing.
type Error struct {
	File         string
	Line, Column int
	Message      string
}

// Error implements error: "FILE:LINE:COLUMN: MESSAGE".
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// item is one string, int or list element with its origin; name is set for
// entries of a map.
type item struct {
	name   string
	value  any // string or int
	origin Origin
}

// value is what is set for one concrete key after the merge. Scalars have one
// item.
type value struct {
	key   *Key
	items []item
}

// Settings are the merged settings. They don't change, so any number of
// goroutines may read them.
type Settings struct {
	table  []Key
	values map[string]value // by concrete name
	rules  []ruleText       // of all layers, the same text of two layers twice
}

// ruleText is one entry of a list of rules.
type ruleText struct {
	key    *Key
	text   string
	origin Origin
}

// lookup returns the table's key of a concrete name. A name that is not there
// is a bug of the caller.
func (s *Settings) lookup(name string, want Type) *Key {
	key, _ := matchKey(s.table, strings.Split(name, "."))
	if key == nil || key.Type != want {
		panic(fmt.Sprintf("settings: %q is not a key that is %v", name, want))
	}
	return key
}

// String returns the value of a String key; "" when there is none and no
// default.
func (s *Settings) String(name string) string {
	key := s.lookup(name, String)
	if v, ok := s.values[name]; ok {
		return v.items[0].value.(string)
	}
	text, _ := key.Default.(string)
	return text
}

// Int returns the value of an Int key; 0 when there is none and no default.
func (s *Settings) Int(name string) int {
	key := s.lookup(name, Int)
	if v, ok := s.values[name]; ok {
		return v.items[0].value.(int)
	}
	n, _ := key.Default.(int)
	return n
}

// Milliseconds returns the value of an Int key that counts milliseconds.
func (s *Settings) Milliseconds(name string) time.Duration {
	return time.Duration(s.Int(name)) * time.Millisecond
}

// List returns the value of a StringList key, all layers together, without
// duplicates. The slice is the caller's.
func (s *Settings) List(name string) []string {
	s.lookup(name, StringList)
	var out []string
	for _, it := range s.values[name].items {
		out = append(out, it.value.(string))
	}
	return out
}

// Objects returns the value of an ObjectMap key; nil when there is none. The
// map is the caller's.
func (s *Settings) Objects(name string) map[string]json.RawMessage {
	s.lookup(name, ObjectMap)
	var out map[string]json.RawMessage
	for _, it := range s.values[name].items {
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[it.name] = it.value.(json.RawMessage)
	}
	return out
}

// Origin tells where the value of a key was set: for lists and maps, the
// highest layer that has a part in it. A key that is not set has the origin
// Default.
func (s *Settings) Origin(name string) Origin {
	var top Origin
	for _, it := range s.values[name].items {
		if it.origin.Layer >= top.Layer {
			top = it.origin
		}
	}
	return top
}

// Mode returns the permission mode to start in.
func (s *Settings) Mode() policy.Mode { return policy.Mode(s.String(DefaultMode)) }

// Provider is what is set for one provider; fields are zero when unset.
type Provider struct {
	BaseURL   string
	APIKeyEnv string // name of the variable that holds the key
	Headers   map[string]string
}

// Provider returns what is set for the provider of that name; the zero value
// when nothing is.
func (s *Settings) Provider(name string) Provider {
	if !isName(name) {
		return Provider{}
	}
	concrete := func(key string) string { return strings.Replace(key, "<name>", name, 1) }
	p := Provider{BaseURL: s.String(concrete(providerBaseURL)), APIKeyEnv: s.String(concrete(providerAPIKeyEnv))}
	for _, it := range s.values[concrete(providerHeaders)].items {
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		p.Headers[it.name] = it.value.(string)
	}
	return p
}

// Providers returns the names of the providers for which something is set,
// sorted.
func (s *Settings) Providers() []string {
	names := map[string]bool{}
	for name := range s.values {
		if rest, ok := strings.CutPrefix(name, "providers."); ok {
			provider, _, _ := strings.Cut(rest, ".")
			names[provider] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

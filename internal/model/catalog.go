package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Info is what is known about a model. Zero numbers are unknown.
type Info struct {
	Provider      string   `json:"provider"` // who serves it: "gemini", "anthropic", "openai", "dashscope", ...
	ID            string   `json:"id"`
	ContextWindow int      `json:"context"`  // tokens, input and output together
	MaxOutput     int      `json:"output"`   // tokens of one answer
	Prices        []Price  `json:"prices"`   // by size of the request, ascending; empty: unknown, or free
	Aliases       []string `json:"aliases"`  // other names, unique in the catalogue
	Thinking      bool     `json:"thinking"` // can reason before it answers
	Images        bool     `json:"images"`   // takes images

	// Known is false for a guess: the values of the nearest relative or of the
	// provider in general.
	Known bool `json:"-"`
}

// Price holds US dollars per million tokens.
type Price struct {
	UpTo       int     `json:"upTo"` // holds for requests of up to so many input tokens; 0: any
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// providerInfo is what holds for models of a provider that are not listed.
type providerInfo struct {
	Default  string `json:"default"`
	Context  int    `json:"context"`
	Output   int    `json:"output"`
	Thinking bool   `json:"thinking"`
	Images   bool   `json:"images"`
	Free     bool   `json:"free"` // no model costs anything here
}

// catalogFile is the JSON form of overrides. Models stay raw, so that one in an override can
// be laid over the one it changes.
type catalogFile struct {
	AsOf      string                     `json:"asOf"`
	Note      string                     `json:"note"`
	Providers map[string]json.RawMessage `json:"providers"`
	Models    []json.RawMessage          `json:"models"`
}

// Catalog knows models: windows, limits, prices, names. It is not changed after
// it was loaded and may be used concurrently.
type Catalog struct {
	asOf      string
	providers map[string]providerInfo
	models    []Info
	byName    map[string]int // id and aliases, lower case; ids win
}

// DefaultCatalog returns the shipped catalogue, indexed at the first call.
func DefaultCatalog() *Catalog { return shipped() }

var shipped = sync.OnceValue(func() *Catalog {
	c, err := LoadCatalog(nil)
	if err != nil {
		panic("model: shipped catalogue: " + err.Error()) // a test loads it
	}
	return c
})

// LoadCatalog lays overrides, in the JSON form of a catalogue, over the shipped
// one: its models are added, or change the fields that they name of the model
// with the same provider and id; its prices replace. overrides may be nil; it is
// read to its end. The error says what is wrong in it, and where.
func LoadCatalog(overrides io.Reader) (*Catalog, error) {
	c := &Catalog{asOf: shippedAsOf, providers: shippedProviders(), models: slices.Clone(shippedModels)}
	if overrides != nil {
		data, err := io.ReadAll(overrides)
		if err != nil {
			return nil, fmt.Errorf("reading the model catalogue: %w", err)
		}
		if err := c.merge(data); err != nil {
			return nil, fmt.Errorf("model catalogue: %w", err)
		}
	}
	if err := c.index(); err != nil {
		return nil, fmt.Errorf("model catalogue: %w", err)
	}
	return c, nil
}

func (c *Catalog) merge(data []byte) error {
	var f catalogFile
	if err := strictJSON(data, &f); err != nil {
		return err
	}
	if f.AsOf != "" {
		c.asOf = f.AsOf
	}
	for name, raw := range f.Providers {
		p := c.providers[name]
		if err := strictJSON(raw, &p); err != nil {
			return fmt.Errorf("provider %q: %w", name, err)
		}
		c.providers[name] = p
	}
	for i, raw := range f.Models {
		if err := c.mergeModel(raw); err != nil {
			return fmt.Errorf("model %d: %w", i+1, err)
		}
	}
	return nil
}

func (c *Catalog) mergeModel(raw json.RawMessage) error {
	var fresh Info
	if err := strictJSON(raw, &fresh); err != nil {
		return err
	}
	if fresh.Provider == "" || fresh.ID == "" {
		return errors.New(`needs "provider" and "id"`)
	}
	for i := range c.models {
		if m := &c.models[i]; m.Provider == fresh.Provider && m.ID == fresh.ID {
			m.Prices, m.Aliases = slices.Clone(m.Prices), slices.Clone(m.Aliases)
			if fresh.Prices != nil {
				m.Prices = nil // tiers are not laid over tiers
			}
			return json.Unmarshal(raw, m)
		}
	}
	c.models = append(c.models, fresh)
	return nil
}

func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("data after the end of the JSON value")
	}
	return nil
}

// index checks the models and makes them findable. Later ones win a name.
func (c *Catalog) index() error {
	c.byName = make(map[string]int, 2*len(c.models))
	for i, m := range c.models {
		if err := m.check(); err != nil {
			return fmt.Errorf("%s/%s: %w", m.Provider, m.ID, err)
		}
		for _, alias := range m.Aliases {
			c.byName[strings.ToLower(alias)] = i
		}
	}
	for i, m := range c.models {
		c.byName[modelKey(m.ID)] = i
	}
	return nil
}

func (m *Info) check() error {
	if m.ContextWindow < 0 || m.MaxOutput < 0 {
		return errors.New("a limit is negative")
	}
	last := 0
	for i, p := range m.Prices {
		if min(p.Input, p.Output, p.CacheRead, p.CacheWrite) < 0 {
			return errors.New("a price is negative")
		}
		if final := i == len(m.Prices)-1; !final && p.UpTo <= last {
			return errors.New("prices are not in ascending order of upTo")
		}
		last = p.UpTo
	}
	return nil
}

// AsOf returns the month in which the data was right: "2026-10".
func (c *Catalog) AsOf() string { return c.asOf }

// Default returns the id of provider's default model, or "".
func (c *Catalog) Default(provider string) string { return c.providers[provider].Default }

// Of returns the models of a provider, in the order of the catalogue.
func (c *Catalog) Of(provider string) []Info {
	var out []Info
	for _, m := range c.models {
		if m.Provider == provider {
			m.Known = true
			out = append(out, m)
		}
	}
	return out
}

// Named returns the model whose id or alias is exactly name, in any case.
func (c *Catalog) Named(name string) (Info, bool) {
	i, ok := c.byName[strings.ToLower(name)]
	if !ok {
		i, ok = c.byName[modelKey(name)]
	}
	if !ok {
		return Info{}, false
	}
	m := c.models[i]
	m.Known = true
	return m, true
}

// Lookup returns what is known of a provider's model: of the listed id that is
// the longest prefix of id (dated versions, variants), of provider first, then
// of any (gateways); else what holds for the provider in general, with the id
// as given. It always returns something usable; Known tells how much it is
// worth. Models of a free provider (a local server) have no prices.
func (c *Catalog) Lookup(provider, id string) Info {
	p := c.providers[provider]
	m, ok := c.nearest(provider, id)
	if !ok {
		m = Info{
			Provider: provider, ID: id,
			ContextWindow: p.Context, MaxOutput: p.Output, Thinking: p.Thinking, Images: p.Images,
		}
		if m.ContextWindow == 0 {
			m.ContextWindow = c.providers["openai"].Context
		}
	}
	if p.Free {
		m.Prices = nil
		if m.Provider != provider { // what the vendor's servers can do says little
			m.ContextWindow, m.MaxOutput, m.Known = p.Context, p.Output, false
		}
	}
	return m
}

// nearest finds the listed model of which id is a version.
func (c *Catalog) nearest(provider, id string) (Info, bool) {
	key := modelKey(id)
	best, bestLen, rest := -1, 0, ""
	for i, m := range c.models {
		tail, ok := strings.CutPrefix(key, modelKey(m.ID))
		if !ok || tail != "" && !strings.ContainsRune("-:@._", rune(tail[0])) {
			continue
		}
		n := len(key) - len(tail)
		if m.Provider == provider {
			n += len(key) + 1 // an own model beats any other's
		}
		if n > bestLen {
			best, bestLen, rest = i, n, tail
		}
	}
	if best < 0 {
		if i, ok := c.byName[strings.ToLower(id)]; ok {
			best = i
		} else {
			return Info{}, false
		}
	}
	m := c.models[best]
	m.Known = rest == "" || isVersion(rest)
	return m, true
}

// modelKey is the form in which ids are compared: lower case, without what
// gateways put before them (google/, publishers/google/models/,
// us.anthropic.), and Claude's versions with dashes (claude-sonnet-4.5).
func modelKey(id string) string {
	key := strings.ToLower(id)
	key = key[strings.LastIndexByte(key, '/')+1:]
	if i := strings.Index(key, "claude-"); i >= 0 {
		key = strings.ReplaceAll(key[i:], ".", "-")
	}
	return key
}

// isVersion reports whether the rest of an id only dates it: -20250929,
// -2025-08-07, -001, @20250929, -preview-05-06, -latest, :free.
func isVersion(rest string) bool {
	for i, part := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-:@._", r) }) {
		switch part {
		case "latest", "preview", "exp", "free", "v1":
			continue
		}
		if strings.Trim(part, "0123456789") != "" || i == 0 && len(part) < 3 && part != "0" {
			return false
		}
	}
	return true
}

// Priced reports whether the price is known: if not, [Cost] is 0.
func (m Info) Priced() bool { return len(m.Prices) > 0 }

// Cost returns the price of one request in US dollars; 0 if it is not known. u
// is the usage of that one request, not a sum: prices depend on its size.
func Cost(m Info, u Usage) float64 {
	if len(m.Prices) == 0 {
		return 0
	}
	input := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	p := m.Prices[len(m.Prices)-1]
	for _, tier := range m.Prices {
		if tier.UpTo == 0 || input <= tier.UpTo {
			p = tier
			break
		}
	}
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output +
		float64(u.CacheReadTokens)*p.CacheRead + float64(u.CacheWriteTokens)*p.CacheWrite) / 1e6
}

package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/model"
)

func TestCatalogLooksUpTheNearestModel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, id string
		want         string // id of the entry
		known        bool
	}{
		{"anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5", true},
		{"anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true},
		{"anthropic", "claude-sonnet-4-20250514", "claude-sonnet-4", true},
		{"anthropic", "claude-opus-4-0", "claude-opus-4", true},
		{"anthropic", "claude-opus-4-9", "claude-opus-4", false},
		{"anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku", true},
		{"anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", true},
		{"gemini", "gemini-2.5-pro", "gemini-2.5-pro", true},
		{"gemini", "models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro", true},
		{"gemini", "gemini-2.5-flash-lite", "gemini-2.5-flash-lite", true},
		{"gemini", "gemini-2.5-flash-image", "gemini-2.5-flash", false},
		{"openai", "gpt-5-2025-08-07", "gpt-5", true},
		{"openai", "gpt-5-mini", "gpt-5-mini", true},
		{"openai", "GPT-5", "gpt-5", true},
		{"openai", "gpt-5.9", "gpt-5", false},
		{"openai", "gpt-55", "gpt-55", false},
		{"openrouter", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", true},
		{"openrouter", "google/gemini-2.5-pro:free", "gemini-2.5-pro", true},
		{"dashscope", "qwen3-coder-plus-2025-09-23", "qwen3-coder-plus", true},
		{"dashscope", "qwen3-coder-ultra", "qwen3-coder", false},
		{"openai", "my-own", "my-own", false},
		{"nobody", "my-own", "my-own", false},
	}
	c := model.DefaultCatalog()
	for _, tt := range tests {
		got := c.Lookup(tt.provider, tt.id)
		if got.ID != tt.want || got.Known != tt.known {
			t.Errorf("%s/%s: found %s, known %t; want %s, %t", tt.provider, tt.id, got.ID, got.Known, tt.want, tt.known)
		}
		if got.ContextWindow == 0 {
			t.Errorf("%s/%s has no context window", tt.provider, tt.id)
		}
	}
}

func TestCatalogLocalModelsCostNothing(t *testing.T) {
	t.Parallel()
	c := model.DefaultCatalog()
	for _, vendor := range []string{"ollama", "llamacpp", "vllm", "lmstudio", "scripted"} {
		if m := c.Lookup(vendor, "qwen3-coder-plus"); m.Priced() || model.Cost(m, model.Usage{InputTokens: 1e6}) != 0 {
			t.Errorf("%s: priced %+v", vendor, m)
		}
	}
}

func TestCatalogIsSound(t *testing.T) {
	t.Parallel()
	c, err := model.LoadCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.AsOf() == "" {
		t.Error("no date")
	}
	for alias, provider := range map[string]string{
		"sonnet": "anthropic", "opus": "anthropic", "haiku": "anthropic", "pro": "gemini", "flash": "gemini", "flash-lite": "gemini",
		"gpt": "openai", "gpt-mini": "openai", "qwen": "dashscope",
	} {
		if m, ok := c.Named(alias); !ok || m.Provider != provider || !m.Priced() || m.MaxOutput == 0 {
			t.Errorf("alias %s: %+v, %t", alias, m, ok)
		}
	}
	for _, provider := range []string{"gemini", "anthropic", "openai", "dashscope"} {
		m, ok := c.Named(c.Default(provider))
		if !ok || m.Provider != provider || !m.Priced() {
			t.Errorf("default of %s: %+v, %t", provider, m, ok)
		}
	}
}

func TestCostUsesTheTierOfTheRequest(t *testing.T) {
	t.Parallel()
	c := model.DefaultCatalog()
	tests := []struct {
		name         string
		provider, id string
		usage        model.Usage
		want         float64
	}{
		{"plain", "anthropic", "claude-sonnet-4-5", model.Usage{InputTokens: 1000, OutputTokens: 2000}, 0.003 + 0.03},
		{"cache", "anthropic", "claude-sonnet-4-5", model.Usage{InputTokens: 1000, CacheReadTokens: 10_000, CacheWriteTokens: 2000}, 0.003 + 0.003 + 0.0075},
		{"thinking is part of the output", "gemini", "gemini-2.5-flash", model.Usage{OutputTokens: 1000, ThinkingTokens: 900}, 0.0025},
		{"at the tier's end", "gemini", "gemini-2.5-pro", model.Usage{InputTokens: 200_000}, 0.25},
		{"above it", "gemini", "gemini-2.5-pro", model.Usage{InputTokens: 200_001}, 0.5000025},
		{"above it by cached input", "gemini", "gemini-2.5-pro", model.Usage{InputTokens: 100_000, CacheReadTokens: 200_000}, 0.25 + 0.05},
		{"unknown", "openai", "my-own", model.Usage{InputTokens: 1e6}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := model.Cost(c.Lookup(tt.provider, tt.id), tt.usage); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("cost %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCatalogOverrides(t *testing.T) {
	t.Parallel()
	c, err := model.LoadCatalog(strings.NewReader(`{
		"providers": {"openai": {"default": "gpt-5-mini"}, "intranet": {"default": "house", "context": 50000}},
		"models": [
			{"provider": "intranet", "id": "house", "context": 64000, "aliases": ["mine"]},
			{"provider": "gemini", "id": "gemini-2.5-pro", "prices": [{"input": 1, "output": 2}]}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := c.Named("Mine"); !ok || m.ContextWindow != 64000 || m.ID != "house" {
		t.Errorf("added model: %+v", m)
	}
	pro := c.Lookup("gemini", "gemini-2.5-pro")
	if len(pro.Prices) != 1 || pro.Prices[0].Input != 1 || pro.ContextWindow != 1048576 {
		t.Errorf("changed model: %+v", pro)
	}
	if c.Default("openai") != "gpt-5-mini" || c.Lookup("openai", "other").ContextWindow == 0 {
		t.Error("changed provider lost what was not changed, or was not changed")
	}
	if was := model.DefaultCatalog().Lookup("gemini", "gemini-2.5-pro"); len(was.Prices) != 2 {
		t.Errorf("the shipped catalogue was changed: %+v", was)
	}
}

func TestCatalogRefusesBrokenOverrides(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{`:              "unexpected EOF",
		`{"modles": []}`: `unknown field "modles"`,
		`{"models": [{"provider": "x", "id": "y", "contxt": 1}]}`:                                       `model 1: json: unknown field "contxt"`,
		`{"models": [{"id": "y"}]}`:                                                                     `needs "provider"`,
		`{"models": [{"provider": "x", "id": "y", "context": -1}]}`:                                     "x/y: a limit is negative",
		`{"models": [{"provider": "x", "id": "y", "prices": [{"input": -1}]}]}`:                         "x/y: a price is negative",
		`{"models": [{"provider": "x", "id": "y", "prices": [{"input": 1}, {"upTo": 5, "input": 1}]}]}`: "ascending",
		`{"providers": {"x": {"defualt": "y"}}}`:                                                        `provider "x"`,
		`{} {}`:                                                                                         "after the end",
	} {
		if _, err := model.LoadCatalog(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", in, err, want)
		}
	}
}

func BenchmarkLoadCatalog(b *testing.B) {
	for b.Loop() {
		if _, err := model.LoadCatalog(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c := model.DefaultCatalog()
	for b.Loop() {
		c.Lookup("anthropic", "claude-sonnet-4-5-20250929")
	}
}

package cli

import (
	"testing"

	"github.com/agentcli/agent/internal/settings"
)

func TestTheSourceOfTheKeyIsTheVariableThatIsUsed(t *testing.T) {
	t.Parallel()
	same := map[string]string{"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "DASHSCOPE_API_KEY": "k", "OPENROUTER_API_KEY": "k", "MY_KEY": "k"}
	for _, tt := range []struct {
		name, model, settings string
		env                   map[string]string
		want                  string
	}{
		{"gemini", "gemini/gemini-2.5-pro", "", same, "GEMINI_API_KEY"},
		{"openai", "openai/gpt-5", "", same, "OPENAI_API_KEY"},
		{"anthropic", "anthropic/claude-sonnet-4-5", "", same, "ANTHROPIC_API_KEY"},
		{"dashscope", "dashscope/qwen3-coder-plus", "", same, "DASHSCOPE_API_KEY"},
		{"openrouter", "openrouter/a/b", "", same, "OPENROUTER_API_KEY"},
		{"google's, for gemini", "gemini/gemini-2.5-pro", "", map[string]string{"GOOGLE_API_KEY": "g"}, "GOOGLE_API_KEY"},
		{"a variable of the settings", "openai/gpt-5", `{"providers": {"openai": {"apiKeyEnv": "MY_KEY"}}}`, same, "MY_KEY"},
		{"a token", "anthropic/claude-sonnet-4-5", "", map[string]string{"ANTHROPIC_AUTH_TOKEN": "t"}, "ANTHROPIC_AUTH_TOKEN"},
		{"no key", "openai/x", "", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newTestPlace(t)
			if tt.settings != "" {
				p.write("home/agent/settings.json", tt.settings)
			}
			base := p.io.Getenv
			p.io.Getenv = func(name string) string {
				if v, ok := tt.env[name]; ok {
					return v
				}
				return base(name)
			}
			dirs, err := findDirs(p.io)
			if err != nil {
				t.Fatal(err)
			}
			set, err := loadSettings(p.io, settings.LoadOptions{Dirs: dirs, Flags: map[string]any{settings.Model: tt.model}}, func(w string) { t.Error(w) })
			if err != nil {
				t.Fatal(err)
			}
			m, err := newModels(t.Context(), p.io, set, modelOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.close()
			if got := m.keySource(); got != tt.want {
				t.Errorf("it is %s, want %s", got, tt.want)
			}
		})
	}
}

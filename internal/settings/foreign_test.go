package settings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/settings"
)

func TestReadClaude(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]settings.ClaudeDocument{
		`{"outputStyle":"terse", // mine
		  "env":{"B":"2","A":1,"C":null,"D":{},"E=":"x"},}`: {OutputStyle: "terse", Env: []string{"A=1", "B=2"}},
		`{"permissions":{"additionalDirectories":["a","/b",]}}`:                                                {Directories: []string{"a", "/b"}},
		`{"permissions":{"additionalDirectories":"a"},"env":[1],"outputStyle":{},"sandbox":true,"hooks":"no"}`: {},
		`{"sandbox":{"enabled":true,},}`:                                                                       {Sandbox: true},
		`{"hooks":{"UserPromptSubmit":[{}],"PreToolUse":[{}],"PostToolUse":[{}],"PermissionRequest":[]}}`:      {Guards: []string{"PreToolUse", "UserPromptSubmit"}},
		`{"hooks":{"PreToolUse":[{}]},"disableAllHooks":true}`:                                                 {},
		`{broken`: {},
	} {
		if diff := cmp.Diff(want, settings.ReadClaude(settings.Document{Name: "--settings", Data: []byte(text)})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

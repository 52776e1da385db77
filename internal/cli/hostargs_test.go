package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/streamjson"
)

func TestHostArgs(t *testing.T) {
	t.Parallel()
	const sdk = "--output-format stream-json --input-format stream-json"
	for _, test := range []struct {
		name    string
		args    []string
		env     map[string]string
		dialect streamjson.Dialect
		want    []string
		dropped []string
	}{
		{name: "a person", args: []string{"-p", "hi"}, dialect: streamjson.Native, want: []string{"-p", "hi"}},
		{name: "an inherited variable", args: []string{"-p", "hi"}, env: map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-py"},
			dialect: streamjson.Native, want: []string{"-p", "hi"}},
		{name: "python", args: strings.Fields(sdk), env: map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-py"},
			dialect: streamjson.Claude, want: strings.Fields(sdk)},
		{name: "qwen, joined", args: strings.Fields(sdk + " --channel=SDK"), dialect: streamjson.Qwen, want: strings.Fields(sdk + " --channel=SDK")},
		{name: "qwen, apart", args: strings.Fields(sdk + " --channel SDK"), env: map[string]string{"CLAUDE_CODE_ENTRYPOINT": "x"},
			dialect: streamjson.Qwen, want: strings.Fields(sdk + " --channel SDK")},
		{name: "gemini's channel", args: strings.Fields(sdk), env: map[string]string{"GEMINI_CHANNEL": "SDK", "CLAUDE_CODE_ENTRYPOINT": "x"},
			dialect: streamjson.Native, want: strings.Fields(sdk)},
		{name: "told", args: append(strings.Fields(sdk), "--dialect=native"), env: map[string]string{"CLAUDE_CODE_ENTRYPOINT": "x"},
			dialect: streamjson.Native, want: append(strings.Fields(sdk), "--dialect=native")},
		{name: "unknown flags", args: append(strings.Fields(sdk), "--brand-new", "value", "--newer=v", "--newest", "--max-turns=3"),
			env: map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}, dialect: streamjson.Claude,
			want: append(strings.Fields(sdk), "--max-turns=3"), dropped: []string{"--brand-new", "--newer", "--newest"}},
		{name: "an empty value, and one that looks like a flag", args: append(strings.Fields(sdk), "--system-prompt", "", "--append-system-prompt", "--what"),
			env: map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}, dialect: streamjson.Claude,
			want: append(strings.Fields(sdk), "--system-prompt", "", "--append-system-prompt", "--what")},
		{name: "unknown flags of a person stay", args: append(strings.Fields(sdk), "--brand-new"), dialect: streamjson.Native,
			want: append(strings.Fields(sdk), "--brand-new")},
		{name: "no transcript", args: append(strings.Fields(sdk), "--chat-recording", "false", "--channel=SDK"), dialect: streamjson.Qwen,
			want: append(strings.Fields(sdk), "--no-session-persistence", "--channel=SDK")},
		{name: "several servers", args: append(strings.Fields(sdk), "--mcp-config", "{}", "a.json", "--verbose"),
			env: map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}, dialect: streamjson.Claude,
			want: append(strings.Fields(sdk), "--mcp-config", "{}", "--mcp-config", "a.json", "--verbose")},
		{name: "other spellings", args: append(strings.Fields(sdk), "--allowedTools", "Read", "--max-session-turns", "-1"),
			env: map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}, dialect: streamjson.Claude,
			want: append(strings.Fields(sdk), "--allowedTools", "Read", "--max-session-turns", "-1")},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root, _ := newRootOf(IO{})
			h := readHostArgs(test.args, func(name string) string { return test.env[name] }, longFlags(root))
			if h.dialect != test.dialect {
				t.Errorf("dialect %q, want %q", h.dialect, test.dialect)
			}
			if diff := cmp.Diff(test.want, h.args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			var dropped []string
			for _, d := range h.dropped {
				dropped = append(dropped, d.String())
			}
			if diff := cmp.Diff(test.dropped, dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

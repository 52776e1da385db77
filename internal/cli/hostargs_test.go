package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

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
		claude  bool // called by that name
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
		{name: "values that look like flags", args: []string{"--input-format", "stream-json", "--append-system-prompt", "--dialect=native", "--system-prompt",
			"--channel=SDK", "-o", "--dialect=qwen", "--new", "--output-format", "stream-json"},
			env: map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}, dialect: streamjson.Claude, dropped: []string{"--new"},
			want: []string{"--input-format", "stream-json", "--append-system-prompt", "--dialect=native", "--system-prompt",
				"--channel=SDK", "-o", "--dialect=qwen", "--output-format", "stream-json"}},
		{name: "a port, lines both ways", args: strings.Fields("--print --verbose " + sdk), dialect: streamjson.Claude, want: strings.Fields("--print --verbose " + sdk)},
		{name: "a port, one prompt", args: []string{"--output-format", "stream-json", "--verbose", "--print", "--", "-x"}, dialect: streamjson.Claude,
			want: []string{"--output-format", "stream-json", "--verbose", "--print", "--", "-x"}},
		{name: "a port, -p as a switch", args: []string{"-p", "--output-format", "json", "--model", "m", "hi"}, dialect: streamjson.Claude,
			want: []string{"--print", "--output-format", "json", "--model", "m", "hi"}},
		{name: "a port, the prompt on stdin", args: []string{"-p", "--output-format", "stream-json", "--verbose"},
			dialect: streamjson.Claude, want: []string{"--print", "--output-format", "stream-json", "--verbose"}},
		{name: "a port without --print", args: strings.Fields("--output-format stream-json --verbose"), env: map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-rs"},
			dialect: streamjson.Claude, want: strings.Fields("--output-format stream-json --verbose")},
		{name: "a person who saw --verbose", args: strings.Fields("-p hi --output-format stream-json --verbose"), dialect: streamjson.Native,
			want: strings.Fields("-p hi --output-format stream-json --verbose")},
		{name: "a port that has flags of tomorrow", args: []string{"--print", "--output-format", "json", "--brand-new", "v", "--", "hi"}, dialect: streamjson.Claude,
			want: []string{"--print", "--output-format", "json", "--", "hi"}, dropped: []string{"--brand-new"}},
		{name: "a person's --print", args: []string{"--print", "hi"}, dialect: streamjson.Native, want: []string{"--print", "hi"}},
		{name: "by the name of claude", claude: true, args: strings.Fields("-p hi --output-format stream-json --verbose"), dialect: streamjson.Claude,
			want: strings.Fields("-p hi --output-format stream-json --verbose")},
		{name: "by the name of claude, lines", claude: true, args: strings.Fields(sdk), dialect: streamjson.Claude, want: strings.Fields(sdk)},
		{name: "by the name of claude, qwen's SDK", claude: true, args: strings.Fields(sdk + " --channel=SDK"), dialect: streamjson.Qwen, want: strings.Fields(sdk + " --channel=SDK")},
		{name: "by the name of claude, a person", claude: true, args: strings.Fields("-p hi"), dialect: streamjson.Native, want: strings.Fields("-p hi")},
		{name: "-p at the end", args: []string{"-m", "x", "-p"}, dialect: streamjson.Native, want: []string{"-m", "x", "--print"}},
		{name: "-p before the end of flags", args: []string{"-p", "--", "--yolo"}, dialect: streamjson.Native, want: []string{"--print", "--", "--yolo"}},
		{name: "-p twice", args: []string{"-p", "-p", "x"}, dialect: streamjson.Native, want: []string{"--print", "-p", "x"}},
		{name: "-p of a command behind --", args: []string{"policy", "explain", "--", "git", "-p", "--version"}, dialect: streamjson.Native,
			want: []string{"policy", "explain", "--", "git", "-p", "--version"}},
		{name: "a prompt with dashes", args: []string{"-p", "--what is this?"}, dialect: streamjson.Native, want: []string{"-p", "--what is this?"}},
		{name: "a prompt that looks like flags", args: []string{"-yp", "--input-format=stream-json", "--channel=SDK"}, dialect: streamjson.Native,
			want: []string{"-yp", "--input-format=stream-json", "--channel=SDK"}},
		{name: "after the end of flags", args: []string{"--", "--dialect=qwen"}, dialect: streamjson.Native, want: []string{"--", "--dialect=qwen"}},
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
			h := readHostArgs(test.args, IO{Getenv: func(name string) string { return test.env[name] }, Claude: test.claude}, mainFlags(root))
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

// TestBothSpellings: each flag that takes a value has it from --f v and from
// --f=v alike, empty or not, under an SDK too.
func TestBothSpellings(t *testing.T) {
	t.Parallel()
	samples := map[string][]string{
		"string": {"some text", "", "-x", "--yolo", "a=b", "{\"a\": [1, 2]}"}, "int": {"7"}, "float64": {"0.5"},
		"stringArray": {"Bash(git log:*),Read", ""}, "stringSlice": {"a,b", ""},
	}
	claude := func(name string) string { return map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}[name] }
	parse := func(t *testing.T, flag string, args ...string) string {
		t.Helper()
		root, _ := newRootOf(IO{})
		h := readHostArgs(append(args, "--input-format=stream-json"), IO{Getenv: claude}, mainFlags(root))
		if err := root.ParseFlags(h.args); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return root.Flags().Lookup(flag).Value.String()
	}
	root, _ := newRootOf(IO{})
	mainFlags(root).VisitAll(func(f *pflag.Flag) {
		if f.Name == "dialect" || f.Name == "input-format" || f.Name == "channel" || f.Value.Type() == "bool" {
			return // these settle what is spoken
		}
		values, ok := samples[f.Value.Type()]
		if !ok {
			t.Errorf("--%s is of the type %s, which has no samples", f.Name, f.Value.Type())
		}
		for _, v := range values {
			apart, joined := parse(t, f.Name, "--"+f.Name, v), parse(t, f.Name, "--"+f.Name+"="+v)
			if apart != joined {
				t.Errorf("--%s %q is %q, and with = %q", f.Name, v, apart, joined)
			}
			if f.Value.Type() == "string" && apart != v {
				t.Errorf("--%s %q is %q", f.Name, v, apart)
			}
		}
		twice := parse(t, f.Name, "--"+f.Name, values[0], "--"+f.Name+"="+values[0])
		list := strings.HasPrefix(f.Value.Type(), "string") && f.Value.Type() != "string"
		if once := parse(t, f.Name, "--"+f.Name, values[0]); (twice == once) == list {
			t.Errorf("--%s twice is %q, once %q", f.Name, twice, once)
		}
	})
}

// What looks like a flag behind -p is the prompt where no other is: it may be text
// that somebody else wrote.
func TestPromptThatIsAFlag(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-p", "--yolo"}, {"-p", "-y"}, {"-p", "--permission-mode=yolo"}, {"-p", "--yolo", "-"}, {"-p", "--verbose", "--output-format=json"}, {"-m", "x", "-p", "--help"},
		{"-p", "--"}, {"-p=--yolo"}, {"--prompt", "--yolo"}, {"-p", "yolo"}, {"-p", ""}, {"-p", "-"}, {"-p", "-5 + 3"}, {"-p", "--no-such-flag"},
	} {
		root, _ := newRootOf(IO{})
		h := readHostArgs(args, IO{Getenv: func(string) string { return "sdk-py" }, Claude: true}, mainFlags(root)) // the variables may be inherited
		if diff := cmp.Diff(args, h.args); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
}

// FuzzPromptStaysAPrompt: whatever somebody else's text behind -p is, it is the
// prompt where no other is.
func FuzzPromptStaysAPrompt(f *testing.F) {
	for _, s := range []string{"hi", "--yolo", "-y", "--", "-", "-p", "--print", "--print=true", "--model=x", "-yp", "--input-format", "--input-format=stream-json", "-p=x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, args := range [][]string{{"-p", prompt}, {"-p", prompt, "-"}, {"--output-format", "json", "-p", prompt}} {
			root, o := newRootOf(IO{})
			h := readHostArgs(args, IO{Getenv: func(string) string { return "" }}, mainFlags(root))
			if cmp.Diff(args, h.args) != "" || h.dialect != streamjson.Native {
				t.Errorf("%q became %q, %s", args, h.args, h.dialect)
			}
			if err := root.ParseFlags(h.args); err != nil || o.prompt != prompt {
				t.Errorf("%q: the prompt is %q: %v", args, o.prompt, err)
			}
		}
	})
}

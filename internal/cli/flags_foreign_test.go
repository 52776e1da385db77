package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/streamjson"
)

// TestForeignFlagsAreDocumented: what becomes of a flag that we haven't got is
// told in the manual, and none of them is one that we have.
func TestForeignFlagsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	root, _ := newRootOf(IO{})
	known := mainFlags(root)
	for _, f := range foreignFlags {
		if !bytes.Contains(page, []byte("`--"+f.name+"`")) {
			t.Errorf("docs/protocol.md does not name --%s", f.name)
		}
		if known.Lookup(f.name) != nil {
			t.Errorf("--%s is a flag of ours", f.name)
		}
		if f.why == "" && len(f.harmless) == 0 {
			t.Errorf("--%s is refused without a reason", f.name)
		}
	}
	for alias := range flagAliases {
		if !bytes.Contains(page, []byte("`--"+alias+"`")) {
			t.Errorf("docs/protocol.md does not name --%s", alias)
		}
	}
}

func TestForeignFlagsThatWouldDoHarmAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   string
		refuse string // part of the error; empty: passed over
	}{
		{"--resume", "--resume: "},
		{"--resume=", "--resume: "},
		{"--continue", "--continue: "},
		{"--fork-session --verbose", "--fork-session: "},
		{"--resume-drops-turn=", "Resume rejected by --resume-drops-turn:"},
		{"--plugin-dir x --plugin-dir y", "--plugin-dir: "},
		{"--sandbox", "no sandbox"},
		{"--sandbox true", "no sandbox"},
		{"--sandbox=false", ""},
		{"--extensions none", ""},
		{"--extensions a,b", "--extensions: "},
		{"--task-budget 5 --thinking-display=omitted --allow-dangerously-skip-permissions", ""},
		{"--google-api-key sesame", ""},
		{"--from-next-year value --and-the-next", ""},
		{"--resumes x", ""},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			root, o := newRootOf(IO{})
			args := append(strings.Fields(test.args), "--input-format=stream-json", "--output-format=stream-json")
			o.host = readHostArgs(args, IO{Getenv: func(name string) string {
				return map[string]string{"CLAUDE_AGENT_SDK_VERSION": "1"}[name]
			}}, mainFlags(root))
			if o.host.dialect != streamjson.Claude {
				t.Fatalf("dialect %q", o.host.dialect)
			}
			err := o.checkForeign()
			switch {
			case test.refuse == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.refuse != "" && (err == nil || !strings.Contains(err.Error(), test.refuse)):
				t.Errorf("error %v, want %q", err, test.refuse)
			}
			for _, d := range o.host.dropped {
				if strings.Contains(d.String(), "sesame") {
					t.Errorf("a key would be logged: %s", d)
				}
			}
		})
	}
}

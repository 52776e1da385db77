package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// promised are the flags that users are told of; each has to be there.
var promised = []string{
	"--prompt", "--prompt-file", "--output-format", "--input-format", "--include-partial-messages", "--model", "--system-prompt",
	"--system-prompt-file", "--append-system-prompt", "--max-turns", "--permission-mode", "--approval-mode", "--allowed-tools",
	"--disallowed-tools", "--tools", "--on-deny", "--add-dir", "--include-directories", "--session-id", "--verbose", "--debug", "--debug-file",
	"--record", "--record-protocol", "--version", "--help", "-p", "-m", "-v",
}

var (
	flagIn    = regexp.MustCompile(`(?m)^ +(?:(-[a-z]), )?(--[a-z-]+)`)
	commandIn = regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`)
)

// TestHelpAdvertisesOnlyWhatIsTested walks --help of all commands: what it names
// is used by a script or a test here, and all that is promised is named.
func TestHelpAdvertisesOnlyWhatIsTested(t *testing.T) {
	t.Parallel()
	uses := sources(t)
	var named []string
	for _, path := range [][]string{nil, {"config"}, {"config", "get"}, {"config", "list"}, {"config", "set"}, {"config", "unset"}, {"config", "schema"},
		{"model"}, {"model", "serve"}} {
		help := newPlace(t).help(path)
		for _, m := range flagIn.FindAllStringSubmatch(help, -1) {
			named = append(named, m[1], m[2])
			if !regexp.MustCompile(regexp.QuoteMeta(m[2]) + `\b`).MatchString(uses) {
				t.Errorf("agent %s advertises %s, and no test uses it", strings.Join(path, " "), m[2])
			}
		}
		for _, m := range commandIn.FindAllStringSubmatch(help, -1) {
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(uses) {
				t.Errorf("agent %s advertises the command %s, and no test uses it", strings.Join(path, " "), m[1])
			}
		}
	}
	for _, flag := range promised {
		if !slices.Contains(named, flag) {
			t.Errorf("--help does not name %s", flag)
		}
	}
}

func (p *place) help(command []string) string {
	p.t.Helper()
	proc, exit := p.run(testkit.Spec{Args: append(slices.Clone(command), "--help")})
	if exit.Code != 0 || proc.Stderr() != "" {
		p.t.Errorf("agent %v --help: exit code %d, stderr %q", command, exit.Code, proc.Stderr())
	}
	return proc.Output()
}

// sources are the texts of all scripts and tests, this file left out.
func sources(t *testing.T) string {
	t.Helper()
	var sb strings.Builder
	for _, pattern := range []string{"testdata/script/*.txtar", "*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if file != "cli_help_test.go" {
				sb.Write(raw)
			}
		}
	}
	return sb.String()
}

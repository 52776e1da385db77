package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the generated documentation")

// TestReferenceIsFresh regenerates docs/reference from the code and compares.
func TestReferenceIsFresh(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"cli.md": cliReference(), "exit-codes.md": exitReference()} {
		path := filepath.Join("..", "..", "docs", "reference", name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, []byte(text)) {
			t.Errorf("%s is stale: run go test ./internal/cli -run TestReferenceIsFresh -update", path)
		}
	}
}

func cliReference() string {
	var sb strings.Builder
	sb.WriteString("# Command line\n\nGenerated from the code.\n")
	commandReference(&sb, newRoot(IO{}))
	return sb.String()
}

func commandReference(sb *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(sb, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Short, strings.TrimRight(cmd.UsageString(), "\n"))
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			commandReference(sb, sub)
		}
	}
}

func exitReference() string {
	var sb strings.Builder
	sb.WriteString("# Exit codes\n\nGenerated from the code.\n\n| code | meaning |\n|---|---|\n")
	for _, row := range exitTable {
		fmt.Fprintf(&sb, "| %d | %s |\n", row.Code, row.Meaning)
	}
	sb.WriteString("\nUnder an SDK, and for what calls the program in the manner of Claude Code (`--print` with JSON), the codes are those that\nit expects: [protocol](../protocol.md#dialects).\n")
	return sb.String()
}

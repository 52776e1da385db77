package command

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of the documentation")

// TestDocs compares the table of built-in commands with the code.
func TestDocs(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../docs/commands.md", "<!-- generated: commands -->\n", "<!-- end -->"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", page, begin, end)
	}
	want := head + begin + commandTable() + end + tail
	switch {
	case want == string(data):
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run go test ./internal/command -run TestDocs -update", page)
	}
}

func commandTable() string {
	_, env := newSession()
	var sb strings.Builder
	sb.WriteString("| command | what it does | also |\n|---|---|---|\n")
	for _, c := range New(env).List() {
		also := ""
		if len(c.Aliases) > 0 {
			also = "`/" + strings.Join(c.Aliases, "`, `/") + "`"
		}
		sb.WriteString("| `" + strings.TrimSpace("/"+c.Name+" "+c.ArgumentHint) + "` | " + c.Description + " | " + also + " |\n")
	}
	return sb.String()
}

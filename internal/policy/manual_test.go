package policy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const manual = "../../docs/permissions.md"

// TestManualIsFresh checks that the generated parts of the manual say what the
// data says. After a change: go test ./internal/policy -run TestManualIsFresh -update
func TestManualIsFresh(t *testing.T) {
	old, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	text := string(old)
	for name, content := range map[string]string{
		"protected": protectedTable(t), "secrets": secretsList(t), "destructive": destructiveTable(t), "score": scoreText(t),
	} {
		head := "<!-- generated: " + name + " -->\n"
		before, rest, ok := strings.Cut(text, head)
		_, after, closed := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !closed {
			t.Fatalf("%s has no part %q", manual, name)
		}
		text = before + head + content + "<!-- end -->\n" + after
	}
	if text == string(old) {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: run go test ./internal/policy -run TestManualIsFresh -update", manual)
	}
	if err := os.WriteFile(manual, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func protectedTable(t *testing.T) string {
	byWhy := map[string][]string{}
	for _, p := range readPaths(t).Protected {
		byWhy[p.why] = append(byWhy[p.why], "`"+p.path+"`")
	}
	return table2("path", "why", byWhy)
}

// table2 writes what is said of names, those with the same in one row.
func table2(first, second string, byWhy map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|---|---|\n", first, second)
	for _, why := range slices.Sorted(maps.Keys(byWhy)) {
		slices.Sort(byWhy[why])
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(slices.Compact(byWhy[why]), ", "), why)
	}
	return b.String()
}

func secretsList(t *testing.T) string {
	p := readPaths(t)
	code := func(list []string) string { return "`" + strings.Join(list, "`, `") + "`" }
	return "Files: " + code(p.SecretFiles) + ".\n\nEverything in: " + code(p.SecretDirs) + ".\n\nNot, in spite of their names: " + code(p.NotSecret) + ".\n"
}

func destructiveTable(t *testing.T) string {
	var ruins []rawRuin
	readData(t, "destructive", &ruins)
	byWhy := map[string][]string{}
	for _, r := range ruins {
		text := r.Cmd
		if with := strings.TrimSpace(strings.Join([]string{r.Flags, r.Words, r.Prefix}, " ")); with != "" {
			text += " (" + strings.Join(strings.Fields(with), " ") + ")"
		}
		byWhy[r.Why] = append(byWhy[r.Why], "`"+text+"`")
	}
	byWhy["deletes many files"] = append(byWhy["deletes many files"], "`rm -r`", "`rm *`")
	return table2("command (with any of)", "why", byWhy)
}

func scoreText(t *testing.T) string {
	s := score(t)
	return fmt.Sprintf("%d judged commands and calls, %d of them dangerous: %d judged too lax. Of %d that should run freely, %d are asked about (%.1f %%).\n",
		s.cases, s.dangerous, len(s.wrong), s.free, len(s.asked), s.percent())
}

package policy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	corpusMinimum     = 1000 // cases altogether
	corpusPerTemplate = 3    // cases that share a template
	corpusAdvisories  = 37   // T-01 to T-37 are the advisories that a source may name
)

// corpusAreas are the files of the corpus, one per area. A case's id begins
// with its area.
var corpusAreas = [...]string{
	"advisories", "destructive", "env", "everyday", "gtfo", "hosts", "paths", "rules", "syntax",
}

// corpusCase is one judged call: testdata/corpus/README.md says what the fields
// mean.
type corpusCase struct {
	ID       string            `json:"id"`
	Template string            `json:"template"`
	Mode     Mode              `json:"mode"`
	Rules    corpusRules       `json:"rules"`
	Tool     string            `json:"tool"`    // empty: run_shell_command
	Input    json.RawMessage   `json:"input"`   // of the other tools
	Command  string            `json:"command"` // of the shell
	Links    map[string]string `json:"links"`   // symbolic links, to what they point at
	Want     Behavior          `json:"want"`
	Danger   bool              `json:"danger"`
	Reason   string            `json:"reason"`
	Source   string            `json:"source"`
}

type corpusRules struct {
	Allow []string `json:"allow"`
	Ask   []string `json:"ask"`
	Deny  []string `json:"deny"`
}

// corpusTools are the tools that the corpus calls, with the keys that the input
// of each has. The shell's input is the case's command.
var corpusTools = map[string][]string{
	"":           nil,
	"read_file":  {"file_path"},
	"write_file": {"content", "file_path"},
	"edit":       {"file_path", "new_string", "old_string"},
	"web_fetch":  {"prompt", "url"},
}

// readCorpus returns the cases of every area in the files' order. It fails the
// test at a file or line that it cannot read.
func readCorpus(t testing.TB) []corpusCase {
	t.Helper()
	var cases []corpusCase
	for _, area := range corpusAreas {
		name := filepath.Join("testdata", "corpus", area+".jsonl")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatalf("reading the corpus: %v", err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, len(data)+1)
		for n := 1; lines.Scan(); n++ {
			c, err := parseCorpusCase(lines.Bytes())
			if err != nil {
				t.Fatalf("%s:%d: %v", name, n, err)
			}
			cases = append(cases, c)
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return cases
}

func parseCorpusCase(line []byte) (corpusCase, error) {
	var c corpusCase
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return corpusCase{}, err
	}
	if d.More() {
		return corpusCase{}, fmt.Errorf("text after the case %s", c.ID)
	}
	return c, nil
}

func TestCorpusCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, c := range readCorpus(t) {
		for _, problem := range corpusProblems(&c) {
			t.Errorf("%s: %s", c.ID, problem)
		}
	}
}

// corpusProblems says what is wrong with one case by itself.
func corpusProblems(c *corpusCase) []string {
	var problems []string
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(c.Template == "", "no template")
	wrong(c.Reason == "" || strings.ContainsRune(c.Reason, '\n'), "the reason must be one line")
	wrong(!slices.Contains(Modes[:], c.Mode), "unknown mode %q", c.Mode)
	wrong(c.Want != Allow && c.Want != Ask && c.Want != Deny, "unknown answer %q", c.Want)
	wrong(c.Want == Allow && c.Danger, "allow is wanted and is dangerous")
	wrong(!knownCorpusSource(c.Source), "unknown source %q", c.Source)
	keys, known := corpusTools[c.Tool]
	wrong(!known, "unknown tool %q", c.Tool)
	wrong((c.Command != "") != (c.Tool == ""), "the shell has a command, the others an input")
	wrong(!slices.Equal(corpusInputKeys(c.Input), keys), "the input's keys must be %v", keys)
	for _, rule := range slices.Concat(c.Rules.Allow, c.Rules.Ask, c.Rules.Deny) {
		wrong(rule == "", "an empty rule")
	}
	return problems
}

func corpusInputKeys(input json.RawMessage) []string {
	var fields map[string]string
	if len(input) == 0 || json.Unmarshal(input, &fields) != nil {
		return nil
	}
	var keys []string
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// knownCorpusSource reports whether a source is an area, one of the
// advisories, a row of the users' complaints or a list of abuses.
func knownCorpusSource(source string) bool {
	if number, ok := strings.CutPrefix(source, "T-"); ok {
		n, err := strconv.Atoi(number)
		return err == nil && len(number) == 2 && n >= 1 && n <= corpusAdvisories
	}
	if row, ok := strings.CutPrefix(source, "users-"); ok {
		_, err := strconv.Atoi(row)
		return err == nil
	}
	return source == "gtfobins" || slices.Contains(corpusAreas[:], source)
}

func TestCorpusIsLargeAndVaried(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t)
	if len(cases) < corpusMinimum {
		t.Errorf("%d cases: the corpus needs at least %d", len(cases), corpusMinimum)
	}
	ids := make(map[string]bool)
	templates := make(map[string]int)
	calls := make(map[string]string)
	for _, c := range cases {
		if ids[c.ID] {
			t.Errorf("%s: two cases have this id", c.ID)
		}
		ids[c.ID] = true
		if templates[c.Template]++; templates[c.Template] == corpusPerTemplate+1 {
			t.Errorf("%s: over %d cases of template %q", c.ID, corpusPerTemplate, c.Template)
		}
		call := fmt.Sprintf("%q", []any{c.Mode, c.Rules, c.Tool, c.Input, c.Command, c.Links})
		if other, ok := calls[call]; ok {
			t.Errorf("%s: the same call as %s", c.ID, other)
		}
		calls[call] = c.ID
		area, number, _ := strings.Cut(c.ID, "-")
		if _, err := strconv.Atoi(number); err != nil || !slices.Contains(corpusAreas[:], area) {
			t.Errorf("%s: an id is an area and a number", c.ID)
		}
	}
}

func TestCorpusShowsEveryByte(t *testing.T) {
	t.Parallel()
	for _, area := range corpusAreas {
		name := filepath.Join("testdata", "corpus", area+".jsonl")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatalf("reading the corpus: %v", err)
		}
		for n, line := range strings.Split(string(data), "\n") {
			for _, r := range line {
				if !strconv.IsGraphic(r) || (r > 0x7f && !strconv.IsPrint(r)) {
					t.Errorf("%s:%d: %U must be escaped", name, n+1, r)
				}
			}
		}
	}
}

func TestCorpusFormatCatchesMistakes(t *testing.T) {
	t.Parallel()
	good := corpusCase{
		ID: "everyday-001", Template: "ls", Mode: ModeDefault, Command: "ls",
		Want: Allow, Reason: "lists", Source: "everyday",
	}
	tests := []struct {
		name string
		edit func(*corpusCase)
	}{
		{"a mode nobody knows", func(c *corpusCase) { c.Mode = "careful" }},
		{"an answer nobody knows", func(c *corpusCase) { c.Want = "maybe" }},
		{"danger in what is allowed", func(c *corpusCase) { c.Danger = true }},
		{"an advisory that doesn't exist", func(c *corpusCase) { c.Source = "T-38" }},
		{"a source nobody knows", func(c *corpusCase) { c.Source = "hearsay" }},
		{"no reason", func(c *corpusCase) { c.Reason = "" }},
		{"no template", func(c *corpusCase) { c.Template = "" }},
		{"a shell without a command", func(c *corpusCase) { c.Command = "" }},
		{"a command for a file tool", func(c *corpusCase) { c.Tool = "read_file" }},
		{"a tool nobody knows", func(c *corpusCase) { c.Tool, c.Command = "teleport", "" }},
		{"an empty rule", func(c *corpusCase) { c.Rules.Deny = []string{""} }},
	}
	if problems := corpusProblems(&good); len(problems) > 0 {
		t.Fatalf("a good case has problems: %v", problems)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := good
			tt.edit(&c)
			if len(corpusProblems(&c)) == 0 {
				t.Errorf("nothing was found wrong with %+v", c)
			}
		})
	}
}

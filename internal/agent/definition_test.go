package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/policy"
)

func number(f float64) *float64 { return &f }

func TestDefinitionsOfHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []Definition
	}{
		{"nothing", ``, nil},
		{"null", `null`, nil},
		{"a list", `[{"name":"b","description":"d","systemPrompt":"p","level":"session","tools":["read_file"],"isBuiltin":false,
			"modelConfig":{"model":"m","temp":0.5,"topP":0.9},"runConfig":{"max_turns":3,"max_time_minutes":0.5},"color":"red","filePath":"/x"}]`,
			[]Definition{{Name: "b", Description: "d", Prompt: "p", Tools: []string{"read_file"}, Model: "m", Temperature: number(0.5), TopP: number(0.9),
				MaxTurns: 3, MaxTime: 30 * time.Second, Color: "red", FilePath: "/x", Level: LevelSession}}},
		{"a list in the other spelling", `[{"name":"b","system_prompt":"p","model":"m","model_config":{"model":"n","temperature":1},"run_config":{"maxTurns":4,"maxTimeMinutes":2}}]`,
			[]Definition{{Name: "b", Prompt: "p", Model: "m", Temperature: number(1), MaxTurns: 4, MaxTime: 2 * time.Minute, Level: LevelSession}}},
		{"by name", `{"z":{"description":"d","prompt":"p","tools":null},"a":{"prompt":"q","disallowedTools":["Bash"],"model":"inherit","maxTurns":5,
			"background":true,"effort":"high","permissionMode":"plan","skills":["s"],"mcpServers":[{"x":1}]}}`,
			[]Definition{
				{Name: "a", Prompt: "q", DisallowedTools: []string{"Bash"}, MaxTurns: 5, Background: true, Effort: "high", PermissionMode: policy.ModePlan, Level: LevelSession},
				{Name: "z", Description: "d", Prompt: "p", Level: LevelSession},
			}},
		{"tools in one text", `{"a":{"tools":"Read, Bash(git log, git diff), Grep"}}`,
			[]Definition{{Name: "a", Tools: []string{"Read", "Bash(git log, git diff)", "Grep"}, Level: LevelSession}}},
		{"all tools", `{"a":{"tools":["*"]}}`, []Definition{{Name: "a", Level: LevelSession}}},
		{"no tools", `{"a":{"tools":[]}}`, []Definition{{Name: "a", Tools: []string{}, Level: LevelSession}}},
		{"effort as a number", `{"a":{"effort":3}}`, []Definition{{Name: "a", Effort: "3", Level: LevelSession}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDefinitions([]byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWrongDefinitionsNameAgentAndField(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`7`:                                       "agents must be a list",
		`[1]`:                                     "agents[0] must be an object",
		`[{}]`:                                    "agents[0]: name: it is missing",
		`[{"name":7}]`:                            "agents[0]: name: it must be a text",
		`[{"name":"a"},{"name":"a"}]`:             `agent "a" is there twice`,
		`{"a":[]}`:                                `agent "a" must be an object`,
		`{"a":null}`:                              `agent "a" must be an object`,
		`{"a/b":{}}`:                              `contains '/'`,
		`{" a":{}}`:                               "begins or ends with a space",
		`{"a\nb":{}}`:                             "must not",
		`{"a":{"prompt":7}}`:                      `agent "a": prompt: it must be a text`,
		`{"a":{"systemPrompt":{}}}`:               `agent "a": systemPrompt: it must be a text`,
		`{"a":{"tools":[1]}}`:                     `agent "a": tools: it must be a list of texts`,
		`{"a":{"tools":{}}}`:                      `agent "a": tools: it must be a list of texts`,
		`{"a":{"background":"yes"}}`:              `agent "a": background: it must be true or false`,
		`{"a":{"maxTurns":1.5}}`:                  `agent "a": maxTurns: it must be a whole number`,
		`{"a":{"maxTurns":-1}}`:                   `agent "a": maxTurns: it must be a whole number`,
		`{"a":{"modelConfig":7}}`:                 `agent "a": modelConfig: it must be an object`,
		`{"a":{"modelConfig":{"temp":"hot"}}}`:    `agent "a": modelConfig: temp: it must be a number`,
		`{"a":{"runConfig":{"max_turns":[]}}}`:    `agent "a": runConfig: max_turns: it must be a whole number`,
		`{"a":{"permissionMode":"whatever"}}`:     `agent "a": permissionMode: unknown permission mode "whatever"`,
		`{"` + strings.Repeat("a", 101) + `":{}}`: "longer than 100 characters",
	}
	for in, want := range tests {
		got, err := ParseDefinitions([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%s: %v, error %v, want %q", in, got, err, want)
		}
	}
}

const reviewer = `---
name: reviewer
description: Reviews: use it after changes
tools: Read, Grep
permissionMode: bypassPermissions
maxTurns: 7
---

You review.
`

func TestDefinitionsOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project, user := filepath.Join(dir, "p", ".claude", "agents"), filepath.Join(dir, "u", "agents")
	secret := filepath.Join(dir, "secret.md")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(project, "r.md"), reviewer)
	write(filepath.Join(project, "notes.txt"), "no agent")
	write(filepath.Join(project, "broken.md"), "---\nmaxTurns: many\n---\n")
	write(filepath.Join(project, "plain.md"), "no settings")
	write(filepath.Join(user, "named-by-file.md"), "---\ndescription: d\n---\nP")
	write(filepath.Join(user, "r.md"), "---\nname: reviewer\n---\nThe user's.")
	write(secret, "---\nname: secret\n---\nkey")
	for _, folder := range []string{project, user} {
		if err := os.Symlink(secret, filepath.Join(folder, "link.md")); err != nil {
			t.Skip("no links here")
		}
	}
	got, problems := LoadDefinitions([]Folder{{user, LevelUser}, {filepath.Join(dir, "missing"), LevelUser}, {project, LevelProject}}, readSome)
	want := []Definition{ // in the order of the folders
		{Name: "secret", Prompt: "key", Level: LevelUser, FilePath: filepath.Join(user, "link.md")},
		{Name: "named-by-file", Description: "d", Prompt: "P", Level: LevelUser, FilePath: filepath.Join(user, "named-by-file.md")},
		{Name: "reviewer", Prompt: "The user's.", Level: LevelUser, FilePath: filepath.Join(user, "r.md")},
		{Name: "reviewer", Description: "Reviews: use it after changes", Prompt: "You review.", Tools: []string{"Read", "Grep"},
			PermissionMode: policy.ModeYolo, MaxTurns: 7, Level: LevelProject, FilePath: filepath.Join(project, "r.md")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(problems); len(problems) != 2 || !strings.Contains(text, "broken.md is left out") || !strings.Contains(text, "plain.md is left out") {
		t.Errorf("problems: %v", problems)
	}
}

func TestNoLinkedFolderOfAProjectIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "home", "agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "home", "agents", "r.md"), []byte(reviewer), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "home"), filepath.Join(dir, ".claude")); err != nil {
		t.Skip("no links here")
	}
	got, problems := LoadDefinitions([]Folder{{filepath.Join(dir, ".claude", "agents"), LevelProject}}, readSome)
	if len(got) > 0 || len(problems) != 1 {
		t.Errorf("%v, problems %v", got, problems)
	}
}

func readSome(path string, most int64) ([]byte, error) {
	data, err := os.ReadFile(path)
	if int64(len(data)) > most {
		return nil, errors.New("too large")
	}
	return data, err
}

func FuzzParseDefinitions(f *testing.F) {
	f.Add([]byte(`[{"name":"b","tools":"a,b","modelConfig":{"temp":1},"runConfig":{"max_turns":3}}]`))
	f.Add([]byte(`{"a":{"effort":1e9,"permissionMode":"plan"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseDefinitions(data)
		if err != nil && list != nil {
			t.Error("both a list and an error")
		}
		checkDefinitions(t, list)
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(reviewer))
	f.Add([]byte("---\nmodel: {a: 1}\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := ParseFile("/x/some.md", data); err == nil {
			checkDefinitions(t, []Definition{d})
		}
	})
}

func checkDefinitions(t *testing.T, list []Definition) {
	t.Helper()
	for _, d := range list {
		if err := checkAgentName(d.Name); err != nil {
			t.Error(err)
		}
		if d.MaxTurns < 0 || d.MaxTime < 0 {
			t.Errorf("negative limits: %+v", d)
		}
	}
}

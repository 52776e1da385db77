package tools

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// builtIn returns the specs of all tools of this package.
func builtIn(t testing.TB) []Spec {
	t.Helper()
	b := newToolBench(t)
	tasks := NewTasks()
	list := append(NewFileTools(FileConfig{Roots: b.roots, State: b.state}),
		NewShell(ShellConfig{Roots: b.roots, Tasks: tasks}), NewTaskOutput(tasks), NewTaskStop(tasks),
		NewTodoWrite(new(TodoList)), NewAskUser(nil), NewWebFetch(WebFetchOptions{}))
	var specs []Spec
	for _, tool := range list {
		specs = append(specs, tool.Spec())
	}
	return specs
}

func TestEveryToolDeclaresItsInput(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"read_file": "file_path read", "write_file": "file_path write", "edit": "file_path write", "notebook_edit": "notebook_path write",
		"list_directory": "path search", "grep_search": "path search", "glob": "path search, pattern glob",
		"run_shell_command": "directory workdir", "web_fetch": "url url",
	}
	for _, spec := range builtIn(t) {
		if spec.input == nil {
			t.Errorf("%s declares no input", spec.Name)
			continue
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		keys := map[string]bool{}
		for name, aliases := range inputKeys(spec.input) {
			keys[name] = true
			for key := range strings.SplitSeq(strings.Trim(name+","+aliases, ","), ",") {
				if folded := strings.ToLower(key); seen[folded] {
					t.Errorf("%s: %s is the key or alias of two fields", spec.Name, key)
				} else {
					seen[folded] = true
				}
			}
		}
		for name := range schema.Properties {
			if !keys[name] {
				t.Errorf("%s: the schema's %s is not a canonical key", spec.Name, name)
			}
		}
		var targets []string
		for _, target := range spec.Targets {
			if !keys[target.Key] {
				t.Errorf("%s: the target %s is not a canonical key", spec.Name, target.Key)
			}
			targets = append(targets, target.Key+" "+target.Kind.String())
		}
		wantSame(t, spec.Name, strings.Join(targets, ", "), want[spec.Name])
	}
}

func TestDecodingIntoAnotherTypeThanDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	spec := Spec{Name: "x", input: reflect.TypeFor[readInput]()}
	var in globInput
	if err := spec.decode(json.RawMessage(`{"pattern":"*"}`), &in); err == nil || in.Pattern != "" {
		t.Errorf("decoded %v, %v", in, err)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	specs := map[string]Spec{"other": {Name: "other"}}
	for _, s := range builtIn(t) {
		specs[s.Name] = s
	}
	for _, c := range []struct{ name, tool, in, want string }{
		{"nothing to do", "read_file", `{"file_path":"a","offset":1}`, `{"file_path":"a","offset":1}`},
		{"no input", "read_file", ` `, `{}`},
		{"an alias", "read_file", `{"offset":1,"path":"a"}`, `{"offset":1,"file_path":"a"}`},
		{"the key wins", "read_file", `{"path":"a","file_path":"b"}`, `{"file_path":"b"}`},
		{"null is absent", "read_file", `{"file_path":null,"filename":"a"}`, `{"file_path":"a"}`},
		{"only null", "read_file", `{"file_path":null,"path":null}`, `{}`},
		{"the first alias declared wins", "read_file", `{"filename":"a","path":"b"}`, `{"file_path":"b"}`},
		{"the last of a repeated key counts", "read_file", `{"file_path":"a","x":1,"file_path":"b"}`, `{"file_path":"b","x":1}`},
		{"an escaped key", "read_file", `{"file_path":"a","\u0066ile_path":"b"}`, `{"file_path":"b"}`},
		{"another case", "read_file", `{"file_path":"a","File_Path":"b","PATH":"c"}`, `{"file_path":"a"}`},
		{"a letter that folds", "run_shell_command", `{"command":"ls","workdir":"a","bac\u212aground":true}`, `{"command":"ls","directory":"a"}`},
		{"unknown keys stay", "glob", `{"why":"<b>","pattern":"*"}`, `{"why":"<b>","pattern":"*"}`},
		{"wrong types stay", "glob", `{"pattern":[1], "directory" : {"a":"b"} }`, `{"pattern":[1],"path":{"a":"b"}}`},
		{"a tool of others", "other", `{"path":1,"path":2,"Path":3}`, `{"path":2,"Path":3}`},
	} {
		got, err := Canonical(specs[c.tool], json.RawMessage(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		wantSame(t, c.name, string(got), c.want)
	}
	for _, in := range []string{`[]`, `null`, `"a"`, `{"file_path":}`, `{"file_path":"a"} x`} {
		if got, err := Canonical(specs["read_file"], json.RawMessage(in)); err == nil {
			t.Errorf("Canonical(%s) = %s, want an error", in, got)
		}
	}
}

func TestTouched(t *testing.T) {
	t.Parallel()
	specs := map[string]Spec{}
	for _, s := range builtIn(t) {
		specs[s.Name] = s
	}
	for _, c := range []struct {
		tool, in string
		want     []Touch
	}{
		{"read_file", `{"path":"a"}`, []Touch{{TargetRead, "a"}}},
		{"edit", `{"file_path":"a","path":"b"}`, []Touch{{TargetWrite, "a"}}},
		{"write_file", `{"filePath":"~/a"}`, []Touch{{TargetWrite, "~/a"}}},
		{"list_directory", `{}`, []Touch{{TargetSearch, "."}}},
		{"grep_search", `{"pattern":"/etc/*","path":""}`, []Touch{{TargetSearch, "."}}},
		{"grep_search", `{"dir_path":"/etc"}`, []Touch{{TargetSearch, "/etc"}}},
		{"glob", `{"pattern":"*.go"}`, []Touch{{TargetSearch, "."}}},
		{"glob", `{"glob":"../x/*.go","directory":"a/b"}`, []Touch{{TargetSearch, "a/x"}}},
		{"glob", `{"pattern":"/etc/**/x","path":"a"}`, []Touch{{TargetSearch, "/etc"}}},
		{"glob", `{"pattern":"~/x/*","path":"a"}`, []Touch{{TargetSearch, "~/x"}}},
		{"run_shell_command", `{"command":"ls"}`, []Touch{{TargetWorkDir, "."}}},
		{"run_shell_command", `{"command":"ls","cwd":"/tmp"}`, []Touch{{TargetWorkDir, "/tmp"}}},
		{"web_fetch", `{"url":"https://a.example/"}`, []Touch{{TargetURL, "https://a.example/"}}},
		{"todo_write", `{"todos":[]}`, nil},
	} {
		got, err := Touched(specs[c.tool], json.RawMessage(c.in))
		if err != nil {
			t.Errorf("%s %s: %v", c.tool, c.in, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %s: %s", c.tool, c.in, d)
		}
	}
	for _, in := range []string{`[]`, `{"path":1}`, `{"file_path":["a"]}`} {
		if got, err := Touched(specs["read_file"], json.RawMessage(in)); err == nil {
			t.Errorf("Touched(%s) = %v, want an error", in, got)
		}
	}
	if _, err := Touched(Spec{Targets: []Target{{"pattern", TargetGlob}}}, nil); err == nil {
		t.Error("a glob that belongs to no directory was taken")
	}
}

// TestGlobActsWhereTouchedSays compares with where the tool itself begins.
func TestGlobActsWhereTouchedSays(t *testing.T) {
	t.Parallel()
	b := openToolBench(t, "/")
	tool := b.tools["glob"].(*globTool)
	for _, pattern := range []string{"*", "a/*.go", "../*", "a/../../x/*", "/usr/*/x", "/*", "{/usr,/etc}/*", `a\*/b*`, "[/]usr/*", "~/x*", "**", "x/y", "./a/*", "//usr//*"} {
		for _, dir := range []string{"", ".", "usr", "/usr", "usr/..", "~"} {
			input, err := json.Marshal(args{"pattern": pattern, "path": dir})
			if err != nil {
				t.Fatal(err)
			}
			at, _, err := tool.locate(b.roots, globInput{Pattern: pattern, Path: dir})
			if err != nil {
				t.Errorf("%s in %q: %v", pattern, dir, err)
				continue
			}
			touched, err := Touched(tool.spec, input)
			if err != nil || len(touched) != 1 {
				t.Fatalf("Touched(%s) = %v, %v", input, touched, err)
			}
			want, err := b.roots.Resolve(touched[0].Name)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, string(input), at.Path, want.Path)
		}
	}
}

// TestCanonicalReadsLikeTheDecoder builds inputs of the keys and aliases of
// each tool, in wrong case, escaped, repeated, null and of wrong types.
func TestCanonicalReadsLikeTheDecoder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	specs := builtIn(t)
	for range rounds(20_000) {
		spec := specs[random.IntN(len(specs))]
		checkCanonical(t, spec, randomInput(random, spec))
	}
}

func FuzzCanonical(f *testing.F) {
	specs := builtIn(f)
	for i, s := range []string{
		``, `{`, `[]`, `{"path":"a","file_path":"b"}`, `{"file_path":null,"path":"\ud800"}`, `{"p\u0061th":"a","path":1}`,
		"{\"path\":\"a\",\"pa\xffth\":\"b\"}", `{"pattern":"x","path":"a","path":"b","PATH":"c"}`, `{"url":"a","URL":"b"} `, `{"":1,"":2}`,
	} {
		f.Add(i, s)
	}
	f.Fuzz(func(t *testing.T, tool int, input string) {
		checkCanonical(t, specs[uint(tool)%uint(len(specs))], input)
	})
}

// checkCanonical fails unless the tool decodes the canonical input as it does
// the input, and other readers see in it what the tool does.
func checkCanonical(t *testing.T, spec Spec, input string) {
	t.Helper()
	canonical, err := Canonical(spec, json.RawMessage(input))
	got, want := reflect.New(spec.input), reflect.New(spec.input)
	wantErr := decodeInput(json.RawMessage(input), want.Interface())
	if err != nil {
		if wantErr == nil {
			t.Fatalf("Canonical(%s, %s): %v, but it can be decoded", spec.Name, input, err)
		}
		return
	}
	gotErr := decodeInput(canonical, got.Interface())
	if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%s: %s reads as %+v (%v), its canonical form %s as %+v (%v)",
			spec.Name, input, want.Elem(), wantErr, canonical, got.Elem(), gotErr)
	}
	again, err := Canonical(spec, canonical)
	if err != nil || !bytes.Equal(again, canonical) {
		t.Fatalf("%s: %s is canonical, but becomes %s (%v)", spec.Name, canonical, again, err)
	}
	checkOtherReaders(t, spec, canonical, got.Elem())
	if gotErr == nil {
		checkTouched(t, spec, input, got.Elem())
	}
}

// checkOtherReaders reads a canonical input without this package: no key is
// repeated, in any case, and the targets are under their keys.
func checkOtherReaders(t *testing.T, spec Spec, canonical json.RawMessage, decoded reflect.Value) {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal(canonical, &values); err != nil {
		t.Fatalf("%s is no JSON: %v", canonical, err)
	}
	order := keyOrder(canonical)
	if len(order) != len(values) {
		t.Fatalf("%s repeats a key", canonical)
	}
	for name, aliases := range inputKeys(spec.input) {
		for _, key := range order {
			same := func(k string) bool { return strings.EqualFold(k, key) }
			if key != name && (same(name) || slices.ContainsFunc(strings.Split(aliases, ","), same) && aliases != "") {
				t.Fatalf("%s: %s has %s besides %s", spec.Name, canonical, key, name)
			}
		}
	}
	for _, target := range spec.Targets {
		value, ok := values[target.Key].(string)
		if field := decodedField(decoded, target.Key); ok && field != "" && field != value {
			t.Fatalf("%s: %s of %s is %q for the tool", spec.Name, target.Key, canonical, field)
		}
	}
}

func checkTouched(t *testing.T, spec Spec, input string, decoded reflect.Value) {
	t.Helper()
	touched, err := Touched(spec, json.RawMessage(input))
	if err != nil {
		t.Fatalf("Touched(%s, %s): %v", spec.Name, input, err)
	}
	if len(spec.Targets) != 1 {
		return // none; or glob, which has a test of its own
	}
	want := decodedField(decoded, spec.Targets[0].Key)
	if kind := spec.Targets[0].Kind; want == "" && (kind == TargetSearch || kind == TargetWorkDir) {
		want = "."
	}
	wantSame(t, input, touched[0].Name, want)
}

// decodedField returns the string that was decoded for a key.
func decodedField(v reflect.Value, key string) string {
	for i := range v.NumField() {
		if name, _, _ := inputKey(v.Type().Field(i)); name == key {
			return v.Field(i).String()
		}
	}
	return ""
}

// randomInput is an object of keys that the tool may know.
func randomInput(random *rand.Rand, spec Spec) string {
	keys := []string{"unknown", ""}
	for name, aliases := range inputKeys(spec.input) {
		keys = append(keys, name)
		if aliases != "" {
			keys = append(keys, strings.Split(aliases, ",")...)
		}
	}
	values := []string{`null`, `"a"`, `"b"`, `"../c"`, ` "d" `, `""`, `3`, `"4"`, `true`, `["e"]`, `{"path":"f"}`, `"\u0061"`, "\"\xff\""}
	var b strings.Builder
	b.WriteByte('{')
	for i := range random.IntN(6) {
		if i > 0 {
			b.WriteByte(',')
		}
		key := keys[random.IntN(len(keys))]
		switch random.IntN(6) {
		case 0:
			key = strings.ToUpper(key)
		case 1:
			key = strings.ReplaceAll(key, "a", `\u0061`)
		}
		b.WriteString(`"` + key + `":` + values[random.IntN(len(values))])
	}
	b.WriteByte('}')
	return b.String()
}

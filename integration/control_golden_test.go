package integration

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentcli/agent/internal/streamjson"
)

// goldenCase is one conversation of a host with the program, as a golden file
// keeps it.
type goldenCase struct {
	name string
	// only are the dialects that it is played in; nil: all.
	only []streamjson.Dialect
	// model is the model script; "" is chat.
	model string
	flags []string
	files map[string]string
	// whole keeps all of system/init, of the response to initialize and of usage,
	// which is otherwise left out.
	whole bool
	// exit is the exit code that is right.
	exit int
	play func(h *scriptedHost)
}

var (
	goldenDialects = []streamjson.Dialect{streamjson.Native, streamjson.Claude, streamjson.Qwen}
	notQwen        = goldenDialects[:2]
	onlyQwen       = goldenDialects[2:]
)

// goldenCases are the cases by golden file: from_host/SUBTYPE are requests of
// the host, to_host/SUBTYPE those of the program, and conversation/NAME whole
// turns.
func goldenCases() map[string][]goldenCase {
	all := map[string][]goldenCase{}
	for _, m := range []map[string][]goldenCase{
		sessionCases(), changeCases(), tellCases(), serverCases(), judgeCases(), oddCases(),
		questionCases(), hookCases(), tunnelCases(), conversationCases(), subagentCases(),
	} {
		maps.Copy(all, m)
	}
	return all
}

// TestGoldenControl plays each case in each dialect and compares the lines of
// both directions, case by case, with testdata/golden/control/DIALECT/FILE.jsonl. A line of
// that is {"case"}, {"in"} from the host, {"out"} to it, {"eof":true} where the
// host closed stdin, or {"exit"} with the code. Ids, times and what differs from
// machine to machine are replaced. -update writes the files anew.
func TestGoldenControl(t *testing.T) {
	t.Parallel()
	for file, cases := range goldenCases() {
		for _, d := range goldenDialects {
			t.Run(string(d)+"/"+file, func(t *testing.T) {
				t.Parallel()
				var got bytes.Buffer
				for _, c := range cases {
					if c.only == nil || slices.Contains(c.only, d) {
						playGolden(t, &got, d, c)
					}
				}
				compareControl(t, filepath.Join("testdata", "golden", "control", string(d), file+".jsonl"), got.Bytes())
			})
		}
	}
}

// TestGoldenFilesHaveCases finds golden files that no case writes any more.
func TestGoldenFilesHaveCases(t *testing.T) {
	t.Parallel()
	cases := goldenCases()
	root := filepath.Join("testdata", "golden", "control")
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		rel, _ := filepath.Rel(root, strings.TrimSuffix(path, ".jsonl"))
		_, name, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if len(cases[name]) == 0 && !strings.HasPrefix(rel, "gemini") {
			t.Errorf("%s belongs to no case: remove it", path)
		}
	}
}

// playGolden plays one case and appends its lines.
func playGolden(t *testing.T, out *bytes.Buffer, d streamjson.Dialect, c goldenCase) {
	t.Helper()
	t.Logf("case %q", c.name)
	h := newScriptedHost(t, d, c)
	c.play(h)
	h.end(c.exit)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, l := range append([]any{map[string]any{"case": c.name}}, h.record()...) {
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
}

func compareControl(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if len(got) == 0 {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && len(got) > 0 {
		t.Fatalf("%v (write it with: go test ./integration -run GoldenControl -update)", err)
	}
	if slices.Equal(byCase(want), byCase(got)) {
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// byCase returns the lines with those of each case sorted: the lanes of the
// control plane, the servers and the turn run side by side, so that some lines
// of theirs may come in either order. What must be in order has tests of its
// own.
func byCase(data []byte) []string {
	lines := strings.Split(string(data), "\n")
	begin := 0
	for i, line := range lines {
		if strings.HasPrefix(line, `{"case":`) {
			slices.Sort(lines[begin:i])
			begin = i + 1
		}
	}
	slices.Sort(lines[begin:])
	return lines
}

// wireSchema is the protocol's published schema, narrowed to one definition;
// nil if it has no such one.
func wireSchema(t testing.TB, def string) *jsonschema.Resolved {
	t.Helper()
	resolve, _ := wireSchemas.LoadOrStore(def, sync.OnceValues(func() (*jsonschema.Resolved, error) {
		data, err := os.ReadFile(filepath.Join("..", "docs", "reference", "protocol.schema.json"))
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(data, &s); err != nil || s.Defs[def] == nil {
			return nil, err
		}
		s.AnyOf = []*jsonschema.Schema{{Ref: "#/$defs/" + def}}
		return s.Resolve(nil)
	}))
	r, err := resolve.(func() (*jsonschema.Resolved, error))()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wireSchemas keeps what resolves each definition, which takes its time.
var wireSchemas sync.Map

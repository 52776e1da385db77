package openai

import (
	"embed"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agentcli/agent/internal/model"
)

//go:embed testdata/tolerant
var corpus embed.FS

func spec(name, schema string) model.ToolSpec {
	return model.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(schema)}
}

// corpusTools are the tools that the corpus' calls are for.
func corpusTools() []model.ToolSpec {
	return []model.ToolSpec{
		spec("read_file", `{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}`),
		spec("write_file", `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`),
		spec("edit", `{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["path","old_string","new_string"]}`),
		spec("run_shell_command", `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"},"background":{"type":"boolean"}},"required":["command"]}`),
		spec("grep_search", `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":["string","null"]}},"required":["pattern"]}`),
		spec("glob", `{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}`),
		spec("list_directory", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		spec("todo_write", `{"type":"object","properties":{"todos":{"type":"array"}},"required":["todos"]}`),
		spec("list_todos", `{"type":"object","properties":{}}`),
	}
}

func corpusRequest() *model.Request { return &model.Request{Model: "m", Tools: corpusTools()} }

// recorder is a textSink.
type recorder struct {
	text, thinking strings.Builder
	calls          []call
}

func (r *recorder) foundText(s string)     { r.text.WriteString(s) }
func (r *recorder) foundThinking(s string) { r.thinking.WriteString(s) }
func (r *recorder) foundCall(c call)       { r.calls = append(r.calls, c) }

// scan runs the text scanner over the pieces.
func scan(cut bool, pieces ...string) *recorder {
	r := &recorder{}
	s := textScanner{tools: newToolset(corpusRequest()), out: r}
	for _, p := range pieces {
		s.feed(p)
	}
	s.close(cut)
	return r
}

type wantCall struct {
	Name    string `json:"name"`
	Args    any    `json:"args"`
	Invalid bool   `json:"invalid"`
}

type want struct {
	Calls []wantCall `json:"calls"`
	Text  *string    `json:"text"`
}

type corpusCase struct {
	name string
	kind string // "text" or "args"
	in   string
	want want
}

func corpusCases(tb testing.TB) []corpusCase {
	tb.Helper()
	files, err := fs.Glob(corpus, "testdata/tolerant/*.txtar")
	if err != nil || len(files) < 8 {
		tb.Fatalf("corpus files: %v, %v", files, err)
	}
	var cases []corpusCase
	for _, f := range files {
		data, err := corpus.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		ar := txtar.Parse(data)
		for i := 0; i+1 < len(ar.Files); i += 2 {
			c := corpusCase{in: strings.TrimSuffix(string(ar.Files[i].Data), "\n")}
			c.kind = strings.TrimPrefix(path.Ext(ar.Files[i].Name), ".")
			base := strings.TrimSuffix(ar.Files[i].Name, path.Ext(ar.Files[i].Name))
			if ar.Files[i+1].Name != base+".want" {
				tb.Fatalf("%s: %s has no .want after it", f, ar.Files[i].Name)
			}
			c.name = strings.TrimSuffix(path.Base(f), ".txtar") + "/" + base
			if err := json.Unmarshal(ar.Files[i+1].Data, &c.want); err != nil {
				tb.Fatalf("%s: %v", c.name, err)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func asWant(tb testing.TB, calls []call) []wantCall {
	tb.Helper()
	got := []wantCall{}
	for _, c := range calls {
		w := wantCall{Name: c.name, Invalid: c.invalid != ""}
		if c.invalid == "" {
			if err := json.Unmarshal([]byte(c.args), &w.Args); err != nil {
				tb.Errorf("arguments %q of %s are not JSON: %v", c.args, c.name, err)
			}
		}
		got = append(got, w)
	}
	return got
}

// run gives what comes of a case.
func (c corpusCase) run(tb testing.TB) ([]wantCall, string) {
	tb.Helper()
	if c.kind == "text" {
		r := scan(false, c.in)
		return asWant(tb, r.calls), r.text.String()
	}
	tool, raw, _ := strings.Cut(c.in, "\n")
	objects, invalid := parseArgs(raw, newToolset(corpusRequest()).schema(tool), false)
	if invalid != "" {
		return []wantCall{{Name: tool, Invalid: true}}, ""
	}
	var calls []call
	for _, o := range objects {
		calls = append(calls, call{name: tool, args: o})
	}
	return asWant(tb, calls), ""
}

func TestTolerantCorpusIsRecoveredAlmostWhole(t *testing.T) {
	t.Parallel()
	calls, recovered, plainTexts := 0, 0, 0
	for _, c := range corpusCases(t) {
		got, text := c.run(t)
		diff := cmp.Diff(c.want.Calls, got)
		if diff == "" && c.want.Text != nil {
			diff = cmp.Diff(*c.want.Text, text)
		}
		if len(c.want.Calls) == 0 {
			plainTexts++
			if diff != "" {
				t.Errorf("%s: text that holds no call was changed (-want +got):\n%s", c.name, diff)
			}
			continue
		}
		calls++
		if diff == "" {
			recovered++
			continue
		}
		t.Logf("%s: not recovered (-want +got):\n%s", c.name, diff)
	}
	score := 100 * float64(recovered) / float64(calls)
	t.Logf("recovered %d of %d outputs (%.1f %%); %d texts without calls left alone", recovered, calls, score, plainTexts)
	if calls < 120 || score < 95 {
		t.Errorf("recovered %.1f %% of %d outputs, want at least 95 %% of at least 120", score, calls)
	}
}

func TestTolerantScannerDoesNotDependOnHowTextIsCut(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range corpusCases(t) {
		if c.kind != "text" {
			continue
		}
		for _, cut := range []bool{false, true} {
			whole := scan(cut, c.in)
			checkSame(t, c.name+" byte by byte", whole, scan(cut, strings.Split(c.in, "")...))
			for range 20 {
				checkSame(t, c.name, whole, scan(cut, pieces(rng, c.in)...))
			}
		}
	}
}

func checkSame(tb testing.TB, name string, want, got *recorder) {
	tb.Helper()
	if diff := cmp.Diff(want.calls, got.calls, cmp.AllowUnexported(call{})); diff != "" {
		tb.Errorf("%s: calls differ from those of the whole text (-whole +pieces):\n%s", name, diff)
	}
	if diff := cmp.Diff(want.text.String(), got.text.String()); diff != "" {
		tb.Errorf("%s: text differs from that of the whole text (-whole +pieces):\n%s", name, diff)
	}
	if diff := cmp.Diff(want.thinking.String(), got.thinking.String()); diff != "" {
		tb.Errorf("%s: thinking differs (-whole +pieces):\n%s", name, diff)
	}
}

// pieces cuts s at random places.
func pieces(rng *rand.Rand, s string) []string {
	var out []string
	for s != "" {
		n := 1 + rng.IntN(min(len(s), 12))
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// upstream is a row of the table of the SDKs' own tests: what each of them
// looks at, and where ours does. There are three states: it passes, it needs a
// later step, or it needs a vendor's service.
type upstream struct {
	Suite   string   `json:"suite"`
	Test    string   `json:"test"`
	What    string   `json:"what"` // in our words
	State   string   `json:"state"`
	By      []string `json:"by"`      // passes: tests of ours, TEST/KIT/SCENARIO or FOLDER:TEST
	Step    string   `json:"step"`    // later: which
	Service string   `json:"service"` // service: whose
}

// TestConformanceTable demands that each row is in one of the three states, and
// that a test stands behind each that passes.
func TestConformanceTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []upstream
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	seen, count := map[string]bool{}, map[string]int{}
	for _, r := range rows {
		name := r.Suite + " " + r.Test
		if seen[name] || r.What == "" {
			t.Errorf("%s is there twice, or says nothing", name)
		}
		seen[name] = true
		count[r.State]++
		switch {
		case r.State == "passes" && len(r.By) > 0 && r.Step == "" && r.Service == "":
			for _, by := range r.By {
				if !exists(t, by) {
					t.Errorf("%s: there is no test %s", name, by)
				}
			}
		case r.State == "later" && r.Step != "" && len(r.By) == 0:
		case r.State == "service" && r.Service != "" && len(r.By) == 0:
		default:
			t.Errorf("%s is in no state that there is: %+v", name, r)
		}
	}
	t.Logf("conformance: %d pass, %d need a later step, %d need a vendor's service", count["passes"], count["later"], count["service"])
}

// exists reports whether there is a test of this name in the sources.
func exists(t *testing.T, by string) bool {
	t.Helper()
	folder, name := ".", by
	if f, rest, found := strings.Cut(by, ":"); found {
		folder, name = filepath.Join("..", "..", f), rest
	}
	test, rest, _ := strings.Cut(name, "/")
	pattern := regexp.MustCompile(`func ` + strings.ReplaceAll(regexp.QuoteMeta(test), `\*`, `\w*`) + `\(t \*testing\.T\)`)
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		at := pattern.FindIndex(source)
		if at == nil {
			continue
		}
		if rest == "" {
			return true
		}
		body, _, _ := strings.Cut(string(source[at[0]:]), "\n}\n")
		kit, scenario, _ := strings.Cut(rest, "/")
		return plays(body, kit, scenario)
	}
	return false
}

var scenarioPattern = regexp.MustCompile(`\{name: "([\w]+)", kits: (\w+|"[^"]*")`)

// plays reports whether a test's body has the scenario for a kit.
func plays(body, kit, scenario string) bool {
	groups := map[string]string{"claudes": claudes, "qwens": qwens, "every": every}
	for _, m := range scenarioPattern.FindAllStringSubmatch(body, -1) {
		named := m[2]
		if g, ok := groups[named]; ok {
			named = g
		}
		if m[1] == scenario && slices.Contains(strings.Fields(strings.Trim(named, `"`)), kit) {
			return true
		}
	}
	return false
}

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/agentcli/agent"

// mayImport says which of our packages each of our packages may import,
// directly. A package that is not here has no rule and fails the test.
var mayImport = map[string][]string{
	"cmd/agent":                {"internal/cli"},
	"internal/cli/version":     {},
	"internal/streamjson":      {},
	"internal/policy":          {},
	"internal/sandbox":         {},
	"internal/telemetry":       {},
	"internal/httpclient":      {},
	"internal/model":           {},
	"internal/model/gemini":    {"internal/model"},
	"internal/model/openai":    {"internal/model"},
	"internal/model/anthropic": {"internal/model"},
	"internal/model/scripted":  {"internal/model"},
	"internal/settings":        {"internal/policy"},
	"internal/transcript":      {"internal/model"},
	"internal/usage":           {"internal/model"},
	"internal/tools":           {"internal/model", "internal/policy", "internal/sandbox", "internal/httpclient", "internal/telemetry"},
	"internal/control":         {"internal/streamjson", "internal/policy"},
	"internal/hooks":           {"internal/policy", "internal/telemetry"},
	"internal/frontmatter":     {},
	"internal/command":         {"internal/policy", "internal/frontmatter"},
	"internal/mcp":             {"internal/tools", "internal/model", "internal/policy", "internal/sandbox", "internal/httpclient", "internal/telemetry"},
	"internal/agent":           {"internal/model", "internal/tools", "internal/policy", "internal/hooks", "internal/frontmatter", "internal/transcript", "internal/usage", "internal/telemetry"},
	"internal/session":         {"internal/agent", "internal/control", "internal/model", "internal/policy", "internal/streamjson", "internal/tools", "internal/usage", "internal/telemetry"},
	"internal/testkit":         {"internal/streamjson"},
	"bench":                    {"internal/testkit"},
	"bench/floor/calls":        {},
	"bench/floor/echo":         {},
	"bench/floor/hello":        {},
	"bench/floor/stream":       {},
	"integration":              {"internal/testkit"},
	"integration/differential": {"internal/policy", "internal/tools"},
	"integration/sdk":          {"internal/testkit"},
}

// everything is for the one package that knows all others.
const everything = "internal/cli"

// homeOf says where the packages of a vendor may be imported, by prefix.
var homeOf = map[string][]string{
	"google.golang.org/genai":                {"internal/model/gemini"},
	"cloud.google.com/go/auth":               {"internal/model/gemini"},
	"github.com/openai/openai-go":            {"internal/model/openai"},
	"github.com/anthropics/anthropic-sdk-go": {"internal/model/anthropic"},
	"github.com/spf13/cobra":                 {"internal/cli"},
	"go.opentelemetry.io/otel":               {"internal/telemetry"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/mcp"},
	"golang.org/x/term":                      {"internal/cli"},
}

// processOnly are the functions that touch the process, in cli and cmd/agent
// alone.
var processOnly = []string{"os.Stdin", "os.Stdout", "os.Exit(", "os.Getenv(", "os.LookupEnv(", "os.Environ(", "signal.Notify("}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func listPackages(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,Imports"}, args...)...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// ours returns the path within the module.
func ours(path string) (string, bool) {
	return strings.CutPrefix(path, module+"/")
}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t, "./...") {
		name, _ := ours(p.ImportPath)
		if name == everything || strings.HasPrefix(name, "demo/") {
			continue
		}
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("package %s has no rule in mayImport: say what it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			if other, our := ours(imp); our && !contains(allowed, other) {
				t.Errorf("%s imports %s, which it must not", name, other)
			}
		}
	}
}

func TestVendorTypesStayInTheirAdapter(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t, "./...") {
		name, _ := ours(p.ImportPath)
		for _, imp := range p.Imports {
			for vendor, homes := range homeOf {
				if strings.HasPrefix(imp, vendor) && !contains(homes, name) {
					t.Errorf("%s imports %s, which belongs in %v", name, imp, homes)
				}
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyTheCommandLineTouchesTheProcess checks that streams, environment,
// signals and exit are used in cli and cmd/agent alone: everyone else is handed
// readers, writers and values. There are no init functions either.
func TestOnlyTheCommandLineTouchesTheProcess(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t, "./internal/...") {
		name, _ := ours(p.ImportPath)
		for _, file := range p.GoFiles {
			checkFile(t, name, filepath.Join(p.Dir, file))
		}
	}
}

// theProbe answers `agent -v` before all else, in an init function.
const theProbe = "internal/cli/version"

func checkFile(t *testing.T, pkg, path string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" && pkg != theProbe {
				t.Errorf("%s: init function", fset.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && pkg != everything && pkg != theProbe && isProcess(x.Name+"."+n.Sel.Name) {
				t.Errorf("%s: %s.%s belongs in %s", fset.Position(n.Pos()), x.Name, n.Sel.Name, everything)
			}
		}
		return true
	})
}

func isProcess(name string) bool {
	for _, p := range processOnly {
		if strings.TrimSuffix(p, "(") == name {
			return true
		}
	}
	return false
}

// Package version says which program this is, and answers the version probe
// before anything else in the process has begun.
//
// Hosts run `agent -v` before every session. Go initialises packages in the
// order of their import paths once their imports are initialised, so this one,
// which needs only os, comes before the vendors' SDKs, whose initialisation
// costs several times as much as the rest of a start (docs/adr/0009). It is the
// one package of ours with an init function.
package version

import "os"

// Own is our version; a release build sets it by -ldflags.
var Own = "0.1.0"

// Wire is the version of the protocol's reference program whose hosts we
// satisfy: they probe it with -v.
const Wire = "2.1.240"

// Line is what --version prints.
func Line() string { return "agent " + Own }

// ProtocolLine is what -v prints: hosts match a version at its start.
func ProtocolLine() string { return Wire + " (agent " + Own + ")" }

func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case "-v":
		answer(ProtocolLine())
	case "--version":
		if AsClaude(os.Args[0]) {
			answer(ProtocolLine())
		}
		answer(Line())
	}
}

// AsClaude reports whether a path by which the program was called has the name
// under which ports of Claude's SDKs look for it in PATH. Their probe of the
// version is --version.
func AsClaude(path string) bool {
	for i := len(path) - 1; i >= 0; i-- {
		if os.IsPathSeparator(path[i]) {
			path = path[i+1:]
			break
		}
	}
	return path == "claude" || path == "claude.exe"
}

func answer(line string) {
	if _, err := os.Stdout.WriteString(line + "\n"); err != nil {
		os.Exit(74) // output could not be written
	}
	os.Exit(0)
}

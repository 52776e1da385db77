package differential

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// known is something that commands judged read-only do, and that isn't mended
// yet. One that is mended leaves this list: TestKnownFindingsAreStillThere.
type known struct {
	name string
	cmd  command // the shortest that shows it
	is   func(command, effect) bool
}

var knownFindings = []known{
	{
		name: "java keeps figures of itself",
		cmd:  command{project, "java -version"},
		is: func(_ command, e effect) bool {
			return e.Program == "java" && (strings.HasPrefix(e.Target, "/tmp/hsperfdata") || e.Target == "/proc/self/coredump_filter" || e.Call == "ftruncate" || strings.HasPrefix(e.Line, "openat(AT_FDCWD</tmp/hsperfdata"))
		},
	},
	{
		name: "curl looks the machine's own name up, whatever it is asked",
		cmd:  command{project, "curl --version"},
		is: func(_ command, e effect) bool {
			return e.Program == "curl" && e.Call == "connect" && strings.Contains(e.Line, "htons(53)")
		},
	},
	{
		name: "go counts its uses and keeps what it compiled, below the home folder, and asks the compiler",
		cmd:  command{project, "go list"},
		is: func(_ command, e effect) bool {
			return slices.Contains(goPrograms, e.Program) && (strings.HasPrefix(e.Target, homeInside+"/.config") || strings.HasPrefix(e.Target, homeInside+"/.cache") ||
				strings.HasPrefix(e.Target, "/tmp/") || e.Call == "ftruncate" || e.Call == "execve" && slices.Contains(goPrograms, path.Base(e.Target)))
		},
	},
	{
		name: "git diff renews its index, whatever GIT_OPTIONAL_LOCKS says, when files are newer than it but the same; git status does without that",
		cmd:  command{project, "git diff"},
		is: func(c command, e effect) bool {
			return e.Program == "git" && (strings.Contains(c.Src, "diff") || strings.Contains(c.Src, "env")) && (e.Target == project+"/.git/index.lock" || e.Target == project+"/.git/index")
		},
	},
	{
		name: "tac keeps what it reads from a pipe in a temporary file",
		cmd:  command{project, "ls|tac"},
		is:   func(_ command, e effect) bool { return e.Program == "tac" && strings.HasPrefix(e.Target, "/tmp/tac") },
	},
}

var goPrograms = strings.Fields("go gofmt gcc g++ cc1 as collect2 compile asm cgo")

// knownFor returns the entry for one effect of a finding.
func knownFor(f finding, e effect) *known {
	for i := range knownFindings {
		if knownFindings[i].is(f.cmd, e) {
			return &knownFindings[i]
		}
	}
	return nil
}

func TestKnownFindingsAreStillThere(t *testing.T) {
	p := newPlaces(t)
	for _, k := range knownFindings {
		if v, _, ok := p.judge(k.cmd); !ok {
			t.Errorf("mended, so take it off the list of known findings: %s: %q is judged %s (%s)", k.name, k.cmd.Src, v.Kind, v.Reason)
		}
	}
}

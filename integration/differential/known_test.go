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
	is   func(effect) bool
}

var knownFindings = []known{
	{
		name: "the settings of a repository make git run programs",
		cmd:  command{hostile, "git status"},
		is: func(e effect) bool {
			return (e.Program == "git" || e.Program == "sh") && e.Call == "execve" && (!isSystems(e.Target) || e.Target == "/bin/sh")
		},
	},
	{
		name: "git renews its index",
		cmd:  command{project, "git status"},
		is: func(e effect) bool {
			return e.Program == "git" && (strings.HasSuffix(e.Target, ".git/index.lock") || strings.HasSuffix(e.Target, ".git/index"))
		},
	},
	{
		name: "a redirection to /dev/stdout, /dev/stderr or /dev/stdin truncates the file that was opened there to be read",
		cmd:  command{project, "2<a.txt>/dev/stderr"},
		is: func(e effect) bool {
			return e.Call == "openat" && (strings.HasPrefix(e.Target, "/dev/std") || strings.HasPrefix(e.Target, "/dev/fd/"))
		},
	},
	{
		name: "file -p sets back when a file was read",
		cmd:  command{project, "file -p a.txt"},
		is:   func(e effect) bool { return e.Program == "file" && e.Call == "utimensat" },
	},
	{
		name: "names are looked up in the network: by hostname and curl the machine's own, by ss its operands and, with -r, ports",
		cmd:  command{project, "hostname -d"},
		is: func(e effect) bool {
			return (e.Program == "hostname" || e.Program == "curl" || e.Program == "ss") && e.Call == "connect" && (strings.Contains(e.Line, "htons(53)") || strings.Contains(e.Target, "rpcbind"))
		},
	},
	{
		name: "go counts its uses and keeps what it compiled, below the home folder, and asks the compiler",
		cmd:  command{project, "go list"},
		is: func(e effect) bool {
			return slices.Contains(goPrograms, e.Program) && (strings.HasPrefix(e.Target, homeInside+"/.config") || strings.HasPrefix(e.Target, homeInside+"/.cache") ||
				strings.HasPrefix(e.Target, "/tmp/") || e.Call == "ftruncate" || e.Call == "execve" && slices.Contains(goPrograms, path.Base(e.Target)))
		},
	},
	{
		name: "docker asks its daemon",
		cmd:  command{project, "docker -V"},
		is: func(e effect) bool {
			return e.Program == "docker" && e.Call == "connect" && e.Target == "/var/run/docker.sock"
		},
	},
	{
		name: "tac keeps what it reads from a pipe in a temporary file",
		cmd:  command{project, "ls|tac"},
		is:   func(e effect) bool { return e.Program == "tac" && strings.HasPrefix(e.Target, "/tmp/tac") },
	},
}

var goPrograms = strings.Fields("go gofmt gcc g++ cc1 as collect2 compile asm cgo")

// knownFor returns the known findings' entry for an effect of a command whose
// effects are all given: what follows from another program being run by git is
// that.
func knownFor(e effect, all []effect) *known {
	for i := range knownFindings {
		if knownFindings[i].is(e) {
			return &knownFindings[i]
		}
	}
	if e.Program == "git" {
		for _, other := range all {
			if knownFindings[0].is(other) {
				return &knownFindings[0]
			}
		}
	}
	return nil
}

func TestKnownFindingsAreStillThere(t *testing.T) {
	for _, k := range knownFindings {
		if v, _, ok := judge(k.cmd); !ok {
			t.Errorf("mended, so take it off the list of known findings: %s: %q is judged %s (%s)", k.name, k.cmd.Src, v.Kind, v.Reason)
		}
	}
}

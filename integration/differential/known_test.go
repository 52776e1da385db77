package differential

import (
	"path"
	"regexp"
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

var gitSettings = known{
	name: "the settings of a repository make git run programs",
	cmd:  command{hostile, "git status"},
	is: func(_ command, e effect) bool {
		return (e.Program == "git" || e.Program == "sh") && e.Call == "execve" && (!isSystems(e.Target) || e.Target == "/bin/sh")
	},
}

var xargsGlob = regexp.MustCompile(`xargs.*(-a|--arg-file)`)

var shellVersion = regexp.MustCompile(`\b(sh|dash|zsh)['"]? +-(V|version)`)

var knownFindings = []known{
	gitSettings,
	{
		name: "a backslash at the end of a comment hides the next line from the parser, and bash runs it",
		cmd:  command{project, "ls #\\\n./evil"},
		is:   func(c command, _ effect) bool { return strings.Contains(c.Src, "\\\n") && strings.Contains(c.Src, "#") },
	},
	{
		name: "-V asks dash and zsh for no version: they run what they read",
		cmd:  command{project, "echo ./evil|sh -V"},
		is:   func(c command, _ effect) bool { return shellVersion.MatchString(c.Src) },
	},
	{
		name: "xargs -a with a pattern: the first name is the file that is read, the second the command",
		cmd:  command{odd, "xargs -a *"},
		is:   func(c command, e effect) bool { return e.Program == "xargs" && xargsGlob.MatchString(c.Src) },
	},
	{
		name: "xxd takes no options behind its operand: what looks like one is a file that it writes",
		cmd:  command{project, "xxd a.txt -ps"},
		is:   func(_ command, e effect) bool { return e.Program == "xxd" && strings.HasPrefix(e.Target, "-") },
	},
	{
		name: "POSIXLY_CORRECT makes an operand, and so a file to be written, of an option behind one",
		cmd:  command{project, "POSIXLY_CORRECT= uniq a.txt -c"},
		is: func(c command, e effect) bool {
			return strings.Contains(c.Src, "POSIXLY_CORRECT") && strings.HasPrefix(e.Target, "-")
		},
	},
	{
		name: "npm keeps a log of each run below the home folder",
		cmd:  command{project, "npm ls"},
		is: func(_ command, e effect) bool {
			return e.Program == "node" && strings.HasPrefix(e.Target, homeInside+"/.npm")
		},
	},
	{
		name: "git merges again to show a merge (--diff-merges=remerge), in a directory of its own",
		cmd:  command{project, "git show --diff-merges=remerge HEAD"},
		is:   func(_ command, e effect) bool { return e.Program == "git" && strings.Contains(e.Target, "tmp_objdir") },
	},
	{
		name: "java keeps figures of itself",
		cmd:  command{project, "java -version"},
		is: func(_ command, e effect) bool {
			return e.Program == "java" && (strings.HasPrefix(e.Target, "/tmp/hsperfdata") || e.Target == "/proc/self/coredump_filter" || e.Call == "ftruncate" || strings.HasPrefix(e.Line, "openat(AT_FDCWD</tmp/hsperfdata"))
		},
	},
	{
		name: "git renews its index",
		cmd:  command{project, "git status"},
		is: func(_ command, e effect) bool {
			return e.Program == "git" && (strings.HasSuffix(e.Target, ".git/index.lock") || strings.HasSuffix(e.Target, ".git/index"))
		},
	},
	{
		name: "a redirection to /dev/stdout, /dev/stderr or /dev/stdin truncates the file that was opened there to be read",
		cmd:  command{project, "2<a.txt>/dev/stderr"},
		is: func(_ command, e effect) bool {
			return e.Call == "openat" && (strings.HasPrefix(e.Target, "/dev/std") || strings.HasPrefix(e.Target, "/dev/fd/"))
		},
	},
	{
		name: "file -p sets back when a file was read",
		cmd:  command{project, "file -p a.txt"},
		is:   func(_ command, e effect) bool { return e.Program == "file" && e.Call == "utimensat" },
	},
	{
		name: "names are looked up in the network: by hostname and curl the machine's own, by ss its operands and, with -r, ports",
		cmd:  command{project, "hostname -d"},
		is: func(_ command, e effect) bool {
			return (e.Program == "hostname" || e.Program == "curl" || e.Program == "ss") && e.Call == "connect" && (strings.Contains(e.Line, "htons(53)") || strings.Contains(e.Target, "rpcbind"))
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
		name: "docker and kubectl ask their server, even for a word of help",
		cmd:  command{project, "docker -V"},
		is: func(_ command, e effect) bool {
			return (e.Program == "docker" || e.Program == "kubectl") && e.Call == "connect"
		},
	},
	{
		name: "tac keeps what it reads from a pipe in a temporary file",
		cmd:  command{project, "ls|tac"},
		is:   func(_ command, e effect) bool { return e.Program == "tac" && strings.HasPrefix(e.Target, "/tmp/tac") },
	},
}

var goPrograms = strings.Fields("go gofmt gcc g++ cc1 as collect2 compile asm cgo")

// knownFor returns the entry for one effect of a finding. What git does around
// another program that its settings made it run is part of that.
func knownFor(f finding, e effect) *known {
	for i := range knownFindings {
		if knownFindings[i].is(f.cmd, e) {
			return &knownFindings[i]
		}
	}
	if e.Program == "git" {
		for _, other := range f.effects {
			if gitSettings.is(f.cmd, other) {
				return &gitSettings
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

package policy

import (
	"slices"
	"strings"
)

// destroys says why a command may destroy what can't be had back; empty if
// it isn't one of those that are known to.
func (j *judge) destroys(name string, args []word) string {
	name = foldName(name)
	if name == "git" {
		var p Part
		cwds := j.cwds
		args = j.gitGlobals(&p, args)
		j.cwds = cwds
	}
	switch {
	case strings.HasPrefix(name, "mkfs."), strings.HasPrefix(name, "newfs_"):
		return "erases a disk"
	case name == "rm" && removesMany(args):
		return "deletes many files"
	case name == "mv":
		if why := j.movesAway(args); why != "" {
			return why
		}
	case name == "find":
		if slices.ContainsFunc(args, func(w word) bool { return w.exact() && w.text == "-delete" }) {
			return "deletes all that it finds"
		}
	case name == "cp" || name == "tee" || name == "cat":
		if name != "cat" && len(args) > 0 && args[len(args)-1].exact() && isDisk(args[len(args)-1].text) {
			return "overwrites a disk"
		}
	case name == "git" && len(args) > 0 && args[0].exact():
		if why := gitDiscards(args[0].text, args[1:]); why != "" {
			return why
		}
	}
	key := name
	for i := 0; ; i++ {
		for _, r := range j.t.destructive[key] {
			if r.matches(args[min(i, len(args)):]) {
				return r.why
			}
		}
		if i >= len(args) || i >= 3 || !j.t.deep[key] || !args[i].exact() {
			return ""
		}
		key += " " + args[i].text
	}
}

// matches reports whether the arguments after a command's name are the ones
// that destroy.
func (r *ruin) matches(args []word) bool {
	for _, f := range r.unless {
		if hasFlag(args, f) {
			return false
		}
	}
	if r.only != nil && !r.only[firstOperand(args)] {
		return false
	}
	if len(r.flags) == 0 && len(r.words) == 0 && len(r.prefix) == 0 && r.wordPrefix == "" && r.operand == "" {
		return true
	}
	for _, f := range r.flags {
		if hasFlag(args, f) {
			return true
		}
	}
	for i, w := range args {
		s := w.sure()
		for _, p := range r.prefix {
			if strings.HasPrefix(s, p) && s != ":" {
				return true
			}
		}
		if !w.exact() || r.last && i != len(args)-1 {
			continue
		}
		for _, x := range r.words {
			if strings.EqualFold(w.text, x) {
				return true
			}
		}
		if r.wordPrefix != "" && strings.HasPrefix(w.text, r.wordPrefix) {
			return true
		}
	}
	return false
}

func firstOperand(args []word) string {
	for _, w := range args {
		if s := w.sure(); s != "" && s[0] != '-' {
			return s
		}
	}
	return ""
}

// hasFlag reports whether an option is among the arguments, in any spelling:
// alone, in a cluster, with a value, abbreviated.
func hasFlag(args []word, f string) bool {
	for _, w := range args {
		s := w.sure()
		if s == "--" {
			return false
		}
		if len(s) < 2 || s[0] != '-' {
			continue
		}
		switch {
		case s == f:
			return true
		case len(f) == 2 && s[1] != '-':
			if strings.IndexByte(s[1:], f[1]) >= 0 {
				return true
			}
		case len(f) > 2:
			name, _, _ := strings.Cut(s, "=")
			if name == f || len(name) > 3 && name[1] == '-' && strings.HasPrefix(f, name) {
				return true
			}
		}
	}
	return false
}

const manyFiles = 10

func removesMany(args []word) bool {
	n := 0
	for _, w := range args {
		if w.split || w.glob {
			return true
		}
		if !strings.HasPrefix(w.text, "-") {
			n++
		}
	}
	return n >= manyFiles
}

// movesAway says why a mv takes away more than a file.
func (j *judge) movesAway(args []word) string {
	var ops []word
	for _, w := range args {
		if !strings.HasPrefix(w.sure(), "-") || w.sure() == "" {
			ops = append(ops, w)
		}
	}
	for i, w := range ops {
		if i == len(ops)-1 && len(ops) > 1 {
			if w.text == "/dev/null" || isDisk(w.text) {
				return "moves what it is given to nowhere"
			}
			continue
		}
		for _, abs := range j.cleanAbs(w) {
			for _, r := range append(slices.Clone(j.f.roots()), j.f.Home) {
				if r != "" && beneath(r, abs) {
					return "moves a whole root away"
				}
			}
		}
	}
	return ""
}

// gitDiscards says why a git command throws work away, where options alone
// don't tell.
func gitDiscards(sub string, args []word) string {
	const why = "throws away uncommitted changes"
	switch sub {
	case "checkout":
		ops := 0
		for _, w := range args {
			switch s := w.sure(); {
			case w.exact() && (s == "--" || s == "." || s == ":/" || s == "./" || s == "*" || s == ".."):
				return why
			case w.exact() && (s == "-b" || s == "-t" || s == "--track" || s == "--orphan" || s == "--detach" || s == "-d"):
				ops = -100
			case strings.HasPrefix(s, "-") && s != "-":
			default:
				ops++
			}
			if w.glob {
				return why
			}
		}
		if ops > 1 {
			return why
		}
	case "restore":
		if (hasFlag(args, "--staged") || hasFlag(args, "-S")) && !hasFlag(args, "--worktree") && !hasFlag(args, "-W") {
			return ""
		}
		return why
	}
	return ""
}

// isDisk reports whether a path is a block device.
func isDisk(p string) bool {
	rest, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	for _, d := range [...]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop", "dm-", "mem", "kmem", "sg", "sr"} {
		if strings.HasPrefix(rest, d) {
			return true
		}
	}
	return false
}

// dropsTables reports whether the text given to a database deletes data.
func dropsTables(args []word, stdin *word) bool {
	if stdin != nil {
		args = append(slices.Clone(args), *stdin)
	}
	for _, w := range args {
		s := strings.Join(strings.Fields(strings.ToUpper(w.text)), " ")
		for _, x := range [...]string{"DROP TABLE", "DROP DATABASE", "DROP SCHEMA", "DROP VIEW", "DROP INDEX", "DROP USER", "DROP ROLE", "DROP OWNED", "TRUNCATE", "DELETE FROM", "DROPDATABASE", ".DROP(", "DELETEMANY(", "DROP COLUMN", "DROP KEYSPACE"} {
			if strings.Contains(s, x) {
				return true
			}
		}
	}
	return false
}

// removes reports whether code given to an interpreter deletes files.
func removes(args []word, stdin *word) bool {
	if stdin != nil {
		args = append(slices.Clone(args), *stdin)
	}
	for _, w := range args {
		for _, x := range [...]string{"rmtree", "rm -rf", "rm -fr", "rm -r ", "rmSync", "unlinkSync", "rm_rf", "remove_tree", "os.remove", "os.unlink", "rimraf", "rmdir /s", "File.delete", "unlink("} {
			if strings.Contains(w.text, x) {
				return true
			}
		}
	}
	return false
}

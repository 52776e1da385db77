package policy

import "strings"

// Tree looks for secrets beneath directories for the engine, which does no I/O
// of its own. It may be called from several goroutines at once.
type Tree interface {
	// SecretBeneath returns the path of a file beneath dir that holds secrets, by
	// SecretName; "" if there is none, or dir is no directory. hidden: also in and
	// among what begins with a dot. False: it can't be told in reasonable time.
	SecretBeneath(dir string, hidden bool) (path string, known bool)
	// SecretAmong is SecretBeneath for the files that an absolute pattern of the
	// shell matches.
	SecretAmong(pattern string) (path string, known bool)
}

// SecretName says why the name of a file makes it one of secrets; "" if it
// doesn't.
func SecretName(path string) string {
	var p PathFacts
	loaded().names(path, &p)
	return p.Secret
}

// tree is a directory that a part reads the files of, all of them.
type tree struct {
	dir    string
	hidden bool // those that begin with a dot, too
	glob   bool // dir is a pattern of the shell, and what it matches is read
}

// trees returns the directories whose every file a part that only reads may
// show. filtered: the find that starts it looks for certain names only.
func (p *Part) trees(filtered bool) []tree {
	if p.Kind > KindRead || len(p.Argv) == 0 {
		return nil
	}
	out := p.globs()
	if !filtered && strings.Contains(p.Via, "find -") {
		for i := range p.Files {
			if dir, ok := strings.CutSuffix(p.Files[i].Abs, "/\x01"); ok {
				out = append(out, tree{dir: dir, hidden: true})
			}
		}
		return out
	}
	hidden, all := true, false
	switch baseName(p.Argv[0]) {
	case "grep", "egrep", "fgrep", "zgrep":
		all = hasOption(p.Argv, "rR", "--recursive", "--dereference-recursive") || strings.Contains(strings.Join(p.Argv[1:], " "), "recurse")
	case "rg", "ag", "ack":
		all, hidden = true, hasOption(p.Argv, ".u", "--hidden", "--unrestricted")
	case "diff":
		all = hasOption(p.Argv, "r", "--recursive")
	case "git":
		all = hasOption(p.Argv, "", "--no-index")
	}
	if !all {
		return out
	}
	some := false
	for i := range p.Files {
		if f := &p.Files[i]; !f.Write && f.Abs != "" && !hasGlob(f.Abs) {
			out, some = append(out, tree{dir: f.Abs, hidden: hidden}), true
		}
	}
	if !some && p.Cwd != "" {
		out = append(out, tree{dir: p.Cwd, hidden: hidden})
	}
	return out
}

// globs are the patterns of the shell by which the part names files to read.
func (p *Part) globs() []tree {
	if p.Exact {
		return nil
	}
	var out []tree
	for i := range p.Files {
		if f := &p.Files[i]; !f.Write && !f.names && hasGlob(f.Abs) {
			out = append(out, tree{dir: f.Abs, glob: true})
		}
	}
	return out
}

// hasOption reports whether one of the letters is in a cluster of short
// options, or one of the words, perhaps abbreviated, is an argument.
func hasOption(argv []string, letters string, words ...string) bool {
	for _, a := range argv[1:] {
		switch {
		case a == "--":
			return false
		case len(a) < 2 || a[0] != '-':
			continue
		case a[1] != '-' && strings.ContainsAny(a[1:], letters):
			return true
		}
		for _, w := range words {
			if a == w || len(a) > 4 && strings.HasPrefix(w, a) {
				return true
			}
		}
	}
	return false
}

// secretBeneath rules on a part that reads whole directories in which secrets
// lie; nil if it doesn't.
func (r *rules) secretBeneath(s *subject) *ruling {
	if s.line == nil || s.line.part == nil || s.f.Tree == nil {
		return nil
	}
	for _, t := range s.trees {
		path, known := t.secret(s.f.Tree)
		if !known {
			return &ruling{behavior: Ask, why: WhySecret, path: t.dir, reason: "reads " + t.words() + ", which is too large to tell whether secrets are in it; searches leave those out"}
		}
		if path == "" {
			continue
		}
		f := target{PathFacts: PathFacts{Abs: path, Real: path, Inside: true, Secret: SecretName(path)}, given: path}
		if !r.namedFile(s, &f) {
			return &ruling{behavior: Ask, why: WhySecret, path: path, reason: "reads " + t.words() + ", " + path + " too: " + f.Secret + "; searches leave such files out"}
		}
	}
	return nil
}

func (t *tree) words() string {
	if t.glob {
		return "what " + t.dir + " matches"
	}
	return "everything beneath " + t.dir
}

func (t *tree) secret(in Tree) (path string, known bool) {
	if t.glob {
		return in.SecretAmong(t.dir)
	}
	return in.SecretBeneath(t.dir, t.hidden)
}

// mayHold reports whether a part reads whole directories in which a file may
// lie that a restricting rule speaks of.
func (r *Rule) mayHold(s *subject) bool {
	if r.path == nil || !r.reads || s.line.part == nil {
		return false
	}
	for _, t := range s.trees {
		if t.glob {
			t.dir = t.dir[:strings.LastIndexByte(t.dir[:strings.IndexAny(t.dir, "*?[")], '/')+1]
		}
		if !t.hidden && strings.HasPrefix(r.path.last(), ".") {
			continue
		}
		if r.path.beneath(t.dir, r, s.f) {
			return true
		}
	}
	if !s.line.part.copiesTrees() {
		return false
	}
	for _, list := range [...][]target{s.files, s.words} {
		for i := range list {
			if t := &list[i]; !t.write && t.Abs != "" && r.path.beneath(t.Abs, r, s.f) {
				return true
			}
		}
	}
	return false
}

// copiesTrees reports whether a part copies whole directories elsewhere.
func (p *Part) copiesTrees() bool {
	if len(p.Argv) == 0 {
		return false
	}
	switch baseName(p.Argv[0]) {
	case "tar", "bsdtar", "zip", "7z", "cpio":
		return true
	case "cp", "scp", "rsync":
		return hasOption(p.Argv, "rRa", "--recursive", "--archive")
	}
	return false
}

// last is the last segment of the pattern.
func (p *pathSpec) last() string {
	if len(p.segments) == 0 {
		return ""
	}
	return p.segments[len(p.segments)-1]
}

// beneath reports whether something beneath dir may match: nobody looks what is
// there, so only what the pattern is meant from counts.
func (p *pathSpec) beneath(dir string, r *Rule, f *Facts) bool {
	if p.anywhere {
		return true
	}
	base, ok := p.base(r, f)
	if !ok {
		return true
	}
	fixed := foldName(base)
	for _, s := range p.folded {
		if strings.ContainsAny(s, `*?[\\`) {
			break
		}
		fixed = strings.TrimSuffix(fixed, "/") + "/" + s
	}
	dir = foldName(dir)
	return beneath(fixed, dir) || beneath(dir, fixed)
}

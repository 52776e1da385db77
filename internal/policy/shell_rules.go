package policy

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// shell decides a command line: each part by itself, and the strictest counts.
func (r *rules) shell(f *Facts, in *input) Decision {
	src, ok := in.str("command")
	if !ok || strings.TrimSpace(src) == "" {
		bad := ruling{behavior: Deny, why: WhyHard, reason: "the input has no text \"command\""}
		return bad.decision()
	}
	if dir, ok := in.str("directory"); ok && dir != "" {
		there := *f
		there.Cwd = f.Path(dir).Real
		f = &there
	}
	v := JudgeShell(src, f)
	if v.OverBudget {
		bad := ruling{behavior: Deny, why: WhyHard, reason: v.Error}
		return bad.decision()
	}
	c := commandLine{rules: r, f: f, in: in, verdict: &v, whole: strings.TrimSpace(src)}
	return c.decide()
}

// commandLine is a command line being decided.
type commandLine struct {
	rules     *rules
	f         *Facts
	in        *input
	verdict   *Verdict
	whole     string
	filtered  bool  // each find of it looks for one kind of file, by extension
	assigns   bool  // a part of it sets variables
	redirects *Rule // allowed the commands, and redirections along with them
	scratch   []target
}

var targetLists = sync.Pool{New: func() any { return new([]target) }}

func (c *commandLine) decide() Decision {
	all := &subject{f: c.f, class: c.f.Class, line: &line{whole: c.whole, parts: c.verdict.Error == "" && len(c.verdict.Parts) > 0}, input: c.in}
	worst := ruling{behavior: Allow, why: WhyMode, reason: "changes nothing"}
	if c.verdict.Error != "" {
		worst = c.unclear()
	}
	if v := c.rules.restricted(all); v != nil && v.stricterThan(worst) {
		worst = *v
	}
	named := c.named(all)
	c.filtered = !slices.ContainsFunc(c.verdict.Parts, func(p Part) bool {
		return len(p.Argv) > 0 && baseName(p.Argv[0]) == "find" && !findsExtension(p.Argv)
	})
	c.assigns = slices.ContainsFunc(c.verdict.Parts, func(p Part) bool { return len(p.Env) > 0 })
	list := targetLists.Get().(*[]target)
	c.scratch = *list
	defer func() {
		clear(c.scratch)
		*list = c.scratch[:0]
		targetLists.Put(list)
	}()
	parts := make([]PartDecision, len(c.verdict.Parts))
	rulings := make([]ruling, len(parts))
	for i := range parts {
		rulings[i] = c.part(&c.verdict.Parts[i], named)
	}
	c.redirects = c.redirecting(rulings)
	for i := range parts {
		if rulings[i].behavior == Ask && c.redirects != nil {
			rulings[i] = c.redirected(&c.verdict.Parts[i], rulings[i])
		}
		parts[i] = rulings[i].part(&c.verdict.Parts[i])
		if rulings[i].stricterThan(worst) || worst.behavior == Allow && rulings[i].why != WhyMode {
			worst = rulings[i]
		}
	}
	d := worst.decision()
	d.Parts = parts
	return d
}

// unclear rules on a line that isn't understood as a whole.
func (c *commandLine) unclear() ruling {
	if c.f.Mode == ModePlan {
		return ruling{behavior: Deny, why: WhyUnclear, reason: "plan mode: " + c.verdict.Error}
	}
	return ruling{behavior: Ask, why: WhyUnclear, reason: c.verdict.Error}
}

// named returns the rule that allows this very command line, written out.
func (c *commandLine) named(all *subject) *Rule {
	if c.verdict.Error != "" || !c.f.within(c.f.Cwd) {
		return nil
	}
	var found *Rule
	c.rules.allow.each(all, func(rule *Rule) bool {
		if rule.command != nil && rule.command.text != "" && rule.permits(all) {
			found = rule
		}
		return found != nil
	})
	return found
}

// part rules on one part.
func (c *commandLine) part(p *Part, named *Rule) ruling {
	l := newLine(p)
	l.env = c.assigns
	s := &subject{f: c.f, class: partClass(p), line: &l, hosts: p.Hosts, input: c.in}
	s.files = c.targets(p)
	s.words = c.words(p)
	s.trees = p.trees(c.filtered)
	out := c.rules.decide(s)
	if out.behavior == Ask && named != nil && (out.why == WhyDefault || out.why == WhyDestructive || out.why == WhyOutside || out.why == WhyUnclear) {
		return ruled(Allow, named, "allowed by the rule")
	}
	return out
}

// redirecting returns a rule that allows redirections along with its command,
// if every command of the line is allowed by such a one.
func (c *commandLine) redirecting(rulings []ruling) (found *Rule) {
	for i := range rulings {
		out := &rulings[i]
		switch {
		case c.verdict.Parts[i].Argv == nil:
		case out.behavior != Allow || out.rule == nil || !out.rule.Redirects:
			return nil
		default:
			found = out.rule
		}
	}
	return found
}

// redirected rules on a redirection beside a command whose rule allows it to be
// redirected.
func (c *commandLine) redirected(p *Part, was ruling) ruling {
	if p.Argv != nil || was.why != WhyDefault {
		return was
	}
	for i := range p.Files {
		if f := &p.Files[i]; !f.Inside || f.Protected != "" {
			return was
		}
	}
	return ruled(Allow, c.redirects, "redirection allowed by the rule")
}

// targets are the files of a part. Where they really lead is looked up only for
// rules that speak of files.
func (c *commandLine) targets(p *Part) []target {
	if len(p.Files) == 0 {
		return nil
	}
	out := make([]target, len(p.Files))
	for i := range p.Files {
		f := &p.Files[i]
		t := target{given: f.Path, write: f.Write}
		t.PathFacts = PathFacts{Abs: f.Abs, Real: f.Abs, Inside: f.Inside, Protected: f.Protected, Secret: f.Secret, Device: loaded().device(f.Abs)}
		if f.Abs != "" && c.f.Paths != nil {
			t.Real = c.f.locate(f.Abs, "").Real
		}
		out[i] = t
	}
	return out
}

// findsExtension reports whether a find looks for files of certain extensions
// alone, none of which is one of secrets.
func findsExtension(argv []string) bool {
	found := false
	for i, a := range argv {
		switch a {
		case "-o", "-or", "!", "-not", ",", "-a", "-and", "(":
			return false // which of them counts isn't looked into
		case "-name", "-iname":
			if i+1 == len(argv) {
				return false
			}
			ext, ok := strings.CutPrefix(argv[i+1], "*")
			if !ok || len(ext) < 2 || ext[0] != '.' || hasGlob(ext) || SecretName("x"+ext) != "" || SecretName(ext) != "" {
				return false
			}
			found = true
		}
	}
	return found
}

// maxWords bounds the words of a part that are looked at as paths; what has
// more may name any file.
const maxWords = 200

// words are the files that a part may mean of which nobody knows what it does
// with its arguments: as a word, behind an option, or in a script that it is
// given. They are of interest to rules that restrict reading files. They hold
// until the next call.
func (c *commandLine) words(p *Part) []target {
	if !c.rules.restrictedFiles || p.Kind <= KindWrite || len(p.Argv) < 2 {
		return nil
	}
	cwd := p.Cwd
	if cwd == "" {
		cwd = c.f.Cwd
	}
	clear(c.scratch)
	out := c.scratch[:0]
	defer func() { c.scratch = out }()
	var buf [8]string
	for _, arg := range p.Argv[1:] {
		for _, name := range namesIn(buf[:0], arg) {
			if name == "" || name[0] == '-' {
				continue
			}
			if len(out) == maxWords {
				out = append(out, target{given: name})
				return out
			}
			// Only where it is counts.
			if at := c.f.locate(name, cwd); at.Abs != "" {
				out = append(out, target{given: name, PathFacts: at})
			}
		}
	}
	return out
}

// namesIn appends to names those that may stand in an argument: between
// characters that separate names in scripts and options, behind the letter of
// an option, and the argument itself.
func namesIn(names []string, arg string) []string {
	between := strings.IndexAny(arg, namesEnd)
	if between < 0 {
		names = append(names, arg)
	} else {
		names = append(names, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(namesEnd, r) })...)
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
		names = append(names, arg[2:])
	}
	if between >= 0 {
		names = append(names, arg)
	}
	return names
}

const namesEnd = " \t\n'\"`()<>|;&,=:@[]{}"

// partClass says what a part does, as the shipped rules see it.
func partClass(p *Part) Class {
	switch p.Kind {
	case KindReadOnly, KindRead:
		return ClassRead
	case KindWrite:
		if plainEdit(p) {
			return ClassEdit
		}
	}
	return ClassExec
}

// plainEdit reports whether a part only writes the files of the roots that it
// names, by a command that cannot lose much.
func plainEdit(p *Part) bool {
	if len(p.Argv) > 0 {
		switch path.Base(p.Argv[0]) {
		case "mkdir", "touch", "cp", "mv":
		default:
			return false
		}
	}
	for i := range p.Files {
		f := &p.Files[i]
		if f.Write && (f.Abs == "" || !f.Inside || f.Protected != "") {
			return false
		}
	}
	return len(p.Files) > 0
}

package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// use is one file that a command touches.
type use struct {
	w     word
	write bool
	name  bool // only its name and dates are looked at
}

// trustedDirs hold the system's own programs, so that a path to one of them
// is as good as its name.
var trustedDirs = [...]string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin"}

func baseName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// simple judges a simple command whose words are ws.
func (j *judge) simple(ws []word, text string) {
	if j.depth > maxDepth || !j.count() {
		j.add(Part{Text: text, Kind: KindUnknown, Reason: "too many commands inside of each other"})
		return
	}
	p := Part{Text: text, Argv: make([]string, len(ws)), Exact: true}
	if len(j.cwds) == 1 {
		p.Cwd = j.cwds[0]
	}
	for i, w := range ws {
		p.Argv[i] = w.show()
		p.Exact = p.Exact && w.exact()
	}
	if len(ws) == 0 {
		p.Kind, p.Reason = KindUnknown, "nothing is left of it after expansion"
		j.add(p)
		return
	}
	if !ws[0].exact() || ws[0].text == "" {
		p.Kind, p.Reason = KindUnknown, "which command runs isn't certain"
		if why := j.scan(ws[1:]); why != "" {
			p.Kind, p.Reason = KindDestructive, why
		}
		j.add(p)
		return
	}
	name := ws[0].text
	trusted := true
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		trusted = slices.Contains(trustedDirs[:], name[:max(i, 1)])
		name = name[i+1:]
	}
	if fn := j.funcs[ws[0].text]; fn != nil {
		j.callFunction(p, name)
		return
	}
	if why := j.destroys(name, ws[1:]); why != "" {
		p.Kind, p.Reason = KindDestructive, why
		if name == "git" {
			var g Part
			cwds := j.cwds
			j.gitGlobals(&g, ws[1:])
			p.Odd, j.cwds = g.Odd, cwds
		}
		j.hosts(&p)
		j.add(p)
		return
	}
	if trusted && j.builtin(&p, name, ws[1:]) {
		return
	}
	j.program(p, name, ws[1:], trusted)
}

// callFunction judges the call of a function of the same command line, whose
// body has been judged where it is defined.
func (j *judge) callFunction(p Part, name string) {
	p.Kind, p.Reason = KindReadOnly, "a function defined before, judged there"
	if j.t.known(name) {
		p.Kind, p.Reason = KindUnknown, name+" has been redefined"
	}
	if len(j.cds) > 0 {
		j.cwds = nil
	}
	j.forgetAll()
	j.add(p)
}

// known reports whether a name is in one of the tables.
func (t *tables) known(name string) bool {
	return t.readOnly[name] != nil || t.wrappers[name] != nil || t.writers[name] != nil || t.deep[name] || t.keepsState[name] ||
		t.shells[name] || t.interpreters[name] || t.network[name] || t.destructive[name] != nil || name == "cd" || name == "pushd" || name == "popd"
}

// builtin judges what the shell does itself; false if it is something else.
func (j *judge) builtin(p *Part, name string, args []word) bool {
	switch name {
	case "cd", "pushd", "popd":
		j.chdir(name, args)
		p.Reason = "changes the directory of what comes after it"
		j.add(*p)
		return true
	case "eval":
		j.evals(p, args)
		return true
	case "trap":
		p.Kind, p.Reason = KindUnknown, "runs a command later"
		j.add(*p)
		if len(args) > 1 && args[0].exact() && args[0].text != "-" {
			j.nested(args[0].text, "trap")
		}
		return true
	case "set":
		if shellOptions(args) {
			p.Reason = "sets options of the shell that only make it stricter"
			j.add(*p)
			return true
		}
	case "read":
		if k := plainRead(j, args); k {
			p.Reason = "reads a line into a variable"
			j.add(*p)
			return true
		}
	case "history":
		if len(args) == 0 {
			p.Kind, p.Reason = KindRead, "shows the shell's history"
			j.add(*p)
			return true
		}
	}
	if !j.t.keepsState[name] {
		return false
	}
	p.Kind, p.Reason = KindUnknown, name+" changes the shell that later commands run in"
	if name == "source" || name == "." {
		p.Reason = "runs the commands of a file"
		if j.fetched() {
			p.Kind, p.Reason = KindDestructive, "runs what the network sends"
		}
	}
	for _, a := range args {
		if a.exact() && syntax.ValidName(a.text) {
			j.forget(a.text)
		}
	}
	j.add(*p)
	return true
}

// shellOptions reports whether set is given nothing but options that make a
// script stricter or more talkative.
func shellOptions(args []word) bool {
	for i := 0; i < len(args); i++ {
		if !args[i].exact() {
			return false
		}
		switch a := args[i].text; {
		case a == "-o" && i+1 < len(args) && args[i+1].exact():
			i++
			if o := args[i].text; o != "pipefail" && o != "errexit" && o != "nounset" && o != "noglob" {
				return false
			}
		case len(a) > 1 && (a[0] == '-' && strings.Trim(a[1:], "euxf") == "" || a[0] == '+' && strings.Trim(a[1:], "eux") == ""):
		case strings.HasPrefix(a, "-") && strings.HasSuffix(a, "o") && strings.Trim(a[1:len(a)-1], "eux") == "" && i+1 < len(args) && args[i+1].exact() && args[i+1].text == "pipefail":
			i++
		default:
			return false
		}
	}
	return len(args) > 0
}

// plainRead reports whether read fills only variables that mean nothing to
// other commands.
func plainRead(j *judge, args []word) bool {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.exact():
			return false
		case w.text == "-r" || w.text == "-s" || w.text == "-rs":
		case w.text == "-p" || w.text == "-d" || w.text == "-n" || w.text == "-t" || w.text == "-u":
			i++
		case syntax.ValidName(w.text) && !j.t.dangerousEnv.match(w.text):
			j.forget(w.text)
		default:
			return false
		}
	}
	return true
}

// chdir notes a change of the directory.
func (j *judge) chdir(name string, args []word) {
	for len(args) > 0 && args[0].exact() && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L" || args[0].text == "-e") {
		args = args[1:]
	}
	var to []string
	switch {
	case name == "popd" || len(args) > 1 || len(args) == 0 && (name != "cd" || j.f.Home == ""):
	case len(args) == 0:
		to = []string{j.f.Home}
	case args[0].mayBeFlag() || args[0].text == "-" || strings.HasPrefix(args[0].text, "+"):
	default:
		to = j.join(args[0])
	}
	j.cwds = union(j.cwds, to)
	j.moved = &move{to}
}

// evals judges eval, whose words are a script.
func (j *judge) evals(p *Part, args []word) {
	p.Kind, p.Reason = KindUnknown, "runs text as commands, in this shell"
	text, ok := joined(args)
	if j.fetched() {
		p.Kind, p.Reason = KindDestructive, "runs what the network sends"
	}
	j.add(*p)
	if ok {
		j.nested(text, "eval")
	}
	j.cwds = nil
	j.forgetAll()
}

// fetched reports whether something inside of the current command fetches
// from the network.
func (j *judge) fetched() bool {
	for _, p := range j.found[min(j.callMark, len(j.found)):] {
		if len(p.Argv) > 0 && strings.Contains(p.Via, "substitution") && j.t.fetch[baseName(p.Argv[0])] {
			return true
		}
	}
	return false
}

// joined gives words with blanks between them, if all are certain.
func joined(ws []word) (string, bool) {
	out := make([]string, len(ws))
	for i, w := range ws {
		if !w.exact() {
			return "", false
		}
		out[i] = w.text
	}
	return strings.Join(out, " "), true
}

func shown(ws []word) string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = w.show()
	}
	return strings.Join(out, " ")
}

// program judges a command that is no builtin and destroys nothing by
// itself.
func (j *judge) program(p Part, name string, args []word, trusted bool) {
	if name == "git" {
		cwds := j.cwds
		args = j.gitGlobals(&p, args)
		defer func() { j.cwds = cwds }()
		if len(j.cwds) == 1 {
			p.Cwd = j.cwds[0]
		}
	}
	if c, rest := find(j.t.wrappers, j.t, name, args); c != nil {
		if name != "git" || p.Kind < KindUnknown || c.why != "" {
			j.unwrap(p, c, rest)
			return
		}
	}
	if j.t.shells[name] && !j.asksVersion(name, args) {
		j.shell(p, name, args)
		return
	}
	j.hosts(&p)
	switch {
	case p.Kind >= KindUnknown:
	case !trusted:
		p.Kind, p.Reason = KindUnknown, "a program of a directory that isn't the system's"
	case j.probe(&p, name, args):
	default:
		j.tabled(&p, name, args)
	}
	if p.Kind == KindUnknown {
		j.worse(&p, name, args)
		j.named(&p, args)
	}
	j.add(p)
}

// named notes the protected files that a command names of which nobody can tell
// what it does with them.
func (j *judge) named(p *Part, args []word) {
	for _, w := range args {
		if !w.exact() || w.text == "" || w.text[0] == '-' && !strings.Contains(w.text, "=") {
			continue
		}
		text := w.text[strings.IndexByte(w.text, '=')+1:]
		if f := j.f.pathFrom(text, p.Cwd); f.Protected != "" && !slices.ContainsFunc(p.Files, func(o File) bool { return o.Abs == f.Abs }) {
			p.Files = append(p.Files, File{Path: text, Abs: f.Abs, Write: true, Inside: f.Inside, Protected: f.Protected, Secret: f.Secret})
		}
	}
}

// worse looks at what no table allows for what makes it more than unknown.
func (j *judge) worse(p *Part, name string, args []word) {
	if key, ok := longest(j.t.network, j.t, name, args); ok {
		p.Kind, p.Reason = KindNetwork, key+" talks to the network"
	}
	if why := j.scan(args); why != "" && name != "git" {
		p.Kind, p.Reason = KindDestructive, why
		return
	}
	switch {
	case j.t.sql[name] && dropsTables(args, j.stdin):
		p.Kind, p.Reason = KindDestructive, "deletes data"
	case j.t.interpreters[name]:
		if j.fetched() {
			p.Kind, p.Reason = KindDestructive, "runs what the network sends"
		} else if removes(args, j.stdin) {
			p.Kind, p.Reason = KindDestructive, "runs code that deletes files"
		}
	}
}

// tabled judges a command by the tables of those that only read and of those
// that only write what they name.
func (j *judge) tabled(p *Part, name string, args []word) {
	c, rest := find(j.t.readOnly, j.t, name, args)
	why := ""
	if c != nil {
		m := matcher{j: j, c: c}
		if m.run(rest); m.why == "" {
			p.Odd = m.odd
			if why := j.repo(c.name); why != "" {
				p.Kind, p.Reason, p.Odd = KindUnknown, why, true
				return
			}
			j.reads(p, c, m.uses)
			return
		}
		why, p.Odd = m.why, true
	}
	if w, rest := find(j.t.writers, j.t, name, args); w != nil {
		m := matcher{j: j, c: w}
		if m.run(rest); m.why == "" && writesAny(m.uses) {
			p.Odd = false
			j.uses(p, m.uses)
			return
		}
		if why == "" {
			why = m.why
		}
	}
	if why == "" {
		if j.t.deep[name] && firstOperand(args) != "" {
			name += " " + firstOperand(args)
		}
		why = "whether " + name + " changes anything isn't known"
	}
	p.Kind, p.Reason = KindUnknown, why
}

// repo says why a command that looks at a repository may run what that one's
// settings name.
func (j *judge) repo(name string) string {
	if j.f.Repo == nil || !strings.HasPrefix(name, "git ") && name != "go list" {
		return ""
	}
	if len(j.cwds) == 0 {
		return "the directory that it runs in isn't certain, and so whose settings it uses"
	}
	for _, dir := range j.cwds {
		if why := j.f.Repo.Runs(dir); why != "" {
			return why
		}
	}
	return ""
}

func writesAny(us []use) bool {
	return slices.ContainsFunc(us, func(u use) bool { return u.write })
}

// reads fills in a part that is read-only as far as its options go.
func (j *judge) reads(p *Part, c *command, us []use) {
	p.Reason = "only reads"
	j.uses(p, us)
	if p.Kind != KindReadOnly || c.operands == operandsText || c.operands == operandsFree || c.operands == operandsNone && !strings.HasPrefix(c.name, "git ") {
		return
	}
	for _, cwd := range j.cwds {
		if !j.insideDir(cwd) {
			p.Kind, p.Reason = KindRead, "runs in "+cwd+", which is outside of the roots"
		}
	}
	if len(j.cwds) == 0 && !allAbsolute(us) {
		p.Kind, p.Reason = KindRead, "the directory that it runs in isn't certain"
	}
}

// insideDir reports whether a directory is beneath a root.
func (j *judge) insideDir(dir string) bool {
	if j.lastDir != dir {
		j.lastDir, j.lastInside = dir, j.f.pathFrom(".", dir).Inside
	}
	return j.lastInside
}

func allAbsolute(us []use) bool {
	for _, u := range us {
		if !strings.HasPrefix(u.w.text, "/") {
			return false
		}
	}
	return len(us) > 0
}

// uses judges the files of a part and makes it as severe as the worst.
func (j *judge) uses(p *Part, us []use) {
	for _, u := range us {
		if u.w.text == "-" && !u.write || u.w.text == "" && u.w.exact() {
			continue
		}
		if strings.HasPrefix(u.w.text, "/dev/fd/\x01") {
			if u.write && (len(p.Argv) == 0 || baseName(p.Argv[0]) != "tee") {
				p.Kind, p.Reason = max(p.Kind, KindUnknown), "changes the pipe of a substitution"
			}
			continue
		}
		f, why := j.file(u)
		if f.Path == "" {
			continue
		}
		p.Files = append(p.Files, f)
		k := KindRead
		switch {
		case u.write && j.t.device(f.Abs) && j.opened(f.Abs):
			k, why = KindUnknown, "writes "+f.Path+", where a file may have been opened to be read"
		case u.write && j.t.device(f.Abs):
			continue
		case u.write:
			k = KindWrite
			if why == "" {
				why = "writes " + f.Path
			}
			if f.Protected != "" {
				why = "writes " + f.Path + ", which is protected: " + f.Protected
			}
		case why == "":
			continue
		}
		if k > p.Kind || k == p.Kind && f.Protected != "" {
			p.Kind, p.Reason = k, why
		}
	}
}

// file judges one file; why is empty if it may be read freely.
func (j *judge) file(u use) (f File, why string) {
	text := u.w.text
	f = File{Path: u.w.show(), Write: u.write, names: u.name}
	verb := "reads "
	if u.write {
		verb = "writes "
	}
	var pf PathFacts
	if u.w.split || strings.IndexByte(text, 0) >= 0 || u.w.glob && strings.Contains(text, "..") {
		j.t.names(strings.ReplaceAll(text, "\x00", "?"), &pf)
		f.Protected, f.Secret = pf.Protected, pf.Secret
		return f, verb + "a file that isn't certain: " + f.Path
	}
	f.Inside = true
	cwds := j.cwds
	if len(cwds) == 0 {
		cwds = []string{""}
	}
	for _, cwd := range cwds {
		pf = j.f.pathFrom(text, cwd)
		if pf.Device {
			f.Abs, f.Inside = pf.Abs, true
			return f, ""
		}
		if len(cwds) == 1 || f.Abs == "" {
			f.Abs = pf.Abs
		}
		f.Inside = f.Inside && pf.Inside
		if pf.Protected != "" {
			f.Protected = pf.Protected
		}
		if pf.Secret != "" {
			f.Secret = pf.Secret
		}
	}
	if u.w.glob && f.Secret == "" && j.t.globSecret(text) {
		f.Secret = "a pattern that secrets match"
	}
	switch {
	case f.Secret != "" && !u.name && !u.write:
		return f, verb + f.Path + ": " + f.Secret
	case !f.Inside:
		return f, verb + f.Path + ", which is outside of the roots"
	}
	return f, ""
}

func (j *judge) allDevices(fs []File) bool {
	for _, f := range fs {
		if !j.t.device(f.Abs) {
			return false
		}
	}
	return true
}

// find looks a command up by as many of its first words as are part of a
// name there, the longest first, and gives the arguments after them.
func find(table map[string]*command, t *tables, name string, args []word) (*command, []word) {
	best, rest := table[name], args
	key := name
	for i := 0; i < len(args) && i < 3 && t.deep[key]; i++ {
		if !args[i].exact() || args[i].text == "" || args[i].text[0] == '-' {
			break
		}
		key += " " + args[i].text
		if c := table[key]; c != nil {
			best, rest = c, args[i+1:]
		}
	}
	if best != nil {
		best.read()
	}
	return best, rest
}

func longest(set map[string]bool, t *tables, name string, args []word) (string, bool) {
	best, ok := name, set[name]
	key := name
	for i := 0; i < len(args) && i < 3 && t.deep[key]; i++ {
		if !args[i].exact() {
			break
		}
		key += " " + args[i].text
		if set[key] {
			best, ok = key, true
		}
	}
	return best, ok
}

// probe recognises the questions for a version.
func (j *judge) probe(p *Part, name string, args []word) bool {
	if !j.asksVersion(name, args) {
		return false
	}
	p.Reason = "asks for a version"
	return true
}

// asksVersion reports whether a program is surely asked for nothing but its
// version or its help: what one program takes for that question makes another
// one start, such as -V the shells and vim.
func (j *judge) asksVersion(name string, args []word) bool {
	if len(args) != 1 || !args[0].exact() {
		return false
	}
	table := "@" + args[0].text
	switch table {
	case "@--version", "@--help":
		table = "@" + table[3:]
	case "@-V", "@-v", "@-version":
	default:
		return false
	}
	return j.t.readOnly[table+" "+name] != nil
}

// gitGlobals takes git's own options off and applies -C.
func (j *judge) gitGlobals(p *Part, args []word) []word {
	rest := args
	for len(rest) > 0 {
		w := rest[0]
		if !w.exact() {
			if w.mayBeFlag() {
				p.Kind, p.Odd, p.Reason = KindUnknown, true, "an option of git that isn't certain"
			}
			return rest
		}
		switch t := w.text; {
		case t == "-C" && len(rest) > 1:
			j.cwds = j.join(rest[1])
			rest = rest[2:]
			continue
		case t == "--no-pager", t == "-P", t == "--no-optional-locks", t == "--literal-pathspecs", t == "--glob-pathspecs", t == "--noglob-pathspecs", t == "--icase-pathspecs", t == "--no-replace-objects", t == "--no-lazy-fetch", t == "--no-advice":
		case (t == "-c" || t == "--git-dir" || t == "--work-tree" || t == "--config-env" || t == "--exec-path" || t == "--namespace" || t == "--super-prefix" || t == "--attr-source") && len(rest) > 1:
			p.Kind, p.Odd, p.Reason = KindUnknown, true, "git "+t+" can make it run other programs"
			rest = rest[2:]
			continue
		case t == "--version" || t == "--help" || t == "-v" || t == "-h" || t == "":
			return rest
		case t[0] == '-':
			p.Kind, p.Odd, p.Reason = KindUnknown, true, "git "+t+" can make it run other programs"
		default:
			return rest
		}
		rest = rest[1:]
	}
	return rest
}

// hosts notes the hosts of addresses among the arguments.
func (j *judge) hosts(p *Part) {
	for _, a := range p.Argv[1:] {
		if i := strings.Index(a, "://"); i > 0 {
			if h, err := ParseHost(a); err == nil {
				p.Hosts = append(p.Hosts, h)
			}
		}
	}
}

// scan looks for a destructive command among words of which it isn't known
// where a command begins.
func (j *judge) scan(ws []word) string {
	for i := range min(len(ws), 12) {
		if !ws[i].exact() || ws[i].text == "" {
			continue
		}
		if why := j.destroys(baseName(ws[i].text), ws[i+1:]); why != "" {
			return why
		}
		if strings.IndexByte(ws[i].text, ' ') > 0 && j.count() {
			sub := &judge{f: j.f, t: j.t, budget: j.budget, depth: j.depth + 1, cwds: j.cwds}
			if sub.depth > maxDepth {
				return ""
			}
			sub.run(ws[i].text)
			for _, p := range sub.found {
				if p.Kind == KindDestructive {
					return p.Reason
				}
			}
		}
	}
	return ""
}

func (j *judge) cleanAbs(w word) []string {
	if !w.exact() || w.text == "" {
		return nil
	}
	if w.text[0] == '/' {
		return []string{path.Clean(w.text)}
	}
	return j.join(w)
}

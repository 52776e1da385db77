package policy

import (
	"strings"
)

// unwrap judges a command that starts another one: first itself, then what
// it starts.
func (j *judge) unwrap(p Part, c *command, args []word) {
	u := unwrapper{j: j, c: c, p: &p, cwds: j.cwds}
	if c.name == "command" && len(args) > 0 && args[0].exact() && (args[0].text == "-v" || args[0].text == "-V") {
		p.Reason = "says where a command is"
		j.add(p)
		return
	}
	rest, ok := u.options(args)
	p.Wrapper = ok
	if p.Kind < KindUnknown {
		switch {
		case !ok:
			p.Kind, p.Reason = KindUnknown, u.why
		case c.network:
			p.Kind, p.Reason = KindNetwork, c.why
		case !c.free:
			p.Kind, p.Reason = KindUnknown, c.why
		default:
			p.Reason = "only starts another command"
		}
	}
	if !ok || c.opsRun {
		if why := j.scan(args); why != "" {
			p.Kind, p.Reason = KindDestructive, why
		}
	}
	cwds, via := j.cwds, j.via
	j.cwds, j.via = u.cwds, j.path(c.name)
	defer func() {
		j.via = via
		if c.name != "command" && c.name != "builtin" { // those run in this shell, a cd too
			j.cwds = cwds
		}
	}()
	if ok && len(rest) == 0 && len(u.scripts) == 0 {
		p.Wrapper = false
		if c.bare != "" && c.bare != "free" && p.Kind < KindRead {
			p.Kind, p.Reason = KindRead, c.bare
		}
	}
	p.Via = via
	if p.Via == "" {
		p.Via = "\x00"
	}
	j.addDirect(p)
	if !ok || c.opsRun {
		return
	}
	if c.network && len(rest) == 0 && j.stdin != nil {
		u.scripts = append(u.scripts, *j.stdin)
	}
	for _, s := range u.scripts {
		j.script(s)
	}
	u.start(rest)
}

// addDirect adds a part with the via that it has.
func (j *judge) addDirect(p Part) {
	via := j.via
	j.via = strings.Trim(p.Via, "\x00")
	p.Via = ""
	j.add(p)
	j.via = via
}

// script judges a word that is run as a script.
func (j *judge) script(w word) {
	if !w.exact() {
		p := Part{Text: w.show(), Kind: KindUnknown, Reason: "runs a script that isn't certain"}
		if j.fetched() {
			p.Kind, p.Reason = KindDestructive, "runs what the network sends"
		}
		j.add(p)
		return
	}
	via := j.via
	j.via = ""
	j.nested(w.text, via)
	j.via = via
}

type unwrapper struct {
	j       *judge
	c       *command
	p       *Part
	why     string
	cwds    []string
	scripts []word
	holder  string // what xargs -I puts its input in place of
}

// options takes the wrapper's own options and operands off; false if they
// aren't understood, and then u.why says why.
func (u *unwrapper) options(args []word) ([]word, bool) {
	i := 0
	for i < len(args) {
		w := args[i]
		if !w.exact() {
			if w.mayBeFlag() {
				u.why = "an option of " + u.c.name + " isn't certain"
				return nil, false
			}
			break
		}
		t := w.text
		if t == "--" {
			i++
			break
		}
		if len(t) < 2 || t[0] != '-' || u.c.numbers && digitsOnly(t[1:]) {
			if len(t) >= 2 && t[0] == '-' || t == "-" && u.has("-") {
				i++
				continue
			}
			break
		}
		n, ok := u.option(t, args[i+1:])
		if !ok {
			if u.why == "" {
				u.why = "the option " + t + " of " + u.c.name + " isn't known"
			}
			return nil, false
		}
		i += 1 + n
	}
	args = args[i:]
	if u.c.assign {
		args = u.assigns(args)
	}
	for range u.c.skip {
		if len(args) == 0 {
			return nil, true
		}
		if args[0].split || args[0].glob || args[0].mayBeFlag() {
			u.why = "where the command of " + u.c.name + " begins isn't certain"
			return nil, false
		}
		args = args[1:]
	}
	if u.c.skip > 0 && len(args) > 0 && args[0].exact() && args[0].text == "--" {
		args = args[1:]
	}
	return args, true
}

func (u *unwrapper) has(name string) bool { _, ok := u.c.flags[name]; return ok }

// option reads one option and says how many of the words after it belong to
// it.
func (u *unwrapper) option(t string, rest []word) (int, bool) {
	name, val, has := strings.Cut(t, "=")
	f, ok := u.c.flags[name]
	if ok && (strings.HasPrefix(t, "--") || !has) {
		return u.value(f, val, has, rest)
	}
	if strings.HasPrefix(t, "--") || u.c.style == "word" {
		return 0, false
	}
	for k := 1; k < len(t); k++ {
		f, ok := u.c.flags["-"+t[k:k+1]]
		if !ok {
			return 0, false
		}
		if f.arg != 0 {
			return u.value(f, t[k+1:], k+1 < len(t) || f.arg == '?', rest)
		}
	}
	return 0, true
}

func (u *unwrapper) value(f flag, val string, has bool, rest []word) (int, bool) {
	if f.arg == 0 {
		return 0, !has
	}
	w, n := lit(val), 0
	if !has && f.arg == ':' {
		if len(rest) == 0 {
			return 0, false
		}
		w, n = rest[0], 1
		if w.split || w.glob {
			u.why = "what " + w.show() + " becomes isn't certain: it could be the command"
			return 0, false
		}
	}
	switch f.role {
	case '@':
		u.cwds = u.j.join(w)
	case '$':
		u.scripts = append(u.scripts, w)
	case '=':
		if !w.exact() || w.text == "" {
			return 0, false
		}
		u.holder = w.text
	case 'r':
		u.j.uses(u.p, []use{{w: w}})
	}
	return n, true
}

// assigns takes NAME=value operands off.
func (u *unwrapper) assigns(args []word) []word {
	for len(args) > 0 {
		sure := args[0].sure()
		name, _, ok := strings.Cut(sure, "=")
		if !ok || args[0].split || name == "" {
			break
		}
		u.p.Env = append(u.p.Env, args[0].show())
		if t := u.j.t; !t.harmlessEnv.match(name) && !(args[0].exact() && t.harmlessEnv.exact[args[0].text]) {
			u.p.Kind, u.p.Reason = max(u.p.Kind, KindUnknown), "sets "+name+" for what runs after it"
		}
		args = args[1:]
	}
	return args
}

// start judges what the wrapper starts.
func (u *unwrapper) start(rest []word) {
	j := u.j
	if len(rest) == 0 {
		return
	}
	if u.c.shell {
		text, ok := joined(rest)
		if !ok {
			p := Part{Text: shown(rest), Kind: KindUnknown, Reason: "runs a script that isn't certain"}
			if why := j.scan(rest); why != "" {
				p.Kind, p.Reason = KindDestructive, why
			}
			j.add(p)
			return
		}
		j.script(lit(text))
		return
	}
	inner := append([]word(nil), rest...)
	if u.c.stdin {
		placed := false
		for i, w := range inner {
			if u.holder != "" && strings.Contains(w.text, u.holder) {
				inner[i] = word{text: strings.ReplaceAll(w.text, u.holder, "\x00"), src: w.text}
				placed = true
			}
		}
		if !placed && u.holder == "" {
			inner = append(inner, word{text: "\x00", split: true, src: "(input)"})
		}
	}
	stdin := j.stdin
	if u.c.stdin {
		j.stdin = nil
	}
	j.depth++
	if name := baseName(inner[0].text); u.c.stdin && (name == "rm" || name == "unlink" || name == "rmdir") {
		j.add(Part{Text: shown(inner), Argv: strings.Fields(shown(inner)), Kind: KindDestructive, Reason: "deletes what its input names"})
		j.depth--
		return
	}
	j.simple(inner, shown(inner))
	j.depth--
	j.stdin = stdin
}

// shell judges bash, sh and the like, which run a script that is given as an
// argument, in a file or as input.
func (j *judge) shell(p Part, name string, args []word) {
	var script *word
	fromInput, strange := true, ""
	wantScript := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.exact() {
			fromInput, strange = false, "which script "+name+" runs isn't certain"
			if wantScript {
				script, strange = &args[i], ""
			}
			break
		}
		t := w.text
		switch {
		case t == "--noprofile" || t == "--norc" || t == "--posix" || t == "--":
			continue
		case t == "-o" || t == "+o":
			i++
			continue
		case strings.HasPrefix(t, "--"):
			strange = "the option " + t + " of " + name + " isn't known"
			continue
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			if strings.Trim(t[1:], "cefhnuvxsBCE") != "" {
				if strings.HasSuffix(t, "o") && strings.Trim(t[1:], "cefhnuvxso") == "" {
					i++
				} else {
					strange = "the option " + t + " of " + name + " isn't known"
				}
			}
			wantScript = wantScript || strings.Contains(t, "c")
			continue
		}
		fromInput = t == "-" || t == "/dev/stdin"
		if wantScript {
			script, fromInput = &args[i], false
		}
		break
	}
	if j.started() && strange == "" {
		strange = "a shell that another command starts"
	}
	if !j.t.sameDialect[name] && strange == "" {
		strange = name + " understands commands in ways of its own"
	}
	p.Wrapper = true
	var body *word
	switch {
	case script != nil:
		body = script
	case fromInput && j.stdin != nil:
		body = j.stdin
	default:
		p.Wrapper = false
		if strange == "" {
			strange = "runs the commands of a file or of its input"
		}
	}
	if body != nil && !body.exact() {
		p.Wrapper = false
		strange = "which script " + name + " runs isn't certain"
	}
	p.Reason = "only runs the commands in it"
	if strange != "" {
		p.Kind, p.Reason = max(p.Kind, KindUnknown), strange
		if j.fetched() {
			p.Kind, p.Reason = KindDestructive, "runs what the network sends"
		}
	}
	j.add(p)
	if body != nil && !body.exact() && !body.split && !body.glob {
		// for what is destructive whatever the rest turns out to be
		sub := lit(strings.ReplaceAll(body.text, "\x00", "x"))
		body = &sub
	}
	if body != nil && body.exact() {
		via := name
		if script != nil {
			via += " -c"
		}
		stdin := j.stdin
		j.nested(body.text, via)
		j.stdin = stdin
	}
}

// started reports whether another program starts what is judged now.
func (j *judge) started() bool {
	last := j.via[strings.LastIndex(j.via, "> ")+1:]
	last = strings.TrimSpace(strings.TrimPrefix(last, ">"))
	name, _, _ := strings.Cut(last, " ")
	return name == "find" || j.t.wrappers[last] != nil || j.t.wrappers[name] != nil
}

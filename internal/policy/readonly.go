package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// matcher holds a command's arguments against its line of a table.
type matcher struct {
	j        *judge
	c        *command
	why      string // why the arguments aren't covered; empty: they are
	uses     []use
	ops      []word
	seen     []string
	patterns []word // given by options
	pattern  bool
	ended    bool
	odd      bool   // it starts what does more than read
	starts   string // a name beneath a directory that find was given
	started  int    // uses that starts was made of
}

func (m *matcher) fail(why string) {
	if m.why == "" {
		m.why = why
	}
}

func (m *matcher) run(args []word) {
	switch m.c.check {
	case "find":
		m.find(args)
		return
	case "jq":
		args = m.jqArgs(args)
	}
	for i := 0; i < len(args) && m.why == ""; i++ {
		i += m.argument(args[i], args[i+1:])
	}
	if m.why == "" {
		m.operands()
	}
	if m.why == "" {
		m.check(args)
	}
}

// argument looks at one word and says how many after it belong to it.
func (m *matcher) argument(w word, rest []word) int {
	c := m.c
	switch {
	case m.ended || c.style == "raw":
		if w.split && !c.inject && c.style != "raw" {
			m.fail("what " + w.show() + " becomes isn't certain")
		}
		m.ops = append(m.ops, w)
		return 0
	case !w.exact():
		m.unsure(w)
		return 0
	}
	t := w.text
	switch {
	case c.ordered && len(m.ops) > 0 && len(t) > 1 && t[0] == '-':
		m.fail(c.name + " takes no options behind an operand: " + t + " is a file")
	case t == "--":
		m.ended = true
		if c.operands == operandsRev {
			m.seen = append(m.seen, "--")
		}
	case len(t) < 2 || t[0] != '-':
		m.ops = append(m.ops, w)
	case c.numbers && digitsOnly(t[1:]):
	case strings.HasPrefix(t, "--") || c.style == "word":
		name, val, has := strings.Cut(t, "=")
		if c.style == "word" && strings.HasPrefix(name, "--") {
			if _, ok := c.flags[name]; !ok {
				name = name[1:]
			}
		}
		return m.flag(t, name, val, has, rest)
	default:
		return m.cluster(t, rest)
	}
	return 0
}

func (m *matcher) cluster(t string, rest []word) int {
	if _, ok := m.c.flags[t]; ok && len(t) > 2 {
		return m.flag(t, t, "", false, rest)
	}
	for k := 1; k < len(t); k++ {
		name := "-" + t[k:k+1]
		f, ok := m.c.flags[name]
		if !ok {
			if m.c.numbers && t[k] >= '0' && t[k] <= '9' {
				continue
			}
			m.fail("the option " + t + " of " + m.c.name + " isn't known to be harmless")
			return 0
		}
		if f.arg != 0 {
			return m.flag(t, name, t[k+1:], k+1 < len(t) || f.arg == '?', rest)
		}
		m.seen = append(m.seen, name)
		m.pattern = m.pattern || f.pattern
	}
	return 0
}

func (m *matcher) flag(t, name, val string, has bool, rest []word) int {
	f, ok := m.c.flags[name]
	if !ok || has && f.arg == 0 {
		m.fail("the option " + t + " of " + m.c.name + " isn't known to be harmless")
		return 0
	}
	m.seen = append(m.seen, name)
	if f.arg != ':' {
		m.pattern = m.pattern || f.pattern
		return 0
	}
	w, n := lit(val), 0
	if !has {
		if len(rest) == 0 {
			return 0 // the command will complain
		}
		w, n = rest[0], 1
		if (w.split || w.glob) && (!m.c.inject || m.c.max > 0) {
			m.fail("what " + w.show() + " becomes isn't certain")
			return n
		}
		if w.mayBeFlag() && strings.HasPrefix(m.c.name, "git ") && m.c.operands != operandsPattern { // git grep is strict
			m.fail("whether git takes " + w.show() + " for the value of " + name + " or for an option isn't certain")
			return n
		}
		if (w.split || w.glob) && m.c.operands != operandsText {
			m.uses = append(m.uses, use{w: w}) // it may bring files along
		}
	}
	m.value(f, w)
	return n
}

func (m *matcher) value(f flag, w word) {
	switch f.role {
	case 'r':
		m.uses = append(m.uses, use{w: w})
	case 'w':
		m.uses = append(m.uses, use{w: w, write: true})
	}
	if f.pattern {
		m.pattern = true
		if f.role == 't' {
			m.patterns = append(m.patterns, w)
		}
	}
}

// unsure looks at a word that isn't certain.
func (m *matcher) unsure(w word) {
	s := w.sure()
	if s != "" && s[0] == '-' && !w.split {
		name, _, has := strings.Cut(s, "=")
		if strings.HasPrefix(s, "--") || m.c.style == "word" {
			if f, ok := m.c.flags[name]; ok && has && f.arg != 0 {
				m.seen = append(m.seen, name)
				m.value(f, word{text: w.text[len(name)+1:], src: w.src, glob: w.glob})
				return
			}
		} else if f, ok := m.c.flags[s[:min(2, len(s))]]; ok && len(s) >= 2 && f.arg != 0 {
			m.seen = append(m.seen, s[:2])
			m.value(f, word{text: w.text[2:], src: w.src, glob: w.glob})
			return
		}
		m.fail("the option " + w.show() + " isn't certain")
		return
	}
	if (w.split || s == "") && !m.c.inject {
		m.fail("what " + w.show() + " becomes isn't certain: it could be an option")
		return
	}
	m.ops = append(m.ops, w)
}

// operands turns the operands into uses of files.
func (m *matcher) operands() {
	c, ops := m.c, m.ops
	switch {
	case c.operands == operandsNone && len(ops) > 0:
		m.fail(c.name + " with operands isn't known to be harmless")
	case c.max > 0 && (len(ops) > c.max || slices.ContainsFunc(ops, func(w word) bool { return w.split || w.glob })):
		m.fail(c.name + " with more than one operand may write")
	case len(ops) > 0 && c.not[ops[0].text]:
		m.fail(c.name + " " + ops[0].text + " isn't known to be harmless")
	case len(ops) > 0 && len(c.needs) > 0 && !m.any(c.needs):
		m.fail(c.name + " with a name may change something")
	case len(c.require) > 0 && !m.any(c.require):
		m.fail(c.name + " without an option that says to only look isn't known to be harmless")
	}
	switch c.operands {
	case operandsRead, operandsName:
		m.all(ops, use{name: c.operands == operandsName})
	case operandsPattern:
		if !m.pattern && len(ops) > 0 && !ops[0].split {
			ops = ops[1:]
		}
		m.all(ops, use{name: c.noRead})
	case operandsRev:
		for _, w := range ops {
			if i := strings.LastIndexByte(w.text, ':'); i >= 0 && !strings.HasPrefix(w.text, ":(") {
				w.text = w.text[i+1:]
			}
			m.uses = append(m.uses, use{w: w})
		}
	case operandsWrite:
		m.all(ops, use{write: true})
	case operandsMove: // under its new name, anybody may read it
		m.all(ops, use{write: true})
		if len(ops) > 0 && !m.any([]string{"-t", "--target-directory"}) {
			ops = ops[:len(ops)-1]
		}
		m.all(ops, use{})
	case operandsMode, operandsEdit:
		if len(ops) > 0 && !m.pattern {
			ops = ops[1:]
		}
		m.all(ops, use{write: true})
	case operandsCopy:
		if len(ops) > 0 && !m.any([]string{"-t", "--target-directory"}) {
			m.all(ops[len(ops)-1:], use{write: true})
			ops = ops[:len(ops)-1]
		}
		m.all(ops, use{})
	}
}

func (m *matcher) all(ops []word, as use) {
	for _, w := range ops {
		as.w = w
		m.uses = append(m.uses, as)
	}
}

func (m *matcher) any(names []string) bool {
	for _, s := range m.seen {
		if slices.Contains(names, s) {
			return true
		}
	}
	return false
}

// check judges what options alone don't tell.
func (m *matcher) check(args []word) {
	switch m.c.check {
	case "sed":
		m.scripts(sedHarmless, "the sed script isn't known to be harmless")
		if m.c.operands == operandsEdit && !m.any([]string{"-i", "--in-place"}) {
			m.fail("isn't an edit in place")
		}
	case "awk":
		m.scripts(awkHarmless, "the awk program isn't known to be harmless")
	case "jq":
		m.jq()
	case "date":
		for _, w := range m.ops {
			if !strings.HasPrefix(w.sure(), "+") {
				m.fail("date with an operand may set the clock")
			}
		}
	case "ps":
		for _, w := range m.ops {
			if !w.exact() || strings.IndexByte(w.text, 'e') >= 0 {
				m.fail("ps may show environments")
			}
		}
	case "printf":
		if len(args) > 0 && (!args[0].exact() && args[0].mayBeFlag() && len(args) > 2 || strings.HasPrefix(args[0].sure(), "-v")) {
			m.fail("printf -v sets a variable")
		}
	case "test":
		m.test(args)
	case "golist":
		for _, w := range args {
			if strings.HasSuffix(w.text, "mod=mod") {
				m.fail("go list -mod=mod changes go.mod")
			}
		}
	}
}

func (m *matcher) test(args []word) {
	for i, w := range args {
		if w.split {
			m.fail("what " + w.show() + " becomes isn't certain")
		}
		if w.exact() && (w.text == "-v" || w.text == "-R") && i+1 < len(args) && !(args[i+1].exact() && syntax.ValidName(args[i+1].text)) {
			m.fail("a test of a variable whose name isn't certain")
		}
		if !w.exact() && w.sure() == "" && i+1 < len(args) && i == 0 && len(args) <= 3 && !args[i+1].exact() {
			m.fail("what is tested isn't certain")
		}
	}
}

// scripts holds the scripts of sed or awk against what is known to be
// harmless.
func (m *matcher) scripts(harmless func(string) bool, why string) {
	list := m.patterns
	if !m.pattern {
		if len(m.ops) == 0 {
			return
		}
		list = m.ops[:1]
	}
	for _, w := range list {
		if !w.exact() || !harmless(w.text) {
			m.fail(why)
		}
	}
}

func (m *matcher) jqArgs(args []word) []word {
	var out []word
	for i := 0; i < len(args); i++ {
		if args[i].exact() {
			switch args[i].text {
			case "--arg", "--argjson":
				i += 2
				continue
			case "--slurpfile", "--rawfile":
				if i+2 < len(args) {
					m.uses = append(m.uses, use{w: args[i+2]})
				}
				i += 2
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}

func (m *matcher) jq() {
	list := m.patterns
	if !m.pattern && len(m.ops) > 0 {
		list = m.ops[:1]
	}
	for _, w := range list {
		for _, bad := range [...]string{"env", "ENV", "import", "include", "input_filename", "debug(", "get_search_list", "halt"} {
			if !w.exact() || strings.Contains(w.text, bad) {
				m.fail("the jq filter isn't known to be harmless")
			}
		}
	}
}

// sedHarmless reports whether a sed script only chooses, changes and prints
// lines: no w, W, e, r, R, and no s///e or s///w.
func sedHarmless(s string) bool {
	i := 0
	for {
		for i < len(s) && strings.IndexByte(" \t\n;{}", s[i]) >= 0 {
			i++
		}
		if i >= len(s) {
			return true
		}
		if i = sedAddress(s, i); i < 0 || i >= len(s) {
			return false
		}
		c := s[i]
		i++
		switch c {
		case '{':
			continue
		case 'p', 'P', 'd', 'D', 'n', 'N', 'h', 'H', 'g', 'G', 'x', '=', 'z':
		case 'q', 'Q', 'l':
			for i < len(s) && (s[i] == ' ' || s[i] >= '0' && s[i] <= '9') {
				i++
			}
		case 's', 'y':
			if i = sedSubst(s, i, c); i < 0 {
				return false
			}
		default:
			return false
		}
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		if i < len(s) && s[i] != ';' && s[i] != '\n' && s[i] != '}' {
			return false
		}
	}
}

// sedAddress skips the addresses before a command; -1 if they aren't
// understood.
func sedAddress(s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9' || c == '$' || c == ',' || c == '~' || c == '+' || c == '!' || c == ' ':
			i++
		case c == '/':
			if i = sedDelimited(s, i+1, '/'); i < 0 {
				return -1
			}
			for i < len(s) && (s[i] == 'I' || s[i] == 'M') {
				i++
			}
		default:
			return i
		}
	}
	return i
}

// sedDelimited returns the index after the next unescaped delimiter, or -1.
func sedDelimited(s string, i int, delim byte) int {
	class := false
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '\n':
			return -1
		case s[i] == '[' || s[i] == ']':
			class = true // sed's own rules for brackets differ: a delimiter in one isn't certain
		case s[i] == delim:
			if class && unbalanced(s[:i]) {
				return -1
			}
			return i + 1
		}
	}
	return -1
}

// unbalanced reports whether a bracket expression may still be open.
func unbalanced(s string) bool {
	return strings.LastIndexByte(s, '[') > strings.LastIndexByte(s, ']')
}

func sedSubst(s string, i int, c byte) int {
	if i >= len(s) {
		return -1
	}
	d := s[i]
	if d == '\\' || d == '\n' || d >= 0x80 || d == ' ' || d == '[' || d == ']' {
		return -1
	}
	if i = sedDelimited(s, i+1, d); i < 0 {
		return -1
	}
	if i = sedDelimited(s, i, d); i < 0 {
		return -1
	}
	if c == 'y' {
		return i
	}
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("gpiI", s[i]) >= 0) {
		i++
	}
	return i
}

// awkCall reports whether a word may stand before a parenthesis in an awk
// program.
func awkCall(word string) bool {
	switch word {
	case "length", "substr", "split", "sub", "gsub", "match", "index", "tolower", "toupper", "sprintf", "int", "if", "while", "for", "print", "printf", "in", "and", "or", "return", "exp", "log", "sqrt", "strtonum", "gensub":
		return true
	}
	return false
}

// awkHarmless reports whether an awk program only prints what it was given:
// no output to files or commands, no input but its operands, no system().
func awkHarmless(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '|':
			if i+1 >= len(s) || s[i+1] != '|' {
				return false
			}
			i++
		case c == '>':
			if depth != 0 || strings.ContainsAny(s, "/") {
				return false
			}
		case c == '#' || c == '@' || c == '`' || c == '\\' && !strings.Contains(s, "/"):
			return false
		case c == '/' && strings.Contains(s, `"`):
			return false // a quote in a pattern could hide what follows
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			from := i
			for i < len(s) && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9') {
				i++
			}
			if !awkWord(s[from:i], strings.TrimLeft(s[i:], " \t")) {
				return false
			}
			i--
		}
	}
	return depth == 0
}

func awkWord(w, after string) bool {
	switch w {
	case "system", "getline", "close", "fflush", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "function", "func", "nextfile":
		return false
	}
	return !strings.HasPrefix(after, "(") || awkCall(w)
}

// findTest reports whether a word is a primary of find that only looks, and how
// many words it takes.
func findTest(word string) (words int, known bool) {
	switch word {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname", "-ilname",
		"-type", "-xtype", "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-newermt",
		"-used", "-perm", "-user", "-group", "-uid", "-gid", "-links", "-inum", "-samefile", "-fstype", "-maxdepth", "-mindepth",
		"-printf":
		return 1, true
	case "-empty", "-nouser", "-nogroup", "-readable", "-writable", "-executable", "-true", "-false", "-depth", "-d", "-mount", "-xdev",
		"-daystart", "-follow", "-noleaf", "-ignore_readdir_race", "-warn", "-nowarn", "-print", "-print0", "-ls", "-prune", "-quit",
		"-a", "-and", "-o", "-or", "-not", "!", "(", ")", ",", "-H", "-L", "-P", "-E", "-X", "-x", "-s", "-O0", "-O1", "-O2", "-O3",
		"--version", "--help", "-help", "-version":
		return 0, true
	}
	return 0, false
}

// find judges the words of find; what -exec starts is judged by itself.
func (m *matcher) find(args []word) {
	expression, secret := false, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.exact() {
			if expression || w.mayBeFlag() || w.split {
				m.fail("what " + w.show() + " becomes isn't certain: it could be -delete")
				return
			}
			m.uses = append(m.uses, use{w: w, name: true})
			continue
		}
		t := w.text
		n, known := findTest(t)
		switch {
		case known:
			expression = expression || t != "-H" && t != "-L" && t != "-P"
			if i+n < len(args) && n == 1 {
				v := args[i+1]
				if v.split || v.glob && strings.IndexByte(v.text, '.') < 0 || v.text == "\x00" && v.mayBeFlag() && v.split {
					m.fail("what " + v.show() + " becomes isn't certain")
					return
				}
				if strings.HasSuffix(t, "name") || strings.HasSuffix(t, "path") {
					var pf PathFacts
					m.j.t.names(v.text, &pf)
					secret = secret || pf.Secret != "" || m.j.t.globSecret(v.text)
				}
				if t == "-newer" || t == "-samefile" {
					m.uses = append(m.uses, use{w: v, name: true})
				}
			}
			i += n
		case t == "-exec" || t == "-execdir" || t == "-ok" || t == "-okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && !(args[end].text == "+" && args[end-1].text == "{}") {
				end++
			}
			m.exec(args[i+1:end], t, secret)
			if !slices.ContainsFunc(args[i+1:min(end, len(args))], func(w word) bool { return strings.Contains(w.text, "{}") }) {
				m.fail("runs a command that isn't about what it finds")
			}
			expression = true
			i = end
		case strings.HasPrefix(t, "-") && len(t) > 1:
			m.fail("the option " + t + " of find isn't known to be harmless")
			return
		case !expression:
			m.uses = append(m.uses, use{w: w, name: true})
		default:
			m.fail("an operand of find where none belongs")
			return
		}
	}
}

// exec judges the command that find starts for what it finds.
func (m *matcher) exec(ws []word, primary string, secret bool) {
	if len(ws) == 0 {
		m.fail("find " + primary + " without a command")
		return
	}
	if m.starts == "" {
		m.starts = "./\x01"
	}
	for ; m.started < len(m.uses); m.started++ {
		u := m.uses[m.started]
		if f, why := m.j.file(u); why != "" || strings.HasPrefix(u.w.text, "-") {
			m.starts = "\x00"
		} else if f.Abs != "" && !u.w.glob {
			m.starts = f.Abs + "/\x01"
		}
	}
	starts := m.starts
	if primary == "-execdir" || primary == "-okdir" || secret {
		starts = "\x00"
	}
	inner := make([]word, len(ws))
	for i, w := range ws {
		inner[i] = w
		if strings.Contains(w.text, "{}") {
			inner[i] = word{text: strings.ReplaceAll(w.text, "{}", starts), src: w.show(), glob: w.glob, split: w.split}
		}
	}
	j := m.j
	via, cwds, mark := j.via, j.cwds, len(j.found)
	j.via = j.path("find " + primary)
	if primary == "-execdir" || primary == "-okdir" {
		j.cwds = nil
	}
	j.depth++
	if inner[0].text != "" && (inner[0].text == "rm" || baseName(inner[0].text) == "rm" || inner[0].text == "unlink") {
		j.add(Part{Text: shown(ws), Argv: strings.Fields(shown(ws)), Kind: KindDestructive, Reason: "deletes all that find finds"})
	} else {
		j.simple(inner, shown(ws))
	}
	j.depth--
	j.via, j.cwds = via, cwds
	for i := range j.found[mark:] {
		m.odd = m.odd || j.found[mark+i].Kind >= KindWrite
	}
}

package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command after expansion, as far as it is certain.
type word struct {
	text  string // "\x00" stands for what isn't certain
	src   string // as written; empty: text says it all
	glob  bool   // text is a pattern that file names take the place of
	split bool   // may become any number of words of any form
}

func lit(s string) word { return word{text: s} }

// exact reports whether the word is certain to the byte.
func (w word) exact() bool { return !w.glob && !w.split && strings.IndexByte(w.text, 0) < 0 }

// sure is the certain text before anything uncertain.
func (w word) sure() string {
	if w.split {
		return ""
	}
	s := w.text
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	if w.glob {
		if i := strings.IndexAny(s, "*?["); i >= 0 {
			s = s[:i]
		}
	}
	return s
}

// mayBeFlag reports whether the word could turn out to be an option.
func (w word) mayBeFlag() bool {
	if w.exact() {
		return len(w.text) > 1 && w.text[0] == '-'
	}
	s := w.sure()
	return s == "" || s[0] == '-'
}

func (w word) show() string {
	if w.src != "" {
		return w.src
	}
	return w.text
}

// value is what a variable certainly holds.
type value struct {
	text string
	glob bool
}

// wordBuf collects a word from its parts.
type wordBuf struct {
	b       []byte
	glob    bool
	split   bool
	fields  bool // holds an unquoted value with blanks
	changed bool // not simply as written
	parts   int
}

// words evaluates words, with braces expanded. Everything that runs inside of
// them is judged on the way.
func (j *judge) words(in []*syntax.Word, out []word) []word {
	for _, w := range in {
		out = j.word(w, out)
	}
	return out
}

func (j *judge) word(w *syntax.Word, out []word) []word {
	if !j.count() {
		return append(out, word{text: "\x00", split: true})
	}
	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && plain(l.Value) {
			return append(out, lit(l.Value))
		}
	}
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return j.braces(w, out)
		}
	}
	return j.whole(w, out)
}

// plain reports whether a literal means just itself.
func plain(s string) bool {
	if s == "[" {
		return true
	}
	for i := range len(s) {
		switch s[i] {
		case '\\', '*', '?', '[', '{', '~', '+', '@', '!':
			if s[i] == '~' && i > 0 || (s[i] == '+' || s[i] == '@' || s[i] == '!') {
				continue
			}
			return false
		}
	}
	return true
}

// braces expands {a,b} and {1..9}: each result is a word of its own, and may
// be an option.
func (j *judge) braces(w *syntax.Word, out []word) []word {
	src := j.text(w)
	whole := w
	w = &syntax.Word{Parts: slices.Clone(w.Parts)} // the tree stays as it was parsed
	if !syntax.SplitBraces(w) {
		return j.whole(whole, out)
	}
	alts, ok := j.alternatives(w.Parts, 0)
	if !ok {
		j.visitParts(whole.Parts)
		return append(out, word{text: "\x00", split: true, src: src})
	}
	for _, parts := range alts {
		if len(parts) == 0 {
			continue // nothing is no word
		}
		from := len(out)
		out = j.whole(&syntax.Word{Parts: parts}, out)
		for i := from; i < len(out); i++ {
			if !out[i].exact() {
				out[i].src = src
			}
		}
	}
	return out
}

const maxAlternatives = 256

func (j *judge) alternatives(parts []syntax.WordPart, depth int) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i][:len(out[i]):len(out[i])], p)
			}
			continue
		}
		if depth > 8 || b.Sequence && !shortSequence(b) {
			return nil, false
		}
		var options [][]syntax.WordPart
		if b.Sequence {
			options = sequence(b)
		} else {
			for _, e := range b.Elems {
				more, ok := j.alternatives(e.Parts, depth+1)
				if !ok {
					return nil, false
				}
				options = append(options, more...)
			}
		}
		if len(out)*len(options) > maxAlternatives {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, o := range out {
			for _, x := range options {
				next = append(next, append(o[:len(o):len(o)], x...))
			}
		}
		out = next
	}
	return out, true
}

func ends(b *syntax.BraceExp) (from, to int, ok bool) {
	if len(b.Elems) != 2 {
		return 0, 0, false
	}
	from, err1 := strconv.Atoi(b.Elems[0].Lit())
	to, err2 := strconv.Atoi(b.Elems[1].Lit())
	return from, to, err1 == nil && err2 == nil && from >= 0 && to >= 0
}

func shortSequence(b *syntax.BraceExp) bool {
	from, to, ok := ends(b)
	return ok && max(from, to)-min(from, to) < 100
}

func sequence(b *syntax.BraceExp) [][]syntax.WordPart {
	from, to, _ := ends(b)
	var out [][]syntax.WordPart
	for i := min(from, to); i <= max(from, to); i++ {
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: strconv.Itoa(i)}})
	}
	return out
}

// whole evaluates a word without braces to expand.
func (j *judge) whole(w *syntax.Word, out []word) []word {
	var b wordBuf
	if len(w.Parts) > 0 {
		j.parts(w.Parts, false, &b)
	}
	r := word{text: string(b.b), glob: b.glob, split: b.split}
	switch {
	case b.fields && len(w.Parts) == 1 && !b.split:
		for _, f := range strings.Fields(r.text) {
			out = append(out, word{text: f, glob: hasGlob(f)})
		}
		return out
	case b.fields:
		r.split = true
	case len(w.Parts) == 1 && r.text == "" && !b.split:
		if _, ok := w.Parts[0].(*syntax.ParamExp); ok {
			return out // an empty value without quotes is no word
		}
	}
	if !r.exact() {
		r.src = j.wordText(w)
	}
	return append(out, r)
}

// one evaluates a word where the shell doesn't split: assignments, targets of
// redirections, here-documents, case words.
func (j *judge) one(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	var b wordBuf
	j.parts(w.Parts, false, &b)
	r := word{text: string(b.b), glob: b.glob, split: b.split}
	if r.split || r.glob {
		r.src = j.text(w)
	}
	return r
}

func (b *wordBuf) unsure(quoted bool) {
	b.b = append(b.b, 0)
	if !quoted {
		b.split = true
	}
}

func (j *judge) parts(parts []syntax.WordPart, quoted bool, b *wordBuf) {
	for i, p := range parts {
		if !j.count() {
			b.unsure(false)
			return
		}
		switch p := p.(type) {
		case *syntax.Lit:
			j.literal(p.Value, quoted, i == 0 && len(b.b) == 0, i == len(parts)-1, b)
		case *syntax.SglQuoted:
			if p.Dollar {
				b.b = append(b.b, ansiC(p.Value)...)
			} else {
				b.b = append(b.b, p.Value...)
			}
		case *syntax.DblQuoted:
			j.parts(p.Parts, true, b)
		case *syntax.ParamExp:
			j.param(p, quoted, b)
		case *syntax.CmdSubst:
			j.substitution(p)
			b.unsure(quoted)
		case *syntax.ArithmExp:
			j.arithm(p.X)
			b.b = append(b.b, 1) // digits, perhaps after a minus sign
			if len(b.b) == 1 {
				b.b[0] = 0
			}
		case *syntax.ProcSubst:
			j.inside("process substitution", p.Stmts)
			b.b = append(b.b, "/dev/fd/\x01"...)
		case *syntax.ExtGlob:
			b.glob = true
			j.odd("a pattern that bash understands only after shopt -s extglob")
			b.unsure(true)
		default:
			b.unsure(false)
		}
	}
}

// literal adds text as written outside of single quotes.
func (j *judge) literal(s string, quoted, first, last bool, b *wordBuf) {
	if first && !quoted && s != "" && s[0] == '~' {
		s = j.tilde(s, last, b)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == '\n' {
				continue
			}
			if quoted && strings.IndexByte("$`\"\\", s[i]) < 0 {
				b.b = append(b.b, '\\')
			}
			b.b = append(b.b, s[i])
			continue
		case !quoted && (c == '*' || c == '?' || c == '['):
			b.glob = true
		}
		b.b = append(b.b, c)
	}
}

func (j *judge) tilde(s string, last bool, b *wordBuf) string {
	user, rest := s[1:], ""
	if i := strings.IndexByte(user, '/'); i >= 0 {
		user, rest = user[:i], user[i:]
	} else if !last {
		b.b = append(b.b, 0)
		return rest
	}
	switch {
	case user == "" && j.f.Home != "" && !j.loose["HOME"]:
		b.b = append(b.b, j.f.Home...)
	case user == "+" && len(j.cwds) == 1:
		b.b = append(b.b, j.cwds[0]...)
	default:
		b.b = append(b.b, "/\x00"...)
	}
	return rest
}

// param adds a parameter expansion.
func (j *judge) param(p *syntax.ParamExp, quoted bool, b *wordBuf) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	j.visitParam(p)
	if j.t.secretEnv.match(strings.ToLower(name)) && !j.assigned[name] {
		j.secret = "shows the variable " + name + ", which looks like a secret"
	}
	plainly := !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil && p.NestedParam == nil && p.Flags == nil
	switch {
	case p.Length && !p.Excl, plainly && (name == "#" || name == "?" || name == "$" || name == "!"):
		b.b = append(b.b, '\x01')
		return
	case !plainly:
		b.unsure(quoted && !(p.Index != nil && wholeArray(p.Index)))
		return
	case name == "@" || name == "*":
		b.unsure(false)
		return
	}
	v, ok := j.lookup(name)
	if !ok && j.numeric[name] && j.assigned[name] {
		b.b = append(b.b, '\x01')
		return
	}
	if !ok {
		b.unsure(quoted)
		return
	}
	if !quoted && strings.ContainsAny(v.text, " \t\n") {
		b.fields = true
	}
	if v.glob || !quoted && hasGlob(v.text) {
		b.glob = true
	}
	b.b = append(b.b, v.text...)
}

// lookup returns what a variable certainly holds.
func (j *judge) lookup(name string) (value, bool) {
	if j.loose["IFS"] || j.loose[name] {
		return value{}, false
	}
	if v, ok := j.vars.m[name]; ok {
		return v, true
	}
	if j.assigned[name] {
		return value{}, false
	}
	switch name {
	case "HOME":
		return value{text: j.f.Home}, j.f.Home != ""
	case "PWD":
		if len(j.cwds) == 1 {
			return value{text: j.cwds[0]}, true
		}
	}
	return value{}, false
}

// visitParam judges what an expansion does besides giving a value.
func (j *judge) visitParam(p *syntax.ParamExp) {
	if p.Excl {
		j.odd("${!...} reads a variable that another one names")
	}
	if p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Width {
		j.odd("an expansion of another shell")
	}
	if p.Index != nil && !wholeArray(p.Index) {
		j.arithm(p.Index)
	}
	if p.Slice != nil {
		j.arithm(p.Slice.Offset)
		j.arithm(p.Slice.Length)
	}
	if p.Repl != nil {
		j.visit(p.Repl.Orig)
		j.visit(p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		j.odd("${x:=...} sets a variable")
		if p.Param != nil {
			j.forget(p.Param.Value)
		}
	case syntax.OtherParamOps:
		j.odd("${x@...} can run what a variable holds")
	}
	j.visit(p.Exp.Word)
}

// wholeArray reports whether an index is @ or *.
func wholeArray(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// visit judges what runs inside of a word whose value doesn't matter.
func (j *judge) visit(w *syntax.Word) {
	if w != nil {
		j.visitParts(w.Parts)
	}
}

func (j *judge) visitParts(parts []syntax.WordPart) {
	for _, p := range parts {
		if b, ok := p.(*syntax.BraceExp); ok {
			for _, e := range b.Elems {
				j.visit(e)
			}
			continue
		}
		var b wordBuf
		j.parts([]syntax.WordPart{p}, false, &b)
	}
}

// arithm judges arithmetic. A name in it is evaluated again by the shell, and
// may so run a command, unless it certainly holds a number.
func (j *judge) arithm(x syntax.ArithmExpr) {
	if x == nil || !j.count() {
		return
	}
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
			j.arithmTarget(x.X)
		default:
			j.arithm(x.X)
		}
		j.arithm(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			j.arithmTarget(x.X)
			return
		}
		j.arithm(x.X)
	case *syntax.ParenArithm:
		j.arithm(x.X)
	case *syntax.Word:
		j.arithmWord(x)
	default:
		j.odd("arithmetic of another shell")
	}
}

// arithmTarget judges the left side of an assignment in arithmetic.
func (j *judge) arithmTarget(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if name := w.Lit(); syntax.ValidName(name) && !j.t.dangerousEnv.match(name) {
			j.forget(name)
			return
		}
	}
	j.odd("arithmetic that sets more than a plain variable")
	j.arithm(x)
}

func (j *judge) digits(name string) bool {
	v, ok := j.vars.m[name]
	return ok && digitsOnly(v.text)
}

func digitsOnly(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func (j *judge) arithmWord(w *syntax.Word) {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if s := p.Value; s != "" && !isNumber(s) && !j.numeric[s] && !j.digits(s) {
				j.odd("arithmetic on " + s + ", whose value would be evaluated")
			}
		case *syntax.ParamExp:
			j.visitParam(p)
			name := ""
			if p.Param != nil {
				name = p.Param.Value
			}
			if !p.Length && name != "#" && name != "?" && name != "$" && !j.numeric[name] && !j.digits(name) {
				j.odd("arithmetic on ${" + name + "}, whose value would be evaluated")
			}
		case *syntax.ArithmExp:
			j.arithm(p.X)
		case *syntax.CmdSubst:
			j.substitution(p)
			j.odd("arithmetic on what a command prints, which would be evaluated")
		default:
			j.visitParts([]syntax.WordPart{p})
			j.odd("arithmetic on text, which would be evaluated")
		}
	}
}

func isNumber(s string) bool {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '#' || c == '@' || c == '_') {
			return false
		}
	}
	return true
}

// ansiC undoes the escapes of $'...'.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); k >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[k])
			continue
		}
		base, most := 0, 0
		from := i + 1
		switch s[i] {
		case 'x':
			base, most = 16, 2
		case 'u':
			base, most = 16, 4
		case 'U':
			base, most = 16, 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			base, most, from = 8, 3, i
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
			continue
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
			continue
		}
		end := from
		for end < len(s) && end-from < most && digitIn(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[from:end], base, 32)
		switch {
		case err != nil:
			b.WriteString(s[i-1 : end])
		case n == 0:
			return b.String() // bash ends the string there
		case s[i] == 'u' || s[i] == 'U':
			b.WriteRune(rune(n))
		default:
			b.WriteByte(byte(n))
		}
		i = end - 1
	}
	return b.String()
}

func digitIn(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// maxPath is the length above which a directory isn't kept in mind.
const maxPath = 4096

// join gives the directory that dir leads to from each of the possible ones.
func (j *judge) join(dir word) []string {
	if dir.split || dir.glob || strings.ContainsAny(dir.text, "\x00\x01") || dir.text == "" {
		return nil
	}
	if dir.text[0] == '/' {
		return []string{path.Clean(dir.text)}
	}
	var out []string
	for _, c := range j.cwds {
		if len(c)+len(dir.text) > maxPath {
			return nil
		}
		out = append(out, path.Clean(c+"/"+dir.text))
	}
	return out
}

// wordText gives a word as written. Words made by expanding braces have
// parts that stand nowhere.
func (j *judge) wordText(w *syntax.Word) string {
	for _, p := range w.Parts {
		if _, ok := p.(*syntax.BraceExp); ok {
			return ""
		}
	}
	if len(w.Parts) == 0 {
		return ""
	}
	return j.text(w)
}

package policy

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// commandSpec says which commands a rule speaks of.
type commandSpec struct {
	text   string   // as written, escapes taken out: what a whole line must be to be named by it
	words  []string // an exact rule's words, or those that a prefix rule's commands begin with
	prefix bool     // Bash(git log:*), commandPrefix
	glob   string   // Bash(npm run *): over the words joined by blanks
	first  string   // the glob's first word; empty: not certain
	bare   string   // what a glob that ends in " *" matches too
	re     *regexp.Regexp
	or     []*commandSpec // any of these; the rest is then empty
}

// parseCommand reads the specifier of a rule for shell commands.
func parseCommand(spec string) (*commandSpec, error) {
	spec = strings.TrimSpace(spec)
	if head, ok := strings.CutSuffix(spec, ":*"); ok && !wildIn(head) {
		return prefixSpec(head)
	}
	if wildIn(spec) {
		c := &commandSpec{glob: spec, first: firstOf(spec)}
		if head, ok := strings.CutSuffix(spec, " *"); ok {
			c.bare = head
		}
		return c, nil
	}
	c := &commandSpec{text: unescaped(spec)}
	c.words, _ = ruleWords(spec) // what has no plain words is still a whole line
	return c, nil
}

// firstOf returns the first word of a pattern; empty if nobody can tell.
func firstOf(glob string) string {
	word, _, ok := strings.Cut(glob, " ")
	if !ok || strings.ContainsAny(word, `*\`) {
		return ""
	}
	return word
}

// prefixSpec returns the spec of all commands that begin with the words of head.
func prefixSpec(head string) (*commandSpec, error) {
	words, ok := ruleWords(head)
	if !ok || len(words) == 0 {
		return nil, errors.New("a prefix must be plain words: an unfinished quote, or nothing before :*")
	}
	return &commandSpec{words: words, prefix: true}, nil
}

// wildIn reports whether an unescaped * is in s.
func wildIn(s string) bool {
	for i := range len(s) {
		if s[i] == '*' && (i == 0 || s[i-1] != '\\') {
			return true
		}
	}
	return false
}

// unescaped takes out the backslashes before stars, which rules need and
// command lines don't.
func unescaped(s string) string { return strings.ReplaceAll(s, `\*`, "*") }

// escaped makes a rule's specifier of a command line: the reverse of unescaped.
func escaped(s string) string { return strings.ReplaceAll(s, "*", `\*`) }

// ruleWords splits a specifier into words as the shell would, without any
// expansion: quotes and backslashes are taken out. False: a quote isn't closed.
func ruleWords(s string) ([]string, bool) {
	var words []string
	var w strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != '\'':
			w.WriteByte(c)
		case c == quote:
			quote = 0
		case c == '\\' && i+1 < len(s):
			i++
			in = true
			w.WriteByte(s[i])
		case quote != 0:
			w.WriteByte(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, w.String())
				w.Reset()
				in = false
			}
		default:
			in = true
			w.WriteByte(c)
		}
	}
	if in {
		words = append(words, w.String())
	}
	return words, quote == 0
}

// match is how sure it is that a rule speaks of something.
type match uint8

const (
	matchNo match = iota
	matchMaybe
	matchYes
)

// line is a command as rules see it.
type line struct {
	part   *Part
	argv   []string // the command's name without the directory, if that is the system's
	joined string   // see text
	env    bool     // the line assigns variables, which the command may see
	whole  string   // the whole command line as written, without blanks around it; of a part of it: empty
	parts  bool     // of a whole line: its parts are asked about too

	name     string // the command's as rules are found by it; empty: there is none
	anything bool   // nobody can tell which command it is

	stable, stableRead string   // the input with it in the command's place: see input.stableOf
	denied             []string // argv as a denial sees it, once one asked
	deniedJoined       string
}

// deny makes what restricting rules compare.
func (l *line) deny() {
	if l.denied == nil {
		l.denied = deniedArgv(l.part.Argv, l.name)
		l.deniedJoined = strings.Join(l.denied, " ")
	}
}

func newLine(p *Part) line {
	l := line{part: p, anything: p.couldBeAny()}
	if len(p.Argv) == 0 {
		return l
	}
	l.name = firstKey(p.Argv[0])
	l.argv = plainArgv(p.Argv)
	return l
}

// text returns the command's words with blanks between them.
func (l *line) text() string {
	if l.joined == "" {
		l.joined = strings.Join(l.argv, " ")
	}
	return l.joined
}

// plainArgv takes out of a command what doesn't change which command it is: the
// directory of a program of the system.
func plainArgv(argv []string) []string {
	out := argv
	if i := strings.LastIndexByte(argv[0], '/'); i >= 0 && slices.Contains(trustedDirs[:], argv[0][:max(i, 1)]) {
		out = append([]string{argv[0][i+1:]}, argv[1:]...)
	}
	return out
}

// gitValued are git's options before a subcommand that take the next word.
var gitValued = [...]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--exec-path"}

// deniedArgv is argv as a denial sees it: whatever directory the program is in
// and however its name is folded, and without git's options before the
// subcommand.
func deniedArgv(argv []string, name string) []string {
	if name == argv[0] && name != "git" {
		return argv
	}
	out := slices.Clone(argv)
	out[0] = name
	if name != "git" {
		return out
	}
	i := 1
	for i < len(out) && strings.HasPrefix(out[i], "-") {
		if slices.Contains(gitValued[:], out[i]) && i+1 < len(out) {
			i++
		}
		i++
	}
	return append(out[:1], out[i:]...)
}

// denies reports whether the spec, of a rule that restricts, speaks of a
// command. It sees through directories, letter case and git's options, and
// matchMaybe says that a word which isn't certain could make it so.
func (c *commandSpec) denies(l *line) match {
	found := matchNo
	for _, one := range c.or {
		found = max(found, one.denies(l))
	}
	if c.or != nil {
		return found
	}
	p := l.part
	if c.words == nil && c.text != "" || c.re != nil {
		return c.wholeLine(l)
	}
	if p != nil && len(p.Argv) == 0 && l.anything {
		return max(c.wholeLine(l), matchMaybe)
	}
	if p == nil || len(p.Argv) == 0 {
		return c.wholeLine(l)
	}
	l.deny()
	if c.glob != "" {
		return c.deniesGlob(l)
	}
	if c.covers(l.denied, false) {
		return matchYes
	}
	if l.anything || !p.Exact && c.could(l.denied) {
		return matchMaybe
	}
	return c.wholeLine(l)
}

func (c *commandSpec) deniesGlob(l *line) match {
	switch {
	case glob(c.glob, l.deniedJoined), c.bare != "" && glob(c.bare, l.deniedJoined), glob(c.glob, l.part.Text):
		return matchYes
	case l.anything:
		return matchMaybe
	}
	return c.wholeLine(l)
}

// wholeLine matches what speaks of the text itself.
func (c *commandSpec) wholeLine(l *line) match {
	yes := false
	switch {
	case c.re != nil:
		yes = l.part != nil && (c.re.MatchString(l.text()) || c.re.MatchString(l.part.Text)) || l.whole != "" && c.re.MatchString(l.whole)
	case c.glob != "":
		yes = l.whole != "" && glob(c.glob, l.whole)
	case c.text != "":
		yes = l.whole == c.text
	}
	if yes {
		return matchYes
	}
	return matchNo
}

// covers compares words: all of them, or the first ones of a prefix.
func (c *commandSpec) covers(argv []string, exactly bool) bool {
	if len(argv) < len(c.words) || len(argv) > len(c.words) && (!c.prefix || exactly) {
		return false
	}
	for i, w := range c.words {
		if argv[i] != w {
			return false
		}
	}
	return len(c.words) > 0
}

// firsts returns the first words of the commands that the spec, of a rule that
// allows or restricts, speaks of; nil if they can be any. A pattern that
// restricts is held against the text as it is written, too.
func (c *commandSpec) firsts(allows bool) []string {
	switch {
	case len(c.words) > 0:
		return c.words[:1]
	case allows && c.first != "":
		return []string{c.first}
	}
	var out []string
	for _, one := range c.or {
		out = append(out, one.words[0])
	}
	return out
}

// could reports whether words that aren't certain could make argv one that is
// covered.
func (c *commandSpec) could(argv []string) bool {
	for i, w := range c.words {
		switch {
		case i >= len(argv):
			return false
		case uncertain(argv[i]):
			return true // it may become any number of words
		case argv[i] != w:
			return false
		}
	}
	return c.prefix || len(argv) == len(c.words)
}

// runsLater reports whether a part that is no command sets what later ones may
// run: a variable that names programs, or one nobody can tell the name of.
func (p *Part) runsLater() bool {
	if len(p.Env) == 0 {
		return strings.Contains(p.Text, "=") || strings.Contains(p.Text, "@")
	}
	return slices.ContainsFunc(p.Env, func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "PATH", "BASH_ENV", "ENV", "PS0", "PS1", "PS2", "PS4", "IFS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "SHELL", "RUBYOPT", "RUBYLIB", "SHELLOPTS", "BASHOPTS", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS":
			return true
		}
		for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "PYTHON", "PERL5", "BASH_FUNC_"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return strings.HasSuffix(name, "COMMAND") || strings.Contains(value, "$(") || strings.Contains(value, "`")
	})
}

// couldBeAny reports whether nobody can tell which command runs: its name, or
// the text that it hands to a shell, isn't certain.
func (p *Part) couldBeAny() bool {
	if len(p.Argv) == 0 {
		return p.Kind == KindUnknown && p.runsLater()
	}
	name := baseName(p.Argv[0])
	if p.runsText(name) {
		return true
	}
	if p.Odd && name == "git" {
		return true // its options or the repository's settings name programs
	}
	if p.Exact {
		return false
	}
	if strings.Contains(p.Text, "@P") || strings.Contains(p.Text, "((") {
		return true // what a variable holds is run
	}
	return uncertain(p.Argv[0]) || name == "eval" || name == "trap" || loaded().shells[name]
}

// runsText reports whether a part runs a text that it doesn't name and that no
// other part shows: what is on its input, what it keeps for a later name, or
// what its options say.
func (p *Part) runsText(name string) bool {
	args := p.Argv[1:]
	has := func(letter string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return len(a) > 1 && a[0] == '-' && strings.Contains(a, letter) })
	}
	switch name {
	case "source", ".":
		return !p.Exact || len(args) == 0 || strings.HasPrefix(args[0], "/dev/") || strings.HasPrefix(args[0], "/proc/")
	case "alias", "enable", "bind":
		return len(args) > 0
	case "hash":
		return has("p")
	case "mapfile", "readarray", "complete", "compgen":
		return has("C")
	case "jobs":
		return has("x")
	}
	if p.Wrapper {
		return false
	}
	t := loaded()
	return t.shells[name] && takesScript(args) || t.wrappers[name] != nil && len(args) > 0 && p.Kind >= KindUnknown
}

// uncertain reports whether a word, as shown, may stand for something else.
func uncertain(w string) bool { return strings.ContainsAny(w, "$`*?[{<>~") }

// allows reports whether the spec, of a rule that allows, speaks of a command.
// Nothing is guessed: every word must be certain, and a command whose options
// turn it into something else must be named exactly.
func (c *commandSpec) allows(l *line) bool {
	if slices.ContainsFunc(c.or, func(one *commandSpec) bool { return one.allows(l) }) {
		return true
	}
	p := l.part
	switch {
	case p == nil || len(p.Argv) == 0 || !p.Exact || l.env:
		return false
	case c.re != nil:
		return !p.Odd && c.re.MatchString(l.text())
	case c.glob != "":
		return !p.Odd && (c.first == "" || c.first == l.argv[0]) && (glob(c.glob, l.text()) || c.bare != "" && glob(c.bare, l.text()))
	}
	return c.covers(l.argv, p.Odd)
}

// names reports whether the spec names what makes a command destructive: an
// exact rule does, and a prefix whose own words destroy. A wildcard doesn't.
func (c *commandSpec) names(l *line, f *Facts) bool {
	for _, one := range c.or {
		if one.allows(l) && one.names(l, f) {
			return true
		}
	}
	switch {
	case c.or != nil:
		return false
	case c.re != nil || c.glob != "":
		return false
	case !c.prefix:
		return true
	}
	return JudgeShell(quoted(c.words), f).Kind == KindDestructive
}

// quoted writes words as a shell command.
func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quoteWord(w))
	}
	return b.String()
}

// quoteWord quotes a word for the shell where it needs it.
func quoteWord(w string) string {
	plain := w != ""
	for i := range len(w) {
		if c := w[i]; plainByte[c] != 1 && c != '=' && c != '@' {
			plain = false
			break
		}
	}
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// loose reports whether the spec speaks of commands whose arguments it doesn't
// name.
func (c *commandSpec) loose() bool { return c.prefix || c.glob != "" || c.re != nil || c.or != nil }

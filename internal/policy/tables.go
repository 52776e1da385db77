package policy

import (
	"strings"
	"sync"
)

// tables are the shipped data in the form in which they are looked up. They
// are made once, when the first command or path is judged, and never change.
// What people edit is data/*.json; tables_data.go is the same as Go values,
// which cost nothing to decode.
type tables struct {
	readOnly, writers map[string]*command
	wrappers          map[string]*command
	destructive       map[string][]*ruin

	protected      map[string][]protectedPath // by the first name of their path
	protectedFirst byteSet                    // first bytes of its keys
	secretDirs     nameSet
	secretFiles    nameSet
	notSecret      nameSet
	secretEnv      nameSet
	devices        map[string]bool

	harmlessEnv, dangerousEnv                                          nameSet
	keepsState, shells, sameDialect, interpreters, network, fetch, sql map[string]bool
	deep                                                               map[string]bool // names whose first operand is part of the name
}

type protectedPath struct{ path, why string }

// command is one line of a table of commands: which options it may be given
// and what its operands are.
type command struct {
	name     string
	spec     string    // of the options
	once     sync.Once // reads spec into flags and numbers: most commands are never met
	flags    map[string]flag
	numbers  bool // takes -5
	operands operandKind
	max      int  // operands; 0: any number
	ordered  bool // takes no options behind an operand
	inject   bool
	noRead   bool // pattern operands are not followed by files whose content is shown
	check    string
	style    string // "": getopt; "word": -word is one option; "raw": no options
	needs    []string
	require  []string
	not      map[string]bool

	// wrappers
	skip                                              int
	assign, free, shell, stdin, network, list, opsRun bool
	why, bare                                         string
}

// flag says what an option takes.
type flag struct {
	arg     byte // 0: nothing; ':': a word; '?': an attached word
	role    byte // of the word: 't' text, 'r' read, 'w' written, '@' directory, '$' script, '=' replaced text
	pattern bool // the word takes the place of the pattern operand
}

type operandKind byte

const (
	operandsText    operandKind = iota
	operandsNone                // none allowed
	operandsRead                // files whose content is shown
	operandsName                // files looked at without showing their content
	operandsFree                // neither files nor anything else that matters
	operandsPattern             // a text, then files
	operandsRev                 // git's revisions and paths
	operandsWrite               // files written
	operandsCopy                // files read, the last one written
	operandsMove                // files written, all of them
	operandsMode                // a text, then files written
	operandsEdit                // a script, then files written
)

var operandKinds = map[string]operandKind{
	"": operandsText, "text": operandsText, "none": operandsNone, "read": operandsRead, "name": operandsName, "free": operandsFree,
	"pattern": operandsPattern, "rev": operandsRev, "write": operandsWrite, "copy": operandsCopy, "move": operandsMove, "mode": operandsMode, "edit": operandsEdit,
}

// ruin is one line of the table of destructive commands.
type ruin struct {
	flags, unless, words []string
	only                 map[string]bool
	prefix               []string
	wordPrefix           string
	last                 bool
	operand              string
	why                  string
}

// loaded returns the shipped tables.
var loaded = sync.OnceValue(loadTables)

// rawCommand is one line of readonly.json, writers.json or wrappers.json.
type rawCommand struct {
	Name                                                string `json:"-"` // its key
	F, O, Like, Also, Check, Style, Needs, Require, Not string
	Ordered, Inject, NoRead, Assign, Free, Shell        bool
	Stdin, Network, List, Ops                           bool
	Max, Skip                                           int
	Why, Bare                                           string
}

// rawRuin is one line of destructive.json.
type rawRuin struct {
	Cmd, Flags, Unless, Words, Only, Prefix, WordPrefix, Operand, Why string
	Last                                                              bool
}

// rawPaths is paths.json.
type rawPaths struct {
	Protected                                              []protectedPath
	SecretDirs, SecretFiles, NotSecret, SecretEnv, Devices []string
}

// rawShell is shell.json.
type rawShell struct {
	HarmlessEnv, DangerousEnv, KeepsState, Shells, SameDialect, Interpreters, Fetchers, SQL, Network []string
}

func loadTables() *tables {
	t := &tables{deep: map[string]bool{}}
	t.readOnly = loadCommands(shippedReadOnly, t)
	t.writers = loadCommands(shippedWriters, t)
	t.wrappers = loadCommands(shippedWrappers, t)
	t.loadPaths(&shippedPaths)
	t.loadShell(&shippedShell)
	t.loadDestructive(shippedDestructive)
	return t
}

func loadCommands(raw []rawCommand, t *tables) map[string]*command {
	sets := map[string]string{}
	for i := range raw {
		if raw[i].Name[0] == '@' {
			sets[raw[i].Name] = raw[i].F
		}
	}
	all := make([]command, len(raw))
	out := make(map[string]*command, 2*len(raw))
	for i := range raw {
		r, c := &raw[i], &all[i]
		if r.Name[0] == '@' && !r.asks() {
			continue
		}
		c.name, c.spec, c.operands = r.Name, r.F, operandKinds[r.O]
		for _, set := range [...]string{"@log", "@diff"} {
			if strings.Contains(c.spec, set) {
				c.spec = strings.Replace(c.spec, set, sets[set], 1)
			}
		}
		c.max, c.ordered, c.inject, c.noRead, c.check, c.style = r.Max, r.Ordered, r.Inject, r.NoRead, r.Check, r.Style
		c.needs, c.require, c.not = strings.Fields(r.Needs), strings.Fields(r.Require), setOf(strings.Fields(r.Not))
		c.skip, c.assign, c.free, c.shell, c.stdin = r.Skip, r.Assign, r.Free, r.Shell, r.Stdin
		c.network, c.list, c.opsRun, c.why, c.bare = r.Network, r.List, r.Ops, r.Why, r.Bare
		r.names(func(n string) {
			out[n] = c
			t.noteDeep(n)
		})
	}
	return out
}

// asks reports whether the line is of programs that take an option for a
// question: @version those that take --version, @help --help, @-V -V.
func (r *rawCommand) asks() bool {
	return r.Name == "@version" || r.Name == "@help" || strings.HasPrefix(r.Name, "@-")
}

// names calls yield with each name that the line is for.
func (r *rawCommand) names(yield func(string)) {
	prefix := ""
	if r.asks() {
		prefix = r.Name + " "
	}
	yield(prefix + r.Name)
	for n := range strings.FieldsSeq(r.Like) {
		yield(prefix + n)
	}
	if r.Also != "" && strings.Contains(r.Name, " ") {
		yield(prefix + r.Also)
		return
	}
	for n := range strings.FieldsSeq(r.Also) {
		yield(prefix + n)
	}
}

// read reads the options, once. It may be called concurrently.
func (c *command) read() *command {
	c.once.Do(func() { c.flags, c.numbers = parseFlags(c.spec) })
	return c
}

func (t *tables) noteDeep(n string) {
	for i := range len(n) {
		if n[i] == ' ' {
			t.deep[n[:i]] = true
		}
	}
}

// parseFlags reads the options of a line: -x takes nothing, -x: a word, -x?
// an attached word; < > @ $ = are words that are a file read, a file written,
// a directory, a script, a placeholder; ! takes the place of the pattern.
func parseFlags(spec string) (map[string]flag, bool) {
	out := map[string]flag{}
	numbers := false
	for _, w := range strings.Fields(spec) {
		if w == "-#" {
			numbers = true
			continue
		}
		var f flag
		for len(w) > 2 {
			c := w[len(w)-1]
			if strings.IndexByte(":?<>@$=!", c) < 0 {
				break
			}
			w = w[:len(w)-1]
			switch c {
			case '!':
				f.pattern = true
			case '?':
				f.arg = '?'
			case ':':
				f.arg, f.role = ':', 't'
			case '<':
				f.arg, f.role = ':', 'r'
			case '>':
				f.arg, f.role = ':', 'w'
			default:
				f.arg, f.role = ':', c
			}
		}
		if f.pattern && f.arg == 0 {
			f.arg, f.role = ':', 't'
			if strings.HasPrefix(w, "--files") {
				f.arg = 0
			}
		}
		if old, ok := out[w]; ok && old.arg != f.arg && old.arg == ':' {
			continue
		}
		out[w] = f
	}
	return out, numbers
}

func (t *tables) loadPaths(raw *rawPaths) {
	t.protected = make(map[string][]protectedPath, len(raw.Protected))
	for _, p := range raw.Protected {
		first, _, _ := strings.Cut(p.path, "/")
		t.protected[first] = append(t.protected[first], p)
		t.protectedFirst.add(first[0])
	}
	t.secretDirs, t.secretFiles = newNameSet(raw.SecretDirs), newNameSet(raw.SecretFiles)
	t.notSecret, t.secretEnv = newNameSet(raw.NotSecret), newNameSet(raw.SecretEnv)
	t.devices = setOf(raw.Devices)
}

func (t *tables) loadShell(raw *rawShell) {
	t.harmlessEnv, t.dangerousEnv = newNameSet(raw.HarmlessEnv), newNameSet(raw.DangerousEnv)
	t.keepsState, t.shells, t.sameDialect = setOf(raw.KeepsState), setOf(raw.Shells), setOf(raw.SameDialect)
	t.interpreters, t.fetch, t.sql = setOf(raw.Interpreters), setOf(raw.Fetchers), setOf(raw.SQL)
	t.network = setOf(raw.Network)
	for _, n := range raw.Network {
		t.noteDeep(n)
	}
}

func (t *tables) loadDestructive(raw []rawRuin) {
	t.destructive = make(map[string][]*ruin, len(raw))
	all := make([]ruin, len(raw))
	for i := range raw {
		r := &raw[i]
		all[i] = ruin{
			flags: strings.Fields(r.Flags), unless: strings.Fields(r.Unless), words: strings.Fields(r.Words), only: setOf(strings.Fields(r.Only)),
			prefix: strings.Fields(r.Prefix), wordPrefix: r.WordPrefix, last: r.Last, operand: r.Operand, why: r.Why,
		}
		t.destructive[r.Cmd] = append(t.destructive[r.Cmd], &all[i])
		t.noteDeep(r.Cmd)
	}
}

func setOf(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}

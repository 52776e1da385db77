package policy

import (
	"embed"
	"encoding/json"
	"strings"
	"sync"
)

//go:embed data/*.json
var dataFiles embed.FS

// tables are the shipped data in the form in which they are looked up. They
// are read once, when the first command or path is judged, and never change.
type tables struct {
	readOnly, writers map[string]*command
	wrappers          map[string]*command
	versionProbe      map[string]bool
	destructive       map[string][]*ruin

	protected   map[string][]protectedPath // by the first name of their path
	secretDirs  nameSet
	secretFiles nameSet
	notSecret   nameSet
	secretEnv   nameSet
	devices     map[string]bool

	harmlessEnv, dangerousEnv                                          nameSet
	keepsState, shells, sameDialect, interpreters, network, fetch, sql map[string]bool
	deep                                                               map[string]bool // names whose first operand is part of the name
}

type protectedPath struct{ path, why string }

// command is one line of a table of commands: which options it may be given
// and what its operands are.
type command struct {
	name     string
	flags    map[string]flag
	numbers  bool // takes -5
	operands operandKind
	max      int // operands; 0: any number
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

type rawCommand struct {
	F, O, Like, Also, Check, Style, Needs, Require, Not string
	Inject, NoRead, Assign, Free, Shell                 bool
	Stdin, Network, List, Ops                           bool
	Max, Skip                                           int
	Why, Bare                                           string
}

func loadTables() *tables {
	t := &tables{deep: map[string]bool{}}
	t.readOnly = loadCommands("data/readonly.json", t)
	t.writers = loadCommands("data/writers.json", t)
	t.wrappers = loadCommands("data/wrappers.json", t)
	t.versionProbe = map[string]bool{}
	t.loadPaths()
	t.loadShell()
	t.loadDestructive()
	return t
}

// mustRead decodes a shipped file. A mistake in one is a fault of the build,
// which every test finds.
func mustRead(name string, into any) {
	b, err := dataFiles.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		panic("policy data " + name + ": " + err.Error())
	}
}

func loadCommands(name string, t *tables) map[string]*command {
	var raw map[string]rawCommand
	mustRead(name, &raw)
	out := make(map[string]*command, 2*len(raw))
	for name, r := range raw {
		if name[0] == '@' && name != "@version" {
			continue
		}
		spec := r.F
		for _, set := range [...]string{"@log", "@diff"} {
			if strings.Contains(spec, set) {
				spec = strings.Replace(spec, set, raw[set].F, 1)
			}
		}
		c := &command{
			name: name, operands: operandKinds[r.O], max: r.Max, inject: r.Inject, noRead: r.NoRead, check: r.Check, style: r.Style,
			needs: strings.Fields(r.Needs), require: strings.Fields(r.Require), not: setOf(strings.Fields(r.Not)),
			skip: r.Skip, assign: r.Assign, free: r.Free, shell: r.Shell, stdin: r.Stdin, network: r.Network, list: r.List, opsRun: r.Ops, why: r.Why, bare: r.Bare,
		}
		c.flags, c.numbers = parseFlags(spec)
		names := []string{name}
		names = append(names, strings.Fields(r.Like)...)
		if r.Also != "" && strings.Contains(name, " ") {
			names = append(names, r.Also)
		} else {
			names = append(names, strings.Fields(r.Also)...)
		}
		for _, n := range names {
			if name == "@version" {
				n = "@version " + n
			}
			out[n] = c
			t.noteDeep(n)
		}
	}
	return out
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

func (t *tables) loadPaths() {
	var raw struct {
		Protected                                              map[string]string
		SecretDirs, SecretFiles, NotSecret, SecretEnv, Devices []string
	}
	mustRead("data/paths.json", &raw)
	t.protected = map[string][]protectedPath{}
	for p, why := range raw.Protected {
		first, _, _ := strings.Cut(p, "/")
		t.protected[first] = append(t.protected[first], protectedPath{p, why})
	}
	t.secretDirs, t.secretFiles = newNameSet(raw.SecretDirs), newNameSet(raw.SecretFiles)
	t.notSecret, t.secretEnv = newNameSet(raw.NotSecret), newNameSet(raw.SecretEnv)
	t.devices = setOf(raw.Devices)
}

func (t *tables) loadShell() {
	var raw struct {
		HarmlessEnv, DangerousEnv, KeepsState, Shells, SameDialect, Interpreters, Fetchers, SQL []string
		Network                                                                                 map[string]string
	}
	mustRead("data/shell.json", &raw)
	t.harmlessEnv, t.dangerousEnv = newNameSet(raw.HarmlessEnv), newNameSet(raw.DangerousEnv)
	t.keepsState, t.shells, t.sameDialect = setOf(raw.KeepsState), setOf(raw.Shells), setOf(raw.SameDialect)
	t.interpreters, t.fetch, t.sql = setOf(raw.Interpreters), setOf(raw.Fetchers), setOf(raw.SQL)
	t.network = make(map[string]bool, len(raw.Network))
	for n := range raw.Network {
		t.network[n] = true
		t.noteDeep(n)
	}
}

func (t *tables) loadDestructive() {
	var raw []struct {
		Cmd, Flags, Unless, Words, Only, Prefix, WordPrefix, Operand, Why string
		Last                                                              bool
	}
	mustRead("data/destructive.json", &raw)
	t.destructive = make(map[string][]*ruin, len(raw))
	for _, r := range raw {
		t.destructive[r.Cmd] = append(t.destructive[r.Cmd], &ruin{
			flags: strings.Fields(r.Flags), unless: strings.Fields(r.Unless), words: strings.Fields(r.Words), only: setOf(strings.Fields(r.Only)),
			prefix: strings.Fields(r.Prefix), wordPrefix: r.WordPrefix, last: r.Last, operand: r.Operand, why: r.Why,
		})
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

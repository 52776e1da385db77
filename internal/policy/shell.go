package policy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Kind says what a part of a command line does, from harmless to dangerous;
// a greater Kind is never less severe.
type Kind uint8

// Kinds.
const (
	KindReadOnly    Kind = iota // changes nothing, and reads only what is free to be read
	KindRead                    // changes nothing, but reads a secret, or outside of the roots, or nobody can tell what
	KindWrite                   // changes the files it names and nothing else
	KindUnknown                 // in no table, or not understood
	KindNetwork                 // talks to the network
	KindDestructive             // may destroy what can't be had back: asks even in yolo unless a rule names it
)

var kindNames = [...]string{"read-only", "read", "write", "unknown", "network", "destructive"}

// String returns the name that explanations show.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Part is one thing that a command line does: a simple command, a
// redirection to or from a file, assignments, or a construct that only bash
// itself understands. Rules about commands are matched against Argv, and only
// where Exact says that all of it is certain may an allow rule be satisfied
// by more than the whole line as written.
//
// Odd says that the command is one that the tables know as reading or as
// writing only what it names, but these arguments turn it into something else
// or aren't known, so that a rule that names only the command doesn't cover
// it.
type Part struct {
	Text    string   `json:"text"`              // as written
	Argv    []string `json:"argv,omitempty"`    // after expansion; words that aren't certain are as written; nil for what is no command
	Exact   bool     `json:"exact"`             // every word of Argv is certain
	Kind    Kind     `json:"kind"`              //
	Reason  string   `json:"reason,omitempty"`  // why it is of that kind
	Via     string   `json:"via,omitempty"`     // through what it runs, outermost first: "timeout", "xargs", "bash -c", "substitution"; empty: directly
	Odd     bool     `json:"odd,omitempty"`     // its arguments make more of it than its name says
	Wrapper bool     `json:"wrapper,omitempty"` // only starts the part after it, which is judged by itself
	Env     []string `json:"env,omitempty"`     // NAME=value pairs of a part that assigns
	Cwd     string   `json:"cwd,omitempty"`     // where it runs; empty: not certain
	Files   []File   `json:"files,omitempty"`   // read and written, as far as known
	Hosts   []string `json:"hosts,omitempty"`   // named in it, by their canonical names
}

// File is one file that a part reads or writes. Nothing is certain of one
// whose Abs is empty.
type File struct {
	Path      string `json:"path"` // as given
	Abs       string `json:"abs,omitempty"`
	Write     bool   `json:"write,omitempty"`
	Inside    bool   `json:"inside"`
	Protected string `json:"protected,omitempty"`
	Secret    string `json:"secret,omitempty"`

	names bool // only its name and dates are looked at
}

// Protected returns why a file written by the part is protected; empty if
// none is.
func (p *Part) Protected() string {
	for i := range p.Files {
		if p.Files[i].Write && p.Files[i].Protected != "" {
			return p.Files[i].Protected
		}
	}
	return ""
}

// Verdict is what a whole command line does.
type Verdict struct {
	Parts      []Part `json:"parts"`
	Kind       Kind   `json:"kind"`             // the most severe of the parts
	Reason     string `json:"reason,omitempty"` // of the most severe part
	Error      string `json:"error,omitempty"`  // why it couldn't be understood: such a line is never allowed without being asked for
	OverBudget bool   `json:"overBudget,omitempty"`
}

// Limits of what is looked at. Above them the verdict is OverBudget, which
// means deny.
const (
	maxNodes  = 1_000_000
	maxBytes  = 4 << 20
	maxNested = 20_000 // brackets and words that open something
	maxDepth  = 40     // wrappers and scripts inside of each other
)

// JudgeShell judges a command line as `bash --noprofile --norc -c` would run
// it. It never fails: what can't be understood is said so in the Verdict. It
// may be called concurrently.
func JudgeShell(src string, f *Facts) Verdict {
	j := &judge{f: f, t: loaded(), src: src, budget: new(budget)}
	if f.Cwd != "" {
		j.cwds = []string{f.Cwd}
	}
	v := j.run(src)
	v.Parts = j.found
	for i := range v.Parts {
		if p := &v.Parts[i]; p.Kind > v.Kind || i == 0 {
			v.Kind, v.Reason = p.Kind, p.Reason
		}
	}
	if v.Error != "" || v.OverBudget {
		v.Kind = max(v.Kind, KindUnknown)
		v.Reason = v.Error
	}
	return v
}

// move is a change of the directory that holds if it succeeded.
type move struct{ to []string }

type budget struct {
	nodes int
	over  bool
}

// judge walks one script. Scripts inside of it (bash -c) get judges of their
// own with the same budget.
type judge struct {
	f      *Facts
	t      *tables
	src    string
	budget *budget

	found []Part
	kept  partSet // those of found that are settled
	open  int     // commands and pipelines that are still being judged
	via   string
	depth int
	loops int

	cwds       []string // the directories that it may be in; none: not known
	callMark   int      // where the parts of the current command and of what is inside of it begin
	anyCd      bool     // the script changes the directory somewhere
	lastDir    string   // whose lastInside is known
	lastInside bool
	moved      *move // of a cd that is the last command
	vars       variables
	stamps     int
	assigned   map[string]bool // names set anywhere so far
	loose      map[string]bool // names that are never certain
	numeric    map[string]bool // names that only ever hold numbers
	funcs      map[string]*syntax.FuncDecl
	cds        map[syntax.Node]bool // loops and functions that change the directory
	stdin      *word                // what the current command reads, if it is written out
	inputs     descriptors          // opened to read files, by the current command or around it
	called     bool                 // inside of a function, whose callers may open others
	secret     string               // why the current command shows a secret
	strange    string               // why the current command isn't understood
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// run parses and walks a script and leaves its parts in j.
func (j *judge) run(src string) (v Verdict) {
	if why := unreadable(src); why != "" {
		j.add(Part{Text: src, Kind: KindUnknown, Reason: why})
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r", " "), "\x00", "")
	}
	if len(src) > fastFrom && len(src) <= maxBytes && j.fast(src) {
		return j.verdict()
	}
	if tooMuch(src) {
		j.budget.over = true
		return Verdict{OverBudget: true, Error: "the command is too large to be judged: run it in smaller pieces"}
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	file, err := p.Parse(strings.NewReader(src), "")
	joined := false
	for range maxReveals {
		ends := joinedComments(src, file, err)
		if len(ends) == 0 {
			break
		}
		joined = true
		src = without(src, ends)
		file, err = p.Parse(strings.NewReader(src), "")
	}
	j.src = src
	if joined {
		defer func() { v = misread(v) }()
	}
	if err != nil {
		j.broken(p, src)
		return Verdict{Error: "not understood as a bash command: " + err.Error()}
	}
	if strings.ContainsRune(src, '=') || strings.Contains(src, "for ") || strings.Contains(src, "read") || strings.Contains(src, "((") || strings.Contains(src, "cd") || strings.Contains(src, "pushd") {
		j.look(file)
	}
	j.stmts(file.Stmts)
	return j.verdict()
}

// broken judges the statements that come before a syntax error: bash runs
// those line by line before it sees the error.
func (j *judge) broken(p *syntax.Parser, src string) {
	for s, err := range p.StmtsSeq(strings.NewReader(src)) {
		if err == nil {
			j.stmt(s) // the sequence ends by itself after an error
		}
	}
	j.add(Part{Text: src, Kind: KindUnknown, Reason: "not understood as a bash command"})
}

func (j *judge) verdict() Verdict {
	j.settle()
	if j.budget.over {
		return Verdict{OverBudget: true, Error: "the command is too large to be judged: run it in smaller pieces"}
	}
	return Verdict{}
}

// unreadable says why a person couldn't see what a command is, or why the
// parser and the shell could see different ones.
func unreadable(src string) string {
	ascii := true
	for i := range len(src) {
		c := src[i]
		if uint8(c-0x20) < 0x5f { // nearly all are
			continue
		}
		if c >= 0x80 {
			ascii = false
		} else if c != '\n' && c != '\t' {
			return fmt.Sprintf("holds the control character %#02x", c)
		}
	}
	if ascii {
		return ""
	}
	if !utf8.ValidString(src) {
		return "holds bytes that are no text"
	}
	for _, r := range src {
		switch {
		case r == 0x200d || r == 0xfe0f: // joins emoji, and hides nothing
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp), r != ' ' && unicode.Is(unicode.Zs, r), r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0, unicode.Is(unicode.Variation_Selector, r):
			return fmt.Sprintf("holds the invisible or misleading character U+%04X", r)
		}
	}
	return ""
}

// tooMuch reports whether a text could cost more than it may, before it is
// parsed: the parser recurses.
func tooMuch(src string) bool {
	if len(src) > maxBytes {
		return true
	}
	if len(src) < maxNested {
		return false
	}
	n := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '`':
			n++
		}
	}
	if n > maxNested {
		return true
	}
	for _, w := range [...]string{"if", "time", "while", "until", "case", "for", "coproc", "select", "function"} {
		n += strings.Count(src, w+" ") + strings.Count(src, w+"\n") + strings.Count(src, w+"\t")
	}
	if strings.Contains(src, "((") || strings.Contains(src, "$[") || strings.Contains(src, "[[") || strings.Contains(src, "let") {
		n += bytes.Count([]byte(src), []byte("=")) + strings.Count(src, "!") + strings.Count(src, "~") + strings.Count(src, "-") + strings.Count(src, "?") + strings.Count(src, "*") + strings.Count(src, "+")
	}
	return n > maxNested
}

func (j *judge) count() bool {
	j.budget.nodes++
	if j.budget.nodes > maxNodes {
		j.budget.over = true
	}
	return !j.budget.over
}

func (j *judge) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(j.src) {
		return ""
	}
	return j.src[from:to]
}

// add keeps a part.
func (j *judge) add(p Part) {
	if p.Via == "" {
		p.Via = j.via
	}
	if p.Cwd == "" && len(j.cwds) == 1 {
		p.Cwd = j.cwds[0]
	}
	j.found = append(j.found, p)
}

// settle drops parts that are there more than once. It waits until no command
// and no pipeline is half judged: those still look at the parts inside of
// them, and change them.
func (j *judge) settle() {
	if j.open == 0 {
		j.found = j.kept.settle(j.found)
	}
}

// odd notes that the current command uses something whose effect isn't
// understood.
func (j *judge) odd(why string) {
	if j.strange == "" {
		j.strange = why
	}
}

func (j *judge) forget(name string) {
	if _, ok := j.vars.m[name]; ok {
		delete(j.own(), name)
	}
	if j.assigned == nil {
		j.assigned = map[string]bool{}
	}
	j.assigned[name] = true
}

func (j *judge) set(name string, v value) {
	j.forget(name)
	if len(j.vars.m) < maxVars {
		j.own()[name] = v
	}
}

// nested judges a script that is given as text, such as that of bash -c.
func (j *judge) nested(script, via string) {
	if j.depth >= maxDepth || !j.count() {
		j.add(Part{Text: script, Kind: KindUnknown, Via: j.path(via), Reason: "too many scripts inside of each other"})
		return
	}
	sub := &judge{f: j.f, t: j.t, budget: j.budget, via: j.path(via), depth: j.depth + 1, cwds: j.cwds, inputs: j.inputs, called: j.called}
	if j.called && mayOpen(j.src, 0) {
		sub.inputs |= 1 << otherDescriptors
	}
	v := sub.run(script)
	j.merge(sub)
	if v.Error != "" {
		j.add(Part{Text: script, Kind: KindUnknown, Via: j.path(via), Reason: v.Error})
	}
}

func (j *judge) merge(sub *judge) {
	for _, p := range sub.found {
		j.add(p)
	}
}

// maxVia is the length from which on the middle of a Via is left out.
const maxVia = 2000

func (j *judge) path(via string) string {
	if j.via == "" {
		return via
	}
	if len(j.via) > maxVia {
		gap := " > ... > "
		if strings.Contains(j.via, "substitution") {
			gap = " > ... substitution ... > "
		}
		return j.via[:maxVia/2] + gap + via
	}
	return j.via + " > " + via
}

package policy

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	shellTool = "run_shell_command"
	agentTool = "agent"
)

// ruleSet finds the rules that may speak of a subject without asking each.
type ruleSet struct {
	rules   []*Rule            // in the order in which they count
	byFirst map[string][]int32 // of commands, by their first word
	byText  map[string][]int32 // of command lines written out
	byTool  map[string][]int32 // by the tools they name
	shell   []int32            // further ones that each part of a command line is held against,
	files   []int32            // those that a part with files is,
	hosts   []int32            // and those that a part with hosts is
	rest    []int32            // those that may speak of any tool

	leads []key // for each of files: what is in every path that it speaks of
	names []key // for each of hosts: what is in every host
}

func newRuleSet(rules []*Rule) *ruleSet {
	s := &ruleSet{rules: rules, byFirst: map[string][]int32{}, byText: map[string][]int32{}, byTool: map[string][]int32{}}
	for i, r := range rules {
		s.add(r, int32(i))
	}
	return s
}

func (s *ruleSet) add(r *Rule, i int32) {
	if c := r.command; c != nil {
		if c.text != "" {
			s.byText[c.text] = append(s.byText[c.text], i)
		}
		firsts := c.firsts()
		for _, w := range firsts {
			key := firstKey(w)
			if l := s.byFirst[key]; len(l) == 0 || l[len(l)-1] != i {
				s.byFirst[key] = append(l, i)
			}
		}
		if firsts == nil {
			s.shell = append(s.shell, i)
		}
		return
	}
	if len(r.tools.names) == 0 || len(r.tools.globs) > 0 || r.tools.server != "" {
		s.rest = append(s.rest, i)
		return
	}
	for _, n := range r.tools.names {
		s.byTool[n] = append(s.byTool[n], i)
	}
	switch {
	case slices.Contains(r.tools.names, shellTool):
		s.shell = append(s.shell, i)
	case r.domain != "":
		s.hosts = append(s.hosts, i)
		s.names = append(s.names, newKey(r.host))
	case r.reads || r.writes:
		s.files = append(s.files, i)
		lead := ""
		if r.path != nil {
			lead = r.path.lead
		}
		s.leads = append(s.leads, newKey(lead))
	}
}

func firstKey(word string) string { return foldName(baseName(word)) }

// each calls visit with the rules that may speak of the subject, in order,
// until it says that it has seen enough.
func (s *ruleSet) each(sub *subject, visit func(*Rule) bool) {
	if len(s.rules) == 0 {
		return
	}
	var buf [5][]int32
	lists := buf[:0]
	add := func(l []int32) {
		if len(l) > 0 {
			lists = append(lists, l)
		}
	}
	add(s.rest)
	switch {
	case sub.line == nil:
		add(s.byTool[sub.f.Tool])
		if name := sub.agent(); name != "" {
			add(s.byTool[name])
		}
	case sub.line.part == nil:
		add(s.shell)
		add(s.byText[sub.line.whole])
	default:
		add(s.shell)
		if len(s.files) > 0 && len(sub.files)+len(sub.words)+len(sub.trees) > 0 {
			add(within(s.files, s.leads, sub.paths()))
		}
		if len(s.hosts) > 0 && (len(sub.hosts) > 0 || sub.line.part.Kind >= KindUnknown) {
			add(within(s.hosts, s.names, sub.hostWords()))
		}
		if sub.line.part.couldBeAny() {
			s.all(visit)
			return
		}
		if argv := sub.line.part.Argv; len(argv) > 0 {
			add(s.byFirst[firstKey(argv[0])])
		}
	}
	s.merged(lists, visit)
}

// key is a text to be looked for in others.
type key struct {
	text  string
	pairs pairs // of text
}

func newKey(text string) key { return key{text, pairsOf(text)} }

// pairs is a set of two bytes that follow each other, by a hash of them: a text
// that another one is in has all of its pairs.
type pairs [4]uint64

func pairsOf(text string) (p pairs) {
	for i := 1; i < len(text); i++ {
		h := uint8(text[i-1])*31 + uint8(text[i])
		p[h>>6] |= 1 << (h & 63)
	}
	return p
}

// has reports whether all of q are in p.
func (p *pairs) has(q *pairs) bool {
	return q[0]&^p[0]|q[1]&^p[1]|q[2]&^p[2]|q[3]&^p[3] == 0
}

// within returns those of list whose key is in text. Most keys have a pair of
// bytes that text has not, and are not searched for.
func within(list []int32, keys []key, text string) []int32 {
	if text == anyText {
		return list
	}
	all := pairsOf(text)
	var out []int32
	for i := range keys {
		if k := &keys[i]; all.has(&k.pairs) && strings.Contains(text, k.text) {
			out = append(out, list[i])
		}
	}
	return out
}

// anyText stands for a text that nobody knows.
const anyText = "\x00"

// paths are the paths that a part may touch, as restricting rules compare them,
// in one text.
func (s *subject) paths() string {
	if s.pathText != "" {
		return s.pathText
	}
	if len(s.trees) > 0 || s.line.part.copiesTrees() {
		s.pathText = anyText
		return anyText
	}
	var b strings.Builder
	for _, list := range [...][]target{s.files, s.words} {
		for i := range list {
			t := &list[i]
			if t.Abs == "" || t.Real == "" {
				s.pathText = anyText
				return anyText
			}
			t.fold()
			b.WriteString(t.foldedAbs)
			b.WriteByte('\n')
			if t.foldedReal != t.foldedAbs {
				b.WriteString(t.foldedReal)
				b.WriteByte('\n')
			}
		}
	}
	s.pathText = b.String()
	return s.pathText
}

// hostWords are the hosts of a part, and its words if nobody knows what it does
// with them, in one text.
func (s *subject) hostWords() string {
	if s.hostText != "" {
		return s.hostText
	}
	text := strings.Join(s.hosts, "\n")
	if p := s.line.part; p.Kind >= KindUnknown {
		text += "\n" + strings.ToLower(strings.Join(p.Argv, "\n"))
		if strings.Contains(text, "%") {
			text += "\n" + unescapeURL(text)
		}
	}
	s.hostText = text + "\n"
	return s.hostText
}

// unescapeURL takes out what is escaped with %, as far as it is.
func unescapeURL(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if plain, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(strings.ToLower(plain))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (s *ruleSet) all(visit func(*Rule) bool) {
	for _, r := range s.rules {
		if visit(r) {
			return
		}
	}
}

// merged visits the rules of ascending lists in ascending order.
func (s *ruleSet) merged(lists [][]int32, visit func(*Rule) bool) {
	for {
		least := -1
		for i, l := range lists {
			if len(l) > 0 && (least < 0 || l[0] < lists[least][0]) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		i := lists[least][0]
		lists[least] = lists[least][1:]
		if visit(s.rules[i]) {
			return
		}
	}
}

// subject is what rules are asked about: a call of a tool, one part of a
// command line, or (line.part nil) a whole command line.
type subject struct {
	f     *Facts
	class Class // what the part does, where that differs from the tool's
	line  *line // nil: no command
	files []target
	words []target // files that the words of a part may mean of which nobody knows what it does with them
	trees []tree   // directories that the part reads every file of
	hosts []string
	input *input

	pathText, hostText  string // see paths and hostWords
	filesAsked          bool   // the two below are known: see fromFiles
	fileRule, fileMaybe *Rule
}

// target is a file that a subject touches.
type target struct {
	PathFacts
	given string
	write bool

	readable bool // outside of the roots, and free to be read

	foldedAbs, foldedReal string // once a restricting rule asked
}

// fold makes what restricting rules compare.
func (t *target) fold() {
	if t.foldedAbs == "" {
		t.foldedAbs = foldName(t.Abs)
		if t.foldedReal = t.foldedAbs; t.Real != t.Abs {
			t.foldedReal = foldName(t.Real)
		}
	}
}

// agent returns the sub-agent that a call would start: rules may name it as if
// it were a tool (gemini-cli's manner); "" of other calls, and if it is called
// like a tool.
func (s *subject) agent() string {
	if s.f.Tool != agentTool {
		return ""
	}
	for _, key := range argTools[agentTool] {
		if name, ok := s.input.str(key); ok {
			if IsTool(name) {
				return ""
			}
			return name
		}
	}
	return ""
}

// namesAgent reports whether the sub-agent that a call would start is named.
func (m *toolMatch) namesAgent(s *subject) bool {
	name := s.agent()
	return name != "" && m.server == "" && len(m.classes) == 0 && slices.Contains(m.names, name)
}

// restricts reports whether a rule that restricts speaks of the subject.
func (r *Rule) restricts(s *subject) match {
	if !r.holds(s.f) {
		return matchNo
	}
	if s.line != nil {
		return r.restrictsPart(s)
	}
	if !r.tools.matches(s.f) && !r.tools.namesAgent(s) {
		return matchNo
	}
	switch {
	case r.command != nil:
		return matchNo
	case r.path != nil:
		return r.touches(s.f, s.files, fileTools[s.f.Tool].write, !fileTools[s.f.Tool].write || s.f.Tool == "edit")
	case r.domain != "":
		return r.reaches(s.hosts)
	case r.arg != nil:
		return sure(r.arg.matches(s.input.object()))
	case r.args != nil:
		return sure(r.args.MatchString(s.input.stable()))
	}
	return matchYes
}

func sure(yes bool) match {
	if yes {
		return matchYes
	}
	return matchNo
}

// restrictsPart holds a rule against a part of a command line: rules for
// commands, and those for files and hosts, whatever tool they were written for.
func (r *Rule) restrictsPart(s *subject) match {
	switch {
	case r.command != nil:
		return r.command.denies(s.line)
	case r.domain != "":
		m := r.reaches(s.hosts)
		if m == matchNo && r.spokenOf(s) {
			return matchMaybe
		}
		return m
	case r.path != nil:
		m := r.touches(s.f, s.files, r.writes, r.reads)
		if m == matchNo && (r.reads && r.touches(s.f, s.words, false, true) != matchNo || r.mayHold(s)) {
			return matchMaybe
		}
		return m
	case r.arg != nil:
		return matchNo
	case r.args != nil:
		return r.restrictsArgs(s)
	case r.tools.matches(s.f):
		return matchYes
	}
	return r.touches(s.f, s.files, r.writes, false)
}

// restrictsArgs holds a pattern against a part, as it is written and as the
// shell would read it.
func (r *Rule) restrictsArgs(s *subject) match {
	switch {
	case !r.tools.matches(s.f):
		return matchNo
	case r.args.MatchString(s.input.stableOf(s.line)), s.line.part != nil && r.args.MatchString(s.input.stableRead(s.line)):
		return matchYes
	case s.line.part != nil && s.line.part.couldBeAny():
		return matchMaybe
	}
	return matchNo
}

// holds reports whether the rule is in force for calls as this one.
func (r *Rule) holds(f *Facts) bool {
	if len(r.Modes) > 0 && !slices.Contains(r.Modes, f.Mode) && !(f.Mode == ModeDontAsk && slices.Contains(r.Modes, ModeDefault)) || r.Interactive != nil && *r.Interactive != f.Interactive || r.Agent != "" && r.Agent != f.Agent {
		return false
	}
	if len(r.Annotations) == 0 {
		return true // ranging over an empty map costs more than all the rest
	}
	for k, want := range r.Annotations {
		if got := scalar(f.Annotations[k]); got == nil || got != scalar(want) {
			return false
		}
	}
	return true
}

// scalar returns a text, number or truth value so that equal ones are ==,
// wherever they were read; nil for anything else.
func scalar(v any) any {
	switch v := v.(type) {
	case string, bool, float64:
		return v
	case int64:
		return float64(v)
	case int:
		return float64(v)
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return nil
}

// prepare notes what is asked often.
func (r *Rule) prepare() {
	r.reads, r.writes = false, false
	m := &r.tools
	if m.server == "" && m.globs == nil && m.classes == nil && m.names != nil { // nearly all of them
		for _, n := range m.names {
			t, ok := fileTools[n]
			r.reads, r.writes = r.reads || ok && !t.write, r.writes || t.write
		}
		return
	}
	for name, t := range fileTools {
		class := ClassRead
		if t.write {
			class = ClassEdit
		}
		if m.matches(&Facts{Tool: name, Class: class}) {
			r.reads, r.writes = r.reads || !t.write, r.writes || t.write
		}
	}
}

// touches reports whether a restricting rule speaks of one of the files.
func (r *Rule) touches(f *Facts, files []target, writes, reads bool) match {
	found := matchNo
	for i := range files {
		t := &files[i]
		if t.Device || t.write && !writes || !t.write && !reads {
			continue
		}
		if r.path == nil {
			return matchYes
		}
		if t.Abs == "" {
			found = matchMaybe
			continue
		}
		if t.Real != "" && !r.path.near(t) {
			continue
		}
		switch {
		case r.path.matches(t.foldedAbs, r, f, true), t.foldedReal != t.foldedAbs && t.Real != "" && r.path.matches(t.foldedReal, r, f, true):
			return matchYes
		case t.Real == "":
			found = matchMaybe
		}
	}
	return found
}

// near reports whether the pattern may speak of a file: it is cheaper to ask.
func (p *pathSpec) near(t *target) bool {
	t.fold()
	return p.lead == "" || strings.Contains(t.foldedAbs, p.lead) || t.foldedReal != t.foldedAbs && strings.Contains(t.foldedReal, p.lead)
}

// reaches reports whether a restricting rule speaks of one of the hosts.
func (r *Rule) reaches(hosts []string) match {
	for _, h := range hosts {
		if !r.nearHost(h) {
			continue
		}
		if MatchDomain(r.domain, h) || strings.EqualFold(strings.TrimPrefix(r.domain, "*."), strings.TrimSuffix(h, ".")) {
			return matchYes
		}
	}
	return matchNo
}

// spokenOf reports whether a word of a command of which nobody knows what it does
// holds the name of the rule's host.
func (r *Rule) spokenOf(s *subject) bool {
	if s.line.part == nil || s.line.part.Kind < KindUnknown {
		return false
	}
	return strings.Contains(s.hostWords(), r.host)
}

// nearHost reports whether the rule may speak of a host, in its canonical form.
func (r *Rule) nearHost(h string) bool {
	return strings.HasSuffix(strings.TrimSuffix(h, "."), r.host)
}

// permits reports whether a rule that allows speaks of the subject, all of it.
func (r *Rule) permits(s *subject) bool {
	if !r.holds(s.f) {
		return false
	}
	if s.line != nil {
		return r.permitsPart(s)
	}
	if !r.tools.permits(s.f) && !r.tools.namesAgent(s) {
		return false
	}
	switch {
	case r.command != nil:
		return false
	case r.path != nil:
		return r.permitsFiles(s)
	case r.domain != "":
		return len(s.hosts) > 0 && !slices.ContainsFunc(s.hosts, func(h string) bool { return !r.nearHost(h) || !MatchDomain(r.domain, h) })
	case r.arg != nil:
		return r.arg.matches(s.input.object())
	case r.args != nil:
		return r.args.MatchString(s.input.stable())
	}
	return true
}

func (r *Rule) permitsPart(s *subject) bool {
	switch {
	case r.command != nil:
		if s.line.part == nil {
			return r.command.text != "" && r.command.text == s.line.whole
		}
		return s.f.within(s.line.part.Cwd) && r.command.allows(s.line)
	case s.isRedirection():
		if r.whole() && r.tools.permits(s.f) {
			return r.Tier == TierList || r.Redirects
		}
		return (r.path != nil || r.whole()) && r.permitsFiles(s)
	case r.path != nil && s.onlyReads():
		return r.permitsFiles(s)
	case r.path != nil || r.domain != "" || r.arg != nil:
		return false
	case r.args != nil:
		return s.line.part != nil && s.line.part.Exact && !s.line.part.Odd && !s.line.env && r.tools.permits(s.f) && r.args.MatchString(s.input.stableOf(s.line))
	}
	return s.line.part != nil && r.tools.permits(s.f)
}

// within reports whether a command runs in the working directories, for which
// rules about commands are made.
func (f *Facts) within(cwd string) bool {
	return cwd != "" && f.beneathRoots(cwd) || f.Cwd == "" && len(f.Roots) == 0
}

// isRedirection reports whether the subject is a redirection to or from files.
func (s *subject) isRedirection() bool {
	return s.line != nil && s.line.part != nil && s.line.part.Argv == nil && len(s.files) > 0
}

// onlyReads reports whether the subject is a command that only reads files, all
// of which are known.
func (s *subject) onlyReads() bool {
	p := s.line.part
	if p == nil || p.Kind > KindRead || !p.Exact || len(s.files) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.files, func(t target) bool { return t.Abs == "" })
}

// permitsFiles reports whether an allowing rule speaks of all the files that
// are no devices, and there are such.
func (r *Rule) permitsFiles(s *subject) bool {
	reads, writes := r.reads, r.writes
	found := false
	for i := range s.files {
		t := &s.files[i]
		if t.Device {
			continue
		}
		found = true
		if t.write && !writes || !t.write && !reads || t.Real == "" {
			return false
		}
		if r.path != nil && (!r.path.near(t) || !r.path.matches(t.Real, r, s.f, false)) {
			return false
		}
	}
	return found
}

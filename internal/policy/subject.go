package policy

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

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
	pathsRead, anyPath  bool   // see paths
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

// paths are the paths that a part may touch, as restricting rules compare them,
// in one text; anyPath is then true if it may touch others, too.
func (s *subject) paths() string {
	if s.pathsRead {
		return s.pathText
	}
	s.pathsRead = true
	s.anyPath = len(s.trees) > 0 || s.line.part.copiesTrees()
	var b strings.Builder
	for _, list := range [...][]target{s.files, s.words} {
		for i := range list {
			t := &list[i]
			s.anyPath = s.anyPath || t.Abs == "" || t.Real == ""
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
	var b strings.Builder
	for _, h := range s.hosts {
		b.WriteString(h)
		b.WriteByte('\n')
	}
	if p := s.line.part; p.Kind >= KindUnknown {
		for _, w := range p.Argv {
			b.WriteString(strings.ToLower(w))
			b.WriteByte('\n')
		}
		if text := b.String(); strings.Contains(text, "%") {
			b.WriteString(unescapeURL(text))
			b.WriteByte('\n')
		}
	}
	s.hostText = b.String()
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
	case s.line.anything:
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
		return r.command.allows(s.line) && s.f.within(s.line.part.Cwd)
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

// hasFiles reports whether rules for files may speak of a part; of most commands
// those that allow don't.
func (s *subject) hasFiles(allows bool) bool {
	if allows {
		return s.isRedirection() || s.onlyReads()
	}
	return len(s.files)+len(s.words)+len(s.trees) > 0
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

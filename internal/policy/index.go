package policy

import (
	"math"
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
	allows  bool               // none of them restricts
	against []int32            // those of commands that restrict: any of them may speak of a command that nobody knows

	leads []key // for each of files: what is in every path that it speaks of
	names []key // for each of hosts: what is in every host
}

func newRuleSet(rules []*Rule) *ruleSet {
	s := &ruleSet{rules: rules, byFirst: map[string][]int32{}, byText: map[string][]int32{}, byTool: map[string][]int32{}, allows: true}
	for i, r := range rules {
		s.allows = s.allows && r.Behavior == Allow
		s.add(r, int32(i))
	}
	return s
}

func (s *ruleSet) add(r *Rule, i int32) {
	if c := r.command; c != nil {
		if r.Behavior != Allow {
			s.against = append(s.against, i)
		}
		if c.text != "" {
			s.byText[c.text] = append(s.byText[c.text], i)
		}
		firsts := c.firsts(r.Behavior == Allow)
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
	var buf [8][]int32
	lists := s.far(sub, s.near(sub, buf[:0]))
	s.merged(lists, func(i int32) bool { return visit(s.rules[i]) })
}

// first returns the first rule of a set that restricts the subject, and the
// first that may.
func (s *ruleSet) first(sub *subject) (found, maybe *Rule) {
	var buf [8][]int32
	end := int32(len(s.rules))
	s.merged(s.near(sub, buf[:0]), func(i int32) bool {
		switch r := s.rules[i]; r.restricts(sub) {
		case matchYes:
			found = r
		case matchMaybe:
			if maybe == nil {
				maybe, end = r, i
			}
		}
		return found != nil
	})
	if found != nil {
		return found, nil
	}
	s.merged(s.far(sub, buf[:0]), func(i int32) bool {
		if r := s.rules[i]; i < end && r.restricts(sub) != matchNo {
			maybe, end = r, i
		}
		return i >= end
	})
	return nil, maybe
}

// near appends to lists those of the rules that may speak of the subject by what
// is known of it.
func (s *ruleSet) near(sub *subject, lists [][]int32) [][]int32 {
	if len(s.rules) == 0 {
		return lists
	}
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
		if len(s.byText) > 0 {
			add(s.byText[sub.line.whole])
		}
	default:
		add(s.shell)
		if len(s.files) > 0 && sub.hasFiles(s.allows) {
			add(within(s.files, s.leads, sub.paths()))
		}
		if len(s.hosts) > 0 && !s.allows && (len(sub.hosts) > 0 || sub.line.part.Kind >= KindUnknown) {
			add(within(s.hosts, s.names, sub.hostWords()))
		}
		if len(sub.line.part.Argv) > 0 && len(s.byFirst) > 0 {
			add(s.byFirst[sub.line.name])
		}
	}
	return lists
}

// forFile returns those of the rules for files that may speak of one, which has
// been folded.
func (s *ruleSet) forFile(t *target) []int32 {
	if len(s.files) == 0 {
		return nil
	}
	return within(s.files, s.leads, t.foldedAbs+"\n"+t.foldedReal)
}

// far appends to lists those of the rules that may speak of a part by what isn't
// known of it: its command, or files besides those that it names. It is called
// after near.
func (s *ruleSet) far(sub *subject, lists [][]int32) [][]int32 {
	if sub.line == nil || sub.line.part == nil {
		return lists
	}
	if sub.line.anything && len(s.against) > 0 {
		lists = append(lists, s.against)
	}
	if sub.anyPath && len(s.files) > 0 {
		lists = append(lists, s.files)
	}
	return lists
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
	all := pairsOf(text)
	var out []int32
	for i := range keys {
		if k := &keys[i]; all.has(&k.pairs) && strings.Contains(text, k.text) {
			out = append(out, list[i])
		}
	}
	return out
}

// merged visits what is in ascending lists, each number once, in ascending
// order, until visit says that it has seen enough.
func (s *ruleSet) merged(lists [][]int32, visit func(int32) bool) {
	if len(lists) == 1 {
		for _, i := range lists[0] {
			if visit(i) {
				return
			}
		}
		return
	}
	for {
		least := int32(math.MaxInt32)
		for _, l := range lists {
			if len(l) > 0 {
				least = min(least, l[0])
			}
		}
		if least == math.MaxInt32 {
			return
		}
		for k, l := range lists {
			if len(l) > 0 && l[0] == least {
				lists[k] = l[1:]
			}
		}
		if visit(least) {
			return
		}
	}
}

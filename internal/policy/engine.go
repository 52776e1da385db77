package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Engine decides calls from rules, mode and the facts of the call. One Engine
// answers real calls, explanations and hosts alike. Its rules may be changed
// while it decides; it is safe for concurrent use. The zero value has the
// shipped rules alone.
type Engine struct {
	mu    sync.Mutex // held while rules are changed
	rules atomic.Pointer[rules]
}

// rules are the rules of one moment. They are never changed.
type rules struct {
	all              []Rule
	deny, ask, allow *ruleSet // of lists
	files            *ruleSet // of policy files above the default tier, the one that wins first
	checkers         []*Checker
	restrictedFiles  bool // a rule that denies or asks names files
}

// NewEngine returns an engine with these rules besides the shipped ones.
func NewEngine(list []Rule, checkers ...*Checker) *Engine {
	e := &Engine{}
	e.set(slices.Clone(list), checkers)
	return e
}

func (e *Engine) set(list []Rule, checkers []*Checker) {
	r := &rules{all: list, checkers: checkers}
	var deny, ask, allow, files []*Rule
	for i := range list {
		rule := &list[i]
		rule.prepare()
		switch {
		case rule.Tier != TierList:
			files = append(files, rule)
		case rule.Behavior == Deny:
			deny = append(deny, rule)
		case rule.Behavior == Ask:
			ask = append(ask, rule)
		case rule.Behavior == Allow:
			allow = append(allow, rule)
		}
		r.restrictedFiles = r.restrictedFiles || rule.Behavior != Allow && rule.path != nil
	}
	slices.SortStableFunc(files, byRank)
	r.deny, r.ask, r.allow, r.files = newRuleSet(deny), newRuleSet(ask), newRuleSet(allow), newRuleSet(files)
	e.rules.Store(r)
}

// byRank sorts the rule that wins first.
func byRank(a, b *Rule) int { return cmp.Compare(b.rank(), a.rank()) }

func (e *Engine) current() *rules {
	if r := e.rules.Load(); r != nil {
		return r
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rules.Load() == nil {
		e.set(nil, nil)
	}
	return e.rules.Load()
}

// Rules returns the rules in force: those of lists, then those of policy files
// with the one that wins first, then the shipped ones.
func (e *Engine) Rules() []Rule {
	r := e.current()
	var out []Rule
	for _, set := range []*ruleSet{r.deny, r.ask, r.allow, r.files, shippedSet()} {
		for _, rule := range set.rules {
			out = append(out, *rule)
		}
	}
	return out
}

// Add puts further rules in force, from the next decision on. A rule that is
// there already, from the same origin, is not added again.
func (e *Engine) Add(list ...Rule) {
	e.change(func(all []Rule) []Rule {
		for _, r := range list {
			if !slices.ContainsFunc(all, func(o Rule) bool { return same(&o, &r) }) {
				all = append(all, r)
			}
		}
		return all
	})
}

// Remove takes rules of lists out of force. One of the same words from another
// origin stays: whoever takes back a denial takes back nobody else's.
func (e *Engine) Remove(list ...Rule) {
	e.change(func(all []Rule) []Rule {
		return slices.DeleteFunc(all, func(o Rule) bool {
			return slices.ContainsFunc(list, func(r Rule) bool { return same(&o, &r) })
		})
	})
}

func same(a, b *Rule) bool {
	return a.Tier == TierList && b.Tier == TierList && a.Behavior == b.Behavior && a.Text == b.Text && a.Base == b.Base &&
		a.Origin == b.Origin
}

func (e *Engine) change(with func([]Rule) []Rule) {
	old := e.current()
	e.mu.Lock()
	defer e.mu.Unlock()
	old = e.rules.Load()
	e.set(with(slices.Clone(old.all)), old.checkers)
}

// Denied reports whether a rule denies the tool whatever its input, so that
// the model need not see it. Only Tool, Server, Annotations and Class of the
// facts count, with the mode, the agent and whether somebody is there.
func (e *Engine) Denied(f Facts) bool {
	r := e.current()
	s := subject{f: &f, input: new(input)}
	denied := false
	r.deny.each(&s, func(rule *Rule) bool {
		denied = rule.whole() && rule.restricts(&s) == matchYes
		return denied
	})
	if denied {
		return true
	}
	for _, rule := range r.files.rules {
		if rule.holds(&f) && rule.tools.matches(&f) { // the one that wins has spoken, for some calls at least
			return rule.whole() && rule.Behavior == Deny
		}
	}
	return false
}

// Decide judges one call. The order: what can't be judged is denied; hooks;
// deny rules; ask rules; what asks in every mode (protected paths, secrets,
// destructive commands); the mode; allow rules; ask.
func (e *Engine) Decide(f Facts) Decision {
	r := e.current()
	in := &input{raw: f.Input}
	var d Decision
	if f.Tool == shellTool {
		d = r.shell(&f, in)
	} else {
		d = r.call(&f, in)
	}
	if d.Behavior == Ask && f.Mode == ModeDontAsk {
		d.Behavior = Deny
		d.Reason += "; in mode " + string(ModeDontAsk) + " nobody is asked"
	}
	if d.Behavior != Deny {
		d.Checkers = r.checkersFor(&f, in)
	}
	return d
}

// call decides a call of a tool that is not the shell.
func (r *rules) call(f *Facts, in *input) Decision {
	s, bad := newSubject(f, in)
	if bad != nil {
		return bad.decision()
	}
	out := r.decide(s)
	return out.decision()
}

// newSubject reads what a call touches. What can't be read is a denial: the
// tool would see something else, or nothing.
func newSubject(f *Facts, in *input) (*subject, *ruling) {
	s := &subject{f: f, class: f.Class, input: in}
	t, isFile := fileTools[f.Tool]
	if !isFile && f.Tool != "web_fetch" {
		return s, nil
	}
	if in.read() == nil {
		return nil, &ruling{behavior: Deny, why: WhyHard, reason: "the input is no JSON object: " + errText(in.err)}
	}
	if !isFile {
		return s, s.addHost()
	}
	for _, t := range f.Touches {
		s.files = append(s.files, target{PathFacts: f.Path(t.Path), given: t.Path, write: t.Write})
	}
	if f.Touches != nil {
		s.markReadable()
		return s, nil
	}
	raw, ok := in.str(t.key)
	if !ok || raw == "" {
		if !t.dir {
			return nil, &ruling{behavior: Deny, why: WhyHard, reason: fmt.Sprintf("the input has no text %q, which says what it is about", t.key)}
		}
		raw = "."
	}
	s.files = []target{{PathFacts: f.Path(raw), given: raw, write: t.write}}
	s.markReadable()
	return s, nil
}

// markReadable notes the files that may be read although they are outside of
// the roots.
func (s *subject) markReadable() {
	for i := range s.files {
		t := &s.files[i]
		if !t.write && t.Real != "" && slices.ContainsFunc(s.f.Reads, func(dir string) bool { return beneath(t.Real, dir) }) {
			t.readable = true
		}
	}
}

// Outside returns where the files of a call really lead that are outside of the
// working directories: what an allowed call must be granted. What can't be told
// isn't among them.
func Outside(f Facts) []string {
	if fileTools[f.Tool] == (fileTool{}) {
		return nil
	}
	s, bad := newSubject(&f, &input{raw: f.Input})
	if bad != nil {
		return nil
	}
	var out []string
	for i := range s.files {
		if t := &s.files[i]; !t.Inside && !t.Device && t.Real != "" {
			out = append(out, t.Real)
		}
	}
	return out
}

// Hides says why the contents of a file must not be shown without a person's
// word: it holds secrets, or a rule denies or asks for reading it; "" if they
// may be. The path is absolute. It does no I/O, whatever the facts.
func (e *Engine) Hides(f Facts, abs string) string {
	f.Tool, f.Class, f.Paths = "read_file", ClassRead, nil
	f.Touches, f.Input = []Touch{{Path: abs}}, json.RawMessage("{}")
	s, _ := newSubject(&f, &input{raw: f.Input})
	if out := e.current().decide(s); out.behavior != Allow {
		return out.reason
	}
	return ""
}

func errText(err error) string {
	if err == nil {
		return "it is null"
	}
	return err.Error()
}

func (s *subject) addHost() *ruling {
	url, _ := s.input.str("url")
	host, err := ParseHost(url)
	if err != nil {
		return &ruling{behavior: Deny, why: WhyHard, reason: err.Error()}
	}
	s.hosts = []string{host}
	return nil
}

// decide rules on one subject.
func (r *rules) decide(s *subject) ruling {
	verdict := r.restricted(s)
	if verdict != nil && verdict.behavior == Deny {
		return *verdict
	}
	guard := r.guard(s)
	mode := r.mode(s)
	if mode.behavior == Deny {
		return mode
	}
	switch {
	case verdict != nil:
		return *verdict
	case guard != nil:
		return *guard
	case mode.behavior == Allow:
		return mode
	case s.f.Hook != nil && s.f.Hook.Behavior == Allow:
		return hooked(s.f.Hook, "a hook allows it")
	}
	if rule := r.allowed(s); rule != nil {
		return ruled(Allow, rule, "allowed by the rule")
	}
	return mode
}

func hooked(h *HookDecision, words string) ruling {
	if h.Reason != "" {
		words += ": " + h.Reason
	}
	return ruling{behavior: h.Behavior, why: WhyHook, reason: words}
}

// restricted finds what hooks and rules have against a subject: a denial, a
// question, or nil.
func (r *rules) restricted(s *subject) *ruling {
	if h := s.f.Hook; h != nil && h.Behavior == Deny {
		out := hooked(h, "a hook denies it")
		return &out
	}
	if h := s.f.Hook; h != nil && h.Behavior != Allow && h.Behavior != Ask {
		return &ruling{behavior: Deny, why: WhyHook, reason: fmt.Sprintf("a hook says %q, which is no decision", h.Behavior)}
	}
	rule, maybe := r.deny.first(s)
	if rule != nil {
		out := ruled(Deny, rule, "denied by the rule").withMessage()
		return &out
	}
	fileRule, perhaps := r.fromFiles(s)
	if maybe == nil && perhaps != nil && perhaps.Behavior == Deny {
		maybe = perhaps
	}
	if fileRule != nil && fileRule.Behavior == Deny {
		out := ruled(Deny, fileRule, "denied by the rule").withMessage()
		return &out
	}
	if h := s.f.Hook; h != nil && h.Behavior == Ask {
		out := hooked(h, "a hook wants it to be asked")
		return &out
	}
	if maybe != nil {
		out := ruled(Ask, maybe, "it isn't certain that this is not what is denied by the rule")
		return &out
	}
	rule, maybe = r.ask.first(s)
	if rule == nil {
		rule = maybe
	}
	switch {
	case rule != nil:
	case fileRule != nil && fileRule.Behavior == Ask:
		rule = fileRule
	case perhaps != nil:
		rule = perhaps
	}
	if rule != nil {
		out := ruled(Ask, rule, "asked for by the rule").withMessage()
		return &out
	}
	return nil
}

// fromFiles returns the rule of policy files that wins for the subject, by tier
// and priority, and the first restricting one before it that may speak of the
// subject, as far as anybody can tell; nil if there are none. A question of a
// project's file does not win over a denial.
func (r *rules) fromFiles(s *subject) (found, maybe *Rule) {
	if s.filesAsked {
		return s.fileRule, s.fileMaybe
	}
	defer func() { s.filesAsked, s.fileRule, s.fileMaybe = true, found, maybe }()
	r.files.each(s, func(rule *Rule) bool {
		if s.line != nil && s.line.parts && rule.whole() {
			return false // its parts are asked about
		}
		m := matchNo
		if rule.Behavior != Allow {
			m = rule.restricts(s)
		} else if rule.permits(s) {
			m = matchYes
		}
		switch {
		case m == matchMaybe && maybe == nil:
			maybe = rule
		case m == matchYes && (found == nil || rule.Behavior == Deny):
			found = rule
		}
		return found != nil && (found.Tier != TierWorkspace || found.Behavior != Ask)
	})
	return found, maybe
}

// guard returns what is asked in every mode, or nil.
func (r *rules) guard(s *subject) *ruling {
	for i := range s.files {
		t := &s.files[i]
		if t.write && t.Protected != "" {
			return &ruling{behavior: Ask, why: WhyProtected, path: t.path(), reason: "writes " + t.given + ": " + t.Protected}
		}
	}
	if s.line != nil && s.line.part != nil && s.line.part.Kind == KindDestructive {
		if rule := r.naming(s); rule == nil {
			return &ruling{behavior: Ask, why: WhyDestructive, reason: s.line.part.Reason + "; it asks in every mode unless a rule names it"}
		}
	}
	for i := range s.files {
		t := &s.files[i]
		if !t.write && t.Secret != "" && !r.namedFile(s, t) {
			return &ruling{behavior: Ask, why: WhySecret, path: t.path(), reason: "reads " + t.given + ": " + t.Secret}
		}
	}
	return r.secretBeneath(s)
}

func (t *target) path() string {
	if t.Abs != "" {
		return t.Abs
	}
	return t.given
}

// naming returns the rule that allows a destructive command by its name.
func (r *rules) naming(s *subject) *Rule {
	var found *Rule
	for _, set := range []*ruleSet{r.allow, r.files} {
		set.each(s, func(rule *Rule) bool {
			if rule.Behavior == Allow && rule.command != nil && rule.permits(s) && rule.command.names(s.line, s.f) {
				found = rule
			}
			return found != nil
		})
		if found != nil {
			break
		}
	}
	return found
}

// namedFile reports whether a rule allows one file by a pattern that isn't the
// whole tool.
func (r *rules) namedFile(s *subject, t *target) bool {
	one := subject{f: s.f, files: []target{*t}, input: s.input}
	one.files[0].fold()
	for _, set := range [...]*ruleSet{r.allow, r.files} {
		for _, i := range set.forFile(&one.files[0]) {
			rule := set.rules[i]
			if rule.Behavior == Allow && rule.path != nil && rule.path.names() && rule.holds(s.f) && rule.permitsFiles(&one) {
				return true
			}
		}
	}
	return false
}

// mode rules on a subject as the shipped rules say for the mode: allow, deny,
// or ask, which allow rules may still change.
func (r *rules) mode(s *subject) ruling {
	f := *s.f
	f.Class = s.class
	sub := *s
	sub.f = &f
	if f.Mode == ModePlan && r.planned(s) {
		f.Mode = ModeDefault
	}
	var rule *Rule
	shippedSet().each(&sub, func(x *Rule) bool {
		if x.holds(&f) && x.tools.matches(&f) {
			rule = x
		}
		return rule != nil
	})
	outside := r.outside(s)
	read := r.readsAround(s)
	switch {
	case rule != nil && rule.Behavior == Deny:
		return ruling{behavior: Deny, why: WhyMode, rule: rule, reason: string(f.Mode) + " mode: " + rule.Message}
	case rule != nil && rule.Behavior == Allow && outside != nil && s.f.Mode != ModeYolo:
		return *outside
	case rule != nil && rule.Behavior == Allow && read != nil && s.f.Mode != ModeYolo:
		return *read
	case rule != nil && rule.Behavior == Allow:
		return ruling{behavior: Allow, why: WhyMode, reason: rule.Message}
	case outside != nil:
		return *outside
	}
	return ruling{behavior: Ask, why: WhyDefault, reason: s.needs()}
}

// readsAround says that a command only reads, but nobody can tell that it reads
// only what is free to be read; nil of everything else.
func (r *rules) readsAround(s *subject) *ruling {
	if s.line == nil || s.line.part == nil || s.line.part.Kind != KindRead {
		return nil
	}
	return &ruling{behavior: Ask, why: WhyDefault, reason: s.line.part.Reason}
}

// planned reports whether a policy file allows the subject in plan mode by
// name of the mode.
func (r *rules) planned(s *subject) bool {
	rule, _ := r.fromFiles(s)
	return rule != nil && rule.Behavior == Allow && slices.Contains(rule.Modes, ModePlan)
}

// outside says that a subject leaves the roots, or may; nil if it certainly
// doesn't.
func (r *rules) outside(s *subject) *ruling {
	for i := range s.files {
		t := &s.files[i]
		if t.Inside || t.Device || t.readable {
			continue
		}
		verb := "reads "
		if t.write {
			verb = "writes "
		}
		what := " is outside of the working directories"
		if t.Abs == "" {
			what = " can't be told to be inside of the working directories"
		}
		return &ruling{behavior: Ask, why: WhyOutside, path: t.path(), reason: verb + t.given + ", which" + what}
	}
	return nil
}

// needs says in words what needs permission.
func (s *subject) needs() string {
	if s.line == nil {
		return fmt.Sprintf("%s needs permission in mode %s", ToolName(s.f.Dialect, s.f.Tool), ModeName(s.f.Dialect, s.f.Mode))
	}
	if p := s.line.part; p != nil && p.Reason != "" {
		return p.Reason
	}
	return fmt.Sprintf("this command needs permission in mode %s", s.f.Mode)
}

// allowed returns the rule that allows the subject, or nil.
func (r *rules) allowed(s *subject) *Rule {
	found, _ := r.fromFiles(s)
	if found != nil && found.Behavior == Allow && !r.leaves(s, found) {
		return found
	}
	if s.f.Class == ClassPlan {
		return nil // each plan is the user's to approve
	}
	found = nil
	r.allow.each(s, func(rule *Rule) bool {
		if rule.permits(s) && !r.leaves(s, rule) {
			found = rule
		}
		return found != nil
	})
	return found
}

// leaves reports whether a subject leaves the roots by something that the rule
// doesn't name.
func (r *rules) leaves(s *subject, rule *Rule) bool {
	if rule.path != nil || rule.args != nil || rule.command != nil && !rule.command.loose() {
		return false // it names what it allows
	}
	return r.outside(s) != nil
}

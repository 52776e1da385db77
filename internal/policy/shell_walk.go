package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what a subshell does not pass on.
type state struct {
	cwds []string
	vars variables
}

func (j *judge) save() state {
	j.vars.shared = true
	return state{j.cwds, j.vars}
}

func (j *judge) restore(s state) { j.cwds, j.vars = s.cwds, s.vars }

// variables are those whose values are certain. The map is shared with saved
// states until it is changed.
type variables struct {
	m      map[string]value
	shared bool
	stamp  int // equal: the same map with the same values in it
}

// maxVars is how many variables are known at once: each subshell may have to
// copy them.
const maxVars = 100

// own makes the map one that may be changed.
func (j *judge) own() map[string]value {
	if v := &j.vars; v.shared || v.m == nil {
		m := make(map[string]value, len(v.m)+1)
		maps.Copy(m, v.m)
		v.m, v.shared = m, false
	}
	j.stamps++
	j.vars.stamp = j.stamps
	return j.vars.m
}

// forgetAll is for what may have set any variable.
func (j *judge) forgetAll() {
	j.stamps++
	j.vars = variables{stamp: j.stamps}
}

// perhaps joins the state after something that may not have run with the
// state before it.
func (j *judge) perhaps(before state) {
	if j.vars.stamp != before.vars.stamp {
		for name, v := range j.vars.m {
			if old, ok := before.vars.m[name]; !ok || old != v {
				j.forget(name)
			}
		}
		for name := range before.vars.m {
			if _, ok := j.vars.m[name]; !ok {
				j.forget(name)
			}
		}
	}
	j.cwds = union(j.cwds, before.cwds)
}

const maxCwds = 8

// union joins sets of directories. No directory means that it isn't known.
func union(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	if len(out) > maxCwds {
		return nil
	}
	return out
}

func (j *judge) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		j.stmt(s)
		j.settle()
		j.room(int(s.End().Offset()))
	}
}

func (j *judge) stmt(s *syntax.Stmt) {
	if s == nil || !j.count() {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		before := j.save()
		defer func() { j.restore(before); j.moved = nil }()
	}
	outer, inputs := j.stdin, j.inputs
	if len(s.Redirs) > 0 {
		j.stdin = j.input(s.Redirs)
		j.inputs = inputs.with(s.Redirs)
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		j.call(c)
	case *syntax.BinaryCmd:
		j.binary(c)
	default:
		j.compound(c)
	}
	j.stdin = outer
	if s.Negated {
		j.moved = nil
	}
	for _, r := range s.Redirs {
		j.redirect(r)
	}
	j.inputs = inputs
}

// binary walks a chain of && and ||, or a pipeline, without recursion along
// its length.
func (j *judge) binary(c *syntax.BinaryCmd) {
	type link struct {
		op syntax.BinCmdOperator
		s  *syntax.Stmt
	}
	var chain []link
	first := (*syntax.Stmt)(nil)
	pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	for {
		chain = append(chain, link{c.Op, c.Y})
		x, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(c.X.Redirs) > 0 || c.X.Background || c.X.Negated || (x.Op == syntax.Pipe || x.Op == syntax.PipeAll) != pipe {
			first = c.X
			break
		}
		c = x
	}
	slices.Reverse(chain)
	if pipe {
		all := []*syntax.Stmt{first}
		for _, l := range chain {
			all = append(all, l.s)
		}
		j.pipeline(all)
		return
	}
	start := j.save()
	j.stmt(first)
	j.landed()
	after := j.save() // what holds wherever a || may begin
	moved := false
	for _, l := range chain {
		if l.op == syntax.OrStmt {
			// runs when something before it failed, wherever that was
			j.perhaps(start)
			if moved {
				j.perhaps(after)
			}
		}
		j.moved = nil
		j.stmt(l.s)
		if l.op == syntax.AndStmt {
			j.landed()
		}
		moved = true
		j.settle()
		j.room(int(l.s.End().Offset()))
	}
	j.perhaps(after)
	j.perhaps(start)
}

// landed notes that the directory change of the command before && succeeded.
func (j *judge) landed() {
	if j.moved != nil {
		j.cwds = j.moved.to
		j.moved = nil
	}
}

func (j *judge) pipeline(all []*syntax.Stmt) {
	j.open++
	defer func() { j.open-- }()
	before := j.save()
	from := len(j.found)
	fetched := false
	for i, s := range all {
		mark := len(j.found)
		outer := j.stdin
		if i > 0 {
			j.stdin = j.piped(from, mark, all[i-1])
		}
		j.stmt(s)
		j.stdin = outer
		if fetched {
			j.fed(mark)
		}
		fetched = fetched || j.fetches(mark)
		j.restore(before)
	}
	j.moved = nil
}

// piped gives the text that the command before a pipe certainly prints.
func (j *judge) piped(from, mark int, s *syntax.Stmt) *word {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || mark-from != 1 || len(c.Args) < 2 || !j.found[from].Exact {
		return nil
	}
	argv := j.found[from].Argv
	text, ok := printed(argv)
	if !ok {
		return nil
	}
	w := lit(text)
	return &w
}

// fetches reports whether a part from mark on is one of a network tool.
func (j *judge) fetches(mark int) bool {
	for i := mark; i < len(j.found); i++ {
		if a := j.found[i].Argv; len(a) > 0 && j.t.fetch[baseName(a[0])] {
			return true
		}
	}
	return false
}

// fed marks an interpreter that runs what a network tool sent.
func (j *judge) fed(mark int) {
	for i := mark; i < len(j.found); i++ {
		if p := &j.found[i]; len(p.Argv) > 0 && (j.t.shells[baseName(p.Argv[0])] || j.t.interpreters[baseName(p.Argv[0])]) && takesScript(p.Argv[1:]) {
			p.Kind, p.Reason = KindDestructive, "runs what the network sends"
		}
	}
}

// takesScript reports whether an interpreter with these arguments reads its
// script from its input.
func takesScript(args []string) bool {
	for _, a := range args {
		if a == "-" || a == "-s" || a == "/dev/stdin" {
			return true
		}
		if len(a) > 1 && a[0] == '-' && a != "-c" && a != "-e" && a != "-m" && a != "-p" {
			continue
		}
		return false
	}
	return true
}

func (j *judge) compound(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.Block:
		j.stmts(c.Stmts)
	case *syntax.Subshell:
		before := j.save()
		j.stmts(c.Stmts)
		j.restore(before)
		j.moved = nil
	case *syntax.IfClause:
		j.ifClause(c)
	case *syntax.WhileClause:
		before := j.enter(c)
		j.stmts(c.Cond)
		j.stmts(c.Do)
		j.leave(before)
	case *syntax.ForClause:
		j.forClause(c)
	case *syntax.CaseClause:
		j.caseClause(c)
	case *syntax.FuncDecl:
		j.function(c)
	case *syntax.ArithmCmd:
		j.arithm(c.X)
		j.construct(c)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			j.arithm(x)
		}
		j.construct(c)
	case *syntax.TestClause:
		j.test(c.X)
		j.construct(c)
	case *syntax.DeclClause:
		j.declare(c)
	case *syntax.TimeClause:
		j.stmt(c.Stmt)
	case *syntax.CoprocClause:
		before := j.save()
		j.add(Part{Text: j.text(c), Kind: KindUnknown, Reason: "coproc sets variables and runs beside the shell"})
		j.stmt(c.Stmt)
		j.restore(before)
	default:
		j.add(Part{Text: j.text(c), Kind: KindUnknown, Reason: "a construct that isn't understood"})
	}
}

// construct adds the part of something that runs no command of its own.
func (j *judge) construct(n syntax.Node) {
	k, why := KindReadOnly, "changes nothing"
	if j.secret != "" {
		k, why = KindRead, j.secret
	}
	if j.strange != "" {
		k, why = KindUnknown, j.strange
	}
	j.secret, j.strange = "", ""
	j.add(Part{Text: j.text(n), Kind: k, Reason: why})
}

// flush reports what was noted while words were looked at which belong to no
// command.
func (j *judge) flush(n syntax.Node) {
	if j.secret != "" || j.strange != "" {
		j.construct(n)
	}
}

func (j *judge) ifClause(c *syntax.IfClause) {
	before := j.save()
	for ; c != nil; c = c.Else {
		j.stmts(c.Cond)
		j.moved = nil
		branch := j.save()
		j.stmts(c.Then)
		j.moved = nil
		j.perhaps(branch)
	}
	j.perhaps(before)
}

// enter begins a body that runs any number of times.
func (j *judge) enter(n syntax.Node) state {
	before := j.save()
	if j.cds[n] {
		j.cwds = nil
	}
	return before
}

func (j *judge) leave(before state) {
	j.moved = nil
	j.perhaps(before)
}

func (j *judge) forClause(c *syntax.ForClause) {
	before := j.enter(c)
	defer j.leave(before)
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
			j.arithm(l.Init)
			j.arithm(l.Cond)
			j.arithm(l.Post)
		}
		j.flush(c.Loop)
		j.stmts(c.Do)
		return
	}
	items := j.words(it.Items, nil)
	j.flush(it)
	if j.t.dangerousEnv.match(it.Name.Value) {
		j.add(Part{Text: j.text(it), Kind: KindUnknown, Reason: "sets " + it.Name.Value})
	}
	certain := !c.Select && len(items) > 0 && len(items) <= 16 && j.loops < 2
	for _, w := range items {
		certain = certain && !w.split && strings.IndexByte(w.text, 0) < 0
	}
	if !certain {
		j.forget(it.Name.Value)
		j.stmts(c.Do)
		return
	}
	j.loops++
	name := it.Name.Value
	for _, w := range items {
		j.set(name, value{w.text, w.glob})
		wasLoose := j.loose[name]
		delete(j.loose, name)
		j.stmts(c.Do)
		if wasLoose {
			j.loose[name] = true
		}
	}
	j.loops--
	j.forget(name)
}

func (j *judge) caseClause(c *syntax.CaseClause) {
	j.visit(c.Word)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			j.visit(p)
		}
	}
	j.flush(c)
	before := j.save()
	for _, item := range c.Items {
		branch := j.save()
		j.stmts(item.Stmts)
		j.moved = nil
		j.perhaps(branch)
	}
	j.perhaps(before)
}

// function judges a body when it is defined, with nothing known of when it
// will be called.
func (j *judge) function(c *syntax.FuncDecl) {
	if c.Name == nil {
		j.add(Part{Text: j.text(c), Kind: KindUnknown, Reason: "a function without a name"})
		return
	}
	name := c.Name.Value
	if j.funcs == nil {
		j.funcs = map[string]*syntax.FuncDecl{}
	}
	j.funcs[name] = c
	if bomb(c.Body, name) {
		j.add(Part{Text: j.text(c), Kind: KindDestructive, Reason: "starts itself over and over (a fork bomb)"})
		return
	}
	before, via := j.save(), j.via
	j.forgetAll()
	if j.anyCd {
		j.cwds = nil
	}
	j.via = j.path("function " + name)
	called := j.called
	j.called = true
	j.stmt(c.Body)
	j.called = called
	j.via = via
	j.restore(before)
	j.moved = nil
}

// bomb reports whether a function starts itself in a pipe or in the
// background.
func bomb(body *syntax.Stmt, name string) bool {
	found := false
	calls := func(s *syntax.Stmt) bool {
		c, ok := s.Cmd.(*syntax.CallExpr)
		return ok && len(c.Args) > 0 && c.Args[0].Lit() == name
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && calls(n)
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && (calls(n.X) || calls(n.Y))
		}
		return !found
	})
	return found
}

func (j *judge) test(x syntax.TestExpr) {
	if x == nil || !j.count() {
		return
	}
	switch x := x.(type) {
	case *syntax.BinaryTest:
		j.test(x.X)
		j.test(x.Y)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			j.numbers(x.X)
			j.numbers(x.Y)
		}
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if w, ok := x.X.(*syntax.Word); !ok || !syntax.ValidName(w.Lit()) {
				j.odd("a test of a variable whose name isn't certain")
			}
		}
		j.test(x.X)
	case *syntax.ParenTest:
		j.test(x.X)
	case *syntax.Word:
		j.visit(x)
	}
}

// numbers judges an operand of -eq and the like, which [[ evaluates.
func (j *judge) numbers(x syntax.TestExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	if v := j.one(w); !v.exact() && strings.Trim(v.text, "\x01") != "" || v.exact() && !isNumber(strings.TrimLeft(v.text, "-")) {
		if v.exact() && (j.numeric[v.text] || j.digits(v.text)) {
			return
		}
		if len(w.Parts) == 1 {
			if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && j.numeric[p.Param.Value] {
				return
			}
		}
		j.odd("[[ evaluates " + j.text(w) + " as arithmetic")
	}
}

// declare judges export, declare and their like: they change the
// environment of what comes later.
func (j *judge) declare(c *syntax.DeclClause) {
	kind, why := KindUnknown, c.Variant.Value+" changes variables of the shell"
	quiet := true
	for _, a := range c.Args {
		j.assignValue(a)
		if a.Name == nil {
			quiet = false
			if a.Value != nil {
				if w := j.one(a.Value); w.exact() && w.text == "-r" { // -i, -a and -A evaluate what they are given
					quiet = true
				}
			}
			continue
		}
		j.forget(a.Name.Value)
		if c.Variant.Value == "export" && !j.harmlessAssign(a) || j.t.dangerousEnv.match(a.Name.Value) {
			quiet = false
		}
	}
	if c.Variant.Value == "nameref" {
		quiet = false
	}
	if quiet && j.strange == "" && len(c.Args) > 0 {
		kind, why = KindReadOnly, "sets only harmless variables"
	}
	if j.strange != "" {
		why = j.strange
	}
	j.secret, j.strange = "", ""
	j.add(Part{Text: j.text(c), Argv: strings.Fields(j.text(c)), Kind: kind, Reason: why})
}

// assignValue evaluates the value of an assignment and all that runs in it.
func (j *judge) assignValue(a *syntax.Assign) word {
	if a.Index != nil {
		j.arithm(a.Index)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				j.arithm(e.Index)
			}
			j.visit(e.Value)
		}
		return word{text: "\x00"}
	}
	return j.one(a.Value)
}

func (j *judge) harmlessAssign(a *syntax.Assign) bool {
	if a.Name == nil || a.Index != nil || a.Array != nil || a.Append {
		return false
	}
	name := a.Name.Value
	if j.t.harmlessEnv.match(name) {
		return true
	}
	w := j.one(a.Value)
	return w.exact() && j.t.harmlessEnv.exact[name+"="+w.text]
}

// call judges a simple command.
func (j *judge) call(c *syntax.CallExpr) {
	j.secret, j.strange = "", ""
	outer := j.callMark
	j.callMark = len(j.found)
	j.open++
	defer func() { j.callMark = outer; j.open-- }()
	if len(c.Assigns) > 0 {
		j.assigns(c)
	}
	if len(c.Args) == 0 {
		return
	}
	saved, strange := j.secret, j.strange
	j.secret, j.strange = "", ""
	ws := j.words(c.Args, make([]word, 0, len(c.Args)))
	if j.strange == "" {
		j.strange = strange
	}
	if j.secret == "" {
		j.secret = saved
	}
	from := c.Args[0].Pos().Offset()
	to := c.Args[len(c.Args)-1].End().Offset()
	text := ""
	if from <= to && int(to) <= len(j.src) {
		text = j.src[from:to]
	}
	strange, secret := j.strange, j.secret
	j.strange, j.secret = "", ""
	mark := len(j.found)
	j.moved = nil
	j.simple(ws, text)
	for i := mark; i < len(j.found); i++ {
		p := &j.found[i]
		if strange != "" && p.Kind < KindUnknown {
			p.Kind, p.Reason = KindUnknown, strange
		}
		if secret != "" && p.Kind < KindRead {
			p.Kind, p.Reason = KindRead, secret
		}
	}
}

// assigns judges the assignments before a command, or those that stand
// alone.
func (j *judge) assigns(c *syntax.CallExpr) {
	kind, why := KindReadOnly, "sets only harmless variables"
	var env []string
	for _, a := range c.Assigns {
		v := j.assignValue(a)
		name := a.Name.Value
		env = append(env, j.text(a))
		switch {
		case j.harmlessAssign(a):
		case j.t.dangerousEnv.match(name), len(c.Args) > 0:
			kind, why = KindUnknown, "sets "+name+" for what runs after it"
		}
		if len(c.Args) > 0 {
			continue
		}
		if v.split || strings.IndexByte(v.text, 0) >= 0 || a.Append || a.Index != nil || a.Array != nil {
			j.forget(name)
		} else {
			j.set(name, value{text: v.text})
		}
	}
	if j.strange != "" {
		kind, why = KindUnknown, j.strange
	}
	if len(c.Args) == 0 {
		j.strange, j.secret = "", ""
	}
	from, to := c.Assigns[0].Pos().Offset(), c.Assigns[len(c.Assigns)-1].End().Offset()
	text := ""
	if from <= to && int(to) <= len(j.src) {
		text = j.src[from:to]
	}
	j.add(Part{Text: text, Kind: kind, Reason: why, Env: env})
}

func (j *judge) substitution(c *syntax.CmdSubst) {
	if c.TempFile || c.ReplyVar {
		j.odd("a substitution of another shell")
	}
	j.inside("substitution", c.Stmts)
}

// inside judges statements that run in a subshell of their own.
func (j *judge) inside(via string, list []*syntax.Stmt) {
	before, outer := j.save(), j.via
	strange, secret, stdin, moved := j.strange, j.secret, j.stdin, j.moved
	j.strange, j.secret, j.stdin, j.moved = "", "", nil, nil
	j.via = j.path(via)
	if len(list) == 1 && list[0].Cmd == nil {
		for _, r := range list[0].Redirs { // $(<file) prints the file
			j.redirect(r)
		}
	} else {
		j.stmts(list)
	}
	j.via = outer
	j.strange, j.secret, j.stdin, j.moved = strange, secret, stdin, moved
	j.restore(before)
}

// input gives the text of a here-document or here-string, if it is certain.
func (j *judge) input(list []*syntax.Redirect) *word {
	for _, r := range list {
		var w *syntax.Word
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			w = r.Hdoc
		case syntax.WordHdoc:
			w = r.Word
		default:
			continue
		}
		if w == nil {
			e := lit("")
			return &e
		}
		if r.Op != syntax.WordHdoc && quotedDelimiter(r.Word) {
			var b strings.Builder
			for _, p := range w.Parts {
				if l, ok := p.(*syntax.Lit); ok {
					b.WriteString(l.Value)
				}
			}
			t := lit(b.String())
			return &t
		}
		saved, secret := j.strange, j.secret
		n := len(j.found)
		j.open++
		t := j.one(w)
		j.open--
		j.found = j.found[:n] // the redirection itself is judged later
		j.strange, j.secret = saved, secret
		return &t
	}
	return nil
}

func quotedDelimiter(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.IndexByte(l.Value, '\\') >= 0 {
			return true
		}
	}
	return false
}

// redirect judges one redirection as the reading or writing of a file.
func (j *judge) redirect(r *syntax.Redirect) {
	if !j.count() {
		return
	}
	j.secret, j.strange = "", ""
	text := j.text(r)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil && !quotedDelimiter(r.Word) {
			j.visit(r.Hdoc)
		}
		j.flush(r.Word)
		return
	case syntax.WordHdoc:
		j.visit(r.Word)
		j.flush(r)
		return
	}
	w := j.one(r.Word)
	if (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && w.exact() && (w.text == "-" || digitsOnly(strings.TrimSuffix(w.text, "-"))) {
		return
	}
	write := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	p := Part{Text: text, Reason: j.strange}
	switch {
	case j.strange != "":
		p.Kind = KindUnknown
	case r.Op == syntax.DplIn:
		p.Kind, p.Reason = KindUnknown, "which descriptor is read isn't certain"
	case strings.HasPrefix(w.text, "/dev/tcp/"), strings.HasPrefix(w.text, "/dev/udp/"):
		p.Kind, p.Reason = KindNetwork, "opens a connection"
		if host := strings.Split(w.text, "/"); len(host) > 3 {
			p.Hosts = []string{host[3]}
		}
	case isProcSubst(r.Word):
		return
	default:
		j.uses(&p, []use{{w: w, write: write}})
		if write && w.exact() && isDisk(w.text) {
			p.Kind, p.Reason = KindDestructive, "overwrites a disk"
		}
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		j.forget(strings.Trim(r.N.Value, "{}"))
	}
	j.secret, j.strange = "", ""
	if p.Kind == KindReadOnly && write && j.allDevices(p.Files) {
		return
	}
	j.add(p)
}

func isProcSubst(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// look goes through a script once before it is judged, to find the names
// that loops and functions set, and which of them only ever hold numbers.
func (j *judge) look(file *syntax.File) {
	l := looker{j: j, mixed: map[string]bool{}, numbers: map[string]bool{}}
	if j.loose == nil {
		j.loose = map[string]bool{}
	}
	j.cds = map[syntax.Node]bool{}
	syntax.Walk(file, l.visit)
	for name := range l.numbers {
		if !l.mixed[name] {
			if j.numeric == nil {
				j.numeric = map[string]bool{}
			}
			j.numeric[name] = true
		}
	}
}

type looker struct {
	j              *judge
	mixed, numbers map[string]bool
	stack          []bool        // whether each node around is in around
	around         []syntax.Node // loops, functions and subshells
	bodies         int           // loops and functions in around
}

func (l *looker) visit(n syntax.Node) bool {
	if n == nil {
		last := len(l.stack) - 1
		if l.stack[last] {
			end := len(l.around) - 1
			l.bodies -= body(l.around[end])
			l.around = l.around[:end]
		}
		l.stack = l.stack[:last]
		return true
	}
	switch n.(type) {
	case *syntax.WhileClause, *syntax.ForClause, *syntax.FuncDecl, *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		l.stack = append(l.stack, true)
		l.around = append(l.around, n)
		l.bodies += body(n)
	default:
		l.stack = append(l.stack, false)
	}
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil {
			l.assign(n.Name.Value, n.Value != nil && numberWord(n.Value) && !n.Append)
		}
	case *syntax.WordIter:
		l.mixed[n.Name.Value] = true
	case *syntax.BinaryArithm:
		if w, ok := n.X.(*syntax.Word); ok && strings.HasSuffix(n.Op.String(), "=") {
			l.assign(w.Lit(), true)
		}
	case *syntax.UnaryArithm:
		if w, ok := n.X.(*syntax.Word); ok {
			l.assign(w.Lit(), true)
		}
	case *syntax.CallExpr:
		l.call(n)
	}
	return true
}

func numberWord(w *syntax.Word) bool {
	if s := w.Lit(); digitsOnly(s) {
		return true
	}
	if len(w.Parts) != 1 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ArithmExp)
	return ok
}

func (l *looker) assign(name string, number bool) {
	if number {
		l.numbers[name] = true
	} else {
		l.mixed[name] = true
	}
	if l.bodies > 0 {
		l.j.loose[name] = true
	}
}

// body is 1 for what may run its commands more than once.
func body(n syntax.Node) int {
	switch n.(type) {
	case *syntax.WhileClause, *syntax.ForClause, *syntax.FuncDecl:
		return 1
	}
	return 0
}

func (l *looker) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	name := n.Args[0].Lit()
	switch name {
	case "cd", "pushd", "popd", "command", "builtin", "eval", "":
		l.j.anyCd = l.j.anyCd || name != ""
		for i := len(l.around) - 1; i >= 0; i-- {
			s := l.around[i]
			if body(s) == 0 || l.j.cds[s] {
				return // what is around that has been marked with it
			}
			l.j.cds[s] = true
		}
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "export", "declare", "local", "typeset", "readonly", "let", "source", ".":
		for _, a := range n.Args[1:] {
			if s := a.Lit(); syntax.ValidName(s) {
				l.mixed[s] = true
				l.j.loose[s] = true
			}
		}
	}
}

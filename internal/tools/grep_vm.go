package tools

import (
	"regexp/syntax"
	"unicode/utf8"
)

// broken stands for a byte that isn't UTF-8; no class contains it.
const broken rune = -1

// runProg reports whether prog matches anywhere in line. It steps through all
// possibilities at once, in time linear in the line.
func runProg(prog *syntax.Prog, line []byte) bool {
	vm := progVM{prog: prog, now: newPCSet(len(prog.Inst)), then: newPCSet(len(prog.Inst))}
	before := broken
	for pos := 0; ; {
		after, size := broken, 0
		if pos < len(line) {
			after, size = utf8.DecodeRune(line[pos:])
			if after == utf8.RuneError && size == 1 {
				after = broken
			}
		}
		cond := conditions(before, after, pos == 0, size == 0)
		if vm.step(after, cond) {
			return true
		}
		if size == 0 {
			return false
		}
		before, pos = after, pos+size
	}
}

// conditions tells which empty-width assertions hold between two characters.
func conditions(before, after rune, begin, end bool) syntax.EmptyOp {
	var op syntax.EmptyOp
	if begin || before == '\n' {
		op |= syntax.EmptyBeginLine
	}
	if begin {
		op |= syntax.EmptyBeginText
	}
	if end || after == '\n' {
		op |= syntax.EmptyEndLine
	}
	if end {
		op |= syntax.EmptyEndText
	}
	if (before >= 0 && isWordRune(before)) != (after >= 0 && isWordRune(after)) {
		return op | syntax.EmptyWordBoundary
	}
	return op | syntax.EmptyNoWordBoundary
}

type progVM struct {
	prog      *syntax.Prog
	now, then *pcSet
	stack     []uint32
}

// step starts a new attempt here, follows all threads over the assertions that
// hold, and then over the character. It reports a match.
func (v *progVM) step(r rune, cond syntax.EmptyOp) bool {
	// now holds the threads' places before assertions; spread them out.
	v.stack = append(v.stack[:0], v.now.list...)
	v.stack = append(v.stack, uint32(v.prog.Start))
	v.now.clear()
	v.then.clear()
	for len(v.stack) > 0 {
		pc := v.stack[len(v.stack)-1]
		v.stack = v.stack[:len(v.stack)-1]
		if !v.now.add(pc) {
			continue
		}
		switch in := &v.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			v.stack = append(v.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			v.stack = append(v.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^cond == 0 {
				v.stack = append(v.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if r != broken && in.MatchRune(r) {
				v.then.add(in.Out)
			}
		}
	}
	v.now, v.then = v.then, v.now
	return false
}

// pcSet is a set of instructions that is emptied in no time.
type pcSet struct {
	list []uint32
	at   []uint32
}

func newPCSet(n int) *pcSet { return &pcSet{at: make([]uint32, n)} }

func (s *pcSet) clear() { s.list = s.list[:0] }

// add reports whether pc is new.
func (s *pcSet) add(pc uint32) bool {
	if i := s.at[pc]; int(i) < len(s.list) && s.list[i] == pc {
		return false
	}
	s.at[pc] = uint32(len(s.list))
	s.list = append(s.list, pc)
	return true
}

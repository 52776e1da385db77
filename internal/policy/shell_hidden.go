package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxReveals is how often a script is parsed again because of comments that
// hide commands from the parser.
const maxReveals = 8

// joinedComments returns where the backslashes are that stand at the end of a
// line in which a comment is. To bash such a comment ends with its line; the
// parser takes the backslash for a continuation and the next line for a part of
// the comment. What comes after a syntax error isn't looked at.
func joinedComments(src string, file *syntax.File, err error) []int {
	if err != nil {
		return nil
	}
	marks := mayJoin(src)
	if len(marks) == 0 {
		return nil
	}
	var texts [][2]int // from, to
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			texts = append(texts, [2]int{int(n.Pos().Offset()), int(n.End().Offset())})
		}
		return true
	})
	slices.SortFunc(texts, func(a, b [2]int) int { return a[0] - b[0] })
	var ends []int
	for _, m := range marks {
		i, found := slices.BinarySearchFunc(texts, m.hash, func(t [2]int, at int) int { return t[0] - at })
		if !found && i > 0 {
			i--
		}
		if i < len(texts) && texts[i][0] <= m.hash && m.hash < texts[i][1] {
			continue // the text of a word or of a here-document
		}
		ends = append(ends, m.end)
	}
	return slices.Compact(ends)
}

type hashMark struct{ hash, end int }

// mayJoin finds each # that could begin a comment in a line which ends in a
// backslash.
func mayJoin(src string) []hashMark {
	var out []hashMark
	for from := 0; ; {
		i := strings.Index(src[from:], "\\\n")
		if i < 0 {
			return out
		}
		end := from + i
		for k := from + strings.LastIndexByte(src[from:end], '\n') + 1; k < end; k++ {
			if src[k] == '#' && (k == 0 || strings.IndexByte(" \t\n;&|()<>`", src[k-1]) >= 0) {
				out = append(out, hashMark{k, end})
			}
		}
		from = end + 2
	}
}

// without returns src with something in the places of backslashes that means
// nothing in a comment.
func without(src string, ends []int) string {
	b := []byte(src)
	for _, i := range ends {
		b[i] = '#'
	}
	return string(b)
}

// misread is the verdict on a script that a person may read in another way
// than bash.
func misread(v Verdict) Verdict {
	if v.Error == "" {
		v.Error = "not understood: a comment ends in a backslash, and what looks like its next line is a command"
	}
	return v
}

// descriptors are a set of file descriptors: bit n is n, and the last one all
// those that aren't known.
type descriptors uint64

const otherDescriptors = 63

func (d descriptors) has(n uint) bool {
	return d&(1<<otherDescriptors|1<<min(n, otherDescriptors)) != 0
}

// with adds those that redirections open to read a file: /dev/stdin and its
// like open that file again, and to write.
func (d descriptors) with(list []*syntax.Redirect) descriptors {
	for range 2 { // a copy may be made before what it is a copy of is known
		for _, r := range list {
			if d.reads(r) {
				d |= 1 << made(r)
			}
		}
	}
	return d
}

func (d descriptors) reads(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		return r.Word.Lit() != "/dev/null" && !isProcSubst(r.Word)
	case syntax.DplIn, syntax.DplOut:
		n, ok := descriptor(strings.TrimSuffix(r.Word.Lit(), "-"))
		return !ok || d.has(n) // "-" closes it, and then its name leads nowhere
	}
	return false
}

// made returns the descriptor that a redirection makes.
func made(r *syntax.Redirect) uint {
	switch {
	case r.N != nil:
		if n, ok := descriptor(r.N.Value); ok {
			return n
		}
		return otherDescriptors
	case r.Op == syntax.DplOut:
		return 1
	}
	return 0
}

// descriptor reads a number; one that is too great counts as one that isn't
// known.
func descriptor(s string) (uint, bool) {
	if s == "" || !digitsOnly(s) {
		return otherDescriptors, false
	}
	n := uint(0)
	for _, c := range s {
		n = min(10*n+uint(c-'0'), otherDescriptors)
	}
	return n, true
}

// opened reports whether a device is a descriptor that may be a file which was
// opened to be read.
func (j *judge) opened(abs string) bool {
	n, ok := uint(0), true
	switch abs {
	case "/dev/stdin":
	case "/dev/stdout":
		n = 1
	case "/dev/stderr":
		n = 2
	default:
		s, is := strings.CutPrefix(abs, "/dev/fd/")
		if !is {
			return false
		}
		n, ok = descriptor(s)
	}
	return !ok || j.inputs.has(n) || j.called && mayOpen(j.src, n)
}

// mayOpen reports whether a script in which functions are called seems to open
// a descriptor to read.
func mayOpen(src string, n uint) bool {
	for i := range len(src) {
		if src[i] == '<' && (n == 0 || i > 0 && (src[i-1] == '}' || src[i-1] >= '0' && src[i-1] <= '9')) {
			return true
		}
	}
	return false
}

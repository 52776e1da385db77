package policy

import (
	"hash/maphash"
	"slices"
)

// partSet keeps the parts of one script apart, so that a command which stands
// in it thousands of times is one part. The zero value is ready for use.
type partSet struct {
	n    int // parts that are settled
	hash maphash.Hash
	at   map[uint64]int // where the part with a hash is
}

// keptParts is the number of parts from which on none is kept twice: short
// command lines are shown as they are.
const keptParts = 8

// settle returns found without the parts that equal an earlier one. Parts
// that it has returned before must not have changed.
func (s *partSet) settle(found []Part) []Part {
	s.n = min(max(s.n, keptParts), len(found))
	out := found[:s.n]
	for i := s.n; i < len(found); i++ {
		if s.add(&found[i], out) {
			out = append(out, found[i])
		}
	}
	clear(found[len(out):])
	s.n = len(out)
	return out
}

// add reports whether p equals none of parts, and notes that it will be the
// next of them.
func (s *partSet) add(p *Part, parts []Part) bool {
	h := s.sum(p)
	if i, ok := s.at[h]; ok && parts[i].same(p) {
		return false
	}
	if s.at == nil {
		s.at = map[uint64]int{}
	}
	s.at[h] = len(parts)
	return true
}

// sum hashes what tells most parts apart.
func (s *partSet) sum(p *Part) uint64 {
	s.hash.Reset()
	s.hash.WriteString(p.Text)
	s.hash.WriteByte(byte(p.Kind))
	s.hash.WriteString(p.Via)
	s.hash.WriteByte(0)
	s.hash.WriteString(p.Cwd)
	for _, a := range p.Argv {
		s.hash.WriteByte(0)
		s.hash.WriteString(a)
	}
	for i := range p.Files {
		s.hash.WriteByte(1)
		s.hash.WriteString(p.Files[i].Abs)
	}
	return s.hash.Sum64()
}

func (p *Part) same(q *Part) bool {
	return p.Kind == q.Kind && p.Exact == q.Exact && p.Odd == q.Odd && p.Wrapper == q.Wrapper &&
		p.Text == q.Text && p.Reason == q.Reason && p.Via == q.Via && p.Cwd == q.Cwd &&
		slices.Equal(p.Argv, q.Argv) && slices.Equal(p.Env, q.Env) && slices.Equal(p.Files, q.Files) && slices.Equal(p.Hosts, q.Hosts)
}

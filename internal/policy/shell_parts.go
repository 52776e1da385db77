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
	at   hashIndex
}

// keptParts is the number of parts from which on none is kept twice: short
// command lines are shown as they are.
const keptParts = 8

// settle returns found without the parts that equal an earlier one. Parts
// that it has returned before must not have changed.
func (s *partSet) settle(found []Part) []Part {
	s.n = min(max(s.n, keptParts), len(found))
	if s.n == len(found) {
		return found
	}
	out := found[:s.n]
	for i := s.n; i < len(found); i++ {
		p := &found[i]
		if s.at.add(s.sum(p), len(out), func(k int) bool { return out[k].same(p) }) {
			if i == len(out) {
				out = found[:i+1]
			} else {
				out = append(out, *p)
			}
		}
	}
	clear(found[len(out):])
	s.n = len(out)
	return out
}

// skip notes that found holds nothing that equals another part of it.
func (s *partSet) skip(found []Part) { s.n = len(found) }

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

// hashIndex finds things that are kept elsewhere by their hashes, with less
// work than a map. The zero value is empty.
type hashIndex struct {
	slots []hashSlot // open addressing; a power of two, or none
	used  int
}

type hashSlot struct {
	hash uint64
	at   int // from 1; 0: free
}

// add notes that the thing with a hash is number at, and reports false if one
// that is the same is there.
func (x *hashIndex) add(hash uint64, at int, same func(at int) bool) bool {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	i := hash
	for ; ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if s.at == 0 {
			*s = hashSlot{hash, at + 1}
			x.used++
			return true
		}
		if s.hash == hash && same(s.at-1) {
			return false
		}
	}
}

func (x *hashIndex) grow() {
	old := x.slots
	x.slots = make([]hashSlot, max(64, 4*len(old)))
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		i := s.hash
		for x.slots[i&uint64(len(x.slots)-1)].at != 0 {
			i++
		}
		x.slots[i&uint64(len(x.slots)-1)] = s
	}
}

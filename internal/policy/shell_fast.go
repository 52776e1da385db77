package policy

import (
	"hash/maphash"
	"slices"
	"strings"
)

// fastFrom is the length from which a command line is first tried without
// the parser, which takes several times as long.
const fastFrom = 1024

// reserved are the words that mean something else than a command's name where
// a command begins, and the commands that change what comes after them.
var reserved = setOf(strings.Fields("if then elif else fi for while until do done case esac in select function time coproc { } ! [[ ]] export declare local typeset readonly nameref let cd pushd popd eval trap set unset read exec source . alias shopt enable hash builtin command history @test"))

// fast judges a plain list of plain commands: words of harmless characters
// between && || ; | and newlines, nothing that expands or quotes. It reports
// false, having done nothing, for everything else.
func (j *judge) fast(src string) bool {
	if !plainList(src) {
		return false
	}
	j.src = src
	var seen hashIndex
	var texts []string
	seed := maphash.MakeSeed()
	var ws []word
	last := ""
	for start := 0; start < len(src); {
		end := start
		for end < len(src) && plainByte[src[end]] != 3 {
			end++
		}
		text := trimBlanks(src[start:end])
		start = end
		for start < len(src) && plainByte[src[start]] != 1 {
			start++
		}
		j.budget.nodes += 3
		if text == last || text == "" {
			continue
		}
		last = text
		if !seen.add(maphash.String(seed, text), len(texts), func(at int) bool { return texts[at] == text }) {
			continue
		}
		texts = append(texts, text)
		if !j.count() {
			return true
		}
		ws = ws[:0]
		for f := range strings.FieldsSeq(text) {
			ws = append(ws, lit(f))
		}
		j.callMark = len(j.found)
		j.room(start)
		j.simple(ws, text)
		if len(j.found) == j.callMark+1 && j.callMark == j.kept.n {
			j.kept.skip(j.found) // no other has this text and stands in no other command
		} else {
			j.settle()
		}
	}
	return true
}

// room makes place for the parts that the rest of a long line may have, so
// that they aren't moved again and again.
func (j *judge) room(from int) {
	if len(j.found) < cap(j.found) || len(j.found) < 2*keptParts || from > len(j.src) {
		return
	}
	rest := j.src[from:]
	n := strings.Count(rest, ";") + strings.Count(rest, "\n") + strings.Count(rest, "&&") + strings.Count(rest, "||")
	j.found = slices.Grow(j.found, min(n+2, 16*1024))
}

// plainByte says of each byte whether it may stand in a plain list: 1 in a
// word, 2 a blank, 3 a separator.
var plainByte = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-32] = 1, 1
	}
	for _, c := range "0123456789_./-:,%+" {
		t[c] = 1
	}
	t[' '], t['\t'] = 2, 2
	t['&'], t['|'], t[';'], t['\n'] = 3, 3, 3, 3
	return t
}()

// plainList reports whether a text is a list that fast may judge. Networks
// in pipes to interpreters are left to the walker.
func plainList(src string) bool {
	begin := true  // a command begins here
	name := ""     // of a command that has been looked up
	needed := true // a command must come
	for i := 0; i < len(src); {
		switch c := src[i]; plainByte[c] {
		case 1:
			from := i
			for i < len(src) && plainByte[src[i]] == 1 {
				i++
			}
			if begin && src[from:i] != name {
				if name = src[from:i]; reserved[name] {
					return false
				}
			}
			begin, needed = false, false
		case 2:
			i++
		case 3:
			if c == '\n' {
				begin = true
				i++
				continue
			}
			if begin {
				return false // an empty command
			}
			if c == ';' {
				i++
			} else {
				if i+1 >= len(src) || src[i+1] != c || c == '|' && src[i+1] != '|' {
					return false // & and | alone
				}
				i += 2
				needed = true
			}
			begin = true
		default:
			return false
		}
	}
	return !needed
}

func trimBlanks(s string) string {
	for s != "" && plainByte[s[0]] == 2 {
		s = s[1:]
	}
	for s != "" && plainByte[s[len(s)-1]] == 2 {
		s = s[:len(s)-1]
	}
	return s
}

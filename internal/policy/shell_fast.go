package policy

import (
	"hash/maphash"
	"slices"
	"strings"
)

// fastFrom is the length from which a command line is first tried without
// the parser, which takes several times as long.
const fastFrom = 1024

// reserved reports whether a word means something else than a command's name
// where a command begins, or is a command that changes what comes after it.
func reserved(word string) bool {
	switch word {
	case "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function", "time", "coproc", "{", "}", "!", "[[", "]]", "export", "declare", "local", "typeset", "readonly", "nameref", "let", "cd", "pushd", "popd", "eval", "trap", "set", "unset", "read", "exec", "source", ".", "alias", "shopt", "enable", "hash", "builtin", "command", "history", "@test":
		return true
	}
	return false
}

// plainCommand is one of a plain list.
type plainCommand struct {
	text string
	n    int // which of the list it is, from 1
	end  int // where the next one begins
}

// fast judges a plain list of plain commands: words of harmless characters
// between && || ; | and newlines, nothing that expands or quotes. It reports
// false, having done nothing, for everything else.
func (j *judge) fast(src string) bool {
	list, n, ok := plainList(src)
	if !ok {
		return false
	}
	j.src = src
	var ws []word
	counted := 0
	for _, c := range list {
		j.budget.nodes += 3 * (c.n - counted)
		counted = c.n
		if !j.count() {
			return true
		}
		ws = ws[:0]
		for f := range strings.FieldsSeq(c.text) {
			ws = append(ws, lit(f))
		}
		j.callMark = len(j.found)
		j.room(c.end)
		j.simple(ws, c.text)
		if len(j.found) == j.callMark+1 && j.callMark == j.kept.n {
			j.kept.skip(j.found) // no other has this text and stands in no other command
		} else {
			j.settle()
		}
	}
	j.budget.nodes += 3 * (n - counted)
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

// plainList takes a text apart that is a list which fast may judge: its
// different commands, and how many it has in all; false if it is something
// else. Networks in pipes to interpreters are left to the walker.
func plainList(src string) (list []plainCommand, n int, ok bool) {
	p := plainLists{src: src, seed: maphash.MakeSeed(), needed: true}
	for p.at < len(src) {
		if !p.command() {
			return nil, 0, false
		}
	}
	return p.list, p.n, !p.needed
}

// plainLists reads a plain list.
type plainLists struct {
	src    string
	at     int
	needed bool // a command must come

	list []plainCommand
	n    int
	seen hashIndex
	seed maphash.Seed
}

// command reads one command and the separator behind it; false if the list is
// no plain one. Further ones that are written the same are passed over.
func (p *plainLists) command() bool {
	src, from := p.src, p.at
	i := from
	for i < len(src) && (plainByte[src[i]] == 2 || src[i] == '\n') {
		i++
	}
	start := i
	for i < len(src) && plainByte[src[i]] == 1 {
		i++
	}
	if start == i {
		p.at = i
		return i == len(src) // an empty command
	}
	if reserved(src[start:i]) {
		return false
	}
	end := i
	for i < len(src) && plainByte[src[i]] <= 2 {
		if plainByte[src[i]] == 0 {
			return false
		}
		if i++; plainByte[src[i-1]] == 1 {
			end = i
		}
	}
	p.needed = false
	if i < len(src) && !p.separator(&i) {
		return false
	}
	p.at = i
	p.n++
	p.add(src[start:end])
	for same := src[from:i]; strings.HasPrefix(src[p.at:], same); p.n++ {
		p.at += len(same)
	}
	return true
}

// separator reads && || ; or a newline.
func (p *plainLists) separator(i *int) bool {
	switch c := p.src[*i]; {
	case c == ';' || c == '\n':
		*i++
	case *i+1 < len(p.src) && p.src[*i+1] == c: // & and | alone are something else
		*i += 2
		p.needed = true
	default:
		return false
	}
	return true
}

// add notes a command unless it has been there.
func (p *plainLists) add(text string) {
	known := func(at int) bool { return p.list[at].text == text }
	if p.seen.add(maphash.String(p.seed, text), len(p.list), known) {
		p.list = append(p.list, plainCommand{text, p.n, p.at})
	}
}

package openai

import (
	"strings"
)

// callList assembles the tool calls that the API delivers as such, from
// fragments. The first unfinished one is passed on while it comes, as far as
// its arguments are sound JSON; the others wait, so that at most one block is
// open.
type callList struct {
	a         *answer
	list      []*nativeCall
	recovered []call // calls already found in the text
}

type nativeCall struct {
	index    int // the server's; -1 if it gave none
	id, name string
	raw      []byte
	scan     argScan
	started  bool
	ended    bool
	sent     int // bytes of raw that were emitted, from scan.start
	given    int // calls made of it
}

// waiting reports whether a call is unfinished.
func (l *callList) waiting() bool { return l.front() != nil }

func (l *callList) front() *nativeCall {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].ended {
			if i+1 < len(l.list) {
				return l.list[i+1]
			}
			return nil
		}
	}
	if len(l.list) > 0 {
		return l.list[0]
	}
	return nil
}

// add takes a fragment, whose arguments are args as text.
func (l *callList) add(f *fragment, args string) {
	c := l.find(f)
	if c == nil {
		if f.ID == "" && f.Function.Name == "" && strings.TrimSpace(args) == "" {
			return
		}
		if len(l.list) == 0 {
			l.a.text.closeAsText() // text before the calls is complete
		}
		c = &nativeCall{index: -1}
		if f.Index != nil {
			c.index = *f.Index
		}
		l.list = append(l.list, c)
	}
	if c.id == "" {
		c.id = string(f.ID)
	}
	c.addName(string(f.Function.Name), l.a.tools)
	c.raw = append(c.raw, args...)
	l.advance()
}

// find returns the call that f continues, or nil if it begins one. A call
// begins with a new index, or, at servers that give all of them the same or
// none, with another id and a name.
func (l *callList) find(f *fragment) *nativeCall {
	for i := len(l.list) - 1; i >= 0; i-- {
		c := l.list[i]
		switch {
		case f.Index == nil && f.Function.Name != "" && (len(c.raw) > 0 || c.name != "" && f.ID != ""):
			return nil
		case f.Index != nil && c.index != *f.Index:
			continue
		case f.ID != "" && c.id != "" && string(f.ID) != c.id && f.Function.Name != "":
			return nil
		}
		return c
	}
	return nil
}

// addName takes a name, whole, in fragments, or repeated in every fragment.
func (c *nativeCall) addName(name string, tools *toolset) {
	switch {
	case name == "" || name == c.name || len(c.raw) > 0 && c.name != "":
	case c.name == "" || tools.known(name) && !tools.known(c.name+name):
		c.name = name
	default:
		c.name += name
	}
}

// argText is an arguments value as text: a string's value, or an object as it
// is written.
func argText(raw []byte) string {
	if len(raw) > 0 && raw[0] != '"' && string(raw) != "null" {
		return string(raw)
	}
	s, _ := plain(raw)
	return s
}

// advance passes on what can be.
func (l *callList) advance() {
	for {
		c := l.front()
		if c == nil {
			return
		}
		last := c == l.list[len(l.list)-1]
		if len(l.recovered) == 0 {
			l.stream(c)
		}
		if last || !c.scan.done {
			return
		}
		l.end(c, false)
	}
}

// stream emits the part of c's arguments that is certainly sound.
func (l *callList) stream(c *nativeCall) {
	c.scan.schema = l.a.tools.schema(c.name)
	c.scan.feed(c.raw)
	if c.name == "" || c.scan.safe == 0 {
		return
	}
	if !c.started {
		c.started = true
		c.sent = c.scan.start
		l.a.startCall(c.id, l.a.tools.resolveOr(c.name))
	}
	if c.scan.safe > c.sent {
		l.a.callInput(string(c.raw[c.sent:c.scan.safe]))
		c.sent = c.scan.safe
	}
}

// close ends all calls. cut: the answer stopped at its length limit, so that
// what is incomplete must not be completed.
func (l *callList) close(cut bool) {
	for _, c := range l.list {
		if c.ended {
			l.extra(c, cut)
			continue
		}
		l.end(c, cut)
	}
}

// end finishes a call with all of its arguments. Arguments that hold several
// objects become several calls.
func (l *callList) end(c *nativeCall, cut bool) {
	c.ended = true
	name := l.a.tools.resolveOr(c.name)
	if name == "" {
		name = "unnamed_tool"
	}
	objects, invalid := parseArgs(string(c.raw), l.a.tools.schema(name), cut)
	if c.name == "" && invalid == "" {
		invalid = "the call names no tool: " + clip(string(c.raw))
	}
	if len(objects) == 0 {
		objects = []string{"{}"}
	}
	l.first(c, call{name: name, args: objects[0], invalid: invalid})
	for _, o := range objects[1:] {
		l.a.wholeCall("", call{name: name, args: o})
	}
	c.sent, c.given = len(c.raw), len(objects)
}

// first emits the rest of a call that may have been begun.
func (l *callList) first(c *nativeCall, whole call) {
	if !c.started {
		if l.wasRecovered(whole) {
			return
		}
		l.a.wholeCall(c.id, whole)
		return
	}
	told := string(c.raw[c.scan.start:c.sent])
	rest, ok := strings.CutPrefix(whole.args, told)
	if !ok && whole.invalid == "" {
		whole.invalid = "the arguments are not a JSON object: " + clip(string(c.raw))
	}
	if whole.invalid == "" {
		l.a.callInput(rest)
	}
	l.a.endCall(whole.invalid)
}

// extra handles arguments that came after their call seemed complete.
func (l *callList) extra(c *nativeCall, cut bool) {
	rest := strings.TrimSpace(string(c.raw[c.sent:]))
	if !strings.HasPrefix(rest, "{") {
		return
	}
	name := l.a.tools.resolveOr(c.name)
	objects, invalid := parseArgs(string(c.raw), l.a.tools.schema(name), cut)
	if invalid != "" || len(objects) <= c.given {
		return
	}
	for _, o := range objects[c.given:] {
		l.a.wholeCall("", call{name: name, args: o})
	}
}

// wasRecovered reports whether the same call was found in the text before:
// some servers deliver it both ways.
func (l *callList) wasRecovered(c call) bool {
	for _, r := range l.recovered {
		if r.name == c.name && sameJSON(r.args, c.args) {
			return true
		}
	}
	return false
}

package openai

import (
	"strings"
)

// tagCall reads the XML forms of a call:
//
//	<function=NAME><parameter=KEY>VALUE</parameter></function>   Qwen coder
//	<function=NAME>{"key": ...}</function>                       Llama 3.1
//	<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>
//	<name>NAME</name><arguments>{...}</arguments>
//	<NAME><KEY>VALUE</KEY></NAME>
func (c *cursor) tagCall() ([]call, fit) {
	start := c.i
	best := fitNo
	for _, form := range []func() (call, fit){c.functionTag, c.invokeTag, c.nameTag, c.toolTag} {
		c.i = start
		k, f := form()
		if f == fitYes {
			return []call{k}, fitYes
		}
		best = max(best, f)
	}
	return nil, best
}

func (c *cursor) functionTag() (call, fit) {
	if f := c.take("<function="); f != fitYes {
		return call{}, f
	}
	given, f := c.upTo(">", 160)
	if f != fitYes {
		return call{}, f
	}
	name, ok := c.tools.resolve(strings.Trim(given, `"' `))
	if !ok {
		return call{}, fitNo
	}
	return c.body(name, "</function>")
}

// upTo is until with a limit on the text's length.
func (c *cursor) upTo(word string, limit int) (string, fit) {
	text, f := c.until(word)
	if f == fitMore && len(c.rest()) > limit+len(word) || len(text) > limit {
		return "", fitNo
	}
	return text, f
}

// invokeTag reads <invoke name="NAME">, also with a name space, and the same
// with other words for invoke.
func (c *cursor) invokeTag() (call, fit) {
	if f := c.take("<"); f != fitYes {
		return call{}, f
	}
	c.namespace()
	word := ""
	for _, w := range []string{"invoke", "function", "tool_call", "tool"} {
		if strings.HasPrefix(c.rest(), w+" ") {
			word = w
			break
		}
		if strings.HasPrefix(w+" ", c.rest()) && !c.eof {
			return call{}, fitMore
		}
	}
	if word == "" {
		return call{}, fitNo
	}
	head, f := c.upTo(">", 200)
	if f != fitYes {
		return call{}, f
	}
	name, ok := c.tools.resolve(attribute(head, "name"))
	if !ok {
		return call{}, fitNo
	}
	if strings.HasSuffix(head, "/") {
		return call{name: name, args: "{}"}, fitYes
	}
	return c.body(name, "</"+word+">")
}

// namespace skips a prefix: "x:" or DeepSeek's.
func (c *cursor) namespace() {
	rest := c.rest()
	if after, ok := strings.CutPrefix(rest, "｜DSML｜"); ok {
		c.i = len(c.s) - len(after)
		return
	}
	for k := 0; k < len(rest) && k < 16; k++ {
		if rest[k] == ':' {
			c.i += k + 1
			return
		}
		if !identByte(rest[k]) {
			return
		}
	}
}

// attribute finds key="value" in the head of a tag.
func attribute(head, key string) string {
	_, v, ok := strings.Cut(head, key)
	if !ok {
		return ""
	}
	v = strings.TrimLeft(v, " \t\r\n=")
	if v == "" {
		return ""
	}
	if v[0] != '"' && v[0] != '\'' {
		word, _, _ := strings.Cut(v, " ")
		return word
	}
	v, _, _ = strings.Cut(v[1:], v[:1])
	return v
}

// body reads the arguments between a tag that named the tool and its closer:
// JSON or parameters.
func (c *cursor) body(name, closer string) (call, fit) {
	c.space()
	if c.atEnd() && !c.eof {
		return call{}, fitMore
	}
	if strings.HasPrefix(c.rest(), "{") {
		return c.jsonArgs(name)
	}
	return c.params(name, closer)
}

// params reads parameter tags up to the closer or whatever else is no
// parameter. The closer itself is taken as noise later.
func (c *cursor) params(name, closer string) (call, fit) {
	a := newArgs(c.tools.schema(name))
	for {
		c.space()
		if c.atEnd() {
			if !c.eof {
				return call{}, fitMore
			}
			break
		}
		start := c.i
		f := c.param(a)
		if f == fitMore {
			return call{}, f
		}
		if f == fitNo {
			c.i = start
			break
		}
	}
	return c.finishParams(name, closer, a)
}

func (c *cursor) finishParams(name, closer string, a *args) (call, fit) {
	switch {
	case c.atEnd() && c.cut:
		return call{name: name, invalid: "the call was cut off at the output limit: " + clip(c.s)}, fitYes
	case c.atEnd() && len(a.keys) == 0 && closer != "":
		return call{}, fitNo
	case c.atEnd() || len(a.keys) > 0:
		return call{name: name, args: a.json()}, fitYes
	}
	token, partial := tokenAt(c.rest(), closers[:])
	switch {
	case partial && !c.eof:
		return call{}, fitMore
	case token == "":
		return call{}, fitNo
	}
	return call{name: name, args: "{}"}, fitYes
}

// param reads <parameter=KEY>VALUE</parameter> or <parameter name="KEY">.
func (c *cursor) param(a *args) fit {
	if f := c.take("<"); f != fitYes {
		return f
	}
	dsml := strings.HasPrefix(c.rest(), "｜DSML｜")
	if strings.HasPrefix("｜DSML｜", c.rest()) && !c.eof {
		return fitMore
	}
	c.namespace()
	word, closer := "", "</parameter>"
	for _, w := range []string{"parameter", "param", "arg"} {
		if strings.HasPrefix(w, c.rest()) && !c.eof {
			return fitMore
		}
		if strings.HasPrefix(c.rest(), w) {
			word, closer = w, "</"+w+">"
			break
		}
	}
	if word == "" {
		return fitNo
	}
	if dsml {
		closer = "</｜DSML｜parameter>"
	}
	c.i += len(word)
	head, f := c.upTo(">", 200)
	if f != fitYes {
		return f
	}
	qwen := strings.HasPrefix(head, "=")
	key := strings.Trim(strings.TrimPrefix(head, "="), `"' `)
	if !qwen {
		key = attribute(head, "name")
	}
	if key == "" {
		return fitNo
	}
	value, f := c.paramValue(a, closer, qwen)
	if f == fitYes {
		a.add(key, value)
	}
	return f
}

// paramValue reads a value up to its closer. A closer that is missing is
// replaced by the next parameter of the tool at a line's beginning, the call's
// end, or the end of all.
func (c *cursor) paramValue(a *args, closer string, qwen bool) (string, fit) {
	rest := c.rest()
	end := strings.Index(rest, closer)
	length := len(closer)
	next := c.nextParam(a, rest)
	switch {
	case end < 0 && !c.eof:
		return "", fitMore
	case next >= 0 && (end < 0 || next < end):
		end, length = next, 0
	case end < 0 && c.cut:
		c.i = len(c.s)
		return "", fitYes // finishParams reports it
	case end < 0:
		end, length = callEnd(rest), 0
	}
	c.i += end + length
	return trimValue(rest[:end], qwen), fitYes
}

// nextParam is the place in s of a line that begins another parameter of the
// tool, or -1.
func (c *cursor) nextParam(a *args, s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], "\n<parameter=")
		if i < 0 {
			return -1
		}
		i += from
		key, _, ok := strings.Cut(s[i+len("\n<parameter="):], ">")
		if ok && a.schema.has(key) && !a.has(key) {
			return i + 1
		}
		from = i + 1
	}
}

// callEnd is where a call without its last closers ends.
func callEnd(s string) int {
	end := len(s)
	for _, closer := range []string{"</function>", "</invoke>", "</tool_call>"} {
		if i := strings.Index(s, closer); i >= 0 {
			end = min(end, i)
		}
	}
	return end
}

// trimValue removes the line breaks that the form itself puts around a value.
func trimValue(v string, qwen bool) string {
	t, ok := strings.CutPrefix(v, "\n")
	if ok || qwen {
		t = strings.TrimSuffix(t, "\n")
	}
	return t
}

// nameTag reads <name>NAME</name> and an element with the arguments.
func (c *cursor) nameTag() (call, fit) {
	given, f := c.element([]string{"name", "tool_name", "function_name", "tool", "function"}, 130)
	if f != fitYes {
		return call{}, f
	}
	name, ok := c.tools.resolve(given)
	if !ok {
		return call{}, fitNo
	}
	c.space()
	if c.atEnd() {
		return call{}, c.more()
	}
	body, f := c.element([]string{"arguments", "parameters", "args", "input", "tool_input"}, 64<<20)
	if f != fitYes {
		return call{}, f
	}
	if t := strings.TrimSpace(body); strings.HasPrefix(t, "<") {
		return c.childArgs(name, t)
	}
	objects, invalid := parseArgs(body, c.tools.schema(name), false)
	if invalid != "" || len(objects) != 1 {
		return call{name: name, invalid: "the arguments are not a JSON object: " + clip(body)}, fitYes
	}
	return call{name: name, args: objects[0]}, fitYes
}

// element reads <word>text</word> for one of words; the text is no longer than
// limit.
func (c *cursor) element(words []string, limit int) (string, fit) {
	best := fitNo
	for _, w := range words {
		start := c.i
		f := c.take("<" + w + ">")
		if f == fitYes {
			return c.upTo("</"+w+">", limit)
		}
		c.i = start
		best = max(best, f)
	}
	return "", best
}

// childArgs reads <KEY>VALUE</KEY> elements.
func (c *cursor) childArgs(name, s string) (call, fit) {
	inner := cursor{s: s, eof: true, tools: c.tools}
	a := newArgs(c.tools.schema(name))
	for !inner.atEnd() {
		if f := inner.child(a); f != fitYes {
			return call{}, fitNo
		}
		inner.space()
	}
	return call{name: name, args: a.json()}, fitYes
}

// child reads one <KEY>VALUE</KEY> whose key the tool has.
func (c *cursor) child(a *args) fit {
	if f := c.take("<"); f != fitYes {
		return f
	}
	key, f := c.upTo(">", 100)
	if f != fitYes {
		return f
	}
	if !a.schema.has(key) {
		return fitNo
	}
	value, f := c.until("</" + key + ">")
	if f == fitYes {
		a.add(key, trimValue(value, false))
	}
	return f
}

// toolTag reads <NAME> with child elements for the arguments.
func (c *cursor) toolTag() (call, fit) {
	if f := c.take("<"); f != fitYes {
		return call{}, f
	}
	if !c.tools.anyStarts(c.rest()) {
		return call{}, fitNo
	}
	tag, f := c.upTo(">", 100)
	if f != fitYes {
		return call{}, f
	}
	if !c.tools.known(tag) {
		return call{}, fitNo
	}
	a := newArgs(c.tools.schema(tag))
	closer := "</" + tag + ">"
	for {
		c.space()
		switch {
		case strings.HasPrefix(c.rest(), closer) && len(a.keys) > 0:
			c.i += len(closer)
			return call{name: tag, args: a.json()}, fitYes
		case strings.HasPrefix(closer, c.rest()) && !c.eof:
			return call{}, fitMore
		case c.atEnd() && len(a.keys) > 0 && !c.cut:
			return call{name: tag, args: a.json()}, fitYes
		case c.atEnd():
			return call{}, fitNo
		}
		if f := c.child(a); f != fitYes {
			return call{}, f
		}
	}
}

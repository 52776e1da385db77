package openai

import (
	"encoding/json"
	"slices"
	"strings"
)

// The forms in which models write a call. Each parser begins at the cursor and
// leaves it behind the call; unless it returns fitYes, the cursor's place means
// nothing.

// calls reads the call, or list of calls, at the cursor. marked says that a
// marker stands before it, which lets a bare name begin a call.
func (c *cursor) calls(marked bool) ([]call, fit) {
	if c.atEnd() {
		return nil, c.more()
	}
	switch b := c.s[c.i]; {
	case b == '{':
		return c.jsonCalls(marked)
	case b == '[':
		return c.listCalls(marked)
	case b == '<':
		return c.tagCall()
	case b == '`' && marked:
		return c.fencedCalls()
	case marked && (identByte(b) || b == '`'):
		return one(c.namedCall())
	case identByte(b):
		return one(c.leadCall())
	}
	return nil, fitNo
}

func one(k call, f fit) ([]call, fit) {
	if f != fitYes {
		return nil, f
	}
	return []call{k}, fitYes
}

// jsonCalls reads {"name": ..., "arguments": ...} in one of its spellings.
// Without a marker before it (lenient false), strictCall judges as well.
func (c *cursor) jsonCalls(lenient bool) ([]call, fit) {
	src := c.rest()
	if !lenient && c.notACall(src) {
		return nil, fitNo
	}
	out, n, f := repairJSON(src, false)
	if f == fitMore && c.eof {
		f = fitNo
		if !c.cut {
			out, n, f = repairJSON(src, true)
		}
	}
	switch f {
	case fitMore:
		return nil, fitMore
	case fitNo:
		if lenient {
			return c.brokenCall(src)
		}
		return nil, fitNo
	}
	calls := c.callsOf(json.RawMessage(out), lenient)
	if len(calls) == 0 {
		return nil, fitNo
	}
	c.i += n
	return calls, fitYes
}

// brokenCall is a call after a marker whose JSON cannot be read but whose tool
// can: the model is told. It reaches to the next marker or closer.
func (c *cursor) brokenCall(src string) ([]call, fit) {
	end := nextNoise(src)
	last := end < 0 // nothing follows it
	if last {
		if !c.eof {
			return nil, fitMore
		}
		end = len(src)
	}
	if end < len(src) {
		if out, n, f := repairJSON(src[:end], true); f == fitYes && n == end {
			calls := c.callsOf(json.RawMessage(out), true)
			c.i += end
			return calls, fitOf(len(calls) > 0)
		}
	}
	name, ok := c.tools.resolve(nameIn(src[:end]))
	if !ok {
		return nil, fitNo
	}
	c.i += end
	why := "the call is not valid JSON: "
	if c.cut && last { // else whether the end is known by now would decide
		why = "the call was cut off at the output limit: "
	}
	return []call{{name: name, invalid: why + clip(src[:end])}}, fitYes
}

func fitOf(ok bool) fit {
	if ok {
		return fitYes
	}
	return fitNo
}

// nextNoise is the place of the first marker or closer in s, or -1.
func nextNoise(s string) int {
	for i := 0; i < len(s); i++ {
		if (s[i] == '<' || s[i] == '[') && noiseAt(s[i:]) > 0 {
			return i
		}
	}
	return -1
}

// nameIn finds the value of the first "name" in broken JSON.
func nameIn(s string) string {
	for _, key := range []string{`"name"`, `'name'`, `"tool_name"`, `"tool"`, `"function"`, "name"} {
		_, after, ok := strings.Cut(s, key)
		if !ok {
			continue
		}
		after = strings.TrimLeft(after, " \t\r\n:")
		if after == "" || after[0] != '"' && after[0] != '\'' {
			continue
		}
		if name, _, ok := strings.Cut(after[1:], after[:1]); ok {
			return name
		}
	}
	return ""
}

// callsOf interprets a JSON value as calls; nil if it is anything else.
func (c *cursor) callsOf(v json.RawMessage, lenient bool) []call {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil {
		var calls []call
		for _, e := range list {
			k := c.callsOf(e, lenient)
			if len(k) != 1 {
				return nil
			}
			calls = append(calls, k...)
		}
		return calls
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(v, &m) != nil {
		return nil
	}
	for _, key := range []string{"tool_calls", "function_call", "tool_call"} {
		if inner, ok := m[key]; ok {
			return c.callsOf(inner, lenient)
		}
	}
	if inner := m["function"]; len(inner) > 0 && inner[0] == '{' {
		return c.callsOf(inner, lenient)
	}
	return c.callOf(m, lenient)
}

func (c *cursor) callOf(m map[string]json.RawMessage, lenient bool) []call {
	nameKey, argsKey := firstKey(m, nameKeys[:]), firstKey(m, argsKeys[:])
	var given string
	if json.Unmarshal(m[nameKey], &given) != nil {
		if lenient {
			return c.callByKey(m)
		}
		return nil
	}
	name, ok := c.tools.resolve(given)
	if !ok {
		return nil
	}
	schema := c.tools.schema(name)
	if argsKey == "" {
		return flatCall(m, nameKey, name, schema, lenient)
	}
	args, invalid := parseArgs(argText(m[argsKey]), schema, false)
	if invalid == "" && len(args) != 1 {
		invalid = "the arguments are not one JSON object: " + clip(string(m[argsKey]))
	}
	if !lenient && (invalid != "" || !strictCall(m, args[0], schema)) {
		return nil
	}
	k := call{name: name, invalid: invalid}
	if invalid == "" {
		k.args = args[0]
	}
	return []call{k}
}

// firstKey is the first of keys that m has, or "".
func firstKey(m map[string]json.RawMessage, keys []string) string {
	for _, k := range keys {
		if _, ok := m[k]; ok {
			return k
		}
	}
	return ""
}

// callByKey reads {"read_file": {...}}.
func (c *cursor) callByKey(m map[string]json.RawMessage) []call {
	if len(m) != 1 {
		return nil
	}
	for key, v := range m {
		name, ok := c.tools.resolve(key)
		if ok && len(v) > 0 && v[0] == '{' {
			return []call{{name: name, args: string(v)}}
		}
	}
	return nil
}

// flatCall reads {"name": "read_file", "path": ...}.
func flatCall(m map[string]json.RawMessage, nameKey, name string, schema toolSchema, lenient bool) []call {
	if !lenient || schema.has(nameKey) {
		return nil
	}
	args := make(map[string]json.RawMessage)
	for key, v := range m {
		switch {
		case key == nameKey:
		case schema.has(key):
			args[key] = v
		case !isSideKey(key):
			return nil
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	return []call{{name: name, args: string(text)}}
}

// strictCall is the stricter judgement on JSON that no marker announces, which
// may be data that merely looks like a call: nothing but a call's own keys, and
// arguments that fit the tool.
func strictCall(m map[string]json.RawMessage, args string, schema toolSchema) bool {
	for key := range m {
		if !isNameKey(key) && !isArgsKey(key) && !isSideKey(key) {
			return false
		}
	}
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &given) != nil {
		return false
	}
	for key := range given {
		if len(schema.Properties) > 0 && !schema.has(key) {
			return false
		}
	}
	for _, key := range schema.Required {
		if _, ok := given[key]; !ok {
			return false
		}
	}
	return true
}

// notACall reports whether the beginning of an object without a marker shows
// already that it is not a call: by its first key, or by a name that is no
// tool's. It lets ordinary JSON pass on at once.
func (c *cursor) notACall(src string) bool {
	s := strings.TrimLeft(src, "{[ \t\r\n")
	if s == "" {
		return false
	}
	key, rest, ok := quoted(s)
	if !ok {
		return rest == ""
	}
	if !isNameKey(key) && !isArgsKey(key) && !isSideKey(key) && key != "tool_calls" && key != "function_call" && key != "tool_call" {
		return true
	}
	rest = strings.TrimLeft(rest, ": \t\r\n")
	if key == "type" {
		kind, _, ok := quoted(rest + " ")
		return ok && !strings.Contains(kind, "function") && !strings.Contains(kind, "tool")
	}
	if !isNameKey(key) {
		return false
	}
	if rest == "" || rest[0] == '{' && key == "function" {
		return false
	}
	name, rest, ok := quoted(rest)
	if !ok {
		return rest == ""
	}
	_, ok = c.tools.resolve(name)
	return !ok
}

// quoted reads a quoted word without escapes. If there is none, rest is "" when
// it is not quoted at all, and s when the closing quote may still come.
func quoted(s string) (word, rest string, ok bool) {
	if s[0] != '"' && s[0] != '\'' {
		return "", "", false
	}
	word, rest, ok = strings.Cut(s[1:], s[:1])
	if !ok {
		return "", s, false
	}
	return word, rest, true
}

// listCalls reads [{...}, ...] or [name(...), ...].
func (c *cursor) listCalls(lenient bool) ([]call, fit) {
	inner := strings.TrimLeft(c.s[c.i+1:], " \t\r\n")
	if inner == "" {
		return nil, c.more()
	}
	switch {
	case inner[0] == '{':
		return c.jsonCalls(lenient)
	case identByte(inner[0]):
		return c.pythonList()
	}
	return nil, fitNo
}

func (c *cursor) pythonList() ([]call, fit) {
	c.i++
	var calls []call
	for {
		c.space()
		k, f := c.pythonCall()
		if f != fitYes {
			return nil, f
		}
		calls = append(calls, k)
		c.space()
		switch {
		case c.atEnd():
			return nil, c.more()
		case c.s[c.i] == ',':
			c.i++
		case c.s[c.i] == ']':
			c.i++
			return calls, fitYes
		default:
			return nil, fitNo
		}
	}
}

// ident takes a name; at most 128 bytes.
func (c *cursor) ident() (string, fit) {
	start := c.i
	for c.i < len(c.s) && (identByte(c.s[c.i]) || strings.IndexByte("-.:/", c.s[c.i]) >= 0) {
		c.i++
	}
	switch {
	case c.i-start > 128 || c.i == start && !c.atEnd():
		return "", fitNo
	case c.atEnd() && !c.eof:
		return "", fitMore
	}
	return c.s[start:c.i], fitYes
}

// tool takes the name of one of the request's tools.
func (c *cursor) tool() (string, fit) {
	given, f := c.ident()
	if f != fitYes {
		return "", f
	}
	name, ok := c.tools.resolve(given)
	if !ok {
		return "", fitNo
	}
	return name, fitYes
}

func (c *cursor) pythonCall() (call, fit) {
	name, f := c.tool()
	if f != fitYes {
		return call{}, f
	}
	return c.pythonArgs(name)
}

// pythonArgs reads (key=value, ...) with literals as values. A value without a
// key is taken only alone and where the tool requires exactly one.
func (c *cursor) pythonArgs(name string) (call, fit) {
	if f := c.take("("); f != fitYes {
		return call{}, f
	}
	out := []byte{'{'}
	for {
		c.space()
		if c.atEnd() {
			return call{}, c.more()
		}
		if c.s[c.i] == ')' {
			c.i++
			return call{name: name, args: string(append(out, '}'))}, fitYes
		}
		key, f := c.pythonKey(name, len(out) == 1)
		if f != fitYes {
			return call{}, f
		}
		value, n, f := repairJSON(c.rest(), false)
		if f != fitYes {
			if f == fitMore {
				f = c.more()
			}
			return call{}, f
		}
		c.i += n
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, key), ':'), value...)
		c.space()
		if c.i < len(c.s) && c.s[c.i] == ',' {
			c.i++
		} else if c.i < len(c.s) && c.s[c.i] != ')' {
			return call{}, fitNo
		}
	}
}

// pythonKey takes "key=".
func (c *cursor) pythonKey(name string, first bool) (string, fit) {
	start := c.i
	for c.i < len(c.s) && identByte(c.s[c.i]) {
		c.i++
	}
	key := c.s[start:c.i]
	c.space()
	switch {
	case c.atEnd():
		return "", c.more()
	case c.s[c.i] == '=' && key != "":
		c.i++
		return key, fitYes
	}
	required := c.tools.schema(name).Required
	if !first || len(required) != 1 {
		return "", fitNo
	}
	c.i = start
	return required[0], fitYes
}

// leads stand before the name in a call that begins with a name; seps between
// the name and the arguments.
var (
	leads = []string{
		"<|start|>", "<|channel|>", "assistant", "commentary", "analysis", "to=", "call:", "print(",
		"function<｜tool▁sep｜>",
	}
	seps = []string{
		"<|channel|>", "commentary", "<|constrain|>", "json", "code", "<|message|>", "[ARGS]",
		"<｜tool▁sep｜>", "<|tool_call_argument_begin|>", "```json", "```",
	}
)

// leadCall is namedCall where the name has a lead that only calls have:
// "to=functions.NAME", what remains of gpt-oss's format when its markers are
// lost, or "Action: NAME" of the ReAct prompts.
func (c *cursor) leadCall() (call, fit) {
	rest := c.rest()
	for _, lead := range []string{
		"commentary to=functions.", "assistantcommentary to=functions.", "assistant to=functions.",
		"analysis to=functions.", "to=functions.",
	} {
		if strings.HasPrefix(rest, lead) {
			return c.namedCall()
		}
		if strings.HasPrefix(lead, rest) && !c.eof {
			return call{}, fitMore
		}
	}
	return c.reactCall()
}

func (c *cursor) reactCall() (call, fit) {
	if f := c.take("Action:"); f != fitYes {
		return call{}, f
	}
	c.space()
	name, f := c.tool()
	if f != fitYes {
		return call{}, f
	}
	c.space()
	if c.atEnd() {
		return call{}, c.more()
	}
	if f := c.take("Action Input:"); f != fitYes {
		return call{}, f
	}
	c.space()
	return c.argsCall(name)
}

// namedCall reads a name and arguments, with what families put around them.
func (c *cursor) namedCall() (call, fit) {
	if f := c.takeAny(leads); f != fitYes {
		return call{}, f
	}
	name, f := c.tool()
	if f != fitYes {
		return call{}, f
	}
	if f := c.callID(); f != fitYes {
		return call{}, f
	}
	start := c.i
	if f := c.takeAny(seps); f != fitYes {
		if c.atEnd() && c.eof && !c.cut {
			return call{name: name, args: "{}"}, fitYes
		}
		return call{}, f
	}
	fenced := strings.Contains(c.s[start:c.i], "```")
	k, f := c.argsCall(name)
	if f == fitYes && fenced {
		f = c.closeFence()
	}
	return k, f
}

// callID takes Mistral's [CALL_ID]....
func (c *cursor) callID() fit {
	const tag = "[CALL_ID]"
	rest := c.rest()
	if len(rest) < len(tag) && strings.HasPrefix(tag, rest) && rest != "" {
		if c.eof {
			return fitYes
		}
		return fitMore
	}
	if !strings.HasPrefix(rest, tag) {
		return fitYes
	}
	c.i += len(tag)
	for c.i < len(c.s) && (identByte(c.s[c.i]) || c.s[c.i] == '-') {
		c.i++
	}
	if c.atEnd() {
		return c.more()
	}
	return fitYes
}

// closeFence takes the closing fence after arguments, if it is there.
func (c *cursor) closeFence() fit {
	c.space()
	if c.atEnd() || strings.HasPrefix("```", c.rest()) && len(c.rest()) < 3 {
		if c.eof {
			return fitYes
		}
		return fitMore
	}
	if strings.HasPrefix(c.rest(), "```") {
		c.i += 3
	}
	return fitYes
}

// argsCall reads a call's arguments, once its name is known.
func (c *cursor) argsCall(name string) (call, fit) {
	if c.atEnd() {
		return call{}, c.more()
	}
	switch rest := c.rest(); {
	case rest[0] == '{':
		return c.jsonArgs(name)
	case rest[0] == '(':
		return c.pythonArgs(name)
	case rest[0] == '<':
		return c.taggedArgs(name)
	}
	return call{}, fitNo
}

func (c *cursor) jsonArgs(name string) (call, fit) {
	src := c.rest()
	out, n, f := repairJSON(src, false)
	if f == fitMore && c.eof {
		f = fitNo
		if !c.cut {
			out, n, f = repairJSON(src, true)
		}
	}
	switch f {
	case fitMore:
		return call{}, fitMore
	case fitYes:
		c.i += n
		return call{name: name, args: unwrapArgs(out, c.tools.schema(name))}, fitYes
	}
	end := nextNoise(src)
	closed := end >= 0
	if !closed {
		if !c.eof {
			return call{}, fitMore
		}
		end = len(src)
	}
	c.i += end
	objects, invalid := parseArgs(src[:end], c.tools.schema(name), c.cut && !closed)
	if invalid == "" && len(objects) == 1 {
		return call{name: name, args: objects[0]}, fitYes
	}
	return call{name: name, invalid: "the arguments are not a JSON object: " + clip(src[:end])}, fitYes
}

// taggedArgs reads <arg_key>k</arg_key><arg_value>v</arg_value> pairs (GLM),
// <parameter> tags, or the closer of a call without arguments.
func (c *cursor) taggedArgs(name string) (call, fit) {
	switch f := c.peek("<arg_key>"); f {
	case fitYes:
		return c.glmArgs(name)
	case fitMore:
		return call{}, f
	}
	switch f := c.peek("<parameter"); f {
	case fitYes:
		return c.params(name, "")
	case fitMore:
		return call{}, f
	}
	token, partial := tokenAt(c.rest(), closers[:])
	switch {
	case partial && !c.eof:
		return call{}, fitMore
	case token != "":
		return call{name: name, args: "{}"}, fitYes
	}
	return call{}, fitNo
}

// peek is take without taking.
func (c *cursor) peek(word string) fit {
	i := c.i
	f := c.take(word)
	c.i = i
	return f
}

func (c *cursor) glmArgs(name string) (call, fit) {
	args := newArgs(c.tools.schema(name))
	for c.peek("<arg_key>") == fitYes {
		c.i += len("<arg_key>")
		key, f := c.until("</arg_key>")
		if f != fitYes {
			return call{}, f
		}
		c.space()
		if c.atEnd() {
			return call{}, c.more()
		}
		if f := c.take("<arg_value>"); f != fitYes {
			return call{}, f
		}
		value, f := c.until("</arg_value>")
		if f != fitYes {
			return call{}, f
		}
		args.add(strings.TrimSpace(key), value)
		c.space()
	}
	if c.atEnd() && !c.eof || c.peek("<arg_key>") == fitMore {
		return call{}, fitMore
	}
	return call{name: name, args: args.json()}, fitYes
}

// until takes text up to word, and word.
func (c *cursor) until(word string) (string, fit) {
	text, _, ok := strings.Cut(c.rest(), word)
	if !ok {
		return "", c.more()
	}
	c.i += len(text) + len(word)
	return text, fitYes
}

// args builds an arguments object from texts, typed by the schema.
type args struct {
	schema toolSchema
	out    []byte
	keys   []string
}

func newArgs(s toolSchema) *args { return &args{schema: s, out: []byte{'{'}} }

// add adds a value: as text where the schema says string or nothing, else as
// the JSON value that it spells, if it does.
func (a *args) add(key, text string) {
	if len(a.keys) > 0 {
		a.out = append(a.out, ',')
	}
	a.keys = append(a.keys, key)
	a.out = append(appendString(a.out, key), ':')
	p, known := a.schema.Properties[key]
	if known && !p.isText() && len(p.Type) > 0 || !known && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
		t := strings.TrimSpace(text)
		if v, n, f := repairJSON(t, true); f == fitYes && n == len(t) {
			a.out = append(a.out, v...)
			return
		}
	}
	a.out = appendString(a.out, text)
}

func (a *args) has(key string) bool { return slices.Contains(a.keys, key) }

func (a *args) json() string { return string(append(a.out, '}')) }

// fencedCalls reads a code fence whose whole content is calls.
func (c *cursor) fencedCalls() ([]call, fit) {
	if f := c.take("```"); f != fitYes {
		return nil, f
	}
	if _, f := c.until("\n"); f != fitYes {
		return nil, f
	}
	calls, f := c.fenceBody(true)
	return calls, f
}

// fenceBody reads calls up to and including the closing fence.
func (c *cursor) fenceBody(lenient bool) ([]call, fit) {
	var calls []call
	for {
		marked, f := c.noise()
		if strings.HasPrefix(c.rest(), "```") && len(calls) > 0 {
			c.i += 3
			return calls, fitYes
		}
		if f == fitMore {
			return nil, f
		}
		if c.atEnd() {
			if len(calls) == 0 || c.cut {
				return nil, fitNo
			}
			return calls, fitYes
		}
		if strings.HasPrefix("```", c.rest()) {
			return nil, c.more()
		}
		var k []call
		switch b := c.s[c.i]; {
		case b == '{' && !lenient && !marked:
			k, f = c.jsonCalls(false)
		case b == '[' && !lenient && !marked:
			k, f = c.listCalls(false)
		case b == ')' && len(calls) > 0:
			c.i++
			continue
		default:
			k, f = c.calls(lenient || marked)
		}
		if f != fitYes {
			return nil, f
		}
		calls = append(calls, k...)
	}
}

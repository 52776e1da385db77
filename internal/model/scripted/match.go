package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentcli/agent/internal/model"
)

// when says which requests a step answers; the zero value says all.
type when struct {
	user, tool, result, system, model *matcher

	turn    int // 0: any
	request int // 0: any
}

func (w *when) parse(n *node) error {
	into := func(m **matcher) func(*node) error {
		return func(n *node) (err error) { *m, err = parseMatcher(n); return err }
	}
	return n.object(parsers{
		"user": into(&w.user), "tool": into(&w.tool), "result": into(&w.result),
		"system": into(&w.system), "model": into(&w.model),
		"turn":    func(n *node) (err error) { w.turn, err = n.count(1, 1<<30); return err },
		"request": func(n *node) (err error) { w.request, err = n.count(1, 1<<30); return err },
	})
}

// matcher compares a text: one of its fields is set; all empty matches the
// empty text only.
type matcher struct {
	exact    string
	contains *string
	re       *regexp.Regexp
}

func parseMatcher(n *node) (*matcher, error) {
	m := &matcher{}
	if n.kind == '"' {
		m.exact = n.str
		return m, nil
	}
	if n.kind != '{' || len(n.fields) != 1 {
		return nil, failAt(n.off, `a match is a string (the exact text), {"contains": "..."} or {"regex": "..."}`)
	}
	return m, n.object(parsers{
		"exact":    func(n *node) (err error) { m.exact, err = n.string(); return err },
		"contains": func(n *node) error { s, err := n.string(); m.contains = &s; return err },
		"regex":    func(n *node) (err error) { m.re, err = parseRegexp(n); return err },
	})
}

// match reports whether text fits, and the groups of a regex.
func (m *matcher) match(text string) (groups, bool) {
	switch {
	case m.re != nil:
		found := m.re.FindStringSubmatch(text)
		return groups{re: m.re, found: found}, found != nil
	case m.contains != nil:
		return groups{}, strings.Contains(text, *m.contains)
	}
	return groups{}, strings.TrimSpace(text) == strings.TrimSpace(m.exact)
}

// groups are what a regex captured.
type groups struct {
	re    *regexp.Regexp
	found []string
}

func (g groups) get(name string) string {
	i := groupIndex(g.re, name)
	if i < 0 || i >= len(g.found) {
		return ""
	}
	return g.found[i]
}

// groupIndex finds a group by number or name; -1 is none.
func groupIndex(re *regexp.Regexp, name string) int {
	if re == nil {
		return -1
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i > re.NumSubexp() {
			return -1
		}
		return i
	}
	return re.SubexpIndex(name)
}

// conversation is what the steps look at in a request.
type conversation struct {
	model, system string
	turn          int      // 1 + the assistant's messages so far
	user          []string // text blocks of the last user message that has any
	fresh         bool     // that message came after the last answer
	results       []toolText
	calls         map[string]string // names of the calls in the history, by id
	request       int               // count of the player's requests, from 1
}

type toolText struct{ name, text string }

// look reads the conversation out of a request.
func look(req *model.Request) conversation {
	c := conversation{model: req.Model, system: req.System, turn: 1, calls: map[string]string{}}
	for _, m := range req.Messages {
		if m.Role == model.RoleAssistant {
			c.turn++
			c.fresh, c.results = false, nil
			for _, b := range m.Blocks {
				if t, ok := b.(model.ToolUse); ok {
					c.calls[t.ID] = t.Name
				}
			}
			continue
		}
		c.addUser(m)
	}
	return c
}

func (c *conversation) addUser(m *model.Message) {
	var texts []string
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case model.Text:
			texts = append(texts, b.Text)
		case model.ToolResult:
			name := c.calls[b.ToolUseID]
			if name == "" {
				name = b.Name
			}
			c.results = append(c.results, toolText{name, joinText(b.Blocks)})
		}
	}
	if texts != nil {
		c.user, c.fresh = texts, true
	}
}

// joinText is the text of blocks, one line break between two.
func joinText(blocks []model.Block) string {
	var out []string
	for _, b := range blocks {
		if t, ok := b.(model.Text); ok {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n")
}

func (c *conversation) userText() string { return strings.Join(c.user, "\n") }

func (c *conversation) lastResult() string {
	if len(c.results) == 0 {
		return ""
	}
	return c.results[len(c.results)-1].text
}

// String describes the request for the error of a request that no step answers.
func (c *conversation) String() string {
	s := fmt.Sprintf("turn %d, last user text %q", c.turn, clip(c.userText(), 300))
	for _, r := range c.results {
		s += fmt.Sprintf(", result of tool %s %q", r.name, clip(r.text, 100))
	}
	return s
}

// values are what templates can name.
type values struct {
	conversation
	userGroups, resultGroups groups
}

// match reports whether the step answers the request.
func (w *when) match(c conversation) (values, bool) {
	v := values{conversation: c}
	fits := (w.turn == 0 || w.turn == c.turn) &&
		(w.request == 0 || w.request == c.request) &&
		one(w.system, c.system) && one(w.model, c.model) &&
		w.matchUser(&v) && w.matchResult(&v)
	return v, fits
}

func one(m *matcher, text string) bool {
	if m == nil {
		return true
	}
	_, ok := m.match(text)
	return ok
}

// matchUser tries the whole message, then each of its blocks. Without a tool
// or result in the step, the text must be new: not answered by a tool call yet.
func (w *when) matchUser(v *values) (ok bool) {
	if w.user == nil {
		return true
	}
	if len(v.user) == 0 || !v.fresh && w.tool == nil && w.result == nil {
		return false
	}
	if v.userGroups, ok = w.user.match(v.userText()); ok {
		return true
	}
	for _, text := range v.user {
		if v.userGroups, ok = w.user.match(text); ok {
			return true
		}
	}
	return false
}

// matchResult wants a new tool result that fits both name and text.
func (w *when) matchResult(v *values) bool {
	if w.tool == nil && w.result == nil {
		return true
	}
	for _, r := range slices.Backward(v.results) {
		if !one(w.tool, r.name) {
			continue
		}
		if w.result == nil {
			return true
		}
		var ok bool
		if v.resultGroups, ok = w.result.match(r.text); ok {
			return true
		}
	}
	return false
}

// templates are the placeholders; anything else in double braces is text.
var templates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{(user_text|last_tool_result|model|turn|(?:user|result)\.(\w+))\}\}`)
})

var headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") })

func hasTemplate(pieces []string) bool {
	for _, p := range pieces {
		if strings.Contains(p, "{{") && templates().MatchString(p) {
			return true
		}
	}
	return false
}

// checkTemplates finds placeholders for groups that cannot exist.
func (st *step) checkTemplates(n *node) error {
	for i := range st.items {
		if !st.items[i].template {
			continue
		}
		for _, p := range st.items[i].pieces {
			for _, m := range templates().FindAllStringSubmatch(p, -1) {
				if m[2] != "" && groupIndex(st.when.regexOf(m[1]), m[2]) < 0 {
					off := n.get("emit").items[i].off
					key, _, _ := strings.Cut(m[1], ".")
					return failAt(off, `%s names a group that the step does not capture; "when" needs {%q: {"regex": "..."}} with it (or write "literal": true)`, m[0], key)
				}
			}
		}
	}
	return nil
}

func (w *when) regexOf(name string) *regexp.Regexp {
	m := w.user
	if strings.HasPrefix(name, "result.") {
		m = w.result
	}
	if m == nil {
		return nil
	}
	return m.re
}

// value is what a placeholder stands for.
func (v *values) value(name string) string {
	switch name {
	case "user_text":
		return v.userText()
	case "last_tool_result":
		return v.lastResult()
	case "model":
		return v.model
	case "turn":
		return strconv.Itoa(v.turn)
	}
	if group, ok := strings.CutPrefix(name, "user."); ok {
		return v.userGroups.get(group)
	}
	return v.resultGroups.get(strings.TrimPrefix(name, "result."))
}

// fill replaces the placeholders in s. Within JSON (inJSON), where they stand
// inside strings, the values are escaped.
func (v *values) fill(s string, inJSON bool) string {
	return templates().ReplaceAllStringFunc(s, func(m string) string {
		value := v.value(m[2 : len(m)-2])
		if !inJSON {
			return value
		}
		quoted := appendQuoted(nil, value)
		return string(quoted[1 : len(quoted)-1])
	})
}

// texts are the item's deltas for this request.
func (it *item) deltas(v *values) []string {
	pieces := it.pieces
	if it.template {
		pieces = slices.Clone(pieces)
		for i := range pieces {
			pieces[i] = v.fill(pieces[i], it.kind == itemTool)
		}
	}
	return it.by.cut(pieces)
}

// player is a script being played: it counts requests and uses.
type player struct {
	script *Script

	mu       sync.Mutex // guards the rest
	requests int
	used     []int
}

func newPlayer(s *Script) *player { return &player{script: s, used: make([]int, len(s.steps))} }

// choice is the step that answers a request; use counts from 1.
type choice struct {
	step     *step
	use      int
	values   values
	idPrefix string // of the ids that are made for tool calls
}

// choose takes the first step in the file that fits and is not used up.
func (p *player) choose(req *model.Request) (choice, error) {
	c := look(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	c.request = p.requests
	for i, st := range p.script.steps {
		if st.use > 0 && p.used[i] >= st.use {
			continue
		}
		if v, ok := st.when.match(c); ok {
			p.used[i]++
			return choice{step: st, use: p.used[i], values: v}, nil
		}
	}
	return choice{}, p.noStep(&c)
}

// noStep explains why nothing fits. The caller holds p.mu.
func (p *player) noStep(c *conversation) error {
	left := 0
	for i, st := range p.script.steps {
		if st.use == 0 || p.used[i] < st.use {
			left++
		}
	}
	why := fmt.Sprintf("none of its %d unused steps matches", left)
	if left == 0 {
		why = fmt.Sprintf("all its %d steps are used up", len(p.script.steps))
	}
	return fmt.Errorf("model script %s has no answer for request %d (%s): %s", p.script.name, p.requests, c, why)
}

// nearest is the word of list that key is probably meant to be, or "".
func nearest(key string, list []string) string {
	best, at := "", 3
	for _, w := range list {
		if d := distance(key, w); d < at && d < len(w) {
			best, at = w, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// appendQuoted appends s as a JSON string; invalid UTF-8 is repaired.
func appendQuoted(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, err := marshal(s)
	if err != nil { // a string always can be
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var buf strings.Builder
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(buf.String(), "\n")), nil
}

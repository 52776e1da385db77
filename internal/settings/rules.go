package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/agentcli/agent/internal/policy"
)

// RuleOptions says where rules are looked for besides the layers of settings.
type RuleOptions struct {
	// Dirs gives the user's home, with the files of other tools, and the state
	// directory, with what the user allowed in projects.
	Dirs Dirs
	// Root is the project's directory; empty: none.
	Root string
	// Skip lists layers of files that don't count, the other tools' included:
	// User, Project, Local.
	Skip []Layer
}

// Rules returns all rules of lists that are in force: those of s, and those of
// the other tools' settings files in the project and the user's home. What
// those files deny or ask always counts. What they allow counts if the user
// allowed it in this project (see [SaveRules]) or, in the home, if
// permissions.import names the tool. Origin names key, file and line; Base is
// the project's directory for rules of its files.
//
// Warnings tell of rules that can never match, and of everything in the other
// tools' files that doesn't count though it is meant to. The error joins one
// for each entry of s that is no rule.
func Rules(s *Settings, o RuleOptions) ([]policy.Rule, []Warning, error) {
	g := &gatherer{o: o, base: o.Root, imported: s.List(Import), approvals: newApprovals(o.Dirs, o.Root)}
	if real, err := filepath.EvalSymlinks(o.Root); err == nil && o.Root != "" {
		g.base = real
	}
	for _, t := range s.rules {
		g.own(t)
	}
	for _, f := range otherFiles(o) {
		g.file(f)
	}
	return g.rules, append(g.warnings, g.approvals.warnings()...), errors.Join(g.errs...)
}

// gatherer collects rules.
type gatherer struct {
	o         RuleOptions
	base      string
	imported  []string
	approvals *approvals
	rules     []policy.Rule
	warnings  []Warning
	errs      []error
}

// own adds a rule of our settings.
func (g *gatherer) own(t ruleText) {
	origin := t.key.Name + inLayer + t.origin.String()
	r, err := policy.ParseRule(t.text, t.key.rules, origin)
	var matchless *policy.MatchlessError
	switch {
	case errors.As(err, &matchless):
		g.warn(t.origin.File, t.origin.Line, t.key.Name, t.key.rules, err)
		return
	case err != nil:
		g.errs = append(g.errs, fmt.Errorf("%s (%s): %w", t.key.Name, t.origin, err))
		return
	}
	if t.origin.Layer == Project || t.origin.Layer == Local {
		r.Base = g.base
	}
	g.rules = append(g.rules, r)
}

// inLayer stands between a key and where it is, in the Origin of a rule.
const inLayer = " in "

// RuleOf reports whether a rule came from our own settings file of a layer.
func RuleOf(r policy.Rule, l Layer) bool {
	_, at, ok := strings.Cut(r.Origin, inLayer)
	return ok && strings.HasPrefix(at, l.String()+" ")
}

// warn tells of a rule that isn't in force, and what that means.
func (g *gatherer) warn(file string, line int, key string, b policy.Behavior, err error) {
	means := map[policy.Behavior]string{policy.Allow: "it allows nothing", policy.Ask: "it asks for nothing", policy.Deny: "NOTHING IS DENIED by it"}
	g.warnings = append(g.warnings, Warning{File: file, Line: line, Message: key + ": " + err.Error() + "; " + means[b]})
}

// Names of the other tools, as permissions.import has them.
const (
	claude = "claude"
	qwen   = "qwen"
	gemini = "gemini"
)

const claudeDir = ".claude"

func otherTools() []string { return []string{claude, qwen, gemini} }

// otherFile is a settings file of another tool.
type otherFile struct {
	tool string
	path string
	rel  string // from the project's root on, with slashes; empty in the home

	local bool // of the layer Local
}

// otherFiles lists the files that may hold rules, whether they exist or not.
// In a project that is the home itself a file is the home's.
func otherFiles(o RuleOptions) []otherFile {
	var out []otherFile
	if !slices.Contains(o.Skip, User) {
		for _, tool := range otherTools() {
			if dir := o.Dirs.OfTool(tool); dir != "" {
				out = append(out, otherFile{tool: tool, path: filepath.Join(dir, fileName)})
			}
		}
	}
	if o.Root == "" {
		return out
	}
	for _, f := range []otherFile{
		{tool: claude, rel: claudeDir + "/" + fileName},
		{tool: claude, rel: claudeDir + "/" + localFileName, local: true},
		{tool: qwen, rel: ".qwen/" + fileName},
		{tool: gemini, rel: ".gemini/" + fileName},
	} {
		layer := Project
		if f.local {
			layer = Local
		}
		if slices.Contains(o.Skip, layer) {
			continue
		}
		f.path = filepath.Join(o.Root, filepath.FromSlash(f.rel))
		if !slices.ContainsFunc(out, func(home otherFile) bool { return home.path == f.path }) {
			out = append(out, f)
		}
	}
	return out
}

// otherList is a list of rules in the files of another tool.
type otherList struct {
	key      string
	behavior policy.Behavior
	servers  bool // names of MCP servers, for all of their tools
}

// otherLists are the lists that a tool's files may have.
func otherLists(tool string) []otherList {
	rules := []otherList{
		{key: "permissions.deny", behavior: policy.Deny},
		{key: "permissions.ask", behavior: policy.Ask},
		{key: "permissions.allow", behavior: policy.Allow},
	}
	tools := []otherList{
		{key: "mcp.excluded", behavior: policy.Deny, servers: true},
		{key: "tools.exclude", behavior: policy.Deny},
		{key: "excludeTools", behavior: policy.Deny}, // what tools.exclude was called before
		{key: "tools.allowed", behavior: policy.Allow},
		{key: "allowedTools", behavior: policy.Allow},
	}
	switch tool {
	case qwen:
		return append(rules, tools...)
	case gemini:
		return append(tools, otherList{key: "tools.confirmationRequired", behavior: policy.Ask})
	}
	return rules
}

const notInForce = "; what it denies or asks first is NOT in force here"

// file adds the rules of another tool's file. Whatever else is in it is that
// tool's business.
func (g *gatherer) file(f otherFile) {
	data, err := readFile(f.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return
	}
	if err != nil {
		g.warnings = append(g.warnings, Warning{File: f.path, Message: "reading settings of " + f.tool + ": " + reason(err) + notInForce})
		return
	}
	doc, err := parseDocument(f.path, data)
	if err != nil {
		w := Warning{File: f.path, Message: err.Error() + notInForce}
		var at *Error
		if errors.As(err, &at) {
			w.Line, w.Message = at.Line, at.Message+notInForce
		}
		g.warnings = append(g.warnings, w)
		return
	}
	o := &otherDocument{gatherer: g, otherFile: f, doc: doc}
	for _, l := range otherLists(f.tool) {
		o.list(l, doc.root, strings.Split(l.key, "."))
	}
}

// otherDocument is a parsed file of another tool.
type otherDocument struct {
	*gatherer
	otherFile
	doc *document
}

func (o *otherDocument) warnAt(offset int, message string) {
	o.warnings = append(o.warnings, Warning{File: o.path, Line: o.doc.line(offset), Message: message})
}

// list adds the rules of a list that lies at path beneath obj. One that is
// there twice counts twice.
func (o *otherDocument) list(l otherList, obj *object, path []string) {
	for _, m := range members(obj) {
		if m.name != path[0] {
			continue
		}
		switch v := m.value.Value.(type) {
		case *object:
			if len(path) > 1 {
				o.list(l, v, path[1:])
				continue
			}
		case *hujson.Array:
			if len(path) == 1 {
				o.entries(l, m, v)
				continue
			}
		}
		if m.value.Value.Kind() != 'n' && l.behavior != policy.Allow {
			o.warnAt(m.offset, l.key+" can't be read, "+m.name+" is "+kindOf(m.value.Value)+notInForce)
		}
	}
}

// entries adds those rules of one list that count.
func (o *otherDocument) entries(l otherList, m member, list *hujson.Array) {
	dropped, counted := 0, 0
	for i := range list.Elements {
		e := &list.Elements[i]
		text, ok := scalarOf(String, e.Value)
		switch {
		case l.behavior == policy.Allow && (!ok || !o.allowed(text.(string))):
			dropped++
		case !ok:
			o.warn(o.path, o.doc.line(e.StartOffset), l.key, l.behavior, fmt.Errorf("entry %d is %s", i+1, kindOf(e.Value)))
		default:
			counted++
			o.rule(l, text.(string), o.doc.line(e.StartOffset))
		}
	}
	if dropped > 0 && o.rel != "" {
		o.warnAt(m.offset, l.key+ignored(counted))
	}
}

// allowed reports whether an allow rule of the file counts.
func (o *otherDocument) allowed(text string) bool {
	if o.rel == "" {
		return slices.Contains(o.imported, o.tool)
	}
	return o.approvals.has(o.rel, text)
}

// rule adds one rule.
func (o *otherDocument) rule(l otherList, text string, line int) {
	origin := fmt.Sprintf("%s in %s %s:%d", l.key, o.tool, o.path, line)
	texts, err := []string{"mcp__" + strings.TrimSpace(text) + "__*"}, error(nil)
	if !l.servers {
		texts, err = inOurWords(o.tool, text, l.behavior)
	}
	for _, t := range texts {
		var r policy.Rule
		if r, err = policy.ParseRule(t, l.behavior, origin); err != nil {
			break
		}
		r.Text = strings.TrimSpace(text)
		if o.rel != "" {
			r.Base = o.base
		}
		o.rules = append(o.rules, r)
	}
	if err != nil {
		o.warn(o.path, line, l.key, l.behavior, err)
	}
}

// inOurWords returns the rules, in the way of our lists, that a rule of
// another tool stands for. gemini-cli's lists are written as qwen's; its names
// of MCP tools don't tell where the server's name ends.
func inOurWords(tool, text string, b policy.Behavior) ([]string, error) {
	text = strings.TrimSpace(text)
	if tool == claude {
		return []string{text}, nil
	}
	if rest, ok := strings.CutPrefix(text, "mcp_"); ok && tool == gemini && !strings.HasPrefix(rest, "_") {
		return mcpNames(rest, b)
	}
	return []string{policy.FromQwen(text)}, nil
}

// mcpNames returns our names of the MCP tool that gemini-cli calls
// mcp_SERVER_TOOL: of every one that it may be, if it is to be restricted.
func mcpNames(rest string, b policy.Behavior) ([]string, error) {
	var out []string
	for i := range rest {
		if rest[i] == '_' && i > 0 && i+1 < len(rest) {
			out = append(out, "mcp__"+rest[:i]+"__"+rest[i+1:])
		}
	}
	if len(out) == 0 {
		out = append(out, "mcp__"+rest)
	}
	if b == policy.Allow && len(out) > 1 {
		return nil, fmt.Errorf("rule %q doesn't tell where the server's name ends: write mcp__server__tool in your own settings", "mcp_"+rest)
	}
	return out, nil
}

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Tier says whose a rule of a policy file is. A rule of a higher tier wins over
// those of all lower ones, whatever their priorities.
type Tier int

// Tiers, from the weakest. TierList is that of the rules of flags and settings,
// which have no priorities: of these deny beats ask, and ask beats allow.
const (
	TierList Tier = iota
	TierDefault
	TierExtension
	TierWorkspace
	TierUser
	TierAdmin
)

var tierNames = [...]string{"list", "default", "extension", "workspace", "user", "admin"}

// String returns the name that lists show.
func (t Tier) String() string {
	if t >= 0 && int(t) < len(tierNames) {
		return tierNames[t]
	}
	return fmt.Sprintf("Tier(%d)", int(t))
}

// MarshalText implements encoding.TextMarshaler.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Rule says what happens to the calls that it matches. Rules are made by
// ParseRule and ParsePolicy; the exported fields may be set afterwards.
type Rule struct {
	Text     string // as its user wrote it
	Origin   string // where that is: a flag, a settings file and key, a policy file and line
	Behavior Behavior
	Message  string // a denial's explanation for the model; empty: none
	Base     string // absolute directory that a path pattern beginning with "/" is meant from; empty: the first root

	// Of rules of policy files:
	Tier        Tier
	Priority    int            // 0 to 999, within the tier
	Modes       []Mode         // the modes that it holds in; empty: all
	Interactive *bool          // only with (true) or without (false) a user to ask; nil: both
	Agent       string         // only calls of this sub-agent; empty: all
	Annotations map[string]any // that the tool must have
	Redirects   bool           // allows redirections into files of the roots along with the commands

	tools   toolMatch
	command *commandSpec
	path    *pathSpec
	domain  string
	host    string // what every host that domain matches ends in
	arg     *argSpec
	args    *regexp.Regexp // on the stable JSON of the input

	reads, writes bool // it is about tools that read, or write, files: see prepare
}

// whole reports whether the rule speaks of every call of its tools.
func (r *Rule) whole() bool {
	return r.command == nil && r.path == nil && r.domain == "" && r.arg == nil && r.args == nil
}

// rank orders rules of policy files: gemini-cli's tier + priority/1000.
func (r *Rule) rank() int { return int(r.Tier)*1000 + r.Priority }

// String returns the text.
func (r *Rule) String() string { return r.Text }

// toolMatch says which tools a rule speaks of.
type toolMatch struct {
	names   []string // our names
	globs   []string // with *, over names in both spellings of MCP tools
	classes []Class
	server  string // only tools of this MCP server; "*": of any
}

// matches reports whether the call is of one of the tools.
func (m *toolMatch) matches(f *Facts) bool {
	if len(m.classes) > 0 && !slices.Contains(m.classes, f.Class) {
		return false
	}
	server, own := f.mcp()
	if m.server != "" && (server == "" || m.server != "*" && m.server != server) {
		return false
	}
	if len(m.names) == 0 && len(m.globs) == 0 {
		return true
	}
	if slices.Contains(m.names, f.Tool) || m.server != "" && slices.Contains(m.names, own) {
		return true
	}
	for _, g := range m.globs {
		if glob(g, f.Tool) || m.server != "" && glob(g, own) || server != "" && glob(g, "mcp_"+server+"_"+own) {
			return true
		}
	}
	return false
}

// permits is matches for a rule that allows: what a wildcard in the tools of one
// MCP server stands for must not be part of another server's name, as it would
// be for mcp_a_* and a server "a_b".
func (m *toolMatch) permits(f *Facts) bool {
	if !m.matches(f) {
		return false
	}
	server, own := f.mcp()
	if server == "" || m.server != "" || len(m.globs) == 0 || slices.Contains(m.names, f.Tool) {
		return true
	}
	return slices.ContainsFunc(m.globs, func(g string) bool { return globMCP(g, server, own) })
}

// globMCP reports whether some part of a pattern stands for the server, and the
// rest for the tool. A name without a wildcard is its own pattern.
func globMCP(pattern, server, own string) bool {
	rest, ok := strings.CutPrefix(pattern, "mcp_")
	if !ok || rest == "*" {
		return pattern == "*" || rest == "*" && ok
	}
	sep := "_"
	if strings.HasPrefix(rest, "_") {
		rest, sep = rest[1:], "__"
	}
	for i := range rest {
		if strings.HasPrefix(rest[i:], sep) && glob(rest[:i], server) && glob(rest[i+len(sep):], own) {
			return true
		}
	}
	return false
}

// mcp returns the MCP server and the tool's name at it; "" of other tools.
func (f *Facts) mcp() (server, own string) {
	rest, ok := strings.CutPrefix(f.Tool, "mcp__")
	if !ok {
		return f.Server, f.Tool
	}
	if f.Server != "" {
		if own, ok := strings.CutPrefix(rest, f.Server+"__"); ok {
			return f.Server, own
		}
	}
	server, own, _ = strings.Cut(rest, "__")
	return server, own
}

// families are the names of other agents that stand for several of our tools.
var families = map[string][]string{
	"Edit": {"edit", "write_file", "notebook_edit"},
	"Read": {"read_file", "grep_search", "glob", "list_directory"},
}

// MatchlessError says of a rule why no call can ever match it.
type MatchlessError struct {
	Rule, Why string
}

func (e *MatchlessError) Error() string {
	return fmt.Sprintf("rule %q can never match: %s", e.Rule, e.Why)
}

// ParseRule reads one rule of a list: Tool, Tool(specifier), mcp__server,
// mcp__server__*, mcp__server__tool, mcp_server_tool, in the spelling of any
// agent. Tool() and Tool(*) are the whole tool. What isn't a rule is an error,
// and so is, as a *MatchlessError, one that no call could match: dropping it, or
// taking it for a wider one, is never what its user meant.
func ParseRule(text string, b Behavior, origin string) (Rule, error) {
	r := Rule{Text: strings.Trim(text, " \t\r\n"), Origin: origin, Behavior: b}
	name, spec, found := strings.Cut(r.Text, "(")
	switch {
	case r.Text == "":
		return Rule{}, fmt.Errorf("empty rule: name a tool")
	case found && (name == "" || !strings.HasSuffix(spec, ")")):
		return Rule{}, fmt.Errorf("rule %q is malformed: write Tool or Tool(specifier)", r.Text)
	case !isToolName(strings.TrimSuffix(name, "*")):
		return Rule{}, fmt.Errorf("rule %q does not begin with the name of a tool: letters, digits, _, - and dots", r.Text)
	}
	if err := r.setTool(name); err != nil {
		return Rule{}, err
	}
	if spec = strings.TrimSuffix(spec, ")"); spec == "" || strings.TrimSpace(spec) == "*" {
		return r, nil
	}
	return r, r.setSpec(spec)
}

// FromQwen returns the rule, in the way of our lists, that one of qwen-code's
// or gemini-cli's lists stands for. There a command without * is the beginning
// of commands, and a web address needs no word before its host. What isn't such
// a rule comes back as it is.
func FromQwen(text string) string {
	text = strings.TrimSpace(text)
	name, rest, _ := strings.Cut(text, "(")
	spec, closed := strings.CutSuffix(rest, ")")
	if spec = strings.TrimSpace(spec); !closed || spec == "" || strings.ContainsAny(spec, "*&|;<>`$\n") {
		return text // with operators it is a whole command line
	}
	switch CanonicalTool(name) {
	case shellTool:
		return name + "(" + spec + ":*)"
	case "web_fetch":
		return name + "(domain:" + strings.TrimSpace(strings.TrimPrefix(spec, "domain:")) + ")"
	}
	return text
}

func (r *Rule) setTool(name string) error {
	switch {
	case families[name] != nil:
		r.tools.names = families[name]
	case strings.HasPrefix(name, "mcp__"):
		return r.setMCP(name)
	case strings.HasPrefix(name, "mcp_"): // gemini-cli's spelling
		if strings.HasPrefix(name, "mcp_*") && r.Behavior == Allow {
			return &MatchlessError{r.Text, "name the MCP server, as in mcp_server_*"}
		}
		r.tools.globs = []string{name}
	case name == "*" && r.Behavior != Allow:
		r.tools.globs = []string{"*"}
	case strings.Contains(name, "*"):
		return &MatchlessError{r.Text, "* stands for tools of an MCP server only, as in mcp__server__*"}
	default:
		r.tools.names = []string{CanonicalTool(name)}
	}
	return nil
}

func (r *Rule) setMCP(name string) error {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	switch {
	case server == "" || strings.Contains(server, "*") && r.Behavior == Allow:
		return &MatchlessError{r.Text, "name the MCP server, as in mcp__server__*"}
	case !ok || tool == "":
		r.tools.globs = []string{"mcp__" + server + "__*"}
	case strings.Contains(name, "*"):
		r.tools.globs = []string{name}
	default:
		r.tools.names = []string{name}
	}
	return nil
}

// setSpec reads what stands in parentheses, by the kind of tool.
func (r *Rule) setSpec(spec string) error {
	tool := ""
	if len(r.tools.names) > 0 {
		tool = r.tools.names[0]
	}
	switch {
	case tool == shellTool:
		return r.setCommand(spec)
	case fileTools[tool] != (fileTool{}):
		p, err := parsePath(spec)
		if err != nil {
			return &MatchlessError{r.Text, err.Error()}
		}
		r.path = p
	case tool == "web_fetch":
		pattern, ok := strings.CutPrefix(spec, "domain:")
		if !ok {
			return &MatchlessError{r.Text, "write WebFetch(domain:host)"}
		}
		if err := CheckDomain(pattern); err != nil {
			return &MatchlessError{r.Text, err.Error()}
		}
		r.domain = pattern
		r.host, _ = ParseHost(strings.TrimPrefix(strings.TrimSpace(pattern), "*.")) // CheckDomain read it
	case argTools[tool] != nil:
		r.arg = &argSpec{keys: argTools[tool], glob: strings.TrimSuffix(spec, ":*"), prefix: strings.HasSuffix(spec, ":*") || strings.HasSuffix(spec, " *")}
		r.arg.glob = strings.TrimSuffix(r.arg.glob, " *")
	default:
		return &MatchlessError{r.Text, "calls of " + tool + " can't be told apart; name the whole tool"}
	}
	return nil
}

func (r *Rule) setCommand(spec string) error {
	c, err := parseCommand(spec)
	if err != nil {
		return &MatchlessError{r.Text, err.Error()}
	}
	r.command = c
	return nil
}

func isToolName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' {
			continue
		}
		return s != "" && c == '*' && strings.HasPrefix(s, "mcp__")
	}
	return true
}

// SplitRules splits a list as the flags of agent CLIs take it: on commas and
// blanks outside of parentheses. A parenthesis that is never closed makes the
// rest of the list one, malformed, rule, so that nothing is widened.
func SplitRules(list string) []string {
	var out []string
	depth, start := 0, -1
	for i, r := range list {
		sep := depth == 0 && (r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n')
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		}
		if sep && start >= 0 {
			out, start = append(out, list[start:i]), -1
		} else if !sep && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, list[start:])
	}
	return out
}

// glob reports whether s matches a pattern in which * stands for any run of
// characters, the empty one too, and \ takes its meaning from the next one.
func glob(pattern, s string) bool { return wild(pattern, s, false) }

// wild is glob in which, with one, ? stands for any one character.
func wild(pattern, s string, one bool) bool {
	star, from := -1, 0
	i, k := 0, 0
	for i < len(s) {
		switch {
		case k < len(pattern) && pattern[k] == '*':
			star, from = k, i
			k++
			continue
		case k+1 < len(pattern) && pattern[k] == '\\' && pattern[k+1] == s[i]:
			k, i = k+2, i+1
			continue
		case k < len(pattern) && pattern[k] != '\\' && (pattern[k] == s[i] || one && pattern[k] == '?'):
			k, i = k+1, i+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		i, k = from, star+1
	}
	for k < len(pattern) && pattern[k] == '*' {
		k++
	}
	return k == len(pattern)
}

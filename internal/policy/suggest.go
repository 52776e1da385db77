package policy

import (
	"encoding/json"
	"path"
	"strings"
)

// Suggestion is one thing that a person, or the host in their place, may do
// about a question.
type Suggestion struct {
	Type          string          `json:"type"` // allow, deny or modify
	Label         string          `json:"label"`
	Description   string          `json:"description,omitempty"`
	Rule          string          `json:"rule,omitempty"`          // of an allow: the rule that would allow this call from now on, and as little else as possible
	ModifiedInput json.RawMessage `json:"modifiedInput,omitempty"` // of a modify: an input that does less harm; none: the person may change it
}

// wording is what suggestions for a class say. (qwen-code's texts.)
type wording struct{ allow, deny, block string }

var wordings = map[Class]wording{
	ClassExec:     {"Allow Command", "Deny", "Block this command execution"},
	ClassEdit:     {"Allow Edit", "Deny", "Block this file edit"},
	ClassMCP:      {"Allow MCP Call", "Deny", "Block this MCP server call"},
	ClassFetch:    {"Allow Info Request", "Deny", "Block this information request"},
	ClassRead:     {"Allow Info Request", "Deny", "Block this information request"},
	ClassPlan:     {"Approve Plan", "Reject Plan", "Do not execute this plan"},
	ClassInteract: {"Allow", "Deny", "Block this question"},
}

// Suggest returns what can be done about a call that is asked about: allow it,
// deny it, and where there is one, a changed input. The rule is the one that
// would allow the call from now on, as Always returned it; nil: none.
func Suggest(f Facts, always *Rule) []Suggestion {
	w, ok := wordings[f.Class]
	if !ok {
		w = wording{"Allow", "Deny", "Block " + ToolName(f.Dialect, f.Tool) + " operation"}
	}
	in := &input{raw: f.Input}
	allow := Suggestion{Type: "allow", Label: w.allow, Description: describe(&f, in)}
	if always != nil {
		allow.Rule = always.Text
	}
	out := []Suggestion{allow, {Type: "deny", Label: w.deny, Description: w.block}}
	if f.Class == ClassEdit {
		out = append(out, Suggestion{Type: "modify", Label: "Review Changes", Description: "Review the proposed changes before applying"})
	}
	if changed, words := milder(&f, in); changed != nil {
		out = append(out, Suggestion{Type: "modify", Label: "Milder", Description: words, ModifiedInput: changed})
	}
	return out
}

// describe says in one line what would happen.
func describe(f *Facts, in *input) string {
	text := func(key string) string { s, _ := in.str(key); return Visible(s) }
	switch f.Class {
	case ClassExec:
		return "Execute: " + text("command")
	case ClassEdit:
		return "Edit file: " + path.Base(text(fileTools[f.Tool].key))
	case ClassMCP:
		server, tool := f.mcp()
		return Visible(server + ": " + tool)
	case ClassFetch:
		return text("url")
	case ClassRead:
		return ToolName(f.Dialect, f.Tool) + ": " + text(fileTools[f.Tool].key)
	case ClassPlan:
		return "Execute the proposed plan"
	}
	return "Allow " + ToolName(f.Dialect, f.Tool) + " operation"
}

// Always returns the narrowest rule that would have allowed the call; nil if no
// rule can, as for what is protected in every mode.
func (e *Engine) Always(f Facts) *Rule {
	f.Interactive, f.Hook = true, nil
	if f.Mode == ModeDontAsk {
		f.Mode = ModeDefault
	}
	for _, text := range []string{narrowest(&f, &input{raw: f.Input}), e.readRule(&f)} {
		r, err := ParseRule(text, Allow, "approved")
		if text == "" || err != nil {
			continue
		}
		if e.with(r).Decide(f).Behavior == Allow {
			return &r
		}
	}
	return nil
}

// readRule is the rule for the file that makes a command ask that reads it; ""
// if that isn't the reason.
func (e *Engine) readRule(f *Facts) string {
	if f.Tool != shellTool {
		return ""
	}
	d := e.Decide(*f)
	if d.Why != WhySecret && d.Why != WhyOutside || d.Path == "" {
		return ""
	}
	return pathRule(f, &target{PathFacts: f.Path(d.Path)})
}

// with returns an engine that has one rule more, and no checkers.
func (e *Engine) with(r Rule) *Engine {
	old := e.current()
	out := &Engine{}
	out.set(append(old.all[:len(old.all):len(old.all)], r), nil)
	return out
}

// With returns an engine with the rules of now and some more.
func (e *Engine) With(list ...Rule) *Engine {
	old := e.current()
	out := &Engine{}
	out.set(append(old.all[:len(old.all):len(old.all)], list...), old.checkers)
	return out
}

// narrowest writes the rule for just this call; "" if there is none.
func narrowest(f *Facts, in *input) string {
	if f.Tool == shellTool {
		command, _ := in.str("command")
		if command = strings.TrimSpace(command); command == "" || unreadable(command) != "" {
			return ""
		}
		return "Bash(" + escaped(command) + ")"
	}
	s, bad := newSubject(f, in)
	switch {
	case bad != nil:
		return ""
	case len(s.files) == 1:
		return pathRule(f, &s.files[0])
	case len(s.files) > 1:
		return ""
	case len(s.hosts) == 1:
		return "WebFetch(domain:" + s.hosts[0] + ")"
	}
	return f.Tool
}

func pathRule(f *Facts, t *target) string {
	if t.Real == "" || t.Protected != "" && t.write {
		return ""
	}
	name := "Read"
	if t.write {
		name = "Edit"
	}
	if p := f.project(); p != "" && beneath(t.Real, p) && t.Real != p {
		return name + "(" + escapePath(strings.TrimPrefix(t.Real, strings.TrimSuffix(p, "/"))) + ")"
	}
	return name + "(/" + escapePath(t.Real) + ")"
}

// milder returns an input that does less harm in place of one, and what it
// does; nil if none is known.
func milder(f *Facts, in *input) (json.RawMessage, string) {
	if url, ok := in.str("url"); ok && f.Class == ClassFetch && strings.HasPrefix(url, "http://") {
		return in.changed("url", "https://"+strings.TrimPrefix(url, "http://")), "Fetch it over https"
	}
	command, ok := in.str("command")
	if f.Tool != shellTool || !ok {
		return nil, ""
	}
	v := JudgeShell(command, f)
	if v.Error != "" || len(v.Parts) != 1 || !v.Parts[0].Exact || len(v.Parts[0].Argv) < 2 {
		return nil, ""
	}
	argv, words := milderArgv(v.Parts[0].Argv)
	if argv == nil {
		return nil, ""
	}
	return in.changed("command", quoted(argv)), words
}

// milderArgv returns a command that does less harm, and what it does.
func milderArgv(argv []string) ([]string, string) {
	name := argv[0] + " " + argv[1]
	out := []string{}
	switch {
	case name == "git push":
		for _, a := range argv {
			if a == "-f" || a == "--force" {
				a = "--force-with-lease"
			}
			out = append(out, a)
		}
		return changedArgv(argv, out, "Push only if nobody else has pushed since")
	case name == "git clean":
		for _, a := range argv[2:] {
			if a == "--force" {
				continue
			}
			if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") {
				if a = strings.ReplaceAll(a, "f", ""); a == "-" {
					continue
				}
			}
			out = append(out, a)
		}
		return changedArgv(argv, append([]string{"git", "clean", "-n"}, out...), "Only list what would be deleted")
	case argv[0] == "rsync":
		return append([]string{"rsync", "--dry-run"}, argv[1:]...), "Only list what would be changed"
	}
	return nil, ""
}

func changedArgv(old, now []string, words string) ([]string, string) {
	if quoted(old) == quoted(now) {
		return nil, ""
	}
	return now, words
}

// changed returns the input with another text for one key.
func (in *input) changed(key, value string) json.RawMessage {
	fields := map[string]any{}
	for k, v := range in.object() {
		fields[k] = v
	}
	fields[key] = value
	return plainJSON(fields)
}

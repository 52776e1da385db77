package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// explanation is what "agent policy explain" says of a call. All its texts can
// be shown to a person as they are.
type explanation struct {
	Tool        string              `json:"tool"`
	Input       string              `json:"input"` // of the shell the command, else JSON
	Mode        string              `json:"mode"`
	Offered     bool                `json:"offered"` // the model gets the tool; not if a rule denies all calls of it
	Decision    string              `json:"decision"`
	Why         string              `json:"why"`
	Reason      string              `json:"reason"`
	Rule        string              `json:"rule"`   // that decided; empty: none did
	Origin      string              `json:"origin"` // where the rule is
	Message     string              `json:"message,omitempty"`
	Path        string              `json:"path"` // that decided; empty: none did
	Parts       []explainedPart     `json:"parts"`
	Checkers    []explainedChecker  `json:"checkers"`
	Suggestions []policy.Suggestion `json:"suggestions"`
}

// explainedPart is one part of a command line with its own decision.
type explainedPart struct {
	Text     string        `json:"text"`
	Argv     []string      `json:"argv"` // null of what is no command
	Kind     string        `json:"kind"`
	Decision string        `json:"decision"`
	Why      string        `json:"why"`
	Reason   string        `json:"reason"`
	Rule     string        `json:"rule"`
	Origin   string        `json:"origin"`
	Does     string        `json:"does,omitempty"` // why it is of its kind
	Via      string        `json:"via,omitempty"`
	Exact    bool          `json:"exact"`
	Wrapper  bool          `json:"wrapper,omitempty"`
	Env      []string      `json:"env,omitempty"`
	Cwd      string        `json:"cwd,omitempty"`
	Files    []policy.File `json:"files,omitempty"`
	Hosts    []string      `json:"hosts,omitempty"`
}

// explainedChecker is a safety checker that has a say. One that is a program
// of its own is not run to explain: its decision is empty.
type explainedChecker struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"`
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// explain judges a call as a run would. The error is one of wrong use.
func (w *wiring) explain(call askedCall) (*explanation, error) {
	f, err := w.judged(call)
	if err != nil {
		return nil, err
	}
	d := w.engine.Decide(f)
	checked := check(&d, f)
	e := newExplanation(&f, &d)
	e.Checkers = checked
	_, e.Offered = w.toolset.registry.Lookup(f.Tool)
	e.Suggestions = []policy.Suggestion{}
	if d.Behavior != policy.Allow {
		e.Suggestions = visibleSuggestions(policy.Suggest(f, w.engine.Always(f)))
	}
	return e, nil
}

// check makes a decision as strict as the checkers that can be asked without
// running a program want it, and says what each of them thinks.
func check(d *policy.Decision, f policy.Facts) []explainedChecker {
	out := []explainedChecker{}
	for _, c := range d.Checkers {
		e := explainedChecker{Name: policy.Visible(c.Name), Origin: policy.Visible(c.Rule.Origin)}
		if !c.Program {
			b, reason := c.Judge(f)
			e.Decision, e.Reason = string(b), policy.Visible(reason)
			*d = d.Stricter(b, c, reason)
		}
		out = append(out, e)
	}
	return out
}

func newExplanation(f *policy.Facts, d *policy.Decision) *explanation {
	e := &explanation{
		Tool: f.Tool, Input: policy.Visible(callText(f)), Mode: string(f.Mode),
		Decision: string(d.Behavior), Why: string(d.Why), Reason: policy.Visible(d.Reason),
		Rule: policy.Visible(d.Rule), Origin: policy.Visible(d.Origin), Message: policy.Visible(d.Message), Path: policy.Visible(d.Path),
		Parts: make([]explainedPart, len(d.Parts)),
	}
	for i := range d.Parts {
		e.Parts[i] = explainPart(&d.Parts[i])
	}
	return e
}

// callText is the call as a person reads it.
func callText(f *policy.Facts) string {
	if f.Tool == "run_shell_command" {
		return summary(f.Input)
	}
	return string(f.Input)
}

func explainPart(p *policy.PartDecision) explainedPart {
	out := explainedPart{
		Text: policy.Visible(p.Text), Argv: visibleList(p.Argv), Kind: p.Kind.String(),
		Decision: string(p.Behavior), Why: string(p.Why), Reason: policy.Visible(p.Reason),
		Rule: policy.Visible(p.Rule), Origin: policy.Visible(p.Origin), Does: policy.Visible(p.Part.Reason), Via: policy.Visible(p.Via),
		Exact: p.Exact, Wrapper: p.Wrapper, Env: visibleList(p.Env), Cwd: policy.Visible(p.Cwd), Hosts: visibleList(p.Hosts),
		Files: slices.Clone(p.Files),
	}
	for i := range out.Files {
		x := &out.Files[i]
		x.Path, x.Abs, x.Protected, x.Secret = policy.Visible(x.Path), policy.Visible(x.Abs), policy.Visible(x.Protected), policy.Visible(x.Secret)
	}
	return out
}

// visibleSuggestions leaves out inputs and rules that can't be shown: they
// would not be what they look like.
func visibleSuggestions(list []policy.Suggestion) []policy.Suggestion {
	out := slices.Clone(list)
	for i := range out {
		s := &out[i]
		s.Label, s.Description = policy.Visible(s.Label), policy.Visible(s.Description)
		if policy.Visible(s.Rule) != s.Rule {
			s.Rule = ""
		}
		if policy.Visible(string(s.ModifiedInput)) != string(s.ModifiedInput) {
			s.ModifiedInput = nil
		}
	}
	return out
}

// whyWords says in words what kind of thing decided.
func whyWords(why policy.Why) string {
	switch why {
	case policy.WhyHard:
		return "it can't be judged"
	case policy.WhyRule:
		return "a rule decides"
	case policy.WhyHook:
		return "a hook decides"
	case policy.WhyMode:
		return "the mode decides"
	case policy.WhyProtected:
		return "protected in every mode"
	case policy.WhySecret:
		return "a file of secrets"
	case policy.WhyOutside:
		return "outside of the working directories"
	case policy.WhyDestructive:
		return "destructive"
	case policy.WhyUnclear:
		return "not understood"
	case policy.WhyDefault:
		return "nothing allows it"
	}
	return string(why)
}

// print writes the explanation for people.
func (e *explanation) print(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(e.Decision), whyWords(policy.Why(e.Why)))
	entry(&b, "call", e.Tool+" "+e.Input)
	entry(&b, "mode", e.Mode)
	entry(&b, "reason", e.Reason)
	entry(&b, "rule", e.Rule)
	entry(&b, "from", e.Origin)
	entry(&b, "path", e.Path)
	if !e.Offered {
		entry(&b, "note", "the model does not get this tool, for a rule denies all calls of it")
	}
	if len(e.Parts) > 0 {
		b.WriteString("\nparts:\n")
	}
	for i := range e.Parts {
		e.Parts[i].print(&b, i+1)
	}
	e.printCheckers(&b)
	e.printRemedies(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// entry writes one named text. Further lines of it are marked, so that no text
// looks like what we say.
func entry(b *bytes.Buffer, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "  %-7s %s\n", name, strings.ReplaceAll(text, "\n", "\n        | "))
	}
}

func (p *explainedPart) print(b *bytes.Buffer, number int) {
	text := p.Text
	if p.Via != "" {
		text += "   (through " + p.Via + ")"
	}
	fmt.Fprintf(b, "%3d. %-5s %s\n", number, p.Decision, strings.ReplaceAll(text, "\n", "\n        | "))
	detail := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "           %s: %s\n", name, strings.ReplaceAll(text, "\n", "\n        | "))
		}
	}
	does := p.Kind
	if p.Does != "" && p.Does != p.Reason {
		does += ", " + p.Does
	}
	detail("does", does)
	detail("reason", p.Reason)
	detail("rule", p.Rule)
	detail("from", p.Origin)
}

func (e *explanation) printCheckers(b *bytes.Buffer) {
	if len(e.Checkers) > 0 {
		b.WriteString("\nsafety checkers:\n")
	}
	for _, c := range e.Checkers {
		says := "a run asks it first; it can only make this stricter"
		if c.Decision != "" {
			says = strings.TrimSuffix("says "+c.Decision+": "+c.Reason, ": ")
		}
		fmt.Fprintf(b, "  %s (%s): %s\n", oneLine(c.Name), oneLine(c.Origin), oneLine(says))
	}
}

// printRemedies says what would allow the call.
func (e *explanation) printRemedies(b *bytes.Buffer) {
	if e.Decision == string(policy.Allow) {
		return
	}
	b.WriteString("\nwhat would allow it:\n")
	rule := ""
	for _, s := range e.Suggestions {
		if s.Type == "allow" && s.Rule != "" {
			rule = s.Rule
		}
	}
	if rule != "" {
		fmt.Fprintf(b, "  the rule %s in --allowed-tools or permissions.allow\n", oneLine(rule))
	} else {
		fmt.Fprintf(b, "  %s\n", e.remedy())
	}
	for _, s := range e.Suggestions {
		if s.Type == "modify" && s.ModifiedInput != nil {
			fmt.Fprintf(b, "what might do instead:\n  %s (%s)\n", oneLine(string(s.ModifiedInput)), s.Description)
		}
	}
}

// remedy says what would allow a call that no rule in sight would.
func (e *explanation) remedy() string {
	asked := e.Decision == string(policy.Ask)
	switch why := policy.Why(e.Why); {
	case why == policy.WhyHard:
		return "nothing: call it in another way"
	case why == policy.WhyRule && asked:
		return "your answer when it asks; the rule counts in every mode, before all that allow"
	case why == policy.WhyRule:
		return "nothing, as long as there is this rule: it counts in every mode, before all that allow"
	case why == policy.WhyProtected:
		return "your answer when it asks; no rule and no mode gives it before"
	case asked:
		return "your answer when it asks"
	}
	return "another mode (--mode)"
}

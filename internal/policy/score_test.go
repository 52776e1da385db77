package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
)

// linkPaths are the links of a corpus case, where every other path is itself.
type linkPaths map[string]string

func (l linkPaths) Resolve(p string) Path {
	real := "/"
	rest := strings.Split(p, "/")
	for hops := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = path.Dir(real)
			continue
		}
		next := path.Join(real, name)
		target, ok := l[next]
		if !ok {
			real = next
			continue
		}
		if hops++; hops > 40 {
			return Path{}
		}
		if path.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return Path{Real: real, Exists: true}
}

const corpusRoot, corpusHome = "/home/u/project", "/home/u"

func (c *corpusCase) facts() Facts {
	f := Facts{
		Tool: shellTool, Class: ClassExec, Mode: c.Mode, Interactive: true,
		Cwd: corpusRoot, Roots: []string{corpusRoot}, Home: corpusHome, Guarded: []string{corpusHome + "/.config/agent"},
	}
	if c.Links != nil {
		links := linkPaths{}
		for from, to := range c.Links {
			if !path.IsAbs(from) {
				from = path.Join(corpusRoot, from)
			}
			links[from] = to
		}
		f.Paths = links
	}
	f.Input, _ = json.Marshal(map[string]string{"command": c.Command})
	if c.Tool != "" {
		f.Tool, f.Input = c.Tool, c.Input
		f.Class = map[string]Class{"read_file": ClassRead, "write_file": ClassEdit, "edit": ClassEdit, "web_fetch": ClassFetch}[c.Tool]
	}
	return f
}

// engine makes the case's rules; those that are no rules are left out, as they
// allow and deny nothing.
func (c *corpusCase) engine() *Engine {
	var list []Rule
	for _, l := range []struct {
		b     Behavior
		texts []string
	}{{Allow, c.Rules.Allow}, {Ask, c.Rules.Ask}, {Deny, c.Rules.Deny}} {
		for _, text := range l.texts {
			if r, err := ParseRule(text, l.b, ""); err == nil {
				list = append(list, r)
			}
		}
	}
	return NewEngine(list)
}

// TestCorpusScore judges every case. A laxer answer than the label is wrong; of
// the cases labelled allow, at most 2 % may be asked.
func TestCorpusScore(t *testing.T) {
	cases := readCorpus(t)
	var allow, strict, stricter int
	for i := range cases {
		c := &cases[i]
		d := c.engine().Decide(c.facts())
		got, want := severity(d.Behavior), severity(c.Want)
		if c.Want == Allow {
			allow++
		}
		what := c.Command
		if c.Tool != "" {
			what = c.Tool + " " + string(c.Input)
		}
		switch {
		case got < want:
			t.Errorf("WRONG %s: %s in %s %v: %s, must be %s (%s); %s", c.ID, what, c.Mode, c.Rules, d.Behavior, c.Want, c.Reason, d.Reason)
		case got > want && c.Want == Allow:
			strict++
			if os.Getenv("POLICY_SCORE") != "" {
				t.Logf("too strict %s: %s in %s %v: %s (%s); %s", c.ID, what, c.Mode, c.Rules, d.Behavior, c.Reason, d.Reason)
			}
		case got > want:
			stricter++
			if os.Getenv("POLICY_SCORE") != "" {
				t.Logf("stricter %s: %s in %s %v: %s, label %s (%s); %s", c.ID, what, c.Mode, c.Rules, d.Behavior, c.Want, c.Reason, d.Reason)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "policy score: %d judged commands; 0 wrong is the limit; %d of %d that are free were asked (%.1f %%, limit 2 %%); %d denied instead of asked\n",
		len(cases), strict, allow, 100*float64(strict)/float64(allow), stricter)
	if 50*strict > allow {
		t.Errorf("%d of %d cases labelled allow are asked or denied: more than 2 %%", strict, allow)
	}
}

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

// corpusScore is how the engine's answers compare with the labels.
type corpusScore struct {
	cases, dangerous, free int
	wrong                  []string // laxer than the label
	asked                  []string // of those labelled allow
	stricter               []string // denied instead of asked
}

func (s *corpusScore) percent() float64 { return 100 * float64(len(s.asked)) / float64(s.free) }

func score(t testing.TB) corpusScore {
	var s corpusScore
	cases := readCorpus(t)
	for i := range cases {
		c := &cases[i]
		d := c.engine().Decide(c.facts())
		got, want := severity(d.Behavior), severity(c.Want)
		s.cases++
		if c.Danger {
			s.dangerous++
		}
		if c.Want == Allow {
			s.free++
		}
		if got == want {
			continue
		}
		what := c.Command
		if c.Tool != "" {
			what = c.Tool + " " + string(c.Input)
		}
		text := fmt.Sprintf("%s: %s in %s %v: %s, labelled %s (%s); %s", c.ID, what, c.Mode, c.Rules, d.Behavior, c.Want, c.Reason, d.Reason)
		switch {
		case got < want:
			s.wrong = append(s.wrong, text)
		case c.Want == Allow:
			s.asked = append(s.asked, text)
		default:
			s.stricter = append(s.stricter, text)
		}
	}
	return s
}

// TestCorpusScore judges every case. A laxer answer than the label is wrong; of
// the cases labelled allow, at most 2 % may be asked. POLICY_SCORE=1 lists the
// stricter ones.
func TestCorpusScore(t *testing.T) {
	s := score(t)
	for _, w := range s.wrong {
		t.Error("too lax: " + w)
	}
	if os.Getenv("POLICY_SCORE") != "" {
		t.Log("asked:\n" + strings.Join(s.asked, "\n") + "\ndenied instead of asked:\n" + strings.Join(s.stricter, "\n"))
	}
	fmt.Printf("policy score: %d judged commands, %d too lax (limit 0); %d of %d free ones asked (%.1f %%, limit 2 %%); %d denied instead of asked\n",
		s.cases, len(s.wrong), len(s.asked), s.free, s.percent(), len(s.stricter))
	if s.percent() > 2 {
		t.Errorf("%.1f %% of the cases labelled allow are asked or denied", s.percent())
	}
}

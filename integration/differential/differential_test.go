package differential

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/tools"
)

const (
	perBatch = 400
	quick    = 250
)

// places are where what commands find as their home really is.
type places struct {
	home string // the pristine home, copied for each batch
	git  *tools.GitConfigs
}

func newPlaces(t *testing.T) places {
	t.Helper()
	need(t, "git")
	p := places{filepath.Join(t.TempDir(), "home"), tools.NewGitConfigs()}
	makeHome(t, p.home)
	return p
}

// Runs implements policy.Repo for directories as commands see them.
func (p places) Runs(dir string) string {
	if rest, ok := strings.CutPrefix(dir, homeInside); ok {
		dir = p.home + rest
	}
	return p.git.Runs(dir)
}

// judge returns what the engine says of a command, and the programs that the
// verdict names; ok is false for what wouldn't run without a question.
func (p places) judge(c command) (v policy.Verdict, named []string, ok bool) {
	v = policy.JudgeShell(c.Src, &policy.Facts{Cwd: c.Cwd, Roots: []string{project}, Home: homeInside, Repo: p})
	for _, p := range v.Parts {
		if len(p.Argv) > 0 {
			named = append(named, path.Base(p.Argv[0]))
		}
	}
	return v, named, v.Kind == policy.KindReadOnly && v.Error == "" && !v.OverBudget
}

// finding is a command that was judged read-only and did more.
type finding struct {
	cmd     command
	effects []effect
	changed string // what a whole batch changed without a call that explains it
}

func (f finding) kinds() []string {
	var out []string
	for _, e := range f.effects {
		out = append(out, e.kind())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// try runs commands, which must be judged read-only, and returns those that
// did more.
func (s *sandbox) try(t *testing.T, cmds []command) (found []finding, timedOut []string) {
	t.Helper()
	out, changed, err := s.run(cmds)
	if err != nil {
		t.Fatal(err)
	}
	by := map[int][]effect{}
	for _, e := range out.effects {
		_, named, _ := s.judge(cmds[e.Command])
		if unnamed(e, named) {
			by[e.Command] = append(by[e.Command], e)
		}
	}
	for i, es := range by {
		found = append(found, finding{cmd: cmds[i], effects: es})
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(len(a.cmd.Src), len(b.cmd.Src)), cmp.Compare(a.cmd.Src, b.cmd.Src))
	})
	if changed != "" && len(found) == 0 {
		found = s.bisect(t, cmds, changed)
	}
	for _, i := range out.timedOut {
		timedOut = append(timedOut, cmds[i].Src)
	}
	return found, timedOut
}

// bisect finds the command that changed a file without a call that explains
// it.
func (s *sandbox) bisect(t *testing.T, cmds []command, changed string) []finding {
	for len(cmds) > 1 {
		half := cmds[:len(cmds)/2]
		_, c, err := s.run(half)
		if err != nil {
			t.Fatal(err)
		}
		if c == "" {
			half = cmds[len(cmds)/2:]
		} else {
			changed = c
		}
		cmds = half
	}
	return []finding{{cmd: cmds[0], changed: changed}}
}

// minimise makes a command shorter as long as it is judged read-only and does
// something of the same kind.
func (s *sandbox) minimise(t *testing.T, f finding) finding {
	t.Helper()
	if f.changed != "" || slow.MatchString(f.cmd.Src) {
		return f
	}
	want := f.kinds()
	for range 8 {
		var tries []command
		for _, src := range shorter(f.cmd.Src) {
			c := command{Cwd: f.cmd.Cwd, Src: src}
			if _, _, ok := s.judge(c); ok {
				tries = append(tries, c)
			}
		}
		if len(tries) == 0 {
			return f
		}
		best := f
		for _, g := range s.each(t, tries[:min(len(tries), 60)]) {
			if len(g.cmd.Src) < len(best.cmd.Src) && slices.ContainsFunc(g.kinds(), func(k string) bool { return slices.Contains(want, k) }) {
				best = g
			}
		}
		if best.cmd.Src == f.cmd.Src {
			return f
		}
		f = best
	}
	return f
}

func (s *sandbox) each(t *testing.T, cmds []command) []finding {
	found, _ := s.try(t, cmds)
	return found
}

// shorter returns a command with pieces taken out: lists' members, words,
// then characters.
func shorter(src string) []string {
	seen := map[string]bool{src: true}
	var out []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, sep := range []string{"\n", ";", "&&", "||", "|"} {
		parts := strings.Split(src, sep)
		if len(parts) > 1 {
			for i := range parts {
				add(parts[i])
				add(strings.Join(slices.Delete(slices.Clone(parts), i, i+1), sep))
			}
		}
	}
	words := strings.Split(src, " ")
	for n := len(words) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(words); i++ {
			add(strings.Join(slices.Delete(slices.Clone(words), i, i+n), " "))
		}
	}
	if len(src) < 60 {
		for i := range len(src) {
			add(src[:i] + src[i+1:])
		}
	}
	return out
}

func (p places) describe(f finding) string {
	v, named, _ := p.judge(f.cmd)
	var b strings.Builder
	fmt.Fprintf(&b, "judged %s (%s; programs %v) and did more:\n  in %s\n  %q\n", v.Kind, v.Reason, named, f.cmd.Cwd, f.cmd.Src)
	shown := map[string]bool{}
	for _, e := range f.effects {
		if k := e.kind(); !shown[k] && len(shown) < 6 {
			shown[k] = true
			fmt.Fprintf(&b, "    %s\n", e)
		}
	}
	if f.changed != "" {
		fmt.Fprintf(&b, "    no call explains it: %s\n", f.changed)
	}
	return b.String()
}

// campaign runs batches of generated commands until enough is called.
type campaign struct {
	s             *sandbox
	g             *generator
	ran, rejected int
	timed         []string
	running       time.Duration
	known         map[string]int
	seen          map[string]bool
	fresh         []finding
}

func newCampaign(t *testing.T, seed uint64) *campaign {
	t.Helper()
	return &campaign{s: newSandbox(t), g: newGenerator(t, seed), known: map[string]int{}, seen: map[string]bool{}}
}

// batch generates, judges and runs n commands.
func (c *campaign) batch(t *testing.T, n int) {
	t.Helper()
	cmds := make([]command, 0, n)
	for len(cmds) < n {
		cmd := c.g.command()
		if _, _, ok := c.s.judge(cmd); !ok {
			c.rejected++
			continue
		}
		cmds = append(cmds, cmd)
	}
	began := time.Now()
	found, timed := c.s.try(t, cmds)
	c.running += time.Since(began)
	c.ran += len(cmds)
	c.timed = append(c.timed, timed...)
	for _, f := range found {
		c.note(t, f)
	}
}

// note keeps what is new in a finding.
func (c *campaign) note(t *testing.T, f finding) {
	var left []effect
	for _, e := range f.effects {
		if k := knownFor(f, e); k != nil {
			c.known[k.name]++
			continue
		}
		if !c.seen[e.kind()] {
			left = append(left, e)
		}
	}
	if len(left) == 0 && f.changed == "" || len(c.fresh) >= 40 {
		return
	}
	f.effects = left
	for _, e := range left {
		c.seen[e.kind()] = true
	}
	f = c.s.minimise(t, f)
	whole := finding{cmd: f.cmd, effects: slices.Clone(f.effects)}
	f.effects = slices.DeleteFunc(f.effects, func(e effect) bool { return knownFor(whole, e) != nil })
	c.fresh = append(c.fresh, f)
	t.Error(c.s.describe(f))
}

// TestDifferential runs a few hundred commands, the same each time, and all
// that is known to go wrong.
func TestDifferential(t *testing.T) {
	c := newCampaign(t, 1)
	t.Logf("seed 1")
	c.batch(t, quick)
	c.log(t)
}

func (c *campaign) log(t *testing.T) {
	t.Logf("%d commands run in %s, %d timed out, %d generated ones were not judged read-only", c.ran, c.running.Round(time.Second), len(c.timed), c.rejected)
	for _, src := range c.timed[:min(len(c.timed), 10)] {
		t.Logf("timed out: %.200q", src)
	}
	for name, n := range c.known {
		t.Logf("known: %s: %d", name, n)
	}
}

// TestSoakDifferential runs as many commands as there is time for.
func TestSoakDifferential(t *testing.T) {
	if os.Getenv("AGENT_SOAK") == "" {
		t.Skip("set AGENT_SOAK=1 (make soak) to run this for minutes")
	}
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("AGENT_SOAK_TIME"), "5m"))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("AGENT_DIFFERENTIAL_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("AGENT_DIFFERENTIAL_SEED=%d", seed)
	c := newCampaign(t, seed)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		c.batch(t, perBatch)
	}
	c.log(t)
}

// TestOne runs the command line that is asked for.
func TestOne(t *testing.T) {
	src := os.Getenv("AGENT_DIFFERENTIAL_COMMAND")
	if src == "" {
		t.Skip("set AGENT_DIFFERENTIAL_COMMAND to a command line")
	}
	s := newSandbox(t)
	for _, cwd := range []string{project, hostile, odd} {
		c := command{cwd, src}
		v, named, ok := s.judge(c)
		t.Logf("%s: %s (%s), read-only %v, programs %v", cwd, v.Kind, v.Reason, ok, named)
		for _, f := range s.each(t, []command{c}) {
			t.Log(s.describe(f))
		}
	}
}

func installed(name string) bool {
	for _, dir := range strings.Split(systemPath, ":") {
		if _, err := exec.LookPath(dir + "/" + name); err == nil {
			return true
		}
	}
	return false
}

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

// permissions carries out the changes of permissions that come with answers.
type permissions struct {
	w    *wiring
	conv *agent.Conversation

	mu  sync.Mutex                           // guards the rest
	set map[policy.Destination][]policy.Rule // rules that answers put in force, by where they are kept
}

// apply carries out one change: at once for this run, and for those to come if
// it is to be kept in a file.
func (p *permissions) apply(u policy.Update) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch u.Type {
	case policy.UpdateAddRules:
		return p.add(u)
	case policy.UpdateReplaceRules:
		old := p.rules(u.Destination, u.Behavior)
		p.w.engine.Remove(old...)
		p.forget(u.Destination, old)
		if err := p.unsave(u.Destination, old); err != nil {
			return err
		}
		return p.add(u)
	case policy.UpdateRemoveRules:
		p.w.engine.Remove(p.removable(u)...)
		p.forget(u.Destination, u.Rules)
		return p.unsave(u.Destination, u.Rules)
	case policy.UpdateSetMode:
		p.conv.SetMode(u.Mode)
		return nil
	case policy.UpdateAddDirectories:
		return p.addDirectories(u)
	case policy.UpdateRemoveDirectories:
		for _, dir := range u.Directories {
			p.w.toolset.roots.Remove(p.w.absolute(dir))
		}
		p.rooted()
		return nil
	}
	return fmt.Errorf("unknown change of permissions %q", u.Type)
}

func (p *permissions) add(u policy.Update) error {
	p.w.engine.Add(u.Rules...)
	if p.set == nil {
		p.set = map[policy.Destination][]policy.Rule{}
	}
	p.set[u.Destination] = append(p.set[u.Destination], u.Rules...)
	layer, ok := layerOf(u.Destination)
	if !ok || len(u.Rules) == 0 {
		return nil
	}
	_, err := settings.SaveRules(p.w.saveOptions(layer), u.Rules)
	return err
}

// rules are those with a behaviour that answers put at a destination.
func (p *permissions) rules(to policy.Destination, b policy.Behavior) []policy.Rule {
	return slices.DeleteFunc(slices.Clone(p.set[to]), func(r policy.Rule) bool { return r.Behavior != b })
}

// removable are the rules in force that a change may take away: what is allowed
// from anywhere, but what is denied or asked about only from where the change
// says that it is. So an answer lifts no denial of flags, of policy files or of
// whoever manages this machine.
func (p *permissions) removable(u policy.Update) []policy.Rule {
	layer, file := layerOf(u.Destination)
	return slices.DeleteFunc(p.w.engine.Rules(), func(r policy.Rule) bool {
		switch {
		case !hasRule(u.Rules, r):
			return true
		case r.Behavior == policy.Allow, slices.ContainsFunc(p.set[u.Destination], func(o policy.Rule) bool { return o.Origin == r.Origin && hasRule([]policy.Rule{o}, r) }):
			return false
		}
		return !file || !settings.RuleOf(r, layer)
	})
}

func (p *permissions) forget(to policy.Destination, list []policy.Rule) {
	if len(p.set[to]) == 0 {
		return
	}
	p.set[to] = slices.DeleteFunc(p.set[to], func(r policy.Rule) bool { return hasRule(list, r) })
}

func hasRule(list []policy.Rule, r policy.Rule) bool {
	return slices.ContainsFunc(list, func(o policy.Rule) bool { return o.Behavior == r.Behavior && o.Text == r.Text })
}

func (p *permissions) unsave(to policy.Destination, list []policy.Rule) error {
	layer, ok := layerOf(to)
	if !ok || len(list) == 0 {
		return nil
	}
	return settings.RemoveRules(p.w.saveOptions(layer), list)
}

// addDirectories allows further directories; none of the error's are.
func (p *permissions) addDirectories(u policy.Update) error {
	var errs []error
	for _, dir := range u.Directories {
		errs = append(errs, p.w.toolset.roots.Add(p.w.absolute(dir)))
	}
	p.rooted()
	return errors.Join(errs...)
}

// rooted tells policy of the directories of now.
func (p *permissions) rooted() {
	p.conv.SetFacts(func(f *policy.Facts) { f.Roots = p.w.toolset.roots.All() })
}

// layerOf is the layer of settings that a destination means; false if it is
// for this run only.
func layerOf(to policy.Destination) (settings.Layer, bool) {
	switch to {
	case policy.ToLocal:
		return settings.Local, true
	case policy.ToProject:
		return settings.Project, true
	case policy.ToUser:
		return settings.User, true
	}
	return settings.Default, false
}

func (w *wiring) saveOptions(layer settings.Layer) settings.SaveOptions {
	return settings.SaveOptions{Dirs: w.dirs, Root: settings.FindRoot(w.cio.Dir), Scope: layer}
}

func (w *wiring) absolute(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(w.cio.Dir, dir)
}

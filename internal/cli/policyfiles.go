package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

// adminPolicies is where an administrator's policy files lie on Linux.
const adminPolicies = "/etc/agent/policies"

// policiesDir is the name of the folders of policy files, and policyExt that of
// the files which are read there.
const (
	policiesDir = "policies"
	policyExt   = ".toml"
)

// maxPolicyBytes is the size of the largest policy file that is read.
const maxPolicyBytes = 4 << 20

// AdminDir is a folder whose files count as an administrator's: only as long
// as nobody but their owner can write it.
type AdminDir struct {
	Path  string // absolute; empty: there is none
	Owner int    // the user id that it and its files must belong to: root's
}

// policySource is one place that policy files come from.
type policySource struct {
	tier policy.Tier
	path string // absolute: a file or a folder
	flag string // that names it, so that it must be there
	file bool   // a file of a folder that was looked into; without it and a flag, a folder that need not be there
}

// policyReader gathers what is in policy files.
type policyReader struct {
	policy.Policy
	guarded []string // files and folders that belong to the user, wherever they lie
}

// policyFiles reads the policy files that are in force and shows what of them
// has no effect. Fatal problems are an error that lists each of them; a
// lenient wiring only keeps them in w.policies. Folders that aren't there cost
// a look.
func (w *wiring) policyFiles() (policy.Policy, error) {
	r := &policyReader{}
	sources, err := w.policySources(r)
	if err != nil {
		return policy.Policy{}, err
	}
	for _, s := range sources {
		if err := r.source(s); err != nil {
			return policy.Policy{}, err
		}
	}
	w.policies, w.guarded = r.Policy, slices.DeleteFunc(r.guarded, w.worksIn)
	if w.lenient {
		return r.Policy, nil
	}
	var fatal []error
	for _, p := range r.Problems {
		if text := policy.Visible(p.String()); p.Fatal {
			fatal = append(fatal, errors.New(text))
		} else {
			w.warn(text)
		}
	}
	if len(fatal) > 0 {
		return policy.Policy{}, fail(ExitSettings, "policy files: %w", errors.Join(fatal...))
	}
	return r.Policy, nil
}

// worksIn reports whether dir holds the working directory, which can't be
// guarded whole.
func (w *wiring) worksIn(dir string) bool {
	rel, err := filepath.Rel(dir, w.cio.Dir)
	return err == nil && filepath.IsLocal(rel)
}

// policySources lists where this run's policy files lie: an administrator's,
// the user's, the project's.
func (w *wiring) policySources(r *policyReader) ([]policySource, error) {
	named, err := w.namedPolicies("--policy", w.o.policies)
	if err != nil {
		return nil, err
	}
	adding, err := w.namedPolicies("--admin-policy", w.o.adminPolicies)
	if err != nil {
		return nil, err
	}
	var out []policySource
	admin := r.adminFiles(w.cio.Admin)
	for _, file := range admin {
		out = append(out, policySource{tier: policy.TierAdmin, path: file, file: true})
	}
	for _, path := range adding {
		if len(admin) > 0 {
			r.warn(path, "--admin-policy is ignored: "+w.cio.Admin.Path+" has policy files")
			continue
		}
		out = append(out, policySource{tier: policy.TierAdmin, path: path, flag: "--admin-policy"})
	}
	for _, path := range named {
		out = append(out, policySource{tier: policy.TierUser, path: path, flag: "--policy"})
	}
	if len(named) == 0 {
		for _, dir := range w.userPolicyDirs() {
			out = append(out, policySource{tier: policy.TierUser, path: dir})
		}
	}
	project := filepath.Join(settings.FindRoot(w.cio.Dir), ".agent", policiesDir)
	return append(out, policySource{tier: policy.TierWorkspace, path: project}), nil
}

// userPolicyDirs are the folders of the user's own policy files: gemini-cli's
// is one if permissions.import names it.
func (w *wiring) userPolicyDirs() []string {
	var out []string
	if w.dirs.Config != "" {
		out = append(out, filepath.Join(w.dirs.Config, policiesDir))
	}
	if w.dirs.Home != "" && slices.Contains(w.set.List(settings.Import), "gemini") {
		out = append(out, filepath.Join(w.dirs.Home, ".gemini", policiesDir))
	}
	return out
}

// namedPolicies are the paths in a flag's comma-separated lists.
func (w *wiring) namedPolicies(flag string, lists []string) ([]string, error) {
	var out []string
	for _, list := range lists {
		for path := range strings.SplitSeq(list, ",") {
			if path = strings.TrimSpace(path); path == "" {
				return nil, fail(ExitUsage, "%s names no file or folder", flag)
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(w.cio.Dir, path)
			}
			out = append(out, filepath.Clean(path))
		}
	}
	return out, nil
}

// adminFiles returns the policy files of an administrator's folder. A folder
// or file that others could have written is left out.
func (r *policyReader) adminFiles(dir AdminDir) []string {
	if dir.Path == "" {
		return nil
	}
	files := r.folder(dir.Path)
	if len(files) == 0 {
		return nil
	}
	for _, path := range []string{filepath.Dir(dir.Path), dir.Path} {
		if why := untrusted(path, dir.Owner); why != "" {
			r.warn(dir.Path, "an administrator's policy files are ignored: "+path+" "+why)
			return nil
		}
	}
	return slices.DeleteFunc(files, func(file string) bool {
		why := untrusted(file, dir.Owner)
		if why != "" {
			r.warn(file, "an administrator's policy file is ignored: it "+why)
		}
		return why != ""
	})
}

// untrusted says why what is at path may be the work of others than its owner;
// "" if it can't be.
func untrusted(path string, owner int) string {
	info, err := os.Stat(path)
	if err != nil {
		return "can't be looked at: " + bare(err)
	}
	id, known := ownerOf(info)
	switch {
	case !known:
		return "has no owner that can be told"
	case id != owner:
		return fmt.Sprintf("belongs to user %d, not to %d", id, owner)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("can be written by others than its owner (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// source reads one place. The error is one of wrong use.
func (r *policyReader) source(s policySource) error {
	switch {
	case s.file:
		r.file(s.path, s.tier)
	case s.flag != "":
		return r.named(s)
	default:
		files := r.folder(s.path)
		if len(files) > 0 && s.tier == policy.TierUser {
			r.guarded = append(r.guarded, s.path)
		}
		r.files(files, s.tier)
	}
	return nil
}

// named reads what a flag names.
func (r *policyReader) named(s policySource) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fail(ExitUsage, "%s: %w", s.flag, err)
	}
	r.guarded = append(r.guarded, s.path)
	if !info.IsDir() {
		r.file(s.path, s.tier)
		return nil
	}
	files := r.folder(s.path)
	r.guarded = append(r.guarded, files...)
	if len(files) == 0 {
		r.warn(s.path, "there is no "+policyExt+" file in it")
	}
	r.files(files, s.tier)
	return nil
}

// folder returns the paths of the policy files in a folder, by name; none if it
// isn't there.
func (r *policyReader) folder(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		// A folder that is there may hold what denies.
		if !errors.Is(err, fs.ErrNotExist) && !(errors.Is(err, syscall.ENOTDIR) && notThere(dir)) {
			r.fail(dir, "the policy files in it can't be read: "+bare(err))
		}
		return nil
	}
	var out []string
	for _, entry := range list { // by name already
		if strings.EqualFold(filepath.Ext(entry.Name()), policyExt) {
			out = append(out, filepath.Join(dir, entry.Name()))
		}
	}
	return out
}

// notThere reports whether a path leads through something that is no folder.
func notThere(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}

func (r *policyReader) files(files []string, tier policy.Tier) {
	for _, file := range files {
		r.file(file, tier)
	}
}

// file reads one policy file.
func (r *policyReader) file(path string, tier policy.Tier) {
	data, err := readPolicy(path)
	if err != nil {
		r.fail(path, "it can't be read: "+bare(err))
		return
	}
	p := policy.ParsePolicy(data, path, tier)
	r.Rules = append(r.Rules, p.Rules...)
	r.Checkers = append(r.Checkers, p.Checkers...)
	r.Examples = append(r.Examples, p.Examples...)
	r.Problems = append(r.Problems, p.Problems...)
}

// readPolicy reads a policy file, without a byte order mark.
func readPolicy(path string) ([]byte, error) {
	data, err := settings.ReadFile(path, maxPolicyBytes)
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

func (r *policyReader) warn(origin, text string) {
	r.Problems = append(r.Problems, policy.Problem{Origin: origin, Text: text})
}

func (r *policyReader) fail(origin, text string) {
	r.Problems = append(r.Problems, policy.Problem{Origin: origin, Text: text, Fatal: true})
}

// bare is an error without the path, which the message has already.
func bare(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

package settings

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/policy"
)

// Allow rules in a project's files may come from a stranger. Those that the
// user allowed there are therefore written down a second time, in the user's
// state directory: one small file for each project.

// approval is an allow rule that the user allowed in a project, and the file
// of the project that holds it.
type approval struct {
	File string `json:"file"` // from the project's root on, with slashes
	Rule string `json:"rule"`
}

// approvalsFile is what is kept of one project.
type approvalsFile struct {
	Root  string     `json:"root"` // without links
	Rules []approval `json:"rules"`
}

// approvals tell what the user allowed in one project. They are read when
// first asked for. A nil one knows of nothing.
type approvals struct {
	dirs   Dirs
	root   string
	read   bool
	list   []approval
	broken *Warning
}

func newApprovals(dirs Dirs, root string) *approvals { return &approvals{dirs: dirs, root: root} }

// has reports whether the user allowed exactly this rule in this file of the
// project. What can't be read allows nothing.
func (a *approvals) has(file, rule string) bool {
	if a == nil || a.root == "" || a.dirs.State == "" {
		return false
	}
	if !a.read {
		a.read = true
		root, err := filepath.EvalSymlinks(a.root)
		if err != nil {
			return false
		}
		path := approvalsPath(a.dirs, root)
		if a.list, err = readApprovals(path, root); err != nil {
			a.broken = &Warning{File: path, Message: "what you allowed in this project is not in force: " + reason(err)}
		}
	}
	return slices.Contains(a.list, approval{file, rule})
}

// warnings tells what was wrong.
func (a *approvals) warnings() []Warning {
	if a == nil || a.broken == nil {
		return nil
	}
	return []Warning{*a.broken}
}

// approvalsPath is where the approvals of the project at root, a path without
// links, are kept.
func approvalsPath(dirs Dirs, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(dirs.State, "approvals", hex.EncodeToString(sum[:16])+".json")
}

// readApprovals reads one project's file strictly. A file that isn't there is
// empty.
func readApprovals(path, root string) ([]approval, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f approvalsFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("the file is broken: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file is broken: there is text after its end")
	}
	if f.Root != root {
		return nil, fmt.Errorf("the file is about another project, %s", policy.Visible(f.Root))
	}
	return f.Rules, nil
}

// addApprovals records rules of a file of the project at root, a path without
// links. A file of approvals that can't be read is moved aside.
func addApprovals(dirs Dirs, root, file string, rules []string) error {
	path := approvalsPath(dirs, root)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return fmt.Errorf("locking %s: %w", dir, err)
	}
	defer unlock()
	list, err := readApprovals(path, root)
	if err != nil {
		if err := os.Rename(path, path+".broken"); err != nil {
			return err
		}
	}
	before := len(list)
	for _, rule := range rules {
		if a := (approval{file, rule}); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if len(list) == before {
		return nil
	}
	var b bytes.Buffer
	if err := writeJSON(&b, approvalsFile{Root: root, Rules: list}); err != nil {
		return err
	}
	if b.Len() > maxFileBytes {
		return fmt.Errorf("%s would be larger than %d bytes", path, maxFileBytes)
	}
	return replaceFile(path, b.Bytes(), 0o600)
}

// SaveOptions says where rules are saved.
type SaveOptions struct {
	Dirs  Dirs
	Root  string // the project's directory
	Scope Layer  // Local, Project or User
}

// SaveRules adds rules to a settings file, so that they hold from now on, and
// returns the file: the user's settings, the project's or its local ones. In a
// project that has a .claude directory and no .agent these are
// .claude/settings.local.json, so that the other tool has them too. The rest of
// the file stays as it was, and a rule that is there already is not added
// again. An allow rule of the project is recorded in the user's state directory
// as well, without which [Load] and [Rules] take it for a stranger's. Any
// number of processes may save at once; none loses what another saves.
func SaveRules(o SaveOptions, rules []policy.Rule) (file string, err error) {
	texts, err := savable(rules)
	if err != nil {
		return "", err
	}
	switch o.Scope {
	case User:
		if file, err = o.Dirs.UserFile(); err != nil {
			return "", err
		}
		return file, appendRules(file, texts)
	case Local, Project:
		return o.saveInProject(texts)
	}
	return "", fmt.Errorf("rules can be saved for user, project and local, not %v", o.Scope)
}

// RemoveRules takes rules out of the settings file that SaveRules would add them
// to, by behaviour and text. Rules that aren't there, and a file that isn't,
// are no error.
func RemoveRules(o SaveOptions, rules []policy.Rule) error {
	var file string
	switch o.Scope {
	case User:
		var err error
		if file, err = o.Dirs.UserFile(); err != nil {
			return err
		}
	case Local, Project:
		file = filepath.Join(o.Root, filepath.FromSlash(rulesFile(o.Root, o.Scope)))
		if err := withinProject(o.Root, file); err != nil {
			return err
		}
	default:
		return fmt.Errorf("rules can be removed from user, project and local, not %v", o.Scope)
	}
	return update(file, false, func(d *document) (bool, error) {
		changed := false
		for _, r := range rules {
			gone, err := d.removeText(strings.Split(rulesKey(r.Behavior), "."), r.Text)
			if err != nil {
				return false, err
			}
			changed = changed || gone
		}
		return changed, nil
	})
}

// saveInProject saves to a file of the project. The file comes before the
// approval: if only the first can be written, the rule doesn't count.
func (o SaveOptions) saveInProject(texts map[policy.Behavior][]string) (string, error) {
	allowed := texts[policy.Allow]
	root, err := filepath.EvalSymlinks(o.Root)
	switch {
	case err != nil:
		return "", fmt.Errorf("finding the project: %w", err)
	case len(allowed) > 0 && o.Dirs.State == "":
		return "", ErrNoHome
	case len(allowed) > 0 && !utf8.ValidString(root):
		return "", fmt.Errorf("nothing can be allowed for good in %q: the path is not UTF-8", root)
	}
	rel := rulesFile(o.Root, o.Scope)
	file := filepath.Join(o.Root, filepath.FromSlash(rel))
	if err := withinProject(o.Root, file); err != nil {
		return "", err
	}
	if err := appendRules(file, texts); err != nil || len(allowed) == 0 {
		return file, err
	}
	if err := addApprovals(o.Dirs, root, rel, allowed); err != nil {
		return file, fmt.Errorf("the rule is in %s, but does not count: recording that you allowed it: %w", file, err)
	}
	return file, nil
}

// rulesFile returns the file of the project that takes saved rules, from the
// root on.
func rulesFile(root string, layer Layer) string {
	name := localFileName
	if layer == Project {
		name = fileName
	}
	_, err := os.Lstat(filepath.Join(root, projectDir))
	other, otherErr := os.Lstat(filepath.Join(root, claudeDir))
	if err != nil && otherErr == nil && other.IsDir() {
		return claudeDir + "/" + name
	}
	return projectDir + "/" + name
}

// savable returns the texts of rules by what they do. A rule that couldn't be
// read back as it is, is an error: it would end the next run, or mean
// something else there.
func savable(rules []policy.Rule) (map[policy.Behavior][]string, error) {
	texts := map[policy.Behavior][]string{}
	for _, r := range rules {
		again, err := policy.ParseRule(r.Text, r.Behavior, "")
		switch {
		case err != nil:
			return nil, fmt.Errorf("saving a rule: %w", err)
		case r.Tier != policy.TierList || rulesKey(r.Behavior) == "":
			return nil, fmt.Errorf("saving a rule: %q is no rule of a list", r.Text)
		case !utf8.ValidString(r.Text):
			return nil, fmt.Errorf("saving a rule: %q is not UTF-8", r.Text)
		}
		texts[r.Behavior] = append(texts[r.Behavior], again.Text)
	}
	return texts, nil
}

// rulesKey is the key of the rules with this behaviour; "" for no behaviour.
func rulesKey(b policy.Behavior) string {
	switch b {
	case policy.Allow:
		return Allow
	case policy.Ask:
		return Ask
	case policy.Deny:
		return Deny
	}
	return ""
}

// appendRules adds the texts to the lists of a settings file.
func appendRules(file string, texts map[policy.Behavior][]string) error {
	if len(texts) == 0 {
		return nil
	}
	return update(file, true, func(d *document) (bool, error) {
		changed := false
		for _, b := range []policy.Behavior{policy.Allow, policy.Ask, policy.Deny} {
			added, err := d.appendTexts(strings.Split(rulesKey(b), "."), texts[b])
			if err != nil {
				return false, err
			}
			changed = changed || added
		}
		return changed, nil
	})
}

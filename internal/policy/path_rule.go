package policy

import (
	"errors"
	"path"
	"strings"
)

// fileTool says which key of a tool's input names a path, and what is done
// there.
type fileTool struct {
	key   string
	write bool
	dir   bool // everything beneath it; the working directory if it is left out
}

// fileTools are the tools that path rules speak of.
var fileTools = map[string]fileTool{
	"read_file":      {key: "file_path"},
	"write_file":     {key: "file_path", write: true},
	"edit":           {key: "file_path", write: true},
	"notebook_edit":  {key: "notebook_path", write: true},
	"grep_search":    {key: "path", dir: true},
	"glob":           {key: "path", dir: true},
	"list_directory": {key: "path", dir: true},
}

// argTools are the tools whose rules speak of one argument, and its keys.
var argTools = map[string][]string{
	agentTool: {"subagent_type", "agent_name", "agent"},
	"skill":   {"skill", "name"},
}

// argSpec is a rule's word about one argument.
type argSpec struct {
	keys   []string
	glob   string
	prefix bool // also with more words after it
}

func (a *argSpec) matches(input map[string]any) bool {
	for _, k := range a.keys {
		v, ok := input[k].(string)
		if !ok {
			continue
		}
		return glob(a.glob, v) || a.prefix && glob(a.glob+" *", v)
	}
	return false
}

// pathSpec is a path pattern in the manner of gitignore.
type pathSpec struct {
	root     pathRoot
	segments []string // of the pattern; "**" is any number of directories
	folded   []string // the same as foldName folds names
	lead     string   // a part of every path that a restricting rule matches; may be empty
	anywhere bool     // a name without a slash: at any depth
}

type pathRoot uint8

const (
	rootCwd  pathRoot = iota // src/**, ./src, *.json
	rootBase                 // /src/**
	rootHome                 // ~/x
	rootDisk                 // //srv/x
)

// parsePath reads the specifier of a rule for files.
func parsePath(spec string) (*pathSpec, error) {
	p := &pathSpec{}
	rest := strings.TrimSpace(spec)
	switch {
	case strings.HasPrefix(rest, "//"):
		p.root, rest = rootDisk, rest[2:]
	case strings.HasPrefix(rest, "~/"):
		p.root, rest = rootHome, rest[2:]
	case strings.HasPrefix(rest, "/"):
		p.root, rest = rootBase, rest[1:]
	case strings.HasPrefix(rest, "./"):
		rest = rest[2:]
	default:
		p.anywhere = !strings.Contains(strings.TrimSuffix(rest, "/"), "/")
	}
	if strings.IndexByte(rest, 0) >= 0 {
		return nil, errors.New("a path can't hold a NUL")
	}
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" {
		if p.root == rootCwd {
			return nil, errors.New("no path is named")
		}
		rest = "**"
	}
	p.segments = strings.Split(path.Clean(rest), "/")
	if p.segments[0] == ".." {
		return nil, errors.New("write a path outside as //absolute/path or ~/path")
	}
	if p.segments[0] == "." {
		p.segments = p.segments[1:]
	}
	p.folded = make([]string, len(p.segments))
	for i, s := range p.segments {
		p.folded[i] = foldPattern(s)
		if len(p.folded[i]) > len(p.lead) && !strings.ContainsAny(p.folded[i], `*?[\`) {
			p.lead = p.folded[i]
		}
	}
	return p, nil
}

// project is the directory that "/" in rules means; empty: not known.
func (f *Facts) project() string {
	if roots := f.roots(); f.Project == "" && len(roots) > 0 {
		return roots[0]
	}
	return f.Project
}

// base is the directory that the pattern is meant from; false if it isn't known.
func (p *pathSpec) base(r *Rule, f *Facts) (string, bool) {
	switch p.root {
	case rootDisk:
		return "/", true
	case rootHome:
		return f.Home, f.Home != ""
	case rootBase:
		if r.Base != "" {
			return r.Base, true
		}
		project := f.project()
		return project, project != ""
	}
	return f.Cwd, f.Cwd != ""
}

// matches reports whether an absolute path, or one of the directories it is in,
// is what the pattern says. Restrictive rules are given a path that foldName
// folded, take [x] for a class too and a bare name at any depth of the disk.
func (p *pathSpec) matches(abs string, r *Rule, f *Facts, restrict bool) bool {
	pattern := p.segments
	if restrict {
		pattern = p.folded
	}
	m := segmentMatcher{restrict: restrict}
	if p.anywhere && restrict {
		return m.anywhere(pattern, abs)
	}
	base, ok := p.base(r, f)
	if !ok {
		return restrict // where it is meant isn't known
	}
	rel, ok := relative(abs, base, restrict)
	switch {
	case !ok:
		return false
	case rel == "":
		return len(pattern) == 0 || restrict && m.match(pattern, "")
	case p.anywhere:
		return m.anywhere(pattern, rel)
	}
	return m.match(pattern, rel)
}

// relative returns abs seen from base; false if it isn't beneath it.
func relative(abs, base string, fold bool) (string, bool) {
	if fold {
		base = foldName(base)
	}
	switch {
	case abs == base:
		return "", true
	case base == "/":
		return strings.CutPrefix(abs, "/")
	case len(abs) > len(base) && abs[len(base)] == '/' && abs[:len(base)] == base:
		return abs[len(base)+1:], true
	}
	return "", false
}

type segmentMatcher struct{ restrict bool }

// anywhere matches a pattern at any depth of a path.
func (m segmentMatcher) anywhere(pattern []string, rel string) bool {
	for rel != "" {
		if m.match(pattern, rel) {
			return true
		}
		_, rel, _ = strings.Cut(rel, "/")
	}
	return false
}

// match compares segments; the pattern of a directory matches what is in it.
func (m segmentMatcher) match(pattern []string, rel string) bool {
	for i, seg := range pattern {
		if seg == "**" {
			return m.tail(pattern[i+1:], rel)
		}
		if rel == "" {
			return false
		}
		var part string
		if part, rel, _ = strings.Cut(rel, "/"); !m.segment(seg, part) {
			return false
		}
	}
	return true
}

// tail matches what comes after a **.
func (m segmentMatcher) tail(pattern []string, rel string) bool {
	if len(pattern) == 0 {
		return rel != "" || m.restrict
	}
	if pattern[0] == "**" {
		return m.tail(pattern[1:], rel)
	}
	for {
		if m.match(pattern, rel) {
			return true
		}
		if rel == "" {
			return false
		}
		_, rel, _ = strings.Cut(rel, "/")
	}
}

func (m segmentMatcher) segment(pattern, s string) bool {
	return wild(pattern, s, true) || m.restrict && strings.Contains(pattern, "[") && classMatch(pattern, s)
}

// foldPattern folds a segment of a pattern as foldName folds names; the
// escapes stay.
func foldPattern(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return foldName(s)
	}
	parts := strings.Split(s, `\`)
	for i := range parts {
		parts[i] = foldName(parts[i])
	}
	return strings.Join(parts, `\`)
}

// escapePath writes a path so that a pattern means exactly it.
func escapePath(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`).Replace(s)
}

// names reports whether the pattern names files, rather than all of them.
func (p *pathSpec) names() bool {
	for _, s := range p.segments {
		if strings.Trim(s, "*") != "" {
			return true
		}
	}
	return false
}

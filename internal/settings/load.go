package settings

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// LoadOptions says what to load.
type LoadOptions struct {
	// Dirs gives the user's file; without Dirs.Config there is none.
	Dirs Dirs
	// Root is the project's directory (see [FindRoot]); empty: no project's
	// files are read.
	Root string
	// ManagedFile is the administrator's file, normally the constant
	// [ManagedFile]; empty: none is read.
	ManagedFile string
	// Skip lists layers of files that don't count: User, Project, Local.
	Skip []Layer
	// Given are settings documents of the command line: they count as flags
	// do, beneath Flags.
	Given []Document
	// Restrict are documents that count as managed settings do.
	Restrict []Document
	// Flags holds values given on the command line by the name of their key:
	// string, int, []string or map[string]string by the key's type.
	Flags map[string]any
}

// Document is the content of a settings file from elsewhere. Name stands for
// its path in messages; relative paths in it are meant from Name's directory.
type Document struct {
	Name string
	Data []byte
}

// Load reads and merges all layers. A file that isn't there is an empty layer.
// Warnings tell what has no effect (unknown keys, restricted keys in a
// project). The error joins one [*Error] for each value and file that can't be
// used; the settings are then those of the rest, for a caller that has to go
// on.
func Load(o LoadOptions) (*Settings, []Warning, error) {
	l := &loader{s: &Settings{table: Keys(), values: map[string]value{}}, home: o.Dirs.Home, approvals: newApprovals(o.Dirs, o.Root)}
	if o.Dirs.Config != "" && !slices.Contains(o.Skip, User) {
		l.file(User, filepath.Join(o.Dirs.Config, fileName))
	}
	if o.Root != "" {
		if !slices.Contains(o.Skip, Project) {
			l.file(Project, ProjectFile(o.Root))
		}
		if !slices.Contains(o.Skip, Local) {
			l.file(Local, LocalFile(o.Root))
		}
	}
	for _, d := range o.Given {
		l.content(Flags, d.Name, d.Data)
	}
	l.flags(o.Flags)
	if o.ManagedFile != "" {
		l.file(Managed, o.ManagedFile)
	}
	for _, d := range o.Restrict {
		l.content(Managed, d.Name, d.Data)
	}
	return l.s, append(l.warnings, l.approvals.warnings()...), errors.Join(l.errs...)
}

// loader merges layers, the lowest first.
type loader struct {
	s         *Settings
	home      string
	approvals *approvals
	warnings  []Warning
	errs      []error
}

// file merges one file.
func (l *loader) file(layer Layer, path string) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return
	}
	if err != nil {
		l.errs = append(l.errs, &Error{File: path, Message: "reading settings: " + reason(err)})
		return
	}
	l.content(layer, path, data)
}

// content merges what is in a file.
func (l *loader) content(layer Layer, path string, data []byte) {
	doc, err := parseDocument(path, data)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	f := &fileLayer{loader: l, layer: layer, doc: doc}
	f.object(doc.root, nil)
}

// flags merges the command line's values.
func (l *loader) flags(given map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		key, _ := matchKey(l.s.table, strings.Split(name, "."))
		if key == nil {
			l.errs = append(l.errs, &Error{Message: name + ": " + unknown(l.s.table, strings.Split(name, "."))})
			continue
		}
		items, err := fromGo(key, given[name])
		if err != nil {
			l.errs = append(l.errs, &Error{Message: name + ": " + err.Error()})
			continue
		}
		for i := range items {
			items[i].origin = Origin{Layer: Flags}
		}
		l.s.merge(name, key, items)
	}
}

// merge puts a higher layer's items over what is there.
func (s *Settings) merge(name string, key *Key, items []item) {
	if key.rules != "" {
		for _, it := range items {
			s.rules = append(s.rules, ruleText{key, it.value.(string), it.origin})
		}
	}
	v := value{key: key, items: items}
	switch old := s.values[name].items; key.Type {
	case StringList:
		v.items = slices.Clone(old)
		for _, it := range items {
			if !slices.ContainsFunc(v.items, func(o item) bool { return o.value == it.value }) {
				v.items = append(v.items, it)
			}
		}
	case StringMap, ObjectMap:
		v.items = slices.Clone(old)
		for _, it := range items {
			v.items = slices.DeleteFunc(v.items, func(o item) bool { return o.name == it.name })
			v.items = append(v.items, it)
		}
	}
	s.values[name] = v
}

// fileLayer merges one parsed file.
type fileLayer struct {
	*loader
	layer Layer
	doc   *document
}

func (f *fileLayer) warn(offset int, message string) {
	f.warnings = append(f.warnings, Warning{File: f.doc.path, Line: f.doc.line(offset), Message: message})
}

func (f *fileLayer) fail(offset int, message string) {
	f.errs = append(f.errs, &Error{File: f.doc.path, Line: f.doc.line(offset), Message: message})
}

// object merges the members of one object at path.
func (f *fileLayer) object(obj *object, path []string) {
	seen := map[string]int{}
	for _, m := range members(obj) {
		at := append(slices.Clip(path), m.name)
		name := strings.Join(at, ".")
		if first, twice := seen[m.name]; twice {
			f.fail(m.offset, name+" is set twice, first in line "+itoa(f.doc.line(first)))
			continue
		}
		seen[m.name] = m.offset
		if len(path) == 0 && m.name == "$schema" { // for editors
			continue
		}
		f.member(m, at, name)
	}
}

func (f *fileLayer) member(m member, path []string, name string) {
	key, isPrefix := matchKey(f.s.table, path)
	switch {
	case key == nil && isPrefix:
		if inner, ok := m.value.Value.(*object); ok {
			f.object(inner, path)
			return
		}
		f.fail(m.offset, name+" must be an object, not "+kindOf(m.value.Value))
	case key == nil:
		f.warn(m.offset, name+": "+unknown(f.s.table, path))
	case key.Name == Allow && f.isProject():
		f.approved(m, key, name)
	case key.Restricted && f.isProject():
		f.warn(m.offset, name+notInProject)
	default:
		f.value(m, key, name)
	}
}

const notInProject = " is ignored here: a project's files can't set it, only your own settings, flags and managed settings can"

// approved merges those allow rules of a project's file that the user has
// allowed in this project; others may come from a stranger.
func (f *fileLayer) approved(m member, key *Key, name string) {
	items, err := fromJSON(key, m.value)
	mine := items[:0:0]
	for _, it := range items {
		if f.approvals.has(projectDir+"/"+filepath.Base(f.doc.path), it.value.(string)) {
			it.origin = Origin{Layer: f.layer, File: f.doc.path, Line: f.doc.line(it.origin.Line)}
			mine = append(mine, it)
		}
	}
	if err != nil || len(mine) < len(items) {
		f.warn(m.offset, name+ignored(len(mine)))
	}
	if len(mine) > 0 {
		f.s.merge(name, key, mine)
	}
}

// ignored says that allow rules of a project's file don't count, but for those
// that the user allowed there.
func ignored(approved int) string {
	if approved > 0 {
		return notInProject + "; what you allowed here yourself counts"
	}
	return notInProject
}

func (f *fileLayer) value(m member, key *Key, name string) {
	items, err := fromJSON(key, m.value)
	if err != nil {
		f.fail(m.offset, name+" "+err.Error())
		return
	}
	for i := range items {
		text, isText := items[i].value.(string)
		if isText && key.inProject != nil && f.isProject() {
			if why := key.inProject(text); why != "" {
				f.warn(m.offset, name+" is ignored here: "+why)
				return
			}
		}
		if isText && key.Path {
			if text, err = f.absolute(text); err != nil {
				f.fail(m.offset, name+": "+err.Error())
				return
			}
			items[i].value = text
		}
		items[i].origin = Origin{Layer: f.layer, File: f.doc.path, Line: f.doc.line(items[i].origin.Line)}
	}
	f.s.merge(name, key, items)
}

func (f *fileLayer) isProject() bool { return f.layer == Project || f.layer == Local }

// absolute expands a path value.
func (f *fileLayer) absolute(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if f.home == "" {
			return "", ErrNoHome
		}
		return filepath.Join(f.home, path[1:]), nil
	}
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Join(filepath.Dir(f.doc.path), path), nil
}

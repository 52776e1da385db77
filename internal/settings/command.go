package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// PrintOptions says how `agent config` shows values.
type PrintOptions struct {
	JSON   bool
	Origin bool // tell also where each value was set
}

// Target is the file that `agent config set` and `unset` write.
type Target struct {
	Layer Layer // User, Project or Local
	Dirs  Dirs
	Root  string // the project's directory
}

// File returns the target's path.
func (t Target) File() (string, error) {
	switch t.Layer {
	case User:
		return t.Dirs.UserFile()
	case Project:
		return ProjectFile(t.Root), nil
	case Local:
		return LocalFile(t.Root), nil
	}
	return "", fmt.Errorf("settings can be written for user, project and local, not %v", t.Layer)
}

// file returns the target's path once it is known to be a safe one: a
// project's file that is a link out of the project is not followed.
func (t Target) file() (string, error) {
	file, err := t.File()
	if err != nil || t.Layer == User {
		return file, err
	}
	return file, withinProject(t.Root, file)
}

// withinProject returns an error if what is written to a project's file would
// land outside of the project, through a link.
func withinProject(root, file string) error {
	real, err := followLinks(file)
	if err != nil {
		return err
	}
	real = filepath.Join(realDir(filepath.Dir(real)), filepath.Base(real))
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return fmt.Errorf("finding the project: %w", err)
	}
	if rel, err := filepath.Rel(realRoot, real); err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s leads out of the project, to %s: write that file itself, or replace the link", file, real)
	}
	return nil
}

// realDir returns a directory without links, as far as it exists.
func realDir(dir string) string {
	for at, rest := dir, ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(at)
		if up == at {
			return dir
		}
		rest, at = filepath.Join(filepath.Base(at), rest), up
	}
}

// RunGet prints the value of one key. A key that has none prints an empty
// line, null in JSON.
func RunGet(w io.Writer, s *Settings, name string, o PrintOptions) error {
	path := strings.Split(name, ".")
	key, entry := resolve(s.table, path)
	if key == nil {
		return fmt.Errorf("%s: %s", name, unknown(s.table, path))
	}
	if entry != "" {
		name = strings.TrimSuffix(name, "."+entry)
	}
	v := s.value(name, key)
	if entry != "" {
		v.items = slices.DeleteFunc(slices.Clone(v.items), func(it item) bool { return it.name != entry })
		v.key = &Key{Type: String}
		for i := range v.items {
			v.items[i].name = ""
		}
	}
	if o.JSON {
		return writeJSON(w, v.json(o.Origin, false))
	}
	lines := v.lines(o.Origin)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// RunList prints all keys that have a value, by name. Secret values are masked.
func RunList(w io.Writer, s *Settings, o PrintOptions) error {
	names := map[string]value{}
	for i := range s.table {
		if key := &s.table[i]; key.Default != nil {
			names[key.Name] = s.value(key.Name, key)
		}
	}
	maps.Copy(names, s.values)
	if o.JSON {
		out := make(map[string]any, len(names))
		for name, v := range names {
			out[name] = v.json(o.Origin, true)
		}
		return writeJSON(w, out)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		v := names[name]
		text, err := json.Marshal(v.plain(true))
		if err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
		fmt.Fprintf(tw, "%s\t%s", name, text)
		if o.Origin {
			fmt.Fprintf(tw, "\t%s", strings.Join(v.origins(), ", "))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// RunSet writes one key, given as text: a list or map as JSON (a single entry
// of a list also as it is). It prints nothing.
func RunSet(t Target, name, text string) error {
	table := Keys()
	path := strings.Split(name, ".")
	key, entry := resolve(table, path)
	if key == nil {
		return fmt.Errorf("%s: %s", name, unknown(table, path))
	}
	if t.Layer != User && key.Restricted {
		return fmt.Errorf("%s can't be set for a project: it would be ignored there; set it for the user", name)
	}
	if t.Layer != User && key.inProject != nil {
		if why := key.inProject(text); why != "" {
			return fmt.Errorf("%s: %s", name, why)
		}
	}
	var value any = text
	if entry == "" {
		var err error
		if value, err = fromText(key, text); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	file, err := t.file()
	if err != nil {
		return err
	}
	return SetKey(file, name, value)
}

// RunUnset removes one key. It prints nothing.
func RunUnset(t Target, name string) error {
	file, err := t.file()
	if err != nil {
		return err
	}
	return UnsetKey(file, name)
}

// RunSchema prints the table of keys, or the JSON Schema of a settings file.
func RunSchema(w io.Writer, o PrintOptions) error {
	if o.JSON {
		schema, err := Schema()
		if err != nil {
			return err
		}
		_, err = w.Write(schema)
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "KEY\tVALUE\tDEFAULT\tREAD FROM")
	for _, k := range Keys() {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", k.Name, expected(&k), defaultText(&k), strings.Join(k.Scopes(), ", "))
	}
	return tw.Flush()
}

// fromText reads a value typed by a person.
func fromText(key *Key, text string) (any, error) {
	switch key.Type {
	case Int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("must be %s, not %q", expected(key), text)
		}
		return n, nil
	case StringList:
		if !strings.HasPrefix(strings.TrimSpace(text), "[") {
			return []string{text}, nil
		}
		var list []string
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("must be %s, as JSON: %w", expected(key), err)
		}
		return list, nil
	case StringMap:
		var m map[string]string
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("must be %s, as JSON: %w", expected(key), err)
		}
		return m, nil
	case ObjectMap:
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("must be %s, as JSON: %w", expected(key), err)
		}
		return m, nil
	}
	return text, nil
}

// value returns what is set for a concrete key, or its default.
func (s *Settings) value(name string, key *Key) value {
	if v, ok := s.values[name]; ok {
		return v
	}
	v := value{key: key}
	if key.Default != nil {
		v.items = []item{{value: key.Default}}
	}
	return v
}

const masked = "***"

// plain returns the value as Go data; nil when there is none.
func (v value) plain(mask bool) any {
	show := func(it item) any {
		if mask && v.key.Secret {
			return masked
		}
		return it.value
	}
	switch {
	case len(v.items) == 0:
		return nil
	case v.key.Type == StringList:
		list := make([]any, len(v.items))
		for i, it := range v.items {
			list[i] = show(it)
		}
		return list
	case v.key.Type == StringMap, v.key.Type == ObjectMap:
		m := make(map[string]any, len(v.items))
		for _, it := range v.items {
			m[it.name] = show(it)
		}
		return m
	}
	return show(v.items[0])
}

// json returns the value for JSON output: as it is, or with its origins.
func (v value) json(origin, mask bool) any {
	if !origin {
		return v.plain(mask)
	}
	type where struct {
		Layer string `json:"layer"`
		File  string `json:"file,omitempty"`
		Line  int    `json:"line,omitempty"`
	}
	origins := []where{}
	for _, it := range v.items {
		w := where{it.origin.Layer.String(), it.origin.File, it.origin.Line}
		if !slices.Contains(origins, w) {
			origins = append(origins, w)
		}
	}
	return map[string]any{"value": v.plain(mask), "origins": origins}
}

// lines returns the value for people: a line for each item.
func (v value) lines(origin bool) []string {
	var out []string
	for _, it := range v.items {
		line := fmt.Sprint(it.value)
		if it.name != "" {
			line = it.name + ": " + line
		}
		if origin {
			line += "\t(" + it.origin.String() + ")"
		}
		out = append(out, line)
	}
	return out
}

// origins returns the distinct origins of the items.
func (v value) origins() []string {
	var out []string
	for _, it := range v.items {
		if s := it.origin.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding settings: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

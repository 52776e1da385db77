package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
)

// SetKey writes one key of a settings file and leaves every other byte of it
// as it was, comments included. value is a string, int, []string or
// map[string]string by the key's type; it replaces the old one. An entry of a
// map has a name of its own, as in providers.x.headers.X-Team, and a string. The file and
// its directory are made when missing (0600, 0700); a symbolic link stays one,
// its target changes. The new content appears at once or not at all. SetKey
// waits for other writers of the directory, in this process or others, so no
// update gets lost.
func SetKey(file, key string, value any) error {
	path, encoded, err := encodeValue(key, value)
	if err != nil {
		return err
	}
	return update(file, true, func(d *document) (bool, error) { return d.set(path, encoded) })
}

// encodeValue checks value against key and returns the path to it and its
// JSON. key may also name an entry of a map.
func encodeValue(key string, value any) ([]string, []byte, error) {
	table := Keys()
	path := strings.Split(key, ".")
	k, entry := resolve(table, path)
	if k == nil {
		return nil, nil, fmt.Errorf("%s: %s", key, unknown(table, path))
	}
	if text, ok := value.(string); ok && entry != "" {
		value = map[string]string{entry: text}
	}
	items, err := fromGo(k, value)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w", key, err)
	}
	var encoded []byte
	if entry != "" && len(items) == 1 {
		var b bytes.Buffer
		err = encodeScalar(&b, items[0].value)
		encoded = b.Bytes()
	} else {
		encoded, err = encodeItems(k, items)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", key, err)
	}
	return path, encoded, nil
}

// resolve finds the key that path leads to, or the map that it leads to an
// entry of.
func resolve(table []Key, path []string) (key *Key, entry string) {
	if key, _ = matchKey(table, path); key != nil {
		return key, ""
	}
	last := len(path) - 1
	if key, _ = matchKey(table, path[:last]); key != nil && key.Type == StringMap {
		return key, path[last]
	}
	return nil, ""
}

// UnsetKey removes one key from a settings file, as [SetKey] writes it. It is
// no error when the key isn't there, or the file. Keys that don't exist in
// the table can be removed too.
func UnsetKey(file, key string) error {
	path := strings.Split(key, ".")
	return update(file, false, func(d *document) (bool, error) { return d.unset(path) })
}

// encodeItems returns the JSON of a key's value, one line.
func encodeItems(k *Key, items []item) ([]byte, error) {
	var b bytes.Buffer
	ends := map[Type]string{StringList: "[]", StringMap: "{}", ObjectMap: "{}"}[k.Type]
	if ends != "" {
		b.WriteByte(ends[0])
	}
	for i, it := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		if k.Type == StringMap || k.Type == ObjectMap {
			if err := encodeScalar(&b, it.name); err != nil {
				return nil, err
			}
			b.WriteString(": ")
		}
		if err := encodeScalar(&b, it.value); err != nil {
			return nil, err
		}
	}
	if ends != "" {
		b.WriteByte(ends[1])
	}
	return b.Bytes(), nil
}

// encodeScalar appends the JSON of a string or int, as a person would write
// it.
func encodeScalar(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // its newline
	return nil
}

// update changes a settings file under the lock of its directory. Nothing is
// written when change reports no change.
func update(file string, create bool, change func(*document) (bool, error)) error {
	target, err := followLinks(file)
	if err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	dir := filepath.Dir(target)
	if create {
		err = os.MkdirAll(dir, 0o700)
	} else if _, err = os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return fmt.Errorf("writing settings: locking %s: %w", dir, err)
	}
	defer unlock()
	perm := fs.FileMode(0o600)
	if info, err := os.Stat(target); err == nil {
		perm = info.Mode().Perm()
	}
	data, err := readFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading settings %s: %s", target, reason(err))
	}
	doc, err := parseDocument(target, data)
	if err != nil {
		return err
	}
	changed, err := change(doc)
	if err != nil || !changed {
		return err
	}
	packed := append(doc.bom, doc.tree.Pack()...)
	if len(packed) > maxFileBytes {
		return fmt.Errorf("writing settings: %s would be larger than %d bytes and couldn't be read again", target, maxFileBytes)
	}
	if err := replaceFile(target, packed, perm); err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	return nil
}

// followLinks returns the file that path leads to through symbolic links; it
// need not exist.
func followLinks(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or nothing there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// replaceFile puts data in place of path in one step. The caller holds the
// directory's lock, so the temporary file of that name is ours, or left by a
// writer that died.
func replaceFile(path string, data []byte, perm fs.FileMode) (err error) {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	if err = errors.Join(werr, f.Chmod(perm), f.Sync(), f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

// set puts encoded at path; it reports false when it is there already.
func (d *document) set(path []string, encoded []byte) (bool, error) {
	parsed, err := hujson.Parse(encoded)
	if err != nil {
		return false, fmt.Errorf("encoding value: %w", err)
	}
	obj := d.root
	style := d.style()
	for depth, step := range path {
		m, err := d.find(obj, step)
		if err != nil {
			return false, err
		}
		last := depth == len(path)-1
		if m == nil {
			m = insert(obj, step, style, depth)
			m.Value = &object{}
		} else if last && bytes.Equal(hujson.Value{Value: m.Value}.Pack(), encoded) {
			return false, nil
		}
		if last {
			m.Value = parsed.Value
			return true, nil
		}
		inner, ok := m.Value.(*object)
		if !ok {
			return false, &Error{File: d.path, Line: d.line(m.StartOffset), Message: strings.Join(path[:depth+1], ".") + " must be an object, not " + kindOf(m.Value)}
		}
		obj = inner
	}
	return false, nil
}

// unset removes what is at path, and objects that get empty by that.
func (d *document) unset(path []string) (bool, error) {
	var chain []*object
	obj := d.root
	for depth, step := range path {
		chain = append(chain, obj)
		m, err := d.find(obj, step)
		if err != nil {
			return false, err
		}
		if m == nil {
			return false, nil
		}
		if depth == len(path)-1 {
			break
		}
		inner, ok := m.Value.(*object)
		if !ok {
			return false, nil
		}
		obj = inner
	}
	for depth := len(path) - 1; depth >= 0; depth-- {
		remove(chain[depth], path[depth])
		if len(chain[depth].Members) > 0 || hasComment(chain[depth].AfterExtra) {
			break
		}
	}
	return true, nil
}

// find returns the value of a member, nil for none. A member that is there
// twice can't be changed.
func (d *document) find(obj *object, name string) (*hujson.Value, error) {
	var found *hujson.Value
	for _, m := range members(obj) {
		if m.name != name {
			continue
		}
		if found != nil {
			return nil, &Error{File: d.path, Line: d.line(m.offset), Message: name + " is set twice; remove one of them first"}
		}
		found = m.value
	}
	return found, nil
}

// style is how a file is laid out.
type style struct {
	newline string // "\n" or "\r\n"
	unit    string // one step of indentation
}

func (d *document) style() style {
	s := style{newline: "\n", unit: "  "}
	if bytes.Contains(d.data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if len(d.root.Members) > 0 {
		if indent, ok := indentOf(d.root.Members[0].Name.BeforeExtra); ok && indent != "" {
			s.unit = indent
		}
	}
	return s
}

// indentOf returns what stands between the last newline and the end of extra, if
// that is nothing but space.
func indentOf(extra hujson.Extra) (string, bool) {
	i := lastBreak(extra)
	if i < 0 || len(bytes.TrimSpace(extra[i+1:])) > 0 {
		return "", false
	}
	return string(extra[i+1:]), true
}

// lastBreak returns where the last newline is that no block comment holds; -1:
// there is none.
func lastBreak(extra hujson.Extra) int {
	at := -1
	for i := 0; i < len(extra); i++ {
		switch rest := extra[i:]; {
		case extra[i] == '\n':
			at = i
		case bytes.HasPrefix(rest, []byte("//")):
			i += max(0, bytes.IndexByte(rest, '\n')-1) // the newline is the next
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + max(0, bytes.Index(rest[2:], []byte("*/"))) + 1
		}
	}
	return at
}

// insert appends a member to obj, which lies depth objects deep, and returns
// its value to be filled. What stood before the closing brace, comments
// included, stays where it was, before the new member.
func insert(obj *object, name string, s style, depth int) *hujson.Value {
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" ")}}
	var last *hujson.Extra
	if n := len(obj.Members); n > 0 {
		last = &obj.Members[n-1].Name.BeforeExtra
	}
	m.Name.BeforeExtra, obj.AfterExtra = s.slot(last, obj.AfterExtra, depth)
	if n := len(obj.Members); n > 0 && obj.Members[n-1].Value.AfterExtra != nil {
		m.Value.AfterExtra = hujson.Extra{} // the file's way of trailing commas
	}
	obj.Members = append(obj.Members, m)
	return &obj.Members[len(obj.Members)-1].Value
}

// slot makes room at the end of an object or list that lies depth of them
// deep: what stands before the new part, and what then stands before the
// closing bracket. last is what stands before the last part, nil if there is
// none, and end what stands before the closing bracket now.
func (s style) slot(last *hujson.Extra, end hujson.Extra, depth int) (before, after hujson.Extra) {
	closing := strings.Repeat(s.unit, depth)
	indent := closing + s.unit
	multiline := true
	if last != nil {
		if own, ok := indentOf(*last); ok {
			indent = own
		} else {
			multiline = bytes.ContainsRune(end, '\n')
		}
	}
	text := string(end)
	switch i := lastBreak(end); {
	case i >= 0:
		return hujson.Extra(strings.TrimSuffix(text[:i], "\r") + s.newline + indent), hujson.Extra(s.newline + text[i+1:])
	case multiline:
		return hujson.Extra(strings.TrimRight(text, " \t") + s.newline + indent), hujson.Extra(s.newline + closing)
	case strings.TrimSpace(text) == "":
		return hujson.Extra(" "), end
	}
	return hujson.Extra(text + " "), nil
}

// appendTexts adds those of the texts that aren't there yet to the list at
// path, which is made when missing, and leaves everything else as it was. It
// reports false when all are there.
func (d *document) appendTexts(path, texts []string) (bool, error) {
	list, err := d.list(path)
	if err != nil {
		return false, err
	}
	have := map[string]bool{}
	if list != nil {
		for _, e := range list.Elements {
			if text, ok := scalarOf(String, e.Value); ok {
				have[text.(string)] = true
			}
		}
	}
	changed := false
	for _, text := range texts {
		if have[text] {
			continue
		}
		if have[text], changed = true, true; list == nil {
			if _, err := d.set(path, []byte("[]")); err != nil {
				return false, err
			}
			if list, err = d.list(path); err != nil {
				return false, err
			}
		}
		d.style().push(list, text, len(path))
	}
	return changed, nil
}

// removeText takes a string out of the list at path, as often as it is there.
// Comments before it stay.
func (d *document) removeText(path []string, text string) (bool, error) {
	list, err := d.list(path)
	if list == nil || err != nil {
		return false, err
	}
	before := len(list.Elements)
	for i := before - 1; i >= 0; i-- {
		e := &list.Elements[i]
		if found, ok := scalarOf(String, e.Value); !ok || found != text {
			continue
		}
		kept, trailing := keepComments(e.BeforeExtra, e.AfterExtra), e.AfterExtra != nil
		last := i == len(list.Elements)-1
		list.Elements = append(list.Elements[:i:i], list.Elements[i+1:]...)
		switch {
		case !last:
			next := &list.Elements[i].BeforeExtra
			*next = join(kept, *next)
			continue
		case i > 0 && !trailing && !hasComment(list.Elements[i-1].AfterExtra):
			list.Elements[i-1].AfterExtra = nil // what is last now has a comma only if what was last had one
		}
		list.AfterExtra = join(kept, list.AfterExtra)
	}
	return len(list.Elements) < before, nil
}

// push appends a string to a list that lies depth objects deep.
func (s style) push(list *hujson.Array, text string, depth int) {
	e := hujson.Value{Value: hujson.String(text)}
	var last *hujson.Extra
	if n := len(list.Elements); n > 0 {
		last = &list.Elements[n-1].BeforeExtra
		if list.Elements[n-1].AfterExtra != nil {
			e.AfterExtra = hujson.Extra{} // the file's way of trailing commas
		}
	}
	e.BeforeExtra, list.AfterExtra = s.slot(last, list.AfterExtra, depth)
	list.Elements = append(list.Elements, e)
}

// list returns the list at path, nil if nothing is there.
func (d *document) list(path []string) (*hujson.Array, error) {
	obj := d.root
	for depth, step := range path {
		v, err := d.find(obj, step)
		if v == nil || err != nil {
			return nil, err
		}
		wrong := func(want string) error {
			return &Error{File: d.path, Line: d.line(v.StartOffset), Message: strings.Join(path[:depth+1], ".") + " must be " + want + ", not " + kindOf(v.Value)}
		}
		if depth == len(path)-1 {
			list, ok := v.Value.(*hujson.Array)
			if !ok {
				return nil, wrong("a list of strings")
			}
			return list, nil
		}
		inner, ok := v.Value.(*object)
		if !ok {
			return nil, wrong("an object")
		}
		obj = inner
	}
	return nil, nil
}

// remove takes a member out of obj. Comments before it stay: nobody knows
// whether they are only about it.
func remove(obj *object, name string) {
	for i, m := range members(obj) {
		if m.name != name {
			continue
		}
		gone := obj.Members[i]
		trailing := gone.Value.AfterExtra != nil
		last := i == len(obj.Members)-1
		obj.Members = append(obj.Members[:i:i], obj.Members[i+1:]...)
		kept := keepComments(gone.Name.BeforeExtra, gone.Name.AfterExtra, gone.Value.BeforeExtra, gone.Value.AfterExtra)
		if !last {
			next := &obj.Members[i].Name.BeforeExtra
			*next = join(kept, *next)
			return
		}
		obj.AfterExtra = join(kept, obj.AfterExtra)
		if i > 0 && obj.Members[i-1].Value.AfterExtra != nil && !trailing && !hasComment(obj.Members[i-1].Value.AfterExtra) {
			obj.Members[i-1].Value.AfterExtra = nil
		} else if i > 0 && trailing && obj.Members[i-1].Value.AfterExtra == nil {
			obj.Members[i-1].Value.AfterExtra = hujson.Extra{}
		}
		return
	}
}

// keepComments joins those of the extras that hold comments.
func keepComments(extras ...hujson.Extra) hujson.Extra {
	var kept hujson.Extra
	for _, e := range extras {
		if hasComment(e) {
			kept = append(kept, bytes.TrimRight(e, " \t\r\n")...)
			if line := bytes.LastIndex(kept, []byte("//")); line > bytes.LastIndexByte(kept, '\n') {
				kept = append(kept, '\n')
			}
		}
	}
	return kept
}

// join puts kept comments before extra.
func join(kept, extra hujson.Extra) hujson.Extra {
	if len(kept) > 0 && kept[len(kept)-1] == '\n' {
		if i := bytes.IndexByte(extra, '\n'); i >= 0 && len(bytes.TrimSpace(extra[:i])) == 0 {
			extra = extra[i+1:]
		}
	}
	return append(kept[:len(kept):len(kept)], extra...)
}

func hasComment(e hujson.Extra) bool { return bytes.IndexByte(e, '/') >= 0 }

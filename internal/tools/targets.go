package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// TargetKind says what a tool does with what an input key names.
type TargetKind int

// What targets are. An input that names no directory (the key is absent or
// empty) means the working directory.
const (
	TargetRead    TargetKind = iota // a file that is read
	TargetWrite                     // a file that is read and changed, or made
	TargetSearch                    // a directory (or one file) that is listed or searched, with what is beneath it
	TargetGlob                      // a glob: the leading directories that have no wildcard belong to the TargetSearch before it
	TargetWorkDir                   // the directory that a command runs in
	TargetURL                       // an address that is fetched
)

var targetNames = [...]string{"read", "write", "search", "glob", "workdir", "url"}

// String returns the kind's name.
func (k TargetKind) String() string {
	if k >= 0 && int(k) < len(targetNames) {
		return targetNames[k]
	}
	return fmt.Sprintf("TargetKind(%d)", int(k))
}

// Target is an input key that names something which a call acts on.
type Target struct {
	Key  string // the canonical key: see Canonical
	Kind TargetKind
}

// Touch is one thing that a call acts on. Its kind is never TargetGlob.
type Touch struct {
	Kind TargetKind
	Name string // a path as the tool will resolve it ("." is the working directory), or an address
}

// Touched returns what a call with this input acts on, in the order of the
// tool's Targets; nothing when it has none. It reads the input as the tool
// will; the error says that the tool will refuse it.
func Touched(spec Spec, input json.RawMessage) ([]Touch, error) {
	keys, err := decodeObject(input)
	if err != nil {
		return nil, err
	}
	var out []Touch
	for _, target := range spec.Targets {
		name, err := spec.targetName(keys, target.Key)
		if err != nil {
			return nil, err
		}
		switch target.Kind {
		case TargetSearch, TargetWorkDir:
			out = append(out, Touch{target.Kind, orWorkingDirectory(name)})
		case TargetGlob:
			if len(out) == 0 {
				return nil, fmt.Errorf("tool %s: its %s has no directory to belong to", spec.Name, target.Key)
			}
			last := &out[len(out)-1]
			last.Name, _ = splitGlob(last.Name, filepath.ToSlash(name))
		default:
			out = append(out, Touch{target.Kind, name})
		}
	}
	return out, nil
}

// targetName reads a target's key, or one of its aliases; "" when absent.
func (s Spec) targetName(keys map[string]json.RawMessage, key string) (name string, err error) {
	aliases := ""
	for n, a := range inputKeys(s.input) {
		if n == key {
			aliases = a
		}
	}
	if value, found := lookupKey(keys, key, aliases); value != nil {
		err = decodeString(value, found, reflect.ValueOf(&name).Elem())
	}
	return name, err
}

func orWorkingDirectory(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// splitGlob takes the leading directories of a slash-separated glob that have no wildcard to
// the directory that it is searched from.
func splitGlob(dir, pattern string) (from, rest string) {
	base, rest := doublestar.SplitPattern(pattern)
	switch {
	case filepath.IsAbs(base) || strings.HasPrefix(base, "~"):
		return base, rest
	case base != ".":
		return filepath.Join(orWorkingDirectory(dir), base), rest
	}
	return orWorkingDirectory(dir), rest
}

// Canonical returns the input with the canonical key in the place of aliases,
// and each key once, so that whoever judges a call reads in it what the tool
// will: an alias counts only while the canonical key is absent or null, and of
// a key given twice the last value counts. What the tool ignores because it
// differs from a key or alias in case only is left out, for there are readers
// that ignore case; other unknown keys stay, and so does the order. Of tools
// that don't declare their keys (those of others) only repeated keys go. The
// error says that the input is not a JSON object.
//
// Only the input's own keys are treated, not those of objects in it.
func Canonical(spec Spec, input json.RawMessage) (json.RawMessage, error) {
	keys, err := decodeObject(input)
	if err != nil {
		return nil, err
	}
	order := keyOrder(input)
	for name, aliases := range inputKeys(spec.input) {
		value, used := lookupKey(keys, name, aliases)
		maps.DeleteFunc(keys, func(key string, _ json.RawMessage) bool { return isKnownAs(key, name, aliases) })
		if value == nil {
			continue
		}
		keys[name] = value
		if at := slices.Index(order, used); at >= 0 {
			order[at] = name
		}
	}
	return encodeObject(order, keys)
}

// isKnownAs reports whether key is the name or one of its aliases, in any case.
func isKnownAs(key, name, aliases string) bool {
	if strings.EqualFold(key, name) {
		return true
	}
	for aliases != "" {
		var a string
		if a, aliases, _ = strings.Cut(aliases, ","); strings.EqualFold(key, a) {
			return true
		}
	}
	return false
}

// keyOrder returns the keys of a JSON object in the order they are in.
func keyOrder(object json.RawMessage) []string {
	var order []string
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil // an empty input
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			break // not reached: it was decoded before
		}
		order = append(order, name)
	}
	return order
}

// encodeObject writes the keys in that order, each once.
func encodeObject(order []string, keys map[string]json.RawMessage) (json.RawMessage, error) {
	b := []byte{'{'}
	for _, key := range order {
		value, ok := keys[key]
		if !ok {
			continue // written already, or left out
		}
		delete(keys, key)
		name, err := json.Marshal(key)
		if err != nil {
			return nil, fmt.Errorf("encoding the input: %w", err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, name...), ':')
		b = append(b, bytes.TrimSpace(value)...)
	}
	if len(keys) > 0 { // fail closed: the tool would read what was not judged
		return nil, errors.New("the keys of the input can't be told apart")
	}
	return append(b, '}'), nil
}

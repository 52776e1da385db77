package settings

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLoad checks that no content of the files makes loading panic, that each
// problem has its place, and that a project's file never sets a restricted key.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		`{}`, "", `{"model":"m"} // x`, `{"permissions":{"defaultMode":"yolo","deny":["a"],},}`, `{"providers":{"x":{"headers":{"A":"b"}}}}`,
		`{"model":1,"model":2}`, `{"permissions.deny":[]}`, "\xef\xbb\xbf{}", `{"network":{"caFile":"~/x"}}`, `{"maxTurns":1e3}`, "{\"\\u0000\":null}", `[`,
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, user, project []byte) {
		l := &loader{s: &Settings{table: Keys(), values: map[string]value{}}, home: "/home"}
		l.content(User, "/c/settings.json", user)
		l.content(Project, "/p/.agent/settings.json", project)
		for _, w := range l.warnings {
			if w.Line < 1 {
				t.Errorf("warning without a line: %v", w)
			}
		}
		for name, v := range l.s.values {
			for _, it := range v.items {
				if v.key.Restricted && it.origin.Layer == Project {
					t.Errorf("the project set %s", name)
				}
				if it.origin.Line < 1 {
					t.Errorf("%s has no line", name)
				}
			}
		}
		var b bytes.Buffer
		if err := RunList(&b, l.s, PrintOptions{JSON: true, Origin: true}); err != nil {
			t.Error(err)
		}
	})
}

// FuzzSet checks that setting a key of any readable file keeps it readable,
// gives the value back, and keeps every comment; and that unsetting works.
func FuzzSet(f *testing.F) {
	for _, s := range []string{
		"", "{}", "{ // c\n}", `{"model":"a",}`, "{\"model\":\"a\"//x\n}", "/*a*/{/*b*/\"x\"/*c*/:/*d*/1/*e*/,/*f*/}/*g*/",
		"{\"permissions\":{\"deny\":[]//\n,}}", "{\r\n\"x\":1\r\n}", "{\"a\":1,//x\n\"model\"//y\n:1 //z\n}",
	} {
		f.Add([]byte(s), "m")
	}
	f.Fuzz(func(t *testing.T, content []byte, value string) {
		if !utf8.ValidString(value) {
			return // becomes U+FFFD in JSON
		}
		doc, err := parseDocument("f", content)
		if err != nil {
			return
		}
		for key, v := range map[string]any{"model": value, "permissions.deny": []string{"x", "y"}} {
			path, encoded, err := encodeValue(key, v)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := doc.set(path, encoded); err != nil {
				return // set twice, or no object on the way
			}
			doc = reparse(t, content, doc)
		}
		if m, _ := doc.find(doc.root, "model"); m == nil || m.Value.(interface{ String() string }).String() != value {
			t.Errorf("set %q, got %v", value, m)
		}
		for _, key := range []string{"model", "permissions.deny"} {
			if _, err := doc.unset(strings.Split(key, ".")); err != nil {
				t.Fatal(err)
			}
			doc = reparse(t, content, doc)
		}
		if m, _ := doc.find(doc.root, "model"); m != nil {
			t.Error("model is still there")
		}
		if strings.Contains(string(content), `"`) {
			return // slashes may have been in values
		}
		if got := doc.tree.Pack(); bytes.Count(got, []byte("/")) != bytes.Count(content, []byte("/")) {
			t.Errorf("comments of %q are now %q", content, got)
		}
	})
}

// reparse returns the document as the file would be read again.
func reparse(t *testing.T, content []byte, doc *document) *document {
	t.Helper()
	packed := append(doc.bom, doc.tree.Pack()...)
	again, err := parseDocument("f", packed)
	if err != nil {
		t.Fatalf("%q became %q: %v", content, packed, err)
	}
	return again
}

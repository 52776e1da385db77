package frontmatter

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type settings struct {
	Name        string `yaml:"name"`
	Description Text   `yaml:"description"`
	Hint        Text   `yaml:"argument-hint"`
	Tools       List   `yaml:"tools"`
	Turns       int    `yaml:"turns"`
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, data string
		want       settings
		body       string
		err        string
		line       int
	}{
		{name: "none", data: "# Title\n---\n", body: "# Title\n---\n"},
		{name: "empty", data: "", body: ""},
		{name: "no settings between", data: "---\n---\nbody", body: "body"},
		{name: "one", data: "---\nname: a\n---\nbody\n", want: settings{Name: "a"}, body: "body\n"},
		{name: "CRLF", data: "---\r\nname: a\r\ntools: x, y\r\n---\r\nbody\r\n", want: settings{Name: "a", Tools: List{"x", "y"}}, body: "body\r\n"},
		{name: "byte order mark", data: "\xef\xbb\xbf---\nname: a\n---\nbody", want: settings{Name: "a"}, body: "body"},
		{name: "ends with the fence", data: "---\nname: a\n---", want: settings{Name: "a"}},
		{name: "unknown keys", data: "---\nname: a\nwhat: {x: 1}\n---\n", want: settings{Name: "a"}},
		{name: "list", data: "---\ntools: [a, b]\n---\n", want: settings{Tools: List{"a", "b"}}},
		{name: "block list", data: "---\ntools:\n  - Bash(a, b)\n  - c\n---\n", want: settings{Tools: List{"Bash(a, b)", "c"}}},
		{name: "words", data: "---\ntools: Bash(a, b), c,\n---\n", want: settings{Tools: List{"Bash(a, b)", "c"}}},
		{name: "hint that is a list", data: "---\nargument-hint: [file]\n---\n", want: settings{Hint: "[file]"}},
		{name: "hint that is no YAML", data: "---\nargument-hint: [file] [line]\nname: a\n---\n", want: settings{Name: "a", Hint: "[file] [line]"}},
		{name: "colon in the text", data: "---\nname: a\ndescription: Use so: it's this\n---\n", want: settings{Name: "a", Description: "Use so: it's this"}},
		{name: "block text", data: "---\ndescription: |\n  a\n  b: c\n---\n", want: settings{Description: "a\nb: c\n"}},
		{name: "a number as a name", data: "---\nname: 12\n---\n", want: settings{Name: "12"}},
		{name: "wrong kind", data: "---\nname: a\nturns: many\n---\n", err: "many", line: 3},
		{name: "not YAML", data: "---\nname: a\n\t- b\n---\n", err: "", line: 3},
		{name: "not a mapping", data: "---\njust a text\n---\n", err: "just a", line: 2},
		{name: "no end", data: "---\nname: a\n", err: "no end", line: 1},
		{name: "twice", data: "---\nname: a\nname: b\n---\n", err: "already", line: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got settings
			body, err := Parse([]byte(test.data), &got)
			if test.line > 0 {
				var e *Error
				if !errors.As(err, &e) || e.Line != test.line || !strings.Contains(e.Text, test.err) {
					t.Fatalf("error %v, want line %d with %q", err, test.line, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || body != test.body {
				t.Errorf("body %q, want %q; settings (-want +got):\n%s", body, test.body, diff)
			}
		})
	}
}

func TestParseHostile(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		a := string(rune('0' + i))
		b := string(rune('1' + i))
		bomb += "a" + b + ": &a" + b + " [" + strings.Repeat("*a"+a+",", 9) + "*a" + a + "]\n"
	}
	for _, test := range []struct {
		name, meta string
		refused    bool
	}{
		{"too long", "x: " + strings.Repeat("y", MaxSize) + "\n", true},
		{"aliases", bomb, true},
		{"deep", "x:\n  " + strings.Repeat("[", 60000) + "\n", true},
		{"deep on its line", "x: " + strings.Repeat("{a: ", 15000) + "\n", false}, // taken as a text
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var all map[string]any
			if _, err := Parse([]byte("---\n"+test.meta+"---\n"), &all); (err != nil) != test.refused {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\nname: a\ntools: [a, b]\n---\nbody")
	f.Add("---\r\ndescription: a: b\r\nargument-hint: [a] [b]\r\n---\r\n")
	f.Add("---\nx: &x [*x]\n---\n")
	f.Fuzz(func(t *testing.T, data string) {
		var got settings
		body, err := Parse([]byte(data), &got)
		if err == nil && !strings.HasSuffix(data, body) {
			t.Errorf("the text %q is not the end of %q", body, data)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Text == "") {
			t.Errorf("error without a place: %v", err)
		}
	})
}

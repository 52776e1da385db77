package command

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func expand(env Env, text string, s style, args string) (string, error) {
	t, err := parseTemplate(text, s)
	if err != nil {
		return "", err
	}
	return t.render(context.Background(), env, args)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		style style
		args  string
		want  string
		ran   []string
		err   string
	}{
		{text: "$1-$2-$3", args: `a "b c"`, want: "a-b c-"},
		{text: "costs $10 and $PATH and $ARGUMENTSX", args: "a", want: "costs $10 and $PATH and $ARGUMENTSX"},
		{text: "mail me@a.txt or @a.txt.", want: "mail me@a.txt or @a.txt.\n\nContents of a.txt:\n\ntext of a !`rm`"},
		{text: "@param is no file; @", want: "@param is no file; @"},
		{text: "see @/etc/shadow", err: "outside of the allowed directories"},
		{text: "{{args}} !{ls} @{a.txt}", args: "x", want: "{{args}} !{ls} @{a.txt}"},
		{text: "$ARGUMENTS", args: "!`rm` @a.txt $1", want: "!`rm` @a.txt $1"},
		{text: "wow!`ls` !`ls`", want: "wow!`ls` out $1 {{args}}", ran: []string{"ls"}},
		{text: "!`forbidden` !`ls`", err: "denied by the rule x"},
		{text: "!`ls` !`echo '$1'`", args: "a", err: "nowhere else"},
		{text: "!`echo $1 $2 \"$1\" ${1}`", args: "a b", want: "out $1 {{args}}", ran: []string{`echo 'a' 'b' "a" 'a'`}},
		{text: "!`echo $ARGUMENTS \"$ARGUMENTS\"`", args: "a 'b c' $(x)", want: "out $1 {{args}}", ran: []string{`echo 'a' 'b c' '$(x)' "a 'b c' \$(x)"`}},
		{text: "!`echo x $2 y`", args: "a", want: "out $1 {{args}}", ran: []string{"echo x  y"}},
		{text: "!`echo ${1:-x}`", args: "a", err: "nowhere else"},
		{text: "!`echo $(( $1 ))`", args: "a", err: "nowhere else"},
		{text: "!`echo (`", want: "out $1 {{args}}", ran: []string{"echo ("}},
		{text: "!`echo ( $1`", err: "cannot be read"},
		{text: "{{args}}: !{echo {{args}} \"{{args}}\"}", style: braces, args: "a `b", want: "a `b: out $1 {{args}}", ran: []string{"echo 'a `b' \"a \\`b\""}},
		{text: "!{echo `echo {{args}}`}", style: braces, args: "a", err: "nowhere else"},
		{text: "!{cat <<E\n{{args}}\nE\n}", style: braces, args: "a", err: "nowhere else"},
		{text: "!{echo", style: braces, err: "no closing brace"},
		{text: "@{nothing}", style: braces, err: "nothing"},
		{text: "@{/etc/passwd}", style: braces, err: "outside"},
		{text: strings.Repeat("!{ls}", maxInserts+1), style: braces, err: "more than 50"},
		{text: strings.Repeat("$ARGUMENTS", 1100), args: strings.Repeat("x", 1024), err: "longer than"},
	} {
		t.Run(test.text[:min(len(test.text), 60)], func(t *testing.T) {
			t.Parallel()
			s, env := newSession()
			got, err := expand(env, test.text, test.style, test.args)
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%q, %v; want the error %q", got, err, test.err)
				}
				if len(s.ran) > 0 {
					t.Errorf("%q ran all the same", s.ran)
				}
			case err != nil || got != test.want || !slices.Equal(s.ran, test.ran):
				t.Errorf("%q, ran %q, %v; want %q, %q", got, s.ran, err, test.want, test.ran)
			}
		})
	}
	if _, err := expand(Env{}, "!`ls`", dollars, ""); err == nil {
		t.Error("a shell command without a shell")
	}
}

// FuzzArguments: no argument becomes more of a command than a word.
func FuzzArguments(f *testing.F) {
	f.Add("a 'b c' $(x)")
	f.Add("`x`; rm -rf \"$HOME\" \\")
	f.Add("'\\''\n\x00")
	f.Fuzz(func(t *testing.T, args string) {
		for _, test := range []struct {
			command string
			style   style
			calls   int
		}{
			{"show \"<$ARGUMENTS>\" x$1 $ARGUMENTS", dollars, 1},
			{"show \"$(show \"$1\")\"", dollars, 2},
			{"show \"<{{args}}>\" x{{args}}", braces, 1},
		} {
			command, err := insertArgs(test.command, test.style, args, splitArgs(args))
			if err != nil {
				t.Fatal(err)
			}
			tree, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
			if err != nil {
				t.Fatalf("%q of %q: %v", command, args, err)
			}
			calls := 0
			syntax.Walk(tree, func(n syntax.Node) bool {
				switch n.(type) {
				case *syntax.CallExpr:
					calls++
				case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.Redirect, *syntax.ExtGlob, *syntax.BinaryCmd:
					t.Errorf("%q of %q holds a %T", command, args, n)
				}
				return true
			})
			if calls != test.calls || len(tree.Stmts) != 1 {
				t.Errorf("%q of %q has %d calls in %d statements", command, args, calls, len(tree.Stmts))
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	f.Add("$1 !`ls` @a.txt", "x y", false)
	f.Add("{{args}} !{echo {{args}}} @{a.txt}", "x", true)
	f.Fuzz(func(t *testing.T, text, args string, b bool) {
		s, env := newSession()
		st := dollars
		if b {
			st = braces
		}
		_, err := expand(env, text, st, args)
		if err == nil && !strings.Contains(text, "!") && len(s.ran) > 0 {
			t.Errorf("%q with %q ran %q", text, args, s.ran)
		}
	})
}

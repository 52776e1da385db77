package policy

import (
	"path"
	"strings"
	"testing"
)

func FuzzJudge(f *testing.F) {
	for _, s := range []string{
		"ls", "cat a b", "echo 'x y' \"$HOME\" $(id)", "for f in *.go; do head -1 \"$f\"; done", "x=1; cat $x", "cd a && cat ../b", "f() { ls; }; f",
		"cat <<EOF\n$(id)\nEOF", "[[ -f x ]] && cat x", "((i++))", "echo {a,b}{1..3}", "git log -n5 -- 'a b'", "timeout 5 env A=1 ls", "find . -exec cat {} +",
		"sed -n '1,2p' x", "awk '{print $1}' x", "case x in a) ls;; esac", "if true; then ls; fi", "echo $'a\\x41'", "${x@P}", "ls\r\n", "ls\x00", "a=(1 2)", "ls |& cat", "! ls", "xargs -I{} cat {}",
	} {
		f.Add(s)
	}
	facts := &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u"}
	f.Fuzz(func(t *testing.T, s string) {
		v := JudgeShell(s, facts)
		if v.Kind == KindReadOnly && (v.Error != "" || v.OverBudget) {
			t.Fatalf("%q is read-only and was not understood: %s", s, v.Error)
		}
		for _, p := range v.Parts {
			if p.Kind > v.Kind {
				t.Fatalf("%q: a part is more severe than the whole: %+v", s, p)
			}
		}
		if v.Kind != KindReadOnly || strings.ContainsAny(s, "#\\") || strings.Contains(s, "<<") {
			return
		}
		for _, op := range []string{"; ", " && ", " || ", " | ", " & ", "\n"} {
			if w := JudgeShell(s+op+"rm -rf /", facts); w.Kind == KindReadOnly {
				t.Fatalf("%q is read-only: %+v", s+op+"rm -rf /", w.Parts)
			}
			if w := JudgeShell("rm -rf /"+op+s, facts); w.Kind == KindReadOnly {
				t.Fatalf("%q is read-only: %+v", "rm -rf /"+op+s, w.Parts)
			}
		}
		if w := JudgeShell("echo \"$("+s+"\n)\" ; rm -rf /", facts); w.Kind == KindReadOnly {
			t.Fatalf("%q in a substitution hides what follows", s)
		}
	})
}

// FuzzList checks that the shortcut for long plain lists judges as the
// walker does, and that a list is as severe as its members.
func FuzzList(f *testing.F) {
	f.Add("ls -la", "cat a")
	f.Add("rm -rf x", "ls")
	f.Add("git log\n", "\ngit push -f")
	f.Add("if x", "then y")
	f.Add("0()0", "0")
	f.Fuzz(func(t *testing.T, a, b string) {
		facts := &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u"}
		src := a + " && " + b
		if _, _, plain := plainList(src); plain {
			quick := &judge{f: facts, t: loaded(), src: src, budget: new(budget), cwds: []string{"/w/app"}}
			if !quick.fast(src) {
				t.Fatalf("%q: plain, and not judged quickly", src)
			}
			if len(src) < fastFrom {
				var k Kind
				for _, p := range quick.found {
					k = max(k, p.Kind)
				}
				if v := JudgeShell(src, facts); v.Kind != k || v.Error != "" {
					t.Fatalf("%q: %s quickly, %s (%s) by the walker", src, k, v.Kind, v.Error)
				}
			}
		}
		va, vb := JudgeShell(a, facts), JudgeShell(b, facts)
		if va.Error != "" || vb.Error != "" || strings.ContainsAny(a, "#\\=") || strings.Contains(a, "<<") || strings.Contains(a, "read") {
			return
		}
		both := JudgeShell(a+"\n"+b, facts)
		if both.Kind < va.Kind {
			t.Fatalf("%q is %s, and %q before %q only %s", a, va.Kind, a, b, both.Kind)
		}
		// What loops and functions make of b is judged in a.
		if both.Kind < vb.Kind && !strings.Contains(a, "for") && !strings.Contains(a, "(") && !strings.Contains(a, "function") {
			t.Fatalf("%q is %s, and after %q only %s", b, vb.Kind, a, both.Kind)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "www.example.com", "example.com.evil.org", "evilexample.com", "https://example.com@evil.org/", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "bücher.de", "a\x00.example.com", "http://a.example.com:80/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if MatchDomain("example.com", s) {
				t.Fatalf("%q is no host and matches", s)
			}
			return
		}
		if again, err := ParseHost(h); err != nil && !strings.Contains(h, ":") || err == nil && again != h {
			t.Fatalf("%q: canonical %q reads as %q, %v", s, h, again, err)
		}
		if MatchDomain("example.com", s) && h != "example.com" && !strings.HasSuffix(h, ".example.com") {
			t.Fatalf("%q matches example.com by text", s)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "../x", "/w/app/a", "/w/app-evil/x", "~/x", ".git/config", "a/.GIT/hooks", "/proc/self/root/etc/passwd", "/proc/self/cwd/a", "/dev/fd/3", ".g\u200cit/x", "a//b/./c", "/w/app/../../etc"} {
		f.Add(s)
	}
	facts := &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u"}
	f.Fuzz(func(t *testing.T, s string) {
		p := facts.Path(s)
		if p.Inside && p.Abs != "/w/app" && !strings.HasPrefix(p.Abs, "/w/app/") {
			t.Fatalf("%q is inside as %q", s, p.Abs)
		}
		if p.Abs != "" && path.Clean(p.Abs) != p.Abs {
			t.Fatalf("%q: %q isn't clean", s, p.Abs)
		}
		if strings.IndexByte(s, 0) < 0 && s != "" {
			if q := facts.Path(path.Join("/w/app/x", ".git", "/"+s)); q.Abs != "" && strings.Contains(q.Abs, "/.git/") && q.Protected == "" {
				t.Fatalf("%q isn't protected", q.Abs)
			}
		}
	})
}

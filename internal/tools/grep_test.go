package tools

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGrepModes(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.go", "package a\n\nfunc Alpha() {}\nfunc beta() {}\n")
	b.put(t, "sub/b.go", "package b\r\nfunc Gamma() {}\r\n")
	b.put(t, "sub/c.txt", "func in a text\n")
	b.put(t, "node_modules/x.go", "func ignored() {}\n")
	b.put(t, ".git/HEAD", "func\n")
	b.put(t, ".gitignore", "node_modules/\n")
	b.put(t, ".hidden", "func\n")
	wantSame(t, "content", b.ok(t, "grep_search", args{"pattern": "^func"}),
		"a.go:3:func Alpha() {}\na.go:4:func beta() {}\nsub/b.go:2:func Gamma() {}\nsub/c.txt:1:func in a text")
	wantSame(t, "glob", b.ok(t, "grep_search", args{"pattern": "^func", "include": "*.go", "-n": false}),
		"a.go:func Alpha() {}\na.go:func beta() {}\nsub/b.go:func Gamma() {}")
	wantSame(t, "type", b.ok(t, "grep_search", args{"pattern": "func", "type": "txt"}), "sub/c.txt:1:func in a text")
	wantSame(t, "files", b.ok(t, "grep_search", args{"pattern": "func", "output_mode": "files_with_matches"}), "a.go\nsub/b.go\nsub/c.txt")
	wantSame(t, "count", b.ok(t, "grep_search", args{"pattern": "func", "output_mode": "count"}), "a.go:2\nsub/b.go:1\nsub/c.txt:1")
	wantSame(t, "path", b.ok(t, "grep_search", args{"pattern": "GAMMA", "path": "sub", "-i": true}), "sub/b.go:2:func Gamma() {}")
	wantSame(t, "file", b.ok(t, "grep_search", args{"pattern": "func", "path": ".hidden"}), ".hidden:1:func")
	wantSame(t, "nothing", b.ok(t, "grep_search", args{"pattern": "nowhere"}), "No matches found.")
	wantText(t, b.ok(t, "grep_search", args{"pattern": `\{\}$`, "path": "sub"}), "No matches found.", `\r?$`)
	wantSame(t, "limit", b.ok(t, "grep_search", args{"pattern": "func", "head_limit": 1, "offset": 1}),
		"a.go:4:func beta() {}\n[1 of 4 matching lines in 3 files shown; narrow the search, or go on with offset 2]")
	wantSame(t, "context", b.ok(t, "grep_search", args{"pattern": "Alpha|Gamma", "-C": 1}),
		"a.go-2-\na.go:3:func Alpha() {}\na.go-4-func beta() {}\n--\nsub/b.go-1-package b\nsub/b.go:2:func Gamma() {}")
	wantSame(t, "multiline", b.ok(t, "grep_search", args{"pattern": `package a.*Alpha`, "multiline": true}), "a.go:1:package a\na.go:2:\na.go:3:func Alpha() {}")
	d := b.run(t, "grep_search", args{"pattern": "func", "output_mode": "count"}).Display.(grepDisplay)
	if d.NumFiles != 3 || d.NumMatches != 4 || len(d.Filenames) != 3 {
		t.Errorf("display: %+v", d)
	}
}

func TestGrepSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for pattern, want := range map[string]string{
		"(":                     "fixed_strings",
		`a(?=b)`:                "look-around",
		"a\nb":                  "multiline",
		`a\nb`:                  "multiline",
		`[a&&b]`:                "set operations",
		`[a`:                    "not closed",
		strings.Repeat("[", 40): "too many classes within classes",
		`\xZZ`:                  "not a character",
		`(?x)a`:                 "not supported",
		`\Qa\E`:                 "fixed_strings",
		`(?-u)\w`:               "Unicode",
		`\b{start`:              `\b`,
	} {
		b.fails(t, "grep_search", args{"pattern": pattern}, want)
	}
	b.fails(t, "grep_search", args{"pattern": "a", "type": "nonsense"}, "not known", "rust")
	b.fails(t, "grep_search", args{"pattern": "a", "output_mode": "nonsense"}, "files_with_matches")
	b.fails(t, "grep_search", args{"pattern": "a", "path": "missing"}, "no such file")
	b.fails(t, "grep_search", args{"pattern": "a", "path": "/etc"}, "outside")
	b.fails(t, "grep_search", args{"pattern": "a", "glob": "[x"}, "not closed")
}

func TestGrepIsBoundedAndDeterministic(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for i := range 60 {
		b.put(t, fmt.Sprintf("d%d/f%d.txt", i%7, i), strings.Repeat("needle in a line\n", 200)+strings.Repeat("x", 10_000)+" needle\n")
	}
	first := b.ok(t, "grep_search", args{"pattern": "needle"})
	if n := strings.Count(first, "\n"); n != grepLines {
		t.Errorf("%d lines", n)
	}
	wantText(t, first, "[250 of 12060 matching lines in 60 files shown")
	for range 5 {
		wantSame(t, "again", b.ok(t, "grep_search", args{"pattern": "needle"}), first)
	}
	long := b.ok(t, "grep_search", args{"pattern": "^x", "path": "d0/f0.txt"})
	if len(long) > 2100 {
		t.Errorf("%d bytes", len(long))
	}
	wantText(t, long, "[line cut]")
}

func TestGlobFindsNewestFirst(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, ".git/config", "")
	b.put(t, ".gitignore", "*.log\n")
	for i, name := range []string{"old.go", "sub/deep/mid.go", ".dot/new.go", "x.log", "sub/y.ts"} {
		touch(t, b.put(t, name, ""), i)
	}
	wantSame(t, "all", b.ok(t, "glob", args{"pattern": "**/*.go"}), ".dot/new.go\nsub/deep/mid.go\nold.go")
	wantSame(t, "top", b.ok(t, "glob", args{"pattern": "*.go"}), "old.go")
	wantSame(t, "braces", b.ok(t, "glob", args{"pattern": "sub/**/*.{go,ts}"}), "sub/y.ts\nsub/deep/mid.go")
	wantSame(t, "path", b.ok(t, "glob", args{"pattern": "**/*", "path": "sub"}), "sub/y.ts\nsub/deep/mid.go")
	wantSame(t, "absolute", b.ok(t, "glob", args{"pattern": b.dir + "/sub/*"}), "sub/y.ts")
	wantSame(t, "none", b.ok(t, "glob", args{"pattern": "*.log"}), "No files found.")
	b.fails(t, "glob", args{"pattern": "[a"}, "not a glob")
	b.fails(t, "glob", args{"pattern": "../*"}, "outside")
	b.fails(t, "glob", args{"pattern": "*", "path": "old.go"}, "not a directory")
	for i := range globFiles + 5 {
		b.put(t, fmt.Sprintf("many/%d.x", i), "")
	}
	r := b.run(t, "glob", args{"pattern": "many/*"})
	wantText(t, resultText(r), "[the newest 1000 of 1005 files")
	if d := r.Display.(globDisplay); d.NumFiles != globFiles || !d.Truncated {
		t.Errorf("display: %d, %v", d.NumFiles, d.Truncated)
	}
}

func TestListDirectory(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, ".git/config", "")
	b.put(t, ".gitignore", "*.log\nout/\n")
	b.put(t, "b.txt", "12345")
	b.put(t, "a.tmp", "")
	b.put(t, "z/x", "")
	b.put(t, "out/x", "")
	b.put(t, "x.log", "")
	mustSymlink(t, "b.txt", filepath.Join(b.dir, "link"))
	wantSame(t, "listing", b.ok(t, "list_directory", args{"path": "."}),
		".git/\nz/\n.gitignore (11 bytes)\na.tmp (0 bytes)\nb.txt (5 bytes)\nlink -> b.txt\n[2 ignored entries are not listed]")
	wantText(t, b.ok(t, "list_directory", args{"path": ".", "ignore": []string{"*.tmp", "z"}}), "[4 ignored")
	b.fails(t, "list_directory", args{"path": "b.txt"}, "not a directory")
	b.fails(t, "list_directory", args{"path": "y"}, "no such file")
	b.fails(t, "list_directory", args{"path": "/"}, "outside")
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for i := range 600 {
		b.put(t, fmt.Sprintf("f%d", i), "x")
	}
	reports := make(chan Progress, 16)
	b.tools["grep_search"].Run(t.Context(), &Call{Input: []byte(`{"pattern":"x"}`), Progress: func(p Progress) { reports <- p }})
	if len(reports) != 1 {
		t.Errorf("%d reports", len(reports))
	}
}

// FuzzLineMatcher compares the prefilter and the two engines: on ASCII they
// must agree with a plain regexp.
func FuzzLineMatcher(f *testing.F) {
	for _, s := range [][2]string{
		{"foo|ba[rz]", "x\nfoo\nbaz"}, {`\bé`, "é"}, {`(?i)ask`, "ASK\nsk"}, {`a{2,}b+`, "aaab"}, {`[^a]`, "\xff"}, {"", "\n\n"}, {`^$`, "a\n\nb"}, {`\Bx`, "xx"}, {"(a|b)*c", "abc"},
	} {
		f.Add(s[0], s[1], false)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if len(pattern) > 100 || len(text) > 2000 {
			return
		}
		parsed, re, err := parsePattern(pattern, false, fold, false)
		if err != nil {
			return
		}
		m, err := newLineMatcher(parsed, re)
		if err != nil {
			return
		}
		var got []int
		var skip needleState
		for from := 0; ; {
			start, end, ok := m.next([]byte(text), from, &skip)
			if !ok {
				break
			}
			got = append(got, start)
			from = end + 1
		}
		var want []int
		start := 0
		for _, line := range bytes.SplitAfter([]byte(text), []byte("\n")) {
			if len(line) > 0 && runProg(m.prog, bytes.TrimSuffix(line, []byte("\n"))) {
				want = append(want, start)
			}
			start += len(line)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: got lines at %v, the slow way gives %v", pattern, text, got, want)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if isASCII(line) && re.MatchString(line) != runProg(m.prog, []byte(line)) {
				t.Fatalf("%q on %q: the engines differ", pattern, line)
			}
		}
	})
}

// FuzzGlobs checks that globs never panic, and that the shapes with a short cut
// mean the same as the expression.
func FuzzGlobs(f *testing.F) {
	for _, s := range [][2]string{{"**/*.go", "a/b.go"}, {"a/**/b", "a/b"}, {"[!a]*", "b"}, {"{a,b}/**", "a/x"}, {"**", ""}, {"/x", "x"}, {"!a/", "a"}, {`\#`, "#"}, {"a**b", "axb"}, {"é?", "éa"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, line, path string) {
		var rules ignoreRules
		if err := rules.add(line); err == nil && len(rules.rules) > 0 {
			rules.match(path, false)
		}
		g, err := compileGlob(line)
		if err != nil || g.kind == shapeRegexp || path == "" || strings.HasSuffix(path, "/") || strings.HasPrefix(path, "/") || strings.Contains(path, "//") {
			return
		}
		c := globCompiler{glob: line}
		if err := c.compile(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		expr := c.re.String()
		if line == "**" {
			expr = ".*"
		}
		if want := regexp.MustCompile(`(?s)^` + expr + `$`).MatchString(latin1(path)); want != g.match(path) {
			t.Fatalf("%q on %q: %v, want %v", line, path, !want, want)
		}
	})
}

func FuzzTranslatePattern(f *testing.F) {
	for _, s := range []string{`[\w-]+`, `[[:alpha:]\d]`, `[a[b]]`, `(?iu-m:x)`, `\u{1F600}`, `[^]]`, `(?P<n>x)`, `[]-a]`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if out, err := translatePattern(p); err == nil && utf8.ValidString(p) && !utf8.ValidString(out) {
			t.Fatalf("%q became %q", p, out)
		}
	})
}

func BenchmarkGrep(b *testing.B) {
	t := newToolBench(b)
	line := "the quick brown fox jumps over the lazy dog, func main() { return err }\n"
	for i := range 500 {
		t.put(b, fmt.Sprintf("d%d/e%d/f%d.go", i%5, i%11, i), strings.Repeat(line, 300))
	}
	for name, pattern := range map[string]string{"literal": "not there", "ignoring case": "(?i)not there", "class": `\w+Error\b`, "alternation": "foo|bar|qux"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(500 * 300 * len(line)))
			for b.Loop() {
				t.ok(b, "grep_search", args{"pattern": pattern})
			}
		})
	}
}

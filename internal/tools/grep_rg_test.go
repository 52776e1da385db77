package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// findRipgrep returns the path of rg, or skips the test; where
// AGENT_TEST_REQUIRE names rg, its absence is a failure.
func findRipgrep(t testing.TB) string {
	t.Helper()
	rg, err := exec.LookPath("rg")
	if err == nil {
		return rg
	}
	if strings.Contains(os.Getenv("AGENT_TEST_REQUIRE"), "rg") {
		t.Fatal("ripgrep (rg) is not installed, and AGENT_TEST_REQUIRE demands it")
	}
	t.Skip("ripgrep (rg) is not installed: NOT comparing grep_search with it")
	return ""
}

// rgCase is one search, in our words and in ripgrep's.
type rgCase struct {
	in   args
	argv []string
}

// rgPatterns are searched in every generated tree, in turn.
func rgPatterns() []rgCase {
	plain := func(p string) rgCase { return rgCase{args{"pattern": p}, []string{"-e", p}} }
	with := func(p string, in args, flags ...string) rgCase {
		in["pattern"] = p
		return rgCase{in, append(flags, "-e", p)}
	}
	cases := []rgCase{}
	for _, p := range []string{
		"alpha", "beta gamma", `func\s+\w+`, `^alpha`, `delta$`, `alpha|beta|x9`, `\balpha\b`, `\bé\w+`,
		`\w+é\b`, `[^a-z ]+`, `\d+`, `^\d+$`, `\s$`, `^$`, `a.c`, `.`, `naïve`, `(?i)ÉTÉ`, `(?i)k`, `\bstraße\b`,
		`x{2,3}y`, `(foo|bar)+baz`, `[[:upper:]]{2}`, `\p{Greek}+`, `\W\w`, `[\w-]+@[\w.]+`, `[^\x00-\x7F]`,
		`\S+\.go`, `err\s*!=\s*nil`, `"[^"]*"`, `\(.*\)`, `^\s*#`, `日本`, `\B-\B`, `[\d]{3}`, `[^\W]9`, `lo{2,}ng`,
		`\u00e9`, `\x{3b1}`, `(?-i:Alpha)`, `a\b`, `\b`, `end\r?$`, `[^\s]z`, `^.{0,3}$`, `ſ|K`, `fo{0}o?`, "",
	} {
		cases = append(cases, plain(p))
	}
	return append(cases,
		with("ALPHA", args{"-i": true}, "-i"),
		with("straße", args{"-i": true}, "-i"),
		with("ask", args{"-i": true}, "-i"),
		with(`\bsk\w`, args{"-i": true}, "-i"),
		with("a.c(", args{"fixed_strings": true}, "-F"),
		with("naïve", args{"fixed_strings": true, "-i": true}, "-F", "-i"),
		with("alpha", args{"glob": "*.go"}, "-g", "*.go"),
		with("alpha", args{"glob": "!*.go"}, "-g", "!*.go"),
		with("a", args{"glob": "*.{log,txt}"}, "-g", "*.{log,txt}"),
		with("a", args{"glob": "src/**"}, "-g", "src/**"),
		with("a", args{"glob": "**/lib/*.go"}, "-g", "**/lib/*.go"),
		with("a", args{"glob": ".*"}, "-g", ".*"),
		with("a", args{"glob": "*.txt !a*"}, "-g", "*.txt", "-g", "!a*"),
		with("alpha", args{"type": "go"}, "-t", "go"),
		with("a", args{"type": "md"}, "-t", "md"),
		with("a", args{"type": "sh"}, "-t", "sh"),
		with(`alpha.*?beta`, args{"multiline": true}, "-U", "--multiline-dotall"),
		with(`gamma\s+delta`, args{"multiline": true}, "-U", "--multiline-dotall"),
		with(`^\w+\n\n`, args{"multiline": true}, "-U", "--multiline-dotall"),
		with(`end\n`, args{"multiline": true}, "-U", "--multiline-dotall"),
	)
}

// treeMaker writes random trees.
type treeMaker struct {
	t   testing.TB
	rng *rand.Rand
	dir string
}

var treeWords = []string{
	"alpha", "beta", "gamma", "delta", "func main", "err != nil", "foo", "barbaz", "x9", "xxy", "été", "ÉTÉ", "naïve",
	"straße", "STRASSE", "日本語", "αβγ", "user@example.com", "a.c(", "abc", "looong", "main.go", "\"quoted\"", "(paren)",
	"# note", "123", "4567", "-", "--", "Kelvin \u212a", "long \u017f", "ask skip", "end", "Alpha", "HTTPServer", "z", "\tz",
}

func (m *treeMaker) pick(list ...string) string { return list[m.rng.IntN(len(list))] }

func (m *treeMaker) line() string {
	var words []string
	for range m.rng.IntN(6) {
		words = append(words, treeWords[m.rng.IntN(len(treeWords))])
	}
	return strings.Join(words, m.pick(" ", " ", "  ", "", "\t", "."))
}

func (m *treeMaker) content() []byte {
	var b bytes.Buffer
	eol := m.pick("\n", "\n", "\n", "\r\n", "mixed")
	lines := m.rng.IntN(30)
	if m.rng.IntN(12) == 0 {
		lines = 3000 // more than one buffer
	}
	for range lines {
		b.WriteString(m.line())
		switch m.rng.IntN(60) {
		case 0:
			b.WriteString("\xff\xe9alpha\xc3")
		case 1:
			b.WriteString(strings.Repeat("looong ", 1000))
		case 2:
			b.WriteString("\xe9t\xe9 \xa0alpha")
		}
		if eol == "mixed" {
			b.WriteString(m.pick("\n", "\r\n"))
		} else {
			b.WriteString(eol)
		}
	}
	b.WriteString(m.pick("", "", "last alpha", "end", "\n"))
	return m.disguise(b.Bytes())
}

// disguise makes a text binary or gives it another encoding, sometimes.
func (m *treeMaker) disguise(text []byte) []byte {
	switch m.rng.IntN(14) {
	case 0:
		return append([]byte("\xef\xbb\xbf"), text...)
	case 1:
		return append([]byte("\xff\xfe"), encUTF16LE.encode(string(bytes.ToValidUTF8(text, nil)))...)
	case 2:
		return append([]byte("\xfe\xff"), encUTF16BE.encode(string(bytes.ToValidUTF8(text, nil)))...)
	case 3, 4:
		at := m.rng.IntN(len(text) + 1)
		return slices.Concat(text[:at], []byte{0}, text[at:])
	case 5:
		return append(text, 0)
	case 6:
		return append([]byte("\xff\xfe\x00\x00"), encUTF32LE.encode(string(bytes.ToValidUTF8(text, nil)))...)
	}
	return text
}

func (m *treeMaker) file(name string, content []byte) {
	p := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(p, content, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *treeMaker) ignoreFile() []byte {
	var b strings.Builder
	for range 1 + m.rng.IntN(5) {
		b.WriteString(m.pick(
			"*.log", "!keep.log", "build/", "/build", "lib", "/a.txt", "src/*.txt", "**/b.md", "lib/**", "!lib/keep.txt", "*.t?t",
			"[ab].go", "[!a]*.md", "\\#odd", "# comment", "", "  ", "*.{log,tmp}", "foo bar.txt", "src/", "!src/", "*", "!*/", "!*.go",
			"/*", ".hid*", "!.hidden.txt", "!.dot/", "a.txt ", "é*", "docs/**/x*", "**/", "/src/lib/", "x*y*.txt", "\\!bang.txt", "un[closed", "*.md\\", "**foo", "a**b.go", "/**/lib/a.go", "{a,b}.md",
		))
		b.WriteString(m.pick("\n", "\n", "\r\n"))
	}
	return []byte(b.String())
}

var treeNames = []string{
	"a.go", "b.go", "a.txt", "b.md", "keep.log", "x.log", "keep.txt", ".hidden.txt", ".hidden.go", "foo bar.txt", "été.txt", "#odd",
	"!bang.txt", "x1y2.txt", "c.tmp", "afoob.go", "Makefile", "run.sh", ".profile", "-dash.txt",
}

func (m *treeMaker) tree() {
	dirs := []string{"", "src", "src/lib", "lib", "build", "build/out", ".dot", ".dot/sub", "docs/deep/xd", "sub", "sub/src"}
	for _, d := range dirs {
		if d != "" && m.rng.IntN(3) == 0 {
			continue
		}
		for range 2 + m.rng.IntN(6) {
			m.file(filepath.Join(d, treeNames[m.rng.IntN(len(treeNames))]), m.content())
		}
		for _, f := range []string{".gitignore", ".gitignore", ".ignore", ".rgignore"} {
			if m.rng.IntN(5) == 0 || d == "" && f == ".gitignore" && m.rng.IntN(3) > 0 {
				m.file(filepath.Join(d, f), m.ignoreFile())
			}
		}
	}
	if m.rng.IntN(4) > 0 {
		m.file(".git/config", []byte("alpha\n"))
		if m.rng.IntN(2) == 0 {
			m.file(".git/info/exclude", m.ignoreFile())
		}
	}
	if m.rng.IntN(5) == 0 {
		m.file("sub/.git/HEAD", []byte("alpha\n")) // a repository in the repository
	}
	for _, link := range [][2]string{{"a.txt", "link.txt"}, {"src", "linkdir"}, {"nowhere", "dangling"}, {"..", "src/up"}} {
		_ = os.Symlink(link[0], filepath.Join(m.dir, link[1])) // not where the directory is missing
	}
}

// TestGrepFindsWhatRipgrepFinds compares the set of file:line with ripgrep's on
// generated trees.
func TestGrepFindsWhatRipgrepFinds(t *testing.T) {
	t.Parallel()
	rg := findRipgrep(t)
	cases := rgPatterns()
	const trees, perTree = 24, 12
	for seed := range uint64(trees) {
		t.Run(fmt.Sprintf("tree %d", seed), func(t *testing.T) {
			t.Parallel()
			b := newToolBench(t)
			m := &treeMaker{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: b.dir}
			m.tree()
			for i := range perTree {
				c := cases[(int(seed)*perTree+i)%len(cases)]
				path := ""
				if i%5 == 4 {
					path = "sub"
					if m.rng.IntN(2) == 0 {
						path = "src"
					}
					if _, err := os.Stat(filepath.Join(b.dir, path)); err != nil {
						path = ""
					}
				}
				compareWithRipgrep(t, rg, b, c, path)
			}
		})
	}
}

func compareWithRipgrep(t *testing.T, rg string, b *toolBench, c rgCase, path string) {
	t.Helper()
	where := "."
	if path != "" {
		where = path
	}
	want := runRipgrep(t, rg, filepath.Join(b.dir, where), c.argv)
	got := ourMatches(t, b, c.in, where)
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%v in %q of %s:\n%s", c.in, where, b.dir, firstDifferences(got, want))
}

// runRipgrep returns rg's matches as sorted path:line.
func runRipgrep(t testing.TB, rg, dir string, argv []string) []string {
	t.Helper()
	cmd := exec.Command(rg, append([]string{"--no-config", "--no-ignore-global", "--no-heading", "-H", "-n", "--color", "never", "--null"}, append(argv, "./")...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if ee, ok := err.(*exec.ExitError); ok && ee.ExitCode() > 1 && len(out) == 0 && len(ee.Stderr) > 0 && !strings.Contains(string(ee.Stderr), "error parsing glob") {
		t.Fatalf("rg %q: %s", argv, ee.Stderr)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		path, rest, ok := strings.Cut(line, "\x00")
		number, _, isLine := strings.Cut(rest, ":")
		if _, err := strconv.Atoi(number); ok && isLine && err == nil {
			all = append(all, strings.TrimPrefix(path, "./")+":"+number)
		}
	}
	slices.Sort(all)
	return all
}

// ourMatches returns grep_search's matches as sorted path:line, relative to
// the directory searched.
func ourMatches(t testing.TB, b *toolBench, in args, where string) []string {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var parsed grepInput
	if err := decodeInput(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	q, err := newGrepQuery(parsed)
	if err != nil {
		t.Fatal(err)
	}
	q.limit = 1 << 20
	at, err := b.roots.Resolve(where)
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.tools["grep_search"].(*grepTool).search(t.Context(), at, q, &Call{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found.files {
		name := f.path
		if where != "." {
			name = strings.TrimPrefix(name, where+"/")
		}
		for _, l := range f.lines {
			all = append(all, fmt.Sprintf("%s:%d", name, l.number))
		}
	}
	slices.Sort(all)
	return all
}

func firstDifferences(got, want []string) string {
	var b strings.Builder
	report := func(what string, list, other []string) {
		n := 0
		for _, e := range list {
			if _, ok := slices.BinarySearch(other, e); !ok {
				if n++; n <= 5 {
					fmt.Fprintf(&b, "  %s %s\n", what, e)
				}
			}
		}
		fmt.Fprintf(&b, "  %s: %d of %d\n", what, n, len(list))
	}
	report("only rg", want, got)
	report("only we", got, want)
	return b.String()
}

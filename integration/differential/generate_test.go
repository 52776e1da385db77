package differential

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const policyDir = "../../internal/policy"

// row is a line of the table of commands that only read.
type row struct {
	name  string
	flags []string
	kind  string
}

// generator makes command lines: from the tables, by a grammar around them,
// and from the corpus. One seed makes always the same.
type generator struct {
	r      *rand.Rand
	rows   []row
	git    []row
	corpus []string
}

func newGenerator(t *testing.T, seed uint64) *generator {
	t.Helper()
	g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
	g.loadRows(t)
	g.loadCorpus(t)
	return g
}

func (g *generator) loadRows(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(policyDir, "data/readonly.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]struct{ F, O, Like, Also string }
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	var names []string
	for n := range raw {
		names = append(names, n)
	}
	slices.Sort(names) // not in the map's order: a seed must make the same each time
	for _, n := range names {
		if n[0] == '@' {
			continue
		}
		r := raw[n]
		spec := strings.NewReplacer("@log", raw["@log"].F, "@diff", raw["@diff"].F).Replace(r.F)
		all := append([]string{n}, strings.Fields(r.Like)...)
		if r.Also != "" {
			all = append(all, r.Also)
		}
		for _, name := range all {
			first, _, _ := strings.Cut(name, " ")
			if !installed(first) && !slices.Contains(builtins, first) {
				continue
			}
			w := row{name, strings.Fields(spec), r.O}
			if first == "git" {
				g.git = append(g.git, w)
			} else {
				g.rows = append(g.rows, w)
			}
		}
	}
}

var builtins = strings.Fields("echo printf true false : test [ type exit return break continue shift times umask ulimit caller dirs help jobs wait pwd")

// slow are commands that only cost time, or never end.
var slow = regexp.MustCompile(`\b(sleep|yes|factor)\b|\btail\b[^|;&]* (-[a-zA-Z]*[fF]|--follow|--retry|--pid)|/dev/(zero|u?random|full|tty|stdout|fd/1) *($|[^ <>|&;])|/dev/(zero|u?random|full|tty)|\b(npm|pip3?|cargo|go|gofmt|locale|vim|java|kubectl|docker|apropos|locate|apt-cache)\b|while (true|:)|until|--disk-usage`)

func (g *generator) loadCorpus(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(policyDir, "testdata/corpus/*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(f)
		in.Buffer(nil, 8<<20)
		for in.Scan() {
			var c struct{ Command string }
			if err := json.Unmarshal(in.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			if c.Command != "" && len(c.Command) < 2000 {
				g.corpus = append(g.corpus, c.Command)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func (g *generator) one(list []string) string { return list[g.r.IntN(len(list))] }

func (g *generator) in(n, of int) bool { return g.r.IntN(of) < n }

// command makes one command line and the directory that it runs in.
func (g *generator) command() command {
	c := command{Cwd: project}
	switch g.r.IntN(10) {
	case 0, 1, 2:
		c.Cwd = hostile
	case 3:
		c.Cwd = odd
	}
	for {
		switch g.r.IntN(10) {
		case 0, 1:
			c.Src = g.mutated()
		case 2, 3:
			c.Src = g.script(2)
		default:
			c.Src = g.simple()
			for g.in(1, 4) {
				c.Src = g.disguise(c.Src)
			}
		}
		if slow.MatchString(c.Src) && !g.in(1, 400) || strings.ContainsRune(c.Src, 0) || len(c.Src) > 4000 {
			continue
		}
		return c
	}
}

var (
	paths = strings.Fields(`a.txt b.txt data.csv data.json README.md main.go src docs docs/guide.md . .. ./ src/lib/deep.txt a.gz bin.dat link linkdir linkdir/guide.md outside dangling loop
		evil ./evil ls run.sh .gitignore .ripgreprc go.mod package.json Makefile patch.diff sums list0 log.txt prog.awk script.sed internal cmd *.go *.txt * ./* docs/* odd odd/* odd/-o odd/pwned.txt .git .git/config .git/HEAD vendor/hostile
		/dev/null /dev/stdin /dev/stdout - -- /etc/hostname ~ ~/notes.txt nosuchfile pwned /home/u/project/a.txt ../../a.txt {a,b}.txt [ab].txt ?.txt c.x b.bin`)
	spaced = []string{"'docs/a b.txt'", `"docs/a b.txt"`, `docs/a\ b.txt`, `'odd/$(touch pwned)'`, `"odd/a b"`, `$'odd/new\nline'`, `"$HOME/notes.txt"`, `"$PWD"`, "$PWD/a.txt", `"$(pwd)/a.txt"`, "''", `"a"'.txt'`, `a\.txt`, `'a.txt'`, "$x", `"$x"`, "${x:-a.txt}", "$@", "`echo a.txt`", "$(echo a.txt)", "<(cat a.txt)", ">(cat)", "$((1+1))", "~+", "$1", "${PWD##*/}"}
	revs   = strings.Fields(`HEAD HEAD~1 HEAD^ HEAD^2 main topic v1 v2 main..topic main...topic HEAD:a.txt :a.txt HEAD:b.bin HEAD:c.x HEAD:src stash@{0} @ @{1} refs/heads/main origin/main --all -- :/first HEAD^{tree} HEAD^{commit} refs/notes/commits a.txt b.bin c.x . ':(top)' ':!a.txt' origin nosuchrev ext::sh\ -c\ ./evil --output=pwned --ext-diff --textconv refs/stash`)
	words  = strings.Fields(`error TODO a b . .* ^a one '' "a\ b" -e -v x 1 2 10 -1 +1 0 % %s %d %b '\n' '\x41' + = ! '(' ')' -f -d -z -n -eq -lt -nt hello env HOME PATH '{print}' '.a' '.b[]' 'p' '1,2p' 1d s/a/b/ s/a/b/e s/a/b/w '*.go' -delete -exec now yesterday 2024-01-01 @0 git ls cat main -o`)
	values = strings.Fields(`1 2 3 10 0 -1 , : ' ' '|' a x '\t' utf-8 always never auto all none full short name size date time %H %s %an '%(refname)' '%(objectname)' '%G?' '%h%x00%GK' '%(trailers)' '%(describe)' '%N' '%(signature)' '%(upstream:track)' '%(ahead-behind:HEAD)' '%(contents)' '%(if)%(HEAD)%(then)x%(end)' '%(align:9)%(refname)%(end)' 'format:%GG' raw fuller email mboxrd reference
		remerge dense-combined first-parent cc r m on off separate 1:a.txt 1,2 1,2:a.txt :add:main.go /a/,/b/ 1k 1M 5d yesterday 2024-01-01 '1 week ago' topic main v1 HEAD a.txt b.txt list0 docs '*.txt' '*.go' 'odd' f d l,s a.gz ./evil evil /home/u/project/evil 'sh -c ./evil' pwned ../pwned /home/u/pwned warn error no yes true json csv table tree:0 blob:none blob:limit=1 allow-promisor allow-any print minimal patience log diff zlib text binary recurse skip read
		user,pid,cmd args= comm pid=,args= -pid long-iso '+%F' iso unix human local +%s %Y%m%d u@example.com Signed-off-by objects`)
	scripts = map[string][]string{
		"sed": {"p", "1,2p", "s/a/b/", "s/a/b/g;s/c/d/", "/x/d", "$!N;P;D", "y/abc/xyz/", "1q", "s|a|b|p", "/a/,/b/p", "1~2p", "2,+3p", "s/a/b/e", "s/a/b/w pwned", "w pwned", "e ./evil", "r /etc/passwd", "R a.txt", "1e", "s/a/b/gw pwned", "s/\\//x/", "s/[/]/x/", "s/[^/]*\\///w pwned", "/[/]w pwned", "s,a,b,;W pwned", "{p;p}", "a\\\nx", "i x", "c x", "s/a/b/\nw pwned", "p;#n\nw pwned", "y/a/b/;w pwned", "/a/{s//b/;p}", "/a\nb/p", "0,/a/p", "\\,a,p", "\\,a,w pwned", "$=", "l 5", "q5", "F", "z", "v", "s/x/\\\n/", "s/a/b/m", "s/[]/]x/w pwned/p", "s/a/b/;}w pwned", ":a;s/^a/b/;ta", "b", "n;d", "/a/Iw pwned", "s/a/b/2p", "1!G;h;$!d", "/[a/]/p", "s/a/[/;s/]/w pwned/", "s/a/&&/", "1,3!d", "s/[[:alpha:]]/x/", "s/[a]/]/w pwned"},
		"awk": {"{print}", "{print $1}", "NR==1", "/a/", "BEGIN{print 1}", "{s+=$1} END{print s}", "{print > \"pwned\"}", "{print | \"./evil\"}", "BEGIN{system(\"./evil\")}", "{\"./evil\" | getline}", "$1>1", "{print $1>1}", "{if($1>1)print}", "BEGIN{printf \"%s\\n\",ARGV[1]}", "{gsub(/a/,\"b\");print}", "length>3", "{print length($0)}", "BEGIN { while ((getline l < \"a.txt\") > 0) print l }", "{a[$1]++} END{for(k in a)print k,a[k]}", "$0 ~ \"a\"", "{print(1)>(2)}", "{print $1 $2 > $1}", "1;{print>$1}", "{print -v}", "@load \"x\"", "@include \"prog.awk\"", "{ print $1 }{ print $2 > 1 }", "!seen[$0]++", "NR>1", "NR>1{print $2}", "$1 > 2 { print }", "BEGIN{f=\"system\";@f(\"./evil\")}", "{print tolower($1)}", "/\\//{print}", "{printf(\"%s\", $1) > \"pwned\"}", "/a/ || /b/", "function f(x){return x} {print f($1)}", "{print\n\"x\"}", "{print /x/ > \"pwned\"}", "-f", "{print a|b}", "{print $NF}", "-F,", "{print substr($0,2)}", "{print $1, $2 }", "(NR>1)"},
		"jq":  {".", ".a", ".b[]", ".b|length", "keys", "env", "$ENV", "input", "inputs", "input_filename", "@sh", "debug", "stderr", "getpath([\"a\"])", "import \"x\" as x; .", "include \"x\"; .", "$__loc__", "limit(1;.b[])", "tojson", "now", "input_line_number", "ltrimstr(\"a\")", "splits(\"a\")", ".[\"a\"]", "halt", "error(\"x\")", "to_entries[]", "\"\\(.a)\"", "getpath([\"env\"])", "modulemeta", "@base64", "gsub(\"a\";\"b\")", "builtins", "input|.a", "$__prog_args", "ascii", "-f", "\"a\" as $x | $x"},
	}
	finds = strings.Fields(`-name '*.go' -iname a* -type f -type d -type l -maxdepth 1 -maxdepth 2 -mindepth 1 -size +1k -newer a.txt -mtime -1 -empty -perm -u+x -user u -print -print0 -ls -printf '%p\n' -prune -o -a ! -not ( ) \( \) -path ./.git -regex '.*' -quit -delete -exec cat {} ; -exec cat {} + -exec echo {} \; -exec head -1 {} \; -execdir ls {} \; -exec grep -l a {} + -exec sh -c ./evil \; -exec ./evil \; -exec {} \; -exec wc -l {} + -ok cat {} \; -fprint pwned -fls pwned -fprintf pwned x -L -H -P -O3 -D exec -depth -follow -samefile a.txt -files0-from list0 -true -executable -exec sort {} + -exec git -C {} status \; -exec git log -1 {} \; -exec file {} + -exec sed -n 1p {} \;`)
)

func (g *generator) path() string {
	if g.in(1, 6) {
		return g.one(spaced)
	}
	return g.one(paths)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// option makes one option of a row, with a value where it takes one.
func (g *generator) option(r row) string {
	f := g.one(r.flags)
	if f == "-#" {
		return fmt.Sprintf("-%d", g.r.IntN(20))
	}
	name := strings.TrimRight(f, ":?<>@$=!")
	switch {
	case name == f || len(name) < 2:
		if g.in(1, 8) && strings.HasPrefix(f, "-") && !strings.HasPrefix(f, "--") { // clusters
			return f + strings.TrimLeft(g.option(r), "-")
		}
		return f
	case strings.HasSuffix(f, "?") && g.in(1, 2):
		return name
	}
	v := g.value(r, f)
	switch {
	case strings.HasPrefix(name, "--") && (strings.HasSuffix(f, "?") || g.in(1, 2)):
		return name + "=" + v
	case !strings.HasPrefix(name, "--") && (strings.HasSuffix(f, "?") || g.in(1, 2)):
		return name + v
	}
	return name + " " + v
}

func (g *generator) value(r row, f string) string {
	switch {
	case strings.ContainsAny(f, "<>@"):
		return g.path()
	case strings.HasSuffix(f, "!"):
		if s := scripts[family(r.name)]; s != nil {
			return quote(g.one(s))
		}
		return g.one(words)
	case g.in(1, 6):
		return g.path()
	case g.in(1, 5):
		return g.one(words)
	case g.in(1, 6) && strings.HasPrefix(r.name, "git"):
		return g.one(revs)
	}
	return g.one(values)
}

// family is the language of a command's script.
func family(name string) string {
	switch name {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		return "awk"
	case "jq", "gojq", "jaq":
		return "jq"
	case "sed":
		return "sed"
	}
	return ""
}

// call makes a call of a row's command.
func (g *generator) call(r row) string {
	out := []string{r.name}
	if strings.HasPrefix(r.name, "git ") {
		rest := strings.TrimPrefix(r.name, "git ")
		out = []string{"git"}
		for g.in(1, 5) {
			out = append(out, g.one([]string{"-C vendor/hostile", "-C .", "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "-c core.fsmonitor=false", "--bare", "-p", "--no-lazy-fetch"}))
		}
		out = append(out, rest)
	}
	if len(r.flags) > 0 {
		for range g.r.IntN(4) {
			out = append(out, g.option(r))
		}
	}
	out = append(out, g.operands(r)...)
	if g.in(1, 12) && len(out) > 2 { // in another order
		i := 1 + g.r.IntN(len(out)-1)
		out[i], out[len(out)-1] = out[len(out)-1], out[i]
	}
	return strings.Join(out, " ")
}

func (g *generator) operands(r row) []string {
	var out []string
	if s := scripts[family(r.name)]; s != nil && g.in(9, 10) {
		out = append(out, quote(g.one(s)))
	} else if r.kind == "pattern" {
		out = append(out, g.one(words))
	}
	for range g.r.IntN(3) {
		switch {
		case r.name == "find":
			out = append(out, g.path())
		case r.kind == "rev" && g.in(2, 3):
			out = append(out, g.one(revs))
		case (r.kind == "text" || r.kind == "" || r.kind == "none") && g.in(5, 6):
			out = append(out, g.one(words))
		default:
			out = append(out, g.path())
		}
	}
	if r.name == "find" {
		if g.in(1, 2) {
			return append(out, findExpressions[g.r.IntN(len(findExpressions))])
		}
		for range g.r.IntN(6) {
			out = append(out, g.one(finds))
		}
	}
	return out
}

var findExpressions = []string{"-name '*.go'", "-type f -exec cat {} +", "-type f -exec head -1 {} \\;", "-exec ls -l {} +", "-type f -print0 | xargs -0 cat", "-execdir cat {} \\;", "-type f | xargs grep a", "-name '*' -exec sort {} +", "-exec git -C {} status \\;", "-exec rg x {} +", "-exec sed -n 1p {} +", "-exec sed -i s/a/b/ {} +", "-exec sh -c 'cat \"$1\"' _ {} \\;", "-exec tree {} +", "-exec xxd {} \\;", "-exec uniq {} +", "-exec file {} +", "-exec timeout 1 cat {} +", "-exec env cat {} +", "-exec find {} -name a \\;", "-exec bash -c 'ls' \\;"}

func (g *generator) simple() string {
	if g.in(2, 5) {
		return g.call(g.git[g.r.IntN(len(g.git))])
	}
	if g.in(1, 15) {
		return g.one([]string{"git", "rg", "bash", "python3", "node", "make", "perl", "go", "gcc", "tar", "awk", "sed", "less", "ssh", "curl", "cmake", "vim", "strace", "git-shell", "docker", "zip", "gzip", "man", "tree"}) + " " + g.one([]string{"--version", "-V", "-version", "-v", "--help", "version"})
	}
	return g.call(g.rows[g.r.IntN(len(g.rows))])
}

// disguise puts something around a command.
func (g *generator) disguise(s string) string {
	p := g.path()
	forms := []string{
		"%s | head -3", "cat %p | %s", "%s | xargs cat", "echo %p | xargs %s", "ls | xargs -I{} %s {}", "%s 2>/dev/null", "%s 2>&1", "%s >/dev/null 2>&1", "%s < %p", "%s <<< x", "%s <<E\nx $(cat a.txt)\nE", "%s >/dev/stdin < a.txt", "%s 3< a.txt >/dev/fd/3", "%s 1<a.txt >/dev/stdout",
		"%s 2<a.txt 2>/dev/stderr", "%s > /dev/null/../pwned", "%s &> /dev/null", "%s >| /dev/null", "%s <> %p", "%s >&2", "%s 2>&-", "%s >/dev/stderr", "%s > /proc/self/fd/1", "%s <&0", "LC_ALL=C %s", "x=%p %s", "x=%p; %s $x", "GIT_PAGER=cat %s", "GIT_OPTIONAL_LOCKS=0 %s", "TERM=xterm LANG=C %s", "NO_COLOR=1 %s",
		"timeout 1 %s", "timeout -s KILL 1 %s", "nice %s", "nice -n 5 %s", "nohup %s", "nohup %s >/dev/null 2>&1", "stdbuf -oL %s", "env %s", "env A=b %s", "env -i %s", "env -u x %s", "command %s", "builtin %s", "time %s", "time -p %s", "setsid %s", "ionice -c 3 %s", "taskset 1 %s", "/usr/bin/%s", "\\%s", "! %s", "exec %s", "command -v %s", "xargs %s < %p", "xargs -a %p %s", "xargs -n1 %s < list0", "xargs -0 %s < list0",
		"(%s)", "{ %s; }", "if %s; then %s; fi", "for f in %p; do %s; done", "for f in *; do %s \"$f\"; done", "for f in *; do %s $f; done", "while read -r l; do %s; done < %p", "%s &", "%s & wait", "echo $(%s)", "echo \"$(%s)\"", "echo `%s`", "cat <(%s)", "%s > >(cat)", "[[ -n $(%s) ]]", "case $(%s) in *) true;; esac", "f() { %s; }; f", "bash -c %q", "sh -c %q", "bash -c %q _ %p", "eval %q",
		"cd %p && %s", "cd odd; %s *", "cd %p; %s", "(cd odd && %s *)", "%s && %s", "%s || true", "%s; %s", "true && %s", "a=(%p); %s \"${a[@]}\"", "((i++)); %s", "%s # comment", "%s # comment \\\n%s", "%s #\\\n%p", "echo %p | sh -V", "%s | sh --version", "%s | vim -V", "%s \\\n  %p", "coproc %s", "echo ${x:=%p}; %s $x", "echo $((x=1)); %s", "%s *", "%s -- *", "%s | tee /dev/null", "%s | sort | uniq -c", "%s | while read x; do echo $x; done", "%s |& cat", "set -e; %s", "set -o pipefail; %s | cat", "printf -v x a; %s $x", "PS4='$(./evil)' ; %s", "export LC_ALL=C; %s", "test -n \"$(%s)\" && echo x", "%s {a,b}.txt", "echo a | %s -", "busybox %s", "find . -exec %s {} +", "find . -name '*.txt' -exec %s {} \\;",
	}
	f := g.one(forms)
	f = strings.ReplaceAll(f, "%q", quote(s))
	f = strings.ReplaceAll(f, "%p", p)
	return strings.ReplaceAll(f, "%s", s)
}

// script makes a line of several commands.
func (g *generator) script(depth int) string {
	s := g.simple()
	for range 1 + g.r.IntN(2) {
		if depth > 0 && g.in(1, 2) {
			s += g.one([]string{"; ", " && ", " || ", " | ", " & ", "\n", " |& ", " | xargs "}) + g.script(depth-1)
		} else {
			s = g.disguise(s)
		}
	}
	return s
}

var token = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+|\s+`)

// mutated makes something of the corpus' commands.
func (g *generator) mutated() string {
	s := strings.NewReplacer("/home/u/project", project).Replace(g.one(g.corpus))
	for range g.r.IntN(3) {
		parts := token.FindAllString(s, -1)
		if len(parts) == 0 {
			return s
		}
		i := g.r.IntN(len(parts))
		switch g.r.IntN(9) {
		case 0:
			parts[i] = g.path()
		case 1:
			parts[i] = g.one(words)
		case 2:
			parts = append(parts, " ", g.path())
		case 3:
			parts = slices.Delete(parts, i, i+1)
		case 4:
			parts = slices.Insert(parts, i, " "+g.option(g.rows[g.r.IntN(len(g.rows)-1)%len(g.rows)].orSome())+" ")
		case 5:
			other := token.FindAllString(g.one(g.corpus), -1)
			if len(other) > 0 {
				parts = append(parts[:i:i], other[g.r.IntN(len(other)):]...)
			}
		case 6:
			return g.disguise(s)
		case 7:
			w := parts[i]
			if w != "" {
				k := g.r.IntN(len(w))
				parts[i] = w[:k] + g.one([]string{"'", `"`, "\\", "$", "`", ";", "|", "&", ">", "<", "(", ")", "{", "}", "*", "?", "[", "~", "!", "#", "=", " ", "\n", "''", `""`, "$(", "${", "-"}) + w[k:]
			}
		case 8:
			j := g.r.IntN(len(parts))
			parts[i], parts[j] = parts[j], parts[i]
		}
		s = strings.Join(parts, "")
	}
	return s
}

// orSome is the row, or one with an option if it has none.
func (r row) orSome() row {
	if len(r.flags) == 0 {
		return row{name: r.name, flags: []string{"-n", "-o:", "--output:"}, kind: r.kind}
	}
	return r
}

package differential

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	project = homeInside + "/project"
	hostile = project + "/vendor/hostile" // a repository that came with settings of its own
	odd     = project + "/odd"            // files that are named like options
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

var systemDirs = append(strings.Split(systemPath, ":"), "/usr/lib/git-core", "/usr/local/go/pkg/tool/linux_amd64")

// commandEnv is what the shell tool gives to commands (internal/tools,
// shell_env.go), as far as programs of the tables look at it.
var commandEnv = []string{
	"HOME=" + homeInside, "USER=u", "LOGNAME=u", "LANG=C.UTF-8", "SHELL=/bin/bash", "PATH=" + systemPath,
	"AGENT=1", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat", "GH_PAGER=cat", "AWS_PAGER=cat",
	"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false",
	"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1",
}

// evil is a program of the tree: that it is started is what is looked for.
const evil = "#!/bin/sh\necho pwned > " + homeInside + "/pwned\n"

// hostileConfig are settings of a repository which make git run programs.
const hostileConfig = `
[core]
	pager = /home/u/project/evil
	editor = /home/u/project/evil
	fsmonitor = /home/u/project/evil
	hooksPath = /home/u/project/vendor/hostile/hooks
	sshCommand = /home/u/project/evil
	askPass = /home/u/project/evil
	alternateRefsCommand = /home/u/project/evil
[pager]
	log = /home/u/project/evil
	diff = true
	branch = /home/u/project/evil
	status = /home/u/project/evil
[diff]
	external = /home/u/project/evil
	tool = evil
	submodule = log
[diff "evil"]
	textconv = /home/u/project/evil
	cachetextconv = true
[diff "other"]
	command = /home/u/project/evil
[filter "evil"]
	clean = /home/u/project/evil
	smudge = /home/u/project/evil
	required = true
[filter "process"]
	process = /home/u/project/evil
[merge "evil"]
	driver = /home/u/project/evil %O %A %B
[log]
	showSignature = true
[gpg]
	program = /home/u/project/evil
[gpg "ssh"]
	program = /home/u/project/evil
[credential]
	helper = /home/u/project/evil
[trailer "evil"]
	command = /home/u/project/evil
[interactive]
	diffFilter = /home/u/project/evil
[man]
	viewer = evil
[man "evil"]
	cmd = /home/u/project/evil
[browser "evil"]
	cmd = /home/u/project/evil
[uploadpack]
	packObjectsHook = /home/u/project/evil
[remote "origin"]
	url = /home/u/project/.git
	uploadpack = /home/u/project/evil
	promisor = true
	partialclonefilter = blob:none
	fetch = +refs/heads/*:refs/remotes/origin/*
[extensions]
	partialClone = origin
[alias]
	status = !/home/u/project/evil
	l = !/home/u/project/evil
[help]
	autoCorrect = immediate
[status]
	submoduleSummary = true
	showUntrackedFiles = all
`

// makeHome fills a directory with what commands find as /home/u.
func makeHome(t *testing.T, home string) {
	t.Helper()
	files := map[string]string{
		"project/README.md": "# Project\n\nA project with a README. TODO: more.\n\n- one\n- two\n",
		"project/main.go":   "package main\n\nimport \"fmt\"\n\n// TODO: greet\nfunc main() {\n\tfmt.Println(\"hello\", add(1, 2))\n}\n\nfunc add(a, b int) int { return a + b }\n",
		"project/go.mod":    "module example.com/project\n\ngo 1.21\n", "project/go.sum": "",
		"project/src/app.js": "const a = 1; // TODO\nconsole.log(a)\n", "project/src/app.ts": "let b: number = 2\n", "project/src/lib/deep.txt": "deep\n",
		"project/internal/app/app.go": "package app\n\n// App does nothing.\ntype App struct{}\n", "project/cmd/tool/main.go": "package main\n\nfunc main() {}\n",
		"project/docs/guide.md": "# Guide\nread this\nerror: none\n", "project/docs/a b.txt": "blanks\n", "project/a.txt": "b\na\nc\na\n", "project/b.txt": "1\n2\n3\n",
		"project/data.csv": "name,age\nann,3\nbob,4\n", "project/data.json": `{"a":1,"b":[1,2,{"c":"x"}],"name":"p"}` + "\n", "project/package.json": `{"name":"p","version":"1.0.0","scripts":{"test":"./evil"}}` + "\n",
		"project/Makefile": "all:\n\t./evil\n", "project/log.txt": "2024-01-01 error one\n2024-01-02 info two\n", "project/.gitignore": "*.log\n.env\n", "project/build.log": "error\n",
		"project/.env": "SECRET=x\n", "project/.ripgreprc": "--pre=/home/u/project/evil\n", "project/patch.diff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-b\n+B\n",
		"project/sums": "60b725f10c9c85c70d97880dfe8191b3  a.txt\n", "project/list0": "a.txt\x00b.txt\x00", "project/tests/x_test.py": "def test():\n    pass\n", "project/script.sed": "w pwned\n", "project/prog.awk": "BEGIN { system(\"./evil\") }\n",
		"project/odd/--output=pwned": "x\n", "project/odd/-delete": "x\n", "project/odd/-o": "x\n", "project/odd/pwned.txt": "x\n", "project/odd/a b": "x\n", "project/odd/new\nline": "x\n", "project/odd/$(touch pwned)": "x\n", "project/odd/*": "x\n",
		"project/odd/--pre=evil": "x\n", "project/odd/-i": "s/x/y/\n", "project/odd/-exec": "x\n", "project/odd/;": "x\n", "project/odd/w pwned": "x\n", "project/odd/-fe": "x\n", "project/odd/--compress-program=evil": "x\n", "project/odd/-C": "x\n",
		"bin/README": "nothing\n", ".profile": "\n", "notes.txt": "outside of the project\n",
	}
	for name, content := range files {
		write(t, filepath.Join(home, name), content, 0o644)
	}
	for _, name := range []string{"project/evil", "project/ls", "project/git", "project/odd/evil", "project/run.sh", "project/vendor/hostile/hooks/post-index-change", "project/vendor/hostile/hooks/reference-transaction", "project/vendor/hostile/hooks/pre-auto-gc"} {
		write(t, filepath.Join(home, name), evil, 0o755)
	}
	write(t, filepath.Join(home, "project/a.gz"), gzipped(t, "zipped\n"), 0o644)
	write(t, filepath.Join(home, "project/bin.dat"), "\x7fELF\x00\x01\x02string inside\xff\n", 0o644)
	for name, target := range map[string]string{"link": "a.txt", "linkdir": "docs", "outside": "/etc", "dangling": "nowhere", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(home, "project", name)); err != nil {
			t.Fatal(err)
		}
	}
	repository(t, filepath.Join(home, "project"), "", ".")
	bad := filepath.Join(home, "project/vendor/hostile")
	write(t, filepath.Join(bad, "a.txt"), "one\n", 0o644)
	write(t, filepath.Join(bad, "b.bin"), "two\n", 0o644)
	write(t, filepath.Join(bad, "c.x"), "three\n", 0o644)
	write(t, filepath.Join(bad, ".gitattributes"), "*.txt diff=evil filter=evil\n*.bin diff=other merge=evil filter=process\n*.x merge=evil\n", 0o644)
	repository(t, bad, "hooks", "a.txt", "b.bin", "c.x", ".gitattributes", "hooks")
	spoil(t, bad)
}

// repository makes a history with a branch, a merge, tags, a stash, a note and
// changes that aren't committed.
func repository(t *testing.T, dir, skip string, add ...string) {
	t.Helper()
	git(t, dir, "", "init", "-q", "-b", "main")
	git(t, dir, "", append([]string{"-c", "core.attributesFile=/dev/null", "add"}, add...)...)
	git(t, dir, "", "commit", "-q", "-m", "first")
	git(t, dir, "", "tag", "v1")
	git(t, dir, "", "checkout", "-q", "-b", "topic")
	write(t, filepath.Join(dir, "a.txt"), "topic\na\n", 0o644)
	git(t, dir, "", "commit", "-q", "-a", "-m", "topic\n\nSigned-off-by: U <u@example.com>")
	git(t, dir, "", "checkout", "-q", "main")
	write(t, filepath.Join(dir, "a.txt"), "main\nb\n", 0o644)
	git(t, dir, "", "commit", "-q", "-a", "-m", "main")
	git(t, dir, "", "merge", "-q", "-s", "ours", "-m", "merge", "topic")
	git(t, dir, "", "tag", "-a", "-m", "second", "v2")
	git(t, dir, "", "notes", "add", "-m", "a note")
	write(t, filepath.Join(dir, "a.txt"), "stashed\n", 0o644)
	git(t, dir, "", "stash", "-q")
	if skip == "" {
		git(t, dir, "", "remote", "add", "origin", "https://example.com/p.git")
	}
	write(t, filepath.Join(dir, "a.txt"), "main\nb\nnot committed\n", 0o644)
}

// spoil gives a repository what hostile ones bring along: settings, a commit
// that says it is signed, and an object that isn't there.
func spoil(t *testing.T, dir string) {
	t.Helper()
	tree := git(t, dir, "", "rev-parse", "HEAD^{tree}")
	parent := git(t, dir, "", "rev-parse", "HEAD")
	signed := "tree " + tree + "\nparent " + parent + "\nauthor U <u@example.com> 1700000000 +0000\ncommitter U <u@example.com> 1700000000 +0000\n" +
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQEz\n -----END PGP SIGNATURE-----\n\nsigned\n"
	id := git(t, dir, signed, "hash-object", "-t", "commit", "-w", "--stdin")
	git(t, dir, "", "update-ref", "refs/heads/main", id)
	blob := git(t, dir, "", "rev-parse", "HEAD:c.x")
	if err := os.Remove(filepath.Join(dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(hostileConfig + "[core]\n\trepositoryformatversion = 1\n")
	if closed := f.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}

func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=U", "-c", "user.email=u@example.com", "-c", "commit.gpgSign=false", "-c", "filter.evil.clean=", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	if closed := w.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return b.String()
}

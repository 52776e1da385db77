package tools

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// gitRepo makes what git takes for a repository in a directory.
func gitRepo(t testing.TB, dir, config string) {
	t.Helper()
	for _, d := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(dir, "config"), config)
}

func put(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const cleanGit = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	fsmonitor = false
[user]
	name = A "quoted" name # with a comment
	email = a@example.com
[remote "origin"]
	url = git@example.com:a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[alias]
	st = status -sb
[log]
	showSignature = false
[pager]
	log = false
[diff]
	submodule = short
	algorithm = histogram
[protocol "ext"]
	allow = never
`

func TestGitSettingsThatRunNothing(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		"", cleanGit, strings.ReplaceAll(cleanGit, "\n", "\r\n"), "\ufeff" + cleanGit, "; nothing\n# pager = x\n[a]x", "[core]\nfsmonitor", "[core]\nfsmonitor = true\n", "[core] fsmonitor = yes ; really\n",
		"[user]\nname = \"[core]\\nfsmonitor=./evil\"\n", "[user]\nname = a \\\nfsmonitor=./evil\n", "[user \"core\"]\nfsmonitor = x\n",
		"[remote \"o\"]\nurl = https://example.com/a\npromisor = true\npartialclonefilter = blob:none\n", "[remote \"o\"]\nurl = /elsewhere\n",
	} {
		dir := t.TempDir()
		gitRepo(t, filepath.Join(dir, ".git"), config)
		if why := NewGitConfigs().Runs(dir); why != "" {
			t.Errorf("%q: %s", config, why)
		}
	}
}

func TestGitSettingsThatRunPrograms(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		"[core]\nfsmonitor = ./evil\n", "[CORE]\nFSMonitor=./evil", "[core] fsmonitor = ./evil", "[core]fsmonitor=./evil#x\n", "[a]\nb=\"c\"\n\t[core]\n\tfsMonitor = \"./evil\"\n",
		"[core]\nfs\\\nmonitor=x\n", "[core]\nfsmonitor = fal\\\nsey\n", "[core]\nfsmonitor = \"true\\t\"\n", "[core]\r\nfsmonitor = ./evil\r\n",
		"[core]\nhooksPath = h\n", "[core]\npager = less\n", "[core]\neditor = vi\n", "[core]\nsshCommand = ssh\n", "[core]\ngitProxy = x\n", "[core]\naskPass = x\n", "[core]\nalternateRefsCommand = x\n",
		"[core]\nworktree = /\n", "[core]\nworktree = ../..\n", "[diff]\nexternal = x\n", "[diff \"a b\"]\ncommand = x\n", "[diff \"a\\\"]\\\\\"]\ntextconv = x\n", "[diff.a]\ntextconv = x\n", "[diff]\nsubmodule = log\n",
		"[filter \"x\"]\nclean = x\n", "[filter \"x\"]\nsmudge = x\n", "[filter \"x\"]\nprocess = x\n", "[merge \"x\"]\ndriver = x\n", "[gpg]\nprogram = x\n", "[gpg \"ssh\"]\nprogram = x\n", "[gpg \"ssh\"]\ndefaultKeyCommand = x\n",
		"[log]\nshowSignature\n", "[log]\nshowsignature = true\n", "[alias]\nst = !x\n", "[alias]\nst = \" !x\"\n", "[pager]\nlog = x\n", "[credential]\nhelper = x\n", "[credential \"https://a\"]\nhelper = x\n", "[sequence]\neditor = x\n",
		"[interactive]\ndiffFilter = x\n", "[protocol \"ext\"]\nallow = always\n", "[protocol]\nallow = always\n", "[include]\npath = x\n", "[includeIf \"gitdir:/\"]\npath = x\n", "[status]\nsubmoduleSummary = true\n", "[trailer \"x\"]\ncmd = x\n",
		"[remote \"o\"]\npromisor = true\nuploadpack = x\n", "[remote \"o\"]\nurl = ext::sh -c x\npromisor\n", "[remote \"o\"]\nurl = ../x\n[extensions]\npartialClone = o\n", "[lfs \"customtransfer.x\"]\npath = x\n",
		"[core\nfsmonitor = x\n", "fsmonitor = x\n", "[core]\nfsmonitor x\n", "[core]\nx = \"a\n", "[core]\nx = \\y\n", "[a \"b\n\"]\n", strings.Repeat("#", maxGitConfig+1),
	} {
		dir := t.TempDir()
		gitRepo(t, filepath.Join(dir, ".git"), config)
		if why := NewGitConfigs().Runs(dir); why == "" {
			t.Errorf("%.100q: runs nothing", config)
		}
	}
}

// TestGitSettingsAreReadAsGitReadsThem compares with git itself.
func TestGitSettingsAreReadAsGitReadsThem(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	file := filepath.Join(t.TempDir(), "config")
	for _, config := range []string{
		cleanGit, "[A \"B c\"]\nD = e\n[f.G]\nh-I = j k  \n", "[a]\nb = \" x \"y # z\n[a]\nc\n[a]d=1\n", "[a]\nb = x\\\n  y\\n\\t\\\\\\\"\n", "[a \"\\b\\\"\\]\"]\nc = d;e\n", "[a] ; x\nb = # x\nc =\n",
	} {
		put(t, file, config)
		out, err := exec.Command(git, "config", "--file", file, "--null", "--list").Output()
		if err != nil {
			t.Fatalf("%q: %v", config, err)
		}
		list, err := parseGitConfig(config)
		if err != nil {
			t.Errorf("%q: %v", config, err)
			continue
		}
		var got strings.Builder
		for i := range list {
			got.WriteString(list[i].key())
			if !list[i].bare {
				got.WriteString("\n" + list[i].value)
			}
			got.WriteByte(0)
		}
		if got.String() != string(out) {
			t.Errorf("%q:\n%q, git says\n%q", config, got.String(), out)
		}
	}
}

const badGit = "[core]\nfsmonitor = ./evil\n"

// TestWhereGitFindsARepository has one place per case where settings that run a
// program are, and the directory that git is started in.
func TestWhereGitFindsARepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		from string
		runs bool
	}{
		"none":  {func(*testing.T, string) {}, "", false},
		"above": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", badGit); put(t, d+"/a/b/c", "") }, "a/b", true},
		"a clean one in between": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", badGit)
			gitRepo(t, d+"/a/.git", "")
			put(t, d+"/a/b/c", "")
		}, "a/b", false},
		"one in between that is none":  {func(t *testing.T, d string) { gitRepo(t, d+"/.git", badGit); put(t, d+"/a/.git/config", "") }, "a", true},
		"a directory that isn't there": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", badGit) }, "nosuch/dir", true},
		"beneath":                      {func(t *testing.T, d string) { gitRepo(t, d+"/.git", ""); gitRepo(t, d+"/a/.git", badGit) }, "", false},
		"bare":                         {func(t *testing.T, d string) { gitRepo(t, d+"/a", badGit); put(t, d+"/a/b/c", "") }, "a/b", true},
		"bare, with a link as HEAD": {func(t *testing.T, d string) {
			gitRepo(t, d+"/a", badGit)
			must(t, os.Remove(d+"/a/HEAD"))
			must(t, os.Symlink("refs/heads/main", d+"/a/HEAD"))
		}, "a", true},
		"in the repository's own directory": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", badGit) }, ".git/refs", true},
		"a file that says where":            {func(t *testing.T, d string) { gitRepo(t, d+"/x", badGit); put(t, d+"/a/.git", "gitdir: ../x\n") }, "a", true},
		"a file that says nothing":          {func(t *testing.T, d string) { put(t, d+"/a/.git", "x\n") }, "a", true},
		"a worktree": {func(t *testing.T, d string) {
			gitRepo(t, d+"/main/.git", badGit)
			put(t, d+"/main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n")
			put(t, d+"/main/.git/worktrees/w/commondir", "../..\n")
			put(t, d+"/w/.git", "gitdir: "+d+"/main/.git/worktrees/w\n")
		}, "w", true},
		"a worktree's own settings": {func(t *testing.T, d string) {
			gitRepo(t, d+"/main/.git", "")
			put(t, d+"/main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n")
			put(t, d+"/main/.git/worktrees/w/commondir", "../..\n")
			put(t, d+"/main/.git/worktrees/w/config.worktree", badGit)
			put(t, d+"/w/.git", "gitdir: "+d+"/main/.git/worktrees/w\n")
		}, "w", true},
		"another commondir": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", "")
			gitRepo(t, d+"/x", badGit)
			put(t, d+"/.git/commondir", "../x\n")
		}, "", true},
		"config.worktree": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", ""); put(t, d+"/.git/config.worktree", badGit) }, "", true},
		"through a link": {func(t *testing.T, d string) {
			gitRepo(t, d+"/x/.git", badGit)
			put(t, d+"/x/y/z", "")
			must(t, os.Symlink("x/y", d+"/l"))
		}, "l", true},
		"a submodule": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", "")
			gitRepo(t, d+"/.git/modules/s", "[core]\nworktree = ../../../s\n[filter \"x\"]\nclean = x\n")
			put(t, d+"/s/.git", "gitdir: ../.git/modules/s\n")
			put(t, d+"/.git/index", index("s"))
		}, "", true},
		"a clean submodule": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", "")
			gitRepo(t, d+"/.git/modules/s", "[core]\nworktree = ../../../s\n")
			put(t, d+"/s/.git", "gitdir: ../.git/modules/s\n")
			put(t, d+"/.git/index", index("s"))
		}, "", false},
		"a submodule that isn't there": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", ""); put(t, d+"/.git/index", index("s")) }, "", false},
		"a repository inside of it": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", "")
			gitRepo(t, d+"/a/s/.git", badGit)
			put(t, d+"/.git/index", index("a/s"))
		}, "", true},
		"a submodule of itself": {func(t *testing.T, d string) {
			gitRepo(t, d+"/.git", "")
			must(t, os.Symlink(".", d+"/s"))
			put(t, d+"/.git/index", index("s"))
		}, "", true},
		"an index in parts": {func(t *testing.T, d string) { gitRepo(t, d+"/.git", ""); put(t, d+"/.git/sharedindex.0", "") }, "", true},
		"no index":          {func(t *testing.T, d string) { gitRepo(t, d+"/.git", ""); put(t, d+"/.git/index", "x") }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			c.make(t, dir)
			if why := NewGitConfigs().Runs(filepath.Join(dir, c.from)); (why != "") != c.runs {
				t.Errorf("runs programs: %q", why)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// index is an index with a file and a submodule in it.
func index(submodule string) string {
	var b bytes.Buffer
	b.WriteString("DIRC\x00\x00\x00\x02\x00\x00\x00\x02")
	for _, e := range []struct {
		mode uint32
		name string
	}{{0o100644, "a.txt"}, {0o160000, submodule}} {
		from := b.Len()
		b.Write(make([]byte, 24))
		b.Write(binary.BigEndian.AppendUint32(nil, e.mode))
		b.Write(make([]byte, 12+20))
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(e.name))))
		b.WriteString(e.name)
		b.Write(make([]byte, 8-(b.Len()-from)%8))
	}
	b.Write(make([]byte, 20))
	return b.String()
}

func TestGitLinksOfARealIndex(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	for _, format := range []string{"sha1", "sha256"} {
		dir := t.TempDir()
		git := func(at string, args ...string) {
			t.Helper()
			cmd := exec.Command("git", append([]string{"-C", at, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
		git(dir, "init", "-q", "--object-format="+format)
		put(t, dir+"/sub dir/s/x", "x")
		git(dir+"/sub dir/s", "init", "-q", "--object-format="+format)
		git(dir+"/sub dir/s", "add", "x")
		git(dir+"/sub dir/s", "commit", "-qm", "x")
		put(t, dir+"/a", "a")
		git(dir, "add", "a", "sub dir/s")
		put(t, dir+"/n", "n")
		git(dir, "add", "-N", "n")
		g := NewGitConfigs()
		if why := g.Runs(dir); why != "" {
			t.Errorf("%s: a clean one: %s", format, why)
		}
		put(t, dir+"/sub dir/s/.git/config", badGit)
		if why := g.Runs(dir); !strings.Contains(why, "submodule") {
			t.Errorf("%s: the submodule isn't seen: %q", format, why)
		}
	}
}

func TestGitSettingsAreReadAgainAfterAChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, ".git/config")
	gitRepo(t, filepath.Join(dir, ".git"), cleanGit)
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(config, old, old))
	g := NewGitConfigs()
	for range 2 {
		if why := g.Runs(dir); why != "" {
			t.Fatal(why)
		}
	}
	if len(g.known) != 1 {
		t.Errorf("%d repositories are remembered", len(g.known))
	}
	for i, config := range []string{badGit, cleanGit, badGit} {
		put(t, filepath.Join(dir, ".git/config"), config)
		if why := g.Runs(dir); (why != "") != (i != 1) {
			t.Errorf("after change %d: %q", i, why)
		}
	}
	must(t, os.Remove(config))
	if why := g.Runs(dir); why != "" {
		t.Errorf("without settings: %s", why)
	}
	put(t, filepath.Join(dir, ".git/config.worktree"), badGit)
	if why := g.Runs(dir); why == "" {
		t.Error("settings that weren't there before aren't seen")
	}
}

func TestGitConfigsAreBoundedAndMayBeSharedOut(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range 2 * maxGitConfigs {
		dir := filepath.Join(root, fmt.Sprint(i), ".git")
		gitRepo(t, dir, "")
		must(t, os.Chtimes(filepath.Join(dir, "config"), old, old))
	}
	g := NewGitConfigs()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2 * maxGitConfigs {
				if why := g.Runs(filepath.Join(root, fmt.Sprint(i))); why != "" {
					t.Error(why)
				}
			}
		})
	}
	wg.Wait()
	if len(g.known) > maxGitConfigs {
		t.Errorf("%d repositories are remembered", len(g.known))
	}
}

func TestGitMayWriteNoIndexUnlessTheUserSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base []string
		want string
	}{{nil, "GIT_OPTIONAL_LOCKS=0"}, {[]string{"GIT_OPTIONAL_LOCKS=1"}, "GIT_OPTIONAL_LOCKS=1"}} {
		var got []string
		for _, kv := range shellEnv(c.base, nil, "/bin/false") {
			if strings.HasPrefix(kv, "GIT_OPTIONAL_LOCKS=") {
				got = append(got, kv)
			}
		}
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%v becomes %v", c.base, got)
		}
	}
}

func BenchmarkGitConfigs(b *testing.B) {
	dir := b.TempDir()
	gitRepo(b, filepath.Join(dir, ".git"), cleanGit)
	put(b, filepath.Join(dir, "a/b/c/d"), "")
	put(b, filepath.Join(dir, ".git/index"), index("s")+strings.Repeat("x", 4<<20))
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"config", "index"} {
		if err := os.Chtimes(filepath.Join(dir, ".git", name), old, old); err != nil {
			b.Fatal(err)
		}
	}
	g := NewGitConfigs()
	for b.Loop() {
		if g.Runs(filepath.Join(dir, "a/b/c")) != "" {
			b.Fatal("runs something")
		}
	}
}

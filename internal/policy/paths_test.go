package policy

import (
	"path"
	"strings"
	"testing"
)

// links is a file system of links only: each path leads where it says.
type links map[string]string

func (l links) Resolve(p string) Path {
	cur := ""
	for c := range strings.SplitSeq(p, "/") {
		switch c {
		case "", ".":
			continue
		case "..":
			cur = path.Dir(cur + "/")
			cur = path.Dir(strings.TrimSuffix(cur, "/"))
			if cur == "/" || cur == "." {
				cur = ""
			}
			continue
		}
		cur += "/" + c
		if to, ok := l[cur]; ok {
			cur = to
		}
	}
	if cur == "" {
		cur = "/"
	}
	return Path{Real: cur, Exists: true}
}

func TestT23PathsByComponent(t *testing.T) {
	t.Parallel()
	f := &Facts{Cwd: "/srv/app", Roots: []string{"/srv/app", "/data/"}, Home: "/home/u"}
	for raw, inside := range map[string]bool{
		"a": true, "/srv/app": true, "/srv/app/a": true, "/srv/app/": true, ".": true, "./a/../b": true, "/data/x": true, "/data": true,
		"/srv/app-evil": false, "/srv/app-evil/x": false, "/srv/appx": false, "/srv": false, "/": false, "..": false, "../app-evil/x": false, "a/../../x": false,
		"/srv/app/../x": false, "~": false, "~/x": false, "~root/x": false, "": false, "a\x00b": false, "/database": false, "/proc/self/root/srv/app/a": true,
		"/proc/self/cwd/a": true, "/proc/self/cwd/../x": false, "/proc/1/root/etc": false, "/proc/self/fd/3": false, "/dev/fd/7": false, "/proc/self/task/1/root/x": false,
		"//srv/app/a": true, "/srv//app/a": true, "/SRV/app/a": false, "/proc/self/root/proc/self/root/etc/passwd": false,
	} {
		if got := f.Path(raw); got.Inside != inside {
			t.Errorf("%q: inside %v, want %v (%+v)", raw, got.Inside, inside, got)
		}
	}
	if (&Facts{}).Path("a").Inside || (&Facts{Roots: []string{""}, Cwd: "/x"}).Path("/x/a").Inside {
		t.Error("without a root something is inside")
	}
}

func TestT24Links(t *testing.T) {
	t.Parallel()
	f := &Facts{Cwd: "/w/app", Roots: []string{"/w/app"}, Home: "/home/u", Paths: links{
		"/w/app/link": "/etc", "/w/app/safe": "/w/app/src", "/w/app/hook": "/w/app/.git/hooks/pre-commit", "/w/app/env": "/w/app/.env", "/w/app/up": "/w",
	}}
	for raw, inside := range map[string]bool{
		"link/passwd": false, "safe/a": true, "up/x": false, "up/app/x": true, "safe/../a": true, "link/../w/app/a": true, "a": true, "link": false,
	} {
		if got := f.Path(raw); got.Inside != (inside && f.beneathRoots(got.Abs)) {
			t.Errorf("%q: inside %v, want %v (%+v)", raw, got.Inside, inside, got)
		}
	}
	if f.Path("hook").Protected == "" {
		t.Error("a link to a hook isn't protected")
	}
	if f.Path("env").Secret == "" {
		t.Error("a link to .env is no secret")
	}
	for src, want := range map[string]Kind{"cat link/passwd": KindRead, "cat env": KindRead, "cat safe/a": KindReadOnly, "cd link && cat x": KindRead, "cat link/../x": KindRead} {
		if v := JudgeShell(src, f); v.Kind != want {
			t.Errorf("%q is %s, want %s", src, v.Kind, want)
		}
	}
	linked := &Facts{Cwd: "/tmp/app", Roots: []string{"/tmp/app"}, Paths: links{"/tmp": "/private/tmp"}}
	if !linked.Path("a").Inside {
		t.Error("a root beneath a link holds nothing")
	}
	lost := &Facts{Cwd: "/w/app", Paths: nowhere{}}
	if p := lost.Path("a"); p.Inside {
		t.Errorf("a path that can't be resolved is inside: %+v", p)
	}
}

type nowhere struct{}

func (nowhere) Resolve(string) Path { return Path{} }

func TestT27ProtectedPaths(t *testing.T) {
	t.Parallel()
	f := testFacts()
	f.Guarded = []string{"/home/u/agent-home"}
	for line := range strings.SplitSeq(strings.TrimSpace(`
.git/hooks/pre-commit
.git/config
.git
.git/HEAD
a/b/c/.git/hooks/x
sub/.git/config
.GIT/config
.Git/hooks/x
.git./config
.git /config
.git::$INDEX_ALLOCATION/config
GIT~1/config
a\.git\config
.g`+"\u200c"+`it/config
.ｇit/config
.agent/settings.toml
x/y/.agent/hooks/a.sh
.claude/settings.json
.claude/skills/x/SKILL.md
.gemini/settings.json
.qwen/settings.json
.codex/config.toml
.mcp.json
.vscode/tasks.json
.idea/workspace.xml
.envrc
.husky/pre-commit
.bashrc
.BASHRC
.zshrc
.profile
~/.bashrc
~/.ssh/authorized_keys
~/.config/fish/config.fish
~/.gitconfig
~/.config/git/config
.npmrc
.yarnrc
.yarnrc.yml
.cargo/config.toml
.pre-commit-config.yaml
.github/workflows/ci.yml
.gitlab-ci.yml
.gitmodules
.devcontainer/devcontainer.json
/w/app/x/../.git/config
/proc/self/cwd/.git/config
/proc/self/root/w/app/.claude/x
~/agent-home/settings.toml
/home/u/AGENT-HOME/x
nonexistent/deep/.claude/commands/x.md`), "\n") {
		if got := f.Path(line); got.Protected == "" {
			t.Errorf("%q isn't protected: %+v", line, got)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(`
a.go
.gitignore
.gitattributes
.github/ISSUE_TEMPLATE.md
git/config
docs/git.md
.gitkeep
src/.eslintrc
package.json
AGENTS.md
x.git/a
claude/a
.config/app.toml
Makefile
.dockerignore
.editorconfig`), "\n") {
		if got := f.Path(line); got.Protected != "" {
			t.Errorf("%q is protected: %s", line, got.Protected)
		}
	}
}

func TestSecretPaths(t *testing.T) {
	t.Parallel()
	f := testFacts()
	for line := range strings.SplitSeq(strings.TrimSpace(`
.env
.env.local
.ENV
.env.production.local
prod.env
a/b/.env
server.pem
x.key
id_rsa
id_ed25519
~/.ssh/id_rsa
~/.ssh/config
.netrc
.pgpass
.aws/credentials
.kube/config
credentials.json
service-account.json
service_account_prod.json
my-service-account.json
.git-credentials
.npmrc
.docker/config.json
secrets.yaml
terraform.tfstate
/etc/shadow
/proc/self/environ
/proc/123/environ
.env/../.env`), "\n") {
		if got := f.Path(line); got.Secret == "" {
			t.Errorf("%q is no secret: %+v", line, got)
		}
	}
	for _, line := range []string{"a.go", ".env.example", ".env.sample", "id_rsa.pub", "env", "environment.ts", "keys.go", "shadow.css", "credentials.go", "secret.go", "environ", ".envoy", "monkey"} {
		if got := f.Path(line); got.Secret != "" {
			t.Errorf("%q is a secret: %s", line, got.Secret)
		}
	}
}

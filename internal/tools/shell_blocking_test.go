//go:build unix

package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func needProgram(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
}

// gitSetUp makes a repository with three commits, in the working directory.
const gitSetUp = `export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q -b main . && git config user.email a@b.c && git config user.name n &&
for i in 1 2 3; do echo $i > f; git add f; git commit -q -m "commit $i"; done; `

// onTerminal runs its argument where a program finds a terminal all the same.
const onTerminal = `exec python3 -c 'import pty,sys; pty.spawn(sys.argv[1:])' `

// TestBlockingCommandsEndWithAnError is users.md row 27: each of these waits for
// a person forever when it has a terminal. Here each must fail long before its
// timeout (in 2.5 s on a machine that has nothing else to do), say what to do, and leave nothing behind.
func TestBlockingCommandsEndWithAnError(t *testing.T) {
	t.Parallel()
	slots := make(chan struct{}, 4) // the time limit is for the command, not for the machine
	for name, tc := range map[string]struct {
		needs   string
		setUp   string
		command string
		want    string // in the answer
	}{
		"read":                         {command: `read x`, want: "exit code 1"},
		"read with a prompt":           {command: `read -p "Password: " -s x`, want: "exit code 1"},
		"read from the terminal":       {command: `read x </dev/tty`, want: "wanted input or a terminal"},
		"select":                       {command: `select x in a b; do break; done`, want: "exit code 1"},
		"python input":                 {needs: "python3", command: `python3 -c 'input("name? ")'`, want: "wanted input"},
		"python getpass":               {needs: "python3", command: `python3 -c 'import getpass; getpass.getpass()'`, want: "wanted input"},
		"git commit":                   {needs: "git", setUp: gitSetUp, command: `echo 4 > f; git commit -a`, want: "git commit -m"},
		"git commit --amend":           {needs: "git", setUp: gitSetUp, command: `git commit --amend`, want: "nobody can type"},
		"git rebase -i":                {needs: "git", setUp: gitSetUp, command: `git rebase -i HEAD~2`, want: "GIT_SEQUENCE_EDITOR"},
		"git rebase -i, own editor":    {needs: "git", setUp: gitSetUp + "git config sequence.editor vim; git config core.editor vim;", command: `git rebase -i HEAD~2`, want: "GIT_SEQUENCE_EDITOR"},
		"git tag -a":                   {needs: "git", setUp: gitSetUp, command: `git tag -a v1`, want: "nobody can type"},
		"git credentials":              {needs: "git", command: `printf 'protocol=https\nhost=example.com\n\n' | git -c credential.helper= credential fill`, want: "wanted input"},
		"vim":                          {needs: "vim", command: `vim notes.txt`, want: "waiting for somebody to type"},
		"EDITOR":                       {command: `$EDITOR notes.txt`, want: "exit code 1"},
		"EDITOR through a shell":       {command: `sh -c "$VISUAL notes.txt"`, want: "nobody can type"},
		"top":                          {needs: "top", command: `TERM=xterm top`, want: "exit code 1"},
		"ssh-keygen passphrase":        {needs: "ssh-keygen", setUp: `ssh-keygen -q -t ed25519 -N secret1 -f key;`, command: `ssh-keygen -y -f key`, want: "exit code"},
		"ssh-keygen, where to":         {needs: "ssh-keygen", command: `ssh-keygen -t ed25519`, want: "exit code"},
		"openssl password":             {needs: "openssl", command: `openssl genrsa -aes256 2048`, want: "exit code"},
		"sudo-like":                    {command: `bash -c 'exec 3<>/dev/tty || exit 1; read -u 3 -s x'`, want: "wanted input or a terminal"},
		"passwd":                       {needs: "passwd", command: `[ $(id -u) != 0 ] || exec false; passwd`, want: "exit code"},
		"read on a terminal":           {needs: "python3", command: onTerminal + `bash -c 'read -p "Continue? " x'`, want: "waiting for somebody to type"},
		"script":                       {needs: "script", command: `script -qec "cat" /dev/null < <(sleep 20)`, want: "waiting for somebody to type"},
		"cat on a terminal":            {needs: "python3", command: onTerminal + `cat`, want: "waiting for somebody to type"},
		"python input on a terminal":   {needs: "python3", command: onTerminal + `python3 -c 'input("name? ")'`, want: "waiting for somebody to type"},
		"getpass on a terminal":        {needs: "python3", command: onTerminal + `python3 -c 'import getpass; getpass.getpass()'`, want: "waiting for somebody to type"},
		"vim on a terminal":            {needs: "python3 vim", command: onTerminal + `vim -u NONE notes.txt`, want: "waiting for somebody to type"},
		"shell on a terminal":          {needs: "python3", command: onTerminal + `bash --norc -i`, want: "waiting for somebody to type"},
		"less on a terminal":           {needs: "python3 less", setUp: `seq 1000 > long;`, command: onTerminal + `less long`, want: "waiting for somebody to type"},
		"git add -p on a terminal":     {needs: "python3 git", setUp: gitSetUp + `echo 9 > f;`, command: onTerminal + `git add -p`, want: "waiting for somebody to type"},
		"ssh passphrase on a terminal": {needs: "python3 ssh-keygen", setUp: `ssh-keygen -q -t ed25519 -N secret1 -f key;`, command: `unset SSH_ASKPASS SSH_ASKPASS_REQUIRE; ` + onTerminal + `ssh-keygen -y -f key`, want: "waiting for somebody to type"},
		"node on a terminal":           {needs: "python3 node", command: onTerminal + `node -e 'require("fs").readSync(0, Buffer.alloc(1))'`, want: "waiting for somebody to type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needProgram(t, strings.Fields(tc.needs)...)
			slots <- struct{}{}
			defer func() { <-slots }()
			b := newShellBench(t, nil)
			if tc.setUp != "" {
				if got := b.run(tc.setUp); got.IsError {
					t.Fatalf("set-up: %s", shellText(got))
				}
			}
			begun := time.Now()
			got := b.run(tc.command, "timeout", 20_000)
			took := time.Since(begun)
			if text := shellText(got); !got.IsError || !strings.Contains(text, tc.want) || took > 10*time.Second {
				t.Errorf("after %v: error %v, %q, want %q", took, got.IsError, text, tc.want)
			}
			expectGone(t, b.dir) // in PWD of all that the command started
		})
	}
}

// These have nothing to wait for when stdin is empty: they end at once, and not
// with an error.
func TestCommandsThatReadStdinSeeItsEnd(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"cat", "less", "sort", "wc -c", "bash", "grep x || true", "git log -1 --oneline || true"} {
		b := newShellBench(t, nil)
		begun := time.Now()
		if got := b.run(command); got.IsError || time.Since(begun) > 3*time.Second {
			t.Errorf("%s: %q after %v", command, shellText(got), time.Since(begun))
		}
	}
}

func TestRebaseIsNotRewrittenSilently(t *testing.T) {
	t.Parallel()
	needProgram(t, "git")
	b := newShellBench(t, nil)
	b.run(gitSetUp)
	before := shellText(b.run("git rev-parse HEAD"))
	b.run("git rebase -i HEAD~2")
	if after := shellText(b.run("git rev-parse HEAD; ls .git/rebase-merge 2>/dev/null")); after != before && !strings.HasPrefix(after, before) {
		t.Errorf("HEAD was %s, is %s", before, after)
	}
	if got := b.run(`GIT_SEQUENCE_EDITOR="sed -i s/^pick/drop/" git rebase -i HEAD~1 && git log --oneline | wc -l`); got.IsError || !strings.HasSuffix(strings.TrimSpace(shellText(got)), "2") {
		t.Errorf("a scripted editor must work: %q", shellText(got))
	}
}

// What is slow or silent, but waits for nobody, must not be taken for waiting.
func TestSilentCommandsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"sleep":                   `sleep 3.2; echo done`,
		"pipe with a slow writer": `(sleep 3.2; echo done) | cat`,
		"fifo":                    `mkfifo p; (sleep 3.2; echo done > p) & cat p`,
		"sleep on a terminal":     onTerminal + `bash -c 'sleep 3.2; echo done'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needProgram(t, "python3")
			b := newShellBench(t, nil)
			if got := b.run(command); got.IsError || !strings.HasSuffix(strings.TrimSpace(shellText(got)), "done") {
				t.Errorf("got %q", shellText(got))
			}
		})
	}
}

func sizeOfDirIfAny(t testing.TB, dir string) int64 {
	if _, err := os.Stat(filepath.Clean(dir)); err != nil {
		return 0
	}
	return sizeOfDir(t, dir)
}

package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOutsideOfASandboxNothingRuns gives the program that runs commands one to
// run where it isn't confined.
func TestOutsideOfASandboxNothingRuns(t *testing.T) {
	dir := t.TempDir()
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		t.Skip("needs /proc")
	}
	canary := filepath.Join(dir, "ran")
	for _, outside := range []map[string]string{namespacesHere(), nil} {
		b, err := json.Marshal(order{Commands: []command{{dir, "echo x > " + canary}}, Outside: outside, Env: commandEnv})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "order"), string(b), 0o600)
		if code := drive(dir); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		var r report
		if b, err = os.ReadFile(filepath.Join(dir, "report")); err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil || r.Confined == "" {
			t.Fatalf("it took this for a sandbox: %+v, %v", r, err)
		}
		if _, err := os.Stat(canary); err == nil {
			t.Fatal("the command was run")
		}
	}
}

// TestWhatIsNoReadingIsSeen runs commands that do what must not be done, past
// the judge, and looks whether each is found.
func TestWhatIsNoReadingIsSeen(t *testing.T) {
	s := newSandbox(t)
	cases := []struct{ src, call string }{
		{"echo x > new", "openat"}, {": > a.txt", "openat"}, {"echo x >> a.txt", "openat"}, {"echo x 1<> a.txt", "openat"}, {"echo x 2<a.txt 2>/dev/stderr", "openat"},
		{"rm a.txt", "unlinkat"}, {"mv b.txt c.txt", "renameat2"}, {"chmod 600 data.csv", "fchmodat"}, {"ln data.csv hard", "linkat"}, {"ln -s data.csv soft", "symlinkat"},
		{"mkdir made", "mkdir"}, {"truncate -s 0 README.md", "openat"}, {"touch main.go", "openat"}, {"touch -c -d @1 main.go", "utimensat"}, {"mkfifo pipe", "mknod"}, {"mknod pipe2 p", "mknod"},
		{"exec 3<>/dev/tcp/127.0.0.1/9", "connect"}, {"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", "bind"}, {"python3 -c 'import os; os.setxattr(\"b.txt\", \"user.a\", b\"x\")'", "setxattr"},
		{"sleep 5 & kill $!", "kill"}, {"kill -CONT $PPID", "kill"}, {"./evil", "execve"}, {"cd docs; ../ls", "execve"}, {"PATH=$PWD:$PATH; ls", "execve"}, {"env ./evil", "execve"}, {"ls | (sleep 0.1; touch late) & wait", "openat"},
		{"setsid touch apart", "openat"}, {"hostname other", "sethostname"}, {"mount -t tmpfs x /mnt", "mount"}, {"nohup sh -c 'echo x > hidden' & sleep 0.2", "openat"}, {"unshare -r true", "unshare"}, {"git add -A", "unlink"}, {"dd if=/dev/null of=data.json", "openat"},
		{"cp data.csv /tmp/elsewhere", "openat"}, {"cp -l data.csv hard2", "linkat"}, {"sed -i s/a/b/ docs/guide.md", "rename"},
	}
	named := strings.Fields("bash env sh touch rm mv chmod ln mkdir truncate mkfifo mknod python3 sleep setsid hostname mount nohup unshare git dd cp sed ls cat")
	var cmds []command
	for _, c := range cases {
		cmds = append(cmds, command{project, c.src})
	}
	out, changed, err := s.run(cmds)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		first, _, _ := strings.Cut(c.src, " ")
		if slices.Contains([]string{"python3", "hostname", "mount", "unshare"}, first) && !installed(first) {
			continue
		}
		var calls []string
		for _, e := range out.effects {
			if e.Command == i && unnamed(e, named) {
				calls = append(calls, e.Call)
			}
		}
		if !slices.ContainsFunc(calls, func(call string) bool { return strings.TrimSuffix(call, "at") == strings.TrimSuffix(c.call, "at") }) {
			t.Errorf("%q: %s was not found, only %v", c.src, c.call, calls)
		}
	}
	for _, want := range []string{"deleted /project/a.txt", "created /project/made", "changed /project/README.md", "created /project/apart", "created /project/late"} {
		if !strings.Contains(changed, want) {
			t.Errorf("%q is not among what changed: %s", want, changed)
		}
	}
}

// TestReadingIsNotTakenForMore runs commands that read.
func TestReadingIsNotTakenForMore(t *testing.T) {
	s := newSandbox(t)
	var cmds []command
	for _, src := range []string{
		"cat a.txt", "ls -la /", "id; whoami", "cat < a.txt > /dev/null 2>&1", "echo x > /dev/stdout", "echo x | cat >&2", "cat <<E\nx\nE", "cat <(echo x)", "timeout 0.1 sleep 1", "egrep a a.txt", "for i in 1 2 3; do echo $i; done | sort",
		"git log", "git --no-optional-locks status", "(cat a.txt) & wait", "find . -type f -exec cat {} +", "ls | xargs -n1 echo", "nice head a.txt", "ps aux", "stat .", "shasum docs", "rg a", "head -c 4 /dev/urandom >/dev/full",
	} {
		cmds = append(cmds, command{project, src})
	}
	found, _ := s.try(t, cmds)
	for _, f := range found {
		t.Error(s.describe(f))
	}
}

// TestReadTrace holds the reader against lines as strace writes them.
func TestReadTrace(t *testing.T) {
	head := `1 execve("/driver", ["driver"], 0x1 /* 1 vars */) = 0
1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD) = 2
2 chdir("` + marker + `0") = -1 ENOENT (No such file or directory)
2 clone(child_stack=NULL, flags=CLONE_VM|CLONE_VFORK|SIGCHLD <unfinished ...>
10 execve("/bin/bash", ["/bin/bash"], 0x1 /* 1 vars */ <unfinished ...>
2 <... clone resumed>) = 10
10 <... execve resumed>) = 0
`
	for _, c := range []struct{ lines, want string }{
		{`10 openat(AT_FDCWD</p>, "a", O_RDONLY|O_CLOEXEC) = 3</p/a>`, ""},
		{`10 openat(AT_FDCWD</p>, "O_RDONLY", O_WRONLY|O_CREAT, 0666) = 3</p/a>`, "bash openat O_RDONLY"},
		{`10 openat(AT_FDCWD</p>, "a", O_RDWR) = -1 EROFS (Read-only file system)`, "bash openat a"},
		{`10 openat(AT_FDCWD</p>, "/dev/null", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</dev/null>`, ""},
		{`10 openat(AT_FDCWD</p>, "/dev/null/../x", O_WRONLY) = -1 ENOTDIR (Not a directory)`, "bash openat /dev/null/../x"},
		{`10 openat(AT_FDCWD</p>, "/dev/stdout", O_WRONLY|O_TRUNC) = 3<pipe:[77]>`, ""},
		{`10 openat(AT_FDCWD</p>, "/dev/stdout", O_WRONLY|O_TRUNC) = 3</p/a>`, "bash openat /dev/stdout"},
		{"10 openat(AT_FDCWD</p>, \"a\", O_WRONLY <unfinished ...>\n10 <... openat resumed>) = 3</p/a>", "bash openat a"},
		{`10 openat(AT_FDCWD</p>, "a", O_WRONLY <unfinished ...>`, "bash openat a"},
		{`10 unlink("a") = 0`, "bash unlink a"},
		{`10 a_call_of_tomorrow(1, 2) = 0`, "bash a_call_of_tomorrow "},
		{`10 connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file)`, ""},
		{`10 connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/docker.sock"}, 110) = 0`, "bash connect /run/docker.sock"},
		{`10 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.1.1.1")}, 16) = 0`, "bash connect 1.1.1.1"},
		{`10 sendto(3<socket:[1]>, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("1.1.1.1")}, 16) = 1`, "bash sendto x"},
		{`10 kill(11, SIGTERM) = 0`, "bash kill 11, SIGTERM"},
		{`10 kill(11, 0) = 0`, ""},
		{`10 tgkill(10, 10, SIGABRT) = 0`, ""},
		{`10 prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=1}) = 0`, ""},
		{`10 prlimit64(1, RLIMIT_CPU, {rlim_cur=1}, NULL) = 0`, "bash prlimit64 1, RLIMIT_CPU, {rlim_cur=1}, NULL"},
		{`10 ioctl(3</p/a>, FS_IOC_SETFLAGS, 0x1) = 0`, "bash ioctl FS_IOC_SETFLAGS"},
		{`10 ioctl(1, TCGETS, {}) = -1 ENOTTY (Inappropriate ioctl)`, ""},
		{"11 unlink(\"early\") = 0\n10 clone(flags=SIGCHLD) = 11", "bash unlink early"},
		{"10 execve(\"/usr/bin/ls\", [\"ls\"], 0x1) = 0\n10 unlink(\"a\") = 0", "bash execve /usr/bin/ls|ls unlink a"},
		{"10 execve(\"/p/evil\", [\"evil\"], 0x1) = 0\n10 unlink(\"a\") = 0", "bash execve /p/evil"},
	} {
		effects, ran, err := readTrace(strings.NewReader(head + c.lines + "\n"))
		var got []string
		for _, e := range effects {
			got = append(got, fmt.Sprint(e.Program, " ", e.Call, " ", e.Target))
		}
		if s := strings.Join(got, "|"); s != c.want || ran != 1 || err != nil {
			t.Errorf("%s\n got %q, want %q; %d commands, %v", c.lines, s, c.want, ran, err)
		}
	}
	for _, broken := range []string{"", "nonsense\n", head + "99 unlink(\"a\") = 0\n", head + "10 <... read resumed>) = 0\n"} {
		if _, _, err := readTrace(strings.NewReader(broken)); err == nil {
			t.Errorf("a broken trace was read: %q", broken)
		}
	}
}

// TestOneSeedMakesTheSame holds that a finding can be had again.
func TestOneSeedMakesTheSame(t *testing.T) {
	a, b, other := newGenerator(t, 5), newGenerator(t, 5), newGenerator(t, 6)
	same := 0
	for range 500 {
		x := a.command()
		if y := b.command(); x != y {
			t.Fatalf("%+v and %+v", x, y)
		}
		if x == other.command() {
			same++
		}
	}
	if same > 50 {
		t.Fatalf("%d of 500 are the same with another seed", same)
	}
}

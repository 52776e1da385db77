package differential

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// untraced are the system calls that strace needn't show: they change nothing
// but the process itself or memory, or work on descriptors that some other
// call had to open. So what is written by write is found where it was opened.
// A call that isn't here, in ownCalls or in allowedCall is a finding.
var untraced = strings.Fields(`
	read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 sendfile splice tee copy_file_range close close_range lseek
	stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents getdents64 getcwd fchdir
	getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
	mmap munmap mprotect mremap madvise brk mincore mlock munlock memfd_create membarrier pkey_alloc pkey_mprotect pkey_free
	poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime
	signalfd signalfd4 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch
	pipe pipe2 dup dup2 dup3 fcntl flock fadvise64 readahead fsync fdatasync
	rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigpending sigaltstack pause alarm setitimer getitimer
	timer_create timer_settime timer_gettime timer_delete timer_getoverrun
	futex set_tid_address set_robust_list get_robust_list rseq arch_prctl prctl set_mempolicy get_mempolicy
	getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getgroups getresuid getresgid capget setpgid setsid umask
	uname sysinfo getrlimit setrlimit getrusage times time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getcpu getrandom
	sched_yield sched_getaffinity sched_getscheduler sched_getparam sched_getattr sched_get_priority_max sched_get_priority_min getpriority ioprio_get
	wait4 waitid exit exit_group restart_syscall pidfd_open
	socketpair getsockname getpeername getsockopt setsockopt recvfrom recvmsg recvmmsg shutdown
`)

// ownCalls may be made upon the process itself (0, or its own number) alone.
var ownCalls = setOf("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr tkill tgkill kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo setpriority ioprio_set")

// innards are programs that a program consists of: what its name stands for
// runs them, and nobody would name them.
var innards = map[string][]string{
	"egrep":         {"grep"},
	"fgrep":         {"grep"},
	"locale":        {"gzip"},          // unpacks the descriptions of character sets
	"file":          {"gzip", "bzip2"}, // -z unpacks what it looks at
	"sdiff":         {"diff"},
	"diff3":         {"diff"},
	"dpkg":          {"dpkg-query"},
	"bash":          {"time"}, // behind a | it is no word of the shell
	"zcat":          {"gzip"},
	"zgrep":         {"gzip", "zcat", "grep", "sed", "cat", "bzip2", "xz"},
	"zless":         {"gzip", "less"},
	"man":           {"apropos", "whatis"},
	"lsb_release":   {"getopt", "cut", "tr", "sed", "head", "dpkg-query", "apt-cache", "basename"},
	"sh":            {"time"},
	"npm":           {"node"},
	"git":           {"git-bisect", "git-submodule"},
	"git-bisect":    strings.Fields(gitScript),
	"git-submodule": strings.Fields(gitScript),
}

// gitScript are the programs that those of git's commands run that are scripts.
const gitScript = "git basename dirname sed gettext envsubst uname grep cat expr tr wc"

// devices may be opened for writing: nothing is kept in them.
var devices = setOf("/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty")

// lookups is the socket of nscd, which the C library asks for the names of
// users (ls -l, id) before it reads /etc/passwd. It answers, and that is all
// that it does; nothing else may be connected to.
const lookups = "/var/run/nscd/socket"

func setOf(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// effect is something that a command did which reading doesn't need.
type effect struct {
	Command int    // its index
	Program string // which did it
	Call    string
	Target  string // a path, address or process
	Line    string // as strace wrote it
}

var random = regexp.MustCompile(`[0-9]+|[0-9a-f]{10,}|\.tmp[A-Za-z0-9_-]+`)

// kind is equal for effects that are the same but for numbers.
func (e effect) kind() string {
	if strings.HasPrefix(e.Target, "/tmp/") {
		return e.Program + " " + e.Call + " /tmp"
	}
	return e.Program + " " + e.Call + " " + random.ReplaceAllString(e.Target, "N")
}

func (e effect) String() string { return e.Program + ": " + e.Line }

// call is one line of a trace.
type call struct {
	pid        int
	name, args string
	result     string // empty: it never returned
}

// readCalls joins the calls that strace had to write in two pieces, in the
// order in which they began.
func readCalls(r io.Reader) ([]call, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	var calls []call
	open := map[int]int{}
	for {
		line, err := in.ReadString('\n')
		if line == "" && err == io.EOF {
			return calls, nil
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		first, rest, ok := strings.Cut(line, " ")
		pid, err := strconv.Atoi(first)
		if !ok || err != nil {
			return nil, fmt.Errorf("a line of the trace isn't understood: %q", line)
		}
		rest = strings.TrimLeft(rest, " ")
		switch {
		case strings.HasPrefix(rest, "+++ ") || strings.HasPrefix(rest, "--- ") || strings.HasPrefix(rest, "strace: "):
			continue
		case strings.HasPrefix(rest, "<... "):
			i, waits := open[pid]
			_, tail, ok := strings.Cut(rest, " resumed>")
			if !waits || !ok {
				return nil, fmt.Errorf("a line of the trace continues nothing: %q", line)
			}
			delete(open, pid)
			args, result := splitResult(tail)
			calls[i].args += args
			calls[i].result = result
			continue
		}
		name, rest, ok := strings.Cut(rest, "(")
		if !ok {
			return nil, fmt.Errorf("a line of the trace isn't understood: %q", line)
		}
		c := call{pid: pid, name: name}
		if head, unfinished := strings.CutSuffix(rest, " <unfinished ...>"); unfinished {
			c.args = head
			open[pid] = len(calls)
		} else {
			c.args, c.result = splitResult(rest)
		}
		calls = append(calls, c)
	}
}

func splitResult(s string) (args, result string) {
	i := strings.LastIndex(s, ") = ")
	if i < 0 {
		// strace pads short calls before the result
		if i = strings.LastIndex(s, " = "); i < 0 {
			return s, ""
		}
		return strings.TrimSuffix(strings.TrimRight(s[:i], " "), ")"), s[i+3:]
	}
	return s[:i], s[i+4:]
}

// process is what is known of a process while its calls are read.
type process struct {
	parent  int
	driver  bool
	command int // -1: none yet
	program string
	began   bool // it runs the command's shell or what came of it
	lost    bool // it has become a program that isn't the system's: that was the finding
	known   bool
}

// readTrace returns the effects of all commands, and how many were started.
func readTrace(r io.Reader) ([]effect, int, error) {
	calls, err := readCalls(r)
	if err != nil || len(calls) == 0 {
		return nil, 0, fmt.Errorf("the trace is empty or broken: %w", err)
	}
	procs := map[int]*process{calls[0].pid: {driver: true, command: -1, known: true}}
	current, ran := -1, 0
	for _, c := range calls {
		p := procs[c.pid]
		switch {
		case c.name == "chdir" && p != nil && p.driver:
			if n, err := strconv.Atoi(strings.TrimPrefix(quoted(c.args), marker)); err == nil {
				current = n
				ran++
			} else if strings.HasPrefix(quoted(c.args), marker) {
				current = -1
			}
		case isFork(c.name):
			child, err := strconv.Atoi(firstField(c.result))
			if err != nil || child <= 0 {
				continue
			}
			n := &process{parent: c.pid, command: -1}
			if p != nil && p.driver {
				n.driver = strings.Contains(c.args, "CLONE_THREAD")
				n.command, n.known = current, true
			}
			procs[child] = n
		}
	}
	var effects []effect
	for _, c := range calls {
		p := resolve(procs, c.pid)
		if p == nil {
			return nil, 0, fmt.Errorf("process %d comes from nowhere: %s(%s)", c.pid, c.name, c.args)
		}
		if p.driver {
			continue
		}
		if c.name == "execve" && !p.began && p.program == "" { // the command's shell
			if strings.HasPrefix(c.result, "0") {
				p.began, p.program = true, "bash"
			}
			continue
		}
		if !p.began || p.lost {
			continue
		}
		if e, bad := judgeCall(c, p, procs); bad {
			effects = append(effects, e)
		}
		if (c.name == "execve" || c.name == "execveat") && strings.HasPrefix(c.result, "0") {
			p.program = path.Base(quoted(c.args))
			p.lost = !isSystems(quoted(c.args))
		}
	}
	return effects, ran, nil
}

// resolve fills in what a process has from its parent at its birth.
func resolve(procs map[int]*process, pid int) *process {
	p := procs[pid]
	if p == nil || p.known {
		return p
	}
	parent := resolve(procs, p.parent)
	if parent == nil {
		return nil
	}
	p.known, p.command, p.program, p.began, p.lost = true, parent.command, parent.program, parent.began, parent.lost
	return p
}

func isFork(name string) bool {
	return name == "clone" || name == "clone3" || name == "fork" || name == "vfork"
}

func firstField(s string) string {
	if i := strings.IndexAny(s, " <"); i >= 0 {
		return s[:i]
	}
	return s
}

// quoted returns the first quoted string of strace's arguments, unescaped as
// far as paths need it.
func quoted(s string) string {
	i := strings.IndexByte(s, '"')
	if i < 0 {
		return ""
	}
	for k := i + 1; k < len(s); k++ {
		switch s[k] {
		case '\\':
			k++
		case '"':
			if u, err := strconv.Unquote(s[i : k+1]); err == nil {
				return u
			}
			return s[i+1 : k]
		}
	}
	return s[i+1:]
}

// bare is s without its quoted strings, so that what is looked for in it can't
// come from a name.
func bare(s string) string {
	var b strings.Builder
	in := false
	for k := 0; k < len(s); k++ {
		switch {
		case in && s[k] == '\\':
			k++
		case s[k] == '"':
			in = !in
		case !in:
			b.WriteByte(s[k])
		}
	}
	return b.String()
}

// judgeCall says whether a call is one that reading doesn't need. Programs are
// judged by those who know the verdict.
func judgeCall(c call, p *process, procs map[int]*process) (effect, bool) {
	e := effect{Command: p.command, Program: p.program, Call: c.name, Target: quoted(c.args), Line: c.name + "(" + c.args + ") = " + c.result}
	switch c.name {
	case "open", "openat", "openat2", "creat":
		return e, !harmlessOpen(c)
	case "execve", "execveat":
		return e, true
	case "clone", "clone3", "fork", "vfork", "chdir":
		return e, strings.Contains(c.args, "CLONE_NEW")
	case "ioctl":
		e.Target = secondArg(c.args)
		return e, !harmlessIoctl(e.Target)
	case "socket":
		return e, false // it is what is done with it that counts
	case "connect":
		return e, e.Target != lookups || !strings.Contains(bare(c.args), "AF_UNIX")
	case "bind":
		return e, !strings.Contains(bare(c.args), "sa_family=AF_NETLINK")
	case "sendto", "sendmsg", "sendmmsg":
		return e, !harmlessSend(c)
	case "utimensat":
		return e, !strings.Contains(bare(c.args), "<pipe:[")
	case "personality":
		e.Target = c.args
		return e, c.args != "0xffffffff"
	}
	if ownCalls[c.name] {
		e.Target = c.args
		return e, !own(c, p, procs)
	}
	return e, true
}

// harmlessOpen: only to read; or to write to what keeps nothing: a device, or
// a pipe of the command itself. Where names such as /dev/stdout lead is told
// by the descriptor that came back, not by the name.
func harmlessOpen(c call) bool {
	flags := bare(c.args)
	if c.name == "creat" || c.name == "openat2" && !strings.Contains(flags, "O_RDONLY") {
		return false
	}
	writes := strings.Contains(flags, "O_WRONLY") || strings.Contains(flags, "O_RDWR") || strings.Contains(flags, "O_CREAT") ||
		strings.Contains(flags, "O_TRUNC") || strings.Contains(flags, "O_TMPFILE")
	if !writes {
		return strings.Contains(flags, "O_RDONLY") || strings.Contains(flags, "O_PATH")
	}
	if devices[quoted(c.args)] {
		return true
	}
	if strings.Contains(c.result, "ENOENT") && strings.HasPrefix(c.args[strings.IndexByte(c.args, ',')+1:], ` "",`) {
		return true // there can be no such file
	}
	if strings.Contains(c.result, "EISDIR") && !strings.Contains(flags, "O_CREAT") {
		return true // perl asks so whether something is a directory
	}
	_, leads, ok := strings.Cut(c.result, "<")
	leads = strings.TrimSuffix(leads, ">")
	if i := strings.Index(leads, "<char "); i >= 0 {
		leads = leads[:i]
	}
	return ok && (strings.HasPrefix(leads, "pipe:[") || devices[leads]) ||
		!ok && strings.HasPrefix(quoted(c.args), "/dev/std") && strings.Contains(c.result, "ENXIO")
}

func secondArg(args string) string {
	_, rest, _ := strings.Cut(args, ", ")
	first, _, _ := strings.Cut(rest, ",")
	return first
}

// harmlessIoctl: those that ask.
func harmlessIoctl(request string) bool {
	switch request {
	case "TCGETS", "TCGETS2", "TIOCGWINSZ", "TIOCGPGRP", "TIOCGSID", "FIONREAD", "FIOCLEX", "FIONBIO", "FS_IOC_GETFLAGS", "FS_IOC_FIEMAP", "FIGETBSZ", "BLKGETSIZE64", "RNDGETENTCNT":
		return true
	}
	return strings.HasPrefix(request, "SIOCG")
}

// harmlessSend: questions to the kernel over netlink, and what goes to a
// socket that is connected, which has been judged there.
func harmlessSend(c call) bool {
	args := bare(c.args)
	if strings.Contains(args, "nlmsg_type=") || strings.Contains(args, "AF_NETLINK") {
		return strings.Contains(args, "NLM_F_DUMP") || strings.Contains(args, "nlmsg_type=RTM_GET")
	}
	return !strings.Contains(args, "sa_family=")
}

// own reports whether a call is made upon the process itself. timeout may
// signal what it has started and its own group, for that is what it is for;
// lsof its own helper. Signal 0 is a question.
func own(c call, p *process, procs map[int]*process) bool {
	fields := strings.Split(c.args, ", ")
	last := strings.TrimSuffix(fields[len(fields)-1], ")")
	if strings.Contains(c.name, "kill") && last == "0" || c.name == "pidfd_send_signal" && len(fields) > 1 && fields[1] == "0" {
		return true
	}
	target := fields[0]
	if (c.name == "setpriority" || c.name == "ioprio_set") && len(fields) > 1 {
		target = fields[1]
	}
	n, err := strconv.Atoi(firstField(target))
	if err != nil {
		return false
	}
	if n == c.pid || n == 0 && c.name != "kill" {
		return true
	}
	if c.name == "tgkill" { // another thread of its own
		return procs[n] != nil && sameProcess(procs, n, c.pid)
	}
	if c.name != "kill" || p.program != "timeout" && p.program != "lsof" {
		return false
	}
	return n == 0 || procs[n] != nil && procs[n].command == p.command
}

func sameProcess(procs map[int]*process, leader, thread int) bool {
	for i := 0; i < 8 && procs[thread] != nil; i++ {
		if thread == leader {
			return true
		}
		thread = procs[thread].parent
	}
	return false
}

// isSystems reports whether a program is one of the system's.
func isSystems(program string) bool { return slices.Contains(systemDirs, path.Dir(program)) }

// unnamed reports whether an effect is the start of a program which is not
// among those that the verdict names, or that isn't one of the system's.
func unnamed(e effect, named []string) bool {
	if e.Call != "execve" && e.Call != "execveat" {
		return true
	}
	if !isSystems(e.Target) {
		return true
	}
	base := path.Base(e.Target)
	return !slices.Contains(named, base) && !slices.Contains(innards[e.Program], base)
}

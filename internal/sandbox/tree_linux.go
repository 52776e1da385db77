package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// treeVar is the variable by which a process is known to belong to a tree even
// when its parent, group and session are gone. Nested agents append to it.
const treeVar = "AGENT_TREE"

// family is all that is known of our children. The kernel has one list of
// children for the whole process, so there is one of these for the process, and
// not one for each Runner: else two Runners would reap each other's leaders.
var family families

type families struct {
	once  sync.Once
	id    string // random; the first part of every cookie
	self  int
	sid   int
	since uint64 // start time of this process

	// mu is held while a leader is forked and noted, and while children are
	// judged, so that no leader is ever taken for an orphan.
	mu      sync.Mutex
	count   int
	live    map[*tree]struct{}
	leaders map[int]*tree // by pid, until reaped
	guard   *os.File      // held open: its end wakes the guard
}

// prepare makes this process the one that orphaned descendants come back to.
func (f *families) prepare() {
	f.once.Do(func() {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails
		f.id = hex.EncodeToString(id[:])
		f.self = os.Getpid()
		f.sid, _ = unix.Getsid(0)
		if p, ok := readProc(f.self); ok {
			f.since = p.start
		}
		f.live = map[*tree]struct{}{}
		f.leaders = map[int]*tree{}
		// Fails on kernels before 3.4 only; strays are then not seen again.
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	})
}

// tree is a leader and all that descends from it.
type tree struct {
	cookie string
	pipes  []string // "pipe:[inode]" of its outputs

	// Guarded by family.mu.
	pid      int
	reaped   bool
	seen     map[int]uint64 // pid to start time of its processes
	sessions map[int]bool   // sessions and groups they were in
}

// newTree prepares a tree for a leader with that environment and those pipes,
// and returns the environment with the tree's mark in it.
func newTree(env []string, pipes []*os.File) (*tree, []string) {
	family.prepare()
	family.mu.Lock()
	family.count++
	cookie := family.id + "." + strconv.Itoa(family.count) + "."
	family.mu.Unlock()
	t := &tree{cookie: cookie, seen: map[int]uint64{}, sessions: map[int]bool{}}
	for _, w := range pipes {
		if info, err := w.Stat(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				t.pipes = append(t.pipes, fmt.Sprintf("pipe:[%d]", st.Ino))
			}
		}
	}
	outer, nested := lookupEnv(env, treeVar)
	marked := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, treeVar+"=") {
			marked = append(marked, kv)
		}
	}
	if nested && outer != "" {
		cookie = outer + ":" + cookie
	}
	return t, append(marked, treeVar+"="+cookie)
}

// sysProcAttr gives the child a session of its own, hence no terminal, and
// binds its life to the thread that forks it.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// startLeader forks and notes the leader. The caller's goroutine is locked to
// its thread.
func (t *tree) startLeader(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	family.mu.Lock()
	defer family.mu.Unlock()
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	t.pid = p.Pid
	t.sessions[p.Pid] = true
	family.leaders[p.Pid] = t
	family.live[t] = struct{}{}
	return p, nil
}

// leaderReaped notes that the leader's pid is free again.
func (t *tree) leaderReaped() {
	family.mu.Lock()
	defer family.mu.Unlock()
	t.reaped = true
	if family.leaders[t.pid] == t {
		delete(family.leaders, t.pid)
	}
}

// forget ends the tree: nothing of it lives.
func (t *tree) forget() {
	family.mu.Lock()
	defer family.mu.Unlock()
	delete(family.live, t)
}

// orphans returns the living children of this process that were born to some
// tree and lost their parents, and reaps the dead ones. family.mu is held.
func (f *families) orphans() []proc {
	if !haveChildren() {
		return nil
	}
	children, known := childrenOf(f.self)
	if !known {
		children = childrenAmong(allProcs())(f.self)
	}
	return slices.DeleteFunc(children, func(p proc) bool { return !f.orphan(p) })
}

// childrenAmong returns a function like childrenOf that knows all.
func childrenAmong(all []proc) func(pid int) []proc {
	children := make(map[int][]proc, len(all))
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	return func(pid int) []proc { return children[pid] }
}

// orphan reports whether a child of ours is a living stray of some tree; a dead
// one is reaped. Nobody joins our session again once he was started out of it,
// so those in it are the children of others. family.mu is held.
func (f *families) orphan(p proc) bool {
	if f.leaders[p.pid] != nil || p.sid == f.sid || p.sid == 0 || p.start < f.since {
		return false
	}
	if p.dead() {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		return false
	}
	return true
}

// haveChildren reports whether there is any child, without reaping it.
func haveChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			return err != unix.ECHILD
		}
	}
}

// owns reports whether the orphan p came from t. family.mu is held.
func (t *tree) owns(p proc) bool {
	if t.known(p) || hasEnv(p.pid, t.cookie) || t.holdsPipe(p.pid) {
		return true
	}
	// It hid all traces: env -i, a new session, its output elsewhere. It is
	// ours if there is nobody else whose it could be.
	return len(family.live) == 1
}

// known reports whether p was seen before, or is in a session that was. A
// session's number is not given out again while the session has members, and
// not all of t's sessions have; so it must not be another's by now.
func (t *tree) known(p proc) bool {
	if start, ok := t.seen[p.pid]; ok && start == p.start {
		return true
	}
	for _, id := range []int{p.sid, p.pgid} {
		if other := family.leaders[id]; t.sessions[id] && (other == nil || other == t) {
			return true
		}
	}
	return false
}

func (t *tree) holdsPipe(pid int) bool {
	return len(t.pipes) > 0 && slices.ContainsFunc(openFiles(pid), func(link string) bool {
		return slices.Contains(t.pipes, link)
	})
}

// empty reports whether the leader is gone and has left nobody. It costs one
// system call as a rule.
func (t *tree) empty() bool {
	family.mu.Lock()
	defer family.mu.Unlock()
	return t.reaped && !slices.ContainsFunc(family.orphans(), t.owns)
}

// scan returns the living processes of t: the leader, its orphans and all that
// descends from them. A thorough one looks at every process there is, others
// ask each process for its children, and may miss some that are born or orphaned
// meanwhile. ok is false when /proc can't be read.
func (t *tree) scan(thorough bool) (members []proc, ok bool) {
	family.mu.Lock()
	defer family.mu.Unlock()
	ours, known := childrenOf(family.self)
	children := func(pid int) []proc { c, _ := childrenOf(pid); return c }
	if thorough || !known {
		all := allProcs()
		if all == nil {
			return nil, false
		}
		children = childrenAmong(all)
		ours = children(family.self)
	}
	var next []proc
	for _, p := range ours {
		if p.pid == t.pid && !t.reaped || family.orphan(p) && t.owns(p) {
			next = append(next, p)
		}
	}
	for len(next) > 0 {
		p := next[0]
		next = next[1:]
		t.seen[p.pid] = p.start
		t.sessions[p.sid], t.sessions[p.pgid] = true, true
		if !p.dead() {
			members = append(members, p)
			next = append(next, children(p.pid)...)
		}
	}
	return members, true
}

// takeDown stops all of t: SIGTERM to each, SIGKILL once grace is over, looking
// again after each wave for what was born meanwhile. It returns how many it
// stopped and how many it could not.
func (t *tree) takeDown(grace time.Duration) (stopped, survivors int) {
	if t.empty() {
		return 0, 0
	}
	termEnd := time.Now().Add(grace)
	killEnd := termEnd.Add(killTime)
	told := map[int]uint64{}
	for clean := 0; ; {
		members, ok := t.scan(clean > 0)
		now := time.Now()
		switch {
		case !ok:
			return t.killGroup(), 0
		case now.After(killEnd):
			return len(told), len(members)
		case len(members) == 0:
			// Once more, thoroughly: a child may be born behind a scan's back.
			if clean++; clean == 2 {
				return len(told), 0
			}
			continue
		}
		clean = 0
		until := termEnd
		if kill := !now.Before(termEnd); kill {
			until = now.Add(50 * time.Millisecond)
			t.signal(members, told, unix.SIGKILL, until)
		} else {
			t.signal(members, told, unix.SIGTERM, until)
		}
	}
}

// maxWatched bounds the file descriptors that one wave of signals takes.
const maxWatched = 128

// signal sends sig to members, SIGTERM only to those that weren't told yet, and
// waits until they are dead, at most until the time given.
func (t *tree) signal(members []proc, told map[int]uint64, sig syscall.Signal, until time.Time) {
	var watch []unix.PollFd
	for _, p := range members {
		fd, ok := openPidfd(p)
		if !ok {
			continue
		}
		if start, again := told[p.pid]; sig == unix.SIGKILL || !again || start != p.start {
			told[p.pid] = p.start
			sendSignal(p, fd, sig)
			if sig != unix.SIGKILL {
				sendSignal(p, fd, unix.SIGCONT) // a stopped one would not see it
			}
		}
		if fd >= 0 && len(watch) < maxWatched {
			watch = append(watch, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		} else if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	waitDead(watch, until)
}

// openPidfd returns a handle that stays with p, -1 when the kernel has none
// (before 5.3); ok is false when p is gone.
func openPidfd(p proc) (fd int, ok bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return -1, false
	}
	if err != nil {
		fd = -1
	}
	if now, alive := readProc(p.pid); !alive || now.start != p.start || now.dead() {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return -1, false
	}
	return fd, true
}

func sendSignal(p proc, fd int, sig syscall.Signal) {
	if fd >= 0 && unix.PidfdSendSignal(fd, sig, nil, 0) != unix.ENOSYS {
		return
	}
	if fd < 0 {
		_ = unix.Kill(p.pid, sig)
	}
}

// waitDead waits until all of watch are dead, at most until the time given, and
// closes them. With nothing to watch it waits a moment.
func waitDead(watch []unix.PollFd, until time.Time) {
	if len(watch) == 0 {
		until = time.Now().Add(min(time.Until(until), 5*time.Millisecond))
	}
	first := true
	for first || len(watch) > 0 {
		first = false
		left := time.Until(until)
		if left <= 0 {
			break
		}
		n, err := unix.Poll(watch, int(left.Milliseconds())+1)
		if err != nil && err != unix.EINTR {
			break
		}
		if n > 0 {
			watch = slices.DeleteFunc(watch, func(w unix.PollFd) bool {
				if w.Revents != 0 {
					_ = unix.Close(int(w.Fd))
				}
				return w.Revents != 0
			})
		}
	}
	for _, w := range watch {
		_ = unix.Close(int(w.Fd))
	}
}

// killGroup is what can be done without /proc.
func (t *tree) killGroup() int {
	family.mu.Lock()
	defer family.mu.Unlock()
	if unix.Kill(-t.pid, unix.SIGKILL) == nil {
		return 1
	}
	return 0
}

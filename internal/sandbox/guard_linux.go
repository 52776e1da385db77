package sandbox

import (
	"os"
	"syscall"
)

// guardScript waits until its stdin, a pipe from us, ends: until we are dead,
// however we died. Then it kills whoever carries our mark ($1), again and again
// until a look at all processes finds nobody ($2 is grep).
const guardScript = `trap '' HUP INT TERM
while read -r _; do :; done
n=0
while [ $n -lt 20 ]; do
	found=$("$2" -lsF -e "$1" /proc/[0-9]*/environ)
	[ -n "$found" ] || break
	for e in $found; do
		p=${e#/proc/}
		"$2" -qsF -e "$1" "$e" && kill -9 "${p%/environ}"
	done
	n=$((n + 1))
done 2>/dev/null`

// started starts the guard with the first tree: a small shell beside us that
// takes our trees down when SIGKILL or a crash kept us from doing it. (The
// leaders die with us by themselves; the guard is for what they started.)
// Without sh and grep there is none.
func (t *tree) started(env []string) {
	family.mu.Lock()
	defer family.mu.Unlock()
	if family.guard != nil {
		return
	}
	grep, err := lookPath("grep", env)
	if err != nil {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	defer func() { _ = r.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = w.Close()
		return
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", guardScript, "guard", family.id + ".", grep}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []*os.File{r, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = w.Close()
		return
	}
	family.guard = w                                                    // stays open as long as we live
	family.leaders[p.Pid] = &tree{pid: p.Pid, sessions: map[int]bool{}} // never taken for an orphan
	_ = p.Release()
}

package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one line of /proc/PID/stat, as far as we care. start tells apart two
// processes that had the same pid.
type proc struct {
	pid, ppid, pgid, sid int
	state                byte
	start                uint64
}

// dead reports whether p has exited and is only waiting to be reaped.
func (p proc) dead() bool { return p.state == 'Z' || p.state == 'X' }

// readFile returns the first max bytes of a file below /proc, nil if it can't
// be read. It spares the poller that os.ReadFile would try.
func readFile(path string, max int) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, 0, 1024)
	for len(buf) < max {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf
}

func procPath(pid int, rest string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + rest
}

// readProc returns what /proc says of pid.
func readProc(pid int) (proc, bool) {
	return parseStat(readFile(procPath(pid, "stat"), 4096))
}

// parseStat reads "pid (name) state ppid pgrp session ... starttime(22nd) ...".
// The name may hold anything, parentheses and newlines included.
func parseStat(b []byte) (proc, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open {
		return proc{}, false
	}
	pid, err := strconv.Atoi(string(b[:open-1]))
	f := bytes.Fields(b[end+1:])
	if err != nil || pid <= 0 || len(f) < 20 || len(f[0]) != 1 {
		return proc{}, false
	}
	p := proc{pid: pid, state: f[0][0]}
	for i, dst := range []*int{&p.ppid, &p.pgid, &p.sid} {
		if *dst, err = strconv.Atoi(string(f[1+i])); err != nil {
			return proc{}, false
		}
	}
	p.start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err == nil
}

// allProcs returns every process there is; nil when /proc can't be read.
func allProcs() []proc {
	var procs []proc
	for _, pid := range numericEntries("/proc") {
		if p, ok := readProc(pid); ok {
			procs = append(procs, p)
		}
	}
	return procs
}

// childrenOf returns the children of pid, those of any of its threads. known is
// false when the kernel doesn't list them (CONFIG_PROC_CHILDREN). A child can be
// missed while a sibling dies.
func childrenOf(pid int) (procs []proc, known bool) {
	tasks := procPath(pid, "task")
	for _, tid := range numericEntries(tasks) {
		b := readFile(tasks+"/"+strconv.Itoa(tid)+"/children", 1<<20)
		known = known || b != nil
		for _, f := range bytes.Fields(b) {
			child, err := strconv.Atoi(string(f))
			if err != nil {
				continue
			}
			if p, ok := readProc(child); ok && p.ppid == pid {
				procs = append(procs, p)
			}
		}
	}
	return procs, known
}

// numericEntries returns the entries of a directory that are numbers.
func numericEntries(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1)
	ids := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// hasEnv reports whether the environment that pid was started with holds s.
func hasEnv(pid int, s string) bool {
	return bytes.Contains(readFile(procPath(pid, "environ"), 4<<20), []byte(s))
}

// openFiles returns what the file descriptors of pid point to.
func openFiles(pid int) []string {
	dir := procPath(pid, "fd")
	var links []string
	for _, fd := range numericEntries(dir) {
		if link, err := os.Readlink(dir + "/" + strconv.Itoa(fd)); err == nil {
			links = append(links, link)
		}
	}
	return links
}

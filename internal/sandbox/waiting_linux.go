package sandbox

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitingForInput reports whether a process of t is blocked reading a terminal.
// Stdin is /dev/null and gives end of file at once, and a pipe gets its input
// from its neighbour; what blocks is a terminal that the command found or made
// for itself (script, expect, ssh -tt, /dev/console), where nobody types, and
// the command's own output, which vim reads its keys from when stdin has ended.
func (t *tree) waitingForInput() bool {
	members, _ := t.scan(false)
	for _, p := range members {
		if p.state != 'S' {
			continue
		}
		for _, tid := range firstTasks(p.pid) {
			if t.readsTerminal(p.pid, tid) {
				return true
			}
		}
	}
	return false
}

// firstTasks returns the threads of pid, not more than 16 of them.
func firstTasks(pid int) []int {
	tids := numericEntries(procPath(pid, "task"))
	return tids[:min(len(tids), 16)]
}

// longWait is the time limit, in seconds, from which on a wait counts as one
// without a limit: vim for one waits 4 s for a key before it does some chores.
const longWait = 2

// readsTerminal reports whether the thread sits in read, poll or select, for
// long, on nothing but what nobody writes to.
func (t *tree) readsTerminal(pid, tid int) bool {
	nr, args, ok := currentCall(pid, tid)
	if !ok {
		return false
	}
	var fds []int
	switch callKinds[nr] {
	case callRead:
		fds = []int{int(int32(args[0]))}
	case callPoll:
		if ms := int32(args[2]); ms < 0 || ms >= longWait*1000 {
			fds = pollSet(pid, args)
		}
	case callPpoll:
		if waitsLong(pid, args[2]) {
			fds = pollSet(pid, args)
		}
	case callSelect:
		if waitsLong(pid, args[4]) {
			fds = selectSet(pid, args)
		}
	}
	for _, fd := range fds {
		if !t.nobodyWrites(pid, fd) {
			return false
		}
	}
	return len(fds) > 0
}

// waitsLong reports whether the time limit at addr, a timespec or timeval, is
// none or a long one.
func waitsLong(pid int, addr uint64) bool {
	if addr == 0 {
		return true
	}
	switch b := readMemory(pid, addr, int(unsafe.Sizeof(uintptr(0)))); len(b) {
	case 8:
		return binary.NativeEndian.Uint64(b) >= longWait
	case 4:
		return binary.NativeEndian.Uint32(b) >= longWait
	}
	return false
}

// callKind says where a system call keeps what it waits for.
type callKind uint8

const (
	callRead callKind = iota + 1
	callPoll
	callPpoll
	callSelect
)

// currentCall returns the system call that the thread is blocked in. It needs
// the right to trace it, which we have of our own children.
func currentCall(pid, tid int) (nr int, args [6]uint64, ok bool) {
	b := readFile(procPath(pid, "task/"+strconv.Itoa(tid)+"/syscall"), 256)
	return parseSyscall(string(b))
}

// parseSyscall reads "NR 0xARG0 ... 0xARG5 0xSP 0xPC"; "running" and "-1 SP PC"
// say that there is no call.
func parseSyscall(s string) (nr int, args [6]uint64, ok bool) {
	f := strings.Fields(s)
	if len(f) < 7 {
		return 0, args, false
	}
	nr, err := strconv.Atoi(f[0])
	if err != nil || nr < 0 {
		return 0, args, false
	}
	for i := range args {
		hex, found := strings.CutPrefix(f[1+i], "0x")
		if args[i], err = strconv.ParseUint(hex, 16, 64); err != nil || !found {
			return 0, args, false
		}
	}
	return nr, args, true
}

// maxPolled bounds the sets that are looked at; one that waits for a person
// watches few files.
const maxPolled = 16

// pollSet returns the fds that a poll waits to read.
func pollSet(pid int, args [6]uint64) []int {
	if args[1] == 0 || args[1] > maxPolled {
		return nil
	}
	b := readMemory(pid, args[0], int(args[1])*8)
	var fds []int
	for ; len(b) >= 8; b = b[8:] {
		fd := int32(binary.NativeEndian.Uint32(b))
		if fd >= 0 && binary.NativeEndian.Uint16(b[4:])&unix.POLLIN != 0 {
			fds = append(fds, int(fd))
		}
	}
	return fds
}

// selectSet returns the fds that a select waits to read.
func selectSet(pid int, args [6]uint64) []int {
	if args[0] == 0 || args[0] > 1024 || args[1] == 0 {
		return nil
	}
	var fds []int
	for i, word := range readMemory(pid, args[1], int(args[0]+63)/64*8) {
		for bit := range 8 {
			if word&(1<<bit) != 0 {
				fds = append(fds, i*8+bit) // little-endian sets only
			}
		}
	}
	if len(fds) > maxPolled {
		return nil
	}
	return fds
}

// readMemory returns n bytes of the memory of pid, nil if they can't be read.
func readMemory(pid int, addr uint64, n int) []byte {
	buf := make([]byte, n)
	local := []unix.Iovec{{Base: unsafe.SliceData(buf)}}
	local[0].SetLen(n)
	got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: n}}, 0)
	if err != nil || got != n {
		return nil
	}
	return buf
}

// nobodyWrites reports whether fd of pid is a terminal to read from (the master
// side of a pseudo-terminal is none), or the pipe that takes the tree's output.
func (t *tree) nobodyWrites(pid, fd int) bool {
	link, err := os.Readlink(procPath(pid, "fd/"+strconv.Itoa(fd)))
	if err != nil {
		return false
	}
	return strings.HasPrefix(link, "/dev/pts/") && link != "/dev/pts/ptmx" ||
		strings.HasPrefix(link, "/dev/tty") || link == "/dev/console" ||
		slices.Contains(t.pipes, link)
}

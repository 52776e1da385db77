package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Marked returns the pids of the processes whose environment holds mark.
func Marked(mark string) []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() && !isZombie(dir) {
			out = append(out, pid)
		}
	}
	return out
}

func isZombie(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// TreeRSS sums the resident memory of a process and its descendants, in bytes.
func TreeRSS(pid int) int64 {
	total := rss(pid)
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range tasks {
		list, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(list)) {
			if c, err := strconv.Atoi(child); err == nil {
				total += TreeRSS(c)
			}
		}
	}
	return total
}

func rss(pid int) int64 {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
